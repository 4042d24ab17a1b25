"""Previews of prose and Markdown; of HTML pages by headings, texts and links, without scripts,
styles and layout; of XML by elements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hotset.text.outline import paragraphs
from hotset.text.sentences import SENTENCE_END
from hotset.text.words import word_set
from hotset.window.preview.content import Body, ToolQuery, closeness
from hotset.window.preview.excerpt import (
    ExcerptView,
    Label,
    LineSpan,
    Reading,
    Worth,
    longest_line,
    no_label,
    no_slice,
)
from hotset.window.preview.output import ends, read_output
from hotset.window.preview.rarity import odd_lines, odd_spans

_HEADING = re.compile(r"#{1,6} \S|<h[1-6]\b")
_UNDERLINE = re.compile(r"(?:={3,}|-{3,}|~{3,})\s*")
_PARAGRAPH = 500
_FACT = re.compile(r"`[^`\n]{2,80}`|https?://|\b[\w.-]+/[\w./-]+|\b\d[\d.,]*\b")
_FACTS_SHARE = 10.0


def read_prose(body: Body, query: ToolQuery) -> Reading:
    lines = body.lines
    units = list(paragraphs(lines, 0, len(lines), _PARAGRAPH))
    parts = ["\n".join(lines[first:end]) for first, end in units]
    scores = closeness(parts, query)
    headings = _headings(lines)
    spans = list(ends(body, query.room))
    spans.extend(body.span(index, index + 1, Worth.ODD) for index in headings)
    odd = _odd_sentences(lines)
    for (first, end), part, score in zip(units, parts, scores, strict=True):
        if not part.strip():
            continue
        facts = min(1.0, len(_FACT.findall(part[:2000])) * 20 / (len(part) + 20))
        worth = (
            Worth.REST + 5 * (1 - first / len(lines)) + _FACTS_SHARE * facts + Worth.ASKED * score
        )
        spans.append(body.span(first, end, worth, least=0))
    spans.extend(
        odd_spans(body, {index: oddity for index, (oddity, _) in odd.items()}, Worth.ASKED)
    )
    points = {body.first + index: point for index, (_, point) in odd.items()}
    titles = {body.first + at: lines[at].strip("#= ").strip()[:60] for at in headings}
    return Reading(spans, _label_headings(titles), points=points)


def _label_headings(headings: Mapping[int, str]) -> Label:
    """A label with the headings in a gap; `headings` are by line."""

    def label(first: int, end: int) -> Sequence[str]:
        return [title for at, title in headings.items() if first <= at < end]

    return label


def _odd_sentences(lines: Sequence[str]) -> dict[int, tuple[float, str]]:
    """Lines with sentences unlike all others: how odd, and these sentences."""
    sentences = [
        (index, sentence)
        for index, line in enumerate(lines)
        for sentence in SENTENCE_END.split(line)
    ]
    odd = odd_lines([sentence for _, sentence in sentences])
    found: dict[int, tuple[float, str]] = {}
    for at in sorted(odd):
        index, sentence = sentences[at]
        oddity, text = found.get(index, (0.0, "…"))
        found[index] = max(oddity, odd[at]), f"{text} {sentence} …"
    return {index: (oddity, text.removesuffix(" …")) for index, (oddity, text) in found.items()}


def _headings(lines: Sequence[str]) -> list[int]:
    found = []
    for index, line in enumerate(lines):
        under = (
            index + 1 < len(lines)
            and line.strip()
            and len(line) < 100
            and _UNDERLINE.fullmatch(lines[index + 1])
        )
        if _HEADING.match(line) or (under and not _UNDERLINE.fullmatch(line)):
            found.append(index)
    return found


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
_HEADING_TAG = re.compile(r"<(h[1-6]|title)\b", re.IGNORECASE)
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
_LONG_LINE = 200  # characters: text laid out in shorter lines is shown by lines
_LOOKED_AT = 256 * 1024  # characters read; longer pages repeat themselves


def is_markup(text: str, lines: int) -> bool:
    """True for an HTML page; or for a piece of one, or XML, that is not laid out in lines."""
    if _PAGE.match(text):
        return True
    if not _BEGINS.match(text) or not text.rstrip().endswith(">") or len(text) < _LONG_LINE * lines:
        return False
    return len(_OPENING.findall(text[:_SAMPLE])) >= _FEWEST_TAGS


def view_markup(body: Body, query: ToolQuery) -> ExcerptView:
    text = "\n".join(body.lines)[:_LOOKED_AT]
    tags = _OPENING.findall(text[:_SAMPLE])
    is_page = _PAGE.match(text) or sum(1 for tag in tags if tag.lower() in _OF_PAGES) * 2 > len(
        tags
    )
    return _page(text, query) if is_page else _elements(text, query)


def _page(text: str, query: ToolQuery) -> ExcerptView:
    """A view in which each line is the text of one block, with the targets of its links."""
    longest = longest_line(query.room)
    lines: list[str] = []
    headings: list[int] = []
    for heading, text_of_block in _blocks(text):
        if heading:
            headings.append(len(lines))
        lines.append(f"… {text_of_block}"[:longest])
    inner = read_prose(Body(0, lines), query)
    spans = [*inner.spans, *(LineSpan(at, at + 1, Worth.HEAD - 5) for at in headings)]
    return ExcerptView(
        lines,
        Reading(spans, _label_headings({at: lines[at][2:62] for at in headings})),
        _mark,
        _LONGEST_MARK,
        no_slice,
    )


def _elements(text: str, query: ToolQuery) -> ExcerptView:
    """A view in which each line is one of the most frequent elements, as written."""
    longest = longest_line(query.room)
    name = _most_frequent_element(text)
    pieces = re.split(rf"(?=<{re.escape(name)}[\s/>])", text) if name else [text]
    lines = [f"… {_SPACE.sub(' ', piece).strip()}"[:longest] for piece in pieces if piece.strip()]

    def mark(first: int, end: int) -> str:
        return f"… {end - first:,} <{name}> …"

    reading = read_output(Body(0, lines), query)
    return ExcerptView(
        lines, replace(reading, label=no_label), mark, _LONGEST_MARK + len(name), no_slice
    )


def _most_frequent_element(text: str) -> str:
    """The most frequent element among those that contain others; among all if none does."""
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


def _mark(first: int, end: int) -> str:
    return f"… {end - first:,} blocks …"


def _blocks(text: str) -> Iterator[tuple[bool, str]]:
    for piece in _pieces(_visible_markup(text)):
        links = _LINK.findall(piece)
        block = _SPACE.sub(" ", _TAG.sub(" ", piece)).strip()
        if block:
            yield (
                bool(_HEADING_TAG.match(piece)),
                " ".join([block, *(f"<{link}>" for link in links[:3])]),
            )


def _pieces(text: str) -> Iterator[str]:
    """The text cut before every tag that opens or ends a block."""
    start = 0
    for found in _BLOCK.finditer(text):
        if found.start() > start:
            yield text[start : found.start()]
        start = found.start()
    yield text[start:]


def _visible_markup(text: str) -> str:
    """The text without scripts and styles. Each search continues where the last one ended: linear
    in the text."""
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
