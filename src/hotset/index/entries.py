"""The entries of an index: add, remove, read, and find entries not folded yet by SQLite's full
text."""

from __future__ import annotations

import json
import math
import threading
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import apsw

from hotset.files.lru import Lru
from hotset.index.analysis import split_identifiers
from hotset.index.database import EntryRows, from_column, read_number, to_column
from hotset.index.filters import SORTS, NumberFilter, path_matcher
from hotset.index.full_text import words_of_names
from hotset.index.port import Watermark
from hotset.nouns.search import Entry, EntryId, Filter, Sort

_MOST_PATTERNS = 32
_MOST_PATH_BYTES = 32 << 20  # 150,000 paths; those of a larger index are read for each new pattern
_PATH_BYTES = 150  # of a path, beside its text
_MOST_NAMES = 5000  # remembered with their numbers: half a MB
_FAR = 2**62  # beyond every turn, and within what every engine counts
_COLUMNS = (
    "id, whole, sort, kind, title, session, agent, turn, time, path, sealing, text, first, last"
)
_INSERT = f"INSERT INTO entry ({_COLUMNS}) VALUES ({', '.join('?' * 14)})"
_READ = (
    "SELECT e.doc, e.id, w.text, e.sort, e.text, k.text, e.title, s.text, a.text, e.turn, "
    "e.time, p.text, e.first, e.last"
    " FROM entry e JOIN name w ON w.number = e.whole JOIN name k ON k.number = e.kind"
    " JOIN name s ON s.number = e.session JOIN name a ON a.number = e.agent JOIN path p ON "
    "p.number = e.path"
)


@dataclass(frozen=True, slots=True)
class NumberedEntry:
    """An entry with its number and the numbers of its fields, as the folded structures need it."""

    doc: int
    entry: Entry
    sort: int
    kind: int
    session: int
    agent: int
    path: int


class Entries:
    """Thread-safe."""

    def __init__(self, rows: EntryRows, sealing: int) -> None:
        self._rows = rows
        self._sealing = sealing
        self._names = _Names("name")
        self._paths = _Names("path")
        self._every_path: Lru[str, tuple[tuple[int, str], ...]] = Lru(
            "paths of the index", weight=_MOST_PATH_BYTES
        )
        """One entry: all paths by their numbers."""
        self._fitting: Lru[str, tuple[int, frozenset[int]]] = Lru(
            "path patterns", count=_MOST_PATTERNS
        )
        self._path_lock = threading.Lock()
        self._name_words: dict[int, frozenset[str]] = {}
        self._renewals = rows.renewals

    def add(self, entries: Iterable[Entry], watermark: Watermark | None = None) -> None:
        prepared = _prepare_entries(entries)
        with self._writing() as connection:
            self._put(connection, prepared)
            self._mark(connection, watermark)

    def remove(self, wholes: Iterable[str], watermark: Watermark | None = None) -> None:
        with self._rows.writing() as connection:
            for whole in wholes:
                _drop(connection, whole, frozenset())
            self._mark(connection, watermark)

    def replace(
        self, whole: str, entries: Iterable[Entry], watermark: Watermark | None = None
    ) -> None:
        prepared = _prepare_entries(entries)
        with self._writing() as connection:
            _drop(connection, whole, frozenset(each.entry.id for each in prepared))
            self._put(connection, prepared)
            self._mark(connection, watermark)

    def by_id(self, ids: Sequence[EntryId]) -> list[tuple[int, Entry]]:
        """The existing ones with their numbers, in the order requested."""
        with self._rows.reading() as connection:
            rows = [
                connection.execute(f"{_READ} WHERE e.id = ?", (to_column(id),)).fetchone()
                for id in ids
            ]
        return [_entry(row) for row in rows if row is not None]

    def ids_named(self, names: Sequence[str], most: int) -> list[EntryId]:
        """The entries of these ids; for the name of a whole, its first `most` entries."""
        own = "SELECT id FROM entry WHERE id = ?"
        inner = (
            "SELECT id FROM entry WHERE whole = (SELECT number FROM name WHERE text = ?) "
            "ORDER BY doc LIMIT ?"
        )
        found: list[Any] = []
        with self._rows.reading() as connection:
            for name in map(to_column, names):
                found += (
                    connection.execute(own, (name,)).fetchall()
                    or connection.execute(inner, (name, most)).fetchall()
                )
        return [EntryId(from_column(id)) for (id,) in found]

    def wholes(self, sort: Sort) -> list[str]:
        sql = (
            "SELECT text FROM name WHERE number IN (SELECT whole FROM entry INDEXED BY "
            "entry_whole WHERE sort = ?)"
        )
        with self._rows.reading() as connection:
            return [from_column(text) for (text,) in connection.execute(sql, (SORTS.index(sort),))]

    def watermarks(self) -> dict[str, int]:
        with self._rows.reading() as connection:
            rows: Any = connection.execute(
                "SELECT name, number FROM watermark WHERE sealing = ?", (self._sealing,)
            )
            return {from_column(name): reached for name, reached in rows}

    def count(self) -> int:
        with self._rows.reading() as connection:
            return read_number(connection, "SELECT count(*) FROM entry")

    def outdated(self) -> int:
        with self._rows.reading() as connection:
            if not read_number(
                connection,
                "SELECT EXISTS (SELECT 1 FROM watermark WHERE sealing < ?)",
                (self._sealing,),
            ):
                return 0
            return read_number(
                connection, "SELECT count(*) FROM entry WHERE sealing < ?", (self._sealing,)
            )

    def drop_outdated(self) -> None:
        """Drop entries sealed by older rules, once every source has caught up again."""
        now = {"now": self._sealing}
        with self._rows.reading() as connection:
            if not read_number(
                connection, "SELECT EXISTS (SELECT 1 FROM watermark WHERE sealing < :now)", now
            ):
                return
        with self._rows.writing() as connection:
            if not read_number(connection, _BEHIND, now):
                rows: Any = connection.execute(
                    "SELECT doc FROM entry WHERE sealing < :now", now
                ).fetchall()
                _forget(connection, [doc for (doc,) in rows])
                connection.execute("DELETE FROM watermark WHERE sealing < :now", now)

    def beyond(self, folded: int, limit: int) -> list[NumberedEntry]:
        """The next entries to fold, in their order."""
        numbers = "SELECT e.doc, e.sort, e.kind, e.session, e.agent, e.path FROM entry e"
        where = " WHERE e.doc > ? ORDER BY e.doc LIMIT ?"
        with self._rows.reading() as connection:
            known: list[Any] = connection.execute(numbers + where, (folded, limit)).fetchall()
            entries = [_entry(row)[1] for row in connection.execute(_READ + where, (folded, limit))]
        return [
            NumberedEntry(doc, entry, *rest)
            for (doc, *rest), entry in zip(known, entries, strict=True)
        ]

    def numbers(self, connection: apsw.Connection, only: Filter) -> NumberFilter:
        """The filter in the index's own numbers."""
        return NumberFilter(
            sorts=frozenset(SORTS.index(sort) for sort in only.sorts)
            if 0 < len(only.sorts) < len(SORTS)
            else None,
            kinds=_known(connection, only.kinds),
            sessions=_known(connection, only.sessions),
            agents=_known(connection, only.agents),
            paths=self._on_path(connection, only.path) if only.path else None,
            turns=None if only.turns is None else (_near(only.turns[0]), _near(only.turns[1])),
            since=only.since,
            until=only.until,
        )

    def names(
        self, connection: apsw.Connection, paths: Collection[int]
    ) -> dict[int, frozenset[str]]:
        """The words of each path's last part."""
        self._forget_what_was_renewed()
        known = self._name_words
        if new := [path for path in paths if path not in known]:
            rows = list(_rows_in(connection, "SELECT number, text FROM path WHERE number", new))
            words = words_of_names([from_column(text) for _, text in rows])
            known.update(zip((path for path, _ in rows), words, strict=True))
        if len(known) > _MOST_NAMES:
            self._name_words = {}
        return {path: known[path] for path in paths if path in known}

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        self._forget_what_was_renewed()
        try:
            with self._rows.writing() as connection:
                yield connection
        except BaseException:  # numbers that were given out are taken back with the rest
            self._names.forget()
            self._paths.forget()
            raise

    def _forget_what_was_renewed(self) -> None:
        if self._renewals != self._rows.renewals:
            with self._path_lock:
                self._renewals = self._rows.renewals
                self._every_path.clear()
                self._fitting.clear()
                self._name_words = {}
            self._names.forget()
            self._paths.forget()

    def _put(self, connection: apsw.Connection, prepared: Sequence[_PreparedEntry]) -> None:
        for each in prepared:
            row = self._row(connection, each.entry)
            there: Any = connection.execute(
                f"SELECT doc, {_COLUMNS} FROM entry WHERE id = ?", row[:1]
            ).fetchone()
            if there is not None and there[1:-2] == row[:-2]:
                if there[-2:] != row[-2:]:
                    connection.execute(
                        "UPDATE entry SET first = ?, last = ? WHERE doc = ?", (*row[-2:], there[0])
                    )
                continue
            if there is not None:
                _forget(connection, [there[0]])
            connection.execute(_INSERT, row)
            doc = connection.last_insert_rowid()
            connection.execute(
                "INSERT INTO tail (rowid, title, body) VALUES (?, ?, ?)",
                (doc, each.title, each.text),
            )

    def _row(self, connection: apsw.Connection, entry: Entry) -> tuple[Any, ...]:
        name, path = (
            partial(self._names.number, connection),
            partial(self._paths.number, connection),
        )
        return (
            to_column(entry.id),
            name(entry.whole),
            SORTS.index(entry.sort),
            name(entry.kind),
            to_column(entry.title),
            name(entry.session),
            name(entry.agent),
            _near(entry.turn),
            0.0 if math.isnan(entry.time) else float(entry.time),
            path(entry.path),
            self._sealing,
            to_column(entry.text),
            *entry.lines,
        )

    def _mark(self, connection: apsw.Connection, watermark: Watermark | None) -> None:
        if watermark is not None:
            connection.execute(
                (
                    "INSERT INTO watermark VALUES (?, ?, ?) ON CONFLICT (name, sealing) DO UPDATE "
                    "SET number = excluded.number"
                ),
                (to_column(watermark.name), self._sealing, watermark.number),
            )

    def _on_path(self, connection: apsw.Connection, wanted: str) -> frozenset[int]:
        """Remembered for the last patterns: only paths that are new are matched again."""
        self._forget_what_was_renewed()
        with self._path_lock:
            paths = self._paths_of(connection)
            seen, fitting = self._fitting.get(wanted) or (0, frozenset())
            if new := paths[bisect_right(paths, seen, key=itemgetter(0)) :]:
                fits = path_matcher(wanted)
                fitting |= {known for known, path in new if fits(path)}
                self._fitting.put(wanted, (new[-1][0], fitting))
            return fitting

    def _paths_of(self, connection: apsw.Connection) -> tuple[tuple[int, str], ...]:
        """All paths by their numbers; only new ones are read."""
        held = self._every_path.get("") or ()
        last = held[-1][0] if held else 0
        rows: Any = connection.execute(
            "SELECT number, text FROM path WHERE number > ? ORDER BY number", (last,)
        )
        if new := tuple((number, from_column(path)) for number, path in rows):
            held += new
            weight = sum(_PATH_BYTES + len(path) for _, path in held)
            self._every_path.put("", held, weight)
        return held


def by_number(connection: apsw.Connection, docs: Sequence[int]) -> dict[int, Entry]:
    return dict(_entry(row) for row in _rows_in(connection, f"{_READ} WHERE e.doc", docs))


def still_there(connection: apsw.Connection, docs: Sequence[int]) -> set[int]:
    """Those of them that are."""
    return {doc for (doc,) in _rows_in(connection, "SELECT doc FROM entry WHERE doc", docs)}


def paths_of(connection: apsw.Connection, docs: Sequence[int]) -> dict[int, int]:
    """The number of each one's path, of those that are there."""
    return dict(_rows_in(connection, "SELECT doc, path FROM entry WHERE doc", docs))


def tail_by_words(
    connection: apsw.Connection, folded: int, match: str, only: NumberFilter, limit: int
) -> list[tuple[int, Entry]]:
    """Entries beyond `folded` that fit; `match` is an expression of FTS5, and empty where just the
    last ones are wanted."""
    conditions, given = _conditions(only)
    sql = " ".join(
        (
            _READ,
            "JOIN tail t ON t.rowid = e.doc WHERE t.tail MATCH ? AND e.doc > ?"
            if match
            else "WHERE e.doc > ?",
            *(f"AND {condition}" for condition in conditions),
            f"ORDER BY {'t.rank' if match else 'e.doc DESC'} LIMIT ?",
        )
    )
    return [
        _entry(row)
        for row in connection.execute(sql, (*([match] if match else []), folded, *given, limit))
    ]


def tail_numbers(
    connection: apsw.Connection, folded: int, only: NumberFilter, limit: int
) -> dict[int, Sort]:
    """The last entries beyond `folded` that fit, by number."""
    conditions, given = _conditions(only)
    where = " AND ".join(("e.doc > ?", *conditions))
    rows: Any = connection.execute(
        (f"SELECT e.doc, e.sort FROM entry e WHERE {where} ORDER BY e.doc DESC LIMIT ?"),
        (folded, *given, limit),
    )
    return {doc: SORTS[sort] for doc, sort in rows}


_BEHIND = (
    "SELECT count(*) FROM watermark old WHERE old.sealing < :now AND old.number > coalesce("
    "(SELECT number FROM watermark new WHERE new.name = old.name AND new.sealing = :now), 0)"
)


class _Names:
    """Numbers for words that come again and again."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._known: dict[str, int] = {}

    def number(self, connection: apsw.Connection, text: str) -> int:
        if (known := self._known.get(text)) is not None:
            return known
        row: Any = connection.execute(
            f"SELECT number FROM {self._table} WHERE text = ?", (to_column(text),)
        ).fetchone()
        if row is None:
            connection.execute((f"INSERT INTO {self._table} (text) VALUES (?)"), (to_column(text),))
        given: int = connection.last_insert_rowid() if row is None else row[0]
        if len(self._known) >= _MOST_NAMES:
            self._known.clear()
        self._known[text] = given
        return given

    def forget(self) -> None:
        self._known.clear()


@dataclass(frozen=True, slots=True)
class _PreparedEntry:
    """An entry with what can be worked out before the write lock is taken: its words, apart."""

    entry: Entry
    title: str
    text: str


def _prepare_entries(entries: Iterable[Entry]) -> list[_PreparedEntry]:
    last = list({entry.id: entry for entry in entries}.values())
    titles, texts = (
        split_identifiers([entry.title for entry in last]),
        split_identifiers([entry.text for entry in last]),
    )
    return [_PreparedEntry(*each) for each in zip(last, titles, texts, strict=True)]


def _drop(connection: apsw.Connection, whole: str, but: frozenset[EntryId]) -> None:
    sql = "SELECT doc, id FROM entry WHERE whole = (SELECT number FROM name WHERE text = ?)"
    rows: Any = connection.execute(sql, (to_column(whole),)).fetchall()
    _forget(connection, [doc for doc, id in rows if from_column(id) not in but])


def _forget(connection: apsw.Connection, docs: Sequence[int]) -> None:
    for sql in (
        "DELETE FROM entry WHERE doc = ?",
        "DELETE FROM tail WHERE rowid = ?",
        "INSERT OR IGNORE INTO gone VALUES (?)",
    ):
        connection.executemany(sql, ((doc,) for doc in docs))


def _known(connection: apsw.Connection, names: frozenset[str]) -> frozenset[int] | None:
    if not names:
        return None
    rows: Any = (
        connection.execute("SELECT number FROM name WHERE text = ?", (to_column(name),)).fetchone()
        for name in names
    )
    return frozenset(row[0] for row in rows if row is not None)


def _near(turn: int) -> int:
    return max(-_FAR, min(_FAR, turn))


def _conditions(only: NumberFilter) -> tuple[list[str], list[Any]]:
    conditions: list[str] = []
    given: list[Any] = []
    for name, numbers in only.sets:
        conditions.append(f"e.{name} IN (SELECT value FROM json_each(?))")
        given.append(json.dumps(sorted(numbers)))
    for condition, value in (("e.time >= ?", only.since), ("e.time < ?", only.until)):
        if value is not None:
            conditions.append(condition)
            given.append(value)
    if only.turns is not None:
        conditions.append("e.turn BETWEEN ? AND ?")
        given.extend(only.turns)
    return conditions, given


def _rows_in(connection: apsw.Connection, sql: str, numbers: Sequence[int]) -> Iterable[Any]:
    """The rows whose column, with which the statement ends, is one of these numbers."""
    given = (json.dumps(list(numbers)),)
    return connection.execute(f"{sql} IN (SELECT value FROM json_each(?))", given)


def _entry(row: Any) -> tuple[int, Entry]:
    doc, id, whole, sort, text, kind, title, session, agent, turn, time, path, first, last = row
    entry = Entry(
        EntryId(from_column(id)),
        from_column(whole),
        SORTS[sort],
        from_column(text),
        from_column(kind),
        from_column(title),
        from_column(session),
        from_column(agent),
        turn,
        time,
        from_column(path),
        (first, last),
    )
    return doc, entry


def embedded_text(entry: Entry) -> str:
    """What an entry's vector is made from."""
    return f"{entry.title}\n{entry.text}" if entry.title else entry.text
