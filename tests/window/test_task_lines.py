"""What the task is about decides which lines of a long result are shown first."""

from __future__ import annotations

import random

import pytest

from hotset.nouns.knobs import Knobs
from hotset.nouns.page import Chain, Kind, Role
from hotset.nouns.window import Line, PageTable, Piece
from hotset.tokens import count
from hotset.window.plan import Moment, plan
from hotset.window.preview import ContentOrigin, TaskText, preview
from tests.window.talk import PRICE

NOUNS = [
    "tank",
    "valve",
    "pump",
    "hatch",
    "rudder",
    "anchor",
    "mast",
    "cabin",
    "galley",
    "bilge",
    "engine",
    "propeller",
    "sonar",
    "radar",
    "cable",
    "winch",
    "ballast",
    "sail",
    "keel",
    "deck",
]
VERBS = ["open", "close", "drain", "fill", "start", "stop", "lower", "raise", "check", "paint"]


def _functions(seed=1):
    pick = random.Random(seed)
    names = [f"{verb}_{noun}" for verb in VERBS for noun in NOUNS]
    pick.shuffle(names)
    return names, [
        line
        for name in names
        for line in (
            f"def {name}(ship, state):",
            f"    ship.log('{name}')",
            f"    return state.{name.split('_')[1]}.apply(ship)",
            "",
        )
    ]


def _shown(prompt, said, result, arguments=b'{"command": "cat ship.py"}', tool="bash"):
    """The result's text in the first request that has it."""
    lines = (
        Line(Chain("a"), Role.USER, (_piece(Kind.PROMPT, prompt),), 4),
        Line(
            Chain("b"),
            Role.ASSISTANT,
            (
                _piece(Kind.RESPONSE, said),
                Piece(Kind.TOOL_CALL, arguments, count(arguments), tool, "c1"),
            ),
            4,
        ),
        Line(Chain("c"), Role.TOOL, (_piece(Kind.TOOL_RESULT, result, tool, "c1"),), 4),
    )
    made = plan(lines, PageTable({}, {}, None), (), Knobs(), Moment(0.0, PRICE, count, 0))
    (row,) = [row for row in made.fresh if row.spot.chain == "c"]
    return row.text.decode()


def _piece(kind, text, tool="", call=""):
    return Piece(kind, text.encode(), count(text), tool, call)


@pytest.mark.parametrize("asked", [3, 90, 195])
def test_a_function_that_the_request_speaks_of_is_shown_wherever_it_stands(asked):
    names, lines = _functions()
    words = names[asked].replace("_", " ")
    shown = _shown(f"please change how we {words}", "I read the file.", "\n".join(lines))
    assert f"def {names[asked]}(" in shown


def test_the_models_last_words_choose_lines_as_the_request_does():
    names, lines = _functions()
    shown = _shown("go on", f"Next I look at `{names[120]}`.", "\n".join(lines))
    assert f"def {names[120]}(" in shown


def test_the_same_request_gives_the_same_bytes():
    _, lines = _functions()
    text = "\n".join(lines)
    assert _shown("drain the tank", "I look.", text) == _shown("drain the tank", "I look.", text)


def test_another_task_shows_other_lines_at_no_greater_length():
    names, lines = _functions()
    text = "\n".join(lines)
    first, second = (
        preview(text, ContentOrigin(task=TaskText(asked=names[at])), 1500) for at in (20, 150)
    )
    assert names[20] in first.text
    assert names[20] not in second.text
    assert names[150] in second.text
    assert names[150] not in first.text
    assert max(len(first.text), len(second.text)) <= 1500


def test_names_already_shown_leave_room_for_new_ones():
    rows = [f"job {at % 3} wrote /out/batch_{at % 3}/part.json" for at in range(300)]
    rows[211] = "job 7 wrote /out/repair_9/other.json"
    shown = preview("\n".join(rows), ContentOrigin(tool="bash"), 1200)
    assert "/out/repair_9/other.json" in shown.text


def test_an_error_is_shown_before_lines_that_the_task_names():
    _, lines = _functions()
    lines[400:400] = ["Traceback (most recent call last):", "ValueError: no such tank"]
    shown = _shown("drain tank valve pump", "I read tank, valve and pump.", "\n".join(lines))
    assert "ValueError: no such tank" in shown


@pytest.mark.row("C1")
def test_a_file_read_to_be_edited_keeps_the_whole_function_that_the_task_names():
    names, lines = _functions()
    body = [f"    step_{at} = ship.measure({at}) + state.offset" for at in range(20)]
    at = lines.index(f"def {names[100]}(ship, state):")
    lines[at + 1 : at + 1] = body
    text = "\n".join(lines * 2)
    shown = _shown(
        f"fix the offset in {names[100]}",
        "I read it first.",
        text,
        b'{"file_path": "/ship/ship.py"}',
        "Read",
    )
    assert "\n".join([f"def {names[100]}(ship, state):", *body]) in shown
    assert len(shown) < len(text) / 2
