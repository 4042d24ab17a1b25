"""MCP for a server that offers only tools: answers messages, also over stdin and stdout.

Both eras are supported: the handshake of 2025-11-25 and before, and the requests of 2026-07-28,
each of which carries its version. A request is parsed by its own form, so no state is kept between
requests.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import msgspec

from hotset import __version__
from hotset.errors import HotsetError, NotFound
from hotset.files.scope import PROCESS

MODERN = "2026-07-28"
HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Supported versions; a client that asks for an unknown one is offered the newest."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)
UNSUPPORTED_VERSION = -32022

_META = "io.modelcontextprotocol/"
_LIST_MS = 3_600_000  # for which a client may keep our list of tools: it never changes while we run
_SERVER = {"name": "hotset", "title": "hotset", "version": __version__}

_log = logging.getLogger("hotset")

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_LONGEST = 4 << 20  # bytes of a message; a question is a few hundred
_TOO_LONG = f"a message may have {_LONGEST:,} bytes"
_AT_ONCE = 8  # answers under way at the same time


@dataclass(frozen=True, slots=True)
class ToolReply:
    """The answer of a tool."""

    text: str
    failed: bool = False
    """True if the text tells the model what went wrong, or what to ask instead."""
    content: bytes | None = None
    """MCP blocks of another server, as JSON: passed through unchanged, instead of the text."""
    structured: bytes | None = None


@dataclass(frozen=True, slots=True)
class McpTool:
    name: str
    title: str
    description: str
    schema: Mapping[str, Any]
    """The JSON schema of its arguments."""
    call: Callable[[Mapping[str, Any], str], ToolReply]
    """Called with the arguments, and the session of the client that asks."""
    reads: bool = True
    """True if it changes nothing, and reads only this machine."""
    keeps: bool = False
    """True if it changes only what hotset itself keeps, and the change can be undone."""
    asks: bool = False
    """True if it searches by name or words: no hit is an answer, not an error."""
    waits: bool = False
    """True if it waits for another process or server: other requests are answered meanwhile, from
    several threads."""

    def describe(self) -> dict[str, Any]:
        """Its entry in the list of tools."""
        own = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
        keeping = {
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }
        others = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.schema,
            "annotations": {
                "title": self.title,
                **(own if self.reads else keeping if self.keeps else others),
            },
        }


class Server:
    """Answers messages for a set of tools, one by one."""

    def __init__(self, tools: Sequence[McpTool], instructions: str) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._instructions = instructions

    def waits(self, message: bytes) -> bool:
        """True if the message calls a tool that waits for another process or server."""
        try:
            request = _decode(message)
        except (ValueError, RecursionError):
            return False
        params = (
            request.get("params")
            if isinstance(request, dict) and request.get("method") == "tools/call"
            else None
        )
        name = params.get("name") if isinstance(params, dict) else None
        return isinstance(name, str) and name in self._tools and self._tools[name].waits

    def answer(self, message: bytes, session: str = "") -> bytes | None:
        """The answer to one message, in one line; None where none is due."""
        try:
            request = _decode(message)
        except (ValueError, RecursionError):
            return failure(None, PARSE_ERROR, "this is not JSON")
        if not isinstance(request, dict) or request.get("jsonrpc") != "2.0":
            return failure(None, INVALID_REQUEST, "a message is one JSON-RPC 2.0 object")
        if (
            "method" not in request or "id" not in request
        ):  # an answer, or a notification: neither gets a reply
            return None
        return self._answer_request(
            request["method"], request["id"], request.get("params"), session
        )

    def _answer_request(self, method: Any, id: Any, params: Any, session: str) -> bytes:
        if not isinstance(method, str) or isinstance(id, bool) or not isinstance(id, str | int):
            return failure(
                None,
                INVALID_REQUEST,
                "a request has a method and an id, which is a string or a whole number",
            )
        try:
            result = self._result(method, params or {}, session)
        except _RequestRefused as error:
            return failure(id, error.code, str(error), error.data)
        except Exception as error:  # a bug of ours costs one answer, not all of the agent's tools
            _log.exception("%s failed", method)
            return failure(
                id, INTERNAL_ERROR, f"hotset failed ({type(error).__name__}); its log tells more"
            )
        return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "result": result})

    def _result(self, method: str, params: Any, session: str) -> dict[str, Any]:
        if not isinstance(params, dict):
            raise _RequestRefused(INVALID_PARAMS, "params must be an object")
        if _is_modern(params):
            return self._modern(method, params, session)
        match method:
            case "initialize":
                return self._initialize(params)
            case "ping":
                return {}
            case "tools/list":
                return self._list_tools()
            case "tools/call":
                return self._call_tool(params, session)
        raise _RequestRefused(METHOD_NOT_FOUND, f"there is no method {method[:80]!r} here")

    def _modern(self, method: str, params: Mapping[str, Any], session: str) -> dict[str, Any]:
        _check_envelope(params["_meta"])
        kept = {"ttlMs": _LIST_MS, "cacheScope": "private"}
        match method:
            case "server/discover":
                result = {
                    "supportedVersions": [MODERN, *HANDSHAKES],
                    "capabilities": {"tools": {}},
                    "instructions": self._instructions,
                    **kept,
                }
            case "tools/list":
                result = {**self._list_tools(), **kept}
            case "tools/call":
                result = self._call_tool(params, session)
            case _:
                raise _RequestRefused(METHOD_NOT_FOUND, f"there is no method {method[:80]!r} here")
        return {**result, "resultType": "complete", "_meta": {f"{_META}serverInfo": _SERVER}}

    def _initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in HANDSHAKES else HANDSHAKES[0],
            "capabilities": {"tools": {}},
            "serverInfo": _SERVER,
            "instructions": self._instructions,
        }

    def _list_tools(self) -> dict[str, Any]:
        return {"tools": [tool.describe() for tool in self._tools.values()]}

    def _call_tool(self, params: Mapping[str, Any], session: str) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or name not in self._tools:
            raise _RequestRefused(
                INVALID_PARAMS,
                f"no tool {str(name)[:80]!r}; tools: {', '.join(self._tools)}",
            )
        if not isinstance(arguments, dict | None):
            raise _RequestRefused(INVALID_PARAMS, f"{name}: arguments must be an object")
        try:
            reply = self._tools[name].call(arguments or {}, session)
        except HotsetError as error:
            reply = ToolReply(
                f"[hotset: {error}]",
                failed=not (self._tools[name].asks and isinstance(error, NotFound)),
            )
        content: Any = (
            [{"type": "text", "text": reply.text}]
            if reply.content is None
            else _in_one_line(reply.content)
        )
        structured = (
            {}
            if reply.structured is None
            else {"structuredContent": _in_one_line(reply.structured)}
        )
        return {"content": content, **structured, "isError": reply.failed}


def _decode(message: bytes) -> Any:
    """Parses a message; `?` replaces half of a surrogate pair, as of an emoji that was cut: it is
    valid in JSON, but not in UTF-8.

    If such a message were refused, there would be no id to answer to, and its client would wait for
    ever.
    """
    try:
        return msgspec.json.decode(message)
    except msgspec.DecodeError:
        if _HALF.search(message) is None:
            raise
    return msgspec.json.decode(
        json.dumps(json.loads(message), ensure_ascii=False).encode("utf-8", "replace")
    )


def _in_one_line(document: bytes) -> msgspec.Raw:
    return msgspec.Raw(
        document if b"\n" not in document else msgspec.json.encode(msgspec.json.decode(document))
    )


class _RequestRefused(Exception):
    """A request that this protocol does not allow."""

    def __init__(self, code: int, sentence: str, data: Any = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.data = data


def _is_modern(params: Mapping[str, Any]) -> bool:
    meta = params.get("_meta")
    return isinstance(meta, dict) and f"{_META}protocolVersion" in meta


def _check_envelope(meta: Mapping[str, Any]) -> None:
    version = meta[f"{_META}protocolVersion"]
    if version != MODERN:
        raise _RequestRefused(
            UNSUPPORTED_VERSION,
            "unsupported protocol version",
            {"supported": [MODERN, *HANDSHAKES], "requested": str(version)[:80]},
        )
    if not isinstance(meta.get(f"{_META}clientCapabilities"), dict):
        raise _RequestRefused(INVALID_PARAMS, f"_meta needs {_META}clientCapabilities, an object")


def failure(id: str | int | None, code: int, sentence: str, data: Any = None) -> bytes:
    error = {"code": code, "message": sentence} | ({} if data is None else {"data": data})
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "error": error})


def serve_stdio(
    answer: Callable[[bytes], bytes | None], waits: Callable[[bytes], bool] = lambda _: False
) -> None:
    """Answers messages on stdin.

    Other output of this process goes to stderr: stdout belongs to the protocol. Tools that wait for
    another process are answered beside the rest.
    """
    beside = PROCESS.child("MCP").executor(_AT_ONCE, "hotset-mcp")
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        writing = threading.Lock()

        def say(reply: bytes | None) -> None:
            if reply is not None:
                with writing:
                    out.write(reply + b"\n")
                    out.flush()

        def say_later(line: bytes) -> None:
            with contextlib.suppress(BrokenPipeError, ValueError):  # the client is gone
                say(answer(line))

        try:
            for line in read_messages(sys.stdin.buffer):
                if line is None:
                    say(failure(None, INVALID_REQUEST, _TOO_LONG))
                elif waits(line):
                    beside.submit(say_later, line)
                else:
                    say(answer(line))
        except BrokenPipeError:  # the client is gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        beside.shutdown(
            wait=False, cancel_futures=True
        )  # calls that still wait are answered when the toolbox closes


def read_messages(source: BinaryIO) -> Iterator[bytes | None]:
    """Each message; None for one that is too long, whose bytes are dropped."""
    skipping = False
    while piece := source.readline(_LONGEST):
        ended = piece.endswith(b"\n")
        if skipping:
            skipping = not ended
        elif not ended and len(piece) == _LONGEST:
            skipping = True
            yield None
        elif piece.strip():
            yield piece
