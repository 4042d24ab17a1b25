"""Answers of tools that only read: when one holds, and when the call is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotset.nouns.tool import Http, Launch, OriginKind, Returned, Stdio, Tool
from hotset.sources.tools.answers import ReadCall, ToolAnswers
from hotset.testing import Clock

HINTS = {"readOnlyHint": True, "idempotentHint": True}
PROCESS = object()
HERE = Stdio(("server",))
GAVE = Returned(b'[{"type":"text","text":"one"}]')


def tool(name: str = "read_file", **more: Any) -> Tool:
    hints = {"annotations": json.dumps(HINTS).encode(), **more}
    return Tool(f"files__{name}", "files", OriginKind.SERVER, name, "Read.", b"{}", **hints)


class Desk:
    """A project with one file, and answers that hold for ten seconds."""

    def __init__(self, project: Path) -> None:
        self.file = project / "a.txt"
        self.file.write_text("one")
        self.clock = Clock(0.0)
        self.answers = ToolAnswers(project, 10.0, self.clock)

    def call(
        self,
        which: Tool | None = None,
        launch: Launch | None = HERE,
        session: str = "mine",
        process: object = PROCESS,
        **arguments: Any,
    ) -> bool:
        """True if it was answered without being run."""
        reads = self.answers.reading(which or tool(), launch, arguments, session)
        if reads is None:
            self.answers.wrote("files")
            return False
        if self.answers.get(reads, process) is not None:
            return True
        self.answers.put(reads, process, GAVE, 1)
        return False


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_file_that_is_unchanged_is_not_read_again_and_a_changed_one_is(desk: Desk):
    assert [desk.call(path="a.txt") for _ in range(2)] == [False, True]
    desk.clock.advance(300)
    desk.call(path="b.txt")
    assert desk.call(path="a.txt")
    desk.file.write_text("two")
    assert not desk.call(path="a.txt")
    assert desk.call(path="a.txt")
    desk.file.unlink()
    assert not desk.call(path="a.txt")


def test_the_same_call_made_again_at_once_is_run(desk: Desk):
    assert [desk.call(path="a.txt") for _ in range(4)] == [False, True, False, True]


@pytest.mark.parametrize(
    "arguments",
    [{"word": "a.txt"}, {"path": "."}, {"path": "/etc/hostname"}, {"paths": ["a.txt", "."]}, {}],
    ids=["no path", "a folder", "outside", "a file and a folder", "nothing"],
)
def test_where_it_is_unknown_what_is_read_an_answer_holds_for_seconds(desk: Desk, arguments):
    assert [desk.call(**arguments), desk.call(**arguments)] == [False, True]
    desk.call(word="else")
    desk.clock.advance(9)
    assert desk.call(**arguments)
    desk.call(word="else")
    desk.clock.advance(2)
    assert not desk.call(**arguments)


def test_a_server_elsewhere_reads_files_of_its_own(desk: Desk):
    there = Http("https://example.com/mcp")
    assert [desk.call(launch=there, path="a.txt") for _ in range(2)] == [False, True]
    desk.call(word="else")
    desk.clock.advance(11)
    assert not desk.call(launch=there, path="a.txt")


def test_an_answer_is_of_one_session_one_process_and_one_description(desk: Desk):
    desk.call(path="a.txt")
    assert not desk.call(path="a.txt", session="other")
    assert not desk.call(path="a.txt", process="another")
    assert not desk.call(path="a.txt", process=None)
    assert not desk.call(tool(title=""), path="a.txt", process=PROCESS)
    changed = tool(annotations=json.dumps({**HINTS, "title": "x"}).encode())
    assert not desk.call(changed, path="a.txt")


def test_any_other_call_of_the_source_outdates_its_answers(desk: Desk):
    desk.call(path="a.txt")
    writing = tool("write_file", annotations=b"{}")
    assert not desk.call(writing, session="other", path="a.txt")
    assert not desk.call(path="a.txt")


@pytest.mark.parametrize(
    "annotations", [b"{}", b'{"readOnlyHint":true}', b'{"idempotentHint":true}', b"no", b"[]"]
)
def test_only_a_tool_that_declares_both_takes_part(desk: Desk, annotations: bytes):
    one = tool(annotations=annotations)
    assert [desk.call(one, path="a.txt") for _ in range(2)] == [False, False]


def test_a_file_that_changes_during_the_call_and_a_failure_are_not_kept(desk: Desk):
    def begun() -> ReadCall:
        reads = desk.answers.reading(tool(), HERE, {"path": "a.txt"}, "mine")
        assert reads is not None
        return reads

    reads = begun()
    desk.file.write_text("two")
    desk.answers.put(reads, PROCESS, GAVE, 1)
    assert desk.answers.get(begun(), PROCESS) is None
    desk.answers.put(begun(), PROCESS, Returned(b"[]", failed=True), 1)
    assert desk.answers.get(begun(), PROCESS) is None
    desk.answers.put(begun(), PROCESS, GAVE, 1)
    assert desk.answers.get(begun(), PROCESS) is not None
