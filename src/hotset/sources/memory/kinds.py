"""The kinds of memory and their traits, and the ids of memories.

The detail of each kind is in `nouns.memory.DETAILS`, its form in files in `exchange/items.py`.
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b

from hotset.errors import BadInput
from hotset.nouns.memory import DETAILS, MemoryId, MemoryKind, MemoryRecord, Procedure, Task

RULES, PERSON = "rules", "person"
"""`Provenance.by` of memories made by rules without a model, and of those a person wrote."""

_HASH_BYTES = 5  # 40 bits: 0.005 collisions expected among 100,000 memories of a kind


@dataclass(frozen=True, slots=True)
class KindTraits:
    """What differs between kinds of memory."""

    prefix: str
    """Of its ids."""
    colour: str = ""
    """Of its ids on a terminal and in a graph; empty for the default."""
    weights: Mapping[Task, float] = field(default_factory=dict)
    """How much each task wants of it, relative to other kinds with weights."""
    is_dated: bool = False
    """Its id contains the day; its ending is shown."""
    is_advice: bool = False
    """A candidate until a person or an outcome vouches for it; few are shown at once."""
    is_warning: bool = False
    """Shown first, under its own heading, when debugging."""
    lasts: bool = False
    """Holds until replaced: age never hides it, and duplicates are merged."""
    settles: bool = False
    """A new one confirms, replaces or contradicts older ones."""
    is_reworded: bool = False
    """Written anew when its session goes on."""
    is_free_text: bool = False
    """Free text; an action that copies a name from it has used it."""
    reminds: bool = False
    """Shown to a prompt unasked."""
    is_ours: bool = False
    """hotset's own: never listed, recalled, exported or named."""


def _by_task(*weights: float) -> Mapping[Task, float]:
    return dict(zip(Task, weights, strict=True))


KINDS: Mapping[MemoryKind, KindTraits] = {
    MemoryKind.EPISODE: KindTraits(
        "ep", "blue", _by_task(0.6, 0.15, 0.4, 0.3, 0.25), is_dated=True, is_reworded=True
    ),
    MemoryKind.FACT: KindTraits(
        "sem",
        "green",
        _by_task(0.3, 0.5, 0.2, 0.5, 0.45),
        lasts=True,
        settles=True,
        is_free_text=True,
        reminds=True,
    ),
    MemoryKind.PROCEDURE: KindTraits(
        "proc", "cyan", _by_task(0.1, 0.35, 0.0, 0.0, 0.3), is_advice=True, lasts=True, reminds=True
    ),
    MemoryKind.PITFALL: KindTraits(
        "pit",
        "red",
        _by_task(0.0, 0.0, 0.4, 0.2, 0.0),
        is_advice=True,
        is_warning=True,
        lasts=True,
        reminds=True,
    ),
    MemoryKind.LEARNING: KindTraits("learn", lasts=True, is_free_text=True, reminds=True),
    MemoryKind.LEDGER: KindTraits("led", is_reworded=True, is_free_text=True),
    MemoryKind.HANDOFF: KindTraits("hand", is_free_text=True, reminds=True),
    MemoryKind.ARRANGEMENT: KindTraits("arr", is_ours=True),
}

NAMED_KINDS = frozenset(kind for kind, traits in KINDS.items() if not traits.is_ours)
"""Kinds that people and models may name, list and recall."""
WORDED_KINDS = tuple(
    kind for kind, traits in KINDS.items() if not traits.is_ours and not traits.is_dated
)
"""Kinds that they may write themselves, in the order offered."""
DEFAULT_KIND = WORDED_KINDS[0]
ADVICE_KINDS = frozenset(kind for kind, traits in KINDS.items() if traits.is_advice)
LASTING_KINDS = frozenset(kind for kind, traits in KINDS.items() if traits.lasts)
REMINDED_KINDS = frozenset(kind for kind, traits in KINDS.items() if traits.reminds)
WARNING_KINDS = frozenset(kind for kind, traits in KINDS.items() if traits.is_warning)

PREFIX = "|".join(traits.prefix for traits in KINDS.values())
"""A pattern for the prefixes of ids."""
_KINDS = {traits.prefix: kind for kind, traits in KINDS.items()}
_ID = re.compile(rf"(?:{PREFIX})-[a-z0-9][a-z0-9-]{{0,60}}")


def kinds_of(*details: type) -> frozenset[MemoryKind]:
    """The kinds with such a detail."""
    return frozenset(kind for kind, detail in DETAILS.items() if detail in details)


def kind_named(name: str) -> MemoryKind:
    """The kind of this name. Raises `BadInput`."""
    every = [kind for kind in MemoryKind if kind in NAMED_KINDS]
    found = next((kind for kind in every if kind == name.strip().lower()), None)
    if found is None:
        raise BadInput(f"a memory is one of {', '.join(every)}, not {name[:40]!r}")
    return found


def memory_id(kind: MemoryKind, key: str, created: float = 0.0) -> MemoryId:
    """The same on any machine; `key` identifies the memory among its kind."""
    hashed = blake2b(
        f"{kind}\0{key}".encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES
    ).digest()
    name = b32encode(hashed).decode().lower()
    day = f"{datetime.fromtimestamp(created, UTC):%Y-%m-%d}-" if KINDS[kind].is_dated else ""
    return MemoryId(f"{KINDS[kind].prefix}-{day}{name}")


def is_memory_id(text: str) -> bool:
    """True if it looks like one. Ids of other programs (`sem-001`) do, too."""
    return _ID.fullmatch(text) is not None


def ids_in(text: str) -> list[MemoryId]:
    """The memories that a text refers to as `[sem-001]`, in order, each once."""
    return list(
        dict.fromkeys(MemoryId(found) for found in re.findall(rf"\[({_ID.pattern})\]", text))
    )


def kind_of(id: MemoryId) -> MemoryKind | None:
    return _KINDS.get(id.split("-", 1)[0])


def is_same(one: MemoryRecord, other: MemoryRecord) -> bool:
    """True if both say the same, whatever their version, time, run and reason."""
    first, second = (
        replace(memory, time=0.0, version=0, run="", why="") for memory in (one, other)
    )
    return first == second


AFTER_A_CHANGE = "after a change"
"""How the occasion of a check begins that every change has to pass."""


def is_routine(memory: MemoryRecord) -> bool:
    """True for the checks that every change has to pass."""
    detail = memory.detail
    return isinstance(detail, Procedure) and detail.when.lower().startswith(AFTER_A_CHANGE)
