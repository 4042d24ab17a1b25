"""One entry in the settings of another program: put in and taken out, every other byte of the file
left as it is. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from hotset.errors import BadConfig, Malformed
from hotset.runtime.wire import Field, fields
from hotset.sources.tools import blank_comments, decode_jsonc

_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


def put_json(text: str, container: str, name: str, entry: Mapping[str, Any]) -> str:
    """Into the object under `container`, which is made where it is missing. Raises `BadConfig`
    where the file cannot be read."""
    if not text.strip():
        return json.dumps({container: {name: entry}}, indent=2) + "\n"
    if _said(text, container, name) == entry:
        return text
    body = take_json(text, container, name).encode()
    indent = _indent(text)
    plain = _plain(body)
    there = _fields(plain, "the file")
    if container in there:
        at, inner, deep = there[container].value.start + 1, _inside(plain, there[container]), 2
        new = f"{json.dumps(name)}: {_dumped(entry, indent, deep)}"
    else:
        at, inner, deep = plain.index(b"{") + 1, there, 1
        new = f"{json.dumps(container)}: {_dumped({name: entry}, indent, deep)}"
    end = "," if inner else f"\n{indent * (deep - 1)}"
    return (body[:at] + f"\n{indent * deep}{new}{end}".encode() + body[at:]).decode()


def take_json(text: str, container: str, name: str) -> str:
    """Without that entry; the same text where it is not there. Raises `BadConfig` where the file
    cannot be read."""
    if not text.strip():
        return text
    body = text.encode()
    plain = _plain(body)
    outer = _fields(plain, "the file").get(container)
    entry = _inside(plain, outer).get(name) if outer is not None else None
    if outer is None or entry is None:
        return text
    start, end = outer.value.start + entry.key.start, outer.value.start + entry.value.end
    behind = re.compile(rb"\s*,").match(plain, end)
    if behind is not None:
        end = behind.end()
    elif (before := re.compile(rb",\s*\Z").search(plain, 0, start)) is not None:
        start = before.start()
    # The line break in front of it goes with it.
    start = (
        len(plain[:start].rstrip(b" \t\r\n"))
        if behind is not None or plain[:start].rstrip().endswith(b"{")
        else start
    )
    return (body[:start] + body[end:]).decode()


def put_toml(text: str, tables: Sequence[str], entry: Mapping[str, str | list[str]]) -> str:
    """As a table at the end. Raises `BadConfig` where the file cannot be read."""
    if _said_in(text, tables) == entry:
        return text
    text = take_toml(text, tables)
    told = "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry.items())
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}[{'.'.join(tables)}]\n{told}"


def take_toml(text: str, tables: Sequence[str]) -> str:
    """Without that table and those below it. Raises `BadConfig` where the file cannot be read."""
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


def _said_in(text: str, tables: Sequence[str]) -> Any:
    try:
        found: Any = tomllib.loads(text)
        for table in tables:
            found = found[table]
    except (tomllib.TOMLDecodeError, LookupError, TypeError):
        return None
    return found


def _said(text: str, container: str, name: str) -> Any:
    """The entry as it stands there; None where it does not."""
    try:
        inner = decode_jsonc(text)[container]
        return inner[name]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _plain(body: bytes) -> bytes:
    return blank_comments(body.decode()).encode()


def _fields(plain: bytes, what: str) -> dict[str, Field]:
    try:
        return fields(plain)
    except Malformed as error:
        raise BadConfig(f"{what} cannot be changed: {error}") from error


def _inside(plain: bytes, outer: Field) -> dict[str, Field]:
    return _fields(plain[outer.value.start : outer.value.end], "what is to hold it")


def _dumped(value: Mapping[str, Any], indent: str, deep: int) -> str:
    return json.dumps(value, indent=indent).replace("\n", f"\n{indent * deep}")


def _indent(text: str) -> str:
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "
