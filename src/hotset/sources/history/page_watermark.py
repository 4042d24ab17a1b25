"""How far an index has come with the pages of a store: the number of its last page, with a few bits
of that page's id, so that another store's page is not taken for it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from hotset.nouns.page import Page
from hotset.store.port import Store

WATERMARK = "pages-2"
"""With another number everything is indexed again: change it with how pages are read or cut."""

_TAG_BITS = 16


def behind(store: Store, watermarks: Mapping[str, int], most: int) -> int:
    """Number of pages, at most `most`, that an index with these watermarks does not have yet."""
    return len(store.pages_after(reached_number(store, watermarks.get(WATERMARK, 0)), most))


def reached_number(store: Store, mark: int) -> int:
    """The number of the page with this mark; 0 if the store does not have it."""
    number = mark >> _TAG_BITS
    there = store.pages_after(number - 1, 1) if number else ()
    return number if there and mark_of(*there[0]) == mark else 0


def mark_of(number: int, page: Page) -> int:
    """The page's number with a few bits of its id."""
    tag = int.from_bytes(blake2b(page.id.encode(), digest_size=_TAG_BITS // 8).digest())
    return number << _TAG_BITS | tag
