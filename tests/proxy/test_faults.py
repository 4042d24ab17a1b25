"""Page faults through the real proxy: the model asks for what left its window, gets it, and the
client sees none of it."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re

import pytest

from hotset.nouns.message import DialectName, Reply, Usage
from hotset.nouns.page import Kind
from hotset.nouns.turn import Outcome
from hotset.runtime.rounds import MOST_ROUNDS, sum_usages as summed
from hotset.testing import Call, Say
from hotset.testing.upstream.faults import ErrorEvent, Fin, Gate, Hold, Raw, Reset, Split, Status
from tests.proxy.conftest import Pair
from tests.proxy.talking import (
    OURS,
    Talk,
    asked,
    assert_each_extends_the_one_before,
    code,
    read,
    retrieve,
)
from tests.proxy.test_leaving import _send
from tests.proxy.wire import DIALECTS
from tests.waiting import ask, wait_until

SECRET = "return left + right + 1758018"
"""Stands in the middle of the file that was read, where no excerpt shows it."""


@pytest.fixture(params=DIALECTS)
def dialect(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["document", "stream"])
def stream(request):
    return request.param


@pytest.fixture
def talk(pair, dialect, stream):
    """A conversation over these replies, in which a file was read that is too long to be shown
    whole."""

    def begin(*says: Say, **extra: object) -> tuple[Talk, Pair]:
        first = Say("Let me look.", calls=(read("a.py", id="one"),), thinking="A file.")
        world = pair([first, *says], strict=True)
        talk = Talk(world.address, dialect, stream, dict(extra))
        talk.say("Read it.")
        return talk, world

    return begin


def _assert_nothing_was_seen(talk: Talk, world: Pair) -> None:
    """Nothing of ours stands in what the client holds, and every request to the provider goes on
    where the one before ended."""
    assert not any(ours in talk.wrote for ours in OURS)
    assert_each_extends_the_one_before(world.upstream.requests)


@pytest.mark.row("C5")
@pytest.mark.row("V6")
def test_the_model_gets_back_what_was_shortened_and_the_client_never_sees_it(talk, dialect):
    asking = Say(
        "I need more.", calls=(retrieve(dialect, "one", symbol="f_222"),), thinking="Where is it?"
    )
    conversation, world = talk(asking, Say("It adds 1758018."), Say("You are welcome."))

    conversation.results(code())
    said = conversation.text
    conversation.say("Thanks.")

    first, shown, answered, later = (request.body.decode() for request in world.upstream.requests)
    assert said == f"I need more.{_between(dialect)}It adds 1758018."
    assert "1758018" not in first + shown
    assert json.dumps(SECRET)[1:-1] in answered
    assert json.dumps(SECRET)[1:-1] in later
    _assert_nothing_was_seen(conversation, world)
    with world.store() as store:
        [event] = [event for event in store.events() if event.name == "Retrieved"]
        assert event.detail["tool"] == "retrieve_context"
        assert (event.detail["found"], event.detail["refault"]) == (1, 1)
        assert "1758018" not in str(event)
        [turn, *_] = [each for each in store.turns(event.session) if each.number == event.turn]
        assert (event.detail["agent"], len(event.detail["ids"].split())) == (turn.agent, 1)
        [_, bill, _] = store.bills()
        assert (bill.calls, bill.faults, bill.refaults) == (2, 1, 1)


def test_our_call_alone_leaves_the_client_with_the_words_behind_it(talk, dialect):
    conversation, world = talk(
        Say(calls=(retrieve(dialect, "one", symbol="f_222"),)), Say("It adds 1758018."), Say("Bye.")
    )

    conversation.results(code())
    said, stop = conversation.text, conversation.reply.stop
    conversation.say("Thanks.")

    assert said == "It adds 1758018."
    assert stop in ("end_turn", "stop", "completed", "")
    _assert_nothing_was_seen(conversation, world)


def test_several_calls_of_ours_are_answered_together(talk, dialect):
    calls = (
        retrieve(dialect, "one", symbol="f_222"),
        Call("search_history", {"query": "f_100"}),
        Call("get_turn_range", {"first": 1, "last": 1}),
    )
    conversation, world = talk(Say(calls=calls), Say("Enough."), Say("Bye."))

    conversation.results(code())
    conversation.say("Thanks.")

    answered = asked(world.upstream.requests[2])
    results = [
        part
        for message in answered.messages[-3:]
        for part in message.parts
        if part.kind.family is Kind.TOOL_RESULT
    ]
    assert len(results[-3:]) == 3
    assert b"1758018" in results[-3].content
    assert b"Read it." in results[-1].content
    _assert_nothing_was_seen(conversation, world)


@pytest.mark.row("V2")
def test_the_model_narrows_its_search_by_type_turns_and_time(talk, dialect):
    queries = ("type=file turns=1-9 since=1h", "type=prompt,web", "turns=5-", "until=1h", "turns=x")
    calls = [Call("search_history", {"query": "f_100", "only": only}) for only in queries]
    conversation, world = talk(Say(calls=tuple(calls)), Say("Enough."))

    conversation.results(code())

    answered = asked(world.upstream.requests[-1])
    parts = [part for message in answered.messages for part in message.parts]
    results = [part.content for part in parts if part.kind.family is Kind.TOOL_RESULT][-5:]
    assert [b"def f_100" in each for each in results] == [True, False, False, False, False]
    assert b"nothing found in 0 pages of type prompt, web_fetch" in results[1]
    assert b"x: use 12, 12-20" in results[4]
    _assert_nothing_was_seen(conversation, world)


def test_our_call_beside_the_clients_is_answered_when_the_client_answers_its_own(talk, dialect):
    mixed = Say(
        "Both.",
        calls=(
            read("b.py", id="two"),
            retrieve(dialect, "one", symbol="f_222"),
            read("c.py", id="three"),
        ),
    )
    conversation, world = talk(mixed, Say("It adds 1758018."), Say("Bye."))

    conversation.results(code())
    assert [(call.tool, call.call[-3:]) for call in conversation.calls] == [
        ("read_file", "two"),
        ("read_file", "ree"),
    ]
    conversation.results("b is empty", "c is empty")
    conversation.say("Thanks.")

    assert len(world.upstream.requests) == 4
    answered = asked(world.upstream.requests[2])
    assert b"1758018" in b"".join(message.raw for message in answered.messages)
    called = [
        part.tool
        for message in answered.messages
        for part in message.parts
        if part.kind.family is Kind.TOOL_CALL
    ]
    assert sorted(called) == ["read_file", "read_file", "read_file", "retrieve_context"]
    _assert_nothing_was_seen(conversation, world)


def test_rounds_before_a_call_of_the_clients_are_hidden_too(talk, dialect):
    conversation, world = talk(
        Say("Hm.", calls=(retrieve(dialect, "one", symbol="f_222"),), thinking="First."),
        Say(
            "And.",
            calls=(retrieve(dialect, "one", symbol="f_111"), read("b.py")),
            thinking="Second.",
        ),
        Say("Done."),
        Say("Bye."),
    )

    conversation.results(code())
    assert [call.tool for call in conversation.calls] == ["read_file"]
    conversation.results("b is empty")
    conversation.say("Thanks.")

    assert len(world.upstream.requests) == 5
    _assert_nothing_was_seen(conversation, world)


def test_what_the_model_thought_stays_with_its_proof(talk, dialect):
    thinking = (
        {"thinking": {"type": "enabled", "budget_tokens": 1024}} if dialect == "anthropic" else {}
    )
    conversation, world = talk(
        Say(calls=(retrieve(dialect, "one", symbol="f_222"),), thinking="I do not see it."),
        Say("It adds 1758018.", thinking="Now I see it."),
        Say("Bye."),
        **thinking,
    )

    conversation.results(code())
    conversation.say("Thanks.")

    later = world.upstream.requests[-1].body.decode()
    if dialect != "openai-chat":  # this dialect has no place for thoughts that are sent back
        assert "I do not see it." in later
        assert "Now I see it." in later
        sealed = re.findall(r"c2lnbmF0dXJl\w{24}|Z0FBQUFB\w{24}", later)
        assert len(sealed) == len(set(sealed)) == 3
    _assert_nothing_was_seen(conversation, world)


@pytest.mark.rest_slow
def test_the_client_is_told_the_last_rounds_usage_and_the_ledger_the_sum(pair, dialect, stream):
    paid = []
    says = iter(
        [
            Say("Let me look.", calls=(read("a.py", id="one"),)),
            Say("More.", calls=(retrieve(dialect, "one", symbol="f_222"),)),
            Say("And more.", calls=(retrieve(dialect, "one", symbol="f_223"),)),
            Say("Enough."),
        ]
    )

    def script(_request) -> Say:
        paid.append(world.upstream.bill)
        return next(says)

    world = pair(script, strict=True)
    conversation = Talk(world.address, dialect, stream)
    conversation.say("Read it.")
    conversation.results(code())

    told, last = conversation.reply.usage, paid[-1]
    assert summed([last, told]) == world.upstream.bill
    assert told.output > 0
    assert world.turns()[-1].usage == told
    assert b'"hotset":{"calls":3,' in conversation.answer.body
    with world.store() as store:
        billed = [bill.usage for bill in store.bills()][-1]
        assert summed([paid[1], billed]) == world.upstream.bill


def test_a_stream_that_reports_no_usage_is_billed_by_our_own_count_which_says_so(pair):
    """As aider asks: without `stream_options.include_usage`."""
    script = [
        Say("Let me look.", calls=(read("a.py", id="one"),)),
        Say("More.", calls=(retrieve("openai-chat", "one", symbol="f_222"),)),
        Say("And more.", calls=(retrieve("openai-chat", "one", lines="1-200"),)),
        Say("Enough. " * 50),
        Say("You are welcome."),
    ]
    world = pair(script, strict=True)
    conversation = Talk(world.address, "openai-chat", stream=True, extra={"stream_options": {}})
    conversation.say("Read it.")
    conversation.results(code())
    assert b"usage" not in conversation.answer.body
    conversation.extra = {}
    conversation.say("Thanks.")

    with world.store() as store:
        first, second, reported = store.bills()
        assert [
            turn.usage.estimated for session in store.sessions() for turn in store.turns(session.id)
        ] == [False] * 3
    assert [bill.usage.estimated for bill in (first, second, reported)] == [True, True, False]
    assert (first.calls, second.calls) == (1, 3)
    paid = world.upstream.bill  # by a tokenizer of its own
    ours = summed([first.usage, second.usage, reported.usage])
    assert 0.5 < ours.prompt / paid.prompt < 2
    assert 0.5 < ours.output / paid.output < 2
    assert second.usage.prompt > 3 * first.usage.prompt
    savings = ask(world.address)["metrics"]
    assert savings["turns"] == 3


@pytest.mark.rest_slow
def test_a_model_that_never_stops_asking_is_stopped(talk, dialect):
    endless = [
        Say(f"Round {n}.", calls=(retrieve(dialect, "one", lines=f"{n}"),))
        for n in range(1, MOST_ROUNDS + 2)
    ]
    conversation, world = talk(*endless, Say("Well."))

    conversation.results(code())
    said = conversation.text
    after = conversation.say("Well?")

    assert said == _between(dialect).join(f"Round {n}." for n in range(1, MOST_ROUNDS + 2))
    assert "last retrieval of this turn" in world.upstream.requests[MOST_ROUNDS + 1].body.decode()
    assert after.complete
    _assert_nothing_was_seen(conversation, world)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (Call("retrieve_context", {"id": "r00000000000"}), "r00000000000"),
        (Call("retrieve_context", {"id": "nonsense", "lines": "many"}), "lines must be like"),
        (Call("search_history", {}), "query needs a word"),
    ],
    ids=["an-unknown-id", "bad-arguments", "no-arguments"],
)
@pytest.mark.rest_slow
def test_a_call_that_makes_no_sense_is_told_what_to_ask_instead(talk, call, told):
    conversation, world = talk(Say(calls=(call,)), Say("I see."), Say("Bye."))

    conversation.results(code())
    said = conversation.text
    conversation.say("Thanks.")

    assert said == "I see."
    assert told in world.upstream.requests[2].body.decode()
    _assert_nothing_was_seen(conversation, world)


def test_arguments_that_are_no_json_are_told_so(talk, dialect, stream):
    if dialect == "anthropic" and not stream:
        pytest.skip("a document of this dialect holds arguments as JSON")
    conversation, world = talk(
        Say(calls=(Call("retrieve_context", '{"id": "cut'),)), Say("I see."), Say("Bye.")
    )

    conversation.results(code())
    said = conversation.text
    conversation.say("Thanks.")

    assert said == "I see."
    _assert_nothing_was_seen(conversation, world)


@pytest.mark.parametrize("size", [1, 7])
def test_pieces_of_any_size_make_no_difference(pair, dialect, size):
    script = [
        Say("Let me look.", calls=(read("a.py", id="one"),), fault=Split(size)),
        Say(
            "I need more.",
            calls=(retrieve(dialect, "one", symbol="f_222"),),
            thinking="Hm.",
            fault=Split(size),
        ),
        Say("It adds 1758018.", fault=Split(size)),
        Say("Bye."),
    ]
    world = pair(script, strict=True)
    conversation = Talk(world.address, dialect, stream=True)

    conversation.say("Read it.")
    conversation.results(code())
    said = conversation.text
    conversation.say("Thanks.")

    assert said == f"I need more.{_between(dialect)}It adds 1758018."
    _assert_nothing_was_seen(conversation, world)


@pytest.mark.parametrize("status", [400, 429, 500, 529])
@pytest.mark.rest_slow
def test_a_later_round_that_is_refused_is_told_in_the_providers_words(
    talk, dialect, stream, status
):
    refusal = Say(fault=Status(status, "The provider says no.", retry_after=0))
    conversation, world = talk(
        Say("More.", calls=(retrieve(dialect, "one", symbol="f_222"),)),
        *[refusal] * (1 if status == 400 else 3),
        Say("As if nothing had been."),
        Say("Bye."),
    )

    conversation.results(code())

    answer = conversation.answer
    assert b"The provider says no." in answer.body
    assert answer.status == (200 if stream else status)
    assert not conversation.reply.complete
    assert conversation.reply.error
    if not stream:
        assert answer.header("retry-after") == "0"
    world.settle()
    assert world.turns()[-1].outcome is (Outcome.BROKEN if stream else Outcome.REFUSED)
    _try_again(conversation)
    conversation.say("Thanks.")
    assert conversation.text == "Bye."
    assert not any(ours in conversation.wrote for ours in OURS)


@pytest.mark.parametrize(
    "fault", [Reset(bytes=200), Fin(bytes=300), ErrorEvent(events=3)], ids=repr
)
@pytest.mark.rest_slow
def test_a_later_round_that_breaks_off_breaks_off_for_the_client(talk, dialect, stream, fault):
    if not stream and isinstance(fault, ErrorEvent):
        pytest.skip("a document has no events")
    conversation, world = talk(
        Say("More.", calls=(retrieve(dialect, "one", symbol="f_222"),)),
        Say("Words that do not all come, for the line is cut.", fault=fault),
        Say("As if nothing had been."),
        Say("Bye."),
    )

    conversation.history += _result_of(conversation, code())
    conversation.reply = Reply()
    with contextlib.suppress(OSError, http.client.HTTPException):
        conversation.send()

    assert not conversation.reply.complete
    wait_until(lambda: world.turns()[-1].outcome is not None)
    assert world.turns()[-1].outcome in (Outcome.BROKEN, Outcome.REFUSED)
    _try_again(conversation)
    conversation.say("Thanks.")
    assert conversation.text == "Bye."


def test_a_reply_that_is_cut_short_is_the_clients_to_go_on_with(talk, dialect):
    conversation, world = talk(
        Say("More.", calls=(retrieve(dialect, "one", symbol="f_222"),), truncated=True), Say("Bye.")
    )

    conversation.results(code())

    assert conversation.text == "More."
    assert conversation.reply.stop in ("max_tokens", "length", "max_output_tokens")
    assert len(world.upstream.requests) == 2
    conversation.say("Go on.")
    assert conversation.text == "Bye."
    assert not any(ours in conversation.wrote for ours in OURS)


def test_a_client_that_leaves_in_the_middle_of_a_hidden_round_cancels_the_upstream(
    talk, dialect, stream, monotonic_gap
):
    conversation, world = talk(
        Say("More.", calls=(retrieve(dialect, "one", symbol="f_222"),)),
        Say("Never.", fault=Hold(Gate())),
    )
    conversation.history += _result_of(conversation, code())
    connection = _send(world, dialect, conversation.body)
    world.upstream.wait_for_requests(3)

    with monotonic_gap() as gap:
        connection.close()
        world.upstream.wait_for_cancel(2)

    assert gap.seconds < 60
    wait_until(lambda: world.turns()[-1].outcome is Outcome.LEFT)


def test_what_was_hidden_is_hidden_again_when_the_client_goes_back(talk, dialect):
    """A rewind: the client asks something else from an earlier message on; the hidden round before
    it stays where it was."""
    conversation, world = talk(
        Say("More.", calls=(retrieve(dialect, "one", symbol="f_222"),)),
        Say("It adds 1758018."),
        Say("One way."),
        Say("Another."),
    )
    conversation.results(code())
    past = list(conversation.history)
    conversation.say("This way?")
    conversation.history = past

    conversation.say("Or that way?")

    this, that = (asked(request).messages for request in world.upstream.requests[-2:])
    same = [message.raw for message in this[:-1]] == [message.raw for message in that[:-1]]
    assert same
    assert b"1758018" in b"".join(message.raw for message in that)


def test_a_gateways_page_instead_of_a_later_round_reaches_the_client(talk, dialect, stream):
    page = Say(fault=Raw(headers=(("content-type", "text/html"), ("retry-after", "0"))))
    conversation, world = talk(
        Say("More.", calls=(retrieve(dialect, "one", symbol="f_222"),)), *[page] * 3, Say("Bye.")
    )

    conversation.results(code())

    assert not conversation.reply.complete
    assert conversation.answer.status == (200 if stream else 502)
    assert len(world.upstream.requests) == 5


def _between(dialect: str) -> str:
    """What stands between the texts of two rounds where the client gets one text for all of
    them."""
    return "\n\n" if dialect == "openai-chat" else ""


def _try_again(conversation: Talk) -> None:
    """As a client does whose call failed: what came of the reply is dropped."""
    while conversation.history and _is_assistants(conversation.history[-1]):
        conversation.history.pop()
    conversation.send()
    assert conversation.text == "As if nothing had been."


def _is_assistants(message: dict[str, object]) -> bool:
    return message.get("role") == "assistant" or message.get("type") in (
        "function_call",
        "reasoning",
    )


def _result_of(conversation: Talk, text: str) -> list[dict[str, object]]:
    [call] = conversation.calls
    name = DialectName(conversation.dialect)
    if name is DialectName.ANTHROPIC:
        return [
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call.call, "content": text}],
            }
        ]
    if name is DialectName.OPENAI_CHAT:
        return [{"role": "tool", "tool_call_id": call.call, "content": text}]
    return [{"type": "function_call_output", "call_id": call.call, "output": text}]


def test_the_usage_of_a_turn_without_faults_is_the_providers_own(talk, dialect):
    conversation, world = talk(Say("Nothing more."))
    before = world.upstream.bill

    conversation.results("short")

    assert summed([before, conversation.reply.usage]) == world.upstream.bill
    assert conversation.reply.usage != Usage()


PIXEL = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89"
    b"\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82"
).decode()


def test_an_image_comes_back_as_an_image_where_results_can_carry_one_and_is_told_where_not(
    talk, dialect
):
    brought = (
        Call("get_turn_range", {"first": 1, "last": 2})
        if dialect == "openai-chat"
        else retrieve(dialect, "one")
    )
    conversation, world = talk(
        Say("Seen."), Say("Again.", calls=(brought,)), Say("It is red."), Say("Bye.")
    )

    conversation.send(*_screenshot(dialect, conversation.calls[0].call))
    conversation.say("Look again.")
    conversation.say("Thanks.")

    *_, before, answered, later = map(asked, world.upstream.requests)
    images = [
        sum(part.kind is Kind.IMAGE for message in each.messages for part in message.parts)
        for each in (before, answered, later)
    ]
    assert images == ([1, 1, 1] if dialect == "openai-chat" else [1, 2, 2])
    told = "not shown here" if dialect == "openai-chat" else "shown below"
    assert told in world.upstream.requests[-1].body.decode()
    _assert_nothing_was_seen(conversation, world)


def _screenshot(dialect: str, call: str) -> list[dict[str, object]]:
    """What answers the client's call: an image, where a result can be one; otherwise one in the
    prompt behind it."""
    url = f"data:image/png;base64,{PIXEL}"
    if dialect == "anthropic":
        image = {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
        }
        return [
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call, "content": [image]}],
            }
        ]
    if dialect == "openai-responses":
        return [
            {
                "type": "function_call_output",
                "call_id": call,
                "output": [{"type": "input_image", "image_url": url}],
            }
        ]
    shown = [{"type": "text", "text": "this one"}, {"type": "image_url", "image_url": {"url": url}}]
    return [
        {"role": "tool", "tool_call_id": call, "content": "see below"},
        {"role": "user", "content": shown},
    ]
