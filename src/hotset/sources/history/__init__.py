"""History: the pages of the store, brought into the index, found again, and read back in slices.

`entries` makes pages entries of the index, `search` finds pages, `lookup` tells which pages a model
means, and `answers` writes what it reads.
"""

from hotset.sources.history.entries import behind, follow, followed
from hotset.sources.history.search import PageHit, PageHits, find
from hotset.sources.history.source import HistorySource, page_hits

__all__ = [
    "HistorySource",
    "PageHit",
    "PageHits",
    "behind",
    "find",
    "follow",
    "followed",
    "page_hits",
]
