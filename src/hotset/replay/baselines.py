"""What others do with a long conversation: the policies that ours is measured against.

All of them show system and user messages always, as ours does. What they differ in is what becomes
of the model's own messages and of the results of its calls. What a summary says stands for what a
model would write: names, as many as fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hotset.nouns.message import Usage
from hotset.nouns.page import Role
from hotset.nouns.window import Line
from hotset.replay.conversation import RecordedConversation
from hotset.replay.measure import Rules
from hotset.replay.showing import NOTHING, ShownBlock, text_of, whole
from hotset.tokens import count
from hotset.window.price import units

SUMMARY = 500
"""Tokens of a summary. Those that agents write of real sessions are six times as long: this
flatters whoever summarises."""

_CUT = 500  # characters
_CUT_MARK = "\n[truncated]"
_ITERATIONS = 5
_SUMMARISED_EVERY = 10  # iterations that left

_OBSERVATIONS = 10  # as in arXiv 2508.21433, where ten did best
_MASKED = "[Old observation left out]"

_CLEARING_FROM = 0.5  # of the window: 100,000 tokens of 200,000 where nobody says otherwise
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
            _fitting(name for name, _ in self._told.most_common()), SUMMARY, stands_in=True
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


def _fitting(names: Iterable[str]) -> str:
    """As many names as a summary has room for."""
    told: list[str] = []
    room = SUMMARY
    for name in names:
        room -= count(f" {name}")
        if room < 0:
            break
        told.append(name)
    return " ".join(told)
