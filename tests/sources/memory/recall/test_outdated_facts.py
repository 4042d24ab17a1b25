"""A fact that something else replaced never comes before what holds now: neither as a memory nor
as the words of the session that said it."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import (
    Fact,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    Provenance,
    Relation,
    Standing,
    Trust,
)
from hotset.nouns.page import Kind
from hotset.sealing import VERSION
from hotset.sources.history import follow
from hotset.sources.memory.kinds import memory_id
from hotset.sources.memory.memory_writer import follow_memories, remember_session
from hotset.sources.memory.recall import RecallQuery, recall
from hotset.store.port import Store, Where
from hotset.testing.ram_store import RamStore
from hotset.testing.store_talk import StoreTalk

DAY = 86_400.0
START = 1_790_000_000.0
NOW = START + 90 * DAY
CHANGES = {
    "on which day after the standup do we cut releases?": (
        "We cut releases on Tuesdays, after the standup.",
        "Publishing happens each Thursday.",
    ),
    "which Python version does the service use everywhere?": (
        "The service uses Python 3.11 everywhere.",
        "All of it runs on 3.13 since the upgrade.",
    ),
    "where is the staging database hosted?": (
        "The staging database is hosted on Heroku.",
        "Staging lives on Fly.",
    ),
    "how do we always install packages?": (
        "We always install packages with pip.",
        "Dependencies come by uv sync.",
    ),
}
"""By question: what was said first, in the question's words, and what holds, in others."""


def fact(store: Store, text: str, at: int) -> MemoryRecord:
    """A fact with the session in which a person said it."""
    talk = StoreTalk(store, key=text, time=START + at * DAY)
    session = talk.turn(text, "Understood.").session
    talk.turn("Thanks, please look at the README next.", "It reads well.")
    page = next(store.pages(Where(session=session, kinds=frozenset({Kind.PROMPT}))))
    return MemoryRecord(
        memory_id(MemoryKind.FACT, text),
        MemoryKind.FACT,
        text,
        text,
        START + at * DAY,
        Provenance("rules", session, pages=(page.id,)),
        Fact(),
        trust=Trust.PERSON,
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    store = RamStore()
    for at, (before, now) in enumerate(CHANGES.values()):
        old, new = fact(store, before, at), fact(store, now, 40 + at)
        store.keep(Remembered((old, new))).result(60)
        ended = replace(old, version=2, standing=Standing.SUPERSEDED, valid_until=new.created)
        link = MemoryLink(new.id, old.id, Relation.SUPERSEDES, new.created)
        store.keep(Remembered((ended,), (link,))).result(60)
    folder = tmp_path_factory.mktemp("index")
    with LocalIndex(folder, WordVectors(), sealing=VERSION, folds=False) as index:
        follow(store, index, time.monotonic() + 60)
        follow_memories(store, index, time.monotonic() + 60)
        yield store, index


@pytest.mark.row("M5")
@pytest.mark.parametrize("query", CHANGES)
def test_what_holds_comes_before_what_was_replaced(told, query):
    store, index = told
    before, now = CHANGES[query]

    items = recall(RecallQuery(query, NOW, deadline=30.0), index, store).items

    texts = [item.text for item in items]
    assert now in texts
    assert before not in texts[: texts.index(now)]
    for item in items:
        if item.text == before:
            assert item.memory is None
            assert item.why[0].startswith("what was decided there was decided anew on")
        if item.text == now and item.memory is not None:
            assert f"in place of {memory_id(MemoryKind.FACT, before)}" in item.why[0]


@pytest.mark.parametrize(
    ("before", "now", "query"),
    [
        (
            "We always install packages with pip.",
            "We switched to uv: always install packages with uv instead of pip.",
            "how do we install packages?",
        ),
        (
            "Billing code is reviewed by Anna.",
            "Billing code is no longer reviewed by Anna, it is reviewed by Tom now.",
            "who reviews the billing code?",
        ),
    ],
)
def test_words_that_say_that_something_changed_come_before_those_they_correct(
    tmp_path, before, now, query
):
    store = RamStore()
    for at, text in enumerate((before, now)):
        talk = StoreTalk(store, key=text, time=START + at * 30 * DAY)
        session = talk.turn(text, "Understood.").session
        remember_session(store, session, talk.time + 60, lambda _: ())
    with LocalIndex(tmp_path, WordVectors(), sealing=VERSION, folds=False) as index:
        follow(store, index, time.monotonic() + 60)
        follow_memories(store, index, time.monotonic() + 60)
        items = recall(RecallQuery(query, NOW, deadline=30.0), index, store).items
    said = [item.text for item in items if item.memory is None]
    assert said.index(now) < said.index(before)
