"""Which steps leave first: pure functions from what is known of a step to a score. The highest
scores leave first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hotset.nouns.knobs import PolicyName
from hotset.nouns.page import Kind


@dataclass(frozen=True, slots=True)
class Candidate:
    """A step that may leave."""

    age: int
    """How many steps came after it."""
    tokens: int
    unused: int
    """How many steps came since a call last copied something from it; its age where none did."""
    finished: bool
    """The user has spoken again since: the work it belongs to is done, or was given up."""
    strange: float
    """How little it has to do with the latest steps: 1 where it shares no name with them, 0 where
    it shares all."""
    kinds: frozenset[Kind]


Policy = Callable[[Candidate], float]


def recency(step: Candidate) -> float:
    """The oldest first."""
    return step.age


def use(step: Candidate) -> float:
    """The longest unused first: what later calls copied from stays."""
    return step.unused + step.age / 1e6


def size(step: Candidate) -> float:
    """The largest first, weighed with age: the most room for the fewest stubs."""
    return step.tokens * (1 + step.age)


def topic(step: Candidate) -> float:
    """First what has least to do with what is being done now."""
    return step.strange * 1e6 + step.age


def task(step: Candidate) -> float:
    """First the work that is finished, then the oldest."""
    return step.finished * 1e6 + step.age


POLICIES: Mapping[PolicyName, Policy] = {
    "recency": recency,
    "use": use,
    "size": size,
    "topic": topic,
    "task": task,
}
