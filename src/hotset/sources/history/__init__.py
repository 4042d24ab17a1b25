"""The pages of the store: brought into the index, found again, and read back in slices.

`pages` reads pages and makes them entries of the index, `page_search` finds pages by a query or by
what a call names, and `answers` writes what a model reads.
"""

from hotset.sources.history.page_search import PageHit, PageHits, find
from hotset.sources.history.pages import LineTurns, behind, follow, followed
from hotset.sources.history.source import HistorySource

__all__ = [
    "HistorySource",
    "LineTurns",
    "PageHit",
    "PageHits",
    "behind",
    "find",
    "follow",
    "followed",
]
