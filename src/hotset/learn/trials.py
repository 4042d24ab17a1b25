"""Arms under trial: which share of new sessions each gets, and how its sessions compare with those
of the default arm."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from hotset.learn.chance import normal
from hotset.learn.confidence import Wager, add_value, bounds, is_above, is_below
from hotset.learn.events import SessionFigures

FLOOR = 0.10
"""The least share of each arm under trial, the default's included. A trial that starts by itself
has less on its first day, because of the daily shift."""

DAILY_SHIFT = 0.05
"""The most that moves from one arm to another within a day, where no person says so and no trial
ends: what a new trial begins with, too."""

MOST_SHARE = 0.5
"""Up to which the bandit raises an arm."""

MARGIN = 0.1
"""How much lower success may at worst be for it to count as no worse."""

MOST_FALL = 0.2
"""Of the default's success: if an arm's falls by more, it is rolled back."""

DAY = 86_400.0

_LEAST_OUTCOMES = 15  # before a fall is believed
_DOUBT = 2.0  # standard errors
_PRIOR = 2.0  # successes, and failures, before any is known: 40 failures in a row are a fall then
_LEAST_PAIRS = 5  # before shares move
_EPSILON = 1e-9


class Tally(Struct, frozen=True, array_like=True):
    """Sums over the sessions of an arm or a change."""

    sessions: int = 0
    outcomes: int = 0
    """Sessions whose outcome is known."""
    success: float = 0.0
    cost: float = 0.0
    whole: float = 0.0
    turns: int = 0
    faults: int = 0
    corrections: int = 0
    rereads: int = 0
    latency_ms: float = 0.0
    dollars: float = 0.0
    priced: int = 0
    """Sessions whose cost in dollars is known."""

    @property
    def success_rate(self) -> float:
        return self.success / self.outcomes if self.outcomes else 0.0

    @property
    def cost_share(self) -> float | None:
        """Of what full history would have cost."""
        return self.cost / self.whole if self.whole else None

    def plus(self, figures: SessionFigures) -> Tally:
        known = figures.success is not None
        return Tally(
            self.sessions + 1,
            self.outcomes + known,
            self.success + (figures.success or 0.0),
            self.cost + figures.cost,
            self.whole + figures.whole,
            self.turns + figures.turns,
            self.faults + figures.faults,
            self.corrections + figures.corrections,
            self.rereads + figures.rereads,
            self.latency_ms + figures.latency_ms,
            self.dollars + (figures.dollars or 0.0),
            self.priced + (figures.dollars is not None),
        )

    def with_more(self, earlier: SessionFigures, now: SessionFigures) -> Tally:
        """With the figures of a session that went on in place of its earlier ones."""
        before, after = Tally().plus(earlier), Tally().plus(now)
        parts = (
            max(type(own)(0), own + (new - old))
            for own, new, old in zip(self.values, after.values, before.values, strict=True)
        )
        return Tally(*parts)  # type: ignore[arg-type]  # each part has the type of its own

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(getattr(self, name) for name in self.__struct_fields__)


_LOG_SPANS = {"turns": 1000, "corrections": 100, "rereads": 100}
"""Counts are compared as logarithms, up to so many."""

_COST_SPAN = 3.0  # of log(cost / whole): from a twentieth of full history's cost to all of it


def scaled_figures(figures: SessionFigures) -> dict[str, float]:
    """What arms are compared by, each over a range of 1."""
    found = {
        name: min(1.0, math.log1p(getattr(figures, name)) / math.log1p(most))
        for name, most in _LOG_SPANS.items()
    }
    if figures.success is not None:
        found["success"] = figures.success
    if figures.cost > 0 and figures.whole > 0:
        share = math.log(figures.cost / figures.whole) / _COST_SPAN
        found["cost"] = max(-0.8, min(0.2, share))
    return found


def unscale(name: str, value: float) -> float:
    """A difference of scaled figures as points of success, or as the logarithm of a ratio."""
    if name == "success":
        return value
    return value * (_COST_SPAN if name == "cost" else math.log1p(_LOG_SPANS[name]))


class Comparison(Struct, frozen=True, array_like=True):
    """One figure of an arm against the default's: pairs of the sessions of both that came since the
    last pair, each by its mean."""

    wager: Wager = Wager()
    own_count: int = 0
    own: float = 0.0
    other_count: int = 0
    other: float = 0.0

    def plus(self, value: float, *, is_own: bool) -> Comparison:
        now = (
            replace(self, own_count=self.own_count + 1, own=self.own + value)
            if is_own
            else replace(self, other_count=self.other_count + 1, other=self.other + value)
        )
        if not (now.own_count and now.other_count):
            return now
        difference = now.own / now.own_count - now.other / now.other_count
        return Comparison(add_value(self.wager, difference))


class Arm(Struct, frozen=True):
    """A strategy under trial: a profile, a change, or none at all (`off`)."""

    share: float
    since: float
    is_fixed: bool = False
    """A person set its share."""
    morning: float = 0.0
    """Its share when `day` began."""
    day: int = 0
    tally: Tally = Tally()
    against: dict[str, Comparison] = {}
    """By figure: its own less the default arm's."""
    default: Tally = Tally()
    """Sessions of the default arm in the same time."""

    @property
    def is_entering(self) -> bool:
        """It began by itself, and has not come to the floor yet."""
        return not self.is_fixed and self.share < FLOOR - _EPSILON

    def plus(self, figures: SessionFigures, *, is_own: bool) -> Arm:
        against = dict(self.against)
        for name, value in scaled_figures(figures).items():
            against[name] = against.get(name, Comparison()).plus(value, is_own=is_own)
        if is_own:
            return replace(self, against=against, tally=self.tally.plus(figures))
        return replace(self, against=against, default=self.default.plus(figures))

    def wager(self, name: str) -> Wager:
        return self.against.get(name, Comparison()).wager


class EndedArm(Struct, frozen=True):
    """A trial that is over, and what it showed."""

    name: str
    since: float
    until: float
    tally: Tally
    default: Tally
    """Sessions of the default arm in the same time."""
    differences: dict[str, tuple[float, float, float, int]]
    """By figure: mean, bounds and pairs, as `compare_figures` gives them."""


def end_arm(name: str, arm: Arm, time: float) -> EndedArm:
    return EndedArm(name, arm.since, time, arm.tally, arm.default, compare_figures(arm))


def compare_figures(arm: Arm) -> dict[str, tuple[float, float, float, int]]:
    """Each scaled figure's difference from the default arm's: its mean, bounds that hold at any
    time, and the pairs that it rests on."""
    wagers = {name: arm.wager(name) for name in sorted(arm.against)}
    return {
        name: (round(wager.mean, 6), *bounds(wager), wager.count)
        for name, wager in wagers.items()
        if wager.count
    }


def has_fallen(now: Tally, before: Tally) -> bool:
    """True if success is more than a fifth lower, and not by chance alone. Both rates begin as
    Beta distributions around a half: with few sessions before, a fall has to be the clearer."""
    if now.outcomes < _LEAST_OUTCOMES:
        return False
    (rate, spread), (usual, usual_spread) = _believed(now), _believed(before)
    return rate < (1 - MOST_FALL) * usual and usual - rate > _DOUBT * math.hypot(
        spread, usual_spread
    )


def _believed(tally: Tally) -> tuple[float, float]:
    """The mean and the standard deviation of the Beta distribution of a success rate."""
    count = tally.outcomes + 2 * _PRIOR
    mean = (tally.success + _PRIOR) / count
    return mean, math.sqrt(mean * (1 - mean) / (count + 1))


def why_worse(arm: Arm) -> str:
    """Why an arm has to go; empty if nothing says so."""
    own, usual = arm.tally, arm.default
    rates = f"success {own.success_rate:.0%} in {own.outcomes} sessions, {usual.success_rate:.0%}"
    rates += f" in {usual.outcomes} of the default"
    if has_fallen(own, usual):
        return f"success fell by more than {MOST_FALL:.0%}: {rates}"
    if is_below(arm.wager("success"), 0.0):
        return f"success is worse: {rates}"
    if is_above(arm.wager("cost"), 0.0):
        ratio = math.exp(unscale("cost", arm.wager("cost").mean))
        return f"it costs more: {ratio:.2f} times as much in {own.sessions} sessions"
    return ""


def is_no_worse(arm: Arm) -> bool:
    """True if success is shown to be no worse than the default's."""
    return is_above(arm.wager("success"), -MARGIN)


def is_cheaper(arm: Arm) -> bool:
    """True if the cost is shown to be lower than the default's."""
    return is_below(arm.wager("cost"), 0.0)


def shift(arms: Mapping[str, Arm], day: int) -> dict[str, float]:
    """Where the bandit moves shares on a day: towards arms that a draw from what is known finds
    cheaper and no worse. Fixed arms stay. `guard` bounds it."""
    moved: dict[str, float] = {}
    free = {name: arm for name, arm in arms.items() if not arm.is_fixed}
    step = DAILY_SHIFT / max(1, len(free))
    for name, arm in free.items():
        if arm.is_entering:
            moved[name] = FLOOR
            continue
        success, cost = arm.wager("success"), arm.wager("cost")
        if min(success.count, cost.count) < _LEAST_PAIRS:
            continue
        good = (
            _draw(success, f"{name}:{day}:success") > -MARGIN / 2
            and _draw(cost, f"{name}:{day}:cost") < 0
        )
        target = max(FLOOR, min(MOST_SHARE, arm.share + (step if good else -step)))
        if abs(target - arm.share) > _EPSILON:
            moved[name] = round(target, 6)
    return moved


def guard(arms: Mapping[str, Arm], wanted: Mapping[str, float], day: int) -> dict[str, Arm]:
    """The arms with the shares that the bandit wants, as far as floor and daily shift allow:
    whatever an event says, these hold. Those that began lately come to the floor first."""
    begun = {name: arm if arm.day == day else _at_dawn(arm, day) for name, arm in arms.items()}
    free = {name: arm for name, arm in begun.items() if not arm.is_fixed}
    moves = {
        name: max(FLOOR, min(MOST_SHARE, wanted.get(name, arm.share))) - arm.morning
        for name, arm in free.items()
    }
    first = {name for name, arm in free.items() if arm.morning < FLOOR - _EPSILON}
    left = DAILY_SHIFT
    shares: dict[str, float] = {}
    for some in (sorted(first), sorted(moves.keys() - first)):
        total = sum(abs(moves[name]) for name in some)
        scale = min(1.0, left / total) if total else 0.0
        left -= scale * total
        shares |= {name: free[name].morning + scale * moves[name] for name in some}
    room = 1 - FLOOR - sum(arm.share for name, arm in begun.items() if name not in free)
    if math.fsum(shares.values()) > room + _EPSILON:  # the default keeps its floor: nothing rises
        shares = {name: min(share, free[name].share) for name, share in shares.items()}
    return {
        name: replace(arm, share=round(shares[name], 6)) if name in shares else arm
        for name, arm in begun.items()
    }


def can_enter(arms: Mapping[str, Arm], day: int) -> bool:
    """True if one more trial can begin by itself on a day: there will be room for its floor, and
    no other began or moved since the morning."""
    free = [arm for arm in arms.values() if not arm.is_fixed]
    moved = (arm.day == day and abs(arm.share - arm.morning) > _EPSILON for arm in free)
    return has_room(arms) and not any(moved) and not any(arm.is_entering for arm in free)


def has_room(arms: Mapping[str, Arm]) -> bool:
    """True if one more arm can have its floor."""
    return sum(max(FLOOR, arm.share) for arm in arms.values()) + 2 * FLOOR <= 1 + _EPSILON


def enter(arms: Mapping[str, Arm], name: str, share: float, time: float) -> Arm:
    """An arm with the share that a person gave it: at once, also where it is on trial already."""
    known = arms.get(name, Arm(share, since=time))
    return replace(known, share=share, is_fixed=True, morning=share, day=int(time // DAY))


def begin(time: float) -> Arm:
    """A trial that begins by itself: with what may move on a day."""
    return Arm(DAILY_SHIFT, since=time, morning=0.0, day=int(time // DAY))


def lower(arm: Arm, time: float) -> Arm:
    """An arm at the floor, to make room for what a person wants."""
    share = min(arm.share, FLOOR)
    return replace(arm, share=share, morning=share, day=int(time // DAY))


def _at_dawn(arm: Arm, day: int) -> Arm:
    return replace(arm, morning=arm.share, day=day)


def _draw(wager: Wager, key: str) -> float:
    """A mean as a normal draw around the one that was seen."""
    mean = wager.mean
    spread = max(1e-4, wager.squares / wager.count - mean * mean)
    return mean + math.sqrt(spread / wager.count) * normal(key)
