"""Whether a call worked, as the results of many clients say it."""

from __future__ import annotations

import pytest
from told_sessions import Told

from hotset.sources.memory.encode.outcome import topics_of
from hotset.sources.memory.encode.session import acts_of
from hotset.window.work.calls import Act, ActKind, result_verdict


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Exit code 1\nsrc/a.ts(3,1): error TS2322: Type 'x' is not assignable", "error TS2322"),
        (
            (
                "Chunk ID: a1\nWall time: 0.1\nProcess exited with code 127\nOutput:\nbash: jqq: "
                "command not found"
            ),
            "command not found",
        ),
        (
            "<returncode>1</returncode>\n<output>\nTraceback\n  File\nKeyError: 'year'\n</output>",
            "KeyError",
        ),
        ("npm error command failed\nnpm error command sh -c tsgo", "error"),
        (
            (
                'Traceback (most recent call last):\n  File "a.py", line 1\n'
                "sqlite3.OperationalError: no such table: a"
            ),
            "OperationalError",
        ),
        ("all is quiet\n\nCommand exited with code 3", "exit 3"),
    ],
)
def test_a_command_that_failed_is_told_by_its_code_or_its_words(text, kind):
    found = result_verdict(text, shell=True)
    assert (found.failed, found.kind) == (True, kind)


@pytest.mark.parametrize(
    "text",
    [
        "$ biome check --error-on-warnings\nChecked 286 files in 90ms. No fixes applied.",
        "Process exited with code 0\nOutput:\nerror: handled in tests\n",
        "ValueError: provoked\nERROR: expected by a test\nRan 3 tests in 0.1s\n\nOK",
        "============ 12 passed in 0.31s ============",
        "",
    ],
)
def test_a_command_that_worked_may_speak_of_errors(text):
    assert not result_verdict(text, shell=True).failed


def test_a_tool_that_refuses_says_so_at_its_beginning_and_a_file_about_errors_does_not():
    assert result_verdict(
        "<tool_use_error>File does not exist.</tool_use_error>", shell=False
    ).failed
    assert result_verdict("Error: payment amount does not add up", shell=False).failed
    assert not result_verdict(
        "1\texport type Status = 'failed';\n2\t// Error: never", shell=False
    ).failed
    assert not result_verdict(
        "Exit code 1\n", shell=True, reads=True
    ).failed  # a search that finds nothing
    assert result_verdict(
        "The user doesn't want to proceed with this tool use.", shell=False
    ).declined
    assert result_verdict("Process running with session ID 7", shell=True).open


def only(tool: str, arguments: dict[str, object]) -> Act:
    (act,) = acts_of(Told().does(tool, arguments, "").material().line)
    return act


@pytest.mark.parametrize(
    ("command", "doing", "target"),
    [
        ("cd /repo && pytest -q 2>&1 | tail -5", ActKind.CHECK, "pytest -q"),
        ("grep -n 'a|b' src/x.py | head", ActKind.READ, "grep -n 'a|b' src/x.py"),
        ("cat <<'EOF' > src/new.py\nprint(1)\nEOF", ActKind.EDIT, "src/new.py"),
        ("sed -i 's/user.pk/user.id/' auth/tokens.py", ActKind.EDIT, "auth/tokens.py"),
        (
            "apply_patch <<'E'\n*** Begin Patch\n*** Update File: src/a.py\n*** End Patch\nE",
            ActKind.EDIT,
            "src/a.py",
        ),
        ("git log --oneline -5", ActKind.READ, "git log --oneline -5"),
        ("git push origin main", ActKind.RUN, "git push origin main"),
        ("git commit -m \"$(cat <<'EOF'\nAlways run pytest\nEOF\n)\"", ActKind.RUN, "git commit"),
        ("npm run test:unit", ActKind.CHECK, "npm run test:unit"),
    ],
)
def test_what_a_shell_was_asked_is_told_by_what_it_does(command, doing, target):
    act = only("Bash", {"command": command})
    assert (act.doing, act.target) == (doing, target)
    assert only("shell", {"command": ["bash", "-lc", command]}).target == target


def test_tools_for_files_are_told_by_their_path():
    assert (
        only("Read", {"file_path": "a.py"}).doing,
        only("Write", {"file_path": "a.py"}).doing,
    ) == (ActKind.READ, ActKind.EDIT)
    assert only("mcp__fs__edit_file", {"path": "src/b.py", "edits": []}).files == ("src/b.py",)
    assert only("book_flight", {"from": "JFK", "to": "SEA"}).target == "JFK SEA"


def test_topics_are_few_stable_and_readable():
    files = ("src/hotset/window/plan.py", "tests/window/test_plan.py")
    text = "Make the eviction of pages in the window cheaper. The eviction looks at every page."
    assert topics_of(text, files) == topics_of(text, files)
    assert topics_of(text, files)[0] == "window/plan"
    assert "eviction" in topics_of(text, files)
    assert len(topics_of("alpha beta gamma delta epsilon zeta eta theta " * 9)) <= 4
    assert topics_of("please do it") == ()
