"""Arms through the real proxy: a share of new sessions, for good; learned knobs begin with a
session; a client's header wins."""

from __future__ import annotations

import json

import pytest

from hotset.learn.events import (
    Change,
    ChangeDecision,
    GateVerdict,
    KnobsSetting,
    TrialSetting,
    change_id,
)
from hotset.runtime.learned_state import learn_event
from hotset.runtime.session_arm import arm_of_session
from hotset.store.sqlite import SqliteStore
from hotset.testing import Say
from tests.proxy.talking import Talk, assert_each_extends_the_one_before, code, looking
from tests.waiting import wait_until

LIMIT = {"over": 3000, "room": 2000}


def learned(folder, *events, at=1_700_000_000.0):
    """Writes events of learning into the store of a proxy that is not running, or beside one."""
    store = SqliteStore.open(folder)
    try:
        for name, payload in events:
            store.keep(learn_event(name, payload, at)).result()
    finally:
        store.close()


def adopted(knobs, before=None):
    id = change_id(knobs, "limits")
    return (
        ("ChangeProposed", Change(id, knobs, before or {}, "limits", "14 of 31 were asked back")),
        ("ChangeGated", GateVerdict(id, True, 0.05, 0.01, 0.09, 12, why="passed")),
        ("ChangeAdopted", ChangeDecision(id, "it saves 5 %")),
    )


@pytest.fixture
def world(pair, tmp_path):
    def make(script, *events):
        (tmp_path / "data").mkdir(mode=0o700, exist_ok=True)
        learned(tmp_path / "data", *events)
        return pair(script, strict=True, knobs=None)

    return make


@pytest.mark.row("M10")
def test_a_session_of_the_control_goes_out_as_it_came_to_its_end(world):
    world = world(
        [looking("a.py"), looking("b.py"), Say("Seen.")],
        ("TrialChanged", TrialSetting({"off": 0.9})),
    )
    names = [f"session-{n}" for n in range(40)]
    talk = None
    for name in names:  # nine in ten are in the control
        talk = Talk(world.address, "anthropic", headers={"x-hotset-session": name})
        before = len(world.upstream.requests)
        talk.say("Read it.")
        if b"retrieve_context" not in world.upstream.requests[before].body:
            break
    talk.results(code("one"))
    talk.results(code("two"))

    for request, sent in zip(world.upstream.requests[-3:], talk.sent[-3:], strict=True):
        assert request.body == sent
    with world.store() as store:
        session = next(each.id for each in store.recent_sessions())
        assert arm_of_session(store, session).name == "off"
        assert len(list(store.bills(session))) == 3


@pytest.mark.row("V12")
def test_what_was_learned_begins_with_a_new_session_and_stays_in_it(world, tmp_path):
    world = world([looking("a.py")] * 500)
    old = Talk(world.address, "anthropic", headers={"x-hotset-session": "old"})
    old.say("Read it.")
    text = code("one", functions=120)
    assert 3000 < len(text) < 24_000
    learned(tmp_path / "data", *adopted({"limits.file": LIMIT}))
    wait_until(lambda: _limit_of(world, f"new-{_next()}") == LIMIT)

    old.results(text)
    assert json.dumps(text)[1:-1] in world.upstream.requests[-1].body.decode()
    assert_each_extends_the_one_before([world.upstream.requests[0], world.upstream.requests[-1]])


_numbers = iter(range(1000))


def _next():
    return next(_numbers)


def _limit_of(world, name):
    talk = Talk(world.address, "anthropic", headers={"x-hotset-session": name})
    talk.say("Read it.")
    with world.store() as store:
        session = next(each for each in store.sessions() if each.key.endswith(name))
        return arm_of_session(store, session.id).values.get("limits.file")


@pytest.mark.row("V12")
def test_a_client_s_header_wins_over_what_was_learned(world):
    world = world([looking("a.py"), Say("Seen.")] * 2, *adopted({"limits.file": LIMIT}))
    text = code("one", functions=120)
    talk = Talk(world.address, "anthropic", headers={"x-hotset-profile": "off"})
    talk.say("Read it.")
    talk.results(text)
    assert world.upstream.requests[-1].body == talk.sent[-1]

    talk = Talk(world.address, "anthropic")
    talk.say("Read it again.")
    talk.results(text)
    assert json.dumps(text)[1:-1] not in world.upstream.requests[-1].body.decode()


def test_what_a_person_freezes_at_a_value_holds_at_once(world, tmp_path):
    world = world([looking("a.py")] * 400 + [Say("Seen.")])
    talk = Talk(world.address, "anthropic", headers={"x-hotset-session": "one"})
    talk.say("Read it.")
    text = code("one", functions=120)
    talk.results(text)
    assert json.dumps(text)[1:-1] in world.upstream.requests[-1].body.decode()

    order = KnobsSetting(("limits.file",), {"limits.file": LIMIT})
    learned(tmp_path / "data", ("KnobsFrozen", order))
    number = iter(range(2, 400))

    def is_short(talk: Talk) -> bool:
        text = code(f"part{next(number)}", functions=120)
        talk.results(text)
        return json.dumps(text)[1:-1] not in world.upstream.requests[-1].body.decode()

    def holds_elsewhere() -> bool:
        other = Talk(world.address, "anthropic", headers={"x-hotset-session": f"{next(number)}"})
        other.say("Read it.")
        return is_short(other)

    before = world.upstream.requests[-1]
    wait_until(holds_elsewhere)  # in the session itself, steps might leave meanwhile
    assert is_short(talk)
    assert_each_extends_the_one_before([before, world.upstream.requests[-1]])
