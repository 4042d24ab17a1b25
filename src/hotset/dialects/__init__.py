"""Wire formats: a package for each dialect, and their registry.

Each name below is imported when it is first used: what needs one module of this room does not load
every dialect.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotset.dialects.port import Dialect, Dialects
    from hotset.dialects.registry import DEFAULT, DIALECTS, INVARIANTS

_HOME_OF = {
    "DEFAULT": "registry",
    "DIALECTS": "registry",
    "INVARIANTS": "registry",
    "Dialect": "port",
    "Dialects": "port",
}

__all__ = ["DEFAULT", "DIALECTS", "INVARIANTS", "Dialect", "Dialects"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
