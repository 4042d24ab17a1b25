"""What was said, findable: `following` makes every page entries of the index, `finding` makes of what it finds pages again.

Each name is imported when it is first used: a proxy that starts needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotset.sources.history.finding import Find, Finds, find
    from hotset.sources.history.following import follow, followed

__all__ = ["Find", "Finds", "find", "follow", "followed"]

_HOMES = {
    "Find": "hotset.sources.history.finding",
    "Finds": "hotset.sources.history.finding",
    "find": "hotset.sources.history.finding",
    "follow": "hotset.sources.history.following",
    "followed": "hotset.sources.history.following",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
