"""Secrets that were found once, wherever else they stand: without a name beside them, or cut off at
their end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import re2

# what an automaton may take; with RE2's usual 8 MB it was thrown away and built anew on dense text
MEMORY = 64 << 20

_SHORTEST, _LONGEST = (
    8,
    256,
)  # characters; a shorter one could be part of any word, and a longer one has a shape of its own
_TELLING = 16  # characters with which a longer one is recognised, so that a clipped one is, too
_MOST = 2000  # what is looked for at once; the longest ones


class PatternMatch(NamedTuple):
    """A secret in the bytes of a text."""

    start: int
    end: int
    kind: str


class Known:
    """Secrets and their kinds. They are kept in memory alone, and not shown."""

    def __init__(self, kinds: Mapping[bytes, str]) -> None:
        fit = sorted(
            (each for each in kinds if _SHORTEST <= len(each) <= _LONGEST and b"\n" not in each),
            key=len,
            reverse=True,
        )
        self._kinds = {each: kinds[each] for each in fit[:_MOST]}
        self._by_head: dict[bytes, list[bytes]] = {}
        for each in self._kinds:
            self._by_head.setdefault(each[:_TELLING], []).append(each)
        self._parts = b"\n".join(piece for each in kinds for piece in _pieces(each)).lower()
        self._finder = _alternatives(self._by_head) if self._by_head else None

    def hits(self, content: bytes) -> Iterator[PatternMatch]:
        if self._finder is None:
            return
        for match in self._finder.finditer(content):
            start = match.start()
            secret, shared = max(
                ((each, _shared(each, content, start)) for each in self._by_head[match.group()]),
                key=lambda found: found[1],
            )
            yield PatternMatch(start, start + shared, self._kinds[secret])

    def has_part(self, word: str) -> bool:
        """Is this word, long enough to tell anything, a part of one of them?"""
        return (
            len(word) >= _SHORTEST - 2
            and word.lower().encode("utf-8", "surrogatepass") in self._parts
        )


def _pieces(secret: bytes) -> Iterator[bytes]:
    """A secret of one line, or the lines of a block of them that are nothing but secret: not
    `-----BEGIN`, nor `Version: 2`."""
    lines = [line.strip(b" \t\"'+") for line in _LINE_ENDS.split(secret)]
    return (
        line for line in lines if len(lines) == 1 or not (line.startswith(b"-") or b" " in line)
    )


_LINE_ENDS = re.compile(rb"(?:[\r\n]|\\{1,31}[nr])+")  # in JSON they are written out


def _alternatives(heads: Mapping[bytes, object]) -> re2._Regexp:
    """The longest first: of two that begin alike the whole of the longer one is meant."""
    options = re2.Options()
    options.max_mem = MEMORY
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    pattern = b"|".join(map(re2.escape, sorted(heads, key=len, reverse=True)))
    return re2._Regexp(pattern, options)  # noqa: SLF001 - `compile` would keep the pattern, and it is made of secrets


def _shared(secret: bytes, content: bytes, start: int) -> int:
    """How many bytes of the secret stand here."""
    here = content[start : start + len(secret)]
    if here == secret:
        return len(secret)
    return next(
        (at for at, (a, b) in enumerate(zip(secret, here, strict=False)) if a != b), len(here)
    )
