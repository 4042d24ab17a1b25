"""What was done, decided and left open, day by day: the answer to a question of time, and a
stand-up."""

from __future__ import annotations

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
from hotset.sources.memory.kinds import KINDS, NAMED_KINDS, WARNING_KINDS
from hotset.sources.memory.time_parser import TimeQuestion, content_words, time_question
from hotset.store.port import Store
from hotset.text.terms import Term, first_hits, terms
from hotset.tokens import count

_MOST_LISTED = 400  # memories of a range
_MOST_SEARCHED = 2000  # newest memories in which an event or a subject is looked for
_MOST_WORDS = 0.6  # of an event's words: a memory that has no more is about something else
_NEWEST = 5  # memories of "the last thing that we did"
_TITLE = 100  # characters
_QUOTED = "a task in words from outside"
_LEVELS = (12, 4, 2, 1, 0)
"""Titles of one work that are listed, from the most detailed form to a mere number."""
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


@dataclass(frozen=True, slots=True)
class Standup:
    since: float
    days: tuple[WorkDay, ...] = ()
    """Oldest first."""
    open: tuple[TimelineLine, ...] = ()
    """Unfinished work, and what agents left to do."""
    last: float | None = None
    """When something was last done, if that was before `since`."""


def local_offset(now: float) -> float:
    """Seconds by which this machine's clock is ahead of UTC."""
    return float(time.localtime(now).tm_gmtoff)


def answer_time(
    query: str,
    store: Store,
    now: float,
    offset: float,
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
    """The latest memory whose title names an event such as "the release" or "we moved to GitLab";
    otherwise the one that has most of its words."""
    wanted = content_words(words)
    best, highest = None, _MOST_WORDS
    newest = store.newest_memories(NAMED_KINDS, _HAPPENED, until=now)
    for memory in islice(newest, _MOST_SEARCHED):
        if not wanted or memory.title.rstrip().endswith("?") or time_question(memory.title, now):
            continue
        if _mentions(memory.title, wanted):
            return memory
        share = _share_mentioned(_whole_text(memory), wanted)
        if share > highest:
            best, highest = memory, share
    return best


def work_days(
    memories: Iterable[MemoryRecord], offset: float, *, newest_first: bool = False
) -> tuple[WorkDay, ...]:
    """The memories by day, and on each day by work."""
    ordered = sorted(memories, key=lambda each: (each.created, each.id), reverse=newest_first)
    often = _topics_shared([each for each in ordered if KINDS[each.kind].is_dated])
    days = groupby(ordered, key=lambda each: _local_day(each.created, offset))
    return tuple(_work_day(day, list(group), often) for day, group in days)


def render_days(
    answer: TimeAnswer, offset: float, *, max_tokens: int, how: str = HOW, asked: bool = True
) -> RenderedText:
    """The days in as much detail as fits: titles with ids, or how many. Deterministic.

    Unless `asked` for, words that are not proven to be a person's are left out.
    """
    head = f"[hotset memory, {_range_words(answer, offset)}: {DATA}. {how}]"
    if not answer.days:
        text = f"{head[:-1]}. Nothing is remembered of that time.]"
        return RenderedText(text, count(text)) if count(text) <= max_tokens else RenderedText()
    for most in _LEVELS:
        lines = [_day_lines(day, most, asked=asked) for day in answer.days]
        if count(join_lines([head, *(line for day in lines for line in day)])) <= max_tokens:
            break
    kept = len(lines)
    while kept and count(_render(head, lines, kept)) > max_tokens:
        kept -= 1
    if not kept:
        return RenderedText()
    text = _render(head, lines, kept)
    memories = [each for day in answer.days[:kept] for each in day.memories]
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
        return _QUOTED
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
    # what nobody confirmed yet, or was merged, is listed only as something that was done
    return memory.standing is not Standing.MERGED or KINDS[memory.kind].is_dated


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
    """True if the text has every word, by its stem; of a path its file's name is enough."""
    low = text.lower()
    return all(_has(text, low, word) for word in words)


def _share_mentioned(text: str, words: Sequence[str]) -> float:
    low = text.lower()
    return sum(_has(text, low, word) for word in words) / len(words)


def _has(text: str, low: str, word: str) -> bool:
    name = word.rstrip("/").rsplit("/", 1)[-1]
    return name in low or any(True for _ in first_hits(text, _term(name)))


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


def _local_day(moment: float, offset: float) -> date:
    try:
        return datetime.fromtimestamp(moment + offset, UTC).date()
    except (OverflowError, OSError, ValueError):
        return date.min


def _work_day(day: date, memories: Sequence[MemoryRecord], often: Counter[str]) -> WorkDay:
    from hotset.sources.memory.encode.facts import is_decision  # noqa: PLC0415 - its patterns, where there are facts

    episodes = [each for each in memories if KINDS[each.kind].is_dated]
    others = [each for each in memories if not KINDS[each.kind].is_dated]
    left = [each for each in others if each.kind in (MemoryKind.LEDGER, MemoryKind.HANDOFF)]
    decided = [each for each in others if KINDS[each.kind].settles and is_decision(each.text)]
    known = {each.id for each in (*left, *decided)}
    noted = (each for each in others if each.id not in known)
    return WorkDay(day, tuple(_works(episodes, often)), tuple(decided), tuple(noted), tuple(left))


def _works(episodes: Sequence[MemoryRecord], often: Counter[str]) -> Iterator[WorkGroup]:
    """Episodes by the topic that most others of the range share with them, in order of the first
    of each."""
    groups: dict[str, list[MemoryRecord]] = {}
    for episode in episodes:
        shared = max(episode.topics, key=lambda topic: often[topic], default="")
        name = shared if often[shared] else next(iter(episode.topics), "")
        groups.setdefault(name or episode.id, []).append(episode)
    for name, group in groups.items():
        is_said = len(group) == 1 and (name == group[0].id or name in group[0].title.lower())
        yield WorkGroup("" if is_said else name, tuple(group))


def _topics_shared(episodes: Sequence[MemoryRecord]) -> Counter[str]:
    """How many episodes have each topic, without those that almost all of them have."""
    often = Counter(topic for each in episodes for topic in dict.fromkeys(each.topics))
    most = max(_FEW, _ALMOST_ALL * len(episodes))
    return Counter({topic: many for topic, many in often.items() if many <= most})


def _day_lines(day: WorkDay, most: int, *, asked: bool) -> list[str]:
    named = (
        *((work.name, work.episodes, "task") for work in day.works),
        ("decided", day.decided, "memory"),
        ("noted", day.noted, "memory"),
        ("left", day.left, "memory"),
    )
    lines = (
        f"- {_titles(name, memories, most, what, asked=asked)}"
        for name, memories, what in named
        if memories
    )
    return [f"{day_name(day.day)}:", *lines]


def _titles(
    name: str, memories: Sequence[MemoryRecord], most: int, what: str, *, asked: bool
) -> str:
    """`auth: Rotate the tokens: success [ep-...]; and 2 more`."""
    if not most:
        many = len(memories)
        plural = what if many == 1 else "memories" if what == "memory" else f"{what}s"
        return f"{one_line(name, _TITLE) or 'other'}: {many} {plural}"
    groups = group_items(memories, lambda each: title_of(each, asked=asked))
    parts = [
        f"{title_of(group.item, asked=asked)}{ending_of(group.item)}"
        f"{f' ({len(group.others) + 1} times)' if group.others else ''} [{group.item.id}]"
        for group in groups[:most]
    ]
    if (more := sum(1 + len(group.others) for group in groups[most:])) > 0:
        parts.append(f"and {more} more")
    return f"{f'{one_line(name, _TITLE)}: ' if name else ''}{'; '.join(parts)}"


def _render(head: str, days: Sequence[Sequence[str]], kept: int) -> str:
    left = len(days) - kept
    note = f"[{left} more day{'' if left == 1 else 's'}; ask for a shorter time]" if left else ""
    return join_lines([head, *(line for day in days[:kept] for line in day), note])


def _range_words(answer: TimeAnswer, offset: float) -> str:
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
    store: Store, since: float, until: float | None, offset: float
) -> tuple[WorkDay, ...]:
    """What was done and decided since then, oldest day first; without what was merged."""
    newest = store.newest_memories(NAMED_KINDS, _HAPPENED, since=since, until=until)
    wanted = (
        each for each in newest if each.standing is not Standing.MERGED or KINDS[each.kind].is_dated
    )
    days = work_days(islice(wanted, _MOST_LISTED), offset)
    return tuple(replace(day, left=()) for day in days)
