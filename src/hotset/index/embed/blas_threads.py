"""Runs numpy's matrix products on one thread: for small ones, more threads cost more time than they
save."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

_lock = Lock()
_inside = 0
_before = 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Applies to this process, until the last user leaves. Does nothing if numpy has another BLAS
    than its wheels have."""
    global _inside, _before  # noqa: PLW0603 - the number of threads is the process's own
    openblas = _openblas()
    if openblas is None:
        yield
        return
    get, set_to = openblas
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = get()
            set_to(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                set_to(_before)


@cache
def _openblas() -> tuple[Any, Any] | None:
    """The getter and the setter of the number of threads in the OpenBLAS that numpy loaded."""
    library = ctypes.CDLL(
        _multiarray_umath.__file__
    )  # it links to it, so that its names are found through it
    for suffix in ("64_", ""):
        get = getattr(library, f"scipy_openblas_get_num_threads{suffix}", None)
        set_to = getattr(library, f"scipy_openblas_set_num_threads{suffix}", None)
        if get and set_to:
            set_to.argtypes, set_to.restype = [ctypes.c_int], None
            return get, set_to
    return None
