"""A hidden follow-up that fails: it is tried again while nothing of its reply has come, and told as
the dialect tells errors."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from dataclasses import dataclass, field
from email.utils import formatdate

import pytest

from hotset.dialects import sse
from hotset.nouns.turn import Outcome
from hotset.testing import Say
from hotset.testing.upstream.faults import (
    CloseDelimited,
    ErrorEvent,
    Fin,
    Gate,
    Hold,
    Raw,
    Reset,
    Status,
)
from tests.proxy.talking import OURS, Talk, assert_each_extends_the_one_before, code, read, retrieve
from tests.proxy.test_leaving import _send
from tests.proxy.wire import DIALECTS
from tests.waiting import ask, wait_until

PULSE = 10.0
WORDS = "Words that do not all come, for the line is cut."


@dataclass
class Naps:
    """Waits of the proxy, as they were asked for; none of them takes its time."""

    pulsing: bool = False
    """Pulses come, too, in a hundredth of their time."""
    asked: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        if self.pulsing:
            await asyncio.sleep(seconds / 100)
        elif seconds == PULSE:
            await asyncio.Event().wait()

    @property
    def between(self) -> list[float]:
        """Those before another try."""
        return [seconds for seconds in self.asked if seconds != PULSE]


@pytest.fixture(params=DIALECTS)
def dialect(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["document", "stream"])
def stream(request):
    return request.param


@pytest.fixture
def turn(pair):
    """A turn in which the model asks for something back; then come these replies. The client gets
    what is left of it."""

    def begin(dialect, stream, *says, sleep=None):
        first = Say("Let me look.", calls=(read("a.py", id="one"),), thinking="A file.")
        asking = Say("More.", calls=(retrieve(dialect, "one", symbol="f_222"),), thinking="Where?")
        sleep = sleep or Naps()
        world = pair([first, asking, *says], strict=True, sleep=sleep)
        talk = Talk(world.address, dialect, stream)
        talk.say("Read it.")
        return talk, world, sleep

    return begin


def _tries(world):
    """How often the follow-up was sent; always the same bytes."""
    bodies = [request.body for request in world.upstream.requests[2:]]
    assert len(set(bodies)) == 1
    return len(bodies)


def _events(world):
    with world.store() as store:
        return [event for event in store.events() if event.name == "FollowUpRetried"]


@pytest.mark.parametrize(
    ("fault", "waits"),
    [
        (Status(429, "Slow down.", retry_after=3), [3.0, 3.0]),
        (Status(500, "Oh."), [0.5, 2.0]),
        (Status(529, "Overloaded."), [0.5, 2.0]),
        (Raw(), [0.5, 2.0]),
        (Reset(), [0.5, 2.0]),
        (Reset(events=0), [0.5, 2.0]),
        (Fin(events=0), [0.5, 2.0]),
        ((CloseDelimited(), Fin(events=0)), [0.5, 2.0]),
    ],
    ids=repr,
)
@pytest.mark.rest_slow
def test_a_follow_up_without_a_byte_of_a_reply_is_tried_twice_more(
    turn, dialect, stream, fault, waits
):
    talk, world, naps = turn(
        dialect,
        stream,
        Say("Lost.", fault=fault),
        Say("Lost.", fault=fault),
        Say("It adds 1758018."),
        Say("Bye."),
    )

    talk.results(code())
    said, complete = talk.text, talk.reply.complete

    assert complete
    assert said.startswith("More.")
    assert said.endswith("It adds 1758018.")
    assert _tries(world) == 3
    assert naps.between == waits
    status = fault.code if isinstance(fault, Status) else 502 if isinstance(fault, Raw) else 0
    retried = _events(world)
    assert [
        (event.detail["try"], event.detail["status"], event.detail["seconds"]) for event in retried
    ] == [
        (2, status, waits[0]),
        (3, status, waits[1]),
    ]
    assert {(event.session, event.turn) for event in retried} == {(world.sessions()[0], 2)}
    assert ask(world.address)["retried"] == 2
    talk.say("Thanks.")
    assert talk.text == "Bye."
    assert not any(ours in talk.wrote for ours in OURS)
    assert_each_extends_the_one_before(world.upstream.requests)


@pytest.mark.parametrize(
    "faults",
    [
        [Status(429, "no more", retry_after=1)] * 3,
        [Reset(), Status(503, "later"), Status(503, "no more")],
        [Status(400, "no more")],
        [Status(429, "no more", retry_after=31)],
        [Status(429, "before", retry_after=16), Status(429, "no more", retry_after=16)],
        [Status(429, "no more", headers=(("x-should-retry", "false"),))],
    ],
    ids=["429", "reset-and-503", "400", "too-long", "too-long-together", "told-not-to"],
)
@pytest.mark.rest_slow
def test_a_follow_up_that_is_refused_for_good_is_told_in_the_providers_words(
    turn, dialect, stream, faults
):
    talk, world, _ = turn(dialect, stream, *(Say(fault=fault) for fault in faults), Say("Never."))

    talk.results(code())

    status = faults[-1].code
    assert _tries(world) == len(faults)
    assert talk.answer.status == (200 if stream else status)
    assert (talk.reply.complete, talk.reply.stop) == (False, "")
    assert b"no more" in talk.answer.body
    if stream:
        _assert_ends_in_an_error(dialect, talk.answer.body, "no more")
    elif faults[-1].retry_after:
        assert talk.answer.header("retry-after") == str(faults[-1].retry_after)
    assert world.turns()[-1].outcome is (Outcome.BROKEN if stream else Outcome.REFUSED)


def test_a_follow_up_that_gets_no_reply_at_all_is_told(turn, dialect, stream):
    talk, world, _ = turn(dialect, stream, *[Say(fault=Reset())] * 3, Say("Never."))

    talk.results(code())

    assert _tries(world) == 3
    assert talk.answer.status == (200 if stream else 502)
    if stream:
        _assert_ends_in_an_error(dialect, talk.answer.body, "could not be reached")
    assert world.turns()[-1].outcome is Outcome.BROKEN


@pytest.mark.parametrize(
    "fault",
    [
        Reset(bytes=200),
        Reset(bytes=700),
        Fin(bytes=300),
        Fin(events=3),
        (CloseDelimited(), Fin(bytes=333)),
        (CloseDelimited(), Fin(events=3)),
    ],
    ids=repr,
)
def test_a_follow_up_that_has_begun_is_not_tried_again_and_ends_in_an_error_event(
    turn, dialect, fault
):
    talk, world, naps = turn(dialect, True, Say(WORDS, fault=fault), Say("Never."))

    talk.results(code())

    assert (_tries(world), naps.asked) == (1, [])
    assert talk.answer.status == 200
    assert (talk.reply.complete, talk.reply.stop) == (False, "")
    _assert_ends_in_an_error(dialect, talk.answer.body, "broke off in mid-reply")
    assert world.turns()[-1].outcome is Outcome.BROKEN


def test_a_follow_up_that_has_told_how_it_ended_needs_no_end_mark(turn):
    """Some providers leave `[DONE]` out: what they said is passed on as it is, and nothing is made
    up."""
    talk, world, _ = turn(
        "openai-chat", True, Say(WORDS, fault=(CloseDelimited(), Fin(events=4))), Say("Never.")
    )

    talk.results(code())

    assert (_tries(world), talk.answer.status, talk.reply.stop) == (1, 200, "stop")
    assert b"error" not in talk.answer.body
    assert not talk.answer.body.rstrip().endswith(b"[DONE]")


def test_an_error_of_the_providers_in_mid_stream_is_told_once(turn, dialect):
    talk, world, _ = turn(
        dialect, True, Say(WORDS, fault=ErrorEvent(events=3, message="Overloaded")), Say("Never.")
    )

    talk.results(code())

    assert _tries(world) == 1
    assert talk.answer.body.count(b"Overloaded") == 1
    assert talk.reply.error
    assert not talk.reply.complete


def _assert_ends_in_an_error(dialect, body, words):
    """Every event is whole, the last is the dialect's own error with these words, and nothing says
    that the turn ended well."""
    assert body.endswith(b"\n\n")
    events = [event for event in sse.events(body) if event.data]
    trees = [json.loads(event.data) for event in events]
    if dialect == "anthropic":
        assert (events[-1].name, trees[-1]["type"]) == ("error", "error")
        assert words in trees[-1]["error"]["message"]
        assert "message_delta" not in [tree["type"] for tree in trees]
    elif dialect == "openai-chat":
        assert words in trees[-1]["error"]["message"]
        assert not any(
            choice.get("finish_reason") for tree in trees for choice in tree.get("choices", ())
        )
    else:
        assert [tree["type"] for tree in trees[-2:]] == ["error", "response.failed"]
        assert [event.name for event in events[-2:]] == ["error", "response.failed"]
        failed = trees[-1]["response"]
        assert words in trees[-2]["message"]
        assert words in failed["error"]["message"]
        assert (failed["status"], failed["id"]) == ("failed", trees[0]["response"]["id"])
        assert [tree["sequence_number"] for tree in trees] == list(range(len(trees)))
        done = [tree["item"] for tree in trees if tree["type"] == "response.output_item.done"]
        assert failed["output"] == done


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ((("retry-after-ms", "1500"),), 1.5, 1.5),
        ((("retry-after-ms", "soon"), ("retry-after", "2.5")), 2.5, 2.5),
        ((("retry-after", "-4"),), 0.0, 0.0),
        ((("retry-after", "nan"),), 0.5, 0.5),
        ((("retry-after", "DATE"),), 0.001, 25.0),
        ((("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"),), 0.0, 0.0),
    ],
    ids=lambda given: given[0][1] if isinstance(given, tuple) else "",
)
def test_an_upstream_says_how_long_to_wait_in_milliseconds_in_seconds_or_by_a_date(
    turn, headers, least, most
):
    given = tuple(
        (name, formatdate(time.time() + 25, usegmt=True) if value == "DATE" else value)
        for name, value in headers
    )
    talk, world, naps = turn(
        "anthropic", True, Say(fault=Status(429, headers=given)), Say("It adds 1758018.")
    )

    talk.results(code())

    assert talk.reply.complete
    assert _tries(world) == 2
    (waited,) = naps.between
    assert least <= waited <= most


@pytest.mark.rest_slow
def test_a_client_that_waits_for_another_try_is_shown_that_the_turn_goes_on(turn, dialect):
    talk, world, naps = turn(
        dialect,
        True,
        Say(fault=Status(429, retry_after=25)),
        Say("It adds 1758018."),
        Say("Bye."),
        sleep=Naps(pulsing=True),
    )

    talk.results(code())

    pulse = (
        b'event: ping\ndata: {"type": "ping"}\n\n'
        if dialect == "anthropic"
        else b": keep-alive\n\n"
    )
    assert pulse in talk.answer.body.partition(b"More.")[2]
    assert talk.reply.complete
    assert naps.asked.count(PULSE) >= 2
    assert naps.between == [25.0]
    talk.say("Thanks.")
    assert talk.text == "Bye."
    assert_each_extends_the_one_before(world.upstream.requests)


def test_a_document_is_sent_nothing_while_its_follow_up_waits(turn, dialect):
    talk, _, _ = turn(
        dialect,
        False,
        Say(fault=Status(429, retry_after=25)),
        Say("It adds 1758018."),
        sleep=Naps(pulsing=True),
    )

    talk.results(code())

    assert talk.reply.complete
    assert b"keep-alive" not in talk.answer.body
    assert json.loads(talk.answer.body)


def test_a_client_that_leaves_while_we_wait_ends_it_at_once(turn, dialect, stream):
    waiting, over = threading.Event(), threading.Event()

    async def sleep(seconds: float) -> None:
        if seconds != PULSE:
            waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            if seconds != PULSE:
                over.set()

    talk, world, _ = turn(
        dialect, stream, Say(fault=Status(429, retry_after=25)), Say("Never."), sleep=sleep
    )
    talk.history += _results(talk)
    connection = _send(world, dialect, talk.body)
    assert waiting.wait(120)

    connection.close()

    assert over.wait(120)
    wait_until(lambda: world.turns()[-1].outcome is Outcome.LEFT)
    assert len(world.upstream.requests) == 3


def test_a_client_that_leaves_in_another_try_cancels_the_upstream(turn, dialect, stream):
    talk, world, _ = turn(
        dialect, stream, Say(fault=Status(503)), Say("Never.", fault=Hold(Gate()))
    )
    talk.history += _results(talk)
    connection = _send(world, dialect, talk.body)
    world.upstream.wait_for_requests(4)

    connection.close()

    world.upstream.wait_for_cancel(3)
    wait_until(lambda: world.turns()[-1].outcome is Outcome.LEFT)


def _results(talk):
    [call] = talk.calls
    if talk.dialect == "anthropic":
        return [
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call.call, "content": code()}],
            }
        ]
    if talk.dialect == "openai-chat":
        return [{"role": "tool", "tool_call_id": call.call, "content": code()}]
    return [{"type": "function_call_output", "call_id": call.call, "output": code()}]
