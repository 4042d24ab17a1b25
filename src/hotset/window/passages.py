"""What was said about a file before it is read: the names in the passages that mention it, and the
lines that they point to.

Whoever asks for a change often says where: a plan names for each file the functions to change, and
lines, more or less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from hotset.window.names import names

_HEADING = re.compile(r"#{1,6} ")
_QUOTED = re.compile(r"`([^`\n]{3,120})`")
_WORD = re.compile(r"[A-Za-z_$][\w$]{2,79}")
_LINES = re.compile(r"\b(?:lines?|L)[ ~≈#:]{0,3}(\d{1,6})(?:\s?[-\u2013]\s?~?(\d{1,6}))?")
_SECTION = 80  # lines: a longer section is about more than one file
_BEFORE, _BEHIND = 1, 6  # lines that belong to a mention where no heading says what does
_READ = 60_000  # characters of one text that are looked at
_SHORTEST = 4  # characters: a shorter name stands in other words too


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for in a file."""

    names: frozenset[str] = frozenset()
    lines: tuple[int, ...] = ()
    """Numbers of its lines, from 1."""


def told_of(path: str, texts: Iterable[str]) -> Sought:
    """What these texts say about a file; they may write its path in another way, but not its
    name."""
    name = path.rpartition("/")[2]
    if len(name) < _SHORTEST or "." not in name:
        return Sought()
    mention = re.compile(rf"(?<![\w.-]){re.escape(name)}(?!\w)(?::(?P<line>\d{{1,6}}))?")
    passages = [
        passage
        for text in texts
        if name in text
        for passage in _passages(text[:_READ].split("\n"), mention)
    ]
    found = chain.from_iterable((*names(passage), *_quoted(passage)) for passage in passages)
    lines = chain.from_iterable(_numbers(passage, mention) for passage in passages)
    return Sought(frozenset(found) - {name}, tuple(dict.fromkeys(lines)))


def _passages(lines: Sequence[str], mention: re.Pattern[str]) -> Iterator[str]:
    until = 0
    for index, line in enumerate(lines):
        if index >= until and mention.search(line):
            first, end = _section(lines, index)
            yield "\n".join(lines[max(first, until) : end])
            until = end


def _section(lines: Sequence[str], index: int) -> tuple[int, int]:
    """What stands under the same heading; the lines beside, where there is none or too much stands
    under it."""
    head = next(
        (at for at in range(index, max(-1, index - _SECTION), -1) if _HEADING.match(lines[at])),
        None,
    )
    if head is not None:
        end = next(
            (at for at in range(head + 1, len(lines)) if _closes(lines[at], lines[head])),
            len(lines),
        )
        if end - head < _SECTION:
            return head, end
    return max(0, index - _BEFORE), min(len(lines), index + _BEHIND)


def _closes(line: str, heading: str) -> bool:
    """Is it a heading of the same level, or of a higher one?"""
    return bool(_HEADING.match(line)) and line.index(" ") <= heading.index(" ")


def _quoted(passage: str) -> Iterator[str]:
    for quoted in _QUOTED.findall(passage):
        yield from _WORD.findall(quoted)


def _numbers(passage: str, mention: re.Pattern[str]) -> Iterator[int]:
    for first, last in _LINES.findall(passage):
        yield int(first)
        if last:
            yield int(last)
    for found in mention.finditer(passage):
        if found["line"]:
            yield int(found["line"])
