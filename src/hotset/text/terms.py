"""Search terms of a question and their hits in a text: words by stems, names by parts, and the
lines around them."""

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
from hotset.text.words import humps, lower_in_place

_MOST_TERMS = 24
_MOST_HITS = 2000  # of one term in one text: a term that is everywhere says nothing
_SHORT = 3  # letters: words this short must match whole; `id` does not match `idea`
_NAME_WEIGHT, _WORD_WEIGHT, _PART_WEIGHT, _PHRASE_WEIGHT = 2.0, 1.0, 0.5, 3.0
# BM25's k1 and b; b is a little lower than usual because long blocks are whole functions here
_SATURATION, _LENGTH = 1.2, 0.6

_NAME = re.compile(r"[\w$./@#:-]*[\w$]")
_PHRASE = re.compile(r'"([^"]{3,200})"')
_TOPIC_WORD = re.compile(r"[^\W\d_][\w'\u2019-]*[^\W_]|[^\W\d_]{2,}")
_LONGEST_TOPIC_WORD = 40
_PART = re.compile(r"[^\W\d_]+|\d+")


@dataclass(frozen=True, slots=True)
class Term:
    text: str
    """In lower case; a prefix of the matching words."""
    weight: float


def terms(question: str) -> tuple[Term, ...]:
    """The significant words of a question, the highest weight first."""
    found: dict[str, float] = {}
    for text, weight in _weighted_words(question):
        found[text] = max(weight, found.get(text, 0.0))
    by_weight = sorted(found.items(), key=lambda pair: -pair[1])
    return tuple(Term(*pair) for pair in by_weight[:_MOST_TERMS])


def topic_words(text: str) -> Iterator[str]:
    """Words that show what a text is about, with repetitions: lower case, singular."""
    for found in _TOPIC_WORD.finditer(text):
        word = found.group().lower().replace("\u2019", "'").removesuffix("'s")
        if len(word) > 2 and word not in REQUEST and len(word) <= _LONGEST_TOPIC_WORD:
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
    low = lower_in_place(text)
    for term in wanted:
        if (at := next(hits(text, low, term), None)) is not None:
            yield at, term


def rank_blocks(
    text: str, starts: Sequence[int], wanted: Sequence[Term]
) -> list[tuple[float, int]]:
    """The blocks of a text (given by their starts) that match the terms: score and index, best
    first (BM25)."""
    low = lower_in_place(text)
    ends = [*starts[1:], len(text)]
    mean = len(text) / max(1, len(starts))
    scores: defaultdict[int, float] = defaultdict(float)
    for term in wanted:
        counts = Counter(bisect_right(starts, at) - 1 for at in hits(text, low, term))
        rare = term.weight * math.log(1 + (len(starts) - len(counts) + 0.5) / (len(counts) + 0.5))
        for block, often in counts.items():
            length = 1 - _LENGTH + _LENGTH * (ends[block] - starts[block]) / mean
            scores[block] += rare * often * (_SATURATION + 1) / (often + _SATURATION * length)
    return sorted(
        ((score, block) for block, score in scores.items()), key=lambda pair: (-pair[0], pair[1])
    )


def _weighted_words(question: str) -> Iterator[tuple[str, float]]:
    for phrase in _PHRASE.findall(question):
        yield lower_in_place(" ".join(phrase.split())), _PHRASE_WEIGHT
    words = list(_words(question))
    telling = [pair for pair in words if pair[0] not in QUESTION]
    for word, weight in telling or words:
        yield (stem(word) if weight < _NAME_WEIGHT else word), weight


def _words(question: str) -> Iterator[tuple[str, float]]:
    for name in _NAME.findall(question):
        parts = [hump for part in _PART.findall(name) for hump in _split(part)]
        if len(parts) > 1:
            yield lower_in_place(name.strip("./:-#@")), _NAME_WEIGHT
        for part in parts:
            yield lower_in_place(part), _PART_WEIGHT if len(parts) > 1 else _WORD_WEIGHT


def _split(part: str) -> Iterator[str]:
    """`parseCall` in its parts; scripts without spaces in pairs of characters."""
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


_LONGEST_LINE = 200  # characters; a longer one is cut to the part around the first hit


@dataclass(frozen=True, slots=True)
class ExcerptLine:
    number: int
    """Line number in the whole text, from 1; 0 if it has no lines."""
    text: str
    marks: tuple[tuple[int, int], ...]
    """Ranges of the matching words in the text, end exclusive."""


def excerpt(entry: Entry, wanted: Sequence[Term], most: int) -> list[ExcerptLine]:
    """At most `most` lines; the first ones if no word occurs in it, because it was found by
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
    """Start of the window with the highest term weight, and one line before its first hit."""
    if len(lines) <= most:
        return 0
    terms_by_line = [frozenset(term for _, term in first_hits(line, wanted)) for line in lines]
    starts = [at for at, terms in enumerate(terms_by_line) if terms]
    if not starts:
        return 0

    def weight(start: int) -> tuple[float, float]:
        window = terms_by_line[start : start + most - 1]
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
    """Whole words that begin with a term, without overlaps."""
    low = lower_in_place(text)
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
