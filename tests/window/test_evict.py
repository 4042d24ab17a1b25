"""Which steps leave, when, and how far apart the batches are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from msgspec import structs

from hotset.nouns.knobs import NEVER, PROFILES, Knobs
from hotset.nouns.page import Kind, Role
from hotset.nouns.window import WHOLE, Cause, Form, Line, PageTable, SentRequest, Shown, Spot
from hotset.window.plan import plan
from hotset.window.step_sizes import by_message, weigh
from tests.window.talk import Talk, code, moment, piece


@pytest.mark.slow
def test_batches_stay_rare_however_long_the_work_goes_on():
    """Logs that only grew would fill the window in the end, and each batch would make less room
    than the one before."""
    talk, knobs = Talk().user("Do it."), Knobs(window=8000)
    breaks: list[int] = []
    for n in range(400):
        talk.step("\n".join(f"{n}.{line}: nothing to see here" for line in range(25)), said="Next.")
        made = plan(talk.lines, talk.table, (), knobs, moment())
        assert made.tokens <= knobs.window
        if made.broke:
            breaks.append(n)
        talk.sent(made)

    assert min(after - before for before, after in pairwise(breaks)) >= 8
    stubs = [
        row.text.decode() for row in talk.table.shown.values() if row.form is Form.GONE and row.text
    ]
    assert all('retrieve_context(id="r' in text for text in stubs)
    assert "Done there" not in stubs[0]
    assert "Done there" in stubs[-1]


def test_steps_that_are_shorter_than_their_log_leave_with_a_reference_alone():
    talk = Talk().user("Do it.")
    for _ in range(60):
        talk.step("fine", path="src/a_rather_long_name_for_such_a_file.py")

    made = plan(
        talk.lines, talk.table, (), Knobs(window=1200, early=False, entry=4000, said=4000), moment()
    )

    assert made.tokens <= 1200
    assert made.stubs


@pytest.mark.parametrize(
    ("now", "head", "cause"),
    [
        (1000.0, "last", Cause.PAYS),
        (9000.0, "last", Cause.COLD),
        (1000.0, "elsewhere", Cause.REWOUND),
    ],
)
@pytest.mark.rest_slow
def test_a_row_says_why_its_page_left(now, head, cause):
    talk = Talk().user("Do it.")
    for n in range(60):
        talk.step(code(50, f"k{n}"), said="Next.")
    talk.sent(plan(talk.lines, talk.table, (), Knobs(early=False), moment()))
    if head == "elsewhere":
        assert talk.table.sent is not None
        talk.table = replace(
            talk.table, sent=replace(talk.table.sent, head="a message that is no more")
        )

    made = plan(talk.step("ok").lines, talk.table, (), Knobs(), moment(now))

    assert {row.cause for row in made.fresh if row.form is Form.GONE} == {cause}


def test_a_window_that_would_overflow_says_so():
    talk = Talk().user("Do it.")
    for n in range(30):
        talk.step(code(50, f"k{n}"))

    made = plan(talk.lines, talk.table, (), Knobs(window=4000), moment())

    assert {row.cause for row in made.fresh if row.form is Form.GONE} == {Cause.OVERFLOW}


@pytest.mark.parametrize(
    ("policy", "longest"), [("recency", 5), ("use", 1), ("size", 4), ("task", 5)]
)
def test_a_policy_says_which_of_the_older_steps_stays_longest(policy, longest):
    """Of six: the second was used again, the fifth is small."""
    talk = Talk().user("Do it.")
    for n in range(6):
        talk.step(code(16 if n == 4 else 40, f"part{n}"), path=f"src/step_{n}.py")
    talk.user("Now the rest.").step("ok").step("ok").step("ok", path="part1_7").step(
        "\n".join(f"part2_{n}" for n in range(30))
    )

    assert next(_staying(talk, policy)) == [longest]


_WHOLE = {"keep": 2, "early": False, "echo": False, "limit": NEVER, "limits": {}}
"""Nothing is shortened, so that only leaving makes room."""


@pytest.mark.row("V5")
def test_the_topics_that_are_not_the_current_one_leave_with_one_reference():
    """Sixty steps about four things, of which the third goes on."""
    talk = Talk().user("Do it.")
    for n in range(60):
        topic = n // 15
        talk.step(code(12, f"topic{topic}"), path=f"src/topic{topic}/file_{n % 3}.py")
    talk.step(code(12, "topic2"), path="src/topic2/file_1.py")
    knobs = structs.replace(PROFILES["academic"], **_WHOLE, window=11_000)

    made = plan(talk.lines, talk.table, (), knobs, moment())

    assert [stub.turns for stub in made.stubs] == [(1, 30)]
    assert made.tokens <= knobs.window * knobs.high * 0.75


@pytest.mark.row("V5")
def test_finished_work_leaves_as_one_piece_before_older_work_that_is_open():
    talk = Talk().user("Look into the slow start of the server.")
    for n in range(6):
        talk.step(code(20, f"slow{n}"), path=f"src/slow_{n}.py")
    talk.say("The server reads every plugin twice. Shall I change the loader?")
    talk.user("First fix the parser bug in src/parser.py, please.")
    for n in range(6):
        talk.step(code(20, f"parser{n}"), path="src/parser.py", tool="edit_file")
    talk.step("4 passed in 0.1s", tool="pytest", kind=Kind.TEST_RESULT)
    talk.say("The parser is fixed, all tests pass.")
    talk.user("Great, thanks. Now back to the slow start: change the loader.").step("ok").step("ok")
    knobs = structs.replace(PROFILES["architect"], **_WHOLE, window=5_000, high=0.5, low=0.4)

    made = plan(talk.lines, talk.table, (), knobs, moment())

    assert [stub.turns for stub in made.stubs] == [(8, 15)]


def _parser_work(after: str) -> Talk:
    """A bug that was fixed, the user's next words, and five more steps."""
    talk = Talk().user("Fix the parser bug in src/parser.py.")
    for n in range(60):
        talk.step(code(50, f"parser{n}"), path="src/parser.py", tool="edit_file", said="I see it.")
    talk.step("1 failed, 3 passed in 0.1s", tool="pytest", kind=Kind.TEST_RESULT)
    talk.step("ok", path="src/parser.py", tool="edit_file")
    talk.step("4 passed in 0.1s", tool="pytest", kind=Kind.TEST_RESULT)
    talk.say("The parser is fixed, all tests pass.").user(after)
    for n in range(5):
        talk.step("ok", path=f"docs/page_{n}.md")
    return talk


_SETTLES, _GOES_ON = "Great, thanks. Now write the docs.", "It still fails, look again."


@pytest.mark.row("C2")
def test_finished_work_leaves_earlier_than_work_that_goes_on():
    def left_at(after: str) -> float:
        """The highest regret at which it leaves."""
        talk = _parser_work(after)
        talk.sent(plan(talk.lines[:-2], talk.table, (), Knobs(early=False), moment()))
        regrets = (n / 2 for n in range(200))
        return max(
            (
                r
                for r in regrets
                if plan(talk.lines, talk.table, (), Knobs(regret=r), moment()).stubs
            ),
            default=-1.0,
        )

    assert left_at(_SETTLES) > 2 * left_at(_GOES_ON) >= 0


def _log_of(talk: Talk) -> str:
    made = plan(talk.lines, talk.table, (), Knobs(window=16_000, regret=0), moment())
    return next(row.text.decode() for row in made.fresh if row.form is Form.GONE and row.text)


@pytest.mark.row("C2")
def test_the_log_of_finished_work_begins_with_what_was_done():
    made = plan(
        _parser_work(_SETTLES).lines, PageTable(), (), Knobs(window=16_000, regret=0), moment()
    )
    text = next(row.text.decode() for row in made.fresh if row.form is Form.GONE and row.text)
    _, heading, *done = text.splitlines()

    assert heading == "Done there, by turn:"
    assert done[0] == "Changed: src/parser.py"
    assert "1 failed, 3 passed" in text
    assert "4 passed" in text
    assert "I see it." not in text
    assert "[edit_file]\nsrc/parser.py" in text

    made = plan(
        _parser_work(_GOES_ON).lines, PageTable(), (), Knobs(window=16_000, regret=0), moment()
    )
    text = next(row.text.decode() for row in made.fresh if row.form is Form.GONE and row.text)
    assert "Changed:" not in text
    assert "I see it." in text


def _staying(talk: Talk, policy: str) -> Iterator[list[int]]:
    """Which older steps stay, for more and more room."""
    knobs = Knobs(window=8000, high=0.1, keep=2, early=False, policy=policy, limit=NEVER, limits={})
    models = [line for line in talk.lines if line.role is Role.ASSISTANT]
    for room in range(1, 100):
        made = plan(talk.lines, talk.table, (), structs.replace(knobs, low=room / 100), moment())
        if staying := [
            index
            for index, line in enumerate(models[:6])
            if Spot(line.chain, WHOLE) not in made.shown
        ]:
            yield staying


def test_what_pointed_to_a_result_that_leaves_is_shown_anew():
    """An excerpt, an echo or a difference is of use only while what it speaks of stands."""
    text = code(60, "kept")
    changed = text.replace("kept_7(", "renamed_7(")
    talk, knobs = (
        Talk().user("Do it.").step(text, path="src/a.py", kind=Kind.FILE),
        Knobs(window=4000, early=False),
    )
    for n in range(20):
        talk.step(code(20, f"k{n}"), said="Next.")
    talk.step(text, path="src/b.py", kind=Kind.FILE).step(changed, path="src/a.py", kind=Kind.FILE)
    talk.sent(plan(talk.lines, talk.table, (), structs.replace(knobs, window=200_000), moment()))
    echo, difference = (talk.table.shown[Spot(talk.lines[index].chain, 0)] for index in (-3, -1))
    assert (echo.form, difference.form) == (Form.ECHO, Form.CHANGE)

    made = plan(talk.step("ok").lines, talk.table, (), knobs, moment())

    assert made.shown[Spot(talk.lines[2].chain, WHOLE)].form is Form.GONE
    assert made.tokens <= knobs.window
    anew = [made.shown[row.spot] for row in (echo, difference)]
    assert anew[0].form in (Form.FULL, Form.EXCERPT)
    assert anew[1].form in (Form.FULL, Form.EXCERPT, Form.OVERLAP)  # it may point to the other
    assert not {row.text for row in anew} & {echo.text, difference.text}


def _worked(steps: int) -> Talk:
    talk = Talk().user("Do it.")
    for n in range(steps):
        talk.step(code(30, f"k{n}"), said="Next.")
    return talk


def _edited(talk: Talk, at: int) -> Talk:
    """The same conversation, with other words from this message on: every later message is another
    one."""
    lines = [
        line if index < at else replace(line, chain=f"{line.chain}'")
        for index, line in enumerate(talk.lines)
    ]
    lines[at] = replace(
        lines[at], pieces=(replace(lines[at].pieces[0], content=b"[cleared]", tokens=3),)
    )
    return Talk(lines, talk.table)


_SMALL = Knobs(window=4000, early=False, limit=NEVER, limits={})


def test_a_step_of_which_a_part_has_left_is_still_there():
    talk = _worked(3)
    left = Shown(Spot(talk.lines[1].chain, WHOLE), Form.GONE, b"", 0, 9, Cause.PAYS, 0.0)

    weighed = weigh(talk.lines, by_message([left]))

    assert [weighed.is_resident(step) for step in weighed.steps] == [True, True, True]
    both = replace(left, spot=Spot(talk.lines[2].chain, WHOLE))
    assert not weighed.after([both]).is_resident(weighed.steps[0])


@pytest.mark.parametrize(
    "at", [2, 20, 41], ids=["in its first step", "in the midst", "in its last"]
)
def test_a_stub_that_an_edit_cuts_is_made_anew_and_stays(at):
    talk = _worked(30)
    talk.sent(plan(talk.lines, talk.table, (), _SMALL, moment()))
    left = [line.chain for line in talk.lines if Spot(line.chain, WHOLE) in talk.table.shown]
    assert talk.lines[41].chain in left

    other = _edited(talk, at)
    made = plan(other.lines, other.table, (), _SMALL, moment())

    assert made.broke is Cause.REWOUND
    assert made.tokens <= _SMALL.window
    for first, last in zip(other.lines[1::2], other.lines[2::2], strict=True):
        assert (Spot(first.chain, WHOLE) in made.shown) is (Spot(last.chain, WHOLE) in made.shown)
    told = [row.text.decode() for row in made.shown.values() if row.form is Form.GONE and row.text]
    turns = [re.search(r"turns? (\d+)(?:-(\d+))? ", text) for text in told]
    assert max(int(each[2] or each[1]) for each in turns if each) <= 26
    kept = {
        **talk.table.shown,
        **{row.spot: row for row in made.fresh},
    }  # as a store gives it back after a restart
    again = plan(
        other.lines,
        PageTable(kept, {}, SentRequest(other.lines[-1].chain, 1000.0)),
        (),
        _SMALL,
        moment(),
    )
    assert (again.fresh, again.broke, again.tokens) == ((), None, made.tokens)


def test_a_stub_does_not_vanish_with_the_thought_in_whose_place_it_stood():
    """Clients drop what the model thought in earlier turns; the messages around it stay the
    same."""
    talk = Talk().user("Do it.")
    for n in range(30):
        talk.lines.append(
            Line(
                f"thought{n}",
                Role.ASSISTANT,
                (piece(Kind.THINKING, f"Hm, {n}."),),
                extra=4,
                aside=True,
            )
        )
        talk.step(code(30, f"k{n}"))
    talk.sent(plan(talk.lines, talk.table, (), _SMALL, moment()))
    assert talk.table.shown[Spot("thought0", WHOLE)].text

    talk.lines = [line for line in talk.lines if not line.aside]
    made = plan(talk.lines, talk.table, (), _SMALL, moment())

    assert made.shown[Spot(talk.lines[1].chain, WHOLE)].text.startswith(b"[CTX-REF:")
    assert plan(talk.lines, talk.sent(made).table, (), _SMALL, moment()).fresh == ()


def test_two_thoughts_that_say_the_same_leave_behind_one_stub():
    talk = Talk().user("Do it.")
    for n in range(30):
        same = Line(
            f"thought{n}", Role.ASSISTANT, (piece(Kind.THINKING, "Hm."),), extra=4, aside=True
        )
        talk.lines += [same, same]
        talk.step(code(30, f"k{n}"))

    talk.sent(plan(talk.lines, talk.table, (), _SMALL, moment()))

    assert talk.table.shown[Spot("thought0", WHOLE)].text
    assert plan(talk.lines, talk.table, (), _SMALL, moment()).fresh == ()


def test_a_call_and_its_result_that_stand_apart_stay_and_what_they_brought_leaves():
    talk = _worked(3)
    talk.add(Role.ASSISTANT, piece(Kind.TOOL_CALL, "{}", "run", "late")).user(
        "Meanwhile, think of the tests."
    )
    talk.add(Role.TOOL, piece(Kind.TOOL_RESULT, code(60, "late"), "run", "late"))
    talk.add(Role.ASSISTANT, piece(Kind.TOOL_CALL, "{}", "run", "told")).add(
        Role.SYSTEM, piece(Kind.SYSTEM, "Be brief.")
    )
    talk.add(Role.TOOL, piece(Kind.TOOL_RESULT, code(60, "told"), "run", "told"))
    apart = {line.chain for line in talk.lines[7:]}
    for n in range(20):
        talk.step(code(30, f"m{n}"))

    made = plan(talk.lines, talk.table, (), _SMALL, moment())

    assert not any(Spot(chain, WHOLE) in made.shown for chain in apart)
    assert made.shown[Spot(talk.lines[12].chain, 0)].form is Form.STUB
    assert Spot(talk.lines[1].chain, WHOLE) in made.shown


def test_what_pointed_to_a_result_in_a_step_that_comes_back_or_leaves_is_shown_anew_after_an_edit():
    """The same file was read in step 1 and in step 6; both had left, and the sixth comes back
    without the first."""
    text = code(40, "same")
    talk, wide = (
        Talk().user("Do it.").step(text, path="a.py"),
        structs.replace(_SMALL, window=200_000),
    )
    for n in range(4):
        talk.step(code(30, f"k{n}"))
    talk.step(text, path="a.py")
    for n in range(20):
        talk.step(code(30, f"m{n}"))
    talk.sent(plan(talk.lines, talk.table, (), wide, moment()))
    again = Spot(talk.lines[12].chain, 0)
    assert talk.table.shown[again].form is Form.ECHO
    talk.sent(plan(talk.lines, talk.table, (), _SMALL, moment()))
    assert Spot(again.chain, WHOLE) in talk.table.shown
    lines = talk.lines[:13]
    lines.insert(
        12,
        Line(
            "a thought of the sixth step",
            Role.ASSISTANT,
            (piece(Kind.THINKING, "Hm."),),
            extra=4,
            aside=True,
        ),
    )

    made = plan(lines, talk.table, (), wide, moment())

    assert Spot(again.chain, WHOLE) not in made.shown
    assert Spot(talk.lines[1].chain, WHOLE) in made.shown
    assert made.shown[again].form is Form.FULL


def test_where_no_message_may_leave_what_stands_in_them_does():
    talk = _worked(30)
    talk.sent(plan(talk.lines, talk.table, (), _SMALL, moment()))

    made = plan(talk.lines, talk.table, (), _SMALL, moment(messages_stay=True))

    assert not any(spot.position == WHOLE for spot in made.shown)
    assert made.tokens <= _SMALL.window
    assert {row.form for row in made.shown.values()} == {Form.FULL, Form.STUB}


def test_files_that_instruct_the_agent_leave_after_all_other_steps():
    rules = "\n".join(f"{n}. Before step {n}, run check_{n}." for n in range(60))
    talk = Talk().user("Go on.").step(rules, tool="read", path="AGENTS.md", kind=Kind.FILE)
    for n in range(40):
        talk.step(code(80, f"part{n}"), path=f"src/part_{n}.py", kind=Kind.FILE)
    first, again = Spot(talk.lines[2].chain, 0), len(talk.lines) + 1
    knobs = Knobs(window=30_000, high=0.9, low=0.2, keep=2, early=False, limit=NEVER, limits={})

    left = plan(talk.lines, talk.table, (), knobs, moment())

    assert any(row.form is Form.GONE for row in left.fresh)
    assert not any(row.spot.chain == first.chain and row.form is Form.GONE for row in left.fresh)

    talk.sent(left).step(rules + "\n61. Say so.", tool="read", path="AGENTS.md", kind=Kind.FILE)
    for n in range(40, 90):
        talk.step(code(80, f"part{n}"), path=f"src/part_{n}.py", kind=Kind.FILE)
    later = plan(talk.lines, talk.table, (), knobs, moment())
    gone = {row.spot.chain for row in later.fresh if row.form is Form.GONE}
    assert first.chain in gone  # what was rewritten since instructs no more
    assert talk.lines[again].chain not in gone
