"""What each session looked for and used lately: what was asked for is what a call was good for."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_MOST_SESSIONS = 256
_MOST_QUESTIONS = 8
_MOST_USED = 16


@dataclass(slots=True)
class _Session:
    questions: OrderedDict[str, frozenset[str]] = field(default_factory=OrderedDict)
    """With the tools that each of them brought."""
    used: OrderedDict[str, None] = field(default_factory=OrderedDict)


class Sessions:
    """Use it from any thread. Those that were heard of least lately are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def asked(self, session: str, question: str, names: Sequence[str]) -> None:
        with self._lock:
            questions = self._of(session).questions
            questions[question] = frozenset(names)
            questions.move_to_end(question)
            _shorten(questions, _MOST_QUESTIONS)

    def question(self, session: str, tool: str) -> str:
        """The latest question that brought this tool; empty where none did."""
        with self._lock:
            questions = self._of(session).questions
            return next((asked for asked, names in reversed(questions.items()) if tool in names), "")

    def uses(self, session: str, tool: str) -> tuple[str, ...]:
        """Notes a use. All that the session used lately, this one last."""
        with self._lock:
            used = self._of(session).used
            used[tool] = None
            used.move_to_end(tool)
            _shorten(used, _MOST_USED)
            return tuple(used)

    def used(self, session: str) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._of(session).used)

    def end(self, session: str) -> None:
        with self._lock:
            self._sessions.pop(session, None)

    def _of(self, session: str) -> _Session:
        found = self._sessions.setdefault(session, _Session())
        self._sessions.move_to_end(session)
        _shorten(self._sessions, _MOST_SESSIONS)
        return found


def _shorten(kept: OrderedDict[str, Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)
