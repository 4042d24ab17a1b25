"""Source code: imports, whole functions near what was asked for, constants, and gaps that say which
definitions they hold."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotset.text.outline import CodeBlock, flatten, outline, paragraphs
from hotset.window.preview.asking import ToolQuery, closeness
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import LineSpan, Reading, Worth
from hotset.window.preview.rarity import odd_lines, shown

_IMPORT = re.compile(
    r"\s*(?:import\b|from\s+\S+\s+import\b|#include\b|use\s+[\w:]+|using\s+\w|require\(|"
    r"(?:const|let|var)\s+[^=]{1,200}=\s*require\(|package\s+\w)"
)
_CONSTANT = re.compile(
    r"(?: {4}|\t)?(?:[\w<>:&']{1,40}[ \t]+){0,4}[A-Z][A-Z0-9_]{2,60}(?:[ \t]*:[^=\n]{1,60})?[ "
    r"\t]*(?:=|(?<=\w)[ \t])"
    r"[ \t]*(?:[-+.\d\"'`]|[Tt]rue|[Ff]alse|None|null|nil|\w+[.(])"
)
_OPEN_END = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
_NEWS = 15.0  # more than any code that was not asked for, less than any that was
_POINTED = Worth.ASKED + 12  # more than any code that only shares names with what was asked for
_ABOVE, _BELOW = 3, 8  # lines around one that was pointed to
_READ = 200  # characters of a line
_UNIT_SHARE = 0.35  # a definition longer than this share of the room is shown by its parts
_CHUNK = 700  # characters of a paragraph of code that is part of something longer
_HEAD_LINES = 6
# the share of the room in which gaps say what they hold, where a file is too long to be read
_SKIMMED = 0.2


def read(body: Body, asked: ToolQuery) -> Reading:
    lines = body.lines
    blocks = outline(lines)
    units = list(_split(lines, 0, len(lines), blocks, max(_CHUNK, int(asked.room * _UNIT_SHARE))))
    scores = closeness(["\n".join(lines[first:end]) for first, end in units], asked)
    spans = [
        LineSpan(body.first + first, body.first + end, _worth(score, first / len(lines)))
        for (first, end), score in zip(units, scores, strict=True)
    ]
    spans.extend(shown(body, {**odd_lines(lines), **dict.fromkeys(_settled(lines), 1.0)}, _NEWS))
    spans.extend(_pointed(body, asked))
    if imports := _imports(lines):
        spans.append(LineSpan(body.first, body.first + imports, Worth.HEAD, least=_HEAD_LINES))
    spans.append(
        LineSpan(body.first, body.first + min(len(lines), _HEAD_LINES), Worth.HEAD + 1, least=1)
    )
    return Reading(spans, _Outline(body.first, list(flatten(blocks))))


def skim(body: Body, asked: ToolQuery) -> Reading:
    """Of a file that would take long to read: what it defines, and what was pointed to."""
    told = _Outline(body.first, list(flatten(outline(body.lines))), only_outer=True)
    return Reading(list(_pointed(body, asked)), told, said=_SKIMMED)


@dataclass(frozen=True, slots=True)
class _Outline:
    """Says which definitions stand in a gap: first those that stand in no other."""

    offset: int
    blocks: Sequence[CodeBlock]
    only_outer: bool = False
    """Of a gap that holds definitions which stand in no other, only these, the longest first."""

    def __call__(self, first: int, end: int) -> Sequence[str]:
        low = bisect_left(self.blocks, first - self.offset, key=lambda block: block.head)
        high = bisect_left(self.blocks, end - self.offset, key=lambda block: block.head)
        held = sorted(self.blocks[low:high], key=lambda block: block.indent)
        if self.only_outer and held and not held[0].indent:
            held = sorted(
                (block for block in held if not block.indent),
                key=lambda block: block.head - block.end,
            )
        return [f"{block.name} {self.offset + block.head + 1}" for block in held]


def _pointed(body: Body, asked: ToolQuery) -> Iterator[LineSpan]:
    """What somebody pointed to by the numbers of lines, which are seldom exact."""
    for index in asked.pointed:
        if body.first <= index < body.end:
            yield LineSpan(max(body.first, index - _ABOVE), min(body.end, index + _BELOW), _POINTED)


def _settled(lines: Sequence[str]) -> Iterator[int]:
    """Lines that fix a value for all that stands below them, and those that say what is still to be
    done."""
    for index, line in enumerate(lines):
        text = line[:_READ]
        if _CONSTANT.match(text) or _OPEN_END.search(text):
            yield index


def _worth(nearness: float, place: float) -> float:
    if nearness > 0:
        return Worth.ASKED + 10 * nearness
    return Worth.REST + 10 * (1 - place)


def _split(
    lines: Sequence[str], first: int, end: int, blocks: Sequence[CodeBlock], most: int
) -> Iterator[tuple[int, int]]:
    """Stretches that are shown whole: definitions, or the paragraphs of what is longer than a
    definition should be."""
    at = first
    for block in blocks:
        if block.first > at:
            yield from paragraphs(lines, at, block.first, _CHUNK)
        if _fits(lines, block, most):
            yield max(at, block.first), block.end
        else:
            yield from _split(lines, max(at, block.first), block.end, block.inner, most)
        at = max(at, block.end)
    if at < end:
        yield from paragraphs(lines, at, end, _CHUNK)


def _fits(lines: Sequence[str], block: CodeBlock, most: int) -> bool:
    size = 0
    for index in range(block.first, block.end):
        size += len(lines[index]) + 1
        if size > most:
            return False
    return True


def _imports(lines: Sequence[str]) -> int:
    """Where the imports at the top end."""
    end = 0
    for index, line in enumerate(lines):
        if _IMPORT.match(line):
            end = index + 1
        elif index - end > 12:
            break
    return end
