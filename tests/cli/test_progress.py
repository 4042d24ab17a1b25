"""The line of progress: for terminals, for what takes a while, and gone at the end."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
from itertools import pairwise

import pytest

from hotset.surfaces.cli.progress import ProgressLine
from hotset.surfaces.cli.terminal import size
from tests.cli.conftest import Desk


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_nothing_is_drawn_within_a_second(clock: Clock):
    out = io.StringIO()
    line = ProgressLine("checking", 100, out=out, clock=clock)
    for _ in range(99):
        clock.now += 0.01
        line.step()
    line.clear()

    assert (line.count, out.getvalue()) == (99, "")


def test_the_line_says_how_far_how_fast_and_how_long(clock: Clock):
    line = ProgressLine("checking", 1000, clock=clock)
    clock.now += 2
    line.move(400)

    told = line.describe(clock.now)

    assert told == f"checking  {'━' * 10}{'╌' * 14}  400 of 1,000  40 %  200/s  3.0 s left"


def test_without_a_total_it_counts_and_with_an_end_it_says_when_that_is(clock: Clock):
    line = ProgressLine("replaying", clock=clock, until=clock.now + 62)
    clock.now += 2
    line.step(by=5)

    assert line.describe(clock.now) == "replaying  5  2.5/s  at most 1 min left"


def test_bytes_are_written_as_people_read_them(clock: Clock):
    line = ProgressLine("importing", 4_000_000, clock=clock, written=size)
    clock.now += 4
    line.step(by=2_000_000)

    assert "2.0 MB of 4.0 MB  50 %  500 KB/s  4.0 s left" in line.describe(clock.now)


def test_another_title_has_a_rate_of_its_own(clock: Clock):
    line = ProgressLine("reading", 10, clock=clock)
    clock.now += 50
    line.move(10)
    line.move(0, 200, "comparing")
    clock.now += 1
    line.move(100)

    assert line.describe(clock.now).endswith("100 of 200  50 %  100/s  1.0 s left")


def test_it_is_drawn_a_few_times_a_second_and_leaves_nothing_behind(clock: Clock):
    out = io.StringIO()
    line = ProgressLine("checking", 10_000, out=out, clock=clock)
    moments = []
    for _ in range(5000):
        clock.now += 0.001
        before = out.tell()
        line.step()
        if out.tell() != before:
            moments.append(clock.now)
    line.clear()

    assert 30 <= len(moments) <= 41
    assert min(after - at for at, after in pairwise(moments)) >= 0.1
    assert out.getvalue().endswith("\r\x1b[K")


def test_a_person_sees_an_import_come_on_and_a_pipe_does_not(filled: Desk):
    rows = filled.run("export").raw
    *most, end = rows.splitlines(keepends=True)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        filled.command("import", "-", "--data", str(filled.home / "other")),
        env=filled.environ({"TERM": "xterm"}),
        cwd=filled.project,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    ) as running:
        os.close(theirs)
        assert running.stdin is not None
        running.stdin.write(b"".join(most))
        seen = b""
        while b"importing" not in seen:  # empty lines, until a second has passed
            running.stdin.write(b"\n")
            running.stdin.flush()
            if select.select([ours], [], [], 0.01)[0]:
                seen += os.read(ours, 4096)
        running.stdin.write(end)
        running.stdin.close()
        try:
            while more := os.read(ours, 4096):
                seen += more
        except OSError:  # the other end is closed
            pass
        assert running.wait(120) == 0
    os.close(ours)
    assert b"/s" in seen
    assert "importing" not in filled.run("import", "-", given=rows).err
