"""CONTINUITY.md for a project whose owner asked for it: written when a session has ended, told when the next one begins."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest
from pathlib import Path

import msgspec

from hotset.files.folder import private_folder
from hotset.files.write import write_atomically
from hotset.nouns.memory import Ending, Memory, MemoryId, MemoryKind, Pitfall, Standing
from hotset.sources.memory.disclosing.overview import Line, Overview
from hotset.sources.memory.disclosing.telling import Told, day, one_line
from hotset.sources.memory.files.continuity import Parts, digest_of, told_continuity
from hotset.sources.memory.files.continuity_file import load_continuity, write_continuity
from hotset.store.port import Store

TOKENS = 200
"""Of what a session is told at its start."""

_FILE = "continuity.json"
_LATEST = 3
_DECISIONS = 8
_KNOWN = 8
_RELEVANT = 8
_MISTAKES = 5
_OPEN = 5
_LONGEST = 160  # characters of a line
_MOST_ACCEPTED = 50
_UNFINISHED = frozenset({Ending.FAILURE, Ending.PARTIAL})


class _Kept(msgspec.Struct, frozen=True):
    on: bool = False
    accepted: tuple[str, ...] = ()
    """Hashes of the versions that hotset wrote, or that a person stands for."""


class Continuity:
    """Use it from any thread."""

    def __init__(self, project: Path, folder: Path) -> None:
        self._project = project
        self._path = folder / _FILE

    @property
    def is_on(self) -> bool:
        return self._read().on

    def switch(self, *, on: bool) -> None:
        self._write(msgspec.structs.replace(self._read(), on=on))

    def text(self) -> str | None:
        """What the file says. Raises `BadInput` where it cannot be read."""
        return load_continuity(self._project)

    def told(self, max_tokens: int = TOKENS) -> Told:
        """What a session is told at its start; nothing where the owner did not ask for it."""
        kept = self._read()
        text = self.text() if kept.on else None
        if not text:
            return Told()
        told = told_continuity(text, max_tokens, frozenset(kept.accepted))
        return Told(told.text, told.tokens)

    def write(self, store: Store, overview: Overview) -> Path:
        """Brings it up to date; what others wrote in it becomes nobody's word by that. Raises `BadInput`."""
        kept = self._read()
        written = write_continuity(self._project, parts(store, overview), frozenset(kept.accepted))
        if written.trusted:
            self._accept(written.digest)
        return written.path

    def accept(self) -> bool:
        """A person stands for what the file says now. False where there is none."""
        text = self.text()
        if text is None:
            return False
        self._accept(digest_of(text))
        return True

    def _accept(self, digest: str) -> None:
        kept = self._read()
        if digest not in kept.accepted:
            self._write(msgspec.structs.replace(kept, accepted=(*kept.accepted, digest)[-_MOST_ACCEPTED:]))

    def _read(self) -> _Kept:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Kept)
        except (OSError, msgspec.DecodeError):
            return _Kept()

    def _write(self, kept: _Kept) -> None:
        private_folder(self._path.parent)
        write_atomically(self._path, msgspec.json.encode(kept))


def parts(store: Store, overview: Overview) -> Parts:
    """What hotset has to say in each part, the newest first."""
    done = overview.actions
    pitfalls = nlargest(
        _MISTAKES,
        store.memories(frozenset({MemoryKind.PITFALL}), frozenset({Standing.ACTIVE})),
        key=lambda memory: (memory.created, memory.id),
    )
    return Parts(
        state=tuple(f"{day(each.time)} {_title(each)} ({each.ending}) [{each.id}]" for each in done[:_LATEST]),
        decisions=tuple(f"{_title(each)} [{each.id}]" for each in overview.decisions[:_DECISIONS]),
        known=tuple(f"{_title(each)} [{each.id}]" for each in overview.known[:_KNOWN]),
        blockers=tuple(_blockers(overview)),
        memories=tuple((MemoryId(each.id), _title(each)) for each in done[_LATEST : _LATEST + _RELEVANT]),
        mistakes=tuple(f"{_mistake(each)} [{each.id}]" for each in pitfalls),
    )


def _blockers(overview: Overview) -> Iterator[str]:
    """What agents said that blocks them, and what was tried last and did not come out."""
    for point in overview.points[:_LATEST]:
        yield from (f"{one_line(each, _LONGEST)} [{point.id}]" for each in point.blockers)
    unfinished = (each for each in overview.actions[:_OPEN] if each.ending in _UNFINISHED)
    yield from (f"{_title(each)} ({each.ending}) [{each.id}]" for each in unfinished)


def _mistake(memory: Memory) -> str:
    detail = memory.detail
    if isinstance(detail, Pitfall) and detail.what and detail.instead:
        return one_line(f"{detail.what}: {detail.instead}", _LONGEST)
    return one_line(memory.title or memory.text, _LONGEST)


def _title(line: Line) -> str:
    return one_line(line.title, _LONGEST)
