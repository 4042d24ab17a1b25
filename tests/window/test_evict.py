"""Which steps leave, when, and how far apart the batches are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from hotset.nouns.knobs import NEVER, Knobs
from hotset.nouns.page import Kind, Role
from hotset.nouns.window import WHOLE, Cause, Form, Spot
from hotset.window.plan import plan
from tests.window.talk import Talk, code, moment


def test_batches_stay_rare_however_long_the_work_goes_on():
    """Logs that only grew would fill the window in the end, and each batch would make less room than the one before."""
    talk, knobs = Talk().user("Do it."), Knobs(window=8000)
    breaks: list[int] = []
    for n in range(400):
        talk.step("\n".join(f"{n}.{line}: nothing to see here" for line in range(25)), said="Next.")
        made = plan(talk.lines, talk.table, knobs, moment())
        assert made.tokens <= knobs.window
        if made.broke:
            breaks.append(n)
        talk.sent(made)

    assert min(after - before for before, after in pairwise(breaks)) >= 8
    stubs = [row.text.decode() for row in talk.table.shown.values() if row.form is Form.GONE and row.text]
    assert all('retrieve_context(id="r' in text for text in stubs)
    assert "What was done there" not in stubs[0]
    assert "What was done there" in stubs[-1]


def test_steps_that_are_shorter_than_their_log_leave_with_a_reference_alone():
    talk = Talk().user("Do it.")
    for _ in range(60):
        talk.step("fine", path="src/a_rather_long_name_for_such_a_file.py")

    made = plan(talk.lines, talk.table, Knobs(window=1200, early=False, entry=4000, said=4000), moment())

    assert made.tokens <= 1200
    assert made.stubs


@pytest.mark.parametrize(
    ("now", "head", "cause"), [(1000.0, "last", Cause.PAYS), (9000.0, "last", Cause.COLD), (1000.0, "elsewhere", Cause.REWOUND)]
)
def test_a_row_says_why_its_page_left(now, head, cause):
    talk = Talk().user("Do it.")
    for n in range(60):
        talk.step(code(50, f"k{n}"), said="Next.")
    talk.sent(plan(talk.lines, talk.table, Knobs(early=False), moment()))
    if head == "elsewhere":
        assert talk.table.sent is not None
        talk.table = replace(talk.table, sent=replace(talk.table.sent, head="a message that is no more"))

    made = plan(talk.step("ok").lines, talk.table, Knobs(), moment(now))

    assert {row.cause for row in made.fresh if row.form is Form.GONE} == {cause}


def test_a_window_that_would_overflow_says_so():
    talk = Talk().user("Do it.")
    for n in range(30):
        talk.step(code(50, f"k{n}"))

    made = plan(talk.lines, talk.table, Knobs(window=4000), moment())

    assert {row.cause for row in made.fresh if row.form is Form.GONE} == {Cause.OVERFLOW}


@pytest.mark.parametrize(("policy", "longest"), [("recency", 5), ("use", 1), ("size", 4), ("topic", 2), ("task", 5)])
def test_a_policy_says_which_of_the_older_steps_stays_longest(policy, longest):
    """Of six: the second was used again, the third shares names with the latest, the fifth is small."""
    talk = Talk().user("Do it.")
    for n in range(6):
        talk.step(code(8 if n == 4 else 40, f"part{n}"), path=f"src/step_{n}.py")
    talk.user("Now the rest.").step("ok").step("ok").step("ok", path="part1_7").step("\n".join(f"part2_{n}" for n in range(30)))

    assert next(_staying(talk, policy)) == [longest]


def _staying(talk: Talk, policy: str) -> Iterator[list[int]]:
    """Which older steps stay, for more and more room."""
    knobs = Knobs(window=8000, high=0.1, keep=2, early=False, policy=policy, limit=NEVER, limits={})
    models = [line for line in talk.lines if line.role is Role.ASSISTANT]
    for room in range(1, 100):
        made = plan(talk.lines, talk.table, replace(knobs, low=room / 100), moment())
        if staying := [index for index, line in enumerate(models[:6]) if Spot(line.chain, WHOLE) not in made.shown]:
            yield staying


def test_what_pointed_to_a_result_that_leaves_is_shown_anew():
    """An excerpt, an echo or a difference is of use only while what it speaks of stands."""
    text = code(60, "kept")
    changed = text.replace("kept_7(", "renamed_7(")
    talk, knobs = Talk().user("Do it.").step(text, path="src/a.py", kind=Kind.FILE), Knobs(window=4000, early=False)
    for n in range(20):
        talk.step(code(20, f"k{n}"), said="Next.")
    talk.step(text, path="src/b.py", kind=Kind.FILE).step(changed, path="src/a.py", kind=Kind.FILE)
    talk.sent(plan(talk.lines, talk.table, replace(knobs, window=200_000), moment()))
    echo, difference = (talk.table.shown[Spot(talk.lines[index].chain, 0)] for index in (-3, -1))
    assert (echo.form, difference.form) == (Form.ECHO, Form.CHANGE)

    made = plan(talk.step("ok").lines, talk.table, knobs, moment())

    assert made.shown[Spot(talk.lines[2].chain, WHOLE)].form is Form.GONE
    assert made.tokens <= knobs.window
    assert {made.shown[row.spot].form for row in (echo, difference)} <= {Form.FULL, Form.EXCERPT}
