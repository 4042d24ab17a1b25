"""The process in which the typed functions of a skill's Python scripts run: `python -I -B host.py
FOLDER SCRIPT...`. Stdlib only.

It runs in the skill's own Python, which may be older than ours and has nothing of ours installed.
The files beside this one that it needs are loaded by their path; `host_calls` answers what comes.
Keep this file where it is: its path is part of the stamp under which a person let a skill run.

stdin and stdout are the protocol's. What a script prints goes to stderr, and it finds nothing to
read.
"""

# ruff: noqa: PTH100, PTH118, PTH120 - as few imports as can be before the first answer

from __future__ import annotations

import importlib.machinery
import os
import sys
import threading
from types import ModuleType

TYPE_CHECKING = False  # typing takes longer to import than most of what is called here takes to run
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    folder, *scripts = sys.argv[1:]
    requests, answers = _own_stdio()
    _beside("host_calls").serve(folder, scripts, requests, answers, _beside)


def _own_stdio() -> tuple[Any, Any]:
    """The protocol's two streams, out of reach of scripts and their processes from now on."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return requests, answers


def _beside(name: str) -> ModuleType:
    """Loads a file of ours by its path: this folder is not on `sys.path`, so that none of ours
    hides a module of Python's.

    Our compiled files are kept for the next time, as always; those of a skill are not.
    """
    with _LOADING:
        if name not in _LOADED:
            path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
            loader = importlib.machinery.SourceFileLoader(f"hotset_{name}", path)
            module = ModuleType(loader.name)
            module.__file__ = path
            kept, sys.dont_write_bytecode = sys.dont_write_bytecode, False
            try:
                loader.exec_module(module)
            finally:
                sys.dont_write_bytecode = kept
            _LOADED[name] = module
        return _LOADED[name]


_LOADED: dict[str, ModuleType] = {}
_LOADING = threading.Lock()


if __name__ == "__main__":
    main()
