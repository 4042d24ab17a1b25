"""Answers the lines that hotset sends to a host of scripts, and calls the functions of the scripts.

Stdlib only, and for older Pythons, too: this runs in the skill's own Python, which has nothing of
ours. Each line is a JSON object. hotset sends `{"id", "method", "params"}` and gets `{"id",
"result"}` or `{"id", "error"}`:

- `ready`: answered as soon as the host runs.
- `tools/list`: the functions of all scripts that can be parsed.
- `tools/call` with `name` and `arguments`: content, `isError` and `structuredContent` as in MCP.
- `notifications/cancelled` with `requestId`: that call is not answered any more. It runs on, since
  no thread can be stopped.

Names of functions come by parsing, they themselves by importing at the first call. A script is read
again at each call when it, or a module beside it, is not what it was: by the time of its last
change first, then by its content. Everything that came from the folder is then forgotten and comes
anew, as in a fresh process. `hotset.sources.tools.found.signatures` names the same functions, and
reads which types they take.
"""

# ruff: noqa: PTH100, PTH116, PTH119, PTH120, PTH122, PTH123 - few imports: it must start fast

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import json
import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from queue import SimpleQueue
from types import CodeType, ModuleType

TYPE_CHECKING = False  # typing takes longer to import than most of what is called here takes to run
if TYPE_CHECKING:
    from typing import Any

_AS_THEY_ARE = (str, int, float, bool)  # types of JSON that are the same in Python

Job = Callable[[], Callable[[], None]]
"""Does the work, and returns what sends the answer."""

# the coarsest clock of a file system: two changes within it can leave the same time
_SETTLED_NS = 2_000_000_000

_LONGEST = 4_000  # characters of a traceback
_DEEPEST = 100  # levels of a value: what lies deeper is shown as Python would print it
_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)
_OURS = (os.path.dirname(os.path.abspath(__file__)) + os.sep, "<frozen ")


def serve(
    folder: str,
    scripts: list[str],
    requests: Iterable[bytes],
    answers: Any,
    beside: Callable[[str], ModuleType],
) -> None:
    """Answers the lines of `requests` on `answers` until they end; `beside` loads another file of
    ours.

    Calls that come one after the other run in this thread, the main one, as in a program; those
    that come at the same time run in others.
    """
    workers = _Workers()
    host = _Host(folder, scripts, answers, workers, beside)

    def listen() -> None:
        for line in requests:
            host.hear(line)
        workers.stop()

    threading.Thread(target=listen, daemon=True).start()
    workers.work()


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


class _Host:
    def __init__(
        self,
        folder: str,
        scripts: list[str],
        answers: Any,
        workers: _Workers,
        beside: Callable[[str], ModuleType],
    ) -> None:
        self._folder = os.path.abspath(folder)
        self._functions = ScriptFunctions(folder, scripts)
        self._answers = answers
        self._workers = workers
        self._beside = beside
        self._writing = threading.Lock()
        self._wanted: set[Any] = set()
        """Ids of the calls whose answers are wanted."""

    def hear(self, line: bytes) -> None:
        id = None
        try:
            asked = json.loads(line)
            id, method, params = asked.get("id"), asked.get("method"), asked.get("params") or {}
            if method == "tools/call":
                self._start(id, params["name"], params.get("arguments") or {})
            elif method == "tools/list":
                self._say({"id": id, "result": {"tools": self._listed()}})
            elif method == "ready":
                self._say({"id": id, "result": {}})
            elif method == "notifications/cancelled":
                self._wanted.discard(params["requestId"])
            else:
                raise ValueError(f"there is no method {method!r:.80}")  # noqa: TRY301
        except Exception as error:  # a line that makes no sense costs one answer
            sentence = f"the host failed ({type(error).__name__}: {error})"
            self._say({"id": id, "error": {"message": sentence}})

    def _listed(self) -> list[dict[str, Any]]:
        """By parsing, without the types of the arguments."""
        return [
            {
                "name": name,
                "description": takes.description,
                "inputSchema": {
                    "type": "object",
                    "properties": {each: {} for each in takes.names},
                    "required": takes.required,
                },
            }
            for name, takes in self._functions.names().items()
        ]

    def _start(self, id: Any, name: str, arguments: dict[str, Any]) -> None:
        self._wanted.add(id)

        def job() -> Callable[[], None]:
            result = self._call(name, arguments)
            return lambda: self._answer(id, result)

        self._workers.run(job)

    def _answer(self, id: Any, result: dict[str, Any]) -> None:
        if id in self._wanted:
            self._wanted.discard(id)
            self._say({"id": id, "result": result})

    def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            function, takes = self._functions.function(name)
            value = _waited(function(**self._made(function, takes, arguments)))
            return {"isError": False, **render_value(value)}
        except Uncallable as error:
            return render_failure(f"{name}: {error}")
        except BaseException as error:
            # whatever a script raises, also sys.exit(), is the answer to this call
            return render_failure(render_error(error, self._folder))

    def _made(
        self, function: Any, takes: FunctionParameters, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """The arguments as the function's annotations ask for them; mostly they are so already."""
        kinds = getattr(function, "__annotations__", {})
        if set(takes.required) <= set(arguments) <= set(takes.names) and all(
            type(value) in _AS_THEY_ARE and kinds.get(name) in (type(value), type(value).__name__)
            for name, value in arguments.items()
        ):
            return arguments
        fitting = self._beside("host_arguments")
        try:
            return fitting.fitted(arguments, fitting.kinds(function), takes.names, takes.required)  # type: ignore[no-any-return]
        except fitting.Unfit as error:
            raise Uncallable(str(error)) from None

    def _say(self, message: dict[str, Any]) -> None:
        """Half of a surrogate pair, as of a file's name that is no UTF-8, becomes `?`."""
        line = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with self._writing:
            self._answers.write(line)
            self._answers.flush()


def _waited(value: Any) -> Any:
    """What an async function gives at last."""
    if not hasattr(value, "__await__") and not hasattr(value, "__aiter__"):
        return value
    import asyncio  # noqa: PLC0415 - takes as long as everything else, and few need it

    async def waited() -> Any:
        return [each async for each in value] if hasattr(value, "__aiter__") else await value

    return asyncio.run(waited())


class Uncallable(Exception):
    """There is no such function, or it cannot take these arguments; the message says which there
    are, or why."""


class FunctionParameters:
    """What a function takes, as its first line says."""

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        named = node.args.args
        first_default = len(named) - len(node.args.defaults)
        only_named = list(zip(node.args.kwonlyargs, node.args.kw_defaults))  # noqa: B905 - `strict` came with 3.10
        self.names = [each.arg for each in (*named, *node.args.kwonlyargs)]
        self.required = [
            *(each.arg for each in named[:first_default]),
            *(each.arg for each, default in only_named if default is None),
        ]
        self.description = ast.get_docstring(node) or ""


class ScriptFunctions:
    """By the function's own name, or by `script.function` where several scripts have one of that
    name. Used from any thread."""

    def __init__(self, folder: str, scripts: Iterable[str]) -> None:
        self._folder = os.path.abspath(folder)
        self._scripts = [_Script(os.path.abspath(path)) for path in scripts]
        self._modules: dict[str, ModuleType] = {}
        self._stamps: dict[str, _Stamp] = {}
        self._loaded = 0
        self._lock = threading.RLock()

    def names(self) -> dict[str, FunctionParameters]:
        """Of all scripts that can be parsed."""
        with self._lock:
            return {
                name: script.functions[function]
                for name, (script, function) in self._named().items()
            }

    def function(self, name: str) -> tuple[Callable[..., Any], FunctionParameters]:
        """Raises `Uncallable`, and whatever the script raises when it is imported."""
        with self._lock:
            self._refresh()
            script, function = self._find(name)
            module = self._modules.get(script.path) or self._load(script)
            self._remember()
            found = getattr(module, function, None)
            if not callable(found):
                raise Uncallable(
                    f"{script.name}.py defines {function}, and it is no function any more "
                    f"once it has run"
                )
            return found, script.functions[function]

    def _named(self) -> dict[str, tuple[_Script, str]]:
        found: dict[str, list[_Script]] = {}
        for script in self._scripts:
            script.read()
            for function in script.functions:
                found.setdefault(function, []).append(script)
        return {
            function if len(scripts) == 1 else f"{script.name}.{function}": (script, function)
            for function, scripts in found.items()
            for script in scripts
        }

    def _find(self, name: str) -> tuple[_Script, str]:
        named = self._named()
        if name in named:
            return named[name]
        stem, _, function = name.rpartition(".")
        for script in self._scripts:
            if script.name == stem and function in script.functions:
                return script, function
        for script in self._scripts:
            if script.trouble is not None and stem in ("", script.name):
                raise script.trouble
        raise Uncallable(f"no tool {name[:80]!r} here; there are {', '.join(named) or 'none'}")

    def _load(self, script: _Script) -> ModuleType:
        beside = os.path.dirname(script.path)
        if beside not in sys.path:
            sys.path.insert(0, beside)
        importlib.invalidate_caches()
        loader = _Loader(_module_name(script.name), script.path, script.stamp.content)
        module = ModuleType(loader.name)
        module.__file__, module.__loader__ = script.path, loader
        module.__spec__ = importlib.machinery.ModuleSpec(loader.name, loader, origin=script.path)
        sys.modules[loader.name] = module
        try:
            loader.exec_module(module)
        except BaseException:
            sys.modules.pop(loader.name, None)
            raise
        finally:
            self._remember()
        self._modules[script.path] = module
        self._stamps[script.path] = script.stamp
        return module

    def _refresh(self) -> None:
        """Forgets everything of the folder if any of it has changed."""
        if not any(stamp.is_old() for stamp in tuple(self._stamps.values())):
            return
        for name, path in list(self._local()):
            if path in self._stamps:
                del sys.modules[name]
        self._modules.clear()
        self._stamps.clear()
        self._loaded = 0

    def _remember(self) -> None:
        """Which files of the folder were imported; functions import at their call, too."""
        if len(sys.modules) != self._loaded:
            self._loaded = len(sys.modules)
            for _, path in self._local():
                if path not in self._stamps:
                    self._stamps[path] = _Stamp(path)

    def _local(self) -> Iterator[tuple[str, str]]:
        """Modules that belong to the folder, by name and path; what was installed into it does
        not."""
        folders = tuple(
            {
                self._folder + os.sep,
                *(os.path.dirname(script.path) + os.sep for script in self._scripts),
            }
        )
        for name, module in list(sys.modules.items()):
            path = getattr(module, "__file__", None)
            if path and path.startswith(folders) and f"{os.sep}site-packages{os.sep}" not in path:
                yield name, path


class _Script:
    def __init__(self, path: str) -> None:
        self.path = path
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.functions: dict[str, FunctionParameters] = {}
        self.trouble: Exception | None = None
        self.stamp = _Stamp("")

    def read(self) -> None:
        """Parses it again if it has changed."""
        if not self.stamp.path or self.stamp.is_old():
            self.stamp = _Stamp(self.path)
            self.functions, self.trouble = {}, self.stamp.trouble
            if self.trouble is None:
                try:
                    nodes = tool_functions(self.stamp.content, self.path)[1]
                    self.functions = {node.name: FunctionParameters(node) for node in nodes}
                except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                    self.trouble = error


class _Stamp:
    """A file as it was; missing is a state as well."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.content = b""
        self.trouble: OSError | None = None
        self._key = _key(path)
        try:
            if path:
                with open(path, "rb") as file:
                    self.content = file.read()
        except OSError as error:
            self.trouble = error
        self._settled = self._key[0] + _SETTLED_NS < time.time_ns()

    def is_old(self) -> bool:
        if self._settled and self._key == _key(self.path):
            return False
        now = _Stamp(self.path)
        if now.content != self.content or (now.trouble is None) != (self.trouble is None):
            return True
        self._key, self._settled = now._key, now._settled
        return False


class _Loader(importlib.machinery.SourceFileLoader):
    """Of these very bytes: a compiled file beside the script may be older than they are."""

    def __init__(self, name: str, path: str, content: bytes) -> None:
        super().__init__(name, path)
        self._content = content

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self._content, self.get_filename(fullname))
        return code


def tool_functions(
    content: bytes | str, path: str = "<unknown>"
) -> tuple[ast.Module, list[ast.FunctionDef | ast.AsyncFunctionDef]]:
    """A parsed script, and its public functions at the top whose parameters all have a type and can
    be given by name. Raises what `ast.parse` raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the script's own style
        module = ast.parse(content, path)
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    for node in module.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            found.pop(node.name, None)  # the last definition of a name holds
        elif (
            isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
        ):
            found.pop(node.targets[0].id, None)
    return module, [node for node in found.values() if _is_tool(node)]


def _is_tool(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    takes = node.args
    if node.name.startswith("_") or takes.posonlyargs or takes.vararg or takes.kwarg:
        return False
    return all(each.annotation for each in (*takes.args, *takes.kwonlyargs))


def _module_name(stem: str) -> str:
    """As its neighbours import it, unless that is the name of something else, as of a part of
    Python."""
    taken = stem in sys.modules or stem in getattr(sys, "stdlib_module_names", ())
    return f"script_{stem}" if taken else stem


def _key(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def render_value(value: Any) -> dict[str, Any]:
    """Text as it is, nothing as nothing, bytes as a picture or blob, everything else as JSON: as
    text and as a value."""
    if value is None:
        return {"content": []}
    if isinstance(value, str):
        return {"content": [_text_block(value)]}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"content": [_blob(bytes(value))]}
    plain = _plain(value)
    rendered = {
        "content": [
            _text_block(plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False))
        ]
    }
    if isinstance(plain, dict):
        return {**rendered, "structuredContent": plain}
    if isinstance(plain, list):
        return {**rendered, "structuredContent": {"result": plain}}  # the protocol wants an object
    return rendered


def render_failure(sentence: str) -> dict[str, Any]:
    return {"content": [_text_block(sentence)], "isError": True}


def render_error(error: BaseException, folder: str) -> str:
    """The traceback without what is ours: the frames of the folder, and the one in which it was
    raised."""
    import traceback  # noqa: PLC0415 - most calls end well

    whole = traceback.TracebackException.from_exception(error)
    for each in _chain(whole, set()):
        shown = [frame for frame in each.stack if _is_within(frame.filename, folder)]
        last = each.stack[-1:]
        if last and last[0] not in shown and not last[0].filename.startswith(_OURS):
            shown += last
        each.stack = traceback.StackSummary.from_list(shown)
    text = "".join(whole.format()).strip()
    half = _LONGEST // 2 - 10
    return text if len(text) <= _LONGEST else f"{text[:half]}\n[...]\n{text[-half:]}"


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _blob(content: bytes) -> dict[str, Any]:
    encoded = _base64(content)
    for magic, kind in _PICTURES:
        if content.startswith(magic):
            return {"type": "image", "data": encoded, "mimeType": kind}
    return {
        "type": "resource",
        "resource": {
            "uri": "result:bytes",
            "mimeType": "application/octet-stream",
            "blob": encoded,
        },
    }


def _base64(content: bytes) -> str:
    import base64  # noqa: PLC0415 - few give bytes

    return base64.b64encode(content).decode()


def _plain(value: Any, depth: int = 0) -> Any:  # noqa: C901, PLR0911 - one case a kind of value
    if hasattr(value, "__members__") or depth > _DEEPEST:
        return str(value)
    if _is_enum(value):
        return _plain(value.value, depth + 1)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None  # JSON has no word for it
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _base64(bytes(value))
    fields = _fields(value)
    if fields is not None:
        return {name: _plain(each, depth + 1) for name, each in fields.items()}
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else str(_plain(key)): _plain(each, depth + 1)
            for key, each in value.items()
        }
    for way in (
        "isoformat",
        "tolist",
        "to_dict",
    ):  # dates; arrays and numbers of numpy; tables of pandas
        if callable(getattr(value, way, None)):
            return _plain(getattr(value, way)(), depth + 1)
    if isinstance(value, (Collection, Iterator)):
        return [_plain(each, depth + 1) for each in value]
    return str(value)


def _is_enum(value: Any) -> bool:
    return hasattr(type(value), "__members__") and hasattr(value, "value")


def _fields(value: Any) -> dict[str, Any] | None:
    """Of a dataclass, a named tuple, or a record of pydantic, msgspec or attrs."""
    kind = type(value)
    if callable(getattr(kind, "model_dump", None)):
        return dict(value.model_dump())
    names: Iterable[str] | None = None
    if hasattr(kind, "__dataclass_fields__"):
        names = [each.name for each in sys.modules["dataclasses"].fields(value)]
    elif hasattr(kind, "__attrs_attrs__"):
        names = [each.name for each in kind.__attrs_attrs__]
    elif hasattr(kind, "__struct_fields__"):
        names = kind.__struct_fields__
    elif isinstance(value, tuple):
        names = getattr(kind, "_fields", None)
    return None if names is None else {name: getattr(value, name) for name in names}


def _chain(error: Any, seen: set[int]) -> Iterator[Any]:
    """A traceback with those that it came from, and those that it holds."""
    if id(error) not in seen:
        seen.add(id(error))
        yield error
        for other in (
            error.__cause__,
            error.__context__,
            *(getattr(error, "exceptions", None) or ()),
        ):
            if other is not None:
                yield from _chain(other, seen)


def _is_within(path: str, folder: str) -> bool:
    return path.startswith(folder + os.sep) and f"{os.sep}site-packages{os.sep}" not in path
