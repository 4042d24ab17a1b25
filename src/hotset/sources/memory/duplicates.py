"""Which episodes, procedures and pitfalls are the same though their words differ. Pure.

In doubt they stay apart: a merged memory is out of every search, so whatever only one of two says
keeps them two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hotset.nouns.memory import (
    Ending,
    Episode,
    MemoryId,
    MemoryRecord,
    Pitfall,
    Procedure,
    Standing,
    Trust,
)
from hotset.sources.memory.kinds import PERSON, is_routine
from hotset.sources.memory.memory_writer import CONSOLIDATE, is_by_hand, join_sources, rank
from hotset.sources.memory.patterns import (
    FEWEST_SESSIONS,
    is_lasting_file,
    normal_message,
    normal_steps,
    run_of_steps,
    trouble_key,
)
from hotset.sources.memory.supersede import (
    StatementWords,
    conflict,
    is_same_file,
    statement_words,
    word_overlap,
    word_similarity,
)
from hotset.tokens import count

_ALIKE = 0.75  # of all words of two goals, where nothing else speaks for one task
_OVERLAP = 0.6  # of the shorter goal's words, where both changed the same files
_SAME_FILES = 0.5  # of all files that either changed
_MOST_GOAL = 400  # characters
_COUNTS = re.compile(
    r"\b\d+(?= (?:\w+ ){0,3}?(?:tests?|errors?|failures?|warnings?|comments?|findings?)\b)",
    re.IGNORECASE,
)
"""Numbers that say how many there were this time."""
_QUOTED = re.compile(r'"([^"]*)"')
_CODE = re.compile(r"`([^`]+)`")
_WITH = re.compile(r" with (\S+)\s*$")
_MOST_RESOLUTIONS = 3


@dataclass(frozen=True, slots=True)
class SameGroup:
    """Memories that are the same, and the one that speaks for all."""

    kept: MemoryRecord
    lost: tuple[MemoryRecord, ...]


def goal_words(episode: MemoryRecord) -> StatementWords:
    """The words of its goal by which the same work is looked for."""
    return (
        _goal_words(episode.detail) if isinstance(episode.detail, Episode) else statement_words("")
    )


class GoalIndex:
    """Finds episodes whose goals may be the same."""

    def __init__(self, goals: Mapping[MemoryId, StatementWords]) -> None:
        self._goals = goals
        self._postings: dict[str, list[MemoryId]] = {}
        for id, goal in goals.items():
            for word in goal.words:
                self._postings.setdefault(word, []).append(id)

    def near(self, id: MemoryId) -> list[MemoryId]:
        """Without the episode itself, those that share most first."""
        goal = self._goals[id]
        shared = Counter(
            other for word in goal.words for other in self._postings[word] if other != id
        )
        return [
            other
            for other, many in shared.most_common()
            if many >= _OVERLAP * min(len(goal.words), len(self._goals[other].words))
            and not conflict(goal, self._goals[other])
        ]


def same_episodes(episodes: Iterable[MemoryRecord]) -> SameGroup | None:
    """Those that did the same piece of work as the first, which speaks for them; None if there are
    too few.

    It knows everything that they know: no error, decision or other ending is lost. One that was
    merged before stays with its group; one that a person touched stays alone. Two are not merged:
    the days on which something was done matter.
    """
    kept, *others = episodes
    if kept.standing is not Standing.ACTIVE or not _can_merge(kept):
        return None
    lost = [
        each for each in others if _can_merge(each) and not each.pinned and is_same_work(kept, each)
    ]
    return SameGroup(kept, tuple(lost)) if len(lost) + 1 >= FEWEST_SESSIONS else None


def is_same_work(kept: MemoryRecord, other: MemoryRecord) -> bool:
    """True if `other` says nothing that `kept` does not: one task, one ending, no further error."""
    one, two = kept.detail, other.detail
    if not isinstance(one, Episode) or not isinstance(two, Episode):
        return False
    return (
        kept.trust is other.trust
        and one.quoted == two.quoted
        and other.ending in (kept.ending, Ending.UNKNOWN)
        and {trouble_key(each) for each in two.troubles}
        <= {trouble_key(each) for each in one.troubles}
        and set(two.decisions) <= set(one.decisions)
        and _is_same_task(one, two)
    )


def _is_same_task(one: Episode, other: Episode) -> bool:
    first, second = _goal_words(one), _goal_words(other)
    if conflict(first, second):
        return False
    mine, theirs = first.words - second.words, second.words - first.words
    is_changed_alike = _changed_alike(one, other)
    if word_similarity(first, second) >= _ALIKE and not len(mine) == len(theirs) == 1:
        return is_changed_alike is not False
    return is_changed_alike is True and word_overlap(first, second) >= _OVERLAP


def _goal_words(episode: Episode) -> StatementWords:
    return statement_words(_COUNTS.sub("", episode.goal[:_MOST_GOAL]))


def _changed_alike(one: Episode, other: Episode) -> bool | None:
    """Whether both changed mostly the same files; None if neither changed any."""
    mine, theirs = (
        [path for path in each.artifacts if is_lasting_file(path)] for each in (one, other)
    )
    if not mine and not theirs:
        return None
    shared = sum(any(is_same_file(path, other) for other in theirs) for path in mine)
    return shared >= _SAME_FILES * (len(mine) + len(theirs) - shared)


def _can_merge(episode: MemoryRecord) -> bool:
    merged = episode.standing is Standing.MERGED and episode.run.startswith(CONSOLIDATE)
    return (
        (episode.standing is Standing.ACTIVE or merged)
        and episode.source.by != PERSON
        and not is_by_hand(episode)
    )


def with_sources(group: SameGroup) -> MemoryRecord:
    """The kept memory with the sources of all."""
    source = group.kept.source
    for each in group.lost:
        source = join_sources(source, each.source)
    return replace(group.kept, source=source)


def contained_procedures(procedures: Sequence[MemoryRecord]) -> list[SameGroup]:
    """Procedures for the same occasion whose steps are all in a longer one, in its order; checks in
    any order.

    A person's own is never merged into another, and none into one that is less trusted.
    """
    found = [each for each in procedures if _steps(each)]
    longest_first = sorted(found, key=lambda each: (-len(_steps(each)), each.created, each.id))
    taken: set[MemoryId] = set()
    groups: list[SameGroup] = []
    for kept in longest_first:
        if kept.id in taken:
            continue
        lost = [
            each
            for each in longest_first
            if each.id != kept.id
            and each.id not in taken
            and len(_steps(each)) < len(_steps(kept))
            and each.trust is not Trust.PERSON
            and not each.pinned
            and rank(each.trust) <= rank(kept.trust)
            and _is_same_occasion(kept, each)
            and _contains(kept, each)
        ]
        if lost:
            taken.update(each.id for each in lost)
            groups.append(SameGroup(kept, tuple(lost)))
    return groups


def _contains(longer: MemoryRecord, shorter: MemoryRecord) -> bool:
    if is_routine(longer) and is_routine(shorter):
        return set(_steps(shorter)) <= set(_steps(longer))
    return run_of_steps(_steps(shorter), _steps(longer))


def _steps(memory: MemoryRecord) -> list[str]:
    return normal_steps(memory.detail.steps) if isinstance(memory.detail, Procedure) else []


def _is_same_occasion(one: MemoryRecord, other: MemoryRecord) -> bool:
    assert isinstance(one.detail, Procedure)
    assert isinstance(other.detail, Procedure)
    first, second = (
        statement_words(each.detail.when or each.title)  # type: ignore[union-attr]
        for each in (one, other)
    )
    if one.detail.when == other.detail.when:
        return bool(first.words)
    return word_similarity(first, second) >= _ALIKE and not conflict(first, second)


def same_errors(pitfalls: Sequence[MemoryRecord]) -> list[SameGroup]:
    """Pitfalls of one error; the most trusted, then the surest and oldest speaks for all."""
    groups: dict[str, list[MemoryRecord]] = {}
    for memory in pitfalls:
        if key := pitfall_key(memory):
            groups.setdefault(key, []).append(memory)
    found: list[SameGroup] = []
    for same in groups.values():
        kept, *lost = sorted(
            same,
            key=lambda each: (
                -(each.pinned or each.source.by == PERSON),
                -rank(each.trust),
                -each.confidence,
                each.created,
                each.id,
            ),
        )
        lost = [each for each in lost if not each.pinned and each.source.by != PERSON]
        if kept.source.by == PERSON:  # their words are not added to
            lost = [each for each in lost if _instead(each) == _instead(kept)]
        if lost:
            found.append(SameGroup(kept, tuple(lost)))
    return found


def pitfall_key(memory: MemoryRecord) -> str:
    """What failed and with which error, whatever its numbers, paths and resolution; empty if it is
    not in the words of our rules."""
    if not isinstance(memory.detail, Pitfall):
        return ""
    command, named = _CODE.search(memory.detail.what), _WITH.search(memory.detail.what)
    said = _QUOTED.search(memory.detail.why)
    if command is None or (named is None and said is None):
        return ""
    message = normal_message(said.group(1)) if said else ""
    return "\0".join((" ".join(command.group(1).split()), named.group(1) if named else "", message))


def with_resolutions(group: SameGroup) -> MemoryRecord:
    """The kept pitfall with what else resolved the same error."""
    kept = group.kept
    assert isinstance(kept.detail, Pitfall)
    ways = list(dict.fromkeys(filter(None, (_instead(each) for each in (kept, *group.lost)))))
    if len(ways) < 2 or kept.source.by == PERSON:
        return kept
    more = [way for way in ways[1:_MOST_RESOLUTIONS] if way not in kept.text]
    if not more:
        return kept
    text = f"{kept.text} In other sessions: {'; or: '.join(more)}."
    instead = "; or: ".join((ways[0], *more))
    return replace(
        kept, text=text, tokens=count(text), detail=replace(kept.detail, instead=instead)
    )


def _instead(memory: MemoryRecord) -> str:
    return memory.detail.instead if isinstance(memory.detail, Pitfall) else ""
