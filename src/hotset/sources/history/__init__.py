"""The pages of the store: brought into the index, found again, and read back in slices.

`pages` reads pages and makes them entries of the index, `page_search` finds pages by a query or by
what a call names, and `answers` writes what a model reads. Each name below is imported when it is
first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotset.sources.history.history_finder import HistoryFinder
    from hotset.sources.history.page_search import PageHit, PageHits, find
    from hotset.sources.history.page_watermark import behind
    from hotset.sources.history.pages import LineTurns, follow, followed
    from hotset.sources.history.source import HistorySource

_HOME_OF = {
    "HistoryFinder": "history_finder",
    "HistorySource": "source",
    "LineTurns": "pages",
    "PageHit": "page_search",
    "PageHits": "page_search",
    "behind": "page_watermark",
    "find": "page_search",
    "follow": "pages",
    "followed": "pages",
}

__all__ = [
    "HistoryFinder",
    "HistorySource",
    "LineTurns",
    "PageHit",
    "PageHits",
    "behind",
    "find",
    "follow",
    "followed",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
