"""Prose in sentences, sentences in words that tell something, and both cut to a length. Pure, linear."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hotset.text.stems import singular
from hotset.text.stops import REQUEST

_FENCE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_SHORTENED = r"(?<!\bSt\.)(?<!\bMr\.)(?<!\bMrs\.)(?<!\bDr\.)(?<!\bvs\.)(?<!\be\.g\.)(?<!\bi\.e\.)"
_END = re.compile(rf"{_SHORTENED}(?<=[.!?\u2026])[\"')\]]*[ \t]+(?=[\"'(\[`]*[A-Z0-9])|\s*\n\s*(?:\n|[-*\u2022#>|]|\d+[.)])|\n")
_LEADING = re.compile(r"(?:[-*•>#]+|\d{1,2}[.)])\s+")
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[^\W\d_][\w'\u2019-]*[^\W_]|[^\W\d_]{2,}")
_LONGEST_WORD = 40


def prose(text: str) -> str:
    """Without what stands in code fences: nobody says it."""
    return _FENCE.sub("\n", text) if "```" in text or "~~~" in text else text


def sentences(text: str) -> list[str]:
    """In their order, each in one line and without the mark of its list."""
    found = (_SPACE.sub(" ", part).strip() for part in _END.split(text) if part)
    return [bare for part in found if (bare := _LEADING.sub("", part, count=1).strip())]


def telling(text: str) -> Iterator[str]:
    """Words by which two texts are known to be about the same: in small letters, plurals as one, with repetitions."""
    for found in _WORD.finditer(text):
        word = found.group().lower().replace("\u2019", "'").removesuffix("'s")
        if len(word) > 2 and word not in REQUEST and len(word) <= _LONGEST_WORD:  # shorter ones tell nothing
            one = singular(word)
            if one not in REQUEST:
                yield one


def cut(text: str, most: int) -> str:
    """In one line of at most so many characters: whole sentences where one fits, else whole words."""
    line = _SPACE.sub(" ", text).strip()
    if len(line) <= most:
        return line
    ends = [found.start() for found in re.finditer(r"(?<=[^\W\d][.!?])\s|(?<=[)\"'][.!?])\s", line[: most + 1])]
    if ends and ends[-1] >= most // 3:
        return line[: ends[-1]]
    return f"{line[: most - 1].rsplit(' ', 1)[0].rstrip(' ,;:-')}…"


def first_words(text: str, most: int) -> str:
    words = text.split()
    return " ".join(words) if len(words) <= most else f"{' '.join(words[:most]).rstrip('.,;:-')}…"
