"""Arms under trial and their guardrails."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from hotset.learn.events import (
    Change,
    ChangeDecision,
    GateVerdict,
    KnobsSetting,
    SessionFigures,
    TrialSetting,
    change_id,
)
from hotset.learn.state import (
    arms,
    assign,
    changes_in_force,
    decide,
    freeze_of,
    rows,
    rows_of,
)
from hotset.learn.trials import DAILY_SHIFT, DAY, FLOOR, MOST_SHARE, compare_figures
from tests.learn.worlds import Store

KNOBS = ("keep", "crowd", "index", "rest", "patience")


def proposed(
    store: Store,
    knobs: Mapping[str, object],
    *,
    is_safe: bool = False,
    since: float = 0.0,
    sessions: int = 40,
) -> str:
    """The id of a change that passed the gate, on sessions from `since` on."""
    id = change_id(knobs, "test")
    before = dict.fromkeys(knobs, 1)
    change = Change(id, dict(knobs), before, "test", "it pays", is_safe=is_safe)
    verdict = GateVerdict(id, True, 0.1, 0.02, 0.2, sessions, why="passed: +10 %", since=since)
    store.add("ChangeProposed", change, since)
    store.add("ChangeGated", verdict, since)
    return id


def decide_now(store: Store, time: float = 0.0) -> list[str]:
    """Writes what is decided; returns the names of the events."""
    decided = decide(store.state, time)
    for name, payload in decided:
        store.add(name, payload, time)
    return [name for name, _ in decided]


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
    assert (row.stage, row.undo) == ("adopted", f"hotset learn reset {id}")
    assert row.sessions > 0
    assert abs(row.cost - 0.45) < 0.1
    assert abs(row.cost_before - 0.5) < 0.05


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
    run(store, 100, {"default": 0.8}, {"default": 0.5})
    id = proposed(store, {"keep": 9}, is_safe=True)

    decided = endings(run(store, 100, {"default": 0.4}, {"default": 0.5}, begin=101))

    assert [each[1:] for each in decided] == [("ChangeAdopted", id), ("ChangeRolledBack", id)]
    assert changes_in_force(store.state) == {}


@pytest.mark.parametrize("before", [0, 5, 14])
def test_a_change_that_was_adopted_early_is_rolled_back_when_all_fails_since(before):
    store = Store()
    run(store, before, {"default": 1.0}, {"default": 0.5})
    proposed(store, {"keep": 9}, is_safe=True)
    assert decide_now(store) == ["ChangeAdopted"]

    decided = endings(run(store, 80, {"default": 0.0}, {"default": 0.5}, begin=before))

    assert [name for _, name, _ in decided] == ["ChangeRolledBack"]
    assert changes_in_force(store.state) == {}


def test_a_change_that_was_adopted_early_stays_where_success_stays():
    fallen = 0
    for seed in range(20):
        store = Store()
        run(store, 10, {"default": 0.8}, {"default": 0.5}, seed=seed)
        proposed(store, {"keep": 9}, is_safe=True)
        decided = run(store, 200, {"default": 0.8}, {"default": 0.5}, begin=10, seed=seed)
        fallen += any(name == "ChangeRolledBack" for _, name, _ in decided)

    assert fallen <= 2


def test_sessions_of_another_arm_are_not_laid_to_an_adopted_change():
    store = Store()
    run(store, 40, {"default": 0.9}, {"default": 0.5})
    id = proposed(store, {"keep": 9}, is_safe=True)
    decide_now(store)
    for at in range(40):
        store.add("SessionObserved", SessionFigures(f"b{at}", "lean", (id,), success=0.0))

    assert decide_now(store) == []
    assert rows(store.state)[0].sessions == 0


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
    store, ids, begun = Store(), list[str](), 0
    before = arms(store.state, 0)
    for day in range(10_000):
        is_by_itself = True
        if len(ids) < 3 or chance.random() < 0.01:
            ids = [*ids[-2:], proposed(store, {chance.choice(KNOBS): day}, since=day * DAY)]
        names = ["off", "lean", *ids]
        wanted = {name: chance.random() for name in names if chance.random() < 0.5}
        for hour in sorted(chance.sample(range(24), 3)):
            time = day * DAY + hour * 3600
            store.add("TrialChanged", TrialSetting(wanted, by="bandit"), time)
            decide_now(store, time)
        if chance.random() < 0.003:
            share = chance.choice([0.0, 0.1, 0.2])
            store.add("TrialChanged", TrialSetting({chance.choice(["off", "lean"]): share}), time)
            is_by_itself = False
        if chance.random() < 0.01:
            store.add("ChangeRolledBack", ChangeDecision(chance.choice(ids), "worse"), time)
            is_by_itself = False
        now = arms(store.state, day)
        entered = now.keys() - before.keys()
        assert abs(sum(now.values()) - 1) < 1e-9
        assert now["default"] >= FLOOR - 1e-9
        assert all(now[name] >= FLOOR - 1e-9 for name in now.keys() - entered)
        if is_by_itself:
            begun += len(entered)
            assert len(entered) <= 1
            moved = max(abs(now.get(name, 0.0) - before.get(name, 0.0)) for name in now)
            assert moved <= DAILY_SHIFT + 1e-6
        before = now

    assert begun > 20


def test_trials_begin_one_after_the_other_with_what_may_move_on_a_day():
    store = Store()
    for knob in ("keep", "crowd", "index"):
        proposed(store, {knob: 2})
    shares = []
    for day in range(8):
        for hour in (1, 9, 17):
            decide_now(store, day * DAY + hour * 3600)
        shares.append(round(arms(store.state, day)["default"], 6))

    assert shares == [0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.7, 0.7]


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


def test_what_a_person_took_back_stays_away_until_that_person_allows_it():
    store = Store()
    id = proposed(store, {"keep": 9}, is_safe=True)
    store.add("ChangeAdopted", ChangeDecision(id, "it pays"))

    store.add("LearningReset", KnobsSetting(("keep",)))

    assert changes_in_force(store.state) == {}
    assert rows(store.state)[0].stage == "reset"
    proposed(store, {"keep": 9}, is_safe=True, since=99.0)
    proposed(store, {"keep": 9, "crowd": 3}, is_safe=True, since=99.0)
    assert decide_now(store) == []
    assert {row.stage for row in rows(store.state)} == {"reset"}

    store.add("ResetLifted", KnobsSetting(("keep",)))
    proposed(store, {"keep": 9}, is_safe=True)
    assert decide_now(store) == ["ChangeAdopted"]
    assert changes_in_force(store.state) == {"keep": 9}


def test_another_value_of_a_knob_that_a_person_took_back_needs_a_trial():
    store = Store()
    store.add("ChangeAdopted", ChangeDecision(proposed(store, {"keep": 9}, is_safe=True), "so"))
    store.add("LearningReset", KnobsSetting())

    other = proposed(store, {"keep": 7}, is_safe=True)
    store.add("ChangeAdopted", ChangeDecision(other, "by another process"))

    assert changes_in_force(store.state) == {}
    assert decide_now(store) == ["TrialChanged"]
    assert other in arms(store.state, 0)


def test_what_was_rolled_back_needs_later_sessions_and_then_a_trial():
    store = Store()
    id = proposed(store, {"keep": 9}, is_safe=True)
    decide_now(store)
    store.add("ChangeRolledBack", ChangeDecision(id, "success fell"), 500.0)

    proposed(store, {"keep": 9}, is_safe=True, since=499.0)
    assert rows(store.state)[0].stage == "refused"
    assert "later sessions" in rows(store.state)[0].evidence
    store.add("ChangeAdopted", ChangeDecision(id, "by another process"))
    assert changes_in_force(store.state) == {}

    proposed(store, {"keep": 9}, is_safe=True, since=501.0)
    assert decide_now(store, 600.0) == ["TrialChanged"]
    assert changes_in_force(store.state) == {}
    assert rows(store.state)[0].stage == "trial"


def test_a_person_may_adopt_what_was_taken_back():
    store = Store()
    id = proposed(store, {"keep": 9}, is_safe=True)
    decide_now(store)
    store.add("LearningReset", KnobsSetting(changes=(id,)))
    proposed(store, {"keep": 9}, is_safe=True)

    store.add("ChangeAdopted", ChangeDecision(id, "a person wants it", by="person"))

    assert changes_in_force(store.state) == {"keep": 9}


def test_a_reset_of_one_change_leaves_the_others_of_its_knobs():
    store = Store()
    for knobs in ({"keep": 6}, {"keep": 9, "crowd": 3}):
        store.add("ChangeAdopted", ChangeDecision(proposed(store, knobs, is_safe=True), "so"))

    store.add("LearningReset", KnobsSetting(changes=(rows(store.state)[0].id,)))

    assert changes_in_force(store.state) == {"keep": 6}


def test_a_reset_of_everything_ends_exploring_and_one_of_a_knob_does_not():
    store = Store()
    store.explore(("keep",))
    store.add("LearningReset", KnobsSetting(("keep",)))
    assert store.state.beliefs.share == 1.0
    store.add("LearningReset", KnobsSetting())
    assert store.state.beliefs.share == 0.0


def test_a_change_that_replay_cannot_judge_is_adopted_only_when_it_is_shown_to_be_cheaper():
    adopted = []
    for cost in (0.5, 0.4):
        store = Store()
        id = proposed(store, {"toolbox.ghost": 0.9}, sessions=0)
        decided = run(store, 2500, {"default": 0.9}, {"default": 0.5, id: cost})
        adopted.append("ChangeAdopted" in {name for _, name, _ in decided})

    assert adopted == [False, True]


def test_an_ended_trial_keeps_what_it_showed():
    store = Store()
    store.add("TrialChanged", TrialSetting({"off": 0.5}))
    run(store, 100, {"default": 0.8}, {"default": 0.5, "off": 1.0})
    showed = compare_figures(store.state.arms["off"])
    tally, seen = store.state.arms["off"].tally, store.state.observed

    store.add("TrialChanged", TrialSetting({"off": 0.0}), 50 * DAY)
    store.add("SessionObserved", SessionFigures("late", "off", cost=900, whole=1000))

    [ended] = store.state.ended
    assert (ended.name, ended.until, ended.differences) == ("off", 50 * DAY, showed)
    assert ended.tally.sessions == tally.sessions + 1
    assert store.state.observed == seen + 1 == 101


def test_sessions_that_explore_are_no_baseline():
    store = Store()
    store.explore(("keep",))
    store.add("TrialChanged", TrialSetting({"off": 0.1}))
    figures = SessionFigures("x", explored={"keep": 0.9}, reward=-1.0, success=0.0, cost=9, whole=1)
    store.add("SessionObserved", figures)

    state = store.state
    assert (state.default.sessions, state.arms["off"].default.sessions) == (0, 0)
    assert (state.exploring.sessions, state.exploring.success, state.observed) == (1, 0.0, 1)


@pytest.mark.parametrize("arm", ["default", "off", "gone"])
def test_a_session_that_went_on_is_counted_once_with_its_later_figures(arm):
    once, twice = Store(), Store()
    first = SessionFigures("x", arm, success=1.0, cost=100, whole=200, turns=3, dollars=0.1)
    later = SessionFigures("x", arm, success=0.0, cost=150, whole=300, turns=5, dollars=0.2)
    for store in (once, twice):
        store.add("TrialChanged", TrialSetting({"off": 0.1, "gone": 0.1}))
        store.add("TrialChanged", TrialSetting({"gone": 0.0}))
    once.add("SessionObserved", later)
    twice.add("SessionObserved", first)
    twice.add("SessionObserved", replace(later, earlier=first))

    for state in (once.state, twice.state):
        tallies = {"default": state.default, "off": state.arms["off"].tally}
        found = tallies.get(arm, state.ended[0].tally)
        assert (found.sessions, found.outcomes, found.success) == (1, 1, 0.0)
        assert (found.cost, found.whole, found.turns, found.dollars) == (150, 300, 5, 0.2)
        assert state.observed == 1


def test_a_part_of_a_frozen_group_cannot_be_thawed_alone_and_loses_nothing():
    store = Store()
    limit = {"over": 900, "room": 400}
    store.add("ChangeAdopted", ChangeDecision(proposed(store, {"tools.Bash": limit}), "so"))
    store.add("KnobsFrozen", KnobsSetting(("tools",)))

    store.add("KnobsThawed", KnobsSetting(("tools.Bash",)))
    store.add("LearningReset", KnobsSetting())

    assert changes_in_force(store.state) == {"tools.Bash": limit}
    assert freeze_of(store.state, "tools.Bash") == "tools"
    store.add("KnobsThawed", KnobsSetting(("tools",)))
    assert changes_in_force(store.state) == {}


def test_only_a_value_that_a_person_gave_is_an_order():
    store = Store()
    store.add("ChangeAdopted", ChangeDecision(proposed(store, {"keep": 6}), "so"))
    store.add("KnobsFrozen", KnobsSetting(("keep", "rest"), {"rest": 4000}))

    assert store.state.orders == {"rest": 4000}
    assert changes_in_force(store.state) == {"keep": 6, "rest": 4000}
    store.add("KnobsFrozen", KnobsSetting(("rest",)))
    assert store.state.orders == {"rest": 4000}


def test_nothing_that_is_adopted_while_every_knob_is_frozen_holds_before_they_are_thawed():
    store = Store()
    store.add("ChangeAdopted", ChangeDecision(proposed(store, {"keep": 6}), "so"))
    store.add("KnobsFrozen", KnobsSetting())
    store.add("ChangeAdopted", ChangeDecision(proposed(store, {"crowd": 6}), "by a tool search"))

    assert changes_in_force(store.state) == {"keep": 6}
    store.add("KnobsThawed", KnobsSetting())
    assert changes_in_force(store.state) == {"keep": 6, "crowd": 6}
