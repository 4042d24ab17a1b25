"""Generations of the folded structures: which one serves, how far it was folded, and the one that
is made beside it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import apsw

from hotset.errors import StoreFailed
from hotset.index.rows import EntryRows, read_number

FOLDERS = "generation-"
"""How the folder of one is called, in front of its number."""


class FilesDamaged(StoreFailed):
    """Files of a generation are missing or cannot be read: another one is made."""


@dataclass(frozen=True, slots=True)
class Generation:
    """One set of folded structures, in a folder of its own."""

    number: int
    identity: str
    """What made it: see `writing.identity`. One that is damaged says so here, and is nobody's any
    more."""
    folded: int
    """Entries with numbers up to this one are in it."""
    rows: int
    """Vectors in it that count; what a file holds beyond them is a fold that did not come to its
    end."""
    serving: bool


class Generations:
    def __init__(self, rows: EntryRows) -> None:
        self._rows = rows

    def every(self) -> list[Generation]:
        with self._rows.reading() as connection:
            return [
                _generation(row)
                for row in connection.execute("SELECT * FROM generation ORDER BY number")
            ]

    def new(self, identity: str) -> Generation:
        """Its number is the time: no folder and nothing that anybody has open was ever called by it
        before."""
        with self._rows.writing() as connection:
            called = max(
                time.time_ns(), 1 + read_number(connection, "SELECT max(number) FROM generation")
            )
            connection.execute("INSERT INTO generation VALUES (?, ?, 0, 0, 0)", (called, identity))
            return Generation(called, identity, 0, 0, serving=False)

    def folded(self, generation: Generation, forgotten: Sequence[int]) -> None:
        """Makes a fold count, all at once: what it holds, what it forgot, and what the tail no
        longer needs."""
        with self._rows.writing() as connection:
            connection.execute(
                "UPDATE generation SET folded = ?, rows = ?, serving = ? WHERE number = ?",
                (generation.folded, generation.rows, generation.serving, generation.number),
            )
            if generation.serving:
                connection.execute("DELETE FROM generation WHERE number < ?", (generation.number,))
                connection.executemany(
                    "DELETE FROM gone WHERE doc = ?", ((doc,) for doc in forgotten)
                )
                _shorten_tail(connection, generation.folded)

    def drop_abandoned(self, identity: str) -> bool:
        """While one of this identity serves, what others began and did not finish is nobody's. Was
        there any?"""
        every = self.every()
        if not any(each.serving and each.identity == identity for each in every):
            return False
        left = [(each.number,) for each in every if not each.serving and each.identity != identity]
        if left:
            with self._rows.writing() as connection:
                connection.executemany(
                    "DELETE FROM generation WHERE number = ? AND NOT serving", left
                )
        return bool(left)

    def condemn(self, generation: int) -> bool:
        """Its files are damaged: one that serves goes on as far as it can while another one is
        made. Was it still there?"""
        with self._rows.writing() as connection:
            connection.execute(
                "DELETE FROM generation WHERE number = ? AND NOT serving", (generation,)
            )
            gone = connection.changes()
            sql = (
                "UPDATE generation SET identity = json_set(identity, "
                "'$.damaged', 1) WHERE number "
                "= ?"
            )
            connection.execute(sql, (generation,))
            return bool(gone or connection.changes())

    def removed(self) -> list[int]:
        """What was removed and may still be folded somewhere."""
        with self._rows.reading() as connection:
            return removed_docs(connection)

    def behind(self, generation: Generation) -> bool:
        """Is there something to fold into it?"""
        sql = "SELECT EXISTS (SELECT 1 FROM entry WHERE doc > ?) OR EXISTS (SELECT 1 FROM gone)"
        with self._rows.reading() as connection:
            return bool(read_number(connection, sql, (generation.folded,)))

    def lag(self, generation: Generation | None) -> int:
        """How many entries are not folded into it."""
        with self._rows.reading() as connection:
            return read_number(
                connection,
                "SELECT count(*) FROM entry WHERE doc > ?",
                (generation.folded if generation else 0,),
            )

    def done(self, generation: Generation) -> float:
        """The share of all entries that is folded into it."""
        sql = "SELECT count(*) FROM entry WHERE doc <= ?"
        with self._rows.reading() as connection:
            every = read_number(connection, "SELECT count(*) FROM entry")
            return read_number(connection, sql, (generation.folded,)) / max(1, every)


@lru_cache(maxsize=8)
def made_by(identity: str) -> Mapping[str, Any]:
    try:
        return dict(json.loads(identity))
    except (ValueError, TypeError):
        return {}


def embedder_of(identity: str) -> str:
    return str(made_by(identity).get("embedder", ""))


def serving_generation(connection: apsw.Connection) -> Generation | None:
    row = connection.execute("SELECT * FROM generation WHERE serving").fetchone()
    return None if row is None else _generation(row)


def removed_docs(connection: apsw.Connection) -> list[int]:
    """What the folded structures may still hold and must not show."""
    rows: Any = connection.execute("SELECT doc FROM gone")
    return [doc for (doc,) in rows]


def _shorten_tail(connection: apsw.Connection, folded: int) -> None:
    if read_number(connection, "SELECT EXISTS (SELECT 1 FROM entry WHERE doc > ?)", (folded,)):
        connection.execute("DELETE FROM tail WHERE rowid <= ?", (folded,))
    else:
        connection.execute("INSERT INTO tail (tail) VALUES ('delete-all')")


def _generation(row: Any) -> Generation:
    number, identity, folded, rows, serving = row
    return Generation(number, identity, folded, rows, serving=bool(serving))
