"""A data folder or a file of it is removed, moved, replaced or cut off under a running proxy: it is
noticed, told and mended."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import apsw
import pytest

from hotset.config import load
from hotset.errors import HotsetError, StoreMoved
from hotset.nouns.page import Kind
from hotset.nouns.turn import Event
from hotset.store.port import Where
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.mcp.project import Project
from hotset.surfaces.proxy.address import Address
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.store_talk import StoreTalk
from tests.proxy.wire import Answer, post, question
from tests.waiting import ask, wait_until

_CALLS = 4
_PATIENCE = 120.0


@dataclass
class Place:
    """A data folder that something happens to."""

    folder: Path
    aside: Path
    """Where something may be put that is to come back."""

    @property
    def database(self) -> Path:
        return self.folder / "store.db"

    def beside(self, ending: str) -> Path:
        return self.folder / f"store.db{ending}"

    def empty_wal(self) -> None:
        """So that all of it is in `store.db` alone."""
        connection = apsw.Connection(str(self.database))
        connection.set_busy_timeout(60_000)  # the proxy may be writing or reading just then
        connection.execute("SELECT count(*) FROM page").fetchall()
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        connection.close()

    def cut(self, share: float) -> None:
        os.truncate(self.database, int(self.database.stat().st_size * share))

    def put_another_over(self) -> None:
        with SqliteStore.open(self.aside / "other") as other:
            StoreTalk(other, time=7e9).turn("said elsewhere", "and answered")
        shutil.copy(self.database, self.aside / "first.db")
        shutil.copy(self.beside("-wal"), self.aside / "first.db-wal")
        (self.aside / "other" / "store.db").replace(self.database)

    def put_first_back(self) -> None:
        (self.aside / "first.db").replace(self.database)


@dataclass(frozen=True)
class Case:
    happens: Callable[[Place], object]
    mends: Callable[[Place], object] | None = None
    """What brings it back; None where the proxy must do without."""
    keeps_old: bool = True
    """What was kept before is there again."""
    recovers: bool = True
    in_one_file: bool = False


_CASES = {
    "the folder is removed and made anew": Case(
        lambda at: shutil.rmtree(at.folder), lambda at: at.folder.mkdir(mode=0o700), keeps_old=False
    ),
    "the folder is moved away and back": Case(
        lambda at: at.folder.rename(at.aside / "away"),
        lambda at: (at.aside / "away").rename(at.folder),
    ),
    "the folder is moved away and an empty one made": Case(
        lambda at: (at.folder.rename(at.aside / "away"), at.folder.mkdir(mode=0o700)),
        keeps_old=False,
    ),
    "store.db is removed": Case(lambda at: at.database.unlink(), recovers=False),
    "store.db is moved away and back": Case(
        lambda at: at.database.rename(at.aside / "db"),
        lambda at: (at.aside / "db").rename(at.database),
    ),
    "another store.db is put in its place, and the first one put back": Case(
        Place.put_another_over, Place.put_first_back
    ),
    "store.db is cut in half": Case(lambda at: at.cut(0.5), recovers=False, in_one_file=True),
    "store.db is emptied": Case(lambda at: at.cut(0), recovers=False, in_one_file=True),
    "the WAL is removed": Case(lambda at: at.beside("-wal").unlink()),
    "the index of the WAL is removed": Case(lambda at: at.beside("-shm").unlink()),
    "the WAL and its index are removed": Case(
        lambda at: (at.beside("-wal").unlink(), at.beside("-shm").unlink())
    ),
    "the WAL is emptied": Case(lambda at: os.truncate(at.beside("-wal"), 0), recovers=False),
}


@dataclass
class Seen:
    before: list[str] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    told: str = ""
    kept_after: str = ""
    found: set[str] = field(default_factory=set)
    damages: list[str] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    """Said after it happened, with a reply that claims to be kept."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Seen]]]:
    """All at once: most of the time each of them waits until the proxy looks again."""
    with (
        ScriptedUpstream(lambda _: Say("an answer")) as upstream,
        ThreadPoolExecutor(len(_CASES)) as pool,
    ):
        yield {
            name: pool.submit(_watch, case, tmp_path_factory.mktemp("moved"), upstream)
            for name, case in _CASES.items()
        }


def _watch(case: Case, place: Path, upstream: ScriptedUpstream) -> Seen:
    at = Place(place / "data", place / "aside")
    at.aside.mkdir(mode=0o700)
    seen = Seen()
    with LocalProxy(at.folder, anthropic_url=upstream.anthropic_url) as proxy:
        for number in range(_CALLS):
            seen.before.append(f"before {number} {place.name}")
            _ask(proxy.address, seen.before[-1])
        _settle(proxy.address)
        if case.in_one_file:
            at.empty_wal()
            assert _status(proxy.address) == "ok"
        case.happens(at)
        for number in range(_CALLS):
            said = f"meanwhile {number} {place.name}"
            seen.answers.append(answer := _ask(proxy.address, said))
            if (
                answer.header("x-hotset-degraded") is None
                and answer.header("x-hotset-session") is not None
            ):
                seen.acknowledged.append(said)
        wait_until(lambda: _status(proxy.address) != "ok" or bool(seen.acknowledged), _PATIENCE)
        seen.told = _status(proxy.address)
        if case.mends is not None:
            case.mends(at)
        if case.recovers:
            wait_until(lambda: _status(proxy.address) == "ok", _PATIENCE)
            seen.kept_after = f"after {place.name}"
            answer = _ask(proxy.address, seen.kept_after)
            assert answer.header("x-hotset-degraded") is None, answer.headers
            _settle(proxy.address)
    try:
        with SqliteStore.open_to_look(at.folder) as store:
            prompts = store.pages(Where(kinds=frozenset({Kind.PROMPT})))
            seen.found = {store.content(page.digest).decode() for page in prompts}
            seen.damages = [each.why for each in store.verify()]
    except HotsetError as error:
        seen.damages = [str(error)]
    return seen


def _ask(address: Address, said: str) -> Answer:
    return post(address, "anthropic", question("anthropic", said))


def _status(address: Address) -> str:
    status = ask(address)
    return str(status["store"]) if status is not None else ""


def _settle(address: Address) -> None:
    wait_until(lambda: (status := ask(address)) is not None and not status["keeping"], _PATIENCE)


@pytest.mark.row("V1")
@pytest.mark.parametrize("name", _CASES)
@pytest.mark.slow
def test_it_is_told_calls_go_through_and_it_keeps_again_when_it_can(
    seen: dict[str, Future[Seen]], name: str
):
    case, saw = _CASES[name], seen[name].result(_PATIENCE * 4)

    assert [answer.status for answer in saw.answers] == [200] * _CALLS
    assert all(b"an answer" in answer.body for answer in saw.answers)
    assert saw.acknowledged == [], "it said that it kept what went into a file that is gone"
    assert saw.told not in ("", "ok")
    assert any(answer.header("x-hotset-degraded") for answer in saw.answers)
    if case.recovers:
        assert saw.damages == []
        assert saw.kept_after in saw.found
        assert not case.keeps_old or {*saw.before} <= saw.found
    else:
        assert saw.damages, "it is said to be whole"


def test_whoever_reads_or_serves_agents_notices_it_too_and_opens_the_store_that_is_there_now(
    tmp_path: Path,
):
    first, second = tmp_path / "data", tmp_path / "other"
    for folder, said in ((first, "said in the first"), (second, "said in the second")):
        with SqliteStore.open(folder) as store:
            StoreTalk(store).turn(said, "hi")
    config = load(
        data=str(first),
        project=str(tmp_path),
        environ={"HOME": str(tmp_path), "HOTSET_CONFIG": "none.toml"},
    )
    with Project(config) as project, SqliteStore.open(first) as reading:
        assert [session.title for session in project.store.sessions()] == ["said in the first"]
        list(reading.sessions())
        first.rename(tmp_path / "away")
        for look in (
            reading.census,
            reading.version,
            lambda: list(reading.sessions()),
            lambda: list(reading.dump()),
        ):
            with pytest.raises(StoreMoved):
                look()
        with pytest.raises(StoreMoved):
            reading.keep(Event("nowhere", 1.0)).result(120)
        second.rename(first)
        assert [session.title for session in project.store.sessions()] == ["said in the second"]
