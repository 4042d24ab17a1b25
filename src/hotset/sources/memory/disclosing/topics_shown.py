"""The first layer, about 100 tokens: which topics there are, how large they are, and which of them fit what is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from math import log2

from hotset.nouns.memory import Arrangement
from hotset.sources.memory.disclosing.overview import HALF_LIFE, Overview, Topic
from hotset.sources.memory.disclosing.telling import DATA, HOW, Told, one_line, size
from hotset.text.terms import Term, hits, terms
from hotset.text.words import lowered
from hotset.tokens import count

INDEX_TOKENS = 100

FITS = 0.25
"""From here on a topic is taken to be what was asked about; one word of a name of two is 0.35 and more."""

_CONSIDERED = 48  # topics that are tried for the room there is; about eight have room
_STALE_DAYS = 90.0
_MOST_NAMED = 1000  # topics with the same word
_LEAST_SCORE = 0.01
_OF_NAME, _OF_QUERY = 0.7, 0.3  # a topic whose whole name stands in a long question fits, however much else is asked
_LONGEST_NAME = 60
_SHORT = 3  # letters: such a word must stand whole
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Shown:
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
    """What the arrangement makes of it."""


@dataclass(frozen=True, slots=True)
class Fitting:
    topic: Shown
    fit: float
    """To what is asked, between 0 and 1."""


def told_index(
    overview: Overview,
    arrangement: Arrangement,
    now: float,
    *,
    query: str = "",
    relevant: Mapping[str, float] | None = None,
    max_tokens: int = INDEX_TOKENS,
    how: str = HOW,
) -> Told:
    """A line on what this is, and the best topics that there is room for. The same input gives the same bytes.

    `relevant` is what a search found out about topics, between 0 and 1; `how` is the sentence that says how to get more.
    """
    if not overview.memories:
        return Told()
    lines = _head(overview, how, max_tokens)
    if not lines:
        return Told()
    told: list[str] = []
    names: list[str] = []
    text = lines
    for each in ranked_topics(overview, arrangement, now, query=query, relevant=relevant, most=_CONSIDERED):
        longer = lines + "\n" + "; ".join([*told, _entry(each)])
        if count(longer) <= max_tokens:
            told.append(_entry(each))
            names.append(each.topic.name)
            text = longer
    return Told(text, count(text), tuple(names))


def whole_index(overview: Overview, arrangement: Arrangement) -> str:
    """Every topic of the index, as it would be told with room for all."""
    return "; ".join(sorted(_entry(Fitting(topic, 0.0)) for topic in shown_topics(overview, arrangement)))


def ranked_topics(
    overview: Overview,
    arrangement: Arrangement,
    now: float,
    *,
    query: str = "",
    relevant: Mapping[str, float] | None = None,
    most: int = _CONSIDERED,
) -> Sequence[Fitting]:
    """Those that fit first, then those with most to say lately."""
    wanted = terms(query) if query.strip() else ()
    found = relevant or {}
    named = frozenset(_naming(overview, wanted))

    def fitting(topic: Shown) -> Fitting:
        by_words = max((_fit(name, wanted) for name in topic.members if name in named), default=0.0)
        by_search = max(found.get(name, 0.0) for name in (topic.name, *topic.members)) if found else 0.0
        return Fitting(topic, min(1.0, max(by_words, by_search) * topic.score))

    def rank(each: Fitting) -> tuple[float, float, str]:
        ahead = max(0.0, each.topic.last - now)  # of a clock that goes wrong, or of what was brought from elsewhere
        return round(each.fit, 6), each.topic.rank - ahead / HALF_LIFE, each.topic.name

    shown = shown_topics(overview, arrangement, {*named, *found, *overview.heavy})
    return nlargest(most, map(fitting, shown), key=rank)


def fitting_topics(
    overview: Overview, arrangement: Arrangement, now: float, *, query: str, relevant: Mapping[str, float] | None = None
) -> tuple[Fitting, ...]:
    """Those that the question is about, the best first."""
    ranked = ranked_topics(overview, arrangement, now, query=query, relevant=relevant)
    return tuple(each for each in ranked if each.fit >= FITS)


def shown_topics(overview: Overview, arrangement: Arrangement, names: Iterable[str] | None = None) -> Iterator[Shown]:
    """Topics of the index, all or these, in no order: alone, or under the name that the arrangement gives to several."""
    groups = _groups(overview, arrangement)
    within = frozenset(member for members in groups.values() for member in members)
    stale = _stale(overview, arrangement)
    scores = arrangement.scores
    for name, members in groups.items():
        if left := [overview.topics[member] for member in members if member not in stale]:
            yield _together(name, left, scores)
    for name in overview.topics if names is None else names:
        if name not in within and name not in stale and (topic := overview.topics.get(name)) is not None:
            score = max(_LEAST_SCORE, scores.get(name, 1.0))
            about = (topic.count, topic.tokens, topic.last, topic.summary, topic.latest)
            yield Shown(name, (name,), *about, topic.rank + log2(score), score)


def members_of(names: Iterable[str], overview: Overview, arrangement: Arrangement) -> frozenset[str]:
    """The topics that memories have, behind the names that the index shows."""
    groups = _groups(overview, arrangement)
    return frozenset(member for name in names for member in groups.get(name, (name,)))


def shown_as(topic: str, arrangement: Arrangement) -> str:
    """The name under which the index shows a topic."""
    topic = arrangement.aliases.get(topic, topic)
    return next((name for name, members in arrangement.composites.items() if topic in members), topic)


def stale_since(overview: Overview) -> float:
    """What was last touched before this, and not read since, may leave the index. Reckoned from the latest memory."""
    return overview.last - _STALE_DAYS * 86_400.0


def _stale(overview: Overview, arrangement: Arrangement) -> frozenset[str]:
    """Without those that came up again since they were put there."""
    since = stale_since(overview)
    return frozenset(name for name in arrangement.stale if (topic := overview.topics.get(name)) is None or topic.last < since)


def _groups(overview: Overview, arrangement: Arrangement) -> dict[str, tuple[str, ...]]:
    """Names of several topics, with those of them that there are."""
    groups: dict[str, list[str]] = {}
    grouped = [*arrangement.aliases, *arrangement.aliases.values()]
    grouped.extend(member for members in arrangement.composites.values() for member in members)
    for topic in dict.fromkeys(grouped):
        if topic in overview.topics:
            groups.setdefault(shown_as(topic, arrangement), []).append(topic)
    return {name: tuple(members) for name, members in groups.items()}


def _together(name: str, topics: Sequence[Topic], scores: Mapping[str, float]) -> Shown:
    """Topics that count the very same memories count once; what others share is counted twice."""
    apart = {(topic.count, topic.tokens, topic.last, topic.latest): topic for topic in topics}.values()
    latest = max(topics, key=lambda topic: (topic.last, bool(topic.summary), topic.name))
    score = max(_LEAST_SCORE, scores.get(name, max(scores.get(topic.name, 1.0) for topic in topics)))
    return Shown(
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


def _naming(overview: Overview, wanted: Sequence[Term]) -> Iterator[str]:
    """Topics in whose names a word of the question stands. One search over all names: there may be 20,000."""
    if not wanted:
        return
    names = "\n".join(overview.topics)
    low = lowered(names)
    for term in wanted:
        for at in islice(hits(names, low, term), _MOST_NAMED):
            yield names[names.rfind("\n", 0, at) + 1 : end if (end := names.find("\n", at)) >= 0 else len(names)]


def _fit(name: str, wanted: Sequence[Term]) -> float:
    """How much of the name the question says, and a little of how much of the question the name says."""
    words = _WORD.findall(lowered(name))
    if not words:
        return 0.0
    said = [term for term in wanted if any(_means(term, word) for word in words)]
    if not said:
        return 0.0
    of_name = sum(1 for word in words if any(_means(term, word) for term in said)) / len(words)
    of_query = sum(term.weight for term in said) / sum(term.weight for term in wanted)
    return _OF_NAME * of_name + _OF_QUERY * of_query


def _means(term: Term, word: str) -> bool:
    return word == term.text if len(term.text) <= _SHORT else word.startswith(term.text)


def _head(overview: Overview, how: str, max_tokens: int) -> str:
    """The longer of two that there is room for; nothing where there is not even that."""
    many = f"{overview.memories:,} memor{'y' if overview.memories == 1 else 'ies'}, {size(overview.tokens)} tokens"
    for head in (
        f"[hotset memory: {DATA}. {many}; {how}. By topic, memories/tokens fit:]",
        f"[hotset memory: {DATA}. {many}]",
    ):
        if count(head) <= max_tokens:
            return head
    return ""


def _entry(each: Fitting) -> str:
    fit = f" {each.fit:.0%}" if each.fit >= 0.005 else ""
    name = one_line(each.topic.name, _LONGEST_NAME).replace(";", ",")  # no name says two
    return f"{name} {each.topic.count:,}/{size(each.topic.tokens)}{fit}"
