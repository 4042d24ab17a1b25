"""How likely it is that a tool is the right one, so that a search can say that nothing fits. Pure.

An order alone does not tell: something is always first. What does: how much more of the question the first one answers than the
lower half of what was found (several tools that do the same must not make each other unlikely), how much of its name the question
speaks of, how far ahead it is, and how many tools there are: of many, one is near by chance. Their weights come from 5,500
questions of seven public sets (not those of the benchmark) to libraries of 10, 100, up to 3,600 and 8,400 tools; half of them
were asked where the right tool was missing. `make bench-tools` tells how true it is of questions that were not fitted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

UNLIKELY = 0.15
"""Below this nothing fits, as a rule: of such first results 9 in 100 were right. Of all that were right 10 in 100 are below it,
of all that were wrong half."""

_APART_WEIGHT, _NAMED_WEIGHT, _LEAD_WEIGHT, _SIZE_WEIGHT, _CONSTANT = 7.0, 2.7, 0.4, -0.52, -3.15
_SMALLEST = 10  # tools: smaller libraries were not looked at, and count as this
_FEWEST = 5  # others to compare with: half of a library of ten
_USUAL = 0.2  # what a tool answers of a question that is not about it: stands in where there are fewer
_LONGEST_LEAD = 3.0  # deviations; more says no more
_FALL = 2.0  # deviations behind the first one in which the likelihood falls to a third
_PAST_WEIGHT = 0.8  # of what a vote in full takes away of the doubt: what served once need not serve again


@dataclass(frozen=True, slots=True)
class Likeness:
    """Of one tool to one question."""

    answered: float = 0.0
    """Of what the question asks, how much the tool speaks of."""
    named: float = 0.0
    """Of what the tool is called, how much the question speaks of."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A tool that a search found, and what speaks for it."""

    name: str
    score: float
    """Its place in the order, in deviations among the candidates."""
    alike: Likeness
    vote: float = 0.0
    """What the past says for it, from 0 to 1."""
    by: frozenset[str] = field(default_factory=frozenset)


def likely(found: Sequence[Weighed], size: int) -> list[float]:
    """For each, best first, from 0 to 1: none is likelier than the one before. `size` is the number of tools looked through."""
    if not found:
        return []
    first = found[0]
    at_best = _of_first(first, found[1:], size)
    at_best += (1.0 - at_best) * _PAST_WEIGHT * min(1.0, max(0.0, first.vote))
    return [round(at_best * math.exp((each.score - first.score) / _FALL), 4) for each in found]


def _of_first(first: Weighed, found: Sequence[Weighed], size: int) -> float:
    others = [each for each in found if each.alike != first.alike]  # the same tool of thirty servers is right thirty times
    lower = [each.alike.answered for each in others[len(others) // 2 :]]
    usual = lower + [_USUAL] * (_FEWEST - len(lower))
    apart = first.alike.answered - sum(usual) / len(usual)
    lead = min(first.score - others[0].score, _LONGEST_LEAD) if others else 0.0
    speaks = _APART_WEIGHT * apart + _NAMED_WEIGHT * first.alike.named + _LEAD_WEIGHT * lead
    return 1.0 / (1.0 + math.exp(-(speaks + _SIZE_WEIGHT * math.log10(max(_SMALLEST, size)) + _CONSTANT)))
