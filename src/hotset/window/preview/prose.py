"""Plain text and Markdown: the beginning and the end, headings, paragraphs that stand out or are
near what was asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hotset.text.outline import paragraphs
from hotset.text.sentences import SENTENCE_END
from hotset.window.preview.asking import ToolQuery, closeness
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import LineSpan, Reading, Worth
from hotset.window.preview.output import ends
from hotset.window.preview.rarity import odd_lines, shown

_HEADING = re.compile(r"#{1,6} \S|<h[1-6]\b")
_UNDERLINE = re.compile(r"(?:={3,}|-{3,}|~{3,})\s*")
_PARAGRAPH = 500
_FACT = re.compile(r"`[^`\n]{2,80}`|https?://|\b[\w.-]+/[\w./-]+|\b\d[\d.,]*\b")
_FACTS_SHARE = 10.0


def read(body: Body, asked: ToolQuery) -> Reading:
    lines = body.lines
    units = list(paragraphs(lines, 0, len(lines), _PARAGRAPH))
    parts = ["\n".join(lines[first:end]) for first, end in units]
    scores = closeness(parts, asked)
    headings = _headings(lines)
    spans = list(ends(body, asked.room))
    spans.extend(
        LineSpan(body.first + index, body.first + index + 1, Worth.OUTLINE + 5)
        for index in headings
    )
    odd = _odd(lines)
    for (first, end), part, score in zip(units, parts, scores, strict=True):
        if not part.strip():
            continue
        facts = min(1.0, len(_FACT.findall(part[:2000])) * 20 / (len(part) + 20))
        worth = (
            Worth.REST + 5 * (1 - first / len(lines)) + _FACTS_SHARE * facts + Worth.ASKED * score
        )
        spans.append(LineSpan(body.first + first, body.first + end, worth, least=0))
    spans.extend(shown(body, {index: oddity for index, (oddity, _) in odd.items()}, Worth.ASKED))
    points = {body.first + index: point for index, (_, point) in odd.items()}
    return Reading(spans, _Headings(body, headings), points=points)


@dataclass(frozen=True, slots=True)
class _Headings:
    """Says which headings stand in a gap."""

    body: Body
    headings: Sequence[int]

    def __call__(self, first: int, end: int) -> Sequence[str]:
        return [
            self.body.lines[at].strip("#= ").strip()[:60]
            for at in self.headings
            if first <= self.body.first + at < end
        ]


def _odd(lines: Sequence[str]) -> dict[int, tuple[float, str]]:
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
        oddity, said = found.get(index, (0.0, "…"))
        found[index] = max(oddity, odd[at]), f"{said} {sentence} …"
    return {index: (oddity, said.removesuffix(" …")) for index, (oddity, said) in found.items()}


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
