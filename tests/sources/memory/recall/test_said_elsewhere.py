"""What else people said, in sessions that a question's own words hardly reach."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.index.port import Index
from hotset.nouns.page import PageId, SessionId
from hotset.sealing import VERSION
from hotset.sources.history import follow
from hotset.sources.memory.recall import (
    ELSEWHERE_WHY,
    RecalledItem,
    RecallQuery,
    RecallResult,
    pages_elsewhere,
    recall,
)
from hotset.store.port import Store
from hotset.testing.ram_store import RamStore
from hotset.testing.store_talk import StoreTalk

NOW = 1.8e9
FAR = 1e9  # a moment that no machine's clock has reached since it was started
SIBLINGS = "What is the total number of siblings I have?"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with contextlib.closing(
        LocalIndex(tmp_path / "index", WordVectors(), sealing=VERSION, folds=False)
    ) as index:
        yield index


def asked(
    store: Store, index: LocalIndex, query: str, **more: SessionId
) -> tuple[RecallQuery, RecallResult]:
    follow(store, index, FAR)
    index.fold()
    asking = RecallQuery(query, NOW, most=100, deadline=30.0, **more)
    return asking, recall(asking, index, store)


def talked(store: Store, key: str, *said: str) -> SessionId:
    talk = StoreTalk(store, key=key)
    for words in said:
        talk.turn(words, f"The model had a long answer to: {words}")
    return next(each.id for each in store.sessions() if each.key == key)


def texts(items: Iterator[RecalledItem]) -> list[str]:
    return [item.text for item in items]


def test_words_that_share_none_with_the_question_are_told_once_more_is_asked_for(index: LocalIndex):
    store = RamStore()
    talked(
        store, "one", "I have two siblings who live abroad.", "The total of my shopping was high."
    )
    talked(
        store,
        "two",
        "Studies of networks interest me.",
        "There were three girls and me at our table back home.",
    )

    asking, found = asked(store, index, SIBLINGS)
    elsewhere = list(pages_elsewhere(asking, found, index, store))

    assert not any("three girls" in item.text for item in found.items)
    assert any("three girls" in item.text for item in elsewhere)
    assert [item.text for item in elsewhere if item.why == (ELSEWHERE_WHY,)]
    assert "siblings" in elsewhere[0].text


def test_what_models_said_stands_behind_peoples_words_and_before_them_where_it_is_asked_for(
    index: LocalIndex,
):
    store = RamStore()
    talked(store, "one", "I have two siblings who live abroad.", "Studies of networks interest me.")

    speakers = {}
    for query in (SIBLINGS, "What did you suggest about my siblings?"):
        asking, found = asked(store, index, query)
        speakers[query] = [item.speaker for item in pages_elsewhere(asking, found, index, store)]

    one, other = speakers.values()
    assert one == sorted(one, reverse=True)
    assert other == sorted(other)
    assert set(one) == set(other) == {"user", "assistant"}


def test_nothing_that_was_told_nothing_twice_and_nothing_of_whoever_asks(index: LocalIndex):
    store = RamStore()
    talked(
        store, "one", "I have two siblings who live abroad.", "My boat lies in the harbour today."
    )
    talked(store, "two", "My boat lies in the harbour today.", "ok")
    asks = talked(store, "three", "My siblings asked for a photo album.")

    asking, found = asked(store, index, SIBLINGS, session=asks)
    every = [
        item for item in pages_elsewhere(asking, found, index, store) if item.speaker == "user"
    ]
    assert sorted(item.text for item in every) == [
        "I have two siblings who live abroad.",
        "My boat lies in the harbour today.",
    ]

    told = frozenset({every[0].id})
    left = pages_elsewhere(asking, found, index, store, shown=told)
    assert [item.text for item in left if item.speaker == "user"] == [every[1].text]
    answers = [
        item for item in pages_elsewhere(asking, found, index, store) if item.speaker == "assistant"
    ]
    rest = pages_elsewhere(
        asking, found, index, store, shown=frozenset(item.id for item in answers)
    )
    assert {item.speaker for item in rest} == {"user"}


def test_sessions_take_turns(index: LocalIndex):
    store = RamStore()
    for number in range(3):
        talked(
            store,
            f"s{number}",
            *(f"My siblings of house {number} have dog {at} in town." for at in range(4)),
        )

    asking, found = asked(store, index, SIBLINGS)
    order = [
        item.session
        for item in pages_elsewhere(asking, found, index, store)
        if item.speaker == "user"
    ]

    assert len(order) == 12
    assert all(len(set(order[at : at + 3])) == 3 for at in range(0, 12, 3))


def test_without_an_index_the_sessions_that_were_found_are_read_on():
    store = RamStore()
    session = talked(
        store, "one", "I have two siblings who live abroad.", "My boat lies in the harbour today."
    )
    page = next(page for _, page in store.pages_after(0, 10) if page.session == session)
    item = RecalledItem(
        page.id, "said", "", "", NOW, 1.0, (), {}, None, PageId(page.id), "user", session, page.turn
    )

    said = texts(
        pages_elsewhere(
            RecallQuery(SIBLINGS, NOW),
            RecallResult((item,), words=SIBLINGS),
            None,
            store,
            shown=frozenset({page.id}),
        )
    )

    assert said == ["My boat lies in the harbour today."]
