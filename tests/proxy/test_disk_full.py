"""A disk that fills up under traffic: every call is served, the client is told, and nothing that
was kept is lost."""

from __future__ import annotations

import base64
import contextlib
import random
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest

from hotset.errors import DiskFull
from hotset.nouns.page import Kind
from hotset.nouns.turn import Event, Outcome
from hotset.store.port import Where
from hotset.store.sqlite import SqliteStore
from hotset.testing import RamStore, Say, ScriptedUpstream
from tests.proxy.test_killed import Up, serving
from tests.proxy.wire import DIALECTS, post, question
from tests.waiting import ask, wait_until

_MIB = 1 << 20
_PROMPT = 150_000
"""Bytes that no compression makes fewer: a disk of some MiB is full after a few dozen calls."""
_MOST = 400
_BACK_SECONDS = 10.0


@contextlib.contextmanager
def _disk(folder: Path, size: int) -> Iterator[Path]:
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("a small disk can only be mounted by root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@dataclass(frozen=True)
class Told:
    """A call that went through."""

    said: frozenset[bytes]
    """Its prompt, its reply, and the reply's bytes on the wire."""
    degraded: bool
    """The client was told that it may not be kept."""
    kept: bool
    """The proxy counts it among those that are on disk."""


@dataclass
class World:
    up: Up
    upstream: ScriptedUpstream
    rng: random.Random
    kept: int = 0

    def tell(self) -> Told:
        """One call of a new session; every byte is compared on its way."""
        n = len(self.upstream.requests)
        dialect = DIALECTS[n % 3]
        prompt = f"call {n}: {base64.b64encode(self.rng.randbytes(_PROMPT)).decode()}"
        body = question(dialect, prompt, stream=n % 2 == 0)
        answer = post(self.up.address, dialect, body)
        self.up.settle()
        assert [request.body for request in self.upstream.requests[n:]] == [body]
        assert answer.status == 200
        assert _reply(n).encode() in answer.body
        before, self.kept = self.kept, ask(self.up.address)["kept"]
        said = frozenset((prompt.encode(), _reply(n).encode(), answer.body))
        return Told(said, answer.header("x-hotset-degraded") is not None, self.kept == before + 1)


def everything(folder: Path) -> set[bytes]:
    """All prompts, replies and raw replies of the store."""
    with SqliteStore.open(folder) as store:
        pages = store.pages(Where(kinds=frozenset((Kind.PROMPT, Kind.RESPONSE))))
        turns = [turn for session in store.sessions() for turn in store.turns(session.id)]
        raw = {
            store.content(turn.reply)
            for turn in turns
            if turn.reply and turn.outcome is Outcome.DONE
        }
        return {store.content(page.digest) for page in pages} | raw


def _reply(n: int) -> str:
    return f"reply {n} is all there is to say."


@pytest.mark.row("C9")
@pytest.mark.row("V1")
@pytest.mark.parametrize(
    ("size", "others"),
    [(24 * _MIB, 12 * _MIB), (80 * _MIB, 44 * _MIB)],
    ids=["too small for ballast", "with ballast"],
)
@pytest.mark.slow
def test_a_disk_that_fills_up_stops_no_call_loses_nothing_and_is_told_until_there_is_room(
    tmp_path, size, others
):
    with (
        _disk(tmp_path / "disk", size) as disk,
        ScriptedUpstream(lambda request: Say(_reply(request.index), chunks=1)) as upstream,
    ):
        (disk / "others").write_bytes(bytes(others))
        with serving(disk / "data", upstream.url) as up:
            world = World(up, upstream, random.Random(1))
            before = [world.tell()]
            while before[-1].kept:
                assert len(before) < _MOST, "the disk never became full"
                before.append(world.tell())
            while_full = [world.tell() for _ in range(8)]
            (disk / "others").unlink()
            freed = time.monotonic()
            after = [world.tell()]
            while not after[-1].kept:
                assert time.monotonic() < freed + _BACK_SECONDS, "it did not keep again"
                after.append(world.tell())
            after += [world.tell() for _ in range(3)]
            assert up.stop() == 0

        *before, _first_unkept = (
            before  # nobody could know of the full disk before it, and it may have been told or not
        )
        assert len(before) > 10
        assert not any(call.degraded for call in before)
        assert [(call.degraded, call.kept) for call in while_full] == [(True, False)] * 8
        assert [(call.degraded, call.kept) for call in after[-3:]] == [(False, True)] * 3
        assert frozenset().union(
            *(call.said for call in (*before, *after) if call.kept)
        ) <= everything(disk / "data")
        with SqliteStore.open(disk / "data") as store:
            assert list(store.verify()) == []
            assert "Bypassed" in {event.name for event in store.events()}


class NearlyFull(RamStore):
    """A store with room for a notice, but not for a call."""

    def keep(self, *deposits):
        if all(isinstance(each, Event) for each in deposits):
            return super().keep(*deposits)
        refused: Future = Future()
        refused.set_exception(DiskFull("no room"))
        return refused


def test_a_notice_that_still_fits_does_not_hide_that_calls_are_not_kept(pair):
    store = NearlyFull()
    world = pair(open_store=lambda: store)

    post(world.address, "anthropic", question("anthropic", "hello"))
    wait_until(lambda: list(store.events()))
    world.settle()

    assert ask(world.address)["store"] == "no room"
