"""The rules of OpenAI, and of providers behind its dialects, applied to a request and to what was changed in it.

The rules look at few fields of a message, and never at what it says: these fields are cut out once for its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from hotset.dialects import wire
from hotset.dialects.checks_recall import Recall
from hotset.dialects.invariants import broken
from hotset.dialects.port import Violation
from hotset.nouns.message import Message, Request
from hotset.nouns.page import Kind

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MISTRAL = re.compile(r"mistral|ministral|codestral|devstral|magistral|pixtral", re.IGNORECASE)
_GEMINI_3 = re.compile(r"gemini-(?:[3-9]|\d\d)", re.IGNORECASE)
_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?(?![\d.])")
_DEFERS_FROM = (5, 4)
_SIGNATURES = (b"thought_signature", b"__thought__", b"reasoning_details")
"""How gateways write a thought signature: Gemini's own field, inside the call's id, among reasoning."""

_PAIRED = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
}
_OUTPUTS = {output: call for call, output in _PAIRED.items()}
_ANSWERED_BY_CLIENT = ("function_call", "custom_tool_call", "computer_call", "tool_search_call")


def check_chat(request: Request, original: Request | None, recall: Recall[dict[str, Any]] | None = None) -> tuple[Violation, ...]:
    """`recall` is where what is known of messages is remembered: where everybody's is, unless told otherwise."""
    messages = (recall or _CHAT).of(request.messages)
    found = [
        *_calls_answered(messages),
        *_results_called(messages),
        *_names(request, _chat_names(messages)),
        *_deferred(request),
        *_last_role(request, messages),
        *_signed(request, messages),
    ]
    if original is not None and original is not request:
        found += _signatures_kept(request, original)
    return tuple(found)


def check_responses(
    request: Request, original: Request | None, recall: Recall[dict[str, Any]] | None = None
) -> tuple[Violation, ...]:
    recall = recall or _RESPONSES
    items = recall.of(request.messages)
    names = [
        (f"input.{i}.name", wire.as_text(item["name"]))
        for i, item in enumerate(items)
        if item.get("type") == "function_call" and "name" in item
    ]
    found = [
        *_items_paired(request, items, recall.of(original.messages) if original is not None else ()),
        *_reasoning_followed(items),
        *_names(request, names),
        *_deferred(request),
        *_searched(request),
    ]
    if original is not None and original is not request:
        found += _reasoning_kept(items, recall.of(original.messages))
    return tuple(found)


def fresh_chat_recall() -> Recall[dict[str, Any]]:
    """A memory that knows no message."""
    return Recall(_chat_fields)


def fresh_responses_recall() -> Recall[dict[str, Any]]:
    return Recall(_item_fields)


def _chat_fields(raw: bytes) -> dict[str, Any]:
    tree = wire.as_object(wire.lenient(raw))
    kept: dict[str, Any] = {name: tree[name] for name in ("role", "prefix", "tool_call_id") if name in tree}
    if "tool_calls" in tree:
        calls = tree["tool_calls"]
        kept["tool_calls"] = [_call_fields(wire.as_object(call)) for call in calls] if isinstance(calls, list) else calls
    return kept


def _call_fields(call: dict[str, Any]) -> dict[str, Any]:
    function = wire.as_object(call.get("function"))
    return {"id": call.get("id"), "function": {"name": function["name"]} if "name" in function else {}}


def _item_fields(raw: bytes) -> dict[str, Any]:
    tree = wire.as_object(wire.lenient(raw))
    if tree.get("type") == "reasoning":
        return tree  # it may not be altered
    return {name: tree[name] for name in ("type", "id", "call_id", "role", "name", "async", "execution") if name in tree}


_CHAT = fresh_chat_recall()
_RESPONSES = fresh_responses_recall()


def _ids(tree: dict[str, Any]) -> list[str]:
    return [wire.as_text(wire.as_object(call).get("id")) for call in wire.as_list(tree.get("tool_calls"))]


def _calls_answered(messages: Sequence[dict[str, Any]]) -> Iterator[Violation]:
    for index, tree in enumerate(messages):
        if tree.get("role") != "assistant" or not (called := _ids(tree)):
            continue
        answered: set[str] = set()
        for later in messages[index + 1 :]:
            if later.get("role") != "tool":
                break
            answered.add(wire.as_text(later.get("tool_call_id")))
        if missing := [id for id in called if id not in answered]:
            yield broken(18, f"messages.{index}", *missing, ids=", ".join(missing))


def _results_called(messages: Sequence[dict[str, Any]]) -> Iterator[Violation]:
    called: set[str] = set()
    for index, tree in enumerate(messages):
        if tree.get("role") != "tool":
            called = set(_ids(tree)) if tree.get("role") == "assistant" else set()
        elif (id := wire.as_text(tree.get("tool_call_id"))) not in called:
            yield broken(19, f"messages.{index}", id)


def _chat_names(messages: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for index, tree in enumerate(messages):
        for number, call in enumerate(wire.as_list(tree.get("tool_calls"))):
            function = wire.as_object(wire.as_object(call).get("function"))
            if "name" in function:
                yield f"messages.{index}.tool_calls.{number}.function.name", wire.as_text(function["name"])


def _names(request: Request, used: Sequence[tuple[str, str]] | Iterator[tuple[str, str]]) -> Iterator[Violation]:
    declared = [(f"tools.{index}.name", tool.name) for index, tool in enumerate(request.tools)]
    for where, name in (*declared, *used):
        if not _NAME.fullmatch(name):
            problem = (
                f"Invalid '{where}': string does not match pattern. Expected a string that matches '^[a-zA-Z0-9_-]{{1,64}}$'."
            )
            yield broken(22, where, name, problem=problem)


def _deferred(request: Request) -> Iterator[Violation]:
    version = _GPT.search(request.model)
    if version is None or (int(version[1]), int(version[2] or 0)) >= _DEFERS_FROM:
        return
    for index, tool in enumerate(request.tools):
        tree = wire.as_object(wire.lenient(tool.raw))
        if tree.get("defer_loading") is True or wire.as_object(tree.get("function")).get("defer_loading") is True:
            where = f"tools.{index}.defer_loading"
            yield broken(22, where, tool.name, problem=f"'{where}' is not supported with model {request.model}")


def _searched(request: Request) -> Iterator[Violation]:
    """Deferred tools and the search for them come together, unless the client runs the search and brings the tools itself."""
    telling = [tool.raw for tool in request.tools if b"defer_loading" in tool.raw or tool.name == "tool_search"]
    trees = [wire.as_object(wire.lenient(raw)) for raw in telling]
    searches = [tree for tree in trees if tree.get("type") == "tool_search"]
    deferred = any(_has_deferred(tree) for tree in trees)
    if deferred and not searches:
        problem = "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search."
        yield broken(22, "tools", problem=problem)
    if not deferred and any(tree.get("execution") != "client" for tree in searches):
        problem = "Invalid Value: 'tools.tool_search'. tools.tool_search requires at least one deferred tool."
        yield broken(22, "tools", problem=problem)


def _has_deferred(tool: dict[str, Any]) -> bool:
    """Is it deferred, or one of a namespace's?"""
    inner = map(wire.as_object, wire.as_list(tool.get("tools")))
    return any(each.get("defer_loading") is True for each in (tool, *inner))


def _last_role(request: Request, messages: Sequence[dict[str, Any]]) -> Iterator[Violation]:
    if not messages or not _MISTRAL.search(request.model):
        return
    last = messages[-1]
    if last.get("role") == "assistant" and last.get("prefix") is not True:
        yield broken(23, f"messages.{len(messages) - 1}", role="assistant")


def _signed(request: Request, messages: Sequence[dict[str, Any]]) -> Iterator[Violation]:
    """Rule 24: the first call of each step of the current turn is signed."""
    if not _GEMINI_3.search(request.model):
        return
    start = max((i for i, tree in enumerate(messages) if tree.get("role") == "user"), default=-1)
    for index in range(start + 1, len(messages)):
        if messages[index].get("tool_calls") and not _is_signed(request.messages[index]):
            yield broken(24, f"messages.{index}.tool_calls.0", *_ids(messages[index])[:1])


def _signatures_kept(request: Request, original: Request) -> Iterator[Violation]:
    if not _GEMINI_3.search(request.model):
        return
    signed = {call for message in original.messages if _is_signed(message) for call in _called(message)}
    for index, message in enumerate(request.messages):
        if signed.intersection(called := _called(message)) and not _is_signed(message):
            yield broken(24, f"messages.{index}.tool_calls.0", called[0])


def _called(message: Message) -> list[str]:
    return [part.call for part in message.parts if part.kind.family is Kind.TOOL_CALL and part.call]


def _is_signed(message: Message) -> bool:
    return any(mark in message.raw for mark in _SIGNATURES)


def _items_paired(
    request: Request, items: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]] = ()
) -> Iterator[Violation]:
    """Rule 20. What the provider holds itself (a previous response, a reference) can hold the other half, but not a call that
    stood in the client's own request, which was `before`."""
    theirs = {(wire.as_text(item.get("type")), _call_id(item)) for item in before}
    held = bool(request.previous or any(hint.startswith("conversation=") for hint in request.hints))
    held = held or any(item.get("type") == "item_reference" for item in items)
    called: set[tuple[str, str]] = set()
    answered = {(_OUTPUTS[kind], _call_id(item)) for item in items if (kind := item.get("type")) in _OUTPUTS}
    for index, item in enumerate(items):
        kind, id = wire.as_text(item.get("type")), _call_id(item)
        if item.get("execution") == "server":
            continue  # a search of the provider's own, which has no call_id
        if kind in _PAIRED:
            called.add((kind, id))
            if kind in _ANSWERED_BY_CLIENT and (kind, id) not in answered and item.get("async") is not True:
                yield broken(20, f"input.{index}", id, problem=f"No tool output found for {_spoken(kind)} {id}.")
        elif kind in _OUTPUTS and (call := (_OUTPUTS[kind], id)) not in called and (not held or call in theirs):
            problem = f"No tool call found for {_spoken(_OUTPUTS[kind])} output with call_id {id}."
            yield broken(20, f"input.{index}", id, problem=problem)


def _call_id(item: dict[str, Any]) -> str:
    return wire.as_text(item.get("call_id"))


def _spoken(kind: str) -> str:
    return kind.replace("_", " ")


def _reasoning_followed(items: Sequence[dict[str, Any]]) -> Iterator[Violation]:
    """Rule 21, first half. Items without an id are not held together by the provider."""
    for index, item in enumerate(items):
        if item.get("type") != "reasoning" or not item.get("id"):
            continue
        following = next((each for each in items[index + 1 :] if each.get("type") != "reasoning"), None)
        if following is None or not _made_by_model(following):
            problem = f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
            yield broken(21, f"input.{index}", wire.as_text(item["id"]), problem=problem)


def _made_by_model(item: dict[str, Any]) -> bool:
    kind = item.get("type", "message")
    return item.get("role") == "assistant" if kind == "message" else not wire.as_text(kind).endswith("_output")


def _reasoning_kept(items: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]]) -> Iterator[Violation]:
    """Rule 21, second half: an item that came with reasoning keeps it, as it was."""
    led_by = dict(_led(before))
    leads_now = dict(_led(items))
    for index, item in enumerate(items):
        key = _key(item)
        if key in led_by and leads_now.get(key) != led_by[key]:
            reasoning = wire.as_text(led_by[key].get("id"))
            problem = (
                f"Item '{key}' of type '{item.get('type')}' was provided without its required 'reasoning' item: '{reasoning}'."
            )
            yield broken(21, f"input.{index}", key, problem=problem)


def _led(items: Sequence[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for first, second in pairwise(items):
        if first.get("type") == "reasoning" and _made_by_model(second) and (key := _key(second)):
            yield key, first


def _key(item: dict[str, Any]) -> str:
    return wire.as_text(item.get("id")) or _call_id(item)
