"""Splits text into sentences: of people, of agents' reports, and in any script."""

from __future__ import annotations

import re
from collections.abc import Iterator

SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
"""The space after a sentence, within a line of plain text."""

_SHORTENED = r"(?<!\bSt\.)(?<!\bMr\.)(?<!\bMrs\.)(?<!\bDr\.)(?<!\bvs\.)(?<!\be\.g\.)(?<!\bi\.e\.)"
_PROSE_END = re.compile(
    rf"{_SHORTENED}(?<=[.!?\u2026])[\"')\]]*[ \t]+(?=[\"'(\[`]*[A-Z0-9])"
    r"|\s*\n\s*(?:\n|[-*\u2022#>|]|\d+[.)])|\n"
)
_REPORT_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z0-9`*\"'(])")
_ANY_END = re.compile(r"(?<=[.!?\u2026])\s+(?=\S)|(?<=[\u3002\uff01\uff1f])|\n+")
_FENCED_LINES = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LEADING = re.compile(r"\A(?:[-*•>#]+|\d{1,2}[.)])\s+")
_BULLET = re.compile(r"^(?:[-*+•]|\d{1,2}[.)]|#{1,6}|>)\s+")


def without_fences(text: str) -> str:
    """The text without the lines of its code fences."""
    return _FENCED_LINES.sub("\n", text) if "```" in text or "~~~" in text else text


def sentences(text: str) -> list[str]:
    """The sentences of a person's text, each in one line and without list markers."""
    found = (_one_line(part) for part in _PROSE_END.split(text) if part)
    return [bare for part in found if (bare := _LEADING.sub("", part, count=1).strip())]


def report_sentences(text: str) -> Iterator[str]:
    """The sentences of an agent's report: a colon also ends one, and code is left out."""
    for line in _FENCED.sub("\n", text).splitlines():
        yield from map(_one_line, _REPORT_END.split(_BULLET.sub("", line.strip())))


def unique_sentences(text: str) -> list[str]:
    """The sentences of a text in any script, each once: headings repeat."""
    return list(
        dict.fromkeys(bare for part in _ANY_END.split(text) if part and (bare := _one_line(part)))
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
