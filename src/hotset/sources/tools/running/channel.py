"""The contract of a connection to one server: messages there and back, until it ends."""

from __future__ import annotations

from typing import Protocol

from hotset.errors import ToolFailed


class ServerGone(ToolFailed):
    """The process or the connection ended before the answer came."""


class Channel(Protocol):
    """Used from one event loop. One task receives; any number send."""

    @property
    def pid(self) -> int | None:
        """Of the server's process; None where it runs elsewhere."""

    async def send(self, message: bytes) -> None:
        """One JSON-RPC message, without a newline in it.

        Returns when the server has room for more; raises `ServerGone` when there is nobody to read it.
        """

    async def receive(self) -> bytes | None:
        """The next message, in the order in which they were sent; None when the server ended, and from then on."""

    async def close(self) -> None:
        """Ends the server and everything it started; may be called again. A `receive` that waits gets None."""

    def last_words(self) -> str:
        """The tail of what it wrote to stderr, at most 2,000 characters, for a message about its end; empty if there is none."""
