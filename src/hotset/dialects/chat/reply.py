"""Reads a Chat Completions reply, whole or as chunks, even if incomplete."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from hotset.dialects import json_bytes, sse
from hotset.dialects.chat.parse import understand
from hotset.dialects.port import Mark
from hotset.dialects.view import error_of, read_reply
from hotset.nouns.message import Message, Reply, Usage

_ERRORS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def read(body: bytes, *, streamed: bool) -> Reply:
    return read_reply(body, _stream if streamed else _document, _document)


def refuse(status: int, message: str) -> bytes:
    kind = _ERRORS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    text = json_bytes.encode_text(message).decode()
    return json_bytes.encode(
        {"error": {"message": text, "type": kind, "param": None, "code": None}}
    )


def openai_usage(tree: Any, total: str, details: str, output: str) -> Usage:
    """OpenAI includes cached tokens in its total; Anthropic and hotset do not."""
    usage = json_bytes.as_object(tree)
    inside = json_bytes.as_object(usage.get(details))
    read = json_bytes.as_count(inside.get("cached_tokens"))
    write = json_bytes.as_count(inside.get("cache_write_tokens"))
    fresh = max(0, json_bytes.as_count(usage.get(total)) - read - write)
    return Usage(fresh, read, write, json_bytes.as_count(usage.get(output)))


def _document(body: bytes) -> Reply:
    body, value = json_bytes.salvage(body)
    tree = json_bytes.as_object(value)
    raws = json_bytes.elements_of(json_bytes.member_of(body, "choices"))
    messages: list[tuple[int, bytes]] = []
    stops: list[str] = []
    for choice, raw in zip(json_bytes.as_list(tree.get("choices")), raws, strict=False):
        fields = json_bytes.as_object(choice)
        stops.append(json_bytes.as_text(fields.get("finish_reason")))
        if isinstance(json_bytes.as_object(fields.get("message")).get("role"), str):
            messages.append(
                (json_bytes.as_count(fields.get("index")), json_bytes.member_of(raw, "message"))
            )
    error = error_of(tree)
    return Reply(
        messages=_choices(messages),
        usage=_usage(tree.get("usage")),
        stop=stops[0] if stops else "",
        response_id=json_bytes.as_text(tree.get("id")),
        model=json_bytes.as_text(tree.get("model")),
        complete=bool(stops) and all(stops) and not error,
        error=error,
    )


def _choices(messages: Iterable[tuple[int, bytes]]) -> tuple[Message, ...]:
    """The first choice continues the conversation; the others are asides."""
    ordered = [understand(raw) for _, raw in sorted(messages, key=lambda choice: choice[0])]
    return tuple(replace(each, aside=True) if index else each for index, each in enumerate(ordered))


@dataclass(slots=True)
class _Call:
    """A tool call while its deltas come in."""

    id: str = ""
    kind: str = "function"
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    def take(self, delta: dict[str, Any]) -> None:
        self.id = json_bytes.as_text(delta.get("id")) or self.id
        if "custom" in delta:
            self.kind = "custom"
        inner = json_bytes.as_object(delta.get(self.kind))
        self.name = json_bytes.as_text(inner.get("name")) or self.name
        self.pieces.append(
            json_bytes.as_text(inner.get("input" if self.kind == "custom" else "arguments"))
        )
        self.extra |= {key: value for key, value in delta.items() if key not in _CALL_FIELDS}

    def finished(self) -> dict[str, Any]:
        given = "input" if self.kind == "custom" else "arguments"
        return {
            "id": self.id,
            "type": self.kind,
            self.kind: {"name": self.name, given: "".join(self.pieces)},
            **self.extra,
        }


_CALL_FIELDS = frozenset({"index", "id", "type", "function", "custom"})
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


@dataclass(slots=True)
class _Choice:
    texts: dict[str, list[str]] = field(default_factory=dict)
    calls: list[_Call] = field(default_factory=list)
    by_index: dict[int, _Call] = field(default_factory=dict)
    legacy: _Call | None = None
    stop: str = ""

    def take(self, choice: dict[str, Any]) -> None:
        delta = json_bytes.as_object(choice.get("delta"))
        for name in _TEXTS:
            if isinstance(piece := delta.get(name), str):
                self.texts.setdefault(name, []).append(piece)
        for call in json_bytes.as_list(delta.get("tool_calls")):
            self._take_call(json_bytes.as_object(call))
        if isinstance(old := delta.get("function_call"), dict):
            self.legacy = self.legacy or _Call()
            self.legacy.take({"function": old})
        self.stop = json_bytes.as_text(choice.get("finish_reason")) or self.stop

    def _take_call(self, delta: dict[str, Any]) -> None:
        """Some providers number every call 0 and distinguish them by id; some give no number at
        all."""
        id = json_bytes.as_text(delta.get("id"))
        number = delta.get("index")
        index = number if isinstance(number, int) else max(0, len(self.calls) - 1)
        call = self.by_index.get(index)
        if call is None or (id and call.id and id != call.id):
            call = self.by_index[index] = _Call()
            self.calls.append(call)
        call.take(delta)

    def finished(self) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "content": None}
        message |= {name: "".join(pieces) for name, pieces in self.texts.items()}
        if self.calls:
            message["content"] = message["content"] or None
            message["tool_calls"] = [call.finished() for call in self.calls]
        if self.legacy:
            message["function_call"] = {
                "name": self.legacy.name,
                "arguments": "".join(self.legacy.pieces),
            }
        return json_bytes.encode(message)


def _stream(body: bytes) -> Reply:
    choices: dict[int, _Choice] = {}
    usage, id, model, error, ended = Usage(), "", "", "", False
    for event in sse.events(body):
        if event.data.strip() == b"[DONE]":
            ended = True
            continue
        chunk = json_bytes.lenient_object(event.data)
        error = (
            error_of(chunk)
            or (error_of({"error": chunk}) if event.name == "error" else "")
            or error
        )
        id = json_bytes.as_text(chunk.get("id")) or id
        model = json_bytes.as_text(chunk.get("model")) or model
        if isinstance(chunk.get("usage"), dict):
            usage = _usage(chunk["usage"])
        for each in json_bytes.as_list(chunk.get("choices")):
            choice = json_bytes.as_object(each)
            choices.setdefault(json_bytes.as_count(choice.get("index")), _Choice()).take(choice)
    stops = [choices[index].stop for index in sorted(choices)]
    messages = [
        (index, choice.finished())
        for index, choice in choices.items()
        if choice.texts or choice.calls or choice.legacy
    ]
    return Reply(
        messages=_choices(messages),
        usage=usage,
        stop=stops[0] if stops else "",
        response_id=id,
        model=model,
        complete=ended and bool(stops) and all(stops) and not error,
        error=error,
    )


def mark(name: str, data: bytes) -> Mark:
    """Some providers send a stop reason with every chunk: text after it disproves it."""
    if data.strip() == b"[DONE]":
        return Mark.LAST
    tree = json_bytes.lenient_object(data)
    found = Mark.STOP if name == "error" or tree.get("error") else Mark.NONE
    for choice in map(json_bytes.as_object, json_bytes.as_list(tree.get("choices"))):
        found |= Mark.STOP if choice.get("finish_reason") else Mark.NONE
        delta = json_bytes.as_object(choice.get("delta"))
        found |= (
            Mark.MORE
            if any(delta.get(each) for each in (*_TEXTS, "tool_calls", "function_call"))
            else Mark.NONE
        )
    return found


def _usage(tree: Any) -> Usage:
    return openai_usage(tree, "prompt_tokens", "prompt_tokens_details", "completion_tokens")
