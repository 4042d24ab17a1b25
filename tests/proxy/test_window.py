"""The window through the real proxy: results are shortened once and stay so, and what is not ours
is left alone."""

from __future__ import annotations

import gzip
import json
import sys
import threading
from dataclasses import replace

import pytest

from hotset.testing import Call, RamStore, Say
from hotset.testing.upstream.faults import Gzipped
from hotset.window.repeats import content_id
from hotset.window.retrieval_tools import SPECS
from tests.proxy.talking import (
    OURS,
    Talk,
    asked,
    assert_each_extends_the_one_before,
    code,
    looking,
    tools,
    with_a_result,
)
from tests.proxy.wire import DIALECTS, call, post, question
from tests.waiting import wait_until

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


@pytest.fixture(params=DIALECTS)
def dialect(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["document", "stream"])
def stream(request):
    return request.param


@pytest.mark.row("C1")
@pytest.mark.row("X3")
def test_a_large_result_is_shortened_at_first_sight_and_stays_as_it_was_sent(pair, dialect, stream):
    files = [code(f"part{n}") for n in range(4)]
    world = pair([*(looking(f"{n}.py") for n in range(4)), Say("All read.")], strict=True)
    talk = Talk(world.address, dialect, stream)

    talk.say("Read the four files.")
    for text in files:
        talk.results(text)

    assert talk.text == "All read."
    for text, request in zip(files, world.upstream.requests[1:], strict=True):
        sent = request.body.decode()
        assert len(sent) < len(text)
        assert content_id(text.encode()) in sent
        assert json.dumps(text) in talk.wrote
    assert_each_extends_the_one_before(world.upstream.requests)
    with world.store() as store:
        kept = {store.content(page.digest).decode() for page, _ in world.pages()}
        assert kept >= set(files)
        assert not [event for event in store.events() if event.name in ("Evicted", "Bypassed")]


@pytest.mark.row("C2")
def test_the_same_result_is_not_shown_twice_and_a_changed_one_shows_what_changed(
    pair, dialect, stream
):
    short = code(functions=25)
    changed = short.replace("left + right + 79190", "left * right")
    world = pair([looking("a.py"), looking("b.py"), looking("a.py"), Say("Seen.")], strict=True)
    talk = Talk(world.address, dialect, stream)

    talk.say("Look.")
    for text in (short, short, changed):
        talk.results(text)

    whole, again, after = (request.body.decode() for request in world.upstream.requests[1:])
    assert json.dumps(short)[1:-1] in whole
    assert again.count(json.dumps(short)[1:-1]) == 1
    assert "same as the result above" in again
    assert "left * right" in after
    assert after.count("def f_24") == 1
    assert_each_extends_the_one_before(world.upstream.requests)


def test_our_tools_stand_behind_the_clients_own_in_every_request(pair, dialect, stream):
    world = pair([looking("a.py"), Say("Done."), Say("Again.")], strict=True)
    talk = Talk(world.address, dialect, stream)

    talk.say("Look.")
    talk.results("nothing there")
    talk.say("And now?")

    assert [
        [tool.name for tool in asked(request).tools] for request in world.upstream.requests
    ] == [["read_file", *OURS]] * 3


_FORCED = {
    "anthropic": {"type": "tool", "name": "read_file"},
    "openai-chat": {"type": "function", "function": {"name": "read_file"}},
    "openai-responses": {"type": "function", "name": "read_file"},
}
_NONE = {"anthropic": {"type": "none"}, "openai-chat": "none", "openai-responses": "none"}
_SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
_STRUCTURED = {
    "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": _SCHEMA}}},
    "openai-chat": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": _SCHEMA}}
    },
    "openai-responses": {
        "text": {"format": {"type": "json_schema", "name": "a", "schema": _SCHEMA}}
    },
}
_LIMIT = {
    "anthropic": "max_tokens",
    "openai-chat": "max_completion_tokens",
    "openai-responses": "max_output_tokens",
}


def _left_alone(name: str, dialect: str) -> dict[str, object]:
    """What a request says that must go out as it came."""
    cases: dict[str, dict[str, object]] = {
        "no-tools": {"tools": []},
        "a-tool-of-our-name": {"tools": tools(dialect, "read_file", "search_history")},
        "a-forced-tool": {"tool_choice": _FORCED[dialect]},
        "no-tool-wanted": {"tool_choice": _NONE[dialect]},
        "a-structured-reply": _STRUCTURED[dialect],
        "a-probe": {_LIMIT[dialect]: 1},
    }
    return cases[name]


@pytest.mark.row("C9")
@pytest.mark.parametrize(
    "name",
    [
        "no-tools",
        "a-tool-of-our-name",
        "a-forced-tool",
        "no-tool-wanted",
        "a-structured-reply",
        "a-probe",
    ],
)
@pytest.mark.rest_slow
def test_what_leaves_no_room_for_our_tools_goes_out_byte_for_byte(pair, dialect, stream, name):
    world = pair([Say("Yes.")])
    body = Talk(
        world.address,
        dialect,
        stream,
        _left_alone(name, dialect),
        history=[{"role": "user", "content": "Well?"}],
    ).body

    answer = post(world.address, dialect, body)

    assert world.upstream.requests[0].body == body
    assert answer.header("x-hotset-degraded") is None


def test_tools_left_out_altogether_are_not_added(pair, dialect, stream):
    world = pair([Say("Yes.")])
    body = question(dialect, "hello", stream=stream)

    post(world.address, dialect, body)

    assert world.upstream.requests[0].body == body


def test_a_conversation_that_the_provider_holds_goes_out_byte_for_byte(pair, stream):
    world = pair([Say("One."), Say("Two.")])
    first = post(
        world.address, "openai-responses", question("openai-responses", "one", stream=False)
    )
    body = question(
        "openai-responses",
        "two",
        stream=stream,
        previous_response_id=first.json()["id"],
        tools=tools("openai-responses", "read_file"),
    )

    post(world.address, "openai-responses", body)

    assert world.upstream.requests[1].body == body


def test_counting_tokens_goes_out_byte_for_byte(pair):
    world = pair()
    body = question("anthropic", "count", tools=tools("anthropic", "read_file"))

    answer = call(
        world.address,
        "POST",
        f"/{world.address.token}/v1/messages/count_tokens",
        body,
        {"content-type": "application/json"},
    )

    assert answer.json()["input_tokens"] > 0
    assert world.upstream.requests[0].body == body


@pytest.mark.row("C9")
@pytest.mark.parametrize("switch", ["header", "off", "inject"])
def test_switched_off_every_byte_goes_through_again(pair, dialect, stream, switch):
    settings = {"off": {"off": True}, "inject": {"inject": False}}.get(switch, {})
    world = pair([looking("a.py"), looking("b.py"), Say("Read.")], strict=True, **settings)
    talk = Talk(
        world.address,
        dialect,
        stream,
        headers={"x-hotset-window": "off"} if switch == "header" else {},
    )

    talk.say("Read both.")
    talk.results(code())
    talk.results(code())

    assert [request.body for request in world.upstream.requests] == talk.sent
    assert [request.header("x-hotset-window") for request in world.upstream.requests] == [""] * 3


@pytest.mark.parametrize("inject", [False, True])
def test_a_client_that_has_our_tools_over_mcp_has_the_window_and_no_second_copy_of_them(
    pair, dialect, stream, inject
):
    retrieve = next(spec for spec in SPECS if spec.name == "retrieve_context")
    [brought] = tools(dialect, "mcp__hotset__retrieve_context")
    brought.get("function", brought)["description"] = retrieve.description
    own = [*tools(dialect, "read_file"), brought]
    world = pair([looking("a.py"), Say("Read.")], strict=True, inject=inject)
    talk = Talk(world.address, dialect, stream, extra={"tools": own})

    talk.say("Read it.")
    talk.results(code())

    first, second = world.upstream.requests
    assert first.body == talk.sent[0]
    assert [tool.name for tool in asked(second).tools] == [
        "read_file",
        "mcp__hotset__retrieve_context",
    ]
    assert content_id(code().encode()) in second.body.decode()
    assert len(second.body) < len(talk.sent[1]) / 2


@pytest.mark.row("C9")
def test_one_session_switched_off_leaves_the_others_on(pair, dialect):
    world = pair(lambda request: Say("Yes."))
    off = Talk(world.address, dialect, headers={"x-hotset-window": "off"})
    on = Talk(world.address, dialect)

    off.say("as it is")
    on.say("with a window")

    assert [request.body for request in world.upstream.requests[:1]] == off.sent
    assert len(asked(world.upstream.requests[1]).tools) == 1 + len(OURS)


class _Slow(RamStore):
    """A store whose tables come when they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def table(self, chains, as_of=None):
        self.free.wait()
        return super().table(chains, as_of)


@pytest.mark.row("C9")
@pytest.mark.parametrize("switch", ["header", "off"])
@pytest.mark.rest_slow
def test_switched_off_a_request_goes_out_before_it_is_counted_and_is_counted_all_the_same(
    pair, dialect, stream, switch
):
    store = _Slow()
    settings = {"off": True} if switch == "off" else {}
    world = pair(lambda _: Say("Yes."), open_store=lambda: store, **settings)
    talk = Talk(
        world.address,
        dialect,
        stream,
        headers={"x-hotset-window": "off"} if switch == "header" else {},
    )

    asking = threading.Thread(target=talk.say, args=["as it is " * 3000])
    asking.start()
    wait_until(lambda: world.upstream.requests)
    store.free.set()
    asking.join()
    talk.say("and again")
    world.settle()

    assert [request.body for request in world.upstream.requests] == talk.sent
    first, second = store.bills()
    assert first.sent == replace(first.whole, output=first.sent.output)
    assert first.sent.cache_read == 0
    # Anthropic caches what is marked, and this client marks nothing.
    assert (second.sent.cache_read > 3000) is (dialect != "anthropic")
    assert second.sent == replace(second.whole, output=second.sent.output), (
        "what is sent as it came saves nothing"
    )


@pytest.mark.parametrize("coding", ["zstd", "gzip"])
@pytest.mark.rest_slow
def test_a_compressed_request_is_planned_and_goes_out_plain(pair, dialect, stream, coding):
    world = pair([Say("Read.")], strict=True)
    talk = Talk(world.address, dialect, stream)
    talk.history = with_a_result(dialect, code())
    packed = zstd.compress(talk.body) if coding == "zstd" else gzip.compress(talk.body)

    answer = post(world.address, dialect, packed, {"content-encoding": coding})

    [request] = world.upstream.requests
    assert answer.status == 200
    assert request.header("content-encoding") == ""
    assert [tool.name for tool in asked(request).tools] == ["read_file", *OURS]
    assert len(request.body) < len(code())


@pytest.mark.rest_slow
def test_an_upstream_that_compresses_though_asked_not_to_is_read_all_the_same(
    pair, dialect, stream
):
    script = [
        Say("Let me look.", calls=looking("a.py").calls, fault=Gzipped()),
        Say(calls=(Call("search_history", {"query": "function"}),), fault=Gzipped()),
        Say("Found.", fault=Gzipped()),
    ]
    world = pair(script, strict=True)
    talk = Talk(world.address, dialect, stream)

    talk.say("Look.")
    talk.results(code())

    assert talk.text == "Found."
    assert talk.answer.header("content-encoding") is None
    assert [request.header("accept-encoding") for request in world.upstream.requests] == [
        "identity"
    ] * 3
    assert not any(ours in talk.wrote for ours in OURS)
