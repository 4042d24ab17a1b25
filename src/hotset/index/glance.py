"""How an index is, told from its database alone: nothing is made, mended or loaded, and nobody is
kept from working."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from hotset.errors import StoreFailed
from hotset.index.generations import FOLDERS, embedder_of, serving_generation
from hotset.index.rows import (
    DATABASE,
    FORMAT,
    from_column,
    read_number,
    translate_errors,
    writer_lock,
)
from hotset.store.connection import Tuning, close_connection, connect

_TUNING = Tuning(ballast_bytes=0, patience=1.0)


@dataclass(frozen=True, slots=True)
class IndexSummary:
    entries: int = 0
    waiting: int = 0
    """Of these, the ones that are found by their words already and not yet folded."""
    embedder: str = ""
    """The one that made the vectors; empty where there are none."""
    writer: int | None = None
    """The process that folds, if any does."""
    building: bool = False
    """A new generation is made beside the one that serves."""
    watermarks: Mapping[str, int] = field(default_factory=dict)
    """How far each source was followed."""
    trouble: str = ""


def summarise_index(folder: Path, sealing: int) -> IndexSummary | None:
    """None where there is no index. `sealing` is the version of the rules by which texts are sealed
    now."""
    database = folder / DATABASE
    if not database.exists():
        return None
    writer = writer_lock(folder).holder()
    try:
        with _looking_into(database) as connection:
            return _read(connection, sealing, writer)
    except StoreFailed as error:
        return IndexSummary(writer=writer, trouble=str(error))


@dataclass(frozen=True, slots=True)
class SettledIndex:
    """An index in which nothing waits."""

    watermark: int
    """How far the source was followed."""
    made_by: str
    """Rules and engines, as far as the rows tell."""


def read_settled(folder: Path, source: str) -> SettledIndex | None:
    """None where anything waits to be folded, sealed again or made anew, where rows cannot be read,
    or a folder is missing."""
    database = folder / DATABASE
    if not database.exists():
        return None
    try:
        with _looking_into(database) as connection:
            generation = serving_generation(connection)
            if generation is None or any(read_number(connection, sql) for sql in _UNREST):
                return None
            if read_number(
                connection,
                "SELECT EXISTS (SELECT 1 FROM entry WHERE doc > ?)",
                (generation.folded,),
            ):
                return None
            reached: Any = connection.execute(
                "SELECT number, sealing FROM watermark WHERE name = ?", (source,)
            ).fetchall()
            written = read_number(connection, "PRAGMA user_version")
    except StoreFailed:
        return None
    if (
        written != FORMAT
        or len(reached) != 1
        or not (folder / f"{FOLDERS}{generation.number}").is_dir()
    ):
        return None
    (watermark, sealing), *_ = reached
    return SettledIndex(watermark, f"{generation.identity} {sealing}")


_UNREST = (
    "SELECT EXISTS (SELECT 1 FROM generation WHERE NOT serving)",
    "SELECT EXISTS (SELECT 1 FROM gone)",
    "SELECT count(DISTINCT sealing) > 1 FROM watermark",
)


@contextmanager
def _looking_into(database: Path) -> Iterator[apsw.Connection]:
    with translate_errors(database):
        connection = connect(database, _TUNING, reading=True)
        try:
            with connection:  # one state of the rows for all questions
                yield connection
        finally:
            close_connection(connection)


def _read(connection: apsw.Connection, sealing: int, writer: int | None) -> IndexSummary:
    generation = serving_generation(connection)
    rows: Any = connection.execute(
        "SELECT name, number FROM watermark WHERE sealing = ?", (sealing,)
    )
    folded = generation.folded if generation else 0
    return IndexSummary(
        entries=read_number(connection, "SELECT count(*) FROM entry"),
        waiting=read_number(connection, "SELECT count(*) FROM entry WHERE doc > ?", (folded,)),
        embedder=embedder_of(generation.identity) if generation else "",
        writer=writer,
        building=bool(
            read_number(connection, "SELECT EXISTS (SELECT 1 FROM generation WHERE NOT serving)")
        ),
        watermarks={from_column(name): reached for name, reached in rows},
    )
