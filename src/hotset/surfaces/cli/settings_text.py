"""One setting in the text of another program's file (JSON with comments, TOML or YAML), put in and
taken out; every other byte stays. Each change is read back before it is returned."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hotset.errors import BadConfig, Malformed
from hotset.sources import tools

if TYPE_CHECKING:
    from hotset.runtime.wire import Field

Keys = tuple[str, ...]
"""The names that lead to a setting, the outermost first."""

_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


def read_setting(text: str, form: str, keys: Keys) -> Any:
    """A setting's value; None where there is none. `form` is the file's ending, such as `.json`."""
    found: Any = _parse(text, form)
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def put_setting(text: str, form: str, keys: Keys, value: Any) -> str:
    """The text with a setting. Raises `BadConfig` if the text cannot be changed safely."""
    if read_setting(text, form, keys) == value:
        return text
    put = {".toml": put_toml, ".json": put_json}.get(form) or _yaml().put_yaml
    return _checked(text, put(text, keys, value), form, keys, value)


def take_setting(text: str, form: str, keys: Keys) -> str:
    """The text without a setting. Raises `BadConfig` if the text cannot be changed safely."""
    if read_setting(text, form, keys) is None:
        return text
    take = {".toml": take_toml, ".json": take_json}.get(form) or _yaml().take_yaml
    return _checked(text, take(text, keys), form, keys, None)


def _checked(before: str, after: str, form: str, keys: Keys, value: Any) -> str:
    """The changed text, if it says just what it said before and the setting."""
    wanted = copy.deepcopy(_parse(before, form))
    inner = wanted
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):
            raise BadConfig(f"{key} holds something else in it")
    inner.pop(keys[-1], None)
    if value is not None:
        inner[keys[-1]] = value
    if _without_empty(_parse(after, form)) != _without_empty(wanted):
        raise BadConfig("its layout is one that cannot be changed safely")
    return after


def _without_empty(found: Any) -> Any:
    """The settings without tables that hold nothing: whether these stay makes no difference."""
    if not isinstance(found, dict):
        return found
    inner = {key: _without_empty(value) for key, value in found.items()}
    return {key: value for key, value in inner.items() if value not in ({}, None)}


def _parse(text: str, form: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        if form == ".toml":
            return tomllib.loads(text)
        if form != ".json":
            return dict(_yaml().read_yaml(text))
        found = tools.decode_jsonc(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"it is not TOML: {error}") from error
    except (ValueError, RecursionError) as error:
        raise BadConfig(f"it cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise BadConfig("it is not an object")
    return found


def put_json(text: str, keys: Keys, value: Any) -> str:
    """The text with a setting; objects that are missing are made. Raises `BadConfig` if the text
    cannot be parsed."""
    if not text.strip():
        return json.dumps(_nested(keys, value), indent=2) + "\n"
    body, indent = text.encode(), _indent(text)
    plain = _plain(body)
    base, here, inner = 0, plain.index(b"{") + 1 if b"{" in plain else 0, _fields(plain, "the file")
    for deep, key in enumerate(keys, 1):
        if key not in inner:
            new = f"{json.dumps(key)}: {_dump(_nested(keys[deep:], value), indent, deep)}"
            end = "," if inner else f"\n{indent * (deep - 1)}"
            return (body[:here] + f"\n{indent * deep}{new}{end}".encode() + body[here:]).decode()
        span = inner[key].value
        start, stop = base + span.start, base + span.end
        if deep < len(keys):
            base, here, inner = start, start + 1, _fields(plain[start:stop], "an object in it")
    new = _dump(value, indent, len(keys))
    return (body[:start] + new.encode() + body[stop:]).decode()


def take_json(text: str, keys: Keys) -> str:
    """The text without that setting; unchanged if it has none. Raises `BadConfig` if the text
    cannot be parsed."""
    if not text.strip():
        return text
    body = text.encode()
    plain = _plain(body)
    base, inner = 0, _fields(plain, "the file")
    for key in keys[:-1]:
        if key not in inner:
            return text
        span = inner[key].value
        inner = _fields(plain[base + span.start : base + span.end], "an object in it")
        base += span.start
    if keys[-1] not in inner:
        return text
    start, end = base + inner[keys[-1]].key.start, base + inner[keys[-1]].value.end
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


def put_toml(text: str, keys: Keys, value: Any) -> str:
    """The text with a table at its end, or with a plain value in its first line. Raises `BadConfig`
    if the text cannot be parsed."""
    if not isinstance(value, Mapping):
        line = f"{keys[0]} = {json.dumps(value)}\n"
        old = _toml_line(text, keys[0])
        start, end = (old.start(), old.end()) if old else (0, 0)
        return text[:start] + line + text[end:]
    text = take_toml(text, keys)
    pairs = "".join(f"{key} = {json.dumps(each)}\n" for key, each in value.items())
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}[{'.'.join(keys)}]\n{pairs}"


def take_toml(text: str, keys: Keys) -> str:
    """The text without that table and those below it, or without that plain value. Raises
    `BadConfig` if the text cannot be parsed."""
    _parse(text, ".toml")
    if len(keys) == 1 and (line := _toml_line(text, keys[0])) is not None:
        return text[: line.start()] + text[line.end() :]
    name = r"[ \t]*\.[ \t]*".join(f'"?{re.escape(table)}"?' for table in keys)
    header = re.compile(rf"^[ \t]*\[[ \t]*{name}[ \t]*(\.[^\]]*)?\][^\n]*\n?", re.MULTILINE)
    while (found := header.search(text)) is not None:
        behind = _TABLE.search(text, found.end())
        front = text[: found.start()]
        rest = text[behind.start() :] if behind is not None else ""
        text = (front if rest else front.rstrip("\n") + "\n" * bool(front.strip())) + rest
    return text


def _toml_line(text: str, key: str) -> re.Match[str] | None:
    """The line of a plain value above all tables."""
    table = _TABLE.search(text)
    line = re.compile(rf'^[ \t]*"?{re.escape(key)}"?[ \t]*=[^\n]*\n?', re.MULTILINE)
    return line.search(text, 0, table.start() if table else len(text))


def _yaml() -> ModuleType:
    return import_module("hotset.text.yaml_settings")  # 20 ms, where a file is YAML


def _nested(keys: Keys, value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _plain(body: bytes) -> bytes:
    return tools.blank_comments(body.decode()).encode()


def _fields(plain: bytes, what: str) -> dict[str, Field]:
    from hotset.runtime.wire import fields  # noqa: PLC0415 - only where something is changed

    try:
        return fields(plain)
    except Malformed as error:
        raise BadConfig(f"{what} cannot be changed: {error}") from error


def _dump(value: Any, indent: str, deep: int) -> str:
    return json.dumps(value, indent=indent).replace("\n", f"\n{indent * deep}")


def _indent(text: str) -> str:
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "
