"""Code that a prompt is about and that no action has read: which files, how likely each is right,
and the text that offers it. Pure.

The index ranks by nearness; this module estimates how likely a file is one that the prompt's work
will change, from a few signs of what was found. The weights are fitted to commits of public
repositories, message to changed files: `make bench-hints` fits them, and reports how well they hold
for later commits and for repositories that they were not fitted to.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from enum import StrEnum

from hotset.nouns.candidate import Candidate, OfferKind, OfferSlot
from hotset.nouns.knobs import Prefetch, Prefetching
from hotset.nouns.search import Entry, Filter, Hits, IndexHit, Query, Sort
from hotset.text.characters import mark_invisible
from hotset.text.file_roles import is_about_tests, is_code, is_test
from hotset.text.stems import stem
from hotset.text.stops import REQUEST
from hotset.text.terms import Term, first_hits, terms
from hotset.text.words import humps, word_set
from hotset.window.arguments import spoken
from hotset.window.names import names

SOURCE = "code"
"""The source of these offers."""

WITHIN = 10
"""Actions after a prompt within which its offers can count as used."""

ABOVE = "[hotset prefetch: data, not a request; may be outdated]"
"""First line of each offer."""

# characters of a prompt; pasted plans are longer, and their beginning has the topic
_ASKED = 4000
_ONLY_CODE = Filter(frozenset({Sort.CODE}))
_NAME = 2.0  # weight from which a term is a name of several parts
_TELLING_LINE = 8  # characters; shorter lines are everywhere
_LOOKED_UP = 5  # longest lines of a stretch, by which it is recognized
_COPIED_LINE = 24  # characters; shorter lines are written without being copied
_OWN_NUMBER = re.compile(r"^\s*(\d+)(?:→|\t|:|\|)", re.MULTILINE)
_BEGIN = 20  # characters of a signature that stand together in its first line
_CLEAR_LEAD = 0.33
_CLEAR_MARGIN = 1.5
_FARTHEST = 2.0  # margins beyond say no more
_BEGINNING = 200  # characters of a prompt that say what kind of work it is
_WORD = re.compile(r"[a-z0-9-]+")
_NOT_CODE = word_set("""
    doc docs docstring docstrings document documents documented documenting documentation readme
    changelog changes typo typos spelling wording release version bump upgrade update updates
    updated ci workflow workflows github action actions travis lint linting linter ruff mypy black
    flake8 eslint prettier pre-commit format formatting dependency dependencies deps requirements
    lock test tests tested testing coverage chore example examples comment comments benchmark
    benchmarks copyright license link links pyright typing type types annotation annotations
""")
"""Words of prompts for which other files than code are changed, often enough to count."""
_NO_NAMES = frozenset({"index", "main", "init", "mod"})
"""File names that say nothing about the file."""
_STOPS = frozenset({*REQUEST, *map(stem, REQUEST), "bug", "error", "support"})
"""Words of requests that say nothing about a file."""


@dataclass(frozen=True, slots=True)
class Signs:
    """Features of a file that was found."""

    constant: float
    score: float
    """Of its best stretch, in deviations: full text and vectors fused."""
    margin: float
    """How far that is above the best of the other files, between -2 and 2."""
    lead: float
    """Share of the prompt's telling words that its stretches have, less that of the best other
    file."""
    rare: float
    """How many of these words few other files have that were found."""
    gathered: float
    """How many of the finds are in this file."""
    share: float
    """Which share of the finds these are: much in a small project."""
    named: float
    """The prompt says all words of the file's name."""
    has_name: float
    """It has a name of several parts that the prompt says."""
    has_name_alone: float
    """Names that no other file has that was found."""
    about_code: float
    """The prompt does not speak of documents, tests, releases or tools of the project."""

    @property
    def is_clear(self) -> bool:
        """The file stands out: the prompt says its name, and words that it has and no other file;
        it is far ahead of the others."""
        return (
            bool(self.named and self.about_code)
            and self.lead >= _CLEAR_LEAD
            and self.margin >= _CLEAR_MARGIN
        )


SIGNS = tuple(each.name for each in fields(Signs))


@dataclass(frozen=True, slots=True)
class HintCalibration:
    """How likely the work of a prompt changes a file, by the file's signs."""

    weights: tuple[float, ...]
    """Of the signs; the weighted sum is the log-odds."""
    clear: float
    """The least likelihood of a file that is clear: so many of them are right. The weighted sum is
    too low for prompts of two or three words, of which there are few to fit to."""


CALIBRATION = HintCalibration(
    weights=(-3.59, 0.31, 0.14, 1.40, 0.90, 2.41, -0.97, 0.49, 0.53, 0.19, 0.48), clear=0.94
)
"""Fitted to 7,537 commits of 13 public repositories (docs/prefetch.md); `make bench-hints` fits it
again. Of what it shows at .85 and more, 90 % are right for later commits, and 89 % for repositories
that it was not fitted to."""


@dataclass(frozen=True, slots=True)
class WeighedFile:
    """A file that was found, by the stretch that answers the prompt best."""

    hit: IndexHit
    signs: Signs


def query_for(prompt: str, knobs: Prefetch, seconds: float) -> Query:
    """The index query for a prompt."""
    # Quotation marks would ask for a phrase word for word; a prompt quotes for other reasons.
    return Query(prompt[:_ASKED].replace('"', " "), _ONLY_CODE, knobs.found, seconds)


def weigh(prompt: str, found: Hits) -> list[WeighedFile]:
    """Every file of code that full text and meaning both found, best first. Tests only if the
    prompt is about tests; no file that the prompt itself names."""
    wants_tests = is_about_tests(prompt)
    stretches: dict[str, list[IndexHit]] = {}
    for hit in found.hits:
        entry = hit.entry
        is_sought = entry.sort is Sort.CODE and is_code(entry.kind)
        if is_sought and (wants_tests or not is_test(entry.path)):
            stretches.setdefault(entry.path, []).append(hit)
    wanted = _telling_terms(prompt)
    there = {path: _terms_in(hits, wanted) for path, hits in stretches.items()}
    files_with = Counter(term for some in there.values() for term in some)
    best = {path: max(hits, key=_by_score) for path, hits in stretches.items()}
    ranked = sorted(best, key=lambda path: (-best[path].score, path))
    most = sorted(map(len, there.values()), reverse=True)
    about_code = float(_NOT_CODE.isdisjoint(_WORD.findall(prompt[:_BEGINNING].lower())))
    weighed = []
    for path in ranked:
        hit, mine = best[path], there[path]
        if not (is_found_by_both(hit) and mine) or _is_named_in(path, prompt):
            continue
        ahead = hit.score - next((best[each].score for each in ranked[:2] if each != path), 0.0)
        others = next(iter(most[1:] if len(mine) == most[0] else most), 0)
        in_names = [term for term in mine if term.weight >= _NAME]
        signs = Signs(
            constant=1.0,
            score=hit.score,
            margin=max(-_FARTHEST, min(_FARTHEST, ahead)),
            lead=(len(mine) - others) / len(wanted),
            rare=math.log1p(sum(1 / files_with[term] for term in mine)),
            gathered=math.log1p(len(stretches[path])) / 3,
            share=len(stretches[path]) / sum(map(len, stretches.values())),
            named=float(_says_name_of(path, wanted)),
            has_name=float(bool(in_names)),
            has_name_alone=float(min(2, sum(files_with[term] == 1 for term in in_names))),
            about_code=about_code,
        )
        weighed.append(WeighedFile(hit, signs))
    return weighed


def likelihood(signs: Signs, by: HintCalibration = CALIBRATION) -> float:
    """Probability that the work of the prompt changes the file."""
    odds = sum(sign * weight for sign, weight in zip(astuple(signs), by.weights, strict=True))
    likely = 1.0 / (1.0 + math.exp(-odds))
    return max(likely, by.clear) if signs.is_clear else likely


def is_found_by_both(hit: IndexHit) -> bool:
    """True if full text and meaning both found it."""
    return hit.by_words is not None and hit.by_meaning is not None


def candidates(
    prompt: str,
    found: Hits,
    current: Callable[[Entry], Entry | None],
    *,
    slot: OfferSlot,
    knobs: Prefetch,
    count: Callable[[bytes], int],
    by: HintCalibration = CALIBRATION,
) -> list[Candidate]:
    """Candidates for a prompt, likeliest first: excerpts of files, then hints that name a place.

    `current` returns a stretch as its file has it now, or None if it is not to be shown.
    """
    if knobs.mode is Prefetching.OFF or not prompt.strip():
        return []
    least = min(knobs.hint, knobs.excerpt)
    every = [(likelihood(each.signs, by), each.hit.entry) for each in weigh(prompt, found)]
    likely = sorted((pair for pair in every if pair[0] >= least), key=lambda pair: -pair[0])
    judged = [(sure, now) for sure, entry in likely if (now := current(entry)) is not None]
    wanted = _telling_terms(prompt)

    def make(kind: OfferKind, sure: float, entry: Entry, body: str) -> Candidate:
        text, _ = mark_invisible(body)
        tokens = count(text.encode("utf-8", "replace")) + 1  # the end of its last line
        covers = _telling_lines(entry.text)
        return Candidate(SOURCE, kind, entry.path, slot, text, tokens, sure, ABOVE, covers, entry)

    excerpts = [
        make(OfferKind.EXCERPT, sure, entry, _excerpt(entry, sure, knobs.lines))
        for sure, entry in judged
        if knobs.mode is Prefetching.ON and sure >= knobs.excerpt
    ]
    hints = [
        make(OfferKind.HINT, sure, entry, _hint(entry, sure, wanted, knobs.hint_chars))
        for sure, entry in judged
        if sure >= knobs.hint
    ]
    return [each for each in (*excerpts, *hints) if each.covers]


class Verdict(StrEnum):
    """The outcome of an offer."""

    USED = "used"
    """An action copied a line of an excerpt, or was about the file of a hint."""
    EXPANDED = "expanded"
    """An action opened the file of an excerpt: it was the right file, and not enough of it."""
    WASTED = "wasted"


@dataclass(frozen=True, slots=True)
class JudgedOffer:
    offered: Candidate
    verdict: Verdict
    saved: int = 0
    """Its tokens, if an action copied from it before any had read its file: a read would have cost
    at least these."""


def judge(offered: Candidate, actions: Sequence[bytes]) -> JudgedOffer | None:
    """The outcome, from the arguments of later actions; None while it is too early. A file that the
    prompt names is never offered, so that none of them counts as used for the prompt's sake."""
    entry = offered.origin
    assert isinstance(entry, Entry)
    shown = entry.text if offered.kind is OfferKind.EXCERPT else ""
    lines = {bare for line in shown.split("\n") if len(bare := _bare(line)) >= _COPIED_LINE}
    for action in actions[:WITHIN]:
        text = spoken(action)
        if any(line in text for line in lines):
            return JudgedOffer(offered, Verdict.USED, offered.tokens)
        if any(_is_path_of(entry.path, name) for name in names(text)):
            return JudgedOffer(offered, Verdict.EXPANDED if lines else Verdict.USED)
    return JudgedOffer(offered, Verdict.WASTED) if len(actions) >= WITHIN else None


def is_known(path: str, actions: Collection[bytes]) -> bool:
    """True if an action named the file: the model has it, or knows where it is."""
    sought = path.encode("utf-8", "replace")
    return any(sought in action for action in actions)


def _by_score(hit: IndexHit) -> tuple[float, str]:
    return hit.score, hit.entry.id


def _telling_terms(prompt: str) -> tuple[Term, ...]:
    return tuple(term for term in terms(prompt[:_ASKED]) if term.text not in _STOPS)


def _terms_in(hits: Sequence[IndexHit], wanted: Sequence[Term]) -> frozenset[Term]:
    texts = (f"{hit.entry.title}\n{hit.entry.text}" for hit in hits)
    return frozenset(term for text in texts for _, term in first_hits(text, wanted))


def _says_name_of(path: str, wanted: Sequence[Term]) -> bool:
    """True if the terms have every word of the file's name."""
    name = path.rpartition("/")[2].partition(".")[0]
    words = {stem(word.lower()) for word in humps(name)} - _NO_NAMES
    return bool(words) and words <= {term.text for term in wanted}


def _is_named_in(path: str, prompt: str) -> bool:
    """True if the text says the file's name with its ending, with or without folders."""
    return path.rpartition("/")[2] in prompt


def _is_path_of(path: str, name: str) -> bool:
    """True if a name in an action means this file: relative or absolute, with a folder at least if
    the path has one."""
    name = name.removeprefix("./").strip("/")
    longer, shorter = (name, path) if len(name) >= len(path) else (path, name)
    return f"/{longer}".endswith(f"/{shorter}") and ("/" in shorter or "/" not in path)


def _telling_lines(text: str) -> tuple[str, ...]:
    """Its longest lines, by which it is recognized."""
    lines = sorted({_bare(line) for line in text.split("\n")}, key=lambda line: (-len(line), line))
    return tuple(line for line in lines[:_LOOKED_UP] if len(line) >= _TELLING_LINE)


def _excerpt(entry: Entry, confidence: float, lines: int) -> str:
    shown = entry.text.rstrip().split("\n")[:lines]
    last = entry.lines[0] + len(shown) - 1
    place = f"{_one_line(entry.path)}:{entry.lines[0]}-{last}"
    return "\n".join((f"[AUTO-RETRIEVED: {place} | confidence {confidence:.2f}]", *shown))


def _hint(entry: Entry, confidence: float, wanted: Sequence[Term], chars: int) -> str:
    line, symbol = _symbol(entry, wanted)
    about = f" {_one_line(symbol)[:chars]}" if symbol else ""
    return f"[RELATED: {_one_line(entry.path)}:{line}{about} | confidence {confidence:.2f}]"


def _symbol(entry: Entry, wanted: Sequence[Term]) -> tuple[int, str]:
    """The line and the signature of the symbol in the stretch that has most of the terms; the first
    of several."""
    scope, _, inner = entry.title.removeprefix(entry.path).strip().rpartition(": ")
    every = [each for each in inner.split("; ") if each]
    if not every:
        return entry.lines[0], scope
    rows = entry.text.split("\n")
    starts = list(_starts(every, rows))
    ends = [*starts[1:], len(rows)]
    weights = [
        sum(term.weight for _, term in first_hits("\n".join(rows[start:end]), wanted))
        for start, end in zip(starts, ends, strict=True)
    ]
    at = weights.index(max(weights))
    return entry.lines[0] + starts[at], f"{scope}: {every[at]}" if scope else every[at]


def _starts(signatures: Sequence[str], rows: Sequence[str]) -> Iterator[int]:
    """The row in which each signature begins, from 0; that of the one before it if none does."""
    at = 0
    for signature in signatures:
        begin = signature[:_BEGIN]
        at = next((row for row in range(at, len(rows)) if begin in rows[row]), at)
        yield at


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _bare(line: str) -> str:
    """The line without the number that a tool put in front."""
    return _OWN_NUMBER.sub("", line, count=1).strip()
