"""Reads a Responses reply, whole or as events, even if incomplete."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hotset.dialects import json_bytes, sse
from hotset.dialects.chat.reply import openai_usage
from hotset.dialects.port import Mark
from hotset.dialects.responses.parse import understand
from hotset.dialects.view import error_of, read_reply
from hotset.nouns.message import Reply, Usage

_WHOLE = frozenset({"completed", "incomplete"})
"""Statuses of a finished response."""


def read(body: bytes, *, streamed: bool) -> Reply:
    return read_reply(body, _stream if streamed else _document, _document)


def _document(body: bytes) -> Reply:
    body, value = json_bytes.salvage(body)
    tree = json_bytes.as_object(value)
    return _Outline().update(tree).reply(_items(body, tree))


def _stream(body: bytes) -> Reply:
    found = _Assembly()
    for event in sse.events(body):
        found.take(event.name, event.data)
    return found.outline.reply(found.finished())


def _items(raw: bytes, tree: dict[str, Any]) -> list[bytes]:
    """The raw output items of a response object."""
    raws = json_bytes.elements_of(json_bytes.member_of(raw, "output"))
    return [
        item
        for item, each in zip(raws, json_bytes.as_list(tree.get("output")), strict=False)
        if _is_item(each)
    ]


def _is_item(tree: Any) -> bool:
    kind = json_bytes.as_object(tree).get("type")
    return isinstance(kind, str) and (kind != "message" or isinstance(tree.get("role"), str))


@dataclass(slots=True)
class _Outline:
    """Fields of a response apart from its items."""

    id: str = ""
    model: str = ""
    status: str = ""
    reason: str = ""
    error: str = ""
    usage: Usage = field(default_factory=Usage)

    def update(self, tree: dict[str, Any]) -> _Outline:
        self.id = json_bytes.as_text(tree.get("id")) or self.id
        self.model = json_bytes.as_text(tree.get("model")) or self.model
        self.status = json_bytes.as_text(tree.get("status")) or self.status
        self.reason = (
            json_bytes.as_text(json_bytes.as_object(tree.get("incomplete_details")).get("reason"))
            or self.reason
        )
        self.error = error_of(tree) or ("failed" if self.status == "failed" else "") or self.error
        if isinstance(tree.get("usage"), dict):
            self.usage = openai_usage(
                tree["usage"], "input_tokens", "input_tokens_details", "output_tokens"
            )
        return self

    def reply(self, items: list[bytes]) -> Reply:
        whole = self.status in _WHOLE
        return Reply(
            messages=tuple(understand(item) for item in items),
            usage=self.usage,
            stop=(self.reason or self.status) if whole else "",
            response_id=self.id,
            model=self.model,
            complete=whole and not self.error,
            error=self.error,
        )


_DELTAS = {
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "summary_text",
    "response.reasoning_text.delta": "reasoning_text",
}


@dataclass(slots=True)
class _Item:
    """An output item while its deltas come in."""

    start: dict[str, Any]
    done: bytes = b""
    pieces: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    """By the field or block type that they continue, and the block's number."""

    def finished(self) -> bytes:
        if self.done:
            return self.done
        item = dict(self.start)
        blocks: dict[str, list[dict[str, Any]]] = {}
        for (target, _), texts in sorted(self.pieces.items(), key=lambda piece: piece[0][1]):
            text = "".join(texts)
            if target in ("arguments", "input"):
                item[target] = text
            else:
                place = "summary" if target == "summary_text" else "content"
                name = "refusal" if target == "refusal" else "text"
                blocks.setdefault(place, []).append({"type": target, name: text})
        return json_bytes.encode(item | blocks) if self.pieces else b""


@dataclass(slots=True)
class _Assembly:
    outline: _Outline = field(default_factory=_Outline)
    items: dict[int, _Item] = field(default_factory=dict)
    whole: list[bytes] = field(default_factory=list)
    """The items as the last event repeated them."""

    def take(self, name: str, raw: bytes) -> None:
        raw, value = json_bytes.salvage(raw)
        event = json_bytes.as_object(value)
        if not event:
            return  # without data the event may be cut
        kind = json_bytes.as_text(event.get("type")) or name
        index = json_bytes.as_count(event.get("output_index"))
        match kind:
            case "response.output_item.added" if _is_item(event.get("item")):
                self.items[index] = _Item(event["item"])
            case "response.output_item.done" if _is_item(event.get("item")):
                self.items.setdefault(index, _Item(event["item"])).done = json_bytes.member_of(
                    raw, "item"
                )
            case "response.created" | "response.in_progress" | "response.queued":
                response = json_bytes.as_object(event.get("response"))
                self.outline.update({**response, "status": ""})
            case "response.completed" | "response.incomplete" | "response.failed":
                response = json_bytes.as_object(event.get("response"))
                self.outline.update({**response, "status": kind.removeprefix("response.")})
                self.whole = _items(json_bytes.member_of(raw, "response"), response)
            case "error":
                self.outline.error = error_of(event) or error_of(
                    {"error": event | {"type": "error"}}
                )
            case _ if kind in _DELTAS and isinstance(event.get("delta"), str):
                self._continue(index, _DELTAS[kind], event)

    def _continue(self, index: int, target: str, event: dict[str, Any]) -> None:
        item = self.items.get(index)
        if item is None and target in ("output_text", "refusal"):
            item = self.items[index] = _Item({"type": "message", "role": "assistant"})
        if item is None:
            return
        number = event.get("content_index", event.get("summary_index"))
        item.pieces.setdefault((target, json_bytes.as_count(number)), []).append(event["delta"])

    def finished(self) -> list[bytes]:
        done = [raw for index in sorted(self.items) if (raw := self.items[index].finished())]
        return done if len(done) >= len(self.whole) else self.whole


_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})
_END_WORDS = re.compile(rb'"(?:response\.(?:completed|incomplete|failed)|error)"')
"""Matches every event that may end a reply; decoding it decides."""


def mark(name: str, data: bytes) -> Mark:
    """The last event repeats the whole reply: it is decoded only if its name is not conclusive."""
    is_last = name in _ENDS or data.strip() == b"[DONE]"
    if not is_last and _END_WORDS.search(data):
        is_last = json_bytes.lenient_object(data).get("type") in _ENDS
    return Mark.LAST if is_last else Mark.NONE
