"""Replies that a client continues by their id (`previous_response_id`) and of which it saw less than the provider remembers.

A streamed turn of several rounds carries the id of its first one, and the provider remembers the rest under the id of its last.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from hotset.dialects.change import resume
from hotset.dialects.port import Dialect
from hotset.nouns.message import Request
from hotset.nouns.page import Chain
from hotset.nouns.window import Hidden
from hotset.store.port import Store

_MOST = 4096


class Resuming:
    """What stands behind the ids that clients saw. Kept in the store as rows of the page table under a name of their own."""

    def __init__(self) -> None:
        self._known: OrderedDict[Chain, Hidden] = OrderedDict()
        self._lock = Lock()

    def remember(self, seen: str, last: str, answers: tuple[bytes, ...]) -> Hidden:
        """The client saw `seen`; the provider goes on from `last`, and still has to be given these answers to our calls."""
        row = Hidden(_name(seen), instead=last.encode(), after=answers)
        with self._lock:
            self._known[row.chain] = row
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        return row

    def body(self, request: Request, dialect: Dialect, store: Store) -> bytes | None:
        """What to send for a request that continues such a reply; None where it goes out as it is."""
        if not dialect.previous_field or not request.previous:
            return None
        name = _name(request.previous)
        with self._lock:
            row = self._known.get(name)
        row = row or store.table([name]).hidden.get(name)
        return resume(request, dialect, row.instead.decode(), row.after) if row is not None else None


def _name(id: str) -> Chain:
    return Chain(f"response:{id}")
