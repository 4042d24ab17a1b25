"""Overview of all memories: topics with their sizes, and the lines of a timeline. Derived from the
store.

It is folded from the versions of memories in order. A new version first subtracts the one before
it, which is read from the store, so that no state per memory is needed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import blake2b
from heapq import nlargest
from math import log1p, log2
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import structs

from hotset.errors import StoreFailed
from hotset.files.lock import hold_to_change
from hotset.files.private_folder import private_folder
from hotset.files.write import write_atomically
from hotset.nouns.memory import Checkpoint, Ending, Episode, MemoryRecord, Standing, Trust
from hotset.sources.memory.data_lines import DAY, line, line_of, one_line
from hotset.sources.memory.kinds import KINDS, NAMED_KINDS
from hotset.sources.memory.memory_writer import is_derived
from hotset.store.port import Store
from hotset.typed import decode

HALF_LIFE = 30 * DAY
"""In which an untouched topic comes to count half."""

FORMAT = 6
"""Change it when the same memories give another overview: the file is then rebuilt."""

_AT_ONCE = 512  # versions read at a time
# of each sort: forty times what a timeline shows, so that a single topic has lines among them
_MOST_LINES = 512
_SPARE = 4  # so many times more may gather before the rest is dropped
# topics: fifty times what an index shows, for all that an arrangement may leave out
_MOST_HEAVY = 512
_TITLE = 100  # characters
_SUMMARY = 60
_QUOTED_GOAL = "a task in words from outside"
_MOST_POINTS = 3  # next steps and blockers of a checkpoint
_LINES = ("actions", "decisions", "known", "points")
"""The fields of an overview that hold lines."""


class Topic(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Totals of one topic. A memory with two topics counts in both."""

    name: str
    count: int = 0
    tokens: int = 0
    last: float = 0.0
    """Time of its latest memory."""
    summary: str = ""
    """The title of that one; empty if it was taken back or is outside text."""
    latest: str = ""
    """Its id."""

    @property
    def rank(self) -> float:
        """By number of memories and recency: a topic touched a month earlier counts half."""
        return log2(log1p(max(0, self.count)) or 1.0) + self.last / HALF_LIFE


class OverviewLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An episode or a fact in a line."""

    id: str
    time: float
    title: str
    topics: tuple[str, ...] = ()
    ending: Ending = Ending.UNKNOWN
    pinned: bool = False


class CheckpointLine(msgspec.Struct, frozen=True, array_like=True):
    """What an agent left: a ledger or a handoff."""

    id: str
    time: float
    title: str
    topics: tuple[str, ...] = ()
    agent: str = ""
    doing: str = ""
    next: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    to: str = ""


class Overview(msgspec.Struct, frozen=True):
    """Of all active memories."""

    format: int = FORMAT
    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)] = 0
    """Of the last version that was folded."""
    tag: str = ""
    """Identifies that version: with another store everything is counted anew."""
    memories: int = 0
    tokens: int = 0
    """The cost of loading everything."""
    last: float = 0.0
    """Time of the latest memory."""
    kinds: dict[str, int] = {}
    topics: dict[str, Topic] = {}
    heavy: tuple[str, ...] = ()
    """The topics by rank: an index without a question looks at no others."""
    actions: tuple[OverviewLine, ...] = ()
    """The latest episodes, newest first."""
    decisions: tuple[OverviewLine, ...] = ()
    """The latest decisions, pinned ones first."""
    known: tuple[OverviewLine, ...] = ()
    """The latest other facts, pinned ones first."""
    points: tuple[CheckpointLine, ...] = ()
    """The latest checkpoints, newest first."""


def overview(store: Store, before: Overview | None = None) -> Overview:
    """The overview up to the store's latest version, continuing from `before`. Raises a
    `HotsetError` if the store cannot be read.

    It does not notice erasures: start anew then (see `OverviewFile.drop`).
    """
    begin = before if before is not None and is_of(before, store) else Overview()
    folding = _OverviewFold(begin)
    while batch := store.memories_after(folding.number, _AT_ONCE):
        for _, memory in batch:
            if memory.version > 1 and (earlier := _earlier(store, memory)) is not None:
                folding.take_back(earlier)
            folding.add(memory)
        folding.number, folding.tag = batch[-1][0], _tag(batch[-1][1])
    return folding.done() if folding.number != begin.number else begin


def is_of(before: Overview, store: Store) -> bool:
    """True if its last version is still at its number in the store."""
    if before.format != FORMAT:
        return False
    if not before.number:
        return True
    there = store.memories_after(before.number - 1, 1)
    return bool(there) and there[0][0] == before.number and _tag(there[0][1]) == before.tag


def _tag(memory: MemoryRecord) -> str:
    return blake2b(
        f"{memory.id}\0{memory.version}\0{memory.time}".encode("utf-8", "surrogatepass"),
        digest_size=8,
    ).hexdigest()


def _earlier(store: Store, memory: MemoryRecord) -> MemoryRecord | None:
    before = [each for each in store.memory_versions(memory.id) if each.version < memory.version]
    return before[-1] if before else None


class _OverviewFold:
    """An overview while it changes. Topics are copied on change: of 20,000 a new memory changes
    four."""

    def __init__(self, before: Overview) -> None:
        self.number, self.tag = before.number, before.tag
        self._memories, self._tokens, self._last = before.memories, before.tokens, before.last
        self._kinds = dict(before.kinds)
        self._topics = dict(before.topics)
        self._heavy = before.heavy
        self._touched: dict[str, Topic] = {}
        self._lines: dict[str, dict[str, Any]] = {
            name: {line.id: line for line in getattr(before, name)} for name in _LINES
        }

    def add(self, memory: MemoryRecord) -> None:
        if not _counts(memory):
            return
        self._count(memory, 1)
        self._last = max(self._last, memory.created)
        is_outside = memory.trust is Trust.OUTSIDE
        is_quoted = isinstance(memory.detail, Episode) and memory.detail.quoted
        for name in dict.fromkeys(memory.topics):
            topic = self._count_topic(name, memory, 1)
            if memory.created >= topic.last:
                summary = line(memory.title, memory.tokens, most=_SUMMARY)
                self._touched[name] = structs.replace(
                    topic,
                    last=memory.created,
                    latest=memory.id,
                    summary="" if is_outside or is_quoted else summary,
                )
        if is_outside:
            return
        if KINDS[memory.kind].is_dated:
            if not is_question(memory):
                self._add_line("actions", _line(memory))
        elif KINDS[memory.kind].settles:
            if is_derived(memory):  # a pattern: its sessions are among the actions
                return
            from hotset.sources.memory.encode.facts import is_decision  # noqa: PLC0415 - its patterns, where there are facts

            self._add_line("decisions" if is_decision(memory.text) else "known", _line(memory))
        elif isinstance(memory.detail, Checkpoint):
            self._add_line("points", _point(memory, memory.detail))

    def take_back(self, memory: MemoryRecord) -> None:
        if not _counts(memory):
            return
        self._count(memory, -1)
        for name in dict.fromkeys(memory.topics):
            topic = self._count_topic(name, memory, -1)
            if topic.latest == memory.id:
                self._touched[name] = structs.replace(topic, summary="", latest="")
        for lines in self._lines.values():
            lines.pop(memory.id, None)

    def done(self) -> Overview:
        for name, topic in self._touched.items():
            if topic.count > 0:
                self._topics[name] = structs.replace(topic, tokens=max(0, topic.tokens))
            else:
                self._topics.pop(name, None)
        return Overview(
            number=self.number,
            tag=self.tag,
            memories=self._memories,
            tokens=self._tokens,
            last=self._last,
            kinds={kind: many for kind, many in self._kinds.items() if many > 0},
            topics=self._topics,
            heavy=self._heaviest(),
            actions=_newest(self._lines["actions"]),
            decisions=_newest(self._lines["decisions"]),
            known=_newest(self._lines["known"]),
            points=_newest(self._lines["points"]),
        )

    def _heaviest(self) -> tuple[str, ...]:
        """Among the previous and the changed ones: no other rank changed."""
        names = [
            name for name in dict.fromkeys((*self._heavy, *self._touched)) if name in self._topics
        ]
        return tuple(nlargest(_MOST_HEAVY, names, key=lambda name: (self._topics[name].rank, name)))

    def _count(self, memory: MemoryRecord, sign: int) -> None:
        self._memories += sign
        self._tokens += sign * memory.tokens
        self._kinds[memory.kind] = self._kinds.get(memory.kind, 0) + sign

    def _count_topic(self, name: str, memory: MemoryRecord, sign: int) -> Topic:
        topic = self._touched.get(name) or self._topics.get(name, Topic(name))
        self._touched[name] = counted = structs.replace(
            topic, count=topic.count + sign, tokens=topic.tokens + sign * memory.tokens
        )
        return counted

    def _add_line(self, name: str, line: OverviewLine | CheckpointLine) -> None:
        lines = self._lines[name]
        lines[line.id] = line
        if len(lines) > _SPARE * _MOST_LINES:
            self._lines[name] = {line.id: line for line in _newest(lines)}


def is_question(memory: MemoryRecord) -> bool:
    """True for an episode in which something was asked and nothing done."""
    is_idle = isinstance(memory.detail, Episode) and not memory.detail.actions
    return is_idle and memory.title.rstrip().endswith("?")


def _counts(memory: MemoryRecord) -> bool:
    return memory.standing is Standing.ACTIVE and memory.kind in NAMED_KINDS


def _line(memory: MemoryRecord) -> OverviewLine:
    """Shown unasked, so without the words of a goal that is not proven to be a person's."""
    is_quoted = isinstance(memory.detail, Episode) and memory.detail.quoted
    shown = replace(memory, title=_QUOTED_GOAL) if is_quoted else memory
    return OverviewLine(
        memory.id, memory.created, line_of(shown), memory.topics, memory.ending, memory.pinned
    )


def _point(memory: MemoryRecord, left: Checkpoint) -> CheckpointLine:
    return CheckpointLine(
        memory.id,
        memory.created,
        one_line(memory.title or memory.text, _TITLE),
        memory.topics,
        one_line(memory.source.agent, _SUMMARY),
        one_line(left.doing, _TITLE),
        _short(left.next),
        _short(left.blockers),
        one_line(left.to, _SUMMARY),
    )


def _short(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(line for text in texts if (line := one_line(text, _TITLE)))[:_MOST_POINTS]


def _newest(lines: Mapping[str, Any]) -> tuple[Any, ...]:
    """The latest, newest first; pinned ones before all others."""
    ranked = sorted(
        lines.values(),
        key=lambda line: (getattr(line, "pinned", False), line.time, line.id),
        reverse=True,
    )
    return tuple(ranked[:_MOST_LINES])


FILE = "overview.json"
_LOCK = ".overview.lock"
# versions: the next process folds so many in milliseconds; writing 20,000 topics takes longer
_WORTH_WRITING = 256

_Stamp = tuple[int, int, int]


class OverviewFile:
    """The overview of one store. Safe across threads and processes.

    It holds titles of memories: call `drop` after an erasure, so that no process continues from the
    old one.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = threading.Lock()
        self._known: tuple[_Stamp | None, Overview] | None = None
        self._saved = 0
        """The number up to which the file goes."""

    def latest(self, store: Store) -> Overview:
        """Up to the store's latest version. Raises a `HotsetError` if the store cannot be read."""
        with self._lock:
            stamp = self._stamp()
            before = self._before(stamp)
            after = overview(store, before)
            self._known = stamp, after
            if before is None or not self._saved <= after.number < self._saved + _WORTH_WRITING:
                self._write(after, stamp)
            return after

    def drop(self) -> None:
        """Rebuild from the store alone next time. Raises `StoreBusy` or `StoreFailed`."""
        private_folder(self._path.parent)
        with self._lock, hold_to_change(self._path, self._path.with_name(_LOCK)):
            self._known = None
            # Not removed: its new stamp tells other processes that it changed.
            write_atomically(self._path, msgspec.json.encode(Overview()))

    def _before(self, stamp: _Stamp | None) -> Overview | None:
        """This process's overview while the file is unchanged; otherwise the file's."""
        if self._known is not None and self._known[0] == stamp:
            return self._known[1]
        kept = _read(self._path)
        self._saved = kept.number if kept is not None else 0
        return kept

    def _write(self, after: Overview, before: _Stamp | None) -> None:
        """Only over the file that it was made from, which may have been dropped meanwhile.

        A full disk costs the next process some time and nothing else.
        """
        try:
            private_folder(self._path.parent)
            with hold_to_change(self._path, self._path.with_name(_LOCK)):
                if self._stamp() != before:
                    self._known = None
                    return
                write_atomically(self._path, msgspec.json.encode(after))
                self._known = self._stamp(), after
                self._saved = after.number
        except StoreFailed:
            return

    def _stamp(self) -> _Stamp | None:
        try:
            found = self._path.lstat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: Path) -> Overview | None:
    try:
        kept = decode(path.read_bytes(), Overview)
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return kept if kept.format == FORMAT else None
