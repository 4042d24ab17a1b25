"""What was done, decided and left open, day by day: the answer to a question of time, and a
stand-up."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from heapq import nsmallest
from itertools import groupby, islice

from hotset.nouns.memory import Ending, Episode, Layer, MemoryKind, MemoryRecord, Standing, Trust
from hotset.sources.memory.data_lines import (
    DATA,
    HOW,
    RenderedText,
    TimelineLine,
    ending_of,
    group_items,
    join_lines,
    one_line,
)
from hotset.sources.memory.kinds import ADVICE_KINDS, KINDS, NAMED_KINDS, WARNING_KINDS
from hotset.sources.memory.layers import is_telling
from hotset.sources.memory.memory_writer import is_derived
from hotset.sources.memory.overview import is_question
from hotset.sources.memory.time_parser import Offset, TimeQuestion, content_words, time_question
from hotset.store.port import Store
from hotset.text.terms import Term, first_hits, terms
from hotset.tokens import count

_MOST_LISTED = 400  # memories of a range
_MOST_SEARCHED = 2000  # newest memories in which an event or a subject is looked for
_MOST_WORDS = 0.6  # of an event's words: a memory that has no more is about something else
_NEWEST = 5  # memories of "the last thing that we did"
_TITLE = 100  # characters
_SHORT_TITLE = 60
_OTHER = "other work"


@dataclass(frozen=True, slots=True)
class _Detail:
    """How much is listed of each work."""

    titles: int
    length: int = _TITLE
    """Characters of a title."""
    ids: bool = True


_LEVELS = (
    _Detail(12),
    _Detail(4),
    _Detail(2),
    _Detail(1, 60),
    _Detail(1, 60, ids=False),
    _Detail(1, 32, ids=False),
)
"""From the most detailed form to the shortest that still has every day."""
_MORE = "For more ask for a day"
_ALMOST_ALL, _FEW = 0.8, 4
"""A topic that more than this share of a range's episodes have names no work among them, unless
there are only a few."""
_HAPPENED = frozenset({Standing.ACTIVE, Standing.SUPERSEDED, Standing.MERGED})
"""What was merged into another memory or replaced since then was done or said that day all the
same."""
_FAILED = frozenset({Ending.FAILURE, Ending.PARTIAL})


@dataclass(frozen=True, slots=True)
class WorkGroup:
    """Episodes of a day that are about the same thing, in their order."""

    name: str
    """A topic they share; empty if they have none."""
    episodes: tuple[MemoryRecord, ...]


@dataclass(frozen=True, slots=True)
class WorkDay:
    day: date
    works: tuple[WorkGroup, ...] = ()
    decided: tuple[MemoryRecord, ...] = ()
    noted: tuple[MemoryRecord, ...] = ()
    """Other facts, and what was learned."""
    left: tuple[MemoryRecord, ...] = ()
    """Checkpoints and handoffs."""

    @property
    def memories(self) -> tuple[MemoryRecord, ...]:
        done = (each for work in self.works for each in work.episodes)
        return (*done, *self.decided, *self.noted, *self.left)


@dataclass(frozen=True, slots=True)
class TimeAnswer:
    """The memories of the range that a question asks for."""

    question: TimeQuestion
    since: float | None
    until: float | None
    days: tuple[WorkDay, ...] = ()
    event: MemoryRecord | None = None
    """What bounds the range."""

    @property
    def memories(self) -> list[MemoryRecord]:
        return [each for day in self.days for each in day.memories]

    def spans(self, moment: float) -> bool:
        """True if it lies in the range."""
        return (self.since is None or self.since <= moment) and (
            self.until is None or moment < self.until
        )


@dataclass(frozen=True, slots=True)
class Standup:
    since: float
    days: tuple[WorkDay, ...] = ()
    """Oldest first."""
    open: tuple[TimelineLine, ...] = ()
    """Unfinished work, and what agents left to do."""
    last: float | None = None
    """When something was last done, if that was before `since`."""


def local_offset(moment: float) -> float:
    """Seconds by which this machine's clock is ahead of UTC at a moment."""
    try:
        return float(time.localtime(moment).tm_gmtoff)
    except (OverflowError, OSError, ValueError):
        return 0.0


def answer_time(
    query: str,
    store: Store,
    now: float,
    offset: Offset,
    kinds: frozenset[MemoryKind] = frozenset(),
) -> TimeAnswer | None:
    """The memories that a question of time asks for, by day; None if it is no such question, or
    names an event or a subject that no memory mentions."""
    question = time_question(query, now, offset)
    if question is None:
        return None
    times, event = question.times, None
    since, until = times.since, times.until
    if question.event:
        event = find_event(question.event, store, now)
        if event is None:
            return None
        since, until = _bounds(question.bound, event)
    found = _memories_between(question, store, since, until, kinds or NAMED_KINDS)
    if question.subject and not found:
        return None
    days = work_days(found, offset, newest_first=question.is_newest_first)
    return TimeAnswer(question, since, until, days, event)


def find_event(words: str, store: Store, now: float) -> MemoryRecord | None:
    """The latest memory whose title names an event such as "the release" or "we moved to GitLab",
    work that was done rather than words about it; otherwise the one that has most of its words."""
    wanted = content_words(words)
    said = best = None
    highest = _MOST_WORDS
    newest = store.newest_memories(NAMED_KINDS - ADVICE_KINDS, _HAPPENED, until=now)
    for memory in islice(newest, _MOST_SEARCHED):
        if (
            not wanted
            or (is_derived(memory) and not isinstance(memory.detail, Episode))
            or memory.title.rstrip().endswith("?")
            or time_question(memory.title, now)
        ):
            continue
        if _mentions(memory.title, wanted):
            if isinstance(memory.detail, Episode) and memory.detail.actions:
                return memory
            said = said or memory
        elif said is None:
            share = _share_mentioned(_whole_text(memory), wanted)
            if share > highest:
                best, highest = memory, share
    return said or best


def work_days(
    memories: Iterable[MemoryRecord], offset: Offset, *, newest_first: bool = False
) -> tuple[WorkDay, ...]:
    """The memories by day, and on each day by work."""
    ordered = sorted(memories, key=lambda each: (each.created, each.id), reverse=newest_first)
    often = _topics_shared([each for each in ordered if KINDS[each.kind].is_dated])
    days = groupby(ordered, key=lambda each: _local_day(each.created, offset))
    return tuple(_work_day(day, list(group), often) for day, group in days)


def render_days(
    answer: TimeAnswer, offset: Offset, *, max_tokens: int, how: str = HOW, asked: bool = True
) -> RenderedText:
    """The days in as much detail as fits: titles with ids, titles, or the range by work.
    Deterministic.

    Unless `asked` for, words that are not proven to be a person's are left out.
    """
    when = _range_words(answer, offset)
    head, short = (f"[hotset memory, {when}: {DATA}. {more}]" for more in (how, _MORE))
    if not answer.days:
        text = f"{head[:-1]}. Nothing is remembered of that time.]"
        return RenderedText(text, count(text)) if count(text) <= max_tokens else RenderedText()
    for detail in _LEVELS:
        lines = [line for day in answer.days for line in _day_lines(day, detail, asked=asked)]
        text = join_lines([head if detail.ids else short, *lines])
        if count(text) <= max_tokens:
            return _rendered(text, answer.memories)
    works = _work_lines(answer.days, offset, asked=asked)
    for kept in range(len(works), 0, -1):
        left = f"[{len(works) - kept} more]" if kept < len(works) else ""
        text = join_lines([short, *works[:kept], left])
        if count(text) <= max_tokens:
            return _rendered(text, answer.memories)
    return RenderedText()


def _rendered(text: str, memories: Sequence[MemoryRecord]) -> RenderedText:
    shown: dict[str, Layer] = {
        each.id: Layer.TIMELINE for each in memories if f"[{each.id}]" in text
    }
    topics = tuple(dict.fromkeys(topic for each in memories for topic in each.topics[:1]))
    return RenderedText(text, count(text), topics, shown)


def day_name(day: date) -> str:
    return f"{day:%A} {day.isoformat()}"


def title_of(memory: MemoryRecord, *, asked: bool = True) -> str:
    """A memory in a few words; those that may come from outside only if they are asked for."""
    is_quoted = memory.trust is Trust.OUTSIDE or (
        isinstance(memory.detail, Episode) and memory.detail.quoted
    )
    if is_quoted and not asked:
        return (
            "a task in words from outside" if KINDS[memory.kind].is_dated else "words from outside"
        )
    return one_line(memory.title or memory.text, _TITLE)


def _memories_between(
    question: TimeQuestion,
    store: Store,
    since: float | None,
    until: float | None,
    kinds: frozenset[MemoryKind],
) -> list[MemoryRecord]:
    wanted = content_words(question.subject)
    newest = store.newest_memories(kinds, _HAPPENED, since=since, until=until)
    fitting = (
        memory
        for memory in newest
        if _is_wanted(memory, question) and (not wanted or _mentions(_whole_text(memory), wanted))
    )
    if since is not None or until is not None:
        return list(islice(fitting, _MOST_LISTED))
    every = list(islice(fitting, _MOST_SEARCHED))
    every = [memory for memory in every if _changed(memory, wanted)] or every
    if question.times.first:
        return nsmallest(_NEWEST, every, key=lambda each: (each.created, each.id))
    return every[:_NEWEST]


def _changed(memory: MemoryRecord, words: Sequence[str]) -> bool:
    """True if it is work that changed a file of such a name."""
    changed = memory.detail.artifacts if isinstance(memory.detail, Episode) else ()
    return any(path.lower().endswith(word) for path in changed for word in words if "." in word)


def _is_wanted(memory: MemoryRecord, question: TimeQuestion) -> bool:
    detail = memory.detail
    match question.only:
        case "decisions":
            return KINDS[memory.kind].settles
        case "failures":
            return memory.kind in WARNING_KINDS or (
                isinstance(detail, Episode) and (memory.ending in _FAILED or bool(detail.troubles))
            )
    return _is_of_its_day(memory)


def _is_of_its_day(memory: MemoryRecord) -> bool:
    """True for what was done, said or learned that day: no way of doing things, nothing drawn from
    other memories, and what was merged only if it was done."""
    if KINDS[memory.kind].is_dated:
        return not is_question(memory) or time_question(memory.title, memory.created) is None
    return (
        memory.kind is not MemoryKind.PROCEDURE
        and memory.standing is not Standing.MERGED
        and not is_derived(memory)
    )


def _bounds(bound: str, event: MemoryRecord) -> tuple[float | None, float | None]:
    seconds = event.detail.seconds if isinstance(event.detail, Episode) else 0.0
    match bound:
        case "since":
            return event.created, None
        case "after":
            return event.created + seconds + 1.0, None
        case "until":
            return None, event.created + seconds + 1.0
    return None, event.created


def _mentions(text: str, words: Sequence[str]) -> bool:
    """True if the text has every word, by its stem, and every number as it is; of a path its file's
    name is enough."""
    low = text.lower()
    return all(_has(text, low, word) for word in words)


def _share_mentioned(text: str, words: Sequence[str]) -> float:
    low = text.lower()
    return sum(_has(text, low, word) for word in words) / len(words)


def _has(text: str, low: str, word: str) -> bool:
    """True if a text has a name as it is, or a word in another form; numbers match exactly."""
    name = re.sub(r"^v(?=\d)", "", word.rstrip("/").rsplit("/", 1)[-1])
    if re.search(rf"(?<![\w.])v?{re.escape(name)}(?![\w]|\.\d)", low):
        return True
    parts = re.findall(r"\w+", name)
    if not parts or any(map(str.isdigit, name)):
        return False
    return all(any(True for _ in first_hits(text, _term(part))) for part in parts)


@lru_cache(maxsize=64)
def _term(name: str) -> tuple[Term, ...]:
    return terms(name)[:1]


def _whole_text(memory: MemoryRecord) -> str:
    files = (
        (*memory.detail.artifacts, *memory.detail.files)
        if isinstance(memory.detail, Episode)
        else ()
    )
    return "\n".join((memory.title, memory.text, *memory.topics, *files))


def _local_day(moment: float, offset: Offset) -> date:
    try:
        return datetime.fromtimestamp(moment + offset(moment), UTC).date()
    except (OverflowError, OSError, ValueError):
        return date.min


def _work_day(day: date, memories: Sequence[MemoryRecord], often: Counter[str]) -> WorkDay:
    from hotset.sources.memory.encode.facts import is_decision  # noqa: PLC0415 - its patterns, where there are facts

    others = [each for each in memories if not KINDS[each.kind].is_dated]
    said = [each.text.lower() for each in others]
    episodes = [
        each for each in memories if KINDS[each.kind].is_dated and not _only_says(each, said)
    ]
    left = [each for each in others if each.kind in (MemoryKind.LEDGER, MemoryKind.HANDOFF)]
    decided = [each for each in others if KINDS[each.kind].settles and is_decision(each.text)]
    known = {each.id for each in (*left, *decided)}
    noted = (each for each in others if each.id not in known)
    return WorkDay(day, tuple(_works(episodes, often)), tuple(decided), tuple(noted), tuple(left))


def _only_says(episode: MemoryRecord, said: Sequence[str]) -> bool:
    """True if nothing was done in it, and what was said is listed as a memory of its own."""
    title = episode.title.lower().rstrip("\u2026. ")
    is_idle = isinstance(episode.detail, Episode) and not episode.detail.actions
    return is_idle and bool(title) and any(text.startswith(title) for text in said)


def _works(episodes: Sequence[MemoryRecord], often: Counter[str]) -> Iterator[WorkGroup]:
    """Episodes by the topic that most others of the range share with them, in order of the first
    of each. An episode by itself is named by a file that it changed, if by anything."""
    groups: dict[str, list[MemoryRecord]] = {}
    for episode in episodes:
        shared = max(episode.topics, key=lambda topic: often[topic], default="")
        name = shared if often[shared] else next(iter(episode.topics), "")
        groups.setdefault(name or episode.id, []).append(episode)
    for name, group in groups.items():
        titles = {each.title for each in group}
        is_named = len(titles) > 1 or _is_changed_file(name, group[0])
        yield WorkGroup(name if is_named else "", tuple(group))


def _is_changed_file(topic: str, episode: MemoryRecord) -> bool:
    """True if it is the name of a changed file that the title does not say already."""
    if not isinstance(episode.detail, Episode) or topic in episode.title.lower():
        return False
    return any(f"{topic}." in path.lower() for path in episode.detail.artifacts)


def _topics_shared(episodes: Sequence[MemoryRecord]) -> Counter[str]:
    """How many episodes have each topic, without those that almost all of them have."""
    often = Counter(
        topic for each in episodes for topic in dict.fromkeys(each.topics) if is_telling(topic)
    )
    most = max(_FEW, _ALMOST_ALL * len(episodes))
    return Counter({topic: many for topic, many in often.items() if many <= most})


def _day_lines(day: WorkDay, detail: _Detail, *, asked: bool) -> list[str]:
    lines = (f"- {_titles(name, each, detail, asked=asked)}" for name, each in _named_parts(day))
    return [f"{day_name(day.day)}:", *lines]


def _titles(name: str, memories: Sequence[MemoryRecord], detail: _Detail, *, asked: bool) -> str:
    """`auth: Rotate the tokens: success [ep-...]; and 2 more`."""
    groups = group_items(memories, lambda each: title_of(each, asked=asked))
    parts = [
        f"{one_line(title_of(group.item, asked=asked), detail.length)}{ending_of(group.item)}"
        f"{f' ({len(group.others) + 1} times)' if group.others else ''}"
        f"{f' [{group.item.id}]' if detail.ids else ''}"
        for group in groups[: detail.titles]
    ]
    if (more := sum(1 + len(group.others) for group in groups[detail.titles :])) > 0:
        parts.append(f"and {more} more")
    return f"{f'{one_line(name, _TITLE)}: ' if name else ''}{'; '.join(parts)}"


def _work_lines(days: Sequence[WorkDay], offset: Offset, *, asked: bool) -> list[str]:
    """A line for each work of all days, the largest first: `- login: 5 times, 2026-10-05 to
    2026-10-30, last: Rotate the tokens`."""
    episodes = [each for day in days for work in day.works for each in work.episodes]
    works: dict[str, list[MemoryRecord]] = {}
    whole = WorkDay(
        days[0].day,
        tuple(_works(episodes, _topics_shared(episodes))),
        decided=tuple(each for day in days for each in day.decided),
        noted=tuple(each for day in days for each in day.noted),
        left=tuple(each for day in days for each in day.left),
    )
    for name, memories in _named_parts(whole):
        works.setdefault(name or _OTHER, []).extend(memories)
    lines = []
    for name in sorted(works, key=lambda name: (-len(works[name]), name)):
        group = sorted(works[name], key=lambda each: (each.created, each.id))
        first, last = (
            _local_day(each.created, offset).isoformat() for each in (group[0], group[-1])
        )
        when = first if first == last else f"{first} to {last}"
        often = f"{len(group)} times, " if len(group) > 1 else ""
        title = one_line(title_of(group[-1], asked=asked), _SHORT_TITLE)
        lines.append(f"- {one_line(name, _TITLE)}: {often}{when}, last: {title}")
    return lines


def _named_parts(day: WorkDay) -> Iterator[tuple[str, tuple[MemoryRecord, ...]]]:
    yield from ((work.name, work.episodes) for work in day.works)
    parts = (("decided", day.decided), ("noted", day.noted), ("left", day.left))
    yield from ((name, memories) for name, memories in parts if memories)


def _range_words(answer: TimeAnswer, offset: Offset) -> str:
    """`2026-11-09 to 2026-11-15`, `since 2026-11-10 (Cut release 2.1 [ep-...])`."""
    question = answer.question
    about = f" of {one_line(question.subject, _TITLE)}" if question.subject else ""
    if answer.event is not None:
        when = _local_day(answer.event.created, offset).isoformat()
        event = f"{title_of(answer.event)} [{answer.event.id}]"
        return f"{question.bound} {when} ({event}){about}"
    since, until = answer.since, answer.until
    first = "" if since is None else _local_day(since, offset).isoformat()
    last = "" if until is None else _local_day(until - 1.0, offset).isoformat()
    if first and last:
        return f"{first}{about}" if first == last else f"{first} to {last}{about}"
    if first or last:
        return f"since {first}{about}" if first else f"before {_next_day(last)}{about}"
    return f"{'first' if question.times.first else 'latest'}{about}"


def _next_day(day: str) -> str:
    return (date.fromisoformat(day) + timedelta(1)).isoformat()


def standup_days(
    store: Store, since: float, until: float | None, offset: Offset
) -> tuple[WorkDay, ...]:
    """What was done and decided since then, oldest day first; without what was merged."""
    newest = store.newest_memories(NAMED_KINDS, _HAPPENED, since=since, until=until)
    done = (each for each in newest if _is_of_its_day(each) and not is_question(each))
    days = work_days(islice(done, _MOST_LISTED), offset)
    return tuple(replace(day, left=()) for day in days)
