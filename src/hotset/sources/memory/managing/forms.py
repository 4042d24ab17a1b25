"""In which form a memory is shown: by its age, its use, and how much it tells. Pure: nothing is written or removed by age."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import log

from hotset.nouns.memory import Arrangement, Layer, Memory, MemoryKind, Uses
from hotset.text.terms import topic_words

RARE = 0.75
"""From this mass on a memory is shown one form better than its age says: the quarter that tells most."""

_DAY = 86_400.0
_LASTING = frozenset({MemoryKind.FACT, MemoryKind.PROCEDURE, MemoryKind.PITFALL, MemoryKind.LEARNING})
_BETTER = {Layer.INDEX: Layer.TIMELINE, Layer.TIMELINE: Layer.FULL, Layer.FULL: Layer.FULL}
_EDGES = 100  # a mass is known to one part in so many


@dataclass(frozen=True, slots=True)
class Frequencies:
    """In how many memories each word stands, and what that makes of them."""

    memories: int = 0
    words: Mapping[str, int] = field(default_factory=dict)
    edges: tuple[float, ...] = ()
    """Weights of memories, each above as many of them as the one before it; ascending."""


def layer_of(memory: Memory, now: float, *, uses: Uses, referenced: bool, mass: float, arrangement: Arrangement) -> Layer:
    """A week in full, a month in a line, then among those that its topic counts; one form better where it tells much.

    A memory's age counts from its last use. What another memory or a person refers to, or what was of use, stays a line. So
    does what holds as long as nothing replaces it (facts, procedures, pitfalls, lessons), whose line says what there is to say.
    """
    if memory.pinned:
        return Layer.FULL
    age = now - max(memory.created, uses.last)
    by_age = (
        Layer.FULL if age < arrangement.full_days * _DAY
        else Layer.TIMELINE if age < arrangement.line_days * _DAY
        else Layer.INDEX
    )  # fmt: skip
    layer = _BETTER[by_age] if mass >= RARE else by_age
    of_use = uses.read + uses.helped > uses.misled
    stays = referenced or of_use or memory.kind in _LASTING
    return Layer.TIMELINE if layer is Layer.INDEX and stays else layer


def mass(memory: Memory, frequencies: Frequencies) -> float:
    """How much it tells: the share of memories, from 0 to 1, whose words are fewer or more common than its own."""
    if not frequencies.edges:
        return 0.0
    weight = _weight(frozenset(topic_words(memory.text)), frequencies.words, frequencies.memories)
    return bisect_left(frequencies.edges, weight) / len(frequencies.edges)


def frequencies(memories: Iterable[Memory]) -> Frequencies:
    """Of all of them, read once. Takes about a hundred bytes a memory while it works, and a tenth of a kilobyte a word."""
    counted: Counter[str] = Counter()
    numbers: dict[str, int] = {}
    read: list[tuple[int, ...]] = []
    for memory in memories:
        words = frozenset(topic_words(memory.text))
        counted.update(words)
        read.append(tuple(sorted(numbers.setdefault(word, len(numbers)) for word in words)))
    worth = [_worth(counted[word], len(read)) for word in numbers]
    weights = sorted(sum(worth[number] for number in each) for each in read)
    step = max(1, len(weights) // _EDGES)
    return Frequencies(len(read), counted, tuple(weights[::step]))


def _weight(words: frozenset[str], counted: Mapping[str, int], memories: int) -> float:
    return sum(_worth(counted.get(word, 0), memories) for word in sorted(words))


def _worth(held_by: int, memories: int) -> float:
    """A word's inverse document frequency."""
    return log((memories + 1) / (held_by + 1)) if memories else 0.0
