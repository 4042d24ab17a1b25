"""An agent in any dialect over plain HTTP: it keeps its own history, as clients do, and sends all
of it with every question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hotset.dialects import DIALECTS
from hotset.nouns.knobs import Knobs, Limit
from hotset.nouns.message import DialectName, Message, Part, Reply, Request
from hotset.nouns.page import Kind, Role
from hotset.surfaces.proxy.address import Address
from hotset.testing import Call, Say
from hotset.testing.upstream.script import Received
from tests.proxy.wire import Answer, post

MODELS = {
    DialectName.ANTHROPIC: "claude-sonnet-5",
    DialectName.OPENAI_CHAT: "gpt-5.4",
    DialectName.OPENAI_RESPONSES: "gpt-5.4",
}
OURS = ("retrieve_context", "search_history", "get_turn_range")
PREFIXES = {
    DialectName.ANTHROPIC: "toolu_",
    DialectName.OPENAI_CHAT: "call_",
    DialectName.OPENAI_RESPONSES: "call_",
}
"""What a provider writes before the id that a script gives to a call."""

SHORTENING = Knobs(limit=Limit(3000, 2000), limits={})
"""Whatever is best for real sessions: here, results of more than 3,000 characters are shortened, of
every kind."""

_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def tools(dialect: str, *names: str) -> list[dict[str, Any]]:
    if dialect == "anthropic":
        return [{"name": name, "input_schema": _SCHEMA} for name in names]
    if dialect == "openai-chat":
        return [
            {"type": "function", "function": {"name": name, "parameters": _SCHEMA}}
            for name in names
        ]
    return [
        {"type": "function", "name": name, "parameters": _SCHEMA, "strict": False} for name in names
    ]


@dataclass
class Talk:
    """One conversation."""

    address: Address
    dialect: str
    stream: bool = False
    extra: dict[str, Any] = field(default_factory=dict)
    """More fields of its requests."""
    headers: dict[str, str] = field(default_factory=dict)
    history: list[Any] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)
    """Every body so far."""
    answer: Answer | None = None
    """The latest."""
    reply: Reply = field(default_factory=Reply)
    has_tools: bool = True

    def say(self, text: str) -> Reply:
        return self.send({"role": "user", "content": text})

    def results(self, *texts: str) -> Reply:
        """Answers the calls of the latest reply, one text each."""
        given = list(zip(self.calls, texts, strict=True))
        if self.dialect == "anthropic":
            blocks = [
                {"type": "tool_result", "tool_use_id": call.call, "content": text}
                for call, text in given
            ]
            return self.send({"role": "user", "content": blocks})
        if self.dialect == "openai-chat":
            return self.send(
                *(
                    {"role": "tool", "tool_call_id": call.call, "content": text}
                    for call, text in given
                )
            )
        return self.send(
            *(
                {"type": "function_call_output", "call_id": call.call, "output": text}
                for call, text in given
            )
        )

    def send(self, *messages: dict[str, Any]) -> Reply:
        """Sends everything so far and these; a reply becomes a part of the history, as the client
        would write it down."""
        self.history += messages
        self.sent.append(self.body)
        self.answer = post(self.address, self.dialect, self.sent[-1], self.headers)
        self.reply = DIALECTS[DialectName(self.dialect)].read(
            self.answer.body, streamed=self.stream
        )
        if self.answer.status == 200:
            self.history += [json.loads(message.raw) for message in self.reply.messages]
        return self.reply

    @property
    def body(self) -> bytes:
        fields: dict[str, Any] = {"model": MODELS[DialectName(self.dialect)], "stream": self.stream}
        if self.has_tools:
            fields["tools"] = tools(self.dialect, "read_file")
        fields |= {"anthropic": {"max_tokens": 4000}, "openai-responses": {"store": False}}.get(
            self.dialect, {}
        )
        if self.dialect == "openai-responses":
            fields["include"] = ["reasoning.encrypted_content"]
        if self.dialect == "openai-chat" and self.stream:
            fields["stream_options"] = {"include_usage": True}
        said = "input" if self.dialect == "openai-responses" else "messages"
        return json.dumps(fields | self.extra | {said: self.history}).encode()

    @property
    def parts(self) -> list[Part]:
        """What the latest reply says."""
        return [part for message in self.reply.messages for part in message.parts]

    @property
    def text(self) -> str:
        return b"".join(part.content for part in self.parts if part.kind is Kind.RESPONSE).decode()

    @property
    def calls(self) -> list[Part]:
        return [part for part in self.parts if part.kind.family is Kind.TOOL_CALL]

    @property
    def wrote(self) -> str:
        """Everything that the client holds of the conversation."""
        return json.dumps(self.history)


def read(name: str = "a.py", id: str = "") -> Call:
    return Call("read_file", {"path": name}, id)


def retrieve(dialect: str, id: str, **how: Any) -> Call:
    """The model asks for the result of a call of the client's, by the id that a script gave to
    it."""
    return Call("retrieve_context", {"id": PREFIXES[DialectName(dialect)] + id, **how})


def code(name: str = "f", functions: int = 300) -> str:
    """A source file that is too long to be shown whole."""
    return "\n".join(
        f"def {name}_{n}(left, right):\n    return left + right + {n * 7919}\n"
        for n in range(functions)
    )


def looking(*names: str) -> Say:
    return Say("Let me look.", calls=tuple(read(name) for name in names))


def asked(request: Received) -> Request:
    """A request as the provider understands it."""
    assert request.dialect is not None
    return DIALECTS[request.dialect].parse(request.decoded)


def assert_each_extends_the_one_before(requests: Sequence[Received]) -> None:
    """The property that prompt caches live on: nothing that was sent once is sent otherwise."""
    for before, after in zip(map(asked, requests), map(asked, requests[1:]), strict=False):
        said, then = (
            [meant(message) for message in request.messages] for request in (before, after)
        )
        assert then[: len(said)] == said
        assert [unmarked(tool.raw) for tool in after.tools] == [
            unmarked(tool.raw) for tool in before.tools
        ]
        assert after.system == before.system


def meant(message: Message) -> Any:
    """A message as its reader sees it: clients spell their JSON in their own way, and drop what no
    model reads."""
    fields = json.loads(message.raw)
    blocks = fields.get("content")
    if isinstance(blocks, str) and message.role is Role.USER:
        blocks = [{"type": "text", "text": blocks}]
    if isinstance(blocks, list):
        fields["content"] = [
            {key: block[key] for key in block if key not in _UNREAD} for block in blocks
        ]
    return {key: value for key, value in fields.items() if key not in _UNREAD and value is not None}


def unmarked(tool: bytes) -> Any:
    """A tool without its cache mark, which is no part of what the cache holds."""
    return {key: value for key, value in json.loads(tool).items() if key != "cache_control"}


_UNREAD = frozenset({"status", "logprobs", "annotations", "cache_control"})


def with_a_result(dialect: str, text: str) -> list[dict[str, Any]]:
    """A history that ends with the result of one call."""
    if dialect == "anthropic":
        return [
            {"role": "user", "content": "Read it."},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}}
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": text}],
            },
        ]
    if dialect == "openai-chat":
        called = {
            "id": "call_1",
            "type": "function",
            "function": {"name": "read_file", "arguments": "{}"},
        }
        return [
            {"role": "user", "content": "Read it."},
            {"role": "assistant", "content": None, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": "call_1", "content": text},
        ]
    return [
        {"role": "user", "content": "Read it."},
        {"type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": text},
    ]
