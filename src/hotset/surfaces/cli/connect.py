"""`hotset connect` and `hotset disconnect`: add hotset to the settings of another program, as an
MCP server or as the base URL of its calls, or remove it; every other byte of its files stays."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec

from hotset.config import Config, is_loopback
from hotset.errors import BadConfig, NotFound
from hotset.files.private_folder import private_folder
from hotset.files.write import replace_file
from hotset.surfaces.cli.agents import fill, profile_of, redact_url
from hotset.surfaces.cli.connections import (
    MCP,
    PROXY,
    ClientConnection,
    WrittenSetting,
    forget_connection,
    hash_of,
    keep_connection,
    list_connections,
    read_connection,
)
from hotset.surfaces.cli.exit import FOUND, OK
from hotset.surfaces.cli.options import ProjectOptions, examples, project_options
from hotset.surfaces.cli.settings_text import Keys, put_setting, read_setting, take_setting
from hotset.surfaces.cli.terminal import emit
from hotset.surfaces.proxy.address import project_token, read_note
from hotset.surfaces.proxy.always_on import (
    HOST,
    add_project,
    drop_project,
    fixed_port,
    shared_folder,
)

NAME = "hotset"
_WORKSPACE = "${workspaceFolder}"
_ANY_TOKEN = "TOKEN"  # noqa: S105 - what --print shows where there is no token yet


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file in which a program keeps settings."""

    path: str
    """Relative to the project's folder, or to the home folder."""
    of_user: bool = False
    variable: str = ""
    """The variable that names another folder for it; empty if there is none."""
    below: str = ""
    """Its path below that folder."""


@dataclass(frozen=True, slots=True)
class McpEntry:
    """How a program lists an MCP server."""

    file: SettingsFile
    container: str
    entry: Callable[[str, tuple[str, ...]], dict[str, Any]]
    where: str = ""
    """The placeholder for its project's folder; empty if it starts servers in that folder."""
    then: str = ""
    """The next step for the person."""


@dataclass(frozen=True, slots=True)
class BaseUrls:
    """The settings that send a program's calls to another address."""

    file: SettingsFile
    values: Mapping[Keys, Any]
    """Texts may hold {root}, {openai}, {origin} and {token}."""
    at_home: Mapping[Keys, str] = field(default_factory=dict)
    """Further ones for calls that end at the program's own provider, `home`."""
    home: str = ""
    then: str = ""


@dataclass(frozen=True, slots=True)
class AgentClient:
    """How a program is connected; a sentence says why one way is not there."""

    mcp: McpEntry | str
    proxy: BaseUrls | str

    def way(self, name: str) -> McpEntry | BaseUrls:
        """Raises `BadConfig` with the reason why there is none of that name."""
        found = self.mcp if name == MCP else self.proxy
        if isinstance(found, str):
            raise BadConfig(found)
        return found

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways that there are, the one that needs no running process first."""
        both = ((MCP, self.mcp), (PROXY, self.proxy))
        return tuple(name for name, way in both if not isinstance(way, str))


def _plain_entry(command: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    return {"command": command, "args": list(arguments)}


def _typed_entry(command: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "stdio", "command": command, "args": list(arguments)}


def _opencode_entry(command: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "local", "command": [command, *arguments], "enabled": True}


def _goose_entry(command: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    about = {"description": "tools, code, history and memory of the project", "timeout": 300}
    started = {"cmd": command, "args": list(arguments), "envs": {}, "env_keys": []}
    return {"enabled": True, "type": "stdio", "name": NAME, **about, **started}


def _in_env(variables: Mapping[str, str]) -> dict[Keys, Any]:
    return {("env", name): text for name, text in variables.items()}


def _leaves(document: Mapping[str, Any]) -> Iterator[tuple[Keys, Any]]:
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from (((key, *keys), leaf) for keys, leaf in _leaves(value))
        else:
            yield (key,), value


_BOTH_URLS = {"OPENAI_BASE_URL": "{openai}", "ANTHROPIC_BASE_URL": "{root}"}
_CLAUDE, _GOOSE, _AIDER = (profile_of(each) for each in ("claude", "goose", "aider"))
_OPENCODE_URLS = profile_of("opencode").documents["OPENCODE_CONFIG_CONTENT"]
_CODEX_FILE = SettingsFile(".codex/config.toml", True, "CODEX_HOME", "config.toml")
_GOOSE_FILE = SettingsFile(
    ".config/goose/config.yaml", True, "XDG_CONFIG_HOME", "goose/config.yaml"
)
_PI_FILE = SettingsFile(".pi/agent/models.json", True, "PI_CODING_AGENT_DIR", "models.json")
_BY_HAND = "set apiBase of each model in its config.yaml to the address that `hotset up` shows"

CLIENTS: Mapping[str, AgentClient] = {
    "aider": AgentClient(
        "aider has no MCP: connect it with --proxy",
        BaseUrls(
            SettingsFile(".aider.conf.yml"),
            {
                ("openai-api-base",): _AIDER.env["OPENAI_API_BASE"],
                ("set-env",): [
                    f"{name}={text}"
                    for name, text in _AIDER.env.items()
                    if name.startswith("ANTHROPIC")
                ],
            },
            then="start aider here",
        ),
    ),
    "claude": AgentClient(
        McpEntry(
            SettingsFile(".mcp.json"),
            "mcpServers",
            _plain_entry,
            then="start claude here; it asks once whether it may use the server",
        ),
        BaseUrls(
            SettingsFile(".claude/settings.local.json"),
            _in_env(_CLAUDE.env),
            _in_env(_CLAUDE.at_home),
            _CLAUDE.home,
            then="start claude here",
        ),
    ),
    "codex": AgentClient(
        McpEntry(_CODEX_FILE, "mcp_servers", _plain_entry, then="start codex anew"),
        BaseUrls(
            _CODEX_FILE,
            # The built-in provider keeps its name, so threads of before are found and resumed.
            {("openai_base_url",): "{openai}"},
            then="start codex anew; with a ChatGPT login, set openai_url = "
            '"https://chatgpt.com/backend-api/codex" in hotset\'s config.toml',
        ),
    ),
    "continue": AgentClient(
        McpEntry(
            SettingsFile(".continue/mcpServers/hotset.json"),
            "mcpServers",
            _plain_entry,
            then="use Continue's agent mode here",
        ),
        f"Continue has base URLs by model only: connect it with --mcp, or {_BY_HAND}",
    ),
    "cursor": AgentClient(
        McpEntry(
            SettingsFile(".cursor/mcp.json"),
            "mcpServers",
            _plain_entry,
            where=_WORKSPACE,
            then="switch hotset on in Cursor's settings under MCP",
        ),
        "Cursor's own servers make its calls, and they cannot reach this machine: connect it with "
        "--mcp",
    ),
    "gemini": AgentClient(
        McpEntry(
            SettingsFile(".gemini/settings.json"),
            "mcpServers",
            _plain_entry,
            then="start gemini here",
        ),
        "hotset does not speak Gemini's API: connect it with --mcp",
    ),
    "goose": AgentClient(
        McpEntry(_GOOSE_FILE, "extensions", _goose_entry, then="start a goose session"),
        BaseUrls(
            _GOOSE_FILE,
            {(name,): text for name, text in _GOOSE.env.items()},
            then="start a goose session; an OPENAI_BASE_URL there would win over it",
        ),
    ),
    "opencode": AgentClient(
        McpEntry(SettingsFile("opencode.json"), "mcp", _opencode_entry, then="start opencode here"),
        BaseUrls(
            SettingsFile("opencode.json"),
            dict(_leaves(_OPENCODE_URLS)),
            then="start opencode here",
        ),
    ),
    "pi": AgentClient(
        "pi has no MCP of its own: connect it with --proxy",
        BaseUrls(
            _PI_FILE,
            {
                ("providers", "openai", "baseUrl"): "{openai}",
                ("providers", "anthropic", "baseUrl"): "{root}",
            },
            then="start pi, or open /model in it",
        ),
    ),
    "qwen-code": AgentClient(
        McpEntry(
            SettingsFile(".qwen/settings.json"),
            "mcpServers",
            _plain_entry,
            then="start qwen here",
        ),
        BaseUrls(
            SettingsFile(".qwen/settings.json"),
            _in_env(_BOTH_URLS),
            then="start qwen here; a baseUrl of its modelProviders wins over it",
        ),
    ),
    "vscode": AgentClient(
        McpEntry(
            SettingsFile(".vscode/mcp.json"),
            "servers",
            _typed_entry,
            where=_WORKSPACE,
            then="open the file in VS Code and press Start above the entry",
        ),
        "VS Code has no base URL for the models of its agent: connect it with --mcp",
    ),
}

_client = click.argument("client", type=click.Choice(sorted(CLIENTS)))


def _ways(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --mcp and --proxy."""
    command = click.option("--proxy", is_flag=True, help="By its base URL.")(command)
    return click.option("--mcp", is_flag=True, help="Over MCP.")(command)


@dataclass(frozen=True, slots=True)
class _Change:
    """What is to be written into one file for one way to connect."""

    way: str
    file: SettingsFile
    path: Path
    values: Mapping[Keys, Any]
    folder: str
    """The data folder whose token is in the values; empty without one."""
    then: str


@click.command(
    epilog=examples(
        "hotset connect claude",
        "hotset connect codex --print",
        "hotset connect opencode --proxy",
        "hotset connect claude --mcp --proxy",
    )
)
@_client
@_ways
@project_options
@click.option(
    "--print", "only_print", is_flag=True, help="Show what would be written, and write nothing."
)
def connect(
    chosen: ProjectOptions, client: str, *, mcp: bool, proxy: bool, only_print: bool
) -> None:
    """Connect CLIENT to hotset: over MCP, by its base URL, or both.

    By default over MCP, which needs no running process and works with every login; aider and pi,
    which have no MCP, by their base URL. That one needs a fixed port: `hotset service install`, or
    the `hotset up` that serves this project. The rest of the client's files stays as it is, and
    `hotset disconnect` restores them.

    To use the servers that are in a file already: hotset tools import.
    """
    config, spec = chosen.config(), CLIENTS[client]
    changes = [
        _change(chosen, config, client, way, only_print=only_print)
        for way in _chosen_ways(spec, mcp=mcp, proxy=proxy) or spec.ways[:1]
    ]
    if only_print:
        _print_changes(chosen, changes)
        return
    for change in changes:
        _connect(chosen, config, client, change)


@click.command(epilog=examples("hotset disconnect claude", "hotset disconnect codex --proxy"))
@_client
@_ways
@project_options
def disconnect(chosen: ProjectOptions, client: str, *, mcp: bool, proxy: bool) -> int:
    """Remove hotset from the settings of CLIENT. A file that did not change since `connect` is
    restored byte for byte."""
    config, spec = chosen.config(), CLIENTS[client]
    files: dict[SettingsFile, list[str]] = {}
    for way in _chosen_ways(spec, mcp=mcp, proxy=proxy) or spec.ways:
        files.setdefault(spec.way(way).file, []).append(way)
    there = {file: _path(config, file) for file in files}
    named = " and ".join(map(str, there.values()))
    if not any(path.exists() for path in there.values()):
        raise NotFound(f"{named}: not there, nothing to undo")
    done = [
        _disconnect(chosen, config, client, file, ways)
        for file, ways in files.items()
        if there[file].exists()
    ]
    mine = (each for each in list_connections(config) if each.folder == str(config.folder))
    if not any(PROXY in each.written for each in mine):
        drop_project(config)
    if not any(done):
        chosen.say(f"hotset is not in {named}")
        return FOUND
    return OK


def _chosen_ways(spec: AgentClient, *, mcp: bool, proxy: bool) -> tuple[str, ...]:
    """Raises `BadConfig` for a way that the client does not have."""
    ways = tuple(name for name, given in ((MCP, mcp), (PROXY, proxy)) if given)
    for way in ways:
        spec.way(way)
    return ways


def _change(
    chosen: ProjectOptions, config: Config, client: str, way: str, *, only_print: bool
) -> _Change:
    found = CLIENTS[client].way(way)
    path = _path(config, found.file)
    if isinstance(found, McpEntry):
        command, *before = _command()
        entry = found.entry(command, (*before, *_arguments(chosen, found)))
        values: dict[Keys, Any] = {(found.container, NAME): entry}
        return _Change(way, found.file, path, values, "", found.then)
    root, folder = _root(chosen, config, client, found.file, only_print=only_print)
    at_home = found.home in {urlsplit(each.url).hostname for each in config.upstreams.values()}
    texts = {**found.values, **(found.at_home if at_home else {})}
    filled = {
        keys: [fill(each, root) for each in text] if isinstance(text, list) else fill(text, root)
        for keys, text in texts.items()
    }
    return _Change(way, found.file, path, filled, folder, found.then)


def _root(
    chosen: ProjectOptions, config: Config, client: str, file: SettingsFile, *, only_print: bool
) -> tuple[str, str]:
    """The base URL for a client, and the data folder whose token it has.

    It names the client, so that its sessions can be told from others. Raises `BadConfig` if no port
    is fixed.
    """
    shared = shared_folder(config)
    running = read_note(shared)
    port = running.port if running is not None else fixed_port(config)
    folder = config.folder
    if port is not None and file.of_user and not chosen.project:
        folder = shared  # the file speaks for all projects
    elif port is not None:
        if not only_print:
            add_project(config)
    elif (last := read_note(config.folder)) is not None:
        port = last.port
    else:
        raise BadConfig(
            f"the base URL of {client} needs a port that stays: run `hotset service install`, or "
            f"`hotset up` in another terminal, and connect again"
        )
    if only_print and not (folder / "token").exists():
        token = _ANY_TOKEN
    else:
        token = project_token(private_folder(folder))
    return f"http://{HOST}:{port}/{token}~{client}", str(folder)


def _print_changes(chosen: ProjectOptions, changes: list[_Change]) -> None:
    texts: dict[Path, str] = {}
    for change in changes:
        text = texts.get(change.path, _read(change.path) or "")
        try:
            texts[change.path] = _put_all(text, change)[0]
        except BadConfig as error:
            chosen.say(f"{change.path}: {error}; add this by hand:")
            texts[change.path] = _put_all("", change)[0]
    for path, text in texts.items():
        chosen.say(f"{path}:")
        emit(text.rstrip("\n"))


def _connect(chosen: ProjectOptions, config: Config, client: str, change: _Change) -> None:
    path, of_user = change.path, change.file.of_user
    before = _read(path)
    try:
        after, written = _put_all(before or "", change)
    except BadConfig as error:
        raise BadConfig(f"{path}: {error}; mend it, or see what to add with --print") from error
    if after == before:
        chosen.say(f"hotset is in {path} already")
        return
    kept = read_connection(config, client, path, of_user=of_user)
    if kept is not None and not _is_there(kept, before or "", path):
        kept = None  # a person removed it: it begins anew
    is_ours = kept is not None and kept.is_after(before or "")
    if kept is not None:
        written = _first_written(kept.written.get(change.way, ()), written)
    made = ClientConnection(
        client,
        str(path),
        change.folder or (kept.folder if kept is not None else ""),
        time.time(),
        kept.before if kept is not None else before,
        hash_of(after) if kept is None or is_ours else "",
        {**(kept.written if kept is not None else {}), change.way: written},
        kept.folders if kept is not None else _missing_folders(path),
    )
    backup = keep_connection(config, made, of_user=of_user)
    _write(path, after, private=bool(change.folder))
    for warning in _warnings(config, change, written):
        chosen.say(click.style(f"hotset: {warning}", fg="yellow"))
    way = "" if change.way == MCP else " --proxy"
    chosen.say(
        f"hotset is in {path} now; {change.then}. To undo: "
        f"{chosen.hint(f'disconnect {client}{way}')} (as it was: {backup})"
    )


def _disconnect(
    chosen: ProjectOptions, config: Config, client: str, file: SettingsFile, ways: list[str]
) -> bool:
    """True if something was removed."""
    path = _path(config, file)
    now = _read(path) or ""
    kept = read_connection(config, client, path, of_user=file.of_user)
    left = {way: each for way, each in kept.written.items() if way not in ways} if kept else {}
    after: str | None
    if kept is not None and not left and kept.is_after(now):
        after = kept.before
    else:
        after = now
        try:
            for way in ways:
                after = _take_all(after, path, client, way, kept)
        except BadConfig as error:
            raise BadConfig(f"{path}: {error}; mend it first") from error
    if after is None:
        path.unlink()
        for folder in kept.folders if kept is not None else ():
            with suppress(OSError):  # something else is in it now
                Path(folder).rmdir()
    elif after != now:
        _write(path, after)
    if kept is not None and left:
        still = hash_of(after or "") if kept.is_after(now) else ""
        made = msgspec.structs.replace(kept, after=still, written=left)
        keep_connection(config, made, of_user=file.of_user)
    else:
        forget_connection(config, client, path, of_user=file.of_user)
    if after == now:
        return False
    chosen.say(f"hotset was removed from {path}")
    return True


def _is_there(kept: ClientConnection, text: str, path: Path) -> bool:
    """True if the file still has a setting of ours."""
    keys = (each.keys for written in kept.written.values() for each in written)
    return any(read_setting(text, path.suffix, each) is not None for each in keys)


def _missing_folders(path: Path) -> tuple[str, ...]:
    """The folders that will be made for a file, the innermost first."""
    return tuple(str(folder) for folder in path.parents if not folder.exists())


def _put_all(text: str, change: _Change) -> tuple[str, tuple[WrittenSetting, ...]]:
    """The text with every setting of a change, and what each of them replaced. Raises
    `BadConfig`."""
    form, written = change.path.suffix, []
    for keys, value in change.values.items():
        there = read_setting(text, form, keys)
        is_ours = there is None or change.way == MCP or _is_ours(there)
        if isinstance(value, list) and not is_ours and there != value:
            raise BadConfig(f"it has a {'.'.join(keys)} of its own; add to it: {', '.join(value)}")
        if not is_ours and not _is_address(value):
            continue  # a person chose it
        text = put_setting(text, form, keys, value)
        written.append(WrittenSetting(keys, None if is_ours else there))
    return text, tuple(written)


def _take_all(text: str, path: Path, client: str, way: str, kept: ClientConnection | None) -> str:
    """The text without the settings of one way; what they replaced is there again."""
    found = CLIENTS[client].way(way)
    before = {each.keys: each.before for each in (kept.written.get(way, ()) if kept else ())}
    keys = [(found.container, NAME)] if isinstance(found, McpEntry) else list(found.values)
    if isinstance(found, BaseUrls):
        keys += [each for each in found.at_home if each in before]
    for each in keys:
        there = read_setting(text, path.suffix, each)
        if there is None or not (way == MCP or each in before or _is_ours(there)):
            continue
        if before.get(each) is None:
            text = take_setting(text, path.suffix, each)
        elif _is_ours(there):
            text = put_setting(text, path.suffix, each, before[each])
    return text


def _first_written(
    earlier: tuple[WrittenSetting, ...], now: tuple[WrittenSetting, ...]
) -> tuple[WrittenSetting, ...]:
    """What was written now, with the values that were there before the first time."""
    known = {tuple(each.keys): each for each in earlier}
    return tuple(known.get(each.keys, each) for each in now)


def _is_ours(there: Any) -> bool:
    """True for an address on this machine, or a list of them."""
    if isinstance(there, list):
        return bool(there) and all(_is_ours(each) for each in there)
    return isinstance(there, str) and (f"http://{HOST}:" in there or "~goose/" in there)


def _is_address(value: Any) -> bool:
    return isinstance(value, list) or "/" in str(value) or HOST in str(value)


def _warnings(
    config: Config, change: _Change, written: tuple[WrittenSetting, ...]
) -> Iterator[str]:
    hosts = {urlsplit(each.url).hostname for each in config.upstreams.values()}
    for each in written:
        was = urlsplit(each.before) if isinstance(each.before, str) else None
        host = (was.hostname if was is not None else None) or ""
        if host and host not in hosts and not is_loopback(host):
            yield (
                f"{'.'.join(each.keys)} was {redact_url(each.before)}; to keep using it, set "
                f"openai_url or anthropic_url in hotset's config.toml to that"
            )
    if change.folder and not change.file.of_user and _would_be_committed(change.path):
        yield (
            f"{change.path.name} has this project's token now: do not commit it. To have git leave "
            f"it alone: echo {change.path.relative_to(config.project)} >> .git/info/exclude"
        )


def _would_be_committed(path: Path) -> bool:
    """True if git would add the file, or has it already."""
    if shutil.which("git") is None:
        return False
    asked = subprocess.run(
        ["git", "check-ignore", "-q", path.name], cwd=path.parent, capture_output=True, check=False
    )
    return asked.returncode == 1


def _path(config: Config, file: SettingsFile) -> Path:
    folder = config.environ.get(file.variable) if file.variable else None
    if folder:
        return Path(folder).expanduser() / file.below
    return (config.user if file.of_user else config.project) / file.path


def _arguments(chosen: ProjectOptions, client: McpEntry) -> tuple[str, ...]:
    """Arguments for `hotset mcp` that select this store and project, wherever the other program
    starts us."""
    named = str(Path(chosen.project).resolve()) if chosen.project else ""
    project = client.where or (named if client.file.of_user else "")
    data = str(Path(chosen.data).resolve()) if chosen.data else ""
    return "mcp", *(("--project", project) if project else ()), *(("--data", data) if data else ())


def _command() -> tuple[str, ...]:
    """Our command: by name if the other program will find it, otherwise by path."""
    if shutil.which("hotset"):
        return ("hotset",)
    beside = Path(sys.executable).with_name("hotset")
    return (str(beside),) if beside.exists() else (sys.executable, "-m", "hotset")


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise BadConfig(f"{path} is not UTF-8, so nothing is changed in it") from error


def _write(path: Path, text: str, *, private: bool = False) -> None:
    """Writes a file atomically, with the permissions that it had. A new one that is `private` can
    be read by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()  # a link stays a link
    was = target.stat() if target.exists() else None
    # It may hold keys: the draft must not be readable by others either.
    mode = 0o600 if was or private else 0o666
    with replace_file(target, f".{target.name}.hotset", mode=mode) as file:
        file.write(text.encode())
        if was is not None:
            with suppress(PermissionError):  # a file of another user
                os.fchown(file.fileno(), was.st_uid, was.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(was.st_mode))
