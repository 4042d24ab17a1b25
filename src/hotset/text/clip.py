"""Texts cut to a length."""

from __future__ import annotations

import re

_SAFE_CHARS = 80
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\[\];]+")
_WHOLE_SENTENCE = re.compile(r"(?<=[^\W\d][.!?])\s|(?<=[)\"'][.!?])\s")


def clip(text: str, most: int) -> str:
    """At most `most` characters; the last one marks an omission."""
    return text if len(text) <= most else f"{text[: max(0, most - 1)]}…"


def clip_prose(text: str, most: int) -> str:
    """One line of at most `most` characters: whole sentences if one fits, else whole words."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    ends = [found.start() for found in _WHOLE_SENTENCE.finditer(line[: most + 1])]
    if ends and ends[-1] >= most // 3:
        return line[: ends[-1]]
    return f"{line[: most - 1].rsplit(' ', 1)[0].rstrip(' ,;:-')}…"


def first_words(text: str, most: int) -> str:
    """The first `most` words in one line."""
    words = text.split()
    return " ".join(words) if len(words) <= most else f"{' '.join(words[:most]).rstrip('.,;:-')}…"


def safe_line(text: str) -> str:
    """Foreign text for a line of ours: one line, at most 80 characters, without the signs that end
    such a line."""
    one = " ".join(_UNSAFE.sub(" ", text[: 4 * _SAFE_CHARS]).split())
    return one if len(one) <= _SAFE_CHARS else f"{one[: _SAFE_CHARS - 3]}..."
