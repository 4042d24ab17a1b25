"""A folder of loki-mode's as memories: one that hotset wrote, or one of any version that its users have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from hotset.errors import BadInput
from hotset.nouns.memory import Memory, MemoryId, MemoryKind, MemoryLink, Relation
from hotset.sources.memory.files.loki_writing import is_ours
from hotset.sources.memory.files.shapes import memory_of, own_of
from hotset.sources.memory.files.skills import skill_of
from hotset.sources.memory.files.survey import MARK
from hotset.sources.memory.files.theirs import RELATIONS, SUPERSEDED_BY, Item, foreign, raw_links
from hotset.sources.memory.files.tree import Tree, as_text, decoded
from hotset.sources.memory.naming import is_memory_id, memory_id


def read_loki(folder: Path) -> Iterator[Memory | MemoryLink]:
    """What the files say: memories first, then the links between them. `taking.take` decides how much of it is believed.

    What hotset wrote comes back as it was. What others wrote is `Trust.OUTSIDE`; their procedures and pitfalls are candidates.
    Raises `BadInput`, which names the file that cannot be used.
    """
    with Tree(layout(folder)) as tree:
        yield from _Reading(tree).all()


def layout(folder: Path) -> Path:
    """The folder with the memories: this one, or the one that its users would mean. Raises `BadInput`."""
    folder = folder.expanduser()
    for each in (folder, folder / "memory", folder / ".loki" / "memory"):
        if each.is_dir() and ((each / "index.json").is_file() or any((each / name).is_dir() for name in _FOLDERS)):
            return each
    raise BadInput(f"{folder} is no folder of memories: neither index.json nor any of {', '.join(_FOLDERS)} is there")


_FOLDERS = ("episodic", "semantic", "skills", "ledgers", "handoffs", "learnings")
_KINDS = frozenset(kind.value for kind in MemoryKind if kind is not MemoryKind.ARRANGEMENT)
_LISTS = frozenset({"patterns", "anti_patterns", "facts", "links", "learnings", "lessons", "others", "episodes", "skills"})


class _Reading:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._met: dict[MemoryId, int] = {}
        """What was given, with the hash of what it says."""
        self._names: dict[str, MemoryId] = {}
        """Ids of others that could not be kept."""
        self._linked: list[tuple[MemoryId, str, str]] = []

    def all(self) -> Iterator[Memory | MemoryLink]:
        yield from self._lists("semantic", ("patterns", "facts"), MemoryKind.FACT)
        yield from self._lists("semantic", ("anti-patterns",), MemoryKind.PITFALL)
        yield from self._skills()
        for folder, kind in (("ledgers", MemoryKind.LEDGER), ("handoffs", MemoryKind.HANDOFF)):
            yield from self._files(folder, kind)
        yield from self._lists("learnings", ("",), MemoryKind.LEARNING)
        yield from self._files("episodic", MemoryKind.EPISODE, passed_over=("index",))
        for day in self._tree.folders("episodic"):
            yield from self._files(f"episodic/{day}", MemoryKind.EPISODE)
        yield from self._whole()
        yield from self._decisions()
        yield from self._links()

    def _lists(self, folder: str, names: tuple[str, ...], kind: MemoryKind) -> Iterator[Memory]:
        for name in self._tree.names(folder, (".json",)):
            if name.startswith(names):
                read = self._tree.read(f"{folder}/{name}")
                for item in _items(decoded(read)):
                    yield from self._given(memory_of(kind, item, read.place, read.changed), item)
        if folder == "learnings":
            yield from self._pages(folder, kind)

    def _files(self, folder: str, kind: MemoryKind, passed_over: tuple[str, ...] = ()) -> Iterator[Memory]:
        for name in self._tree.names(folder, (".json",)):
            if passed_over and name.startswith(passed_over):
                continue
            read = self._tree.read(f"{folder}/{name}")
            for item in _items(decoded(read)):
                yield from self._given(memory_of(kind, item, read.place, read.changed), item)
        if kind is not MemoryKind.EPISODE:
            yield from self._pages(folder, kind)

    def _pages(self, folder: str, kind: MemoryKind) -> Iterator[Memory]:
        """Ledgers, handoffs and learnings that somebody wrote as a page of text."""
        for name in self._tree.names(folder, (".md",)):
            read = self._tree.read(f"{folder}/{name}")
            text = as_text(read).strip()
            title = text.split("\n", 1)[0].lstrip("# ")
            if text:
                yield from self._given(foreign(kind, title, text, id=name, created=read.changed, place=read.place), {})

    def _skills(self) -> Iterator[Memory]:
        described = self._tree.names("skills", (".json",))
        for name in described:
            read = self._tree.read(f"skills/{name}")
            for item in _items(decoded(read)):
                yield from self._given(memory_of(MemoryKind.PROCEDURE, item, read.place, read.changed), item)
        stems = {name.removesuffix(".json") for name in described}
        for name in self._tree.names("skills", (".md",)):
            if name.removesuffix(".md") not in stems:  # some versions write each skill twice
                read = self._tree.read(f"skills/{name}")
                yield from self._given(skill_of(as_text(read), read.place, read.changed), {})

    def _whole(self) -> Iterator[Memory]:
        for name in self._tree.names("hotset", (".json",)):
            read = self._tree.read(f"hotset/{name}")
            for number, item in enumerate(_items(decoded(read)), 1):
                kind = item.get("kind")
                memory = own_of(MemoryKind(kind), item) if kind in _KINDS else None
                if memory is None:
                    raise BadInput(f"{read.place}: the {number}. memory cannot be read; remove it, or export again")
                yield from self._given(memory, {})

    def _decisions(self) -> Iterator[Memory]:
        """Ours are parts of episodes; others have them nowhere else."""
        if "timeline.json" not in self._tree.names("", (".json",)) or is_ours(self._tree.folder):
            return
        read = self._tree.read("timeline.json")
        timeline = decoded(read)
        for item in _items(timeline.get("key_decisions") if isinstance(timeline, dict) else None):
            told = {**item, "category": item.get("topic_id"), "id": None}
            yield from self._given(memory_of(MemoryKind.FACT, told, read.place, read.changed), {})

    def _given(self, memory: Memory | None, item: Item) -> Iterator[Memory]:
        """Each memory once. Two that have one name and say different things are two."""
        if memory is None:
            return
        raw = item.get("id")
        said = hash((memory.title, memory.text))
        if memory.id in self._met and self._met[memory.id] != said:
            memory = replace(memory, id=memory_id(memory.kind, f"loki:{memory.id}\0{memory.text}", memory.created))
        if isinstance(raw, str):
            self._names.setdefault(raw, memory.id)
        self._linked += [(memory.id, relation, to) for relation, to in raw_links(item)]
        if memory.id not in self._met:
            self._met[memory.id] = said
            yield memory

    def _links(self) -> Iterator[MemoryLink]:
        given: set[tuple[MemoryId, MemoryId, Relation]] = set()
        for link in (*self._links_of_file(), *self._links_of_items()):
            if (key := (link.of, link.to, link.relation)) not in given and link.of != link.to:
                given.add(key)
                yield link

    def _links_of_file(self) -> Iterator[MemoryLink]:
        for name in self._tree.names("semantic", (".json",)):
            if not name.startswith("links"):
                continue
            for item in _items(decoded(self._tree.read(f"semantic/{name}"))):
                ours = item.get(MARK)
                link = self._link(item.get("from", item.get("from_id")), item.get("relation"), item.get("to", item.get("to_id")))
                if link is None:
                    continue
                match ours:
                    case {"time": int() | float() as time, "run": str(run)}:
                        yield replace(link, time=float(time), run=run)
                    case _:
                        yield link

    def _links_of_items(self) -> Iterator[MemoryLink]:
        for of, relation, to in self._linked:
            if (link := self._link(of, relation, to)) is not None:
                yield link

    def _link(self, of: object, relation: object, to: object) -> MemoryLink | None:
        one, other = self._named(of), self._named(to)
        if one is None or other is None:
            return None
        if relation == SUPERSEDED_BY:
            return MemoryLink(other, one, Relation.SUPERSEDES)
        return MemoryLink(one, other, RELATIONS[relation]) if isinstance(relation, str) and relation in RELATIONS else None

    def _named(self, raw: object) -> MemoryId | None:
        if not isinstance(raw, str):
            return None
        return self._names.get(raw) or (MemoryId(raw) if is_memory_id(raw) else None)


def _items(value: object) -> Iterable[Item]:
    """The objects of a document: it is a list, or has lists in it, or is one itself."""
    match value:
        case list():
            return [each if isinstance(each, dict) else {"text": each} for each in value if isinstance(each, dict | str)]
        case dict():
            lists = [inner for name, inner in value.items() if name in _LISTS and isinstance(inner, list)]
            return [item for inner in lists for item in _items(inner)] if lists and "id" not in value else [value]
        case _:
            return []
