"""A likelihood is one: between 0 and 1, falling with the order, and the higher the more speaks for
a tool."""

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from hotset.index.embed.table import WordVectors
from hotset.nouns.tool import UNLIKELY
from hotset.sources.tools.tool_search import (
    Likeness,
    RankedTool,
    ToolSigns,
    likelihood,
    likelihoods,
    weigh_signs,
)

_SHARES = st.floats(0, 1)
_SIGNS = st.builds(
    ToolSigns,
    constant=st.just(1.0),
    size=st.floats(1, 6),
    meant=_SHARES,
    answered=_SHARES,
    named=_SHARES,
    shared=st.floats(0, 3),
    telling=st.floats(0, 6),
)
_MIDDLING = ToolSigns(1.0, 2.0, 0.4, 0.5, 0.5, 0.7, 1.5)
ISSUE = RankedTool(
    "github__create_issue",
    0.0,
    Likeness(),
    title="create issue",
    text="github\nCreate an issue on GitHub.",
)


def of_issue(prompt: str, size: int = 100) -> float:
    return likelihoods(weigh_signs(WordVectors(), prompt, [ISSUE], size), [0.0])[0]


@settings(deadline=None)
@given(st.lists(st.tuples(_SIGNS, _SHARES), max_size=12))
def test_likelihoods_lie_between_nothing_and_certainty_and_fall_with_the_order(weighed):
    scores = likelihoods([signs for signs, _ in weighed], [vote for _, vote in weighed])
    assert len(scores) == len(weighed)
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert scores == sorted(scores, reverse=True)


@settings(deadline=None)
@given(_SIGNS, _SHARES, st.sampled_from(["meant", "answered", "named", "shared"]))
def test_whatever_speaks_more_for_a_tool_makes_it_no_less_likely(signs, vote, name):
    more = replace(signs, **{name: getattr(signs, name) + 0.1})
    assert likelihood(more) >= likelihood(signs)
    assert likelihood(replace(signs, size=signs.size + 1)) <= likelihood(signs)
    assert likelihoods([signs], [vote]) >= likelihoods([signs], [0.0])


@pytest.mark.parametrize(
    ("prompt", "speaks"),
    [
        ("Please create an issue.", True),
        ("open a github issue about the crash in the parser", True),
        ("The parser crashes on dates. Open an issue on GitHub for it. Then test on.", True),
        ("Hello.", False),
        ("Create a file and run the tests.", False),
        ("Make the cache survive a restart.", False),
    ],
)  # fmt: skip
def test_a_prompt_speaks_of_a_tool_where_it_says_what_the_tool_does(prompt, speaks):
    assert (of_issue(prompt) >= UNLIKELY) is speaks


def test_a_sentence_that_asks_for_a_tool_is_heard_in_a_long_prompt():
    much = "The walls of the old house were painted in the colours of the sea. " * 6

    assert of_issue(f"{much}\nPlease create an issue on GitHub.") >= UNLIKELY
    assert of_issue(much) < UNLIKELY


def test_the_same_tool_of_many_servers_does_not_make_itself_unlikely():
    assert likelihoods([_MIDDLING] * 30, [0.0] * 30) == likelihoods([_MIDDLING], [0.0]) * 30
    assert likelihoods([], []) == []
