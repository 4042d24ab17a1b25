"""The two tools of the toolbox: what they cost, and what models send them."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from hotset import tokens
from hotset.errors import Malformed
from hotset.window.retrieval_tools import SPECS
from hotset.window.toolbox_tools import (
    TOOLBOX_SPECS,
    FindCall,
    UseCall,
    parse_direct,
    parse_find,
    parse_use,
)


def _tokens(specs) -> int:
    told = [
        {
            "name": each.name,
            "description": each.description,
            "input_schema": json.loads(each.parameters),
        }
        for each in specs
    ]
    return tokens.count(json.dumps(told, separators=(",", ":")).encode())


def test_both_are_at_most_200_tokens_of_schema_and_all_five_650():
    assert _tokens(TOOLBOX_SPECS) <= 200
    assert _tokens((*SPECS, *TOOLBOX_SPECS)) <= 650
    assert all(each.parameters.isascii() for each in TOOLBOX_SPECS)


@pytest.mark.parametrize(
    ("fields", "sought"),
    [
        ({"query": "open an issue"}, FindCall("open an issue")),
        ({"query": "x", "limit": 3}, FindCall("x", 3)),
        ({"query": "x", "limit": "500"}, FindCall("x", 20)),
        ({"query": "x", "limit": -1}, FindCall("x", 1)),
        ({"task": "x", "server": "github"}, FindCall("x", only=("github",))),
    ],
)
def test_what_is_looked_for(fields, sought):
    assert parse_find(json.dumps(fields).encode()) == sought


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"name": "a__b", "arguments": {"x": 1}}, UseCall("a__b", {"x": 1})),
        ({"name": "a__b", "arguments": '{"x": 1}'}, UseCall("a__b", {"x": 1})),
        ({"name": "a__b", "arguments": '"{\\"x\\": 1}"'}, UseCall("a__b", {"x": 1})),
        ({"name": "a__b"}, UseCall("a__b", {})),
        ({"name": "a__b", "arguments": None}, UseCall("a__b", {})),
        ({"name": "a__b", "x": 1}, UseCall("a__b", {"x": 1})),
        ({"tool_name": " a__b ", "args": {"x": 1}}, UseCall("a__b", {"x": 1})),
        ({"name": "a__b", "arguments": [1]}, UseCall("a__b", "[1]")),
        ({"name": "a__b", "arguments": "no json"}, UseCall("a__b", "no json")),
        (
            {"name": "a__b", "arguments": {"name": "n", "arguments": {}}},
            UseCall("a__b", {"name": "n", "arguments": {}}),
        ),
    ],
)
def test_what_is_to_be_called(fields, wanted):
    assert parse_use(json.dumps(fields).encode()) == wanted


@pytest.mark.parametrize(
    "arguments",
    [b"", b"{}", b"[]", b"nothing", b'{"name": ""}', b'{"name": 5}', b'{"query": "?"}', b"7"],
)
def test_what_says_nothing_is_told_what_to_send(arguments):
    for parse in (parse_find, parse_use):
        with pytest.raises(Malformed, match=r"send \{"):
            parse(arguments)


def test_a_tool_that_is_called_by_its_name_gets_its_arguments_as_they_are():
    assert parse_direct("a__b", b'{"name": "n"}') == UseCall("a__b", {"name": "n"})
    assert parse_direct("a__b", b"") == UseCall("a__b", {})
    assert parse_direct("a__b", b"half of {") == UseCall("a__b", "half of {")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "arguments", "query", "limit", "x"]), inner)
    ),
    max_leaves=8,
)


@given(_json | st.text(max_size=20))
def test_nothing_that_a_model_sends_breaks_anything(sent):
    arguments = (
        json.dumps(sent).encode() if not isinstance(sent, str) else sent.encode("utf-8", "replace")
    )
    for parse in (parse_find, parse_use):
        with suppress(Malformed):
            parse(arguments)
    assert parse_direct("a__b", arguments).name == "a__b"
