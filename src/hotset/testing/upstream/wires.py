"""Renders a reply in each dialect: as a document, as the events that its official SDK reads, and as
a refusal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hotset.nouns.message import DialectName
from hotset.testing.upstream.cache import Charge, estimate_tokens
from hotset.testing.upstream.faults import Edge
from hotset.testing.upstream.script import Call, Say

_TOOL_USE, _CALL = "toolu_", "call_"
_DELTA_CHARACTERS = 24  # a few words, as providers send them


@dataclass(frozen=True, slots=True)
class WireTurn:
    """One reply being rendered: everything that its bytes depend on."""

    say: Say
    body: Mapping[str, Any]
    """The request, parsed."""
    charge: Charge
    seed: str
    """Every id in the reply is made from it."""
    created: int

    @property
    def model(self) -> str:
        return str(self.body.get("model", "scripted"))

    @property
    def output_tokens(self) -> int:
        written = self.say.text.encode() + b"".join(
            arguments(call).encode() for call in self.say.calls
        )
        return self.thinking_tokens + max(1, estimate_tokens(written))

    @property
    def thinking_tokens(self) -> int:
        return estimate_tokens(self.say.thinking.encode())

    def id(self, prefix: str, place: int = 0) -> str:
        """An id that only depends on the seed and the place in the reply."""
        return prefix + hashlib.sha256(f"{self.seed}/{prefix}/{place}".encode()).hexdigest()[:24]

    def call_id(self, prefix: str, place: int) -> str:
        given = self.say.calls[place].id
        return prefix + given if given else self.id(prefix, place)


@dataclass(frozen=True, slots=True)
class WireEvent:
    """One server-sent event."""

    name: str
    """Empty if the dialect sends none."""
    data: bytes
    edge: Edge | None = None
    block: int | None = None
    """The content block, tool call or output item that it belongs to."""


@dataclass(frozen=True, slots=True)
class DialectWire:
    """Renders one dialect. The functions are pure."""

    document: Callable[[WireTurn], dict[str, Any]]
    events: Callable[[WireTurn], Iterable[WireEvent]]
    refusal: Callable[[int, str], dict[str, Any]]
    """The body of an error status."""
    error_event: Callable[[str, str, int], WireEvent]
    """An error in the middle of a stream: type, message, how many events came before."""
    request_id_header: str
    call_prefix: str
    """Prefix of the provider's ids of tool calls."""


def to_json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def arguments(call: Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else to_json(call.arguments).decode()


def pieces(text: str, chunks: int) -> Iterator[str]:
    """The text in deltas: `chunks` of about the same length, or of a few words each if `chunks` is
    0."""
    size = -(-len(text) // chunks) if chunks else _DELTA_CHARACTERS
    for start in range(0, len(text), max(1, size)):
        yield text[start : start + size]


def status_text(status: int) -> str:
    """The providers' usual message for a status."""
    return _TEXTS.get(status, "The server had an error while processing your request")


_TEXTS = {
    400: "The request was invalid.",
    401: "Invalid API key provided.",
    403: "Your API key does not have permission to use the specified resource.",
    404: "The requested resource could not be found.",
    408: "The request timed out.",
    409: "The request conflicts with the current state of the resource.",
    413: "Request exceeds the maximum allowed number of bytes.",
    422: "The request was well-formed but could not be processed.",
    429: "Rate limit reached. Please try again later.",
    502: "Bad gateway.",
    503: "The engine is currently overloaded, please try again later.",
    504: "The request took too long to process.",
    529: "Overloaded",
}


def _anthropic_document(turn: WireTurn) -> dict[str, Any]:
    return _anthropic_message(turn) | {
        "content": [block for block, _ in _anthropic_blocks(turn)],
        "stop_reason": _anthropic_stop(turn),
        "usage": _anthropic_usage(turn) | {"output_tokens": turn.output_tokens},
    }


def _anthropic_refusal(status: int, message: str) -> dict[str, Any]:
    error = {
        "type": _ANTHROPIC_ERRORS.get(
            status, "api_error" if status >= 500 else "invalid_request_error"
        ),
        "message": message,
    }
    return {"type": "error", "error": error, "request_id": None}


def _anthropic_error(type: str, message: str, before: int) -> WireEvent:
    del before
    return WireEvent(
        "error",
        to_json({"type": "error", "error": {"type": type, "message": message}, "request_id": None}),
    )


def _anthropic_events(turn: WireTurn) -> Iterator[WireEvent]:
    start = _anthropic_message(turn) | {"usage": _anthropic_usage(turn) | {"output_tokens": 1}}
    yield _anthropic_event("message_start", Edge.START, message=start)
    for index, (block, text) in enumerate(_anthropic_blocks(turn)):
        yield _anthropic_event(
            "content_block_start", block=index, index=index, content_block=_empty_block(block)
        )
        if index == 0:
            yield _anthropic_event("ping")
        for delta in _block_deltas(block, text, turn.say.chunks):
            yield _anthropic_event("content_block_delta", block=index, index=index, delta=delta)
        yield _anthropic_event("content_block_stop", block=index, index=index)
    delta = {"stop_reason": _anthropic_stop(turn), "stop_sequence": None}
    yield _anthropic_event(
        "message_delta",
        delta=delta,
        usage=_anthropic_usage(turn) | {"output_tokens": turn.output_tokens},
    )
    yield _anthropic_event("message_stop", Edge.END)


def _anthropic_event(
    type: str, edge: Edge | None = None, block: int | None = None, **fields: Any
) -> WireEvent:
    return WireEvent(type, to_json({"type": type, **fields}), edge, block)


def _anthropic_message(turn: WireTurn) -> dict[str, Any]:
    return {
        "id": turn.id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _anthropic_blocks(turn: WireTurn) -> Iterator[tuple[dict[str, Any], str]]:
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
        text = arguments(call)
        yield (
            {
                "type": "tool_use",
                "id": turn.call_id(_TOOL_USE, place),
                "name": call.name,
                "input": _parsed_arguments(text),
            },
            text,
        )


def _empty_block(block: dict[str, Any]) -> dict[str, Any]:
    """A block as it first appears in a stream."""
    empty: dict[str, dict[str, Any]] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    return block | empty[block["type"]]


def _block_deltas(block: dict[str, Any], text: str, chunks: int) -> Iterator[dict[str, Any]]:
    """The deltas that fill an empty block."""
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(text, chunks))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(text, chunks))
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        yield {"type": "input_json_delta", "partial_json": ""}
        yield from (
            {"type": "input_json_delta", "partial_json": piece} for piece in pieces(text, chunks)
        )


def _parsed_arguments(text: str) -> Any:
    """A document holds arguments as JSON; anything that is not JSON becomes a string."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _anthropic_stop(turn: WireTurn) -> str:
    if turn.say.truncated:
        return "max_tokens"
    return "tool_use" if turn.say.calls else "end_turn"


def _anthropic_usage(turn: WireTurn) -> dict[str, Any]:
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


_ANTHROPIC_ERRORS = {
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


def _chat_document(turn: WireTurn) -> dict[str, Any]:
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
                "id": turn.call_id(_CALL, place),
                "type": "function",
                "function": {"name": call.name, "arguments": arguments(call)},
            }
            for place, call in enumerate(turn.say.calls)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _chat_finish(turn)}
    return _chat_frame(turn, "chat.completion") | {"choices": [choice], "usage": _chat_usage(turn)}


def _openai_refusal(status: int, message: str) -> dict[str, Any]:
    type, code = _OPENAI_ERRORS.get(
        status, ("server_error" if status >= 500 else "invalid_request_error", None)
    )
    return {"error": {"message": message, "type": type, "param": None, "code": code}}


def _chat_error(type: str, message: str, before: int) -> WireEvent:
    del before
    return WireEvent(
        "", to_json({"error": {"message": message, "type": type, "param": None, "code": None}})
    )


def _chat_usage(turn: WireTurn) -> dict[str, Any]:
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


def _chat_events(turn: WireTurn) -> Iterator[WireEvent]:
    counted = bool((turn.body.get("stream_options") or {}).get("include_usage"))
    # With include_usage every chunk carries the field, null until the last.
    frame = _chat_frame(turn, "chat.completion.chunk") | ({"usage": None} if counted else {})

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
            "id": turn.call_id(_CALL, place),
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        yield chunk({"tool_calls": [{"index": place, **head}]}, block=place)
        for piece in pieces(arguments(call), chunks):
            yield chunk(
                {"tool_calls": [{"index": place, "function": {"arguments": piece}}]}, block=place
            )
    yield chunk({}, finish=_chat_finish(turn))
    if counted:
        yield WireEvent("", to_json(frame | {"choices": [], "usage": _chat_usage(turn)}))
    yield WireEvent("", b"[DONE]", Edge.END)


def _chat_frame(turn: WireTurn, object: str) -> dict[str, Any]:
    return {
        "id": turn.id("chatcmpl-"),
        "object": object,
        "created": turn.created,
        "model": turn.model,
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def _chat_finish(turn: WireTurn) -> str:
    if turn.say.truncated:
        return "length"
    return "tool_calls" if turn.say.calls else "stop"


_OPENAI_ERRORS: dict[int, tuple[str, str | None]] = {
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}


_SEARCH = "tool_search"
"""A script's call of this name is a call of the provider's own search, if the request lets its
client run that."""


def _responses_document(turn: WireTurn) -> dict[str, Any]:
    done = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    ended = done if turn.say.truncated else {"status": "completed", "completed_at": turn.created}
    return (
        _response_frame(turn)
        | ended
        | {"output": responses_output(turn), "usage": _responses_usage(turn)}
    )


def responses_output(turn: WireTurn) -> list[dict[str, Any]]:
    """The reply's items, as a client sends them back and as `previous_response_id` remembers
    them."""
    items: list[dict[str, Any]] = []
    if turn.say.thinking:
        summary = [{"type": "summary_text", "text": turn.say.thinking}]
        sealed = (
            turn.id("Z0FBQUFB")
            if "reasoning.encrypted_content" in (turn.body.get("include") or ())
            else None
        )
        items.append(
            {
                "id": turn.id("rs_"),
                "type": "reasoning",
                "summary": summary,
                "encrypted_content": sealed,
            }
        )
    if turn.say.text:
        part = {"type": "output_text", "text": turn.say.text, "annotations": [], "logprobs": []}
        message = {
            "id": turn.id("msg_"),
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        items.append(message)
    return [*items, *(_responses_call(turn, place) for place in range(len(turn.say.calls)))]


def _responses_call(turn: WireTurn, place: int) -> dict[str, Any]:
    call, call_id = turn.say.calls[place], turn.call_id(_CALL, place)
    if call.name == _SEARCH and _is_searched_by_client(turn.body):
        item = {
            "type": "tool_search_call",
            "execution": "client",
            "call_id": call_id,
            "arguments": call.arguments,
        }
        return {"id": turn.id("tsc_", place), **item, "status": "completed"}
    item = {
        "type": "function_call",
        "call_id": call_id,
        "name": call.name,
        "arguments": arguments(call),
    }
    loaded = {"namespace": call.name} if call.name in _loaded_tools(turn.body) else {}
    return {"id": turn.id("fc_", place), **item, **loaded, "status": "completed"}


def _is_searched_by_client(body: Mapping[str, Any]) -> bool:
    return any(
        tool.get("type") == _SEARCH and tool.get("execution") == "client"
        for tool in body.get("tools") or ()
    )


def _loaded_tools(body: Mapping[str, Any]) -> set[str]:
    """The functions that search answers loaded."""
    given = body.get("input")
    items = [item for item in given if isinstance(item, Mapping)] if isinstance(given, list) else []
    found = [
        tool
        for item in items
        if item.get("type") == "tool_search_output"
        for tool in item.get("tools") or ()
    ]
    return {str(tool.get("name")) for tool in found}


def _responses_events(turn: WireTurn) -> Iterator[WireEvent]:
    for number, event in enumerate(_responses_stream(turn)):
        yield WireEvent(
            event["type"],
            to_json({"type": event["type"], "sequence_number": number} | event),
            _RESPONSES_EDGES.get(event["type"]),
            event.get("output_index"),
        )


def _responses_error(type: str, message: str, before: int) -> WireEvent:
    return WireEvent(
        "error",
        to_json(
            {
                "type": "error",
                "code": type,
                "message": message,
                "param": None,
                "sequence_number": before,
            }
        ),
    )


def _responses_stream(turn: WireTurn) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": _response_frame(turn)}
    yield {"type": "response.in_progress", "response": _response_frame(turn)}
    for index, item in enumerate(responses_output(turn)):
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": _empty_item(item),
        }
        yield from _item_events(item, index, turn.say.chunks)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {
        "type": "response.incomplete" if turn.say.truncated else "response.completed",
        "response": _responses_document(turn),
    }


def _empty_item(item: dict[str, Any]) -> dict[str, Any]:
    """An item as it first appears: empty."""
    empty: dict[str, dict[str, Any]] = {
        "reasoning": {"summary": []},
        "message": {"content": [], "status": "in_progress"},
        "function_call": {"arguments": "", "status": "in_progress"},
        "tool_search_call": {"arguments": {}, "status": "in_progress"},
    }
    return item | empty[item["type"]]


def _item_events(item: dict[str, Any], index: int, chunks: int) -> Iterator[dict[str, Any]]:
    """The events between an item's first appearance and its end."""
    place = {"item_id": item["id"], "output_index": index}
    if item["type"] == "reasoning":
        place |= {"summary_index": 0}
        part = item["summary"][0]
        yield {
            "type": "response.reasoning_summary_part.added",
            **place,
            "part": part | {"text": ""},
        }
        for piece in pieces(part["text"], chunks):
            yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **place, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **place, "part": part}
    elif item["type"] == "message":
        place |= {"content_index": 0}
        part = item["content"][0]
        yield {"type": "response.content_part.added", **place, "part": part | {"text": ""}}
        for piece in pieces(part["text"], chunks):
            yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **place, "part": part}
    elif item["type"] == "function_call":
        for piece in pieces(item["arguments"], chunks):
            yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
        yield {
            "type": "response.function_call_arguments.done",
            **place,
            "name": item["name"],
            "arguments": item["arguments"],
        }


def _response_frame(turn: WireTurn) -> dict[str, Any]:
    """The response before any output."""
    body = turn.body
    return {
        "id": turn.id("resp_"),
        "object": "response",
        "created_at": turn.created,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": turn.model,
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": body.get("reasoning") or {"effort": None, "summary": None},
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation", "disabled"),
        "usage": None,
        "user": body.get("user"),
        "metadata": body.get("metadata") or {},
    }


def _responses_usage(turn: WireTurn) -> dict[str, Any]:
    given, made = turn.charge.total, turn.output_tokens
    return {
        "input_tokens": given,
        "input_tokens_details": {
            "cached_tokens": turn.charge.read,
            "cache_write_tokens": turn.charge.written,
        },
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": turn.thinking_tokens},
        "total_tokens": given + made,
    }


_RESPONSES_EDGES = {
    "response.created": Edge.START,
    "response.completed": Edge.END,
    "response.incomplete": Edge.END,
}

WIRES: Mapping[DialectName, DialectWire] = {
    DialectName.ANTHROPIC: DialectWire(
        _anthropic_document,
        _anthropic_events,
        _anthropic_refusal,
        _anthropic_error,
        "request-id",
        _TOOL_USE,
    ),
    DialectName.OPENAI_CHAT: DialectWire(
        _chat_document, _chat_events, _openai_refusal, _chat_error, "x-request-id", _CALL
    ),
    DialectName.OPENAI_RESPONSES: DialectWire(
        _responses_document,
        _responses_events,
        _openai_refusal,
        _responses_error,
        "x-request-id",
        _CALL,
    ),
}
