"""Memories for programs: the same as for agents and people, blocking and awaited."""

from __future__ import annotations

import asyncio

import pytest

from hotset.errors import BadInput, MemoryClosed, NotFound
from hotset.nouns.memory import Standing, Trust

HERON = "The staging host is called heron"
PITFALL = "The upload test is flaky when the clock jumps"


def test_what_a_program_remembers_it_recalls_lists_and_forgets(memory):
    opened = memory()
    kept = opened.memories.remember(HERON, topics=["hosts"], agent="deployer")

    answer = opened.memories.recall("which host is staging")
    assert "heron" in answer.text
    assert answer.recall.items[0].id == kept.id
    assert answer.recall.items[0].why
    assert opened.memories.get(kept.id).topics == ("hosts",)
    assert HERON in opened.memories.read(kept.id).text
    assert [each.id for each in opened.memories.all(kinds=["fact"], topic="hosts")] == [kept.id]
    with pytest.raises(BadInput, match="a memory is one of episode, fact"):
        opened.memories.all(kinds=["rule"])
    assert opened.memories.index().tokens <= 100
    assert opened.memories.timeline().tokens <= 500

    opened.memories.forget(kept.id)
    assert "heron" not in opened.memories.recall("which host is staging").text
    opened.memories.forget(kept.id, erase=True)
    with pytest.raises(NotFound):
        opened.memories.get(kept.id)


def test_a_program_asks_for_more_until_everything_was_told(memory):
    opened = memory()
    for number in range(7):
        opened.memories.remember(f"Host number {number} is called heron{number}")

    answers = [
        opened.memories.recall("how are the hosts called", limit=5, more=more) for more in range(3)
    ]

    assert [len(answer.shown) for answer in answers] == [5, 2, 0]
    assert not answers[2].text


def test_advice_counts_at_once_only_where_a_person_stands_for_it(memory):
    memories = memory().memories

    assert memories.remember(PITFALL, kind="pitfall").standing is Standing.CANDIDATE
    assert (
        memories.remember(
            f"{PITFALL} again", kind="pitfall", by="person", trust=Trust.PERSON
        ).standing
        is Standing.ACTIVE
    )


def test_the_same_on_a_loop(memory):
    async def program() -> tuple[str, str, str, int, int]:
        async with memory() as opened:
            kept = await opened.memories.remember(HERON)
            told = (await opened.memories.recall("which host is staging")).text
            assert not (await opened.memories.recall("which host is staging", more=1)).text
            read = (await opened.memories.read(kept.id)).text
            index = await opened.memories.index()
            timeline = await opened.memories.timeline()
            assert [each.id for each in await opened.memories.all()] == [kept.id]
            assert (await opened.memories.get(kept.id)).text == HERON
            await opened.memories.forget(kept.id)
            gone = (await opened.memories.recall("which host is staging")).text
            return told, read, gone, index.tokens, timeline.tokens

    told, read, gone, index, timeline = asyncio.run(program())
    assert "heron" in told
    assert "heron" in read
    assert "heron" not in gone
    assert (index <= 100, timeline <= 500) == (True, True)


def test_memories_end_with_the_memory(memory):
    opened = memory()
    opened.close()

    with pytest.raises(MemoryClosed):
        opened.memories.index()
