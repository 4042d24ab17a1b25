"""What somebody is about to do, from words, actions and phase."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from hotset.nouns.memory import MemoryKind, Task
from hotset.sources.memory.tasks import KIND_WEIGHTS, detect_task

TRACE = (
    'Traceback (most recent call last):\n  File "app.py", line 3, in main\nValueError: no such user'
)


def prompts() -> list[tuple[Task, str]]:
    """Each line of the file is a prompt; a headline says what those below it ask for."""
    labelled = []
    task = Task.IMPLEMENTATION
    for line in Path(__file__).with_name("prompts.txt").read_text().splitlines():
        if line.startswith("# "):
            task = Task(line[2:])
        elif line:
            labelled.append((task, line.replace("\\n", "\n")))
    return labelled


@pytest.mark.row("M2")
def test_most_of_200_labelled_prompts_in_five_languages_are_told_apart():
    labelled = prompts()
    assert Counter(task for task, _ in labelled) == dict.fromkeys(Task, 40)

    right = Counter(task for task, prompt in labelled if detect_task(prompt).task is task)

    assert sum(right.values()) >= 190
    assert min(right.values()) >= 36


def test_a_confident_answer_is_more_often_right_than_a_doubtful_one():
    sure = [
        detect_task(prompt).task is task
        for task, prompt in prompts()
        if detect_task(prompt).confidence >= 0.75
    ]

    assert len(sure) > 100
    assert sum(sure) / len(sure) >= 0.97


def test_where_nothing_speaks_it_is_an_implementation_without_confidence():
    assert detect_task("") == detect_task("xyzzy") == detect_task("", ["Unknown"], "whenever")
    assert detect_task("").task is Task.IMPLEMENTATION
    assert detect_task("").confidence == 0
    assert detect_task("").because == ()


@pytest.mark.parametrize(
    ("prompt", "task"),
    [
        ("Fix the typo in the docs", Task.IMPLEMENTATION),
        ("Fix the crash in the docs build", Task.DEBUGGING),
        ("Review the fix for the crash", Task.REVIEW),
        ("Add a test for the crash", Task.IMPLEMENTATION),
        ("Explain the refactoring that we did", Task.EXPLORATION),
        ("Read the parser and fix the bug in it", Task.DEBUGGING),
        ("check how the cache works", Task.EXPLORATION),
        ("check the diff", Task.REVIEW),
        ("check why the tests fail", Task.DEBUGGING),
        ("Extract the dates from the parser into a module", Task.REFACTORING),
    ],
)
def test_the_first_verb_and_its_object_decide(prompt, task):
    assert detect_task(prompt).task is task


@pytest.mark.parametrize(
    "prompt",
    [
        "Don't refactor anything. Add a flag for the port",
        "Add a flag for the port, no need to review anything",
        "Add a button that says “fix all errors”",
        'Add a button that says "refactor, review and debug"',
        "Add a flag to `fix_broken_errors --debug`",
        "Add a flag, see src/debug/review/refactor.py",
        "Add a flag\n```\nfix(bug); refactor(); review()\n```",
    ],
)
def test_what_is_denied_quoted_or_code_says_nothing(prompt):
    assert detect_task(prompt).task is Task.IMPLEMENTATION
    assert detect_task(prompt).confidence >= 0.5


@pytest.mark.parametrize(
    "pasted",
    [
        TRACE,
        "FAILED tests/test_cart.py::test_total - assert 10 == 12\n1 failed, 80 passed in 2.31s",
        "error[E0382]: borrow of moved value: `x`\n --> src/main.rs:4:5",
        "src/a.ts(3,1): error TS2345: Argument of type 'string' is not assignable",
        "TypeError: undefined is not a function\n    at render (/app/src/index.js:10:5)",
        "thread 'main' panicked at src/main.rs:4:5",
        "--- FAIL: TestCart (0.00s)",
    ],
)
def test_an_error_that_was_pasted_is_a_thing_to_debug_whatever_stands_before_it(pasted):
    for prompt in (pasted, f"I ran it again:\n\n{pasted}", f"```\n{pasted}\n```\nwhat now"):
        found = detect_task(prompt)
        assert found.task is Task.DEBUGGING
        assert found.because[0].startswith("an error in the text")


def test_what_a_client_wraps_around_a_prompt_is_nobodys_goal():
    wrapped = (
        "<system-reminder>Review, refactor and fix every "
        "bug.</system-reminder>\nAdd a flag for "
        "the port"
    )

    assert detect_task(wrapped).task is Task.IMPLEMENTATION
    assert detect_task(wrapped) == detect_task("Add a flag for the port")


def test_a_plan_to_implement_is_what_its_title_says():
    plan = "Implement the following plan:\n\n# {}\n\n## Context\n\nThe cart is shown twice."

    assert detect_task(plan.format("Fix: crash of the cart")).task is Task.DEBUGGING
    assert detect_task(plan.format("Split the cart into modules")).task is Task.REFACTORING
    assert detect_task(plan.format("Add a footer to the cart")).task is Task.IMPLEMENTATION


@pytest.mark.parametrize(
    ("actions", "task"),
    [
        (["Read src/a.py", "Grep retry", "Glob **/*.py"], Task.EXPLORATION),
        (
            ["read_file src/a.py", "mcp__fs__list_directory .", "shell rg retry src"],
            Task.EXPLORATION,
        ),
        (["Bash git diff main", "Read src/a.py"], Task.REVIEW),
        (["exec_command gh pr diff 12"], Task.REVIEW),
        (["Bash pytest -q", "Edit src/a.py", "Bash pytest -q"], Task.DEBUGGING),
        (
            ["bash cat > reproduce.py <<'EOF'", "bash python reproduce.py", "apply_patch"],
            Task.DEBUGGING,
        ),
        (["Read src/a.py", "Write src/new.py", "Write tests/test_new.py"], Task.IMPLEMENTATION),
        (["Edit src/a.py", "Edit src/b.py", "Bash npm test"], Task.IMPLEMENTATION),
        (["Bash git mv src/a.py src/b.py", "Edit src/c.py", "Bash mv x y"], Task.REFACTORING),
    ],
)
def test_actions_tell_where_words_do_not(actions, task):
    assert detect_task("", actions).task is task
    assert detect_task("", actions).confidence > 0


def test_words_count_more_than_actions_and_the_named_phase_breaks_a_doubt():
    assert detect_task("Review my branch", ["Edit src/a.py", "Write src/b.py"]).task is Task.REVIEW
    assert detect_task("hello", phase="Debugging").task is Task.DEBUGGING
    assert detect_task("hello", phase="exploring").task is Task.EXPLORATION
    assert detect_task("hello", phase="cleanup").because == ("phase “cleanup”",)


def test_every_task_shares_out_its_whole_weight_over_the_four_kinds():
    assert set(KIND_WEIGHTS) == set(Task)
    for row in KIND_WEIGHTS.values():
        assert sum(row.values()) == pytest.approx(1)
        assert set(row) == {
            MemoryKind.EPISODE,
            MemoryKind.FACT,
            MemoryKind.PROCEDURE,
            MemoryKind.PITFALL,
        }
    assert KIND_WEIGHTS[Task.DEBUGGING][MemoryKind.PITFALL] == 0.4
    assert KIND_WEIGHTS[Task.EXPLORATION][MemoryKind.EPISODE] == 0.6


@settings(deadline=None)  # the first of them compiles
@given(st.text(max_size=300), st.lists(st.text(max_size=30), max_size=8), st.text(max_size=20))
def test_any_text_gets_an_answer_with_a_confidence_between_0_and_1(goal, actions, phase):
    found = detect_task(goal, actions, phase)

    assert 0 <= found.confidence < 1
    assert found == detect_task(goal, actions, phase)
    assert bool(found.because) or found.confidence == 0


@settings(deadline=None)  # the first of them compiles
@given(
    st.sampled_from(prompts()), st.sampled_from(["please ", "Hi, could you ", "OK, now ", "\n\n  "])
)
def test_politeness_changes_nothing(labelled, polite):
    _, prompt = labelled
    if prompt[0].isupper() and prompt.split()[0] in {
        "Add",
        "Fix",
        "Review",
        "Refactor",
        "Explain",
        "Implement",
        "Split",
        "Audit",
    }:
        assert detect_task(polite + prompt).task is detect_task(prompt).task
