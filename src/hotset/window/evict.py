"""Which steps leave the window, when, and in which order: the price model and the policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hotset.nouns.knobs import Knobs, PolicyName
from hotset.nouns.page import Kind
from hotset.nouns.window import Cause, Shown
from hotset.window.arguments import spoken
from hotset.window.birth import rebirths
from hotset.window.clusters import Cluster, finished_clusters, topic_clusters
from hotset.window.instructions import instruction_steps
from hotset.window.leave import Departure, fold, leave, squeeze
from hotset.window.moment import Moment
from hotset.window.names import names_of
from hotset.window.step_sizes import Step, WeighedConversation

_LOGGED = 90
"""Tokens of one step's log, about: 70 to 150 on recorded sessions."""


def evict(weighed: WeighedConversation, knobs: Knobs, moment: Moment) -> Departure:
    """Rows and stubs for what leaves now, and why; empty if everything stays."""
    resident = [step for step in weighed.steps if weighed.is_resident(step)]
    overflow = weighed.total > moment.room(knobs)
    crowded = bool(knobs.most) and len(resident) > knobs.most
    early = knobs.early and not knobs.handoff.at  # it hands over instead
    if not resident or not (overflow or crowded or early):
        return Departure()
    may = [step for step in resident if may_leave(weighed, step, knobs, moment)]
    least = knobs.finished * knobs.regret
    if not (overflow or crowded or pays(weighed, may, least, knobs, moment)):
        return Departure()  # not even all of them pay, were their work finished
    goal = _goal(weighed, resident, knobs, moment)
    pieces = finished_clusters(weighed.lines, may)
    ranked = _rank_clusters(weighed, may, pieces, knobs, moment)
    ranked = _instructions_last(ranked, goal.instructed)
    leaving = _leaving(weighed, ranked, goal)
    finished = frozenset(step.number for piece in pieces for step in piece)
    regret = _regret(leaving, finished, knobs)
    if not (overflow or crowded or pays(weighed, leaving, regret, knobs, moment)):
        return Departure()
    unforced = Cause.GROWN if crowded else weighed.lost or Cause.PAYS
    cause = Cause.OVERFLOW if overflow else unforced
    departure = leave(weighed, leaving, knobs, moment, cause, finished=finished)
    if 0 < len(leaving) < len(may):  # a kind's share is net of the logs that stay
        logged = sum(row.tokens for row in departure.rows) / len(leaving)
        leaving = _leaving(weighed, ranked, goal, logged)
        departure = leave(weighed, leaving, knobs, moment, cause, finished=finished)
    departure.rows += shown_anew(departure, weighed, knobs, moment)
    fold(departure, weighed, knobs, moment)
    if overflow:
        squeeze(departure, weighed, knobs, moment)
        # What it replaced by a reference may have been pointed to.
        while anew := shown_anew(departure, weighed, knobs, moment):
            departure.rows += anew
            squeeze(departure, weighed, knobs, moment)
    return departure


def shown_anew(
    departure: Departure, weighed: WeighedConversation, knobs: Knobs, moment: Moment
) -> list[Shown]:
    """Rows for results that pointed to what leaves."""
    cause = departure.cause
    anew = rebirths(weighed.after(departure.rows), knobs, moment) if cause else []
    return [replace(row, cause=cause or row.cause) for row in anew]


def may_leave(weighed: WeighedConversation, step: Step, knobs: Knobs, moment: Moment) -> bool:
    """True if it is none of the latest steps and not pinned."""
    if weighed.steps[-1].number - step.number < knobs.keep:
        return False
    pinned = moment.orders.pinned
    return not pinned or not any(line.chain in pinned for line in weighed.inside(step))


class _Goal(NamedTuple):
    """How much has to leave."""

    tokens: float
    """Of steps; nothing if none has to."""
    steps: int
    """How many steps at least."""
    held: float
    """Tokens of all steps that could leave."""
    free: float
    """Tokens of the window for steps."""
    instructed: frozenset[int]
    """Steps that read what instructs the agent; these leave last."""


def _goal(
    weighed: WeighedConversation, resident: Sequence[Step], knobs: Knobs, moment: Moment
) -> _Goal:
    held = sum(map(weighed.of, resident))
    free = knobs.window / moment.scale - moment.fixed - (weighed.total - held)
    most = len(resident) - knobs.keep if knobs.most else 0
    stays = min(knobs.low * max(0.0, free), knobs.rest or math.inf)
    instructed = instruction_steps(
        weighed,
        knobs.forms.instructions,
        round(knobs.forms.instruction_share * knobs.window / moment.scale),
    )
    return _Goal(held - stays, most, held, free, frozenset(instructed))


def _instructions_last(ranked: Sequence[Cluster], instructed: frozenset[int]) -> Sequence[Cluster]:
    if not instructed:
        return ranked
    others = (tuple(step for step in each if step.number not in instructed) for each in ranked)
    last = ((step,) for each in ranked for step in each if step.number in instructed)
    return [*filter(None, others), *last]


def _leaving(
    weighed: WeighedConversation, ranked: Sequence[Cluster], goal: _Goal, logged: float = 0.0
) -> list[Step]:
    """The steps that leave, in conversation order: the highest scores are taken until the rest
    fits, with `logged` tokens for the log of each that left."""
    leaving: list[Step] = []
    gone = 0.0
    for cluster in ranked:
        instructs = cluster[0].number in goal.instructed
        if instructs and goal.free >= 2 * (goal.held - gone):  # what else left was enough
            break
        if gone >= goal.tokens and len(leaving) >= goal.steps:
            break
        leaving += cluster
        gone += sum(max(0.0, weighed.of(step) - logged) for step in cluster)
    return sorted(leaving, key=lambda step: step.number)


def _rank_clusters(
    weighed: WeighedConversation,
    may: Sequence[Step],
    pieces: Sequence[Cluster],
    knobs: Knobs,
    moment: Moment,
) -> Sequence[Cluster]:
    """The steps in the order in which they leave, grouped by what leaves together. Steps with pages
    of a spared kind are last, unless their work is finished; among equal scores the oldest is
    first."""
    if knobs.policy == "recency" and not knobs.spared:
        return [(step,) for step in may]
    score, names = POLICIES[knobs.policy], StepNames(weighed)
    clusters: Sequence[Cluster] = ()
    if knobs.policy == "topic":
        spared = {step for step in may if not knobs.spared.isdisjoint(_kinds(weighed, (step,)))}
        clusters = topic_clusters([step for step in may if step not in spared], names.inside)
    elif knobs.policy == "task":
        clusters = pieces
    together = {step.number for cluster in clusters for step in cluster}
    single = [(step,) for step in may if step.number not in together]
    facts = _facts_of_clusters(weighed, names, knobs.forms.latest)
    finished = set(clusters) if knobs.policy == "task" else set()

    def rank(cluster: Cluster) -> tuple[bool, float, int]:
        moment.check()
        is_spared = not knobs.spared.isdisjoint(_kinds(weighed, cluster))
        known = facts(cluster, finished=cluster in finished)
        return is_spared and not known.finished, -score(known), cluster[0].number

    return sorted((*clusters, *single), key=rank)


class StepNames:
    """The names in each step, read once."""

    def __init__(self, weighed: WeighedConversation) -> None:
        self._weighed = weighed
        self._inside: dict[int, frozenset[str]] = {}
        self._called: dict[int, frozenset[str]] = {}

    def inside(self, step: Step) -> frozenset[str]:
        if step.number not in self._inside:
            lines = self._weighed.inside(step)
            self._inside[step.number] = frozenset().union(
                *(names_of(piece.content) for line in lines for piece in line.pieces)
            )
        return self._inside[step.number]

    def called(self, step: Step) -> frozenset[str]:
        """Those in the arguments of its calls."""
        if step.number not in self._called:
            pieces = (
                piece
                for line in self._weighed.inside(step)
                for piece in line.pieces
                if piece.kind.family is Kind.TOOL_CALL
            )
            self._called[step.number] = frozenset().union(
                *(names_of(spoken(piece.content).encode("utf-8", "replace")) for piece in pieces)
            )
        return self._called[step.number]


def _kinds(weighed: WeighedConversation, cluster: Cluster) -> frozenset[Kind]:
    lines = (line for step in cluster for line in weighed.inside(step))
    return frozenset(piece.kind for line in lines for piece in line.pieces)


def _facts_of_clusters(
    weighed: WeighedConversation, names: StepNames, now_doing: int
) -> Callable[..., StepFacts]:
    """A function for the facts of steps that leave together; the latest `now_doing` steps define
    the current topic."""
    latest = weighed.steps[-1].number
    now = frozenset().union(*map(names.inside, weighed.steps[-now_doing:]))

    def facts(cluster: Cluster, *, finished: bool) -> StepFacts:
        own = frozenset().union(*map(names.inside, cluster))
        last = cluster[-1].number
        used = next(
            (
                each.number
                for each in reversed(weighed.steps[last:])
                if not own.isdisjoint(names.called(each))
            ),
            last,
        )
        fewer = min(len(own), len(now))
        return StepFacts(
            age=latest - cluster[0].number,
            tokens=sum(map(weighed.of, cluster)),
            unused=latest - used,
            finished=finished,
            strange=1 - len(own & now) / fewer if fewer else 1.0,
        )

    return facts


def _regret(leaving: Sequence[Step], finished: frozenset[int], knobs: Knobs) -> float:
    """The retrievals that a batch is expected to cause."""
    done = sum(step.number in finished for step in leaving) / max(1, len(leaving))
    return knobs.regret * (1 - done * (1 - knobs.finished))


def pays(
    weighed: WeighedConversation,
    leaving: Sequence[Step],
    retrievals: float,
    knobs: Knobs,
    moment: Moment,
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
    regret = retrievals * moment.retrieval(moment.fixed + weighed.total - evicted)
    batch = (price.write - price.read) * max(0, behind) + price.write * log + regret
    calls = len(weighed.steps)
    saved = min(calls, knobs.patience) * price.read * evicted
    if weighed.lost is not None:  # all is written again anyway: there is nothing to wait for
        return saved + price.write * evicted > batch
    growth = sum(map(weighed.of, weighed.steps)) / calls
    return saved > batch and evicted >= math.sqrt(2 * batch * growth / price.read)


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What the policies know about a step, or steps that leave together."""

    age: int
    """Number of steps after the first of them."""
    tokens: int
    unused: int
    """Steps since a call last copied something from it; its age if none did."""
    finished: bool
    """It is a piece of finished work."""
    strange: float
    """Distance from the latest steps: 1 if they share no name, 0 if they share all."""


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
    """The topics that are not the current one first, then the oldest. In four grades: by its exact
    distance every second step would leave, each with a reference of its own."""
    return round(4 * step.strange) * 1e6 + step.age


def by_task(step: StepFacts) -> float:
    """Finished work first, one piece after the other, then the oldest."""
    return step.finished * 1e6 + step.age


POLICIES: Mapping[PolicyName, Policy] = {
    "recency": by_recency,
    "use": by_use,
    "size": by_size,
    "topic": by_topic,
    "task": by_task,
}
