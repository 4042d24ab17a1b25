"""`hotset top`: the window of a session, live in a terminal and once without one."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from contextlib import closing

import pytest
from hypothesis import given, strategies as st

from hotset.runtime.views.window import WindowSegment
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.cli.strip import StripCell, lay_out
from tests.cli.conftest import NOW, Desk, fill
from tests.cli.test_savings import SONNET, bill
from tests.cli.test_serving import read_until
from tests.proxy.test_orders import shortened_session

IN_FRONT = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
"""Runs a command with the terminal on stdin as its own, so that Ctrl-C reaches it."""

SEGMENTS = (
    WindowSegment("tools", "full", 100, 100),
    WindowSegment("prompt", "full", 300, 300),
    WindowSegment("tool_result", "excerpt", 200, 1600),
)


def test_the_strip_has_the_order_and_the_widths_of_the_window():
    sent = lay_out(SEGMENTS, 20, 2000)
    came = lay_out(SEGMENTS, 20, 2000, is_client=True)

    assert sent == (
        StripCell("tools", "full"),
        *(StripCell("prompt", "full"),) * 3,
        *(StripCell("tool_result", "excerpt"),) * 2,
    )
    assert came == (*sent[:4], *(StripCell("tool_result", "full"),) * 16)


def test_a_cell_is_what_most_of_it_is():
    crumbs = [WindowSegment("prompt", "full", 1, 1)] * 3 + [
        WindowSegment("file", "stub", 7, 7),
        WindowSegment("prompt", "full", 10, 10),
    ]

    assert lay_out(crumbs, 2, 20) == (StripCell("file", "stub"), StripCell("prompt", "full"))


@given(st.lists(st.integers(0, 500), max_size=20), st.integers(1, 200), st.integers(0, 5000))
def test_a_strip_never_has_more_cells_than_there_are(sizes, cells, scale):
    segments = [WindowSegment("file", "full", size, size) for size in sizes]

    assert len(lay_out(segments, cells, scale)) <= cells


def test_one_frame_shows_both_windows_the_money_and_the_last_events(tmp_path):
    with shortened_session(tmp_path) as (desk, *_):
        told = desk.run("top", "--once").out
        view = desk.run("top", "--json").json()["view"]

    lines = {line[:8].strip(): line for line in told.splitlines()}
    assert f"{view['whole']:,} tokens" in lines["client"]
    assert f"{view['sent']:,} tokens" in lines["model"]
    assert "▓" in lines["model"]
    assert "▓" not in lines["client"]
    assert lines["client"].count("█") > lines["model"].count("█") + lines["model"].count("▓")
    assert re.search(r"\d % of 1M$", lines["window"])
    assert "so far instead of" in lines["cost"]
    assert "▓ shortened" in told
    assert "\x1b" not in told


def test_no_line_is_wider_than_the_terminal(desk: Desk):
    bill(desk, "first", SONNET)
    fill(desk.data, "A title that goes on and on " * 8, NOW + 60)

    told = desk.run("top", "--once", env={"COLUMNS": "70"}).out

    assert max(map(len, told.splitlines())) <= 70


def test_without_sessions_it_says_how_to_begin(desk: Desk):
    done = desk.run("top", "--once")

    assert (done.code, done.out) == (1, "")
    assert "hotset up" in done.err


@pytest.mark.parametrize("key", [b"q", b"\x03"])
def test_in_a_terminal_it_follows_the_store_until_a_key_ends_it(filled: Desk, key: bytes):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", IN_FRONT, *filled.command("top")],
        env=filled.environ({"TERM": "xterm"}),
        cwd=filled.project,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as running:
        os.close(theirs)
        seen = read_until(ours, b"q ends")
        assert b"Fix the failing test" in seen
        fill(filled.data, "Another session", NOW + 6000)  # the store has changed
        read_until(ours, b"Another session")
        os.write(ours, key)
        rest = read_until(ours, b"\x1b[?1049l")
        assert running.wait(120) == 0
    os.close(ours)
    assert b"\x1b[?1049h" in seen
    assert b"Traceback" not in rest


def test_a_person_without_colours_gets_none(filled: Desk):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        filled.command("top"),
        env=filled.environ({"TERM": "xterm", "NO_COLOR": "1"}),
        cwd=filled.project,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as running:
        os.close(theirs)
        seen = read_until(ours, b"q ends")
        os.write(ours, b"q")
        read_until(ours, b"\x1b[?1049l")
        assert running.wait(120) == 0
    os.close(ours)
    assert not re.search(rb"\x1b\[\d*m", seen)


def test_a_session_may_be_named(filled: Desk):
    with closing(SqliteStore.open(filled.data)) as store:
        first = next(iter(store.sessions())).id
    fill(filled.data, "Another session", NOW + 6000)

    assert desk_title(filled, first) == "Fix the failing test"
    assert desk_title(filled, "last") == "Another session"


def desk_title(desk: Desk, session: str) -> str:
    return str(desk.run("top", session, "--json").json()["session"]["title"])
