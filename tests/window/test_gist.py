"""What a page is about, told by rules."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from hotset.nouns.page import ROOT, Gist, Kind, Page, PageId, Role, SessionId, digest
from hotset.testing.secrets import planted
from hotset.window.page_text import make_gist

TRACE = b"""Traceback (most recent call last):
  File "/srv/app/store/sqlite.py", line 12, in open_store
    raise StoreFailed("cannot open; see #1234 and OPS-77, commit 303727c")
ValueError: bad and/or worse, see https://example.com/a/b.html
src/app/main.ts:33:4: error: cannot find name 'fooBar' in README.md
"""


def of(content: bytes, kind: Kind = Kind.TOOL_RESULT, media: str = "text/plain") -> Gist:
    page = Page(
        PageId("p1"),
        SessionId("s1"),
        "a",
        1,
        0,
        kind,
        Role.TOOL,
        None,
        digest(content),
        len(content),
        media,
        0.0,
        ROOT,
        0,
    )
    return make_gist(page, content)


def test_files_are_told_without_their_line_numbers():
    assert of(TRACE).files == ("/srv/app/store/sqlite.py", "src/app/main.ts", "README.md")


def test_errors_come_first_among_the_names():
    entities = of(TRACE).entities

    assert entities[:2] == ("StoreFailed", "ValueError")
    assert {"open_store", "#1234", "OPS-77", "303727c", "fooBar"} <= set(entities)


def test_keywords_are_the_commonest_words_that_mean_something():
    keywords = of(b"The parser and the parser of the lexer; a lexer is not a parser.").keywords

    assert keywords == ("parser", "lexer")


def test_the_arguments_of_a_call_are_read_through_their_escapes():
    assert of(
        b'{"command":"cat src/x.py\\npytest tests/test_x.py"}', Kind.TOOL_CALL, "application/json"
    ).files == (
        "src/x.py",
        "tests/test_x.py",
    )


def test_what_looks_like_a_key_is_in_no_gist():
    told = of(
        b"export API_KEY=sk-ant-api03-abcdEFGH1234567890abcdEFGH and "
        b"ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    )

    assert not [
        word
        for word in (*told.keywords, *told.entities, *told.files)
        if "abcd" in word.lower() or "ghp" in word.lower()
    ]


def test_no_planted_secret_is_in_a_gist():
    for each in planted(seed=21, n=430):
        told = of(each.text.encode())
        assert not each.remains("\n".join((*told.keywords, *told.entities, *told.files))), each.kind


@pytest.mark.slow
def test_a_secret_that_is_cut_by_what_is_looked_at_is_in_no_gist():
    before = b"a line of text\n" * 3000
    for start in range(32 * 1024 - 24, 32 * 1024):
        told = of(before[:start] + b" password='kT9vQ2xLm4RwZb7' " + before)
        assert not [name for name in told.entities if name.startswith("kT9v")]


@pytest.mark.parametrize(
    ("content", "least", "most"),
    [
        (b"", 0, 0),
        (b"word", 1, 2),
        (b"The quick brown fox jumps over the lazy dog. " * 100, 900, 1100),
    ],
)
def test_tokens_are_estimated(content, least, most):
    assert least <= of(content).tokens <= most


def test_only_the_beginning_is_looked_at_and_the_rest_is_estimated():
    long = of(b"alpha beta gamma delta " * 100_000 + b"omega " * 5)

    assert "omega" not in long.keywords
    assert 380_000 < long.tokens < 420_000


def test_an_image_has_tokens_and_nothing_else():
    assert of(b"\x89PNG" * 1000, Kind.IMAGE, "image/png") == Gist(PageId("p1"), 1600, (), (), ())


@pytest.mark.parametrize(
    "unit", ["a", "a/", "_", "aB_", ".", "A-", "é", "../", "1:", "((", "\\n", "a.b"]
)
def test_no_content_makes_it_slow(unit):
    content = (unit * 40_000).encode()
    begun = time.process_time()

    of(content)

    assert (
        time.process_time() - begun < 1.0
    )  # tens of milliseconds; a quadratic pattern would take minutes


@given(st.binary(max_size=2000))
def test_any_content_has_a_gist_within_its_bounds(content):
    told = of(content)

    assert told.tokens >= bool(content)
    assert (len(told.keywords) <= 12, len(told.entities) <= 16) == (True, True)
