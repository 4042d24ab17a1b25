"""Learning in simulated stores: what moves without a reason, what hidden optima cost, and whether
the guardrails hold.

    make bench-learn

`plain beta` is the usual Beta update beside it: an observation counts for the position that was
tried if its reward is positive, and against it if it is negative.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import fmean, median

from tests.learn.test_confidence import RUNS, misses, z_misses
from tests.learn.test_gate import pairs
from tests.learn.test_trials import endings, proposed, run
from tests.learn.worlds import (
    NOISE,
    NULLS,
    Store,
    null_store,
    regrets,
    reward_in,
    world,
)

from bench.results import tell
from hotset.learn.events import SessionFigures, TrialSetting
from hotset.learn.gate import SessionPair, gate
from hotset.learn.state import arms, assign, decide, encode_state
from hotset.learn.trials import DAY, FLOOR

_SESSIONS = 1000
_STORES = 20
_FURTHER = 40  # that nothing was chosen by
_MOVE = 500
_WITHIN = 200
_DAYS = 10_000
_OUTLIERS = 0.05
_TRIALS = 10
_LONGEST = 6000


class PlainBeta:
    """One Beta distribution a knob, with outlier rejection, decay, a cold start and a drift."""

    def __init__(self, prior: float) -> None:
        self.prior = (10 * prior, 10 * (1 - prior))
        self.alpha, self.beta, self.count = *self.prior, 0.0

    @property
    def mean(self) -> float:
        return self.alpha / (self.alpha + self.beta)

    def sample(self, chance: random.Random) -> float:
        return chance.betavariate(max(self.alpha, 0.01), max(self.beta, 0.01))

    def update(self, position: float, reward: float) -> None:
        total = self.alpha + self.beta
        spread = (self.alpha * self.beta / (total * total * (total + 1))) ** 0.5
        if abs(position - self.mean) > 3 * spread:
            return
        self.alpha, self.beta, self.count = (
            0.999 * self.alpha,
            0.999 * self.beta,
            0.999 * self.count,
        )
        liked = position if reward > 0 else 1 - position
        self.alpha += abs(reward) * liked
        self.beta += abs(reward) * (1 - liked)
        self.count += abs(reward)
        if 0 < self.count < 10:
            share = self.count / 10
            self.alpha = self.prior[0] + (self.alpha - self.prior[0]) * share
            self.beta = self.prior[1] + (self.beta - self.prior[1]) * share
        self.alpha += 0.001 * (self.prior[0] - self.alpha)
        self.beta += 0.001 * (self.prior[1] - self.beta)


def main() -> None:
    found = _nulls() | _optima() | _outliers() | _gates() | _adoptions() | _guardrails()
    tell("learn", found | _bounds())


def _nulls() -> dict[str, dict[str, dict[str, float]]]:
    """How far knobs moved, in percent of their range, for rewards that depend on none."""
    jobs = [(name, seed) for name in NULLS for seed in range(_STORES)]
    with ProcessPoolExecutor(2) as pool:
        ours = dict(zip(jobs, pool.map(_null, jobs), strict=True))
        plain = dict(zip(jobs, pool.map(_plain_null, jobs), strict=True))
    return {
        f"reward: {name}, {_SESSIONS:,} sessions": {
            method: _moves([found[name, seed] for seed in range(_STORES)])
            for method, found in (("hotset", ours), ("plain beta", plain))
        }
        for name in NULLS
    }


def _moves(found: Sequence[float]) -> dict[str, float]:
    moved = sum(each > 0.02 for each in found)
    return {"farthest %": 100 * max(found), f"stores over 2 % of {_STORES}": float(moved)}


def _null(job: tuple[str, int]) -> float:
    return null_store(*job, _SESSIONS)[1]


def _plain_null(job: tuple[str, int]) -> float:
    name, seed = job
    chance, priors = random.Random(f"{name} {seed}"), world(seed).priors
    return _plain_run(priors, chance, lambda _: NULLS[name](chance), _SESSIONS)[1]


def _plain_run(
    priors: Sequence[float],
    chance: random.Random,
    reward: Callable[[Sequence[float]], float],
    sessions: int,
) -> tuple[list[tuple[float, ...]], float]:
    knobs = [PlainBeta(min(0.95, max(0.05, prior))) for prior in priors]
    starts = [knob.mean for knob in knobs]
    run, farthest = [], 0.0
    for _ in range(sessions):
        here = tuple(knob.sample(chance) for knob in knobs)
        earned = reward(here)
        for knob, position in zip(knobs, here, strict=True):
            knob.update(position, earned)
        run.append(here)
        off = (abs(knob.mean - start) for knob, start in zip(knobs, starts, strict=True))
        farthest = max(farthest, *off)
    return run, farthest


def _optima() -> dict[str, dict[str, dict[str, float]]]:
    """The regret of the last half as a share of the defaults', and of sessions behind a move."""
    seeds = [*range(_STORES), *range(1000, 1000 + _FURTHER)]
    with ProcessPoolExecutor(2) as pool:
        ours = list(pool.map(_hidden, seeds))
        plain = list(pool.map(_plain_hidden, seeds))
        moved = list(pool.map(_moved, seeds))
    title = (
        f"hidden optimum of three knobs, noise {NOISE}: regret of the last half, of the defaults'"
    )
    behind = f"the optimum moves: regret from {_WITHIN} sessions later on, of what staying costs"
    return {
        f"{title}; {name}": {
            "hotset": _shares(ours[part]),
            "plain beta": _shares(plain[part]),
        }
        for name, part in _PARTS.items()
    } | {f"{behind}; {name}": {"hotset": _shares(moved[part])} for name, part in _PARTS.items()}


_PARTS = {"20 stores": slice(0, _STORES), "40 others": slice(_STORES, None)}


def _shares(found: Sequence[float]) -> dict[str, float]:
    return {
        "median": median(found),
        "90th of 100": sorted(found)[int(0.9 * len(found))],
        "within 0.2, of 100": 100 * sum(each <= 0.2 for each in found) / len(found),
    }


def _hidden(seed: int) -> float:
    return regrets(seed, _SESSIONS).share(_SESSIONS // 2)


def _plain_hidden(seed: int) -> float:
    place, chance = world(seed), random.Random(f"noise {seed}")
    run, _ = _plain_run(place.priors, chance, reward_in(place, chance, NOISE), _SESSIONS)
    late = run[_SESSIONS // 2 :]
    return sum(map(place.regret, late)) / len(late) / place.regret(place.priors)


def _moved(seed: int) -> float:
    """Of the regret where knobs were settled before the move."""
    sessions = _MOVE + _WITHIN + 100
    settled = regrets(seed, _MOVE).store.block.settled
    late = regrets(seed, sessions, move=_MOVE).run[-100:]
    return sum(late) / 100 / world(seed, moved=1).regret(settled)


def _outliers() -> dict[str, dict[str, dict[str, float]]]:
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(_with_outliers, range(_STORES + _FURTHER)))
    moves = [each[0] for each in found]
    return {
        f"5 % outliers of 8 for 400 sessions, after 600; {name}": {
            "hotset": {
                "farthest %": 100 * max(moves[part]),
                "median %": 100 * median(moves[part]),
                "stores over 1 %": float(sum(each > 0.01 for each in moves[part])),
                "regret %": 100 * fmean(each[2] for each in found[part]),
                "without them %": 100 * fmean(each[1] for each in found[part]),
            },
        }
        for name, part in _PARTS.items()
    }


def _with_outliers(seed: int) -> tuple[float, float, float]:
    """How much farther outliers move a knob than the same sessions without them do; and the regret
    where knobs are settled then, of the defaults', without them and with them."""
    ends, shares = [], []
    for share in (0.0, _OUTLIERS):
        place, chance = world(seed), random.Random(f"outliers {seed}")
        store, odd = Store(), random.Random(seed)
        store.explore(place.knobs)
        for at in range(600):
            store.run_session(f"{at}", reward_in(place, chance, NOISE))
        start = store.block
        for at in range(600, 1000):
            off = 8.0 * odd.choice((-1, 1)) if odd.random() < share else 0.0
            usual = reward_in(place, random.Random(f"{seed} {at}"), NOISE)
            store.run_session(f"{at}", usual if not off else lambda _, odd=off: odd)
        moves = zip(store.block.settled, start.settled, strict=True)
        ends.append(max(abs(now - then) for now, then in moves))
        shares.append(place.regret(store.block.settled) / place.regret(place.priors))
    return max(0.0, ends[1] - ends[0]), shares[0], shares[1]


def _gates() -> dict[str, dict[str, dict[str, float]]]:
    passed = 0
    for seed in range(100):
        chance = random.Random(seed)
        passed += gate(
            [
                pair
                if chance.random() < 0.5
                else SessionPair(pair.session, pair.time, pair.after, pair.before)
                for pair in pairs(60, 0.08, 0.05, seed)
            ]
        ).passed
    real = {
        f"{count} sessions": float(sum(gate(pairs(count, 0.05, 0.1, s)).passed for s in range(100)))
        for count in (30, 60, 120)
    }
    return {
        "gate: shuffled labels, stores that adopt of 100": {"hotset": {"adopt": float(passed)}},
        "gate: 5 % gained with a spread of 10 %, stores that adopt of 100": {"hotset": real},
    }


def _adoptions() -> dict[str, dict[str, dict[str, float]]]:
    """Sessions of a project until a change is adopted that saves a fifth and does no harm."""
    jobs = [(rate, share) for rate in (0.85, 0.95) for share in (0.1, 0.5)]
    with ProcessPoolExecutor(2) as pool:
        found = {job: list(pool.map(partial(_until_decided, *job), range(_TRIALS))) for job in jobs}
    return {
        f"a change that does no harm, {rate:.0%} succeed, share {share:.0%}": {
            "hotset": {
                "sessions, median": median(at for at, _ in found[rate, share]),
                f"adopted of {_TRIALS}": float(
                    sum(name == "ChangeAdopted" for _, name in found[rate, share])
                ),
            }
        }
        for rate, share in jobs
    }


def _until_decided(rate: float, share: float, seed: int) -> tuple[int, str]:
    """After how many sessions, and what."""
    store = Store()
    id = proposed(store, {"keep": 1})
    if share > FLOOR:
        store.add("TrialChanged", TrialSetting({id: share}))
    success, cost = {"default": rate, id: rate}, {"default": 0.5, id: 0.4}
    for begin in range(0, _LONGEST, 100):
        decided = endings(run(store, 100, success, cost, begin=begin, a_day=20, seed=seed))
        if decided:
            return decided[0][0], decided[0][1]
    return _LONGEST, ""


def _guardrails() -> dict[str, dict[str, dict[str, float]]]:
    sessions = [_until_rolled_back(seed) for seed in range(_STORES)]
    least, most, size = _long_trial()
    return {
        "a profile that halves success (80 %), at a share of 20 %": {
            "hotset": {
                "rolled back of 20": float(sum(each is not None for each in sessions)),
                "sessions, median": median(each or 0 for each in sessions),
                "sessions, most": float(max(each or 0 for each in sessions)),
            }
        },
        f"{_DAYS:,} days with three arms": {
            "hotset": {"least share %": 100 * least, "daily shift %": 100 * most, "state KB": size}
        },
    }


def _until_rolled_back(seed: int) -> int | None:
    chance, store = random.Random(seed), Store()
    store.add("TrialChanged", TrialSetting({"broken": 0.2}))
    for at in range(1000):
        arm = assign(store.state, f"{seed}:{at}", 0).arm
        success = float(chance.random() < (0.4 if arm == "broken" else 0.8))
        store.add("SessionObserved", SessionFigures(str(at), arm=arm, success=success))
        if any(name == "ChangeRolledBack" for name, _ in decide(store.state, 0.0)):
            return at
    return None


def _long_trial() -> tuple[float, float, float]:
    """The least share, the largest shift of a day, and the state's size, with one session a day."""
    chance, store = random.Random(1), Store()
    store.add("TrialChanged", TrialSetting({"off": 0.1}))
    before, least, most = arms(store.state, 0), 1.0, 0.0
    for day in range(_DAYS):
        if day % 500 == 0:
            _propose(store, f"c-{day}", day * DAY)
        arm = assign(store.state, f"{day}", day).arm
        figures = SessionFigures(
            str(day),
            arm=arm,
            success=float(chance.random() < 0.8),
            cost=500 * chance.lognormvariate(0, 0.3),
            whole=1000.0,
        )
        store.add("SessionObserved", figures, day * DAY)
        for name, payload in decide(store.state, day * DAY):
            store.add(name, payload, day * DAY)
        now = arms(store.state, day)
        least = min(least, *(share for name, share in now.items() if name in before))
        if before.keys() <= now.keys():  # no trial ended
            most = max(most, *(abs(now[name] - before.get(name, 0.0)) for name in now))
        before = now
    return least, most, len(encode_state(store.state)) / 1000


def _propose(store: Store, id: str, time: float) -> None:
    knob = random.Random(id).choice(["keep", "crowd", "index", "regret", "patience"])
    store.add(
        "ChangeProposed",
        f'{{"id":"{id}","knobs":{{"{knob}":5}},"before":{{}},"by":"bench","why":""}}',
        time,
    )
    store.add(
        "ChangeGated",
        f'{{"change":"{id}","passed":true,"gain":0.1,"low":0.01,"high":0.2,"sessions":40}}',
        time,
    )


def _bounds() -> dict[str, dict[str, dict[str, float]]]:
    def coin(chance: random.Random) -> float:
        return chance.choice([-1.0, 1.0])

    return {
        f"looks after each of 300 observations: wrong in {RUNS} sequences, at 5 %": {
            "hotset": {"wrong": float(misses(coin, 0.0, 300))},
            "z interval": {"wrong": float(z_misses(coin, 0.0, 300))},
        }
    }


if __name__ == "__main__":
    main()
