"""What tools did in turns whose reply never reached its client.

The provider refused a later round, or the connection broke: the client asks again, and the model calls again. A tool that opened
an issue must not open a second one for that, so the same call of the same request gets what the first one gave.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from hotset.files.lru import Lru
from hotset.nouns.page import Chain
from hotset.runtime.offering import Used

_SECONDS = 600.0
"""Clients try again within seconds, some within minutes; later it is another day's question."""

_MOST = 64

Done = dict[bytes, list[Used]]
"""What calls gave, in their order, by what was called."""


class Unheard:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._left: Lru[Chain, tuple[float, Done]] = Lru(count=_MOST)

    def leave(self, head: Chain, done: Done, now: float) -> None:
        """The turn that answers this message came to nothing."""
        self._left.put(head, (now, done))

    def take(self, head: Chain, now: float) -> Done:
        """What was done in vain for this message. Told once."""
        since, done = self._left.pop(head) or (now, {})
        return done if now - since <= _SECONDS else {}


def name_of(name: str, arguments: Mapping[str, object] | str) -> bytes:
    """The same for the same call, however its arguments are written."""
    return msgspec.json.encode([name, arguments], order="sorted")
