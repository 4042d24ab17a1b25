"""The rules of OpenAI's Chat Completions, and of other providers of its dialect.

The rules need few fields of a message, and never its text: these fields are extracted once for its
bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hotset.dialects import json_bytes
from hotset.dialects.envelope import FactCache
from hotset.dialects.port import Invariant, Violation
from hotset.dialects.rules import broken_rule
from hotset.nouns.message import Message, Request
from hotset.nouns.page import Kind

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MISTRAL = re.compile(r"mistral|ministral|codestral|devstral|magistral|pixtral", re.IGNORECASE)
_GEMINI_3 = re.compile(r"gemini-(?:[3-9]|\d\d)", re.IGNORECASE)
_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?(?![\d.])")
_DEFERS_FROM = (5, 4)
_SIGNATURES = (b"thought_signature", b"__thought__", b"reasoning_details")
"""How gateways write a thought signature: Gemini's own field, inside the call's id, or in the
reasoning."""

INVARIANTS = (
    Invariant(
        18,
        "openai-chat",
        "An assistant message with tool_calls is followed by a tool message for every id.",
        "An assistant message with 'tool_calls' must be followed by tool messages responding "
        "to each 'tool_call_id'."
        " The following tool_call_ids did not have response messages: {ids}",
    ),
    Invariant(
        19,
        "openai-chat",
        "A tool message answers a tool call of the assistant message before it.",
        (
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
            "message with 'tool_calls'."
        ),
    ),
    Invariant(
        22,
        "openai",
        "A function's name has 1 to 64 of a-z, A-Z, 0-9, _ and -; tools are deferred only "
        "from gpt-5.4 on, and only beside"
        " a tool_search; one that the provider runs has a deferred tool to find.",
        "{problem}",
    ),
    Invariant(
        23,
        "mistral",
        "The last message is the user's or a tool's.",
        "Expected last role to be one of: [tool, user] but got {role}",
    ),
    Invariant(
        24,
        "gemini",
        "Every function call of the current turn comes back with its thought signature.",
        "Function call is missing a thought_signature in functionCall parts. ({where})",
    ),
)
broken = broken_rule(INVARIANTS)


def _facts(raw: bytes) -> dict[str, Any]:
    tree = json_bytes.lenient_object(raw)
    kept: dict[str, Any] = {
        name: tree[name] for name in ("role", "prefix", "tool_call_id") if name in tree
    }
    if "tool_calls" in tree:
        calls = tree["tool_calls"]
        kept["tool_calls"] = (
            [_call_facts(json_bytes.as_object(call)) for call in calls]
            if isinstance(calls, list)
            else calls
        )
    return kept


def _call_facts(call: dict[str, Any]) -> dict[str, Any]:
    function = json_bytes.as_object(call.get("function"))
    return {
        "id": call.get("id"),
        "function": {"name": function["name"]} if "name" in function else {},
    }


FACTS = FactCache(_facts)


def check(
    request: Request, original: Request | None = None, facts: FactCache[dict[str, Any]] = FACTS
) -> tuple[Violation, ...]:
    """`facts` caches the facts of messages."""
    messages = facts.of(request.messages)
    found = [
        *_calls_answered(messages),
        *_results_called(messages),
        *names_checked(request, _names_used(messages)),
        *deferral_checked(request),
        *_last_role(request, messages),
        *_check_signatures(request, messages),
    ]
    if original is not None and original is not request:
        found += _signatures_kept(request, original)
    return tuple(found)


def names_checked(request: Request, used: Iterable[tuple[str, str]]) -> Iterator[Violation]:
    """Rule 22, for declared tools and for those `used`, each with its place."""
    declared = [(f"tools.{index}.name", tool.name) for index, tool in enumerate(request.tools)]
    for where, name in (*declared, *used):
        if not _NAME.fullmatch(name):
            problem = (
                f"Invalid '{where}': string does not match pattern. Expected a string that "
                f"matches '^[a-zA-Z0-9_-]{{1,64}}$'."
            )
            yield broken(22, where, name, problem=problem)


def deferral_checked(request: Request) -> Iterator[Violation]:
    """Rule 22: tools are deferred only for models that support it."""
    version = _GPT.search(request.model)
    if version is None or (int(version[1]), int(version[2] or 0)) >= _DEFERS_FROM:
        return
    for index, tool in enumerate(request.tools):
        tree = json_bytes.lenient_object(tool.raw)
        if (
            tree.get("defer_loading") is True
            or json_bytes.as_object(tree.get("function")).get("defer_loading") is True
        ):
            where = f"tools.{index}.defer_loading"
            yield broken(
                22,
                where,
                tool.name,
                problem=f"'{where}' is not supported with model {request.model}",
            )


def _ids(tree: dict[str, Any]) -> list[str]:
    return [
        json_bytes.as_text(json_bytes.as_object(call).get("id"))
        for call in json_bytes.as_list(tree.get("tool_calls"))
    ]


def _calls_answered(messages: Sequence[dict[str, Any]]) -> Iterator[Violation]:
    for index, tree in enumerate(messages):
        if tree.get("role") != "assistant" or not (called := _ids(tree)):
            continue
        answered: set[str] = set()
        for later in messages[index + 1 :]:
            if later.get("role") != "tool":
                break
            answered.add(json_bytes.as_text(later.get("tool_call_id")))
        if missing := [id for id in called if id not in answered]:
            yield broken(18, f"messages.{index}", *missing, ids=", ".join(missing))


def _results_called(messages: Sequence[dict[str, Any]]) -> Iterator[Violation]:
    called: set[str] = set()
    for index, tree in enumerate(messages):
        if tree.get("role") != "tool":
            called = set(_ids(tree)) if tree.get("role") == "assistant" else set()
        elif (id := json_bytes.as_text(tree.get("tool_call_id"))) not in called:
            yield broken(19, f"messages.{index}", id)


def _names_used(messages: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for index, tree in enumerate(messages):
        for number, call in enumerate(json_bytes.as_list(tree.get("tool_calls"))):
            function = json_bytes.as_object(json_bytes.as_object(call).get("function"))
            if "name" in function:
                yield (
                    f"messages.{index}.tool_calls.{number}.function.name",
                    json_bytes.as_text(function["name"]),
                )


def _last_role(request: Request, messages: Sequence[dict[str, Any]]) -> Iterator[Violation]:
    if not messages or not _MISTRAL.search(request.model):
        return
    last = messages[-1]
    if last.get("role") == "assistant" and last.get("prefix") is not True:
        yield broken(23, f"messages.{len(messages) - 1}", role="assistant")


def _check_signatures(request: Request, messages: Sequence[dict[str, Any]]) -> Iterator[Violation]:
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
    signed = {
        call for message in original.messages if _is_signed(message) for call in _call_ids(message)
    }
    for index, message in enumerate(request.messages):
        if signed.intersection(called := _call_ids(message)) and not _is_signed(message):
            yield broken(24, f"messages.{index}.tool_calls.0", called[0])


def _call_ids(message: Message) -> list[str]:
    return [part.call for part in message.parts if part.kind.family is Kind.TOOL_CALL and part.call]


def _is_signed(message: Message) -> bool:
    return any(mark in message.raw for mark in _SIGNATURES)
