"""History as a source: pages of conversations are indexed and found again.

A page that left a window leaves a reference there, and comes back when the model asks for it
(`runtime/retrieval`). What a client itself no longer sends gets such a reference too (`successor`).
An agent that hands over has a tool for what its successor must know (`handoff_notes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hotset.dialects.port import OwnCall
from hotset.errors import HotsetError
from hotset.index.port import Index
from hotset.nouns.candidate import Candidate
from hotset.nouns.deposit import Deposit
from hotset.nouns.message import Answer
from hotset.nouns.page import PageId, SessionId
from hotset.nouns.search import Entry, EntryId, Query, SearchHit, Sort, SourceHits
from hotset.sealing import seal
from hotset.sources.history.handoff_notes import keep_note, offer_note_tool
from hotset.sources.history.page_search import PageHit, find
from hotset.sources.history.pages import follow
from hotset.sources.history.records import is_near, record_hit
from hotset.sources.history.successor import note_reference, offer_reference
from hotset.sources.port import Scene, Source
from hotset.store.port import Store


class HistorySource(Source):
    name = "history"
    standing = True

    def __init__(
        self,
        store: Callable[[], Store | None],
        index: Callable[[], Index | None],
    ) -> None:
        """Both functions return None until their object is open."""
        self._store = store
        self._index = index

    def offer(self, scene: Scene, until: float) -> Sequence[Candidate]:
        """The reference to what the client has cut off with this request; none if that cannot be
        read, because the next request would meet the same fault."""
        del until
        noting = offer_note_tool(scene)
        try:
            return (*noting, *offer_reference(scene))
        except HotsetError:
            return noting

    async def answer(self, call: OwnCall, scene: Scene) -> Answer:
        """Keep an agent's note for its successor."""
        return await keep_note(call, scene)

    def took(self, scene: Scene, taken: Sequence[Candidate]) -> Sequence[Deposit]:
        return note_reference(scene, taken)

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

    def follow(self, store: Store, index: Index, until: float) -> int:
        return follow(store, index, until)


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
