"""`hotset connect` and `hotset disconnect`: add hotset to the MCP servers of another program, or
remove it; every other byte of its file stays."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hotset.config import Config
from hotset.errors import BadConfig, Malformed, NotFound
from hotset.files.private_folder import private_folder
from hotset.files.write import replace_file, write_atomically
from hotset.sources import tools
from hotset.surfaces.cli.exit import FOUND, OK
from hotset.surfaces.cli.options import ProjectOptions, examples, project_options
from hotset.surfaces.cli.terminal import emit

if TYPE_CHECKING:
    from hotset.runtime.wire import Field

NAME = "hotset"
_FOLDER = "connected"
_WORKSPACE = "${workspaceFolder}"

_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class AgentClient:
    """The file in which a program lists MCP servers, and its format."""

    file: str
    """Relative to the project's folder, or to the home folder."""
    container: str
    entry: Callable[[str, tuple[str, ...]], dict[str, Any]]
    of_user: bool = False
    home: str = ""
    """The variable that names another folder for that file; empty if there is none."""
    where: str = ""
    """The placeholder for its project's folder; empty if it starts servers in that folder."""
    then: str = ""
    """The next step for the person."""


def _plain_entry(command: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    return {"command": command, "args": list(arguments)}


def _typed_entry(command: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "stdio", "command": command, "args": list(arguments)}


def _opencode_entry(command: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "local", "command": [command, *arguments], "enabled": True}


CLIENTS: Mapping[str, AgentClient] = {
    "claude": AgentClient(
        ".mcp.json",
        "mcpServers",
        _plain_entry,
        then="start claude here; it asks once whether it may use the server",
    ),
    "codex": AgentClient(
        ".codex/config.toml",
        "mcp_servers",
        _plain_entry,
        of_user=True,
        home="CODEX_HOME",
        then="start codex anew",
    ),
    "cursor": AgentClient(
        ".cursor/mcp.json",
        "mcpServers",
        _plain_entry,
        where=_WORKSPACE,
        then="switch hotset on in Cursor's settings under MCP",
    ),
    "opencode": AgentClient("opencode.json", "mcp", _opencode_entry, then="start opencode here"),
    "vscode": AgentClient(
        ".vscode/mcp.json",
        "servers",
        _typed_entry,
        where=_WORKSPACE,
        then="open the file in VS Code and press Start above the entry",
    ),
}

_client = click.argument("client", type=click.Choice(sorted(CLIENTS)))


@click.command(epilog=examples("hotset connect claude", "hotset connect codex --print"))
@_client
@project_options
@click.option(
    "--print", "only_print", is_flag=True, help="Show what would be written, and write nothing."
)
def connect(chosen: ProjectOptions, client: str, *, only_print: bool) -> None:
    """Add hotset to the MCP servers of CLIENT: one entry; the rest of its file stays as it is.

    Writes the project's file; for codex, the one in your home folder. `hotset disconnect` restores
    it. To use the servers that are in the file already: hotset tools import.
    """
    config = chosen.config()
    spec, path = CLIENTS[client], _path(config, client)
    before = _read(path)
    after = _with_entry(before or "", spec, path, _arguments(chosen, spec))
    if only_print:
        chosen.say(f"{path}:")
        emit(after.rstrip("\n"))
        return
    if after == before:
        chosen.say(f"hotset is in {path} already")
        return
    private_folder(_note_path(config, client).parent)
    if not _note_path(config, client).exists():
        _write_note(config, client, before, after)
    _write(path, after)
    chosen.say(
        f"hotset is in {path} now; {spec.then}. To undo: {chosen.hint(f'disconnect {client}')}"
    )


@click.command(epilog=examples("hotset disconnect claude"))
@_client
@project_options
def disconnect(chosen: ProjectOptions, client: str) -> int:
    """Remove hotset from the MCP servers of CLIENT. If the file did not change since `connect`, it
    is restored byte for byte."""
    config = chosen.config()
    path, note = _path(config, client), _note_path(config, client)
    now = _read(path)
    if now is None:
        raise NotFound(f"{path} is not there: nothing to undo")
    kept = json.loads(note.read_text("utf-8")) if note.exists() else {}
    if kept and kept["after"] == _hash(now) and kept["path"] == str(path):
        after: str | None = kept["before"]
    else:
        after = _without_entry(now, CLIENTS[client], path)
    if after is None:
        path.unlink()
    elif after != now:
        _write(path, after)
    note.unlink(missing_ok=True)
    if after == now:
        chosen.say(f"hotset is not in {path}")
        return FOUND
    chosen.say(f"hotset was removed from {path}")
    return OK


def _path(config: Config, client: str) -> Path:
    spec = CLIENTS[client]
    home = config.environ.get(spec.home) if spec.home else None
    if home:
        return Path(home) / Path(spec.file).name
    return (config.user if spec.of_user else config.project) / spec.file


def _arguments(chosen: ProjectOptions, client: AgentClient) -> tuple[str, ...]:
    """Arguments for `hotset mcp` that select this store and project, wherever the other program
    starts us."""
    project = client.where or (
        str(Path(chosen.project).resolve()) if chosen.project and client.of_user else ""
    )
    data = str(Path(chosen.data).resolve()) if chosen.data else ""
    return "mcp", *(("--project", project) if project else ()), *(("--data", data) if data else ())


def _with_entry(text: str, client: AgentClient, path: Path, arguments: tuple[str, ...]) -> str:

    command, *before = _command()
    entry = client.entry(command, (*before, *arguments))
    try:
        if path.suffix == ".toml":
            return put_toml(text, (client.container, NAME), entry)
        return put_json(text, client.container, NAME, entry)
    except BadConfig as error:
        raise BadConfig(f"{path}: {error}; mend it, or see what to add with --print") from error


def _without_entry(text: str, client: AgentClient, path: Path) -> str:

    try:
        if path.suffix == ".toml":
            return take_toml(text, (client.container, NAME))
        return take_json(text, client.container, NAME)
    except BadConfig as error:
        raise BadConfig(f"{path}: {error}; mend it first") from error


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


def _write(path: Path, text: str) -> None:
    """Writes a file atomically, with the permissions that it had."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()  # a link stays a link
    was = target.stat() if target.exists() else None
    # It may hold keys: the draft must not be readable by others either.
    with replace_file(target, f".{target.name}.hotset", mode=0o600 if was else 0o666) as file:
        file.write(text.encode())
        if was is not None:
            with suppress(PermissionError):  # a file of another user
                os.fchown(file.fileno(), was.st_uid, was.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(was.st_mode))


def _note_path(config: Config, client: str) -> Path:
    return config.folder / _FOLDER / f"{client}.json"


def _write_note(config: Config, client: str, before: str | None, after: str) -> None:
    kept = {"path": str(_path(config, client)), "before": before, "after": _hash(after)}
    write_atomically(_note_path(config, client), json.dumps(kept).encode())


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def put_json(text: str, container: str, name: str, entry: Mapping[str, Any]) -> str:
    """The text with an entry in the object `container`, which is created if missing. Raises
    `BadConfig` if the text cannot be parsed."""
    if not text.strip():
        return json.dumps({container: {name: entry}}, indent=2) + "\n"
    if _json_entry(text, container, name) == entry:
        return text
    body = take_json(text, container, name).encode()
    indent = _indent(text)
    plain = _plain(body)
    there = _fields(plain, "the file")
    if container in there:
        at, inner, deep = (
            there[container].value.start + 1,
            _fields_inside(plain, there[container]),
            2,
        )
        new = f"{json.dumps(name)}: {_dump(entry, indent, deep)}"
    else:
        at, inner, deep = plain.index(b"{") + 1, there, 1
        new = f"{json.dumps(container)}: {_dump({name: entry}, indent, deep)}"
    end = "," if inner else f"\n{indent * (deep - 1)}"
    return (body[:at] + f"\n{indent * deep}{new}{end}".encode() + body[at:]).decode()


def take_json(text: str, container: str, name: str) -> str:
    """The text without that entry; unchanged if it has none. Raises `BadConfig` if the text cannot
    be parsed."""
    if not text.strip():
        return text
    body = text.encode()
    plain = _plain(body)
    outer = _fields(plain, "the file").get(container)
    entry = _fields_inside(plain, outer).get(name) if outer is not None else None
    if outer is None or entry is None:
        return text
    start, end = outer.value.start + entry.key.start, outer.value.start + entry.value.end
    behind = re.compile(rb"\s*,").match(plain, end)
    if behind is not None:
        end = behind.end()
    elif (before := re.compile(rb",\s*\Z").search(plain, 0, start)) is not None:
        start = before.start()
    # The line break in front of it is removed with it.
    start = (
        len(plain[:start].rstrip(b" \t\r\n"))
        if behind is not None or plain[:start].rstrip().endswith(b"{")
        else start
    )
    return (body[:start] + body[end:]).decode()


def put_toml(text: str, tables: Sequence[str], entry: Mapping[str, str | list[str]]) -> str:
    """The text with the entry as a table at its end. Raises `BadConfig` if the text cannot be
    parsed."""
    if _toml_entry(text, tables) == entry:
        return text
    text = take_toml(text, tables)
    pairs = "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry.items())
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}[{'.'.join(tables)}]\n{pairs}"


def take_toml(text: str, tables: Sequence[str]) -> str:
    """The text without that table and those below it. Raises `BadConfig` if the text cannot be
    parsed."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"it is not TOML: {error}") from error
    name = r"[ \t]*\.[ \t]*".join(f'"?{re.escape(table)}"?' for table in tables)
    header = re.compile(rf"^[ \t]*\[[ \t]*{name}[ \t]*(\.[^\]]*)?\][^\n]*\n?", re.MULTILINE)
    while (found := header.search(text)) is not None:
        behind = _TABLE.search(text, found.end())
        front = text[: found.start()]
        rest = text[behind.start() :] if behind is not None else ""
        text = (front if rest else front.rstrip("\n") + "\n" * bool(front.strip())) + rest
    return text


def _toml_entry(text: str, tables: Sequence[str]) -> Any:
    try:
        found: Any = tomllib.loads(text)
        for table in tables:
            found = found[table]
    except (tomllib.TOMLDecodeError, LookupError, TypeError):
        return None
    return found


def _json_entry(text: str, container: str, name: str) -> Any:
    """The entry in a JSON file; None where there is none."""
    try:
        inner = tools.decode_jsonc(text)[container]
        return inner[name]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _plain(body: bytes) -> bytes:
    return tools.blank_comments(body.decode()).encode()


def _fields(plain: bytes, what: str) -> dict[str, Field]:
    from hotset.runtime.wire import fields  # noqa: PLC0415 - only where something is changed

    try:
        return fields(plain)
    except Malformed as error:
        raise BadConfig(f"{what} cannot be changed: {error}") from error


def _fields_inside(plain: bytes, outer: Field) -> dict[str, Field]:
    return _fields(plain[outer.value.start : outer.value.end], "the object for the entry")


def _dump(value: Mapping[str, Any], indent: str, deep: int) -> str:
    return json.dumps(value, indent=indent).replace("\n", f"\n{indent * deep}")


def _indent(text: str) -> str:
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "
