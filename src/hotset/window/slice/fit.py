"""Finds how much fits into a token budget, with a few counts of no more than could fit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

Count = Callable[[bytes], int]
"""Returns the tokens of a text in UTF-8."""

MOST_CHARS = 12
"""Average characters per token in the sparsest text worth filling a budget with; more is never
read."""

_USUAL_CHARS = 3.5  # a first guess, for code


@dataclass(frozen=True, slots=True)
class Cut:
    """A part of a text."""

    text: str
    whole: bool
    """True if everything requested is here."""
    note: str
    """What is here, what is missing, and the argument that brings more."""


def count_fitting(pieces: Sequence[str], room: int, count: Count) -> int:
    """How many of the first pieces fit, joined. Never too many; slightly too few if counting is not
    monotonic."""
    ends = list(accumulate(map(len, pieces)))
    low, high = 0, bisect_right(ends, room * MOST_CHARS)
    guess = bisect_right(ends, int(room * _USUAL_CHARS))
    while low < high:
        guess = max(low + 1, min(guess, high))
        used = tokens("".join(pieces[:guess]), count)
        low, high = (guess, high) if used <= room else (low, guess - 1)
        # As many as would fit at the same density; the middle if that makes no progress.
        dense = bisect_right(ends, ends[guess - 1] * room // max(1, used))
        guess = dense if low < dense <= high else (low + high + 1) // 2
    return low


def clip_to_tokens(text: str, room: int, count: Count) -> str:
    """The beginning of a text that fits, cut anywhere."""
    head = text[: room * MOST_CHARS]
    if len(head) == len(text) and tokens(head, count) <= room:
        return text
    step = max(1, len(head) // 256)
    pieces = [head[at : at + step] for at in range(0, len(head), step)]
    return head[: step * count_fitting(pieces, room, count)]


def fits(text: str, room: int, count: Count) -> bool:
    return len(text) <= room * MOST_CHARS and tokens(text, count) <= room


def tokens(text: str, count: Count) -> int:
    return count(text.encode("utf-8", "replace"))
