"""The fictional project as the session's tools see it: real files, really read, searched, edited and compared."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

ROOT = "/srv/ferrypost"
_SUFFIX = ".txt"  # the files are stored with it, so that no tool of ours takes them for code of ours


class Workspace:
    """Plays the tools that only need the files."""

    def __init__(self) -> None:
        self._original = dict(_stored(files("hotset.testing.recording") / "project"))
        self._files = dict(self._original)

    @property
    def files(self) -> Mapping[str, str]:
        return dict(self._files)

    def run(self, tool: str, arguments: Mapping[str, Any]) -> str:
        tools: Mapping[str, Callable[..., str]] = {
            "read_file": self._read_file,
            "list_directory": self._list_directory,
            "grep": self._grep,
            "edit_file": self._edit_file,
            "write_file": self._write_file,
            "git_diff": self._git_diff,
            "update_plan": _update_plan,
        }
        return tools[tool](**arguments)

    def _read_file(self, path: str, offset: int = 1, limit: int = 2000) -> str:
        lines = self._files[path].splitlines()[offset - 1 : offset - 1 + limit]
        return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, start=offset))

    def _list_directory(self, path: str = ".", *, recursive: bool = False) -> str:
        inside = "" if path == "." else path.rstrip("/") + "/"
        listed = set()
        for name in self._files:
            if name.startswith(inside):
                rest = name.removeprefix(inside)
                listed.add(rest if recursive or "/" not in rest else rest.split("/")[0] + "/")
        sizes = {
            name: f"{len(self._files[inside + name].encode()):>8}" if not name.endswith("/") else " " * 7 + "-" for name in listed
        }
        return "\n".join([f"{ROOT}/{inside}", *(f"{sizes[name]}  {name}" for name in sorted(listed))])

    def _grep(self, pattern: str, path: str = ".", context: int = 0) -> str:
        inside = "" if path == "." else path
        found: list[str] = []
        for name in sorted(name for name in self._files if name.startswith(inside)):
            found += _matching(name, self._files[name].splitlines(), re.compile(pattern), context)
        return "\n".join(found) or "No matches."

    def _edit_file(self, path: str, old: str, new: str) -> str:
        before = self._files[path]
        if before.count(old) != 1:
            raise ValueError(f"{path}: the text to replace stands there {before.count(old)} times:\n{old}")
        self._files[path] = before.replace(old, new)
        return f"Edited {path}.\n{_unified(path, before, self._files[path])}"

    def _write_file(self, path: str, content: str) -> str:
        self._files[path] = content
        return f"Wrote {path} ({len(content.splitlines())} lines)."

    def _git_diff(self) -> str:
        changed = [path for path in sorted(self._files) if self._files[path] != self._original.get(path, "")]
        return "\n".join(
            f"diff --git a/{path} b/{path}\n{_unified(path, self._original.get(path, ''), self._files[path])}" for path in changed
        )


def _stored(folder: Traversable, inside: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            found += _stored(entry, f"{inside}{entry.name}/")
        elif entry.name.endswith(_SUFFIX):
            found.append((inside + entry.name.removesuffix(_SUFFIX), entry.read_text(encoding="utf-8")))
    return found


def _matching(name: str, lines: list[str], pattern: re.Pattern[str], context: int) -> list[str]:
    hits = [number for number, line in enumerate(lines) if pattern.search(line)]
    shown = sorted({near for hit in hits for near in range(hit - context, hit + context + 1) if 0 <= near < len(lines)})
    return [
        f"{name}{':' if number in hits else '-'}{number + 1}{':' if number in hits else '-'}{lines[number]}" for number in shown
    ]


def _unified(path: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm="")
    return "\n".join(lines)


def _update_plan(steps: list[dict[str, str]]) -> str:
    marks = {"done": "x", "doing": "~", "open": " "}
    return "\n".join(f"[{marks[step['state']]}] {step['text']}" for step in steps)
