"""Chat Completions: a reply as a document, and as the chunks that the official SDK reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hotset.testing.upstream.faults import Edge
from hotset.testing.upstream.wire import (
    DialectWire,
    WireEvent,
    WireTurn,
    arguments,
    pieces,
    to_json,
)

CALL_PREFIX = "call_"


def document(turn: WireTurn) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": turn.say.text or None,
        "refusal": None,
        "annotations": [],
    }
    if turn.say.thinking:
        message["reasoning_content"] = turn.say.thinking
    if turn.say.calls:
        message["tool_calls"] = [
            {
                "id": turn.call_id(CALL_PREFIX, place),
                "type": "function",
                "function": {"name": call.name, "arguments": arguments(call)},
            }
            for place, call in enumerate(turn.say.calls)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(turn)}
    return _frame(turn, "chat.completion") | {"choices": [choice], "usage": usage(turn)}


def events(turn: WireTurn) -> tuple[WireEvent, ...]:
    return tuple(_events(turn))


def refusal(status: int, message: str) -> dict[str, Any]:
    type, code = _ERROR_TYPES.get(
        status, ("server_error" if status >= 500 else "invalid_request_error", None)
    )
    return {"error": {"message": message, "type": type, "param": None, "code": code}}


def error_event(type: str, message: str, before: int) -> WireEvent:
    del before
    return WireEvent(
        "", to_json({"error": {"message": message, "type": type, "param": None, "code": None}})
    )


def usage(turn: WireTurn) -> dict[str, Any]:
    prompt, completion = turn.charge.total, turn.output_tokens
    details: dict[str, Any] = {"cached_tokens": turn.charge.read, "audio_tokens": 0}
    if turn.charge.written:
        details["cache_write_tokens"] = turn.charge.written
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": turn.thinking_tokens, "audio_tokens": 0},
    }


def _events(turn: WireTurn) -> Iterator[WireEvent]:
    counted = bool((turn.body.get("stream_options") or {}).get("include_usage"))
    # With include_usage every chunk carries the field, null until the last.
    frame = _frame(turn, "chat.completion.chunk") | ({"usage": None} if counted else {})

    def chunk(
        delta: dict[str, Any],
        edge: Edge | None = None,
        block: int | None = None,
        finish: str | None = None,
    ) -> WireEvent:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return WireEvent("", to_json(frame | {"choices": [choice]}), edge, block)

    chunks = turn.say.chunks
    yield chunk(
        {"role": "assistant", "content": None if turn.say.calls else "", "refusal": None},
        Edge.START,
    )
    for piece in pieces(turn.say.thinking, chunks):
        # No field of OpenAI's own: DeepSeek, vLLM and most servers that speak this dialect use it.
        yield chunk({"reasoning_content": piece})
    for piece in pieces(turn.say.text, chunks):
        yield chunk({"content": piece})
    for place, call in enumerate(turn.say.calls):
        head = {
            "id": turn.call_id(CALL_PREFIX, place),
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        yield chunk({"tool_calls": [{"index": place, **head}]}, block=place)
        for piece in pieces(arguments(call), chunks):
            yield chunk(
                {"tool_calls": [{"index": place, "function": {"arguments": piece}}]}, block=place
            )
    yield chunk({}, finish=_finish(turn))
    if counted:
        yield WireEvent("", to_json(frame | {"choices": [], "usage": usage(turn)}))
    yield WireEvent("", b"[DONE]", Edge.END)


def _frame(turn: WireTurn, object: str) -> dict[str, Any]:
    return {
        "id": turn.id("chatcmpl-"),
        "object": object,
        "created": turn.created,
        "model": turn.model,
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def _finish(turn: WireTurn) -> str:
    if turn.say.truncated:
        return "length"
    return "tool_calls" if turn.say.calls else "stop"


_ERROR_TYPES: dict[int, tuple[str, str | None]] = {
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}

WIRE = DialectWire(document, events, refusal, error_event, "x-request-id")
