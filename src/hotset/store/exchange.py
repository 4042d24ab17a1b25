"""A store as text: one JSON object a line, so that people and other programs can read what was
exported."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from hotset.errors import BadInput
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.memory import MemoryLink, MemoryRecord, MemoryUse
from hotset.nouns.note import Note
from hotset.nouns.page import Digest, Gist, Page, digest
from hotset.nouns.turn import Event, Node, Reference, Session, ToolSeen, Turn
from hotset.store.memory_form import memory_from_fields
from hotset.store.port import Blob, Row
from hotset.store.showing import HiddenRow, SentRow, ShownRow

FORMAT = 4
_READABLE = (
    1,
    2,
    3,
    4,
)  # 2 has the page table, bills and summaries, 3 memories, 4 notes; every earlier row is as it was

_NAMES: dict[type, str] = {
    Blob: "content",
    Session: "session",
    Node: "node",
    Page: "page",
    Turn: "turn",
    ToolSeen: "tool",
    Event: "event",
    Reference: "reference",
    Gist: "gist",
    ShownRow: "shown",
    HiddenRow: "hidden",
    SentRow: "sent",
    Bill: "bill",
    Summary: "summary",
    MemoryRecord: "memory",
    MemoryLink: "memory_link",
    MemoryUse: "memory_use",
    Note: "note",
}
_TYPES: dict[str, Any] = {name: noun for noun, name in _NAMES.items()}


def write_lines(rows: Iterable[Row], *, sealed: int = 0) -> Iterator[bytes]:
    """A header, a line for each row, and a last line that says how many there were: a file that was
    cut off is noticed.

    `sealed` is the version of the patterns by which secrets were taken out (see `store.sealed`), 0
    where they were not: the header tells it to whoever reads the file.
    """
    yield _line({"hotset": "store", "format": FORMAT} | ({"sealed": sealed} if sealed else {}))
    count = 0
    for row in rows:
        count += 1
        fields = _content(row) if isinstance(row, Blob) else _fields(row)
        yield _line({"is": _NAMES[type(row)], **fields})
    yield _line({"end": count})


def read_lines(lines: Iterable[bytes]) -> Iterator[Row]:
    """The rows back. Raises `BadInput` with the number of the line that cannot be used."""
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    _check_header(next(numbered, None))
    count = 0
    ended = False
    for number, line in numbered:
        if ended:
            raise BadInput(f"line {number}: something stands behind the last line of the export")
        fields = _object(number, line)
        if "end" in fields:
            if fields["end"] != count:
                raise BadInput(
                    f"line {number}: the export had {fields['end']} rows, here are {count}"
                )
            ended = True
            continue
        count += 1
        yield _row(number, fields)
    if not ended:
        raise BadInput(f"the export is cut off: its last line is missing (after {count} rows)")


def _line(fields: dict[str, Any]) -> bytes:
    return msgspec.json.encode(fields) + b"\n"


def _fields(row: Row) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(row)
    if isinstance(row, Note) and row.value is not None:
        with suppress(UnicodeDecodeError):
            fields = {**fields, "value": None, "text": row.value.decode()}
    return fields


def _content(blob: Blob) -> dict[str, str]:
    try:
        return {"digest": blob.digest, "text": blob.content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"digest": blob.digest, "base64": base64.b64encode(blob.content).decode()}


def _check_header(first: tuple[int, bytes] | None) -> None:
    if first is None:
        raise BadInput("line 1: the export is empty")
    header = _object(*first)
    if header.get("hotset") != "store":
        raise BadInput(f"line {first[0]}: this is not an export of a hotset store")
    if header.get("format") not in _READABLE:
        raise BadInput(
            f"line {first[0]}: format {header.get('format')!r} is not known here (up to "
            f"{FORMAT}); update hotset"
        )


def _object(number: int, line: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"line {number}: not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise BadInput(f"line {number}: not a JSON object")
    return fields


def _row(number: int, fields: dict[str, Any]) -> Row:
    name = fields.pop("is", None)
    noun = _TYPES.get(name) if isinstance(name, str) else None
    if noun is None:
        raise BadInput(f"line {number}: no such kind of row: {name!r}")
    if noun is Blob:
        return _blob(number, fields)
    if noun is Note and isinstance(text := fields.pop("text", None), str):
        fields["value"] = base64.b64encode(text.encode()).decode()
    try:
        row: Row = (
            memory_from_fields(fields)
            if noun is MemoryRecord
            else msgspec.convert(fields, type=noun)
        )
    except msgspec.ValidationError as error:
        raise BadInput(f"line {number}: not a {name}: {error}") from error
    return row


def _blob(number: int, fields: dict[str, Any]) -> Blob:
    match fields:
        case {"digest": str(address), "text": str(text), **rest} if not rest:
            content = text.encode()
        case {"digest": str(address), "base64": str(text), **rest} if not rest:
            try:
                content = base64.b64decode(text, validate=True)
            except binascii.Error as error:
                raise BadInput(f"line {number}: not base64: {error}") from error
        case _:
            raise BadInput(f"line {number}: content needs a digest and either text or base64")
    if digest(content) != address:
        raise BadInput(f"line {number}: the content does not have the hash {address}")
    return Blob(Digest(address), content)
