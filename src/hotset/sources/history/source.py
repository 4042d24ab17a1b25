"""History as a source: pages of conversations come into the index and are found again.

It offers nothing by itself: what left a window stands there as a reference, and comes back when the
model asks for it (`runtime/recall`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from hotset.errors import HotsetError
from hotset.index.port import Index
from hotset.nouns.finding import Entry, EntryId, Query, SearchHit, Sort
from hotset.nouns.page import Page
from hotset.sealing import seal
from hotset.sources.history.pages import follow
from hotset.sources.history.search import Deadline, PageHits, find_latest
from hotset.sources.port import Source
from hotset.store.port import Store


class HistorySource(Source):
    name = "history"

    def __init__(
        self,
        store: Callable[[], Store | None],
        index: Callable[[], Index | None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Both are given once they are open."""
        self._store = store
        self._index = index
        self._monotonic = monotonic

    def find(self, query: Query, until: float) -> Sequence[SearchHit]:
        store, index = self._store(), self._index()
        if store is None or index is None:
            return ()
        found = find_latest(query, store, index, Deadline(self._monotonic, until))
        return page_hits(found, store) if found is not None else ()

    def follow(self, store: Store, index: Index, until: float) -> int:
        return follow(store, index, until)


def page_hits(found: PageHits, store: Store) -> list[SearchHit]:
    """Pages of conversations; their secrets stay in the store."""
    return [_page_hit(hit.page, hit.score, hit.lines, store) for hit in found.best]


def _page_hit(page: Page, score: float, lines: tuple[int, int], store: Store) -> SearchHit:
    try:
        text = seal(store.content(page.digest).decode("utf-8", "replace")).text
    except HotsetError as error:
        stretch = Entry(EntryId(page.id), page.id, Sort.PAGE, f"({error})")
    else:
        if lines != (0, 0):
            text = "\n".join(text.split("\n")[lines[0] - 1 : lines[1]])
        stretch = Entry(EntryId(page.id), page.id, Sort.PAGE, text, lines=lines)
    detail = {
        "page": page.id,
        "session": page.session,
        "turn": page.turn,
        "kind": page.kind,
        "tool": page.tool,
        "agent": page.agent,
        "time": page.time,
        "lines": list(lines),
        "text": stretch.text,
        "recall": f"hotset recall {page.id}",
    }
    return SearchHit(
        Sort.PAGE,
        score,
        f"{page.session} turn {page.turn}",
        f"{page.tool} {page.kind}".strip(),
        f"hotset show {page.session} --turns {page.turn}",
        page.time,
        stretch,
        detail,
    )
