"""Matches of a pattern with the lines around them. RE2: no pattern can take more than time linear
in the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice

import re2

from hotset.nouns.retrieval import Span
from hotset.window.pieces import LONG
from hotset.window.slice.fit import Count, Cut, clipped, fitting
from hotset.window.slice.lines import Text, merged, show
from hotset.window.slice.units import Units

_MEMORY = 1 << 20  # for one pattern; RE2 refuses one that needs more
_WORK = 100_000_000  # instructions times bytes: 0.6 s where RE2 has to fall back to its slowest way
_MOST_MATCHES = 200
_LEAST_WINDOW = 4096
_AROUND = 2  # lines before and after a match
_AROUND_CHARS = 200
_BY_LINE = "(?m)"

_SPANS_LINES = re.compile(r"\n|\\n|\(\?[a-zA-Z]*s")
"""A pattern that means to go beyond a line says so."""


def refused(pattern: str) -> str:
    """Why the pattern cannot be used; empty where it can."""
    try:
        _compiled(pattern)
    except re2.error as reason:
        return _why(reason)
    return ""


def by_regex(text: str, pattern: str, room: int, count: Count) -> Cut:
    try:
        compiled = _compiled(pattern)
    except re2.error as reason:
        return Cut("", whole=False, note=_why(reason))
    content = text.encode("utf-8", "replace")
    reach = min(len(content), _WORK // max(1, compiled.programsize))
    found = list(islice(_matches(compiled, content, reach), _MOST_MATCHES))
    note = (
        ""
        if reach == len(content)
        else f" in the first {reach:,} of {len(content):,} bytes, as the regex is large"
    )
    if not found:
        return Cut(
            "", whole=False, note=f"no match{note}; try (?i), a shorter pattern, or question"
        )
    many = (
        f"{len(found):,}{'+' if len(found) == _MOST_MATCHES else ''} "
        f"match{'es' if len(found) > 1 else ''}{note}: "
    )
    by_line = Text(text)
    places = _places(by_line, content, found)
    if any(len(by_line.lines[at - 1]) > LONG for at, _ in places):
        return _in_long_lines(by_line, content, found, many=many, room=room, count=count)
    spans = merged(
        (max(1, first - _AROUND), min(len(by_line), last + _AROUND)) for first, last in places
    )
    return show(by_line, spans, room, count, what=many)


def _why(reason: re2.error) -> str:
    why = reason.args[0] if reason.args else "it cannot be read"
    why = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
    why = why.replace(_BY_LINE, "")  # ours, and not what was given
    return f"the regex cannot be used: {why[:200]}; RE2 has no look-around and no backreferences"


def _compiled(pattern: str) -> re2._Regexp:
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_capture = True
    options.never_nl = not _SPANS_LINES.search(pattern)
    try:
        return re2.compile(f"{_BY_LINE}{pattern}", options)
    finally:
        re2.purge()  # a pattern is used once; its automaton need not stay


def _matches(compiled: re2._Regexp, content: bytes, reach: int) -> Iterator[Span]:
    """At most one a line, unless lines are long. A match may look as far as its window for its end,
    and no farther: else a pattern with an end that never comes would read the whole text again for
    each match."""
    window = max(_LEAST_WINDOW, _WORK // (_MOST_MATCHES * max(1, compiled.programsize)))
    at = 0
    while at < reach:
        end = min(at + window, reach)
        if end < reach:
            end = content.rfind(b"\n", at, end) + 1 or end
        match = compiled.search(content, at, end)
        if match is not None:
            start, stop = match.span()
            yield start, stop
            line_end = content.find(b"\n", max(start, stop - 1), stop + LONG)
            at = line_end + 1 if line_end >= 0 else max(stop, start + 1) + _AROUND_CHARS
        elif end == reach:
            return
        else:
            at = max(at + 1, end - window // 4)


def _places(text: Text, content: bytes, found: Sequence[Span]) -> list[Span]:
    """The first and last line of each match."""
    ends = list(accumulate(len(line) + 1 for line in content.split(b"\n")))
    last = len(text)
    return [
        (
            min(last, bisect_right(ends, start) + 1),
            min(last, bisect_right(ends, max(start, end - 1)) + 1),
        )
        for start, end in found
    ]


def _in_long_lines(
    text: Text, content: bytes, found: Sequence[Span], /, *, many: str, room: int, count: Count
) -> Cut:
    around = merged((max(0, start - _AROUND_CHARS), end + _AROUND_CHARS) for start, end in found)
    places = _units(text.units, content, [start for start, _ in around])
    pieces = [
        f"{place}\t...{content[start:end].decode('utf-8', 'ignore')}...\n"
        for place, (start, end) in zip(places, around, strict=True)
    ]
    kept = fitting(pieces, room, count)
    if kept == 0:
        return Cut(
            clipped(pieces[0], room, count),
            whole=False,
            note=f'{many}the beginning of the first; lines="{places[0]}" for it',
        )
    note = (
        f"{many}{kept:,} shown with {_AROUND_CHARS} characters around "
        f"each, behind their numbers, "
        f"as the lines are long"
    )
    if kept < len(pieces):
        note += f'; the next is in lines="{places[kept]}", a narrower regex shows the others'
    return Cut("".join(pieces[:kept]).removesuffix("\n"), whole=kept == len(pieces), note=note)


def _units(units: Units, content: bytes, offsets: Sequence[int]) -> list[str]:
    """The names of what stands at these bytes, which come in their order."""
    names, characters, before = [], 0, 0
    for offset in offsets:
        characters += len(content[before:offset].decode("utf-8", "ignore"))
        before = offset
        names.append(units.name(units.at(characters)))
    return names
