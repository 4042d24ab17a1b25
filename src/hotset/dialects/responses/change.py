"""Changes to a Responses request."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from hotset.dialects import change, envelope, json_bytes
from hotset.dialects.change import Slot
from hotset.dialects.chat.change import is_open
from hotset.dialects.json_bytes import JsonNode
from hotset.dialects.responses.parse import CALLS, understand
from hotset.nouns.link import Link
from hotset.nouns.message import Answer, ClientTool, Loading, Message, Request, ToolSpec
from hotset.nouns.page import Chain
from hotset.nouns.tool import FIND_TOOLS
from hotset.nouns.window import Hidden

SEARCH, SEARCH_CALL, SEARCH_OUTPUT = "tool_search", "tool_search_call", "tool_search_output"
"""The provider's own tool search, a call of it, and the answer."""

_OF_CLIENTS_TOOLS = ("function_call_output", "custom_tool_call_output")
"""Outputs that may be a text or a list of any blocks; the others have the shape that their tool
requires."""

_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
"""Text blocks, and the member that holds the text."""


def reword(message: Message, words: Mapping[int, bytes]) -> Message:
    return change.reword(message, words, slots)


def reveal(request: Request, links: Sequence[Link], hidden: Mapping[Chain, Hidden]) -> Request:
    return change.reveal(request, links, hidden, understand, slots)


def slots(item: JsonNode) -> Iterator[Slot | None]:
    members = item.members()
    kind = json_bytes.text_of(members, "type") if "type" in members else "message"
    if kind == "message":
        yield from _message_slots(members)
    elif kind in CALLS:
        yield _call_slot(kind, members.get(CALLS[kind]))
    elif kind.endswith("_output"):
        yield from _output_slots(kind, item, members.get("output"))


def offer(body: bytes, tools: Sequence[ToolSpec]) -> bytes:
    outer = envelope.open_envelope(body, "input")
    names = [
        tool.name
        for tool in outer.tools("tools", lambda tool: json_bytes.as_text(tool.get("name")))
    ]
    return change.offer(outer, declare(tools), names)


def withhold(body: bytes, unwanted: Callable[[bytes], bool]) -> bytes:
    return change.withhold(envelope.open_envelope(body, "input"), unwanted)


def declare(tools: Sequence[ToolSpec]) -> tuple[ClientTool, ...]:
    """Tools that load when found are only in the answer to the search that found them."""
    return change.declare((tool for tool in tools if tool.loading is not Loading.WHEN_FOUND), _tool)


def can_defer(request: Request) -> bool:
    """False if the client has a search of its own, since only one is allowed, or if the provider
    stores the reply: a client that continues it by its id would get calls of tools it does not
    know."""
    return change.params(request).get("store") is False and not any(
        tool.name == SEARCH for tool in request.tools
    )


def answer(results: Sequence[Answer]) -> tuple[bytes, ...]:
    return tuple(
        json_bytes.encode(
            _search_output(each) if each.searched else _function_output(each.call, _output(each))
        )
        for each in results
    )


def loaded_tools(raw: bytes) -> tuple[str, ...]:
    if SEARCH_OUTPUT.encode() not in raw:
        return ()
    match json_bytes.lenient(raw):
        case {"type": "tool_search_output", "execution": "client", "tools": [*loaded]}:
            return tuple(
                json_bytes.as_text(json_bytes.as_object(tool).get("name")) for tool in loaded
            )
        case _:
            return ()


def spell_out(raw: bytes, words: Mapping[str, str]) -> bytes:
    item = json_bytes.lenient_object(raw)
    call = json_bytes.as_text(item.get("call_id"))
    match item:  # the provider's own searches are left alone
        case {"type": "tool_search_call", "execution": "client"}:
            given = json_bytes.encode(item.get("arguments")).decode()
            return json_bytes.encode(
                {"type": "function_call", "call_id": call, "name": FIND_TOOLS, "arguments": given}
            )
        case {"type": "tool_search_output", "execution": "client"}:
            return json_bytes.encode(
                _function_output(
                    call,
                    "\n".join(words.get(name, name) for name in loaded_tools(raw)) or "(nothing)",
                )
            )
        case {"type": "function_call", "name": str(name), "namespace": str(space)} if (
            name == space
        ):  # a function that was loaded
            return json_bytes.encode(
                {key: value for key, value in item.items() if key != "namespace"}
            )
        case _:
            return raw


def say(text: str) -> Message:
    return understand(change.user_message(text))


def injectable(request: Request, names: Collection[str]) -> bool:
    fields = change.params(request)
    if fields.get("conversation") or fields.get("background"):
        return False  # we cannot splice into what the provider stores or runs alone
    if change.is_structured(json_bytes.as_object(fields.get("text")).get("format")):
        return False
    return is_open(request, names, ("max_output_tokens",))


def _message_slots(members: dict[str, JsonNode]) -> Iterator[Slot | None]:
    content = members.get("content")
    if json_bytes.text_of(members, "role") != "assistant" or content is None:
        return
    if content.is_text:
        yield change.text(content)
    yield from map(_text_slot, content.elements())


def _text_slot(block: JsonNode) -> Slot | None:
    """Slot for a block's text; None for another kind of block."""
    members = block.members()
    name = _TEXTS.get(json_bytes.text_of(members, "type"), "")
    return change.text(members[name]) if json_bytes.are_texts(members, name) else None


def _call_slot(kind: str, given: JsonNode | None) -> Slot | None:
    if given is None or given.raw == b"null":
        return None
    is_free = kind == "custom_tool_call" and given.is_text
    return change.text(given) if is_free else change.arguments(given)


def _output_slots(kind: str, item: JsonNode, output: JsonNode | None) -> Iterator[Slot | None]:
    is_free = kind in _OF_CLIENTS_TOOLS
    blocks = output.elements() if output else ()
    if not blocks:
        is_text = output is not None and output.is_text
        yield change.text_member(item, "output", output) if is_free or is_text else None
    for block in blocks:
        yield _text_slot(block) or (change.text_block(block, "input_text") if is_free else None)


def _search_output(given: Answer) -> dict[str, Any]:
    """The tools that a search found. It has no room for text: a failed search found nothing."""
    tools = [_function(each) | {"defer_loading": True} for each in given.tools]
    return {
        "type": SEARCH_OUTPUT,
        "call_id": given.call,
        "execution": "client",
        "status": "completed",
        "tools": tools,
    }


def _function_output(call: str, output: str | list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call, "output": output}


def _output(given: Answer) -> str | list[dict[str, Any]]:
    text = change.plain(given.text)
    images = [
        {"type": "input_image", "image_url": f"data:{each.media};base64,{each.data}"}
        for each in given.images
    ]
    return [{"type": "input_text", "text": text}, *images] if images else text


def _tool(tool: ToolSpec) -> dict[str, Any]:
    if tool.loading is not Loading.FINDS:
        return _function(tool)
    return {
        "type": SEARCH,
        "execution": "client",
        "description": tool.description,
        "parameters": change.schema(tool),
    }


def _function(tool: ToolSpec) -> dict[str, Any]:
    # Left out, `strict` is true here, and every parameter would have to be required.
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": change.schema(tool),
        "strict": False,
    }
