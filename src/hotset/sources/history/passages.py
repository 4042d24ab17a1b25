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
    return work_of_calls(calls, knobs)


def work_of_calls(calls: Mapping[str, str], knobs: HistoryKnobs) -> RecentWork:
    """The same of the calls themselves, by their ids, the latest last."""
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
class PageOfPassages:
    """A page's text in passages."""

    kind: Kind
    name: str
    """Its tool, and what its call was asked."""
    text: str
    low: str
    parts: Sequence[TextStretch]
    starts: Sequence[int]

    @classmethod
    def of(cls, kind: Kind, tool: str, call: str, text: str, room: int) -> PageOfPassages:
        """`call`: what the call was asked that brought it; `room`: characters of a passage."""
        text, offset = _without_gutter(text[:_LOOKED_AT])
        parts = [piece for part in stretches(text, 1 + offset) for piece in _split(part, room)]
        starts, at = list[int](), 0
        for part in parts:
            at = max(0, text.find(part.text, at))
            starts.append(at)
        return cls(kind, f"{tool} {call[:_CALLED_READ]}", text, lower_in_place(text), parts, starts)

    def counts(self, wanted: Iterable[Term]) -> list[Counter[int]]:
        """How often each term occurs, by passage."""
        places = (
            (bisect_right(self.starts, at) - 1 for at in hits(self.text, self.low, term))
            for term in wanted
        )
        return [Counter(place for place in each if place >= 0) for each in places]

    def names(self, term: Term, low: str) -> bool:
        """True if the name has the term; `low` is the name in lower case."""
        return any(True for _ in hits(self.name, low, term))

    def at_work(self, work: RecentWork) -> float:
        """How lately a file of its name was worked on."""
        return max((work.files.get(name, 0.0) for name in _files(self.name)), default=0.0)


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
    read = _read(latest, work, store, deadline, knobs)
    found = score_passages(read, question, work, knobs)
    passages = [
        Passage(latest[number], part.lines, part.text, score) for number, part, score in found
    ]
    return passages, len(latest) - len(read)


def _read(
    pages: Sequence[Page],
    work: RecentWork,
    store: Store,
    deadline: Deadline,
    knobs: HistoryKnobs,
) -> list[PageOfPassages]:
    """The pages' texts, as many as there is time for."""
    left = _MOST_BYTES
    read: list[PageOfPassages] = []
    for page in pages:
        left -= page.size
        if read and (deadline.passed or left < 0):
            break
        content = page_text(store, page)
        text = content.text if content.own else ""
        asked = work.calls.get(page.call, "")
        read.append(PageOfPassages.of(page.kind, page.tool, asked, text, knobs.passage))
    return read


_GUTTER = re.compile(r"^ *(\d+)(?:→|\t|\| ?)", re.MULTILINE)


def _without_gutter(text: str) -> tuple[str, int]:
    """A numbered listing without its numbers, and how many lines come before it in its file."""
    first = _GUTTER.match(text)
    if first is None or len(_GUTTER.findall(text)) < 0.8 * (text.count("\n") + 1):
        return text, 0
    return _GUTTER.sub("", text), max(0, int(first[1]) - 1)


def _split(part: TextStretch, about: int) -> Iterator[TextStretch]:
    """A long stretch in pieces of about the same length, in whole lines."""
    lines = part.text.split("\n")
    room = len(part.text) / max(1, round(len(part.text) / about))
    start = size = 0
    for at, line in enumerate(lines):
        size += len(line) + 1
        if size >= room or at == len(lines) - 1:
            first = part.lines[0]
            yield TextStretch("\n".join(lines[start : at + 1]), (first + start, first + at))
            start, size = at + 1, 0


def score_passages(
    read: Sequence[PageOfPassages], question: str, work: RecentWork, knobs: HistoryKnobs
) -> list[tuple[int, TextStretch, float]]:
    """Passages with the number of their page and their score, best first: BM25 over passages, with
    the whole page's, its name's and its neighbours'."""
    asked, wanted = wanted_terms(question, work)
    where = [each.counts(wanted) for each in read]
    many = max(1, sum(len(each.parts) for each in read))
    mean = max(1.0, sum(len(part.text) for each in read for part in each.parts) / many)
    spread = [sum(len(counts[number]) for counts in where) for number in range(len(wanted))]
    rare = [term.weight * rarity(many, number) for term, number in zip(wanted, spread, strict=True)]
    unit = math.log(1 + many)
    phrases = quoted_phrases(question)
    shares = {Kind.TOOL_CALL: knobs.calls, Kind.RESPONSE: knobs.replies}
    found: list[tuple[int, TextStretch, float]] = []
    for number, (each, counts) in enumerate(zip(read, where, strict=True)):
        low = lower_in_place(each.name)
        in_name = sum(
            weight for term, weight in zip(asked, rare, strict=False) if each.names(term, low)
        )
        in_page = sum(
            weight for weight, here in zip(rare[: len(asked)], counts, strict=False) if here
        )
        if not in_name and not in_page:
            continue
        at_work = each.at_work(work)
        whole = knobs.of_call * in_name + knobs.of_page * in_page + knobs.of_work * unit * at_work
        share = shares.get(each.kind.family, 1.0)
        own = [
            _passage_score(place, len(part.text) / mean, rare, counts, knobs)
            for place, part in enumerate(each.parts)
        ]
        for place, part in enumerate(each.parts):
            beside = max(own[max(0, place - 1) : place] + own[place + 1 : place + 2], default=0.0)
            score = own[place] + knobs.of_neighbour * beside + whole
            if phrases and own[place]:
                score *= 1 + knobs.of_phrase * count_phrases(part.text, phrases)
            if score:
                found.append((number, part, score * share))
    return sorted(found, key=lambda each: -each[2])


def wanted_terms(question: str, work: RecentWork) -> tuple[Sequence[Term], Sequence[Term]]:
    """The terms of a question, and these with the names in the latest calls."""
    asked = terms(question)
    known = {term.text for term in asked}
    return asked, (*asked, *(term for term in work.words if term.text not in known))


def rarity(many: int, with_it: int) -> float:
    """How much a term says that so many of the passages have."""
    return math.log(1 + (many - with_it + 0.5) / (with_it + 0.5))


def _passage_score(
    place: int,
    length: float,
    rare: Sequence[float],
    counts: Sequence[Counter[int]],
    knobs: HistoryKnobs,
) -> float:
    norm = knobs.saturation * (1 - knobs.length + knobs.length * length)
    return sum(
        weight * often * (knobs.saturation + 1) / (often + norm)
        for weight, here in zip(rare, counts, strict=True)
        if (often := here[place])
    )


def quoted_phrases(question: str) -> list[str]:
    """Quoted text, as it stands in the question."""
    quoted = re.findall(r"[\"`\u201c']([^\"`\u201d']{4,80})[\"`\u201d']", question)
    return [" ".join(each.lower().split()) for each in quoted]


def count_phrases(text: str, phrases: Iterable[str]) -> int:
    """How many of these stand in a text."""
    plain = " ".join(text.lower().split())
    return sum(phrase in plain for phrase in phrases)
