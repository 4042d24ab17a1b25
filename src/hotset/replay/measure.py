"""Measures a policy on recorded conversations: tokens, cost under the provider's cache rules, and
what the model misses.

A miss is a string or line that an action copies and that nothing shown contains any more. An action
with a miss pays for one more call: the prompt read again, a slice of what was missing, and the
words to ask for it; the slice then stays for ten calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hotset.nouns.message import Usage
from hotset.replay.conversation import NeededAction, RecordedConversation, TextUnits, find_actions
from hotset.replay.policies import Policy, Rules, ShownBlock, text_of
from hotset.window.price import charge, units

SLICE = 2000
_ASKING = 60
_STAYS = 10
_CHARS_PER_TOKEN = 4


@dataclass(slots=True)
class Figures:
    """Sums over conversations."""

    calls: int = 0
    prompt: int = 0
    """Tokens of all prompts."""
    read: int = 0
    cost: float = 0.0
    fault_cost: float = 0.0
    actions: int = 0
    faults: int = 0
    needs: int = 0
    misses: int = 0
    peak: int = 0
    over: int = 0
    breaks: int = 0
    departures: int = 0
    distances: list[int] = field(default_factory=list)
    """For each miss, how many calls ago the text last appeared."""
    seconds: list[float] = field(default_factory=list)
    """Time of each plan."""
    each: dict[str, float] = field(default_factory=dict)
    """Cost of each conversation, faults included."""
    tools_cost: float = 0.0
    """Cost of the tools that a policy adds to every prompt, by which a model asks for what is
    missing."""


@dataclass(frozen=True, slots=True)
class _Slice:
    """Text that a retrieval brought back."""

    until: int
    tokens: int
    units: TextUnits


@dataclass(frozen=True, slots=True)
class StudiedConversation:
    """A conversation with what is the same under every policy."""

    conversation: RecordedConversation
    actions: tuple[NeededAction, ...]

    @classmethod
    def of(cls, conversation: RecordedConversation) -> StudiedConversation:
        units = [TextUnits.of(text_of(line)) for line in conversation.lines]
        return cls(conversation, tuple(find_actions(conversation.lines, units)))


def measure(
    studied: StudiedConversation,
    policy: Policy,
    rules: Rules,
    figures: Figures,
    clock: Callable[[], float],
) -> None:
    """Replay one conversation and add its figures."""
    conversation = studied.conversation
    todo: dict[int, list[NeededAction]] = {}
    for action in studied.actions:
        todo.setdefault(action.message, []).append(action)
    before: Sequence[ShownBlock] = ()
    slices: list[_Slice] = []
    cost = fault_cost = 0.0
    last = 0.0
    for number, index in enumerate(conversation.calls):
        if index == 0:
            continue
        now = conversation.lines[index].time or last if rules.ttl is not None else 0.0
        began = clock()
        blocks = list(policy.show(index, now))[:index]
        figures.seconds.append(clock() - began)
        prompt = conversation.fixed + sum(block.tokens for block in blocks)
        same = _common_prefix(before, blocks)
        kept = conversation.fixed + sum(block.tokens for block in blocks[:same]) if before else 0
        cold = rules.ttl is not None and now - last > rules.ttl
        usage = charge(rules.price, prompt, kept, cold=cold or not before)
        cost += units(rules.price, usage)
        with_tools = charge(
            rules.price, prompt + policy.tools, kept + policy.tools, cold=cold or not before
        )
        figures.tools_cost += units(rules.price, with_tools) - units(rules.price, usage)
        figures.calls += 1
        figures.prompt += prompt
        figures.read += usage.cache_read
        figures.peak = max(figures.peak, prompt)
        figures.over += prompt > rules.window
        figures.breaks += same < len(before) and not cold
        slices = [each for each in slices if each.until > number]
        held = sum(each.tokens for each in slices)
        fault_cost += rules.price.read * held
        for action in todo.get(index, ()):
            missed = _missing_needs(action, blocks, slices)
            figures.actions += 1
            figures.needs += len(action.needs)
            figures.misses += len(missed)
            if not missed:
                continue
            figures.faults += 1
            source = max(action.needs[need][-1] for need in missed)
            figures.distances.append(
                sum(1 for call in conversation.calls if source < call <= index)
            )
            slice = _slice(conversation, source, missed, number)
            slices.append(slice)
            fault = Usage(output=_ASKING)
            fault_cost += (
                rules.price.read * (prompt + held)
                + rules.price.write * slice.tokens
                + units(rules.price, fault)
            )
        before, last = blocks, now
    figures.cost += cost + policy.extra
    figures.fault_cost += fault_cost
    figures.departures += getattr(policy, "departures", 0)
    figures.each[conversation.id] = cost + policy.extra + fault_cost


def _common_prefix(before: Sequence[ShownBlock], blocks: Sequence[ShownBlock]) -> int:
    """Number of leading blocks that are unchanged."""
    return next(
        (i for i, (a, b) in enumerate(zip(before, blocks, strict=False)) if a is not b),
        min(len(before), len(blocks)),
    )


def _missing_needs(
    action: NeededAction, blocks: Sequence[ShownBlock], slices: Iterable[_Slice]
) -> list[str]:
    elsewhere = [each.units for each in slices]
    elsewhere += [block.units for block in blocks if block.covers_others]
    return [
        need
        for need, where in action.needs.items()
        if not any(blocks[index].units.holds(need) for index in where)
        and not any(each.holds(need) for each in elsewhere)
    ]


def _slice(
    conversation: RecordedConversation, source: int, missed: Sequence[str], number: int
) -> _Slice:
    """The part of a message that starts a little before the first missed string."""
    line = conversation.lines[source]
    text = text_of(line)
    tokens = line.whole
    if tokens > SLICE:
        room = SLICE * _CHARS_PER_TOKEN
        found = min((at for need in missed if (at := text.find(need)) >= 0), default=0)
        text, tokens = text[max(0, found - room // 8) : found - room // 8 + room], SLICE
    return _Slice(number + 1 + _STAYS, tokens, TextUnits.of(text))
