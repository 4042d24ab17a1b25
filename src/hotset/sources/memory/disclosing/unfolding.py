"""From the index to the timeline to full memories, and no further than a question needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hotset.nouns.memory import Arrangement, Layer, Task
from hotset.sources.memory.disclosing.overview import Overview
from hotset.sources.memory.disclosing.showing import Item, told_memories
from hotset.sources.memory.disclosing.telling import HOW, Told, ToldLine, joined
from hotset.sources.memory.disclosing.timeline import SPLIT_TOKENS, TIMELINE_TOKENS, told_timeline
from hotset.sources.memory.disclosing.topics_shown import INDEX_TOKENS, fitting_topics, members_of, shown_as, told_index
from hotset.text.terms import Term, first_hits, terms

TOP_TOPICS = 2
"""Whose memories are loaded in full."""

BEST = 3
"""Of what was found, so many are shown in full whatever their topic: on public conversations 10 % more of the evidence is then
among what is shown in full, for 8 % more tokens."""

MEMORY_TOKENS = 1200
"""Of full memories for one question: ten excerpts."""


@dataclass(frozen=True, slots=True)
class Load:
    """A layer that was loaded."""

    layer: Layer
    tokens: int
    topics: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    """What it shows in full."""


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens for each layer."""

    index: int = INDEX_TOKENS
    timeline: int = TIMELINE_TOKENS
    memories: int = MEMORY_TOKENS


@dataclass(frozen=True, slots=True)
class Unfolded:
    index: Told = field(default_factory=Told)
    timeline: Told = field(default_factory=Told)
    memories: Told = field(default_factory=Told)
    loads: tuple[Load, ...] = ()
    because: str = ""
    """Why it went no further, or that it went all the way."""

    @property
    def text(self) -> str:
        return joined([self.index.text, self.timeline.text, self.memories.text])


def unfold(
    query: str,
    overview: Overview,
    arrangement: Arrangement,
    now: float,
    *,
    find: Callable[[str], Sequence[Item]],
    layers: Callable[[Sequence[Item]], Mapping[str, Layer]] = lambda _items: {},
    beside: Callable[[Sequence[Item]], Iterable[Item]] = lambda _items: (),
    task: Task | None = None,
    has_index: bool = False,
    room: Room | None = None,
    how: str = HOW,
) -> Unfolded:
    """What there is to say to a question. `find` is asked only when the timeline does not answer it.

    `beside` gives what else was said where these were found, for the room that they leave.
    `has_index` says that the index was told before, in the same conversation. A kind of task in which memory did not pay is
    told nothing (`is_bypassed`); what somebody asks for is found all the same, by asking `find`.
    """
    room = room or Room()
    if is_bypassed(arrangement, task, now):
        return Unfolded(because="memory is bypassed for this kind of task")
    index = Told() if has_index else told_index(overview, arrangement, now, query=query, max_tokens=room.index, how=how)
    if not overview.memories or not query.strip():
        return _unfolded(index, because="nothing was asked")
    fitting = tuple(each.topic.name for each in fitting_topics(overview, arrangement, now, query=query))
    timeline = _timeline(fitting, overview, arrangement, now, room=room, how=how)
    if is_answered(query, timeline.lines, members_of(fitting, overview, arrangement)):
        return _unfolded(index, timeline, because="the timeline answers it")
    items = find(query)
    if not items:
        return _unfolded(index, timeline, because="nothing was found")
    top = top_topics(items, fitting, arrangement)
    forms = _forms(items, layers(items), members_of(top, overview, arrangement))
    memories = told_memories(
        items, arrangement, forms, max_tokens=room.memories, query=query, task=task, how=how, beside=beside(items)
    )
    return _unfolded(index, timeline, memories, top, because="full memories were needed")


def is_answered(query: str, lines: Sequence[ToldLine], topics: frozenset[str]) -> bool:
    """Is there a line of a fitting topic that has every telling word of a question, itself or in the names of its topics?

    Words that stand in several lines are no answer: in a long timeline those of any question do.
    """
    wanted = terms(query)
    said = (" ".join((line.text, *line.topics)) for line in lines if not topics.isdisjoint(line.topics))
    return bool(wanted) and any(_says(text, wanted) for text in said)


def top_topics(
    items: Sequence[Item], fitting: Sequence[str], arrangement: Arrangement, most: int = TOP_TOPICS
) -> tuple[str, ...]:
    """By what was found of each, and by the question's own words where those name it."""
    weights: defaultdict[str, float] = defaultdict(float)
    for rank, item in enumerate(items, 1):  # by ranks: scores of one recall are no measure for another
        for name in _names(item, arrangement):
            weights[name] += arrangement.scores.get(name, 1.0) / rank
    for name in fitting:
        if name in weights:
            weights[name] *= 2
    ranked = sorted(weights, key=lambda name: (-round(weights[name], 9), name))
    return tuple(ranked[:most])


def is_bypassed(arrangement: Arrangement, task: Task | None, now: float) -> bool:
    return task is not None and now < arrangement.bypass.get(task, now)


def _says(text: str, wanted: Sequence[Term]) -> bool:
    return sum(1 for _ in first_hits(text, wanted)) == len(wanted)


def _timeline(fitting: Sequence[str], overview: Overview, arrangement: Arrangement, now: float, *, room: Room, how: str) -> Told:
    """None where no topic fits: it would answer nothing."""
    if not fitting:
        return Told()
    topics, tokens = (fitting[:TOP_TOPICS], min(room.timeline, SPLIT_TOKENS)) if arrangement.split else (fitting, room.timeline)
    return told_timeline(overview, arrangement, now, topics=topics, max_tokens=tokens, how=how)


def _forms(items: Sequence[Item], layers: Mapping[str, Layer], members: frozenset[str]) -> dict[str, Layer]:
    """The best, the top topics' and words of a conversation by their own layers; whatever else was found in a short line."""
    own = {
        item.id
        for at, item in enumerate(items)
        if at < BEST or item.memory is None or not item.memory.topics or not members.isdisjoint(item.memory.topics)
    }
    return {item.id: layers.get(item.id, Layer.FULL) if item.id in own else Layer.INDEX for item in items}


def _names(item: Item, arrangement: Arrangement) -> dict[str, None]:
    return dict.fromkeys(shown_as(topic, arrangement) for topic in (item.memory.topics if item.memory is not None else ()))


def _unfolded(
    index: Told, timeline: Told | None = None, memories: Told | None = None, top: tuple[str, ...] = (), *, because: str
) -> Unfolded:
    timeline, memories = timeline or Told(), memories or Told()
    full = tuple(id for id, layer in memories.shown.items() if layer is Layer.FULL)
    loads = (
        Load(Layer.INDEX, index.tokens, index.topics),
        Load(Layer.TIMELINE, timeline.tokens, timeline.topics),
        Load(Layer.FULL, memories.tokens, top, full),
    )
    return Unfolded(index, timeline, memories, tuple(load for load in loads if load.tokens), because)
