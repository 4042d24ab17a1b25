"""What is known of every tool, whether or not its source runs: pinned, looked at, and only ready as a person accepted it.

A source that a person chose is believed once: its tools are pinned as they are first listed. A server that describes a tool
differently later loses that tool until a person has looked at the difference; new tools of a known server are pinned and told.
A person's own skills, the tools that agents wrote here, and functions of this program are followed as they change: whoever could
change them could change us. A source in the project's folder does not run before a person says so, and then as it was when they
did.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import msgspec

from hotset.errors import NotFound, ToolRefused
from hotset.files.folder import private_folder
from hotset.files.lru import Lru
from hotset.nouns.tool import Origin, Source, Tool
from hotset.sources.tools.listing import Change, listed
from hotset.sources.tools.names import Names, Others, Row
from hotset.sources.tools.pinning import Entry, Known, State, accepted, diff, is_text, known, readable
from hotset.sources.tools.rules import Rules
from hotset.sources.tools.shelves import Label, Shelves, Stamp, Stored, Unread
from hotset.sources.tools.suspicion import OUR_TOOLS
from hotset.text.characters import visible

__all__ = ["Catalogue", "Change", "Known", "Shelf", "State", "diff", "readable"]

FOLDER = "catalogue"
_MOST_TOLD = 3  # names that are offered for one that nobody has
_KEPT_SHELVES = 16  # read lately, and kept as bytes: a question's answers come from a few sources


@dataclass(frozen=True, slots=True)
class Shelf:
    """A source, as the catalogue knows it."""

    name: str
    origin: Origin
    tools: int
    listed_at: float
    """When its list last changed."""
    stamp: str
    pending: int
    """Tools for which a person's word is needed."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A shelf as it was read, and the stamp of its file then."""

    stamp: Stamp
    label: Label
    tools: dict[str, msgspec.Raw]


class Catalogue:
    """Of one project. Use it from any thread; any number of processes may have one over the same folder."""

    def __init__(
        self, folder: Path, *, allow: Sequence[str] = (), deny: Sequence[str] = (), clock: Callable[[], float] = time.time
    ) -> None:
        """`folder` is that of the project's tools; `allow` and `deny` are the patterns of the person's own settings."""
        folder = private_folder(folder)
        self._shelves = Shelves(folder / FOLDER)
        self._rules = Rules(folder, allow, deny)
        self._names = Names(self._shelves)
        self._read: Lru[str, _Read] = Lru(count=_KEPT_SHELVES)
        self._lock = threading.RLock()
        self._clock = clock

    # What sources say

    def put(self, source: Source, tools: Sequence[Tool], *, instructions: str = "") -> Change:
        """Takes a source's list as it is now. The same list again changes nothing and writes nothing.

        Raises `StoreFailed` where it cannot be kept.
        """
        if not is_text(source.name):
            return Change(refused=(f"a {source.origin} is left out: its name {visible(source.name[:64])} is no text",))
        file = self._shelves.file_of(source.name)
        with self._changing():
            before = self._stored(file)
            if before is not None and before.origin is not source.origin:
                if not before.away:
                    return Change(
                        refused=(f"a {before.origin} is called {source.name} already: this {source.origin} is left out",)
                    )
                before = None
            after, change = listed(before, source, tools, Others(self._names, file), instructions=instructions, now=self._clock())
            if before is not None and after == msgspec.structs.replace(before, listed_at=after.listed_at):
                return change
            self._shelves.write(file, after)
            self._names.follow()
            new = (*change.added, *change.changed)
            return replace(change, flagged=tuple(name for name in new if self._is_flagged(after, name, file)))

    def drop(self, source_name: str) -> None:
        """A source that is not configured any more. What was accepted of it is kept: coming back makes nothing new."""
        file = self._shelves.file_of(source_name)
        with self._changing():
            shelf = self._stored(file)
            if shelf is not None and not shelf.away:
                self._shelves.write(file, msgspec.structs.replace(shelf, away=True))

    # What is asked

    def get(self, name: str) -> Known | None:
        """By its full name."""
        with self._lock:
            self._names.glance()
            file = self._names.file_of(name)
            return self._known(file, name) if file else None

    def get_own(self, source_name: str, own_name: str) -> Known | None:
        """By the names that its source has, and has for it."""
        with self._lock:
            self._names.glance()
            row = self._names.row(self._shelves.file_of(source_name))
            name = next((full for full, own in row.names if own == own_name), "") if row else ""
            return self.get(name) if name else None

    def resolve(self, name: str) -> Known:
        """By its full name; by its own, or in another spelling of case and separators, where that can mean one tool only.

        Raises `NotFound`, with the names that come nearest. Never guesses between two.
        """
        if (found := self.get(name)) is not None:
            return found
        with self._lock:
            meant = () if name in OUR_TOOLS else self._names.names_of_own(name) or self._names.spelt_otherwise(name)
            usable = [
                each for each in map(self.get, meant[:_KEPT_SHELVES]) if each and each.state not in (State.GONE, State.DENIED)
            ]
            ready = [each for each in usable if each.state is State.READY]
            if len(meant) <= _KEPT_SHELVES and (len(ready) == 1 or len(usable) == 1):
                return (ready or usable)[0]
            near = [each.tool.name for each in usable[:_MOST_TOLD]] or self._near(name)
        raise NotFound(_not_found(name, near, several=len(usable) > 1))

    def tools(self) -> Iterator[Known]:
        """All of them, shelf by shelf; those of sources that are away are left out."""
        with self._lock:
            self._names.follow()
            files = [file for file, row in self._names.rows() if not row.away]
        for file in files:
            with self._lock:
                shelf = self._stored(file)
                found = [self._judged(shelf, entry, file) for entry in shelf.tools.values()] if shelf else []
            yield from found

    def version(self) -> str:
        """Another one whenever anything changed, rules included."""
        with self._lock:
            stamps = self._names.follow()
        return sha256(repr((sorted(stamps.items()), self._rules.version())).encode()).hexdigest()[:32]

    def sources(self) -> Sequence[Shelf]:
        """Those that are not away, by name."""
        with self._lock:
            self._names.glance()
            rows = [row for _, row in self._names.rows() if not row.away]
        return tuple(sorted((_shelf(row) for row in rows), key=lambda each: each.name))

    def instructions(self, source_name: str) -> str:
        """What a server tells models about itself, as it was accepted; empty while a person has to look at it."""
        with self._lock:
            read = self._shelf(self._shelves.file_of(source_name))
            label = read.label if read else None
            if label is None or label.words is None or label.away or not label.may_run or self._why_denied(source_name):
                return ""
        words = known(label.words, source_name, label.origin)
        is_held = words.state is State.CHANGED and words.new is not None
        return words.tool.description if words.state is State.READY or is_held else ""

    def troubles(self) -> Sequence[str]:
        """What is wrong with the catalogue's own files, in sentences."""
        with self._lock:
            self._rules.why_denied("", "")
            return [*self._shelves.troubles(), *([self._rules.trouble] if self._rules.trouble else [])]

    # What a person says

    def approve(self, name: str, seen: str = "", *, follow: bool = False) -> Sequence[str]:
        """A tool as it is now, or a source with all of its tools. The names that it was about.

        `seen` is the `Known.digest` of what the person looked at: a tool that says something else by now is not approved, and a
        source of the project's folder may run with the files that they saw. `follow` lets it run whatever becomes of its files.
        """
        with self._changing():
            source_file = self._shelves.file_of(name)
            file = source_file if self._names.row(source_file) else self._names.file_of(name)
            shelf = self._stored(file) if file else None
            if file is None or shelf is None:
                raise NotFound(_not_found(name, self._near(name)))
            if file == source_file:
                after, names = self._approved_whole(shelf, file, seen, follow=follow)
            else:
                after, names = self._approved_one(shelf, file, name, seen), [name]
            if after != shelf:
                self._shelves.write(file, after)
        return names

    def deny(self, name: str) -> None:
        """A tool, a source or a pattern, in this project."""
        with self._changing():
            self._rules.deny(name)

    def allow(self, name: str) -> None:
        """Takes back what was denied, here or in the person's settings."""
        with self._changing():
            self._rules.allow(name)

    def may_run(self, source: Source) -> None:
        """Raises `ToolRefused` where nobody said that the source may run as it is now."""
        with self._lock:
            self._names.glance()
            denied, row = self._why_denied(source.name), self._names.row(self._shelves.file_of(source.name))
        if denied:
            raise ToolRefused(f"{source.name} does not run: {denied}")
        if source.trusted:
            return
        say = f"a person can look at it and say `hotset tools approve {source.name}`"
        if row is None or not row.approved:
            raise ToolRefused(f"{source.name} lies in the project's folder, and nobody said that it may run; {say}")
        if row.approved != source.stamp and not row.follow:
            raise ToolRefused(f"the files of {source.name} changed since a person let it run; {say}")

    # Inside

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._lock, self._shelves.alone():
            self._names.follow()
            yield

    def _stored(self, file: str) -> Stored | None:
        return self._shelves.read(file, _STORED)

    def _shelf(self, file: str) -> _Read | None:
        """As `_stored`, from memory where it is there; tools are decoded one by one."""
        stamp, read = self._shelves.stamp(file), self._read.get(file)
        if stamp is None or read is None or read.stamp != stamp:
            self._read.pop(file)
            found = self._shelves.read(file, _UNREAD)
            if found is None or stamp is None:
                return None
            read = _Read(stamp, found, found.tools)
            self._read.put(file, read)
        return read

    def _known(self, file: str, name: str) -> Known | None:
        read = self._shelf(file)
        raw = read.tools.get(name) if read else None
        if read is None or raw is None:
            return None
        try:
            return self._judged(read.label, _ENTRY.decode(raw), file)
        except (msgspec.MsgspecError, ValueError):  # a file that is JSON and no shelf
            self._stored(file)
            return None

    def _judged(self, label: Label, entry: Entry, file: str) -> Known:
        """A tool with its state, as it follows from itself, its source, the others and the rules."""
        found = self._by_itself(label, entry, file)
        if denied := self._why_denied(label.name, entry.name):
            return replace(found, state=State.DENIED, why=denied)
        if label.away:
            return replace(found, state=State.GONE, why=f"{label.name} is not configured any more")
        if not label.may_run and found.state is not State.GONE:
            look = f"a person can look at it and say `hotset tools approve {label.name}`"
            changed = "its files changed since a person let it run" if label.approved else "nobody said that it may run"
            why = f"{label.name} lies in the project's folder, and {changed}; {look}"
            return replace(found, state=State.UNAPPROVED, why=why, digest=label.stamp, is_told=_is_told(found))
        return found

    def _by_itself(self, label: Label, entry: Entry, file: str) -> Known:
        shadows = [each for each in (entry.waits or entry.pin).mentions if self._is_of_others(each, file)]
        return known(entry, label.name, label.origin, shadows=shadows)

    def _is_of_others(self, name: str, file: str) -> bool:
        """It is a tool of another source, or ours, and none of its own."""
        others = Others(self._names, file)
        ours = name in OUR_TOOLS and file not in self._names.files_of_own(name)
        return ours or others.have_own(name) or others.have(name)

    def _is_flagged(self, shelf: Stored, name: str, file: str) -> bool:
        return self._by_itself(shelf, shelf.tools[name], file).state is State.FLAGGED

    def _near(self, name: str) -> list[str]:
        """Names like this one that can be used."""
        found = map(self.get, self._names.near(name, _KEPT_SHELVES))
        return [each.tool.name for each in found if each and each.state is State.READY][:_MOST_TOLD]

    def _why_denied(self, source: str, name: str = "") -> str:
        return self._rules.why_denied(name or source, source)

    def _approved_one(self, shelf: Stored, file: str, name: str, seen: str) -> Stored:
        entry = shelf.tools[name]
        if not shelf.may_run:
            say = f"`hotset tools approve {shelf.name}` is about all of it"
            raise ToolRefused(f"{name} is part of {shelf.name}, which lies in the project's folder and runs as one; {say}")
        if seen and seen != self._by_itself(shelf, entry, file).digest:
            raise ToolRefused(f"{name} changed again since you looked at it; look once more with `hotset tools approve {name}`")
        return msgspec.structs.replace(shelf, tools={**shelf.tools, name: accepted(entry)})

    def _approved_whole(self, shelf: Stored, file: str, seen: str, *, follow: bool) -> tuple[Stored, list[str]]:
        """Everything of it that waits; for a source of the project's folder, that it may run with the files that were seen."""
        waiting = {State.CHANGED, State.FLAGGED}
        states = {name: self._by_itself(shelf, entry, file).state for name, entry in shelf.tools.items()}
        tools = {name: accepted(entry) if states[name] in waiting else entry for name, entry in shelf.tools.items()}
        words = accepted(shelf.words) if shelf.words else None
        after = msgspec.structs.replace(shelf, tools=tools, words=words)
        if shelf.trusted:
            return after, [name for name, state in states.items() if state in waiting]
        if not (seen or shelf.stamp):
            raise ToolRefused(f"what {shelf.name} runs cannot be told from its files, so nothing can be approved")
        here = [name for name, state in states.items() if state is not State.GONE]
        return msgspec.structs.replace(after, approved=seen or shelf.stamp, follow=follow), here


def _is_told(found: Known) -> bool:
    """May a skill of the project be told of before a person agreed? Not its functions, and not what a person should see first."""
    return found.tool.origin is Origin.SKILL and not found.tool.own_name and found.state is State.READY and not found.warnings


def _shelf(row: Row) -> Shelf:
    return Shelf(row.name, row.origin, row.offered, row.listed_at, row.stamp, row.pending)


def _not_found(name: str, near: Sequence[str], *, several: bool = False) -> str:
    told = f"no tool is called {visible(name[:64])}"
    if several:
        return f"{visible(name[:64])} could mean {', '.join(near)}: call one by its full name"
    return f"{told}; did you mean {', '.join(near)}?" if near else f"{told}; find_tools finds tools by what they do"


_STORED = msgspec.json.Decoder(Stored)
_UNREAD = msgspec.json.Decoder(Unread)
_ENTRY = msgspec.json.Decoder(Entry)
