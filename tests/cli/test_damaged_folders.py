"""Data folders as crashes, disks and people leave them: each is told or is whole, is not made
worse, and can be repaired."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from hotset.store.sqlite import SqliteStore
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.campaign import CAMPAIGN
from tests.cli.conftest import Desk, desk_in, fill, turn
from tests.proxy.wire import post, question
from tests.waiting import ask

_PAGE = 4096
_DB, _WAL, _SEAL = "store.db", "store.db-wal", "store.seal"


@dataclass(frozen=True)
class Bases:
    """Folders to be damaged."""

    closed: Path
    """Left as one file."""
    crashed: Path
    """A part of it in the database, the rest in the WAL."""
    older: Path
    """A backup of `closed`."""
    gone_on: Path
    """The same backup, which went another way for as many commits."""
    other: Path
    """Another project's, crashed as well."""


@dataclass(frozen=True)
class Case:
    damage: Callable[[Path, Bases], object]
    crashed: bool = False
    whole: bool = False
    """It does no harm."""
    deep: bool = False
    """Only a look at every row finds it."""
    saves: bool = True
    """A repair finds something to save."""
    proxied: bool = False
    """Also tried with a proxy each time, not only in the campaign."""


def _write(name: str, at: int, content: bytes) -> Callable[[Path, Bases], object]:
    def act(folder: Path, _: Bases) -> None:
        with (folder / name).open("r+b") as file:
            file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
            file.write(content)

    return act


def _cut(
    name: str, share: float = 0, *, size: int | None = None, less: int = 0
) -> Callable[[Path, Bases], object]:
    def act(folder: Path, _: Bases) -> None:
        whole = (folder / name).stat().st_size
        os.truncate(
            folder / name,
            size if size is not None else whole - less if less else int(whole * share),
        )

    return act


def _remove(*names: str) -> Callable[[Path, Bases], object]:
    return lambda folder, _: [(folder / name).unlink() for name in names]


def _replaced(name: str, content: bytes) -> Callable[[Path, Bases], object]:
    return lambda folder, _: ((folder / name).write_bytes(content), (folder / name).chmod(0o600))


def _copied(name: str, base: str) -> Callable[[Path, Bases], object]:
    return lambda folder, bases: shutil.copy(getattr(bases, base) / name, folder / name)


def _flip(name: str, share: float) -> Callable[[Path, Bases], object]:
    def act(folder: Path, _: Bases) -> None:
        content = bytearray((folder / name).read_bytes())
        content[int(len(content) * share)] ^= 0x10
        (folder / name).write_bytes(content)

    return act


def _zero_pages(every: int) -> Callable[[Path, Bases], object]:
    def act(folder: Path, _: Bases) -> None:
        content = bytearray((folder / _DB).read_bytes())
        for number in range(every, len(content) // _PAGE, every):
            content[number * _PAGE : (number + 1) * _PAGE] = bytes(_PAGE)
        (folder / _DB).write_bytes(content)

    return act


def _sql(statement: str) -> Callable[[Path, Bases], object]:
    def act(folder: Path, _: Bases) -> None:
        with closing(apsw.Connection(str(folder / _DB))) as connection:
            connection.execute(statement)

    return act


def _instead(make: Callable[[Path], object]) -> Callable[[Path, Bases], object]:
    def act(folder: Path, _: Bases) -> None:
        (folder / _DB).unlink()
        make(folder / _DB)

    return act


def _of_another_program(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("CREATE TABLE bookmarks (url)")


_NOISE = random.Random(1).randbytes(60_000)

_CASES = {
    "store.db is missing": Case(_remove(_DB), saves=False, proxied=True),
    "store.db is empty": Case(_cut(_DB), saves=False, proxied=True),
    "store.db has one byte": Case(_cut(_DB, size=1), saves=False),
    "store.db has only a header": Case(_cut(_DB, size=100), saves=False),
    "store.db has only its first page": Case(_cut(_DB, size=_PAGE), saves=False),
    "store.db is cut in half": Case(_cut(_DB, 0.5), proxied=True),
    "store.db is cut within a page": Case(_cut(_DB, size=21 * _PAGE + 777)),
    "store.db lacks its last page": Case(_cut(_DB, less=_PAGE)),
    "store.db lacks its last byte": Case(_cut(_DB, less=1)),
    "the header is zeroed": Case(_write(_DB, 0, bytes(100))),
    "the first page is noise": Case(_write(_DB, 0, _NOISE[:_PAGE])),
    "the magic is wrong": Case(_write(_DB, 0, b"SQLite format 4\0")),
    "the page size is wrong": Case(_write(_DB, 16, b"\x03\x07")),
    "the schema is garbled": Case(_write(_DB, 100, _NOISE[:2000])),
    "an older backup is in its place": Case(_copied(_DB, "older"), proxied=True),
    "a copy that went on by itself is in its place": Case(_copied(_DB, "gone_on")),
    "another project's store is in its place": Case(_copied(_DB, "other"), proxied=True),
    "a text is in its place": Case(_replaced(_DB, b"Dear diary, " * 1000), saves=False),
    "noise is in its place": Case(_replaced(_DB, _NOISE), saves=False),
    "another program's database is in its place": Case(_instead(_of_another_program), saves=False),
    "a folder is in its place": Case(_instead(Path.mkdir), saves=False),
    "a pipe is in its place": Case(_instead(os.mkfifo), saves=False),
    "a dangling link is in its place": Case(
        _instead(lambda path: path.symlink_to("/nowhere")), saves=False
    ),
    "every fifth page is zeroed": Case(_zero_pages(5), deep=True),
    "its second half is noise": Case(_write(_DB, 40 * _PAGE, _NOISE), deep=True),
    "a content was deleted": Case(_sql("DELETE FROM blob WHERE seq = 3"), deep=True),
    "a row was changed": Case(_sql("UPDATE page SET agent = 'another' WHERE seq = 2"), deep=True),
    "its count of commits was deleted": Case(_sql("DELETE FROM meta WHERE name = 'committed'")),
    "the WAL of another store lies beside it": Case(_copied(_WAL, "other")),
    "a WAL of noise lies beside it": Case(_replaced(_WAL, _NOISE), whole=True),
    "it crashed": Case(lambda *_: None, crashed=True, whole=True, proxied=True),
    "the index of the WAL is noise": Case(
        _replaced("store.db-shm", _NOISE[:32768]), crashed=True, whole=True
    ),
    "the WAL is missing": Case(_remove(_WAL), crashed=True, proxied=True),
    "the WAL is empty": Case(_cut(_WAL), crashed=True),
    "the WAL is cut in half": Case(_cut(_WAL, 0.5), crashed=True, proxied=True),
    "the WAL lacks its last byte": Case(_cut(_WAL, less=1), crashed=True),
    "the WAL has only a header": Case(_cut(_WAL, size=32), crashed=True),
    "the header of the WAL is zeroed": Case(_write(_WAL, 0, bytes(32)), crashed=True),
    "a bit of the WAL is flipped": Case(_flip(_WAL, 0.4), crashed=True, proxied=True),
    "the WAL is noise": Case(_replaced(_WAL, _NOISE), crashed=True),
    "store.db is missing beside a WAL": Case(_remove(_DB), crashed=True, proxied=True),
    "store.db is empty beside a WAL": Case(_cut(_DB), crashed=True),
    "store.db is cut in half beside a WAL": Case(_cut(_DB, 0.5), crashed=True, proxied=True),
    "store.db and the seal are missing beside a WAL": Case(_remove(_DB, _SEAL), crashed=True),
    "the seal is missing": Case(_remove(_SEAL), whole=True),
    "one record of the seal is torn": Case(_write(_SEAL, 40, b"torn"), whole=True),
    "the seal is noise": Case(_replaced(_SEAL, _NOISE[:1024]), deep=True),
    "the seal of another store lies there": Case(_copied(_SEAL, "other")),
    "a folder is in the place of the seal": Case(
        lambda at, _: ((at / _SEAL).unlink(), (at / _SEAL).mkdir(mode=0o700)), saves=False
    ),
}


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Bases:
    place = tmp_path_factory.mktemp("bases")
    bases = Bases(*(place / name for name in ("closed", "crashed", "older", "gone_on", "other")))
    fill(bases.closed)
    shutil.copytree(bases.closed, bases.older)
    _go_on(bases.closed, "as it was")
    shutil.copytree(bases.older, bases.gone_on)
    _go_on(bases.gone_on, "another way")
    _crash(bases.closed, bases.crashed, place / "live")
    fill(place / "elsewhere", prompt="Paint the fence")
    _crash(place / "elsewhere", bases.other, place / "live elsewhere")
    return bases


def _go_on(folder: Path, how: str) -> None:
    with closing(SqliteStore.open(folder)) as store:
        _more(store, how)


def _more(store: SqliteStore, how: str) -> None:
    for number in range(6):
        asks = [
            {
                "role": "user",
                "content": (
                    f"question {number}, {how} {_NOISE[number * 500 : number * 500 + 4000].hex()}"
                ),
            }
        ]
        turn(store, asks, {"content": f"answer {number}, {how}"}, 1.8e9 + 60 * number, "claude-cli")


def _crash(folder: Path, into: Path, live: Path) -> None:
    shutil.copytree(folder, live)
    with closing(SqliteStore.open(live)) as store:
        _more(store, "before the crash")
        shutil.copytree(live, into, ignore=shutil.ignore_patterns("*-shm"))


@pytest.fixture
def damaged(request: pytest.FixtureRequest, tmp_path: Path, bases: Bases) -> tuple[Case, Desk]:
    case = _CASES[request.param]
    desk = desk_in(tmp_path)
    shutil.copytree(bases.crashed if case.crashed else bases.closed, desk.data)
    case.damage(desk.data, bases)
    return case, desk


def _state(folder: Path) -> dict[str, bytes]:
    """What a repair could save something from."""
    found = {
        name: (folder / name).read_bytes() for name in (_DB, _WAL) if (folder / name).is_file()
    }
    return {name: content for name, content in found.items() if content}


@pytest.mark.row("V1")
@pytest.mark.parametrize("damaged", _CASES, indirect=True)
def test_it_is_told_and_not_made_worse_and_after_a_repair_all_that_stays_lost_is_told(
    damaged: tuple[Case, Desk],
):
    case, desk = damaged
    before = _state(desk.data)

    doctor = desk.run("doctor", "--json").json()
    verify = desk.run("verify")

    failed = [finding for finding in doctor["findings"] if finding["level"] == "fail"]
    if case.whole:
        assert verify.code == 0, verify.err
        assert not failed, failed
        return
    assert verify.code in (1, 2)
    assert "all is whole" not in verify.out + verify.err
    assert verify.out + verify.err
    if not case.deep:
        assert failed, "the doctor finds nothing"
        assert _state(desk.data) == before, "looking changed it"
    assert desk.run("status").code == 0
    repair = desk.run("repair", "--yes")
    assert "Traceback" not in repair.err
    if not case.saves:
        assert repair.code in (1, 2), repair.out
        assert _state(desk.data) == before
        return
    assert repair.code in (0, 1), repair.err
    after = desk.run("verify", "--json")
    damages = after.json()["damages"]
    assert all("not there" in each["why"] for each in damages), damages
    assert repair.code == 1 or not damages, "the repair said that nothing is lost"
    assert damages or not [
        each for each in desk.run("doctor", "--json").json()["findings"] if each["level"] == "fail"
    ]


@pytest.mark.row("V1")
@pytest.mark.parametrize(
    "damaged", [name for name, case in _CASES.items() if case.proxied or CAMPAIGN], indirect=True
)
@pytest.mark.rest_slow
def test_a_proxy_passes_calls_through_and_writes_nothing_into_it(damaged: tuple[Case, Desk]):
    case, desk = damaged
    before = _state(desk.data)
    with (
        ScriptedUpstream(lambda _: Say("an answer")) as upstream,
        LocalProxy(desk.data, anthropic_url=upstream.anthropic_url) as proxy,
    ):
        answer = post(proxy.address, "anthropic", question("anthropic", "hello"))
        status = ask(proxy.address)
    assert (answer.status, b"an answer" in answer.body) == (200, True)
    assert status is not None
    if case.whole:
        assert status["store"] == "ok"
    if case.whole or case.deep:
        return
    assert status["store"] != "ok"
    assert answer.header("x-hotset-degraded")
    assert _state(desk.data) == before


def test_what_is_missing_is_told_in_numbers_and_accepted_by_a_repair(tmp_path: Path, bases: Bases):
    desk = desk_in(tmp_path)
    shutil.copytree(bases.closed, desk.data)
    shutil.copy(bases.older / _DB, desk.data / _DB)

    told = desk.run("verify")
    repaired = desk.run("repair", "--yes", "--json").json()

    assert "commits are missing, with them 6 turns and 18 pages" in told.err
    assert repaired["lost"]["turn"] == 6
    assert repaired["lost"]["page"] == 18
    assert desk.run("verify").code == 0
    _go_on(desk.data, "after the repair")
    assert desk.run("verify").code == 0


def test_a_seal_that_lags_is_no_finding_and_catches_up(tmp_path: Path, bases: Bases):
    """As after a kill between a commit and its seal, or a cut of power."""
    desk = desk_in(tmp_path)
    shutil.copytree(bases.crashed, desk.data)
    shutil.copy(bases.closed / _SEAL, desk.data / _SEAL)
    assert desk.run("verify").code == 0
    lagging = (desk.data / _SEAL).read_bytes()
    _go_on(desk.data, "later")
    assert (desk.data / _SEAL).read_bytes() != lagging
    (desk.data / _DB).write_bytes((bases.closed / _DB).read_bytes())
    assert "24 commits are missing" in desk.run("verify").err
