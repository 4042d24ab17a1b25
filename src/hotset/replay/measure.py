"""Measures a policy on recorded conversations: tokens, cost under the provider's cache rules, and
what the model misses.

A miss is a string or line that an action copies and that nothing shown contains any more; a name
that only a list of left-out names has is a miss too. An action with a miss is a fault. A reply with
faults pays for one more call: the prompt read again, a slice of each message that had what is
missing, and the words to ask for them. The slices stay, and fill the window, until the policy lets
the step leave that brought them back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from hotset.nouns.message import Usage
from hotset.nouns.price import Price
from hotset.replay.conversation import NeededAction, RecordedConversation, TextUnits, find_actions
from hotset.replay.policies import NOTHING, Policy, Rules, ShownBlock, text_of
from hotset.window.price import charge, units

SLICE = 2000
_ASKING = 60
_CHARS_PER_TOKEN = 4
_AHEAD = 30.0
"""Seconds before a cache goes cold, when a call that keeps it warm is made."""
_MILLION = 1_000_000
_LOOK_BACK = 20
"""Content blocks before a cache mark among which the provider looks for a prefix that it has."""

LENGTHS = (0, 32_000, 100_000, 200_000, 400_000)
"""Where the classes of prompts by length begin, in tokens of full history."""


@dataclass(slots=True)
class Figures:
    """Sums over conversations."""

    calls: int = 0
    prompt: int = 0
    """Tokens of all prompts."""
    read: int = 0
    cost: float = 0.0
    fault_cost: float = 0.0
    marked_cost: float = 0.0
    """Cost with faults by the cache marks that a client sets, not by an ideal prefix."""
    actions: int = 0
    replies: int = 0
    """Replies with at least one action."""
    faults: int = 0
    """Actions with a miss."""
    faulted: int = 0
    """Replies with a fault."""
    needs: int = 0
    misses: int = 0
    hinted: int = 0
    """Misses whose name is in a list of left-out names."""
    peak: int = 0
    over: int = 0
    breaks: int = 0
    departures: int = 0
    distances: list[int] = field(default_factory=list)
    """For each fault, how many calls ago the text last appeared."""
    asked_back: list[tuple[str, int]] = field(default_factory=list)
    """For each fault, the messages that were shown short and had what is missing: a conversation
    and an index."""
    seconds: list[float] = field(default_factory=list)
    """Time of each plan."""
    each: dict[str, float] = field(default_factory=dict)
    """Cost of each conversation, faults included."""
    by_length: dict[int, float] = field(default_factory=dict)
    """Cost with faults of the calls in each of `LENGTHS`."""
    by_call: list[float] = field(default_factory=list)
    """Dollars with faults of every conversation's first call, of its second, and so on."""
    tools_cost: float = 0.0
    """The part of the cost that goes to the tools by which a model asks for what is missing."""
    pause_cost: float = 0.0
    """The part of the cost that is there because caches went cold in pauses."""
    warmed: float = 0.0
    """What calls that keep a cache warm would have saved of that, their own cost taken off."""

    def add_call(self, number: int, dollars: float) -> None:
        if number == len(self.by_call):
            self.by_call.append(0.0)
        self.by_call[number] += dollars


@dataclass(frozen=True, slots=True)
class _Slice:
    """Text that a retrieval brought back."""

    home: int
    """Index of the reply whose action asked for it."""
    tokens: int
    units: TextUnits


@dataclass(frozen=True, slots=True)
class StudiedConversation:
    """A conversation with what is the same under every policy."""

    conversation: RecordedConversation
    actions: Mapping[int, Sequence[NeededAction]]
    """By the index of their reply."""
    whole: tuple[int, ...]
    """For each message, the tokens of full history before it."""
    calls: tuple[int, ...]
    """Indexes of the replies."""

    @classmethod
    def of(cls, conversation: RecordedConversation) -> StudiedConversation:
        units = [TextUnits.of(text_of(line)) for line in conversation.lines]
        actions: dict[int, list[NeededAction]] = {}
        for action in find_actions(conversation.lines, units):
            actions.setdefault(action.message, []).append(action)
        whole = [conversation.fixed]
        for line in conversation.lines:
            whole.append(whole[-1] + line.whole)
        return cls(conversation, actions, tuple(whole), conversation.calls)


class MarkedCache:
    """A provider's cache as a client with cache marks meets it: on the fixed part, on the latest
    message, and on the one that was the latest in the call before.

    A prefix is found only where an earlier call had a mark, at one of the new marks or among the
    20 content blocks before it.
    """

    def __init__(self, price: Price, ttl: float | None) -> None:
        self._price = price
        self._ttl = ttl
        self._entries: dict[int, float] = {}
        """When each cached prefix was last used, by its hash."""
        self._seen: dict[int, ShownBlock] = {}
        """Every block by its id, which stays its own while the block lives."""
        self._last = 0
        """Messages in the call before."""

    def cost(
        self, fixed: int, blocks: Sequence[ShownBlock], slices: Sequence[_Slice], now: float
    ) -> float:
        """Cost of a prompt with what retrievals brought back."""
        held: dict[int, int] = {}
        for slice in slices:
            held[slice.home] = held.get(slice.home, 0) + slice.tokens
        prefixes, sizes, prefix = [0], [fixed], 0
        for index, block in enumerate(blocks):
            self._seen[id(block)] = block
            prefix = hash((prefix, id(block)))
            prefixes.append(prefix)
            sizes.append(sizes[-1] + block.tokens + held.get(index, 0))
        marks = {0, min(self._last, len(blocks)), len(blocks)}
        near = {at for mark in marks for at in range(max(0, mark - _LOOK_BACK), mark + 1)}
        found = max((at for at in near if self._is_cached(prefixes[at], now)), default=-1)
        for at in (*marks, *((found,) if found >= 0 else ())):
            self._entries[prefixes[at]] = now
        self._last = len(blocks)
        read = sizes[found] if found >= 0 else 0
        usage = charge(self._price, sizes[-1], read, cold=found < 0)
        return units(self._price, usage)

    def _is_cached(self, prefix: int, now: float) -> bool:
        used = self._entries.get(prefix)
        return used is not None and (self._ttl is None or now - used <= self._ttl)


def measure(
    studied: StudiedConversation,
    policy: Policy,
    rules: Rules,
    figures: Figures,
    clock: Callable[[], float],
) -> None:
    """Replay one conversation and add its figures."""
    conversation, price = studied.conversation, rules.price
    fixed = conversation.fixed + policy.tools
    before: Sequence[ShownBlock] = ()
    slices: list[_Slice] = []
    marked = MarkedCache(price, rules.ttl)
    cost = fault_cost = 0.0
    last = 0.0
    for number, index in enumerate(call for call in studied.calls if call):
        now = conversation.lines[index].time or last if rules.ttl is not None else 0.0
        began = clock()
        held = sum(each.tokens for each in slices)
        blocks = list(policy.show(index, now, held))[:index]
        figures.seconds.append(clock() - began)
        prompt = fixed + sum(block.tokens for block in blocks)
        same = _common_prefix(before, blocks)
        kept = fixed + sum(block.tokens for block in blocks[:same]) if before else 0
        cold = not before or (rules.ttl is not None and now - last > rules.ttl)
        usage = charge(price, prompt, kept, cold=cold)
        call_cost = units(price, usage)
        bare = charge(price, prompt - policy.tools, max(0, kept - policy.tools), cold=cold)
        figures.tools_cost += call_cost - units(price, bare)
        if cold and before and rules.ttl is not None:
            _count_pause(figures, now - last - rules.ttl, rules, (prompt, kept, call_cost))
        slices = [each for each in slices if not _has_left(each, blocks)]
        held = sum(each.tokens for each in slices)
        # What the call before brought back was cached by its own retrieval.
        lost = sum(each.tokens for each in slices if cold or same <= each.home < len(before))
        faults = price.read * (held - lost) + price.write * lost
        marked_cost = marked.cost(fixed, blocks, slices, now)
        figures.calls += 1
        figures.prompt += prompt
        figures.read += usage.cache_read
        figures.peak = max(figures.peak, prompt + held)
        figures.over += prompt + held > rules.window
        figures.breaks += same < len(before) and not cold
        brought = _fault(studied, index, blocks, slices, figures)
        fetched = (
            bool(brought) * price.read * (prompt + held)
            + price.write * sum(each.tokens for each in brought)
            + units(price, Usage(output=_ASKING * len(brought)))
        )
        slices += brought
        cost += call_cost
        fault_cost += faults + fetched
        figures.marked_cost += marked_cost + fetched
        length = LENGTHS[bisect_right(LENGTHS, studied.whole[index]) - 1]
        figures.by_length[length] = (
            figures.by_length.get(length, 0.0) + call_cost + faults + fetched
        )
        figures.add_call(number, (call_cost + faults + fetched) * price.input / _MILLION)
        before, last = blocks, now
    figures.cost += cost + policy.extra
    figures.marked_cost += policy.extra
    figures.fault_cost += fault_cost
    figures.departures += getattr(policy, "departures", 0)
    figures.each[conversation.id] = cost + policy.extra + fault_cost


def _fault(
    studied: StudiedConversation,
    index: int,
    blocks: Sequence[ShownBlock],
    slices: Sequence[_Slice],
    figures: Figures,
) -> list[_Slice]:
    """What the actions of a reply have to bring back. Adds to the figures."""
    brought: list[_Slice] = []
    for action in studied.actions.get(index, ()):
        missed, hinted = _missing_needs(action, blocks, [*slices, *brought])
        figures.actions += 1
        figures.needs += len(action.needs)
        figures.misses += len(missed)
        figures.hinted += hinted
        if not missed:
            continue
        figures.faults += 1
        sources: dict[int, list[str]] = {}
        for need in missed:
            sources.setdefault(action.needs[need][-1], []).append(need)
        brought += [
            _slice(studied.conversation, source, needs, index) for source, needs in sources.items()
        ]
        figures.asked_back += [
            (studied.conversation.id, source)
            for source in sources
            if blocks[source].is_ours and not blocks[source].covers_others
        ]
        before, after = (bisect_right(studied.calls, at) for at in (max(sources), index))
        figures.distances.append(after - before)
    figures.faulted += bool(brought)
    figures.replies += index in studied.actions
    return brought


def _count_pause(
    figures: Figures, too_long: float, rules: Rules, call: tuple[int, int, float]
) -> None:
    """Add what a pause cost that was longer than the cache lives by so many seconds, and what calls
    to keep it warm would have saved: one every `ttl - 30` seconds, which reads the prefix.

    A pause has no known length: they end when they have cost as much as a rewrite.
    """
    prompt, prefix, cost = call
    price = rules.price
    lost = cost - units(price, charge(price, prompt, prefix))
    each = units(price, charge(price, prefix, prefix)) + units(price, Usage(output=1))
    needed = ceil(too_long / max(1.0, (rules.ttl or 0.0) - _AHEAD))
    affordable = int(lost / each)
    figures.pause_cost += lost
    figures.warmed += lost - needed * each if needed <= affordable else -affordable * each


def _has_left(slice: _Slice, blocks: Sequence[ShownBlock]) -> bool:
    """True if the policy no longer shows the reply that asked, or masks the results after it."""
    asked, *results = blocks[slice.home : slice.home + 2]
    return asked is NOTHING or asked.covers_others or any(each.masked for each in results)


def _common_prefix(before: Sequence[ShownBlock], blocks: Sequence[ShownBlock]) -> int:
    """Number of leading blocks that are unchanged."""
    return next(
        (i for i, (a, b) in enumerate(zip(before, blocks, strict=False)) if a is not b),
        min(len(before), len(blocks)),
    )


def _missing_needs(
    action: NeededAction, blocks: Sequence[ShownBlock], slices: Sequence[_Slice]
) -> tuple[list[str], int]:
    """What the action copies and nothing shown has, and how much of that is in a list of names."""
    covering = [block.units for block in blocks if block.covers_others]
    elsewhere = [*(each.units for each in slices), *covering]
    missed: list[str] = []
    hinted = 0
    for need, where in action.needs.items():
        if any(blocks[index].units.holds(need) for index in where):
            continue
        if any(each.holds(need) for each in elsewhere):
            continue
        missed.append(need)
        hinted += any(blocks[index].units.hints(need) for index in where) or any(
            each.hints(need) for each in covering
        )
    return missed, hinted


def _slice(
    conversation: RecordedConversation, source: int, missed: Sequence[str], home: int
) -> _Slice:
    """The part of a message that starts a little before the first missed string."""
    line = conversation.lines[source]
    text = text_of(line)
    tokens = line.whole
    if tokens > SLICE:
        room = SLICE * _CHARS_PER_TOKEN
        found = min((at for need in missed if (at := text.find(need)) >= 0), default=0)
        text, tokens = text[max(0, found - room // 8) : found - room // 8 + room], SLICE
    return _Slice(home, tokens, TextUnits.of(text))
