"""Which steps leave the window, when, and in which order: the price model and the policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from hotset.nouns.knobs import Knobs, PolicyName
from hotset.nouns.page import Kind
from hotset.nouns.window import Cause
from hotset.window.arguments import spoken
from hotset.window.birth import rebirths
from hotset.window.instructions import instruction_steps
from hotset.window.leave import Departure, fold, leave, squeeze
from hotset.window.moment import Moment
from hotset.window.names import names_of
from hotset.window.step_sizes import Step, WeighedConversation, is_prompt

_LOGGED = 90
"""Tokens of one step's log, about: 70 to 150 on recorded sessions."""


def evict(weighed: WeighedConversation, knobs: Knobs, moment: Moment) -> Departure:
    """Rows and stubs for what leaves now, and why; empty if everything stays."""
    resident = [step for step in weighed.steps if weighed.is_resident(step)]
    overflow = weighed.total > moment.room(knobs)
    crowded = bool(knobs.most) and len(resident) > knobs.most
    if not resident or not (overflow or crowded or knobs.early):
        return Departure()
    may = [step for step in resident if _may_leave(weighed, step, knobs, moment)]
    if not (overflow or crowded or _pays(weighed, may, knobs, moment)):  # not even all of them pay
        return Departure()
    leaving = _leaving(weighed, resident, may, knobs, moment)
    if not (overflow or crowded or _pays(weighed, leaving, knobs, moment)):
        return Departure()
    early = Cause.GROWN if crowded else weighed.lost or Cause.PAYS
    departure = leave(weighed, leaving, knobs, moment, Cause.OVERFLOW if overflow else early)
    anew = rebirths(weighed.after(departure.rows), knobs, moment)
    departure.rows += (replace(row, cause=departure.cause) for row in anew if departure.cause)
    fold(departure, weighed, knobs, moment)
    if overflow:
        squeeze(departure, weighed, knobs, moment)
    return departure


def _may_leave(weighed: WeighedConversation, step: Step, knobs: Knobs, moment: Moment) -> bool:
    if weighed.steps[-1].number - step.number < knobs.keep:
        return False
    return not moment.pinned or not any(
        line.chain in moment.pinned for line in weighed.inside(step)
    )


def _leaving(
    weighed: WeighedConversation,
    resident: Sequence[Step],
    may: Sequence[Step],
    knobs: Knobs,
    moment: Moment,
) -> list[Step]:
    """The steps that leave, in conversation order: the highest scores are taken until the rest
    fits."""
    held = sum(map(weighed.of, resident))
    free = knobs.window / moment.scale - moment.fixed - (weighed.total - held)
    goal = knobs.low * max(0.0, free)
    leaving: list[Step] = []
    instructed = instruction_steps(
        weighed,
        knobs.forms.instructions,
        round(knobs.forms.instruction_share * knobs.window / moment.scale),
    )
    ranked = _rank_steps(weighed, may, knobs, moment)
    for step in sorted(ranked, key=lambda step: step.number in instructed):
        if step.number in instructed and free >= 2 * held:  # what else left was enough
            break
        if held <= goal and not (knobs.most and len(resident) - len(leaving) > knobs.keep):
            break
        leaving.append(step)
        held -= weighed.of(step)
    return sorted(leaving, key=lambda step: step.number)


def _rank_steps(
    weighed: WeighedConversation, may: Sequence[Step], knobs: Knobs, moment: Moment
) -> Sequence[Step]:
    """The steps in the order in which they leave. Steps with pages of a spared kind are last; among
    equal scores the oldest is first."""
    if knobs.policy == "recency" and not knobs.spared:
        return may
    score, facts = POLICIES[knobs.policy], _facts_of_steps(weighed, knobs.forms.latest)

    def rank(step: Step) -> tuple[bool, float, int]:
        moment.check()
        known = facts(step)
        return bool(known.kinds & knobs.spared), -score(known), step.number

    return sorted(may, key=rank)


def _facts_of_steps(weighed: WeighedConversation, now_doing: int) -> Callable[[Step], StepFacts]:
    """A function for a step's facts, computed once per step; the latest `now_doing` steps define
    the current topic."""

    @cache
    def names_in(step: Step) -> frozenset[str]:
        return frozenset().union(
            *(names_of(piece.content) for line in weighed.inside(step) for piece in line.pieces)
        )

    @cache
    def names_called(step: Step) -> frozenset[str]:
        pieces = (
            piece
            for line in weighed.inside(step)
            for piece in line.pieces
            if piece.kind.family is Kind.TOOL_CALL
        )
        return frozenset().union(
            *(names_of(spoken(piece.content).encode("utf-8", "replace")) for piece in pieces)
        )

    latest = weighed.steps[-1].number
    now = frozenset().union(*map(names_in, weighed.steps[-now_doing:]))
    prompted = max(
        (index for index, line in enumerate(weighed.lines) if is_prompt(line)), default=-1
    )

    def facts(step: Step) -> StepFacts:
        own = names_in(step)
        later = weighed.steps[step.number :]
        used = next(
            (each.number for each in reversed(later) if not own.isdisjoint(names_called(each))),
            step.number,
        )
        return StepFacts(
            age=latest - step.number,
            tokens=weighed.of(step),
            unused=latest - used,
            finished=step.last < prompted,
            strange=1 - len(own & now) / len(own) if own else 1.0,
            kinds=frozenset(piece.kind for line in weighed.inside(step) for piece in line.pieces),
        )

    return facts


def _pays(
    weighed: WeighedConversation, leaving: Sequence[Step], knobs: Knobs, moment: Moment
) -> bool:
    """True if letting these steps leave costs less than continuing to read them, and now is the
    time.

    A batch costs rewriting what follows it, its log, and the retrievals it will cause. Waiting
    makes batches larger and rarer, but the steps are read meanwhile: the cheapest size is the
    economic order quantity, sqrt(2 x cost of a batch x growth per call / cost of reading).
    """
    price = moment.price
    log = len(leaving) * _LOGGED
    left = sum(map(weighed.of, leaving))
    evicted = left - log
    if not leaving or evicted <= 0 or price.read <= 0:
        return False
    cached = -1 if weighed.lost else weighed.sent
    behind = weighed.sums[cached + 1] - weighed.sums[min(leaving[0].first, cached + 1)] - left
    regret = knobs.regret * moment.retrieval(moment.fixed + weighed.total - evicted)
    batch = (price.write - price.read) * max(0, behind) + price.write * log + regret
    calls = len(weighed.steps)
    saved = min(calls, knobs.patience) * price.read * evicted
    if weighed.lost is not None:  # all is written again anyway: there is nothing to wait for
        return saved + price.write * evicted > batch
    growth = sum(map(weighed.of, weighed.steps)) / calls
    return saved > batch and evicted >= math.sqrt(2 * batch * growth / price.read)


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What the policies know about a step that may leave."""

    age: int
    """Number of steps after it."""
    tokens: int
    unused: int
    """Steps since a call last copied something from it; its age if none did."""
    finished: bool
    """The user has written since: its work is done or was given up."""
    strange: float
    """Distance from the latest steps: 1 if they share no name, 0 if they share all."""
    kinds: frozenset[Kind]


Policy = Callable[[StepFacts], float]


def by_recency(step: StepFacts) -> float:
    """The oldest first."""
    return step.age


def by_use(step: StepFacts) -> float:
    """The longest unused first: what later calls copied from stays."""
    return step.unused + step.age / 1e6


def by_size(step: StepFacts) -> float:
    """The largest first, weighted by age: the most room for the fewest stubs."""
    return step.tokens * (1 + step.age)


def by_topic(step: StepFacts) -> float:
    """The least related to the current work first."""
    return step.strange * 1e6 + step.age


def by_task(step: StepFacts) -> float:
    """Finished work first, then the oldest."""
    return step.finished * 1e6 + step.age


POLICIES: Mapping[PolicyName, Policy] = {
    "recency": by_recency,
    "use": by_use,
    "size": by_size,
    "topic": by_topic,
    "task": by_task,
}
