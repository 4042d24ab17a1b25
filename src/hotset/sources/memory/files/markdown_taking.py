"""What a person wrote on the pages of an export, brought back: edits as new versions, additions as new memories."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import (
    Checkpoint,
    Detail,
    Episode,
    Fact,
    Memory,
    MemoryId,
    MemoryKind,
    Pitfall,
    Procedure,
    Provenance,
    Standing,
    Trust,
)
from hotset.nouns.progress import Progress, silent
from hotset.sources.memory.files.entries import Entry, hash_of, shown_of
from hotset.sources.memory.files.markdown import Found, new_id, read_markdown
from hotset.sources.memory.files.shapes import sealed
from hotset.sources.memory.files.taking import BATCH, Taken, run_of
from hotset.store.port import Store
from hotset.tokens import count

_ADVICE = frozenset({MemoryKind.PROCEDURE, MemoryKind.PITFALL})
_STEP = re.compile(r"\s*\d+[.)]\s+(.*\S)\s*")
_DATED = re.compile(r"ep-(\d{4}-\d\d-\d\d)-")


def take_markdown(store: Store, folder: Path, *, now: float, vouched: bool = False, progress: Progress = silent) -> Taken:
    """Edits become new versions, by a person; an entry that is missing changes nothing. Done again, it does nothing.

    An edit counts where its marker fits what this store wrote. Entries that are new here are nobody's word until somebody
    vouches for them: see `taking`. All pages are read before anything is written. Raises `BadInput` and what the store raises.
    """
    total = sum(1 for _ in read_markdown(folder))
    place = folder.expanduser().resolve().name
    taken = Taken(run_of(place, now))
    batch: dict[MemoryId, Memory] = {}
    for done, found in enumerate(read_markdown(folder), 1):
        if done % BATCH == 0 or done == total:
            progress("memories", done, total)
        memory = _taken(store, found, taken, now, place, vouched=vouched)
        if memory is None or memory.id in batch:
            continue
        memory = sealed(memory)
        batch[memory.id] = replace(memory, tokens=count(memory.text), time=now, run=taken.run)
        if len(batch) == BATCH:
            store.keep(Remembered(memories=tuple(batch.values()))).result()
            batch = {}
    if batch:
        store.keep(Remembered(memories=tuple(batch.values()))).result()
    return taken


def _taken(store: Store, found: Found, taken: Taken, now: float, place: str, *, vouched: bool) -> Memory | None:
    """The version to write, if any."""
    entry = found.entry
    versions = store.memory_versions(entry.id or new_id(found))
    if not versions:
        taken.new += 1
        taken.waiting += not vouched and found.kind in _ADVICE
        return _new(found, now, place, vouched=vouched)
    latest = versions[-1]
    if any(shown_of(sealed(version)) == (entry.title, entry.text) for version in versions):
        taken.same += 1
        return None
    base = next((version for version in versions if version.version == entry.version), None)
    ours = base is not None and hash_of(*shown_of(sealed(base))) == entry.written
    if latest.standing is Standing.FORGOTTEN or base is None or not ours or shown_of(latest) != shown_of(base):
        taken.kept.append(latest.id)
        return None
    taken.changed += 1
    return _reworded(latest, entry, found.place)


def _new(found: Found, now: float, place: str, *, vouched: bool) -> Memory:
    entry, kind = found.entry, found.kind
    return Memory(
        id=entry.id or new_id(found),
        kind=kind,
        title=entry.title,
        text=entry.text,
        created=_day(entry.id, now),
        source=Provenance("person" if vouched else "import", places=(found.place, place)),
        detail=_detail(kind, entry),
        trust=Trust.PERSON if vouched else Trust.OUTSIDE,
        standing=Standing.CANDIDATE if kind in _ADVICE and not vouched else Standing.ACTIVE,
        why=f"imported from {found.place}",
    )


def _day(id: MemoryId | None, now: float) -> float:
    """An episode of another store says in its name when it was."""
    dated = _DATED.match(id or "")
    try:
        return datetime.fromisoformat(dated[1]).replace(tzinfo=UTC).timestamp() if dated else now
    except ValueError:
        return now


def _detail(kind: MemoryKind, entry: Entry) -> Detail:
    match kind:
        case MemoryKind.EPISODE:
            return Episode(entry.title)
        case MemoryKind.FACT:
            return Fact()
        case MemoryKind.PROCEDURE:
            return Procedure(entry.title, _steps(entry.text))
        case MemoryKind.PITFALL:
            return Pitfall(entry.title)
        case MemoryKind.LEDGER | MemoryKind.HANDOFF:
            return Checkpoint()
        case _:
            return None


def _steps(text: str) -> tuple[str, ...]:
    return tuple(step[1] for line in text.split("\n") if (step := _STEP.fullmatch(line)))


def _reworded(memory: Memory, entry: Entry, place: str) -> Memory:
    """In the words of a person. What a shorter form of it said, and the text no longer says, is taken out there, too."""
    title, text = shown_of(memory)
    detail = memory.detail
    if entry.text != text:
        match detail:
            case Procedure():
                steps = _steps(entry.text) or tuple(step for step in detail.steps if step in entry.text)
                detail = replace(detail, steps=steps)
            case Pitfall():
                held = {name: getattr(detail, name) for name in ("what", "why", "instead")}
                now = f"{entry.title}\n{entry.text}"
                detail = Pitfall(**{name: said if said in now or said not in memory.text else "" for name, said in held.items()})
            case _:
                pass
    return replace(
        memory,
        title=entry.title if entry.title != title else memory.title,
        text=entry.text if entry.text != text else memory.text,
        detail=detail,
        trust=Trust.PERSON,
        standing=Standing.ACTIVE if memory.standing is Standing.CANDIDATE else memory.standing,
        version=memory.version + 1,
        why=f"edited in {place}",
    )
