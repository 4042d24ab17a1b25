"""What is shown of a result the first time."""

from __future__ import annotations

import base64
import re

import pytest
from hypothesis import given, strategies as st

from hotset.nouns.knobs import NEVER, Knobs
from hotset.nouns.page import Kind, Role
from hotset.nouns.window import Form, Shown, Spot
from hotset.window.birth import shorten_alone, strip_numbers
from hotset.window.plan import plan
from tests.window.talk import Talk, code, moment


def _last(talk: Talk, knobs: Knobs | None = None) -> Shown:
    """The form of the latest result, when everything before it was sent as planned."""
    before, table = talk.lines[:-2], talk.table
    if len(before) > 1:
        talk.table = table = (
            Talk(before).sent(plan(before, table, (), knobs or Knobs(), moment())).table
        )
    return plan(talk.lines, table, (), knobs or Knobs(), moment()).shown[
        Spot(talk.lines[-1].chain, 0)
    ]


def _all(talk: Talk, knobs: Knobs | None = None) -> list[Shown]:
    """The forms of all results, each planned when it came."""
    grown = Talk(talk.lines[:1])
    for at in range(3, len(talk.lines) + 1, 2):
        grown.lines = talk.lines[:at]
        grown.sent(plan(grown.lines, grown.table, (), knobs or Knobs(), moment()))
    talk.table = grown.table
    return [grown.table.shown[Spot(line.chain, 0)] for line in talk.lines if line.role is Role.TOOL]


def _lines(text: str) -> list[str]:
    """The lines of a result, without what hotset says of it."""
    own = (line for line in text.split("\n") if not line.startswith(("[hotset:", "… ")))
    return [line for line in own if len(line) > 16]


def _numbered(text: str, first: int = 1, mark: str = "→") -> str:
    return "\n".join(
        f"{number:6}{mark}{line}" for number, line in enumerate(text.split("\n"), first)
    )


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])), min_size=5
    ),
    st.integers(1, 9000),
)
def test_a_text_without_its_numbers_has_every_line_where_it_stood(lines, first):
    text = "\n".join(lines)

    found = strip_numbers(_numbered(text, first))

    assert found is not None
    assert (found.text, found.first, found.last) == (text, first, first + len(lines) - 1)


@pytest.mark.parametrize(
    "text",
    [
        "1\t2\t3\n4\t5\t6\n7\t8\t9\n10\t2\t1\n13\t1\t1\n16\t1\t0",
        "src/a.py:1: x\n" * 9,
        "",
        "     1→only one",
    ],
)
def test_what_is_not_numbered_line_by_line_keeps_its_numbers(text):
    found = strip_numbers(text)

    assert found is None or found.text.count("\n") == text.count("\n")
    assert found is None or "\t2\t" in text


def test_a_file_is_shown_without_the_numbers_of_its_lines_and_says_so():
    source = code(30)
    row = _last(Talk().user("Look.").step(_numbered(source, 41), path="a.py", kind=Kind.FILE))

    note, _, shown = row.text.decode().partition("\n")
    assert row.form is Form.EXCERPT
    assert shown == source
    assert (
        note == f"[hotset: lines 41-{40 + len(source.split(chr(10)))}, shown without their numbers]"
    )
    assert row.tokens < row.whole


def test_where_nothing_may_be_shortened_the_numbers_stay_too():
    talk = Talk().user("Look.").step(_numbered(code(30)), path="a.py", kind=Kind.FILE)

    assert _last(talk, Knobs(limit=NEVER, limits={})).form is Form.FULL


def test_an_excerpt_lists_names_of_what_it_leaves_out_and_says_how_to_get_them():
    source = "\n".join(code(5, f"do_{chr(97 + n // 26)}{chr(97 + n % 26)}") for n in range(120))
    row = _last(Talk().user("Look.").step(source, kind=Kind.TOOL_RESULT))

    *_, index, closing = row.text.decode().splitlines()
    listed = index.removeprefix("[hotset: left-out names: ").removesuffix("]").split()
    shown = row.text.decode().rpartition("[hotset: left-out names")[0]
    assert len(listed) > 10
    assert not [name for name in listed if name in shown or name not in source]
    assert re.search(r'left out .*; any part: retrieve_context\(id="c\w+"', closing)


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(bytes(range(256)) * 40).decode(),
        "\n".join(
            f"2026-11-03T09:{n // 60:02}:{n % 60:02}.{n * 7 % 1000:03}Z INFO took 0.{n:03}s"
            for n in range(900)
        ),
        "\n".join(
            f"tests/test_a.py::{chr(97 + n // 26)}{chr(97 + n % 26)}_works PASSED [{n // 5}%]"
            for n in range(500)
        ),
        " id | name | balance\n----+------+--------\n"
        + "\n".join(f"{n:3} | name{n} | {n * 7919 % 100000:6}" for n in range(400)),
    ],
    ids=["base64", "times", "passes", "numbers"],
)
def test_what_nobody_copies_is_no_list_of_names(text):
    shown = shorten_alone(text.encode(), "bash", b'{"command": "./run"}', Knobs())

    assert shown is not None
    assert "left-out names" not in shown
    mentioned = shown.partition("also mentions: ")[2].partition(" …")[0]
    assert re.fullmatch(r"(?:name\d+ \(\d+ alike\))?", mentioned)


def test_names_take_no_more_than_a_third_of_the_excerpt_beside_which_they_stand():
    lines = [f"a line of {n} words" for n in range(3)] + [
        f"{chr(97 + n // 26)}{chr(97 + n % 26)}_name of" for n in range(676)
    ]

    shown = shorten_alone(
        "\n".join(lines).encode(), "bash", b'{"command": "./run"}', Knobs(index=5000)
    )

    assert shown is not None
    excerpt, _, listed = shown.partition("\n[hotset: left-out names")
    assert 0 < len(listed.split("\n")[0]) < 0.4 * len(excerpt)


def test_a_file_that_a_tool_for_files_read_may_be_longer_than_one_that_a_shell_printed():
    long = code(200)
    talk = Talk().user("Look.").step(long, path="a.py", kind=Kind.FILE)
    assert _last(talk).form is Form.FULL

    printed = Talk().user("Look.").step(long, kind=Kind.TOOL_RESULT)
    assert _last(printed).form is Form.EXCERPT


def test_what_is_asked_for_again_after_an_excerpt_is_shown_at_length():
    long = code(200)
    talk = Talk().user("Look.").step(long).step("ok").step(long)

    first, _, again = (row.text.decode() for row in _all(talk))

    assert "left out" in first
    assert "left out" not in again
    assert all(line in again or line in first for line in long.split("\n"))
    assert not set(_lines(first)) & set(_lines(again))
    third = _last(talk.step("ok").step(long)).text.decode()
    assert "left out" not in third
    assert not _lines(third)


def test_a_small_window_gets_shorter_excerpts():
    talk = Talk().user("Look.").step(code(400))

    assert _last(talk, Knobs(window=16_000)).tokens < _last(talk, Knobs(window=128_000)).tokens / 3
    assert _last(talk, Knobs(window=128_000)).text == _last(talk, Knobs(window=1_000_000)).text


@pytest.mark.row("C2")
def test_what_changed_back_is_not_said_to_be_unchanged():
    first = code(60)
    second = first.replace("return a + b + 79190\n", "return a * b\n")
    third = first.replace("return a + b + 0\n", "return b - a\n")
    talk = Talk().user("Edit it, and look again.")

    told = [
        _last(talk.step(text, path="a.py"))
        for text in (first, first, second, second, first, second, third)
    ]

    assert [row.form for row in told] == [
        Form.FULL,
        Form.ECHO,
        Form.CHANGE,
        Form.ECHO,
        Form.ECHO,
        Form.CHANGE,
        Form.CHANGE,
    ]
    _, same, changed, still, back, again, other = (row.text.decode() for row in told)
    assert "unchanged, same as the result above" in same
    assert "same as the result above" not in still + back
    assert "unchanged since the last call, whose diff is above" in still
    assert (
        'changed since the last call; same as the earlier result above that starts with "def '
        'f_0(a, b):"'
    ) in back
    assert changed == again  # each compares with the one that stands whole, which was the last
    assert "diff to this call's last whole result above (turn 1; - old, + new)" in other
    assert "return a * b" not in other


@pytest.mark.row("C2")
def test_another_call_with_the_same_result_points_to_it():
    talk = Talk().user("Look.").step(code(60), path="a.py").step(code(60), path="b.py")

    assert "unchanged, same as the result above" in _last(talk).text.decode()
