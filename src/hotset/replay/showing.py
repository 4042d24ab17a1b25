"""What a policy shows of a conversation at each call: one block a message, the same object for as
long as it stays the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Protocol

from hotset.nouns.knobs import Knobs
from hotset.nouns.price import Price
from hotset.nouns.window import WHOLE, Cause, Line, PageTable, SentRequest, Shown, Spot
from hotset.replay.conversation import RecordedConversation
from hotset.replay.needs import TextUnits
from hotset.tokens import count
from hotset.window.arguments import spoken
from hotset.window.plan import Moment, plan
from hotset.window.tools import SPECS


@dataclass(eq=False, slots=True)
class ShownBlock:
    """What is shown of one message. Two blocks are the same only if they are one."""

    text: str
    tokens: int
    stands_in: bool = False
    """It speaks for other messages too: a summary, or what stays of a stretch that left."""
    _said: TextUnits | None = None

    @property
    def said(self) -> TextUnits:
        if self._said is None:
            self._said = TextUnits.of(self.text)
        return self._said


NOTHING = ShownBlock("", 0)


@cache
def _our_tools() -> int:
    """Tokens of their schema, which every request of ours pays for."""
    return sum(
        count(text)
        for spec in SPECS
        for text in (spec.name.encode(), spec.description.encode(), spec.parameters)
    )


class Policy(Protocol):
    """One conversation under one policy."""

    extra: float
    """What the policy itself has cost so far, in units of an uncached input token: the writing of
    summaries."""

    @property
    def tools(self) -> int:
        """Tokens of the tools that it puts before every prompt."""
        ...

    def show(self, upto: int, now: float) -> Sequence[ShownBlock]:
        """What a call sees of the first `upto` messages. Called with growing numbers."""
        ...


def text_of(line: Line) -> str:
    """A message as plain text: what it says, and what it calls with which arguments."""
    return "\n".join(
        f"{piece.tool} {spoken(piece.content)}"
        if piece.call and line.role == "assistant"
        else _text(piece.content)
        for piece in line.pieces
    )


def whole(line: Line) -> ShownBlock:
    return ShownBlock(text_of(line), line.extra + sum(piece.tokens for piece in line.pieces))


@dataclass(slots=True)
class Everything:
    """Full history: the yardstick."""

    conversation: RecordedConversation
    blocks: list[ShownBlock] = field(default_factory=list)
    extra: float = 0.0
    tools: int = 0

    def show(self, upto: int, now: float) -> Sequence[ShownBlock]:
        del now
        while len(self.blocks) < upto:
            self.blocks.append(self.born(self.conversation.lines[len(self.blocks)]))
        return self.blocks

    def born(self, line: Line) -> ShownBlock:
        return whole(line)


@dataclass(slots=True)
class PlannedShowing:
    """Ours: the very code that the proxy runs."""

    conversation: RecordedConversation
    knobs: Knobs
    price: Price
    extra: float = 0.0
    tools: int = field(default_factory=_our_tools)
    departures: int = 0
    causes: dict[Cause, int] = field(default_factory=dict)
    _rows: dict[Spot, Shown] = field(default_factory=dict)
    _sent: SentRequest | None = None
    _blocks: list[ShownBlock] = field(default_factory=list)

    def show(self, upto: int, now: float) -> Sequence[ShownBlock]:
        lines = self.conversation.lines[:upto]
        table = PageTable(self._rows, {}, self._sent)
        moment = Moment(now, self.price, count, self.conversation.fixed)
        made = plan(lines, table, (), self.knobs, moment)
        for line in lines[len(self._blocks) :]:
            self._blocks.append(whole(line))
        touched = set()
        for row in made.fresh:
            self._rows[row.spot] = row
            touched.add(row.spot.chain)
        if touched:
            for index, line in enumerate(lines):
                if line.chain in touched:
                    self._blocks[index] = _shown(line, self._rows, self._blocks[index])
        self._sent = SentRequest(lines[-1].chain, now, made.tokens) if lines else None
        self.departures += bool(made.stubs)
        if made.broke is not None:
            self.causes[made.broke] = self.causes.get(made.broke, 0) + 1
        return self._blocks


def _shown(line: Line, rows: Mapping[Spot, Shown], before: ShownBlock) -> ShownBlock:
    gone = rows.get(Spot(line.chain, WHOLE))
    if gone is not None:
        return ShownBlock(_text(gone.text), gone.tokens, stands_in=True) if gone.text else NOTHING
    pieces = [
        (piece, rows.get(Spot(line.chain, position))) for position, piece in enumerate(line.pieces)
    ]
    if not any(row is not None and row.text for _, row in pieces):
        return before
    told = replace(
        line,
        pieces=tuple(
            replace(piece, content=row.text) if row and row.text else piece for piece, row in pieces
        ),
    )
    return ShownBlock(
        text_of(told),
        line.extra + sum(row.tokens if row else piece.tokens for piece, row in pieces),
    )


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
