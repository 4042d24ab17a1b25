"""Notes out of SQL, and the notes that older stores kept as hidden rows under made-up names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import apsw
import msgspec

from hotset.nouns.note import Note
from hotset.nouns.page import Digest
from hotset.store.blobs import read_content
from hotset.store.rows import HIDDEN, NOTE, pack_hex
from hotset.store.showing import HiddenRow

_LATEST = (
    f"SELECT {NOTE.names} FROM note AS this WHERE space = ? AND step <= ? AND version = "
    "(SELECT max(version) FROM note WHERE space = this.space AND key = this.key AND step <= ?)"
)
_VERSIONS = f"SELECT {NOTE.names} FROM note WHERE space = ? AND key = ? ORDER BY version"
_OLD_SPACES = frozenset({"calibration", "response", "found", "offer", "brought"})
_MOST_KEYS = 250  # bound in one statement


def latest(
    connection: apsw.Connection, space: str, keys: Sequence[str], step: int
) -> Mapping[str, Note]:
    """The version of each key that held at this step; of every key where none is named. What was
    removed is left out."""
    rows: list[Any] = []
    for some in [keys[start : start + _MOST_KEYS] for start in range(0, len(keys), _MOST_KEYS)] or [
        ()
    ]:
        which = f" AND key IN ({', '.join('?' * len(some))})" if some else ""
        rows += connection.execute(
            f"{_LATEST}{which} ORDER BY seq", (space, step, step, *map(pack_hex, some))
        )
    found = (NOTE.unpack(row) for row in rows)
    return {note.key: note for note in found if note.value is not None}


def versions(connection: apsw.Connection, space: str, key: str) -> Sequence[Note]:
    return [NOTE.unpack(row) for row in connection.execute(_VERSIONS, (space, pack_hex(key)))]


def old_note(row: HiddenRow, read: Callable[[Digest], bytes]) -> Note | None:
    """The note that this hidden row stands for in stores up to format 3; None for a true one. Its
    version is still open."""
    space, _, key = row.chain.partition(":")
    if not key or space not in _OLD_SPACES:
        return None
    value = read(row.instead) if row.instead is not None else b""
    if space == "response":
        answers = [read(each).decode("utf-8", "replace") for each in row.after]
        value = msgspec.json.encode({"last": value.decode("utf-8", "replace"), "answers": answers})
    return Note(space, key, value, 0.0, row.session, row.turn, step=row.step)


def note_of(connection: apsw.Connection, row: HiddenRow) -> Note | None:
    """The same, with its version: that of its step where it is there already, otherwise the
    next."""

    def read(address: Digest) -> bytes:
        form = connection.execute(
            "SELECT codec, size, body FROM blob WHERE digest = ?", (pack_hex(address),)
        ).fetchone()
        return read_content(address, *(form or (0, None, None)))

    note = old_note(row, read)
    if note is None:
        return None
    every = versions(connection, note.space, note.key)
    there = next(
        (each.version for each in every if (each.step, each.session) == (note.step, note.session)),
        0,
    )
    return replace(note, version=there or (every[-1].version + 1 if every else 1))


def move_hidden_to_notes(connection: apsw.Connection) -> None:
    """For stores up to format 3, inside a transaction. The rows that stay are numbered without gaps
    again (see `repair`)."""
    every = connection.execute(f"SELECT {HIDDEN.names} FROM hidden ORDER BY step, seq").fetchall()
    stay: list[Any] = []
    for values in every:
        if (note := note_of(connection, HIDDEN.unpack(values))) is None:
            stay.append((len(stay) + 1, *values))
        else:
            connection.execute(
                f"INSERT OR IGNORE INTO note ({NOTE.names}) VALUES ({NOTE.marks})", NOTE.pack(note)
            )
    if len(stay) < len(every):
        connection.execute("DELETE FROM hidden")
        connection.executemany(
            f"INSERT INTO hidden (seq, {HIDDEN.names}) VALUES (?, {HIDDEN.marks})", stay
        )
