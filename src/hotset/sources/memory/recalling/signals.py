"""What speaks for each memory and each thing that was said: a few searches of the index, and what the texts themselves tell."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from hotset.index.port import Index
from hotset.nouns.finding import Filter, Hit, Query, Sort
from hotset.nouns.memory import MemoryKind
from hotset.nouns.page import Kind
from hotset.sources.memory.entries import WINDOW, said_by
from hotset.text.sentences import SENTENCE_END
from hotset.text.stops import CHAT

if TYPE_CHECKING:
    from hotset.index.embed.wordwise import Wordwise

TALK_KINDS: Mapping[str, int] = {Kind.PROMPT: 50, Kind.RESPONSE: 25}
"""Whose words are looked for, and how many stretches of each: one search for both finds the longer answers of models first."""

_WINDOWS = 25
_MEMORIES = 30
_CLOSE = 0.45  # cosine that counts where no telling word is shared: see `sources.history.search`
_WORD = re.compile(r"\S+")
_EDGES = re.compile(r"^\W+|\W+$")
_OWN_STATEMENT = re.compile(r"\b(?:I|I'm|I've|I'd|my|My|we|We|our|Our)\b")
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice|first|second|third|couple|few)\b", re.IGNORECASE
)
_ENOUGH_TOLD = 2  # own statements: more say no more


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may be recalled, with what the index knows of it."""

    key: str
    """A page's id, or a memory's."""
    kind: str
    """`prompt`, `response`, or a memory's kind."""
    session: str
    time: float
    turn: int = 0
    title: str = ""
    text: str = ""
    """Its best stretch; empty where only what stands around it was found."""
    lines: tuple[int, int] = (0, 0)
    words: float | None = None
    meaning: float | None = None
    window: float | None = None

    @property
    def is_talk(self) -> bool:
        return self.kind in TALK_KINDS


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, as far as the index is asked."""

    words: str
    """Without what people say around it, and without its time."""
    kinds: frozenset[MemoryKind]
    talk: bool
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Found:
    candidates: Mapping[str, Candidate]
    lacking: frozenset[str] = frozenset()
    """What did not serve in all of the searches."""


def telling(query: str) -> str:
    """The words of a question that tell it from others; all of them, where none does. Quotes are no condition here."""
    words = query.replace('"', " ")
    kept = [word for word in _WORD.findall(words) if _EDGES.sub("", word).lower() not in CHAT]
    return " ".join(kept) or " ".join(words.split())


def gather(asked: Asked, index: Index, until: float, clock: Callable[[], float] = time.monotonic) -> Found:
    """Everything that shares a telling word with the question, or is close to it in meaning."""
    candidates: dict[str, Candidate] = {}
    lacking: set[str] | None = None
    for query in _queries(asked):
        hits = index.search(replace(query, deadline=max(0.0, until - clock())))
        lacking = set(hits.lacking) if lacking is None else lacking | hits.lacking
        for new in _candidates(hits.hits):
            candidates[new.key] = _together(candidates.get(new.key), new)
    return Found(candidates, frozenset(lacking or ()))


def _queries(asked: Asked) -> Iterator[Query]:
    ranges: list[tuple[float | None, float | None, float]] = [(None, None, 1.0)]
    if asked.since is not None or asked.until is not None:
        ranges.append((asked.since, asked.until, 0.5))
    for since, until, share in ranges:
        if asked.talk:
            for kind, most in TALK_KINDS.items():
                only = Filter(sorts=frozenset({Sort.PAGE}), kinds=frozenset({kind}), since=since, until=until)
                yield Query(asked.words, only, int(most * share))
            only = Filter(sorts=frozenset({Sort.MEMORY}), kinds=frozenset({WINDOW}), since=since, until=until)
            yield Query(asked.words, only, int(_WINDOWS * share))
        if asked.kinds:
            only = Filter(sorts=frozenset({Sort.MEMORY}), kinds=frozenset(map(str, asked.kinds)), since=since, until=until)
            yield Query(asked.words, only, int(_MEMORIES * share))


def _candidates(hits: Iterable[Hit]) -> Iterator[Candidate]:
    for hit in hits:
        entry = hit.entry
        if hit.by_words is None and (hit.by_meaning or 0.0) < _CLOSE:
            continue
        if entry.kind == WINDOW:
            if hit.by_words is not None:
                yield Candidate(entry.whole, said_by(entry), entry.session, entry.time, entry.turn, window=hit.by_words)
        else:
            words, meaning = hit.by_words, hit.by_meaning
            place = entry.session, entry.time, entry.turn, entry.title, entry.text, entry.lines
            yield Candidate(entry.whole, entry.kind, *place, words=words, meaning=meaning)


def _together(one: Candidate | None, other: Candidate) -> Candidate:
    """Several stretches of a page are one candidate, with the text of the best and the best of each signal."""
    if one is None:
        return other
    best = max(one, other, key=lambda each: (bool(each.text), each.words or 0.0, each.meaning or 0.0))
    return replace(
        best,
        words=_greater(one.words, other.words),
        meaning=_greater(one.meaning, other.meaning),
        window=_greater(one.window, other.window),
    )


def _greater(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)


def has_number(text: str) -> bool:
    return _NUMBER.search(text) is not None


def own_statements(text: str) -> float:
    """How much somebody tells of themselves, from 0 to 1: sentences in the first person that are no questions."""
    spoken = (each for line in text.split("\n") for each in SENTENCE_END.split(line))
    told = sum(1 for each in spoken if _OWN_STATEMENT.search(each) and not each.rstrip().endswith("?"))
    return min(1.0, told / _ENOUGH_TOLD)


def closely(question: str, texts: Sequence[str]) -> list[float]:
    """How well each text answers each word of the question."""
    return _wordwise().scores(question, texts)


@cache
def _wordwise() -> Wordwise:
    from hotset.index.embed.table import Table  # noqa: PLC0415 - whoever imports this module may never ask
    from hotset.index.embed.wordwise import Wordwise  # noqa: PLC0415

    return Wordwise(Table())
