"""Shared by both file formats: folders written atomically, the index of an export, and merging
imports."""

from __future__ import annotations

import heapq
import os
import re
import secrets
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from hotset.errors import BadInput, HotsetError
from hotset.files.private_folder import sync_folder
from hotset.files.root import NotTaken, Root, can_be_shown, parts_of, shown
from hotset.files.write import write_error
from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import (
    Checkpoint,
    Episode,
    MemoryId,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    Relation,
    Standing,
    Trust,
)
from hotset.nouns.progress import Progress, silent
from hotset.sources.memory.encode.facts import is_decision
from hotset.sources.memory.exchange.items import (
    EPISODE,
    FACT,
    MARK,
    Item,
    iso_day,
    iso_time,
    seal_memory,
)
from hotset.sources.memory.kinds import ADVICE_KINDS, is_same
from hotset.sources.memory.memory_writer import batched, known_memories
from hotset.store.memory_versions import memory_from_fields, refuse_unfit
from hotset.store.port import Store

FORMAT = 1
VERSION = "1.0"
"""Of the layout, in loki-mode's numbering."""

_TOPICS = 500  # in the index; others can still be found
_RECENT = 20  # in the timeline
_EVERY = 200  # memories between two reports of progress


@dataclass(slots=True)
class _Topic:
    memories: int = 0
    tokens: int = 0
    last: float = 0.0
    title: str = ""


@dataclass(slots=True)
class Survey:
    """Contents of an export, counted while it is written."""

    progress: Progress
    count: int = 0
    tokens: int = 0
    last: float = 0.0
    topics: defaultdict[str, _Topic] = field(default_factory=lambda: defaultdict(_Topic))
    recent: list[MemoryRecord] = field(default_factory=list)
    """The latest episodes, newest first."""
    decided: list[MemoryRecord] = field(default_factory=list)
    """The latest facts that are decisions, newest first."""
    checkpoint: MemoryRecord | None = None

    def written(self, kind: MemoryKind) -> None:
        self.count += 1
        if self.count % _EVERY == 0:
            self.progress(f"{kind}s", self.count, 0)

    def add(self, memory: MemoryRecord) -> None:
        self.tokens += memory.tokens
        self.last = max(self.last, memory.created, memory.time)
        for each in memory.topics:
            topic = self.topics[each]
            topic.memories += 1
            topic.tokens += memory.tokens
            if memory.created >= topic.last:
                topic.last, topic.title = memory.created, memory.title
        if memory.kind is EPISODE:
            every = (*self.recent, memory)
            self.recent = heapq.nlargest(_RECENT, every, key=lambda each: (each.created, each.id))
        if memory.kind is FACT and is_decision(memory.text):
            every = (*self.decided, memory)
            self.decided = heapq.nlargest(_RECENT, every, key=lambda each: (each.created, each.id))
        if isinstance(memory.detail, Checkpoint) and (
            self.checkpoint is None or memory.created >= self.checkpoint.created
        ):
            self.checkpoint = memory

    def named_topics(self, most: int) -> list[tuple[str, _Topic]]:
        """Those with most memories first."""
        return sorted(self.topics.items(), key=lambda each: (-each[1].memories, each[0]))[:most]

    def index(self) -> Item:
        most = max((topic.memories for topic in self.topics.values()), default=1)
        return {
            "version": VERSION,
            "last_updated": iso_time(self.last),
            "topics": [
                {
                    "id": name,
                    "summary": topic.title,
                    "relevance_score": round(topic.memories / most, 2),
                    "last_accessed": iso_time(topic.last),
                    "token_count": topic.tokens,
                }
                for name, topic in self.named_topics(_TOPICS)
            ],
            "total_memories": self.count,
            "total_tokens_available": self.tokens,
            MARK: {"format": FORMAT},
        }

    def timeline(self) -> Item:
        left = self.checkpoint.detail if self.checkpoint else None
        checkpoint = left if isinstance(left, Checkpoint) else Checkpoint()
        decided = {
            decision: memory
            for memory in self.recent
            if isinstance(memory.detail, Episode)
            for decision in memory.detail.decisions
        } | {memory.text: memory for memory in self.decided}
        decisions = [
            {
                "decision": decision,
                "rationale": "",
                "date": iso_day(memory.created),
                "topic_id": _topic(memory),
            }
            for decision, memory in sorted(
                decided.items(), key=lambda each: (-each[1].created, each[0])
            )
        ]
        return {
            "version": VERSION,
            "last_updated": iso_time(self.last),
            "recent_actions": [
                {
                    "timestamp": iso_time(memory.created),
                    "action": memory.title,
                    "outcome": memory.ending.value,
                    "topic_id": _topic(memory),
                }
                for memory in self.recent
            ],
            "key_decisions": decisions[:_RECENT],
            "active_context": {
                "current_focus": _topic(self.recent[0]) if self.recent else None,
                "blocked_by": list(checkpoint.blockers),
                "next_up": list(checkpoint.next),
            },
        }


def _topic(memory: MemoryRecord) -> str:
    return memory.topics[0] if memory.topics else ""


# of a file that is read; JSON of that size takes half a gigabyte in memory at worst
_MOST_BYTES = 16 * 1024 * 1024
_FILE_MODE = 0o600
_FOLDER_MODE = 0o700
_BOM = b"\xef\xbb\xbf"
_Item = TypeVar("_Item")


@contextmanager
def whole_folder(folder: Path, refuse_foreign: Callable[[Path], None]) -> Iterator[Path]:
    """A new folder that replaces this one when the block ends without an error; until then, this
    one is unchanged.

    `refuse_foreign` is called with the existing folder and raises `BadInput` if something in it
    would be lost. Raises `BadInput` and `StoreFailed`.
    """
    folder = folder.expanduser().absolute()
    if folder.is_symlink():
        raise BadInput(f"{folder} is a symbolic link; give the folder it points to instead")
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; give a folder")
    if folder.exists():
        refuse_foreign(folder)
    aside = folder.with_name(f".{folder.name[:100]}.{secrets.token_hex(6)}")
    draft = aside.with_name(f"{aside.name}.draft")
    try:
        folder.parent.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
        draft.mkdir(_FOLDER_MODE)
        try:
            yield draft
            _swap(draft, folder, aside, refuse_foreign)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise write_error(folder, error, "it is as it was") from error


def write_file(folder: Path, path: str, data: bytes) -> None:
    """Write a new file below a folder, readable by its owner only."""
    *folders, name = parts_of(path)
    for each in folders:
        folder = folder / each
        folder.mkdir(_FOLDER_MODE, exist_ok=True)
    with os.fdopen(
        os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE), "wb"
    ) as file:
        file.write(data)


def files_of_export(folder: Path, ours: re.Pattern[str]) -> list[Path]:
    """The contents of a folder. Raises `BadInput` for a link, or a file not named as `ours`."""
    paths = sorted(
        Path(where) / name
        for where, folders, files in os.walk(folder)
        for name in (*folders, *files)
    )
    for path in paths:
        if path.is_symlink() or (
            not path.is_dir() and not ours.fullmatch(path.relative_to(folder).as_posix())
        ):
            raise BadInput(
                f"{folder} has something else in it ({path.relative_to(folder)}); choose an "
                f"empty folder"
            )
    return paths


@dataclass(slots=True)
class Shards(Generic[_Item]):
    """A list split over files: what does not fit goes to `NAME-2.json`, and so on."""

    draft: Path
    path: str
    most_bytes: int
    render: Callable[[list[_Item]], bytes]
    count: int = 0
    _pieces: list[_Item] = field(default_factory=list)
    _bytes: int = 0
    _files: int = 0

    def add(self, piece: _Item, size: int) -> None:
        if self._pieces and self._bytes + size > self.most_bytes:
            self._write()
        self._pieces.append(piece)
        self._bytes += size
        self.count += 1

    def close(self) -> None:
        """Write the rest; an empty list is one file."""
        if self._pieces or not self._files:
            self._write()

    def _write(self) -> None:
        self._files += 1
        stem, _, suffix = self.path.rpartition(".")
        path = self.path if self._files == 1 else f"{stem}-{self._files}.{suffix}"
        write_file(self.draft, path, self.render(self._pieces))
        self._pieces, self._bytes = [], 0


def as_json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file of a folder and its bytes."""

    place: str
    """The folder's name and the path in it."""
    data: bytes
    changed: float
    """When it was last written."""

    def decode_json(self) -> Any:
        """Raises `BadInput`, which names the file."""
        try:
            return msgspec.json.decode(self.data.removeprefix(_BOM))
        except RecursionError as error:
            raise BadInput(f"{self.place} is nested too deeply to be read") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            why = (
                "it is empty"
                if not self.data.strip()
                else f"it is not JSON, or not all of it: {error}"
            )
            raise BadInput(f"{self.place} cannot be read: {why}") from error

    def decode_text(self) -> str:
        """Raises `BadInput`, which names the file."""
        try:
            return self.data.removeprefix(_BOM).decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise BadInput(f"{self.place} is not UTF-8 (byte {error.start})") from error


class FileTree(Root):
    """A folder to read that another program may have made."""

    def file(self, path: str) -> TreeFile:
        """Raises `BadInput`, which names the file."""
        try:
            content = self.read(path, _MOST_BYTES, hard_links=True)
        except NotTaken as error:
            raise BadInput(
                f"{shown(str(self.folder / path))} cannot be read: {error.why}"
            ) from error
        return TreeFile(f"{self.folder.name}/{path}", content.data, content.stat.mtime_ns / 1e9)

    def names(self, path: str, suffix: str = "", *, folders: bool = False) -> list[str]:
        """Sorted names of files or folders with this suffix in a folder; none if it does not exist.
        Raises `BadInput`."""
        entries = self._entries(path)
        return [
            name for name, is_folder in entries if is_folder is folders and name.endswith(suffix)
        ]

    def _entries(self, path: str) -> list[tuple[str, bool]]:
        folder = self.folder / path
        try:
            with os.scandir(folder) as entries:
                found = [entry for entry in entries if not entry.name.startswith(".")]
                for entry in found:
                    if entry.is_symlink() or not can_be_shown(entry.name):
                        raise BadInput(
                            f"{shown(entry.path)} is a symbolic link, or has a name that "
                            f"cannot be shown: remove it"
                        )
                return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in found)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadInput(f"{folder} cannot be read: {error.strerror}") from error


def _swap(draft: Path, folder: Path, aside: Path, refuse_foreign: Callable[[Path], None]) -> None:
    try:
        if folder.exists():
            folder.rename(aside)
            refuse_foreign(aside)  # again: now nothing can be added to it
        draft.rename(folder)
    except (OSError, HotsetError):
        if aside.exists():
            aside.rename(folder)
        raise
    sync_folder(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)


BATCH = 500  # memories a commit
_IMPORT = "import-"
_AGAINST = frozenset({Relation.SUPERSEDES, Relation.CONTRADICTS})


@dataclass(slots=True)
class MergeReport:
    """The result of an import."""

    run: str
    """The run that `undo` can undo."""
    new: int = 0
    changed: int = 0
    same: int = 0
    """Known already, now or in an earlier version."""
    links: int = 0
    waiting: int = 0
    """New ones that wait for confirmation."""
    kept: list[MemoryId] = field(default_factory=list)
    """Different here, and left unchanged."""


def merge_memories(
    store: Store,
    found: Iterable[MemoryRecord | MemoryLink],
    *,
    place: str,
    now: float,
    vouched: bool = False,
    progress: Progress = silent,
) -> MergeReport:
    """Import memories and links. Everything is read before anything is written. Idempotent.

    `place` names the origin; `vouched`: a person vouches for it. Raises what `found` and the store
    raise: `Conflict` if the same memories change meanwhile, `StoreFailed`. Repeating it is safe.
    """
    merge = _Merge(store, place, now, vouched, MergeReport(run_of(place, now)))
    with tempfile.TemporaryFile() as spool:  # unnamed: only this process can read it
        links: list[MemoryLink] = []
        total = 0
        for each in found:
            total += 1
            if isinstance(each, MemoryLink):
                links.append(each)
                continue
            memory = seal_memory(each)
            refuse_unfit(memory)
            spool.write(msgspec.json.encode(memory) + b"\n")
        spool.seek(0)
        memories = (memory_from_fields(msgspec.json.decode(line)) for line in spool)
        done = 0
        batches: Iterable[Sequence[MemoryRecord | MemoryLink]] = chain(
            batched(memories, BATCH), batched(links, BATCH)
        )
        for some in batches:
            merge.keep(some)
            done += len(some)
            progress("memories", done, total)
    return merge.report


def run_of(place: str, now: float) -> str:
    """The run name of an import."""
    return (
        _IMPORT
        + blake2b(f"{place}\0{now}".encode("utf-8", "surrogateescape"), digest_size=5).hexdigest()
    )


@dataclass(frozen=True, slots=True)
class _Merge:
    """One import: decides what is written."""

    store: Store
    place: str
    now: float
    vouched: bool
    report: MergeReport

    def keep(self, batch: Iterable[MemoryRecord | MemoryLink]) -> None:
        """One commit of what is new in these."""
        memories = [self.memory(each) for each in batch if isinstance(each, MemoryRecord)]
        links = [self.link(each) for each in batch if isinstance(each, MemoryLink)]
        new = Remembered(
            memories=tuple(each for each in memories if each is not None),
            links=tuple(each for each in links if each is not None),
        )
        if new.memories or new.links:
            self.store.keep(new).result()

    def memory(self, read: MemoryRecord) -> MemoryRecord | None:
        """The version to write, if any."""
        report = self.report
        wanted = _vouch(read) if self.vouched else _distrust(read)
        versions = self.store.memory_versions(read.id)
        if not versions:
            report.new += 1
            report.waiting += wanted.standing is Standing.CANDIDATE
            return self._version(wanted, 1)
        latest = versions[-1]
        if any(_has_words(version, read) for version in versions):
            if (
                self.vouched
                and _has_words(latest, read)
                and (confirmed := _raise_trust(latest, wanted)) != latest
            ):
                report.changed += 1
                return self._version(confirmed, latest.version + 1)
            report.same += 1
            return None
        # an unchanged import from the same place, or an edited export of this store that is vouched
        # for
        is_imported = latest.run.startswith(_IMPORT) and {self.place, *wanted.source.places} & set(
            latest.source.places
        )
        is_edited = self.vouched and (read.version, read.time) == (latest.version, latest.time)
        if latest.standing is Standing.FORGOTTEN or not (is_imported or is_edited):
            report.kept.append(read.id)
            return None
        report.changed += 1
        return self._version(wanted, latest.version + 1)

    def link(self, read: MemoryLink) -> MemoryLink | None:
        """The link to write, if any."""
        ends = list(known_memories(self.store, (read.of, read.to)))
        if len(ends) < 2 or any(end.standing is Standing.FORGOTTEN for end in ends):
            return None
        if (
            not self.vouched
            and read.relation in _AGAINST
            and any(end.source.by != "import" for end in ends)
        ):
            return None  # a file alone cannot replace what is known here
        known = {(link.of, link.to, link.relation) for link in self.store.memory_links(read.of)}
        if (read.of, read.to, read.relation) in known:
            return None
        self.report.links += 1
        return replace(read, time=self.now, run=self.report.run)

    def _version(self, memory: MemoryRecord, version: int) -> MemoryRecord:
        places = dict.fromkeys((*memory.source.places, self.place))
        return replace(
            memory,
            source=replace(memory.source, places=tuple(places)),
            version=version,
            time=self.now,
            run=self.report.run,
            why=f"imported from {self.place}",
        )


def _distrust(memory: MemoryRecord) -> MemoryRecord:
    """As foreign text, whatever it claims."""
    waits = memory.standing is Standing.ACTIVE and memory.kind in ADVICE_KINDS
    return replace(
        memory,
        source=replace(memory.source, by="import", session=None, pages=()),
        trust=Trust.OUTSIDE,
        standing=Standing.CANDIDATE if waits else memory.standing,
        pinned=False,
    )


def _vouch(memory: MemoryRecord) -> MemoryRecord:
    """hotset's own memories as they are; foreign ones with the trust of the person who vouches for
    them."""
    if memory.source.by != "import":
        return memory
    waits = memory.standing is Standing.CANDIDATE
    return replace(
        memory, trust=Trust.PERSON, standing=Standing.ACTIVE if waits else memory.standing
    )


def _has_words(known: MemoryRecord, read: MemoryRecord) -> bool:
    """True if the words are the same, whatever their trust, source and creation time."""
    beside = {
        name: getattr(known, name) for name in ("created", "source", "trust", "standing", "pinned")
    }
    return is_same(known, replace(read, **beside))


def _raise_trust(known: MemoryRecord, wanted: MemoryRecord) -> MemoryRecord:
    """With a person's trust. Forgotten or replaced memories stay so."""
    if known.standing not in (Standing.ACTIVE, Standing.CANDIDATE):
        return known
    trust = wanted.trust if known.trust is Trust.OUTSIDE else known.trust
    standing = wanted.standing if known.standing is Standing.CANDIDATE else known.standing
    return replace(known, trust=trust, standing=standing)
