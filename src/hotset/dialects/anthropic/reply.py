"""Reads an Anthropic reply, whole or as events, even if incomplete."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hotset.dialects import json_bytes, sse
from hotset.dialects.anthropic.parse import understand
from hotset.dialects.port import Mark
from hotset.dialects.view import error_of, read_reply
from hotset.nouns.message import Reply, Usage

_ERRORS = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def read(body: bytes, *, streamed: bool) -> Reply:
    return read_reply(body, _stream if streamed else _document, _document)


def refuse(status: int, message: str) -> bytes:
    kind = _ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return json_bytes.encode(
        {
            "type": "error",
            "error": {"type": kind, "message": json_bytes.encode_text(message).decode()},
        }
    )


def _document(body: bytes) -> Reply:
    body, value = json_bytes.salvage(body)
    tree = json_bytes.as_object(value)
    error = error_of(tree)
    stop = json_bytes.as_text(tree.get("stop_reason"))
    has_content = isinstance(tree.get("content"), list) and tree["content"]
    message = (
        b'{"role":"assistant","content":%s}' % json_bytes.member_of(body, "content")
        if has_content
        else b""
    )
    return Reply(
        messages=(understand(message),) if message else (),
        usage=_usage(tree.get("usage"), Usage()),
        stop=stop,
        response_id=json_bytes.as_text(tree.get("id")),
        model=json_bytes.as_text(tree.get("model")),
        complete=bool(stop) and not error,
        error=error,
    )


@dataclass(slots=True)
class _Block:
    """A content block while its deltas come in."""

    index: int
    start: dict[str, Any]
    texts: dict[str, list[str]] = field(default_factory=dict)
    """Pieces by the field they belong to."""
    citations: list[Any] = field(default_factory=list)

    def finished(self) -> dict[str, Any]:
        block = dict(self.start)
        for name, pieces in self.texts.items():
            if name != "input":
                block[name] = json_bytes.as_text(block.get(name)) + "".join(pieces)
        if given := "".join(self.texts.get("input", ())):
            raw = json_bytes.encode_text(given)
            # Half of an input is not JSON: it is kept as a string.
            block["input"] = msgspec.Raw(raw) if json_bytes.lenient(raw) is not None else given
        if self.citations:
            block["citations"] = [*json_bytes.as_list(block.get("citations")), *self.citations]
        return block


_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
    "compaction_delta": ("content", "content"),
}
"""For each type of delta: its text field, and the field of the block that it continues."""

_ORPHANS = {
    "text": "text",
    "thinking": "thinking",
    "signature": "thinking",
    "input": "tool_use",
    "content": "compaction",
}
"""The type of a block whose start is missing, by the field that its first delta continues."""


@dataclass(slots=True)
class _Assembly:
    blocks: list[_Block] = field(default_factory=list)
    open: dict[int, _Block] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    stop: str = ""
    id: str = ""
    model: str = ""
    ended: bool = False
    error: str = ""

    def take(self, name: str, event: dict[str, Any]) -> None:
        match event.get("type", name):
            case "message_start":
                message = json_bytes.as_object(event.get("message"))
                self.id = json_bytes.as_text(message.get("id")) or self.id
                self.model = json_bytes.as_text(message.get("model")) or self.model
                self.usage = _usage(message.get("usage"), self.usage)
            case "content_block_start":
                self._begin(
                    json_bytes.as_count(event.get("index")),
                    json_bytes.as_object(event.get("content_block")),
                )
            case "content_block_delta":
                self._continue(
                    json_bytes.as_count(event.get("index")),
                    json_bytes.as_object(event.get("delta")),
                )
            case "message_delta":
                self.stop = (
                    json_bytes.as_text(json_bytes.as_object(event.get("delta")).get("stop_reason"))
                    or self.stop
                )
                self.usage = _usage(event.get("usage"), self.usage)
            case "message_stop":
                self.ended = True
            case "error":
                self.error = error_of(event) or "error"

    def _begin(self, index: int, start: dict[str, Any]) -> _Block:
        block = _Block(index, start)
        self.blocks.append(block)
        self.open[index] = block
        return block

    def _continue(self, index: int, delta: dict[str, Any]) -> None:
        kind = json_bytes.as_text(delta.get("type"))
        if kind == "citations_delta":
            if (block := self.open.get(index)) and "citation" in delta:
                block.citations.append(delta["citation"])
            return
        source, target = _DELTAS.get(kind, ("", ""))
        piece = delta.get(source)
        if not isinstance(piece, str):
            return
        block = self.open.get(index) or self._begin(index, {"type": _ORPHANS[target]})
        block.texts.setdefault(target, []).append(piece)


def _stream(body: bytes) -> Reply:
    found = _Assembly()
    for event in sse.events(body):
        if tree := json_bytes.lenient_object(event.data):  # without data the event may be cut
            found.take(event.name, tree)
    blocks = [block.finished() for block in sorted(found.blocks, key=lambda block: block.index)]
    message = json_bytes.encode({"role": "assistant", "content": blocks}) if blocks else b""
    return Reply(
        messages=(understand(message),) if message else (),
        usage=found.usage,
        stop=found.stop,
        response_id=found.id,
        model=found.model,
        complete=found.ended and bool(found.stop) and not found.error,
        error=found.error,
    )


_END_WORDS = re.compile(rb"message_delta|message_stop|error")
"""Matches every event that may be about the end; decoding it decides."""


def mark(name: str, data: bytes) -> Mark:
    if not _END_WORDS.search(data) and not _END_WORDS.match(name.encode()):
        return Mark.MORE if b"content_block" in data else Mark.NONE
    tree = json_bytes.lenient_object(data)
    match json_bytes.as_text(tree.get("type")) or name:
        case "message_delta" if json_bytes.as_object(tree.get("delta")).get("stop_reason"):
            return Mark.STOP
        case "message_stop" | "error":
            return Mark.LAST
        case kind:
            return Mark.MORE if kind.startswith("content_block") else Mark.NONE


def _usage(tree: Any, known: Usage) -> Usage:
    """Counts are cumulative: a later event replaces the counts it has."""
    usage = json_bytes.as_object(tree)
    by_time = json_bytes.as_object(usage.get("cache_creation"))

    def count(name: str, before: int) -> int:
        return json_bytes.as_count(usage[name]) if isinstance(usage.get(name), int) else before

    return Usage(
        count("input_tokens", known.input),
        count("cache_read_input_tokens", known.cache_read),
        count("cache_creation_input_tokens", known.cache_write),
        count("output_tokens", known.output),
        lasting=json_bytes.as_count(by_time["ephemeral_1h_input_tokens"])
        if "ephemeral_1h_input_tokens" in by_time
        else known.lasting,
    )
