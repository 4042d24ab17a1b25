"""The rules of OpenAI's Responses API.

The rules need few fields of an item, and never its text: these fields are extracted once for its
bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from hotset.dialects import json_bytes
from hotset.dialects.chat.rules import INVARIANTS as SHARED, deferral_checked, names_checked
from hotset.dialects.envelope import FactCache
from hotset.dialects.port import Invariant, Violation
from hotset.dialects.rules import broken_rule
from hotset.nouns.message import Request

INVARIANTS = (
    Invariant(
        20,
        "openai-responses",
        "Every call item has its output item, and every output its call, by call_id.",
        "{problem}",
    ),
    Invariant(
        21,
        "openai-responses",
        "A reasoning item is followed by the item it led to, and that item keeps its reasoning.",
        "{problem}",
    ),
)
broken = broken_rule((*SHARED, *INVARIANTS))

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


def _facts(raw: bytes) -> dict[str, Any]:
    tree = json_bytes.lenient_object(raw)
    if tree.get("type") == "reasoning":
        return tree  # it may not be altered
    return {
        name: tree[name]
        for name in ("type", "id", "call_id", "role", "name", "async", "execution")
        if name in tree
    }


FACTS = FactCache(_facts)


def check(
    request: Request, original: Request | None = None, facts: FactCache[dict[str, Any]] = FACTS
) -> tuple[Violation, ...]:
    """`facts` caches the facts of items."""
    items = facts.of(request.messages)
    before = facts.of(original.messages) if original is not None else []
    names = [
        (f"input.{i}.name", json_bytes.as_text(item["name"]))
        for i, item in enumerate(items)
        if item.get("type") == "function_call" and "name" in item
    ]
    found = [
        *_items_paired(request, items, before),
        *_reasoning_followed(items),
        *names_checked(request, names),
        *deferral_checked(request),
        *_check_search(request),
    ]
    if original is not None and original is not request:
        found += _reasoning_kept(items, before)
    return tuple(found)


def _check_search(request: Request) -> Iterator[Violation]:
    """Deferred tools require the search for them, unless the client runs the search and adds the
    tools itself."""
    raws = [
        tool.raw
        for tool in request.tools
        if b"defer_loading" in tool.raw or tool.name == "tool_search"
    ]
    trees = [json_bytes.lenient_object(raw) for raw in raws]
    searches = [tree for tree in trees if tree.get("type") == "tool_search"]
    deferred = any(_has_deferred(tree) for tree in trees)
    if deferred and not searches:
        problem = "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search."
        yield broken(22, "tools", problem=problem)
    if not deferred and any(tree.get("execution") != "client" for tree in searches):
        problem = (
            "Invalid Value: 'tools.tool_search'. tools.tool_search "
            "requires at least one deferred "
            "tool."
        )
        yield broken(22, "tools", problem=problem)


def _has_deferred(tool: dict[str, Any]) -> bool:
    """True if the tool, or one in the namespace, is deferred."""
    inner = map(json_bytes.as_object, json_bytes.as_list(tool.get("tools")))
    return any(each.get("defer_loading") is True for each in (tool, *inner))


def _items_paired(
    request: Request, items: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]] = ()
) -> Iterator[Violation]:
    """Rule 20. What the provider stores (a previous response, a reference) can have the other half,
    but not of a call in the client's own request, `before`."""
    theirs = {(json_bytes.as_text(item.get("type")), _call_id(item)) for item in before}
    held = bool(request.previous or any(hint.startswith("conversation=") for hint in request.hints))
    held = held or any(item.get("type") == "item_reference" for item in items)
    called: set[tuple[str, str]] = set()
    answered = {
        (_OUTPUTS[kind], _call_id(item)) for item in items if (kind := item.get("type")) in _OUTPUTS
    }
    for index, item in enumerate(items):
        kind, id = json_bytes.as_text(item.get("type")), _call_id(item)
        if item.get("execution") == "server":
            continue  # a search of the provider's own, which has no call_id
        if kind in _PAIRED:
            called.add((kind, id))
            if (
                kind in _ANSWERED_BY_CLIENT
                and (kind, id) not in answered
                and item.get("async") is not True
            ):
                yield broken(
                    20,
                    f"input.{index}",
                    id,
                    problem=f"No tool output found for {_type_words(kind)} {id}.",
                )
        elif (
            kind in _OUTPUTS
            and (call := (_OUTPUTS[kind], id)) not in called
            and (not held or call in theirs)
        ):
            problem = (
                f"No tool call found for {_type_words(_OUTPUTS[kind])} output with call_id {id}."
            )
            yield broken(20, f"input.{index}", id, problem=problem)


def _call_id(item: dict[str, Any]) -> str:
    return json_bytes.as_text(item.get("call_id"))


def _type_words(kind: str) -> str:
    return kind.replace("_", " ")


def _reasoning_followed(items: Sequence[dict[str, Any]]) -> Iterator[Violation]:
    """Rule 21, first half. The provider does not link items without an id."""
    for index, item in enumerate(items):
        if item.get("type") != "reasoning" or not item.get("id"):
            continue
        following = next(
            (each for each in items[index + 1 :] if each.get("type") != "reasoning"), None
        )
        if following is None or not _made_by_model(following):
            problem = (
                f"Item '{item['id']}' of type 'reasoning' was provided without its required "
                f"following item."
            )
            yield broken(21, f"input.{index}", json_bytes.as_text(item["id"]), problem=problem)


def _made_by_model(item: dict[str, Any]) -> bool:
    kind = item.get("type", "message")
    return (
        item.get("role") == "assistant"
        if kind == "message"
        else not json_bytes.as_text(kind).endswith("_output")
    )


def _reasoning_kept(
    items: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]]
) -> Iterator[Violation]:
    """Rule 21, second half: an item that came with reasoning keeps it unchanged."""
    led_by = dict(_reasoning_pairs(before))
    leads_now = dict(_reasoning_pairs(items))
    for index, item in enumerate(items):
        key = _key(item)
        if key in led_by and leads_now.get(key) != led_by[key]:
            reasoning = json_bytes.as_text(led_by[key].get("id"))
            problem = (
                f"Item '{key}' of type '{item.get('type')}' was "
                f"provided without its required "
                f"'reasoning' item: '{reasoning}'."
            )
            yield broken(21, f"input.{index}", key, problem=problem)


def _reasoning_pairs(items: Sequence[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for first, second in pairwise(items):
        if first.get("type") == "reasoning" and _made_by_model(second) and (key := _key(second)):
            yield key, first


def _key(item: dict[str, Any]) -> str:
    return json_bytes.as_text(item.get("id")) or _call_id(item)
