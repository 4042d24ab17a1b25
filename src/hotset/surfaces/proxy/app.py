"""The proxy's ASGI application: admits requests, routes calls, turns ASGI into a `ClientCall`, and
streams the walk's reply back."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hotset.files.scope import Budget, ResourceScope
from hotset.nouns.call import ClientCall, Headers, header
from hotset.nouns.message import DialectName
from hotset.runtime.clients import AGENT_HEADER
from hotset.runtime.machine import Machine
from hotset.runtime.reply_bytes import MOST
from hotset.runtime.walk import pass_through, walk
from hotset.runtime.wire import DEFAULT, DIALECTS, Dialects
from hotset.surfaces.dashboard.access import PATH, DashboardAccess
from hotset.surfaces.dashboard.door import DashboardDoor
from hotset.surfaces.proxy.address import Address

_MCP = ("/mcp", "/mcp/")
_SLICE = 1 << 18
_MOST_CALLS = 8192  # tasks, two for each call: further calls wait for their turn
_JSON: Headers = ((b"content-type", b"application/json"),)

_TOKEN_HEADER = b"x-hotset-token"
_AGENT_MARK = b"~"  # no token has it
_PLAIN = re.compile(r"[A-Za-z0-9/%:@!$&'()*+,;=\-._~]*")
_FRIENDLY_FETCHES = (b"", b"none", b"same-origin")
_CONVERSATIONS = {each.path: (each.provider, name) for name, each in DIALECTS.items()}
"""Endpoints of conversations, below the version prefix; everything else passes through unread."""

_ANTHROPIC_ONLY = ("/messages", "/complete", "/organizations", "/skills")
_NAMED = "/to/"
"""`/to/NAME/v1/...` goes to the upstream of that name."""


class ClientLeft(Exception):
    """The client went away before its request was whole."""


def build(
    machine: Machine,
    address: Address,
    status: Callable[[], Awaitable[dict[str, Any]]],
    mcp: ASGIApp,
    access: DashboardAccess,
) -> ASGIApp:
    """The application behind the guard: our own pages under `/hotset/`, agents' tools at `/mcp`,
    the rest through `Proxy`."""
    own = DashboardDoor(machine, access, status)
    guard = Guard(address.port, address.token, access.admits)
    return Door(own, mcp, Proxy(machine), guard, machine.dialects)


class Door:
    """Admits requests with the token, and removes it from the path."""

    def __init__(
        self, own: ASGIApp, mcp: ASGIApp, proxy: ASGIApp, guard: Guard, dialects: Dialects
    ) -> None:
        self._own = own
        self._mcp = mcp
        self._proxy = proxy
        self._guard = guard
        self._dialects = dialects

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = encode_path(scope["raw_path"]), tuple(scope["headers"])
        admitted = self._guard.admit(*given)
        if isinstance(admitted, Refusal):
            client = AsgiClient(send, dialect_of(scope["path"], self._dialects), self._dialects)
            await client.refuse(admitted.status, admitted.message, ())
            return
        scope["path"], scope["raw_path"] = admitted, admitted.encode()
        scope["headers"] = self._guard.with_agent(
            self._guard.without_token(tuple(scope["headers"])), given
        )
        scope["query_string"] = self._guard.query_without_token(scope["query_string"])
        # The proxy is not a route of the application: its calls need none of what routing does.
        inside = admitted == PATH or admitted.startswith(f"{PATH}/")
        where = self._own if inside else self._mcp if admitted in _MCP else self._proxy
        await where(scope, receive, send)


class Proxy:
    """Handles every call that is not for hotset itself."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._calls = machine.scope.child("calls", Budget(tasks=_MOST_CALLS))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        machine = self._machine
        headers: Headers = tuple(scope["headers"])
        where = route_call(
            scope["method"], scope["raw_path"].decode(), headers, machine.config.upstreams
        )
        client = AsgiClient(send, where.dialect if where else None, machine.dialects)
        if where is None:
            await client.refuse(
                404, "no upstream of that name is configured; `hotset status` lists them", ()
            )
            return
        if header(headers, b"upgrade").lower() == "websocket":
            # Passed on as a plain GET it would fail in ways that clients retry for ever; this
            # makes them use HTTP at once.
            await client.refuse(
                426,
                "hotset speaks HTTP only; without a WebSocket everything works",
                ((b"upgrade", b"HTTP/1.1"),),
            )
            return
        query = "?" + scope["query_string"].decode("latin-1") if scope["query_string"] else ""
        upload = Upload(receive)
        machine.tally.requests += 1
        machine.tally.last = machine.clock()
        machine.call_came()
        try:
            body: bytes | AsyncIterator[bytes] = upload.chunks()
            unread = ""
            if where.dialect is not None:
                body, unread = await upload.whole(MOST)
            call = ClientCall(
                method=scope["method"],
                path=where.path + query,
                headers=headers,
                body=body,
                upstream=where.upstream,
                dialect=None if unread else where.dialect,
                unread=unread,
            )
            if unread:
                machine.bypass(unread, path=where.path)
            await _end_when_left(
                (pass_through if call.dialect is None else walk)(call, client, machine),
                upload,
                self._calls,
            )
        except ClientLeft:
            machine.tally.left += 1


async def _end_when_left(
    work: Coroutine[Any, Any, None], upload: Upload, calls: ResourceScope
) -> None:
    """Cancels the work when the client leaves, also before the first byte of a reply."""
    working = calls.task(work)
    leaving = calls.task(upload.left())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working


class Upload:
    """A request's body as it arrives, and the moment its client leaves."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._first: list[bytes] = []
        self._done = asyncio.Event()

    async def whole(self, most: int) -> tuple[bytes | AsyncIterator[bytes], str]:
        """The whole body; if it is larger than `most`, its stream and the reason why it stays
        unread."""
        size = 0
        while True:
            message = await self._next()
            self._first.append(message.get("body", b""))
            size += len(self._first[-1])
            if not message.get("more_body", False):
                self._done.set()
                return b"".join(self._first), ""
            if size > most:
                return self.chunks(), f"the body is larger than {most >> 20} MiB"

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._first:
            yield chunk
        while not self._done.is_set():
            message = await self._next()
            if not message.get("more_body", False):
                self._done.set()
            if chunk := message.get("body", b""):
                yield chunk

    async def left(self) -> None:
        """Returns when the client goes away; valid once the body has arrived."""
        await self._done.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        return message


class AsgiClient:
    """The client's end of a call; see `runtime.walk.Client`."""

    def __init__(self, send: Send, dialect: DialectName | None, dialects: Dialects) -> None:
        self._send = send
        self._dialect = dialects[dialect] if dialect else DEFAULT
        self.begun = False

    async def start(self, status: int, headers: Headers) -> None:
        self.begun = True
        await self._send(
            {"type": "http.response.start", "status": status, "headers": list(headers)}
        )

    async def send(self, chunk: bytes) -> None:
        """Sends in slices: the server waits for the client to read before it takes another one, but
        takes each one whole."""
        for piece in _slices(chunk):
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def finish(self, last: bytes = b"") -> None:
        if len(last) > _SLICE:
            await self.send(last)
            last = b""
        await self._send({"type": "http.response.body", "body": last, "more_body": False})

    async def refuse(self, status: int, message: str, headers: Headers) -> None:
        body = self._dialect.refuse(status, f"hotset: {message}")
        await self.start(status, (*_JSON, (b"content-length", str(len(body)).encode()), *headers))
        await self._send({"type": "http.response.body", "body": body})

    def broke(self) -> None:
        """Returns without a last chunk, so that the server closes the connection and the client
        sees the break."""


def _slices(chunk: bytes) -> Iterator[bytes | memoryview]:
    if len(chunk) <= _SLICE:
        yield chunk
        return
    view = memoryview(chunk)
    for start in range(0, len(chunk), _SLICE):
        yield view[start : start + _SLICE]


def dialect_of(path: str, dialects: Dialects) -> DialectName | None:
    """The dialect in which to refuse a call that was not admitted."""
    return next((name for name, each in dialects.items() if each.path in path), None)


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    message: str


class Guard:
    def __init__(
        self,
        port: int,
        token: str,
        is_open: Callable[[str, str], bool] = lambda _path, _cookie: False,
    ) -> None:
        """`is_open` says whether a path may be read with a cookie, or without anything."""
        hosts = {f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"}
        if port == 80:
            hosts |= {"127.0.0.1", "localhost", "[::1]"}
        self._hosts = frozenset(host.encode() for host in hosts)
        self._origins = frozenset(b"http://" + host for host in self._hosts)
        self._token = token.encode()
        self._is_open = is_open

    def admit(self, path: str, headers: Headers) -> str | Refusal:
        """The path behind the token, or the refusal."""
        values: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            values.setdefault(name.lower(), []).append(value)
        hosts = values.get(b"host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return Refusal(421, "this address answers only to its own host name")
        if any(origin.lower() not in self._origins for origin in values.get(b"origin", ())):
            return Refusal(403, "requests from other origins are refused")
        if any(site not in _FRIENDLY_FETCHES for site in values.get(b"sec-fetch-site", ())):
            return Refusal(403, "requests from other sites are refused")
        first, _, rest = path.removeprefix("/").partition("/")
        given = values.get(_TOKEN_HEADER, [])
        admitted = (
            "/" + rest
            if self._is_token(first.encode())
            else path
            if (len(given) == 1 and self._is_token(given[0]))
            or self._is_open(path, b"; ".join(values.get(b"cookie", [])).decode("latin-1"))
            else ""
        )
        if admitted and self._has_token(admitted.encode()):
            return Refusal(
                404,
                "the path has this project's token twice; `hotset status` shows the right base URL",
            )
        if admitted:
            return admitted
        if path == PATH or path.startswith(f"{PATH}/"):
            lacks = "this page is opened by a link that works once: hotset open"
        else:
            lacks = "the base URL lacks this project's token; `hotset status` shows the right one"
        return Refusal(401, lacks)

    def without_token(self, headers: Headers) -> Headers:
        """The headers of an admitted request, without those that hold the token: a `Referer`, a
        cookie."""
        return tuple((name, value) for name, value in headers if not self._has_token(value))

    def with_agent(self, headers: Headers, given: tuple[str, Headers]) -> Headers:
        """The headers of a request, with the kind of agent that its token names: `TOKEN~reviewer`
        in the path or in our header. A header that names the agent wins."""
        path, before = given
        words = [path.removeprefix("/").partition("/")[0].encode()]
        words += [value for name, value in before if name.lower() == _TOKEN_HEADER]
        named = (word.partition(_AGENT_MARK)[2] for word in words if self._is_token(word))
        agent = next((name for name in named if name), b"")
        if not agent or any(name.lower() == AGENT_HEADER for name, _ in headers):
            return headers
        return (*headers, (AGENT_HEADER, agent))

    def query_without_token(self, query: bytes) -> bytes:
        return (
            b"&".join(part for part in query.split(b"&") if not self._has_token(part))
            if self._has_token(query)
            else query
        )

    def _has_token(self, text: bytes) -> bool:
        return self._token in text or (b"%" in text and self._token in unquote_to_bytes(text))

    def _is_token(self, given: bytes) -> bool:
        return hmac.compare_digest(given.partition(_AGENT_MARK)[0], self._token)


def named_tokens(path: str, headers: Headers) -> tuple[str, ...]:
    """The words of a call that may be a token: the first of its path, and those of our header."""
    given = (value.decode("latin-1") for name, value in headers if name.lower() == _TOKEN_HEADER)
    mark = _AGENT_MARK.decode()
    first = path.removeprefix("/").partition("/")[0]
    return tuple(each.partition(mark)[0] for each in (first, *given))


def encode_path(path: bytes) -> str:
    """A raw path as text, with every byte that is not allowed in a URL percent-encoded."""
    text = path.decode("latin-1")
    return text if _PLAIN.fullmatch(text) else quote(path, safe="/%:@!$&'()*+,;=-._~")


@dataclass(frozen=True, slots=True)
class CallRoute:
    upstream: str
    path: str
    """The path that is appended to the upstream's URL."""
    dialect: DialectName | None


def route_call(
    method: str, path: str, headers: Headers, upstreams: Collection[str]
) -> CallRoute | None:
    """The route of a call; None where it names an unknown upstream."""
    named = ""
    if path.startswith(_NAMED):
        named, _, rest = path.removeprefix(_NAMED).partition("/")
        path = "/" + rest
        if named not in upstreams:
            return None
    below = path.removeprefix("/v1") if path == "/v1" or path.startswith("/v1/") else path
    upstream, dialect = _CONVERSATIONS.get(below) or ("", None)
    upstream = named or upstream or ("anthropic" if _speaks_anthropic(below, headers) else "openai")
    # The Anthropic base URL ends before the version, every other one behind it.
    target = f"/v1{below}" if upstream == "anthropic" and below != path else below
    return CallRoute(upstream, target, dialect if method == "POST" else None)


def _speaks_anthropic(below: str, headers: Headers) -> bool:
    return below.startswith(_ANTHROPIC_ONLY) or bool(
        header(headers, b"anthropic-version") or header(headers, b"x-api-key")
    )
