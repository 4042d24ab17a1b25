"""Where the recording's chance comes from."""

from __future__ import annotations

from random import Random


def seeded(name: str) -> Random:
    """The same name gives the same numbers, on every machine."""
    return Random(name)  # noqa: S311 - nothing here is secret
