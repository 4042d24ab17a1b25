"""Worlds to learn in: sessions whose reward depends on a few knobs, or on none."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

from msgspec import Struct

from hotset.learn.beliefs import Block
from hotset.learn.events import SessionFigures, TrialSetting, encode_payload
from hotset.learn.ranges import knob_ranges
from hotset.learn.state import EMPTY, LearnState, assign, fold

DAY = 86_400.0
LEVEL = -0.15  # of a session with every knob at its best: rewards are mostly negative
NOISE = 0.1


@dataclass(frozen=True)
class World:
    """Three knobs whose best positions are anywhere and depend on each other."""

    knobs: tuple[str, ...]
    priors: tuple[float, ...]
    optimum: tuple[float, ...]
    curvatures: tuple[float, ...]
    products: tuple[float, ...]

    def regret(self, positions: Sequence[float]) -> float:
        """What a session loses by not being at the optimum."""
        off = [here - best for here, best in zip(positions, self.optimum, strict=True)]
        own = sum(c * each * each for c, each in zip(self.curvatures, off, strict=True))
        pairs = combinations(off, 2)
        return own + sum(p * a * b for p, (a, b) in zip(self.products, pairs, strict=True))


def world(seed: int, moved: int = 0) -> World:
    """A world; `moved` is how often its optimum has moved."""
    chance = random.Random(seed)
    ranges = knob_ranges()
    knobs = tuple(sorted(chance.sample(sorted(ranges), 3)))
    curvatures = tuple(chance.uniform(0.5, 1.5) for _ in knobs)
    products = tuple(
        chance.uniform(-0.5, 0.5) * sqrt(a * b) for a, b in combinations(curvatures, 2)
    )
    optimum = [tuple(chance.random() for _ in knobs) for _ in range(moved + 1)][-1]
    return World(knobs, tuple(ranges[name].prior for name in knobs), optimum, curvatures, products)


class Store:
    """A store's events, as far as learning goes: folded as they come."""

    def __init__(self) -> None:
        self.state: LearnState = EMPTY
        self.events: list[tuple[int, str, str, float]] = []

    def add(self, name: str, payload: Struct | str, time: float = 0.0) -> None:
        data = payload if isinstance(payload, str) else encode_payload(payload)
        self.events.append((len(self.events) + 1, name, data, time))
        self.state = fold(self.state, *self.events[-1])

    def explore(self, knobs: Sequence[str]) -> None:
        """Let every session explore these knobs."""
        self.add("TrialChanged", TrialSetting({}, explore=1.0, explorable=tuple(knobs)))

    def run_session(
        self, key: str, reward: Callable[[Sequence[float]], float], time: float = 0.0
    ) -> tuple[float, ...]:
        """A session that explores; returns where it put the knobs."""
        given = assign(self.state, key, int(time // DAY))
        positions = tuple(given.explored.values())
        figures = SessionFigures(key, explored=given.explored, reward=reward(positions))
        self.add("SessionObserved", figures, time)
        return positions

    @property
    def block(self) -> Block:
        return self.state.beliefs.blocks[-1]

    def farthest(self) -> float:
        """How far the farthest knob is from its default."""
        return max(
            abs(here - prior)
            for block in self.state.beliefs.blocks
            for here, prior in zip(block.settled, block.priors, strict=True)
        )


def reward_in(place: World, chance: random.Random, noise: float) -> Callable[..., float]:
    return lambda positions: LEVEL - place.regret(positions) + chance.gauss(0, noise)


def regrets(seed: int, sessions: int, *, move: int | None = None, noise: float = NOISE) -> Regrets:
    """Of each session in a world, whose optimum moves before the session number `move`."""
    place, chance = world(seed), random.Random(f"noise {seed}")
    store = Store()
    store.explore(place.knobs)
    run, stay = [], []
    for at in range(sessions):
        if at == move:
            place = world(seed, moved=1)
        here = store.run_session(f"{seed}:{at}", reward_in(place, chance, noise))
        run.append(place.regret(here))
        stay.append(place.regret(place.priors))
    return Regrets(run, stay, store)


@dataclass(frozen=True)
class Regrets:
    run: list[float]
    stay: list[float]
    """With the defaults."""
    store: Store

    def share(self, begin: int, end: int | None = None) -> float:
        """Of the defaults' regret, that of some sessions."""
        return sum(self.run[begin:end]) / sum(self.stay[begin:end])


NULLS: dict[str, Callable[[random.Random], float]] = {
    "constant -0.4": lambda _: -0.4,
    "constant -0.1": lambda _: -0.1,
    "constant +0.4": lambda _: 0.4,
    "random": lambda chance: chance.uniform(-1, 1),
    "one user at -8": lambda chance: -8.0 if chance.random() < 0.2 else chance.gauss(0.1, 0.1),
}
"""Rewards that do not depend on any knob."""


def null_store(name: str, seed: int, sessions: int) -> tuple[Store, float]:
    """A store after sessions with such rewards, and how far a knob ever was from its default."""
    chance = random.Random(f"{name} {seed}")
    store, farthest = Store(), 0.0
    store.explore(world(seed).knobs)
    for at in range(sessions):
        store.run_session(f"{seed}:{at}", lambda _: NULLS[name](chance))
        farthest = max(farthest, store.farthest())
    return store, farthest
