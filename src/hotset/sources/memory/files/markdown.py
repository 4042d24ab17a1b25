"""Memories as Markdown that people read and edit: a page a kind, episodes by month, and an index."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hotset.errors import BadInput
from hotset.nouns.memory import Memory, MemoryId, MemoryKind, Standing
from hotset.nouns.progress import Progress, silent
from hotset.sources.memory.files.entries import Entry, entries_of, entry_text, shown_of
from hotset.sources.memory.files.loki_writing import Exported
from hotset.sources.memory.files.shapes import sealed, told_day
from hotset.sources.memory.files.survey import Survey
from hotset.sources.memory.files.tree import Draft, Tree, as_text, whole_folder
from hotset.sources.memory.naming import kind_of, memory_id
from hotset.store.port import Store

_PAGES = {
    MemoryKind.FACT: "facts",
    MemoryKind.PROCEDURE: "procedures",
    MemoryKind.PITFALL: "pitfalls",
    MemoryKind.LEDGER: "ledgers",
    MemoryKind.HANDOFF: "handoffs",
    MemoryKind.LEARNING: "learnings",
}
_EPISODES = "episodes"
_INDEX = "index.md"
_TOLD = frozenset({Standing.ACTIVE, Standing.CANDIDATE, Standing.SUPERSEDED})
_PAGE_BYTES = 1024 * 1024  # what an editor opens at once; more goes on in `facts-2.md`
_TOPICS = 200
_EVERY = 200
_NOTE = (
    "<!-- hotset:memories. Titles and texts can be edited; `hotset memory import` brings the edits back. "
    "To forget one, use `hotset memory forget`: an entry that is missing here is not forgotten. -->"
)
_OURS = re.compile(rf"index\.md|(?:{'|'.join(_PAGES.values())})(?:-\d+)?\.md|{_EPISODES}/(?:\d{{4}}-\d\d|undated)(?:-\d+)?\.md")


@dataclass(frozen=True, slots=True)
class Found:
    """An entry, and where it stands."""

    entry: Entry
    kind: MemoryKind
    place: str


def write_markdown(store: Store, folder: Path, progress: Progress = silent) -> Exported:
    """All memories but forgotten and merged ones, in place of an earlier export. Whole or not at all.

    Raises `BadInput` where something else is there, or edits that were not imported; `StoreFailed` where it cannot be written.
    """
    with whole_folder(folder, lambda there: _refuse_foreign(there, store)) as draft:
        survey = Survey()
        pages: dict[str, int] = {}
        for kind, name in _PAGES.items():
            page = _Page(draft, name, name.capitalize())
            for memory in store.memories(frozenset({kind}), _TOLD):
                _add(page, memory, survey, progress)
            pages[name] = page.close()
        pages |= _write_episodes(store, draft, survey, progress)
        draft.write(_INDEX, _index(pages, survey).encode())
        progress("memories", survey.count, survey.count)
        return Exported(survey.count, 0)


def read_markdown(folder: Path) -> Iterator[Found]:
    """The entries of all pages, edited or not. Raises `BadInput`, which names the file that cannot be used."""
    with Tree(folder) as tree:
        paths = _pages(tree)
        if not paths:
            names = ", ".join((_EPISODES, *_PAGES.values()))
            raise BadInput(f"{folder} has no pages of memories: none of {names} is there")
        for path in paths:
            if path != _INDEX:
                read = tree.read(path)
                for entry in entries_of(as_text(read)):
                    yield Found(entry, _kind(entry, path), read.place)


def has_pages(folder: Path) -> bool:
    with Tree(folder) as tree:
        return bool(_pages(tree))


def new_id(found: Found) -> MemoryId:
    """Of an entry that has none: the same for the same words."""
    return memory_id(found.kind, f"markdown\0{found.entry.title}\0{found.entry.text}")


def _pages(tree: Tree) -> list[str]:
    paths = [*tree.names("", (".md",)), *(f"{_EPISODES}/{name}" for name in tree.names(_EPISODES, (".md",)))]
    return [path for path in paths if _OURS.fullmatch(path)]


class _Page:
    def __init__(self, draft: Draft, path: str, title: str) -> None:
        self._draft = draft
        self._path = path
        self._title = title
        self._entries: list[str] = []
        self._bytes = 0
        self._files = 0
        self._count = 0

    def add(self, entry: str) -> None:
        if self._entries and self._bytes + len(entry) > _PAGE_BYTES:
            self._put()
        self._entries.append(entry)
        self._bytes += len(entry)
        self._count += 1

    def close(self) -> int:
        """How many entries there are."""
        if self._entries:
            self._put()
        return self._count

    def _put(self) -> None:
        self._files += 1
        name = self._path if self._files == 1 else f"{self._path}-{self._files}"
        self._draft.write(f"{name}.md", "\n".join((f"# {self._title}\n\n{_NOTE}\n", *self._entries)).encode())
        self._entries, self._bytes = [], 0


def _add(page: _Page, memory: Memory, survey: Survey, progress: Progress) -> None:
    memory = sealed(memory)
    page.add(entry_text(memory))
    survey.add(memory)
    survey.count += 1
    if survey.count % _EVERY == 0:
        progress(f"{memory.kind}s", survey.count, 0)


def _write_episodes(store: Store, draft: Draft, survey: Survey, progress: Progress) -> dict[str, int]:
    """Newest month first in the index, oldest first on its page; only their ids are kept in mind."""
    dated = sorted((memory.created, memory.id) for memory in store.memories(frozenset({MemoryKind.EPISODE}), _TOLD))
    pages: dict[str, int] = {}
    page, month = None, ""
    for created, id in dated:
        if page is None or _month(created) != month:
            if page is not None:
                pages[f"{_EPISODES}/{month}"] = page.close()
            month = _month(created)
            page = _Page(draft, f"{_EPISODES}/{month}", f"Episodes, {month}")
        _add(page, store.memory(id), survey, progress)
    if page is not None:
        pages[f"{_EPISODES}/{month}"] = page.close()
    return dict(reversed(pages.items()))


def _month(created: float) -> str:
    day = told_day(created)
    return day[:7] if day[0].isdigit() else day


def _index(pages: dict[str, int], survey: Survey) -> str:
    named = sorted(survey.topics.items(), key=lambda each: (-each[1].memories, each[0]))[:_TOPICS]
    lines = [
        "# Memories",
        "",
        _NOTE,
        "",
        *(f"- [{name}]({name}.md): {number}" for name, number in pages.items() if number),
        *(("", "## Topics", "") if named else ()),
        *(f"- **{_line(name)}**: {topic.memories}, the latest: {_line(topic.title)}" for name, topic in named),
    ]
    return "\n".join(lines) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())[:120]


def _refuse_foreign(folder: Path, store: Store) -> None:
    """An export of ours may be replaced, once all that a person wrote into it is in the store."""
    found = sorted(Path(where) / name for where, folders, files in os.walk(folder) for name in (*folders, *files))
    for path in found:
        if path.is_symlink() or (not path.is_dir() and not _OURS.fullmatch(path.relative_to(folder).as_posix())):
            raise BadInput(f"{folder} has something else in it ({path.relative_to(folder)}); choose an empty folder")
    if not any(path.is_file() for path in found):
        return
    with Tree(folder) as tree:
        if _INDEX not in tree.names("", (".md",)) or "<!-- hotset:memories" not in as_text(tree.read(_INDEX)):
            raise BadInput(f"{folder} has pages that hotset did not write; choose an empty folder")
    for each in read_markdown(folder):
        if each.entry.edited and not _is_here(store, each):
            page = each.place.split("/", 1)[1]
            raise BadInput(f"{folder / page} has edits that were not imported ({each.entry.title[:60]!r}); import them first")


def _is_here(store: Store, found: Found) -> bool:
    entry = found.entry
    id = entry.id or new_id(found)
    return any(shown_of(version) == (entry.title, entry.text) for version in store.memory_versions(id))


def _kind(entry: Entry, path: str) -> MemoryKind:
    """What somebody adds to the episodes is a lesson: nothing happened that a session could tell of."""
    named = kind_of(entry.id) if entry.id is not None else None
    page = re.sub(r"(?:-\d+)?\.md$", "", path)
    return named or next((kind for kind, name in _PAGES.items() if name == page), MemoryKind.LEARNING)
