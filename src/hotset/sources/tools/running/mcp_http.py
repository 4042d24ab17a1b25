"""MCP over streamable HTTP: every message a POST, every answer JSON or a stream of events.

A server gets the headers that its operator configured for it and nothing of the client that called
us. No address that a server sends, in a redirect or anywhere else, is ever gone to.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

import aiohttp
import truststore
from yarl import URL

from hotset.dialects.sse import Splitter
from hotset.errors import ToolFailed
from hotset.nouns.tool import Http
from hotset.sources.tools.running import SERVERS
from hotset.sources.tools.running.mcp_client import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MODERN,
    NoAnswer,
    NotDelivered,
    NotUnderstood,
    RpcMessage,
    RpcRefused,
    TurnedAway,
    header_value,
    is_change,
    messages,
    notification,
    outcome,
    reply_to,
    request,
)
from hotset.sources.tools.running.processes import LONGEST, ServerGone

_CONNECT_SECONDS = 10.0
_GOODBYE_SECONDS = 2.0
# for which the end of a stream is awaited after its answer: then its connection can be used again
_TAIL_SECONDS = 0.02
_LONGEST_ID = 1024
_MOST_MESSAGES = 10_000  # before an answer: progress, logs, questions


class HttpClient:
    """The connections of one event loop to all servers; made inside it."""

    def __init__(self) -> None:
        self._trust: ssl.SSLContext | None = None
        self._client = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            read_bufsize=1 << 17,
        )

    @contextlib.asynccontextmanager
    async def send(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        trust = self._trusted() if url.scheme == "https" else True
        async with self._client.request(
            method, url, headers=headers, data=body, allow_redirects=False, ssl=trust
        ) as reply:
            yield reply

    async def close(self) -> None:
        await self._client.close()

    def _trusted(self) -> ssl.SSLContext:
        """Reading the certificates takes tens of milliseconds, so only where some server wants
        TLS."""
        if self._trust is None:
            self._trust = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return self._trust


class HttpConnection:
    """An `RpcConnection` to a server elsewhere. The caller that waits for an answer reads it;
    nothing runs in the background."""

    pid = None

    def __init__(self, client: HttpClient, launch: Http) -> None:
        self.changed = False
        self.gone = False
        self._client = client
        self._url = _address(launch.url)
        self._where = str(self._url.origin())
        self._own_headers = _sendable(launch.headers)
        self._ids = itertools.count(1)
        self._version = ""
        self._session = ""
        self._farewells: set[asyncio.Task[None]] = set()

    def speak(self, version: str) -> None:
        self._version = version

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        seconds: float,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        if self.gone:
            raise NotDelivered("it has forgotten this session")
        id = next(self._ids)
        message = request(id, method, params)
        try:
            async with asyncio.timeout(seconds):
                return outcome(
                    await self._answer(
                        id, method, message, self._headers(method, params) | dict(headers or {})
                    )
                )
        except (TimeoutError, asyncio.CancelledError) as error:
            self._give_up(id)
            if isinstance(error, TimeoutError):
                raise NoAnswer(f"it did not answer in {seconds:g} s") from None
            raise

    async def tell(self, method: str) -> None:
        async with self._sent("POST", self._headers(method, {}), notification(method)):
            pass

    def last_words(self) -> str:
        return ""

    async def close(self) -> None:
        """Ends the server's session where there is one; failures are ignored."""
        if self._session and not self.gone:
            self._farewell("DELETE", None)
        self.gone = True
        await asyncio.gather(*self._farewells)

    async def _answer(
        self, id: int, method: str, message: bytes, headers: Mapping[str, str]
    ) -> RpcMessage:
        async with self._sent("POST", headers, message) as reply:
            await self._check(reply)
            if method == "initialize":
                self._session = _session(reply)
            async with contextlib.aclosing(self._messages(reply)) as incoming:
                async for heard in incoming:
                    self.changed |= is_change(heard)
                    if heard.id == id and not heard.method:
                        await _end(reply)
                        return heard
        raise ServerGone("it ended before it answered")

    @contextlib.asynccontextmanager
    async def _sent(
        self, method: str, headers: Mapping[str, str], body: bytes | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._client.send(method, self._url, headers, body) as reply:
                yield reply
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotDelivered(f"{self._where} could not be reached: {_why(error)}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ServerGone(f"{self._where} broke off: {_why(error)}") from None

    async def _check(self, reply: aiohttp.ClientResponse) -> None:
        """Raises where there is no answer to read."""
        if reply.status in (200, 201):
            return
        if 300 <= reply.status < 400:
            raise NotUnderstood(
                f"{self._where} sends us elsewhere ({reply.status}), and hotset does not "
                f"follow; correct its URL"
            )
        refused = await self._refused(reply)
        if self._session and (
            reply.status == 404 or (reply.status == 400 and "session" in str(refused).lower())
        ):
            self.gone = True
            raise NotDelivered("it has forgotten this session")
        raise refused

    async def _refused(self, reply: aiohttp.ClientResponse) -> RpcRefused:
        """Why, in the server's words where it has some."""
        if reply.content_type == "application/json":
            try:
                for message in messages(b"".join([chunk async for chunk in self._chunks(reply)])):
                    outcome(message)
            except RpcRefused as refused:
                return refused
            except (aiohttp.ClientError, ToolFailed):
                pass  # the status says enough
        if reply.status in (401, 403):
            return TurnedAway(
                INVALID_REQUEST,
                (
                    f"{self._where} refuses us ({reply.status}); a key that it knows belongs in "
                    f"its headers"
                ),
            )
        code = METHOD_NOT_FOUND if reply.status == 404 else INVALID_REQUEST
        return TurnedAway(code, f"{self._where} answered with status {reply.status}")

    async def _messages(self, reply: aiohttp.ClientResponse) -> AsyncGenerator[RpcMessage, None]:
        """The messages of a reply, as they come. Requests of the server are answered on the way."""
        if reply.content_type != "text/event-stream":
            for message in messages(b"".join([chunk async for chunk in self._chunks(reply)])):
                yield message
            return
        events, count = Splitter(LONGEST), 0
        async for chunk in self._chunks(reply):
            for message in (
                message for event in events.feed(chunk) for message in messages(event.data)
            ):
                count += 1
                if count > _MOST_MESSAGES:
                    raise NotUnderstood(f"{self._where} said {_MOST_MESSAGES} things and no answer")
                if (back := reply_to(message)) is not None and self._version != MODERN:
                    async with self._sent("POST", self._headers("", {}), back):
                        pass
                yield message

    async def _chunks(self, reply: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        if reply.headers.get("Content-Encoding", "identity") != "identity":
            raise NotUnderstood(f"{self._where} compressed its answer, and was asked not to")
        size = 0
        async for chunk in reply.content.iter_any():
            size += len(chunk)
            if size > LONGEST:
                raise NotUnderstood(f"{self._where} answered with more than {LONGEST >> 20} MiB")
            yield chunk

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """The configured headers and the protocol's own, which win."""
        headers = {
            **self._own_headers,
            "accept": "application/json, text/event-stream",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "hotset",
        }
        if self._version:
            headers["mcp-protocol-version"] = self._version
        if self._session:
            headers["mcp-session-id"] = self._session
        if self._version == MODERN and method:
            headers["mcp-method"] = method
            if method == "tools/call":
                headers["mcp-name"] = header_value(str(params["name"]))
        return headers

    def _give_up(self, id: int) -> None:
        """Cancels a request: since 2026-07-28 by ending its connection, before by a message."""
        if self._version and self._version != MODERN:
            self._farewell(
                "POST",
                notification(
                    "notifications/cancelled", {"requestId": id, "reason": "nobody waits any more"}
                ),
            )

    def _farewell(self, method: str, body: bytes | None) -> None:
        task = SERVERS.task(self._say_goodbye(method, body), "leave a server")
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)

    async def _say_goodbye(self, method: str, body: bytes | None) -> None:
        with contextlib.suppress(TimeoutError, ToolFailed):
            async with (
                asyncio.timeout(_GOODBYE_SECONDS),
                self._sent(method, self._headers("", {}), body),
            ):
                pass


def _address(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ToolFailed(
            "its URL is none that hotset can ask; it must begin with http:// or https:// and "
            "name a host"
        )
    return url


def _sendable(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(
            value
        ):  # show neither: it may be a key
            raise ToolFailed(
                "one of its headers cannot be sent; look for line breaks and strange letters "
                "in its configuration"
            )
    return {name.lower(): value for name, value in headers.items()}


_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def _session(reply: aiohttp.ClientResponse) -> str:
    """The server's id of this session, where a header can carry it."""
    id = reply.headers.get("Mcp-Session-Id", "")
    return id if len(id) <= _LONGEST_ID and id.isascii() and id.isprintable() else ""


async def _end(reply: aiohttp.ClientResponse) -> None:
    """Servers end a stream after its answer. A connection that was read to its end is used
    again."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_TAIL_SECONDS):
            while not reply.content.at_eof() and not await reply.content.readany():
                pass


def _why(error: BaseException) -> str:
    """Never the error's own text where that could quote a header."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or type(error.os_error).__name__
    if isinstance(error, TimeoutError):
        return f"no connection within {_CONNECT_SECONDS:.0f} s"
    return type(error).__name__
