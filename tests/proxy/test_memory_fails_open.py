"""Whatever goes wrong with memories, a prompt goes out alone and in time, it is told once, and
nothing is lost or made twice."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hotset.config import Config, load
from hotset.errors import PageDamaged, StoreFailed
from hotset.nouns.deposit import Remembered
from hotset.nouns.knobs import Remembering
from hotset.nouns.memory import MemoryKind, MemoryRecord, Trust
from hotset.runtime.reader import open_memories
from hotset.store.port import Store
from hotset.store.sqlite import SqliteStore
from hotset.testing import RamStore, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.store_talk import StoreTalk as Kept
from tests.proxy.talking import Talk
from tests.sources.memory.consolidate.making import fact
from tests.waiting import ask

PROMPT = "Which port does the staging database listen on?"
FACT = "The staging database listens on port 5432."
PATIENT = Remembering(offer_seconds=20.0)
HASTY = Remembering(offer_seconds=0.2)
TOLD = "nothing could be offered from memory"


class Failing(RamStore):
    """A store that cannot say what is remembered, while something is the matter."""

    def __init__(self, failure: BaseException | None = None) -> None:
        super().__init__()
        self.failure = failure
        self.free = threading.Event()
        self.keep(Remembered((fact(FACT),))).result()

    def memories_after(self, number, limit):
        if self.failure is not None:
            raise self.failure
        return super().memories_after(number, limit)


class Hanging(Failing):
    def memories_after(self, number, limit):
        self.free.wait()
        return super().memories_after(number, limit)


class Spoiled(RamStore):
    """A store with one session that cannot be read back."""

    def __init__(self, failure: BaseException) -> None:
        super().__init__()
        self.failure = failure
        self.spoiled = b""

    def content(self, digest):
        found = super().content(digest)
        if self.spoiled and self.spoiled in found:
            raise self.failure
        return found


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(lambda _request: Say("Noted.")) as running:
        yield running


@pytest.fixture
def start(tmp_path: Path, upstream: ScriptedUpstream) -> Iterator[Callable[..., LocalProxy]]:
    with contextlib.ExitStack() as stack:

        def started(
            store: Store | None = None,
            memory: Remembering = PATIENT,
            name: str = "data",
            **more: Any,
        ) -> LocalProxy:
            opening = {"open_store": lambda: store} if store is not None else {}
            proxy = LocalProxy(
                tmp_path / name,
                anthropic_url=upstream.anthropic_url,
                memory=memory,
                **opening,
                **more,
            )
            return stack.enter_context(proxy)

        yield started


def settled(proxy: LocalProxy) -> None:
    deadline = time.monotonic() + 120
    while (status := ask(proxy.address)) is None or status["keeping"]:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def asks(proxy: LocalProxy, text: str = PROMPT) -> Talk:
    talk = Talk(proxy.address, "anthropic")
    talk.say(text)
    assert talk.answer is not None
    assert talk.answer.status == 200
    return talk


def warned(caplog: pytest.LogCaptureFixture, words: str) -> list[logging.LogRecord]:
    return [
        each
        for each in caplog.records
        if each.levelno >= logging.WARNING and words in each.getMessage()
    ]


def without_memories(start: Callable[..., LocalProxy], upstream: ScriptedUpstream) -> bytes:
    """What goes out where memory is switched off."""
    asks(start(RamStore(), Remembering(enabled=False), "twin"))
    return upstream.requests[-1].body


@pytest.mark.parametrize(
    "failure", [StoreFailed("it is gone"), PageDamaged("a row"), ZeroDivisionError("a bug")]
)
def test_a_prompt_goes_out_alone_where_memories_cannot_be_read_and_the_next_ones_are_told_again(
    start, upstream, caplog, failure
):
    alone = without_memories(start, upstream)
    store = Failing(failure)
    proxy = start(store)
    for number in range(3):
        asks(proxy, f"{PROMPT} {number}")
        assert upstream.requests[-1].body == alone.replace(
            PROMPT.encode(), f"{PROMPT} {number}".encode()
        )
    assert len(warned(caplog, TOLD)) == 1
    assert FACT not in caplog.text
    store.failure = None
    asks(proxy)
    assert FACT in upstream.requests[-1].body.decode()


@pytest.mark.slow
def test_memories_that_take_for_ever_hold_up_nobody_and_are_told_of_once(start, upstream, caplog):
    alone = without_memories(start, upstream)
    store = Hanging()
    proxy = start(store, HASTY, patience=1)
    try:
        for number in range(4):
            asks(proxy, f"{PROMPT} {number}")
            assert upstream.requests[-1].body == alone.replace(
                PROMPT.encode(), f"{PROMPT} {number}".encode()
            )
        assert len(warned(caplog, TOLD)) == 1
    finally:
        store.free.set()
    deadline = time.monotonic() + 120
    while FACT not in upstream.requests[-1].body.decode():
        assert time.monotonic() < deadline
        asks(proxy, f"{PROMPT} {time.monotonic()}")


def test_a_session_that_cannot_be_remembered_costs_no_other_one_its_memories(
    start, upstream, caplog
):
    store = Spoiled(TypeError("a bug of ours"))
    proxy = start(store, Remembering(offer_seconds=20.0, quiet_seconds=0.05))
    store.spoiled = b"zamboni"
    asks(proxy, "Implement the export of zamboni data, please.")
    asks(proxy, "Implement the import of invoices from CSV files, please.")
    settled(proxy)
    deadline = time.monotonic() + 120
    while not (episodes := list(store.memories(frozenset({MemoryKind.EPISODE})))):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    asks(proxy, "What did we do about invoices?")
    assert ["invoices" in episode.text for episode in episodes] == [True]
    told = json.dumps(upstream.requests[-1].json()["messages"]).partition("hotset memory")[2]
    assert "the import of invoices" in told
    assert len(warned(caplog, "cannot be remembered")) == 1
    assert "zamboni" not in caplog.text


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"number": 1e400}',
        b'{"number": 99999999999999999999999}',
        b"\xff\xfe",
    ],
)
@pytest.mark.rest_slow
def test_files_that_were_damaged_cost_nothing_but_time(start, upstream, tmp_path, junk):
    first = start()
    with open_memories(first.config) as memories:
        memories.remember(FACT, by="person", trust=Trust.PERSON)
    folder = first.config.folder / "memory"
    folder.mkdir(exist_ok=True)
    for name in ("overview.json", "waiting.json", "continuity.json", "masses.json"):
        (folder / name).write_bytes(junk)
    second = start()
    asks(second)
    assert FACT in upstream.requests[-1].body.decode()


def test_an_index_that_was_damaged_leaves_memories_to_be_looked_through(start, upstream):
    first = start()
    with open_memories(first.config) as memories:
        memories.remember(FACT, by="person", trust=Trust.PERSON)
        memories.follow()
    files = [path for path in (first.config.folder / "index").rglob("*") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(b"\x00broken" * 100)
    asks(start())
    assert FACT in upstream.requests[-1].body.decode()
    with open_memories(first.config) as memories:
        assert memories.get(next(iter(memories.list())).id).text == FACT


def test_what_was_told_with_a_prompt_is_told_again_byte_for_byte_after_a_restart_whatever_became_of_memories(  # noqa: E501
    tmp_path: Path, upstream: ScriptedUpstream
):
    def proxy() -> LocalProxy:
        return LocalProxy(tmp_path / "data", anthropic_url=upstream.anthropic_url, memory=PATIENT)

    with proxy() as first:
        config = first.config
        with open_memories(config) as memories:
            kept = memories.remember(FACT, by="person", trust=Trust.PERSON)
        talk = asks(first)
        settled(first)
    before = upstream.requests[-1]
    assert FACT in before.body.decode()
    with open_memories(config) as memories:
        memories.forget(kept.id)
        memories.remember(
            "The staging database listens on port 6543.", by="person", trust=Trust.PERSON
        )
    with proxy() as second:
        talk.address = second.address
        talk.say("And who may connect to it?")
    after = upstream.requests[-1]
    told = before.body[before.body.index(b'"messages"') :].removesuffix(b"]}")
    assert told in after.body
    assert FACT.encode() in told


# Killed, and two at once

ENCODING = """
import sys
from hotset.config import load
from hotset.runtime.reader import open_memories
home, data = sys.argv[1:]
config = load(data=data, project=home, environ={"HOME": home, "HOTSET_CONFIG": home + "/none.toml"})
with open_memories(config) as memories:
    memories.encode(lambda what, done, of: print(done, flush=True))
"""
SESSIONS = 12


def worked(folder: Path) -> None:
    with contextlib.closing(SqliteStore.open(folder)) as store:
        for at in range(SESSIONS):
            talk = Kept(store, time=1_700_000_000.0 + 100 * at)
            asked = talk.asks(
                f"Implement the export of report{at} to CSV files. From now on report{at} is "
                f"on port {8000 + at}."
            )
            talk.hears(asked.turn, f"The export of report{at} is there now.")


def encoding(home: Path, data: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", ENCODING, str(home), str(data)], stdout=subprocess.PIPE
    )


def everything(home: Path, data: Path) -> dict[str, list[tuple[int, str]]]:
    config = _config(home, data)
    with open_memories(config) as memories:
        memories.encode()
        assert memories.encode() == 0
        return {
            memory.id: _versions(memories.details(memory.id).versions)
            for memory in memories.list(limit=None)
        }


def _versions(versions: tuple[MemoryRecord, ...]) -> list[tuple[int, str]]:
    return [(each.version, each.text) for each in versions]


def _config(home: Path, data: Path) -> Config:
    return load(
        data=str(data),
        project=str(home),
        environ={"HOME": str(home), "HOTSET_CONFIG": str(home / "none.toml")},
    )


@pytest.mark.slow
def test_killed_in_the_middle_and_done_by_two_at_once_it_comes_to_the_same(tmp_path: Path):
    whole, killed, twice = (tmp_path / name for name in ("whole", "killed", "twice"))
    worked(whole)
    shutil.copytree(whole, killed)
    shutil.copytree(whole, twice)
    expected = everything(tmp_path, whole)
    assert sum(id.startswith("ep-") for id in expected) == SESSIONS

    process = encoding(tmp_path, killed)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == b"1"
    process.kill()
    process.communicate()
    assert everything(tmp_path, killed) == expected

    both = [encoding(tmp_path, twice) for _ in range(2)]
    for each in both:
        each.communicate()
    assert [each.returncode for each in both] == [0, 0]
    assert everything(tmp_path, twice) == expected
