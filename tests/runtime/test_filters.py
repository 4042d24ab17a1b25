"""A search as a model asks for it, with its filters."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from hotset.errors import Malformed
from hotset.nouns.page import Kind
from hotset.nouns.retrieval import Range, Search
from hotset.nouns.search import Filter
from hotset.runtime.filters import read_call

NOW = 1_790_000_000.0
DAY = 86_400.0


def search(**fields: object) -> Search:
    read = read_call("search_history", json.dumps({"query": "retry", **fields}).encode(), NOW)
    assert isinstance(read, Search)
    return read


_GIVEN = {
    "type": ["file", "prompt"],
    "agent": ["a", "b"],
    "turns": "3-9",
    "since": "2d",
    "until": "1d",
    "session": "all",
}
FILE, PROMPT = str(Kind.FILE), str(Kind.PROMPT)


@pytest.mark.row("V2")
@pytest.mark.parametrize(
    "fields",
    [
        {"only": "type=file,prompt agent=a,b turns=3-9 since=2d until=1d session=all"},
        {"only": "type:file, prompt; agent: a,b; turns:3-9; since:2d; until:1d; scope:all"},
        {"filter": 'type="file,prompt" & agent=a,b & turns=3-9 & since=2d until=1d session=any'},
        {"only": _GIVEN},
        {**_GIVEN, "type": "code_file,user", "agent": "a, b"},
        {
            "only": "type=web turns=1-2 session=this since=2d until=1d",
            "type": ["file", "prompt"],
            "agents": "a,b",
            "turns": "3-9",
            "session": "all",
        },
    ],
)
def test_filters_are_understood_however_a_model_writes_them(fields):
    assert search(**fields) == Search(
        "retry",
        "all",
        only=Filter(
            kinds=frozenset({FILE, PROMPT}),
            agents=frozenset({"a", "b"}),
            turns=(3, 9),
            since=NOW - 2 * DAY,
            until=NOW - DAY,
        ),
    )


def test_a_search_without_filters_has_none():
    assert search() == Search("retry")
    assert search(only="", type=None, session="this") == Search("retry")
    assert search(type="any").only == Filter()
    assert FILE in search(type="tool").only.kinds  # a file that a tool read is a tool's result


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"type": "poem"}, "pages are system, prompt"),
        ({"type": "python"}, "types are system, prompt"),
        ({"only": "the last week"}, 'only must be like "type=file,prompt since=2d"'),
        ({"only": "turns=soon"}, "soon: use 12, 12-20"),
        ({"only": "since=yesterday"}, "use 30m, 12h, 2d"),
        ({"only": "colour=red"}, "no filter 'colour'; filters: type, agent"),
    ],
)
def test_a_filter_that_cannot_be_read_is_answered_with_what_to_send(fields, says):
    with pytest.raises(Malformed, match=f"^search_history: .*{says}"):
        search(**fields)


def test_other_calls_have_no_filters():
    assert read_call("get_turn_range", b'{"first": 1, "last": 2, "only": 3}', NOW) == Range(1, 2)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
_names = st.sampled_from(
    ["only", "filter", "type", "agent", "turns", "since", "until", "session", "x"]
)


@given(st.dictionaries(_names, _json, max_size=5))
def test_any_filters_are_a_search_or_a_sentence(fields):
    try:
        said = f"search_history: {search(**fields).query}"
    except Malformed as error:
        said = str(error)
    assert said.startswith("search_history: ")
