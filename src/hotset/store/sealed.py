"""Exports a store without secrets: rows that can leave the machine, and that another store imports
as they are.

Sealed content is other content and has another address, so every row that points to it is given the
new one. What a message *says* keeps its hash (its essence and its chain): that is how a session is
recognised when its client goes on with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from hotset.nouns.memory import MemoryRecord
from hotset.nouns.note import Note
from hotset.nouns.page import Digest, Gist, Page, PageId, digest
from hotset.sealing import gather, seal
from hotset.store.memory_tables import MEMORY, TABLE_OF
from hotset.store.memory_versions import memory_from_fields
from hotset.store.port import Blob, Row

_WORD = re.compile(r"[^\s\"'`=:,;()\[\]<>…]+")
_PART = "[secret]"
_CUT_STREAM = (
    b"[secret: one was said in pieces in this streamed reply; the "
    b"message it came to is kept, "
    b"sealed]"
)


class SealedRows:
    """Rows for export. Secrets are collected first: one that a text names may be bare in
    another."""

    def __init__(self, rows: Callable[[], Iterable[Row]]) -> None:
        self._source = rows
        self._known = gather(_texts(rows()))
        self._moved: dict[Digest, Blob] = {}
        self._pages: set[PageId] = set()
        self.secrets = 0
        """Secrets replaced in content so far; each occurrence counts."""

    def __iter__(self) -> Iterator[Row]:
        """Every row, sealed. Content comes before what points to it, so its new address is known by
        then."""
        written: set[Digest] = set()
        for row in self._source():
            if not isinstance(row, Blob):
                if (sealed := self._row(row)) is not None:
                    yield sealed
                continue
            blob = self._content(row)
            if blob.digest not in written:  # two secrets in one place are one placeholder
                written.add(blob.digest)
                yield blob

    def _content(self, blob: Blob) -> Blob:
        sealed = seal(_text(blob.content), self._known)
        content = sealed.text.encode("utf-8", "surrogateescape") if sealed.found else blob.content
        secrets = len(sealed.found)
        if cut := sum(len(seal(text, self._known).found) for text in _join_stream(content)):
            content, secrets = _CUT_STREAM, secrets + cut
        if not secrets:
            return blob
        self.secrets += secrets
        self._moved[blob.digest] = Blob(digest(content), content)
        return self._moved[blob.digest]

    def _row(self, row: Row) -> Row | None:
        """None for a gist of content that was sealed: it is made anew."""
        if isinstance(row, MemoryRecord):
            return self._memory(row)
        if isinstance(row, Gist) and row.page in self._pages:
            return None
        if isinstance(row, Note) and row.value is None:
            return row
        table = TABLE_OF[type(row)]
        changed = {name: self._moved_to(getattr(row, name)) for name in table.content}
        changed |= {name: self._sealed(getattr(row, name)) for name in table.texts}
        if isinstance(row, Page) and (blob := self._moved.get(row.digest)):
            self._pages.add(row.id)
            changed["size"] = len(blob.content)
        return replace(row, **changed)

    def _moved_to(self, address: Any) -> Any:
        """The new address of content, or of each of several."""
        if isinstance(address, tuple):
            return tuple(map(self._moved_to, address))
        blob = self._moved.get(address)
        return blob.digest if blob is not None else address

    def _sealed(self, value: Any) -> Any:
        """A text without its secrets; a list without the words that hold one."""
        match value:
            case str():
                return self._words(value)
            case bytes():
                return seal(_text(value), self._known).text.encode("utf-8", "surrogateescape")
            case tuple():
                return tuple(word for word in value if self._words(word) == word)
            case dict():
                return {name: self._sealed(inner) for name, inner in value.items()}
            case _:
                return value

    def _memory(self, memory: MemoryRecord) -> MemoryRecord:
        """It was made of sealed text; but what is a known secret now may not have been one then."""
        fields = msgspec.to_builtins(memory)
        sealed = {name: self._every_word(fields[name]) for name in MEMORY.texts}
        return (
            memory if sealed.items() <= fields.items() else memory_from_fields({**fields, **sealed})
        )

    def _every_word(self, value: Any) -> Any:
        match value:
            case str():
                return self._words(value)
            case dict():
                return {self._words(name): self._every_word(inner) for name, inner in value.items()}
            case list() | tuple():
                return [self._every_word(inner) for inner in value]
            case _:
                return value

    def _words(self, text: str) -> str:
        """Words that were cut out of a text may be parts of its secrets."""
        return _WORD.sub(
            lambda word: _PART if self._known.has_part(word[0]) else word[0],
            seal(text, self._known).text,
        )


def _texts(rows: Iterable[Row]) -> Iterator[str]:
    """All texts of conversations, and imported memories; all other rows are derived from these."""
    for row in rows:
        match row:
            case Blob():
                yield _text(row.content)
                yield from _join_stream(row.content)
            case MemoryRecord():
                yield from (row.title, row.text)


def _text(content: bytes) -> str:
    """Bytes that are not text stay as they are, and survive the way back."""
    return content.decode("utf-8", "surrogateescape")


def _join_stream(content: bytes) -> Iterator[str]:
    """The joined texts of an event stream: a secret may be split over several events."""
    if not content.lstrip()[:6].startswith((b"data:", b"event:")):
        return
    texts: dict[tuple[str | int, ...], list[str]] = {}
    for line in content.splitlines():
        if line.startswith(b"data:"):
            try:
                event = msgspec.json.decode(line[5:])
            except (msgspec.DecodeError, RecursionError):
                continue
            for where, text in _strings(event, ()):
                texts.setdefault(where, []).append(text)
    yield from ("".join(pieces) for pieces in texts.values() if len(pieces) > 1)


def _strings(
    value: Any, where: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every string with its place: the names that lead to it, and the numbers that tell one block
    from another."""
    match value:
        case str():
            yield where, value
        case dict():
            numbers = _numbers(value)
            for name, inner in value.items():
                yield from _strings(inner, (*where, *numbers, str(name)))
        case list():
            for inner in value:
                yield from _strings(inner, where)
        case _:
            return


def _numbers(value: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(
        value[name]
        for name in ("index", "output_index", "content_index")
        if isinstance(value.get(name), int)
    )
