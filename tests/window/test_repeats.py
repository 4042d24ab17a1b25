"""Which results repeat what the conversation had, and which of them could be pointed to."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings, strategies as st

from hotset.nouns.knobs import NEVER, Knobs
from hotset.nouns.link import link
from hotset.nouns.message import Message, Part
from hotset.nouns.page import ROOT, Digest, Kind, Role
from hotset.nouns.window import WHOLE, Cause, Form, Shown, Spot
from hotset.window.birth import strip_numbers
from hotset.window.plan import plan
from hotset.window.repeats import NO_REPEATS, Repeats, pointers, repeats
from tests.window.talk import Talk, code, moment

LONG = b"a line of the file that was read\n" * 40
SHORT = b"ok"


def results(*contents: bytes) -> Message:
    parts = tuple(
        Part(Kind.FILE, each, tool="read", call=f"call_{n}") for n, each in enumerate(contents)
    )
    return Message(Role.USER, b"{}", parts, Digest(str(contents)))


def born(
    message: Message, forms: list[Form], cause: Cause = Cause.BIRTH
) -> tuple[list, list[Shown]]:
    links = list(link(ROOT, [message]))
    rows = [
        Shown(Spot(links[0].chain, at), form, b"", 1, 1, cause, 0.0)
        for at, form in enumerate(forms)
    ]
    return links, rows


@pytest.mark.parametrize(
    ("contents", "forms", "found"),
    [
        ([LONG], [Form.FULL], Repeats(0, 0)),
        ([LONG, LONG], [Form.FULL, Form.ECHO], Repeats(1, 1)),
        ([LONG, LONG + b"more"], [Form.FULL, Form.CHANGE], Repeats(1, 1)),
        ([LONG, LONG, LONG], [Form.EXCERPT, Form.EXCERPT, Form.FULL], Repeats(2, 0)),
        ([SHORT, SHORT], [Form.FULL, Form.FULL], Repeats(0, 0)),
        ([LONG, LONG + b"more"], [Form.FULL, Form.FULL], Repeats(0, 0)),
    ],
)
def test_a_result_repeats_what_was_said_word_for_word_or_points_to_what_it_was(
    contents, forms, found
):
    assert repeats(*born(results(*contents), forms)) == found


def test_what_left_later_was_not_born_again():
    assert repeats(*born(results(LONG, LONG), [Form.STUB, Form.STUB], Cause.OVERFLOW)) == NO_REPEATS


_SOURCES = [code(40, mark).split("\n") for mark in ("alpha", "beta")]


@st.composite
def _reads(draw: st.DrawFn) -> str:
    """A part of a file, as it is, edited, numbered or in the frame of a command."""
    lines = list(draw(st.sampled_from(_SOURCES)))
    first = draw(st.integers(0, len(lines) - 30))
    part = lines[first : first + draw(st.integers(20, 120))]
    if draw(st.booleans()):
        part[draw(st.integers(0, len(part) - 1))] = "    return edited(a, b)"
    if draw(st.booleans()):
        part = [f"{number:6}→{line}" for number, line in enumerate(part, first + 1)]
    elif draw(st.booleans()):
        seconds = draw(st.integers(1, 9))
        part = [f"Chunk ID: {seconds}a", f"Wall time: {seconds}.5 seconds", *part]
    return "\n".join(part)


@given(
    st.lists(_reads(), min_size=2, max_size=14),
    st.sampled_from([900, 1500, 3000, 200_000]),
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=120, deadline=None)
@pytest.mark.row("C2")
def test_no_pointer_speaks_of_lines_that_its_turn_does_not_show(reads, window, keep, early, whole):
    limits = {"limit": NEVER, "limits": {}} if whole else {}
    knobs = Knobs(window=window, keep=keep, early=early, **limits)
    talk = Talk().user("Look.")
    for read in reads:
        talk.step(read, tool="bash")
        talk.sent(plan(talk.lines, talk.table, (), knobs, moment()))
        assert not list(_dangling(talk))


@given(st.lists(_reads(), min_size=2, max_size=8), st.sampled_from([1500, 200_000]))
@settings(max_examples=40, deadline=None)
def test_every_line_of_a_result_is_shown_or_pointed_to_or_counted_as_left_out(reads, window):
    talk = Talk().user("Look.")
    for read in reads:
        talk.step(read, tool="bash")
        talk.sent(plan(talk.lines, talk.table, (), Knobs(window=window), moment()))
        row = talk.table.shown.get(Spot(talk.lines[-1].chain, 0))
        if row is None or row.form is not Form.OVERLAP or b"left out" in row.text:
            continue
        shown = row.text.decode().split("\n")
        pointed = sum(each.last - each.first + 1 for each in pointers(row.text.decode()))
        own = [line for line in shown if not line.startswith(("[hotset:", "… "))]
        assert len(own) + pointed == read.count("\n") + 1


def test_a_result_that_quotes_a_pointer_is_planned_like_any_other():
    quotes = "\n".join(['… lines 1-9: as in turn 77, from "def x():" …', *_SOURCES[0][:60]])
    talk = Talk().user("Look.").step("\n".join(_SOURCES[0]), tool="bash")
    knobs = Knobs(window=1200, keep=3, early=False, limit=NEVER, limits={})
    for read in (quotes, "\n".join(_SOURCES[1]), quotes, "\n".join(_SOURCES[1])):
        talk.step(read, tool="bash")
        made = plan(talk.lines, talk.table, (), knobs, moment())
        talk.sent(made)

    assert made.tokens <= knobs.window


@pytest.mark.row("C2")
def test_a_command_that_ran_again_points_to_what_it_printed_but_for_its_times_and_ids():
    def run(id: str, seconds: str) -> str:
        tests = "\n".join(f"ok test_{n} of the parser ({seconds} ms)" for n in range(20))
        rest = "\n".join(_SOURCES[0][:40])
        return f"Chunk ID: {id}\nWall time: {seconds} seconds\n{rest}\n{tests}\nDone in {seconds} s"

    talk = Talk().user("Look.").step(run("8ee39f", "1.4"), tool="bash", path="a")
    talk.sent(plan(talk.lines, talk.table, (), Knobs(), moment()))
    talk.step(run("47d200", "2.6"), tool="bash", path="b")
    row = plan(talk.lines, talk.table, (), Knobs(), moment()).shown[Spot(talk.lines[-1].chain, 0)]

    shown = row.text.decode()
    assert row.form is Form.OVERLAP
    assert "Chunk ID: 47d200\nWall time: 2.6 seconds\n… lines 3-" in shown
    assert "as in turn 1 but for times and ids, from" in shown
    assert "def alpha_3" not in shown
    assert "test_7" not in shown


def _dangling(talk: Talk) -> Iterator[str]:
    """Pointers in what is sent now to lines that the turn they name does not show."""
    above: dict[int, list[str]] = {}
    turn = 0
    for line in talk.lines:
        turn += line.role is Role.ASSISTANT
        if line.role is not Role.TOOL or Spot(line.chain, WHOLE) in talk.table.shown:
            continue
        row = talk.table.shown.get(Spot(line.chain, 0))
        content = line.pieces[0].content.decode()
        text = row.text.decode() if row and row.text else content
        for found in re.finditer(r"turn (\d+)", text):
            if row is not None and row.form is not Form.STUB and int(found[1]) not in above:
                yield f"turn {found[1]} shows nothing: {text[:200]}"
        if row is not None and row.form is Form.OVERLAP:
            plain = strip_numbers(content) if text.startswith("[hotset: lines") else None
            own = (plain.text if plain else content).split("\n")
            shift = plain.shift if plain else 0
            for each in pointers(text):
                lines = "\n".join(own[each.first - 1 - shift : each.last - shift])
                if not any(f"\n{lines}\n" in f"\n{one}\n" for one in above.get(each.turn, ())):
                    yield f"{each}: {text[:200]}"
        if row is None or row.form in (Form.FULL, Form.EXCERPT, Form.OVERLAP, Form.CHANGE):
            above.setdefault(turn, []).append(text)
