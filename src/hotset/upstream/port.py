"""The interface to a provider: bytes there, bytes back, unchanged."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from hotset.nouns.call import ClientCall, Response


class Wire(Protocol):
    """Sends calls to their upstreams.

    - The body goes out byte for byte; a reply's bytes come back as they arrive, still compressed if
      they were.
    - Nothing is retried: a second try could be a second purchase.
    """

    def send(self, call: ClientCall) -> AbstractAsyncContextManager[Response]:
        """Raises `UpstreamFailed` if no reply began. Leaving the context early closes the
        connection."""
        ...

    async def close(self) -> None: ...
