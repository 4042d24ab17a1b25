"""A folder in loki-mode's layout: JSON by layers and kinds, and procedures as skill files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from hotset.errors import BadInput
from hotset.nouns.memory import (
    MemoryId,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    Procedure,
    Relation,
    Standing,
)
from hotset.nouns.progress import Progress, silent
from hotset.sources.memory.economics import LIMITS, LOADED, Remedy, check, economics_of
from hotset.sources.memory.exchange.items import (
    EPISODE,
    FACT,
    FORMATS,
    LEARNING,
    MARK,
    Item,
    embedded_memory,
    foreign_memory,
    iso_day,
    iso_time,
    item_of,
    memory_of,
    read_links,
    seal_memory,
)
from hotset.sources.memory.exchange.merge import (
    FORMAT,
    VERSION,
    FileTree,
    Shards,
    Survey,
    TreeFile,
    as_json,
    files_of_export,
    whole_folder,
    write_file,
)
from hotset.sources.memory.kinds import is_memory_id, memory_id
from hotset.store.port import Store
from hotset.tokens import count

_OUR_NOTE = re.compile(r"\n<!-- hotset (\{[^\n]*\}) -->\s*\Z")
_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(.*)")
_SECTIONS = {
    "prerequisites": "prerequisites",
    "steps": "steps",
    "common errors & fixes": "common_errors",
    "common errors and fixes": "common_errors",
    "exit criteria": "exit_criteria",
}


def skill_text(memory: MemoryRecord) -> str:
    """Ends with a comment that holds the whole memory: see `items`."""
    # `>` is escaped so that it cannot end the comment
    fields = msgspec.json.encode(item_of(memory)[MARK]).decode().replace(">", "\\u003e")
    return f"{_visible(memory)}\n<!-- hotset {fields} -->\n"


def skill_of(kind: MemoryKind, text: str, place: str, changed: float) -> MemoryRecord | None:
    r"""The memory of a skill file; `text` has `\n` line ends only."""
    ours = _OUR_NOTE.search(text)
    fields = _fields(ours[1]) if ours else {}
    visible = text[: ours.start()] if ours else text
    item: Item = {**_skill_sections(visible), "id": fields.get("id"), MARK: fields}
    own = embedded_memory(kind, item)
    if own is not None and visible == _visible(own).replace("\r\n", "\n"):
        return own
    return memory_of(kind, item, place, changed)


def _visible(memory: MemoryRecord) -> str:
    detail = memory.detail if isinstance(memory.detail, Procedure) else Procedure()
    needs = f"\n## Prerequisites\n- {detail.when}\n" if detail.when else ""
    steps = "".join(f"{number}. {step}\n" for number, step in enumerate(detail.steps, 1))
    listed = f"\n## Steps\n{steps}" if steps else ""
    return f"# Skill: {memory.title}\n\n{memory.text}\n{needs}{listed}"


def _fields(text: str) -> dict[str, Any]:
    with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        if isinstance(fields := msgspec.json.decode(text), dict):
            return fields
    return {}


def _skill_sections(text: str) -> Item:
    """Fields from a heading, the text below it, and lists under known headings."""
    item: Item = {"name": "", **{name: [] for name in _SECTIONS.values()}}
    described: list[str] = []
    into: list[str] | None = None
    for line in text.split("\n"):
        if line.startswith("# ") and not item["name"]:
            item["name"] = line[2:].strip().removeprefix("Skill:").strip()
        elif line.startswith("## "):
            known = _SECTIONS.get(line[3:].strip().lower())
            into = item[known] if known else None
            described += [] if known else [line]
        elif into is None:
            described.append(line)
        elif bullet := _BULLET.fullmatch(line):
            into.append(bullet[1])
        elif line.strip() and into:
            into[-1] += f"\n{line.strip()}"
        elif line.strip():
            into.append(line.strip())
    return {**item, "description": "\n".join(described).strip()}


_FOLDERS = tuple(dict.fromkeys(form.folder for form in FORMATS.values()))
_EXPORTED = frozenset(Standing) - {Standing.FORGOTTEN}
# of a list: small enough for an editor, and far below what is still read
_SHARD_BYTES = 4 * 1024 * 1024
_LISTS = {
    "episodes": "episodic/index.json",
    "patterns": "semantic/patterns.json",
    "anti_patterns": "semantic/anti-patterns.json",
    "facts": "semantic/facts.json",
    "links": "semantic/links.json",
    "others": "hotset/others.json",
}
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
_READ_LISTS = frozenset((*_LISTS, "learnings", "lessons", "skills"))
_PAGED = frozenset({"skills", "ledgers", "handoffs", "learnings"})
"""Folders in which some versions have text pages, too."""
_RELATIONS = dict.fromkeys(("elaborates", "example_of", "supports"), Relation.RELATED_TO) | {
    each.value: each for each in Relation
}
_SUPERSEDED_BY = "superseded_by"
"""The one relation of loki-mode's that points the other way."""
_ACTIONS = {
    Remedy.COMPRESS: "compress_layer3",
    Remedy.RESCORE: "review_topic_relevance",
    Remedy.COMPOSE: "create_specialized_index",
    Remedy.REORGANISE: "reorganize_topic_index",
}
_NOTHING_READ = 999.99  # loki-mode's ratio of discovery to reading if nothing was read


def write_loki(store: Store, folder: Path, progress: Progress = silent) -> int:
    """Write all memories as files, replacing an earlier export atomically. Deterministic.

    Returns how many. Raises `BadInput` if the folder holds other files, and `StoreFailed` if it
    cannot be written.
    """
    with whole_folder(folder, _refuse_foreign) as draft:
        export = _LokiExport(draft, store, progress)
        for kind in FORMATS:
            for memory in store.memories(frozenset({kind}), _EXPORTED):
                export.add(seal_memory(memory))
        written = export.close()
        progress("memories", written, written)
        return written


def read_loki(folder: Path) -> Iterator[MemoryRecord | MemoryLink]:
    """The memories of a folder by hotset or any version of loki-mode, then the links between them.

    hotset's own come back unchanged. Foreign ones are `Trust.OUTSIDE`; their procedures and
    pitfalls are candidates. `merge.merge_memories` decides how much of it is trusted. Raises
    `BadInput`, which names the unusable file.
    """
    with FileTree(layout(folder)) as tree:
        words: dict[MemoryId, int] = {}
        names: dict[str, MemoryId] = {}  # by the id in the file, which could not always be kept
        stated: list[tuple[object, object, object, object]] = []
        for found, item in chain(_memories(tree), _own_memories(tree), _decisions(tree)):
            hashed, memory = hash((found.title, found.text)), found
            if words.get(found.id, hashed) != hashed:  # same id, different words: two memories
                key = f"loki:{found.id}\0{found.text}"
                memory = replace(found, id=memory_id(found.kind, key, found.created))
            if isinstance(name := item.get("id"), str):
                names.setdefault(name, memory.id)
            stated += [(memory.id, relation, to, None) for relation, to in read_links(item)]
            if memory.id not in words:
                words[memory.id] = hashed
                yield memory
        links: dict[tuple[MemoryId, MemoryId, Relation], MemoryLink] = {}
        for row in chain(_link_rows(tree), stated):
            if (link := _link(names, *row)) is not None:
                links.setdefault((link.of, link.to, link.relation), link)
        yield from links.values()


def layout(folder: Path) -> Path:
    """The folder with the memories: this one, or a known subfolder. Raises `BadInput`."""
    folder = folder.expanduser()
    for each in (folder, folder / "memory", folder / ".loki" / "memory"):
        if each.is_dir() and (
            (each / "index.json").is_file() or any((each / name).is_dir() for name in _FOLDERS)
        ):
            return each
    raise BadInput(
        f"{folder} is no folder of memories: neither index.json nor any of "
        f"{', '.join(_FOLDERS)} is there"
    )


class _LokiExport:
    """An export while it is written."""

    def __init__(self, draft: Path, store: Store, progress: Progress) -> None:
        ours = store.memories(frozenset(MemoryKind) - FORMATS.keys())
        forgotten = store.memories(standings=frozenset({Standing.FORGOTTEN}))
        hidden = {memory.id for memory in chain(ours, forgotten)}
        self._store, self._draft, self._uses = store, draft, store.memory_uses()
        self._links = [link for link in store.memory_links() if not {link.of, link.to} & hidden]
        self._links_of: defaultdict[MemoryId, list[MemoryLink]] = defaultdict(list)
        for link in self._links:
            self._links_of[link.of].append(link)
        heads = {name: {"version": VERSION} for name in _LISTS} | {"others": {"format": FORMAT}}
        self._lists = {name: self._list(path, name, heads[name]) for name, path in _LISTS.items()}
        self._learnings: list[tuple[str, MemoryId]] = []
        self.survey = Survey(progress)

    def add(self, memory: MemoryRecord) -> None:
        """`memory` is sealed."""
        self.survey.written(memory.kind)
        if memory.standing is Standing.ACTIVE:
            self._place(memory)
            self.survey.add(memory)
        else:
            own = {"id": memory.id, "kind": memory.kind.value, MARK: msgspec.to_builtins(memory)}
            self._append("others", own)

    def close(self) -> int:
        # only ids were held until now
        for day, dated in groupby(sorted(self._learnings), key=itemgetter(0)):
            name = f"learnings/{day}.json"
            self._lists[name] = self._list(name, "learnings", {"date": day})
            for _, id in dated:
                self._append(name, item_of(seal_memory(self._store.memory(id))))
        for link in self._links:
            row = {"from": link.of, "to": link.to, "relation": link.relation.value, "strength": 1.0}
            self._append("links", {**row, MARK: {"time": link.time, "run": link.run}})
        for each in self._lists.values():
            each.close()
        timeline = self.survey.timeline()
        documents = {
            "index": self.survey.index(),
            "timeline": timeline,
            "token_economics": _token_economics(self._store, count(as_json(timeline))),
        }
        for name, document in documents.items():
            write_file(self._draft, f"{name}.json", as_json(document))
        return self.survey.count

    def _place(self, memory: MemoryRecord) -> None:
        """Write an active memory where loki-mode has its kind."""
        form, day = FORMATS[memory.kind], iso_day(memory.created)
        links = self._links_of.get(memory.id, ())
        if memory.kind is LEARNING:
            self._learnings.append((day, memory.id))
        elif not form.file:
            # loki-mode calls what episodes share a pattern
            is_pattern = memory.kind is FACT and any(
                link.relation is Relation.DERIVED_FROM for link in links
            )
            item = item_of(memory, links, self._uses.get(memory.id))
            self._append("patterns" if is_pattern else form.list, item)
        else:
            name = re.sub(r"[^a-z0-9]+", "-", memory.title.lower())[:40].strip("-")
            path = form.file.format(day=day, id=memory.id, name=f"{name}-" if name else "")
            is_text = path.endswith(".md")
            data = skill_text(memory).encode() if is_text else as_json(item_of(memory))
            write_file(self._draft, path, data)
            if memory.kind is EPISODE:
                about = {"goal": memory.title, "outcome": memory.ending.value}
                self._append(form.list, {"id": memory.id, "date": day, "file": path, **about})

    def _list(self, path: str, name: str, head: Item) -> Shards[Item]:
        return Shards(self._draft, path, _SHARD_BYTES, lambda items: as_json({**head, name: items}))

    def _append(self, name: str, item: Item) -> None:
        self._lists[name].add(item, len(msgspec.json.encode(item)))


def _token_economics(store: Store, timeline_tokens: int) -> Item:
    """Memory's cost in the latest session that was shown any, in loki-mode's terms; zeros if there
    is none. `timeline_tokens`: of the whole timeline."""
    loads = [event for event in store.events(name=LOADED) if event.session]
    session = max(loads, key=lambda event: event.time).session if loads else None
    loads = [event for event in loads if event.session == session]
    spent = economics_of(loads)
    priorities = {each.metric: place for place, each in enumerate(LIMITS, 1)}
    unread = _NOTHING_READ if spent.discovery_tokens else 0.0
    ratio = unread if spent.ratio is None else spent.ratio
    savings = 100.0 if spent.savings is None else 100 * spent.savings
    return {
        "session_id": session or "",
        "started_at": iso_time(min((event.time for event in loads), default=0.0)),
        "metrics": {
            "discovery_tokens": spent.discovery_tokens,
            "read_tokens": spent.read_tokens,
            "ratio": ratio,
            "savings_vs_full_load": f"{savings:.0f}%",
            "layer1_loads": spent.index_loads,
            "layer2_loads": spent.timeline_loads,
            "layer3_loads": spent.full_loads,
            "cache_hits": 0,
            "cache_misses": 0,
        },
        "breakdown": {
            "layer1_loads": spent.index_loads,
            "layer1_tokens": spent.index_tokens,
            "layer2_loads": spent.timeline_loads,
            "layer2_tokens_scanned": spent.timeline_tokens,
            "layer2_tokens_available": timeline_tokens,
            "layer3_loads": spent.full_loads,
            "layer3_tokens": spent.read_tokens,
        },
        "baseline_comparison": {
            "traditional_approach_tokens": spent.available,
            "progressive_approach_tokens": spent.spent,
            "tokens_saved": spent.saved,
        },
        "ratio": ratio,
        "savings_percent": savings,
        "thresholds_triggered": [
            {
                "action_type": _ACTIONS.get(each.remedy, each.remedy.value),
                "priority": priorities[each.metric],
                "description": (
                    f"{each.metric} is {each.value:.4g}; the limit is {each.threshold:g}"
                ),
                "triggered_by": each.metric.value,
            }
            for each in check("session", spent)
        ],
    }


def _refuse_foreign(folder: Path) -> None:
    """Our export may be replaced; anything else may be the only copy."""
    if files_of_export(folder, _OURS) and not _is_ours(folder):
        raise BadInput(
            f"{folder} has memories that hotset did not write; import them first, and export "
            f"to another folder"
        )


def _is_ours(folder: Path) -> bool:
    with FileTree(folder) as tree:
        named = "index.json" in tree.names("", ".json")
        index = tree.file("index.json").decode_json() if named else None
    return isinstance(index, dict) and isinstance(index.get(MARK), dict)


def _memories(tree: FileTree) -> Iterator[tuple[MemoryRecord, Item]]:
    """The memories of all folders, episodes last, each with the object it was read from."""
    for kind, form in sorted(FORMATS.items(), key=lambda each: each[0] is EPISODE):
        days = tree.names(form.folder, folders=True) if kind is EPISODE else []
        for folder in (form.folder, *(f"{form.folder}/{day}" for day in days)):
            described = [
                name
                for name in tree.names(folder, ".json")
                if folder != form.folder or re.match(form.names, name)
            ]
            for name in described:
                file = tree.file(f"{folder}/{name}")
                for item in _items(file.decode_json()):
                    if (memory := memory_of(kind, item, file.place, file.changed)) is not None:
                        yield memory, item
            for name in tree.names(folder, ".md") if folder in _PAGED else ():
                if folder == "skills" and name.removesuffix(".md") + ".json" in described:
                    continue  # some versions write each skill twice
                if (memory := _page(kind, name, tree.file(f"{folder}/{name}"))) is not None:
                    yield memory, {}


def _page(kind: MemoryKind, name: str, file: TreeFile) -> MemoryRecord | None:
    """The memory of a text page: a skill, or a ledger, handoff or learning as free text."""
    text = file.decode_text()
    if FORMATS[kind].folder == "skills":
        return skill_of(kind, text, file.place, file.changed)
    if not text.strip():
        return None
    title = text.strip().split("\n", 1)[0].lstrip("# ")
    return foreign_memory(kind, title, text, id=name, created=file.changed, place=file.place)


def _own_memories(tree: FileTree) -> Iterator[tuple[MemoryRecord, Item]]:
    """What hotset writes beside loki-mode's own folders."""
    for name in tree.names("hotset", ".json"):
        file = tree.file(f"hotset/{name}")
        for place, item in enumerate(_items(file.decode_json()), 1):
            kind = next((each for each in FORMATS if each == item.get("kind")), None)
            memory = embedded_memory(kind, item) if kind is not None else None
            if memory is None:
                raise BadInput(
                    f"{file.place}: the {place}. memory cannot be read; remove it, or export again"
                )
            yield memory, {}


def _decisions(tree: FileTree) -> Iterator[tuple[MemoryRecord, Item]]:
    """The decisions of a timeline. Ours are parts of episodes; other programs have them only
    here."""
    if "timeline.json" not in tree.names("", ".json") or _is_ours(tree.folder):
        return
    file = tree.file("timeline.json")
    timeline = file.decode_json()
    for item in _items(timeline.get("key_decisions") if isinstance(timeline, dict) else None):
        decision = {**item, "category": item.get("topic_id"), "id": None}
        if (memory := memory_of(FACT, decision, file.place, file.changed)) is not None:
            yield memory, {}


def _link_rows(tree: FileTree) -> Iterator[tuple[object, object, object, object]]:
    for name in tree.names("semantic", ".json"):
        if name.startswith("links"):
            for item in _items(tree.file(f"semantic/{name}").decode_json()):
                ends = item.get("from", item.get("from_id")), item.get("to", item.get("to_id"))
                yield ends[0], item.get("relation"), ends[1], item.get(MARK)


def _link(
    names: dict[str, MemoryId], of: object, relation: object, to: object, mark: object
) -> MemoryLink | None:
    one, other = (
        names.get(end) or (MemoryId(end) if is_memory_id(end) else None)
        if isinstance(end, str)
        else None
        for end in (of, to)
    )
    if relation == _SUPERSEDED_BY:
        one, other, relation = other, one, Relation.SUPERSEDES.value
    known = _RELATIONS.get(relation) if isinstance(relation, str) else None
    if one is None or other is None or one == other or known is None:
        return None
    match mark:
        case {"time": int() | float() as time, "run": str(run)}:
            return MemoryLink(one, other, known, float(time), run)
    return MemoryLink(one, other, known)


def _items(value: Any) -> Iterable[Item]:
    """The objects of a document, which is a list, contains lists, or is one object."""
    if isinstance(value, list):
        return [
            each if isinstance(each, dict) else {"text": each}
            for each in value
            if isinstance(each, dict | str)
        ]
    if not isinstance(value, dict):
        return []
    lists = [
        inner for name, inner in value.items() if name in _READ_LISTS and isinstance(inner, list)
    ]
    if not lists or "id" in value:
        return [value]
    return [item for inner in lists for item in _items(inner)]
