"""Parts of a text around the matches of a pattern, or closest to a question.

Patterns run on RE2: matching takes time linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice

import re2

from hotset.nouns.retrieval import Span
from hotset.text.outline import definition_around
from hotset.text.terms import Term, rank_blocks, terms
from hotset.window.pieces import LONG, PIECE
from hotset.window.slice.fit import Count, Cut, clip_to_tokens, count_fitting, tokens
from hotset.window.slice.lines import Text, Units, merge_spans, show, span_name

_MOST_MEMORY = 1 << 20  # for one pattern; RE2 refuses one that needs more
_MOST_WORK = 100_000_000  # instructions times bytes: 0.6 s in RE2's slowest mode
_MOST_MATCHES = 200
_LEAST_WINDOW = 4096
_LINES_AROUND = 2  # lines before and after a match
_AROUND_CHARS = 200
_BY_LINE = "(?m)"

_SPANS_LINES = re.compile(r"\n|\\n|\(\?[a-zA-Z]*s")
"""Matches a pattern that explicitly crosses line ends."""


def regex_error(pattern: str) -> str:
    """Why the pattern cannot be used; empty if it can."""
    try:
        _compile(pattern)
    except re2.error as reason:
        return _why(reason)
    return ""


def by_regex(text: str, pattern: str, room: int, count: Count) -> Cut:
    try:
        compiled = _compile(pattern)
    except re2.error as reason:
        return Cut("", whole=False, note=_why(reason))
    content = text.encode("utf-8", "replace")
    reach = min(len(content), _MOST_WORK // max(1, compiled.programsize))
    found = list(islice(_matches(compiled, content, reach), _MOST_MATCHES))
    note = (
        ""
        if reach == len(content)
        else f" in the first {reach:,} of {len(content):,} bytes (large regex)"
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
    spans = merge_spans(
        (max(1, first - _LINES_AROUND), min(len(by_line), last + _LINES_AROUND))
        for first, last in places
    )
    return show(by_line, spans, room, count, what=many)


def _why(reason: re2.error) -> str:
    why = reason.args[0] if reason.args else "syntax error"
    why = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
    why = why.replace(_BY_LINE, "")  # our own prefix
    return f"invalid regex: {why[:200]}; RE2 has no look-around or backreferences"


def _compile(pattern: str) -> re2._Regexp:
    options = re2.Options()
    options.max_mem = _MOST_MEMORY
    options.log_errors = False
    options.never_capture = True
    options.never_nl = not _SPANS_LINES.search(pattern)
    try:
        return re2.compile(f"{_BY_LINE}{pattern}", options)
    finally:
        re2.purge()  # a pattern is used once; free its automaton


def _matches(compiled: re2._Regexp, content: bytes, reach: int) -> Iterator[Span]:
    """At most one match per line, unless lines are long. Each search is limited to a window:
    otherwise a pattern whose end never comes would read the whole text again for each match."""
    window = max(_LEAST_WINDOW, _MOST_WORK // (_MOST_MATCHES * max(1, compiled.programsize)))
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
    around = merge_spans(
        (max(0, start - _AROUND_CHARS), end + _AROUND_CHARS) for start, end in found
    )
    places = _unit_names(text.units, content, [start for start, _ in around])
    pieces = [
        f"{place}\t...{content[start:end].decode('utf-8', 'ignore')}...\n"
        for place, (start, end) in zip(places, around, strict=True)
    ]
    kept = count_fitting(pieces, room, count)
    if kept == 0:
        return Cut(
            clip_to_tokens(pieces[0], room, count),
            whole=False,
            note=f'{many}start of the first; all: lines="{places[0]}"',
        )
    note = (
        f"{many}{kept:,} shown by line number (long lines), {_AROUND_CHARS} characters around each"
    )
    if kept < len(pieces):
        note += f'; narrow the regex, or next: lines="{places[kept]}"'
    return Cut("".join(pieces[:kept]).removesuffix("\n"), whole=kept == len(pieces), note=note)


def _unit_names(units: Units, content: bytes, offsets: Sequence[int]) -> list[str]:
    """The names of the units at these byte offsets, which are in order."""
    names, characters, before = [], 0, 0
    for offset in offsets:
        characters += len(content[before:offset].decode("utf-8", "ignore"))
        before = offset
        names.append(units.name(units.at(characters)))
    return names


_SMALL, _LARGE = 4, 16  # lines of a block: a paragraph, a few log lines, a piece of a function
_WORTH_SHARE = 0.35  # of the best block's score; blocks below are not about the question
_WHOLE_FUNCTION = 80  # lines: a function up to this size comes whole, because an edit needs it all
_MOST_BLOCKS = 40  # more would not fit into the largest answer
# lines added around a block if there is room: an answer is often next to its question's words
_GROWN_BY = 8
# Beginnings of a new section, however short the block before.
_SECTIONS = ("diff --git ", "# ", "## ", "### ")


def by_question(text: str, words: str, room: int, count: Count) -> Cut:
    wanted = terms(words)
    by_line = Text(text)
    if max(map(len, by_line.lines)) > LONG:
        return _in_chunks(text, by_line, wanted, room, count)
    blocks = list(_blocks(by_line.lines))
    starts_of_lines = list(accumulate((len(line) + 1 for line in by_line.lines), initial=0))
    best = rank_blocks(text, [starts_of_lines[first - 1] for first, _ in blocks], wanted)
    if not best:
        return _no_such_words(wanted)
    chosen, left = _choose_blocks(
        by_line,
        [blocks[block] for score, block in best if score >= _WORTH_SHARE * best[0][0]],
        room,
        count,
    )
    cut = show(by_line, chosen, room, count, what="closest to the question: ")
    if not left or not cut.whole:
        return cut
    return Cut(cut.text, whole=False, note=f'{cut.note}; next best: lines="{span_name(*left[0])}"')


def _blocks(lines: Sequence[str]) -> Iterator[Span]:
    first = 1
    for at, line in enumerate(lines, 1):
        if at > first and line.startswith(_SECTIONS):
            yield first, at - 1
            first = at
        size = at - first + 1
        if size >= _LARGE or (size >= _SMALL and (not line or line.isspace())):
            yield first, at
            first = at + 1
    if first <= len(lines):
        yield first, len(lines)


def _choose_blocks(
    text: Text, blocks: Sequence[Span], room: int, count: Count
) -> tuple[list[Span], list[Span]]:
    """The best blocks that fit together, in text order, and those that did not fit. The best one is
    always chosen."""
    chosen: list[Span] = []
    left: list[Span] = []
    free = room
    for number, block in enumerate(blocks[:_MOST_BLOCKS]):
        if any(first <= block[0] and block[1] <= last for first, last in chosen):
            continue
        for span in _enlargements(text, block):
            cost = _cost(text, span, count)
            if cost <= free or (number == 0 and span == block):
                chosen = merge_spans([*chosen, span])
                free -= cost
                break
        else:
            left.append(block)
    return chosen, left


def _enlargements(text: Text, block: Span) -> Iterator[Span]:
    """The whole function around a block, the block with neighbouring lines, and the block alone."""
    function = definition_around(text.bare, (block[0] + block[1]) // 2)
    if function is not None and function[1] - function[0] < _WHOLE_FUNCTION:
        yield min(function[0], block[0]), max(function[1], block[1])
    yield max(1, block[0] - _GROWN_BY), min(len(text.lines), block[1] + _GROWN_BY)
    yield block


def _cost(text: Text, span: Span, count: Count) -> int:
    return tokens("".join(text.number_line(at) for at in range(span[0], span[1] + 1)), count) + 2


def _in_chunks(text: str, by_line: Text, wanted: Sequence[Term], room: int, count: Count) -> Cut:
    starts = list(range(0, len(text), PIECE))
    best = rank_blocks(text, starts, wanted)
    if not best:
        return _no_such_words(wanted)
    every = [_passage(text, by_line.units, starts[chunk]) for _, chunk in best]
    kept = count_fitting(every, room, count)
    if kept == 0:
        best_place = by_line.units.name(by_line.units.at(starts[best[0][1]]))
        note = f'start of the closest passage; all: lines="{best_place}"'
        return Cut(clip_to_tokens(every[0], room, count), whole=False, note=note)
    shown = "".join(
        passage
        for _, passage in sorted(zip((chunk for _, chunk in best), every[:kept], strict=False))
    )
    note = f"{kept:,} of {len(best):,} passages that share words with the question, by number"
    if kept < len(best):
        note += (
            f'; next best: lines="{by_line.units.name(by_line.units.at(starts[best[kept][1]]))}"'
        )
    return Cut(shown.removesuffix("\n"), whole=kept == len(best), note=note)


def _passage(text: str, units: Units, start: int) -> str:
    return f"{units.name(units.at(start))}\t...{text[start : start + PIECE]}...\n"


def _no_such_words(wanted: Sequence[Term]) -> Cut:
    words = ", ".join(term.text for term in wanted[:8])
    return Cut(
        "",
        whole=False,
        note=(f"none of these words: {words[:200]}; try other words, lines or regex"),
    )
