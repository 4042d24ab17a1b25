"""Sessions as the clients of a machine write them, for the tests of learning."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BEGUN = 1_780_000_000.0


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


class ClaudeCode:
    """A transcript of Claude Code in a project."""

    def __init__(self, session: str, project: Path, begun: float = BEGUN) -> None:
        self.session, self.project, self.now = session, project, begun
        self.lines: list[dict[str, Any]] = []

    def _add(self, kind: str, message: dict[str, Any], **more: Any) -> None:
        self.now += 5
        self.lines.append(
            {
                "type": kind,
                "uuid": f"{self.session}-{len(self.lines)}",
                "parentUuid": self.lines[-1]["uuid"] if self.lines else None,
                "sessionId": self.session,
                "cwd": str(self.project),
                "timestamp": iso(self.now),
                "message": message,
                **more,
            }
        )

    def asks(self, text: str, **more: Any) -> ClaudeCode:
        self._add("user", {"role": "user", "content": text}, **more)
        return self

    def says(self, text: str) -> ClaudeCode:
        self._add("assistant", self._reply([{"type": "text", "text": text}]))
        return self

    def does(self, tool: str, given: dict[str, Any], result: str) -> ClaudeCode:
        call = f"toolu_{self.session}_{len(self.lines)}"
        use = {"type": "tool_use", "id": call, "name": tool, "input": given}
        self._add("assistant", self._reply([use]))
        answer = {"type": "tool_result", "tool_use_id": call, "content": result}
        self._add("user", {"role": "user", "content": [answer]})
        return self

    def runs(self, command: str, result: str) -> ClaudeCode:
        return self.does("Bash", {"command": command}, result)

    def edits(self, path: str, old: str = "a = 1", new: str = "a = 2") -> ClaudeCode:
        given = {"file_path": str(self.project / path), "old_string": old, "new_string": new}
        return self.does("Edit", given, "The file has been updated.")

    def _reply(self, blocks: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"msg_{self.session}_{len(self.lines)}",
            "role": "assistant",
            "model": "claude-test",
            "content": blocks,
        }

    def write(self, home: Path) -> Path:
        """Into the folder where Claude Code keeps the sessions of this project."""
        name = re.sub(r"[^A-Za-z0-9]", "-", str(self.project))
        folder = home / ".claude" / "projects" / name
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self.session}.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return file


def parser_session(
    project: Path, number: int, goal: str = "Fix the failing date parser tests"
) -> ClaudeCode:
    """A short session in which a person asks for a repair, and the checks pass."""
    told = ClaudeCode(f"c0ffee{number:02}-aaaa", project, BEGUN + number * 86_400)
    told.asks(goal).says("I will run the tests first.")
    told.runs("uv run pytest tests/test_parser.py", "1 failed, 3 passed\nExit code 1")
    told.edits("dates/parser.py")
    told.runs("make check-dates", "ok\n4 passed")
    told.runs("uv run pytest tests/test_parser.py", "4 passed in 0.2s")
    return told.says("All tests pass now.").asks("Great, that works. Thanks!").says("Welcome.")


def codex_rollout(session: str, project: Path, prompt: str, reply: str, **meta: Any) -> str:
    """A rollout of Codex, as text."""

    def item(role: str, kind: str, text: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    lines = [
        (
            "session_meta",
            {"id": session, "cwd": str(project), "originator": "codex_cli_rs", **meta},
        ),
        ("response_item", item("user", "input_text", prompt)),
        ("response_item", item("assistant", "output_text", reply)),
    ]
    return "".join(
        json.dumps({"timestamp": iso(BEGUN + at), "type": kind, "payload": payload}) + "\n"
        for at, (kind, payload) in enumerate(lines)
    )


def opencode_export(session: str, project: Path, prompt: str, reply: str) -> str:
    """What `opencode export` prints."""
    made = {"created": BEGUN * 1000}
    tool = {
        "type": "tool",
        "callID": "call_1",
        "tool": "bash",
        "state": {"status": "completed", "input": {"command": "make test"}, "output": "4 passed"},
    }
    messages = [
        {
            "info": {"id": "msg_1", "role": "user", "time": made},
            "parts": [
                {"type": "text", "text": "Called the Read tool.", "synthetic": True},
                {"type": "text", "text": prompt},
            ],
        },
        {
            "info": {"id": "msg_2", "role": "assistant", "time": made, "modelID": "gpt-test"},
            "parts": [tool, {"type": "text", "text": reply}],
        },
    ]
    return json.dumps(
        {"info": {"id": session, "directory": str(project), "time": made}, "messages": messages}
    )
