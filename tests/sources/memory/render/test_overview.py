"""What is remembered, at a glance."""

from __future__ import annotations

import stat
from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from disclosed_memories import NOW, a_busy_store, a_ledger, a_memory, a_store, keep, some_memories
from hypothesis import given, strategies as st

from hotset.nouns.deposit import Erased
from hotset.nouns.memory import (
    Arrangement,
    Episode,
    MemoryKind,
    MemoryRecord,
    Provenance,
    Standing,
    Trust,
)
from hotset.sources.memory.overview import FILE, FORMAT, Overview, OverviewFile, overview
from hotset.store.port import Store
from hotset.store.sqlite import SqliteStore
from hotset.testing.ram_store import RamStore


def counted(store: Store) -> tuple[int, int, dict[str, int], dict[str, int]]:
    """What an overview should say, counted the plain way."""
    active = [
        m
        for m in store.memories(standings=frozenset({Standing.ACTIVE}))
        if m.kind is not MemoryKind.ARRANGEMENT
    ]
    many = Counter(topic for memory in active for topic in {*memory.topics})
    tokens: Counter[str] = Counter()
    for memory in active:
        tokens.update(dict.fromkeys({*memory.topics}, memory.tokens))
    return (
        len(active),
        sum(memory.tokens for memory in active),
        dict(many),
        {name: tokens[name] for name in many},
    )


def told(seen: Overview) -> tuple[int, int, dict[str, int], dict[str, int]]:
    topics = seen.topics
    return (
        seen.memories,
        seen.tokens,
        {name: topic.count for name, topic in topics.items()},
        {name: topic.tokens for name, topic in topics.items()},
    )


@given(st.data())
@pytest.mark.slow
def test_it_counts_what_is_active_now_however_often_memories_changed_and_whenever_it_looked(
    data: st.DataObject,
):
    store = RamStore()
    seen: Overview | None = None
    latest: dict[str, MemoryRecord] = {}
    for _ in range(data.draw(st.integers(1, 4))):
        new = [memory for memory in data.draw(some_memories(5)) if memory.id not in latest]
        changed = (
            data.draw(st.lists(st.sampled_from(sorted(latest)), unique=True, max_size=4))
            if latest
            else []
        )
        versions = [
            replace(
                latest[id],
                version=latest[id].version + 1,
                standing=data.draw(st.sampled_from(Standing)),
                topics=tuple(data.draw(st.lists(st.sampled_from(["auth", "cache"]), max_size=2))),
                tokens=data.draw(st.integers(0, 50)),
            )
            for id in changed
        ]
        keep(store, *{memory.id: memory for memory in new}.values(), *versions)
        latest.update({memory.id: memory for memory in store.memories()})
        if data.draw(st.booleans()):
            seen = overview(store, seen)
    assert told(overview(store, seen)) == told(overview(store)) == counted(store)


def test_a_forgotten_memory_leaves_no_word_of_itself():
    secret = a_memory("The rabbit project", topics=["rabbit"], age=1)
    other = a_memory("Something else", topics=["rabbit"], age=2)
    store = a_store(other, secret)
    seen = overview(store)
    assert seen.topics["rabbit"].summary == "The rabbit project"
    keep(store, replace(secret, version=2, standing=Standing.FORGOTTEN))
    after = overview(store, seen)
    assert after.topics["rabbit"].count == 1
    assert b"The rabbit project" not in msgspec.json.encode(after)
    assert secret.id.encode() not in msgspec.json.encode(after)


def test_candidates_merged_ones_and_arrangements_do_not_count():
    store = a_store(
        a_memory("waits", standing=Standing.CANDIDATE, topics=["a"]),
        a_memory("merged", standing=Standing.MERGED, topics=["a"]),
        a_memory("ours", kind=MemoryKind.ARRANGEMENT, detail=Arrangement(), topics=["a"]),
        a_memory("counts", topics=["a"]),
    )
    assert overview(store).memories == overview(store).topics["a"].count == 1


def test_words_from_outside_are_counted_and_never_quoted():
    store = a_store(
        a_memory("Run this first", kind=MemoryKind.FACT, trust=Trust.OUTSIDE, topics=["setup"])
    )
    seen = overview(store)
    assert seen.topics["setup"].count == 1
    assert b"Run this" not in msgspec.json.encode(seen)


def test_nothing_new_gives_back_what_was_there():
    store = a_busy_store(30)
    seen = overview(store)
    assert overview(store, seen) is seen


def test_another_store_in_its_place_is_folded_anew():
    seen = overview(a_busy_store(30, seed=1))
    other = a_busy_store(30, seed=2)
    assert overview(other, seen) == overview(other)


def test_what_an_agent_left_is_kept_apart_from_what_was_done():
    store = a_store(a_ledger("ledger", agent="coder", doing="the parser", blockers=("no key",)))
    (point,) = overview(store).points
    assert (point.agent, point.doing, point.blockers) == ("coder", "the parser", ("no key",))
    assert not overview(store).actions


def test_the_latest_lines_are_kept_and_pinned_ones_stay():
    old = a_memory("an old fact", kind=MemoryKind.FACT, age=1000, pinned=True)
    store = a_store(
        old, *(a_memory(f"fact {at}", kind=MemoryKind.FACT, age=at) for at in range(600))
    )
    lines = overview(store).known
    assert lines[0].id == old.id
    assert [line.title for line in lines[1:4]] == ["fact 0", "fact 1", "fact 2"]
    assert len(lines) == 512


def test_a_question_is_no_work_and_a_pattern_no_fact_of_its_own():
    asked = a_memory("Where do the tokens live?", detail=Episode("Where do the tokens live?"))
    done = a_memory("Move the tokens", detail=Episode("Move the tokens"))
    pattern = a_memory("Rotate the tokens \u2026", kind=MemoryKind.FACT)
    seen = overview(a_store(asked, done, replace(pattern, source=Provenance("rules"))))
    assert [line.id for line in seen.actions] == [done.id]
    assert (seen.known, seen.decisions) == ((), ())
    assert seen.memories == 3


def test_decisions_are_told_from_other_facts_by_what_they_say_now():
    rule = a_memory("Never force-push to main", kind=MemoryKind.FACT)
    place = a_memory("The staging database lives in Frankfurt", kind=MemoryKind.FACT)
    store = a_store(rule, place)
    before = overview(store)
    assert ([line.id for line in before.decisions], [line.id for line in before.known]) == (
        [rule.id],
        [place.id],
    )

    edited = replace(
        place,
        version=2,
        text="We decided to move the staging database to Dublin",
        title="Staging moves to Dublin",
    )
    after = overview(keep(store, edited), before)
    assert {line.id for line in after.decisions} == {rule.id, place.id}
    assert not after.known


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_the_next_process_goes_on_from_the_file(folder: Path):
    store = SqliteStore.open(folder)
    keep(store, a_memory("one", topics=["a"]), a_memory("two", topics=["a", "b"]))
    seen = OverviewFile(folder).latest(store)
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    keep(store, a_memory("three", topics=["b"]))
    again = OverviewFile(folder).latest(store)
    assert (seen.memories, again.memories) == (2, 3)
    assert again == overview(store)
    store.close()


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[1,2]", b'{"format": 999, "number": 5, "memories": 7}', b'{"memories": "many"}'],
)
def test_a_file_that_is_damaged_or_too_new_is_made_again(folder: Path, damage: bytes):
    store = a_busy_store(20)
    OverviewFile(folder).latest(store)
    (folder / FILE).write_bytes(damage)
    assert OverviewFile(folder).latest(store) == overview(store)
    assert msgspec.json.decode((folder / FILE).read_bytes())["format"] == FORMAT


def test_what_was_erased_is_gone_from_the_file_and_from_every_process_that_knew_it(folder: Path):
    secret = a_memory("The rabbit project", topics=["rabbit"])
    store = a_store(secret, a_memory("Something else", topics=["work"]))
    here, there = OverviewFile(folder), OverviewFile(folder)
    assert here.latest(store) == there.latest(store)
    store.keep(Erased((secret.id,), NOW)).result()
    here.drop()
    assert here.latest(store).memories == there.latest(store).memories == 1
    assert b"rabbit" not in (folder / FILE).read_bytes()


def test_who_looked_before_an_erasure_does_not_write_after_it(folder: Path):
    """The file is dropped between a process's look at the store and its writing."""
    secret = a_memory("The rabbit project", topics=["rabbit"])
    store = a_store(secret, a_memory("Something else", topics=["work"]))
    here, there = OverviewFile(folder), OverviewFile(folder)

    class Erasing:
        """A store that is erased from right behind the last read of a fold."""

        def memories_after(self, number: int, limit: int):
            batch = store.memories_after(number, limit)
            if not batch and store.memory_versions(secret.id):
                store.keep(Erased((secret.id,), NOW)).result()
                there.drop()
            return batch

        def __getattr__(self, name: str):
            return getattr(store, name)

    here.latest(Erasing())  # type: ignore[arg-type]
    assert b"rabbit" not in (folder / FILE).read_bytes()
    assert here.latest(store).memories == 1
