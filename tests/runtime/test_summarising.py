"""Summaries through a running proxy: in the background, in order, from snapshots, by a model or by
rules, and used in stubs."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hotset.config import Summarising, load
from hotset.errors import BadConfig
from hotset.nouns.bill import Summary
from hotset.nouns.knobs import NEVER, Knobs
from hotset.nouns.message import DialectName
from hotset.nouns.turn import Event
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.recording import requests, script, session
from hotset.testing.upstream import Gate, Hold, Raw, Status
from hotset.testing.upstream.script import Received, Script
from tests.proxy.wire import post

SMALL = Summarising(model="small-1", upstream="small", seconds=10.0, key="the-summary-key")
CLIENT = {"authorization": "Bearer the-client-key"}
TOOL = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}
CROWDED, ROOM = Knobs(high=0.85, low=0.02, keep=2, early=False, limit=NEVER, limits={}), 14_000
"""With these, ten steps find room and sixteen do not."""

NOTES = "- result 3 was odd, the others were as they should be"


@dataclass(frozen=True)
class World:
    proxy: LocalProxy
    provider: ScriptedUpstream
    small: ScriptedUpstream
    folder: Path

    def turn(self, steps: int, *, session: str = "one", **more: object) -> str:
        """One turn of an agent that has made so many steps; gives what the provider was sent."""
        answer = post(
            self.proxy.address,
            "openai-chat",
            body(steps, **more),
            {**CLIENT, "x-session-id": session},
        )
        assert answer.status == 200
        return self.provider.requests[-1].body.decode()

    def summaries(self, count: int, seconds: float = 10.0) -> list[Summary]:
        """The latest summary of each stretch, as soon as so many were written, whatever their
        version."""
        wait(lambda: len(self.events("Summarised")) >= count, seconds)
        with contextlib.closing(SqliteStore.open(self.folder)) as store:
            return [each for session in store.sessions() for each in store.summaries(session.id)]

    def events(self, name: str) -> list[Event]:
        with contextlib.closing(SqliteStore.open(self.folder)) as store:
            return [event for event in store.events() if event.name == name]


@pytest.fixture
def world(tmp_path) -> Iterator[Callable[..., World]]:
    """Makes a proxy over a provider and a small model; each call is a start of the proxy over the
    same folder."""
    with contextlib.ExitStack() as stack:
        stop: list[contextlib.ExitStack] = []

        def make(
            small: Script | None = None, *, summary: Summarising | None = None, **more
        ) -> World:
            for each in stop:
                each.close()
            stop[:] = [running := stack.enter_context(contextlib.ExitStack())]
            model = running.enter_context(ScriptedUpstream(small or (lambda _: Say(NOTES))))
            provider = running.enter_context(ScriptedUpstream(next_step))
            urls = {"openai_url": provider.openai_url, "upstreams": {"small": model.openai_url}}
            proxy = LocalProxy(
                tmp_path / "data", **{**urls, "anthropic_url": model.anthropic_url, **more}
            )
            proxy.config = replace(proxy.config, summary=summary or Summarising())
            return World(running.enter_context(proxy), provider, model, tmp_path / "data")

        yield make


def test_ten_steps_are_summed_up_by_rules_where_no_model_is_configured(world):
    here = world()
    here.turn(9)
    here.turn(10)

    (summary,) = here.summaries(1)
    assert (summary.turns, summary.branch, summary.version, summary.by) == ((1, 2), 0, 1, "rules")
    assert "- Step 7 shows that value_7 is wrong." in summary.text
    assert here.small.requests == ()
    assert [(event.turn, event.detail["by"]) for event in here.events("Summarised")] == [
        (2, "rules")
    ]


def test_the_next_summary_begins_where_the_last_one_ended(world):
    here = world()
    for steps in (10, 15, 19):
        here.turn(steps)
        here.summaries(1)
    here.turn(20)

    first, second = here.summaries(2)
    assert (first.turns, second.turns) == ((1, 1), (2, 4))
    assert "value_10 is" not in first.text
    assert "value_9 is" not in second.text
    assert "value_13 is" in second.text


@pytest.mark.parametrize("upstream", ["small", "anthropic"])
def test_a_small_model_writes_the_next_version_with_a_key_of_its_own(world, upstream):
    here = world(summary=replace(SMALL, upstream=upstream))
    here.turn(10)

    (summary,) = here.summaries(2)
    assert (summary.turns, summary.version, summary.by, summary.text) == (
        (1, 1),
        2,
        "small-1",
        NOTES,
    )
    (asked,) = here.small.requests
    assert asked.dialect is (
        DialectName.ANTHROPIC if upstream == "anthropic" else DialectName.OPENAI_CHAT
    )
    assert "the-summary-key" in (asked.header("authorization") + asked.header("x-api-key"))
    assert "the-client-key" not in str(asked.headers)
    assert "<result>\\nresult 3" in asked.body.decode()
    event = here.events("Summarised")[-1]
    assert event.detail["input"] > 500
    assert event.detail["output"] > 5


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Say(fault=Status(500)), "status 500"),
        (Say(fault=Status(429)), "status 429"),
        (Say(fault=Raw(200)), "unreadable"),
        (Say(fault=Raw(200, body=b"")), "unreadable"),
        (Say("", calls=(Call("look", {}),)), "empty"),
        (Say("I'm sorry, but I can't help with that."), "unfounded"),
        (Say("- all of it is in src/invented_file.py"), "unfounded"),
        (Say("x" * (1 << 21)), "too long"),
        (Say(NOTES, fault=Hold(Gate())), "timeout"),
    ],
)
@pytest.mark.rest_slow
def test_where_the_model_fails_the_rules_stand_and_the_failure_is_counted(world, reply, why):
    here = world([reply], summary=replace(SMALL, seconds=0.5))
    here.turn(10)

    wait(lambda: here.events("SummaryFailed"))
    (failed,) = here.events("SummaryFailed")
    assert failed.detail == {"model": "small-1", "why": why}
    (summary,) = here.summaries(1)
    assert (summary.version, summary.by) == (1, "rules")


def test_a_model_that_cannot_be_reached_is_a_failure_too(world):
    here = world(summary=SMALL)
    with here.small.refusing():
        here.turn(10)
        wait(lambda: here.events("SummaryFailed"))

    assert here.events("SummaryFailed")[0].detail["why"] == "unreachable"


@pytest.mark.row("C4")
def test_a_model_that_hangs_holds_up_no_turn(world):
    gate = Gate()
    here = world(lambda _: Say(NOTES, fault=Hold(gate)), summary=replace(SMALL, seconds=60.0))
    here.turn(10)
    here.small.wait_for_requests(1)

    began = time.monotonic()
    for steps in range(11, 40):
        here.turn(steps)
    took = time.monotonic() - began

    assert len(here.small.requests) == 1, "the model was asked again before it had answered"
    assert len(here.provider.requests) == 30
    assert took < 60, "turns waited for the model"
    gate.open()
    assert [each.version for each in here.summaries(6)] == [2, 2, 2]


@pytest.mark.row("C4")
def test_what_came_after_a_snapshot_never_appears_in_its_summary(world):
    gate = Gate()
    here = world(lambda asked: Say(_last_line(asked.json()), fault=Hold(gate)), summary=SMALL)
    here.turn(10)
    here.small.wait_for_requests(1)
    for steps in (11, 12, 13):
        here.turn(steps)
    gate.open()

    (summary,) = here.summaries(2)
    asked = here.small.requests[0].body.decode()
    assert "result 9 " in asked
    assert not any(
        f"result {later} " in asked or f"value_{later} " in asked for later in (10, 11, 12)
    )
    assert summary.by == "small-1"
    assert not any(f"value_{later} " in summary.text for later in (10, 11, 12))


def test_stretches_are_summed_up_in_the_order_in_which_they_came(world):
    gate = Gate()
    here = world(lambda _: Say(NOTES, fault=Hold(gate)), summary=SMALL)
    for name in ("a", "b", "c"):
        for steps in (10, 20):
            here.turn(steps, session=name, mark=f"talk_{name}")
    gate.open()

    here.summaries(12)
    order = [
        (name, asked.body.decode().count("The user had asked") == 1)
        for asked in here.small.requests
        for name in _mark(asked)
    ]
    assert order == [
        (name, later) for name in ("talk_a", "talk_b", "talk_c") for later in (False, True)
    ]


@pytest.mark.slow
def test_what_waits_is_bounded_and_what_found_no_room_is_due_again(world):
    gate = Gate()
    here = world(lambda _: Say(NOTES, fault=Hold(gate)), summary=SMALL)
    for name in range(20):
        here.turn(10, session=str(name), mark=f"talk_{name}")
    gate.open()
    here.summaries(32)
    wait(lambda: len(here.small.requests) == 16)

    here.turn(11, session="19", mark="talk_19")
    late = here.summaries(34)[-1]
    assert (late.turns, late.by) == ((1, 2), "small-1")


def test_steps_that_left_are_told_by_their_summary_and_later_versions_change_no_byte(world):
    gate = Gate()
    here = world(lambda _: Say(NOTES, fault=Hold(gate)), summary=SMALL, knobs=CROWDED, budget=ROOM)
    here.turn(10)
    (by_rules,) = here.summaries(1)

    sent = here.turn(16)
    assert said(by_rules.text) in sent
    assert said(NOTES) not in sent
    gate.open()
    here.summaries(2)
    again = here.turn(17)

    assert said(NOTES) not in again
    stub = json.loads(sent)["messages"][1]
    assert "[CTX-REF:" in stub["content"]
    assert json.loads(again)["messages"][1] == stub


def test_after_a_restart_a_line_finds_its_summaries_and_nothing_is_summed_up_twice(world):
    here = world(summary=SMALL)
    here.turn(10)
    here.summaries(2)

    here = world(summary=SMALL, knobs=CROWDED, budget=ROOM)
    sent = here.turn(16)
    assert said(NOTES) in sent
    here.turn(20)

    first, second = here.summaries(4)
    assert (first.turns, second.turns) == ((1, 1), (2, 3))
    assert [event.detail["first"] for event in here.events("Summarised")] == [1, 1, 2, 2]
    assert len(here.small.requests) == 1


def test_a_proxy_that_ends_while_a_model_hangs_ends_at_once(world):
    here = world(lambda _: Say(NOTES, fault=Hold(Gate())), summary=replace(SMALL, seconds=600.0))
    here.turn(10)
    here.small.wait_for_requests(1)

    began = time.monotonic()
    here = world(summary=SMALL)
    assert time.monotonic() - began < 60, "it waited for the model"

    here.turn(20)
    assert [(each.turns, each.by) for each in here.summaries(3)] == [
        ((1, 1), "rules"),
        ((2, 2), "small-1"),
    ]


@pytest.mark.parametrize("more", [{"off": True}, {"summary": Summarising(every=0)}])
def test_where_summaries_are_of_no_use_none_is_made(world, more):
    here = world(**more)
    here.turn(10)
    here.turn(30)
    world()  # a stop and a start: nothing is under way any more

    assert here.events("Summarised") == []


@pytest.mark.parametrize("dialect", DialectName)
@pytest.mark.slow
def test_the_recorded_session_is_summed_up_while_it_runs(tmp_path, dialect):
    with ScriptedUpstream(script(session())) as provider:
        urls = {"openai_url": provider.openai_url, "anthropic_url": provider.anthropic_url}
        with LocalProxy(tmp_path / "data", **urls) as proxy:
            here = World(proxy, provider, provider, tmp_path / "data")
            for each in requests(session(), dialect, stream=False):
                assert post(proxy.address, dialect, each).status == 200
            summaries = here.summaries(4)

    assert [(first, last) for each in summaries for first, last in [each.turns]] == [
        (1, 11),
        (12, 21),
        (22, 31),
        (32, 41),
    ]
    assert "`dlv_7c1e0a94b2d84f6ea310` was sent twice, by two workers" in summaries[0].text
    assert "finally: 27 passed in 1.19s" in summaries[3].text


def test_how_older_work_is_summed_up_can_be_chosen(tmp_path):
    def chosen(file: str, **env: str) -> Summarising:
        (tmp_path / "config.toml").write_text(file)
        given = {
            "HOTSET_CONFIG": str(tmp_path / "config.toml"),
            "HOTSET_HOME": str(tmp_path),
            **env,
        }
        return load(project=str(tmp_path), environ=given).summary

    assert chosen("") == Summarising()
    assert chosen(
        '[summary]\nmodel = "gpt-5-nano"\nevery = 5', HOTSET_SUMMARY_KEY="k"
    ) == Summarising("gpt-5-nano", every=5, key="k")
    assert chosen("", HOTSET_SUMMARY_MODEL="claude-haiku-4-5").upstream == "anthropic"
    local = (
        '[upstreams.local]\nurl = "http://127.0.0.1:11434/v1"\n[summary]\nmodel = "qwen3:4b"\n'
        'upstream = "local"\nseconds = 300'
    )
    assert chosen(local) == Summarising("qwen3:4b", "local", 10, 300.0)
    assert "secret" not in repr(chosen("", HOTSET_SUMMARY_KEY="secret"))
    for wrong in (
        '[summary]\nkey = "secret"',
        '[summary]\nevery = "often"',
        '[summary]\nupstream = "nowhere"',
        "summary = 1",
    ):
        with pytest.raises(BadConfig, match="summary"):
            chosen(wrong)


def body(steps: int, mark: str = "talk") -> bytes:
    """What an agent sends that has made so many steps."""
    messages: list[dict[str, object]] = [
        {"role": "user", "content": f"Look at every value of {mark}."}
    ]
    for n in range(steps):
        call = {
            "id": f"call_{n}",
            "type": "function",
            "function": {"name": "look", "arguments": at(n)},
        }
        messages.append({"role": "assistant", "content": words(n), "tool_calls": [call]})
        messages.append(
            {
                "role": "tool",
                "tool_call_id": f"call_{n}",
                "content": f"result {n} {mark} " + f"value_{n} = {n}; " * 120,
            }
        )
    return json.dumps({"model": "gpt-5.6", "messages": messages, "tools": [TOOL]}).encode()


def next_step(asked: Received) -> Say:
    """What the provider says: the step that the agent sends back with its next turn."""
    n = int(asked.json()["messages"][-1]["tool_call_id"].removeprefix("call_")) + 1
    return Say(words(n), calls=(Call("look", at(n), id=str(n)),))


def words(n: int) -> str:
    return f"Step {n} shows that value_{n} is wrong."


def at(n: int) -> str:
    return f'{{"at": {n}}}'


def said(text: str) -> str:
    """A text as it stands inside of a JSON body."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def wait(true: Callable[[], object], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _last_line(asked: dict) -> str:
    """A model that quotes the end of what it was given."""
    return "- " + asked["messages"][-1]["content"].split("The agent said:\n")[-1].splitlines()[0]


def _mark(asked: Received) -> list[str]:
    text = asked.body.decode()
    return [name for name in ("talk_a", "talk_b", "talk_c") if f"value of {name}" in text]
