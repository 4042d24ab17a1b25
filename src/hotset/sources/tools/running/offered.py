"""The functions of a skill's scripts: their names by parsing, they themselves by importing at the first call. Stdlib only.

A script is read again at each call when it, or a module beside it, is not what it was: by the time of its last change first, then
by its content. Everything that came from the folder is then forgotten and comes anew, as in a fresh process.

`hotset.sources.tools.found.signatures` names the same functions, and tells what they take; this part runs in the skill's own
Python, which has nothing of ours.
"""

# ruff: noqa: PTH100, PTH116, PTH119, PTH120, PTH122, PTH123 - as few imports as can be before the first answer

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, ModuleType

TYPE_CHECKING = False  # typing takes longer to import than most of what is called here takes to run
if TYPE_CHECKING:
    from typing import Any

_SETTLED_NS = 2_000_000_000  # the coarsest clock of a file system: two changes within it can leave the same time


class Uncallable(Exception):
    """There is no such function, or it cannot take these arguments; the message says which there are, or why."""


class Takes:
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


class Offered:
    """By the function's own name, or by `script.function` where several scripts have one of that name. Used from any thread."""

    def __init__(self, folder: str, scripts: Iterable[str]) -> None:
        self._folder = os.path.abspath(folder)
        self._scripts = [_Script(os.path.abspath(path)) for path in scripts]
        self._modules: dict[str, ModuleType] = {}
        self._stamps: dict[str, _Stamp] = {}
        self._loaded = 0
        self._lock = threading.RLock()

    def names(self) -> dict[str, Takes]:
        """Of all scripts that can be parsed."""
        with self._lock:
            return {name: script.functions[function] for name, (script, function) in self._named().items()}

    def function(self, name: str) -> tuple[Callable[..., Any], Takes]:
        """Raises `Uncallable`, and whatever the script raises when it is imported."""
        with self._lock:
            self._refresh()
            script, function = self._find(name)
            module = self._modules.get(script.path) or self._load(script)
            self._remember()
            found = getattr(module, function, None)
            if not callable(found):
                raise Uncallable(f"{script.name}.py defines {function}, and it is no function any more once it has run")
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
        """Modules that belong to the folder, by name and path; what was installed into it does not."""
        folders = tuple({self._folder + os.sep, *(os.path.dirname(script.path) + os.sep for script in self._scripts)})
        for name, module in list(sys.modules.items()):
            path = getattr(module, "__file__", None)
            if path and path.startswith(folders) and f"{os.sep}site-packages{os.sep}" not in path:
                yield name, path


class _Script:
    def __init__(self, path: str) -> None:
        self.path = path
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.functions: dict[str, Takes] = {}
        self.trouble: Exception | None = None
        self.stamp = _Stamp("")

    def read(self) -> None:
        """Parses it again if it has changed."""
        if not self.stamp.path or self.stamp.is_old():
            self.stamp = _Stamp(self.path)
            self.functions, self.trouble = {}, self.stamp.trouble
            if self.trouble is None:
                try:
                    self.functions = _functions(self.stamp.content, self.path)
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


def _functions(content: bytes, path: str) -> dict[str, Takes]:
    """Public, at the top of the file, every parameter with a type and a name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = ast.parse(content, path)
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    for node in module.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            found.pop(node.name, None)  # what is said last holds
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found.pop(node.targets[0].id, None)
    return {name: Takes(node) for name, node in found.items() if _is_tool(node)}


def _is_tool(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    takes = node.args
    if node.name.startswith("_") or takes.posonlyargs or takes.vararg or takes.kwarg:
        return False
    return all(each.annotation for each in (*takes.args, *takes.kwonlyargs))


def _module_name(stem: str) -> str:
    """As its neighbours import it, unless that is the name of something else, as of a part of Python."""
    taken = stem in sys.modules or stem in getattr(sys, "stdlib_module_names", ())
    return f"script_{stem}" if taken else stem


def _key(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (status.st_mtime_ns, status.st_size, status.st_ino)
