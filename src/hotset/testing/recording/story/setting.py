"""Where the story plays: the agent's system prompt and its tools."""

from __future__ import annotations

from typing import Any

from hotset.testing.recording.nouns import ToolSpec

SYSTEM = """\
You are a coding agent that works in a terminal, on a repository that belongs to the person you are talking to.

# How you work
- Find out before you change. Read the code that is involved, look at the evidence (logs, data, tests), and say which
  explanation it supports.
- Make a failing test first where that is possible. Then make the smallest change that a maintainer would accept.
- Run the tests after every change. If something fails that you did not expect, say so, and do not hide it.
- Keep to the style of the code around you: its names, its comments, its way of testing. Add no dependencies unless you
  were asked to.
- Never touch production. `http_get` reaches the staging copy of production data, and can only read.
- Use several tools in one reply where the calls do not depend on each other.

# How you write
- Short. What you found, what you do next. No praise, no apologies, no summaries of what is on the screen anyway.
- Name files as `path:line`. Quote code only where the exact words matter.
- When you are done, say what changed, what you verified and how, and what is left open.

# The repository
- Root: /srv/ferrypost. Python 3.11. Tests: `run_tests`, or pytest through `run_command`. Lint: `ruff check .`.
- The team wants one idea a commit, a line in CHANGELOG.md for what users notice, and no change of the public HTTP API
  without asking.
- Logs of the last nights are in /var/log/ferrypost, one JSON object a line; `query_logs` filters them.

# Limits
- A command that runs for more than its timeout is stopped; you get what it printed until then.
- Tool output of more than 100,000 characters is cut.
- You have no network except for `http_get` on staging.
"""


def _schema(required: tuple[str, ...], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _number(description: str) -> dict[str, Any]:
    return {"type": "integer", "description": description, "minimum": 0}


def _flag(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description}


_PLAN = {
    "type": "array",
    "description": "All steps, in order.",
    "items": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "state": {"type": "string", "enum": ["open", "doing", "done"]}},
        "required": ["text", "state"],
    },
}

TOOLS = (
    ToolSpec(
        "read_file",
        "Reads a text file of the repository and shows it with line numbers. Reads the whole file unless you ask for a part"
        " of it; prefer the whole file where you are going to change it.",
        _schema(
            ("path",),
            path=_text("Relative to the root."),
            offset=_number("First line, from 1."),
            limit=_number("How many lines."),
        ),
    ),
    ToolSpec(
        "list_directory",
        "Lists a directory with sizes in bytes. Hidden files and what git ignores are left out.",
        _schema(
            (), path=_text("Relative to the root; the root itself by default."), recursive=_flag("Descend into directories.")
        ),
    ),
    ToolSpec(
        "grep",
        "Searches file contents with a regular expression and shows path, line number and line of every match, and lines"
        " around it on request. Much cheaper than reading files to find out where something is.",
        _schema(
            ("pattern",),
            pattern=_text("A Python regular expression."),
            path=_text("Only files whose path begins like this."),
            context=_number("Lines to show around each match."),
        ),
    ),
    ToolSpec(
        "edit_file",
        "Replaces a piece of text in a file. The old text must stand in the file exactly once, with its indentation; take"
        " in as many lines around it as that needs. Answers with the change as a diff.",
        _schema(
            ("path", "old", "new"),
            path=_text("Relative to the root."),
            old=_text("What to replace."),
            new=_text("What to put there."),
        ),
    ),
    ToolSpec(
        "write_file",
        "Writes a whole file, new or not. For changes to existing files use edit_file.",
        _schema(("path", "content"), path=_text("Relative to the root."), content=_text("The whole content.")),
    ),
    ToolSpec(
        "run_tests",
        "Runs pytest on a file, a directory or one test (`tests/test_x.py::test_y`) and shows its report.",
        _schema(("target",), target=_text("What to run."), verbose=_flag("One line a test.")),
    ),
    ToolSpec(
        "run_command",
        "Runs a shell command in the repository's root and shows what it printed and its exit status. Not for anything that"
        " needs a terminal, waits for input or changes files outside the repository.",
        _schema(
            ("command",), command=_text("The command line."), timeout_seconds=_number("Stop it after so long; 120 by default.")
        ),
    ),
    ToolSpec(
        "query_logs",
        "Filters a JSON-lines log by field values and shows the matching lines unchanged, oldest first.",
        _schema(
            ("file",),
            file=_text("Name of a file in /var/log/ferrypost."),
            where={"type": "object", "description": "Field names and the values they must have.", "additionalProperties": True},
            since=_text("Only lines from this time on, HH:MM:SS in UTC."),
            limit=_number("At most so many lines; 200 by default."),
        ),
    ),
    ToolSpec(
        "http_get",
        "Fetches a URL of the staging API (a copy of last night's production data) and shows the body.",
        _schema(("url",), url=_text("Path and query, such as /v1/stats.")),
    ),
    ToolSpec(
        "git_log",
        "Shows the latest commits, with the files that they touched.",
        _schema((), limit=_number("How many commits."), path=_text("Only commits that touched this path.")),
    ),
    ToolSpec("git_diff", "Shows everything that differs from the last commit as one diff.", _schema(())),
    ToolSpec(
        "update_plan",
        "Writes down the plan, so that both of you can see where you are. Call it when the plan changes, not after every step.",
        _schema(("steps",), steps=_PLAN),
    ),
)
