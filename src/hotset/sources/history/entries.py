"""Pages as entries of the index: read from the store in their order, a batch a commit, from where
the last one ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b

from hotset.errors import NotFound, PageDamaged
from hotset.files.lru import Lru
from hotset.index.port import Index, Watermark
from hotset.nouns.finding import Entry, EntryId, Sort
from hotset.nouns.page import Digest, Gist, Kind, Page, SessionId
from hotset.sealing import seal
from hotset.sources.history.pages import path_of
from hotset.store.port import Store
from hotset.window.page_text import TextStretch, make_gist, page_stretches, page_title, path_in

WATERMARK = "pages-1"
"""With another number everything is read again: to be changed with how pages are read or cut."""

_AT_ONCE = 64  # pages a commit
_BYTES_AT_ONCE = (
    512 * 1024
)  # of content: about 50 ms of work, and of the index's write lock a tenth of that
_TAG_BITS = 16
_MOST_CALLS = 1024  # whose arguments are remembered until their results come by


def follow(
    store: Store, index: Index, until: float, clock: Callable[[], float] = time.monotonic
) -> int:
    """Brings the index up to the store's latest page, or as far as there is time, and a batch at
    least.

    Gives the number of pages that it came by. Done twice, or by two processes at once, it makes the
    same index. Raises a `HotsetError` where the store cannot be read or the index not be written.
    """
    paths = _Paths(store)
    at = followed(store, index)
    passed = 0
    while batch := _batch(store, at):
        at, last = batch[-1]
        index.add(_entries(batch, store, paths), _mark(at, last))
        passed += len(batch)
        if clock() >= until:
            break
    return passed


def followed(store: Store, index: Index) -> int:
    """The number of the page up to which the index came; 0 where that is no longer the page that it
    was.

    A store that was put in another's place, or repaired and gone on, counts anew.
    """
    return _reached(store, index.watermark(WATERMARK))


def behind(store: Store, watermarks: Mapping[str, int], most: int) -> int:
    """How many pages, at most so many, an index with these watermarks did not come to yet."""
    return len(store.pages_after(_reached(store, watermarks.get(WATERMARK, 0)), most))


def _reached(store: Store, mark: int) -> int:
    number = mark >> _TAG_BITS
    there = store.pages_after(number - 1, 1) if number else ()
    return number if there and _mark(*there[0]).number == mark else 0


def _mark(number: int, page: Page) -> Watermark:
    """The number with a few bits of the page's id, by which it is known again."""
    tag = int.from_bytes(blake2b(page.id.encode(), digest_size=_TAG_BITS // 8).digest())
    return Watermark(WATERMARK, number << _TAG_BITS | tag)


def _batch(store: Store, after: int) -> Sequence[tuple[int, Page]]:
    pages = store.pages_after(after, _AT_ONCE)
    size = 0
    for many, (_, page) in enumerate(pages, 1):
        size += page.size
        if size >= _BYTES_AT_ONCE:
            return pages[:many]
    return pages


def _entries(batch: Sequence[tuple[int, Page]], store: Store, paths: _Paths) -> Iterator[Entry]:
    known: dict[tuple[Digest, Kind, str], list[TextStretch]] = {}
    for _, page in batch:
        try:
            content = store.content(page.digest)
        except (NotFound, PageDamaged):
            continue
        path = paths.of(page, content)
        which = page.digest, page.kind, page.tool
        if which not in known:
            known[which] = list(page_stretches(page, content))
        yield from _of_page(page, known[which], path)


def _of_page(page: Page, said: Sequence[TextStretch], path: str) -> Iterator[Entry]:
    """The same content from the same place is one set of entries, with its latest turn and time,
    however often it is said.

    Whatever else a filter can ask for is part of its name: of two sessions, agents, kinds, tools or
    paths each has its own.
    """
    if not said:
        return
    over = page_title(page, path)
    place = repr((page.session, page.agent, page.kind, page.tool, path, page.digest))
    name = blake2b(place.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    for number, stretch in enumerate(said):
        yield Entry(
            id=EntryId(f"{name}-{number}"),
            whole=page.id,
            sort=Sort.PAGE,
            text=stretch.text,
            kind=page.kind,
            title=over,
            session=page.session,
            agent=page.agent,
            turn=page.turn,
            time=page.time,
            path=path,
            lines=stretch.lines,
        )


def next_gists(store: Store, most: int) -> tuple[Gist, ...]:
    """What the next pages without a gist are about.

    A page whose content is damaged gets an empty gist: `verify` reports it, and the others must not
    wait behind it.
    """
    return tuple(_gist(page, store) for page in store.ungisted(most))


def _gist(page: Page, store: Store) -> Gist:
    try:
        return make_gist(page, store.content(page.digest))
    except PageDamaged:
        return Gist(page.id, 0, (), (), ())


class _Paths:
    """What results are results of. Calls come by right before what they brought, so most are
    remembered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._named: Lru[tuple[SessionId, str], str] = Lru(count=_MOST_CALLS)

    def of(self, page: Page, content: bytes) -> str:
        """Without secrets: an address may have a password or a token in it."""
        if not page.call:
            return ""
        key = page.session, page.call
        if page.kind.family is Kind.TOOL_CALL:
            path = seal(path_in(content)).text
            self._named.put(key, path)
            return path
        return self._named.get_or_make(key, lambda: seal(path_of(self._store, page)).text)
