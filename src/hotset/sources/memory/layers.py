"""The topic index (about 100 tokens), the timeline (about 500), and unfolding both up to whole
memories for a question."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import chain, islice, zip_longest
from math import log2
from typing import TYPE_CHECKING

from hotset.nouns.memory import Arrangement, Ending, Layer, Task
from hotset.sources.memory.data_lines import (
    DATA,
    DAY,
    HOW,
    RenderedText,
    TimelineLine,
    day,
    join_lines,
    most_that_fit,
    one_line,
)
from hotset.sources.memory.memory_text import render_memories
from hotset.sources.memory.overview import (
    HALF_LIFE,
    CheckpointLine,
    Overview,
    OverviewLine,
    Topic,
)
from hotset.text.stops import CALL, REQUEST
from hotset.text.terms import Term, first_hits, hits, terms
from hotset.text.words import lower_in_place, word_set
from hotset.tokens import count

if TYPE_CHECKING:
    from hotset.sources.memory.recall import RecalledItem


INDEX_TOKENS = 100

FITS = 0.25
"""From here on a topic is taken as asked about; one word of a two-word name scores at least
0.35."""

_CONSIDERED = 48  # topics tried for the room; about eight fit
_STALE_DAYS = 90.0
_MOST_NAMED = 1000  # topics with the same word
_LEAST_SCORE = 0.01
# a topic whose whole name is in a long question fits, however much else is asked
_OF_NAME, _OF_QUERY = 0.7, 0.3
_NAMED = 0.999  # all words of the name, and no others
_NO_SUMMARY = "imported, unconfirmed"
TOPIC_PREFIX = "top-"
_ID_WORDS = 4
_STOPS = (
    CALL
    | REQUEST
    | word_set("""
    appear bring come continue dont display doesnt enable ensure ever evaluate explain far feel
    follow forget forward happen include last lately leave lets longer low mention month move
    provide pull push recently relate resolve send several start stop switch today tomorrow top
    bottom valid various wait week yeah year yesterday distinct full invalid long short time
""")
)
_PARTICIPLE = re.compile(r"[a-z]{3,}[^\W\de]ed")
_SHORT = 3  # letters: such a word must match whole
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class IndexTopic:
    """A topic as the index shows it: one, or several under one name."""

    name: str
    members: tuple[str, ...]
    """The topics that memories have."""
    count: int
    tokens: int
    last: float
    summary: str
    latest: str
    rank: float
    """Without a question; see `Topic.rank`."""
    score: float = 1.0
    """Given by the arrangement."""


@dataclass(frozen=True, slots=True)
class TopicFit:
    topic: IndexTopic
    fit: float
    """To the question, between 0 and 1."""


def render_index(
    overview: Overview,
    arrangement: Arrangement,
    now: float,
    *,
    query: str = "",
    relevant: Mapping[str, float] | None = None,
    max_tokens: int = INDEX_TOKENS,
    how: str = HOW,
    least: int = 1,
    but: frozenset[str] = frozenset(),
) -> RenderedText:
    """A headline and the best topics that fit, each with its id, how many memories it has, and the
    latest of them. Empty without a topic worth a line. Deterministic.

    `relevant`: relevance of topics found by a search, between 0 and 1; `how`: the sentence that
    says how to get more; `least`: memories from which on there is an index. From two on it is not
    asked for: then only topics that fit the query and have several memories are shown. `but`:
    memories that are told beside it; a topic that would show one of them is left out.
    """
    head = _head(overview, how, max_tokens) if overview.memories >= max(1, least) else ""
    if not head:
        return RenderedText()
    entries: dict[str, str] = {}
    text, said = "", set(but)
    for each in ranked_topics(overview, arrangement, now, query=query, relevant=relevant):
        is_wanted = least <= 1 or (each.fit >= FITS and each.topic.count > 1)
        if not is_wanted or not is_telling(each.topic.name) or each.topic.latest in said:
            continue
        longer = "\n".join([*entries.values(), entry := _entry(each)])
        if count(f"{head}\n{longer}") <= max_tokens:
            entries[each.topic.name] = entry
            said.add(each.topic.latest or each.topic.name)
            text = f"{head}\n{longer}"
    return RenderedText(text, count(text) if text else 0, tuple(entries))


def is_telling(name: str) -> bool:
    """True if a topic's name says what it is about: no stop word, no verb, no mere sign."""
    word = name.lower()
    return (
        word not in _STOPS
        and _PARTICIPLE.fullmatch(word) is None
        and _WORD.search(name) is not None
    )


def topic_id(name: str) -> str:
    """The id by which a topic is opened: `top-date-parser`. Names that differ in signs alone share
    it."""
    return TOPIC_PREFIX + "-".join(_WORD.findall(lower_in_place(name))[:_ID_WORDS])


def named_topics(
    words: str, overview: Overview, arrangement: Arrangement, now: float
) -> tuple[str, ...]:
    """The topics that a few words name and nothing else: `date parser`, not a question about
    it."""
    wanted = terms(words)
    ranked = ranked_topics(overview, arrangement, now, query=words) if wanted else ()
    return tuple(
        each.topic.name
        for each in ranked
        if _fit(each.topic.name, wanted) >= _NAMED
        and len(_WORD.findall(words)) <= len(_WORD.findall(each.topic.name)) + 1
    )


def topics_with_id(id: str, overview: Overview, arrangement: Arrangement) -> tuple[str, ...]:
    """The topics, as the index shows them, that have this id."""
    wanted = id.strip().lower()
    shown = shown_topics(overview, arrangement)
    return tuple(sorted(each.name for each in shown if topic_id(each.name) == wanted))


def whole_index(overview: Overview, arrangement: Arrangement) -> str:
    """All topics of the index, as with unlimited room."""
    return "; ".join(
        sorted(_entry(TopicFit(topic, 0.0)) for topic in shown_topics(overview, arrangement))
    )


def ranked_topics(
    overview: Overview,
    arrangement: Arrangement,
    now: float,
    *,
    query: str = "",
    relevant: Mapping[str, float] | None = None,
    most: int = _CONSIDERED,
) -> Sequence[TopicFit]:
    """Fitting topics first, then those with most recent activity."""
    wanted = terms(query) if query.strip() else ()
    found = relevant or {}
    named = frozenset(_topics_named_in(overview, wanted))

    def fitting(topic: IndexTopic) -> TopicFit:
        by_words = (_fit(name, wanted) for name in topic.members if name in named)
        by_search = (found.get(name, 0.0) for name in (topic.name, *topic.members))
        return TopicFit(topic, min(1.0, max(*by_words, *by_search) * topic.score))

    def rank(each: TopicFit) -> tuple[float, float, str]:
        # a wrong clock, or imported memories
        ahead = max(0.0, each.topic.last - now)
        return round(each.fit, 6), each.topic.rank - ahead / HALF_LIFE, each.topic.name

    shown = shown_topics(overview, arrangement, {*named, *found, *overview.heavy})
    return nlargest(most, map(fitting, shown), key=rank)


def fitting_topics(
    overview: Overview,
    arrangement: Arrangement,
    now: float,
    *,
    query: str,
    relevant: Mapping[str, float] | None = None,
) -> tuple[TopicFit, ...]:
    """The topics the question is about, the best first."""
    ranked = ranked_topics(overview, arrangement, now, query=query, relevant=relevant)
    return tuple(each for each in ranked if each.fit >= FITS)


def shown_topics(
    overview: Overview, arrangement: Arrangement, names: Iterable[str] | None = None
) -> Iterator[IndexTopic]:
    """Topics of the index, all or these, unordered: alone, or grouped by the arrangement."""
    groups = _groups(overview, arrangement)
    within = frozenset(member for members in groups.values() for member in members)
    stale = _stale(overview, arrangement)
    scores = arrangement.scores
    for name, members in groups.items():
        if left := [overview.topics[member] for member in members if member not in stale]:
            yield _merge_topics(name, left, scores)
    for name in overview.topics if names is None else names:
        if (
            name not in within
            and name not in stale
            and (topic := overview.topics.get(name)) is not None
        ):
            score = max(_LEAST_SCORE, scores.get(name, 1.0))
            about = (topic.count, topic.tokens, topic.last, topic.summary, topic.latest)
            yield IndexTopic(name, (name,), *about, topic.rank + log2(score), score)


def members_of(
    names: Iterable[str], overview: Overview, arrangement: Arrangement
) -> frozenset[str]:
    """The memories' topics behind the names that the index shows."""
    groups = _groups(overview, arrangement)
    return frozenset(member for name in names for member in groups.get(name, (name,)))


def shown_as(topic: str, arrangement: Arrangement) -> str:
    """The name under which the index shows a topic."""
    topic = arrangement.aliases.get(topic, topic)
    return next(
        (name for name, members in arrangement.composites.items() if topic in members), topic
    )


def stale_since(overview: Overview) -> float:
    """Topics not touched since this time may leave the index. Relative to the latest memory."""
    return overview.last - _STALE_DAYS * DAY


def _stale(overview: Overview, arrangement: Arrangement) -> frozenset[str]:
    """Stale topics, without those that came up again."""
    since = stale_since(overview)
    return frozenset(
        name
        for name in arrangement.stale
        if (topic := overview.topics.get(name)) is None or topic.last < since
    )


def _groups(overview: Overview, arrangement: Arrangement) -> dict[str, tuple[str, ...]]:
    """Group names, with their existing members."""
    groups: dict[str, list[str]] = {}
    grouped = [*arrangement.aliases, *arrangement.aliases.values()]
    grouped.extend(member for members in arrangement.composites.values() for member in members)
    for topic in dict.fromkeys(grouped):
        if topic in overview.topics:
            groups.setdefault(shown_as(topic, arrangement), []).append(topic)
    return {name: tuple(members) for name, members in groups.items()}


def _merge_topics(name: str, topics: Sequence[Topic], scores: Mapping[str, float]) -> IndexTopic:
    """Topics with the very same memories count once; a partial overlap counts twice."""
    apart = {
        (topic.count, topic.tokens, topic.last, topic.latest): topic for topic in topics
    }.values()
    latest = max(topics, key=lambda topic: (topic.last, bool(topic.summary), topic.name))
    score = max(
        _LEAST_SCORE, scores.get(name, max(scores.get(topic.name, 1.0) for topic in topics))
    )
    return IndexTopic(
        name,
        tuple(topic.name for topic in topics),
        sum(topic.count for topic in apart),
        sum(topic.tokens for topic in apart),
        latest.last,
        latest.summary,
        latest.latest,
        max(topic.rank for topic in topics) + log2(score),
        score,
    )


def _topics_named_in(overview: Overview, wanted: Sequence[Term]) -> Iterator[str]:
    """Topics with a word of the question in their name. One search over all names: there may be
    20,000."""
    if not wanted:
        return
    names = "\n".join(overview.topics)
    low = lower_in_place(names)
    for term in wanted:
        for at in islice(hits(names, low, term), _MOST_NAMED):
            yield names[
                names.rfind("\n", 0, at) + 1 : end
                if (end := names.find("\n", at)) >= 0
                else len(names)
            ]


def _fit(name: str, wanted: Sequence[Term]) -> float:
    """The share of the name found in the question, and a little of the reverse."""
    words = _WORD.findall(lower_in_place(name))
    matching = [term for term in wanted if any(_means(term, word) for word in words)]
    if not matching:
        return 0.0
    of_name = sum(1 for word in words if any(_means(term, word) for term in matching)) / len(words)
    of_query = sum(term.weight for term in matching) / sum(term.weight for term in wanted)
    return _OF_NAME * of_name + _OF_QUERY * of_query


def _means(term: Term, word: str) -> bool:
    return word == term.text if len(term.text) <= _SHORT else word.startswith(term.text)


def _head(overview: Overview, how: str, max_tokens: int) -> str:
    """The longest headline that fits; empty if none does."""
    many = f"{overview.memories:,} memor{'y' if overview.memories == 1 else 'ies'}"
    heads = (
        f"[hotset memory: {DATA}. {many} by topic, with the latest; {how}:]",
        f"[hotset memory: {DATA}. {many} by topic]",
    )
    return next((head for head in heads if count(head) <= max_tokens), "")


def _entry(each: TopicFit) -> str:
    """`top-auth 12: Rotate the refresh tokens`."""
    topic = each.topic
    return f"{topic_id(topic.name)} {topic.count:,}: {topic.summary or _NO_SUMMARY}"


TIMELINE_TOKENS = 500

SPLIT_TOKENS = 100
"""Of a timeline split by topic, for one question."""

_OPEN, _DECIDED, _KNOWN, _DONE = "Open", "Decided", "Known", "Done lately"
_MOST_OPEN = 6
_MOST_LINES = 60  # tried for the room: twice as many as 500 tokens hold
_MOST_TOPICS = 12
_ABOUT = 160  # characters of a checkpoint's line
_UNFINISHED = frozenset({Ending.PARTIAL, Ending.FAILURE})


_HeadedLine = tuple[str, TimelineLine]
"""A line with its heading."""


def render_timeline(
    overview: Overview,
    arrangement: Arrangement,
    now: float,
    *,
    topics: Sequence[str] = (),
    max_tokens: int = TIMELINE_TOKENS,
    how: str = HOW,
) -> RenderedText:
    """The lines that fit, of these topics (as the index names them) or of all. Deterministic.

    A wanted topic without a recent line is represented by its last title.
    """
    wanted = members_of(topics, overview, arrangement)
    lines = (
        _by_topic(overview, arrangement, now, topics, wanted)
        if arrangement.split
        else _by_sort(overview, arrangement, wanted)
    )
    lines = [*lines, *_left_out(overview, wanted, lines)][:_MOST_LINES]
    if not lines:
        return RenderedText()

    def render(many: int) -> str:
        return join_lines(
            [f"[hotset memory, timeline: {DATA}. {how}]", *_lines_under_headings(lines[:many])]
        )

    many = most_that_fit(render, len(lines), max_tokens)
    if many <= 0:
        return RenderedText()
    text = render(many)
    shown_lines = tuple(line for _, line in lines[:many])
    names = dict.fromkeys(
        shown_as(topic, arrangement) for line in shown_lines for topic in line.topics
    )
    shown = {line.id: Layer.TIMELINE for line in shown_lines if line.id}
    return RenderedText(text, count(text), tuple(names), shown, shown_lines)


def _by_sort(
    overview: Overview, arrangement: Arrangement, wanted: frozenset[str]
) -> list[_HeadedLine]:
    """In order of worth: open items, then alternately actions, decisions and facts."""
    open_ = _open(overview, arrangement, wanted)
    named = frozenset(line.id for _, line in open_)
    done = (line for line in _recent(overview, arrangement) if line.id not in named)
    by_turns = zip_longest(
        _with_heading(_DONE, map(_of_action, done), wanted),
        _with_heading(_DECIDED, map(_of_fact, overview.decisions), wanted),
        _with_heading(_KNOWN, map(_of_fact, overview.known), wanted),
    )
    return [*open_, *(each for each in chain.from_iterable(by_turns) if each is not None)]


def _by_topic(
    overview: Overview,
    arrangement: Arrangement,
    now: float,
    topics: Sequence[str],
    wanted: frozenset[str],
) -> list[_HeadedLine]:
    """Each line once under its first topic, alternating so that no topic takes all the room."""
    every = _by_sort(overview, arrangement, wanted)
    names = list(topics) or [
        each.topic.name for each in ranked_topics(overview, arrangement, now, most=_MOST_TOPICS)
    ]
    by_name: dict[str, list[_HeadedLine]] = {name: [] for name in names}
    for _, line in every:
        shown = (shown_as(topic, arrangement) for topic in line.topics)
        if (name := next((name for name in shown if name in by_name), None)) is not None:
            by_name[name].append((name, line))
    return [
        each for each in chain.from_iterable(zip_longest(*by_name.values())) if each is not None
    ]


def _open(
    overview: Overview, arrangement: Arrangement, wanted: frozenset[str]
) -> list[_HeadedLine]:
    """The last checkpoint of each agent, and failures without a later success."""
    lasts: dict[tuple[str, str], CheckpointLine] = {}
    for point in overview.points:
        lasts.setdefault((point.agent, point.to), point)
    left = (point for point in lasts.values() if point.blockers or point.doing or point.next)
    unfinished = map(_of_action, _unfinished_lines(overview, arrangement))
    return [
        *_with_heading(_OPEN, map(_of_point, left), wanted)[:_MOST_OPEN],
        *_with_heading(_OPEN, unfinished, wanted)[:_MOST_OPEN],
    ]


def open_lines(overview: Overview, arrangement: Arrangement) -> tuple[TimelineLine, ...]:
    """Unfinished work, and what agents left to do."""
    return tuple(line for _, line in _open(overview, arrangement, frozenset()))


def _with_heading(
    heading: str, lines: Iterable[TimelineLine], wanted: frozenset[str]
) -> list[_HeadedLine]:
    """Lines on the wanted topics, with their heading."""
    fitting = (line for line in lines if not wanted or not wanted.isdisjoint(line.topics))
    return [(heading, line) for line in fitting][:_MOST_LINES]


def _left_out(
    overview: Overview, wanted: frozenset[str], lines: Sequence[_HeadedLine]
) -> Iterator[_HeadedLine]:
    """The last titles of wanted topics that have no line."""
    covered = frozenset(topic for _, line in lines for topic in line.topics)
    named = {line.id for _, line in lines}
    for name in sorted(wanted - covered):
        topic = overview.topics.get(name)
        if topic is not None and topic.summary and topic.latest not in named:
            named.add(topic.latest)
            text = f"{day(topic.last)} {topic.summary} [{topic.latest}]"
            yield name, TimelineLine(text, topic.latest, (name,))


def _recent(overview: Overview, arrangement: Arrangement) -> list[OverviewLine]:
    """Relative to the latest action: after a month's break, the last work is still recent."""
    if not overview.actions:
        return []
    since = max(line.time for line in overview.actions) - arrangement.line_days * DAY
    return [line for line in overview.actions if line.pinned or line.time >= since]


def _unfinished_lines(overview: Overview, arrangement: Arrangement) -> list[OverviewLine]:
    """Newest first, without work that a later success on the same topic settled."""
    settled: set[str] = set()
    left: list[OverviewLine] = []
    for line in sorted(
        _recent(overview, arrangement), key=lambda line: (line.time, line.id), reverse=True
    ):
        if line.ending is Ending.SUCCESS:
            settled.update(line.topics[:1])
        elif line.ending in _UNFINISHED and not settled.intersection(line.topics[:1]):
            left.append(line)
    return left


def _of_fact(line: OverviewLine) -> TimelineLine:
    """Of any age: a fact holds until another one replaces it."""
    return TimelineLine(f"{day(line.time)} {line.title} [{line.id}]", line.id, line.topics)


def _of_action(line: OverviewLine) -> TimelineLine:
    ending = "" if line.ending is Ending.UNKNOWN else f": {line.ending}"
    return TimelineLine(f"{day(line.time)} {line.title}{ending} [{line.id}]", line.id, line.topics)


def _of_point(point: CheckpointLine) -> TimelineLine:
    parts = (
        ("blocked by", ", ".join(point.blockers)),
        ("doing", point.doing),
        ("next", ", ".join(point.next)),
        ("for", point.to),
    )
    about = "; ".join(f"{what} {text}" for what, text in parts if text)
    return TimelineLine(
        f"{day(point.time)} {one_line(about, _ABOUT)} [{point.id}]", point.id, point.topics
    )


def _lines_under_headings(lines: Sequence[_HeadedLine]) -> Iterator[str]:
    """Each heading once, in order of first appearance, followed by its lines."""
    for heading in dict.fromkeys(heading for heading, _ in lines):
        yield f"{one_line(heading, _ABOUT)}:"
        yield from (f"- {line.text}" for under, line in lines if under == heading)


TOP_TOPICS = 2
"""Whose memories are loaded in full."""

BEST = 3
"""The first results are shown in full whatever their topic: on public conversations 10 % more of
the evidence is then shown in full, for 8 % more tokens."""

MEMORY_TOKENS = 1200
"""Of full memories for one question: ten excerpts."""


@dataclass(frozen=True, slots=True)
class Load:
    """A layer that was loaded."""

    layer: Layer
    tokens: int
    topics: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    """Items it shows in full."""


@dataclass(frozen=True, slots=True)
class LayerRoom:
    """Tokens for each layer."""

    index: int = INDEX_TOKENS
    timeline: int = TIMELINE_TOKENS
    memories: int = MEMORY_TOKENS


@dataclass(frozen=True, slots=True)
class Disclosure:
    index: RenderedText = field(default_factory=RenderedText)
    timeline: RenderedText = field(default_factory=RenderedText)
    memories: RenderedText = field(default_factory=RenderedText)
    loads: tuple[Load, ...] = ()
    because: str = ""
    """Why it stopped where it did."""

    @property
    def text(self) -> str:
        return join_lines([self.index.text, self.timeline.text, self.memories.text])


def unfold(
    query: str,
    overview: Overview,
    arrangement: Arrangement,
    now: float,
    *,
    find: Callable[[str], Sequence[RecalledItem]],
    layers: Callable[[Sequence[RecalledItem]], Mapping[str, Layer]] = lambda _items: {},
    beside: Callable[[Sequence[RecalledItem]], Iterable[RecalledItem]] = lambda _items: (),
    task: Task | None = None,
    has_index: bool = False,
    room: LayerRoom | None = None,
    how: str = HOW,
) -> Disclosure:
    """Unfold memory for a question, layer by layer. `find` is called only if the timeline does not
    answer it.

    `beside` gives neighbours of the found items for the room left. `has_index`: the conversation
    already holds the index. A task for which memory did not pay gets nothing (`is_bypassed`);
    explicit requests call `find` directly.
    """
    room = room or LayerRoom()
    if is_bypassed(arrangement, task, now):
        return Disclosure(because="memory is bypassed for this kind of task")
    index = (
        RenderedText()
        if has_index
        else render_index(overview, arrangement, now, query=query, max_tokens=room.index, how=how)
    )
    if not overview.memories or not query.strip():
        return _disclosure(index, because="nothing was asked")
    fitting = tuple(
        each.topic.name for each in fitting_topics(overview, arrangement, now, query=query)
    )
    timeline = _timeline(fitting, overview, arrangement, now, room=room, how=how)
    if is_answered(query, timeline.lines, members_of(fitting, overview, arrangement)):
        return _disclosure(index, timeline, because="the timeline answers it")
    items = find(query)
    if not items:
        return _disclosure(index, timeline, because="nothing was found")
    top = top_topics(items, fitting, arrangement)
    forms = _forms(items, layers(items), members_of(top, overview, arrangement))
    memories = render_memories(
        items,
        arrangement,
        forms,
        max_tokens=room.memories,
        query=query,
        task=task,
        how=how,
        beside=beside(items),
    )
    return _disclosure(index, timeline, memories, top, because="full memories were needed")


def is_answered(query: str, lines: Sequence[TimelineLine], topics: frozenset[str]) -> bool:
    """True if one line of a fitting topic has every telling word of the question, in itself or its
    topics' names.

    Words spread over several lines do not count: a long timeline has those of any question.
    """
    wanted = terms(query)
    texts = (
        " ".join((line.text, *line.topics)) for line in lines if not topics.isdisjoint(line.topics)
    )
    return bool(wanted) and any(
        sum(1 for _ in first_hits(text, wanted)) == len(wanted) for text in texts
    )


def top_topics(
    items: Sequence[RecalledItem],
    fitting: Sequence[str],
    arrangement: Arrangement,
    most: int = TOP_TOPICS,
) -> tuple[str, ...]:
    """The topics of most results, doubled if the question names them."""
    weights: defaultdict[str, float] = defaultdict(float)
    # by ranks: scores of different recalls are not comparable
    for rank, item in enumerate(items, 1):
        topics = item.memory.topics if item.memory is not None else ()
        for name in dict.fromkeys(shown_as(topic, arrangement) for topic in topics):
            weights[name] += arrangement.scores.get(name, 1.0) / rank
    for name in fitting:
        if name in weights:
            weights[name] *= 2
    ranked = sorted(weights, key=lambda name: (-round(weights[name], 9), name))
    return tuple(ranked[:most])


def is_bypassed(arrangement: Arrangement, task: Task | None, now: float) -> bool:
    return task is not None and now < arrangement.bypass.get(task, now)


def _timeline(
    fitting: Sequence[str],
    overview: Overview,
    arrangement: Arrangement,
    now: float,
    *,
    room: LayerRoom,
    how: str,
) -> RenderedText:
    """The timeline of the fitting topics; empty if none fits."""
    if not fitting:
        return RenderedText()
    topics, tokens = (
        (fitting[:TOP_TOPICS], min(room.timeline, SPLIT_TOKENS))
        if arrangement.split
        else (fitting, room.timeline)
    )
    return render_timeline(overview, arrangement, now, topics=topics, max_tokens=tokens, how=how)


def _forms(
    items: Sequence[RecalledItem], layers: Mapping[str, Layer], members: frozenset[str]
) -> dict[str, Layer]:
    """The best results, the top topics and pages in their own layer; everything else in a short
    line."""
    own = {
        item.id
        for at, item in enumerate(items)
        if at < BEST
        or item.memory is None
        or not item.memory.topics
        or not members.isdisjoint(item.memory.topics)
    }
    return {
        item.id: layers.get(item.id, Layer.FULL) if item.id in own else Layer.INDEX
        for item in items
    }


def _disclosure(
    index: RenderedText,
    timeline: RenderedText | None = None,
    memories: RenderedText | None = None,
    top: tuple[str, ...] = (),
    *,
    because: str,
) -> Disclosure:
    timeline, memories = timeline or RenderedText(), memories or RenderedText()
    full = tuple(id for id, layer in memories.shown.items() if layer is Layer.FULL)
    loads = (
        Load(Layer.INDEX, index.tokens, index.topics),
        Load(Layer.TIMELINE, timeline.tokens, timeline.topics),
        Load(Layer.FULL, memories.tokens, top, full),
    )
    return Disclosure(
        index, timeline, memories, tuple(load for load in loads if load.tokens), because
    )
