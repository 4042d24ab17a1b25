"""What a question is about, and where a text is about it: words by their stems, names by their
parts, and the lines around them."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hotset.nouns.search import Entry
from hotset.text.stems import singular, stem
from hotset.text.stops import QUESTION, REQUEST
from hotset.text.words import humps, lowered

_MOST_TERMS = 24
_MOST_HITS = 2000  # of one term in one text: one that stands everywhere tells nothing
_SHORT = 3  # a word of so few letters must stand whole: `id` is not meant by `idea`
_NAME_WEIGHT, _WORD_WEIGHT, _PART_WEIGHT, _PHRASE_WEIGHT = 2.0, 1.0, 0.5, 3.0
_SATURATION, _LENGTH = (
    1.2,
    0.6,
)  # BM25's k1 and b; a little less of b, because long blocks are whole functions here

_NAME = re.compile(r"[\w$./@#:-]*[\w$]")
_PHRASE = re.compile(r'"([^"]{3,200})"')
_TOPIC_WORD = re.compile(r"[^\W\d_][\w'\u2019-]*[^\W_]|[^\W\d_]{2,}")
_LONGEST_TOPIC_WORD = 40
_PART = re.compile(r"[^\W\d_]+|\d+")


@dataclass(frozen=True, slots=True)
class Term:
    text: str
    """In lower case; the beginning of the words that are meant."""
    weight: float


def terms(question: str) -> tuple[Term, ...]:
    """The telling words of a question, the weightiest first."""
    found: dict[str, float] = {}
    for text, weight in _weighed(question):
        found[text] = max(weight, found.get(text, 0.0))
    ranked = sorted(found.items(), key=lambda pair: -pair[1])
    return tuple(Term(*pair) for pair in ranked[:_MOST_TERMS])


def topic_words(text: str) -> Iterator[str]:
    """Words by which two texts are known to be about the same, with repetitions: in small letters,
    plurals as one."""
    for found in _TOPIC_WORD.finditer(text):
        word = found.group().lower().replace("\u2019", "'").removesuffix("'s")
        if (
            len(word) > 2 and word not in REQUEST and len(word) <= _LONGEST_TOPIC_WORD
        ):  # shorter ones tell nothing
            one = singular(word)
            if one not in REQUEST:
                yield one


def hits(text: str, low: str, term: Term) -> Iterator[int]:
    """Positions of words that begin with the term. `low` is the text in lower case."""
    word = term.text
    whole = len(word) <= _SHORT
    found = 0
    at = low.find(word)
    while at >= 0 and found < _MOST_HITS:
        if _begins(text, at) and not (whole and _goes_on(text, at + len(word))):
            found += 1
            yield at
        at = low.find(word, at + len(word))


def first_hits(text: str, wanted: Iterable[Term]) -> Iterator[tuple[int, Term]]:
    """Each term that occurs in the text, with its first position."""
    low = lowered(text)
    for term in wanted:
        if (at := next(hits(text, low, term), None)) is not None:
            yield at, term


def ranked(text: str, starts: Sequence[int], wanted: Sequence[Term]) -> list[tuple[float, int]]:
    """The blocks of a text (by where each starts) that match the terms: score and number, best
    first (BM25)."""
    low = lowered(text)
    ends = [*starts[1:], len(text)]
    mean = len(text) / max(1, len(starts))
    scores: defaultdict[int, float] = defaultdict(float)
    for term in wanted:
        spoken = Counter(bisect_right(starts, at) - 1 for at in hits(text, low, term))
        rare = term.weight * math.log(1 + (len(starts) - len(spoken) + 0.5) / (len(spoken) + 0.5))
        for block, often in spoken.items():
            length = 1 - _LENGTH + _LENGTH * (ends[block] - starts[block]) / mean
            scores[block] += rare * often * (_SATURATION + 1) / (often + _SATURATION * length)
    return sorted(
        ((score, block) for block, score in scores.items()), key=lambda pair: (-pair[0], pair[1])
    )


def _weighed(question: str) -> Iterator[tuple[str, float]]:
    for phrase in _PHRASE.findall(question):
        yield lowered(" ".join(phrase.split())), _PHRASE_WEIGHT
    words = list(_words(question))
    telling = [pair for pair in words if pair[0] not in QUESTION]
    for word, weight in telling or words:
        yield (stem(word) if weight < _NAME_WEIGHT else word), weight


def _words(question: str) -> Iterator[tuple[str, float]]:
    for name in _NAME.findall(question):
        parts = [hump for part in _PART.findall(name) for hump in _split(part)]
        if len(parts) > 1:
            yield lowered(name.strip("./:-#@")), _NAME_WEIGHT
        for part in parts:
            yield lowered(part), _PART_WEIGHT if len(parts) > 1 else _WORD_WEIGHT


def _split(part: str) -> Iterator[str]:
    """`parseCall` in its parts; scripts that put no space between words in pairs of signs."""
    if part.isascii():
        yield from humps(part) or (part,)
    elif part[0] >= "\u2e80" and len(part) > 2:
        yield from (part[at : at + 2] for at in range(len(part) - 1))
    else:
        yield part


def _begins(text: str, at: int) -> bool:
    if at == 0 or not text[at].isascii() or not text[at].isalnum():
        return True
    before, here = text[at - 1], text[at]
    return (
        not before.isalnum()
        or before.isdigit() != here.isdigit()
        or (here.isupper() and before.islower())
    )


def _goes_on(text: str, end: int) -> bool:
    return (
        end < len(text) and text[end].isascii() and text[end].isalpha() and not text[end].isupper()
    )


_LONGEST_LINE = 200  # characters; of a longer one the part around the first word is shown


@dataclass(frozen=True, slots=True)
class ExcerptLine:
    number: int
    """In its whole, from 1; 0 where the whole has no lines."""
    text: str
    marks: tuple[tuple[int, int], ...]
    """Ranges of the words in the text: first character, and the one behind the last."""


def excerpt(entry: Entry, wanted: Sequence[Term], most: int) -> list[ExcerptLine]:
    """At most so many lines; the first ones if none of the words occur in it: it was found by its
    meaning."""
    lines = entry.text.rstrip().split("\n")
    first = max(0, _best_start(lines, wanted, most))
    while first < len(lines) - 1 and not lines[first].strip():
        first += 1
    begin = entry.lines[0]
    return [
        _excerpt_line(text, begin + at if begin else 0, wanted)
        for at, text in enumerate(lines[first : first + most], first)
    ]


def _best_start(lines: Sequence[str], wanted: Sequence[Term], most: int) -> int:
    """Start of the window with the weightiest words, and a line before the first of them."""
    if len(lines) <= most:
        return 0
    spoken = [frozenset(term for _, term in first_hits(line, wanted)) for line in lines]
    starts = [at for at, terms in enumerate(spoken) if terms]
    if not starts:
        return 0

    def weight(start: int) -> tuple[float, float]:
        window = spoken[start : start + most - 1]
        return sum(term.weight for term in frozenset().union(*window)), sum(
            term.weight for terms in window for term in terms
        )

    return min(max(starts, key=lambda start: (weight(start), -start)) - 1, len(lines) - most)


def _excerpt_line(text: str, number: int, wanted: Sequence[Term]) -> ExcerptLine:
    text = text.rstrip().expandtabs(4)
    marks = _marks(text, wanted)
    if len(text) > _LONGEST_LINE:
        start = max(
            0, min((marks[0][0] if marks else 0) - _LONGEST_LINE // 3, len(text) - _LONGEST_LINE)
        )
        text = f"…{text[start : start + _LONGEST_LINE]}…"
        marks = _marks(text, wanted)
    return ExcerptLine(number, text, marks)


def _marks(text: str, wanted: Sequence[Term]) -> tuple[tuple[int, int], ...]:
    """Whole words that begin as a term does, apart from each other."""
    low = lowered(text)
    found = sorted(
        (at, _word_end(text, at + len(term.text)))
        for term in wanted
        for at in hits(text, low, term)
    )
    apart: list[tuple[int, int]] = []
    for start, end in found:
        if apart and start <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(apart[-1][1], end))
        else:
            apart.append((start, end))
    return tuple(apart)


def _word_end(text: str, end: int) -> int:
    while end < len(text) and (text[end].islower() or text[end].isdigit()):
        end += 1
    return end
