"""What prompts say about a file before it is read, and what that changes in how the file is
shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotset.nouns.knobs import Knobs
from hotset.nouns.page import Kind
from hotset.nouns.window import Form, Spot
from hotset.window.birth import SearchTarget, find_mentions
from hotset.window.plan import plan
from tests.window.talk import Talk, code, moment

PLAN = """Do this:

# A plan

## Context
Rows are read twice.

### 1. One reader
**File**: `src/shared/rows.py` (~line 166)

Add `only_once` to `load_rows`, as at lines 200-204.

#### By the way
`skip_empty` stays.

### 2. Its tests
**File**: `tests/test_rows.py`
Cover `load_rows` with `broken_rows`; see writer.py:77.
"""


def test_the_section_that_names_a_file_tells_what_is_looked_for_in_it():
    found = find_mentions("/home/me/src/shared/rows.py", [PLAN])

    assert {"load_rows", "only_once", "skip_empty"} <= found.names
    assert "broken_rows" not in found.names
    assert found.lines == (166, 200, 204)


def test_a_number_behind_the_name_of_a_file_is_a_line_of_that_file_alone():
    assert find_mentions("lib/writer.py", [PLAN]).lines == (77,)
    assert 77 not in find_mentions("tests/test_rows.py", [PLAN]).lines


def test_without_headings_the_lines_beside_a_mention_tell():
    text = "\n".join(
        ["unlike_this"] * 9
        + ["Look at rows.py, line 12: `parse_row` is wrong."]
        + ["\n"] * 9
        + ["nor_this_one"] * 9
    )

    assert find_mentions("rows.py", [text]) == SearchTarget(
        frozenset({"parse_row", "unlike_this"}), (12,)
    )


@pytest.mark.parametrize("path", ["", "src/", "Makefile", "a.c", "src/elsewhere.py"])
def test_what_is_not_named_has_nothing_told_of_it(path):
    assert find_mentions(path, [PLAN, "", "a.c at line 4"]) == SearchTarget()


def test_a_long_file_is_shown_where_a_prompt_long_ago_pointed_to():
    source = code(1200, "step")
    talk = Talk().user("## Faster\nIn `big.py` change `step_800`, and what stands at line 2950.")
    for _ in range(20):
        talk.step("fine", said="Let me look around first.")
    talk.step(source, path="src/big.py", kind=Kind.FILE)

    row = plan(talk.lines, talk.table, (), Knobs(), moment()).shown[Spot(talk.lines[-1].chain, 0)]

    assert row.form is Form.EXCERPT
    shown = row.text.decode()
    assert "def step_800(a, b):\n    return a + b + 6335200\n" in shown
    assert source.split("\n")[2949] in shown.split("\n")
    assert "def step_600(" not in shown


def test_a_part_of_a_file_that_does_not_say_where_it_begins_is_not_shown_by_numbers_of_lines():
    source = code(1200, "step")

    def shown(text: str) -> str:
        talk = Talk().user(text)
        talk.step(source, path="src/big.py", kind=Kind.FILE)
        line = talk.lines[-2]
        call = replace(line.pieces[0], content=b'{"path": "src/big.py", "offset": 400}')
        talk.lines[-2] = replace(line, pieces=(call,))
        return (
            plan(talk.lines, talk.table, (), Knobs(), moment())
            .shown[Spot(talk.lines[-1].chain, 0)]
            .text.decode()
        )

    assert shown("In big.py, look at line 2950.") == shown("In big.py, look at line 1111.")
