"""Names that every provider takes and that lead to one source each."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings, strategies as st

from hotset.sources.tools.tool_names import LONGEST, full_name, slug

TAKEN = re.compile(r"[A-Za-z0-9_-]{1,64}")
TEXTS = st.text(max_size=90) | st.text("ab_-./é", max_size=90)


@pytest.mark.parametrize(
    ("source", "own_name", "name"),
    [
        ("fs", "read_file", "fs__read_file"),
        ("pdf-tools", "merge", "pdf-tools__merge"),
        ("@scope/server", "browser.click", "scope_server__browser_click"),
        ("My Server", "a/b", "My_Server__a_b"),
        ("fs", "__init", "fs____init"),
        ("pdf-tools", "", "pdf-tools"),
    ],
)
def test_a_name_says_the_source_and_the_tool(source, own_name, name):
    assert full_name(source, own_name) == name


@settings(deadline=None)
@given(TEXTS, TEXTS)
@example("", "é")
@example("_", "_")
@example("a" * 33 + "_" * 40, "b" * 70)
def test_every_name_is_one_that_providers_take_and_its_source_can_be_read_from_it(source, own_name):
    name = full_name(source, own_name)
    assert TAKEN.fullmatch(name)
    assert name.partition("__")[0] == slug(source)
    assert full_name(slug(source), own_name) == name, (
        "a source's name and what it was made from are the same"
    )


@settings(deadline=None)
@given(TEXTS)
def test_the_name_of_a_source_stays_what_it_is(text):
    assert slug(slug(text)) == slug(text)
    assert "__" not in slug(text)


@settings(deadline=None)
@given(TEXTS, TEXTS, TEXTS, TEXTS)
@example("a__b", "c", "a", "b__c")
@example("a_", "b", "a", "_b")
def test_no_tool_has_the_name_of_another_sources_tool(source, own_name, other, others_own_name):
    if slug(source) != slug(other):
        assert full_name(source, own_name) != full_name(other, others_own_name)


def test_long_names_that_begin_alike_stay_apart():
    names = {full_name("server", "x" * 80 + end) for end in "abc"} | {
        full_name("s" * 80 + end, "tool") for end in "abc"
    }
    assert len(names) == 6
    assert all(len(name) <= LONGEST for name in names)


def test_a_letter_that_only_looks_like_another_does_not_give_the_same_name():
    assert full_name("fs", "re\N{CYRILLIC SMALL LETTER A}d") != full_name("fs", "re_d")
    assert slug("git\N{ZERO WIDTH SPACE}hub") != slug("git_hub")
