"""The dashboard's door: pages, the API behind them, and events as they happen. The guard has
checked host, origin and token or cookie before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from hotset.errors import BadInput, HotsetError, NotFound, StoreFailed
from hotset.runtime.glance import status_line
from hotset.runtime.machine import Machine
from hotset.runtime.views.project import ViewedProject
from hotset.surfaces.dashboard.access import PATH, DashboardAccess
from hotset.surfaces.dashboard.api_route import ApiRoute, Download
from hotset.surfaces.dashboard.routes import API_ROUTES, openapi
from hotset.typed import convert, decode

_STATIC = Path(__file__).parent / "static"
_API = f"{PATH}/api/"
_LONGEST = 64 << 10  # bytes of an order
_LOOK_SECONDS = 0.5
_ALIVE_SECONDS = 15.0
_MOST_LISTENERS = 16
_SECURE = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_STATUS: Mapping[type[HotsetError], int] = {NotFound: 404, BadInput: 400, StoreFailed: 503}

Status = Callable[[], Awaitable[dict[str, Any]]]


class DashboardDoor:
    """The ASGI application of everything below `/hotset`."""

    def __init__(
        self,
        machine: Machine,
        access: DashboardAccess,
        status: Status,
        routes: tuple[ApiRoute, ...] = API_ROUTES,
    ) -> None:
        self._machine = machine
        self._access = access
        self._status = status
        self._routes = [(compile_path(f"/{each.path}")[0], each) for each in routes]
        self._listeners = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except HotsetError as error:
            response = _refusal(_status_of(error), str(error))
        except ClientDisconnect:
            return
        for name, value in _SECURE.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        path = self._access.plain(request.scope["path"])
        if path.startswith(_API):
            return await self._answer(request, path.removeprefix(_API))
        if path == f"{PATH}/open" and request.method == "POST":
            return _json({"path": self._access.make_link()})
        if request.method != "GET":
            return _refusal(405, "pages are read with GET")
        if path.startswith(f"{PATH}/open/"):
            return self._open(path)
        if path in (f"{PATH}/status", f"{PATH}/status/", f"{PATH}/line"):
            return await self._report(request, is_line=path.endswith("/line"))
        return self._live() if path == f"{PATH}/live" else self._page(request, path)

    async def _report(self, request: Request, *, is_line: bool) -> Response:
        """The proxy's status, or the line of `hotset statusline`."""
        if not is_line:
            return _json(await self._status())
        machine, session = self._machine, request.query_params.get("session", "")
        line = partial(status_line, machine.keeper.store, machine.config, session)
        return Response(await asyncio.to_thread(line), media_type="text/plain")

    def _page(self, request: Request, path: str) -> Response:
        """A file of the dashboard; the page itself for the address of every view."""
        name = path.removeprefix(PATH).lstrip("/")
        if "." not in name.rpartition("/")[2]:
            return self._index(request, name)
        file = (_STATIC / name).resolve()
        if not file.is_relative_to(_STATIC) or file.suffix not in _TYPES or not file.is_file():
            return _refusal(404, "there is no such page")
        return Response(file.read_bytes(), media_type=_TYPES[file.suffix])

    def _index(self, request: Request, name: str) -> Response:
        if not self._access.has_cookie(request.headers.get("cookie", "")):
            return RedirectResponse(self._access.make_link(), 303)  # it came with the token
        if not request.scope["path"].startswith(self._access.home):
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"{self._access.home}{quote(name)}{query}", 303)
        page = (_STATIC / "index.html").read_bytes()
        home = self._access.home.encode()
        return Response(page.replace(f"{PATH}/".encode(), home), media_type=_TYPES[".html"])

    def _open(self, path: str) -> Response:
        cookie = self._access.open(path)
        if cookie is None:
            return _refusal(403, "this link was used already; make another with: hotset open")
        return RedirectResponse(self._access.home, 303, headers={"set-cookie": cookie})

    async def _answer(self, request: Request, path: str) -> Response:
        if path == "openapi.json":
            return _json(openapi())
        for pattern, each in self._routes:
            if match := pattern.match(f"/{path}"):
                return await self._run(each, request, match.groupdict())
        raise NotFound(f"there is no {path[:80]!r} here; see: api/openapi.json")

    async def _run(self, route: ApiRoute, request: Request, named: Mapping[str, str]) -> Response:
        if request.method != ("POST" if route.acts else "GET"):
            return _refusal(405, f"use {'POST' if route.acts else 'GET'}")
        if route.acts:
            refused = _refuse_act(request)
            if refused is not None:
                return refused
        try:
            if route.acts:
                asked = decode(await _read_body(request), route.question)
            else:
                words = {**request.query_params, **{k: unquote(v) for k, v in named.items()}}
                asked = convert(words, route.question, strict=False)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"not a question that {route.path} takes: {error}") from error
        live = await self._status()
        project = ViewedProject.of_machine(self._machine, live)
        found = await asyncio.to_thread(route.run, project, asked)
        if route.acts:
            await asyncio.to_thread(self._machine.orders.refresh, project.store)
        return _download(found) if isinstance(found, Download) else _json(found)

    def _live(self) -> Response:
        if self._listeners >= _MOST_LISTENERS:
            return _refusal(503, f"{_MOST_LISTENERS} pages listen already; close one")
        return StreamingResponse(self._changes(), media_type="text/event-stream")

    async def _changes(self) -> AsyncIterator[bytes]:
        """An event whenever the store has something new. It polls a number that costs nothing to
        read."""
        self._listeners += 1
        try:
            known, waited = -1, 0.0
            while not self._access.is_over:
                store = self._machine.keeper.store
                version = store.version() if store is not None else -1
                if version != known:
                    known, waited = version, 0.0
                    yield b'event: changed\ndata: {"requests": %d}\n\n' % (
                        self._machine.tally.requests
                    )
                elif waited >= _ALIVE_SECONDS:
                    waited = 0.0
                    yield b": alive\n\n"
                waited += _LOOK_SECONDS
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            self._listeners -= 1


def _refuse_act(request: Request) -> Response | None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return _refusal(415, "an order comes as application/json")
    if "cookie" in request.headers and "origin" not in request.headers:
        return _refusal(403, "a browser's order names its origin")
    return None


async def _read_body(request: Request) -> bytes:
    pieces: list[bytes] = []
    async for piece in request.stream():
        pieces.append(piece)
        if sum(map(len, pieces)) > _LONGEST:
            raise BadInput(f"an order may have {_LONGEST:,} bytes")
    return b"".join(pieces)


def _download(found: Download) -> Response:
    """Sent as it is read: each piece is made in a thread, and none waits for the next."""
    headers = {"content-disposition": f'attachment; filename="{found.name}"'}
    return StreamingResponse(found.pieces, media_type=found.media, headers=headers)


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


def _refusal(status: int, sentence: str) -> Response:
    return Response(msgspec.json.encode({"error": sentence}), status, media_type="application/json")


def _status_of(error: HotsetError) -> int:
    return next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
