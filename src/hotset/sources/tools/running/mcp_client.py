"""An MCP client: agrees on a version with a server, lists its tools, and calls them.

Both eras are spoken: the handshake of 2024-11-05 to 2025-11-25, and 2026-07-28, where every request
carries all there is to know. Below it is JSON-RPC as MCP uses it: each request is answered once,
refused, or given up; whatever else a server says does no harm.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from hotset.errors import ToolFailed
from hotset.nouns.tool import Http, OriginKind, Returned, Tool, ToolOrigin
from hotset.sources.tools.running import SERVERS
from hotset.sources.tools.running.processes import LONGEST, ServerGone, ServerProcess
from hotset.sources.tools.tool_names import full_name
from hotset.typed import json_decoder

MODERN = "2026-07-28"
"""The version since which there is no handshake: every request carries all there is to know."""
HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
METHOD_NOT_FOUND, INVALID_REQUEST, HEADER_MISMATCH = -32601, -32600, -32020

_OPENING = ("initialize", "server/discover")
"""Must not be cancelled: the protocol says so."""
_PIPE = 1 << 16  # bytes that a pipe of Linux holds; macOS gives up to as many
_ANSWERS_AT_ONCE = (
    16  # answers of ours that a server may leave unread; what it asks beyond that gets none
)
_CLIENT = {"name": "hotset", "version": "1"}  # changes when this client behaves differently
_META = "io.modelcontextprotocol/"
_ENVELOPE = {
    f"{_META}protocolVersion": MODERN,
    f"{_META}clientInfo": _CLIENT,
    f"{_META}clientCapabilities": {},
}
_MOST_TOOLS = 10_000
_MOST_PAGES = 200
_MOST_ROUNDS = (
    10  # of a call that is answered by "ask me again"; as many as the official client goes
)
_FIRST_PAUSE, _LONGEST_PAUSE = (
    0.05,
    0.25,
)  # seconds between two of them, as the official client waits
_LONGEST_NAME = 200  # characters of a server's name and version; they are only shown

_MARK = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN = re.compile(r"[\x20-\x7e]*")
_WRAPPED = re.compile(r"=\?base64\?.*\?=")
_TYPES = (
    "string",
    "integer",
    "boolean",
)  # the protocol forbids numbers: no two languages write one alike
_WIDEST = 4096  # bits; Python refuses to write out numbers far beyond that

Mirrors = Mapping[tuple[str, ...], str]
"""The way to an argument through the schema's properties -> the end of its header's name."""


class RpcRefused(ToolFailed):
    """The server answered the request with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class TurnedAway(RpcRefused):
    """Not the server refused, but what is in front of it: there is an HTTP status and no answer."""


class NotDelivered(ServerGone):
    """The server had ended, or had forgotten us, before it could have read this: the request may be
    sent again."""


class NoAnswer(ToolFailed):
    """The deadline passed and the request was cancelled; what the server did until then is done."""


class NotUnderstood(ToolFailed):
    """The server's answer breaks the protocol."""


class RpcConnection(Protocol):
    """A connection to a server. Used from one event loop, by any number of tasks."""

    changed: bool
    """It announced a change of its tools."""

    @property
    def pid(self) -> int | None: ...
    @property
    def gone(self) -> bool:
        """True where a request would raise `NotDelivered`."""

    def speak(self, version: str) -> None:
        """The protocol's version from now on; empty where none is agreed upon."""

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        seconds: float,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """The result as JSON. Raises `RpcRefused`, `NoAnswer`, `NotUnderstood`, `ServerGone` and
        `NotDelivered`.

        The headers are for proxies on the way; a pipe has none.
        """

    async def tell(self, method: str) -> None: ...
    def last_words(self) -> str: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The tools of a server, as it lists them."""

    tools: tuple[Tool, ...]
    instructions: str
    """What it would like a model to know; unchecked."""
    server: str
    """Its name and version."""
    protocol: str


async def greet(
    source: ToolOrigin, connection: RpcConnection, seconds: float, known: str = ""
) -> McpSession:
    """Agrees on a protocol version; `known` is that of the last time. Raises `ToolFailed`.

    On a pipe the handshake goes first: servers of its era (rmcp before 3.0) end when anything else
    does, and those of both eras take it. By HTTP it is the other way round: a server that keeps no
    sessions cannot forget one.
    """
    if source.origin is not OriginKind.SERVER:  # a host of ours, which has one version: this one
        await connection.ask("ready", {}, seconds)
        return McpSession(source, connection, _Greeted("", "", ""))
    by_http = isinstance(source.launch, Http)
    is_modern_first = known == MODERN or (by_http and known not in HANDSHAKES)
    first, second = (_discover, _initialize) if is_modern_first else (_initialize, _discover)
    async with _within(seconds):
        try:
            greeted = await first(
                connection, seconds / 2 if by_http else seconds
            )  # a process may take all of it to start
        except (RpcRefused, NoAnswer, NotUnderstood) as error:
            try:
                greeted = await second(connection, seconds)
            except (RpcRefused, NotUnderstood):
                raise error from None
    return McpSession(source, connection, greeted)


class McpSession:
    """A session with a server that can be called until it ends."""

    def __init__(self, source: ToolOrigin, connection: RpcConnection, greeted: _Greeted) -> None:
        self._source = source
        self.connection = connection
        self._greeted = greeted
        self._mirrors: dict[str, Mirrors] = {}

    @property
    def protocol(self) -> str:
        return self._greeted.protocol

    async def list_tools(self, seconds: float) -> ToolListing:
        """All of its tools, within bounds. What the protocol does not allow as a tool is left
        out."""
        self.connection.changed = False
        tools: dict[str, Tool] = {}
        async with _within(seconds):
            async for each in self._listed_tools(seconds):
                if each.name not in tools and len(tools) < _MOST_TOOLS and self._may_be_used(each):
                    tools[each.name] = _make_tool(self._source, each)
        return ToolListing(
            tuple(tools.values()), self._greeted.instructions, self._greeted.server, self.protocol
        )

    async def call(self, own_name: str, arguments: Mapping[str, Any], seconds: float) -> Returned:
        """What the tool returned; an error of the server is a failure of the tool.

        Raises `NoAnswer`, `NotUnderstood`, `ServerGone`, and `NotDelivered` where another session
        may be tried.
        """
        async with _within(seconds):
            try:
                return await self._called({"name": own_name, "arguments": arguments}, seconds)
            except TurnedAway:
                raise
            except RpcRefused as error:
                return _failure(str(error))

    async def _listed_tools(self, seconds: float) -> AsyncIterator[_ListedTool]:
        cursor, seen, size = "", set[str](), 0
        for _ in range(_MOST_PAGES):
            try:
                page = await self._ask("tools/list", {"cursor": cursor} if cursor else {}, seconds)
            except RpcRefused as error:
                if error.code == METHOD_NOT_FOUND:  # it has prompts or resources, and no tools
                    return
                raise
            size += len(page)
            listed = _read(page, _PAGE)
            for each in listed.tools:
                with contextlib.suppress(NotUnderstood):
                    yield _read(bytes(each), _TOOL)
            cursor = listed.nextCursor or ""
            if not cursor or cursor in seen or size > LONGEST:
                return
            seen.add(cursor)

    def _may_be_used(self, tool: _ListedTool) -> bool:
        """A schema that marks arguments for headers where it must not makes a tool that must not be
        used; since 2026-07-28."""
        if self.protocol != MODERN:
            return True
        marks = read_mirrors(_object(tool.inputSchema)[1])
        if marks is not None:
            self._mirrors[tool.name] = marks
        return marks is not None

    async def _called(self, params: dict[str, Any], seconds: float) -> Returned:
        pause = _FIRST_PAUSE
        for _ in range(_MOST_ROUNDS):
            result = _read(await self._call(params, seconds), _RESULT)
            if result.resultType == "complete" or self.protocol != MODERN:
                return _returned(result)
            if result.resultType != "input_required":
                raise NotUnderstood(
                    f"it answered with a {result.resultType[:40]!r}, which is no result of a tool"
                )
            if result.inputRequests or result.requestState is None:
                return _failure(
                    "This tool wants to ask a person or a model first, which is not possible here."
                )
            params["requestState"] = result.requestState
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, 2 * pause)
        return _failure("This tool asked to be called again without end.")

    async def _call(self, params: Mapping[str, Any], seconds: float) -> bytes:
        own_name, arguments = params["name"], params["arguments"]
        try:
            return await self._ask(
                "tools/call",
                params,
                seconds,
                mirror_headers(self._mirrors.get(own_name, {}), arguments),
            )
        except RpcRefused as error:
            if error.code != HEADER_MISMATCH or own_name in self._mirrors:
                raise
        # It expects headers that only its schemas name, and has run nothing yet.
        await self.list_tools(seconds)
        return await self._ask(
            "tools/call",
            params,
            seconds,
            mirror_headers(self._mirrors.get(own_name, {}), arguments),
        )

    async def _ask(
        self,
        method: str,
        params: Mapping[str, Any],
        seconds: float,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        if self.protocol == MODERN:
            params = {**params, "_meta": _ENVELOPE}
        return await self.connection.ask(method, params, seconds, headers)


class _Greeted(msgspec.Struct, frozen=True):
    protocol: str
    server: str
    instructions: str


class _Initialized(msgspec.Struct):
    protocolVersion: str  # noqa: N815 - the wire's own names, here and below
    serverInfo: Any = None  # noqa: N815
    instructions: str | None = None


class _Discovered(msgspec.Struct):
    supportedVersions: list[str]  # noqa: N815
    instructions: str | None = None
    _meta: Any = None


class _Page(msgspec.Struct):
    tools: list[msgspec.Raw]
    nextCursor: str | None = None  # noqa: N815


class _ListedTool(msgspec.Struct):
    name: str
    title: str | None = None
    description: str | None = None
    inputSchema: msgspec.Raw = msgspec.Raw(b"{}")  # noqa: N815
    annotations: msgspec.Raw = msgspec.Raw(b"{}")


class _Result(msgspec.Struct):
    content: msgspec.Raw = msgspec.Raw(b"[]")
    isError: bool = False  # noqa: N815
    structuredContent: msgspec.Raw = msgspec.Raw(b"")  # noqa: N815
    resultType: str = "complete"  # noqa: N815
    inputRequests: Any = None  # noqa: N815
    requestState: str | None = None  # noqa: N815


_INITIALIZED = json_decoder(_Initialized)
_DISCOVERED = json_decoder(_Discovered)
_PAGE = json_decoder(_Page)
_TOOL = json_decoder(_ListedTool)
_RESULT = json_decoder(_Result)


async def _initialize(connection: RpcConnection, seconds: float) -> _Greeted:
    connection.speak("")
    params = {"protocolVersion": HANDSHAKES[0], "capabilities": {}, "clientInfo": _CLIENT}
    answer = _read(await connection.ask("initialize", params, seconds), _INITIALIZED)
    if answer.protocolVersion not in HANDSHAKES:
        raise NotUnderstood(
            f"it speaks version {answer.protocolVersion[:40]!r} of MCP; hotset speaks {MODERN}, "
            f"{', '.join(HANDSHAKES)}"
        )
    connection.speak(answer.protocolVersion)
    await connection.tell("notifications/initialized")
    return _Greeted(answer.protocolVersion, _server(answer.serverInfo), answer.instructions or "")


async def _discover(connection: RpcConnection, seconds: float) -> _Greeted:
    connection.speak(MODERN)
    answer = _read(
        await connection.ask("server/discover", {"_meta": _ENVELOPE}, seconds), _DISCOVERED
    )
    if MODERN not in answer.supportedVersions:
        raise NotUnderstood(
            f"it speaks versions {', '.join(answer.supportedVersions)[:80]} of MCP; hotset "
            f"speaks {MODERN}"
        )
    meta = answer._meta if isinstance(answer._meta, dict) else {}  # noqa: SLF001 - the wire's own name
    return _Greeted(MODERN, _server(meta.get(f"{_META}serverInfo")), answer.instructions or "")


def _server(info: Any) -> str:
    if not isinstance(info, dict):
        return ""
    return " ".join(str(info[key]) for key in ("name", "version") if info.get(key))[:_LONGEST_NAME]


@contextlib.asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    """One deadline for all requests inside."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise NoAnswer(f"it did not answer in {seconds:g} s") from None


def _read(text: bytes, decoder: msgspec.json.Decoder[_Decoded]) -> _Decoded:
    try:
        value: _Decoded = decoded(text, decoder)
    except (ValueError, RecursionError):
        raise NotUnderstood("it answered with something that the protocol does not know") from None
    return value


def _make_tool(source: ToolOrigin, listed: _ListedTool) -> Tool:
    annotations, about = _object(listed.annotations)
    title = listed.title or about.get("title")
    return Tool(
        name=full_name(source.name, listed.name),
        source=source.name,
        origin=source.origin,
        own_name=listed.name,
        description=listed.description or "",
        parameters=_object(listed.inputSchema, b'{"type":"object"}')[0],
        title=title if isinstance(title, str) else "",
        annotations=annotations,
    )


def _object(text: msgspec.Raw, otherwise: bytes = b"{}") -> tuple[bytes, dict[str, Any]]:
    """A JSON object as it came, and as it reads; another one where it is none."""
    try:
        sound, value = _sound(text)
    except NotUnderstood:
        return otherwise, {}
    return (sound, value) if isinstance(value, dict) and value else (otherwise, {})


def _returned(result: _Result) -> Returned:
    content, blocks = _sound(result.content)
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise NotUnderstood("it answered with something that is no list of content")
    structured = (
        _sound(result.structuredContent)[0]
        if bytes(result.structuredContent) not in (b"", b"null")
        else None
    )
    return Returned(content, result.isError, structured)


def _failure(sentence: str) -> Returned:
    return Returned(msgspec.json.encode([{"type": "text", "text": sentence}]), failed=True)


def _sound(text: msgspec.Raw) -> tuple[bytes, Any]:
    """JSON as it came where it is valid; otherwise what could be read of it. And its value."""
    plain = bytes(text)
    try:
        return plain, msgspec.json.decode(plain)
    except (ValueError, RecursionError):
        value = _read(plain, _ANYTHING)
        return msgspec.json.encode(value), value


_Decoded = TypeVar("_Decoded")


def read_mirrors(schema: Any) -> Mirrors | None:
    """The arguments that a schema marks for headers. None where a mark is not allowed: such a tool
    must not be used."""
    found: dict[tuple[str, ...], str] = {}
    for path, marked in _marked(schema):
        name = marked[_MARK]
        sound = (
            path
            and isinstance(name, str)
            and _TOKEN.fullmatch(name)
            and marked.get("type") in _TYPES
        )
        if not path or not sound or name.lower() in (other.lower() for other in found.values()):
            return None
        found[path] = name
    return found


def mirror_headers(marks: Mirrors, arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers of one call. An argument that is missing, or null, has none."""
    headers: dict[str, str] = {}
    for path, name in marks.items():
        value = _at(arguments, path)
        if isinstance(value, bool):
            headers[f"Mcp-Param-{name}"] = "true" if value else "false"
        elif isinstance(value, str) or (isinstance(value, int) and value.bit_length() <= _WIDEST):
            headers[f"Mcp-Param-{name}"] = header_value(str(value))
    return headers


def header_value(text: str) -> str:
    """A text as a header can carry it: as it is, or marked and in base64."""
    if _PLAIN.fullmatch(text) and text == text.strip() and not _WRAPPED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="


def _marked(schema: Any) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Every schema that carries a mark, with the way to it where that leads through nothing but
    properties.

    Not by recursion: a schema may be nested deeper than our stack.
    """
    left: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    while left:
        path, node = left.pop()
        if isinstance(node, list):
            left += ((None, each) for each in node)
        if not isinstance(node, dict):
            continue
        if _MARK in node:
            yield path, node
        for key, value in node.items():
            if key == "properties" and isinstance(value, dict):
                left += (
                    (None if path is None else (*path, name), each) for name, each in value.items()
                )
            elif key in _PLACES:
                left.append((None, value))
            elif key in _NAMED_PLACES and isinstance(value, dict):
                left += ((None, each) for each in value.values())


_PLACES = frozenset(
    (
        *(
            "items",
            "prefixItems",
            "contains",
            "unevaluatedItems",
            "additionalProperties",
            "unevaluatedProperties",
            "propertyNames",
        ),
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "contentSchema"),
    )
)
"""Where JSON Schema 2020-12 expects schemas. `default`, `examples`, `const` and `enum` hold
data that looks like one."""
_NAMED_PLACES = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(key)
    return arguments


class RpcMessage(msgspec.Struct):
    """A message of a server: a request, notification, answer or error."""

    id: int | str | None = None
    method: str = ""
    result: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")


class PipeConnection:
    """An `RpcConnection` to a process, over its pipes. Made inside a running event loop."""

    def __init__(self, channel: ServerProcess) -> None:
        self.changed = False
        self._channel = channel
        self._ids = itertools.count(1)
        self._waiting: dict[int | str, asyncio.Future[RpcMessage | None]] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._gone = False
        self._reading = SERVERS.task(self._read(), "read a server")

    @property
    def pid(self) -> int | None:
        return self._channel.pid

    @property
    def gone(self) -> bool:
        return self._gone

    def speak(self, version: str) -> None:
        """Nothing to do: a pipe carries no headers."""

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        seconds: float,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        del headers
        if self._gone:
            raise NotDelivered("it has ended")
        id = next(self._ids)
        answer: asyncio.Future[RpcMessage | None] = asyncio.get_running_loop().create_future()
        self._waiting[id] = answer
        try:
            async with asyncio.timeout(seconds):
                await self._put(request(id, method, params))
                received = await answer
        except (TimeoutError, asyncio.CancelledError) as error:
            if method not in _OPENING:
                self._send(
                    notification(
                        "notifications/cancelled",
                        {"requestId": id, "reason": "nobody waits any more"},
                    )
                )
            if isinstance(error, TimeoutError):
                raise NoAnswer(f"it did not answer in {seconds:g} s") from None
            raise
        finally:
            del self._waiting[id]
        if received is None:
            raise ServerGone("it ended before it answered")
        return outcome(received)

    async def tell(self, method: str) -> None:
        await self._channel.send(notification(method))

    def last_words(self) -> str:
        return self._channel.last_words()

    async def close(self) -> None:
        await self._channel.close()
        await asyncio.gather(self._reading, *self._sending, return_exceptions=True)

    async def _put(self, message: bytes) -> None:
        """Sends a request. Where its pipe takes the message whole and nothing else waits, the
        server has either got it or never will."""
        try:
            await self._channel.send(message)
        except ServerGone as error:
            if len(message) < _PIPE and len(self._waiting) == 1:
                raise NotDelivered(str(error)) from None
            raise

    async def _read(self) -> None:
        try:
            while (line := await self._channel.receive()) is not None:
                for message in messages(line):
                    self._hear(message)
        finally:
            self._gone = True
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_result(None)

    def _hear(self, message: RpcMessage) -> None:
        if message.method:
            self.changed |= is_change(message)
            if (reply := reply_to(message)) is not None:
                self._send(reply)
            return
        answer = self._waiting.get(message.id) if message.id is not None else None
        if (
            answer is not None and not answer.done()
        ):  # otherwise it comes too late, twice, or from nowhere
            answer.set_result(message)

    def _send(self, message: bytes) -> None:
        """Sends in the background: a server that reads nothing while it writes must not stop us
        from reading."""
        if len(self._sending) < _ANSWERS_AT_ONCE and not self._gone:
            task = SERVERS.task(self._sent(message), "tell a server")
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _sent(self, message: bytes) -> None:
        try:
            await self._channel.send(message)
        except ServerGone:
            return  # then it wants no answer either


def request(id: int, method: str, params: Mapping[str, Any]) -> bytes:
    try:
        message = msgspec.json.encode(
            {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        )
    except (TypeError, ValueError, RecursionError):
        raise ToolFailed(
            "the arguments are not JSON; give strings, numbers, lists and objects"
        ) from None
    if len(message) > LONGEST:
        raise ToolFailed(
            f"the arguments exceed {LONGEST >> 20} MiB; put them in a file and give its path"
        )
    return message


def notification(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    return msgspec.json.encode(
        {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
    )


def messages(line: bytes) -> Iterator[RpcMessage]:
    """The messages of a line; none where it is something else that the program printed.

    Several in one array were allowed by the protocol of 2025-03-26.
    """
    line = line.strip()
    if not line.startswith((b"{", b"[")):
        return
    try:
        found = decoded(line, _LINE)
    except (ValueError, RecursionError):
        return
    yield from found if isinstance(found, list) else [found]


_LINE: msgspec.json.Decoder[RpcMessage | list[RpcMessage]] = json_decoder(
    RpcMessage | list[RpcMessage]
)
_ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def decoded(text: bytes, decoder: msgspec.json.Decoder[Any] = _ANYTHING) -> Any:
    """JSON as it should be and as programs write it. Raises `ValueError` and `RecursionError`.

    Half an emoji becomes `?`, NaN null, and bytes that are no UTF-8 a sign for that.
    """
    try:
        return decoder.decode(text)
    except msgspec.ValidationError:
        raise
    except ValueError:  # of msgspec, and of bytes that are no text
        return decoder.decode(_repaired(text))


def _repaired(text: bytes) -> bytes:
    value = json.loads(text.decode("utf-8", "replace"), parse_constant=lambda _: None)
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def is_change(message: RpcMessage) -> bool:
    return message.method == "notifications/tools/list_changed"


def reply_to(message: RpcMessage) -> bytes | None:
    """The answer to a request of the server: it may ping, and nothing else. No model, person or
    folder of ours is offered to it.

    Folders (roots) above all: servers let them replace the ones that the operator wrote into their
    arguments.
    """
    if not message.method or message.id is None:
        return None
    if message.method == "ping":
        return msgspec.json.encode({"jsonrpc": "2.0", "id": message.id, "result": {}})
    error = {"code": METHOD_NOT_FOUND, "message": f"this client has no {message.method[:80]}"}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": message.id, "error": error})


def outcome(message: RpcMessage) -> bytes:
    """The result of an answer. Raises `RpcRefused` for an error, and `NotUnderstood` for
    neither."""
    if error := bytes(message.error):
        raise _refused(error)
    if result := bytes(message.result):
        return result
    raise NotUnderstood("it answered with neither a result nor an error")


class _Error(msgspec.Struct):
    code: int = 0
    message: str = "it refused, and did not say why"


_ERROR = json_decoder(_Error)


def _refused(error: bytes) -> RpcRefused:
    try:
        refusal = decoded(error, _ERROR)
    except (ValueError, RecursionError):
        refusal = _Error()
    return RpcRefused(refusal.code, refusal.message)
