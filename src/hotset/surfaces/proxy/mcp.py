"""MCP over streamable HTTP, behind the proxy's own door: the same tools as over stdin and stdout.

Every answer is one JSON document; the server never sends by itself, so there is no stream to open.
A client of the handshake gets a session, because servers behind us may keep state for it; clients
of 2026-07-28 have none.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hotset.files.lru import Lru
from hotset.files.scope import PROCESS
from hotset.surfaces.mcp.protocol import HANDSHAKES, INVALID_REQUEST, MODERN, Server, failure

_LONGEST = 4 << 20  # bytes of a message
_MOST_SESSIONS = 1000  # the sessions idle longest end first
_SESSION = "mcp-session-id"
_VERSION = "mcp-protocol-version"


class McpDoor:
    """The MCP endpoint of a running proxy. `open_server` is called once, for the first client."""

    def __init__(self, open_server: Callable[[], Server], ended: Callable[[str], None]) -> None:
        """`ended` is called with each session that is over."""
        self._open_server = open_server
        self._ended = ended
        self._server: Server | None = None
        self._one_by_one = PROCESS.child("MCP").executor(1, "hotset-mcp")
        self._sessions: Lru[str, bool] = Lru("MCP sessions", count=_MOST_SESSIONS, shrinks=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        match request.method:
            case "POST":
                response = await self._post(request)
            case "DELETE":
                response = await self._delete(request)
            case _:
                response = Response(status_code=405, headers={"allow": "POST, DELETE"})
        await response(scope, receive, send)

    def close(self) -> None:
        self._one_by_one.shutdown(wait=False, cancel_futures=True)

    async def _post(self, request: Request) -> Response:
        refused = _refusal(request) or self._refuse_unknown_session(request)
        if refused is not None:
            return refused
        try:
            message = await _read_body(request)
        except ClientDisconnect:
            return Response(status_code=400)
        if message is None:
            return _error(413, f"a message may have {_LONGEST:,} bytes")
        session = request.headers.get(_SESSION, "")
        headers = {}
        if _is_handshake(message):
            session = headers[_SESSION] = secrets.token_hex(16)
            await self._add_session(session)
        server = await self._get_server()
        loop = asyncio.get_running_loop()
        beside = None if server.waits(message) else self._one_by_one
        answer = await loop.run_in_executor(beside, server.answer, message, session)
        if answer is None:
            return Response(status_code=202)
        return Response(answer, media_type="application/json", headers=headers)

    async def _delete(self, request: Request) -> Response:
        session = request.headers.get(_SESSION, "")
        if not self._sessions.pop(session):
            return _error(404, "there is no such session")
        await asyncio.to_thread(self._ended, session)
        return Response(status_code=204)

    def _refuse_unknown_session(self, request: Request) -> Response | None:
        session = request.headers.get(_SESSION)
        if session is None:
            return None
        if not self._sessions.get(session):
            return _error(
                404, "this session has ended, or was never there: begin another one with initialize"
            )
        return None

    async def _add_session(self, session: str) -> None:
        for oldest, _ in self._sessions.put(session, True):
            await asyncio.to_thread(self._ended, oldest)

    async def _get_server(self) -> Server:
        if self._server is None:
            self._server = await asyncio.get_running_loop().run_in_executor(
                self._one_by_one, self._open_once
            )
        return self._server

    def _open_once(self) -> Server:
        return self._server or self._open_server()


def _refusal(request: Request) -> Response | None:
    if (
        request.headers.get("content-type", "").partition(";")[0].strip().lower()
        != "application/json"
    ):
        return _error(415, "a message comes as application/json")
    version = request.headers.get(_VERSION)
    if version is not None and version not in (MODERN, *HANDSHAKES):
        return _error(
            400,
            (
                f"protocol version {version[:40]!r} is not spoken here; "
                f"{', '.join((MODERN, *HANDSHAKES))} are"
            ),
        )
    return None


async def _read_body(request: Request) -> bytes | None:
    """The body; None where it is too long; the rest of it stays unread."""
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > _LONGEST:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _is_handshake(message: bytes) -> bool:
    """True if the message is the handshake."""
    try:
        request = msgspec.json.decode(message)
    except (ValueError, RecursionError):
        return False
    return isinstance(request, dict) and request.get("method") == "initialize" and "id" in request


def _error(status: int, sentence: str) -> Response:
    return Response(failure(None, INVALID_REQUEST, sentence), status, media_type="application/json")
