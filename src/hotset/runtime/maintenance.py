"""Exports a store to JSON lines, imports them, and repairs a damaged store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from hotset.dialects import DIALECTS
from hotset.errors import BadInput, BadRow, Malformed
from hotset.nouns.message import DialectName, Message
from hotset.nouns.page import SessionId
from hotset.sealing import VERSION
from hotset.store.exchange import read_lines, write_lines
from hotset.store.port import Row, Store
from hotset.store.repair import RepairReport, repair
from hotset.store.sealed import SealedRows
from hotset.store.sqlite import SqliteStore

__all__ = ["Export", "RepairReport", "import_lines", "repair_store"]

_STREAMED = (b"event:", b"data:", b":")


class Export:
    """The whole store, or one session, as JSON lines."""

    def __init__(self, store: Store, session: SessionId | None, *, with_secrets: bool) -> None:
        dump = partial(store.dump, session)
        self._dump = dump
        self._sealed = None if with_secrets else SealedRows(dump)

    def __iter__(self) -> Iterator[bytes]:
        if self._sealed is None:
            return write_lines(self._dump())
        return write_lines(self._sealed, sealed=VERSION)

    @property
    def secrets(self) -> int:
        """Number of secrets replaced so far."""
        return self._sealed.secrets if self._sealed is not None else 0


def import_lines(
    folder: Path,
    source: Iterable[bytes],
    counted: Callable[[Iterable[Row]], Iterable[Row]],
    *,
    gaps: bool,
) -> int:
    """Import what `Export` wrote; returns how many rows are new. `counted` sees each row pass. With
    `gaps`, messages may follow others that were lost. Raises `BadInput`."""
    lines = _Lines(source)
    with SqliteStore.open(folder) as store:
        try:
            return store.load(counted(read_lines(lines)), gaps=gaps)
        except BadRow as error:
            raise BadInput(
                f"line {lines.of_row(error.row)}: {error.why}; nothing was changed"
            ) from error


class _Lines:
    """The lines of an export. After the header each non-empty line is a row."""

    def __init__(self, source: Iterable[bytes]) -> None:
        self._source = source
        self._empty: list[int] = []

    def __iter__(self) -> Iterator[bytes]:
        for number, line in enumerate(self._source, 1):
            if not line.strip():
                self._empty.append(number)
            yield line

    def of_row(self, row: int) -> int:
        line = row + 1
        for empty in self._empty:
            line += empty <= line
        return line


def repair_store(folder: Path) -> RepairReport:
    """Copy what is intact into a fresh store; see `store.repair`."""
    return repair(folder, _read_again)


def _read_again(name: DialectName, raw: bytes) -> Iterator[Message]:
    """Candidates for the messages in some raw bytes: one message of a request, or a whole reply.
    The store's hashes decide which are right."""
    dialect = DIALECTS[name]
    with suppress(Malformed):
        yield from dialect.parse(
            msgspec.json.encode({"model": "", **dialect.compose("", [msgspec.Raw(raw)])})
        ).messages
    yield from dialect.read(raw, streamed=raw.lstrip().startswith(_STREAMED)).messages
