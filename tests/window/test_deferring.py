"""Who is asked to defer tools, and how our list looks there."""

from __future__ import annotations

import pytest

from hotset.nouns.message import DialectName, Loading, ToolSpec
from hotset.nouns.tool import Deferring
from hotset.window.deferring import ANCHOR, PROVIDERS, at_once, deferring, is_refusal, is_taken, words_for
from hotset.window.toolbox_tools import FIND, TOOLBOX_SPECS, USE

ANTHROPIC, RESPONSES, CHAT = DialectName.ANTHROPIC, DialectName.OPENAI_RESPONSES, DialectName.OPENAI_CHAT
FOUND = ToolSpec("github__create_issue", "Create an issue.", b'{"type":"object"}', Loading.WHEN_FOUND)


@pytest.mark.parametrize(
    ("dialect", "host", "model", "taken"),
    [
        (ANTHROPIC, "api.anthropic.com", "claude-opus-4-5-20251101", True),
        (ANTHROPIC, "API.Anthropic.com", "claude-sonnet-4-5", True),
        (ANTHROPIC, "api.anthropic.com", "claude-haiku-4-5-20251001", True),
        (ANTHROPIC, "api.anthropic.com", "claude-opus-4-7", True),
        (ANTHROPIC, "api.anthropic.com", "claude-sonnet-5", True),
        (ANTHROPIC, "api.anthropic.com", "claude-fable-5-1", True),
        (ANTHROPIC, "api.anthropic.com", "claude-opus-4-20250514", False),
        (ANTHROPIC, "api.anthropic.com", "claude-sonnet-4-0", False),
        (ANTHROPIC, "api.anthropic.com", "claude-opus-4-1-20250805", False),
        (ANTHROPIC, "api.anthropic.com", "claude-3-5-haiku-20241022", False),
        (ANTHROPIC, "api.anthropic.com", "glm-5", False),
        (ANTHROPIC, "api.z.ai", "claude-sonnet-5", False),
        (ANTHROPIC, "api.anthropic.com.example.org", "claude-sonnet-5", False),
        (ANTHROPIC, "", "claude-sonnet-5", False),
        (RESPONSES, "api.openai.com", "gpt-5.4", True),
        (RESPONSES, "api.openai.com", "gpt-5.4-mini-2026-03-05", True),
        (RESPONSES, "api.openai.com", "gpt-5.10", True),
        (RESPONSES, "api.openai.com", "gpt-6-astra", True),
        (RESPONSES, "api.openai.com", "gpt-6.1", True),
        (RESPONSES, "api.openai.com", "gpt-5.3-codex", False),
        (RESPONSES, "api.openai.com", "gpt-5", False),
        (RESPONSES, "api.openai.com", "gpt-4.1", False),
        (RESPONSES, "api.openai.com", "o3", False),
        (RESPONSES, "openrouter.ai", "gpt-5.4", False),
        (CHAT, "api.openai.com", "gpt-5.4", False),
        (ANTHROPIC, "api.openai.com", "claude-sonnet-5", False),
    ],
)
def test_by_itself_only_the_provider_and_models_that_are_known_to_take_it(dialect, host, model, taken):
    assert is_taken(Deferring.AUTO, dialect, host, model) is taken
    assert is_taken(Deferring.ON, dialect, host, model)
    assert not is_taken(Deferring.OFF, dialect, host, model)


def test_every_provider_says_where_that_is_written_and_when_it_was_read():
    assert all("2026-" in each.source for each in PROVIDERS)


@pytest.mark.parametrize(
    ("status", "words", "is_one"),
    [
        (400, b"tools.5.custom.defer_loading: Extra inputs are not permitted", True),
        (400, b"messages.2.content.0.tool_result.content.0: Input tag 'tool_reference' found using 'type'", True),
        (400, b"Invalid value: 'tool_search'. Supported values are: 'function'", True),
        (400, b"Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.", True),
        (422, b'{"loc": ["body", "tools", 3, "deferLoading"]}', True),
        (400, b"Invalid tool name: hotset__later", True),
        (400, b"prompt is too long: 208310 tokens > 200000 maximum", False),
        (400, b"", False),
        (429, b"defer_loading", False),
        (500, b"tool_reference", False),
    ],
)
def test_a_refusal_for_deferred_tools_is_told_from_others(status, words, is_one):
    assert is_refusal(status, words) is is_one


def test_a_list_that_defers_ends_with_what_is_no_part_of_the_prefix():
    there = deferring(TOOLBOX_SPECS, [FOUND])

    assert [(each.name, each.loading) for each in there] == [
        (FIND, Loading.FINDS),
        (USE, Loading.AT_ONCE),
        (ANCHOR.name, Loading.WHEN_FOUND),
        (FOUND.name, Loading.WHEN_FOUND),
    ]
    assert at_once(there) == TOOLBOX_SPECS


def test_what_is_told_in_words_says_all_that_the_definition_does():
    words = words_for(FOUND)

    assert all(part in words for part in (FOUND.name, FOUND.description, FOUND.parameters.decode()))
