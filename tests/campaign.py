"""How much of a thing is tried: a sample each time, all of it with `HOTSET_CAMPAIGN=1`. Of every
kind there is some in both."""

from __future__ import annotations

import os

CAMPAIGN = bool(os.environ.get("HOTSET_CAMPAIGN"))


def sample(some: int, of: int) -> int:
    """How many of a number of like trials are made."""
    return of if CAMPAIGN else some
