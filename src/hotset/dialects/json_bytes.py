"""JSON on the wire: decoded strictly for requests and leniently for replies, located in its bytes,
and spliced there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from hotset.errors import Malformed
from hotset.nouns.message import Span
from hotset.typed import json_decoder

_T = TypeVar("_T")
_BOM = b"\xef\xbb\xbf"
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_MOST_FIELDS = 10_000  # no API has a hundred; a million keys would hold the loop for a second
_GAP = re.compile(rb"[ \t\n\r]*")
_KEY = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_LONE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
"""An escape of half a surrogate pair."""

_any = msgspec.json.Decoder()
_object = json_decoder(dict[str, Raw])
_array = json_decoder(list[Raw])
_text = json_decoder(str)

encode = msgspec.json.encode


def decode(raw: bytes, where: str) -> Any:
    """Decode `raw`; `where` names the place in errors."""
    return _strict(_any, raw, where)


def members(raw: bytes, where: str) -> dict[str, Raw]:
    """An object's values as raw JSON. The last value of a duplicate key wins: see `fields`."""
    return _strict(_object, raw, where)


def elements(raw: bytes | memoryview, where: str) -> list[Raw]:
    """An array's elements as raw JSON."""
    return _strict(_array, raw, where)


def member(raw: bytes, key: str) -> bytes:
    """One value of an object that was decoded before, as bytes; empty if it is missing."""
    found = _object.decode(raw).get(key)
    return bytes(found) if found is not None else b""


def lenient(raw: bytes) -> Any:
    """The value in `raw`, or None. Never raises."""
    return salvage(raw)[1]


def lenient_object(raw: bytes) -> dict[str, Any]:
    """The object in `raw`; empty if there is none. Never raises."""
    return as_object(salvage(raw)[1])


def salvage(raw: bytes) -> tuple[bytes, Any]:
    """The bytes and the value decoded from them; invalid characters are replaced by U+FFFD."""
    for mend in (bytes, _repair_text):
        text = mend(raw)
        try:
            return text, _any.decode(text)
        except (ValueError, RecursionError):
            continue
    return b"", None


def member_of(raw: bytes, key: str) -> bytes:
    """One value of an object that was read before, as bytes; empty if it is missing or `raw` is not
    an object."""
    return member(raw, key) if raw.lstrip().startswith(b"{") else b""


def elements_of(raw: bytes) -> list[bytes]:
    """The elements of an array that was read before, as bytes; none if it is not an array."""
    return [bytes(each) for each in _array.decode(raw)] if raw.startswith(b"[") else []


def array_of(raws: Iterable[bytes]) -> bytes:
    """A JSON array of these elements."""
    return b"[" + b",".join(raws) + b"]"


def encode_text(text: str) -> bytes:
    """UTF-8, also for a string with half a surrogate pair."""
    return text.encode("utf-8", "replace")


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


class Elements:
    """The raw elements of an array inside a message, split when first used."""

    __slots__ = ("_cut", "_key", "_raw")

    def __init__(self, raw: bytes, key: str) -> None:
        self._raw = raw
        self._key = key
        self._cut: list[Raw] | None = None

    def __getitem__(self, index: int) -> bytes:
        if self._cut is None:
            self._cut = _array.decode(member(self._raw, self._key))
        return bytes(self._cut[index])


@dataclass(frozen=True, slots=True)
class Field:
    """A top-level field: `body[key.start:key.end]` is its name with quotes, `value` its value."""

    key: Span
    value: Span


def fields(body: bytes) -> dict[str, Field]:
    """Every top-level field of an object. Raises `Malformed` for other values and for a duplicate
    key."""
    values = members(body, "the body")
    if len(values) > _MOST_FIELDS:
        raise Malformed(
            f"the body: {len(values)} top-level fields; no request has more than {_MOST_FIELDS}"
        )
    found: dict[str, Field] = {}
    here = _after(body, _gap(body, 0), b"{")
    while not body.startswith(b"}", here):
        if found:
            here = _after(body, here, b",")
        key, name = _key(body, here)
        start = _gap(body, _after(body, _gap(body, key.end), b":"))
        raw = bytes(values[name])
        end = start + len(raw)
        here = _gap(body, end)
        # `values` holds the last value of each name: another one is here only if the name is
        # repeated.
        if (
            name in found
            or not body.startswith(raw, start)
            or body[here : here + 1] not in (b",", b"}")
        ):
            raise Malformed(f"the body: the field {name!r} comes twice")
        found[name] = Field(key, Span(start, end))
    return found


def element_spans(body: bytes, array: Span, where: str) -> tuple[Span, ...]:
    """The span of each element of the array at `array`."""
    spans: list[Span] = []
    here = array.start
    for raw in elements(memoryview(body)[array.start : array.end], where):
        start = _gap(body, _after(body, here, b"," if spans else b"["))
        spans.append(Span(start, start + len(memoryview(raw))))
        here = _gap(body, spans[-1].end)
    return tuple(spans)


def splice(raw: bytes, edits: Iterable[tuple[Span, bytes]]) -> bytes:
    """`raw` with each span replaced by new bytes; the spans must not overlap."""
    pieces: list[bytes] = []
    here = 0
    for span, new in sorted(edits, key=lambda edit: (edit[0].start, edit[0].end)):
        if not here <= span.start <= span.end <= len(raw):
            raise ValueError(
                f"the edit at {span.start}:{span.end} overlaps another, or leaves the body"
            )
        pieces += (raw[here : span.start], new)
        here = span.end
    return b"".join((*pieces, raw[here:])) if pieces else raw


def is_all_of(array: Span, spans: Iterable[Span], body: bytes) -> bool:
    """True if `spans` are all the elements of the array at `array`, in order: only commas lie
    between."""
    here, mark = array.start, b"["
    for span in spans:
        if span.start < here or span.end > array.end or body[here : span.start].strip() != mark:
            return False
        here, mark = span.end, b","
    closing = b"".join(body[here : array.end].split())
    return closing == (b"]" if mark == b"," else b"[]")


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A JSON value at its place, `body[span.start:span.end]`. Nested values are located one level
    at a time, on demand."""

    body: bytes
    span: Span

    @property
    def raw(self) -> bytes:
        return self.body[self.span.start : self.span.end]

    @property
    def is_text(self) -> bool:
        return self.body.startswith(b'"', self.span.start)

    def members(self) -> dict[str, JsonNode]:
        """An object's values; none if it is not an object. Raises `Malformed` for a duplicate
        key."""
        if not self.body.startswith(b"{", self.span.start):
            return {}
        return {
            name: JsonNode(self.body, shift_span(at.value, self.span.start))
            for name, at in fields(self.raw).items()
        }

    def elements(self) -> tuple[JsonNode, ...]:
        """An array's elements; none if it is not an array."""
        if not self.body.startswith(b"[", self.span.start):
            return ()
        return tuple(
            JsonNode(self.body, span) for span in element_spans(self.body, self.span, "an array")
        )

    def value(self) -> Any:
        return decode(self.raw, "a value")


def node(raw: bytes) -> JsonNode:
    """The value in `raw`, without surrounding white space."""
    start = len(raw) - len(raw.lstrip())
    return JsonNode(raw, Span(start, max(start, len(raw.rstrip()))))


def text_of(members: dict[str, JsonNode], name: str) -> str:
    """A short text among an object's members; empty if missing."""
    found = members.get(name)
    return as_text(found.value()) if found is not None and found.is_text else ""


def are_texts(members: dict[str, JsonNode], *names: str) -> bool:
    """True if all of these members exist and are texts."""
    return all(name in members and members[name].is_text for name in names)


def shift_span(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)


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
    return Span(*match.span()), _text.decode(match.group())


def _repair_text(raw: bytes) -> bytes:
    return _LONE.sub(rb"\\ufffd", raw.decode("utf-8", "replace").encode())


def _strict(decoder: msgspec.json.Decoder[_T], raw: bytes | memoryview, where: str) -> _T:
    try:
        return decoder.decode(raw)
    except RecursionError:
        problem = "nested too deeply"
    except UnicodeDecodeError as error:
        problem = f"not valid UTF-8 ({error.reason})"
    except msgspec.ValidationError as error:
        problem = str(error)
    except msgspec.DecodeError as error:
        problem = _explain_error(bytes(raw), str(error))
    raise Malformed(f"{where}: {problem}")


def _explain_error(raw: bytes, error: str) -> str:
    if not raw.strip():
        return "it is empty"
    if raw.startswith(_COMPRESSED):
        return "it is compressed"
    if raw.startswith(_BOM):
        return "it begins with a byte order mark, which JSON does not allow"
    if raw.startswith(_UTF16) or b"\0" in raw[:4]:
        return "it is not UTF-8 (UTF-16 or UTF-32?)"
    return (
        "it holds half of a surrogate pair, which is no character" if _LONE.search(raw) else error
    )
