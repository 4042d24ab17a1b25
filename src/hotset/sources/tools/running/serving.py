"""MCP for a host of scripts: from a message to what answers it. Stdlib only, and for older Pythons, too.

Both eras of the protocol are spoken: see `hotset.surfaces.mcp.protocol`.
"""

# ruff: noqa: PTH100, PTH119 - as few imports as can be before the first answer

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from types import ModuleType

TYPE_CHECKING = False  # typing takes longer to import than most of what is called here takes to run
if TYPE_CHECKING:
    from typing import Any

_MODERN = "2026-07-28"
_HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_PARSE_ERROR, _INVALID_REQUEST, _METHOD_NOT_FOUND, _INVALID_PARAMS, _INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
_UNSUPPORTED_VERSION = -32022
_META = "io.modelcontextprotocol/"
_KEPT = {"ttlMs": 0, "cacheScope": "private"}  # the list may change with the scripts
_AS_THEY_ARE = (str, int, float, bool)  # types of JSON that are the same in Python

Job = Callable[[], Callable[[], None]]
"""Does the work, and gives what sends the answer."""


class Host:
    """Answers messages; calls are handed out as jobs, to whoever has a thread for them."""

    def __init__(
        self,
        folder: str,
        scripts: list[str],
        write: Callable[[bytes], Any],
        run: Callable[[Job], None],
        beside: Callable[[str], ModuleType],
    ) -> None:
        self._folder = os.path.abspath(folder)
        self._beside = beside
        self._offered = beside("offered").Offered(folder, scripts)
        self._write = write
        self._run = run
        self._writing = threading.Lock()
        self._calls: set[Any] = set()

    def hear(self, line: bytes) -> None:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            self._fail(None, _PARSE_ERROR, "this is not JSON")
            return
        if not isinstance(said, dict) or said.get("jsonrpc") != "2.0":
            self._fail(None, _INVALID_REQUEST, "a message is one JSON-RPC 2.0 object")
        elif "id" not in said:
            self._note(said)
        elif "method" in said:
            self._answer(said["id"], said["method"], said.get("params") or {})

    def _note(self, said: dict[str, Any]) -> None:
        """A call that nobody waits for any more runs on, since no thread can be stopped; its answer is not sent."""
        params = said.get("params")
        if said.get("method") == "notifications/cancelled" and isinstance(params, dict):
            self._calls.discard(str(params.get("requestId")))

    def _answer(self, id: Any, method: Any, params: Any) -> None:
        try:
            modern = _is_modern(params)
            if method == "tools/call":
                self._call(id, params, modern)
            else:
                self._reply(id, self._result(method, params, modern), modern)
        except _Refused as error:
            self._fail(id, error.code, str(error), error.data)
        except Exception as error:  # a bug of ours costs one answer
            self._fail(id, _INTERNAL_ERROR, f"the host failed ({type(error).__name__}: {error})")

    def _result(self, method: Any, params: dict[str, Any], modern: bool) -> dict[str, Any]:
        if method == "tools/list":
            return {"tools": self._listed(), **(_KEPT if modern else {})}
        if method == "server/discover" and modern:
            return {"supportedVersions": [_MODERN, *_HANDSHAKES], "capabilities": {"tools": {}}, **_KEPT}
        if method == "initialize" and not modern:
            wanted = params.get("protocolVersion")
            version = wanted if wanted in _HANDSHAKES else _HANDSHAKES[0]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": self._server()}
        if method == "ping" and not modern:
            return {}
        raise _Refused(_METHOD_NOT_FOUND, f"there is no method {str(method)[:80]!r} here")

    def _listed(self) -> list[dict[str, Any]]:
        """By parsing; the types of the arguments are told by `hotset.sources.tools.found.signatures`."""
        return [
            {
                "name": name,
                "description": takes.description,
                "inputSchema": {"type": "object", "properties": {each: {} for each in takes.names}, "required": takes.required},
            }
            for name, takes in self._offered.names().items()
        ]

    def _call(self, id: Any, params: dict[str, Any], modern: bool) -> None:
        name, arguments = params.get("name"), params.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise _Refused(_INVALID_PARAMS, "a call has a name and an object of arguments")
        self._calls.add(str(id))

        def job() -> Callable[[], None]:
            result = self._called(name, arguments)
            return lambda: self._return(id, result, modern)

        self._run(job)

    def _return(self, id: Any, result: dict[str, Any], modern: bool) -> None:
        if str(id) in self._calls:
            self._calls.discard(str(id))
            self._reply(id, result, modern)

    def _called(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        offered, telling = self._beside("offered"), self._beside("telling")
        try:
            function, takes = self._offered.function(name)
            value = _waited(function(**self._made(function, takes, arguments)))
            result: dict[str, Any] = {"isError": False, **telling.told(value)}
        except offered.Uncallable as error:
            result = telling.failed(f"{name}: {error}")
        except BaseException as error:  # whatever a script raises, also sys.exit(), is the answer to this call
            result = telling.failed(telling.raised(error, self._folder))
        return result

    def _made(self, function: Any, takes: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments as the function's annotations ask for them; mostly they are so already."""
        kinds = getattr(function, "__annotations__", {})
        if set(takes.required) <= set(arguments) <= set(takes.names) and all(
            type(value) in _AS_THEY_ARE and kinds.get(name) in (type(value), type(value).__name__)
            for name, value in arguments.items()
        ):
            return arguments
        fitting = self._beside("fitting")
        try:
            return fitting.fitted(arguments, fitting.kinds(function), takes.names, takes.required)  # type: ignore[no-any-return]
        except fitting.Unfit as error:
            raise self._beside("offered").Uncallable(str(error)) from None

    def _reply(self, id: Any, result: dict[str, Any], modern: bool) -> None:
        if modern:
            result = {**result, "resultType": "complete", "_meta": {f"{_META}serverInfo": self._server()}}
        self._say({"jsonrpc": "2.0", "id": id, "result": result})

    def _fail(self, id: Any, code: int, sentence: str, data: Any = None) -> None:
        error = {"code": code, "message": sentence}
        self._say({"jsonrpc": "2.0", "id": id, "error": error if data is None else {**error, "data": data}})

    def _say(self, message: dict[str, Any]) -> None:
        """Half of a surrogate pair, as of a file's name that is no UTF-8, becomes `?`."""
        line = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with self._writing:
            self._write(line)

    def _server(self) -> dict[str, str]:
        return {"name": os.path.basename(self._folder) or "skill", "version": "1"}


class _Refused(Exception):
    """A request that is no request of this protocol."""

    def __init__(self, code: int, sentence: str, data: Any = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.data = data


def _is_modern(params: Any) -> bool:
    if not isinstance(params, dict):
        raise _Refused(_INVALID_PARAMS, "params must be an object")
    meta = params.get("_meta")
    if not isinstance(meta, dict) or f"{_META}protocolVersion" not in meta:
        return False
    version = meta[f"{_META}protocolVersion"]
    if version != _MODERN:
        known = {"supported": [_MODERN, *_HANDSHAKES], "requested": str(version)[:80]}
        raise _Refused(_UNSUPPORTED_VERSION, "unsupported protocol version", known)
    if not isinstance(meta.get(f"{_META}clientCapabilities"), dict):
        raise _Refused(_INVALID_PARAMS, f"_meta needs {_META}clientCapabilities, an object")
    return True


def _waited(value: Any) -> Any:
    """What an async function gives at last."""
    if not hasattr(value, "__await__") and not hasattr(value, "__aiter__"):
        return value
    import asyncio  # noqa: PLC0415 - takes as long as everything else, and few need it

    async def waited() -> Any:
        return [each async for each in value] if hasattr(value, "__aiter__") else await value

    return asyncio.run(waited())
