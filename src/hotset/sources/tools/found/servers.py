"""The MCP servers that a person chose: `servers.json`, in the form that every client uses.

{"mcpServers": {"files": {"command": "npx", "args": ["-y", "server-files"], "env": {"KEY":
"${KEY}"}},
                "wiki":  {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer
                ${WIKI}"}}}}

Besides: `cwd`, `shared` (it keeps nothing between calls: one process for all sessions) and
`disabled`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
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


@dataclass(frozen=True, slots=True)
class Servers:
    sources: tuple[ToolOrigin, ...] = ()
    troubles: tuple[str, ...] = ()
    """One sentence for each entry that cannot be used. The others can."""
    disabled: tuple[str, ...] = ()
    """Names of entries that are switched off."""


@dataclass(frozen=True, slots=True)
class AddedServers:
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """They stood there already: the same, or something else that was not to be replaced."""


def read_servers(file: Path, environ: Mapping[str, str]) -> Servers:
    """Never raises: what cannot be used is told. A file that is missing has no servers."""
    try:
        entries = _entries(_read(file), file)
    except BadConfig as error:
        return Servers(troubles=(str(error),))
    sources: dict[str, ToolOrigin] = {}
    troubles: list[str] = []
    disabled: list[str] = []
    for name, entry in entries.items():
        try:
            check_entry(name, entry)
            if entry.get("disabled") or entry.get("enabled") is False:
                disabled.append(name)
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
    return Servers(tuple(sources.values()), tuple(troubles), tuple(disabled))


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
    def said(text: str) -> str:
        value = resolve_variables(text, environ)
        if "\0" in value:
            raise BadConfig("a value has a zero byte in it: no program takes that")
        return value

    command = _at_home(said(entry["command"]), environ)
    if not command.strip():
        raise BadConfig("its command is empty: name the program to start")
    return Stdio(
        (command, *(said(each) for each in entry.get("args", ()))),
        {key: said(value) for key, value in entry.get("env", {}).items()},
        _at_home(said(entry.get("cwd", "")), environ),
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
    """No shell reads these, so nobody else puts a home in a tilde's place."""
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
    stands for `${` itself.

    What a variable says is not looked through again. Raises `BadConfig` for one that is not set and
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
