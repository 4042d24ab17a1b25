"""The Responses API: a reply as a document, and as the numbered events that the official SDK
reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hotset.testing.upstream import chat
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
_SEARCH = "tool_search"
"""A script's call of this name is one of the provider's own search, where the request lets its
client run that."""


def document(turn: WireTurn) -> dict[str, Any]:
    done = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    ended = done if turn.say.truncated else {"status": "completed", "completed_at": turn.created}
    return _response(turn) | ended | {"output": output(turn), "usage": _usage(turn)}


def output(turn: WireTurn) -> list[dict[str, Any]]:
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
    return [*items, *(_call(turn, place) for place in range(len(turn.say.calls)))]


def _call(turn: WireTurn, place: int) -> dict[str, Any]:
    call, call_id = turn.say.calls[place], turn.call_id(CALL_PREFIX, place)
    if call.name == _SEARCH and _is_searched_by_client(turn.body):
        said = {
            "type": "tool_search_call",
            "execution": "client",
            "call_id": call_id,
            "arguments": call.arguments,
        }
        return {"id": turn.id("tsc_", place), **said, "status": "completed"}
    said = {
        "type": "function_call",
        "call_id": call_id,
        "name": call.name,
        "arguments": arguments(call),
    }
    loaded = {"namespace": call.name} if call.name in _loaded(turn.body) else {}
    return {"id": turn.id("fc_", place), **said, **loaded, "status": "completed"}


def _is_searched_by_client(body: Mapping[str, Any]) -> bool:
    return any(
        tool.get("type") == _SEARCH and tool.get("execution") == "client"
        for tool in body.get("tools") or ()
    )


def _loaded(body: Mapping[str, Any]) -> set[str]:
    """The functions that answers to a search brought."""
    said = body.get("input")
    items = [item for item in said if isinstance(item, Mapping)] if isinstance(said, list) else []
    found = [
        tool
        for item in items
        if item.get("type") == "tool_search_output"
        for tool in item.get("tools") or ()
    ]
    return {str(tool.get("name")) for tool in found}


def events(turn: WireTurn) -> tuple[WireEvent, ...]:
    return tuple(
        WireEvent(
            event["type"],
            to_json({"type": event["type"], "sequence_number": number} | event),
            _edge(event),
            event.get("output_index"),
        )
        for number, event in enumerate(_events(turn))
    )


def error_event(type: str, message: str, before: int) -> WireEvent:
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


def _events(turn: WireTurn) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": _response(turn)}
    yield {"type": "response.in_progress", "response": _response(turn)}
    for index, item in enumerate(output(turn)):
        yield {"type": "response.output_item.added", "output_index": index, "item": _opened(item)}
        yield from _filled(item, index, turn.say.chunks)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {
        "type": "response.incomplete" if turn.say.truncated else "response.completed",
        "response": document(turn),
    }


def _edge(event: dict[str, Any]) -> Edge | None:
    edges = {
        "response.created": Edge.START,
        "response.completed": Edge.END,
        "response.incomplete": Edge.END,
    }
    return edges.get(event["type"])


def _opened(item: dict[str, Any]) -> dict[str, Any]:
    """An item as it first appears: empty."""
    empty: dict[str, dict[str, Any]] = {
        "reasoning": {"summary": []},
        "message": {"content": [], "status": "in_progress"},
        "function_call": {"arguments": "", "status": "in_progress"},
        "tool_search_call": {"arguments": {}, "status": "in_progress"},
    }
    return item | empty[item["type"]]


def _filled(item: dict[str, Any], index: int, chunks: int) -> Iterator[dict[str, Any]]:
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


def _response(turn: WireTurn) -> dict[str, Any]:
    """The response as it is before anything was said."""
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


def _usage(turn: WireTurn) -> dict[str, Any]:
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


WIRE = DialectWire(document, events, chat.refusal, error_event, "x-request-id")
