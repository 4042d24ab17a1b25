"""How likely each line of a result is to be needed, given the task: the call's own words, the
model's last words, the user's request and the calls before.

A logistic regression over a few signs of each line. Its labels are the names and lines that later
calls of recorded sessions copied from results too long to be shown whole; `make bench-lines` fits
`WEIGHTS` again, and compares the choice with others on sets that had no part in the fit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import exp, log
from operator import mul

from hotset.files.lru import memo
from hotset.text.stops import CALL
from hotset.text.words import humps
from hotset.window.names import line_names
from hotset.window.preview.content import ToolQuery

SIGNS = (
    *("constant", "place", "first", "last", "length", "blank", "bare", "copyable", "indent"),
    *("import", "comment", "heading", "definition", "path", "setting", "digits", "words"),
    *("names", "rarity", "pointed"),
    *("call", "call_part", "said", "said_part", "asked", "asked_part", "before", "before_part"),
    *("near", "around"),
)
"""Names of what is known of a line. The last ten: overlap with the words of the task, by whole
words and by their parts, and the overlap of two and of eight lines on either side."""

WEIGHTS: tuple[float, ...] = (
    *(-3.06, 0.03, -0.07, -0.18, -1.11, -0.74, -1.45, 1.05, -0.05, 0.71),
    *(0.09, -0.42, 0.38, 0.67, -0.44, -1.21, -0.72, 1.39, 1.71, 1.78),
    *(0.47, -0.21, 0.46, 0.33, 0.47, 0.51, 0.8, 0.65, 0.04, -0.6),
)
"""Fitted to five sets of recorded sessions (Codex, two of Claude Code, mini-swe-agent, pi). With
each set left out of the fit in turn, the calls whose needs are all shown rise from 39 to 48, 53 to
54, 37 to 38, 17 to 25 and 32 to 36 of 100, in 0 to 3 % more tokens (mini-swe-agent: 11 %). How
lines are taken by these scores (`excerpt`, `SCORED`) was chosen on the same five sets."""

_GROUPS = 4  # of the task's words: the call's, those said, asked, and before
_READ = 400  # characters of a line
_END = 10  # lines
_WORD = re.compile(r"[A-Za-z_$][\w$]{2,79}")
_IMPORT = re.compile(
    r"\s*(?:import\b|from\s+\S+\s+import\b|#include\b|use\s+[\w:]+|using\s+\w|package\s+\w"
    r"|export \* from)"
)
_COMMENT = re.compile(r"\s*(?:#|//|/\*|\*|--|<!--|\"\"\")")
_HEADING = re.compile(r"#{1,6} |={3,}|-{3,} ?\S|\[[\w.\" -]+\]$")
_DEFINITION = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|static|async|abstract|pub)\s+){0,4}"
    r"(?:def|class|function|func|fn|interface|type|const|struct|enum|trait|impl|module)\s+\w"
)
_PATH = re.compile(r"[\w@-]/[\w@-]|\w\.(?:py|tsx?|jsx?|md|json|go|rs|java|ya?ml|toml|sh)\b")
_SETTING = re.compile(r"\s*[-\"']?[\w.$-]{2,40}[\"']?\s*[:=]\s")
_DIGIT = re.compile(r"\d")
_COPYABLE = 24  # characters of a line that is copied as one
_POINTED = 6  # lines
_DIGITS = 4  # of a score: machines may differ in the last ones, previews must not


def line_scores(lines: Sequence[str], query: ToolQuery) -> list[float]:
    """The likelihood of each line, from 0 to 1; none if no line has a word of the task."""
    signs = line_signs(lines, query)
    if not any(own[-1] for own in signs):
        return []
    changed = dict(query.weights)
    weights = [changed.get(name, own) for name, own in zip(SIGNS, WEIGHTS, strict=True)]
    return [round(1 / (1 + exp(-sum(map(mul, weights, own)))), _DIGITS) for own in signs]


def line_signs(lines: Sequence[str], query: ToolQuery) -> list[tuple[float, ...]]:
    """`SIGNS` of each line, each about between 0 and 1."""
    words = [set(_WORD.findall(line[:_READ])) for line in lines]
    counts = Counter(word for own in words for word in own)
    usual = log(len(lines) + 1)
    rarity = {word: 1 - log(count) / usual for word, count in counts.items()}
    overlaps = _overlaps(words, rarity, query)
    near = [sum(own) for own in overlaps]
    return [
        (
            *_shape(line, index, len(lines)),
            log(1 + len(own)) / 3,
            log(1 + len(line_names(line))),
            sum(map(rarity.__getitem__, sorted(own))) / len(own) if own else 0.0,
            float(any(abs(index - at) < _POINTED for at in query.pointed)),
            *overlap,
            around_2,
            around_8,
        )
        for index, (line, own, overlap, around_2, around_8) in enumerate(
            zip(lines, words, overlaps, _means(near, 2), _means(near, 8), strict=True)
        )
    ]


def _shape(line: str, index: int, size: int) -> tuple[float, ...]:
    """What is known of a line by itself, up to its number of words."""
    bare = line.strip()
    read = line[:_READ]
    return (
        1.0,
        index / size,
        float(index < _END),
        float(size - index <= _END),
        log(1 + len(line)) / 6,
        float(not bare),
        float(len(bare) < 3),
        float(len(bare) >= _COPYABLE),
        min(len(line) - len(line.lstrip()), 24) / 8,
        float(_IMPORT.match(line) is not None),
        float(_COMMENT.match(line) is not None),
        float(_HEADING.match(line) is not None),
        float(_DEFINITION.match(line) is not None),
        float(_PATH.search(read) is not None),
        float(_SETTING.match(line) is not None),
        len(_DIGIT.findall(read)) / (1 + len(read)),
    )


def _overlaps(
    words: Sequence[set[str]], rarity: dict[str, float], query: ToolQuery
) -> list[tuple[float, ...]]:
    """For each line and group of the task's words: rarity of the shared words, and of the words
    that share a part; relative to the line with most."""
    weights: dict[str, list[float]] = {}
    for group, wanted in enumerate(query.task):
        parts = {part for word in wanted for part in _parts(word)}
        for word, rare in rarity.items():
            if word in wanted:
                weights.setdefault(word, [0.0] * (2 * _GROUPS))[2 * group] = rare
            elif shared := sum(part in parts for part in _parts(word)):
                weights.setdefault(word, [0.0] * (2 * _GROUPS))[2 * group + 1] = rare * shared
    none = (0.0,) * (2 * _GROUPS)
    sums = []
    for own in words:
        found = [weights[word] for word in sorted(own & weights.keys())]
        sums.append(tuple(map(sum, zip(*found, strict=True))) if found else none)
    most = [max(column) or 1.0 for column in zip(*sums, strict=True)]
    return [
        tuple(value / top for value, top in zip(own, most, strict=True)) if own is not none else own
        for own in sums
    ]


@memo("parts of words", 1 << 14)
def _parts(word: str) -> tuple[str, ...]:
    """The parts of a name, in lower case: they match a name written another way."""
    lowered = dict.fromkeys(hump.lower() for hump in humps(word[:64]))
    return tuple(part for part in lowered if len(part) > 3 and part not in CALL)


def _means(values: Sequence[float], reach: int) -> list[float]:
    """The mean of each value and its neighbours."""
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    ends = [(max(0, at - reach), min(len(values), at + reach + 1)) for at in range(len(values))]
    return [(sums[end] - sums[first]) / (end - first) for first, end in ends]
