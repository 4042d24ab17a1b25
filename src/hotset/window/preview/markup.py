"""HTML: titles, headings, text and links, without scripts, styles and layout."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotset.window.preview import prose
from hotset.window.preview.asking import Asked
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import Reading, Span, View, Worth, longest_line, no_slice

HTML = re.compile(r"\s{0,200}(?:<!doctype html|<html\b|<\?xml\b[^>]{0,200}\?>\s{0,20}<html|<head\b|<body\b)", re.IGNORECASE)
_SILENT = re.compile(r"<(script|style|svg|noscript|template|SCRIPT|STYLE)\b")
_BLOCK = re.compile(
    r"</?(?:p|div|h[1-6]|li|ul|ol|tr|td|th|table|section|article|header|footer|main|nav|br|title|head|body|html|pre|blockquote|dt|dd|form|option)\b",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^<>]{0,2000}>")
_HEADING = re.compile(r"<(h[1-6]|title)\b", re.IGNORECASE)
_LINK = re.compile(r"<a\b[^<>]{0,500}?href=[\"']([^\"'<>]{1,300})[\"']", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_LONGEST_MARK = len("… 1,000,000 blocks …")
_LOOKED_AT = 256 * 1024  # characters; pages that are longer repeat themselves


def view(body: Body, asked: Asked) -> View:
    """Each line shown is the text of one block, with where its links lead."""
    longest = longest_line(asked.room)
    lines: list[str] = []
    headings: list[int] = []
    for heading, text in _blocks("\n".join(body.lines)[:_LOOKED_AT]):
        if heading:
            headings.append(len(lines))
        lines.append(f"… {text}"[:longest])
    inner = prose.read(Body(0, lines), asked)
    spans = [*inner.spans, *(Span(at, at + 1, Worth.HEAD - 5) for at in headings)]
    return View(lines, Reading(spans, _Headings(lines, headings)), _mark, _LONGEST_MARK, no_slice)


@dataclass(frozen=True, slots=True)
class _Headings:
    """Says which headings stand in a gap."""

    lines: Sequence[str]
    headings: Sequence[int]

    def __call__(self, first: int, end: int) -> Sequence[str]:
        return [self.lines[at][2:62] for at in self.headings if first <= at < end]


def _mark(first: int, end: int) -> str:
    return f"… {end - first:,} blocks …"


def _blocks(text: str) -> Iterator[tuple[bool, str]]:
    for piece in _pieces(_spoken(text)):
        links = _LINK.findall(piece)
        said = _SPACE.sub(" ", _TAG.sub(" ", piece)).strip()
        if said:
            yield bool(_HEADING.match(piece)), " ".join([said, *(f"<{link}>" for link in links[:3])])


def _pieces(text: str) -> Iterator[str]:
    """The text cut before every tag that opens or ends a block."""
    start = 0
    for found in _BLOCK.finditer(text):
        if found.start() > start:
            yield text[start : found.start()]
        start = found.start()
    yield text[start:]


def _spoken(text: str) -> str:
    """Without what no reader sees. Each search goes on where the last one ended: linear in the text."""
    kept = []
    at = 0
    while found := _SILENT.search(text, at):
        kept.append(text[at : found.start()])
        end = text.find(f"</{found[1]}", found.end())
        if end == -1:
            return "".join(kept)
        at = end
    kept.append(text[at:])
    return "".join(kept)
