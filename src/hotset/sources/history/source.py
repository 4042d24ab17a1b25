"""History as a source: pages of conversations are indexed and found again.

A page that left a window leaves a reference there, and comes back when the model asks for it
(`runtime/retrieval`). What a client itself no longer sends gets such a reference too (`successor`).
An agent that hands over has a tool for what its successor must know (`handoff_notes`).
"""

from __future__ import annotations

from collections.abc import Sequence

from hotset.dialects.port import OwnCall
from hotset.errors import HotsetError
from hotset.index.port import Index
from hotset.nouns.candidate import Candidate
from hotset.nouns.deposit import Deposit
from hotset.nouns.message import Answer
from hotset.sources.history.handoff_notes import keep_note, offer_note_tool
from hotset.sources.history.history_finder import HistoryFinder
from hotset.sources.history.pages import follow
from hotset.sources.history.successor import note_reference, offer_reference
from hotset.sources.port import Scene, Source
from hotset.store.port import Store


class HistorySource(HistoryFinder, Source):
    name = "history"
    standing = True

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

    def follow(self, store: Store, index: Index, until: float) -> int:
        return follow(store, index, until)
