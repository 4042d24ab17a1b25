"""What was done, without what belongs to one occasion."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hotset.sources.memory.encode.procedures import (
    command_key,
    general,
    in_project,
    is_file,
    parts_of,
    project_of,
    root_of,
)
from hotset.window.work.mishaps import error_key

ROOT = "/home/ada/shop"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("bun run css:build", "bun run css:build"),
        ("pytest -q tests/test_a.py tests/test_b.py::test_c", "pytest -q <tests>"),
        ("./tests/runtests.py queries ordering.tests", "tests/runtests.py <tests>"),
        ("/home/ada/shop/scripts/generate.sh billing", "scripts/generate.sh billing"),
        ("git tag release/0.4.1", "git tag release/<version>"),
        (
            "gh issue close 1263 --comment 'done in the last release'",
            "gh issue close <id> --comment <text>",
        ),
        ("uv run scripts/seed.py --users=20", "uv run scripts/seed.py --users=20"),
        ("bun test --filter checkout src/cart/cart.test.ts", "bun test --filter <text> <tests>"),
        ("python3 -m compileall src", "python3 -m compileall src"),
    ],
)
def test_a_command_is_told_as_it_would_be_given_next_time(said, told):
    assert general(said, ROOT) == told


@pytest.mark.parametrize(
    "said",
    [
        "python3 -c 'print(1)'",
        "node -e 'x'",
        "cat <<EOF",
        "echo done",
        "git commit -m 'a'",
        "git status --short",
        "rm -rf build",
        "python repro.py --fast",
        "python3 apply_fix.py now",
        "curl -O https://a.example/x.tgz",
        "for f in *; do cat $f",
        "make $(target)",
        "npm view left-pad version",
        "ls",
    ],
)
def test_what_was_for_the_moment_and_what_anybody_does_have_no_general_form(said):
    assert general(said, ROOT) == ""


def test_a_line_is_taken_apart_and_what_shapes_its_output_is_left_out():
    assert parts_of("bun run test 2>&1 | tail -5 && timeout 60 bun run lint; grep -c x y") == [
        "bun run test",
        "bun run lint",
    ]
    assert parts_of("gh pr create --title 'a && b; c'") == ["gh pr create --title 'a && b; c'"]
    assert parts_of('bun -e "import x; const y = 1') == []


def test_the_project_is_where_most_files_are_and_a_worktree_is_of_its_project():
    files = [f"{ROOT}/src/a.ts", f"{ROOT}/README.md", "/home/ada/.claude/plans/x.md", "/tmp/x.py"]
    assert root_of(files) == ROOT
    assert project_of(ROOT, ()) == "shop"
    assert project_of("/home/ada/shop__worktrees/fix-cart", ()) == "shop"
    assert (
        project_of("/testbed", ("django/db/models.py", "django/urls.py", "docs/a.md")) == "django"
    )
    assert in_project(f"{ROOT}/src/a.ts", ROOT) == "src/a.ts"


def test_an_error_is_the_same_whatever_its_numbers_names_and_paths():
    one = error_key("TypeError", "src/a.ts(3,5): Property 'x' does not exist, 12 times")
    assert one == error_key("TypeError", "lib/b.ts(90,1): Property 'y' does not exist, 7 times")
    assert one != error_key("TypeError", "src/a.ts(3,5): Property 'x' is missing, 12 times")


def test_which_python_runs_a_command_makes_no_difference():
    keys = {
        command_key(told)
        for told in (
            "python3 tests/runtests.py <tests>",
            "runtests.py <tests>",
            "A=1 python runtests.py <tests>",
        )
    }
    assert len(keys) == 1


def test_what_is_taken_for_a_file_looks_like_one():
    assert [
        is_file(path)
        for path in ("src/a.ts", "Makefile", "p2", "1.0dev", "reproduce_issue.py", "/tmp/a.py")
    ] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


@given(st.text(alphabet="ab /.-'\"|&;<>$=\n:0", max_size=60))
def test_any_line_is_taken_apart_and_a_general_form_is_one_line_that_stays_as_it_is(line):
    for part in parts_of(line):
        told = general(part, ROOT)
        assert "\n" not in told
        assert len(told) <= 120
