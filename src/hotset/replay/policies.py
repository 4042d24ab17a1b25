"""Every policy by name: our own planning, and what others do with a long conversation.

A policy shows one block a message, the same object for as long as it stays the same. The others
all show system and user messages always, as ours does. What they differ in is what becomes of the
model's own messages and of the results of its calls. What a summary says stands for what a model
would write: names, as many as fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Protocol

import msgspec

from hotset.nouns.knobs import PROFILES, Knobs
from hotset.nouns.message import Usage
from hotset.nouns.page import Role
from hotset.nouns.price import Price
from hotset.nouns.window import WHOLE, Cause, Line, PageTable, SentRequest, Shown, Spot
from hotset.replay.conversation import RecordedConversation, TextUnits
from hotset.tokens import count
from hotset.window.arguments import spoken
from hotset.window.evict import POLICIES
from hotset.window.plan import Moment, plan
from hotset.window.price import units
from hotset.window.retrieval_tools import SPECS


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


@dataclass(frozen=True, slots=True)
class Rules:
    price: Price
    window: int
    ttl: float | None = None
    """Seconds after which the provider's cache is cold; None leaves pauses out of account."""


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
        else _decode_text(piece.content)
        for piece in line.pieces
    )


def whole(line: Line) -> ShownBlock:
    return ShownBlock(text_of(line), line.extra + sum(piece.tokens for piece in line.pieces))


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
                    self._blocks[index] = _shown_block(line, self._rows, self._blocks[index])
        self._sent = SentRequest(lines[-1].chain, now, made.tokens) if lines else None
        self.departures += bool(made.stubs)
        if made.broke is not None:
            self.causes[made.broke] = self.causes.get(made.broke, 0) + 1
        return self._blocks


def _shown_block(line: Line, rows: Mapping[Spot, Shown], before: ShownBlock) -> ShownBlock:
    gone = rows.get(Spot(line.chain, WHOLE))
    if gone is not None:
        return (
            ShownBlock(_decode_text(gone.text), gone.tokens, stands_in=True)
            if gone.text
            else NOTHING
        )
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


def _decode_text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


SUMMARY = 500
"""Tokens of a summary. Those that agents write of real sessions are six times as long: this
flatters policies that summarise."""

_CUT = 500  # characters
_CUT_MARK = "\n[truncated]"
_ITERATIONS = 5
_SUMMARISED_EVERY = 10  # iterations that left

_OBSERVATIONS = 10  # as in arXiv 2508.21433, where ten did best
_MASKED = "[Old observation left out]"

_CLEARING_FROM = 0.5  # of the window: 100,000 tokens of 200,000 by default
_TOOL_USES = 3
_CLEARED = "[Old tool result content cleared]"

_FULL = 0.75  # of the window: where compaction and eviction set in
_SHARE = 0.25  # of the prompt leaves with each eviction
_RECENT = 5  # iterations that an eviction leaves alone
_SMALLEST = 30  # tokens; a reference to a smaller message is no smaller than the message
_EVICTED = "[Evicted; to be had by its reference]"


@dataclass(slots=True)
class Baseline:
    """A conversation of which everything is shown as it arrives. A policy says what it changes
    before a call."""

    conversation: RecordedConversation
    rules: Rules
    extra: float = 0.0
    tools: int = 0
    departures: int = 0
    """How many times something left."""
    blocks: list[ShownBlock] = field(default_factory=list)
    _told: Counter[str] = field(default_factory=Counter)
    """Names that summaries can tell, by how many messages had them."""

    def show(self, upto: int, now: float) -> Sequence[ShownBlock]:
        del now
        for line in self.conversation.lines[len(self.blocks) : upto]:
            self.blocks.append(self.born(line))
        self.change()
        return self.blocks

    def born(self, line: Line) -> ShownBlock:
        return whole(line)

    def change(self) -> None:
        """Changes blocks, where the policy wants it."""

    @property
    def tokens(self) -> int:
        """Of the prompt as it stands."""
        return self.conversation.fixed + sum(block.tokens for block in self.blocks)

    def arrived(self) -> Iterator[tuple[int, Line]]:
        """The messages so far, with their places."""
        return enumerate(self.conversation.lines[: len(self.blocks)])

    def results(self) -> list[int]:
        return [index for index, line in self.arrived() if line.answers]

    def older(self, kept: int) -> list[int]:
        """The model's messages and the results of its calls, without those of its latest
        replies."""
        replies = [index for index, line in self.arrived() if line.role is Role.ASSISTANT]
        end = replies[-kept] if len(replies) >= kept else 0
        return [
            index
            for index, line in self.arrived()
            if index < end and (line.role is Role.ASSISTANT or line.answers)
        ]

    def blank(self, indexes: Iterable[int], placeholder: str) -> None:
        """Puts a placeholder in the place of each of these, where that is shorter."""
        tokens = count(placeholder)
        left = False
        for index in indexes:
            here = tokens + self.conversation.lines[index].extra
            if self.blocks[index].tokens > here:
                self.blocks[index] = ShownBlock(placeholder, here)
                left = True
        self.departures += left

    def summary(self, blocks: Iterable[ShownBlock], read: Usage) -> ShownBlock:
        """Tells of these and of all that earlier summaries told of. Paid for: what its writer
        reads, and what it writes."""
        for block in blocks:
            if not block.stands_in:
                self._told.update(block.said.names)
        self.extra += units(self.rules.price, read) + units(self.rules.price, Usage(output=SUMMARY))
        return ShownBlock(
            _fit_names(name for name, _ in self._told.most_common()), SUMMARY, stands_in=True
        )


@dataclass(slots=True)
class Truncate(Baseline):
    """Results cut at 500 characters, a window of five iterations that moves with every call, a
    summary of what is behind it."""

    _waiting: list[ShownBlock] = field(default_factory=list)
    """What left and no summary tells of yet."""
    _iterations: int = 0
    """How many of them are waiting."""

    def born(self, line: Line) -> ShownBlock:
        text = text_of(line)
        if not line.answers or len(text) <= _CUT:
            return whole(line)
        cut = text[:_CUT] + _CUT_MARK
        return ShownBlock(cut, line.extra + count(cut))

    def change(self) -> None:
        older = self.older(_ITERATIONS)
        leaving = [
            index
            for index in older
            if self.blocks[index] is not NOTHING and not self.blocks[index].stands_in
        ]
        for index in leaving:
            self._waiting.append(self.blocks[index])
            self._iterations += self.conversation.lines[index].role is Role.ASSISTANT
            self.blocks[index] = NOTHING
        self.departures += bool(leaving)
        if self._iterations >= _SUMMARISED_EVERY:
            read = SUMMARY + sum(block.tokens for block in self._waiting)
            self.blocks[older[0]] = self.summary(self._waiting, Usage(input=read))
            self._waiting, self._iterations = [], 0


@dataclass(slots=True)
class Mask(Baseline):
    """The latest ten results; a placeholder for every older one."""

    def change(self) -> None:
        self.blank(self.results()[:-_OBSERVATIONS], _MASKED)


@dataclass(slots=True)
class ClearToolUses(Baseline):
    """The latest three results once the client's own prompt is over half of the window; the
    provider clears the older ones.

    The client goes on sending everything, so from then on the window moves with every call.
    """

    _whole: int = 0
    """Tokens of what the client sends."""

    def born(self, line: Line) -> ShownBlock:
        block = whole(line)
        self._whole += block.tokens
        return block

    def change(self) -> None:
        if self.conversation.fixed + self._whole > _CLEARING_FROM * self.rules.window:
            self.blank(self.results()[:-_TOOL_USES], _CLEARED)


@dataclass(slots=True)
class Compact(Baseline):
    """A summary for everything before the latest reply, each time that the prompt is over three
    quarters of the window."""

    def change(self) -> None:
        tokens = self.tokens
        older = self.older(1)
        fresh = any(
            self.blocks[index].tokens and not self.blocks[index].stands_in for index in older
        )
        if fresh and tokens > _FULL * self.rules.window:
            summary = self.summary(
                [self.blocks[index] for index in older], Usage(cache_read=tokens)
            )
            for index in older:
                self.blocks[index] = NOTHING
            self.blocks[older[0]] = summary
            self.departures += 1


@dataclass(slots=True)
class Evict(Baseline):
    """The oldest quarter leaves, each time that the prompt is over three quarters of the window;
    references stay."""

    def change(self) -> None:
        tokens = self.tokens
        if tokens <= _FULL * self.rules.window:
            return
        goal = (1 - _SHARE) * tokens
        leaving = []
        for index in self.older(_RECENT):
            if tokens <= goal:
                break
            if self.blocks[index].tokens > _SMALLEST:
                tokens -= self.blocks[index].tokens
                leaving.append(index)
        self.blank(leaving, _EVICTED)


def _fit_names(names: Iterable[str]) -> str:
    """As many names as a summary has room for."""
    told: list[str] = []
    room = SUMMARY
    for name in names:
        room -= count(f" {name}")
        if room < 0:
            break
        told.append(name)
    return " ".join(told)


DEFAULT, LEAN, FULL = "default", "lean", "full"

Maker = Callable[[RecordedConversation, Rules], Policy]
"""Sets a policy to one conversation."""

_LAST, _MOST = 5, 15  # moving the window with every call would break the prefix with every call


def ours(knobs: Knobs) -> Maker:
    """Our own planning with these knobs, for the window that the rules say."""

    def make(conversation: RecordedConversation, rules: Rules) -> Policy:
        return PlannedShowing(
            conversation, msgspec.structs.replace(knobs, window=rules.window), rules.price
        )

    return make


KNOBS: Mapping[str, Knobs] = {
    DEFAULT: Knobs(),
    **{name: Knobs(policy=name) for name in POLICIES},
    "iterations": Knobs(keep=_LAST, most=_MOST),
    LEAN: PROFILES[LEAN],
}
"""What hotset does by itself, and what it can be told to do."""

OURS: Mapping[str, Maker] = {name: ours(knobs) for name, knobs in KNOBS.items()}

BASELINES: Mapping[str, Maker] = {
    FULL: Baseline,
    "truncate": Truncate,
    "mask": Mask,
    "clear_tool_uses": ClearToolUses,
    "compact": Compact,
    "evict25": Evict,
}

ROSTER: Mapping[str, Maker] = {**OURS, **BASELINES}
USUAL = (DEFAULT, *BASELINES)
"""The policies that are compared by default."""
