"""Memories in the index, and pages of talk with what was said around them: their entries, and
following the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

from hotset.errors import NotFound, PageDamaged
from hotset.files.lru import Lru
from hotset.index.port import Index, Watermark
from hotset.nouns.finding import Entry, EntryId, Sort
from hotset.nouns.memory import Episode, MemoryRecord, Standing
from hotset.nouns.page import Kind, Page, PageId
from hotset.sealing import seal
from hotset.sources.memory.keep import known_content, known_memories
from hotset.sources.memory.kinds import NAMED_KINDS, is_memory_id
from hotset.store.port import Store, Where
from hotset.window.page_text import is_binary

WINDOW = "window"
"""The kind of an entry that holds a page with those before and behind it."""

BESIDE = 2
"""Pages on either side that are part of a window."""

FINDABLE = frozenset({Standing.ACTIVE, Standing.SUPERSEDED})
"""What is forgotten, merged, or not confirmed yet has no entry."""


_OWN = 1000  # characters of the page itself, about one stretch
_AROUND = 300  # characters of each page beside it: a question, or how an answer begins
_LONGEST = 6000  # characters of a memory: its begin; the embedder reads the first third of that
_MOST_SAID = 4000  # characters of prompts that an episode is found by
_PER_PROMPT = 400
_SPEAKERS = {Kind.PROMPT: "p", Kind.RESPONSE: "r"}
_KINDS = {letter: kind for kind, letter in _SPEAKERS.items()}


def is_found(memory: MemoryRecord) -> bool:
    return memory.standing in FINDABLE and memory.kind in NAMED_KINDS


def entry_of(memory: MemoryRecord, said: Sequence[str] = ()) -> Entry:
    """`said` are an episode's prompts, sealed: whoever looks for it remembers the words of the day,
    not ours."""
    prompts = "\n".join(text[:_PER_PROMPT] for text in said)[:_MOST_SAID]
    text = "\n".join(
        part for part in (memory.text[:_LONGEST], ", ".join(memory.topics), prompts) if part
    )
    return Entry(
        id=EntryId(f"memory-{memory.id}"),
        whole=memory.id,
        sort=Sort.MEMORY,
        text=text,
        kind=memory.kind,
        title=memory.title,
        session=memory.source.session or "",
        agent=memory.source.agent,
        time=memory.created,
    )


def is_talk(page: Page) -> bool:
    """Somebody's own words: what a person or a model said, and no result of a tool."""
    return page.kind in _SPEAKERS


def window_of(page: Page, text: str, before: Sequence[str], behind: Sequence[str]) -> Entry:
    """A page with the last ones before it and the first ones behind it; all texts are sealed."""
    around = [*before[-BESIDE:], *behind[:BESIDE]]
    at = len(before[-BESIDE:])
    parts = [each[:_AROUND] for each in around]
    parts.insert(at, text[:_OWN])
    return Entry(
        id=EntryId(f"window-{page.id}-{_SPEAKERS[page.kind]}"),
        whole=page.id,
        sort=Sort.MEMORY,
        text="\n".join(parts),
        kind=WINDOW,
        session=page.session,
        agent=page.agent,
        turn=page.turn,
        time=page.time,
    )


def said_by(entry: Entry) -> Kind:
    """Whose words are in the middle of a window."""
    return _KINDS[entry.id[-1]]


MEMORIES = "memories-1"
TALK = "talk-1"
"""Watermarks. With another number everything is read again: to be changed with how entries are
made."""

_MEMORIES_AT_ONCE = 256  # versions a commit
_PAGES_AT_ONCE = 64
_TAG_BITS = 16
_FAR_BACK = (
    64  # pages that are looked through for what was said before: results of tools stand between
)
_MOST_KNOWN = 4096  # pages and texts that are remembered while following
_LONGEST_PAGE = (
    16 * 1024
)  # characters of a page that are sealed for a window, which holds the first thousand
_MOST_PROMPTS = 24  # of an episode that are read: it is found by the first few thousand characters


_Entries = Callable[[Sequence[tuple[int, Any]]], Iterable[Entry]]
"""The entries of a batch of versions, or of pages."""


def follow_memories(
    store: Store, index: Index, until: float, clock: Callable[[], float] = time.monotonic
) -> int:
    """Brings the index up to the store, or as far as there is time, and a batch of each at least.

    Gives the number of versions and pages that it came by. Done twice, or by two processes at once,
    it makes the same index. Raises a `HotsetError` where the store cannot be read or the index not
    be written.
    """
    line = _Line(store)
    followed: tuple[tuple[str, int, _Entries], ...] = (
        (MEMORIES, _MEMORIES_AT_ONCE, lambda batch: _memory_entries(store, index, batch)),
        (TALK, _PAGES_AT_ONCE, lambda batch: _window_entries(line, batch)),
    )
    passed = 0
    for mark, most, entries in followed:
        at = _reached(store, index, mark)
        while batch := _after(store, mark, at, most):
            at = batch[-1][0]
            index.add(entries(batch), _watermark(mark, *batch[-1]))
            passed += len(batch)
            if clock() >= until:
                break
    return passed


def memories_indexed(store: Store, index: Index) -> int:
    """The number of the last version that the index came by: those behind it are not found yet."""
    return _reached(store, index, MEMORIES)


def drop_erased(store: Store, index: Index) -> int:
    """Takes out what was erased from the store, and how many memories that were. Reads all of them:
    for after an erasure."""
    there = {memory.id for memory in store.memories()}
    gone = [
        whole for whole in index.wholes(Sort.MEMORY) if is_memory_id(whole) and whole not in there
    ]
    if gone:
        index.remove(gone)
    return len(gone)


def _after(store: Store, mark: str, number: int, most: int) -> Sequence[tuple[int, Any]]:
    """The next versions of memories, or pages, each with its number."""
    return (store.memories_after if mark == MEMORIES else store.pages_after)(number, most)


def _reached(store: Store, index: Index, mark: str) -> int:
    """0 where what it stood at is not there any more: another store, or one from which something
    was erased."""
    known = index.watermark(mark)
    number = known >> _TAG_BITS
    there = _after(store, mark, number - 1, 1) if number else ()
    return number if there and _watermark(mark, *there[0]).number == known else 0


def _watermark(mark: str, number: int, last: MemoryRecord | Page) -> Watermark:
    name = f"{last.id} {last.version}" if isinstance(last, MemoryRecord) else last.id
    tag = int.from_bytes(blake2b(name.encode(), digest_size=_TAG_BITS // 8).digest())
    return Watermark(mark, number << _TAG_BITS | tag)


def _memory_entries(
    store: Store, index: Index, batch: Sequence[tuple[int, MemoryRecord]]
) -> Iterator[Entry]:
    """Whichever version came by, the latest is written: two processes that follow write the same.
    What is no longer found is taken out."""
    latest = known_memories(store, dict.fromkeys(memory.id for _, memory in batch))
    shown = [memory for memory in latest if is_found(memory)]
    hidden = {memory.id for _, memory in batch} - {memory.id for memory in shown}
    if hidden:
        index.remove(sorted(hidden))
    return (entry_of(memory, list(_prompts(store, memory))) for memory in shown)


def _prompts(store: Store, memory: MemoryRecord) -> Iterator[str]:
    """What people said in an episode."""
    if not isinstance(memory.detail, Episode) or memory.source.session is None:
        return
    where = Where(
        session=memory.source.session,
        kinds=frozenset({Kind.PROMPT}),
        turns=memory.detail.turns,
        limit=_MOST_PROMPTS,
    )
    yield from filter(None, (_text(store, page) for page in store.pages(where)))


def _text(store: Store, page: Page) -> str:
    content = known_content(store, page.digest)
    return (
        ""
        if content is None or is_binary(content)
        else seal(content.decode("utf-8", "replace")[:_LONGEST_PAGE]).text
    )


def _window_entries(line: _Line, batch: Sequence[tuple[int, Page]]) -> Iterable[Entry]:
    windows: dict[EntryId, Entry] = {}
    for _, page in batch:
        line.meet(page)
        if is_talk(page):
            windows.update((window.id, window) for window in _windows(line.upto(page)))
    return windows.values()


def _windows(line: Sequence[tuple[Page, str]]) -> Iterator[Entry]:
    """Of the last one, and of those that now have it behind them."""
    texts = [text for _, text in line]
    for at in range(max(0, len(line) - 1 - BESIDE), len(line)):
        if texts[at].strip():
            yield window_of(line[at][0], texts[at], texts[:at], texts[at + 1 :])


class _Line:
    """What was said before a page, in its own line. Pages come by in their order, so most are
    remembered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pages: Lru[PageId, Page] = Lru(count=_MOST_KNOWN)
        self._texts: Lru[PageId, str] = Lru(count=_MOST_KNOWN)

    def meet(self, page: Page) -> None:
        self._pages.put(page.id, page)

    def upto(self, page: Page) -> list[tuple[Page, str]]:
        """The page and as many before it as the windows in which it stands need."""
        line = [(page, self._text(page))]
        at = page
        for _ in range(_FAR_BACK):
            before = self._before(at)
            if before is None or len(line) > 2 * BESIDE:
                break
            at = before
            if is_talk(at):
                line.append((at, self._text(at)))
        return line[::-1]

    def _before(self, page: Page) -> Page | None:
        parent = page.parent
        if parent is None:
            return None
        try:
            return self._pages.get_or_make(parent, lambda: self._store.page(parent))
        except (NotFound, PageDamaged):
            return None

    def _text(self, page: Page) -> str:
        return self._texts.get_or_make(page.id, lambda: _text(self._store, page))
