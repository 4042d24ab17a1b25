"""Memories to be told of, and stores that hold them."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import (
    Arrangement,
    Checkpoint,
    Detail,
    Ending,
    MemoryId,
    MemoryKind,
    MemoryRecord,
    Provenance,
    Standing,
    Trust,
)
from hotset.nouns.page import SessionId
from hotset.sources.memory.kinds import memory_id
from hotset.store.port import Store
from hotset.testing.ram_store import RamStore
from hotset.tokens import count

NOW = 1_800_000_000.0
DAY = 86_400.0
WORDS = re.findall(
    r"\w+",
    (
        "auth token rotate cache sqlite store index window plan proxy retry socket parse header "
        "merge page turn login"
    ),
)


def a_memory(
    title: str,
    *,
    kind: MemoryKind = MemoryKind.EPISODE,
    text: str = "",
    topics: Sequence[str] = (),
    age: float = 1.0,
    ending: Ending = Ending.SUCCESS,
    trust: Trust = Trust.OUTCOME,
    standing: Standing = Standing.ACTIVE,
    detail: Detail = None,
    key: str = "",
    agent: str = "",
    pinned: bool = False,
    version: int = 1,
) -> MemoryRecord:
    """`age` is in days."""
    created = NOW - age * DAY
    text = text or f"{title}."
    return MemoryRecord(
        id=memory_id(kind, key or title, created),
        kind=kind,
        title=title,
        text=text,
        created=created,
        source=Provenance("rules", SessionId("s1"), agent),
        detail=detail,
        topics=tuple(topics),
        ending=ending,
        trust=trust,
        standing=standing,
        pinned=pinned,
        tokens=count(text),
        time=NOW,
        version=version,
    )


def a_ledger(
    title: str, *, age: float = 1.0, agent: str = "", topics: Sequence[str] = (), **left: object
) -> MemoryRecord:
    detail = Checkpoint(**left)  # type: ignore[arg-type]
    return a_memory(
        title, kind=MemoryKind.LEDGER, age=age, agent=agent, topics=topics, detail=detail
    )


def keep(store: Store, *memories: MemoryRecord) -> Store:
    store.keep(Remembered(memories)).result()
    return store


def a_store(*memories: MemoryRecord) -> Store:
    return keep(RamStore(), *memories)


def a_busy_store(many: int = 120, seed: int = 1) -> Store:
    """Some months of work on a dozen topics; the old topics are others than the new ones."""
    rng = random.Random(seed)
    kinds = [MemoryKind.EPISODE, MemoryKind.EPISODE, MemoryKind.FACT, MemoryKind.PITFALL]
    made = []
    for at in range(many):
        age = 200 * (1 - at / many)
        pool = WORDS[:6] if age > 120 else WORDS[6:]
        topics = rng.sample(pool, rng.randint(1, 3))
        text = " ".join(rng.choice(WORDS) for _ in range(rng.randint(10, 200)))
        title = f"{' '.join(rng.choice(WORDS) for _ in range(6))} {at}"
        ending = rng.choice(list(Ending))
        made.append(
            a_memory(
                title,
                kind=rng.choice(kinds),
                text=text,
                topics=topics,
                age=age,
                ending=ending,
                key=str(at),
            )
        )
    return a_store(*made)


@dataclass(frozen=True, slots=True)
class Recalled:
    """As a recall gives it."""

    id: str
    kind: str
    title: str
    text: str
    time: float
    score: float = 1.0
    memory: MemoryRecord | None = None
    speaker: str = ""


def recalled(memory: MemoryRecord, score: float = 1.0) -> Recalled:
    return Recalled(
        memory.id, memory.kind, memory.title, memory.text, memory.created, score, memory
    )


def topics_in(store: Store):
    known = {memory.id: memory.topics for memory in store.memories()}

    def topics(id: MemoryId) -> Sequence[str]:
        return known.get(id, ())

    return topics


names = st.sampled_from(WORDS) | st.text(min_size=1, max_size=30).map(str.strip).filter(bool)
texts = st.builds(
    lambda words, times: " ".join(words * times), st.lists(names, max_size=5), st.integers(1, 30)
)


@st.composite
def some_memories(draw: st.DrawFn, most: int = 8) -> list[MemoryRecord]:
    made = draw(st.lists(_any_memory, max_size=most))
    return [
        replace(memory, id=memory_id(memory.kind, str(at), memory.created))
        for at, memory in enumerate(made)
    ]


_any_memory = st.builds(
    a_memory,
    title=texts,
    kind=st.sampled_from([kind for kind in MemoryKind if kind is not MemoryKind.ARRANGEMENT]),
    text=texts,
    topics=st.lists(names, max_size=3),
    age=st.floats(0, 400),
    ending=st.sampled_from(Ending),
    trust=st.sampled_from(Trust),
    standing=st.sampled_from([*Standing, Standing.ACTIVE, Standing.ACTIVE]),
    pinned=st.booleans(),
)

arrangements = st.builds(
    Arrangement,
    scores=st.dictionaries(names, st.floats(0.2, 1.5), max_size=4),
    aliases=st.dictionaries(names, names, max_size=3),
    composites=st.dictionaries(
        names, st.lists(names, min_size=2, max_size=3).map(tuple), max_size=2
    ),
    stale=st.lists(names, max_size=3).map(tuple),
    split=st.booleans(),
    full_days=st.floats(1, 7),
    line_days=st.floats(7, 30),
    excerpt=st.integers(60, 120),
)
