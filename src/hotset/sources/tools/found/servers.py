"""The MCP servers that a person chose: `servers.json`, in the form that every client uses.

{"mcpServers": {"files": {"command": "npx", "args": ["-y", "server-files"], "env": {"KEY":
"${KEY}"}},
                "wiki":  {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer
                ${WIKI}"}}}}

Besides: `cwd`, `shared` (it keeps nothing between calls: one process for all sessions) and
`disabled`.

`read_client` takes such entries from the settings of other programs, recognised by their form:
Claude Code (`.mcp.json`, `~/.claude.json`), Claude's desktop app, Cursor, VS Code, Codex, opencode.
Nothing is written and nothing is run; what cannot be taken over as it is meant is left out, with
the reason.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

from hotset.errors import BadConfig, NotFound
from hotset.files.lock import hold_folder
from hotset.files.open import read_regular
from hotset.files.write import write_atomically
from hotset.nouns.tool import Http, Launch, OriginKind, Stdio, ToolOrigin
from hotset.sources.tools.found.folders import stamp_of
from hotset.sources.tools.tool_names import RESERVED, slug

SERVERS = "mcpServers"
SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

_MOST_BYTES = 4_000_000  # thousands of servers
_STDIO = ("stdio", "local")
_HTTP = ("http", "streamable-http", "streamable_http", "streamableHttp", "remote")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACE = re.compile(r"\$\$\{|\$\{([^}]*)\}")
_VARIABLE = re.compile(rf"({VARIABLE_NAME.pattern})(?::-(.*))?", re.DOTALL)

_MOST_CLIENT_BYTES = 64_000_000  # Claude Code keeps its history in the same file
_IN_PROJECT = (
    ".mcp.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".codex/config.toml",
    "opencode.json",
    "opencode.jsonc",
)
_AT_HOME = (
    ".claude.json",
    ".cursor/mcp.json",
    ".codex/config.toml",
    ".config/opencode/opencode.json",
    ".config/opencode/opencode.jsonc",
    ".config/Code/User/mcp.json",
    "Library/Application Support/Code/User/mcp.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".copilot/mcp-config.json",
)
_FILES = {
    ".mcp.json": "claude-code",
    ".claude.json": "claude-code",
    "claude_desktop_config.json": "claude-desktop",
    ".cursor": "cursor",
    ".vscode": "vscode",
    ".codex": "codex",
    ".copilot": "copilot",
    "opencode.json": "opencode",
    "opencode.jsonc": "opencode",
}
_EDITOR_PLACE = re.compile(r"\$\{([^}]*)\}")
_OPENCODE_PLACE = re.compile(r"\{(env|file):([^}]*)\}")
_OWN_PATH = re.compile(r"/[\w-]{20,}/mcp/?")  # our addresses contain a token
_VERSION = re.compile(r"[@=<>\[]")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

_PIECE = re.compile(r'[^"/,}\]]+|.', re.DOTALL)
_STRING_END = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Servers:
    sources: tuple[ToolOrigin, ...] = ()
    troubles: tuple[str, ...] = ()
    """One sentence for each entry that cannot be used. The others can."""


@dataclass(frozen=True, slots=True)
class AddedServers:
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """They were there already: the same, or another that was not to be replaced."""


def read_servers(file: Path, environ: Mapping[str, str]) -> Servers:
    """Reads the configured servers. Never raises: `troubles` names what cannot be used. A file that
    is missing has no servers."""
    try:
        entries = _entries(_read(file), file)
    except BadConfig as error:
        return Servers(troubles=(str(error),))
    sources: dict[str, ToolOrigin] = {}
    troubles: list[str] = []
    for name, entry in entries.items():
        try:
            check_entry(name, entry)
            if entry.get("disabled") or entry.get("enabled") is False:
                continue
            source = _source(name, entry, environ)
            if source.name in sources:
                raise BadConfig(  # noqa: TRY301
                    "another server before it has the same name for tools: rename one of them"
                )
        except BadConfig as error:
            troubles.append(f"server {name[:80]!r} in {file}: {error}")
        else:
            sources[source.name] = source
    return Servers(tuple(sources.values()), tuple(troubles))


def add_servers(
    file: Path, new: Mapping[str, Mapping[str, Any]], *, replace: bool = False
) -> AddedServers:
    """Puts entries into the file, all of them or none. Raises `BadConfig`, also where the file
    itself cannot be read."""
    for name, entry in new.items():
        try:
            check_entry(name, entry)
        except BadConfig as error:
            raise BadConfig(f"server {name[:80]!r}: {error}") from error
    with hold_folder(file.parent):
        whole = _read(file)
        entries = _entries(whole, file)
        added = tuple(name for name in new if name not in entries)
        replaced = tuple(
            name
            for name, entry in new.items()
            if replace and name in entries and entries[name] != dict(entry)
        )
        entries |= {name: dict(new[name]) for name in (*added, *replaced)}
        if added or replaced:
            _write(file, {**whole, SERVERS: entries})
    return AddedServers(
        added, replaced, tuple(name for name in new if name not in added and name not in replaced)
    )


def remove_server(file: Path, name: str) -> Mapping[str, Any]:
    """Takes an entry out and gives it back. Raises `NotFound`, and `BadConfig` where the file
    cannot be read."""
    with hold_folder(file.parent):
        whole = _read(file)
        entries = _entries(whole, file)
        if name not in entries:
            near = get_close_matches(name, entries, 3, 0.5)
            raise NotFound(
                f"no server {name[:80]!r} in {file}"
                + (f"; there is {', '.join(near)}" if near else "")
            )
        removed = entries.pop(name)
        _write(file, {**whole, SERVERS: entries})
    return dict(removed) if isinstance(removed, dict) else {}


def check_entry(name: str, entry: object) -> None:
    """Raises `BadConfig` with what is wrong and what to do. Variables are not looked at."""
    if not SERVER_NAME.fullmatch(name):
        raise BadConfig(
            "its name is not of up to 64 letters, digits, `_`, `.` and `-`, the first a "
            "letter or digit: rename it"
        )
    if slug(name) in RESERVED:
        raise BadConfig(f"the name {slug(name)} is hotset's own: rename it")
    if not isinstance(entry, Mapping):
        raise BadConfig("it is no object: give it a command, or a url")
    if ("command" in entry) == ("url" in entry):
        raise BadConfig("give it either a command or a url")
    _check_kind(entry)
    for key in ("shared", "disabled", "enabled"):
        if not isinstance(entry.get(key, False), bool):
            raise BadConfig(f"{key} must be true or false")
    if "command" in entry:
        _text(entry, "command")
        _text(entry, "cwd", default="")
        _texts(entry, "args")
        _pairs(entry, "env", VARIABLE_NAME)
    else:
        _text(entry, "url")
        _pairs(entry, "headers", _HEADER)


def _source(name: str, entry: Mapping[str, Any], environ: Mapping[str, str]) -> ToolOrigin:
    launch = _stdio(entry, environ) if "command" in entry else _http(entry, environ)
    return ToolOrigin(
        slug(name), OriginKind.SERVER, launch, stamp_of(launch), shared=entry.get("shared", False)
    )


def _stdio(entry: Mapping[str, Any], environ: Mapping[str, str]) -> Stdio:
    def resolved(text: str) -> str:
        value = resolve_variables(text, environ)
        if "\0" in value:
            raise BadConfig("a value has a zero byte in it: no program takes that")
        return value

    command = _at_home(resolved(entry["command"]), environ)
    if not command.strip():
        raise BadConfig("its command is empty: name the program to start")
    return Stdio(
        (command, *(resolved(each) for each in entry.get("args", ()))),
        {key: resolved(value) for key, value in entry.get("env", {}).items()},
        _at_home(resolved(entry.get("cwd", "")), environ),
    )


def _http(entry: Mapping[str, Any], environ: Mapping[str, str]) -> Launch:
    url = resolve_variables(entry["url"], environ).strip()
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or _CONTROL.search(url) or " " in url:
        raise BadConfig("its url is no http:// or https:// address of a server")
    if parts.username is not None:
        raise BadConfig("its url has a name or password in it: send that as a header")
    headers = {
        key: resolve_variables(value, environ).strip()
        for key, value in entry.get("headers", {}).items()
    }
    if wrong := next(
        (key for key, value in headers.items() if _CONTROL.search(value) or not value.isascii()),
        None,
    ):
        raise BadConfig(f"the header {wrong} has a character in it that headers cannot have")
    return Http(url, headers)


def _check_kind(entry: Mapping[str, Any]) -> None:
    kind = entry.get("type", entry.get("transport"))
    if kind is None:
        return
    if kind == "sse":
        raise BadConfig(
            "it speaks the old HTTP+SSE transport, which hotset does not: give the url of its "
            "streamable HTTP, type http"
        )
    if kind not in (_STDIO if "command" in entry else _HTTP):
        raise BadConfig(
            f"its type is {str(kind)[:40]!r}: a command has the type stdio, a url the type http"
        )


def _text(entry: Mapping[str, Any], key: str, default: str | None = None) -> None:
    value = entry.get(key, default)
    if not isinstance(value, str) or (default is None and not value.strip()):
        raise BadConfig(f"{key} must be text")


def _texts(entry: Mapping[str, Any], key: str) -> None:
    value = entry.get(key, [])
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise BadConfig(f"{key} must be a list of texts: put quotes around each")


def _pairs(entry: Mapping[str, Any], key: str, names: re.Pattern[str]) -> None:
    value = entry.get(key, {})
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise BadConfig(f"{key} must be an object whose values are texts: put quotes around each")
    if wrong := next((name for name in value if not names.fullmatch(name)), None):
        raise BadConfig(f"{key} has a name that cannot be one: {wrong[:80]!r}")


def _at_home(path: str, environ: Mapping[str, str]) -> str:
    """Expands a tilde: no shell reads these paths."""
    home = environ.get("HOME", "")
    return home + path[1:] if home and (path == "~" or path.startswith("~/")) else path


def _read(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        whole = json.loads(read_regular(file, _MOST_BYTES).decode("utf-8-sig"))
    except NotFound as error:
        raise BadConfig(str(error)) from error
    except json.JSONDecodeError as error:
        raise BadConfig(
            f"{file} is not JSON: line {error.lineno}, {error.msg}; correct it there"
        ) from error
    except (ValueError, RecursionError) as error:
        raise BadConfig(f"{file} is not JSON in UTF-8: write it anew") from error
    if not isinstance(whole, dict):
        raise BadConfig(f'{file} is no object like {{"{SERVERS}": {{}}}}: correct it')
    return whole


def _entries(whole: Mapping[str, Any], file: Path) -> dict[str, Any]:
    entries = whole.get(SERVERS, {})
    if not isinstance(entries, dict):
        raise BadConfig(f"{SERVERS} in {file} is no object of servers by name: correct it")
    return dict(entries)


def _write(file: Path, whole: Mapping[str, Any]) -> None:
    try:
        text = json.dumps(whole, indent=2, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half a character, which only an escape can say
        text = json.dumps(whole, indent=2).encode()
    write_atomically(file, text + b"\n")


def resolve_variables(text: str, environ: Mapping[str, str]) -> str:
    """The text with each variable's value, or its default where it is not set or empty. `$${`
    means `${` itself.

    The value of a variable is not expanded again. Raises `BadConfig` for one that is not set and
    has no default.
    """
    return _PLACE.sub(lambda match: _value(match, environ), text)


def escape_variables(text: str) -> str:
    """A text that `resolved` gives back as it is."""
    return text.replace("${", "$${")


def _value(match: re.Match[str], environ: Mapping[str, str]) -> str:
    inside = match[1]
    if inside is None:
        return "${"
    found = _VARIABLE.fullmatch(inside)
    if found is None:
        raise BadConfig(
            f"${{{inside[:80]}}} is no variable: write ${{NAME}}, ${{NAME:-default}}, or $${{ "
            f"for the characters themselves"
        )
    name, default = found[1], found[2]
    if value := environ.get(name, ""):
        return value
    if default is not None:
        return default
    if name in environ:
        return ""
    raise BadConfig(f"the variable {name} is not set: set it, or write ${{{name}:-default}}")


@dataclass(frozen=True, slots=True)
class ClientServers:
    client: str
    """The program whose file it is, as far as its form shows."""
    servers: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """Entries for `add_servers`, by name."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Why others were left out, by name."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What was not taken over of those that were, by name."""


@dataclass(frozen=True, slots=True)
class ClientFolders:
    """What a client puts in place of its own variables."""

    project: Path | None = None
    home: Path | None = None


def known_client_files(project: Path, home: Path) -> list[Path]:
    """Those that exist, the project's first."""
    paths = [*(project / name for name in _IN_PROJECT), *(home / name for name in _AT_HOME)]
    return list(dict.fromkeys(path for path in paths if path.is_file()))


def read_client(
    path: Path, *, project: Path | None = None, home: Path | None = None
) -> ClientServers:
    """The servers that a client's file names; of those kept by project, the ones of this project.

    Raises `NotFound` where the file cannot be read and `BadConfig` where it has no servers in any
    form that we know.
    """
    whole = _whole(path)
    places = ClientFolders(project, home)
    client, entries, translate = _form(whole, path, project)
    servers: dict[str, dict[str, Any]] = {}
    skipped: dict[str, str] = {}
    notes: dict[str, str] = {}
    for name, entry in entries.items():
        try:
            taken = _taken(entry, translate, places, notes, name)
            own = name if SERVER_NAME.fullmatch(name) else slug(name)
            check_entry(own, taken)
            if own in servers:
                raise _Skip(f"another one is called {own} already")  # noqa: TRY301
        except (_Skip, BadConfig) as error:
            skipped[name] = str(error)
            notes.pop(name, None)
        else:
            if own != name:
                notes[own] = " ".join(
                    filter(None, (f"it is called {name} there.", notes.pop(name, "")))
                )
            servers[own] = taken
    return ClientServers(client, servers, skipped, notes)


class _Skip(Exception):
    """Why an entry is left out."""


_Translate = Callable[[Mapping[str, Any], ClientFolders], dict[str, Any]]


def _whole(path: Path) -> Mapping[str, Any]:
    data = read_regular(path, _MOST_CLIENT_BYTES)
    try:
        text = data.decode("utf-8-sig")
        whole = decode_jsonc(text) if text.lstrip()[:1] in ("{", "/") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # both decoders' own errors are ValueErrors
        raise BadConfig(
            f"{path} is neither JSON nor TOML that can be read: {str(error)[:120]}"
        ) from error
    if not isinstance(whole, dict):
        raise BadConfig(f"{path} is no object of settings")
    return whole


def _form(  # noqa: PLR0911 - one case a form
    whole: Mapping[str, Any], path: Path, project: Path | None
) -> tuple[str, Mapping[str, Any], _Translate]:
    """The client whose format this entry has. Keys that only one client writes are checked
    first."""
    match whole:
        case {"mcp_servers": dict(entries)}:
            return "codex", entries, _from_codex
        case {"mcpServers": dict(entries), "projects": dict(projects)}:
            return "claude-code", {**entries, **_of_project(projects, project)}, _from_claude
        case {"projects": dict(projects)} if path.name == ".claude.json":
            return "claude-code", _of_project(projects, project), _from_claude
        case {"mcpServers": dict(entries)}:
            return _called(path) or "mcp", entries, _from_claude
        case {"servers": dict(entries)} | {"mcp": {"servers": dict(entries)}}:
            return "vscode", entries, _from_vscode
        case {"mcp": dict(entries)}:
            return "opencode", entries, _from_opencode
    if client := _called(path):
        return client, {}, _from_claude
    raise BadConfig(
        f"{path} names no MCP servers in any form that hotset knows: mcpServers, servers, "
        f"mcp_servers or mcp"
    )


def _called(path: Path) -> str:
    """The client that a file belongs to, by its path; empty where that is unknown."""
    return next((client for part, client in _FILES.items() if part in path.parts), "")


def _of_project(projects: Mapping[str, Any], project: Path | None) -> Mapping[str, Any]:
    match projects.get(str(project)) if project else None:
        case {"mcpServers": dict(entries)}:
            return entries
    return {}


def _taken(
    entry: object, translate: _Translate, places: ClientFolders, notes: dict[str, str], name: str
) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise _Skip("it is no object")
    if entry.get("disabled") is True or entry.get("enabled") is False:
        raise _Skip("it is switched off there")
    taken = translate(entry, places)
    if runs_hotset(taken):
        raise _Skip("it is hotset itself")
    left = [
        key
        for key in ("enabled_tools", "disabled_tools", "tools", "oauth", "scopes")
        if entry.get(key)
    ]
    if left:
        notes[name] = f"not taken over: {', '.join(left)}."
    return taken


def runs_hotset(entry: Mapping[str, Any]) -> bool:
    """True if the entry starts hotset itself."""
    command, args = entry.get("command"), entry.get("args", [])
    if isinstance(command, str) and isinstance(args, list):
        words = [_VERSION.split(PurePath(word).name)[0] for word in (command, *map(str, args))]
        return words[0] == "hotset" or ("hotset", "mcp") in pairwise(words)
    try:
        parts = urlsplit(str(entry.get("url", "")))
        return parts.hostname in _LOOPBACK and bool(_OWN_PATH.fullmatch(parts.path))
    except ValueError:
        return False


def _from_claude(entry: Mapping[str, Any], places: ClientFolders) -> dict[str, Any]:
    """Claude Code's own variables are ours; Cursor's are VS Code's. An address without a type is
    taken for streamable HTTP."""
    if "headersHelper" in entry:
        raise _Skip("a program makes its headers (headersHelper): put them into headers")
    return _from_vscode(entry, places)


def _from_vscode(entry: Mapping[str, Any], places: ClientFolders) -> dict[str, Any]:
    if "envFile" in entry:
        raise _Skip("more variables stand in a file (envFile): put them into env")
    if entry.get("sandboxEnabled"):
        raise _Skip("it runs in a sandbox there, which hotset does not have")
    return _with(
        _entry(entry),
        lambda text: _EDITOR_PLACE.sub(lambda match: _editor_value(match[1], places), text),
    )


def _editor_value(inside: str, places: ClientFolders) -> str:
    kind, _, name = inside.partition(":")
    if (
        kind == "CLAUDE_PROJECT_DIR" and places.project
    ):  # set by Claude Code; often with a default for others
        return escape_variables(str(places.project))
    known = {
        "userHome": places.home,
        "workspaceFolder": places.project,
        "workspaceRoot": places.project,
        "workspaceFolderBasename": places.project.name if places.project else None,
        "cwd": places.project,
        "pathSeparator": "/",
        "/": "/",
    }
    if inside in known:
        if known[inside] is None:
            raise _Skip(f"it needs the folder ${{{inside}}}: import it from within the project")
        return escape_variables(str(known[inside]))
    if kind == "env" and VARIABLE_NAME.fullmatch(name):
        return f"${{{name}}}"
    if kind == "input":
        raise _Skip(
            f"it asks for the input {name[:80]!r} when it starts: put that into a variable, "
            f"and ${{VARIABLE}} in its place"
        )
    if name and not name.startswith("-"):
        raise _Skip(f"it uses ${{{inside[:80]}}}, which only that program can resolve")
    return f"${{{inside}}}"


def _from_codex(entry: Mapping[str, Any], _: ClientFolders) -> dict[str, Any]:
    if entry.get("experimental_environment") not in (None, "local"):
        raise _Skip("it runs on another machine there")
    taken = _with(_entry(entry), escape_variables)
    if "command" in taken:
        names = list(_variables(entry.get("env_vars", [])))
        taken["env"] = {**{name: f"${{{name}:-}}" for name in names}, **taken.get("env", {})}
        if not taken["env"]:
            del taken["env"]
        return taken
    headers = {
        key: escape_variables(value) for key, value in _headers(entry.get("http_headers", {}))
    }
    headers |= {key: f"${{{value}}}" for key, value in _headers(entry.get("env_http_headers", {}))}
    if isinstance(token := entry.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    return {**taken, "headers": headers} if headers else taken


def _variables(names: object) -> Iterator[str]:
    """Codex passes these on: a name, or an object with one."""
    for each in names if isinstance(names, list) else ():
        name = each.get("name") if isinstance(each, dict) else each
        if isinstance(each, dict) and each.get("source") == "remote":
            raise _Skip(f"it takes the variable {name} from another machine")
        if not isinstance(name, str) or not VARIABLE_NAME.fullmatch(name):
            raise _Skip("env_vars is no list of names of variables")
        yield name


def _from_opencode(entry: Mapping[str, Any], _: ClientFolders) -> dict[str, Any]:
    if "command" not in entry and "url" not in entry:
        raise _Skip("it only switches a server on or off that stands elsewhere")
    command = entry.get("command")
    if isinstance(command, list) and command:
        entry = {**entry, "command": command[0], "args": command[1:]}
    if "environment" in entry:
        entry = {**entry, "env": entry["environment"]}
    return _with(
        _entry(entry), lambda text: _OPENCODE_PLACE.sub(_opencode_value, escape_variables(text))
    )


def _opencode_value(match: re.Match[str]) -> str:
    kind, name = match[1], match[2]
    if kind == "file":
        raise _Skip(
            f"a value stands in the file {name[:80]!r}: put it into a variable, and "
            f"${{VARIABLE}} in its place"
        )
    if not VARIABLE_NAME.fullmatch(name):
        raise _Skip(f"{name[:80]!r} is no name of a variable")
    return f"${{{name}:-}}"


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What we know of an entry, under our names for it."""
    keys = ("command", "args", "env", "cwd") if "command" in entry else ("type", "url", "headers")
    taken = {key: entry[key] for key in keys if entry.get(key) not in (None, [], {}, "")}
    if taken.get("type") == "remote":
        del taken["type"]
    return taken


def _with(entry: dict[str, Any], convert: Callable[[str], str]) -> dict[str, Any]:
    """The entry with each text as `convert` has it; what has no such form stays for `check_entry`
    to refuse."""

    def value(each: Any) -> Any:
        if isinstance(each, str):
            return convert(each)
        if isinstance(each, list):
            return [value(one) for one in each]
        return {key: value(one) for key, one in each.items()} if isinstance(each, dict) else each

    return {key: each if key == "type" else value(each) for key, each in entry.items()}


def _headers(pairs: object) -> Iterator[tuple[str, str]]:
    for key, value in pairs.items() if isinstance(pairs, dict) else ():
        if not isinstance(value, str):
            raise _Skip("a header is no text")
        yield key, value


def decode_jsonc(text: str) -> Any:
    """Raises `ValueError` for what is none of it, and `RecursionError` for what is nested too
    deep."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(blank_comments(text))


def blank_comments(text: str) -> str:
    """The same with as many blanks in the place of comments and of such commas, in UTF-8: every
    other byte keeps its place."""
    pieces: list[str] = []
    comma = -1
    at = 0
    while match := _PIECE.match(text, at):
        start, at = at, match.end()
        piece = match[0]
        if text.startswith(("//", "/*"), start):
            at = _comment_end(text, start)
            pieces.append(
                re.sub(r"[^\n]", lambda each: " " * len(each[0].encode()), text[start:at])
            )
            continue
        if piece == '"':
            at = _string_end(text, at)
        if piece in "}]" and comma >= 0:
            pieces[comma] = " "
        if piece == ",":
            comma = len(pieces)
        elif not piece.isspace():
            comma = -1
        pieces.append(text[start:at])
    return "".join(pieces)


def _comment_end(text: str, start: int) -> int:
    end = text.find("\n" if text[start + 1] == "/" else "*/", start + 2)
    if end < 0:
        return len(text)
    return end if text[start + 1] == "/" else end + 2


def _string_end(text: str, start: int) -> int:
    match = _STRING_END.match(text, start)
    if match is None:
        raise ValueError("a string does not end")
    return match.end()
