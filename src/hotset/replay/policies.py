"""Every policy by name: hotset's own planning, and what others do with a long conversation.

A policy shows one block per message, the same object as long as it is unchanged. All baselines show
system and user messages always, as hotset does; they differ in what becomes of the model's own
messages and of the results of its calls. A summary's text is simulated by names, as many as fit.
"""

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
from hotset.window.birth import MakePreview
from hotset.window.evict import POLICIES
from hotset.window.plan import Moment, plan
from hotset.window.preview import preview
from hotset.window.price import units
from hotset.window.retrieval_tools import SPECS


@dataclass(eq=False, slots=True)
class ShownBlock:
    """Shown text of one message. Blocks are compared by identity."""

    text: str
    tokens: int
    covers_others: bool = False
    """True if it represents other messages too: a summary, or the stub of an evicted stretch."""
    masked: bool = False
    """True if it is a placeholder."""
    is_ours: bool = False
    """True if hotset wrote some of it, so that lists of names are told apart."""
    _units: TextUnits | None = None

    @property
    def units(self) -> TextUnits:
        if self._units is None:
            made = TextUnits.of_shown if self.is_ours else TextUnits.of
            self._units = made(self.text)
        return self._units


NOTHING = ShownBlock("", 0)


@cache
def _our_tools() -> int:
    """Tokens of the schemas of hotset's tools, which every request pays for."""
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
    """Cost of the policy itself so far, in units of an uncached input token: the writing of
    summaries."""

    @property
    def tools(self) -> int:
        """Tokens of the tools that it adds to every prompt."""
        ...

    def show(self, upto: int, now: float, held: int) -> Sequence[ShownBlock]:
        """The blocks that a call sees of the first `upto` messages, beside `held` tokens that were
        brought back. `upto` grows with every call."""
        ...


def text_of(line: Line) -> str:
    """A message as plain text: its words, and its calls with their arguments."""
    return "\n".join(
        f"{piece.tool} {spoken(piece.content)}"
        if piece.call and line.role == "assistant"
        else _decode_text(piece.content)
        for piece in line.pieces
    )


def whole_block(line: Line) -> ShownBlock:
    return ShownBlock(text_of(line), line.extra + sum(piece.tokens for piece in line.pieces))


@dataclass(slots=True)
class PlannedShowing:
    """hotset's policy: the code that the proxy runs."""

    conversation: RecordedConversation
    knobs: Knobs
    price: Price
    extra: float = 0.0
    tools: int = field(default_factory=_our_tools)
    departures: int = 0
    causes: dict[Cause, int] = field(default_factory=dict)
    preview: MakePreview = preview
    _rows: dict[Spot, Shown] = field(default_factory=dict)
    _sent: SentRequest | None = None
    _blocks: list[ShownBlock] = field(default_factory=list)

    @property
    def rows(self) -> Mapping[Spot, Shown]:
        """The form of every page that is not shown as it came."""
        return self._rows

    def show(self, upto: int, now: float, held: int) -> Sequence[ShownBlock]:
        lines = self.conversation.lines[:upto]
        table = PageTable(self._rows, {}, self._sent)
        fixed = self.conversation.fixed + self.tools + held
        moment = Moment(now, self.price, count, fixed, preview=self.preview)
        made = plan(lines, table, (), self.knobs, moment)
        for line in lines[len(self._blocks) :]:
            self._blocks.append(whole_block(line))
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
            ShownBlock(_decode_text(gone.text), gone.tokens, covers_others=True, is_ours=True)
            if gone.text
            else NOTHING
        )
    pieces = [
        (piece, rows.get(Spot(line.chain, position))) for position, piece in enumerate(line.pieces)
    ]
    if not any(row is not None and row.text for _, row in pieces):
        return before
    shown = replace(
        line,
        pieces=tuple(
            replace(piece, content=row.text) if row and row.text else piece for piece, row in pieces
        ),
    )
    return ShownBlock(
        text_of(shown),
        line.extra + sum(row.tokens if row else piece.tokens for piece, row in pieces),
        is_ours=True,
    )


def _decode_text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


SUMMARY = 500
"""Tokens of a summary. Agents' summaries of real sessions are six times as long: this flatters
policies that summarise."""

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
    """Full history: everything is shown as it arrives. Subclasses override `change` to alter blocks
    before a call."""

    conversation: RecordedConversation
    rules: Rules
    extra: float = 0.0
    tools: int = 0
    departures: int = 0
    """How many times something left the prompt."""
    held: int = 0
    """Tokens that were brought back."""
    blocks: list[ShownBlock] = field(default_factory=list)
    _summarized_names: Counter[str] = field(default_factory=Counter)
    """Names that summaries can contain, by how many messages had them."""

    def show(self, upto: int, now: float, held: int) -> Sequence[ShownBlock]:
        del now
        self.held = held
        for line in self.conversation.lines[len(self.blocks) : upto]:
            self.blocks.append(self.make_block(line))
        self.change()
        return self.blocks

    def make_block(self, line: Line) -> ShownBlock:
        return whole_block(line)

    def change(self) -> None:
        """Alter the blocks before a call."""

    @property
    def tokens(self) -> int:
        """Tokens of the current prompt."""
        return self.conversation.fixed + self.held + sum(block.tokens for block in self.blocks)

    def arrived(self) -> Iterator[tuple[int, Line]]:
        """The messages so far, with their indexes."""
        return enumerate(self.conversation.lines[: len(self.blocks)])

    def results(self) -> list[int]:
        return [index for index, line in self.arrived() if line.answers]

    def older(self, kept: int) -> list[int]:
        """Indexes of the model's messages and of the results of its calls, without the latest
        replies."""
        replies = [index for index, line in self.arrived() if line.role is Role.ASSISTANT]
        end = replies[-kept] if len(replies) >= kept else 0
        return [
            index
            for index, line in self.arrived()
            if index < end and (line.role is Role.ASSISTANT or line.answers)
        ]

    def blank(self, indexes: Iterable[int], placeholder: str) -> None:
        """Replace each of these blocks by a placeholder, if that is shorter."""
        tokens = count(placeholder)
        left = False
        for index in indexes:
            here = tokens + self.conversation.lines[index].extra
            if self.blocks[index].tokens > here:
                self.blocks[index] = ShownBlock(placeholder, here, masked=True)
                left = True
        self.departures += left

    def summary(self, blocks: Iterable[ShownBlock], read: Usage) -> ShownBlock:
        """A summary of these blocks and of those that earlier summaries covered. Its cost is what
        its writer reads and writes."""
        for block in blocks:
            if not block.covers_others:
                self._summarized_names.update(block.units.names)
        self.extra += units(self.rules.price, read) + units(self.rules.price, Usage(output=SUMMARY))
        return ShownBlock(
            _fit_names(name for name, _ in self._summarized_names.most_common()),
            SUMMARY,
            covers_others=True,
        )


@dataclass(slots=True)
class Truncate(Baseline):
    """Results are cut at 500 characters; a window of five iterations moves with every call; a
    summary covers what is behind it."""

    _waiting: list[ShownBlock] = field(default_factory=list)
    """Blocks that left and that no summary covers yet."""
    _iterations: int = 0
    """How many of them are replies."""

    def make_block(self, line: Line) -> ShownBlock:
        text = text_of(line)
        if not line.answers or len(text) <= _CUT:
            return whole_block(line)
        cut = text[:_CUT] + _CUT_MARK
        return ShownBlock(cut, line.extra + count(cut))

    def change(self) -> None:
        older = self.older(_ITERATIONS)
        leaving = [
            index
            for index in older
            if self.blocks[index] is not NOTHING and not self.blocks[index].covers_others
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
    """The latest ten results are shown; older ones are placeholders."""

    def change(self) -> None:
        self.blank(self.results()[:-_OBSERVATIONS], _MASKED)


@dataclass(slots=True)
class ClearToolUses(Baseline):
    """Once the client's prompt is over half of the window, the provider clears all but the latest
    three results.

    The client goes on sending everything, so from then on the window moves with every call.
    """

    _whole: int = 0
    """Tokens that the client sends."""

    def make_block(self, line: Line) -> ShownBlock:
        block = whole_block(line)
        self._whole += block.tokens
        return block

    def change(self) -> None:
        if self.conversation.fixed + self._whole > _CLEARING_FROM * self.rules.window:
            self.blank(self.results()[:-_TOOL_USES], _CLEARED)


@dataclass(slots=True)
class Compact(Baseline):
    """When the prompt is over three quarters of the window, a summary replaces everything before
    the latest reply."""

    def change(self) -> None:
        tokens = self.tokens
        older = self.older(1)
        fresh = any(
            self.blocks[index].tokens and not self.blocks[index].covers_others for index in older
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
    """When the prompt is over three quarters of the window, the oldest quarter leaves; references
    stay."""

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
    """As many of the names as a summary has room for."""
    fitting: list[str] = []
    room = SUMMARY
    for name in names:
        room -= count(f" {name}")
        if room < 0:
            break
        fitting.append(name)
    return " ".join(fitting)


DEFAULT, LEAN, FULL = "default", "lean", "full"

Maker = Callable[[RecordedConversation, Rules], Policy]
"""Makes a policy for one conversation."""

_LAST, _MOST = 5, 15  # moving the window with every call would break the prefix with every call


def ours(knobs: Knobs) -> Maker:
    """hotset's planning with these knobs, for the window that the rules name."""

    def make(conversation: RecordedConversation, rules: Rules) -> Policy:
        return PlannedShowing(
            conversation, msgspec.structs.replace(knobs, window=rules.window), rules.price
        )

    return make


KNOBS: Mapping[str, Knobs] = {
    DEFAULT: Knobs(),
    **{name: Knobs(policy=name) for name in POLICIES},
    "iterations": Knobs(keep=_LAST, most=_MOST),
    **{name: knobs for name, knobs in PROFILES.items() if knobs != Knobs()},
}
"""hotset's default policy, and the ones it can be configured to: orders of leaving, and the
profiles of kinds of agents."""

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
