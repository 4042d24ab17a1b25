"""Arms under trial: which share of new sessions each gets, and how its sessions compare with those
of the default arm."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from hotset.learn.chance import normal
from hotset.learn.confidence import Wager, add_value, is_above, is_below
from hotset.learn.events import SessionFigures

FLOOR = 0.10
"""The least share of each arm under trial, the default's included."""

DAILY_SHIFT = 0.05
"""The most that moves from one arm to another within a day."""

MOST_SHARE = 0.5
"""Up to which the bandit raises an arm."""

MARGIN = 0.1
"""How much lower success may at worst be for it to count as no worse."""

MOST_FALL = 0.2
"""Of the default's success: if an arm's falls by more, it is rolled back."""

DAY = 86_400.0

_LEAST_OUTCOMES = 15  # before a fall is believed
_DOUBT = 1.64  # standard errors: a guardrail may be wrong once in twenty
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

    @property
    def success_rate(self) -> float:
        return self.success / self.outcomes if self.outcomes else 0.0

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
        )


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

    def plus(self, figures: SessionFigures, *, is_own: bool) -> Arm:
        against = dict(self.against)
        for name, value in scaled_figures(figures).items():
            against[name] = against.get(name, Comparison()).plus(value, is_own=is_own)
        if is_own:
            return replace(self, against=against, tally=self.tally.plus(figures))
        return replace(self, against=against, default=self.default.plus(figures))

    def wager(self, name: str) -> Wager:
        return self.against.get(name, Comparison()).wager


def has_fallen(now: Tally, before: Tally) -> bool:
    """True if success is more than a fifth lower, and not by chance alone."""
    if min(now.outcomes, before.outcomes) < _LEAST_OUTCOMES:
        return False
    rate, usual = now.success_rate, before.success_rate
    spread = math.sqrt(usual * (1 - usual) * (1 / now.outcomes + 1 / before.outcomes))
    return rate < (1 - MOST_FALL) * usual and usual - rate > _DOUBT * spread


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
    whatever an event says, these hold."""
    begun = {name: arm if arm.day == day else _at_dawn(arm, day) for name, arm in arms.items()}
    free = {name: arm for name, arm in begun.items() if not arm.is_fixed}
    moves = {
        name: max(FLOOR, min(MOST_SHARE, wanted.get(name, arm.share))) - arm.morning
        for name, arm in free.items()
    }
    total = sum(abs(move) for move in moves.values())
    scale = min(1.0, DAILY_SHIFT / total) if total else 0.0
    room = 1 - FLOOR - sum(arm.share for name, arm in begun.items() if name not in free)
    shares = {name: free[name].morning + scale * move for name, move in moves.items()}
    if sum(shares.values()) > room + _EPSILON:  # the default keeps its floor: nothing rises
        shares = {name: min(share, free[name].share) for name, share in shares.items()}
    return {
        name: replace(arm, share=round(shares[name], 6)) if name in shares else arm
        for name, arm in begun.items()
    }


def has_room(arms: Mapping[str, Arm]) -> bool:
    """True if one more arm can have its floor."""
    return sum(arm.share for arm in arms.values()) + 2 * FLOOR <= 1 + _EPSILON


def enter(arms: Mapping[str, Arm], name: str, share: float, time: float, fixed: bool) -> Arm:
    """An arm with the share that it enters with."""
    known = arms.get(name)
    day = int(time // DAY)
    if known is not None:
        return replace(known, share=share, is_fixed=fixed, morning=share, day=day)
    return Arm(share=share, since=time, is_fixed=fixed, morning=share, day=day)


def _at_dawn(arm: Arm, day: int) -> Arm:
    return replace(arm, morning=arm.share, day=day)


def _draw(wager: Wager, key: str) -> float:
    """A mean as a normal draw around the one that was seen."""
    mean = wager.mean
    spread = max(1e-4, wager.squares / wager.count - mean * mean)
    return mean + math.sqrt(spread / wager.count) * normal(key)
