"""Replies that a client continues by their id (`previous_response_id`) and of which it saw less
than the provider remembers.

A streamed turn of several rounds carries the id of its first one, and the provider remembers the
rest under the id of its last.
"""

from __future__ import annotations

import msgspec

from hotset.dialects.change import resume
from hotset.dialects.port import Dialect
from hotset.files.lru import Lru
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.message import Request
from hotset.nouns.note import Space
from hotset.store.port import Store

_RESPONSE = Space("response")
"""By the id that the client saw."""

_MOST = 4096


class _Continued(msgspec.Struct, frozen=True):
    last: str
    """The id that the provider goes on from."""
    answers: tuple[str, ...]
    """What it still has to be given: answers to our calls."""


class Resuming:
    """What stands behind the ids that clients saw."""

    def __init__(self) -> None:
        self._known: Lru[str, _Continued] = Lru(count=_MOST)

    def remember(self, seen: str, last: str, answers: tuple[bytes, ...]) -> NoteWritten:
        """The client saw `seen`; the provider goes on from `last`, and still has to be given these
        answers to our calls."""
        continued = _Continued(last, tuple(each.decode() for each in answers))
        self._known.put(seen, continued)
        return NoteWritten(_RESPONSE, seen, msgspec.json.encode(continued))

    def body(self, request: Request, dialect: Dialect, store: Store) -> bytes | None:
        """What to send for a request that continues such a reply; None where it goes out as it
        is."""
        if not dialect.previous_field or not request.previous:
            return None
        known = self._known.get(request.previous)
        if (
            known is None
            and (note := store.notes(_RESPONSE, [request.previous]).get(request.previous))
            is not None
        ):
            known = msgspec.json.decode(note.value or b"", type=_Continued)
        return (
            resume(request, dialect, known.last, [each.encode() for each in known.answers])
            if known is not None
            else None
        )
