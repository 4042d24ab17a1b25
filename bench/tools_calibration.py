"""How true the score of a first result is: part of `bench/tools.py`.

The tools of all sets in one library, and random libraries of 1,000, 100 and 10 of them. Half of the
questions are asked where all of their tools are there, half where none is, so that every first
result is wrong. Nothing was fitted on these questions.

    score, right      of the first results: the mean score, and how many of them were right
    ece               expected calibration error: how far score and right are apart in each tenth of
    the scores, by its share there_, missing_  the same for questions whose tools are there, and the
    mean score where they are missing below_right       of the right ones, the share that is told to
    be unlikely; below_wrong of the wrong ones
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from hotset.nouns.tool import UNLIKELY, Tool
from hotset.sources.tools.tool_search import ToolSearch

_SEED = 5
_BINS = 10
_PLAN = ((10, 40, 8), (100, 8, 40), (1000, 3, 100))
"""Tools of a library, how many such libraries, and how many questions of each kind are asked
there."""
_ALL = 300
_PATIENT = 30.0

Asked = tuple[str, frozenset[str]]
"""A question, and the names of its tools."""
Library = Callable[[Sequence[Tool]], AbstractContextManager[ToolSearch]]


@dataclass(frozen=True, slots=True)
class First:
    """A first result."""

    size: int
    """Tools of the library."""
    there: bool
    """The right tool was in it."""
    score: float
    right: bool


def calibration(
    tools: Sequence[Tool], questions: Sequence[Asked], library: Library
) -> dict[str, dict[str, dict[str, float]]]:
    """Two tables: by the size of the library, and by the score."""
    firsts = [*_of_random_libraries(tools, questions, library), *_of_all(tools, questions, library)]
    sizes = sorted({first.size for first in firsts})
    by_size = {
        f"{size:,} tools": _told([first for first in firsts if first.size == size])
        for size in sizes
    }
    return {
        "calibration": {"hotset": _told(firsts), **by_size},
        "calibration, by score": {
            f"{at / _BINS:.1f} to {(at + 1) / _BINS:.1f}": _row(some)
            for at in range(_BINS)
            if (some := _bin(firsts, at))
        },
    }


def _of_random_libraries(
    tools: Sequence[Tool], questions: Sequence[Asked], library: Library
) -> Iterator[First]:
    rng = random.Random(_SEED)
    by_name = {tool.name: tool for tool in tools}
    for size, libraries, many in _PLAN:
        for _ in range(libraries):
            names: set[str] = set()
            for _, gold in rng.sample(questions, many):
                names |= gold if len(names | gold) <= size else set()
            names |= set(rng.sample(sorted(by_name.keys() - names), size - len(names)))
            there = [asked for asked in questions if asked[1] <= names]
            missing = [asked for asked in questions if not asked[1] & names]
            asked = [
                *rng.sample(there, min(many, len(there))),
                *rng.sample(missing, min(many, len(missing))),
            ]
            yield from _firsts([by_name[name] for name in sorted(names)], asked, library)


def _of_all(tools: Sequence[Tool], questions: Sequence[Asked], library: Library) -> Iterator[First]:
    sample = random.Random(_SEED).sample(questions, 2 * _ALL)
    missing = set[str]().union(*(gold for _, gold in sample[_ALL:]))
    yield from _firsts(tools, sample[:_ALL], library)
    rest = [tool for tool in tools if tool.name not in missing]
    yield from (replace(first, size=len(tools)) for first in _firsts(rest, sample[_ALL:], library))


def _firsts(tools: Sequence[Tool], asked: Iterable[Asked], library: Library) -> Iterator[First]:
    names = {tool.name for tool in tools}
    with library(tools) as finding:
        for question, gold in asked:
            found = finding.find(question, 1, deadline=_PATIENT)
            if found:
                yield First(len(tools), bool(gold & names), found[0].score, found[0].name in gold)


def _told(firsts: Sequence[First]) -> dict[str, float]:
    there, missing = (
        [each for each in firsts if each.there],
        [each for each in firsts if not each.there],
    )
    right, wrong = (
        [each for each in firsts if each.right],
        [each for each in firsts if not each.right],
    )
    return {
        **_row(firsts),
        "ece": _error(firsts),
        "there_score": _mean(each.score for each in there),
        "there_right": _mean(each.right for each in there),
        "there_ece": _error(there),
        "missing_score": _mean(each.score for each in missing),
        "below_right": _mean(each.score < UNLIKELY for each in right),
        "below_wrong": _mean(each.score < UNLIKELY for each in wrong),
    }


def _row(firsts: Sequence[First]) -> dict[str, float]:
    score, right = _mean(each.score for each in firsts), _mean(each.right for each in firsts)
    return {"questions": float(len(firsts)), "score": score, "right": right}


def _error(firsts: Sequence[First]) -> float:
    some = [each for at in range(_BINS) if (each := _bin(firsts, at))]
    apart = ((len(each), abs(_row(each)["score"] - _row(each)["right"])) for each in some)
    return round(sum(many * far for many, far in apart) / max(1, len(firsts)), 3)


def _bin(firsts: Sequence[First], at: int) -> list[First]:
    return [each for each in firsts if min(_BINS - 1, int(each.score * _BINS)) == at]


def _mean(values: Iterable[float]) -> float:
    every = list(values)
    return round(sum(every) / max(1, len(every)), 3)
