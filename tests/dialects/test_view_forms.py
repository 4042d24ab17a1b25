"""What providers and their libraries make of the one reply: odd forms of streams, and the official
clients reading it."""

from __future__ import annotations

import json
from dataclasses import replace

import anthropic
import httpx2
import openai
import pytest

from hotset.dialects import DIALECTS, sse
from hotset.nouns.link import link
from hotset.nouns.message import DialectName
from hotset.nouns.page import ROOT, Kind
from hotset.testing.upstream import Call, Say
from tests.dialects.rounds import OURS, reply, told

CHAT, RESPONSES, ANTHROPIC = (
    DialectName.OPENAI_CHAT,
    DialectName.OPENAI_RESPONSES,
    DialectName.ANTHROPIC,
)
BOTH_WAYS = pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])

OWN = Call("retrieve_context", {"id": "p1"})
RUN = Call("Bash", {"command": "ls"})
TURN = (
    Say(text="Let me look. ", thinking="Where was it?", calls=(OWN, OWN)),
    Say(thinking="Not there.", calls=(Call("search_history", {"query": "x"}),)),
    Say(text="Found it.", thinking="There.", calls=(RUN, OWN, Call("read_file", {"path": "a"}))),
)


def _turn(name, says=TURN, *, streamed, **body):
    return told(
        name,
        [reply(name, say, at, streamed=streamed, **body) for at, say in enumerate(says)],
        streamed=streamed,
    )


def _sse(*events):
    return b"".join(
        b"data: %s\n\n" % (event if isinstance(event, bytes) else json.dumps(event).encode())
        for event in events
    )


def _read(name, client):
    return DIALECTS[name].read(client, streamed=True)


def _wire(client, *, streamed):
    kind = "text/event-stream" if streamed else "application/json"
    return httpx2.Client(
        transport=httpx2.MockTransport(
            lambda _: httpx2.Response(200, content=client, headers={"content-type": kind})
        )
    )


# The official clients.


@BOTH_WAYS
def test_the_anthropic_library_reads_one_message(streamed):
    asked = {"model": "any", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
    with _wire(_turn(ANTHROPIC, streamed=streamed).client, streamed=streamed) as http:
        client = anthropic.Anthropic(api_key="k", http_client=http)
        if streamed:
            with client.messages.stream(**asked) as stream:
                message = stream.get_final_message()
        else:
            message = client.messages.create(**asked)
    assert [block.type for block in message.content] == [
        "thinking",
        "text",
        "thinking",
        "thinking",
        "text",
        "tool_use",
        "tool_use",
    ]
    assert [block.name for block in message.content if block.type == "tool_use"] == [
        "Bash",
        "read_file",
    ]
    assert (
        message.stop_reason,
        message.usage.input_tokens,
        message.usage.cache_read_input_tokens,
    ) == ("tool_use", 12, 100)
    assert message.usage.cache_creation_input_tokens == 7
    if not streamed:  # in a stream this library carries on only what it knows itself
        assert message.usage.hotset == {
            **message.usage.hotset,
            "calls": 3,
            "input_tokens": 33,
            "cache_read_input_tokens": 300,
        }


@BOTH_WAYS
def test_the_openai_library_reads_one_completion(streamed):
    asked = {"model": "any", "messages": [{"role": "user", "content": "go"}]}
    with _wire(_turn(CHAT, streamed=streamed).client, streamed=streamed) as http:
        client = openai.OpenAI(api_key="k", http_client=http)
        if streamed:
            with client.chat.completions.stream(**asked) as stream:
                completion = stream.get_final_completion()
        else:
            completion = client.chat.completions.create(**asked)
    choice = completion.choices[0]
    assert (choice.message.role, choice.message.content, choice.finish_reason) == (
        "assistant",
        "Let me look. \n\nFound it.",
        "tool_calls",
    )
    assert [call.function.name for call in choice.message.tool_calls] == ["Bash", "read_file"]
    assert completion.usage.prompt_tokens == 119
    assert completion.usage.prompt_tokens_details.cached_tokens == 100
    billed = completion.usage.hotset
    assert (
        billed["calls"],
        billed["prompt_tokens"],
        billed["prompt_tokens_details"]["cached_tokens"],
    ) == (
        3,
        117 + 118 + 119,
        300,
    )


@BOTH_WAYS
def test_the_openai_library_reads_one_response(streamed):
    turn = _turn(RESPONSES, streamed=streamed)
    with _wire(turn.client, streamed=streamed) as http:
        client = openai.OpenAI(api_key="k", http_client=http)
        if streamed:
            with client.responses.stream(model="any", input="go") as stream:
                response = stream.get_final_response()
        else:
            response = client.responses.create(model="any", input="go")
    kinds = [
        "reasoning",
        "message",
        "reasoning",
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert [item.type for item in response.output] == kinds
    assert [item.name for item in response.output if item.type == "function_call"] == [
        "Bash",
        "read_file",
    ]
    assert (response.status, response.usage.input_tokens) == ("completed", 119)
    billed = response.usage.hotset
    assert (billed["calls"], billed["input_tokens"]) == (3, 117 + 118 + 119)
    assert response.id == turn.rounds[0 if streamed else -1].id


# Anthropic.


def test_thinking_is_sent_back_with_its_signature_and_empty_texts_are_not():
    start = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    thought = {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "thinking", "thinking": "", "signature": ""},
    }
    deltas = [
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "thinking_delta", "thinking": "hm"},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "signature_delta", "signature": "c2ln"},
        },
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "redacted_thinking", "data": "ZW5j"},
        },
        {
            "type": "content_block_start",
            "index": 3,
            "content_block": {
                "type": "tool_use",
                "id": "t",
                "name": "retrieve_context",
                "input": {},
            },
        },
    ]
    turn = told(ANTHROPIC, [_sse(start, thought, *deltas)], streamed=True)
    blocks = json.loads(turn.rounds[0].raws[0])["content"]
    assert [block["type"] for block in blocks] == ["thinking", "redacted_thinking", "tool_use"]
    assert blocks[0]["signature"] == "c2ln"


def _two_rounds(first, second, delta):
    """A turn whose rounds begin with these counts and end with those."""

    def round_of(block, stop, start):
        return _sse(
            {"type": "message_start", "message": {"id": "m", "usage": start}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop}} | delta,
            {"type": "message_stop"},
        )

    own = round_of(
        {"type": "tool_use", "id": "t", "name": "retrieve_context", "input": {}}, "tool_use", first
    )
    client = told(
        ANTHROPIC,
        [own, round_of({"type": "text", "text": "so"}, "end_turn", second)],
        streamed=True,
    ).client
    *_, ending, _ = [json.loads(event.data) for event in sse.events(client)]
    return ending.get("usage")


def test_the_last_event_of_a_turn_tells_the_last_prompt_also_where_the_provider_only_counts_output_there():  # noqa: E501
    first = {
        "input_tokens": 5,
        "cache_read_input_tokens": 2,
        "cache_creation_input_tokens": 9,
        "cache_creation": {"5m": 9},
    }
    second = {"input_tokens": 6, "cache_read_input_tokens": 11, "cache_creation": {"5m": 0}}
    usage = _two_rounds(first, second, {"usage": {"output_tokens": 3}})
    billed = usage.pop("hotset")
    assert usage == second | {"output_tokens": 3, "cache_creation_input_tokens": 0}
    assert (billed["calls"], billed["input_tokens"], billed["output_tokens"]) == (2, 11, 6)
    assert (billed["cache_read_input_tokens"], billed["cache_creation_input_tokens"]) == (13, 9)


def test_a_turn_that_nobody_counted_is_not_counted_by_us():
    assert _two_rounds({}, {}, {}) is None


@BOTH_WAYS
def test_a_message_that_ended_with_thinking_about_our_call_ends_before_it(streamed):
    says = (
        TURN[0],
        Say(text="Well.", thinking="One more.", calls=(OWN,)),
        Say(thinking="And again.", calls=(OWN,)),
    )
    turn = _turn(ANTHROPIC, says, streamed=streamed)
    links = list(link(ROOT, DIALECTS[ANTHROPIC].read(turn.client, streamed=streamed).messages))
    (row,) = turn.view.hidden(turn.answers, links)
    assert row.before == (*turn.rounds[0].raws, *turn.answers[0])
    assert [block["type"] for block in json.loads(row.instead)["content"]] == ["thinking", "text"]


@BOTH_WAYS
def test_answers_beside_the_clients_calls_are_blocks_that_join_the_clients_own(streamed):
    turn = _turn(ANTHROPIC, streamed=streamed)
    links = list(link(ROOT, DIALECTS[ANTHROPIC].read(turn.client, streamed=streamed).messages))
    (row,) = turn.view.hidden(turn.answers, links)
    assert row.chain == links[0].chain
    assert row.before == (
        *turn.rounds[0].raws,
        *turn.answers[0],
        *turn.rounds[1].raws,
        *turn.answers[1],
    )
    assert row.instead == turn.rounds[2].raws[0]
    assert [json.loads(block)["type"] for block in row.after] == ["tool_result"]


def test_no_two_blocks_get_the_same_place_in_whatever_order_they_come():
    def block(index, text):
        named = (
            {"type": "text", "text": text}
            if text
            else {"type": "tool_use", "id": "t", "name": "retrieve_context", "input": {}}
        )
        return {"type": "content_block_start", "index": index, "content_block": named}

    turn = told(ANTHROPIC, [_sse(block(1, "b"), block(0, ""), block(2, "c"))], streamed=True)
    assert [part.content for part in _read(ANTHROPIC, turn.client).messages[0].parts] == [
        b"b",
        b"c",
    ]
    assert [json.loads(event.data)["index"] for event in sse.events(turn.client)] == [1, 2]


# Chat Completions.


def _chunk(delta, finish=None, **more):
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def _call(index, id=None, name=None, arguments=""):
    head = {"id": id, "type": "function"} if id else {}
    return {
        "index": index,
        **head,
        "function": {"arguments": arguments} | ({"name": name} if name else {}),
    }


END = (_chunk({}, "tool_calls"), b"[DONE]")


@pytest.mark.parametrize(
    "deltas",
    [
        [
            [_call(0, "a", "retrieve_context"), _call(1, "b", "Bash")],
            [_call(1, arguments="{}")],
            [_call(0, arguments="{}")],
        ],
        [[_call(0, "a", "retrieve_context", "{}")], [_call(0, "b", "Bash", "{}")]],
        [
            [_call(0, "a")],
            [_call(1, "b")],
            [_call(1, name="Bash", arguments="{}")],
            [_call(0, name="retrieve_context")],
        ],
        [
            [{"id": "a", "function": {"name": "retrieve_context"}}],
            [{"id": "b", "function": {"name": "Bash", "arguments": "{}"}}],
        ],
    ],
    ids=["interleaved", "all numbered 0", "named late", "not numbered"],
)
def test_calls_are_told_apart_however_a_provider_streams_them(deltas):
    body = _sse(*(_chunk({"tool_calls": calls}) for calls in deltas), *END)
    turn = told(CHAT, [body], streamed=True)
    assert [call.id for call in turn.rounds[0].calls] == ["a"]
    assert turn.rounds[0].foreign
    (message,) = _read(CHAT, turn.client).messages
    assert [(part.tool, part.call, part.content) for part in message.parts] == [
        ("Bash", "b", b"{}")
    ]
    shown = [
        call
        for event in sse.events(turn.client)
        if event.data != b"[DONE]"
        for call in _calls_of(event)
    ]
    assert {call.get("index", 0) for call in shown} == {0}


def _calls_of(event):
    return json.loads(event.data)["choices"][0]["delta"].get("tool_calls", [])


def test_what_comes_with_a_call_of_ours_is_shown():
    body = _sse(
        _chunk(
            {
                "role": "assistant",
                "content": "so",
                "tool_calls": [_call(0, "a", "retrieve_context")],
            }
        ),
        *END,
    )
    turn = told(
        CHAT,
        [body, _sse(_chunk({"role": "assistant", "content": "and"}, "stop"), b"[DONE]")],
        streamed=True,
    )
    events = [
        json.loads(event.data) for event in sse.events(turn.client) if event.data != b"[DONE]"
    ]
    assert [event["choices"][0]["delta"] for event in events] == [
        {"role": "assistant", "content": "so"},
        {"content": "\n\nand"},
    ]


@pytest.mark.parametrize("first", ["", None, "held"])
def test_a_text_is_set_apart_from_an_earlier_one_only_where_the_client_saw_that(first):
    ask = {
        "role": "assistant",
        "content": None,
        "tool_calls": [_call(0, "a", "retrieve_context", "{}")],
    }
    if first == "held":  # with the chunk that ends the round, which is no end of the turn
        opening = _sse(_chunk(ask), _chunk({"content": "so"}, "tool_calls"), b"[DONE]")
    else:
        opening = _sse(_chunk(ask | {"content": first}), *END)
    pieces = [
        _chunk({"role": "assistant", "content": ""}),
        _chunk({"content": "a"}),
        _chunk({"content": "nd"}, "stop"),
        b"[DONE]",
    ]
    client = told(CHAT, [opening, _sse(*pieces)], streamed=True).client
    (message,) = _read(CHAT, client).messages
    assert json.loads(message.raw)["content"] == "and"


def test_texts_of_rounds_that_are_no_strings_stay_blocks():
    def document(content, **more):
        message = {"role": "assistant", "content": content, **more}
        stop = "tool_calls" if more else "stop"
        return json.dumps(
            {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": stop}]}
        ).encode()

    called = {
        "id": "a",
        "type": "function",
        "function": {"name": "retrieve_context", "arguments": "{}"},
    }
    bodies = [document("so", tool_calls=[called]), document([{"type": "text", "text": "and"}])]
    message = json.loads(told(CHAT, bodies, streamed=False).client)["choices"][0]["message"]
    assert [block["text"] for block in message["content"]] == ["so", "and"]


def test_a_provider_that_calls_every_chunk_the_last_is_relayed_as_it_speaks():
    chunks = [_chunk({"content": text}, "stop") for text in "abc"]
    view = DIALECTS[CHAT].view(OURS, streamed=True)
    shown = [view.take(_sse(chunk)) for chunk in chunks]
    assert shown == [b"", _sse(chunks[0]), _sse(chunks[1])]
    assert view.take(_sse(b"[DONE]")) + view.close() == _sse(chunks[2], b"[DONE]")


def test_a_reply_of_several_choices_is_shown_as_it_came():
    two = [
        {"index": at, "delta": {"tool_calls": [_call(0, "a", "retrieve_context", "{}")]}}
        for at in (0, 1)
    ]
    stops = [{"index": at, "delta": {}, "finish_reason": "tool_calls"} for at in (0, 1)]
    body = _sse({"id": "c", "choices": two}, {"id": "c", "choices": stops}, b"[DONE]")
    turn = told(CHAT, [body], streamed=True)
    assert turn.client == body
    assert (turn.rounds[0].calls, turn.rounds[0].foreign) == ((), True)
    said = [choice | {"message": {"role": "assistant", **choice["delta"]}} for choice in two]
    whole = json.dumps(
        {"id": "c", "choices": [each | {"finish_reason": "tool_calls"} for each in said]}
    ).encode()
    assert told(CHAT, [whole], streamed=False).client == whole


def test_a_completion_that_is_not_counted_stays_uncounted():
    client = _turn(CHAT, streamed=True, stream_options={}).client
    assert b"usage" not in client
    assert _read(CHAT, client).complete


# Responses.


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ({"store": False, "include": []}, ["function_call"]),
        ({"store": True, "include": []}, ["reasoning", "function_call"]),
        ({"store": False}, ["reasoning", "function_call"]),
    ],
    ids=["neither stored nor sealed", "stored", "sealed"],
)
@BOTH_WAYS
def test_reasoning_that_the_provider_would_not_find_again_is_not_sent_back(streamed, body, kinds):
    turn = _turn(RESPONSES, [Say(thinking="hm", calls=(OWN,))], streamed=streamed, **body)
    assert [json.loads(raw)["type"] for raw in turn.rounds[0].raws] == kinds
    seen = DIALECTS[RESPONSES].read(turn.client, streamed=streamed).messages
    assert [part.kind for message in seen for part in message.parts] == [Kind.THINKING]


@BOTH_WAYS
def test_our_calls_stand_before_the_clients_call_and_behind_the_reasoning_that_led_to_both(
    streamed,
):
    turn = _turn(RESPONSES, [Say(thinking="hm", calls=(RUN, OWN))], streamed=streamed)
    links = list(link(ROOT, DIALECTS[RESPONSES].read(turn.client, streamed=streamed).messages))
    (row,) = turn.view.hidden(turn.answers, links)
    assert (row.chain, row.asides) == (links[-1].chain, 0)
    assert [json.loads(raw)["type"] for raw in row.before] == [
        "function_call",
        "function_call_output",
    ]


@BOTH_WAYS
def test_the_reasoning_that_led_to_an_item_stays_with_it(streamed):
    turn = _turn(
        RESPONSES,
        [replace(TURN[0], calls=(OWN,)), Say(text="Found.", thinking="There.")],
        streamed=streamed,
    )
    links = list(link(ROOT, DIALECTS[RESPONSES].read(turn.client, streamed=streamed).messages))
    (row,) = turn.view.hidden(turn.answers, links)
    assert (row.chain, row.asides) == (links[-1].chain, 1)


def test_rounds_whose_reasoning_cannot_be_told_apart_are_kept_together():
    """A row for one would stand before the other as well."""
    same = Say(thinking="hm", calls=(OWN,))
    turn = _turn(RESPONSES, [same, same, same, Say(text="Found.")], streamed=True)
    (row,) = turn.view.hidden(
        turn.answers, list(link(ROOT, _read(RESPONSES, turn.client).messages))
    )
    assert len(row.before) == 6


def test_a_provider_that_does_not_repeat_its_items_at_the_end_does_not_here():
    bodies = [reply(RESPONSES, say, at, streamed=True) for at, say in enumerate(TURN)]
    bare = [b"\n\n".join(_emptied(event) for event in body.split(b"\n\n")) for body in bodies]
    client = told(RESPONSES, bare, streamed=True).client
    assert json.loads(list(sse.events(client))[-1].data)["response"]["output"] == []
    assert len(_read(RESPONSES, client).messages) == 7


def _emptied(event):
    if not event.startswith(b"event: response.completed"):
        return event
    head, _, data = event.partition(b"data: ")
    tree = json.loads(data)
    tree["response"]["output"] = []
    return head + b"data: " + json.dumps(tree).encode()


def test_a_later_round_that_fails_fails_under_the_name_that_the_client_knows():
    failed = {
        "type": "response.failed",
        "sequence_number": 9,
        "response": {"id": "resp_2", "error": {"code": "x"}, "output": []},
    }
    first = reply(RESPONSES, TURN[0], 0, streamed=True)
    turn = told(RESPONSES, [first, _sse(failed)], streamed=True)
    seen = _read(RESPONSES, turn.client)
    assert (seen.error, seen.complete, seen.response_id) == ("x", False, turn.rounds[0].id)
    numbers = [json.loads(event.data)["sequence_number"] for event in sse.events(turn.client)]
    assert numbers == list(range(len(numbers)))


def test_what_the_provider_runs_itself_is_no_call_for_the_client():
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    shell = {"type": "shell_call", "call_id": "s", "action": {}}
    ran = {"type": "shell_call_output", "call_id": "s", "output": []}
    own = {"type": "function_call", "call_id": "c", "name": "retrieve_context", "arguments": "{}"}
    for output, foreign in (
        ([search, own], False),
        ([shell, ran, own], False),
        ([shell, own], True),
    ):
        body = json.dumps({"id": "r", "status": "completed", "output": output}).encode()
        assert told(RESPONSES, [body], streamed=False).rounds[0].foreign is foreign
