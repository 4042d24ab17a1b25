"""A short talk about the weather in which the model also asks us for something, for frameworks to
run."""

from __future__ import annotations

import pytest

from hotset.nouns.turn import Outcome
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say

SCRIPT = (
    Say(
        "I will look.", calls=(Call("weather", {"city": "Oslo"}), Call("weather", {"city": "Rome"}))
    ),
    Say("Which was it?", calls=(Call("search_history", {"query": "Oslo"}),)),
    Say("Cold and warm."),
)
WEATHER = {"Oslo": "cold", "Rome": "warm"}


def weather(city: str) -> str:
    """The weather in a city."""
    return WEATHER[city]


@pytest.fixture
def kept(upstream, memory, tmp_path):
    """An upstream and a memory; afterwards, that both turns were kept, and the hidden call with
    them."""
    up, opened = upstream(SCRIPT), memory()
    yield up, opened
    opened.close()
    assert len(up.requests) == len(SCRIPT)
    with SqliteStore.open(tmp_path / "data") as store:
        (session,) = store.sessions()
        assert [turn.outcome for turn in store.turns(session.id)] == [Outcome.DONE, Outcome.DONE]
        assert [event.name for event in store.events()].count("Retrieved") == 1
