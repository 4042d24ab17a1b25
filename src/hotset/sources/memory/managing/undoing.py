"""Takes back what one piece of work wrote, and brings back what was put aside. Both write new versions; nothing is removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import Memory, MemoryId, MemoryLink, Standing, Trust
from hotset.sources.memory.managing.versions import STANDS, following, run_name
from hotset.sources.memory.naming import is_same
from hotset.store.port import Store

UNDO, RESTORE = "undo-", "restore-"
"""How the names of their runs begin; `undo` takes back these, too."""

_KEEP_SECONDS = 30.0
_READ = 512  # versions at once
_AT_ONCE = 256  # that are written in one commit
_ASIDE = frozenset({Standing.FORGOTTEN, Standing.MERGED, Standing.SUPERSEDED})
_OF_A_VERSION = frozenset({"id", "kind", "version", "time", "run", "why"})
_SAID = tuple(field.name for field in fields(Memory) if field.name not in _OF_A_VERSION)


def undo(store: Store, run: str, now: float) -> int:
    """Takes back what a run did, and gives the number of memories that it changed.

    What the run made is forgotten. In what it changed, each thing is as before, unless somebody changed it again since then.
    Ended at any moment it can be done again; done twice it changes nothing more.
    """
    back = f"{UNDO}{run}"
    versions = (_before(store.memory_versions(id), run, now, back) for id in _written_by(store, run))
    changed = [each for each in versions if each is not None]
    gone = [replace(link, gone=True, time=now, run=back) for link in store.memory_links() if link.run == run]
    keep_all(store, changed, gone)
    return len(changed)


def restore(store: Store, ids: Sequence[MemoryId], now: float) -> int:
    """Brings back what was forgotten, merged or replaced, as it stood before; gives how many that were. Raises `NotFound`."""
    run = run_name(RESTORE, sorted(ids), now)
    versions = (_back(store.memory(id), store.memory_versions(id), now, run) for id in dict.fromkeys(ids))
    changed = [each for each in versions if each is not None]
    keep_all(store, changed)
    return len(changed)


def keep_all(store: Store, memories: Sequence[Memory], links: Sequence[MemoryLink] = ()) -> None:
    """In as many commits as it takes, the links last."""
    for start in range(0, len(memories), _AT_ONCE):
        store.keep(Remembered(tuple(memories[start : start + _AT_ONCE]))).result(_KEEP_SECONDS)
    for start in range(0, len(links), _AT_ONCE):
        store.keep(Remembered(links=tuple(links[start : start + _AT_ONCE]))).result(_KEEP_SECONDS)


def _written_by(store: Store, run: str) -> Iterable[MemoryId]:
    found: dict[MemoryId, None] = {}
    number = 0
    while versions := store.memories_after(number, _READ):
        found.update((memory.id, None) for _, memory in versions if memory.run == run)
        number = versions[-1][0]
    return found


def _before(versions: Sequence[Memory], run: str, now: float, back: str) -> Memory | None:
    """The version without what the run changed; None where nothing of that is left."""
    latest = versions[-1]
    changes: dict[str, Any] = {}
    for before, after in reversed(list(pairwise(versions))):
        if after.run == run:
            for name in _SAID:
                was, became = getattr(before, name), getattr(after, name)
                if was != became and changes.get(name, getattr(latest, name)) == became:
                    changes[name] = was
    if versions[0].run == run and not _is_taken_over(versions, run):
        changes["standing"] = Standing.FORGOTTEN
    undone = following(latest, now, back, f"{run} was taken back", **changes)
    return None if is_same(undone, latest) else undone


def _is_taken_over(versions: Sequence[Memory], run: str) -> bool:
    """Did a person make it theirs since: pinned it, edited it, confirmed it?"""
    latest = versions[-1]
    return latest.pinned or (
        latest.trust is Trust.PERSON and any(each.trust is not Trust.PERSON for each in versions if each.run == run)
    )


def _back(latest: Memory, versions: Sequence[Memory], now: float, run: str) -> Memory | None:
    if latest.standing not in _ASIDE:
        return None
    wanted = frozenset(Standing) - {Standing.FORGOTTEN} if latest.standing is Standing.FORGOTTEN else STANDS
    before = next((each for each in reversed(versions) if each.standing in wanted), None)
    standing, until = (before.standing, before.valid_until) if before is not None else (Standing.ACTIVE, None)
    return following(latest, now, run, "brought back", standing=standing, valid_until=until)
