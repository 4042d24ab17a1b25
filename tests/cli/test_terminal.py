"""Colour and moving things: only where someone watches, and never against their will."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Mapping

import pytest

from hotset.surfaces.cli.terminal import one_line, plain, size, span
from tests.cli.conftest import Desk


def on_a_terminal(desk: Desk, *arguments: str, env: Mapping[str, str] | None = None) -> bytes:
    """What a person would see on the screen."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        desk.command(*arguments), env=desk.environ({"TERM": "xterm", **(env or {})}), stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 65536):
                seen += piece
        except OSError:  # the other end is closed
            pass
        process.wait(20)
    os.close(ours)
    return seen


def test_a_terminal_gets_colour_and_a_pipe_does_not(filled: Desk):
    assert b"\x1b[" in on_a_terminal(filled, "show", "last")
    assert b"\x1b[" not in filled.run("show", "last").raw


@pytest.mark.parametrize("command", [("show", "last"), ("doctor",), ("sessions",)])
def test_no_color_is_honoured(filled: Desk, command: tuple[str, ...]):
    assert b"\x1b[3" not in on_a_terminal(filled, *command, env={"NO_COLOR": "1"})


def test_progress_is_for_terminals(filled: Desk):
    assert b"checking" in on_a_terminal(filled, "verify")
    assert b"checking" not in on_a_terminal(filled, "verify", "--quiet")
    assert "checking" not in filled.run("verify").err


def test_export_does_not_pour_data_into_a_terminal(filled: Desk):
    assert b"give a file with -o" in on_a_terminal(filled, "export")


def test_numbers_are_written_for_people():
    assert [size(n) for n in (0, 999, 1500, 123_456, 5_000_000_000)] == ["0 B", "999 B", "1.5 KB", "123 KB", "5.0 GB"]
    assert [span(s) for s in (0.2, 12, 90, 7200, 200_000)] == ["0.2 s", "12 s", "2 min", "2 h", "2 days"]


def test_text_from_elsewhere_cannot_steer_the_terminal():
    assert plain("a\x1b[2Jb\x07c\u202ed") == "a�[2Jb�c�d"
    assert one_line(b"two\nlines\r\x1b[A of text", 12) == "two lines �…"
    assert one_line(b"short", 12) == "short"
