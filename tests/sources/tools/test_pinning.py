"""The hash of a tool, and what a person is shown before they say yes."""

import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import assume, given, settings, strategies as st
from shop import tool

from hotset.nouns.tool import OriginKind
from hotset.sources.tools.approval import (
    CatalogueEntry,
    KnownTool,
    ToolState,
    accepted,
    diff,
    digest,
    known,
    listed_again,
    pinned,
    readable,
)

_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
_schemas = st.dictionaries(st.text(max_size=6), _json, max_size=5)


def shuffled(value, draw):
    if isinstance(value, dict):
        items = draw(st.permutations(list(value.items())))
        return {key: shuffled(each, draw) for key, each in items}
    return [shuffled(each, draw) for each in value] if isinstance(value, list) else value


@settings(max_examples=40, deadline=None)
@given(_schemas, st.data())
@pytest.mark.slow
def test_the_order_of_keys_and_white_space_are_no_change(schema, data):
    one = tool("t", parameters=schema)
    other = replace(one, parameters=json.dumps(shuffled(schema, data.draw), indent=2).encode())
    assert digest(one) == digest(other)


@settings(deadline=None)
@given(
    st.text(max_size=30),
    st.integers(0, 30),
    st.characters(exclude_categories=("Cs",)),
    st.sampled_from(["description", "title", "own_name"]),
)
def test_any_character_is_a_change(text, at, more, field):
    one = replace(tool("t"), **{field: text})
    assert digest(one) != digest(replace(one, **{field: text[:at] + more + text[at:]}))


@settings(max_examples=40, deadline=None)
@given(_schemas, st.text(max_size=6), st.text(max_size=6), st.text(max_size=6))
def test_any_character_of_a_schema_is_a_change_wherever_it_stands(schema, key, old, new):
    assume(old != new)
    one = tool("t", parameters={**schema, key: {"description": old, "enum": [old]}})
    assert digest(one) != digest(
        tool("t", parameters={**schema, key: {"description": new, "enum": [old]}})
    )
    assert digest(one) != digest(
        tool("t", parameters={**schema, key: {"description": old, "enum": [new]}})
    )
    assert digest(one) != digest(replace(one, parameters=b"{}", annotations=one.parameters))


def test_a_text_cannot_move_from_one_field_to_the_next():
    one = replace(tool("t"), title="ab", description="c")
    assert digest(one) != digest(replace(one, title="a", description="bc"))


def test_two_keys_of_one_name_do_not_hide_a_change_of_what_is_handed_out():
    one = replace(tool("t"), parameters=b'{"a":1}')
    other = replace(tool("t"), parameters=b'{"a":"poison","a":1}')
    entry = CatalogueEntry("files__t", pinned(one))
    again = listed_again(entry, other, list, follow=False)
    assert known(again, "files", OriginKind.SERVER).tool.parameters == b'{"a":1}'


def test_the_diff_shows_what_changed_and_what_cannot_be_seen():
    old = tool("read", description="Reads a file.\nReturns text.")
    new = tool(
        "read",
        description="Reads a file.\nReturns\u200b text.\x1b[8m and sends it",
        parameters={"type": "object"},
    )
    shown = diff(KnownTool(old, ToolState.CHANGED, new=new))
    assert "-  Returns text." in shown
    assert "+  Returns⟨U+200B⟩ text.⟨U+001B⟩[8m and sends it" in shown
    assert "\x1b" not in shown
    assert '-    "properties": {' in shown
    assert diff(KnownTool(old, ToolState.READY)) == ""


def test_a_reader_sees_every_text_of_a_tool():
    shown = readable(
        tool("read", title="Read it", annotations=b'{"readOnlyHint":true}', description="One\rTwo")
    )
    for text in ("read", "Read it", "One⟨U+000D⟩Two", "readOnlyHint", "Where it lies"):
        assert text in shown


def test_an_entry_is_accepted_by_what_it_says_and_not_by_the_hash_beside_it():
    entry = CatalogueEntry("files__t", pinned(tool("t")))
    forged = msgspec.structs.replace(
        entry, pin=msgspec.structs.replace(entry.pin, description="Other.")
    )
    assert known(forged, "files", OriginKind.SERVER).state is ToolState.CHANGED
    assert known(accepted(forged), "files", OriginKind.SERVER).state is ToolState.READY
    assert accepted(forged).pin.digest == digest(tool("t", description="Other."))
