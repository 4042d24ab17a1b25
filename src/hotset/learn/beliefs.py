"""What is believed of each knob's best position: what to try next, and never a decision.

A few knobs are explored together, and a curve is laid through their rewards. It has a level of its
own, so that a constant reward moves nothing. Old evidence decays, what lies far off the curve is
rejected, and where the curve stops fitting most of it is forgotten and exploring begins again.

What is *settled* leaves a default only where the curve is shown to be higher there, by so many
standard errors that looking after every session does no harm; where the evidence fades it drifts
back. For people, the belief on a knob is a Beta distribution: its mean is what is settled, and it
is as narrow as the draws of the curve's best position are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from hotset.learn.chance import normal, uniform
from hotset.learn.curve import Curve, Sums, fit, height, highest, terms
from hotset.learn.ranges import knob_ranges

MOST_KNOBS = 3
"""Explored together: more need more sessions than anybody has."""

_MOST_BLOCKS = 2
_OPEN = 400  # sessions in which a block is explored at most
_ENOUGH = 0.05  # of what was gained: if no more is to be had, exploring ends earlier
_LOOKS = 25  # sessions from one such look to the next
_AGAIN = 150  # and when the curve stopped fitting
_DECAY = 0.998
_COLD = 30  # sessions before anything is rejected, forgotten or settled
_NOISE = 0.2  # a reward's standard deviation: the first guess
_NOISE_COUNT = 5.0  # what that counts for
_LEAST_NOISE = 0.02
_OUTLIER = 3.5  # standard deviations
_CLIPPED = 3.0
_SLACK = 0.25  # standard deviations below the curve that are let pass
_ALARM = 12.0  # their sum above that: one in 5,000 sessions by chance, 16 sessions for a fall by 1
_REMEMBERED = 0.01  # of the sums, after an alarm
_SURE = 4.2  # standard errors for a knob to leave its default: in 60 stores, chance came to 3.9
_MATTERS = 2.5
_REFINED = 1.0  # and to move on from there
_LEAST_GAIN = 0.01  # in rewards, for a knob to leave its default
_LEAST_MORE = 0.002
_DRIFT = 0.02  # of the way back to the default, with each session, where nothing holds it
_STEADY = 0.2  # of the sessions of an open block: at what is settled
_WATCHED = 0.9  # of those of one that is closed
_CHOICES = 8  # random positions, of which a drawn curve chooses one
_PARTS = (0.25, 0.5, 0.75, 1.0)
_SHARED = 0.2  # of all sessions, in what is believed of one context
_CONTEXT_COLD = 60
_SETTLES = 5  # sessions from one look to the next
_PRIOR_COUNT = 10.0  # what a default counts for, as a Beta distribution
_MOST_COUNT = 1000.0
_DRAWS = 16
_DIGITS = 6
_SAME = 1e-3  # of the range


class Belief(Struct, frozen=True):
    """On a block of knobs, in all contexts or in one."""

    sums: Sums = Sums()
    settled: tuple[float, ...] = ()
    """Positions; empty: the defaults'."""


class Block(Struct, frozen=True):
    """Knobs that are explored together."""

    knobs: tuple[str, ...]
    priors: tuple[float, ...]
    """Their defaults' positions."""
    all: Belief = Belief()
    contexts: dict[str, Belief] = {}
    left: int = _OPEN
    """Sessions in which it will still be explored."""
    noise: float = _NOISE
    """A reward's standard deviation around the curve."""
    below: float = 0.0
    """By how much rewards have lately been below the curve, in sum."""
    seen: int = 0
    rejected: int = 0
    alarms: int = 0

    @property
    def settled(self) -> tuple[float, ...]:
        return self.all.settled or self.priors

    def settled_in(self, context: int) -> tuple[float, ...]:
        return self.contexts.get(str(context), self.all).settled or self.settled


class Beta(Struct, frozen=True):
    """A belief on a knob's best position."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        return self.alpha / (self.alpha + self.beta)

    @property
    def deviation(self) -> float:
        """Standard."""
        mean = self.mean
        return math.sqrt(mean * (1 - mean) / (self.alpha + self.beta + 1))


class Beliefs(Struct, frozen=True):
    """On every knob of the catalogue."""

    blocks: tuple[Block, ...] = ()
    """Those explored at present, the latest last."""
    known: dict[str, tuple[float, float]] = {}
    """Beta distributions of knobs that were explored before."""
    explorable: tuple[str, ...] = ()
    """Knobs that sessions may explore."""
    share: float = 0.0
    """Of the default arm's sessions, those that explore. To try something on recorded sessions
    costs nothing, so none do unless a person says so."""


def begin_block(knobs: Sequence[str]) -> Block:
    """Knobs of the catalogue to explore together."""
    ranges = knob_ranges()
    return Block(tuple(knobs), tuple(round(ranges[name].prior, _DIGITS) for name in knobs))


def learn_reward(
    block: Block, positions: Sequence[float], reward: float, context: int = 0
) -> Block:
    """The block with the reward of one more session, clipped to -1..1."""
    reward = max(-1.0, min(1.0, reward))
    offsets = _offsets(block, positions)
    seen = replace(block, seen=block.seen + 1, left=max(0, block.left - 1))
    keep = _DECAY
    curve = fit(block.all.sums, len(block.knobs), block.noise)
    expected, doubt = curve.predict(terms(offsets))
    residual = (reward - expected) / math.hypot(block.noise, doubt)
    clipped = max(-_CLIPPED, min(_CLIPPED, residual))
    # with what is rejected: many outliers are a wide noise, and then no outliers any more
    seen = replace(seen, noise=_noise(block, clipped))
    if block.all.sums.count >= _COLD:
        is_outlier = abs(residual) > _OUTLIER
        off = math.copysign(1.0, residual) if is_outlier else residual  # many of them are no chance
        below = max(0.0, block.below - off - _SLACK)
        seen = replace(seen, below=round(below, _DIGITS))
        if below > _ALARM:
            keep = _REMEMBERED
            seen = replace(seen, below=0.0, alarms=block.alarms + 1, left=_AGAIN, contexts={})
        elif is_outlier:
            return replace(seen, rejected=block.rejected + 1)
    own = str(context)
    belief = seen.contexts.get(own, Belief())
    learned = replace(
        seen,
        all=replace(seen.all, sums=seen.all.sums.plus(offsets, reward, keep)),
        contexts={
            **seen.contexts,
            own: replace(belief, sums=belief.sums.plus(offsets, reward, keep)),
        },
    )
    return _settle(learned, own) if learned.seen % _SETTLES == 0 else learned


def propose_positions(block: Block, key: str, context: int = 0) -> tuple[float, ...]:
    """Where the session of this key puts the block's knobs: what is settled or, to explore, what a
    draw from what is believed likes best."""
    now = block.settled_in(context)
    if uniform(f"steady:{key}") < (_STEADY if block.left else _WATCHED):
        return now
    drawn = _curve(block, str(context)).draw(key)
    lows, highs = _box(block)
    if block.left:  # wide, or the curve is never known where it is low
        points = [
            [low + uniform(f"{key}:{each}:{at}") for at, low in enumerate(lows)]
            for each in range(_CHOICES)
        ]
        best = max(points, key=lambda point: height(drawn, point))
    else:
        best = highest(drawn, lows, highs, [_offsets(block, now), lows, highs])
    return _positions(block, best)


def beta_of(beliefs: Beliefs, knob: str, context: int | None = None) -> Beta:
    """The belief on a knob, in all contexts or in one."""
    for block in beliefs.blocks:
        if knob in block.knobs:
            return _beta_in(block, block.knobs.index(knob), context)
    if knob in beliefs.known:
        return Beta(*beliefs.known[knob])
    return _matched(knob_ranges()[knob].prior, _PRIOR_COUNT)


def block_for(beliefs: Beliefs, key: str) -> Block | None:
    """The block that the session of this key explores: one that is open, or else a new one as long
    as there are knobs that were not explored, or else any."""
    usable = [block for block in beliefs.blocks if set(block.knobs) <= set(beliefs.explorable)]
    for block in reversed(usable):
        if block.left:
            return block
    if knobs := _next_knobs(beliefs):
        return begin_block(knobs)
    return usable[int(uniform(f"block:{key}") * len(usable))] if usable else None


def learn_session(
    beliefs: Beliefs, explored: dict[str, float], reward: float, context: int
) -> Beliefs:
    """With the reward of a session that explored."""
    ranges = knob_ranges()
    knobs = tuple(sorted(explored.keys() & ranges.keys()))[:MOST_KNOBS]
    if not knobs:
        return beliefs
    blocks = list(beliefs.blocks)
    known = dict(beliefs.known)
    if knobs not in [block.knobs for block in blocks]:
        while len(blocks) >= _MOST_BLOCKS:
            gone = blocks.pop(0)
            known |= {name: _as_pair(_beta_in(gone, i, None)) for i, name in enumerate(gone.knobs)}
        blocks.append(begin_block(knobs))
    positions = [explored[name] for name in knobs]
    learned = (
        learn_reward(block, positions, reward, context) if block.knobs == knobs else block
        for block in blocks
    )
    return replace(beliefs, blocks=tuple(learned), known=known)


def forget_knobs(beliefs: Beliefs, knobs: Sequence[str]) -> Beliefs:
    """Without what was learned of some knobs, and of those explored with them."""
    gone = set(knobs)
    return replace(
        beliefs,
        blocks=tuple(block for block in beliefs.blocks if not gone & set(block.knobs)),
        known={name: pair for name, pair in beliefs.known.items() if name not in gone},
    )


def _next_knobs(beliefs: Beliefs) -> tuple[str, ...]:
    """The explorable knobs to try next: of those that were not explored, a draw from the belief on
    each says which is farthest from its default."""
    done = {name for block in beliefs.blocks for name in block.knobs} | beliefs.known.keys()
    fresh = [name for name in beliefs.explorable if name not in done]
    turn = len(done)
    drawn = {
        name: beta_of(beliefs, name).deviation * abs(normal(f"next:{turn}:{name}"))
        for name in fresh
    }
    return tuple(sorted(sorted(fresh, key=lambda name: -drawn[name])[:MOST_KNOBS]))


def _settle(block: Block, context: str) -> Block:
    """With what is settled moved, in all contexts and in one."""
    if block.all.sums.count < _COLD:
        return block
    curve = fit(block.all.sums, len(block.knobs), block.noise)
    now = _moved(block, curve, block.settled, block.priors)
    block = replace(block, all=replace(block.all, settled=now))
    if block.left and block.seen % _LOOKS == 0 and _is_explored(block, curve):
        block = replace(block, left=0)
    belief = block.contexts[context]
    if len(block.contexts) < 2 or belief.sums.count < _CONTEXT_COLD:
        return block
    own = _moved(block, _curve(block, context), belief.settled or now, now)
    belief = replace(belief, settled=() if own == now else own)
    return replace(block, contexts={**block.contexts, context: belief})


def _is_explored(block: Block, curve: Curve) -> bool:
    """True if what may still be gained is little beside what was gained."""
    now, lows, highs = _offsets(block, block.settled), *_box(block)
    drawn = [curve.draw(f"left:{at}") for at in range(_DRAWS)]
    most = sum(
        height(each, highest(each, lows, highs, [now, lows, highs])) - height(each, now)
        for each in drawn
    )
    gained, _ = curve.gain(now, [0.0] * len(now))
    return most / _DRAWS < _ENOUGH * gained


def _moved(
    block: Block, curve: Curve, settled: Sequence[float], home: Sequence[float]
) -> tuple[float, ...]:
    """What is settled after a look, one knob after the other. `home` is where it stays without
    evidence."""
    now, homes = _offsets(block, settled), _offsets(block, home)
    knobs = range(len(now))
    for some in (list(knobs), *([knob] for knob in knobs)):
        now = _step(block, curve, now, some, (_SURE, _LEAST_GAIN))
    away = [knob for knob in knobs if abs(now[knob] - homes[knob]) > _SAME]
    if away:
        now = _step(block, curve, now, away, (_REFINED, _LEAST_MORE))
    for knob in away:
        gain, doubt = curve.gain(now, _with(now, knob, homes[knob]))
        if gain < doubt:
            now = _with(now, knob, now[knob] + _SETTLES * _DRIFT * (homes[knob] - now[knob]))
    kept = (at if abs(at - h) > _SAME else h for at, h in zip(now, homes, strict=True))
    return _positions(block, list(kept))


def _step(
    block: Block, curve: Curve, now: list[float], knobs: Sequence[int], proof: tuple[float, float]
) -> list[float]:
    """Offsets with some knobs moved towards their best, as far as `proof` (standard errors, and a
    gain) shows; those that do not matter stay."""
    sure, least = proof
    lows, highs = _box(block)
    here = [low if at in knobs else now[at] for at, low in enumerate(lows)]
    there = [high if at in knobs else now[at] for at, high in enumerate(highs)]
    best = highest(curve.means, here, there, [now, here, there])
    for knob in knobs if len(knobs) > 1 else ():
        without = _with(best, knob, now[knob])
        gain, doubt = curve.gain(best, without)
        if gain < min(sure, _MATTERS) * doubt:
            best = without
    shown = [(0.0, now)]
    for part in _PARTS:
        step = [a + part * (b - a) for a, b in zip(now, best, strict=True)]
        gain, doubt = curve.gain(step, now)
        if gain > max(least, sure * doubt):
            shown.append((gain - sure * doubt, step))
    return max(shown)[1]


def _curve(block: Block, context: str) -> Curve:
    """In one context: its own sessions, and a share of all."""
    belief = block.contexts.get(context)
    sums = block.all.sums
    if belief is not None and len(block.contexts) > 1 and belief.sums.count >= _CONTEXT_COLD:
        sums = belief.sums.with_share(sums, _SHARED)
    return fit(sums, len(block.knobs), block.noise)


def _beta_in(block: Block, knob: int, context: int | None) -> Beta:
    settled = block.settled if context is None else block.settled_in(context)
    curve = _curve(block, "" if context is None else str(context))
    lows, highs = _box(block)
    start = _offsets(block, settled)
    drawn = [
        _positions(block, highest(curve.draw(f"beta:{at}"), lows, highs, [start]))[knob]
        for at in range(_DRAWS)
    ]
    mean = settled[knob]
    spread = sum((each - mean) ** 2 for each in drawn) / _DRAWS
    count = mean * (1 - mean) / max(spread, 1e-9) - 1
    return _matched(mean, max(_PRIOR_COUNT, min(_MOST_COUNT, count)))


def _matched(mean: float, count: float) -> Beta:
    mean = max(0.001, min(0.999, mean))
    return Beta(round(mean * count, _DIGITS), round((1 - mean) * count, _DIGITS))


def _as_pair(beta: Beta) -> tuple[float, float]:
    return beta.alpha, beta.beta


def _noise(block: Block, residual: float) -> float:
    """After one more reward that was so many standard deviations off the curve."""
    step = (residual * residual - 1) / (block.all.sums.count + _NOISE_COUNT)
    return round(max(_LEAST_NOISE, block.noise * math.sqrt(1 + step)), _DIGITS)


def _offsets(block: Block, positions: Sequence[float]) -> list[float]:
    return [here - prior for here, prior in zip(positions, block.priors, strict=True)]


def _positions(block: Block, offsets: Sequence[float]) -> tuple[float, ...]:
    return tuple(
        round(max(0.0, min(1.0, prior + off)), _DIGITS)
        for prior, off in zip(block.priors, offsets, strict=True)
    )


def _box(block: Block) -> tuple[list[float], list[float]]:
    return [-each for each in block.priors], [1 - each for each in block.priors]


def _with(offsets: Sequence[float], knob: int, offset: float) -> list[float]:
    return [*offsets[:knob], offset, *offsets[knob + 1 :]]
