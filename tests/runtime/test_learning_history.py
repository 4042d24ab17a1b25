"""How learning came about over time, for curves."""

from __future__ import annotations

import random

import pytest

from hotset.learn.events import (
    BY_PERSON,
    Change,
    ChangeDecision,
    GateVerdict,
    KnobsSetting,
    SessionFigures,
    TrialSetting,
    change_id,
)
from hotset.learn.ranges import knob_ranges
from hotset.learn.trials import DAY
from hotset.nouns.turn import Event
from hotset.runtime.knob_texts import knob_text
from hotset.runtime.learned_state import learn_event
from hotset.runtime.learning_history import DECISIONS, DayShares, KnobStep, learning_history
from hotset.testing import RamStore
from tests.learn.worlds import Store


def written(*events) -> RamStore:
    store = RamStore()
    for time, name, payload in events:
        store.keep(learn_event(name, payload, time)).result()
    return store


@pytest.mark.row("V12")
def test_the_history_of_a_knob_has_every_value_with_its_time_and_change():
    knobs = {"keep": 9, "crowd": 30}
    id = change_id(knobs, "test")
    history = learning_history(
        written(
            (1.0, "ChangeProposed", Change(id, knobs, {}, "test", "so")),
            (2.0, "ChangeGated", GateVerdict(id, True, 0.1, 0.1, 0.1, 9)),
            (3.0, "ChangeAdopted", ChangeDecision(id, "so")),
            (4.0, "KnobsFrozen", KnobsSetting(("keep",), {"keep": 5})),
            (5.0, "KnobsThawed", KnobsSetting()),
            (6.0, "ChangeRolledBack", ChangeDecision(id, "success fell")),
        )
    )
    steps = [each for each in history.knobs if each.knob == "keep"]
    assert steps == [
        KnobStep("keep", 3.0, 9, id, "adopted"),
        KnobStep("keep", 4.0, 5, "", "order"),
        KnobStep("keep", 5.0, 9, "", "order"),
        KnobStep("keep", 6.0, None, id, "rolled back"),
    ]
    assert [each.value for each in history.knobs if each.knob == "crowd"] == [30, None]


@pytest.mark.row("V12")
def test_a_history_that_goes_on_from_any_event_is_the_same_as_one_from_the_first():
    knobs = {"keep": 9}
    id = change_id(knobs, "test")
    events = (
        (1.0, "TrialChanged", TrialSetting({"off": 0.1})),
        (2.0, "ChangeProposed", Change(id, knobs, {}, "test", "so")),
        (3.0, "ChangeGated", GateVerdict(id, True, 0.1, 0.1, 0.1, 9)),
        (DAY + 1, "ChangeAdopted", ChangeDecision(id, "so")),
        (DAY + 2, "TrialChanged", TrialSetting({"off": 0.2})),
        (2 * DAY, "KnobsFrozen", KnobsSetting(("keep",), {"keep": 5})),
    )
    whole = learning_history(written(*events))
    assert len(whole.knobs) == 2
    assert len(whole.shares) == 3
    for number in range(len(events) + 1):
        assert learning_history(written(*events), learning_history(written(*events[:number]))) == (
            whole
        )


@pytest.mark.row("M10")
def test_the_history_of_shares_has_them_at_the_end_of_each_day():
    history = learning_history(
        written(
            (10.0, "TrialChanged", TrialSetting({"off": 0.1})),
            (20.0, "TrialChanged", TrialSetting({"lean": 0.2})),
            (3 * DAY + 1, "TrialChanged", TrialSetting({"off": 0.0})),
        )
    )
    assert history.shares == (
        DayShares(0.0, {"default": 0.7, "lean": 0.2, "off": 0.1}),
        DayShares(3 * DAY, {"default": 0.8, "lean": 0.2}),
    )


@pytest.mark.row("V12")
def test_the_history_of_beliefs_narrows_around_what_sessions_liked():
    explored, chance, store = Store(), random.Random(2), RamStore()
    explored.explore(("regret",))
    liked = 0.2
    for number in range(200):
        explored.run_session(
            f"s{number}",
            lambda here: -3 * (here[0] - liked) ** 2 + chance.gauss(0, 0.05),
            number * DAY / 50,
        )
    for _, name, data, time in explored.events:
        store.keep(Event(name, time, detail={"data": data})).result()

    points = learning_history(store).beliefs

    assert [each.day for each in points] == [0.0, DAY, 2 * DAY, 3 * DAY]
    assert [each.sessions for each in points] == [50, 100, 150, 200]
    early = RamStore()
    for _, name, data, time in explored.events[:130]:
        early.keep(Event(name, time, detail={"data": data})).result()
    assert learning_history(store, learning_history(early)).beliefs == points
    first, last = points[0], points[-1]
    assert all(each.low <= each.mean <= each.high for each in points)
    assert last.high - last.low < first.high - first.low
    assert last.low <= knob_ranges()["regret"].value(0.2) <= last.high


@pytest.mark.row("V12")
def test_values_and_shares_come_from_decisions_alone_whatever_was_observed_between_them():
    chance = random.Random(5)
    proposed = [{"keep": 9}, {"crowd": 30}, {"keep": 7}]
    events = []
    for number in range(300):
        time, knobs = number * DAY / 20, chance.choice(proposed)
        id = change_id(knobs, "test")
        name, payload = chance.choice(
            [
                ("ChangeProposed", Change(id, knobs, {}, "test", "so")),
                ("ChangeGated", GateVerdict(id, True, 0.1, 0.1, 0.1, 9, since=time)),
                (
                    "ChangeAdopted",
                    ChangeDecision(id, "so", by=chance.choice([BY_PERSON, "bandit"])),
                ),
                ("ChangeRolledBack", ChangeDecision(id, "so")),
                ("TrialChanged", TrialSetting({id: 0.1}, by="bandit")),
                ("TrialChanged", TrialSetting({"off": chance.choice([0.0, 0.1, 0.3])})),
                ("KnobsFrozen", KnobsSetting(("keep",))),
                ("KnobsThawed", KnobsSetting()),
                ("LearningReset", KnobsSetting(("crowd",))),
                ("ResetLifted", KnobsSetting()),
            ]
        )
        arm = chance.choice(["default", "off", id])
        figures = SessionFigures(f"s{number}", arm=arm, success=1.0, cost=5.0, whole=9.0)
        events += [(time, name, payload), (time, "SessionObserved", figures)]
    store = written(*events)
    whole, decided = learning_history(store), learning_history(store, names=DECISIONS)
    assert decided.knobs == whole.knobs
    assert len(decided.knobs) > 10
    assert decided.shares == whole.shares
    assert len({str(each.shares) for each in decided.shares}) > 3


def test_nothing_learned_has_no_history():
    history = learning_history(RamStore())
    assert (history.knobs, history.shares, history.beliefs) == ((), (), ())


def test_a_knob_is_told_in_half_a_sentence():
    assert knob_text("keep") == "The latest steps, which never leave"
    assert knob_text("tools.Bash") == "Other limits for some tools, by name"
    assert knob_text("prefetch.hint") == "How likely a hint's file must be"
    assert knob_text("nothing") == ""
