"""A reply that a client sends back says the same, whatever its library did to it on the way.

The libraries are the real ones: they read the recorded reply from a transport, and write the next
request to it.
"""

from __future__ import annotations

import json

import anthropic
import httpx2
import openai
import pytest
from anthropic.types import Message
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from hotset.dialects import DIALECTS
from hotset.nouns.message import DialectName
from hotset.nouns.page import Role
from tests.dialects.recordings import REPLIES, recording

CHAT, RESPONSES, ANTHROPIC = (
    DIALECTS[DialectName.OPENAI_CHAT],
    DIALECTS[DialectName.OPENAI_RESPONSES],
    DIALECTS[DialectName.ANTHROPIC],
)


class _Wire:
    """Answers every request with a recorded reply, and keeps what was asked."""

    def __init__(self, reply: bytes, *, streamed: bool) -> None:
        self.asked: list[bytes] = []
        self._reply = reply
        self._type = "text/event-stream" if streamed else "application/json"

    def client(self) -> httpx2.Client:
        return httpx2.Client(transport=httpx2.MockTransport(self._answer))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request.read())
        return httpx2.Response(200, content=self._reply, headers={"content-type": self._type})


def _said(messages):
    """Identity of what the assistant said; reasoning stands aside."""
    return [each.essence for each in messages if each.role is Role.ASSISTANT and not each.aside]


def _replies_of(dialect):
    return [file for name, file in REPLIES if name == dialect.name]


def _dumps(model):
    """The ways in which programs turn a library's object into JSON again."""
    return [
        model.model_dump(mode="json"),
        model.model_dump(mode="json", exclude_none=True),
        model.model_dump(mode="json", exclude_unset=True),
        json.loads(model.model_dump_json(exclude_defaults=True))
        | ({"role": "assistant"} if hasattr(model, "role") else {}),
        model.to_dict(mode="json"),
    ]


@pytest.mark.row("C9")
@pytest.mark.parametrize("file", _replies_of(ANTHROPIC))
def test_what_the_anthropic_library_sends_back_is_what_the_reply_said(file):
    body = recording(ANTHROPIC.name, file)
    streamed = file.endswith(".sse")
    wire = _Wire(body, streamed=streamed)
    asked = {"model": "any", "max_tokens": 9}
    with wire.client() as http, anthropic.Anthropic(api_key="k", http_client=http) as client:
        if streamed:
            with client.messages.stream(
                messages=[{"role": "user", "content": "go"}], **asked
            ) as stream:
                message = stream.get_final_message()
        else:
            message = client.messages.create(messages=[{"role": "user", "content": "go"}], **asked)
        history = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": message.content},
        ]
        client.messages.with_raw_response.create(messages=history, **asked)
    said = _said(ANTHROPIC.read(body, streamed=streamed).messages)
    assert said
    assert _said(ANTHROPIC.parse(wire.asked[-1]).messages) == said


@pytest.mark.row("C9")
@pytest.mark.parametrize("file", _replies_of(CHAT))
def test_what_the_openai_library_sends_back_over_chat_is_what_the_reply_said(file):
    body = recording(CHAT.name, file)
    streamed = file.endswith(".sse")
    wire = _Wire(body, streamed=streamed)
    asked = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "go"}]}
    with wire.client() as http, openai.OpenAI(api_key="k", http_client=http) as client:
        if streamed:
            with client.chat.completions.stream(**asked) as stream:
                message = stream.get_final_completion().choices[0].message
        else:
            message = min(
                client.chat.completions.create(**asked).choices, key=lambda choice: choice.index
            ).message
        client.chat.completions.with_raw_response.create(
            model="gpt-4.1", messages=[*asked["messages"], message]
        )
    said = _said(CHAT.read(body, streamed=streamed).messages)
    assert said
    assert _said(CHAT.parse(wire.asked[-1]).messages) == said


@pytest.mark.row("C9")
@pytest.mark.parametrize("file", _replies_of(RESPONSES))
def test_what_the_openai_library_sends_back_over_responses_is_what_the_reply_said(file):
    body = recording(RESPONSES.name, file)
    streamed = file.endswith(".sse")
    wire = _Wire(body, streamed=streamed)
    asked = {"model": "gpt-5.2", "input": "go"}
    with wire.client() as http, openai.OpenAI(api_key="k", http_client=http) as client:
        if streamed:
            with client.responses.create(stream=True, **asked) as stream:
                output = [
                    event.item for event in stream if event.type == "response.output_item.done"
                ]
        else:
            output = client.responses.create(**asked).output
        client.responses.with_raw_response.create(
            model="gpt-5.2", input=[{"role": "user", "content": "go"}, *output]
        )
    said = _said(RESPONSES.read(body, streamed=streamed).messages)
    assert said
    assert _said(RESPONSES.parse(wire.asked[-1]).messages) == said


def test_every_way_to_dump_an_anthropic_message_says_the_same():
    body = recording(ANTHROPIC.name, "text.reply.json")
    said = _said(ANTHROPIC.read(body, streamed=False).messages)
    for dump in _dumps(Message.model_validate_json(body)):
        sent = json.dumps(
            {"messages": [{"role": "assistant", "content": dump["content"]}]}
        ).encode()
        assert _said(ANTHROPIC.parse(sent).messages) == said


@pytest.mark.parametrize("file", ["text.reply.json", "two_choices.reply.json"])
def test_every_way_to_dump_a_chat_message_says_the_same(file):
    body = recording(CHAT.name, file)
    said = _said(CHAT.read(body, streamed=False).messages)
    choices = sorted(
        ChatCompletion.model_validate_json(body).choices, key=lambda choice: choice.index
    )
    for dump in _dumps(choices[0].message):
        assert _said(CHAT.parse(json.dumps({"messages": [dump]}).encode()).messages) == said


def test_every_way_to_dump_a_response_says_the_same():
    body = recording(RESPONSES.name, "whole.reply.json")
    said = _said(RESPONSES.read(body, streamed=False).messages)
    for dump in _dumps(Response.model_validate_json(body))[:3]:
        without = [
            {key: value for key, value in item.items() if key not in ("id", "status")}
            for item in dump["output"]
        ]
        for output in (dump["output"], without):
            assert _said(RESPONSES.parse(json.dumps({"input": output}).encode()).messages) == said


def _chat(message):
    return CHAT.parse(json.dumps({"messages": [message]}).encode()).messages[0].essence


def _claude(content, role="assistant"):
    return (
        ANTHROPIC.parse(json.dumps({"messages": [{"role": role, "content": content}]}).encode())
        .messages[0]
        .essence
    )


def _item(item):
    return RESPONSES.parse(json.dumps({"input": [item]}).encode()).messages[0].essence


_CALL = {
    "id": "c",
    "type": "function",
    "function": {"name": "f", "arguments": '{"a": 1, "b": 2.50}'},
}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            _chat({"role": "assistant", "content": "a"}),
            _chat({"role": "assistant", "content": [{"type": "text", "text": " a\n"}]}),
        ),
        (
            _chat({"role": "assistant", "content": None, "tool_calls": [_CALL]}),
            _chat({"role": "assistant", "tool_calls": [_CALL]}),
        ),
        (
            _chat(
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [_CALL],
                    "refusal": None,
                    "annotations": [],
                }
            ),
            _chat(
                {
                    "tool_calls": [
                        {**_CALL, "function": {"arguments": '{"b":2.5,"a":1.0}', "name": "f"}}
                    ],
                    "role": "assistant",
                }
            ),
        ),
        (
            _chat({"role": "assistant", "content": "a", "reasoning_content": "hm"}),
            _chat({"role": "assistant", "content": "a"}),
        ),
        (
            _chat({"role": "user", "content": "a"}),
            _chat({"role": "user", "content": [{"type": "text", "text": "a"}]}),
        ),
        (
            _claude("a"),
            _claude(
                [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "text", "text": "a"},
                ]
            ),
        ),
        (_claude([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), _claude("ab")),
        (
            _claude("a", "user"),
            _claude(
                [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}], "user"
            ),
        ),
        (
            _claude([{"type": "tool_use", "id": "t", "name": "f", "input": {}}]),
            _claude(
                [
                    {
                        "type": "tool_use",
                        "id": "t",
                        "name": "f",
                        "input": {},
                        "cache_control": {"type": "ephemeral"},
                        "caller": None,
                    }
                ]
            ),
        ),
        (
            _claude([{"type": "odd", "x": [1, {"cache_control": {}}], "y": None}], "user"),
            _claude(
                [{"x": [1.0, {}], "type": "odd", "cache_control": {"type": "ephemeral"}}], "user"
            ),
        ),
        (
            _claude([{"type": "tool_result", "tool_use_id": "t", "content": "r"}], "user"),
            _claude(
                [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "content": [{"type": "text", "text": "r"}],
                        "is_error": False,
                    }
                ],
                "user",
            ),
        ),
        (
            _item({"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}),
            _item(
                {
                    "type": "function_call",
                    "call_id": "c",
                    "name": "f",
                    "arguments": "{}",
                    "id": "fc",
                    "status": "completed",
                }
            ),
        ),
        (
            _item({"role": "user", "content": "a"}),
            _item(
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "a"}],
                }
            ),
        ),
        (
            RESPONSES.parse(b'{"input":"a"}').messages[0].essence,
            _item({"role": "user", "content": "a"}),
        ),
    ],
)
def test_the_same_said_in_another_form_is_the_same(one, other):
    assert one == other


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_chat({"role": "assistant", "content": "a"}), _chat({"role": "user", "content": "a"})),
        (
            _chat({"role": "assistant", "content": "a"}),
            _chat({"role": "assistant", "content": "b"}),
        ),
        (_chat({"role": "user", "content": "a"}), _chat({"role": "user", "content": "a "})),
        (
            _chat({"role": "tool", "tool_call_id": "c", "content": "a"}),
            _chat({"role": "tool", "tool_call_id": "d", "content": "a"}),
        ),
        (
            _claude([{"type": "text", "text": "a"}]),
            _claude([{"type": "text", "text": "a"}, {"type": "odd"}]),
        ),
        (
            _claude([{"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]),
            _claude([{"type": "tool_use", "id": "t", "name": "f", "input": {"a": "1"}}]),
        ),
        (
            _claude([{"type": "tool_use", "id": "t", "name": "f", "input": {"a": None}}]),
            _claude([{"type": "tool_use", "id": "t", "name": "f", "input": {}}]),
        ),
        (
            _claude(
                [
                    {"type": "text", "text": "a"},
                    {"type": "tool_use", "id": "t", "name": "f", "input": {}},
                ]
            ),
            _claude(
                [
                    {"type": "tool_use", "id": "t", "name": "f", "input": {}},
                    {"type": "text", "text": "a"},
                ]
            ),
        ),
        (
            _item({"type": "item_reference", "id": "a"}),
            _item({"type": "item_reference", "id": "b"}),
        ),
        (
            _item({"type": "reasoning", "summary": [], "encrypted_content": "a"}),
            _item({"type": "reasoning", "summary": [], "encrypted_content": "b"}),
        ),
    ],
)
def test_what_differs_is_told_apart(one, other):
    assert one != other


def test_how_a_result_is_classified_does_not_change_what_it_says():
    """The name of the tool is known only where the call stands in the same request."""
    call = (
        b'{"type":"function_call","call_id":"c","name":"bash",'
        b'"arguments":"{\\"command\\":\\"pytest\\"}"},'
    )
    result = b'{"type":"function_call_output","call_id":"c","output":"1 passed"}'
    with_call = RESPONSES.parse(b'{"input":[' + call + result + b"]}").messages[1]
    alone = RESPONSES.parse(b'{"input":[' + result + b'],"previous_response_id":"r"}').messages[0]
    assert with_call.parts[0].kind != alone.parts[0].kind
    assert with_call.essence == alone.essence
