"""Small conversations, as the window sees them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from hotset.nouns.page import Chain, Kind, Role
from hotset.nouns.price import Price
from hotset.nouns.window import Line, PageTable, Piece, Plan, SentRequest
from hotset.window.moment import Moment

PRICE = Price(3.0, 15.0)


def count(text: bytes) -> int:
    """Tokens, near enough: what matters here is that more text is more."""
    return len(text) // 4 + 1


def moment(now: float = 1000.0, **more: object) -> Moment:
    return Moment(now, PRICE, count, **more)


@dataclass
class Talk:
    """A conversation that grows."""

    lines: list[Line] = field(default_factory=list)
    table: PageTable = field(default_factory=PageTable)

    def add(self, role: Role, *pieces: Piece) -> Talk:
        self.lines.append(Line(Chain(f"m{len(self.lines)}"), role, pieces, extra=4))
        return self

    def user(self, text: str) -> Talk:
        return self.add(Role.USER, piece(Kind.PROMPT, text))

    def say(self, text: str) -> Talk:
        """The model answers without a call."""
        return self.add(Role.ASSISTANT, piece(Kind.RESPONSE, text))

    def step(
        self,
        result: str,
        *,
        tool: str = "run",
        path: str = "",
        said: str = "",
        kind: Kind = Kind.TOOL_RESULT,
    ) -> Talk:
        """The model calls a tool, and gets this back."""
        id = f"call{len(self.lines)}"
        arguments = json.dumps({"path": path or f"src/file_{len(self.lines)}.py"})
        words = [piece(Kind.RESPONSE, said)] if said else []
        self.add(Role.ASSISTANT, *words, piece(Kind.TOOL_CALL, arguments, tool, id))
        return self.add(Role.TOOL, piece(kind, result, tool, id))

    def sent(self, plan: Plan, now: float = 1000.0) -> Talk:
        """The request went out as planned."""
        self.table = PageTable(
            {**self.table.shown, **{row.spot: row for row in plan.fresh}, **plan.shown},
            {},
            SentRequest(self.lines[-1].chain, now, plan.tokens),
        )
        return self


def piece(kind: Kind, text: str, tool: str = "", call: str = "") -> Piece:
    return Piece(kind, text.encode(), count(text.encode()), tool, call)


def code(functions: int, mark: str = "f") -> str:
    return "\n".join(
        f"def {mark}_{n}(a, b):\n    return a + b + {n * 7919}\n" for n in range(functions)
    )


def texts(lines: Sequence[Line]) -> list[bytes]:
    return [each.content for line in lines for each in line.pieces]
