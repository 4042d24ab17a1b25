"""Sessions for tests of encoding, told step by step: what a user says, what an agent does, and what
comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from hotset.dialects.parts import kind_of_call, kind_of_result
from hotset.nouns.memory import Ending, MemoryKind, MemoryRecord
from hotset.nouns.message import DialectName
from hotset.nouns.page import Chain, Kind, Page, PageId, Role, SessionId, digest
from hotset.nouns.turn import Session
from hotset.sources.memory.encode.encoder import SessionMemories, encode_session
from hotset.sources.memory.encode.session import Material, utterance

NOW = 2_000_000_000.0
PASSED = "============ 12 passed in 0.31s ============"


@dataclass(slots=True)
class Told:
    """A session that is being told; every method gives it back."""

    id: str = "session-1"
    agent: str = "claude-cli"
    pages: list[tuple[Page, bytes]] = field(default_factory=list)
    endings: dict[int, Ending] = field(default_factory=dict)
    time: float = 1_700_000_000.0
    turn: int = 1

    def user(self, text: str, *, later: float = 10.0) -> Told:
        self.time += later
        return self._add(Kind.PROMPT, Role.USER, text)

    def message(self, parts: Sequence[str]) -> Told:
        """One message of the user, in several parts."""
        first = len(self.pages)
        for part in parts:
            self.user(part)
        chain = self.pages[first][0].chain
        self.pages[first:] = [
            (replace(page, chain=chain, position=at), content)
            for at, (page, content) in enumerate(self.pages[first:])
        ]
        return self

    def says(self, text: str) -> Told:
        self._add(Kind.RESPONSE, Role.ASSISTANT, text)
        self.turn += 1
        return self

    def does(self, tool: str, arguments: Mapping[str, object], result: str | None = "") -> Told:
        raw = json.dumps(arguments)
        call = f"call-{len(self.pages)}"
        self._add(kind_of_call(tool), Role.ASSISTANT, raw, tool, call)
        if result is not None:
            self._add(kind_of_result(tool, raw.encode()), Role.TOOL, result, tool, call)
        self.turn += 1
        return self

    def runs(self, command: str, result: str = "", code: int = 0) -> Told:
        return self.does(
            "Bash", {"command": command}, f"Exit code {code}\n{result}" if code else result
        )

    def edits(self, path: str) -> Told:
        return self.does(
            "Edit",
            {"file_path": path, "old_string": "a", "new_string": "b"},
            f"The file {path} has been updated.",
        )

    def reads(self, path: str, text: str = "1\tx = 1") -> Told:
        return self.does("Read", {"file_path": path}, text)

    def material(self, most: int | None = None) -> Material:
        session = Session(SessionId(self.id), "", self.agent, DialectName.ANTHROPIC, 0.0)
        line = tuple(utterance(page, content) for page, content in self.pages[:most])
        return Material(session, line, self.endings, NOW)

    def encoded(self, most: int | None = None) -> SessionMemories:
        return encode_session(self.material(most))

    def memories(self, kind: MemoryKind) -> list[MemoryRecord]:
        return [each for each in self.encoded().memories if each.kind is kind]

    def _add(self, kind: Kind, role: Role, text: str, tool: str = "", call: str = "") -> Told:
        content = text.encode("utf-8", "surrogatepass")
        self.time += 1.0
        number = len(self.pages)
        id = PageId("p" + sha256(f"{self.id}-{number}".encode()).hexdigest()[:15])
        page = Page(
            id=id,
            session=SessionId(self.id),
            agent=self.agent,
            turn=self.turn,
            branch=0,
            kind=kind,
            role=role,
            parent=None,
            digest=digest(content),
            size=len(content),
            media="text/plain",
            time=self.time,
            chain=Chain(f"chain-{number}"),
            position=0,
            tool=tool,
            call=call,
        )
        self.pages.append((page, content))
        return self


def fixed(
    told: Told,
    goal: str = (
        "Fix the failing test of the parser in src/parser.py, it has been red since the merge."
    ),
) -> Told:
    """A session in which a test fails, a dependency is installed, and the test passes."""
    return (
        told.user(goal)
        .runs(
            "pytest -q tests/test_parser.py",
            "E   ModuleNotFoundError: No module named 'yaml'\n1 failed in 0.1s",
            1,
        )
        .runs("uv sync", "Installed 12 packages")
        .runs("pytest -q tests/test_parser.py", PASSED)
        .says("The parser's tests pass now: the environment lacked its dependencies.")
    )
