"""Pages of the store: as text for a model, as entries of the index, and filtered by a
conversation's line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from hashlib import blake2b

from hotset.dialects.parts import size_of
from hotset.errors import HotsetError, NotFound, PageDamaged
from hotset.files.lru import Lru
from hotset.index.port import Index, Watermark
from hotset.nouns.page import ROOT, Chain, Digest, Gist, Kind, Page, PageId, SessionId
from hotset.nouns.retrieval import Place
from hotset.nouns.search import Entry, EntryId, Sort
from hotset.nouns.turn import Node
from hotset.nouns.window import WHOLE, Spot
from hotset.sealing import seal
from hotset.sources.history.page_watermark import WATERMARK, mark_of, reached_number
from hotset.sources.history.records import index_records
from hotset.store.port import Store, Where
from hotset.text.clip import safe_line
from hotset.window.arguments import written_text
from hotset.window.page_text import (
    MOST_ARGUMENTS,
    TextStretch,
    is_binary,
    make_gist,
    page_stretches,
    page_title,
    path_in,
)

_HEX_BYTES = 32


@dataclass(frozen=True, slots=True)
class PageText:
    text: str
    own: bool
    """The page's own text; otherwise ours, about content that is not text or cannot be read."""


def page_text(store: Store, page: Page, image: str = "") -> PageText:
    """A page's content as text, or a description of it. `image` says how an image can be viewed
    again."""
    try:
        content = store.content(page.digest)
    except HotsetError:
        lost = (
            f"({page.kind}, {page.size:,} bytes: damaged in the store; run the "
            "original tool call again)"
        )
        return PageText(lost, own=False)
    if page.kind is Kind.IMAGE and not page.media.startswith("text/"):
        size = size_of(content)
        pixels = f", {size[0]} x {size[1]} pixels" if size else ""
        opener = safe_line(page.tool) or "another tool"
        again = image or f"not shown here; open it with {opener}"
        what = f"{safe_line(page.media)}, {len(content):,} bytes{pixels}, image of turn {page.turn}"
        return PageText(f"({what}: {again})", own=False)
    if is_binary(content):
        begins = content[:_HEX_BYTES].hex(" ")
        what = f"{safe_line(page.media)}, {len(content):,} bytes of binary data: {begins}"
        return PageText(f"({what})", own=False)
    written = written_text(content) if page.kind.family is Kind.TOOL_CALL else ""
    return PageText(written or content.decode("utf-8", "replace"), own=True)


def origin(store: Store, page: Page, here: SessionId | None) -> str:
    """`turn 12, tool read_file, src/a.py`, with the session if it is another one."""
    turn = (
        f"turn {page.turn}"
        if page.session == here
        else f"turn {page.turn} of session {page.session}"
    )
    what = f"tool {safe_line(page.tool)}" if page.tool else str(page.kind).replace("_", " ")
    if page.kind.family is Kind.TOOL_CALL:
        what = f"call of {what}"
    path = safe_line(seal(path_of(store, page)).text)
    return ", ".join(filter(None, (turn, what, path)))


def path_of(store: Store, page: Page) -> str:
    """The file or address that a result's call names in its arguments."""
    if not page.call or page.kind.family is Kind.TOOL_CALL:
        return ""
    try:
        wanted = Where(
            session=page.session, call=page.call, kinds=frozenset({Kind.TOOL_CALL}), limit=1
        )
        call = next(store.pages(wanted), None)
        content = store.content(call.digest) if call and call.size <= MOST_ARGUMENTS else b"{}"
    except HotsetError:
        return ""
    return path_in(content)


def moment(time: float) -> str:
    """A page's time, formatted for a line of ours."""
    try:
        return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


def line_nodes(store: Store, here: Place) -> list[Node]:
    """The messages of the line on which the question is asked, in order."""
    if here.session is None:
        return []
    nodes = {node.chain: node for node in store.nodes(here.session)}
    if here.chains:
        return [nodes[chain] for chain in here.chains if chain in nodes]
    last = next((node for node in reversed(nodes.values()) if not node.aside), None)
    backwards: dict[Chain, Node] = {}
    while last is not None and last.chain not in backwards:
        backwards[last.chain] = last
        last = nodes.get(last.parent)
    return [*backwards.values()][::-1]


def on_line(pages: Iterable[Page], chains: frozenset[Chain]) -> Iterator[Page]:
    """Pages that the model could have seen: a rewound past is not its past. A page without a
    message belongs to its whole session."""
    return (page for page in pages if not chains or page.chain in chains or page.chain == ROOT)


class LineTurns:
    """The turns with which the messages of a line arrived, as the store numbers them; read when
    first needed."""

    def __init__(self, store: Store, chains: Sequence[Chain]) -> None:
        self._store = store
        self._chains = chains
        self.of = cache(self._turn)
        """The turn of a message of this line. What is not kept yet will be part of the next turn
        of its session."""

    def _turn(self, chain: Chain) -> int:
        if self._session is None:
            return 1
        where = Where(session=self._session, chain=chain, limit=1)
        page = next(self._store.pages(where), None)
        return page.turn if page is not None else self._next

    @cached_property
    def _session(self) -> SessionId | None:
        """The session with the deepest message of the line, the latest if there are several."""
        for chain in reversed(self._chains):
            if pages := list(self._store.pages(Where(chain=chain))):
                return pages[-1].session
        return None

    @cached_property
    def _next(self) -> int:
        assert self._session is not None
        return 1 + max((turn.number for turn in self._store.turns(self._session)), default=0)


def is_resident(page: Page, here: Place) -> bool:
    """True if the window holds this page in full: every prompt, and what has neither left nor been
    shortened."""
    if page.chain not in here.chains:
        return False
    if page.kind is Kind.PROMPT:
        return True
    return bool(here.shown) and not (
        Spot(page.chain, WHOLE) in here.shown or Spot(page.chain, page.position) in here.shown
    )


def current_prompt(store: Store, here: Place) -> frozenset[PageId]:
    """Pages of the latest prompt on the question's line: they are in the window already, so they
    are no hits."""
    if here.session is None or not here.turn:
        return frozenset()
    pages = store.pages(Where(session=here.session, kinds=frozenset({Kind.PROMPT})))
    prompts = [page for page in on_line(pages, frozenset(here.chains)) if page.turn <= here.turn]
    return frozenset(page.id for page in prompts if page.chain == prompts[-1].chain)


_AT_ONCE = 64  # pages a commit
_BYTES_AT_ONCE = (
    512 * 1024
)  # of content: about 50 ms of work, and of the index's write lock a tenth of that
_MOST_CALLS = 1024  # whose arguments are remembered until their results come by


def follow(
    store: Store, index: Index, until: float, clock: Callable[[], float] = time.monotonic
) -> int:
    """Bring the index up to the store's latest page, or as far as there is time, at least one
    batch.

    Returns the number of pages passed. Running it twice, or in two processes at once, gives the
    same index. Raises a `HotsetError` if the store cannot be read or the index cannot be written.
    """
    paths = _Paths(store)
    at = followed(store, index)
    passed = 0
    while batch := _batch(store, at):
        at, last = batch[-1]
        index.add(_entries(batch, store, paths), Watermark(WATERMARK, mark_of(at, last)))
        index_records(store, index, frozenset(page.session for _, page in batch))
        passed += len(batch)
        if clock() >= until:
            break
    return passed


def followed(store: Store, index: Index) -> int:
    """The number of the last indexed page; 0 if the store no longer has that page.

    A store that replaced another one, or was repaired and continued, is indexed anew.
    """
    return reached_number(store, index.watermark(WATERMARK))


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
        yield from _page_entries(page, known[which], path)


def _page_entries(page: Page, stretches: Sequence[TextStretch], path: str) -> Iterator[Entry]:
    """Entries of one page. The same content from the same place is one set of entries, with its
    latest turn and time.

    Everything else that a filter can use is part of the name: sessions, agents, kinds, tools and
    paths each have entries of their own.
    """
    if not stretches:
        return
    over = page_title(page, path)
    place = repr((page.session, page.agent, page.kind, page.tool, path, page.digest))
    name = blake2b(place.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    for number, stretch in enumerate(stretches):
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
    """Gists of the next pages that have none.

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
    """The paths that results belong to. A call is indexed right before its result, so most are in
    the cache."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._named: Lru[tuple[SessionId, str], str] = Lru("paths of calls", count=_MOST_CALLS)

    def of(self, page: Page, content: bytes) -> str:
        """The path without secrets: an address may contain a password or a token."""
        if not page.call:
            return ""
        key = page.session, page.call
        if page.kind.family is Kind.TOOL_CALL:
            path = seal(path_in(content)).text
            self._named.put(key, path)
            return path
        return self._named.get_or_make(key, lambda: seal(path_of(self._store, page)).text)
