"""Looking at what is kept: sessions, show, recall, status, rows."""

from __future__ import annotations

import hashlib
import subprocess

import pytest

from tests.cli.conftest import LARGE, NOW, Desk, fill


@pytest.fixture
def three(desk: Desk) -> Desk:
    for number, agent in enumerate(("claude-cli", "codex", "claude-cli")):
        fill(desk.data, f"Task {number}", NOW + 100_000 * number, agent)
    return desk


def test_sessions_come_newest_first_and_can_be_narrowed_down(three: Desk):
    assert [line["session"]["title"] for line in three.run("sessions", "--json").json()] == [
        "Task 2",
        "Task 1",
        "Task 0",
    ]
    assert [
        line["session"]["title"] for line in three.run("sessions", "--json", "--limit", "1").json()
    ] == ["Task 2"]
    assert [
        line["session"]["agent"]
        for line in three.run("sessions", "--json", "--agent", "codex").json()
    ] == ["codex"]
    assert three.run("sessions", "--json", "--since", "2090-01-01").json() == []


def test_a_session_line_tells_how_far_it_came(filled: Desk):
    (line,) = filled.run("sessions", "--json").json()

    assert (line["turns"], line["branches"], line["model"], line["last"]) == (
        4,
        2,
        "claude-test",
        NOW + 182,
    )


def test_the_table_of_sessions_is_data_and_the_hint_is_not(filled: Desk):
    ran = filled.run("sessions")

    assert "Fix the failing test" in ran.out
    assert (
        filled.run("sessions", "--json").json()[0]["session"]["id"]
        in filled.run("sessions", env={"COLUMNS": "80"}).out
    )
    assert "Look at one with" not in ran.out
    assert "Look at one with: hotset show s" in ran.err
    assert filled.run("sessions", "--quiet").err == ""


def test_a_moment_that_cannot_be_read_is_told_with_what_to_say(filled: Desk):
    ran = filled.run("sessions", "--since", "yesterday")

    assert ran.code == 2
    assert ran.err.startswith("hotset: --since yesterday: use 30m, 12h, 2d, 1w or a date")


@pytest.mark.row("V1")
def test_show_tells_a_session_turn_by_turn_with_its_branches(filled: Desk):
    ran = filled.run("show", "last")

    told = ran.out.splitlines()
    assert ran.code == 0
    assert "4 turns" in told[0]
    assert "2 branches" in told[0]
    assert [line.split("  ")[0] for line in told if line.startswith("turn")] == [
        "turn 1",
        "turn 2",
        "turn 3",
        "turn 4",
    ]
    assert "── branch 1, leaves after turn 2" in told
    assert any("tool_call" in line and "Read" in line for line in told)
    assert any("file" in line and "00000 a line of a large file" in line for line in told)
    assert "1,000 (900 cached) → 20 tokens" in ran.out


def test_show_fits_its_lines_unless_all_of_it_is_asked_for(filled: Desk):
    assert max(map(len, filled.run("show", "last").out.splitlines())) <= 120
    assert "01999 a line of a large file" not in filled.run("show", "last").out
    assert "01999 a line of a large file" in filled.run("show", "last", "--full").out


def test_show_lets_no_control_code_reach_the_terminal(filled: Desk):
    assert b"\x1b" not in filled.run("show", "last").raw
    assert b"\x1b" not in filled.run("show", "last", "--full").raw


@pytest.mark.row("V1")
def test_show_narrows_by_turn_and_kind(filled: Desk):
    some = filled.run("show", "last", "--turns", "2-3", "--json").json()
    results = filled.run("show", "last", "--kind", "tool_result", "--json").json()

    assert [turn["number"] for turn in some["turns"]] == [2, 3]
    assert {page["kind"] for turn in results["turns"] for page in turn["pages"]} <= {
        "tool_result",
        "file",
    }
    assert [len(turn["pages"]) for turn in results["turns"]] == [1]
    assert filled.run("show", "last", "--turns", "x").code == 2


def test_a_session_is_found_by_a_unique_beginning_of_its_id(three: Desk):
    newest, *_, oldest = (line["session"]["id"] for line in three.run("sessions", "--json").json())

    assert three.run("show", oldest[:8], "--json").json()["session"]["id"] == oldest
    assert three.run("show", "last", "--json").json()["session"]["id"] == newest
    several = three.run("show", "s")
    assert (several.code, several.raw) == (1, b"")
    assert "3 sessions begin with s" in several.err
    assert three.run("show", "nope").code == 1


@pytest.mark.row("V1")
def test_recall_gives_the_exact_bytes_by_page_call_or_digest(filled: Desk):
    shown = filled.run("show", "last", "--kind", "tool_result", "--json").json()
    (page,) = (page for turn in shown["turns"] for page in turn["pages"])

    for id in (page["id"], page["id"][:9], "toolu_1", hashlib.sha256(LARGE.encode()).hexdigest()):
        ran = filled.run("recall", id)
        assert (ran.code, ran.raw, ran.err) == (0, LARGE.encode(), "")


def test_recall_tells_what_it_knows_as_json(filled: Desk):
    told = filled.run("recall", "toolu_1", "--json").json()

    assert told["text"] == LARGE
    assert told["size"] == len(LARGE)
    assert (told["page"]["turn"], told["page"]["call"]) == (2, "toolu_1")


def test_what_is_not_there_is_a_finding_not_a_failure(filled: Desk):
    ran = filled.run("recall", "pffffffff")

    assert (ran.code, ran.raw) == (1, b"")
    assert ran.err == "hotset: no page, tool call or content pffffffff; see: hotset show last\n"


def test_looking_does_not_make_a_store(desk: Desk):
    ran = desk.run("sessions")

    assert (ran.code, ran.raw) == (0, b"")
    assert "no session is kept yet" in ran.err
    assert "wrap" in ran.err
    assert not desk.data.exists()


def test_status_tells_what_is_kept_without_a_proxy(filled: Desk):
    told = filled.run("status", "--json").json()

    assert told["proxy"] is None
    assert (told["store"]["sessions"], told["store"]["turns"]) == (1, 4)
    assert told["disk"] > 0
    assert "none serves; start with: hotset up" in filled.run("status").out


def test_status_of_an_untouched_project_is_empty(desk: Desk):
    assert desk.run("status", "--json").json()["store"] is None
    assert not desk.data.exists()


def test_the_data_folder_can_be_named(filled: Desk, tmp_path):
    elsewhere = {"HOTSET_DATA": str(tmp_path / "nothing")}

    assert filled.run("sessions", "--json", env=elsewhere).json() == []
    assert (
        len(filled.run("sessions", "--json", "--data", str(filled.data), env=elsewhere).json()) == 1
    )


def test_rows_tells_promises_and_their_state(desk: Desk):
    told = desk.run("rows", "--json").json()

    assert {row["id"]: row["state"] for row in told}["V1"] == "working"
    partly = desk.run("rows", "--state", "partly", "--json").json()
    assert [row["id"] for row in partly] == [row["id"] for row in told if row["state"] == "partly"]
    assert "C7" in {row["id"] for row in partly}
    assert "planned" in desk.run("rows").err


def test_a_reader_that_has_seen_enough_is_no_error(filled: Desk):
    shown = filled.start("show", "last", "--full", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert shown.stdout is not None
    assert shown.stderr is not None

    shown.stdout.readline()
    shown.stdout.close()

    assert (shown.stderr.read(), shown.wait(120)) == (b"", 0)
    shown.stderr.close()
