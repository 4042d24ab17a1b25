"""A reply is read as far as it came: never more, and never with an error of ours."""

from __future__ import annotations

import json
from random import Random

import pytest

from hotset.dialects import DIALECTS
from hotset.dialects.port import Mark
from hotset.dialects.sse import events
from hotset.nouns.message import DialectName, Usage
from hotset.nouns.page import Kind
from tests.dialects.conversations import nonsense
from tests.dialects.recordings import REPLIES, WIRE, recording

CHAT, RESPONSES, ANTHROPIC = (
    DIALECTS[DialectName.OPENAI_CHAT],
    DIALECTS[DialectName.OPENAI_RESPONSES],
    DIALECTS[DialectName.ANTHROPIC],
)
EVERY_REPLY = [
    (DialectName(path.parent.name), path.name)
    for path in sorted(WIRE.glob("*/*.*"))
    if ".request." not in path.name
]


def _read(dialect, file):
    return dialect.read(recording(dialect.name, file), streamed=file.endswith(".sse"))


def _sse(*events):
    return b"".join(
        b"data: %s\n\n" % (event if isinstance(event, bytes) else json.dumps(event).encode())
        for event in events
    )


def _tells(dialect, body):
    """Of each event, whether it tells how the reply ended."""
    return [
        bool(dialect.mark(event.name, event.data) & (Mark.STOP | Mark.LAST))
        for event in events(body)
    ]


def _texts(reply):
    return [[part.content.decode() for part in message.parts] for message in reply.messages]


@pytest.mark.parametrize(
    ("dialect", "file", "usage", "stop", "id"),
    [
        (ANTHROPIC, "text.reply.json", Usage(12, 10400, 2051, 77), "tool_use", "msg_01Aq"),
        (ANTHROPIC, "tools.reply.sse", Usage(4, 20000, 600, 148), "tool_use", "msg_014p"),
        (ANTHROPIC, "server_tool.reply.sse", Usage(2100, 0, 0, 31), "end_turn", "msg_0srv"),
        (CHAT, "text.reply.json", Usage(176, 1024, 0, 9), "stop", "chatcmpl-1"),
        (CHAT, "tools.reply.sse", Usage(52, 2048, 900, 50), "tool_calls", "chatcmpl-9x"),
        (CHAT, "text.reply.sse", Usage(), "stop", "chatcmpl-9x"),
        (RESPONSES, "whole.reply.json", Usage(904, 4096, 0, 80), "completed", "resp_0a1"),
        (
            RESPONSES,
            "cut_short.reply.json",
            Usage(904, 4096, 0, 80),
            "max_output_tokens",
            "resp_0a1",
        ),
        (RESPONSES, "tools.reply.sse", Usage(904, 4096, 0, 80), "completed", "resp_0a1"),
    ],
)
def test_usage_stop_and_id_are_what_the_provider_said(dialect, file, usage, stop, id):
    reply = _read(dialect, file)
    assert (reply.usage, reply.stop, reply.response_id, reply.complete, reply.error) == (
        usage,
        stop,
        id,
        True,
        "",
    )
    assert reply.model


def test_a_streamed_anthropic_reply_is_put_together():
    reply = _read(ANTHROPIC, "tools.reply.sse")
    thinking, text, read, bare = reply.messages[0].parts
    assert (thinking.kind, thinking.content) == (Kind.THINKING, b"I read the file.")
    assert text.content.decode() == "Let me look \N{EN DASH} “ok” 😀.\n"
    assert (read.tool, read.call, read.content.decode()) == (
        "Read",
        "toolu_03",
        '{"limit": 1E2, "file_path": "/repo/é.py"}',
    )
    assert (bare.tool, bare.content) == ("ListAll", b"{}")
    assert json.loads(reply.messages[0].raw)["content"][0]["signature"] == "EqQBCgIYAg=="


def test_a_streamed_chat_reply_is_put_together():
    reply = _read(CHAT, "tools.reply.sse")
    thought, *calls = reply.messages[0].parts
    assert thought.content == b"hm"
    assert [(call.tool, call.call, call.content) for call in calls] == [
        ("bash", "call_s1", b'{"command": "cargo test"}'),
        ("read", "call_s2", b'{"p": 1.0}'),
    ]


def test_streamed_and_whole_replies_say_the_same():
    streamed, whole = _read(RESPONSES, "tools.reply.sse"), _read(RESPONSES, "whole.reply.json")
    said = [each.essence for each in whole.messages]
    assert [each.essence for each in streamed.messages] == said[:1] + said[2:]
    assert [each.aside for each in streamed.messages] == [True, False, False, False]


def test_the_first_of_several_choices_goes_on_and_the_others_are_kept_beside_it():
    reply = _read(CHAT, "two_choices.reply.json")
    assert _texts(reply) == [["A"], ["B"]]
    assert [message.aside for message in reply.messages] == [False, True]
    chunk = {
        "id": "x",
        "choices": [{"index": 1, "delta": {"content": "B"}, "finish_reason": "stop"}],
    }
    first = {
        "id": "x",
        "choices": [{"index": 0, "delta": {"content": "A"}, "finish_reason": "stop"}],
    }
    streamed = CHAT.read(_sse(chunk, first, b"[DONE]"), streamed=True)
    assert [(each.essence, each.aside) for each in streamed.messages] == [
        (each.essence, each.aside) for each in reply.messages
    ]
    assert not CHAT.read(
        _sse(chunk, {"choices": [{"index": 0, "delta": {"content": "A"}}]}, b"[DONE]"),
        streamed=True,
    ).complete


@pytest.mark.parametrize(
    ("dialect", "file", "error", "texts"),
    [
        (ANTHROPIC, "overloaded.error.sse", "overloaded_error", [["I beg"]]),
        (ANTHROPIC, "too_long.error.json", "invalid_request_error", []),
        (CHAT, "broke.error.sse", "upstream_reset", [["half"]]),
        (CHAT, "too_long.error.json", "context_length_exceeded", []),
        (RESPONSES, "failed.error.sse", "rate_limit_exceeded", [["half"]]),
        (RESPONSES, "error_event.error.sse", "server_error", []),
        (RESPONSES, "bad.error.json", "invalid_request_error", []),
    ],
)
def test_an_error_is_named_and_what_came_before_it_is_kept(dialect, file, error, texts):
    reply = _read(dialect, file)
    assert (reply.error, reply.complete, _texts(reply)) == (error, False, texts)
    if file.endswith(".sse"):
        assert _tells(dialect, recording(dialect.name, file))[-1]


def test_an_error_document_that_answers_a_streaming_request_is_read():
    assert (
        CHAT.read(recording(CHAT.name, "too_long.error.json"), streamed=True).error
        == "context_length_exceeded"
    )


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":"overloaded"}',
        b'{"error":{"code":529}}',
        b'{"error":{}}',
        b'{"error":{"status":"UNAVAILABLE"}}',
    ],
)
def test_an_error_in_any_form_is_an_error(body):
    for dialect in DIALECTS.values():
        assert dialect.read(body, streamed=False).error
        assert not dialect.read(body, streamed=False).complete


@pytest.mark.parametrize(
    ("name", "file"), [(name, file) for name, file in EVERY_REPLY if file.endswith(".sse")]
)
def test_a_stream_cut_at_any_byte_is_read_and_not_called_whole(name, file):
    body, dialect = recording(name, file), DIALECTS[name]
    whole = [cut for cut in range(len(body)) if dialect.read(body[:cut], streamed=True).complete]
    assert all(any(_tells(dialect, body[:cut])) for cut in whole)
    assert not [cut for cut in whole if body[cut:].strip(b"\r\n")]  # only line ends may be missing


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "file"), EVERY_REPLY)
def test_spoiled_replies_are_read_without_an_error(name, file, seed):
    body, rng = recording(name, file), Random(seed)
    for _ in range(30):
        spoiled = bytearray(body)
        for _ in range(rng.randint(1, 6)):
            start = rng.randrange(len(spoiled))
            what = rng.choice(
                [
                    b"",
                    b"\xff",
                    b"null",
                    b'"',
                    b"[]",
                    b"{}",
                    b"\\ud800",
                    b"-1",
                    b"1e999",
                    b"\n\n",
                    b"true",
                ]
            )
            spoiled[start : start + rng.randint(0, 12)] = what
        for streamed in (True, False):
            DIALECTS[name].read(bytes(spoiled), streamed=streamed)


@pytest.mark.parametrize("seed", range(10))
def test_no_stream_of_known_words_in_wrong_places_is_an_error(seed):
    rng = Random(seed)
    for _ in range(40):
        events = [nonsense(rng) for _ in range(4)]
        for dialect in DIALECTS.values():
            dialect.read(_sse(*events), streamed=True)
            for event in events:
                dialect.read(json.dumps(event).encode(), streamed=False)


def _block(index, type="text", **fields):
    return {
        "type": "content_block_start",
        "index": index,
        "content_block": {"type": type, **fields},
    }


def _delta(index, text):
    return {
        "type": "content_block_delta",
        "index": index,
        "delta": {"type": "text_delta", "text": text},
    }


@pytest.mark.parametrize(
    ("events", "texts"),
    [
        ([_block(1, text=""), _delta(1, "b"), _block(0, text=""), _delta(0, "a")], ["a", "b"]),
        ([_block(0, text=""), _delta(0, "a"), _block(0, text=""), _delta(0, "b")], ["a", "b"]),
        ([_delta(0, "a"), _delta(0, "b")], ["ab"]),
        ([_block(0, text="a"), _delta(7, "b"), _delta(0, "c")], ["ac", "b"]),
        (
            [
                {"type": "message_start"},
                {"type": "message_start", "message": None},
                _block(0, text=""),
                _delta(0, "a"),
            ],
            ["a"],
        ),
    ],
)
def test_anthropic_blocks_out_of_order_lose_nothing(events, texts):
    reply = ANTHROPIC.read(_sse(*events), streamed=True)
    assert _texts(reply) == [texts]
    assert not reply.complete


def test_half_of_a_tool_call_is_kept_as_the_text_that_came():
    half = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": '{"path": "/tm'},
    }
    reply = ANTHROPIC.read(
        _sse(_block(0, "tool_use", id="t", name="Read", input={}), half), streamed=True
    )
    assert json.loads(reply.messages[0].parts[0].content) == '{"path": "/tm'


def _call(arguments, index=None, id=None, name=None):
    given = {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}
    return {key: value for key, value in given.items() if value is not None}


@pytest.mark.parametrize(
    "deltas",
    [
        [_call("{}", 0, "a", "f"), _call("{}", 0, "b", "g")],
        [_call("{}", 1, "a", "f"), _call("{}", 0, "b", "g")],
        [_call("", 0, "a", "f"), _call("{}", 0, "a"), _call("{}", 1, "b", "g")],
        [_call("{", None, "a", "f"), _call("}"), _call("{}", None, "b", "g")],
    ],
)
def test_chat_calls_are_told_apart_however_a_provider_numbers_them(deltas):
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [delta]}}]} for delta in deltas]
    reply = CHAT.read(_sse(*chunks), streamed=True)
    assert [(part.call, part.tool, part.content) for part in reply.messages[0].parts] == [
        ("a", "f", b"{}"),
        ("b", "g", b"{}"),
    ]


@pytest.mark.parametrize(
    ("dialect", "ends", "goes_on"),
    [
        (
            ANTHROPIC,
            b'event: message_stop\ndata: {"type": "message_stop"}\n\n',
            b'data: {"text":"event: message_stop \\"message_stop\\""}\n\n',
        ),
        (
            CHAT,
            b"data: [DONE]\n\n",
            b'data: {"choices":[{"delta":{"content":"data: [DONE]"}}]}\n\n',
        ),
        (
            RESPONSES,
            b'event: response.completed\ndata: {"type":"response.completed"}\n\n',
            b'data: {"delta":"\\"response.completed\\""}\n\n',
        ),
    ],
)
def test_the_mark_that_ends_a_reply_is_seen_only_where_it_is_one(dialect, ends, goes_on):
    assert _tells(dialect, ends) == [True]
    assert _tells(dialect, goes_on) == [False]


@pytest.mark.parametrize(
    ("name", "file"), [(name, file) for name, file in REPLIES if file.endswith(".sse")]
)
def test_a_recorded_reply_says_nothing_more_behind_the_event_that_tells_how_it_ended(name, file):
    marks = [DIALECTS[name].mark(event.name, event.data) for event in events(recording(name, file))]
    told = next(index for index, mark in enumerate(marks) if mark & (Mark.STOP | Mark.LAST))
    assert Mark.LAST in marks[-1]
    assert not any(Mark.LAST in mark for mark in marks[:-1])
    assert not any(Mark.MORE in mark for mark in marks[told + 1 :])


@pytest.mark.parametrize(
    ("dialect", "event", "mark"),
    [
        (ANTHROPIC, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, Mark.STOP),
        (ANTHROPIC, {"type": "message_delta", "delta": {"stop_reason": None}}, Mark.NONE),
        (
            ANTHROPIC,
            {
                "type": "content_block_delta",
                "delta": {"type": "text_delta", "text": "message_stop"},
            },
            Mark.MORE,
        ),
        (ANTHROPIC, {"type": "ping"}, Mark.NONE),
        (CHAT, {"choices": [{"delta": {}, "finish_reason": "stop"}]}, Mark.STOP),
        (
            CHAT,
            {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]},
            Mark.STOP | Mark.MORE,
        ),
        (CHAT, {"choices": [{"delta": {"content": "a"}, "finish_reason": None}]}, Mark.MORE),
        (
            CHAT,
            {"choices": [{"delta": {"content": "a"}, "finish_reason": ""}], "error": None},
            Mark.MORE,
        ),
        (CHAT, {"choices": [], "usage": {"prompt_tokens": 1}}, Mark.NONE),
        (CHAT, {"error": {"message": "gone"}}, Mark.STOP),
        (RESPONSES, {"type": "response.incomplete", "response": {}}, Mark.LAST),
        (RESPONSES, {"type": "response.output_text.delta", "delta": "error"}, Mark.NONE),
        (RESPONSES, {"type": "error", "message": "gone"}, Mark.LAST),
    ],
)
def test_an_event_tells_how_the_reply_ended_or_that_it_goes_on(dialect, event, mark):
    assert dialect.mark("", json.dumps(event).encode()) == mark


def test_half_a_surrogate_pair_costs_one_character_and_not_the_event():
    reply = ANTHROPIC.read(
        b"data: "
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta",'
        b'"text":"a\\ud83d"}}\n\n'
        b"data: "
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta",'
        b'"text":"b\xff"}}\n\n',
        streamed=True,
    )
    assert _texts(reply) == [["a\ufffdb\ufffd"]]


def test_text_that_looks_like_an_escape_is_left_alone():
    body = recording(ANTHROPIC.name, "text.reply.json").replace(b"Fixed", b"\\\\ud800")
    assert "\\ud800" in _texts(ANTHROPIC.read(body, streamed=False))[0][0]
