"""What was before a compaction on a line: kept as a note, read back as pages."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from hotset.errors import HotsetError
from hotset.nouns.note import Space
from hotset.nouns.page import Chain, Page, PageId
from hotset.store.port import Store, Where
from hotset.text.client_marks import ContextChange

EARLIER = Space("earlier")
"""The id of the reference to what was before, and what the client did, by the last message of the
first request after it."""


def earlier_pages(store: Store, chains: Sequence[Chain]) -> list[Page]:
    """The pages that were before a compaction on this line, in order. What the user cleared comes
    by its id only."""
    pages: dict[PageId, Page] = {}
    for note in store.notes(EARLIER, chains).values() if chains else ():
        id, _, change = (note.value or b"").decode().partition(" ")
        if change != ContextChange.COMPACTED:
            continue
        with suppress(HotsetError):
            covered = store.reference(id).pages
            ids = frozenset(covered)
            for each in covered:
                if each not in pages:  # the first of its session
                    found = store.pages(Where(session=store.page(each).session))
                    pages.update((page.id, page) for page in found if page.id in ids)
    return list(pages.values())
