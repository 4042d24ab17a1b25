"""Memories and what was said become entries of the index: with what stands around it, and without
secrets."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from hotset.index.local import LocalIndex
from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import (
    Arrangement,
    Episode,
    MemoryKind,
    MemoryRecord,
    Provenance,
    Standing,
)
from hotset.nouns.message import Part
from hotset.nouns.page import Kind, Role
from hotset.nouns.search import Filter, Query, Sort
from hotset.sealing import VERSION, seal
from hotset.sources.history import find, follow
from hotset.sources.memory.kinds import memory_id
from hotset.sources.memory.memory_writer import (
    WINDOW,
    entry_of,
    follow_memories,
    is_found,
    window_speaker,
)
from hotset.store.port import Where
from hotset.testing.fakes import HashingEmbedder
from hotset.testing.ram_store import RamStore
from hotset.testing.secrets import planted
from hotset.testing.store_talk import StoreTalk, message

WINDOWS = Filter(sorts=frozenset({Sort.MEMORY}), kinds=frozenset({WINDOW}))


@pytest.fixture
def store():
    return RamStore()


@pytest.fixture
def index(tmp_path):
    with LocalIndex(
        tmp_path / "index", HashingEmbedder(64), sealing=VERSION, folds=False
    ) as opened:
        yield opened


def fact(text, kind=MemoryKind.FACT, **fields):
    return MemoryRecord(
        memory_id(kind, text), kind, text[:60], text, 1000.0, Provenance("rules"), **fields
    )


def keep(store, *memories):
    store.keep(Remembered(memories)).result(120)


def bring(store, index):
    return follow_memories(store, index, time.monotonic() + 60)


def texts(index, words, only=WINDOWS):
    return [
        hit.entry.text
        for hit in index.search(Query(words, only, 20, 30.0)).hits
        if hit.by_words is not None
    ]


def test_a_window_holds_what_was_said_before_and_behind_and_grows_as_the_talk_goes_on(store, index):
    talk = StoreTalk(store)
    talk.turn("first question", "first answer")
    talk.turn("which colour?", "the zeppelin is blue")
    bring(store, index)
    before = texts(index, "zeppelin")
    talk.turn("thanks", "welcome")
    bring(store, index)

    all_of_it = "first question\nfirst answer\nwhich colour?\nthe zeppelin is blue"
    assert sorted(before) == [
        "first answer\nwhich colour?\nthe zeppelin is blue",
        all_of_it,
        all_of_it,
    ]
    assert "first answer\nwhich colour?\nthe zeppelin is blue\nthanks\nwelcome" in texts(
        index, "zeppelin"
    )
    assert "first answer\nwhich colour?\nthe zeppelin is blue" not in texts(index, "zeppelin")


def test_results_of_tools_stand_in_no_window_and_do_not_part_what_was_said(store, index):
    talk = StoreTalk(store)
    asked = talk.asks("look at the airship")
    call = Part(Kind.TOOL_CALL, b'{"path": "a.py"}', "application/json", "read_file", "call_1")
    talk.hears(asked.turn, message(Role.ASSISTANT, call))
    talk.hears(
        talk.asks(
            message(
                Role.TOOL, Part(Kind.TOOL_RESULT, b"balloon", "text/plain", "read_file", "call_1")
            )
        ).turn,
        "it flies",
    )
    bring(store, index)

    assert texts(index, "balloon") == []
    assert set(texts(index, "airship")) == {"look at the airship\nit flies"}


def test_a_window_says_whose_words_are_in_its_middle(store, index):
    StoreTalk(store).turn("zeppelin?", "airship!")
    bring(store, index)

    hits = index.search(Query("zeppelin", WINDOWS, 10, 30.0)).hits

    kinds = {store.page(hit.entry.whole).kind: window_speaker(hit.entry) for hit in hits}
    assert kinds == {Kind.PROMPT: Kind.PROMPT, Kind.RESPONSE: Kind.RESPONSE}


def test_no_secret_reaches_a_window_or_an_episode_that_is_found_by_its_prompts(store, index):
    secrets = [each for each in planted(7, 40) if not each.remains(seal(each.text).text)]
    talk = StoreTalk(store)
    for each in secrets:
        talk.turn(f"zeppelin\n{each.text}", "done")
    session = next(store.sessions()).id
    episode = fact("what was done", MemoryKind.EPISODE, detail=Episode("goal", turns=(1, 999)))
    keep(store, replace(episode, source=Provenance("rules", session)))
    bring(store, index)

    told = [
        hit.entry.text
        for hit in index.search(
            Query("zeppelin", Filter(sorts=frozenset({Sort.MEMORY})), 100, 30.0)
        ).hits
    ]

    assert len(told) > len(secrets)
    assert not [each.kind for each in secrets for text in told if each.remains(text)]


def test_an_episode_is_found_by_the_words_that_people_used_in_it(store, index):
    talk = StoreTalk(store)
    talk.turn("make the pipeline faster", "ok")
    talk.turn("and what about the zeppelin?", "ok")
    session = next(store.sessions()).id
    episode = replace(
        fact("pipeline work", MemoryKind.EPISODE), source=Provenance("rules", session)
    )
    keep(store, replace(episode, detail=Episode("pipeline", turns=(1, 2))))
    bring(store, index)

    only = Filter(sorts=frozenset({Sort.MEMORY}), kinds=frozenset({"episode"}))
    assert [hit.entry.whole for hit in index.search(Query("zeppelin", only, 5, 30.0)).hits] == [
        episode.id
    ]


@pytest.mark.parametrize("standing", [Standing.FORGOTTEN, Standing.MERGED, Standing.CANDIDATE])
def test_what_is_not_to_be_found_leaves_the_index_with_its_new_version(store, index, standing):
    memory = fact("the zeppelin is blue")
    keep(store, memory)
    bring(store, index)
    assert index.wholes(Sort.MEMORY) == [memory.id]

    keep(store, replace(memory, version=2, standing=standing))
    bring(store, index)

    assert list(index.wholes(Sort.MEMORY)) == []
    keep(store, replace(memory, version=3))
    bring(store, index)
    assert index.wholes(Sort.MEMORY) == [memory.id]


def test_how_memories_are_shown_is_no_memory_to_be_found():
    assert not is_found(fact("arrangement", MemoryKind.ARRANGEMENT, detail=Arrangement()))
    assert is_found(fact("zeppelin", standing=Standing.SUPERSEDED))


def test_following_goes_on_where_it_stopped_and_twice_makes_the_same_index(store, index):
    keep(store, *(fact(f"fact number {number}") for number in range(600)))
    StoreTalk(store).turn("zeppelin?", "airship!")

    first = follow_memories(store, index, 0.0)
    rest = bring(store, index)

    assert first < 602
    assert first + rest == 602
    assert bring(store, index) == 0
    assert index.state().entries == 602


def test_another_store_behind_the_same_index_is_followed_from_its_beginning(store, index):
    keep(store, *(fact(f"fact number {number}") for number in range(5)))
    bring(store, index)
    other = RamStore()
    keep(other, *(fact(f"other fact number {number}") for number in range(5)))

    assert bring(other, index) == 5


def test_memories_and_windows_stay_out_of_the_history(store, index):
    keep(store, fact("the zeppelin is blue"))
    StoreTalk(store).turn("which zeppelin?", "the blue one")
    bring(store, index)
    follow(store, index, time.monotonic() + 60)

    pages = {page.id for page in store.pages(Where())}
    found = find(Query("zeppelin", deadline=30.0), store, index).best

    assert [each.page.kind for each in found] == [Kind.PROMPT]
    assert {each.page.id for each in found} <= pages


def test_an_entry_holds_title_text_and_topics_of_its_memory():
    memory = fact("Deploys go through staging", topics=("deploy", "staging"))

    entry = entry_of(memory)

    assert (entry.whole, entry.kind, entry.title, entry.time) == (
        memory.id,
        "fact",
        memory.title,
        1000.0,
    )
    assert entry.text == "Deploys go through staging\ndeploy, staging"
