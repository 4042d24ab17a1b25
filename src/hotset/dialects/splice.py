"""Where the fields and elements of a JSON body stand in its bytes, and how to exchange some and leave the rest alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from hotset.dialects import wire
from hotset.errors import Malformed
from hotset.nouns.message import Span

_MOST_FIELDS = 10_000  # no API has a hundred; a million keys would hold the loop for a second
_GAP = re.compile(rb"[ \t\n\r]*")
_KEY = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Field:
    """A top-level field: `body[key.start:key.end]` is its name with quotes, `value` its value."""

    key: Span
    value: Span


def fields(body: bytes) -> dict[str, Field]:
    """Every top-level field of an object. Raises `Malformed` for what is no object, and for a key that comes twice."""
    values = wire.members(body, "the body")
    if len(values) > _MOST_FIELDS:
        raise Malformed(f"the body: {len(values)} top-level fields; no request has more than {_MOST_FIELDS}")
    found: dict[str, Field] = {}
    here = _after(body, _gap(body, 0), b"{")
    while not body.startswith(b"}", here):
        if found:
            here = _after(body, here, b",")
        key, name = _key(body, here)
        colon = _after(body, _gap(body, key.end), b":")
        start = _gap(body, colon)
        raw = bytes(values[name])
        end = start + len(raw)
        here = _gap(body, end)
        # `values` holds the last value of each name: another one stands here only where the name comes again.
        if name in found or not body.startswith(raw, start) or body[here : here + 1] not in (b",", b"}"):
            raise Malformed(f"the body: the field {name!r} comes twice")
        found[name] = Field(key, Span(start, end))
    return found


def elements(body: bytes, array: Span, where: str) -> tuple[Span, ...]:
    """Every element of the array that stands at `array`."""
    raws = wire.elements(memoryview(body)[array.start : array.end], where)
    spans: list[Span] = []
    here = array.start
    for raw in raws:
        start = _gap(body, _after(body, here, b"," if spans else b"["))
        end = start + len(memoryview(raw))
        spans.append(Span(start, end))
        here = _gap(body, end)
    return tuple(spans)


def splice(raw: bytes, edits: Iterable[tuple[Span, bytes]]) -> bytes:
    """`raw` with each span exchanged for new bytes; the spans must not overlap."""
    pieces: list[bytes] = []
    here = 0
    for span, new in sorted(edits, key=lambda edit: (edit[0].start, edit[0].end)):
        if not here <= span.start <= span.end <= len(raw):
            raise ValueError(f"the edit at {span.start}:{span.end} overlaps another, or leaves the body")
        pieces += (raw[here : span.start], new)
        here = span.end
    return b"".join((*pieces, raw[here:])) if pieces else raw


def adjoin(body: bytes, array: Span, spans: Iterable[Span]) -> bool:
    """True where `spans` are all the elements of the array at `array`, in order: nothing but commas lies between."""
    here, mark = array.start, b"["
    for span in spans:
        if span.start < here or span.end > array.end or body[here : span.start].strip() != mark:
            return False
        here, mark = span.end, b","
    closing = b"".join(body[here : array.end].split())
    return closing == (b"]" if mark == b"," else b"[]")


def _gap(body: bytes, here: int) -> int:
    match = _GAP.match(body, here)
    return match.end() if match else here


def _after(body: bytes, here: int, mark: bytes) -> int:
    if not body.startswith(mark, here):
        raise Malformed(f"the body: expected {mark.decode()!r} at byte {here}")
    return _gap(body, here + 1)


def _key(body: bytes, here: int) -> tuple[Span, str]:
    match = _KEY.match(body, here)
    if match is None:
        raise Malformed(f"the body: expected a field name at byte {here}")
    return Span(*match.span()), msgspec.json.decode(match.group(), type=str)
