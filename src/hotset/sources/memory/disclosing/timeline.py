"""The second layer, about 500 tokens: what is open, what was decided, what is known, and what was done lately, in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from hotset.nouns.memory import Arrangement, Ending, Layer
from hotset.sources.memory.disclosing.overview import Line, Overview, Point
from hotset.sources.memory.disclosing.telling import DATA, HOW, Told, ToldLine, day, joined, most_that_fit, one_line
from hotset.sources.memory.disclosing.topics_shown import members_of, ranked_topics, shown_as
from hotset.tokens import count

TIMELINE_TOKENS = 500

SPLIT_TOKENS = 100
"""Of a timeline that is told topic by topic, for one question."""

_OPEN, _DECIDED, _KNOWN, _DONE = "Open", "Decided", "Known", "Done lately"
_MOST_OPEN = 6
_MOST_LINES = 60  # that are tried for the room there is: twice as many as 500 tokens hold
_MOST_TOPICS = 12
_ABOUT = 160  # characters of a checkpoint's line
_DAY = 86_400.0
_UNFINISHED = frozenset({Ending.PARTIAL, Ending.FAILURE})


@dataclass(frozen=True, slots=True)
class _Under:
    """A line, and the heading under which it stands."""

    heading: str
    line: ToldLine


def told_timeline(
    overview: Overview,
    arrangement: Arrangement,
    now: float,
    *,
    topics: Sequence[str] = (),
    max_tokens: int = TIMELINE_TOKENS,
    how: str = HOW,
) -> Told:
    """The lines that there is room for, of these topics (by the names that the index shows) or of all.

    What has no line of its own among the latest is told by its topic's last title. The same input gives the same bytes.
    """
    wanted = members_of(topics, overview, arrangement)
    lines = (
        _by_topic(overview, arrangement, now, topics, wanted) if arrangement.split else _by_sort(overview, arrangement, wanted)
    )
    lines = [*lines, *_left_out(overview, wanted, lines)][:_MOST_LINES]
    if not lines:
        return Told()

    def render(many: int) -> str:
        return joined([f"[hotset memory, timeline: {DATA}. {how}]", *_rendered(lines[:many])])

    many = most_that_fit(render, len(lines), max_tokens)
    if many <= 0:
        return Told()
    text = render(many)
    told = tuple(each.line for each in lines[:many])
    names = dict.fromkeys(shown_as(topic, arrangement) for line in told for topic in line.topics)
    shown = {line.id: Layer.TIMELINE for line in told if line.id}
    return Told(text, count(text), tuple(names), shown, told)


def _by_sort(overview: Overview, arrangement: Arrangement, wanted: frozenset[str]) -> list[_Under]:
    """In the order of their worth: what is open, then by turns what was done, what was decided and what is known."""
    open_, done = _open(overview, arrangement, wanted), _done(overview, arrangement, wanted)
    decided, known = _facts(_DECIDED, overview.decisions, wanted), _facts(_KNOWN, overview.known, wanted)
    named = frozenset(each.line.id for each in open_)
    rest = [each for each in done if each.line.id not in named]
    return [*open_, *(each for each in chain.from_iterable(zip_longest(rest, decided, known)) if each is not None)]


def _by_topic(
    overview: Overview, arrangement: Arrangement, now: float, topics: Sequence[str], wanted: frozenset[str]
) -> list[_Under]:
    """Each line once, under the first of its topics; by turns, so that no topic takes all the room."""
    every = _by_sort(overview, arrangement, wanted)
    names = list(topics) or [each.topic.name for each in ranked_topics(overview, arrangement, now, most=_MOST_TOPICS)]
    told: dict[str, list[_Under]] = {name: [] for name in names}
    for each in every:
        name = next((name for topic in each.line.topics if (name := shown_as(topic, arrangement)) in told), None)
        if name is not None:
            told[name].append(_Under(name, each.line))
    return [each for each in chain.from_iterable(zip_longest(*told.values())) if each is not None]


def _open(overview: Overview, arrangement: Arrangement, wanted: frozenset[str]) -> list[_Under]:
    """What each agent last left, and what ended badly with nothing better behind it."""
    lasts: dict[tuple[str, str], Point] = {}
    for point in overview.points:
        lasts.setdefault((point.agent, point.to), point)
    points = [_Under(_OPEN, _of_point(point)) for point in lasts.values() if _about(point.topics, wanted) and _says(point)]
    unfinished = [_Under(_OPEN, _of_action(line)) for line in _unfinished(overview, arrangement) if _about(line.topics, wanted)]
    return [*points[:_MOST_OPEN], *unfinished[:_MOST_OPEN]]


def _done(overview: Overview, arrangement: Arrangement, wanted: frozenset[str]) -> list[_Under]:
    lines = (line for line in _recent(overview, arrangement) if _about(line.topics, wanted))
    return [_Under(_DONE, _of_action(line)) for line in lines][:_MOST_LINES]


def _facts(heading: str, facts: Sequence[Line], wanted: frozenset[str]) -> list[_Under]:
    """However old: a fact holds until another one replaces it."""
    lines = (line for line in facts if _about(line.topics, wanted))
    return [_Under(heading, ToldLine(f"{day(line.time)} {line.title} [{line.id}]", line.id, line.topics)) for line in lines][
        :_MOST_LINES
    ]


def _left_out(overview: Overview, wanted: frozenset[str], lines: Sequence[_Under]) -> Iterator[_Under]:
    """The last titles of the topics that were asked for and have no line."""
    told = frozenset(topic for each in lines for topic in each.line.topics)
    named = {each.line.id for each in lines}
    for name in sorted(wanted - told):
        topic = overview.topics.get(name)
        if topic is not None and topic.summary and topic.latest not in named:
            named.add(topic.latest)
            text = f"{day(topic.last)} {topic.summary} [{topic.latest}]"
            yield _Under(name, ToldLine(text, topic.latest, (name,)))


def _recent(overview: Overview, arrangement: Arrangement) -> list[Line]:
    """Reckoned from the latest: who comes back after a month finds where it ended."""
    if not overview.actions:
        return []
    since = max(line.time for line in overview.actions) - arrangement.line_days * _DAY
    return [line for line in overview.actions if line.pinned or line.time >= since]


def _unfinished(overview: Overview, arrangement: Arrangement) -> list[Line]:
    """Newest first, without what a later success on the same topic settled."""
    settled: set[str] = set()
    left: list[Line] = []
    for line in sorted(_recent(overview, arrangement), key=lambda line: (line.time, line.id), reverse=True):
        if line.ending is Ending.SUCCESS:
            settled.update(line.topics[:1])
        elif line.ending in _UNFINISHED and not settled.intersection(line.topics[:1]):
            left.append(line)
    return left


def _about(topics: Sequence[str], wanted: frozenset[str]) -> bool:
    return not wanted or not wanted.isdisjoint(topics)


def _says(point: Point) -> bool:
    return bool(point.blockers or point.doing or point.next)


def _of_action(line: Line) -> ToldLine:
    ending = "" if line.ending is Ending.UNKNOWN else f": {line.ending}"
    return ToldLine(f"{day(line.time)} {line.title}{ending} [{line.id}]", line.id, line.topics)


def _of_point(point: Point) -> ToldLine:
    said = (
        ("blocked by", ", ".join(point.blockers)),
        ("doing", point.doing),
        ("next", ", ".join(point.next)),
        ("for", point.to),
    )
    about = "; ".join(f"{what} {text}" for what, text in said if text)
    return ToldLine(f"{day(point.time)} {one_line(about, _ABOUT)} [{point.id}]", point.id, point.topics)


def _rendered(lines: Sequence[_Under]) -> Iterator[str]:
    """Under their headings, each heading once, in the order in which they first come up."""
    for heading in dict.fromkeys(each.heading for each in lines):
        yield f"{one_line(heading, _ABOUT)}:"
        yield from (f"- {each.line.text}" for each in lines if each.heading == heading)
