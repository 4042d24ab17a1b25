"""Memories as a folder of loki-mode's.

Only what holds stands where its other readers look. Candidates and what was replaced or merged are in `hotset/`, so that nobody
takes them for advice; what somebody forgot is nowhere.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotset.errors import BadInput
from hotset.nouns.memory import Memory, MemoryId, MemoryKind, MemoryLink, Relation, Standing, Uses
from hotset.nouns.progress import Progress, silent
from hotset.sources.memory.files.shapes import item_of, sealed, told_day
from hotset.sources.memory.files.skills import skill_text
from hotset.sources.memory.files.survey import FORMAT, MARK, VERSION, Survey
from hotset.sources.memory.files.tree import Draft, Listed, Tree, as_json, decoded, whole_folder
from hotset.store.port import Store


@dataclass(frozen=True, slots=True)
class Exported:
    memories: int
    links: int


def write_loki(store: Store, folder: Path, progress: Progress = silent, economics: Mapping[str, Any] | None = None) -> Exported:
    """All memories as files, in place of an earlier export. Whole or not at all, and the same bytes for the same store.

    Raises `BadInput` where something else is there, and `StoreFailed` where it cannot be written.
    """
    with whole_folder(folder, _refuse_foreign) as draft:
        writing = _Writing(draft, store, progress)
        for kind, write in writing.kinds.items():
            for memory in store.memories(frozenset({kind}), _TOLD):
                writing.add(memory, write)
        return writing.close(economics)


_TOLD = frozenset(Standing) - {Standing.FORGOTTEN}
_EVERY = 200  # memories between two reports of progress
_ID = "[a-z0-9-]+"
_DAY = r"(?:\d{4}-\d\d-\d\d|undated)"
_OURS = re.compile(
    r"(?:index|timeline|token_economics)\.json"
    rf"|episodic/(?:index(?:-\d+)?|{_DAY}/task-ep-{_ID})\.json"
    r"|semantic/(?:patterns|anti-patterns|facts|links)(?:-\d+)?\.json"
    rf"|skills/(?:{_ID}-)?proc-{_ID}\.md"
    rf"|ledgers/led-{_ID}\.json|handoffs/hand-{_ID}\.json"
    rf"|learnings/{_DAY}(?:-\d+)?\.json"
    r"|hotset/others(?:-\d+)?\.json"
)


class _Writing:
    def __init__(self, draft: Draft, store: Store, progress: Progress) -> None:
        self.kinds: dict[MemoryKind, Callable[[Memory], None]] = {
            MemoryKind.EPISODE: self._episode,
            MemoryKind.FACT: self._fact,
            MemoryKind.PITFALL: self._pitfall,
            MemoryKind.PROCEDURE: self._procedure,
            MemoryKind.LEDGER: self._ledger,
            MemoryKind.HANDOFF: self._handoff,
            MemoryKind.LEARNING: self._learning,
        }
        hidden = {memory.id for memory in store.memories(frozenset(), frozenset({Standing.FORGOTTEN}))}
        hidden |= {memory.id for memory in store.memories(frozenset({MemoryKind.ARRANGEMENT}))}
        self._all_links = [link for link in store.memory_links() if link.of not in hidden and link.to not in hidden]
        self._links: defaultdict[MemoryId, list[MemoryLink]] = defaultdict(list)
        for link in self._all_links:
            self._links[link.of].append(link)
        self._uses: Mapping[MemoryId, Uses] = store.memory_uses()
        self._store = store
        self._draft = draft
        self._progress = progress
        self._survey = Survey()
        self._learnings: list[tuple[str, MemoryId]] = []
        head = {"version": VERSION}
        self._episodes = Listed(draft, "episodic/index.json", "episodes", head)
        self._patterns = Listed(draft, "semantic/patterns.json", "patterns", head)
        self._anti_patterns = Listed(draft, "semantic/anti-patterns.json", "anti_patterns", head)
        self._facts = Listed(draft, "semantic/facts.json", "facts", head)
        self._others = Listed(draft, "hotset/others.json", "others", {"format": FORMAT})

    def add(self, memory: Memory, write: Callable[[Memory], None]) -> None:
        memory = sealed(memory)
        if memory.standing is Standing.ACTIVE:
            write(memory)
            self._survey.add(memory)
        else:
            self._others.add({"id": memory.id, "kind": memory.kind.value, MARK: item_of(memory)[MARK]})
        self._survey.count += 1
        if self._survey.count % _EVERY == 0:
            self._progress(f"{memory.kind}s", self._survey.count, 0)

    def close(self, economics: Mapping[str, Any] | None) -> Exported:
        self._write_learnings()
        links = Listed(self._draft, "semantic/links.json", "links", {"version": VERSION})
        for link in self._all_links:
            told = {"from": link.of, "to": link.to, "relation": link.relation.value, "strength": 1.0}
            links.add({**told, MARK: {"time": link.time, "run": link.run}})
        for each in (self._episodes, self._patterns, self._anti_patterns, self._facts, self._others, links):
            each.close()
        self._draft.write("index.json", as_json(self._survey.index()))
        self._draft.write("timeline.json", as_json(self._survey.timeline()))
        if economics is not None:
            self._draft.write("token_economics.json", as_json(dict(economics)))
        self._progress("memories", self._survey.count, self._survey.count)
        return Exported(self._survey.count, len(self._all_links))

    def _episode(self, memory: Memory) -> None:
        day = told_day(memory.created)
        path = f"episodic/{day}/task-{memory.id}.json"
        item = item_of(memory)
        self._draft.write(path, as_json(item))
        self._episodes.add({"id": memory.id, "date": day, "file": path, "goal": memory.title, "outcome": memory.ending.value})

    def _fact(self, memory: Memory) -> None:
        """What episodes have in common is a pattern, as they call it."""
        links = self._links.get(memory.id, ())
        derived = any(link.relation is Relation.DERIVED_FROM for link in links)
        (self._patterns if derived else self._facts).add(item_of(memory, links, self._uses.get(memory.id)))

    def _pitfall(self, memory: Memory) -> None:
        self._anti_patterns.add(item_of(memory, self._links.get(memory.id, ()), self._uses.get(memory.id)))

    def _procedure(self, memory: Memory) -> None:
        name = re.sub(r"[^a-z0-9]+", "-", memory.title.lower())[:40].strip("-")
        self._draft.write(f"skills/{f'{name}-' if name else ''}{memory.id}.md", skill_text(memory).encode())

    def _ledger(self, memory: Memory) -> None:
        self._draft.write(f"ledgers/{memory.id}.json", as_json(item_of(memory)))

    def _handoff(self, memory: Memory) -> None:
        self._draft.write(f"handoffs/{memory.id}.json", as_json(item_of(memory)))

    def _learning(self, memory: Memory) -> None:
        self._learnings.append((told_day(memory.created), memory.id))

    def _write_learnings(self) -> None:
        """A file a day: only their ids were kept in mind until now."""
        day, file = "", None
        for each, id in sorted(self._learnings):
            if file is None or each != day:
                if file is not None:
                    file.close()
                day, file = each, Listed(self._draft, f"learnings/{each}.json", "learnings", {"date": each})
            file.add(item_of(sealed(self._store.memory(id))))
        if file is not None:
            file.close()


def _refuse_foreign(folder: Path) -> None:
    """An export of ours may be replaced; anything else may be all that somebody has."""
    found = sorted(Path(where) / name for where, folders, files in os.walk(folder) for name in (*folders, *files))
    for path in found:
        if path.is_symlink() or (not path.is_dir() and not _OURS.fullmatch(path.relative_to(folder).as_posix())):
            raise BadInput(f"{folder} has something else in it ({path.relative_to(folder)}); choose an empty folder")
    if found and not is_ours(folder):
        raise BadInput(f"{folder} has memories that hotset did not write; import them first, and export to another folder")


def is_ours(folder: Path) -> bool:
    """Did hotset write these files?"""
    with Tree(folder) as tree:
        index = decoded(tree.read("index.json")) if "index.json" in tree.names("", (".json",)) else None
    return isinstance(index, dict) and isinstance(index.get(MARK), dict)
