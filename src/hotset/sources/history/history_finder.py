"""Searches the pages and records of conversations: the part of the source that a command needs."""

from __future__ import annotations

from collections.abc import Callable

from hotset.errors import HotsetError
from hotset.index.port import Index
from hotset.nouns.page import PageId, SessionId
from hotset.nouns.search import Entry, EntryId, Query, SearchHit, Sort, SourceHits
from hotset.sealing import seal
from hotset.sources.history.page_search import PageHit, find
from hotset.sources.history.records import is_near, record_hit
from hotset.store.port import Store


class HistoryFinder:
    def __init__(
        self,
        store: Callable[[], Store | None],
        index: Callable[[], Index | None],
    ) -> None:
        """Both functions return None until their object is open."""
        self._store = store
        self._index = index

    def find(self, query: Query) -> SourceHits:
        """Pages; records where the query asks for nothing else."""
        store, index = self._store(), self._index()
        if store is None or index is None:
            return SourceHits()
        if query.only.sorts == {Sort.RECORD}:
            near = index.search(query)
            hits = [record_hit(hit.entry, hit.score) for hit in near.hits if is_near(hit)]
            return SourceHits(hits, near.lacking, near.why)
        found = find(query, store, index)
        left = _references(store, {hit.page.session for hit in found.best})
        hits = [_page_hit(hit, store, left.get(hit.page.id, "")) for hit in found.best]
        return SourceHits(hits, found.lacking, found.why)


def _references(store: Store, sessions: set[SessionId]) -> dict[PageId, str]:
    """The latest reference that stands for each page that left a window of these sessions."""
    references = (each for session in sorted(sessions) for each in store.references(session))
    return {page: each.id for each in references for page in each.pages}


def _page_hit(hit: PageHit, store: Store, reference: str) -> SearchHit:
    """The hit for a page of a conversation, with its secrets sealed; `reference` stands for it if
    it left."""
    page, score, lines = hit.page, hit.score, hit.lines
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
        "reference": reference,
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
