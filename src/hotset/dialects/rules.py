"""The providers' rules that a changed request must never break, as data, and which one an error reply is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hotset.dialects import wire
from hotset.dialects.port import Violation


@dataclass(frozen=True, slots=True)
class Invariant:
    number: int
    provider: str
    rule: str
    text: str
    """The provider's error text when it is broken, with gaps."""
    codes: tuple[str, ...] = ()
    """Error codes that mean this rule and no other."""
    pattern: str = ""
    """What its error text looks like; the wording may change, so codes come first."""


_EVERY = (
    Invariant(
        1,
        "anthropic",
        "Every tool_use has its tool_result in the next message.",
        "{where}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}."
        " Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        pattern=r"`tool_use` ids were found without `tool_result`",
    ),
    Invariant(
        2,
        "anthropic",
        "Every tool_result has its tool_use in the previous message.",
        "{where}: unexpected `tool_use_id` found in `tool_result` blocks: {id}."
        " Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
        pattern=r"unexpected `tool_use_id` found in `tool_result`",
    ),
    Invariant(
        3,
        "anthropic",
        "The results of parallel calls stand together in one turn, before any other block.",
        "{where}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}."
        " Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    ),
    Invariant(
        4,
        "anthropic",
        "The ids of tool_use blocks are unique.",
        "{where}: `tool_use` ids must be unique",
        pattern=r"`tool_use` ids must be unique",
    ),
    Invariant(
        5,
        "anthropic",
        "A server tool's result follows its server_tool_use in the same message, untouched.",
        "{where}: unexpected `tool_use_id` found in `{type}` blocks: {id}."
        " Each `{type}` block must have a corresponding `server_tool_use` block before it.",
        pattern=r"unexpected `tool_use_id` found in `\w+_tool_result`|corresponding `(?:server_tool_use|\w+_tool_result)`",
    ),
    Invariant(
        6,
        "anthropic",
        "Thinking in the latest assistant message stays as it was, in order.",
        "{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
        " These blocks must remain as they were in the original response.",
        pattern=r"blocks in the latest assistant message cannot be modified|Invalid `signature` in `thinking` block",
    ),
    Invariant(
        7,
        "anthropic",
        "With thinking on, the assistant turn that called the last tools starts with thinking.",
        "{where}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{type}`. When `thinking` is enabled,"
        " a final `assistant` message must start with a thinking block"
        " (preceeding the lastmost set of `tool_use` and `tool_result` blocks).",
        pattern=r"Expected `thinking` or `redacted_thinking`, but found",
    ),
    Invariant(
        8,
        "anthropic",
        "With thinking off, a final assistant message holds no thinking.",
        "{where}: When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`.",
        pattern=r"When thinking is disabled, an `assistant` message",
    ),
    Invariant(
        9,
        "anthropic",
        "At most 4 blocks over tools, system and messages carry cache_control.",
        "A maximum of 4 blocks with cache_control may be provided. Found {count}.",
        pattern=r"A maximum of \d+ blocks with cache_control",
    ),
    Invariant(
        10,
        "anthropic",
        "Tool names are unique, every tool that is referred to is declared in this request, and of those that are deferred"
        " none is marked for the cache, none is a search, and not all are.",
        "{problem}",
        codes=("tool_name_conflict", "tool_reference_unresolved", "available_tools_limit_exceeded"),
        pattern=r"Tool names must be unique|Tool reference '.*' (?:not found|has no corresponding)|have defer_loading set"
        r"|cannot have (?:both )?defer_loading",
    ),
    Invariant(
        11,
        "anthropic",
        "No message and no text block is empty, and no block carries what only replies carry.",
        "{where}: {problem}",
        pattern=r"must have non-empty content|text content blocks must|Extra inputs are not permitted"
        r"|does not match any of the expected tags",
    ),
    Invariant(
        12,
        "anthropic",
        "The system prompt stands at the top level; a system message never opens the conversation.",
        "{where}: use the top-level 'system' parameter for the initial system prompt",
        pattern=r"use the top-level '?`?system",
    ),
    Invariant(
        13,
        "anthropic",
        "A request has at most 100,000 messages; no assistant message begins or ends it that its client did not put there.",
        "{where}: {problem}",
        pattern=r"prefill|too many messages|must use the \"user\" role|must end with a user message",
    ),
    Invariant(
        14,
        "anthropic",
        "At most 100 images, none beyond 8000 pixels, nor beyond 2000 where there are more than 20.",
        "{where}: {problem}",
        pattern=r"image dimensions exceed|[Tt]oo many images|image exceeds",
    ),
    Invariant(
        15,
        "anthropic",
        "The body is at most 32 MB, the prompt no longer than the window.",
        "Request exceeds the maximum size: {size} bytes > {limit} maximum",
        codes=("request_too_large", "request_body_too_large_after_decoding"),
        pattern=r"prompt is too long|exceeds the maximum size|input length and `max_tokens` exceed",
    ),
    Invariant(
        16,
        "anthropic",
        "A compaction block stays where it was, with its content, signature and tool changes.",
        "{where}: {problem}",
        codes=(
            "compaction_block_misplaced",
            "compaction_block_ambiguous",
            "compaction_content_mismatch",
            "compaction_signature_invalid",
            "compaction_tool_changes_mismatch",
            "compaction_incomplete_turn",
        ),
    ),
    Invariant(
        17,
        "anthropic",
        "In a thread, every field but the messages stays what the thread was made with.",
        "{where}: differs from the value stored with the thread",
        codes=("thread_fingerprint_mismatch",),
    ),
    Invariant(
        18,
        "openai-chat",
        "An assistant message with tool_calls is followed by a tool message for every id.",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
        " The following tool_call_ids did not have response messages: {ids}",
        pattern=r"must be followed by tool messages responding to each",
    ),
    Invariant(
        19,
        "openai-chat",
        "A tool message answers a tool call of the assistant message before it.",
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        pattern=r"messages with role 'tool' must be a response",
    ),
    Invariant(
        20,
        "openai-responses",
        "Every call item has its output item, and every output its call, by call_id.",
        "{problem}",
        pattern=r"No tool (?:output|call) found for",
    ),
    Invariant(
        21,
        "openai-responses",
        "A reasoning item is followed by the item it led to, and that item keeps its reasoning.",
        "{problem}",
        pattern=r"was provided without its required",
    ),
    Invariant(
        22,
        "openai",
        "A function's name has 1 to 64 of a-z, A-Z, 0-9, _ and -; tools are deferred only from gpt-5.4 on, and only beside"
        " a tool_search; one that the provider runs has a deferred tool to find.",
        "{problem}",
        pattern=r"string does not match pattern|Invalid '(?:tools|messages|input)\[.*name'"
        r"|defer_loading|tools\.tool_search",
    ),
    Invariant(
        23,
        "mistral",
        "The last message is the user's or a tool's.",
        "Expected last role to be one of: [tool, user] but got {role}",
        pattern=r"Expected last role",
    ),
    Invariant(
        24,
        "gemini",
        "Every function call of the current turn comes back with its thought signature.",
        "Function call is missing a thought_signature in functionCall parts. ({where})",
        pattern=r"missing a `?thought_signature",
    ),
    Invariant(
        25,
        "all",
        "An error is told by its code or type; its wording may change. Enforced by `explain`, not by a check of requests.",
        "",
    ),
)

INVARIANTS = {each.number: each for each in _EVERY}
_BY_CODE = {code: each.number for each in _EVERY for code in each.codes}
_BY_TEXT = tuple((re.compile(each.pattern), each.number) for each in _EVERY if each.pattern)


def broken(number: int, where: str, *about: str, **gaps: Any) -> Violation:
    """`about` names the calls or tools that it is about."""
    return Violation(number, where, INVARIANTS[number].text.format(where=where, **gaps), about)


def beyond(found: Iterable[Violation], theirs: Iterable[Violation]) -> Violation | None:
    """The first violation that is not the client's own: the same rule, for the same call or tool, counts once for each."""
    allowed = Counter(key for each in theirs for key in _keys(each))
    for each in found:
        keys = Counter(_keys(each))
        if keys - allowed:
            return each
        allowed -= keys
    return None


def _keys(violation: Violation) -> list[tuple[int, str]]:
    return [(violation.invariant, name) for name in violation.about or ("",)]


def explain(status: int, body: bytes) -> int | None:
    """The rule that an error reply is about, by its code, then its type, then its text; None where it is another matter."""
    if status < 400:
        return None
    tree = wire.lenient_object(body)
    error = wire.as_object(tree.get("error")) or tree
    details = wire.as_object(error.get("details"))
    for name in (details.get("error_code"), error.get("error_code"), error.get("code"), error.get("type")):
        if isinstance(name, str) and name in _BY_CODE:
            return _BY_CODE[name]
    if status == 413 or error.get("code") == "context_length_exceeded":
        return 15
    if status not in (400, 422):
        return None  # overload, credentials and limits are no matter of the body, whatever they say
    text = wire.as_text(error.get("message"))
    return next((number for pattern, number in _BY_TEXT if pattern.search(text)), None)
