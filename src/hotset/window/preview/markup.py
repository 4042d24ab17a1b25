"""HTML: titles, headings, text and links, without scripts, styles and layout. XML: its elements, as
they are written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hotset.text.words import word_set
from hotset.window.preview import output, prose
from hotset.window.preview.asking import ToolQuery
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import (
    ExcerptView,
    LineSpan,
    Reading,
    Worth,
    longest_line,
    no_slice,
)

_PAGE = re.compile(
    r"\s{0,200}(?:<!doctype html|<html\b|<\?xml\b[^>]{0,200}\?>\s{0,20}<html|<head\b|<body\b)",
    re.IGNORECASE,
)
_SILENT = re.compile(r"<(script|style|svg|noscript|template|SCRIPT|STYLE)\b")
_BLOCK = re.compile(
    (
        r"</?(?:p|div|h[1-6]|li|ul|ol|tr|td|th|table|section|article|header|footer|main|nav|br|"
        r"title|head|body|html|pre|blockquote|dt|dd|form|option)\b"
    ),
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^<>]{0,2000}>")
_HEADING = re.compile(r"<(h[1-6]|title)\b", re.IGNORECASE)
_LINK = re.compile(r"<a\b[^<>]{0,500}?href=[\"']([^\"'<>]{1,300})[\"']", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_LONGEST_MARK = len("… 1,000,000 blocks …")
_BEGINS = re.compile(r"\s{0,200}<[A-Za-z!?]")
_OPENING = re.compile(r"<([A-Za-z_][\w:.-]{0,60})\b[^<>]{0,2000}>")
_OF_PAGES = word_set(
    "a article b button div em footer form h1 h2 h3 h4 img input label li main nav ol p "
    "section span table td th tr ul"
)
_OPENS = re.compile(r"\s{0,200}<[A-Za-z_]")
_SAMPLE = 8192
_FEWEST_TAGS = 10
_LONG_LINE = 200  # characters: what is laid out in shorter ones is shown by its lines
_LOOKED_AT = 256 * 1024  # characters; pages that are longer repeat themselves


def is_markup(text: str, lines: int) -> bool:
    """A page; or a piece of one, or XML, that is not laid out in lines."""
    if _PAGE.match(text):
        return True
    if not _BEGINS.match(text) or not text.rstrip().endswith(">") or len(text) < _LONG_LINE * lines:
        return False
    return len(_OPENING.findall(text[:_SAMPLE])) >= _FEWEST_TAGS


def view(body: Body, asked: ToolQuery) -> ExcerptView:
    text = "\n".join(body.lines)[:_LOOKED_AT]
    tags = _OPENING.findall(text[:_SAMPLE])
    is_page = _PAGE.match(text) or sum(1 for tag in tags if tag.lower() in _OF_PAGES) * 2 > len(
        tags
    )
    return _page(text, asked) if is_page else _elements(text, asked)


def _page(text: str, asked: ToolQuery) -> ExcerptView:
    """Each line shown is the text of one block, with where its links lead."""
    longest = longest_line(asked.room)
    lines: list[str] = []
    headings: list[int] = []
    for heading, said in _blocks(text):
        if heading:
            headings.append(len(lines))
        lines.append(f"… {said}"[:longest])
    inner = prose.read(Body(0, lines), asked)
    spans = [*inner.spans, *(LineSpan(at, at + 1, Worth.HEAD - 5) for at in headings)]
    return ExcerptView(
        lines, Reading(spans, _Headings(lines, headings)), _mark, _LONGEST_MARK, no_slice
    )


def _elements(text: str, asked: ToolQuery) -> ExcerptView:
    """Each line shown is one of the elements that there are most of, as it is written."""
    longest = longest_line(asked.room)
    name = _repeated(text)
    pieces = re.split(rf"(?=<{re.escape(name)}[\s/>])", text) if name else [text]
    lines = [f"… {_SPACE.sub(' ', piece).strip()}"[:longest] for piece in pieces if piece.strip()]

    def mark(first: int, end: int) -> str:
        return f"… {end - first:,} <{name}> …"

    reading = output.read(Body(0, lines), asked)
    return ExcerptView(
        lines, replace(reading, label=output.nothing), mark, _LONGEST_MARK + len(name), no_slice
    )


def _repeated(text: str) -> str:
    """The element that there are most of among those that hold others; if none does, among all."""
    found = list(_OPENING.finditer(text))
    holding = Counter(
        tag[1] for tag in found if not tag[0].endswith("/>") and _OPENS.match(text, tag.end())
    )
    name, count = (
        (holding or Counter(tag[1] for tag in found)).most_common(1)[0] if found else ("", 0)
    )
    return (
        name if count > 1 or not holding else Counter(tag[1] for tag in found).most_common(1)[0][0]
    )


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
            yield (
                bool(_HEADING.match(piece)),
                " ".join([said, *(f"<{link}>" for link in links[:3])]),
            )


def _pieces(text: str) -> Iterator[str]:
    """The text cut before every tag that opens or ends a block."""
    start = 0
    for found in _BLOCK.finditer(text):
        if found.start() > start:
            yield text[start : found.start()]
        start = found.start()
    yield text[start:]


def _spoken(text: str) -> str:
    """Without what no reader sees. Each search goes on where the last one ended: linear in the
    text."""
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
