"""What is known of every tool, whether or not its source runs: pinned, looked at, and only ready as
a person accepted it. And the sync that brings the catalogue up to its sources, and the index up to
the catalogue; only what changed costs anything.

A source that a person chose is believed once: its tools are pinned as they are first listed. A
server that describes a tool differently later loses that tool until a person has looked at the
difference; new tools of a known server are pinned and reported. A person's own skills, the tools
that agents wrote here, and functions of this program are followed as they change: a program that
can change them can change us. A source in the project's folder does not run before a person says
so, and then as it was when they did.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from hotset.config import TOOLS, Config
from hotset.errors import HotsetError, NotFound, ToolRefused
from hotset.files.lru import Lru
from hotset.files.private_folder import private_folder
from hotset.files.root import Stat
from hotset.files.scope import PROCESS
from hotset.nouns.tool import OriginKind, Tool, ToolOrigin
from hotset.sources.tools.approval import (
    CatalogueEntry,
    KnownTool,
    ToolRules,
    ToolState,
    accepted,
    is_text,
    known,
    listed_again,
    pinned,
    storable,
)
from hotset.sources.tools.found.created import read_created
from hotset.sources.tools.found.folders import ToolFault, listing, stat_of
from hotset.sources.tools.found.servers import read_servers
from hotset.sources.tools.found.skills import (
    CACHE_FILE,
    Skill,
    SkillCache,
    find_skills,
    skill_folders,
)
from hotset.sources.tools.running.mcp_client import ToolListing
from hotset.sources.tools.running.server_pool import ADVICE
from hotset.sources.tools.tool_files import (
    NameIndex,
    OtherNames,
    SourceFile,
    SourceLabel,
    SourceRow,
    ToolFiles,
    UndecodedFile,
)
from hotset.sources.tools.tool_names import HASH, LONGEST, full_name, short_hash, slug
from hotset.store.port import Store
from hotset.text.characters import visible
from hotset.text.suspicion import OUR_TOOLS
from hotset.typed import json_decoder

if TYPE_CHECKING:
    from hotset.sources.tools.tool_search import ToolSearch

FOLDER = "catalogue"
_MOST_SIMILAR = 3  # similar names that are offered for an unknown one
_KEPT_FILES = 16  # read lately, and kept as bytes: a question's answers come from a few sources

MOST_TOOLS = 20_000
"""Tools that one source may list: a longer list is a mistake or an attack."""
LARGEST = 1 << 20
"""Characters of all texts of a tool: no model could read more."""

_FOLLOWED = frozenset({OriginKind.SKILL, OriginKind.CREATED, OriginKind.CALLABLE})
"""What can change these can change us: a person's own files, what was written here after
consent, the program itself."""

_AT_ONCE = 4  # servers that are asked for their lists side by side: more would only share two cores
_AGAIN_SECONDS = 300.0  # before a server that gave no list is asked again

List = Callable[[ToolOrigin], ToolListing]
"""Asks a server for its tools, starting it where need be."""

CREATED = "created"
"""The folder of what agents wrote, in the folder of a project's tools."""

_RACY_NS = 2_000_000_000  # the coarsest clock of a file system in use ticks every two seconds
_REST_SECONDS = 1.0  # between two looks at the files: a model's next call comes later than that


_Made = TypeVar("_Made")


class Catalogue:
    """The tools of one project. Use it from any thread; any number of processes may have one over
    the same folder."""

    def __init__(
        self,
        folder: Path,
        store: Callable[[], Store],
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`folder` is that of the project's tools, and `store` has the rules of the project;
        `allow` and `deny` are the patterns of the person's own settings."""
        folder = private_folder(folder)
        self._files = ToolFiles(folder / FOLDER)
        self._rules = ToolRules(store, allow=allow, deny=deny, old_file=folder / "rules.json")
        self._names = NameIndex(self._files)
        self._read: Lru[str, tuple[Stat, UndecodedFile]] = Lru("tool files", count=_KEPT_FILES)
        self._lock = threading.RLock()
        self._clock = clock

    # Lists of sources

    def put(
        self, source: ToolOrigin, tools: Sequence[Tool], *, instructions: str = ""
    ) -> ListChange:
        """Stores a source's list of tools. The same list again changes nothing and writes nothing.

        Raises `StoreFailed` where it cannot be kept.
        """
        if not is_text(source.name):
            return ListChange(
                refused=(
                    (
                        f"a {source.origin} is left out: its name {visible(source.name[:64])} is "
                        f"no text"
                    ),
                )
            )
        file = self._files.file_of(source.name)
        with self._changing():
            before = self._stored(file)
            if before is not None and before.origin is not source.origin:
                if not before.away:
                    return ListChange(
                        refused=(
                            (
                                f"a {before.origin} is called {source.name} already: this "
                                f"{source.origin} is left out"
                            ),
                        )
                    )
                before = None
            after, change = apply_list(
                before,
                source,
                tools,
                OtherNames(self._names, file),
                instructions=instructions,
                now=self._clock(),
            )
            if before is not None and after == msgspec.structs.replace(
                before, listed_at=after.listed_at
            ):
                return change
            self._files.write(file, after)
            self._names.follow()
            new = (*change.added, *change.changed)
            return replace(
                change, flagged=tuple(name for name in new if self._is_flagged(after, name, file))
            )

    def drop(self, source_name: str) -> None:
        """Marks a source as not configured any more. Its approvals are kept in case it comes
        back."""
        file = self._files.file_of(source_name)
        with self._changing():
            record = self._stored(file)
            if record is not None and not record.away:
                self._files.write(file, msgspec.structs.replace(record, away=True))

    # Queries

    def get(self, name: str) -> KnownTool | None:
        """A tool by its full name."""
        with self._lock:
            self._glance()
            file = self._names.file_of(name)
            return self._known(file, name) if file else None

    def get_own(self, source_name: str, own_name: str) -> KnownTool | None:
        """A tool by its source's name and its own name in that source."""
        with self._lock:
            self._glance()
            row = self._names.row(self._files.file_of(source_name))
            name = next((full for full, own in row.names if own == own_name), "") if row else ""
            return self.get(name) if name else None

    def resolve(self, name: str) -> KnownTool:
        """A tool by its full name; by its own, or in another spelling of case and separators, where
        that can mean one tool only.

        Raises `NotFound`, with the names that come nearest. Never guesses between two.
        """
        if (found := self.get(name)) is not None:
            return found
        with self._lock:
            meant = (
                ()
                if name in OUR_TOOLS
                else self._names.names_of_own(name) or self._names.spelt_otherwise(name)
            )
            usable = [
                each
                for each in map(self.get, meant[:_KEPT_FILES])
                if each and each.state not in (ToolState.GONE, ToolState.DENIED)
            ]
            ready = [each for each in usable if each.state is ToolState.READY]
            if len(meant) <= _KEPT_FILES and (len(ready) == 1 or len(usable) == 1):
                return (ready or usable)[0]
            near = [each.tool.name for each in usable[:_MOST_SIMILAR]] or self._near(name)
        raise NotFound(_not_found(name, near, several=len(usable) > 1))

    def tools(self) -> Iterator[KnownTool]:
        """All tools, record by record, without those of removed sources."""
        with self._lock:
            self._rules.follow()
            self._names.follow()
            files = [file for file, row in self._names.rows() if not row.away]
        for file in files:
            with self._lock:
                record = self._stored(file)
                found = (
                    [self._judged(record, entry, file) for entry in record.tools.values()]
                    if record
                    else []
                )
            yield from found

    def version(self) -> str:
        """A hash that differs whenever anything changed, rules included."""
        with self._lock:
            stamps = self._names.follow()
        return sha256(repr((sorted(stamps.items()), self._rules.version())).encode()).hexdigest()[
            :32
        ]

    def sources(self) -> Sequence[SourceRow]:
        """The configured sources, by name."""
        with self._lock:
            self._glance()
            rows = [row for _, row in self._names.rows() if not row.away]
        return tuple(sorted(rows, key=lambda each: each.name))

    def instructions(self, source_name: str) -> str:
        """A server's instructions for models, as they were accepted; empty while a person has to
        look at them."""
        with self._lock:
            self._rules.follow()
            label = self._undecoded(self._files.file_of(source_name))
            if (
                label is None
                or label.words is None
                or label.away
                or not label.may_run
                or self._why_denied(source_name)
            ):
                return ""
        words = known(label.words, source_name, label.origin)
        is_held = words.state is ToolState.CHANGED and words.new is not None
        return words.tool.description if words.state is ToolState.READY or is_held else ""

    def troubles(self) -> Sequence[str]:
        """What is wrong with the catalogue's own files, in sentences."""
        with self._lock:
            self._rules.follow()
            return [
                *self._files.troubles(),
                *([self._rules.trouble] if self._rules.trouble else []),
            ]

    # Decisions of a person

    def approve(self, name: str, seen: str = "", *, follow: bool = False) -> Sequence[str]:
        """Approves a tool as it is now, or a source with all of its tools. Returns the names of the
        approved tools.

        `seen` is the `KnownTool.digest` of what the person looked at: a tool that has changed since
        is not approved, and a source of the project's folder may run with the files that they saw.
        `follow` lets it run whatever becomes of its files.
        """
        with self._changing():
            source_file = self._files.file_of(name)
            file = source_file if self._names.row(source_file) else self._names.file_of(name)
            record = self._stored(file) if file else None
            if file is None or record is None:
                raise NotFound(_not_found(name, self._near(name)))
            if file == source_file:
                after, names = self._approved_whole(record, file, seen, follow=follow)
            else:
                after, names = self._approved_one(record, file, name, seen), [name]
            if after != record:
                self._files.write(file, after)
        return names

    def deny(self, name: str) -> None:
        """Denies a tool, a source or a pattern in this project."""
        with self._changing():
            self._rules.deny(name, self._clock())

    def allow(self, name: str) -> None:
        """Allows what was denied, here or in the person's settings."""
        with self._changing():
            self._rules.allow(name, self._clock())

    def may_run(self, source: ToolOrigin) -> None:
        """Raises `ToolRefused` where no person allowed the source to run as it is now."""
        with self._lock:
            self._glance()
            denied, row = (
                self._why_denied(source.name),
                self._names.row(self._files.file_of(source.name)),
            )
        if denied:
            raise ToolRefused(f"{source.name} does not run: {denied}")
        if source.trusted:
            return
        say = f"a person can approve it: `hotset tools approve {source.name}`"
        if row is None or not row.approved:
            raise ToolRefused(
                f"{source.name} lies in the project's folder and is not approved; {say}"
            )
        if row.approved != source.stamp and not row.follow:
            raise ToolRefused(f"the files of {source.name} changed since they were approved; {say}")

    def was_approved(self, source_name: str) -> bool:
        """True if a person once allowed a source of the project's folder to run."""
        with self._lock:
            self._glance()
            row = self._names.row(self._files.file_of(source_name))
        return row is not None and bool(row.approved)

    # Inside

    def _glance(self) -> None:
        self._rules.follow()
        self._names.glance()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._lock, self._files.alone():
            self._rules.follow()
            self._names.follow()
            yield

    def _stored(self, file: str) -> SourceFile | None:
        return self._files.read(file, _STORED)

    def _undecoded(self, file: str) -> UndecodedFile | None:
        """As `_stored`, from memory where it is there; tools are decoded one by one."""
        stamp, read = self._files.stamp(file), self._read.get(file)
        if stamp is None or read is None or read[0] != stamp:
            self._read.pop(file)
            found = self._files.read(file, _UNREAD)
            if found is None or stamp is None:
                return None
            read = stamp, found
            self._read.put(file, read)
        return read[1]

    def _known(self, file: str, name: str) -> KnownTool | None:
        source = self._undecoded(file)
        raw = source.tools.get(name) if source else None
        if source is None or raw is None:
            return None
        try:
            return self._judged(source, _ENTRY.decode(raw), file)
        except (msgspec.MsgspecError, ValueError):  # a file that is JSON and not a source's
            self._stored(file)
            return None

    def _judged(self, label: SourceLabel, entry: CatalogueEntry, file: str) -> KnownTool:
        """A tool with its state, as it follows from itself, its source, the others and the
        rules."""
        found = self._by_itself(label, entry, file)
        if denied := self._why_denied(label.name, entry.name):
            return replace(found, state=ToolState.DENIED, why=denied)
        if label.away:
            return replace(found, state=ToolState.GONE, why=f"{label.name} is no longer configured")
        if not label.may_run and found.state is not ToolState.GONE:
            look = f"a person can approve it: `hotset tools approve {label.name}`"
            changed = (
                "its files changed since they were approved"
                if label.approved
                else "is not approved"
            )
            why = f"{label.name} lies in the project's folder and {changed}; {look}"
            return replace(
                found,
                state=ToolState.UNAPPROVED,
                why=why,
                digest=label.stamp,
                is_shown_unapproved=_is_shown_unapproved(found),
            )
        return found

    def _by_itself(self, label: SourceLabel, entry: CatalogueEntry, file: str) -> KnownTool:
        shadows = [
            each for each in (entry.waits or entry.pin).mentions if self._is_of_others(each, file)
        ]
        return known(entry, label.name, label.origin, shadows=shadows)

    def _is_of_others(self, name: str, file: str) -> bool:
        """True for a tool of another source or of hotset that this source does not have."""
        others = OtherNames(self._names, file)
        ours = name in OUR_TOOLS and file not in self._names.files_of_own(name)
        return ours or others.have_own(name) or others.have(name)

    def _is_flagged(self, record: SourceFile, name: str, file: str) -> bool:
        return self._by_itself(record, record.tools[name], file).state is ToolState.FLAGGED

    def _near(self, name: str) -> list[str]:
        """Names like this one that can be used."""
        found = map(self.get, self._names.near(name, _KEPT_FILES))
        return [each.tool.name for each in found if each and each.state is ToolState.READY][
            :_MOST_SIMILAR
        ]

    def _why_denied(self, source: str, name: str = "") -> str:
        return self._rules.why_denied(name or source, source)

    def _approved_one(self, record: SourceFile, file: str, name: str, seen: str) -> SourceFile:
        entry = record.tools[name]
        if not record.may_run:
            say = f"`hotset tools approve {record.name}` is about all of it"
            raise ToolRefused(
                f"{name} is part of {record.name}, which lies in the project's folder and runs "
                f"as one; {say}"
            )
        if seen and seen != self._by_itself(record, entry, file).digest:
            raise ToolRefused(
                f"{name} changed again since you looked at it; look once more with `hotset "
                f"tools approve {name}`"
            )
        return msgspec.structs.replace(record, tools={**record.tools, name: accepted(entry)})

    def _approved_whole(
        self, record: SourceFile, file: str, seen: str, *, follow: bool
    ) -> tuple[SourceFile, list[str]]:
        """Approve everything that waits in a source. A source in the project's folder may then run
        with the files that were seen."""
        waiting = {ToolState.CHANGED, ToolState.FLAGGED}
        states = {
            name: self._by_itself(record, entry, file).state for name, entry in record.tools.items()
        }
        tools = {
            name: accepted(entry) if states[name] in waiting else entry
            for name, entry in record.tools.items()
        }
        words = accepted(record.words) if record.words else None
        after = msgspec.structs.replace(record, tools=tools, words=words)
        if record.trusted:
            return after, [name for name, state in states.items() if state in waiting]
        if not (seen or record.stamp):
            raise ToolRefused(
                f"what {record.name} runs cannot be told from its files, so nothing can be approved"
            )
        here = [name for name, state in states.items() if state is not ToolState.GONE]
        return msgspec.structs.replace(after, approved=seen or record.stamp, follow=follow), here


def _is_shown_unapproved(found: KnownTool) -> bool:
    """True if a skill of the project may be shown before it is approved. Not its functions, and
    nothing with warnings."""
    return (
        found.tool.origin is OriginKind.SKILL
        and not found.tool.own_name
        and found.state is ToolState.READY
        and not found.warnings
    )


def _not_found(name: str, near: Sequence[str], *, several: bool = False) -> str:
    unknown = f"no tool {visible(name[:64])}"
    if several:
        return f"{visible(name[:64])} could be {', '.join(near)}: use a full name"
    return (
        f"{unknown}; did you mean {', '.join(near)}?"
        if near
        else f"{unknown}; try find_tools(query)"
    )


_STORED = json_decoder(SourceFile)
_UNREAD = json_decoder(UndecodedFile)
_ENTRY = json_decoder(CatalogueEntry)


@dataclass(frozen=True, slots=True)
class ListChange:
    """What a list changed, by the names of tools."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    flagged: tuple[str, ...] = ()
    """Of those that were added or changed."""
    refused: tuple[str, ...] = ()
    """Sentences about what of the list was not taken."""

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.flagged or self.refused)


def apply_list(
    before: SourceFile | None,
    source: ToolOrigin,
    tools: Sequence[Tool],
    others: OtherNames,
    *,
    instructions: str,
    now: float,
) -> tuple[SourceFile, ListChange]:
    record = before or SourceFile(source.name, source.origin, head=_head(source, others))
    entries = dict(record.tools)
    by_own = {entry.pin.own_name: name for name, entry in entries.items()}
    follow = source.origin in _FOLLOWED
    taken, refused = _taken(tools)
    added, changed = [], []
    for tool in taken:
        if (name := by_own.get(tool.own_name)) is None:
            name = _name(tool, record, entries, others)
            entries[name] = CatalogueEntry(name, pinned(tool, _odd(tool, name, others)))
            added.append(name)
        else:
            old = entries[name]
            entries[name] = listed_again(
                old, tool, partial(_odd, tool, name, others), follow=follow
            )
            if (entries[name].pin, entries[name].waits) != (old.pin, old.waits):
                changed.append(name)
    here = {tool.own_name for tool in taken}
    removed = [
        name for name, entry in entries.items() if entry.pin.own_name not in here and not entry.gone
    ]
    entries |= {name: msgspec.structs.replace(entries[name], gone=True) for name in removed}
    label = {"stamp": source.stamp, "trusted": source.trusted, "listed_at": now, "away": False}
    words = _words(instructions, record.words, follow=follow)
    after = msgspec.structs.replace(record, **label, words=words, tools=entries)
    return after, ListChange(tuple(added), tuple(changed), tuple(removed), refused=tuple(refused))


def _taken(tools: Sequence[Tool]) -> tuple[list[Tool], list[str]]:
    """What of a list can be kept, each of its names once; and sentences about the rest."""
    taken: dict[str, Tool] = {}
    refused = []
    for tool in map(storable, tools[:MOST_TOOLS]):
        size = (
            len(tool.own_name)
            + len(tool.title)
            + len(tool.description)
            + len(tool.parameters)
            + len(tool.annotations)
        )
        if size > LARGEST:
            refused.append(
                f"{visible(tool.own_name[:64])} is left out: it says {size:,} characters of itself"
            )
        elif taken.setdefault(tool.own_name, tool) != tool:
            refused.append(f"{visible(tool.own_name[:64])} is listed twice: the first one is taken")
    if len(tools) > MOST_TOOLS:
        refused.append(
            f"{len(tools) - MOST_TOOLS:,} tools are left out: a source may list {MOST_TOOLS:,}"
        )
    return list(taken.values()), refused


def _head(source: ToolOrigin, others: OtherNames) -> str:
    """The prefix of its tools' names: a second source of the same slug gets a hash."""
    head = slug(source.name)
    return f"{head[:32].rstrip('_-')}-{short_hash(source.name)}" if others.have_head(head) else head


def _name(
    tool: Tool, record: SourceFile, entries: Mapping[str, CatalogueEntry], others: OtherNames
) -> str:
    """As the source's finder named it, unless that is taken."""
    name = tool.name if record.head == slug(record.name) else full_name(record.head, tool.own_name)
    if name not in entries and name not in OUR_TOOLS and not others.have(name):
        return name
    return (
        f"{name[: LONGEST - HASH - 1].rstrip('_')}_{short_hash(record.name + '/' + tool.own_name)}"
    )


def _odd(tool: Tool, name: str, others: OtherNames) -> list[str]:
    """Warnings about its name compared with other sources' names."""
    odd = []
    if full := others.alike(name):
        odd.append(f"its name {name} looks like {full}, a tool of another source")
    if own := others.alike_own(tool.own_name):
        odd.append(
            f"its name {tool.own_name[:64]!r} looks like {own[:64]!r}, which another source has"
        )
    if tool.name != name and others.have(tool.name):
        odd.append(f"it would have the name of {tool.name}, a tool of another source")
    if tool.name in OUR_TOOLS:
        odd.append(f"it would have the name of hotset's own {tool.name}")
    return odd


def _words(text: str, before: CatalogueEntry | None, *, follow: bool) -> CatalogueEntry | None:
    """A server's instructions, kept as if they were the description of a tool without a name."""
    if before is None:
        return CatalogueEntry("", pinned(_speaking(text))) if text else None
    if not text:
        return msgspec.structs.replace(before, gone=True)
    return listed_again(before, _speaking(text), list, follow=follow)


def _speaking(text: str) -> Tool:
    return Tool("", "", OriginKind.SERVER, "", text[:LARGEST], b"{}")


@dataclass(frozen=True, slots=True)
class _Failed:
    stamp: str
    at: float
    why: str


@dataclass(slots=True)
class ToolSync:
    """Brings the catalogue up to its sources. Safe to use from several threads, one at a time."""

    catalogue: Catalogue
    list_tools: List
    monotonic: Callable[[], float] = time.monotonic
    _failed: dict[str, _Failed] = field(default_factory=dict)
    """Servers that gave no list."""
    _refused: dict[str, Sequence[str]] = field(default_factory=dict)
    """What was not taken of a source's list."""
    _asking: dict[str, tuple[Future[None], float]] = field(default_factory=dict)
    """Servers that are being asked for their tools, and since when."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put_readable(self, found: ToolSources, functions: Sequence[Tool]) -> None:
        """Puts into the catalogue what can be read without running anything. `functions` are those
        of this program, and our own."""
        known = {record.name: record for record in self.catalogue.sources()}
        here: list[tuple[ToolOrigin, Sequence[Tool]]] = [
            (skill.source, skill.tools) for skill in found.skills.values()
        ]
        here += [(found.created, found.written)] if found.created else []
        for name in sorted({tool.source for tool in functions}):
            here.append(
                (
                    ToolOrigin(name, OriginKind.CALLABLE),
                    [tool for tool in functions if tool.source == name],
                )
            )
        with self._lock:
            for source, tools in here:
                record = known.get(source.name)
                if record is None or record.stamp != source.stamp or not source.stamp:
                    self._put(source, tools)
            for name in self._failed.keys() - found.servers.keys():
                del self._failed[name]
            wanted = {source.name for source, _ in here} | found.servers.keys()
            for name, record in known.items():
                if (
                    name not in wanted and record.origin is not OriginKind.CALLABLE
                ):  # those are another program's to drop
                    self.catalogue.drop(name)

    def unlisted(self, found: ToolSources) -> list[ToolOrigin]:
        """Servers whose tools are not known, or were listed under another launch; not those that
        failed a moment ago."""
        known = {record.name: record.stamp for record in self.catalogue.sources()}
        now = self.monotonic()
        return [
            source
            for source in found.servers.values()
            if known.get(source.name) != source.stamp and not self._failed_lately(source, now)
        ]

    def list_all(
        self,
        found: ToolSources,
        changed: Collection[str],
        seconds: float,
        listed: Callable[[str], None],
    ) -> None:
        """Lists the servers whose tools are unknown, and those that `changed`, a few at a time.
        Callers that come meanwhile share the listing.

        Returns at the latest so many `seconds` after the last one was asked: what is not done by
        then goes on in the background.
        """
        pool = PROCESS.child("listing").executor(_AT_ONCE, "hotset-list")
        with self._lock:  # another thread may have asked or listed them
            unlisted = {source.name for source in self.unlisted(found)}
            sources = [
                source
                for name, source in found.servers.items()
                if name in changed or name in unlisted
            ]
            for source in sources:
                if source.name not in self._asking:
                    self._asking[source.name] = (
                        pool.submit(self._list, source, listed),
                        self.monotonic(),
                    )
            asked = [self._asking[source.name] for source in sources]
        if asked:
            latest = max(since for _, since in asked)
            wait([done for done, _ in asked], timeout=max(0.0, latest + seconds - self.monotonic()))
        pool.shutdown(wait=False)

    def silent(self) -> list[str]:
        """Servers whose tools are unknown: they gave no list, or not yet."""
        return sorted({*self._failed, *self._asking})

    def troubles(self) -> list[str]:
        """Servers that gave no list, and what was not taken of other lists."""
        found = [
            f"{name} gave no list of its tools: {failed.why.removesuffix(ADVICE)}"
            for name, failed in sorted(self._failed.items())
        ]
        found += [f"{name} has not told its tools yet" for name in sorted(self._asking)]
        return [*found, *(each for refused in self._refused.values() for each in refused)]

    def index(self, search: ToolSearch) -> None:
        """Indexes every tool that can be used, and skills that only wait for a person's
        approval."""
        with self._lock:
            tools = (
                known.tool
                for known in self.catalogue.tools()
                if known.state is ToolState.READY or known.is_shown_unapproved
            )
            search.follow(self.catalogue.version(), tools)

    def _put(self, source: ToolOrigin, tools: Sequence[Tool], instructions: str = "") -> None:
        self._refused[source.name] = self.catalogue.put(
            source, tools, instructions=instructions
        ).refused

    def _list(self, source: ToolOrigin, done: Callable[[str], None]) -> None:
        try:
            listed = self.list_tools(source)
            with self._lock:
                self._put(source, listed.tools, listed.instructions)
                self._failed.pop(source.name, None)
        except HotsetError as error:
            self._failed[source.name] = _Failed(source.stamp, self.monotonic(), str(error))
        finally:
            with self._lock:
                del self._asking[source.name]
            done(source.name)

    def _failed_lately(self, source: ToolOrigin, now: float) -> bool:
        failed = self._failed.get(source.name)
        return (
            failed is not None and failed.stamp == source.stamp and now - failed.at < _AGAIN_SECONDS
        )


@dataclass(frozen=True, slots=True)
class ToolSources:
    servers: Mapping[str, ToolOrigin] = field(default_factory=dict)
    skills: Mapping[str, Skill] = field(default_factory=dict)
    created: ToolOrigin | None = None
    """None while no agent has written any."""
    written: tuple[Tool, ...] = ()
    """What agents wrote."""
    troubles: tuple[str, ...] = ()
    faults: tuple[ToolFault, ...] = ()

    @property
    def sources(self) -> Mapping[str, ToolOrigin]:
        found = {**self.servers, **{name: skill.source for name, skill in self.skills.items()}}
        return {**found, self.created.name: self.created} if self.created else found


class _Remembered(Generic[_Made]):
    """A value made of files, made again when one of them has another mtime, size or inode, or one
    too recent to trust."""

    def __init__(self, make: Callable[[], _Made], clock_ns: Callable[[], int]) -> None:
        self._make = make
        self._clock_ns = clock_ns
        self._known: tuple[Mapping[str, Stat | None], _Made] | None = None

    def get(self, stats: Mapping[str, Stat | None]) -> _Made:
        trusted = self._clock_ns() - _RACY_NS
        is_racy = any(
            at is not None and max(at.mtime_ns, at.ctime_ns) > trusted for at in stats.values()
        )
        if self._known is None or self._known[0] != stats or is_racy:
            self._known = stats, self._make()
        return self._known[1]


class SourceScanner:
    """Finds servers, skills and created tools in files; reads only those that changed. Safe to use
    from several threads."""

    def __init__(
        self,
        config: Config,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._folders = skill_folders(config.project, config.user, config.tooling.skills)
        self._cache = SkillCache(config.folder / TOOLS / CACHE_FILE)
        self._created = config.folder / TOOLS / CREATED
        self._read_created = _Remembered(partial(read_created, self._created), clock_ns)
        self._servers = {
            file: _Remembered(partial(read_servers, file, config.environ), clock_ns)
            for file in config.servers
        }
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._looked = float("-inf")
        self._found = ToolSources()

    def now(self, *, at_once: bool = False) -> ToolSources:
        """The sources, the same object while nothing changed. The files are looked at once a second
        at most, or `at_once`."""
        with self._lock:
            if at_once or self._monotonic() - self._looked >= _REST_SECONDS:
                found = self._look()
                self._found = self._found if found == self._found else found
                self._looked = self._monotonic()
            return self._found

    def _look(self) -> ToolSources:
        servers: dict[str, ToolOrigin] = {}
        troubles: list[str] = []
        for file, remembered in self._servers.items():
            read = remembered.get({"": stat_of(file)})
            servers |= {source.name: source for source in read.sources}
            troubles += read.troubles
        found = find_skills(self._folders, self._cache)
        skills = {skill.source.name: skill for skill in found.skills}
        for name in servers.keys() & skills.keys():
            troubles.append(f"skill {name} is left out: a server has the same name")
            del skills[name]
        there = listing(self._created, deepest=0)
        created = self._read_created.get(
            {**there.files, **dict.fromkeys((*there.links, *there.special))}
        )
        return ToolSources(
            servers,
            skills,
            created.source,
            created.tools,
            (*troubles, *found.troubles, *created.troubles),
            (*found.faults, *created.faults),
        )
