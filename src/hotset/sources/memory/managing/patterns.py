"""What alike episodes have in common, as a fact that says only what nearly all of them share, in their own words.

Confidence is the rule of succession: of n sessions k had something in common, so the next one has it with (k + 1) / (n + 2). A
session counts once, however many episodes it has. A pattern says what reaches 0.8 (three of three sessions, seven of eight) and
is as sure as the least sure thing that it says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hotset.nouns.memory import (
    Ending,
    Episode,
    Fact,
    Memory,
    MemoryId,
    MemoryKind,
    Pitfall,
    Procedure,
    Provenance,
    Standing,
    Task,
    Trust,
)
from hotset.sources.memory.disclosing.telling import one_line
from hotset.sources.memory.encoding.taint import is_plain_check
from hotset.sources.memory.managing.steps import command_of, is_lasting_file, is_risky, step_of
from hotset.sources.memory.managing.versions import RULES
from hotset.sources.memory.naming import memory_id
from hotset.text.terms import topic_words
from hotset.tokens import count

LEAST_SURE = 0.8
FEWEST_SESSIONS = 3

_MOST_WORDS = 5
_FEWEST_WORDS = 2
_FEWEST_NAMED = 2  # files that were looked at and steps; one says no more than the goal does
_MOST_NAMED = 3  # files and steps of a sort
_MOST_TOPICS = 4
_SHARED_WORD = 0.6  # of the sessions' goals have it
_COMMON = 0.25  # of all other sessions: what stands in so many tells nothing about these
_LIFT = 2.0
_FEWEST_OTHERS = 5  # sessions outside a cluster, to tell what is special about it
_EXAMPLE = 120  # characters
_MOST_FOLDERS = 4
_MOST_GOAL = 600
_COMMAND = re.compile(r"`([^`\n]+)`")
_SHELL = "shell"


def confidence(agreeing: int, of: int) -> float:
    return (agreeing + 1) / (of + 2)


@dataclass(slots=True)
class Common:
    """In how many sessions each thing came up, in all of the store."""

    borrowed: frozenset[str] = frozenset()
    """Steps that others talked an agent into: no pattern says them, however often they were followed."""
    sessions: set[str] = field(default_factory=set)
    things: Counter[str] = field(default_factory=Counter)
    _seen: dict[str, set[int]] = field(default_factory=dict)

    def count(self, episode: Memory) -> None:
        session = _session(episode)
        seen = self._seen.setdefault(session, set())
        self.sessions.add(session)
        for thing in things_of(episode):
            if (known := hash(thing)) not in seen:
                seen.add(known)
                self.things[thing] += 1

    def is_special(self, thing: str, here: int, of: int) -> bool:
        """Does it belong to the sessions that have it here, rather than to any other?"""
        others = len(self.sessions) - of
        if others < _FEWEST_OTHERS:
            return True
        share = (self.things[thing] - here) / others
        return share <= _COMMON and here / of >= _LIFT * share


@dataclass(frozen=True, slots=True)
class Pattern:
    fact: Memory
    episodes: tuple[MemoryId, ...]
    """From which it is derived."""


def borrowed_steps(waiting: Iterable[Memory]) -> Iterator[str]:
    """Of advice that waits because others worded it: what it says to do, beside what every project does."""
    for memory in waiting:
        detail = memory.detail
        said = detail.steps if isinstance(detail, Procedure) else (detail.instead,) if isinstance(detail, Pitfall) else ()
        commands = (command for each in said for command in _COMMAND.findall(each))
        yield from (step for command in commands if not is_plain_check(command) and (step := command_of(_SHELL, command)))


def things_of(episode: Memory) -> frozenset[str]:
    """What it can have in common with others, each under its sort."""
    detail = episode.detail
    if not isinstance(detail, Episode):
        return frozenset()
    words = (f"word {word}" for word in _words(detail.goal))
    changed = (f"changed {path}" for path in detail.artifacts if is_lasting_file(path))
    risky = [action.target for action in detail.actions if is_risky(action.target)]
    files = (path for path in detail.files if not any(path in target for target in risky))
    read = (f"read {path}" for path in files if is_lasting_file(path))
    steps = (f"step {step}" for action in detail.actions if (step := step_of(action)) and not is_risky(step))
    return frozenset((*words, *changed, *read, *steps))


def is_ground(episode: Memory) -> bool:
    """May something be derived from it? Not from what was put aside, and not from the words of tools."""
    return episode.standing is Standing.ACTIVE and episode.trust is not Trust.OUTSIDE and isinstance(episode.detail, Episode)


def pattern_of(leader: MemoryId, episodes: Iterable[Memory], common: Common) -> Pattern | None:
    """None where they share too little to be worth a sentence."""
    shared = _Shared()
    for episode in episodes:
        shared.add(episode)
    many = len(shared.sessions)
    if many < FEWEST_SESSIONS:
        return None
    words = shared.goal_words(common)
    sure = {
        thing: confidence(here, many)
        for thing, here in shared.things.items()
        if confidence(here, many) >= LEAST_SURE
        and common.is_special(thing, here, many)
        and thing.removeprefix("step ") not in common.borrowed
    }
    changed, read, steps = (_named(sort, sure, shared) for sort in ("changed", "read", "step"))
    read = [path for path in read if not any(_is_one(path, other) for other in changed)]
    if len(words) < _FEWEST_WORDS or (not changed and len(read) + len(steps) < _FEWEST_NAMED):
        return None
    told = [sure[f"{sort} {name}"] for sort, names in (("changed", changed), ("read", read), ("step", steps)) for name in names]
    ended = shared.ended()
    text = _text(words, shared, (changed, read, steps), ended)
    if ended is not None:
        told.append(confidence(ended[1], ended[2]))
    fact = Memory(
        id=memory_id(MemoryKind.FACT, f"pattern of {leader}"),
        kind=MemoryKind.FACT,
        title=f"Work on {' '.join(words)}",
        text=text,
        created=shared.last,
        source=Provenance(RULES),
        detail=Fact(),
        topics=shared.common_topics(),
        task=shared.common_task(),
        ending=ended[0] if ended is not None else Ending.UNKNOWN,
        confidence=round(min(told), 4),
        trust=Trust.OUTCOME if ended is not None and ended[0] is Ending.SUCCESS else Trust.AGENT,
        tokens=count(text),
    )
    return Pattern(fact, tuple(shared.ids))


class _Shared:
    """What is counted of a cluster's episodes, one after the other."""

    def __init__(self) -> None:
        self.ids: list[MemoryId] = []
        self.sessions: dict[str, set[str]] = {}
        self.things: Counter[str] = Counter()
        self.endings: dict[str, Ending] = {}
        self.topics: Counter[str] = Counter()
        self.tasks: Counter[Task | None] = Counter()
        self.goal = ""
        self.title = ""
        self.last = 0.0

    def add(self, episode: Memory) -> None:
        if not is_ground(episode):
            return
        assert isinstance(episode.detail, Episode)
        self.goal = self.goal or episode.detail.goal
        self.title = self.title or episode.title
        self.ids.append(episode.id)
        self.last = max(self.last, episode.created)
        seen = self.sessions.setdefault(_session(episode), set())
        new = things_of(episode) - seen
        seen |= new
        self.things.update(new)
        self.topics.update(frozenset(episode.topics))
        self.tasks[episode.task] += 1
        if episode.ending is not Ending.UNKNOWN:
            self.endings[_session(episode)] = episode.ending  # the last word of a session counts

    def goal_words(self, common: Common) -> list[str]:
        """Those that most goals have and most others have not, in their order; of the first title, where that will do."""
        titled = self._told_by(_words(self.title), common)
        return titled if len(titled) >= _FEWEST_WORDS else self._told_by(_words(self.goal), common)

    def _told_by(self, goal: Sequence[str], common: Common) -> list[str]:
        many = len(self.sessions)
        words = dict.fromkeys(goal)
        telling_most = sorted(
            (-here / (common.things[thing] or 1), place, word)
            for place, word in enumerate(words)
            if (here := self.things[thing := f"word {word}"]) >= _SHARED_WORD * many and common.is_special(thing, here, many)
        )[:_MOST_WORDS]
        kept = {word for _, _, word in telling_most}
        return [word for word in words if word in kept]

    def ended(self) -> tuple[Ending, int, int] | None:
        """How nearly all came out, how many, and of how many that is known."""
        counted = Counter(self.endings.values())
        of = len(self.endings)
        for ending in (Ending.SUCCESS, Ending.FAILURE):
            if of >= FEWEST_SESSIONS and confidence(counted[ending], of) >= LEAST_SURE:
                return ending, counted[ending], of
        return None

    def common_topics(self) -> tuple[str, ...]:
        ranked = sorted((-many, topic) for topic, many in self.topics.items() if many * 2 >= len(self.ids))
        return tuple(topic for _, topic in ranked[:_MOST_TOPICS])

    def common_task(self) -> Task | None:
        task, many = min(self.tasks.items(), key=lambda item: (-item[1], str(item[0])))
        return task if many >= LEAST_SURE * len(self.ids) else None


def _named(sort: str, sure: Mapping[str, float], shared: _Shared) -> list[str]:
    """The most common first. A file that some name from the root and others from the project is one."""
    found = sorted((-shared.things[thing], thing.removeprefix(f"{sort} ")) for thing in sure if thing.startswith(f"{sort} "))
    named: list[str] = []
    for _, name in found:
        if len(named) < _MOST_NAMED and not any(_is_one(name, other) for other in named):
            named.append(name)
    return named


def _is_one(path: str, other: str) -> bool:
    return path == other or path.endswith(f"/{other}") or other.endswith(f"/{path}")


def _text(
    words: Sequence[str], shared: _Shared, named: tuple[list[str], list[str], list[str]], ended: tuple[Ending, int, int] | None
) -> str:
    changed, read, steps = named
    said = [
        f"changes {', '.join(map(_short, changed))}" if changed else "",
        f"looks at {', '.join(map(_short, read))}" if read else "",
        f"runs {', '.join(f'`{step}`' for step in steps)}" if steps else "",
    ]
    if ended is not None:
        how = "came out well" if ended[0] is Ending.SUCCESS else "failed"
        said.append(f"{how} in {ended[1]} of {ended[2]}")
    about = "; ".join(part for part in said if part)
    example = one_line(shared.title if len(shared.title.split()) >= _FEWEST_WORDS else shared.goal, _EXAMPLE)
    return f"Work on {', '.join(words)} ({len(shared.sessions)} sessions): {about}. For instance: \u201c{example}\u201d"


def _short(path: str) -> str:
    """Of a path from the root the end: the project is known, and where it lies differs from machine to machine."""
    return (
        "/".join(path.rsplit("/", _MOST_FOLDERS)[1:])
        if path.startswith(("/", "~")) and path.count("/") >= _MOST_FOLDERS
        else path
    )


def _words(goal: str) -> list[str]:
    return list(topic_words(goal[:_MOST_GOAL]))


def _session(episode: Memory) -> str:
    return episode.source.session or episode.id
