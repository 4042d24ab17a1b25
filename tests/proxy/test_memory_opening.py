"""An agent that is started together with hotset sends its first prompt before hotset is ready: it
is told all the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from hotset.nouns.deposit import Remembered
from hotset.nouns.knobs import Remembering
from hotset.testing import RamStore, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.proxy.talking import Talk
from tests.sources.memory.consolidate.making import fact

PROMPT = "Which port does the staging database listen on?"
FACT = "The staging database listens on port 5432."
OFFER, START = 1.5, 5.0
"""Seconds that a prompt waits, three times as long where it opens a session, and those that a start
takes here."""


class Waking(RamStore):
    """A store that is slow to say what is remembered, the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.awake = threading.Event()
        self.keep(Remembered((fact(FACT),))).result()

    def memories_after(self, number, limit):
        self.awake.wait(120)
        return super().memories_after(number, limit)


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(lambda _request: Say("Noted.")) as running:
        yield running


@pytest.mark.slow
def test_a_prompt_that_comes_while_hotset_makes_itself_ready_is_told(tmp_path, upstream):
    store = Waking()
    waking = threading.Timer(START, store.awake.set)
    memory = Remembering(offer_seconds=OFFER)
    with LocalProxy(
        tmp_path / "data",
        anthropic_url=upstream.anthropic_url,
        memory=memory,
        open_store=lambda: store,
    ) as proxy:
        waking.start()
        try:
            Talk(proxy.address, "anthropic").say(PROMPT)
        finally:
            store.awake.set()
            waking.cancel()
    assert FACT in upstream.requests[-1].body.decode()
