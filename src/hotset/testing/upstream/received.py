"""Requests as they arrived, and the log in which a test can wait for them."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Condition
from typing import Any

import msgspec

from hotset.nouns.message import DialectName

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


@dataclass(frozen=True, slots=True)
class Received:
    """One request, exactly as it came over the wire."""

    index: int
    method: str
    path: str
    """With the query, as it stood in the request line."""
    headers: tuple[tuple[str, str], ...]
    """In their order, spelling and number."""
    body: bytes
    """Without transfer framing, but still compressed where the client compressed it."""
    arrived: float
    dialect: DialectName | None = None
    """None where the path belongs to no dialect."""
    ended: bool = False
    """The reply, or the fault that stood for it, was written to its end."""
    cancelled_after: float | None = None
    """Seconds after arrival at which the client went away before the reply had ended."""

    def header(self, name: str) -> str:
        """The first header of that name, whatever its case; empty where there is none."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    @property
    def decoded(self) -> bytes:
        """The body without compression."""
        body = self.body
        for coding in reversed(self.header("content-encoding").replace(" ", "").lower().split(",")):
            if coding not in _DECODERS:
                raise ValueError(f"Unsupported content-encoding: {coding}")
            body = _DECODERS[coding](body)
        return body

    def json(self) -> dict[str, Any]:
        """The body as a JSON object; raises `ValueError` for anything else."""
        try:
            return msgspec.json.decode(self.decoded, type=dict[str, Any])
        except (
            msgspec.MsgspecError,
            RecursionError,
            OSError,
            EOFError,
            zlib.error,
            zstd.ZstdError,
        ) as error:
            raise ValueError(str(error)) from error


class Log:
    """Every request so far, in order of arrival. Written by the server's thread, read by any."""

    def __init__(self) -> None:
        self._received: list[Received] = []
        self._changed = Condition()

    @property
    def requests(self) -> tuple[Received, ...]:
        with self._changed:
            return tuple(self._received)

    def add(self, received: Received) -> Received:
        with self._changed:
            numbered = replace(received, index=len(self._received))
            self._received.append(numbered)
            self._changed.notify_all()
            return numbered

    def end(self, index: int, *, cancelled_after: float | None) -> None:
        with self._changed:
            self._received[index] = replace(
                self._received[index],
                ended=cancelled_after is None,
                cancelled_after=cancelled_after,
            )
            self._changed.notify_all()

    def wait(self, what: str, timeout: float, ready: Callable[[list[Received]], bool]) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: ready(self._received), timeout):
                raise TimeoutError(
                    f"waited {timeout:g} s for {what}; saw {len(self._received)} requests"
                )


def _inflate(body: bytes) -> bytes:
    """`deflate` means zlib, but some clients send it without zlib's header."""
    try:
        return zlib.decompress(body)
    except zlib.error:
        return zlib.decompress(body, -zlib.MAX_WBITS)


_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "identity": bytes,
    "gzip": gzip.decompress,
    "deflate": _inflate,
    "zstd": zstd.decompress,
}
