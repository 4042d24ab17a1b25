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
from hotset.window.leave import Departure, fold, leave, squeeze
from hotset.window.moment import Moment
from hotset.window.names import names_of
from hotset.window.step_sizes import Step, Weighed, is_prompt

_LOGGED = 90
"""Tokens that the log of one step takes, about: 70 to 150 on recorded sessions."""


def evict(weighed: Weighed, knobs: Knobs, moment: Moment) -> Departure:
    """Rows and stubs for what leaves now, and why; nothing where all stays."""
    resident = [step for step in weighed.steps if weighed.is_resident(step)]
    overflow = weighed.total > moment.room(knobs)
    crowded = bool(knobs.most) and len(resident) > knobs.most
    if not resident or not (overflow or crowded or knobs.early):
        return Departure()
    may = [step for step in resident if _may_leave(weighed, step, knobs, moment)]
    if not (
        overflow or crowded or _pays(weighed, may, knobs, moment)
    ):  # the most that could leave would not pay
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


def _may_leave(weighed: Weighed, step: Step, knobs: Knobs, moment: Moment) -> bool:
    if weighed.steps[-1].number - step.number < knobs.keep:
        return False
    return not moment.pinned or not any(
        line.chain in moment.pinned for line in weighed.inside(step)
    )


def _leaving(
    weighed: Weighed, resident: Sequence[Step], may: Sequence[Step], knobs: Knobs, moment: Moment
) -> list[Step]:
    """The steps that leave, in the order of the conversation: the highest scores first, until the
    rest fits."""
    held = sum(map(weighed.of, resident))
    free = knobs.window / moment.scale - moment.fixed - (weighed.total - held)
    goal = knobs.low * max(0.0, free)
    leaving: list[Step] = []
    for step in _ranked(weighed, may, knobs, moment):
        if held <= goal and not (knobs.most and len(resident) - len(leaving) > knobs.keep):
            break
        leaving.append(step)
        held -= weighed.of(step)
    return sorted(leaving, key=lambda step: step.number)


def _ranked(weighed: Weighed, may: Sequence[Step], knobs: Knobs, moment: Moment) -> Sequence[Step]:
    """The first to leave first. Steps with pages of a spared kind leave last; equals leave oldest
    first."""
    if knobs.policy == "recency" and not knobs.spared:
        return may
    score, facts = POLICIES[knobs.policy], _facts_of_steps(weighed, knobs.forms.latest)

    def rank(step: Step) -> tuple[bool, float, int]:
        moment.check()
        known = facts(step)
        return bool(known.kinds & knobs.spared), -score(known), step.number

    return sorted(may, key=rank)


def _facts_of_steps(weighed: Weighed, now_doing: int) -> Callable[[Step], StepFacts]:
    """What is known of a step, worked out once for each, beside the latest steps: so many say what
    is being done."""

    @cache
    def said(step: Step) -> frozenset[str]:
        return frozenset().union(
            *(names_of(piece.content) for line in weighed.inside(step) for piece in line.pieces)
        )

    @cache
    def called(step: Step) -> frozenset[str]:
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
    now = frozenset().union(*map(said, weighed.steps[-now_doing:]))
    prompted = max(
        (index for index, line in enumerate(weighed.lines) if is_prompt(line)), default=-1
    )

    def facts(step: Step) -> StepFacts:
        own = said(step)
        later = weighed.steps[step.number :]
        used = next(
            (each.number for each in reversed(later) if not own.isdisjoint(called(each))),
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


def _pays(weighed: Weighed, leaving: Sequence[Step], knobs: Knobs, moment: Moment) -> bool:
    """Does letting these steps leave cost less than reading them on, and is now the time?

    A batch costs the rewriting of what stands behind it, its log, and the retrievals that it will
    cause. Waiting makes a batch larger and so rarer, and costs the reading of what could have left:
    the cheapest size is that of an order in a warehouse, sqrt(2 x cost of a batch x growth per call
    / cost of reading).
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
    if (
        weighed.lost is not None
    ):  # all of it has to be written again anyway, so there is nothing to wait for
        return saved + price.write * evicted > batch
    growth = sum(map(weighed.of, weighed.steps)) / calls
    return saved > batch and evicted >= math.sqrt(2 * batch * growth / price.read)


@dataclass(frozen=True, slots=True)
class StepFacts:
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


Policy = Callable[[StepFacts], float]


def by_recency(step: StepFacts) -> float:
    """The oldest first."""
    return step.age


def by_use(step: StepFacts) -> float:
    """The longest unused first: what later calls copied from stays."""
    return step.unused + step.age / 1e6


def by_size(step: StepFacts) -> float:
    """The largest first, weighed with age: the most room for the fewest stubs."""
    return step.tokens * (1 + step.age)


def by_topic(step: StepFacts) -> float:
    """First what has least to do with what is being done now."""
    return step.strange * 1e6 + step.age


def by_task(step: StepFacts) -> float:
    """First the work that is finished, then the oldest."""
    return step.finished * 1e6 + step.age


POLICIES: Mapping[PolicyName, Policy] = {
    "recency": by_recency,
    "use": by_use,
    "size": by_size,
    "topic": by_topic,
    "task": by_task,
}
