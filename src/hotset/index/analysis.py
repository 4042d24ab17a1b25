"""Tokenization: identifiers are split, and quoted phrases stay together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hotset.text.words import UNSPACED

VERSION = 1
"""Changes when the same text gives other words: everything is folded anew then."""

# characters of a question that are read; a prompt is shorter, and what is longer is no question
_MOST_ASKED = 16_384
_MOST_PHRASES = 8
_MOST_NAMED = 60  # characters of a phrase: quotation marks come with whole error messages, too
_LOWER, _UPPER, _DIGIT = 1, 2, 3
_CLASS = np.zeros(256, np.uint8)
_CLASS[ord("a") : ord("z") + 1] = _LOWER
_CLASS[ord("A") : ord("Z") + 1] = _UPPER
_CLASS[ord("0") : ord("9") + 1] = _DIGIT
_SPACE = ord(" ")
_END = b"\0\0"  # what is looked at around a letter is there, however short the text
_SHORT = 1000  # characters: below that arrays take longer to make than to use
# what may follow comes first: most letters are small, and looking back takes twice the time
_BORDER = re.compile(
    "(?=[A-Z0-9])(?:(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z]{2})(?=[0-9]))|"
    "(?<=[0-9])(?=[A-Za-z]{2})"
)
_UNSPACED = re.compile(f"[{UNSPACED}]")
_QUOTED = re.compile('"([^"]+)"')
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class AnalysedQuery:
    """A query's words, analysed."""

    text: str
    """All words, for the embedder."""
    phrases: tuple[tuple[str, ...], ...] = ()
    """Phrases that must occur word for word."""


def analyse_query(words: str) -> AnalysedQuery:
    text = words[:_MOST_ASKED]
    quoted = (tuple(exact_words(phrase)) for phrase in _QUOTED.findall(text))
    return AnalysedQuery(text, tuple(phrase for phrase in quoted if phrase)[:_MOST_PHRASES])


def exact_words(text: str) -> list[str]:
    """Whole identifiers, in any case."""
    return _WORD.findall(text.lower())


def holds_phrases(text: str, phrases: Sequence[tuple[str, ...]]) -> bool:
    """True if the text has each phrase word for word."""
    if not phrases:
        return True
    words = exact_words(text)
    return all(_within(words, phrase) for phrase in phrases)


def split_identifiers(texts: Sequence[str]) -> list[str]:
    """Each text with spaces where its identifiers come apart: `parseHTTPDate2` is `parse HTTP Date
    2`.

    A border lies before a capital that follows a small letter, before the last of several capitals,
    and between digits and two letters or more; a single letter beside digits is as a rule part of a
    hash.
    """
    joined = (
        "\0".join(text.replace("\0", " ") for text in texts).encode("utf-8", "replace").decode()
    )
    if not joined.isascii():
        joined = _UNSPACED.sub(r" \g<0> ", joined)
    apart = _BORDER.sub(" ", joined) if len(joined) < _SHORT else _split_many(joined)
    return apart.split("\0") if texts else []


def _split_many(joined: str) -> str:
    """The same as `_BORDER`, ten times as fast for long texts."""
    raw = np.frombuffer(joined.encode() + _END, np.uint8)
    sort = _CLASS[raw]
    lower, upper, digit = sort == _LOWER, sort == _UPPER, sort == _DIGIT
    letter = lower | upper
    border = np.zeros(len(raw), np.bool_)  # in front of this byte
    border[1:] = lower[:-1] & upper[1:]
    border[1:-1] |= upper[:-2] & upper[1:-1] & lower[2:]
    border[2:] |= letter[:-2] & letter[1:-1] & digit[2:]
    border[1:-1] |= digit[:-2] & letter[1:-1] & letter[2:]
    return np.insert(raw, np.flatnonzero(border), _SPACE)[: -len(_END)].tobytes().decode()


def _within(words: Sequence[str], phrase: tuple[str, ...]) -> bool:
    first, length = phrase[0], len(phrase)
    return any(
        word == first and tuple(words[at : at + length]) == phrase for at, word in enumerate(words)
    )


@dataclass(frozen=True, slots=True)
class QueryWording:
    words: str
    note: str = ""
    """Remark about hits that this wording finds; empty if it is the original query."""


def wordings(query: str) -> Iterator[QueryWording]:
    """Queries to try in turn until something is found: the query, and without its quotation marks
    if they matter."""
    yield QueryWording(query)
    if analyse_query(query).phrases:
        named = ", ".join(
            f'"{_shorten(" ".join(each.split()))}"' for each in _QUOTED.findall(query)
        )
        note = f"no exact match for {named}; these are nearest"
        yield QueryWording(query.replace('"', " "), note)


def _shorten(phrase: str) -> str:
    return phrase if len(phrase) <= _MOST_NAMED else f"{phrase[:_MOST_NAMED]}…"
