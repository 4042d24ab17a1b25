"""Memories as entries of a Markdown page, and parsing such a page after any edits. Pure.

    ## How tokens are signed

    `sem-7ha2c0de` · 2026-01-05 · auth

    <!-- hotset:begin sem-7ha2c0de 1 5c1e09aa77d0b3f2 -->
    RS256, with a key of its own for each service.
    <!-- hotset:end sem-7ha2c0de -->

Title and text may be edited. The marker holds the version and a hash of both, which reveals edits.
Everything under a heading is its entry; one without a marker is new.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import groupby
from pathlib import Path

from hotset.errors import BadInput
from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import (
    DETAILS,
    Detail,
    Ending,
    Episode,
    MemoryId,
    MemoryKind,
    MemoryRecord,
    Pitfall,
    Procedure,
    Provenance,
    Standing,
    Trust,
)
from hotset.nouns.progress import Progress, silent
from hotset.sources.memory.exchange.items import EPISODE, FORMATS, LEARNING, iso_day, seal_memory
from hotset.sources.memory.exchange.merge import (
    BATCH,
    FileTree,
    MergeReport,
    Shards,
    Survey,
    files_of_export,
    run_of,
    whole_folder,
    write_file,
)
from hotset.sources.memory.kinds import ADVICE_KINDS, is_memory_id, kind_of, memory_id
from hotset.store.port import Store
from hotset.tokens import count

_UNTITLED = "Untitled"
_BEGIN = re.compile(r"<!-- hotset:begin ([a-z0-9-]+) (\d{1,9}) ([0-9a-f]{16}) -->")
_END = re.compile(r"<!-- hotset:end ([a-z0-9-]+) -->")
_MARKER = re.compile(r"(<|&(?:amp;)*lt;)!-- hotset:")
_HEAD = re.compile(
    r"# (?:Facts|Procedures|Pitfalls|Ledgers|Handoffs|Learnings|Episodes, (?:\d{4}-\d\d|undated))"
)
_ABOUT = re.compile(r"`([a-z0-9-]+)`(?: · .*)?")
_STANDINGS = {Standing.CANDIDATE: "waits for confirmation", Standing.SUPERSEDED: "no longer holds"}


@dataclass(frozen=True, slots=True)
class PageEntry:
    title: str
    text: str
    id: MemoryId | None = None
    version: int = 0
    written: str = ""
    """The hash of what hotset wrote there."""

    @property
    def edited(self) -> bool:
        return self.written != hash_of(self.title, self.text)


def entry_text(memory: MemoryRecord) -> str:
    title, text = shown_of(memory)
    about = (
        f"`{memory.id}`",
        iso_day(memory.created),
        " ".join(", ".join(memory.topics).split()),
        memory.ending.value if memory.ending is not Ending.UNKNOWN else "",
        _STANDINGS.get(memory.standing),
    )
    marker = f"<!-- hotset:begin {memory.id} {memory.version} {hash_of(title, text)} -->"
    body = f"{_escape_markers(text)}\n" if text else ""
    head = f"## {title}\n\n{' · '.join(filter(None, about))}"
    return f"{head}\n\n{marker}\n{body}<!-- hotset:end {memory.id} -->\n"


def entries_of(page: str) -> Iterator[PageEntry]:
    """The entries in order. Text above the first heading is an entry, too, unless hotset wrote
    it."""
    for title, lines in _sections(_plain(page).split("\n")):
        if (entry := _entry(title, lines)) is not None:
            yield entry


def shown_of(memory: MemoryRecord) -> tuple[str, str]:
    """Title and text as a page shows them, normalized so that editors' whitespace changes do not
    count."""
    return " ".join(memory.title.split()) or _UNTITLED, _trim(_plain(memory.text).split("\n"))


def hash_of(title: str, text: str) -> str:
    return blake2b(f"{title}\0{text}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _trim(lines: list[str]) -> str:
    """Without trailing blanks, and without blank lines at either end."""
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def _escape_markers(text: str) -> str:
    """Escape text that looks like our markers; escaped text is escaped once more."""
    return _MARKER.sub(
        lambda found: ("&lt;" if found[1] == "<" else "&amp;" + found[1][1:]) + "!-- hotset:", text
    )


def _unescape_markers(text: str) -> str:
    return _MARKER.sub(
        lambda found: (
            ("<" if len(found[1]) < 5 else found[1].replace("&amp;", "&", 1)) + "!-- hotset:"
        ),
        text,
    )


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each heading with all that follows it. A heading between two markers is part of a memory's
    text."""
    title, section, until = "", list[str](), -1
    for at, line in enumerate(lines):
        if at > until and line.startswith("## "):
            yield title, section
            title, section = line[3:].strip(), []
            continue
        if at > until and (begin := _BEGIN.fullmatch(line.strip())):
            until = _end_of(begin[1], lines, at)
        section.append(line)
    yield title, section


def _end_of(id: str, lines: list[str], begin: int) -> int:
    """The line of the end marker; the begin line if it is missing."""
    for at, line in enumerate(lines[begin + 1 :], begin + 1):
        if _BEGIN.fullmatch(line.strip()):
            break
        if (end := _END.fullmatch(line.strip())) and end[1] == id:
            return at
    return begin


def _entry(title: str, lines: list[str]) -> PageEntry | None:
    """None if the section is empty."""
    body: list[str] = []
    marker: re.Match[str] | None = None
    for line in lines:
        bare = line.strip()
        if found := _BEGIN.fullmatch(bare):
            marker = marker or found
        elif not (_END.fullmatch(bare) or (marker is None and _is_ours(bare))):
            body.append(line)
    text = _unescape_markers(_trim(body))
    if not (title or text or marker):
        return None
    first = " ".join(text.split("\n", 1)[0].lstrip("#").split())[:160]
    title = " ".join(title.split()) or first or _UNTITLED
    if marker is None or not is_memory_id(marker[1]):
        return PageEntry(title, text or title)
    return PageEntry(title, text, MemoryId(marker[1]), int(marker[2]), marker[3])


def _is_ours(line: str) -> bool:
    """True for the page's own title and note, and the line about a memory."""
    about = _ABOUT.fullmatch(line)
    return (
        _HEAD.fullmatch(line) is not None
        or line.startswith("<!-- hotset:memories")
        or (about is not None and is_memory_id(about[1]))
    )


_PAGES = ("facts", "procedures", "pitfalls", "ledgers", "handoffs", "learnings")
"""In the order of the index."""
_KINDS = {f"{kind}s": kind for kind in FORMATS}
_EPISODES = f"{EPISODE}s"
_INDEX = "index.md"
_EXPORTED = frozenset({Standing.ACTIVE, Standing.CANDIDATE, Standing.SUPERSEDED})
_PAGE_BYTES = 1024 * 1024  # what an editor opens at once; more goes to `facts-2.md`
_TOPICS = 200
_NOTE = (
    "<!-- hotset:memories. Titles and texts can be edited; `hotset memory import` brings the "
    "edits back. "
    "To forget one, use `hotset memory forget`: an entry that is missing here is not forgotten. -->"
)
_OURS = re.compile(
    rf"index\.md|(?:{'|'.join(_PAGES)})(?:-\d+)?\.md|{_EPISODES}/(?:\d{{4}}-\d\d|undated)"
    rf"(?:-\d+)?\.md"
)
_STEP = re.compile(r"\s*\d+[.)]\s+(.*\S)\s*")
_DATED = re.compile(r"ep-(\d{4}-\d\d-\d\d)-")


@dataclass(frozen=True, slots=True)
class PlacedEntry:
    """An entry, its kind of memory, and its page."""

    entry: PageEntry
    kind: MemoryKind
    place: str

    @property
    def id(self) -> MemoryId:
        """Its own; for an entry without one, derived from its words."""
        return self.entry.id or memory_id(
            self.kind, f"markdown\0{self.entry.title}\0{self.entry.text}"
        )


def write_markdown(store: Store, folder: Path, progress: Progress = silent) -> int:
    """Write all but forgotten and merged memories, replacing an earlier export atomically.

    Returns how many. Raises `BadInput` if the folder holds other files or edits that were not
    imported, and `StoreFailed` if it cannot be written.
    """
    with whole_folder(folder, lambda there: _refuse_foreign(there, store)) as draft:
        survey, pages, episodes = Survey(progress), {}, {}
        for name in _PAGES:
            memories = store.memories(frozenset({_KINDS[name]}), _EXPORTED)
            pages[name] = _write_page(draft, name, name.capitalize(), memories, survey)
        dated = sorted(
            (memory.created, memory.id)
            for memory in store.memories(frozenset({EPISODE}), _EXPORTED)
        )
        for month, ids in groupby(dated, key=lambda each: _month(each[0])):  # holds only ids
            path, found = f"{_EPISODES}/{month}", (store.memory(id) for _, id in ids)
            episodes[path] = _write_page(draft, path, f"Episodes, {month}", found, survey)
        write_file(draft, _INDEX, _index(pages | dict(reversed(episodes.items())), survey).encode())
        progress("memories", survey.count, survey.count)
        return survey.count


def read_markdown(folder: Path) -> Iterator[PlacedEntry]:
    """The entries of all pages, edited or not. Raises `BadInput`, which names the unusable file."""
    with FileTree(folder) as tree:
        paths = _pages(tree)
        if not paths:
            raise BadInput(
                f"{folder} has no pages of memories: none of "
                f"{', '.join((_EPISODES, *_PAGES))} is there"
            )
        for path in paths:
            if path != _INDEX:
                file = tree.file(path)
                page = re.sub(r"(?:-\d+)?\.md$", "", path)
                for entry in entries_of(file.decode_text()):
                    # an entry added to the episodes is a learning: it has no session
                    kind = (kind_of(entry.id) if entry.id else None) or _KINDS.get(page, LEARNING)
                    if kind in FORMATS:
                        yield PlacedEntry(entry, kind, file.place)


def has_pages(folder: Path) -> bool:
    with FileTree(folder) as tree:
        return bool(_pages(tree))


def merge_markdown(
    store: Store, folder: Path, *, now: float, vouched: bool = False, progress: Progress = silent
) -> MergeReport:
    """Import edits as new versions by a person; missing entries change nothing. Idempotent.

    An edit counts if its marker matches what this store wrote. New entries are not trusted unless
    `vouched`: see `merge`. All pages are read before anything is written. Raises `BadInput` and the
    store's errors.
    """
    total = sum(1 for _ in read_markdown(folder))
    place = folder.expanduser().resolve().name
    report = MergeReport(run_of(place, now))
    batch: dict[MemoryId, MemoryRecord] = {}
    for done, found in enumerate(read_markdown(folder), 1):
        if done % BATCH == 0 or done == total:
            progress("memories", done, total)
        memory = _merge_entry(store, found, report, now, place, vouched=vouched)
        if memory is not None and memory.id not in batch:
            memory = seal_memory(memory)
            batch[memory.id] = replace(memory, tokens=count(memory.text), time=now, run=report.run)
        if batch and (len(batch) == BATCH or done == total):
            store.keep(Remembered(memories=tuple(batch.values()))).result()
            batch = {}
    return report


def _write_page(
    draft: Path, path: str, title: str, memories: Iterable[MemoryRecord], survey: Survey
) -> int:
    """Write a page if it has entries; return their number."""
    head = f"# {title}\n\n{_NOTE}\n"
    page = Shards[str](
        draft, f"{path}.md", _PAGE_BYTES, lambda entries: "\n".join((head, *entries)).encode()
    )
    for memory in map(seal_memory, memories):
        text = entry_text(memory)
        page.add(text, len(text))
        survey.add(memory)
        survey.written(memory.kind)
    if page.count:
        page.close()
    return page.count


def _pages(tree: FileTree) -> list[str]:
    paths = [
        *tree.names("", ".md"),
        *(f"{_EPISODES}/{name}" for name in tree.names(_EPISODES, ".md")),
    ]
    return [path for path in paths if _OURS.fullmatch(path)]


def _month(created: float) -> str:
    day = iso_day(created)
    return day[:7] if day[0].isdigit() else day


def _index(pages: dict[str, int], survey: Survey) -> str:
    named = survey.named_topics(_TOPICS)
    lines = [
        "# Memories",
        "",
        _NOTE,
        "",
        *(f"- [{name}]({name}.md): {number}" for name, number in pages.items() if number),
        *(("", "## Topics", "") if named else ()),
        *(
            f"- **{_line(name)}**: {topic.memories}, the latest: {_line(topic.title)}"
            for name, topic in named
        ),
    ]
    return "\n".join(lines) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())[:120]


def _refuse_foreign(folder: Path, store: Store) -> None:
    """Our export may be replaced once all edits in it are in the store."""
    if not any(path.is_file() for path in files_of_export(folder, _OURS)):
        return
    with FileTree(folder) as tree:
        if (
            _INDEX not in tree.names("", ".md")
            or "<!-- hotset:memories" not in tree.file(_INDEX).decode_text()
        ):
            raise BadInput(f"{folder} has pages that hotset did not write; choose an empty folder")
    for each in read_markdown(folder):
        shown = each.entry.title, each.entry.text
        if each.entry.edited and shown not in map(shown_of, store.memory_versions(each.id)):
            page = each.place.split("/", 1)[1]
            raise BadInput(
                f"{folder / page} has edits that were not imported "
                f"({each.entry.title[:60]!r}); import them first"
            )


def _merge_entry(
    store: Store, found: PlacedEntry, report: MergeReport, now: float, place: str, *, vouched: bool
) -> MemoryRecord | None:
    """The version to write, if any."""
    entry = found.entry
    versions = store.memory_versions(found.id)
    if not versions:
        report.new += 1
        report.waiting += not vouched and found.kind in ADVICE_KINDS
        return _new(found, now, place, vouched=vouched)
    latest = versions[-1]
    if any(shown_of(seal_memory(version)) == (entry.title, entry.text) for version in versions):
        report.same += 1
        return None
    base = next((version for version in versions if version.version == entry.version), None)
    is_ours = base is not None and hash_of(*shown_of(seal_memory(base))) == entry.written
    if (
        latest.standing is Standing.FORGOTTEN
        or base is None
        or not is_ours
        or shown_of(latest) != shown_of(base)
    ):
        report.kept.append(latest.id)
        return None
    report.changed += 1
    return _apply_edit(latest, entry, found.place)


def _new(found: PlacedEntry, now: float, place: str, *, vouched: bool) -> MemoryRecord:
    entry = found.entry
    return MemoryRecord(
        id=found.id,
        kind=found.kind,
        title=entry.title,
        text=entry.text,
        created=_day(entry.id, now),
        source=Provenance("person" if vouched else "import", places=(found.place, place)),
        detail=_new_detail(found.kind, entry),
        trust=Trust.PERSON if vouched else Trust.OUTSIDE,
        standing=Standing.CANDIDATE
        if found.kind in ADVICE_KINDS and not vouched
        else Standing.ACTIVE,
        why=f"imported from {found.place}",
    )


def _new_detail(kind: MemoryKind, entry: PageEntry) -> Detail:
    shape = DETAILS[kind]
    if shape is Procedure:
        return Procedure(entry.title, _numbered_steps(entry.text))
    given = (entry.title,) if shape in (Episode, Pitfall) else ()
    made: Detail = shape(*given) if shape is not None else None
    return made


def _numbered_steps(text: str) -> tuple[str, ...]:
    return tuple(step[1] for line in text.split("\n") if (step := _STEP.fullmatch(line)))


def _day(id: MemoryId | None, now: float) -> float:
    """The day in the id of another store's episode; otherwise now."""
    dated = _DATED.match(id or "")
    try:
        return datetime.fromisoformat(dated[1]).replace(tzinfo=UTC).timestamp() if dated else now
    except ValueError:
        return now


def _apply_edit(memory: MemoryRecord, entry: PageEntry, place: str) -> MemoryRecord:
    """The memory in a person's words. Details that the new text no longer contains are removed."""
    title, text = shown_of(memory)
    detail = memory.detail
    if entry.text != text and isinstance(detail, Procedure):
        steps = _numbered_steps(entry.text) or tuple(
            step for step in detail.steps if step in entry.text
        )
        detail = replace(detail, steps=steps)
    elif entry.text != text and isinstance(detail, Pitfall):
        held = {name: getattr(detail, name) for name in ("what", "why", "instead")}
        now = f"{entry.title}\n{entry.text}"
        detail = Pitfall(
            **{
                name: words if words in now or words not in memory.text else ""
                for name, words in held.items()
            }
        )
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
