"""The tools that a model sees, and what it may send them."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from hotset import tokens
from hotset.errors import Malformed
from hotset.nouns.message import ClientTool
from hotset.nouns.retrieval import (
    END,
    JsonPath,
    Lines,
    Pieces,
    Question,
    Range,
    Regex,
    Retrieve,
    RowSlice,
    Search,
    Symbol,
    Whole,
)
from hotset.window.retrieval_tools import OUR_TOOLS, SPECS, brings_ours, parse_call


def call(name: str, **fields):
    return parse_call(name, json.dumps(fields).encode())


def retrieve(**fields):
    return call("retrieve_context", **fields)


@pytest.mark.row("V6")
def test_all_three_together_are_at_most_170_tokens_of_schema():
    offered = [
        {
            "name": spec.name,
            "description": spec.description,
            "input_schema": json.loads(spec.parameters),
        }
        for spec in SPECS
    ]

    assert tokens.count(json.dumps(offered, separators=(",", ":")).encode()) <= 170
    assert {"retrieve_context", "search_history", "get_turn_range"} == OUR_TOOLS


def test_schemas_are_ascii_and_name_every_argument_that_is_read():
    for spec in SPECS:
        schema = json.loads(spec.parameters)
        assert spec.parameters.isascii()
        assert schema["type"] == "object"
        assert set(schema.get("required", ())) <= set(schema["properties"])


def test_a_call_by_id_asks_for_all_of_it_in_2000_tokens():
    assert retrieve(id="c0123456789ab") == Retrieve("c0123456789ab", how=Whole(), max_tokens=2000)


@pytest.mark.parametrize(
    ("fields", "how"),
    [
        ({"lines": "120-180"}, Lines(((120, 180),))),
        ({"lines": "12:40"}, Lines(((12, 40),))),
        ({"lines": "L12-L40"}, Lines(((12, 40),))),
        ({"lines": "[12, 40]"}, Lines(((12, 12), (40, 40)))),
        ({"lines": [12, 40]}, Lines(((12, 40),))),
        ({"lines": [[1, 2], "5-6"]}, Lines(((1, 2), (5, 6)))),
        ({"lines": {"start": 3, "end": 9}}, Lines(((3, 9),))),
        ({"lines": 7}, Lines(((7, 7),))),
        ({"lines": "40-12"}, Lines(((12, 40),))),
        ({"lines": "120-"}, Lines(((120, END),))),
        ({"lines": "1.7-1.12"}, Lines((Pieces((1, 7), (1, 12)),))),
        ({"lines": "12-13.4, 20-30"}, Lines((Pieces((12, 1), (13, 4)), (20, 30)))),
        ({"lines": "13.5-"}, Lines((Pieces((13, 5), (END, END)),))),
        ({"lines": 1.7}, Lines((Pieces((1, 7), (1, 7)),))),
        ({"lines": "3..7"}, Lines(((3, 7),))),
        ({"lines": 12.0}, Lines(((12, 12),))),
        ({"lines": "0-3"}, Lines(((1, 3),))),
        ({"lines": "1-2, 8-9; 20"}, Lines(((1, 2), (8, 9), (20, 20)))),
        ({"rows": "1-20"}, RowSlice(((1, 20),))),
        ({"path": "$.a[0]"}, JsonPath("$.a[0]")),
        ({"json_path": "$.a[0]"}, JsonPath("$.a[0]")),
        ({"symbol": "Window.plan"}, Symbol("Window.plan")),
        ({"regex": "def .*plan"}, Regex("def .*plan")),
        ({"pattern": "x+"}, Regex("x+")),
        ({"question": "why?"}, Question("why?")),
        ({"lines": "", "regex": "x"}, Regex("x")),
        ({"lines": None, "symbol": "f"}, Symbol("f")),
    ],
)
def test_a_slice_is_understood_however_a_model_writes_it(fields, how):
    assert retrieve(id="p1", **fields).how == how


@pytest.mark.parametrize(
    ("typed", "id"),
    [
        (" c0123456789ab ", "c0123456789ab"),
        ('"r5f"', "r5f"),
        ("[r5f]", "r5f"),
        ('retrieve_context(id="r5f")', "r5f"),
        ('[CTX-REF:conversation | 15 turns | retrieve_context(ref_id="r5f")]', "r5f"),
        ("toolu_01A-b", "toolu_01A-b"),
    ],
)
def test_an_id_is_taken_out_of_what_was_copied_with_it(typed, id):
    assert retrieve(ref_id=typed).id == id


def test_several_ids_come_in_one_call_however_a_model_writes_them():
    for typed in ("r5f01, c0123456789ab", ["r5f01", "c0123456789ab"], "r5f01 c0123456789ab"):
        call = retrieve(id=typed)
        assert (call.id, call.more) == ("r5f01", ("c0123456789ab",))
    assert retrieve(ids=["r5f01"]).more == ()
    assert retrieve(id="call of the wild, second").id == "call of the wild, second"


def test_numbers_come_as_strings_and_are_kept_within_bounds():
    assert retrieve(id="p1", max_tokens="500").max_tokens == 500
    assert retrieve(id="p1", max_tokens=10**30).max_tokens == 20_000
    assert retrieve(id="p1", max_tokens=-3).max_tokens == 2000
    assert retrieve(iteration="3").iteration == 3
    assert retrieve(iteration=3.0).iteration == 3


def test_a_question_without_an_id_is_a_topic():
    assert retrieve(question="retry policy").topic == "retry policy"
    assert retrieve(tool="grep", topic="retry").how == Question("retry")


def test_a_search_has_words_and_sessions():
    assert call("search_history", query="retry", session="all") == Search("retry", "all")
    assert call("search_history", q="retry", session="this") == Search("retry", "")


def test_a_range_of_turns_is_understood_however_it_is_named():
    assert call("get_turn_range", first=3, last="5") == Range(3, 5)
    assert call("get_turn_range", from_turn=5, to_turn=3) == Range(3, 5)
    assert call("get_turn_range", turns="3-5") == Range(3, 5)
    assert call("get_turn_range", turn=4) == Range(4, 4)


def test_arguments_that_are_json_in_json_are_read():
    assert parse_call("get_turn_range", json.dumps('{"first": 1, "last": 2}').encode()) == Range(
        1, 2
    )


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("retrieve_context", b"", "id, iteration, tool or topic"),
        ("retrieve_context", b"null", "id, iteration, tool or topic"),
        ("retrieve_context", b"{", "not JSON"),
        ("retrieve_context", b"[1]", "must be an object"),
        ("retrieve_context", b"[" * 200_000, "not JSON"),
        ("retrieve_context", b'{"id": {"a": 1}}', "id must be a string"),
        ("retrieve_context", b'{"id": "p1", "lines": "abc"}', '"120-180"'),
        ("retrieve_context", b'{"id": "p1", "lines": true}', '"120-180"'),
        ("retrieve_context", b'{"iteration": "many"}', "integer"),
        ("retrieve_context", b'{"iteration": 1e999}', "JSON|whole number"),
        ("retrieve_context", b'{"id": "p1", "regex": "' + b"a" * 5000 + b'"}', "at most 1,000"),
        ("retrieve_context", b'{"id": "' + b"a" * (1 << 21) + b'"}', "an id or a few words"),
        ("search_history", b'{"query": "..."}', "query needs a word"),
        ("get_turn_range", b"{}", "give turns"),
        ("use_tool", b"{}", "tools: retrieve_context"),
    ],
)
def test_bad_arguments_are_answered_with_what_to_send(name, arguments, says):
    with pytest.raises(Malformed, match=says):
        parse_call(name, arguments)


@pytest.mark.parametrize("unit", [" ", ",", "id=", "1-", "id   "])
def test_no_argument_takes_long(unit):
    begun = time.process_time()
    for field in ("id", "lines", "iteration", "symbol"):
        with suppress(Malformed):
            retrieve(**{"id": "p1", field: f"1{unit * (500_000 // len(unit))}2"})

    assert time.process_time() - begun < 2


def test_a_query_of_a_megabyte_is_cut_to_its_first_words():
    assert len(call("search_history", query="word " * 200_000).query) <= 1000


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
_names = st.sampled_from(
    [
        "id",
        "lines",
        "rows",
        "path",
        "regex",
        "iteration",
        "query",
        "type",
        "first",
        "last",
        "max_tokens",
    ]
)


@given(st.sampled_from(sorted(OUR_TOOLS)), st.dictionaries(_names, _json, max_size=5))
def test_any_arguments_are_a_call_or_a_sentence(name, fields):
    try:
        parsed = parse_call(name, json.dumps(fields).encode())
    except Malformed as error:
        said = str(error)
    else:
        said = name
        assert 100 <= parsed.max_tokens <= 20_000
    assert said.startswith(name)


def test_our_tools_over_mcp_are_known_by_the_description_of_an_earlier_version():
    earlier = (
        "Bring back content that was shortened or left a conversation, by id or else by "
        "iteration, tool or topic. Ask for the part you need, with one of lines, rows, path, "
        "symbol, regex, question."
    )
    name = "mcp__hotset__retrieve_context"
    raw = json.dumps({"name": name, "description": earlier}).encode()

    assert brings_ours([ClientTool(name, raw)])
