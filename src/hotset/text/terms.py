"""What a question is about, and where a text speaks of it: words by their stems, names by their
parts."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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
    """Where words that begin with the term stand. `low` is the text in lower case."""
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
    """Each term that stands in the text, with where it first does."""
    low = lowered(text)
    for term in wanted:
        if (at := next(hits(text, low, term), None)) is not None:
            yield at, term


def ranked(text: str, starts: Sequence[int], wanted: Sequence[Term]) -> list[tuple[float, int]]:
    """The blocks of a text (by where each starts) that speak of the terms: score and number, best
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
