"""Serves the typed functions of Python scripts as MCP tools: `python -I -B host.py FOLDER SCRIPT...`. Stdlib only.

It runs in the skill's own Python, which may be older than ours and has nothing of ours installed; the files beside this one that
it needs are loaded by their path. Both eras of the protocol are spoken: see `hotset.surfaces.mcp.protocol`.

stdin and stdout are the protocol's. What a script prints goes to stderr, and it finds nothing to read. Calls that come one after
the other run in the main thread, as in a program; those that come at the same time run beside it.
"""

# ruff: noqa: PTH100, PTH118, PTH119, PTH120 - as few imports as can be before the first answer

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import ModuleType
from typing import Any

_MODERN = "2026-07-28"
_HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_PARSE_ERROR, _INVALID_REQUEST, _METHOD_NOT_FOUND, _INVALID_PARAMS, _INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
_UNSUPPORTED_VERSION = -32022
_META = "io.modelcontextprotocol/"


def main() -> None:
    folder, *scripts = sys.argv[1:]
    asked, said = _own_stdio()
    workers = _Workers()
    host = Host(folder, scripts, said.write, workers.run)

    def listen() -> None:
        for line in asked:
            host.hear(line)
        workers.stop()

    threading.Thread(target=listen, daemon=True).start()
    workers.work()


Job = Callable[[], Callable[[], None]]
"""Does the work, and gives what sends the answer."""


class Host:
    """Answers messages; calls are handed out as jobs, to whoever has a thread for them."""

    def __init__(self, folder: str, scripts: list[str], write: Callable[[bytes], Any], run: Callable[[Job], None]) -> None:
        self._folder = os.path.abspath(folder)
        self._offered = _beside("offered").Offered(folder, scripts)
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
        offered, fitting, telling = _beside("offered"), _beside("fitting"), _beside("telling")
        try:
            function, takes = self._offered.function(name)
            made = fitting.fitted(arguments, fitting.kinds(function), takes.names, takes.required)
            value = _waited(function(**made))
            result: dict[str, Any] = {"isError": False, **telling.told(value)}
        except (offered.Unknown, fitting.Unfit) as error:
            result = telling.failed(f"{name}: {error}")
        except BaseException as error:  # whatever a script raises, also sys.exit(), is the answer to this call
            result = telling.failed(telling.raised(error, self._folder))
        return result

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


class _Workers:
    """Run jobs in the main thread whenever it is free, otherwise in one that is or in a new one.

    A thread is free before its answer is out: the next call may follow at once.
    """

    def __init__(self) -> None:
        self._main: SimpleQueue[Job | None] = SimpleQueue()
        self._idle = [self._main]
        self._lock = threading.Lock()

    def run(self, job: Job) -> None:
        with self._lock:
            queue = self._idle.pop() if self._idle else None
        if queue is None:
            queue = SimpleQueue()
            threading.Thread(target=self._work, args=(queue,), daemon=True).start()
        queue.put(job)

    def work(self) -> None:
        """The main thread's part: until `stop`."""
        self._work(self._main)

    def stop(self) -> None:
        self._main.put(None)

    def _work(self, queue: SimpleQueue[Job | None]) -> None:
        while (job := queue.get()) is not None:
            send = job()
            with self._lock:
                self._idle.insert(len(self._idle) if queue is self._main else 0, queue)
            send()


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


def _own_stdio() -> tuple[Any, Any]:
    """The protocol's two streams, of which scripts and their own processes know nothing from now on."""
    asked, said = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", 0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return asked, said


def _waited(value: Any) -> Any:
    """What an async function gives at last."""
    if not hasattr(value, "__await__") and not hasattr(value, "__aiter__"):
        return value
    import asyncio  # noqa: PLC0415 - takes as long as everything else, and few need it

    async def waited() -> Any:
        return [each async for each in value] if hasattr(value, "__aiter__") else await value

    return asyncio.run(waited())


def _beside(name: str) -> ModuleType:
    """A file of ours by its path: this folder is not searched for modules, so that none of ours stands before one of Python's."""
    with _LOADING:
        if name not in _LOADED:
            path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
            spec = importlib.util.spec_from_file_location(f"hotset_{name}", path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            _LOADED[name] = module
        return _LOADED[name]


_LOADED: dict[str, ModuleType] = {}
_LOADING = threading.Lock()
_KEPT = {"ttlMs": 0, "cacheScope": "private"}  # the list may change with the scripts


if __name__ == "__main__":
    main()
