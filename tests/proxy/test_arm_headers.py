"""What a client asks for in headers, and what is wrong with learning, never breaks a call."""

from __future__ import annotations

import json

import pytest

from hotset.dialects import DIALECTS
from hotset.learn.events import TrialSetting
from hotset.nouns.message import DialectName
from hotset.nouns.page import ROOT
from hotset.runtime.decision import read_decision
from hotset.runtime.learned_state import learn_event
from hotset.runtime.session_arm import arm_of_session, session_keys
from hotset.store.sqlite import SqliteStore
from hotset.testing import Say
from tests.proxy.talking import Talk, code, looking

TEXT = code("one", functions=120)
SHORT = "limit={over=3000, room=2000}; limits={}"


def _sent(world, **headers):
    """What the provider got as the result of a call, in a session with these headers."""
    talk = Talk(world.address, "anthropic", headers=headers)
    talk.say("Read it.")
    talk.results(TEXT)
    assert talk.answer.status == 200
    assert talk.text == "Seen."
    return world.upstream.requests[-1].decoded, talk


def _knobs(world):
    with world.store() as store:
        session = next(iter(store.recent_sessions()))
        turn = list(store.turns(session.id))[-1]
        return read_decision(store, turn).knobs


@pytest.mark.row("V12")
def test_a_client_chooses_knobs_and_profiles_by_header(pair):
    world = pair([looking("a.py"), Say("Seen.")] * 3, strict=True, knobs=None)
    body, _ = _sent(world, **{"x-hotset-knobs": SHORT})
    assert json.dumps(TEXT)[1:-1] not in body.decode()
    assert _knobs(world)["limit"] == {"over": 3000, "room": 2000}
    body, talk = _sent(world, **{"x-hotset-profile": " OFF "})
    assert body == talk.sent[-1]
    body, _ = _sent(world, **{"x-hotset-profile": "lean", "x-hotset-knobs": "keep=9"})
    assert _knobs(world)["keep"] == 9


@pytest.mark.parametrize(
    "headers",
    [
        {"x-hotset-profile": "nobody"},
        {"x-hotset-profile": "\xff\xfe"},
        {"x-hotset-profile": "a" * 5000},
        {"x-hotset-knobs": "nothing=1"},
        {"x-hotset-knobs": "keep"},
        {"x-hotset-knobs": "keep=-5"},
        {"x-hotset-knobs": "keep=many"},
        {"x-hotset-knobs": "=;;=;keep=;"},
        {"x-hotset-knobs": "window=0; high=7"},
        {"x-hotset-knobs": "limit=" + "[" * 3000},
        {"x-hotset-knobs": 'limit={over="a"}'},
        {"x-hotset-knobs": "keep=1e999; \xe9\xff=3"},
    ],
    ids=str,
)
@pytest.mark.row("V12")
def test_a_header_that_says_nothing_that_can_be_followed_changes_nothing(pair, headers):
    world = pair([looking("a.py"), Say("Seen.")], strict=True, knobs=None)
    body, _ = _sent(world, **headers)
    assert json.dumps(TEXT)[1:-1] in body.decode()
    assert b"retrieve_context" in body
    assert set(_knobs(world)) == {"window"}


class Broken(SqliteStore):
    """A store in which the arms of sessions cannot be read."""

    def notes(self, space, keys=(), as_of=None):
        if space.name == "arms":
            raise ZeroDivisionError
        return super().notes(space, keys, as_of)


@pytest.mark.row("V12")
def test_a_fault_in_learning_leaves_the_call_with_the_defaults_and_is_told_once(pair, tmp_path):
    (tmp_path / "data").mkdir(mode=0o700)
    with SqliteStore.open(tmp_path / "data") as store:
        off = TrialSetting({"off": 0.9})
        store.keep(learn_event("TrialChanged", off, 1_700_000_000.0)).result()
    world = pair(
        [looking("a.py"), Say("Seen.")],
        strict=True,
        knobs=None,
        open_store=lambda: Broken.open(tmp_path / "data"),
    )
    talk = Talk(world.address, "anthropic")
    talk.say("Read it.")
    assert b"retrieve_context" in world.upstream.requests[-1].decoded
    talk.results(TEXT)
    assert talk.text == "Seen."
    with world.store() as store:
        [session] = store.sessions()
        told = [event for event in store.events() if event.name == "Bypassed"]
        assert len(told) == len({event.detail["call"] for event in told}) == 2
        assert {event.detail["reason"] for event in told} == {
            "a fault of ours in learning: ZeroDivisionError"
        }
        assert not arm_of_session(store, session.id).is_random


def _request(*messages, dialect=DialectName.ANTHROPIC):
    body = {"model": "m", "max_tokens": 9, "messages": list(messages)}
    return DIALECTS[dialect].parse(json.dumps(body).encode())


def _said(role, text):
    return {"role": role, "content": text}


def test_the_keys_of_a_session_are_its_name_or_its_first_message_and_reply():
    opening = _request(_said("user", "Hi."))
    going = _request(_said("user", "Hi."), _said("assistant", "Yes?"), _said("user", "Go."))
    later = _request(
        _said("user", "Hi."), _said("assistant", "Yes?"), _said("user", "Go."),
        _said("assistant", "Gone."), _said("user", "Thanks."),
    )  # fmt: skip
    other = _request(_said("user", "Hi."), _said("assistant", "What?"), _said("user", "Go."))

    first = session_keys(opening, "")
    assert first.opens
    assert first.every == (first.first,) == (first.latest,)
    assert first.first != ROOT
    second = session_keys(going, "")
    assert not second.opens
    assert second.every == (second.reply, first.first)
    assert session_keys(later, "").every == second.every
    assert session_keys(other, "").first == first.first
    assert session_keys(other, "").reply != second.reply
    assert session_keys(opening, "x:one").every == session_keys(later, "x:one").every == ("x:one",)
    assert session_keys(opening, "x:one").opens
