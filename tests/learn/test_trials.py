"""Arms under trial and their guardrails."""

from __future__ import annotations

import random
from collections.abc import Mapping

from hotset.learn.events import (
    Change,
    ChangeDecision,
    GateVerdict,
    KnobsSetting,
    SessionFigures,
    TrialSetting,
    change_id,
)
from hotset.learn.state import arms, assign, changes_in_force, decide, rows, rows_of
from hotset.learn.trials import DAILY_SHIFT, DAY, FLOOR, MOST_SHARE
from tests.learn.worlds import Store


def proposed(store: Store, knobs: Mapping[str, object], *, is_safe: bool = False) -> str:
    """The id of a change that passed the gate."""
    id = change_id(knobs, "test")
    before = dict.fromkeys(knobs, 1)
    store.add("ChangeProposed", Change(id, dict(knobs), before, "test", "it pays", is_safe=is_safe))
    store.add("ChangeGated", GateVerdict(id, True, 0.1, 0.02, 0.2, 40, why="passed: +10 %"))
    return id


def run(
    store: Store,
    sessions: int,
    success: Mapping[str, float],
    cost: Mapping[str, float],
    *,
    begin: int = 0,
    a_day: int = 10,
    seed: int = 0,
) -> list[tuple[int, str, str]]:
    """Sessions with each arm's probability of success and share of the whole cost; what was decided
    after which session."""
    chance = random.Random(seed)
    decided = []
    for at in range(begin, begin + sessions):
        time = at * DAY / a_day
        given = assign(store.state, f"{seed}:{at}", int(time // DAY))
        figures = SessionFigures(
            str(at),
            arm=given.arm,
            changes=given.changes,
            success=float(chance.random() < success.get(given.arm, success["default"])),
            cost=1000 * cost.get(given.arm, cost["default"]) * chance.lognormvariate(0, 0.2),
            whole=1000.0,
        )
        store.add("SessionObserved", figures, time)
        for name, payload in decide(store.state, time):
            store.add(name, payload, time)
            decided.append((at, name, getattr(payload, "change", "")))
    return decided


def endings(decided: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    return [each for each in decided if each[1] != "TrialChanged"]


def test_a_profile_that_halves_success_is_rolled_back_and_gets_no_more_sessions():
    store = Store()
    store.add("TrialChanged", TrialSetting({"broken": 0.2}))

    decided = endings(run(store, 400, {"default": 0.8, "broken": 0.4}, {"default": 0.5}))

    assert [each[1:] for each in decided] == [("ChangeRolledBack", "broken")]
    assert arms(store.state, 99) == {"default": 1.0}
    assert decided[0][0] < 250


def test_a_change_that_halves_success_is_rolled_back_however_cheap_it_is():
    store = Store()
    id = proposed(store, {"keep": 1})

    decided = endings(run(store, 700, {"default": 0.8, id: 0.4}, {"default": 0.5, id: 0.1}))

    assert [each[1:] for each in decided] == [("ChangeRolledBack", id)]
    assert "keep" not in changes_in_force(store.state)
    assert "success" in rows(store.state)[0].evidence


def test_a_change_that_costs_more_is_rolled_back():
    store = Store()
    id = proposed(store, {"keep": 9})

    decided = endings(run(store, 900, {"default": 0.8}, {"default": 0.5, id: 0.8}))

    assert [each[1:] for each in decided] == [("ChangeRolledBack", id)]
    assert "costs more" in rows(store.state)[0].evidence


def test_a_change_is_adopted_only_when_success_is_shown_to_be_no_worse():
    store = Store()
    id = proposed(store, {"keep": 6})

    decided = endings(run(store, 2500, {"default": 0.9}, {"default": 0.5, id: 0.45}))

    assert [each[1:] for each in decided] == [("ChangeAdopted", id)]
    assert decided[0][0] > 100
    assert changes_in_force(store.state) == {"keep": 6}
    assert assign(store.state, "new", 999).changes == (id,)
    row = rows_of(store.state, "keep")[0]
    assert (row.stage, row.undo) == ("adopted", "hotset learn reset keep")
    assert row.sessions > 0
    assert row.saved > 0


def test_without_known_outcomes_nothing_is_adopted_that_could_hide_something():
    store = Store()
    proposed(store, {"keep": 6})
    for at in range(500):
        arm = assign(store.state, str(at), 0).arm
        store.add("SessionObserved", SessionFigures(str(at), arm=arm, cost=400, whole=1000))
        for event in decide(store.state, 0.0):
            store.add(*event)

    assert changes_in_force(store.state) == {}


def test_a_change_that_only_shows_more_is_adopted_by_the_gate_alone():
    store = Store()
    id = proposed(store, {"tools.Bash": {"over": 9000, "room": 4500}}, is_safe=True)

    assert [(name, each.change) for name, each in decide(store.state, 0.0)] == [
        ("ChangeAdopted", id)
    ]


def test_an_adopted_change_is_rolled_back_when_success_falls():
    store = Store()
    id = proposed(store, {"keep": 9}, is_safe=True)
    run(store, 1, {"default": 0.8}, {"default": 0.5})
    store.add("LearningReset", KnobsSetting(("keep",)))
    run(store, 100, {"default": 0.8}, {"default": 0.5}, begin=1)
    proposed(store, {"keep": 9}, is_safe=True)

    decided = endings(run(store, 100, {"default": 0.4}, {"default": 0.5}, begin=101))

    assert [each[1:] for each in decided] == [("ChangeAdopted", id), ("ChangeRolledBack", id)]
    assert changes_in_force(store.state) == {}


def test_off_is_a_control_that_is_compared_and_never_adopted_or_rolled_back():
    store = Store()
    store.add("TrialChanged", TrialSetting({"off": 0.3}))

    better = endings(run(store, 600, {"default": 0.4, "off": 0.9}, {"default": 0.9, "off": 0.3}))
    worse = endings(
        run(store, 600, {"default": 0.9, "off": 0.2}, {"default": 0.3, "off": 1.0}, begin=600)
    )

    assert better == worse == []
    assert arms(store.state, 500)["off"] == 0.3
    assert set(store.state.arms["off"].against) == {
        *("success", "cost", "turns", "corrections", "rereads")
    }
    given = [assign(store.state, str(at), 0) for at in range(1000)]
    assert 250 < sum(each.arm == "off" for each in given) < 350
    assert not any(each.changes for each in given if each.arm == "off")


def test_floor_and_daily_shift_hold_over_ten_thousand_days_whatever_events_ask_for():
    chance = random.Random(3)
    store = Store()
    ids = [proposed(store, {knob: 2}) for knob in ("keep", "crowd", "index")]
    names = ["off", "lean", *ids]
    before = arms(store.state, 0)
    for day in range(10_000):
        wanted = {name: chance.random() for name in names if chance.random() < 0.5}
        for hour in sorted(chance.sample(range(24), 2)):
            time = day * DAY + hour * 3600
            store.add("TrialChanged", TrialSetting(wanted, by="bandit"), time)
        if chance.random() < 0.003:
            share = chance.choice([0.0, 0.1, 0.2])
            store.add("TrialChanged", TrialSetting({chance.choice(["off", "lean"]): share}), time)
            before = arms(store.state, day)
        now = arms(store.state, day)
        assert abs(sum(now.values()) - 1) < 1e-9
        assert min(now.values()) >= FLOOR - 1e-9
        if now.keys() == before.keys():
            moved = max(abs(now[name] - before[name]) for name in now)
            assert moved <= DAILY_SHIFT + 1e-6
        before = now

    assert len(before) >= 4


def test_the_bandit_moves_shares_towards_what_is_cheaper_and_no_worse():
    store = Store()
    good, bad = (proposed(store, {knob: 2}) for knob in ("keep", "crowd"))
    cost = {"default": 0.6, good: 0.4, bad: 0.62}
    seen = []
    for begin in range(0, 300, 10):
        run(store, 10, {"default": 0.8}, cost, begin=begin)
        seen.append(arms(store.state, 0))

    highest = max(shares.get(good, 0.0) for shares in seen)
    assert 0.2 < highest <= MOST_SHARE
    assert max(shares.get(bad, 0.0) for shares in seen) < highest


def test_the_arm_of_a_key_is_the_same_every_time_and_arms_get_their_shares():
    store = Store()
    store.add("TrialChanged", TrialSetting({"off": 0.1, "lean": 0.25}))
    given = [assign(store.state, f"session {at}", 0).arm for at in range(4000)]

    assert given == [assign(store.state, f"session {at}", 7).arm for at in range(4000)]
    for name, share in arms(store.state, 0).items():
        assert abs(given.count(name) / 4000 - share) < 0.02


def test_a_person_cannot_ask_for_more_than_there_is():
    store = Store()
    store.add("TrialChanged", TrialSetting({"off": 0.5}))
    store.add("TrialChanged", TrialSetting({"lean": 0.6}))

    assert arms(store.state, 0) == {"default": 0.5, "off": 0.5}
    assert store.state.skipped_count == 1


def test_a_frozen_knob_holds_whatever_is_learned():
    store = Store()
    store.add("KnobsFrozen", KnobsSetting(("keep",), {"keep": 4}))
    id = proposed(store, {"keep": 9}, is_safe=True)

    decided = endings(run(store, 200, {"default": 0.8}, {"default": 0.5}))
    store.add("ChangeAdopted", ChangeDecision(id, "by force"))

    assert decided == []
    assert changes_in_force(store.state) == {"keep": 4}
    store.add("KnobsThawed", KnobsSetting(("keep",)))
    assert changes_in_force(store.state) == {"keep": 9}


def test_a_frozen_knob_keeps_the_value_that_was_learned_so_far():
    store = Store()
    first = proposed(store, {"keep": 6}, is_safe=True)
    store.add("ChangeAdopted", ChangeDecision(first, "it pays"))
    store.add("KnobsFrozen", KnobsSetting(("keep",)))
    store.add("LearningReset", KnobsSetting(("keep",)))

    assert changes_in_force(store.state) == {"keep": 6}


def test_freezing_a_mapping_freezes_what_is_in_it_and_ends_its_trial():
    store = Store()
    id = proposed(store, {"tools.Bash": {"over": 900, "room": 400}})
    store.add("TrialChanged", TrialSetting({id: 0.1}, by="bandit"))
    assert id in arms(store.state, 0)

    store.add("KnobsFrozen", KnobsSetting(("tools",)))

    assert arms(store.state, 0) == {"default": 1.0}
    assert decide(store.state, 0.0) == []


def test_everything_frozen_and_switched_off():
    store = Store()
    proposed(store, {"keep": 9}, is_safe=True)
    store.add("KnobsFrozen", KnobsSetting())
    assert decide(store.state, 0.0) == []

    store.add("KnobsThawed", KnobsSetting())
    for event in decide(store.state, 0.0):
        store.add(*event)
    assert changes_in_force(store.state) == {"keep": 9}
    store.add("LearningSwitched", KnobsSetting(is_on=False))
    assert changes_in_force(store.state) == {}
    assert assign(store.state, "a", 0).knobs == {}
    store.add("LearningSwitched", KnobsSetting(is_on=True))
    assert changes_in_force(store.state) == {"keep": 9}


def test_what_a_person_set_in_a_file_wins_over_what_was_learned():
    store = Store()
    knobs = {"keep": 9, "tools.Bash": {"over": 900, "room": 400}}
    store.add("ChangeAdopted", ChangeDecision(proposed(store, knobs, is_safe=True), "it pays"))

    assert changes_in_force(store.state, pinned={"tools"}) == {"keep": 9}
    assert assign(store.state, "a", 0, pinned={"keep", "tools.Bash"}).knobs == {}


def test_two_changes_of_one_knob_are_not_tried_at_once():
    store = Store()
    first, second = (proposed(store, {"keep": value}) for value in (6, 9))

    for event in decide(store.state, 0.0):
        store.add(*event)

    assert set(arms(store.state, 0)) == {"default", first}
    assert second not in arms(store.state, 0)


def test_a_reset_takes_back_what_was_learned_and_a_new_proposal_may_come():
    store = Store()
    id = proposed(store, {"keep": 9}, is_safe=True)
    store.add("ChangeAdopted", ChangeDecision(id, "it pays"))

    store.add("LearningReset", KnobsSetting())

    assert changes_in_force(store.state) == {}
    assert rows(store.state)[0].stage == "reset"
    proposed(store, {"keep": 9}, is_safe=True)
    assert rows(store.state)[0].stage == "passed"
