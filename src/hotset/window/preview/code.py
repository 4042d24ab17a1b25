"""Previews of source code: imports, whole functions near the query, constants, and gaps labelled
with the definitions they hold."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from hotset.text.outline import CodeBlock, flatten, outline, paragraphs
from hotset.window.preview.content import Body, ToolQuery, closeness
from hotset.window.preview.excerpt import Label, Reading, Worth
from hotset.window.preview.rarity import odd_lines, odd_spans

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
_NEWS = 15.0  # more than any code outside the query, less than any in it
_READ = 200  # characters of a line
_UNIT_SHARE = 0.35  # a definition longer than this share of the room is shown by its parts
_CHUNK = 700  # characters of a paragraph of code that is part of something longer
_HEAD_LINES = 6
# share of the room for gap labels in a file too long to be read closely
_SKIMMED_LABELS = 0.2


def read_code(body: Body, query: ToolQuery) -> Reading:
    lines = body.lines
    blocks = outline(lines)
    units = list(_split(lines, 0, len(lines), blocks, max(_CHUNK, int(query.room * _UNIT_SHARE))))
    scores = closeness(["\n".join(lines[first:end]) for first, end in units], query)
    spans = [
        body.span(first, end, _worth(score, first / len(lines)))
        for (first, end), score in zip(units, scores, strict=True)
    ]
    spans.extend(odd_spans(body, dict.fromkeys(_fixed_values(lines), 1.0), _NEWS))
    spans.extend(odd_spans(body, odd_lines(lines)))
    head = _HEAD_LINES if query.reads_file else 1  # a shell mostly prints a part of a file
    if query.reads_file and (imports := _imports(lines)):
        spans.append(body.span(0, imports, Worth.HEAD, least=_HEAD_LINES))
    spans.append(body.span(0, min(len(lines), head), Worth.HEAD + 1, least=1))
    return Reading(spans, _label_definitions(body, list(flatten(blocks))))


def skim_code(body: Body, query: ToolQuery) -> Reading:  # noqa: ARG001 - read like `read`
    """The reading of a very long file: its definitions."""
    label = _label_definitions(body, list(flatten(outline(body.lines))), only_outer=True)
    return Reading([], label, label_share=_SKIMMED_LABELS)


def _label_definitions(
    body: Body, blocks: Sequence[CodeBlock], *, only_outer: bool = False
) -> Label:
    """A label with the definitions in a gap, outermost first. With `only_outer`, a gap that holds
    outer definitions lists only these, the longest first."""

    def label(first: int, end: int) -> Sequence[str]:
        low = bisect_left(blocks, first - body.first, key=lambda block: block.head)
        high = bisect_left(blocks, end - body.first, key=lambda block: block.head)
        held = sorted(blocks[low:high], key=lambda block: block.indent)
        if only_outer and held and not held[0].indent:
            held = sorted(
                (block for block in held if not block.indent),
                key=lambda block: block.head - block.end,
            )
        return [f"{block.name} {body.first + block.head + 1 + body.shift}" for block in held]

    return label


def _fixed_values(lines: Sequence[str]) -> Iterator[int]:
    """Lines with a constant, and those with a note of work still to be done."""
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
    """Stretches shown whole: definitions, or the paragraphs of longer ones."""
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
    """The line at which the imports at the top end."""
    end = 0
    for index, line in enumerate(lines):
        if _IMPORT.match(line):
            end = index + 1
        elif index - end > 12:
            break
    return end
