"""A proxy over a scripted upstream, both real servers on real ports."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hotset.nouns.page import Page, SessionId
from hotset.nouns.turn import Turn
from hotset.store.port import Store, Where
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.proxy.address import Address
from hotset.testing import ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.upstream.script import Script
from tests.proxy.talking import SHORTENING
from tests.proxy.wire import PATHS, Answer, call
from tests.waiting import ask


def stopped() -> float:
    """A clock that stands still, so that two upstreams with one script say the same bytes."""
    return 1_700_000_000.0


@dataclass(frozen=True)
class Pair:
    """A running proxy, the upstream behind it, and a look into what was kept."""

    address: Address
    upstream: ScriptedUpstream
    folder: Path

    def settle(self) -> None:
        """Returns when everything that went through so far is kept."""
        deadline = time.monotonic() + 120
        while (status := ask(self.address)) is None or status["keeping"]:
            assert time.monotonic() < deadline, "what went through was not kept in time"
            time.sleep(0.002)

    @contextlib.contextmanager
    def store(self) -> Iterator[Store]:
        self.settle()
        with contextlib.closing(SqliteStore.open(self.folder)) as store:
            yield store

    def sessions(self) -> list[SessionId]:
        with self.store() as store:
            return [session.id for session in store.sessions()]

    def turns(self) -> list[Turn]:
        with self.store() as store:
            return [turn for session in store.sessions() for turn in store.turns(session.id)]

    def pages(self) -> list[tuple[Page, bytes]]:
        with self.store() as store:
            return [(page, store.content(page.digest)) for page in store.pages(Where())]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Callable[..., Pair]]:
    """Makes a proxy and an upstream that follows a script; both end with the test. Settings are
    those of `LocalProxy`."""
    with contextlib.ExitStack() as stack:

        def make(script: Script | None = None, *, strict: bool = False, **settings: Any) -> Pair:
            upstream = stack.enter_context(ScriptedUpstream(script, now=stopped, strict=strict))
            folder = tmp_path / "data"
            settings = {"knobs": SHORTENING, **settings}
            proxy = LocalProxy(
                folder,
                openai_url=upstream.openai_url,
                anthropic_url=upstream.anthropic_url,
                **settings,
            )
            stack.enter_context(proxy)
            return Pair(proxy.address, upstream, folder)

        yield make


@pytest.fixture
def directly():
    """What the same upstream answers to a client without a proxy."""

    def ask(script: Script, dialect: str, body: bytes) -> Answer:
        with ScriptedUpstream(script, now=stopped) as twin:
            return call(twin, "POST", PATHS[dialect], body, {"content-type": "application/json"})

    return ask


@dataclass
class Gap:
    seconds: float = 0.0


@pytest.fixture
def monotonic_gap():
    """How long a block took."""

    @contextlib.contextmanager
    def measure() -> Iterator[Gap]:
        gap = Gap()
        begun = time.monotonic()
        yield gap
        gap.seconds = time.monotonic() - begun

    return measure
