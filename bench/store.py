"""How long it takes until a turn is safe on disk, against the least that this disk can do.

Every method takes its turn in the same loop, so that a noisy machine is equally noisy for all of
them.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

import apsw

from bench.results import quantile, tell
from hotset.nouns.deposit import PageAdded, RequestReceived
from hotset.nouns.message import Message, Part
from hotset.nouns.page import Kind, Role, digest
from hotset.store.sqlite import SqliteStore
from hotset.testing.store_talk import message, request, text_message

_ROUNDS = 300
_TOGETHER = 64
_BATCHES = 20
_LARGE_STORE = 200 * 1024 * 1024
_NOTE = 50_000
_REOPENINGS = 20

T = TypeVar("T")
Times = dict[str, list[float]]
Metrics = dict[str, dict[str, float]]


def main() -> None:
    with _scratch() as folder:
        sets = {
            "small turn": _turns(
                folder / "small", [], lambda number: text_message(Role.USER, _text(number, 200))
            ),
            "50 KB tool result": _turns(folder / "result", [], _tool_result),
            "300 KB resend, one new message": _turns(
                folder / "resend", _history(), lambda n: text_message(Role.USER, _text(n, 200))
            ),
            f"{_TOGETHER} waiting": _waiting(folder / "waiting"),
            "reopen 200 MB": _reopening(folder / "large"),
        }
    tell("store", sets)


def _turns(folder: Path, history: list[Message], new: Callable[[int], Message]) -> Metrics:
    """One request a round; the conversation starts again now and then, so that only `history` makes
    it long."""
    times: Times = {"hotset": [], "bare insert": [], "fdatasync": []}
    with (
        SqliteStore.open(folder / "store") as store,
        _bare(folder) as insert,
        _file(folder) as append,
    ):
        for number in range(_ROUNDS):
            key = f"session {number // 20}"
            talk = [*history]
            for each in range(number // 20 * 20, number + 1):
                talk += [text_message(Role.ASSISTANT, f"step {each}"), new(each)]
            asked = RequestReceived(request(*talk), float(number), "bench", key)
            fresh = talk[-1].raw + b"".join(part.content for part in talk[-1].parts)
            _timed(times["hotset"], lambda asked=asked: store.keep(asked).result())
            _timed(times["bare insert"], lambda fresh=fresh: insert(fresh))
            _timed(times["fdatasync"], lambda fresh=fresh: append(fresh))
    return {method: _quantiles(taken) for method, taken in times.items()}


def _waiting(folder: Path) -> Metrics:
    """Deposits that arrive together share a commit."""
    times: Times = {"hotset": [], "bare insert": []}
    with SqliteStore.open(folder / "store") as store, _bare(folder) as insert:
        session = (
            store.keep(RequestReceived(request(text_message(Role.USER, "hello")), 0.0, "bench"))
            .result()
            .turn
        )
        assert session is not None
        for batch in range(_BATCHES):
            notes = [
                PageAdded(
                    session.session,
                    "bench",
                    Kind.FINDING,
                    _text(batch * _TOGETHER + number, 1000).encode(),
                    float(batch),
                )
                for number in range(_TOGETHER)
            ]

            def keep_all(notes: list[PageAdded] = notes) -> None:
                for future in [store.keep(note) for note in notes]:
                    future.result()

            def insert_each(notes: list[PageAdded] = notes) -> None:
                for note in notes:
                    insert(note.content)

            _timed(times["hotset"], keep_all)
            _timed(times["bare insert"], insert_each)
    return {
        method: {"per_second": round(_TOGETHER / statistics.median(taken)), **_quantiles(taken)}
        for method, taken in times.items()
    }


def _reopening(folder: Path) -> Metrics:
    """A store that was left in the middle of its work: its WAL is still full."""
    crashed = folder / "crashed"
    here, there = multiprocessing.Pipe()
    writer = multiprocessing.get_context("fork").Process(
        target=_write_and_die, args=(crashed, there)
    )
    writer.start()
    page = here.recv()
    writer.join()
    wal = (crashed / "store.db-wal").read_bytes()
    taken: list[float] = []
    for _ in range(_REOPENINGS):
        (crashed / "store.db-wal").write_bytes(wal)

        def reopen() -> SqliteStore:
            again = SqliteStore.open(crashed)
            again.content(again.page(page).digest)
            return again

        _timed(taken, reopen).close()
    return {"hotset": _quantiles(taken)}


def _write_and_die(folder: Path, told: Connection) -> None:
    """Fills a store and ends without closing it, as kill -9 would."""
    rng = random.Random(1)
    store = SqliteStore.open(folder)
    turn = (
        store.keep(RequestReceived(request(text_message(Role.USER, "hello")), 0.0, "bench"))
        .result()
        .turn
    )
    assert turn is not None
    waiting = []
    for number in range(_LARGE_STORE // _NOTE):
        waiting.append(
            store.keep(
                PageAdded(turn.session, "bench", Kind.FILE, rng.randbytes(_NOTE), float(number))
            )
        )
        if len(waiting) == _TOGETHER:
            page = [future.result() for future in waiting][-1].pages[0]
            waiting.clear()
    told.send(page)
    os._exit(1)


def _history() -> list[Message]:
    roles = (Role.USER, Role.ASSISTANT)
    return [text_message(roles[number % 2], _text(-number - 1, 5000)) for number in range(60)]


def _tool_result(number: int) -> Message:
    return message(
        Role.TOOL,
        Part(Kind.TOOL_RESULT, _text(number, 50_000).encode(), tool="read", call=f"call-{number}"),
    )


def _text(seed: int, size: int) -> str:
    """Text that compresses about as well as logs and code do."""
    rng = random.Random(seed)
    words = " ".join(rng.choice(_WORDS) + str(rng.randrange(50)) for _ in range(size // 7 + 1))
    return words[:size]


_WORDS = [digest(str(number).encode())[:5] for number in range(300)]


@contextmanager
def _bare(folder: Path) -> Iterator[Callable[[bytes], object]]:
    """The floor: one row, one commit, just as durable."""
    folder.mkdir(exist_ok=True)
    database = apsw.Connection(str(folder / "bare.db"))
    for pragma in (
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b)",
    ):
        database.execute(pragma).fetchall()
    yield lambda content: database.execute("INSERT INTO t (b) VALUES (?)", (content,))
    database.close()


@contextmanager
def _file(folder: Path) -> Iterator[Callable[[bytes], object]]:
    """The floor below the floor: the same bytes at the end of a file."""
    file = os.open(folder / "bytes", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def append(content: bytes) -> None:
        os.write(file, content)
        os.fdatasync(file)

    yield append
    os.close(file)


@contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="hotset-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _timed(times: list[float], act: Callable[[], T]) -> T:
    began = time.perf_counter()
    result = act()
    times.append(time.perf_counter() - began)
    return result


def _quantiles(taken: list[float]) -> dict[str, float]:
    return {f"p{share}_ms": round(quantile(taken, share / 100) * 1000, 3) for share in (50, 95)}


if __name__ == "__main__":
    main()
