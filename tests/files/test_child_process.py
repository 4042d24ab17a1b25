"""A child process belongs to a scope, with its pipes, until somebody has waited for it."""

from __future__ import annotations

import pytest

from hotset.files.child_process import PIPE, ChildProcess
from hotset.files.scope import PROCESS, Budget
from tests.waiting import lives, wait_until


@pytest.fixture
def scope():
    made = PROCESS.child("under test", Budget(files=4))
    yield made
    assert made.close() == []


def files(scope):
    return scope.counts()[0].files


@pytest.mark.row("V14")
def test_its_pipes_count_until_it_was_waited_for(scope):
    with ChildProcess(["cat"], scope=scope, stdin=PIPE, stdout=PIPE) as child:
        assert files(scope) == 2
        assert scope.left_over() == ["process/under test: file process cat"]
    assert child.returncode == 0
    assert (files(scope), scope.left_over()) == (0, [])


def test_a_look_at_one_that_has_ended_releases_it(scope):
    child = ChildProcess(["true"], scope=scope, descriptors=1)
    assert files(scope) == 1
    wait_until(lambda: child.poll() is not None)
    assert files(scope) == 0


def test_one_that_cannot_be_started_counts_no_more(scope):
    with pytest.raises(FileNotFoundError):
        ChildProcess(["/no/such/program"], scope=scope, stdin=PIPE)
    assert files(scope) == 0


@pytest.mark.row("V14")
def test_closing_the_scope_ends_it(scope):
    child = ChildProcess(["cat"], scope=scope, stdin=PIPE, stdout=PIPE)
    assert scope.close() == []
    assert not lives(child.pid)
    assert child.stdin is not None
    assert child.stdin.closed


def test_one_that_is_left_alone_ends_with_its_stdin(scope):
    child = ChildProcess(["cat"], scope=scope, stdin=PIPE)
    child.leave()
    assert files(scope) == 0
    assert child.wait(60) == 0
