"""MCP servers from the settings of other programs, told apart by what a file says: as entries for
our own `servers.json`.

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
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

from hotset.errors import BadConfig
from hotset.files.open import read_regular
from hotset.sources.tools.found.servers import (
    SERVER_NAME,
    VARIABLE_NAME,
    check_entry,
    escape_variables,
)
from hotset.sources.tools.tool_names import slug

_MOST_BYTES = 64_000_000  # Claude Code keeps its history in the same file
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
_OWN_PATH = re.compile(r"/[\w-]{20,}/mcp/?")  # the token stands in our addresses
_VERSION = re.compile(r"[@=<>\[]")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

_PIECE = re.compile(r'[^"/,}\]]+|.', re.DOTALL)
_STRING_END = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class ClientServers:
    client: str
    """Whose file it is, as far as its form tells."""
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
    found = _Found(*_form(whole, path, project))
    servers: dict[str, dict[str, Any]] = {}
    skipped: dict[str, str] = {}
    notes: dict[str, str] = {}
    for name, entry in found.entries.items():
        try:
            taken = _taken(entry, found.translate, places, notes, name)
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
    return ClientServers(found.client, servers, skipped, notes)


class _Skip(Exception):
    """Why an entry is left out."""


_Translate = Callable[[Mapping[str, Any], ClientFolders], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Found:
    client: str
    entries: Mapping[str, Any]
    translate: _Translate


def _whole(path: Path) -> Mapping[str, Any]:
    data = read_regular(path, _MOST_BYTES)
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
    """Whose form it is. What no program but one writes is asked for first."""
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
    """The program whose file it is by its name; empty for a name that tells nothing."""
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
    """Would it come back to us?"""
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
    headers = {key: escape_variables(value) for key, value in _texts(entry.get("http_headers", {}))}
    headers |= {key: f"${{{value}}}" for key, value in _texts(entry.get("env_http_headers", {}))}
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


def _with(entry: dict[str, Any], said: Callable[[str], str]) -> dict[str, Any]:
    """The entry with each text as `said` has it; what has no such form stays for `check_entry` to
    refuse."""

    def value(each: Any) -> Any:
        if isinstance(each, str):
            return said(each)
        if isinstance(each, list):
            return [value(one) for one in each]
        return {key: value(one) for key, one in each.items()} if isinstance(each, dict) else each

    return {key: each if key == "type" else value(each) for key, each in entry.items()}


def _texts(pairs: object) -> Iterator[tuple[str, str]]:
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
