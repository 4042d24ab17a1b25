"""Every kind of row in one table: its columns, its seal, what it points to, and how it is exported,
erased and repaired.

Each column is packed to what SQLite holds exactly, and each row is sealed so that a changed bit is
seen. A column's order and codec are the stored format: they never change.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec

from hotset.errors import BadInput, PageDamaged
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.form import Cause, Form
from hotset.nouns.note import Note, Scope
from hotset.nouns.page import Digest, Gist, Kind, Page, Role, digest
from hotset.nouns.turn import Event, Node, Outcome, Reference, Session, ToolSeen, Turn
from hotset.nouns.usage import DialectName, Usage
from hotset.store.port import HiddenRow, SentRow, ShownRow
from hotset.typed import decode

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Value = int | float | str | bytes | None
Noun = TypeVar("Noun")

_SEAL_BYTES = 8  # 2^-64 for a damaged row to pass; a wider one would only cost room
_MAX_INT = 2**63 - 1  # what SQLite can hold
_LEVEL = (
    1  # on a recorded session as small as 3 (346 and 347 KB of 1.6 MB), in two thirds of the time
)
WORTH_COMPRESSING = (
    1024  # below this it saves less than a quarter of a database page; compressing 1 KB takes 27 us
)
_WORTH_KEEPING = 0.9  # decompression is paid at every read; a saving of a tenth pays for it


class Codec(IntEnum):
    PLAIN = 0
    ZSTD = 1


@dataclass(frozen=True, slots=True)
class CompressedContent:
    """Content in the form in which it is stored."""

    codec: Codec
    size: int
    """Bytes of content before compression: the bound for taking it out again."""
    body: bytes


def compress(content: bytes) -> CompressedContent:
    if len(content) >= WORTH_COMPRESSING:
        body = zstd.compress(content, _LEVEL)
        if len(body) <= _WORTH_KEEPING * len(content):
            return CompressedContent(Codec.ZSTD, len(content), body)
    return CompressedContent(Codec.PLAIN, len(content), content)


def read_content(address: Digest, codec: object, size: object, body: object) -> bytes:
    """The content, or `PageDamaged`: never other bytes, never more of them than were kept."""
    content = decompress(f"content {address}", codec, size, body)
    if len(content) != size or digest(content) != address:
        raise PageDamaged(f"content {address} is damaged: its bytes do not have that hash")
    return content


def decompress(what: str, codec: object, size: object, body: object) -> bytes:
    """The bytes, unverified; `what` names them in an error."""
    if not isinstance(size, int) or not isinstance(body, bytes):
        raise PageDamaged(f"{what} is damaged: its row is not readable")
    if codec != Codec.ZSTD:
        return body
    reader = zstd.ZstdDecompressor()
    try:
        return reader.decompress(body, max_length=size + 1)
    except (zstd.ZstdError, ValueError, OverflowError) as error:
        raise PageDamaged(f"{what} is damaged: it cannot be decompressed") from error


@dataclass(frozen=True, slots=True)
class ColumnCodec:
    """Converts one field to a column value and back."""

    pack: Callable[[Any], Value]
    unpack: Callable[[Any], Any]


@dataclass(frozen=True)
class RowTable(Generic[Noun]):
    """One kind of row. `seq` comes before its columns and `seal` after them."""

    name: str
    noun: type[Noun]
    columns: tuple[tuple[str, ColumnCodec], ...]
    identity: tuple[str, ...]
    """The fields that identify a row."""
    repeats: bool = False
    """Equal rows are kept as often as they occur; `nth`, after the seal, distinguishes them."""
    content: tuple[str, ...] = ()
    """Fields that hold the address of content: one, None or several."""
    owner: str = ""
    """The field with the session that the row depends on."""
    texts: tuple[str, ...] = ()
    """Fields whose secrets are sealed before the row leaves the machine."""
    of_session: str = "session = :session"
    """In SQL: the rows that are exported with a session."""
    exported: str = "TRUE"
    """In SQL: the rows that may leave the machine."""
    order: str = "seq"
    """Order of the export."""
    erased_by: tuple[str, ...] = ()
    """Columns that name a memory: its rows are blanked when it is erased."""
    when_lost: str = ""
    """What a repair does if this row, or content that it points to, is lost."""

    def pack(self, noun: Noun) -> tuple[Value, ...]:
        """The values of a row with its seal, ready to bind."""
        try:
            values: tuple[Value, ...] = self._values(noun)
            return (*values, self._seal(values))
        except (UnicodeEncodeError, OverflowError) as error:
            raise BadInput(f"a {self.name} that cannot be stored: {error}") from error

    def unpack(self, values: Sequence[Any]) -> Noun:
        """The noun, or `PageDamaged`. `values` are the columns and the seal."""
        fields = tuple(values[:-1])
        if values[-1] != self._seal(fields):
            raise PageDamaged(
                f"{self.name} {self.describe(fields)} is damaged: its row does not fit its seal"
            )
        return self._noun(fields)

    def describe(self, fields: Sequence[Any]) -> str:
        """The readable rest of a damaged row."""
        named = dict(zip((name for name, _ in self.columns), fields, strict=False))
        shown = (named[name] for name in self.identity)
        return " ".join(value.hex() if isinstance(value, bytes) else str(value) for value in shown)

    def _values(self, noun: Noun) -> tuple[Value, ...]:
        return tuple(codec.pack(getattr(noun, name)) for name, codec in self.columns)

    def _noun(self, fields: tuple[Any, ...]) -> Noun:
        return self.noun(
            **{
                name: codec.unpack(value)
                for (name, codec), value in zip(self.columns, fields, strict=True)
            }
        )

    def _seal(self, values: tuple[Value, ...]) -> bytes:
        packed = msgspec.msgpack.encode(values)
        return hashlib.blake2b(packed, digest_size=_SEAL_BYTES, person=self.name.encode()).digest()

    def addresses(self, row: Noun) -> tuple[Digest, ...]:
        """Addresses of the content that the row points to."""
        held = (getattr(row, name) for name in self.content)
        lists = (each if isinstance(each, tuple) else (each,) for each in held if each is not None)
        return tuple(address for each in lists for address in each)

    @property
    def content_of_session(self) -> Iterator[str]:
        """In SQL: the addresses of the content that a session's rows point to."""
        lists = [name for name, codec in self.columns if codec is _WORDS]
        for name in self.content:
            column, where = (
                ("unhex(value)", f", json_each({name})") if name in lists else (name, "")
            )
            yield f'SELECT {column} FROM "{self.name}"{where} WHERE {self.of_session}'

    @cached_property
    def names(self) -> str:
        return self.qualified()

    def qualified(self, alias: str = "") -> str:
        """The columns and the seal, qualified for a statement."""
        return ", ".join((*(f'{alias}"{name}"' for name, _ in self.columns), f"{alias}seal"))

    @cached_property
    def stored(self) -> tuple[str, ...]:
        """Every column but the number of the row, for a statement."""
        return (*self.names.split(", "), *(("nth",) if self.repeats else ()))

    @cached_property
    def marks(self) -> str:
        return ", ".join("?" * (len(self.columns) + 1))


class NoteTable(RowTable[Note]):
    """Stores a value compressed like content, but in its row: a value that must not leave the
    machine is in no other place."""

    def _values(self, noun: Note) -> tuple[Value, ...]:
        form = compress(noun.value) if noun.value is not None else None
        return (
            noun.space,
            pack_hex(noun.key),
            pack_number(noun.version),
            str(noun.scope),
            noun.session,
            pack_number(noun.turn),
            pack_number(noun.step),
            pack_moment(noun.time),
            *((int(form.codec), form.size, form.body) if form is not None else (None, None, None)),
        )

    def _noun(self, fields: tuple[Any, ...]) -> Note:
        space, key, version, scope, session, turn, step, time, codec, size, body = fields
        named = unpack_hex(key)
        value = None if body is None else decompress(f"note {space} {named}", codec, size, body)
        try:
            return Note(space, named, value, time, session, turn, Scope(scope), version, step)
        except ValueError as error:
            raise PageDamaged(f"note {space} {named} cannot be read: {error}") from error


def is_blank(values: Sequence[Any]) -> bool:
    """True for an erased row: only its number is left."""
    return all(value is None for value in values)


def pack_hex(text: str) -> Value:
    """A hash as bytes, which take half the room; anything else unchanged."""
    if len(text) == 64:
        try:
            packed = bytes.fromhex(text)
        except ValueError:
            return text
        if packed.hex() == text:
            return packed
    return text


def unpack_hex(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def pack_number(value: int) -> int:
    if not -_MAX_INT <= value <= _MAX_INT:
        raise OverflowError(f"{value} is too large a number")
    return int(value)


def pack_moment(value: float) -> float:
    value = float(value)
    if not math.isfinite(value):
        raise OverflowError("a time must be a finite number")
    return value


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _finite(detail: dict[str, str | int | float]) -> str:
    for value in detail.values():
        if isinstance(value, float) and not math.isfinite(value):
            raise OverflowError("an event's numbers must be finite")
    return _json(
        {name: int(value) if isinstance(value, bool) else value for name, value in detail.items()}
    )


def optional(codec: ColumnCodec) -> ColumnCodec:
    return ColumnCodec(
        lambda value: None if value is None else codec.pack(value),
        lambda value: None if value is None else codec.unpack(value),
    )


def _typed_codec(kind: Any) -> ColumnCodec:
    """Codec for a value that its JSON describes completely."""
    return ColumnCodec(_json, lambda text: decode(text, kind))


def _counts(usage: Usage) -> str:
    """A provider's counts in their old form: newer fields are there if they say something."""
    fields = msgspec.to_builtins(usage)
    newer = ("estimated", "lasting")
    return _json({name: value for name, value in fields.items() if value or name not in newer})


TEXT = ColumnCodec(str, str)
INT = ColumnCodec(pack_number, int)
FLAG = ColumnCodec(int, bool)
TIME = ColumnCodec(pack_moment, float)
_HEX = ColumnCodec(pack_hex, unpack_hex)
_WORDS = _typed_codec(tuple[str, ...])
_USAGE = ColumnCodec(_counts, _typed_codec(Usage).unpack)

# Forms belong to messages: those of a session's messages go with it, whichever session decided
# them. What two stores hold of one page table is in the same order (by step), whichever of them it
# was loaded into first. A memory goes with all of its versions, or an older one would hold where it
# is loaded.
_OF_MESSAGES = "(SELECT chain FROM node WHERE session = :session)"

SESSION: RowTable[Session] = RowTable(
    "session",
    Session,
    (
        ("id", TEXT),
        ("key", TEXT),
        ("agent", TEXT),
        ("dialect", ColumnCodec(str, DialectName)),
        ("started", TIME),
        ("title", TEXT),
    ),
    identity=("id",),
    texts=("title",),
    of_session="id = :session",
)
NODE: RowTable[Node] = RowTable(
    "node",
    Node,
    (
        ("session", TEXT),
        ("chain", _HEX),
        ("parent", _HEX),
        ("role", ColumnCodec(str, Role)),
        ("turn", INT),
        ("branch", INT),
        ("raw", _HEX),
        ("essence", _HEX),
        ("aside", FLAG),
        ("time", TIME),
    ),
    identity=("session", "chain"),
    content=("raw",),
    owner="session",
)
PAGE: RowTable[Page] = RowTable(
    "page",
    Page,
    (
        ("id", TEXT),
        ("session", TEXT),
        ("agent", TEXT),
        ("turn", INT),
        ("branch", INT),
        ("kind", ColumnCodec(str, Kind)),
        ("role", ColumnCodec(str, Role)),
        ("parent", optional(TEXT)),
        ("digest", _HEX),
        ("size", INT),
        ("media", TEXT),
        ("time", TIME),
        ("chain", _HEX),
        ("position", INT),
        ("tool", TEXT),
        ("call", TEXT),
    ),
    identity=("id",),
    content=("digest",),
    owner="session",
)
TURN: RowTable[Turn] = RowTable(
    "turn",
    Turn,
    (
        ("id", TEXT),
        ("session", TEXT),
        ("number", INT),
        ("agent", TEXT),
        ("branch", INT),
        ("dialect", ColumnCodec(str, DialectName)),
        ("model", TEXT),
        ("streamed", FLAG),
        ("started", TIME),
        ("fingerprint", TEXT),
        ("head", _HEX),
        ("tail", _HEX),
        ("system", optional(_HEX)),
        ("tools", optional(_HEX)),
        ("params", _HEX),
        ("outcome", ColumnCodec(str, Outcome)),
        ("finished", TIME),
        ("status", INT),
        ("stop", TEXT),
        ("response_id", TEXT),
        ("error", TEXT),
        ("usage", _USAGE),
        ("reply", optional(_HEX)),
    ),
    identity=("session", "number"),
    content=("system", "tools", "params", "reply"),
    owner="session",
    texts=("error",),
)
TOOL: RowTable[ToolSeen] = RowTable(
    "tool",
    ToolSeen,
    (("name", TEXT), ("digest", _HEX), ("first_session", TEXT), ("time", TIME)),
    identity=("name", "digest"),
    content=("digest",),
    owner="first_session",
    of_session="first_session = :session",
)
EVENT: RowTable[Event] = RowTable(
    "event",
    Event,
    (
        ("name", TEXT),
        ("time", TIME),
        ("session", optional(TEXT)),
        ("turn", INT),
        ("detail", ColumnCodec(_finite, msgspec.json.decode)),
    ),
    identity=("name", "time"),
    repeats=True,
    texts=("detail",),
)
REFERENCE: RowTable[Reference] = RowTable(
    "reference",
    Reference,
    (
        ("id", TEXT),
        ("session", TEXT),
        ("kind", TEXT),
        ("pages", _WORDS),
        ("turns", _typed_codec(tuple[int, int])),
        ("tokens", INT),
        ("time", TIME),
        ("topics", _WORDS),
        ("entities", _WORDS),
        ("hints", _WORDS),
    ),
    identity=("id",),
    texts=("topics", "entities", "hints"),
)
GIST: RowTable[Gist] = RowTable(
    "gist",
    Gist,
    (
        ("page", TEXT),
        ("tokens", INT),
        ("keywords", _WORDS),
        ("entities", _WORDS),
        ("files", _WORDS),
    ),
    identity=("page",),
    texts=("keywords", "entities", "files"),
    of_session="seq IN (SELECT seq FROM page WHERE session = :session)",
)

SHOWN: RowTable[ShownRow] = RowTable(
    "shown",
    ShownRow,
    (
        ("session", TEXT),
        ("turn", INT),
        ("step", INT),
        ("chain", _HEX),
        ("position", INT),
        ("form", ColumnCodec(str, Form)),
        ("text", optional(_HEX)),
        ("tokens", INT),
        ("whole", INT),
        ("cause", ColumnCodec(str, Cause)),
        ("time", TIME),
    ),
    identity=("chain", "position", "step", "session"),
    content=("text",),
    of_session=f"chain IN {_OF_MESSAGES}",
    order="step, seq",
    when_lost="; a repair lets it go, and its page is shown as it was before, or full",
)
HIDDEN: RowTable[HiddenRow] = RowTable(
    "hidden",
    HiddenRow,
    (
        ("session", TEXT),
        ("turn", INT),
        ("step", INT),
        ("chain", _HEX),
        ("before", _WORDS),
        ("instead", optional(_HEX)),
        ("after", _WORDS),
        ("asides", INT),
    ),
    identity=("chain", "step", "session"),
    content=("before", "instead", "after"),
    of_session=f"chain IN {_OF_MESSAGES}",
    order="step, seq",
    when_lost="; a repair lets it go, and only what the client saw of that turn is sent",
)
SENT: RowTable[SentRow] = RowTable(
    "sent",
    SentRow,
    (
        ("session", TEXT),
        ("turn", INT),
        ("step", INT),
        ("head", _HEX),
        ("time", TIME),
        ("tokens", INT),
    ),
    identity=("head", "step", "session"),
    of_session=f"(session = :session OR head IN {_OF_MESSAGES})",
    order="step, seq",
)
BILL: RowTable[Bill] = RowTable(
    "bill",
    Bill,
    (
        ("session", optional(TEXT)),
        ("turn", INT),
        ("time", TIME),
        ("model", TEXT),
        ("upstream", TEXT),
        ("sent", _USAGE),
        ("whole", _USAGE),
        ("usage", _USAGE),
        ("calls", INT),
        ("faults", INT),
        ("refaults", INT),
        ("broke", TEXT),
        ("overhead_ms", TIME),
    ),
    identity=("session", "turn"),
    owner="session",
    texts=("upstream",),
)
SUMMARY: RowTable[Summary] = RowTable(
    "summary",
    Summary,
    (
        ("session", TEXT),
        ("branch", INT),
        ("turns", _typed_codec(tuple[int, int])),
        ("version", INT),
        ("text", TEXT),
        ("by", TEXT),
        ("time", TIME),
    ),
    identity=("session", "branch", "turns", "version"),
    owner="session",
    texts=("text",),
)
NOTE = NoteTable(
    "note",
    Note,
    tuple(
        (name, TEXT)
        for name in (
            "space",
            "key",
            "version",
            "scope",
            "session",
            "turn",
            "step",
            "time",
            "codec",
            "size",
            "body",
        )
    ),
    identity=("space", "key", "version"),
    texts=("key", "value"),
    exported=f"scope <> '{Scope.MACHINE}'",
)


def supersedes(newer: Turn, older: Turn) -> bool:
    """True if a row replaces an open turn with its end; nothing else changes when rows are loaded
    twice."""
    return (
        older.outcome is Outcome.OPEN
        and newer.outcome is not Outcome.OPEN
        and newer.head == older.head
    )


def latest_versions(summaries: Iterable[Summary]) -> Sequence[Summary]:
    """The summary with the highest version of each stretch, in the order in which they were
    kept."""
    every = list(summaries)
    latest: dict[tuple[int, tuple[int, int]], int] = {}
    for summary in every:
        stretch = summary.branch, summary.turns
        latest[stretch] = max(summary.version, latest.get(stretch, summary.version))
    return [
        summary for summary in every if summary.version == latest[summary.branch, summary.turns]
    ]
