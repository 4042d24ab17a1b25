"""A small agent: sends one request, hears the streamed reply out, and looks at the clock."""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Heard:
    """One call, as its client saw it."""

    status: int
    size: int
    """Bytes of the reply."""
    seconds: float
    session: str
    turn: int
    """What the proxy says it was; empty and 0 without one."""


class Caller:
    """Calls one base URL over one connection, as agents do."""

    def __init__(self, root: str) -> None:
        self.root = root
        parts = urlsplit(root)
        self._path = parts.path.rstrip("/")
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS)

    def call(self, path: str, body: bytes) -> Heard:
        """Raises OSError or HTTPException where the connection breaks; the next call makes a new one."""
        headers = {
            "content-type": "application/json",
            "user-agent": "demo-agent/1.0",
            "x-api-key": "no-key-needed",
            "anthropic-version": "2023-06-01",
        }
        begun = time.perf_counter()
        try:
            self._connection.request("POST", self._path + path, body, headers)
            response = self._connection.getresponse()
            size = len(response.read())
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        return Heard(
            status=response.status,
            size=size,
            seconds=time.perf_counter() - begun,
            session=response.headers.get("x-hotset-session", ""),
            turn=int(response.headers.get("x-hotset-turn", 0)),
        )

    def close(self) -> None:
        self._connection.close()
