"""The state of learning is a fold over events."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import reduce

import pytest
from hypothesis import given, strategies as st

from hotset.learn.events import (
    LEARN_EVENTS,
    Change,
    ChangeDecision,
    GateVerdict,
    KnobsSetting,
    SessionFigures,
    TrialSetting,
    encode_payload,
)
from hotset.learn.state import (
    EMPTY,
    LearnState,
    arms,
    assign,
    decide,
    decode_state,
    encode_state,
    fold,
    rows,
)
from tests.learn.worlds import DAY, Store

KNOBS = ("keep", "memory.tell", "prefetch.hint", "tools.Bash")
IDS = ("c-1", "c-2", "c-3", "c-4")
ARMS = ("default", "off", "lean", *IDS)

unit = st.floats(0, 1)
knobs = st.lists(st.sampled_from(KNOBS), max_size=2, unique=True)
figures = st.builds(
    SessionFigures,
    session=st.just("s"),
    arm=st.sampled_from(ARMS),
    changes=st.lists(st.sampled_from(IDS), max_size=2).map(tuple),
    explored=st.dictionaries(st.sampled_from(KNOBS), unit, max_size=3),
    context=st.integers(0, 9),
    vector=st.lists(st.floats(-1, 1), min_size=4, max_size=4).map(tuple),
    success=st.none() | unit,
    reward=st.none() | st.floats(-10, 10),
    cost=st.floats(0, 1e9),
    whole=st.floats(0, 1e9),
    turns=st.integers(0, 1000),
    searches=st.integers(0, 9),
    earlier=st.none() | st.builds(SessionFigures, session=st.just("s"), cost=st.floats(0, 1e9)),
)
changes = st.builds(
    Change,
    id=st.sampled_from(IDS),
    knobs=st.dictionaries(st.sampled_from(KNOBS), st.integers(1, 9), min_size=1),
    before=st.just({}),
    by=st.just("test"),
    why=st.just("because"),
    is_safe=st.booleans(),
)
settings = st.builds(
    KnobsSetting,
    knobs=knobs.map(tuple),
    values=st.just({}) | st.just({"keep": 5}),
    changes=st.just(()) | st.lists(st.sampled_from(IDS), max_size=2).map(tuple),
    is_on=st.booleans(),
)
payloads = st.one_of(
    st.tuples(st.just("SessionObserved"), figures),
    st.tuples(st.just("ChangeProposed"), changes),
    st.tuples(
        st.just("ChangeGated"),
        st.builds(
            GateVerdict,
            change=st.sampled_from(IDS),
            passed=st.booleans(),
            gain=st.floats(-1, 1),
            low=st.just(0.0),
            high=st.just(1.0),
            sessions=st.just(9),
        ),
    ),
    st.tuples(
        st.sampled_from(["ChangeAdopted", "ChangeRolledBack"]),
        st.builds(
            ChangeDecision,
            change=st.sampled_from(ARMS),
            why=st.just("so"),
            by=st.sampled_from(["person", "bandit"]),
        ),
    ),
    st.tuples(
        st.just("TrialChanged"),
        st.builds(
            TrialSetting,
            shares=st.dictionaries(st.sampled_from(ARMS), unit, max_size=3),
            by=st.sampled_from(["person", "bandit"]),
            explore=st.none() | unit,
            explorable=st.none() | knobs.map(tuple),
        ),
    ),
    st.tuples(
        st.sampled_from(
            ["KnobsFrozen", "KnobsThawed", "LearningReset", "ResetLifted", "LearningSwitched"]
        ),
        settings,
    ),
)
texts = payloads.map(lambda pair: (pair[0], encode_payload(pair[1]))) | st.tuples(
    st.sampled_from([*sorted(LEARN_EVENTS), "Evicted"]), st.text(max_size=20)
)
Folded = tuple[int, str, str, float]


def numbered(events: Sequence[tuple[str, str]]) -> list[Folded]:
    return [(3 * at + 1, *event, at * DAY / 3) for at, event in enumerate(events)]


def fold_all(state: LearnState, events: Sequence[Folded]) -> LearnState:
    return reduce(lambda before, event: fold(before, *event), events, state)


@given(st.lists(texts, max_size=30), st.integers(0, 30))
def test_a_fold_from_a_snapshot_gives_the_bits_of_a_fold_in_one_go(events, cut):
    all_events = numbered(events)
    snapshot = encode_state(fold_all(EMPTY, all_events[:cut]))

    resumed = fold_all(decode_state(snapshot), all_events[cut:])

    assert encode_state(resumed) == encode_state(fold_all(EMPTY, all_events))


@given(st.lists(texts, max_size=30))
def test_events_that_were_folded_change_nothing_when_they_come_again(events):
    all_events = numbered(events)
    once = fold_all(EMPTY, all_events)

    assert encode_state(fold_all(once, all_events)) == encode_state(once)


@given(st.lists(texts, max_size=30), st.text(max_size=8))
def test_whatever_the_events_say_a_session_gets_an_arm_and_shares_keep_their_floor(events, key):
    state = fold_all(EMPTY, numbered(events))

    shares = arms(state, 10)

    assert abs(sum(shares.values()) - 1) < 1e-9
    assert shares["default"] >= 0.1 - 1e-9
    assert min(shares.values()) >= 0.05 - 1e-9
    assert assign(state, key, 10).arm in shares
    assert assign(state, key, 10) == assign(state, key, 10)
    assert all(name in LEARN_EVENTS for name, _ in decide(state, 10 * DAY))
    assert len(rows(state)) == len(state.changes)


def test_damaged_events_are_skipped_named_and_counted_once():
    store = Store()
    store.add("SessionObserved", SessionFigures("s1"))
    store.add("SessionObserved", '{"session": "s2"')
    store.add("ChangeGated", GateVerdict("nobody", True, 0.1, 0.0, 0.2, 9))
    store.add("TrialChanged", '{"shares": {"off": 7}}')
    store.add("SessionObserved", SessionFigures("s3"))
    again = fold_all(store.state, store.events)

    assert again == store.state
    assert again.skipped == {"2": "SessionObserved", "3": "ChangeGated", "4": "TrialChanged"}
    assert again.skipped_count == 3
    assert again.default.sessions == 2


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("SessionObserved", '{"session": "s", "cost": 1e300}'),
        ("SessionObserved", '{"session": "s", "vector": [1e200, 1e200]}'),
        ("SessionObserved", '{"session": "s", "turns": 99999999999999999999}'),
        ("SessionObserved", '{"session": "s", "reward": NaN}'),
        (
            "ChangeGated",
            '{"change": "c", "passed": true, "gain": 900, "low": 1, "high": 2, "sessions": 9}',
        ),
    ],
)
def test_numbers_that_no_session_has_are_damage(name, data):
    state = fold(EMPTY, 1, name, data, 0.0)

    assert state.skipped == {"1": name}
    assert decode_state(encode_state(state)) == state


def test_events_of_others_are_no_business_of_learning():
    assert fold(EMPTY, 7, "Evicted", "", 0.0) is EMPTY


@pytest.mark.slow
def test_the_state_after_ten_thousand_sessions_has_a_few_kilobytes():
    chance = random.Random(1)
    store = Store()
    store.add("TrialChanged", TrialSetting({"off": 0.1}, explore=0.2, explorable=KNOBS[:3]))
    for at in range(10_000):
        given = assign(store.state, str(at), 0)
        store.add(
            "SessionObserved",
            SessionFigures(
                str(at),
                arm=given.arm,
                explored=given.explored,
                vector=tuple(chance.gauss(0, 1) for _ in range(16)),
                success=float(chance.random() < 0.8),
                reward=chance.uniform(-1, 1),
                cost=chance.uniform(10, 90),
                whole=100.0,
                turns=chance.randrange(40),
            ),
        )

    assert len(encode_state(store.state)) < 20_000
