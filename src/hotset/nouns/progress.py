"""Progress reports of long work."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""What is being done, how much of it is done, and of how much; 0 if unknown."""


def silent(_what: str, _done: int, _of: int) -> None:
    """For work whose progress is not shown."""
