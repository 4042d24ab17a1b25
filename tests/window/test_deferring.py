"""How our list looks where tools are deferred."""

from __future__ import annotations

import pytest

from hotset.nouns.message import Loading, ToolSpec
from hotset.window.deferred_tools import (
    ANCHOR,
    describe_tool,
    is_refusal,
    with_deferred_tools,
    without_deferred_tools,
)
from hotset.window.toolbox_tools import FIND, TOOLBOX_SPECS, USE

FOUND = ToolSpec(
    "github__create_issue", "Create an issue.", b'{"type":"object"}', Loading.WHEN_FOUND
)


@pytest.mark.parametrize(
    ("status", "words", "is_one"),
    [
        (400, b"tools.5.custom.defer_loading: Extra inputs are not permitted", True),
        (
            400,
            (
                b"messages.2.content.0.tool_result.content.0: Input tag 'tool_reference' found "
                b"using 'type'"
            ),
            True,
        ),
        (400, b"Invalid value: 'tool_search'. Supported values are: 'function'", True),
        (
            400,
            b"Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.",
            True,
        ),
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
    there = with_deferred_tools(TOOLBOX_SPECS, [FOUND])

    assert [(each.name, each.loading) for each in there] == [
        (FIND, Loading.FINDS),
        (USE, Loading.AT_ONCE),
        (ANCHOR.name, Loading.WHEN_FOUND),
        (FOUND.name, Loading.WHEN_FOUND),
    ]
    assert without_deferred_tools(there) == TOOLBOX_SPECS


def test_what_is_told_in_words_says_all_that_the_definition_does():
    words = describe_tool(FOUND)

    assert all(part in words for part in (FOUND.name, FOUND.description, FOUND.parameters.decode()))
