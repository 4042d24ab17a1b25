"""What is believed of knobs: nothing moves without evidence, and hidden optima are found."""

from __future__ import annotations

import random
from math import exp

import pytest

from hotset.learn.beliefs import Beliefs, beta_of, block_for, learn_reward, propose_positions
from hotset.learn.events import KnobsSetting, SessionFigures, TrialSetting
from hotset.learn.ranges import knob_ranges
from hotset.learn.state import EMPTY, assign, context_of, decide
from hotset.nouns.knobs import Knobs
from tests.learn.worlds import NULLS, Store, World, null_store, regrets, reward_in, world


@pytest.mark.rest_slow
@pytest.mark.parametrize("rewards", ["random", *sorted(NULLS.keys() - {"random"})])
def test_rewards_that_do_not_depend_on_a_knob_move_none(rewards):
    _, farthest = null_store(rewards, seed=1, sessions=1000)

    assert farthest <= 0.02


@pytest.mark.slow
def test_a_hidden_optimum_of_three_knobs_is_found():
    shares = [regrets(seed, 700).share(350) for seed in range(5)]

    assert sum(share <= 0.2 for share in shares) >= 4


@pytest.mark.slow
def test_an_optimum_that_moved_is_found_again_within_two_hundred_sessions():
    late, stale = 0.0, 0.0
    for seed in range(4):
        found = regrets(seed, 700, move=400)
        late += sum(found.run[600:]) / 100
        stale += world(seed, moved=1).regret(world(seed).optimum)
        assert found.store.block.alarms >= 1

    assert late <= 0.2 * stale


def test_five_outliers_in_a_hundred_move_nothing():
    place, chance = world(4), random.Random(4)
    store = Store()
    store.explore(place.knobs)
    for at in range(600):
        store.run_session(f"{at}", reward_in(place, chance, 0.1))
    before = store.block

    for at in range(600, 800):
        usual = reward_in(place, chance, 0.1)
        is_off = at % 20 == 0
        store.run_session(f"{at}", lambda _: 8.0 if is_off else usual(_))  # noqa: B023 - called now

    moved = zip(store.block.settled, before.settled, strict=True)
    assert store.block.rejected - before.rejected >= 9
    assert max(abs(now - then) for now, then in moved) <= 0.01


def test_a_knob_that_does_not_matter_stays_while_another_is_found():
    chance = random.Random(5)
    store = Store()
    store.explore(("keep", "memory.tell", "squeezed"))
    for at in range(500):
        store.run_session(f"{at}", lambda x: -0.2 - (x[1] - 0.9) ** 2 + chance.gauss(0, 0.1))

    keep, tell, squeezed = store.block.settled
    assert abs(tell - 0.9) < 0.1
    assert (keep, squeezed) == (store.block.priors[0], store.block.priors[2])


def test_what_is_found_is_proposed_once_for_the_gate():
    place = World(("memory.tell",), (0.5,), (0.9,), (2.0,), ())
    chance, store = random.Random(6), Store()
    store.explore(place.knobs)
    for at in range(400):
        store.run_session(f"{at}", reward_in(place, chance, 0.1))

    (event,) = decide(store.state, 0.0)
    assert event[0] == "ChangeProposed"
    assert event[1].by == "beliefs"
    assert abs(event[1].knobs["memory.tell"] - 0.9) <= 0.1
    assert event[1].before == {"memory.tell": 0.5}
    store.add(*event)
    assert decide(store.state, 0.0) == []


def test_each_kind_of_work_has_beliefs_of_its_own():
    chance, store = random.Random(7), Store()
    store.explore(("memory.tell",))
    best = {0: 0.1, 1: 0.9}
    vectors = {0: (1.0, 0.0), 1: (0.0, 1.0)}
    for at in range(800):
        kind = at % 2
        context = context_of(store.state, vectors[kind])
        explored = assign(store.state, str(at), 0, context=context).explored
        reward = -((explored["memory.tell"] - best[kind]) ** 2) + chance.gauss(0, 0.1)
        figures = SessionFigures(str(at), explored=explored, vector=vectors[kind], reward=reward)
        store.add("SessionObserved", figures)

    settled = [store.block.settled_in(context_of(store.state, vectors[kind]))[0] for kind in best]
    assert settled[0] < 0.3
    assert settled[1] > 0.7


def test_no_session_explores_unless_a_person_says_so_and_none_a_knob_that_a_person_set():
    assert not any(assign(EMPTY, str(at), 0).explored for at in range(100))

    store = Store()
    store.add("TrialChanged", TrialSetting({}, explore=0.2, explorable=("keep", "no.such.knob")))
    given = [assign(store.state, str(at), 0) for at in range(500)]
    assert 60 < sum(bool(each.explored) for each in given) < 140
    assert all(each.explored.keys() == each.knobs.keys() for each in given)
    assert not any(assign(store.state, str(at), 0, pinned={"keep"}).explored for at in range(99))
    store.add("KnobsFrozen", KnobsSetting(("keep",)))
    assert not any(assign(store.state, str(at), 0).explored for at in range(100))


def test_further_knobs_are_explored_when_the_first_are_done_and_a_few_at_once():
    chance, store = random.Random(8), Store()
    knobs = ("keep", "memory.tell", "squeezed", "crowd", "index")
    store.explore(knobs)
    seen = set()
    for at in range(800):
        key = str(at)
        explored = assign(store.state, key, 0).explored
        assert len(explored) <= 3
        seen |= explored.keys()
        reward = chance.uniform(-1, 1)
        store.add("SessionObserved", SessionFigures(key, explored=explored, reward=reward))

    assert seen == set(knobs)


def test_a_reset_forgets_what_was_believed():
    store = Store()
    store.explore(("keep",))
    store.run_session("a", lambda _: 0.5)
    assert store.state.beliefs.blocks

    store.add("LearningReset", KnobsSetting(("keep",)))

    assert store.state.beliefs.blocks == ()


def test_every_numeric_knob_is_a_beta_distribution_around_its_default():
    ranges, beliefs = knob_ranges(), Beliefs()
    numbers = {name for name, value in Knobs().by_name().items() if type(value) in {int, float}}

    assert numbers <= ranges.keys()
    for name, each in ranges.items():
        beta = beta_of(beliefs, name)
        assert beta.alpha > 0
        assert beta.beta > 0
        assert abs(beta.mean - each.prior) <= 0.001


def test_a_beta_distribution_narrows_around_what_was_found():
    place = World(("memory.tell",), (0.5,), (0.8,), (2.0,), ())
    chance, store = random.Random(9), Store()
    store.explore(place.knobs)
    for at in range(400):
        store.run_session(f"{at}", reward_in(place, chance, 0.1))

    beta = beta_of(store.state.beliefs, "memory.tell")
    assert abs(beta.mean - 0.8) < 0.05
    assert beta.deviation < beta_of(Beliefs(), "memory.tell").deviation / 2


def test_a_position_is_a_value_within_the_range_and_back():
    for name, each in knob_ranges().items():
        assert each.value(each.prior) == each.default, name
        for position in (0.0, 0.25, 1.0):
            changed = Knobs().with_changes({name: each.value(position)})  # its range allows it
            group, _, last = name.rpartition(".")
            holder = getattr(changed, group) if group else changed
            assert getattr(holder, last) == each.value(position)
            if not each.is_whole:
                assert each.position(each.value(position)) == pytest.approx(position, abs=1e-4)


def test_wide_ranges_are_measured_by_ratios():
    window = knob_ranges()["window"]

    assert window.value(0.75) / window.default == pytest.approx(
        window.default / window.value(0.25), rel=0.001
    )
    assert window.value(1.0) / window.default == pytest.approx(16)
    assert knob_ranges()["high"].value(0.25) == 0.25


def test_positions_of_a_key_are_the_same_every_time():
    beliefs = Beliefs(explorable=("keep", "squeezed"))
    block = block_for(beliefs, "a")
    assert block is not None
    for at in range(50):
        positions = propose_positions(block, str(at))
        assert positions == propose_positions(block, str(at))
        block = learn_reward(block, positions, -exp(-at))
