"""How alive a tool is, when it falls asleep, when it may go, and who goes first. Pure: the time is passed in.

A clock that went back makes nothing older: whatever seems to lie ahead of now counts as now.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from hotset.nouns.tool import Life, Status, Tier

INACTIVE_AT = 0.1
"""The score at which a tool becomes inactive: after six hours for one that was used once."""
TTL = 24 * 3600.0
"""Seconds that a tool stays inactive before it expires."""
HOT_AT = 0.5
"""Used within the last two hours, or within five where it is used a lot."""
WARM_AT = 0.25
"""Used within the last four hours, or within eleven where it is used a lot."""

_LIFETIME = 9400.0  # seconds after which a score has fallen to 1/e
_LIFETIME_PER_CALL = 0.01  # each call makes it last so much longer,
_LIFETIME_MORE = 2.0  # up to three times as long
_NEW = 3600.0
_YOUNG = 6 * 3600.0
_NEW_SCORE, _YOUNG_SCORE, _UNUSED_SCORE = 1.0, 0.5, 0.05
_TIERS_THAT_GO = (Tier.PROBATION, Tier.COLD, Tier.WARM, Tier.HOT)  # of equal score: what was never used has the least to lose


def decay(life: Life, now: float) -> float:
    """From 1, just used, down to 0."""
    if not life.calls:
        age = _since(life.born, now)
        return _NEW_SCORE if age < _NEW else _YOUNG_SCORE if age < _YOUNG else _UNUSED_SCORE
    last = life.born if life.last_used is None else max(life.born, life.last_used)
    lifetime = _LIFETIME * (1 + min(_LIFETIME_PER_CALL * life.calls, _LIFETIME_MORE))
    return math.exp(-_since(last, now) / lifetime)


def tier(life: Life, now: float) -> Tier:
    if life.pinned:
        return Tier.PROTECTED
    if not life.calls:
        return Tier.PROBATION
    score = decay(life, now)
    return Tier.HOT if score >= HOT_AT else Tier.WARM if score >= WARM_AT else Tier.COLD


def after_use(life: Life, now: float, seconds: float, *, failed: bool = False) -> Life:
    """One call more. Whatever it was before, it is active now."""
    used = replace(
        life, calls=life.calls + 1, last_used=now, seconds=life.seconds + seconds, failures=life.failures + bool(failed)
    )
    return _awake(used)


def reborn(life: Life, now: float) -> Life:
    """As if it had come into being now, with the record of what it did before."""
    return _awake(replace(life, born=now))


def pinned(life: Life, *, pin: bool) -> Life:
    return _awake(replace(life, pinned=True)) if pin else replace(life, pinned=False)


def step(life: Life, now: float) -> Life:
    """The state that it has now. Only a use, a pin and a corrected clock make an inactive one active."""
    if life.pinned:
        return _awake(life)
    faded = decay(life, now) <= INACTIVE_AT
    if life.status is Status.ACTIVE:
        return replace(life, status=Status.INACTIVE, inactive_since=now) if faded else _awake(life)
    if life.inactive_since is None:  # by hand: from now on
        return replace(life, inactive_since=now)
    if life.inactive_since <= now:
        return life
    return replace(life, inactive_since=now) if faded else _awake(life)  # a clock that was ahead had said so


def time_left(life: Life, now: float) -> float:
    """Seconds until an inactive tool expires; the whole time for one that is active."""
    if life.status is Status.ACTIVE or life.inactive_since is None:
        return TTL
    return max(0.0, TTL - _since(life.inactive_since, now))


def expired(life: Life, now: float) -> bool:
    return not life.pinned and life.status is Status.INACTIVE and time_left(life, now) <= 0


def evictable(lives: Iterable[Life], now: float) -> tuple[Life, ...]:
    """Who goes, in order: inactive ones by the time they have left, then active ones by score and tier. Pinned ones never."""
    return tuple(sorted((life for life in lives if not life.pinned), key=lambda life: _turn(life, now)))


def _turn(life: Life, now: float) -> tuple[bool, float, int, str]:
    if life.status is Status.INACTIVE:
        return False, time_left(life, now), 0, life.name
    return True, decay(life, now), _TIERS_THAT_GO.index(tier(life, now)), life.name


def _awake(life: Life) -> Life:
    if life.status is Status.ACTIVE and life.inactive_since is None:
        return life
    return replace(life, status=Status.ACTIVE, inactive_since=None)


def _since(then: float, now: float) -> float:
    return max(0.0, now - then)
