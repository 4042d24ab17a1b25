"""Which tools may stand in a session's list, and how."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hotset.nouns.message import ClientTool, Loading, ToolSpec
from hotset.nouns.tool import Ghost, OriginKind, Tool as LibraryTool
from hotset.window.ghosts import (
    defers_own_tools,
    found_spec,
    ghost_spec,
    ghost_text,
    not_in_client,
)
from hotset.window.retrieval_tools import DESCRIPTIONS, has_twin
from hotset.window.toolbox_tools import TOOLBOX_SPECS

OBJECT = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


def tool(
    schema=OBJECT,
    *,
    name="github__create_issue",
    own="create_issue",
    description="Create an issue on GitHub.",
):
    parameters = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    return LibraryTool(name, "github", OriginKind.SERVER, own, description, parameters)


def made(*arguments, **named):
    return ghost_spec(Ghost(tool(*arguments, **named), 0.876))


def test_a_ghost_carries_its_mark_its_score_and_its_whole_schema():
    spec = made()

    assert spec == ToolSpec(
        "github__create_issue", "[GHOST 0.88] Create an issue on GitHub.", spec.parameters
    )
    assert json.loads(spec.parameters) == OBJECT


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {}},
        {
            "type": "object",
            "properties": {"a": {"type": ["string", "null"]}, "b": {"type": "array", "items": {}}},
        },
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"anyOf": [{"type": "string"}]}},
        },
        {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": True}}},
    ],
)
def test_usual_schemas_are_offered_as_objects(schema):
    parameters = json.loads(made(schema).parameters)

    assert parameters["type"] == "object"
    assert isinstance(parameters["properties"], dict)
    assert "$schema" not in parameters


@pytest.mark.parametrize(
    "schema",
    [
        b"no json",
        b"[" * 5000,
        [],
        {"type": "string"},
        {"type": ["object"]},
        {"anyOf": [{"type": "object"}]},
        {"type": "object", "oneOf": []},
        {"$ref": "#/$defs/A"},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a b": {}}},
        {"type": "object", "properties": {"a" * 65: {}}},
        {"type": "object", "properties": {"a": {"type": "date"}}},
        {"type": "object", "properties": {"a": {"$ref": "https://example.com/schema"}}},
        {"type": "object", "properties": {"a": "string"}},
        {"type": "object", "properties": []},
        {"type": "object", "required": True},
        {"type": "object", "properties": {"a": {"description": "x" * 6000}}},
        {"type": "object", "properties": {"a": {"anyOf": {"type": "string"}}}},
    ],
    ids=lambda each: str(each)[:40],
)
def test_what_a_provider_might_refuse_is_left_to_find_tools(schema):
    assert made(schema) is None


def test_a_name_that_providers_do_not_take_is_no_ghosts():
    assert made(name="github.create issue") is None
    assert made(name="a" * 65) is None


def test_a_long_description_is_cut_and_one_line():
    spec = made(description="Creates\n\nan issue. " + "More. " * 500)

    assert spec.description.startswith("[GHOST 0.88] Creates an issue. More.")
    assert len(spec.description) == 1000
    assert spec.description.endswith("…")


@pytest.mark.parametrize(
    ("name", "description", "same"),
    [
        ("github__create_issue", "Anything.", True),
        ("create_issue", "Create an issue on GitHub.", True),
        ("mcp__github__create_issue", "Create an  issue\non GitHub.", True),
        ("github.create_issue", "Create an issue on GitHub", True),
        ("mcp__gitlab__create_issue", "Create an issue on GitLab.", False),
        ("recreate_issue", "Create an issue on GitHub.", True),
        ("precreate_issue", "Create an issue on GitHub.", False),
        ("read_file", "Create an issue on GitHub.", False),
    ],
)
@pytest.mark.parametrize("is_chat", [False, True])
def test_a_tool_that_the_client_has_is_not_offered_again(name, description, same, is_chat):
    told = {"name": name, "description": description}
    theirs = ClientTool(
        name, json.dumps({"type": "function", "function": told} if is_chat else told).encode()
    )

    assert not_in_client([made()], [theirs]) == (
        () if same and name != "recreate_issue" else (made(),)
    )


@pytest.mark.parametrize("spec", TOOLBOX_SPECS, ids=lambda spec: spec.name)
def test_a_tool_of_ours_is_known_by_the_description_of_any_version(spec):
    for theirs in DESCRIPTIONS[spec.name]:
        name = f"mcp__hotset__{spec.name}"
        raw = json.dumps({"name": name, "description": theirs}).encode()
        for ours in DESCRIPTIONS[spec.name]:
            kept = replace(spec, description=ours)  # as a session keeps it
            assert not_in_client([kept], [ClientTool(name, raw)]) == ()
            assert has_twin(raw, [kept])
    assert not has_twin(json.dumps({"name": spec.name, "description": "Other."}).encode(), [spec])


def test_a_ghost_behind_a_prompt_is_a_line_without_what_nobody_can_see():
    text = ghost_text(tool(description="Create\u200b an issue.\n" + "More of it. " * 40))

    assert text.startswith("- github__create_issue: Create")
    assert "\u200b" not in text
    assert "\n" not in text
    assert len(text) < 160


@pytest.mark.parametrize(
    ("raw", "deferred"),
    [
        ({"name": "a", "input_schema": {}, "defer_loading": True}, True),
        ({"type": "function", "function": {"name": "a", "defer_loading": True}}, True),
        ({"type": "tool_search"}, True),
        ({"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}, True),
        (
            {"type": "namespace", "name": "crm", "tools": [{"name": "a", "defer_loading": True}]},
            True,
        ),
        ({"name": "a", "input_schema": {}, "defer_loading": False}, False),
        ({"name": "a", "description": "about tool_search and defer_loading"}, False),
    ],
)
def test_a_client_that_searches_its_own_tools_is_recognised(raw, deferred):
    assert defers_own_tools([ClientTool("a", json.dumps(raw).encode())]) is deferred


def test_a_tool_that_was_found_says_what_it_does_without_a_mark():
    spec = found_spec(tool())

    assert spec == ToolSpec(
        "github__create_issue", "Create an issue on GitHub.", spec.parameters, Loading.WHEN_FOUND
    )
    assert json.loads(spec.parameters) == OBJECT


@pytest.mark.parametrize(
    "schema", [b"{", b"[]", {"type": "object", "anyOf": [{"required": ["a"]}]}, {"type": "string"}]
)
def test_a_found_tool_whose_schema_a_provider_might_refuse_tells_of_it_in_its_description(schema):
    spec = found_spec(tool(schema))

    assert json.loads(spec.parameters) == {"type": "object", "properties": {}}
    assert spec.description.startswith("Create an issue on GitHub. Arguments (JSON schema): ")
    assert len(found_spec(tool({"type": "string", "x": "y" * 5000})).description) == 1000


def test_a_found_tool_whose_name_no_provider_takes_cannot_be_handed_over():
    assert found_spec(tool(name="github.create issue")) is None
