"""What every way to a provider can do: bytes there, bytes back, untouched."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from hotset.nouns.call import ClientCall, Response


class Wire(Protocol):
    """How calls reach their upstreams.

    - The body goes out byte for byte; a reply's bytes come back as they come, still compressed
      where they were.
    - Nothing is tried twice: a second try could be a second purchase.
    """

    def send(self, call: ClientCall) -> AbstractAsyncContextManager[Response]:
        """Raises `UpstreamFailed` where no reply began. Leaving the context before the end closes
        the connection."""
        ...

    async def close(self) -> None: ...
