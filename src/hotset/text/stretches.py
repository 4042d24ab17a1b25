"""A text in stretches, each to be found by itself: cut at blank lines where there are some, at any
line elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

# characters: from here on a blank line ends a stretch; comes to about 145 tokens in the mean
_ENOUGH = 400
# characters; the embedder reads 512 tokens of a stretch, and dense text has one for every two
# characters
_MOST = 1000
_MOST_LINES = 60
_CRUMB = 120  # characters: a last piece below that stays with the one before
_NEAR = 100  # characters before a cut within a line in which a space is looked for


@dataclass(frozen=True, slots=True)
class TextStretch:
    text: str
    lines: tuple[int, int]
    """First and last, both included, from 1."""


def stretches(text: str, first: int = 1) -> Iterator[TextStretch]:
    """Every line that says anything is in one of them; `first` is the number of the text's first
    line."""
    lines = text.split("\n")
    for start, end in _runs(lines):
        numbers = first + start, first + end - 1
        if len(lines[start]) > _MOST:
            yield from (TextStretch(part, numbers) for part in _parts(lines[start]))
        else:
            yield TextStretch("\n".join(lines[start:end]), numbers)


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Lines that belong together, by their first one and the one behind the last; a very long line
    is alone."""
    held: tuple[int, int] | None = None
    for start, end in _trimmed(lines):
        if held is not None and _is_crumb(lines, held, end):
            held = held[0], end
            continue
        if held is not None:
            yield held
        held = start, end
    if held is not None:
        yield held


def _trimmed(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Without blank lines at either end."""
    for start, end in pairwise(_borders(lines)):
        said = [at for at in range(start, end) if lines[at].strip()]
        if said:
            yield said[0], said[-1] + 1


def _borders(lines: Sequence[str]) -> Iterator[int]:
    start = size = 0
    yield 0
    for at, line in enumerate(lines):
        if at > start and (
            size + len(line) > _MOST or at - start >= _MOST_LINES or len(lines[start]) > _MOST
        ):
            yield at
            start, size = at, 0
        size += len(line) + 1
        if size >= _ENOUGH and not line.strip():
            yield at + 1
            start, size = at + 1, 0
    if start < len(lines):
        yield len(lines)


def _is_crumb(lines: Sequence[str], held: tuple[int, int], end: int) -> bool:
    """Too little to be found by itself, and what stands before it takes it."""
    size = sum(len(line) + 1 for line in lines[held[1] : end])
    return size < _CRUMB and end - held[0] <= _MOST_LINES and len(lines[held[0]]) <= _MOST


def _parts(line: str) -> Iterator[str]:
    """A long line, cut at spaces where there are some."""
    at = 0
    while at < len(line):
        end = at + _MOST
        if end < len(line):
            space = line.rfind(" ", end - _NEAR, end)
            end = space if space > at else end
        if line[at:end].strip():
            yield line[at:end]
        at = end
