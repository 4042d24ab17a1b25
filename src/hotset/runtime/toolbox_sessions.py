"""What each session looked for and used lately: what was asked for is what a call was good for."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from hotset.files.lru import Lru

_MOST_SESSIONS = 256
_MOST_QUESTIONS = 8
_MOST_USED = 16


@dataclass(slots=True)
class _Session:
    questions: Lru[str, frozenset[str]] = field(default_factory=lambda: Lru(count=_MOST_QUESTIONS))
    """With the tools that each of them brought."""
    used: Lru[str, None] = field(default_factory=lambda: Lru(count=_MOST_USED))


class Sessions:
    """Use it from any thread. Those that were heard of least lately are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: Lru[str, _Session] = Lru(count=_MOST_SESSIONS)

    def asked(self, session: str, question: str, names: Sequence[str]) -> None:
        with self._lock:
            self._of(session).questions.put(question, frozenset(names))

    def question(self, session: str, tool: str) -> str:
        """The latest question that brought this tool; empty where none did."""
        with self._lock:
            questions = self._of(session).questions.items()
        return next((asked for asked, names in reversed(questions) if tool in names), "")

    def uses(self, session: str, tool: str) -> tuple[str, ...]:
        """Notes a use. All that the session used lately, this one last."""
        with self._lock:
            self._of(session).used.put(tool, None)
        return self.used(session)

    def used(self, session: str) -> tuple[str, ...]:
        with self._lock:
            return tuple(tool for tool, _ in self._of(session).used.items())

    def end(self, session: str) -> None:
        self._sessions.pop(session)

    def _of(self, session: str) -> _Session:
        return self._sessions.get_or_make(session, _Session)
