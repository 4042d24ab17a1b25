"""The passages of earlier work that answer a question: stretches of pages that are not in the
window, best first."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hotset.errors import HotsetError
from hotset.nouns.knobs import HistoryKnobs
from hotset.nouns.page import Kind, Page
from hotset.sources.history.page_search import Deadline
from hotset.sources.history.pages import page_text
from hotset.store.port import Store
from hotset.text.terms import Term, hits, terms
from hotset.text.words import lower_in_place
from hotset.window.arguments import spoken
from hotset.window.names import coined_names
from hotset.window.page_text import MOST_ARGUMENTS, TextStretch, stretches

_SATURATION, _LENGTH = 1.2, 0.6
_MOST_BYTES = 24 << 20  # of pages read for one question
_LOOKED_AT = 1 << 20  # characters of one page
_LATEST_CALLS = 6
_LATEST_WORDS = 16
_CALLED_READ = 400  # characters of a call that stand for what it brought


@dataclass(frozen=True, slots=True)
class Passage:
    """Some lines of a page."""

    page: Page
    lines: tuple[int, int]
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class RecentWork:
    """What a conversation is about when a question is asked: its latest calls."""

    calls: Mapping[str, str]
    """Each call's arguments as text, by its id."""
    files: Mapping[str, float]
    """Names of the files in the latest calls; the latest weigh 1."""
    words: tuple[Term, ...]
    """Names in the latest calls."""


def work_of(line: Sequence[Page], store: Store, knobs: HistoryKnobs) -> RecentWork:
    """The work at the end of this line."""
    calls: dict[str, str] = {}
    for page in line:
        if page.call and page.kind.family is Kind.TOOL_CALL and page.size <= MOST_ARGUMENTS:
            try:
                calls[page.call] = spoken(store.content(page.digest))
            except HotsetError:
                continue
    files: dict[str, float] = {}
    names: Counter[str] = Counter()
    for age, text in enumerate(list(calls.values())[: -_LATEST_CALLS - 1 : -1]):
        for name in _files(text):
            files.setdefault(name, 1 - age / _LATEST_CALLS)
        if age < 2:
            names.update(coined_names(text[:4000]))
    words = (
        Term(lower_in_place(name), knobs.of_names) for name, _ in names.most_common(_LATEST_WORDS)
    )
    return RecentWork(calls, files, tuple(words))


def _files(text: str) -> set[str]:
    """The last parts of the paths that a call names."""
    return {
        match[1]
        for match in re.finditer(r"(?:^|[/\s\"'=])([\w.@+-]+\.[A-Za-z]\w{0,7})\b", text[:2000])
    }


@dataclass(frozen=True, slots=True)
class _ReadPage:
    page: Page
    name: str
    """Its tool, and what its call was asked."""
    text: str
    low: str
    parts: Sequence[TextStretch]
    starts: Sequence[int]


def find_passages(
    question: str,
    pages: Sequence[Page],
    work: RecentWork,
    store: Store,
    deadline: Deadline,
    *,
    knobs: HistoryKnobs,
) -> tuple[list[Passage], int]:
    """The passages of these pages, best first, and the number of pages for which there was no
    time."""
    latest = list({page.digest: page for page in pages}.values())[::-1]
    read = _read(latest, work, store, deadline)
    return _score(read, question, work, knobs), len(latest) - len(read)


def _read(
    pages: Sequence[Page], work: RecentWork, store: Store, deadline: Deadline
) -> list[_ReadPage]:
    """The pages' texts, as many as there is time for."""
    left = _MOST_BYTES
    read: list[_ReadPage] = []
    for page in pages:
        left -= page.size
        if read and (deadline.passed or left < 0):
            break
        content = page_text(store, page)
        text = content.text[:_LOOKED_AT] if content.own else ""
        text, offset = _without_gutter(text)
        parts = [piece for part in stretches(text, 1 + offset) for piece in _split(part)]
        starts, at = list[int](), 0
        for part in parts:
            at = max(0, text.find(part.text, at))
            starts.append(at)
        name = f"{page.tool} {work.calls.get(page.call, '')[:_CALLED_READ]}"
        read.append(_ReadPage(page, name, text, lower_in_place(text), parts, starts))
    return read


_GUTTER = re.compile(r"^ *(\d+)(?:→|\t|\| ?)", re.MULTILINE)
_PIECE = 300  # characters of a passage: several places are worth more than one long stretch


def _without_gutter(text: str) -> tuple[str, int]:
    """A numbered listing without its numbers, and how many lines come before it in its file."""
    first = _GUTTER.match(text)
    if first is None or len(_GUTTER.findall(text)) < 0.8 * (text.count("\n") + 1):
        return text, 0
    return _GUTTER.sub("", text), max(0, int(first[1]) - 1)


def _split(part: TextStretch) -> Iterator[TextStretch]:
    """A long stretch in pieces of about the same length, in whole lines."""
    lines = part.text.split("\n")
    room = len(part.text) / max(1, round(len(part.text) / _PIECE))
    start = size = 0
    for at, line in enumerate(lines):
        size += len(line) + 1
        if size >= room or at == len(lines) - 1:
            first = part.lines[0]
            yield TextStretch("\n".join(lines[start : at + 1]), (first + start, first + at))
            start, size = at + 1, 0


def _score(
    read: Sequence[_ReadPage], question: str, work: RecentWork, knobs: HistoryKnobs
) -> list[Passage]:
    """BM25 over stretches, with the whole page's, its name's and its neighbours'."""
    asked = terms(question)
    known = {term.text for term in asked}
    wanted = (*asked, *(term for term in work.words if term.text not in known))
    where = [_counts(each, wanted) for each in read]
    many = max(1, sum(len(each.parts) for each in read))
    mean = max(1.0, sum(len(part.text) for each in read for part in each.parts) / many)
    spread = [sum(len(counts[number]) for counts in where) for number in range(len(wanted))]
    rare = [
        term.weight * math.log(1 + (many - number + 0.5) / (number + 0.5))
        for term, number in zip(wanted, spread, strict=True)
    ]
    unit = math.log(1 + many)
    phrases = _phrases(question)
    shares = {Kind.TOOL_CALL: knobs.calls, Kind.RESPONSE: knobs.replies}
    found: list[Passage] = []
    for each, counts in zip(read, where, strict=True):
        low = lower_in_place(each.name)
        in_name = sum(
            weight
            for term, weight in zip(asked, rare, strict=False)
            if any(True for _ in hits(each.name, low, term))
        )
        in_page = sum(
            weight for weight, here in zip(rare[: len(asked)], counts, strict=False) if here
        )
        if not in_name and not in_page:
            continue
        at_work = max((work.files.get(name, 0.0) for name in _files(each.name)), default=0.0)
        whole = knobs.of_call * in_name + knobs.of_page * in_page + knobs.of_work * unit * at_work
        share = shares.get(each.page.kind.family, 1.0)
        own = [
            _stretch_score(place, len(part.text) / mean, rare, counts)
            for place, part in enumerate(each.parts)
        ]
        for place, part in enumerate(each.parts):
            beside = max(own[max(0, place - 1) : place] + own[place + 1 : place + 2], default=0.0)
            score = own[place] + knobs.of_neighbour * beside + whole
            if phrases and own[place]:
                plain = " ".join(part.text.lower().split())
                score *= 1 + knobs.of_phrase * sum(phrase in plain for phrase in phrases)
            if score:
                found.append(Passage(each.page, part.lines, part.text, score * share))
    return sorted(found, key=lambda each: -each.score)


def _counts(page: _ReadPage, wanted: Iterable[Term]) -> list[Counter[int]]:
    """How often each term occurs, by stretch."""
    places = (
        (bisect_right(page.starts, at) - 1 for at in hits(page.text, page.low, term))
        for term in wanted
    )
    return [Counter(place for place in each if place >= 0) for each in places]


def _stretch_score(
    place: int, length: float, rare: Sequence[float], counts: Sequence[Counter[int]]
) -> float:
    norm = _SATURATION * (1 - _LENGTH + _LENGTH * length)
    return sum(
        weight * often * (_SATURATION + 1) / (often + norm)
        for weight, here in zip(rare, counts, strict=True)
        if (often := here[place])
    )


def _phrases(question: str) -> list[str]:
    """Quoted text, as it stands in the question."""
    quoted = re.findall(r"[\"`\u201c']([^\"`\u201d']{4,80})[\"`\u201d']", question)
    return [" ".join(each.lower().split()) for each in quoted]
