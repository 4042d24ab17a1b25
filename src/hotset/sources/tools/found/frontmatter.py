"""What stands in front of a Markdown file, as YAML that can say nothing but texts, lists and maps.
The only user of PyYAML.

Every value is text as it was written: nothing becomes a number, a date or an object. Anchors,
aliases and tags are refused: a skill needs none, and they are what YAML is attacked with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hotset.errors import Malformed

Value = str | list["Value"] | dict[str, "Value"]

_LONGEST = 65_536  # characters
_DEEPEST = 8
_FENCE = re.compile(r"-{3}[ \t]*")
_LINE_ENDS = re.compile(r"\r\n?")
_ENTRY = re.compile(r"(\s*)([A-Za-z0-9_][\w.-]{0,99}):[ \t]+(\S.*)")
_STRUCTURED = ("'", '"', "|", ">", "[", "{", "&", "*", "!", "#", "- ", "? ")


@dataclass(frozen=True, slots=True)
class Frontmatter:
    fields: dict[str, Value]
    body: str
    """What follows, with `\\n` behind each line."""
    troubles: tuple[str, ...] = field(default=())
    """What was read all the same, and should be mended."""


def read_frontmatter(text: str) -> Frontmatter:
    """Reads frontmatter as people write it: an unquoted colon in a value, Windows' line ends, a
    byte order mark. Raises `Malformed`."""
    head, body = split(text)
    try:
        return Frontmatter(_fields(head), body)
    except Malformed as error:
        try:
            fields = _fields(_quoted(head))
        except Malformed:
            raise error from None
        return Frontmatter(
            fields, body, (f"{error}; it was read as if each value stood in quotes: quote them",)
        )


def split(text: str) -> tuple[str, str]:
    """What stands between the two lines of dashes, and what follows. Raises `Malformed` where there
    is no such thing."""
    lines = _LINE_ENDS.sub("\n", text.removeprefix("\ufeff")).split("\n")
    if not _FENCE.fullmatch(lines[0]):
        raise Malformed(
            "it does not begin with a line ---: put its name and description between two such lines"
        )
    length = 0
    for at, line in enumerate(lines[1:], 1):
        if _FENCE.fullmatch(line):
            return "\n".join(lines[1:at]) + "\n", "\n".join(lines[at + 1 :])
        length += len(line) + 1
        if length > _LONGEST:
            raise Malformed(
                f"more than {_LONGEST:,} characters stand in front of its second line ---: "
                f"shorten that"
            )
    raise Malformed("a second line --- is missing behind its name and description")


class _Refused(Exception):
    """What our YAML does not have; the message says what."""


def _fields(head: str) -> dict[str, Value]:
    import yaml  # noqa: PLC0415 - 20 ms that only those with skills pay

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        value = _built(yaml.parse(head, Loader=loader))
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 2}: " if error.problem_mark else ""
        raise Malformed(f"{line}{error.problem or 'not YAML'}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Malformed("its frontmatter has characters that YAML does not allow") from error
    except _Refused as error:
        raise Malformed(str(error)) from error
    if not isinstance(value, dict):
        raise Malformed("its frontmatter is no list of fields like `name: ...`")
    return value


def _built(events: Iterable[Any]) -> Value | None:
    """The value that a stream of events describes. Not recursive: nesting is the writer's
    choice."""
    root: list[Value] = []
    holders: list[list[Value] | dict[str, Value]] = [root]
    keys: list[str | None] = [None]
    for event in events:
        kind = type(event).__name__
        _refuse(event, kind, len(holders), documents=len(root))
        if kind in ("MappingEndEvent", "SequenceEndEvent"):
            holders.pop()
            keys.pop()
        elif kind in ("ScalarEvent", "MappingStartEvent", "SequenceStartEvent"):
            value: Value = (
                event.value if kind == "ScalarEvent" else {} if kind == "MappingStartEvent" else []
            )
            keys[-1] = _put(holders[-1], keys[-1], value)
            if not isinstance(value, str):
                holders.append(value)
                keys.append(None)
    return root[0] if root else None


def _refuse(event: Any, kind: str, depth: int, documents: int) -> None:
    line = event.start_mark.line + 2 if event.start_mark else 0
    if kind == "AliasEvent" or getattr(event, "anchor", None) is not None:
        raise _Refused(
            f"line {line}: anchors and aliases (& and *) are not allowed: write the value "
            f"out, or in quotes"
        )
    if getattr(event, "tag", None) is not None:
        raise _Refused(
            f"line {line}: tags (!) are not allowed: write the value alone, or in quotes"
        )
    if depth > _DEEPEST:
        raise _Refused(f"line {line}: nested deeper than {_DEEPEST} levels")
    if kind == "DocumentStartEvent" and documents:
        raise _Refused(f"line {line}: a second document begins")


def _put(holder: list[Value] | dict[str, Value], key: str | None, value: Value) -> str | None:
    """Puts a value where it belongs; gives back the key that now waits for one."""
    if isinstance(holder, list):
        holder.append(value)
        return None
    if key is not None:
        holder[key] = value
        return None
    if not isinstance(value, str):
        raise _Refused("a key is no plain text")
    if value in holder:
        raise _Refused(f"{value[:100]} stands there twice: keep one")
    return value


def _quoted(head: str) -> str:
    """Each plain value in quotes, with the deeper lines that go on with it."""
    lines: list[str] = []
    depth: int | None = None
    """Of the value that may go on; None where none can."""
    for line in head.split("\n"):
        indent = len(line) - len(line.lstrip())
        if depth is not None and line.strip() and indent > depth:
            lines[-1] = f"{lines[-1][:-1]} {_escaped(line.strip())}'"
            continue
        match = _ENTRY.fullmatch(line)
        if match and not match[3].startswith(_STRUCTURED):
            lines.append(f"{match[1]}{match[2]}: '{_escaped(match[3].rstrip())}'")
            depth = indent
        else:
            lines.append(line)
            depth = None
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("'", "''")
