"""Whether a change of knobs is better on recorded sessions that it was not learned from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import sha256

from msgspec import Struct

from hotset.learn.confidence import add_values, bounds
from hotset.learn.events import GateVerdict, Measured

ALPHA = 0.02
"""The chance that a change passes which is no better, however often it is looked at."""

MOST_FAULTS = 1.2
"""Faults after a change, as a multiple of those before."""

LEAST_SESSIONS = 8
"""Later sessions that a change must touch."""

_MOST_GAIN = 0.25
"""The most that a session's log ratio counts, as a rule: one session must not decide."""

_FINE = tuple(at / 50 for at in range(-50, 51))
_CANARIES = 50
_MOST_CANARIES = 0.04  # what shuffled labels may pass by chance


class SessionPair(Struct, frozen=True):
    """A recorded session, replayed with the knobs before and after a change."""

    session: str
    time: float
    before: float
    """What is decided by: the cost, in which a fault may weigh more than its tokens, or a loss of
    another kind."""
    after: float
    faults_before: float = 0.0
    faults_after: float = 0.0
    cost_before: float = 0.0
    """The cost alone, with what faults cost counted once."""
    cost_after: float = 0.0
    replies: int = 0
    """Of the model."""

    @property
    def is_touched(self) -> bool:
        """The change made a difference to it."""
        return (self.before, self.faults_before) != (self.after, self.faults_after)


def split_by_time(
    pairs: Sequence[SessionPair], share: float = 0.5
) -> tuple[list[SessionPair], list[SessionPair]]:
    """The earlier sessions, to learn from, and the later ones, for the gate."""
    ordered = sorted(pairs, key=lambda pair: (pair.time, pair.session))
    at = round(len(ordered) * share)
    return ordered[:at], ordered[at:]


def gate(
    pairs: Sequence[SessionPair],
    change: str = "",
    *,
    alpha: float = ALPHA,
    most_faults: float = MOST_FAULTS,
    most_gain: float = _MOST_GAIN,
    counts: str = "",
) -> GateVerdict:
    """The verdict on a change. `pairs`: later sessions only. A session's log ratio counts up to
    `most_gain`, which earlier sessions may have told: bets on small effects need a small scale.
    `counts` says how `before` and `after` count, if not by cost. Deterministic."""
    ordered = sorted(pairs, key=lambda pair: (pair.time, pair.session))
    usable = [pair for pair in ordered if pair.before > 0 and pair.after > 0]
    gains = [_gain(pair, most_gain) for pair in usable]
    wager = add_values(gains, _FINE)
    low, high = (bound * most_gain for bound in bounds(wager, 2 * alpha, _FINE))
    gain = wager.mean * most_gain
    faults = _ratio(
        sum(pair.faults_after for pair in usable) + 1,
        sum(pair.faults_before for pair in usable) + 1,
    )
    total = _ratio(sum(pair.after for pair in usable), sum(pair.before for pair in usable))
    canary = _canary(usable, gains, alpha) if low > 0 else 0.0
    found = (
        f"{gain:+.1%} [{low:+.1%}, {high:+.1%}] per session{counts} on {len(usable)} later sessions"
    )
    if len(usable) < LEAST_SESSIONS:
        why = f"refused: {len(usable)} later sessions can tell; {LEAST_SESSIONS} are needed"
    elif low <= 0:
        why = f"refused: not shown to be better: {found}"
    elif total >= 1:
        why = f"refused: better per session, but not in sum ({total:.3f} times as much): {found}"
    elif faults > most_faults:
        why = f"refused: {faults:.2f} times the faults; {most_faults:g} are allowed; {found}"
    elif canary > _MOST_CANARIES:
        why = f"refused: shuffled labels pass as well ({canary:.0%}); {found}"
    else:
        why = f"passed: {found}, {faults:.2f} times the faults"
    return GateVerdict(
        change=change,
        passed=why.startswith("passed"),
        gain=gain,
        low=low,
        high=high,
        sessions=len(usable),
        faults=faults,
        canary=canary,
        why=why,
        since=min((pair.time for pair in usable), default=0.0),
    )


def describe_measured(found: Measured) -> str:
    """What replay showed of a change, for people: only of the sessions that it touches."""
    head = f"{found.touched} of {found.sessions} later sessions are touched"
    if not found.touched:
        return head
    if found.saved is None:
        return f"{head}: {found.figure} {found.after:.3g} instead of {found.before:.3g}"
    less = f"{abs(found.saved):.1%} {'less' if found.saved >= 0 else 'more'}"
    faults = f"{abs(found.fewer_faults):.1f}"
    told = (
        ""
        if faults == "0.0"
        else (
            f", with {faults} {'fewer' if found.fewer_faults > 0 else 'more'} retrievals"
            " in 100 replies"
        )
    )
    return f"{head}: they cost {less}{told}"


def _gain(pair: SessionPair, most: float) -> float:
    """From -1 to 1."""
    return max(-1.0, min(1.0, math.log(pair.before / pair.after) / most))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 1.0


def _canary(pairs: Sequence[SessionPair], gains: Sequence[float], alpha: float) -> float:
    """How often the change passes if before and after are swapped at random."""
    passed = 0
    for seed in range(_CANARIES):
        shuffled = [
            gain if sha256(f"{seed}:{pair.session}".encode()).digest()[0] & 1 else -gain
            for pair, gain in zip(pairs, gains, strict=True)
        ]
        passed += add_values(shuffled, (0.0,)).above[0] >= math.log(1 / alpha)
    return passed / _CANARIES
