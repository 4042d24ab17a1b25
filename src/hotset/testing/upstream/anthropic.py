"""The Messages API: a reply as a document, and as the event stream that the official SDK reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hotset.testing.upstream.faults import Edge
from hotset.testing.upstream.wire import (
    DialectWire,
    WireEvent,
    WireTurn,
    arguments,
    pieces,
    to_json,
)

CALL_PREFIX = "toolu_"


def document(turn: WireTurn) -> dict[str, Any]:
    return _message(turn) | {
        "content": _content(turn),
        "stop_reason": _stop(turn),
        "usage": _usage(turn) | {"output_tokens": turn.output_tokens},
    }


def events(turn: WireTurn) -> tuple[WireEvent, ...]:
    return tuple(_events(turn))


def refusal(status: int, message: str) -> dict[str, Any]:
    error = {
        "type": _ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error"),
        "message": message,
    }
    return {"type": "error", "error": error, "request_id": None}


def error_event(type: str, message: str, before: int) -> WireEvent:
    del before
    return WireEvent(
        "error",
        to_json({"type": "error", "error": {"type": type, "message": message}, "request_id": None}),
    )


def _events(turn: WireTurn) -> Iterator[WireEvent]:
    start = _message(turn) | {"usage": _usage(turn) | {"output_tokens": 1}}
    yield _event("message_start", Edge.START, message=start)
    for index, (block, said) in enumerate(_blocks(turn)):
        yield _event("content_block_start", block=index, index=index, content_block=_emptied(block))
        if index == 0:
            yield _event("ping")
        for delta in _deltas(block, said, turn.say.chunks):
            yield _event("content_block_delta", block=index, index=index, delta=delta)
        yield _event("content_block_stop", block=index, index=index)
    delta = {"stop_reason": _stop(turn), "stop_sequence": None}
    yield _event(
        "message_delta", delta=delta, usage=_usage(turn) | {"output_tokens": turn.output_tokens}
    )
    yield _event("message_stop", Edge.END)


def _event(
    type: str, edge: Edge | None = None, block: int | None = None, **fields: Any
) -> WireEvent:
    return WireEvent(type, to_json({"type": type, **fields}), edge, block)


def _message(turn: WireTurn) -> dict[str, Any]:
    return {
        "id": turn.id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _content(turn: WireTurn) -> list[dict[str, Any]]:
    return [block for block, _ in _blocks(turn)]


def _blocks(turn: WireTurn) -> Iterator[tuple[dict[str, Any], str]]:
    """Each block of the reply, and the text that fills it when it is streamed."""
    say = turn.say
    if say.thinking:
        yield (
            {"type": "thinking", "thinking": say.thinking, "signature": turn.id("c2lnbmF0dXJl")},
            say.thinking,
        )
    if say.text:
        yield {"type": "text", "text": say.text}, say.text
    for place, call in enumerate(say.calls):
        said = arguments(call)
        yield (
            {
                "type": "tool_use",
                "id": turn.call_id(CALL_PREFIX, place),
                "name": call.name,
                "input": _parsed(said),
            },
            said,
        )


def _emptied(block: dict[str, Any]) -> dict[str, Any]:
    """A block as it first appears in a stream."""
    empty: dict[str, dict[str, Any]] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    return block | empty[block["type"]]


def _deltas(block: dict[str, Any], said: str, chunks: int) -> Iterator[dict[str, Any]]:
    """What fills an empty block."""
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(said, chunks))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(said, chunks))
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        yield {"type": "input_json_delta", "partial_json": ""}
        yield from (
            {"type": "input_json_delta", "partial_json": piece} for piece in pieces(said, chunks)
        )


def _parsed(said: str) -> Any:
    """A document holds arguments as JSON; what is no JSON can only stand in it as a string."""
    try:
        return msgspec.json.decode(said)
    except msgspec.DecodeError:
        return said


def _stop(turn: WireTurn) -> str:
    if turn.say.truncated:
        return "max_tokens"
    return "tool_use" if turn.say.calls else "end_turn"


def _usage(turn: WireTurn) -> dict[str, Any]:
    charge = turn.charge
    return {
        "input_tokens": charge.fresh,
        "cache_creation_input_tokens": charge.written,
        "cache_read_input_tokens": charge.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": charge.written - charge.written_long,
            "ephemeral_1h_input_tokens": charge.written_long,
        },
        "service_tier": "standard",
    }


_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}

WIRE = DialectWire(document, events, refusal, error_event, "request-id")
