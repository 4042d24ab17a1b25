"""A tool in words: what is indexed of it."""

import json

from hypothesis import given, settings, strategies as st

from hotset.nouns.tool import OriginKind, Tool
from hotset.sources.tools.tool_search import word_tool

_KEY = "ghp_" + "x7Rk2mQ9vLs4TzWb8NcYd1HfJg5PaE3uKo6M"[:36]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inside: (
        st.lists(inside, max_size=4)
        | st.dictionaries(
            st.sampled_from(["properties", "items", "anyOf", "$defs", "description", "enum", "a"]),
            inside,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def _tool(own_name="createPull_request", description="Opens one.", parameters=None, **more):
    schema = json.dumps(parameters if parameters is not None else {}).encode()
    given = {"source": "git-hub", "origin": OriginKind.SERVER, **more}
    return Tool(
        f"{given['source']}__{own_name}",
        own_name=own_name,
        description=description,
        parameters=schema,
        **given,
    )


def test_names_are_read_as_words():
    said = word_tool(_tool())
    assert said.title == "create Pull request"
    assert said.text.splitlines()[0] == "git hub"


def test_a_title_counts_only_where_it_says_something_else():
    assert "Create pull request" not in word_tool(_tool(title="Create pull request")).text
    assert "Propose a change" in word_tool(_tool(title="Propose a change")).text


def test_sources_that_are_all_called_alike_are_no_words():
    assert "created" not in word_tool(_tool(source="created", origin=OriginKind.CREATED)).text


def test_arguments_are_there_with_what_is_said_of_them_and_never_as_json():
    inside = {"type": "object", "properties": {"lineNumber": {"description": "counted from one"}}}
    schema = {
        "type": "object",
        "properties": {
            "merge_method": {
                "type": "string",
                "description": "how to bring it in",
                "enum": ["squash", "rebase"],
            },
            "places": {"type": "array", "items": inside},
        },
        "required": ["merge_method"],
    }
    text = word_tool(_tool(parameters=schema)).text
    assert "merge method: how to bring it in, squash, rebase" in text
    assert "line Number: counted from one" in text
    assert not set('{}[]"') & set(text)
    assert "required" not in text


def test_no_secret_becomes_a_word():
    schema = {"properties": {"token": {"description": f"for example {_KEY}"}}}
    said = word_tool(_tool(description=f"Use it with {_KEY}.", parameters=schema))
    assert _KEY not in said.title + said.text
    assert said.text.count("[secret:") == 2


def test_a_schema_without_end_is_cut():
    deep = {"properties": {"a": {"description": "x" * 10_000}}}
    for _ in range(50):
        deep = (
            {"properties": {f"b{number}": deep for number in range(2)}}
            if _ < 3
            else {"properties": {"c": deep}}
        )
    wide = {
        "properties": {f"argument_{number}": {"enum": ["y" * 100] * 30} for number in range(200)}
    }
    for schema in (deep, wide):
        assert len(word_tool(_tool(description="z" * 100_000, parameters=schema)).text) < 80_000


@settings(deadline=None)
@given(_JSON, st.binary(max_size=30))
def test_whatever_a_source_calls_a_schema_is_taken(schema, garbage):
    assert word_tool(_tool(parameters=schema)).title
    assert word_tool(Tool("a__b", "a", OriginKind.SERVER, "b", "c", garbage)).title == "b"
