"""Word against word: what a tool answers of a question, and what a question names of a tool."""

import pytest
from hypothesis import given, settings, strategies as st

from hotset.index.embed.table import TokenMaxSim, WordVectors
from hotset.sources.tools.tool_search import measure_likeness

_TABLE = WordVectors()
_TEXTS = st.text(alphabet="abcdefg hijklm. ", max_size=40)


def test_a_name_of_which_a_question_speaks_is_named_whatever_else_it_speaks_of():
    asked = "first look at the clock, then send a letter to my aunt, then tell me how warm it is"
    send, blame = measure_likeness(
        _TABLE,
        asked,
        [("send letter", "Write to somebody."), ("git blame", "Who wrote each line.")],
    )
    assert send.named == pytest.approx(1.0, abs=0.01)
    assert blame.named < 0.6


def test_what_is_answered_is_what_the_words_of_name_and_text_say():
    tools = [
        ("send letter", "Write to somebody."),
        ("git blame", "Who wrote each line."),
        ("x", ""),
    ]
    asked = "who wrote this line?"
    told = [f"{name}\n{text}" for name, text in tools]
    assert [each.answered for each in measure_likeness(_TABLE, asked, tools)] == pytest.approx(
        TokenMaxSim(_TABLE).scores(asked, told), abs=1e-5
    )


@given(_TEXTS, st.lists(st.tuples(_TEXTS, _TEXTS), max_size=5))
@settings(max_examples=50, deadline=None)
@pytest.mark.slow
def test_each_tool_is_judged_by_itself_and_nothing_at_all_is_no_trouble(asked, tools):
    together = measure_likeness(_TABLE, asked, tools)
    assert len(together) == len(tools)
    for tool, each in zip(tools, together, strict=True):
        (alone,) = measure_likeness(_TABLE, asked, [tool])
        assert (each.answered, each.named) == pytest.approx((alone.answered, alone.named), abs=1e-5)
        assert -1.001 <= each.answered <= 1.001
        assert -1.001 <= each.named <= 1.001
