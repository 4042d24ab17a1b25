"""Memories of every kind, for hypothesis, and stores that have them."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import (
    Action,
    Checkpoint,
    Ending,
    Episode,
    Fact,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    Pitfall,
    Procedure,
    Provenance,
    Standing,
    Task,
    Trouble,
    Trust,
)
from hotset.nouns.page import PageId, SessionId
from hotset.sources.memory.kinds import memory_id
from hotset.testing.ram_store import RamStore

text = st.text(max_size=30) | st.sampled_from(
    [
        "# Steps\n1. a",
        "<!-- hotset:begin x -->",
        "&lt;!-- hotset:end x -->",
        "a\r\nb",
        "-->",
        "## A heading",
        "`x` · y",
        " \n\n ",
    ]
)
texts = st.lists(text, max_size=3).map(tuple)
times = st.floats(0, 4e9, allow_nan=False)
_troubles = st.builds(
    Trouble, text, text, text, text, texts, st.booleans(), st.none() | text.map(PageId)
)
_details = {
    MemoryKind.EPISODE: st.builds(
        Episode,
        goal=text,
        phase=text,
        turns=st.tuples(st.integers(0, 9), st.integers(0, 9)),
        seconds=times,
        actions=st.lists(st.builds(Action, times, text, text, st.booleans()), max_size=2).map(
            tuple
        ),
        troubles=st.lists(_troubles, max_size=2).map(tuple),
        files=texts,
        artifacts=texts,
        decisions=texts,
        tokens=st.integers(0, 10**6),
    ),
    MemoryKind.FACT: st.builds(Fact, text),
    MemoryKind.PROCEDURE: st.builds(Procedure, text, texts),
    MemoryKind.PITFALL: st.builds(Pitfall, text, text, text),
    MemoryKind.LEDGER: st.builds(Checkpoint, texts, text, texts, texts, text),
    MemoryKind.HANDOFF: st.builds(Checkpoint, texts, text, texts, texts, text),
    MemoryKind.LEARNING: st.none(),
}
KINDS = tuple(_details)


@st.composite
def memories(draw: st.DrawFn, standings: Iterable[Standing] = tuple(Standing)) -> MemoryRecord:
    kind = draw(st.sampled_from(KINDS))
    created = draw(times)
    return MemoryRecord(
        id=memory_id(kind, str(draw(st.integers(0, 10**9))), created),
        kind=kind,
        title=draw(text),
        text=draw(text),
        created=created,
        source=Provenance(
            draw(st.sampled_from(["rules", "person", "import", "a model"])),
            draw(st.none() | text.map(SessionId)),
            draw(text),
            draw(texts.map(lambda ids: tuple(map(PageId, ids)))),
            draw(texts),
        ),
        detail=draw(_details[kind]),
        topics=draw(texts),
        task=draw(st.none() | st.sampled_from(Task)),
        ending=draw(st.sampled_from(Ending)),
        confidence=draw(st.floats(0, 1)),
        trust=draw(st.sampled_from(Trust)),
        standing=draw(st.sampled_from(list(standings))),
        valid_until=draw(st.none() | times),
        pinned=draw(st.booleans()),
        tokens=draw(st.integers(0, 1000)),
        time=draw(times),
        run=draw(text),
        why=draw(text),
    )


def some(
    standings: Iterable[Standing] = tuple(Standing), most: int = 6
) -> st.SearchStrategy[list[MemoryRecord]]:
    return st.lists(memories(standings), max_size=most, unique_by=lambda memory: memory.id)


def holding(memories: Iterable[MemoryRecord] = (), links: Iterable[MemoryLink] = ()) -> RamStore:
    store = RamStore()
    store.keep(Remembered(memories=tuple(memories), links=tuple(links))).result()
    return store


def fact(text: str, /, **also: object) -> MemoryRecord:
    return made(MemoryKind.FACT, text, Fact(), **also)


def made(kind: MemoryKind, text: str, detail: object = None, /, **also: object) -> MemoryRecord:
    return MemoryRecord(
        **{
            "id": memory_id(kind, text, 1_767_600_000.0),
            "kind": kind,
            "title": text.split("\n", 1)[0],
            "text": text,
            "created": 1_767_600_000.0,
            "source": Provenance("rules"),
            "detail": detail,
            "trust": Trust.OUTCOME,
            "time": 1_767_600_000.5,
            **also,
        }
    )
