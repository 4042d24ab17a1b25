"""Offers of what a model is about to look for: which finds, how likely they are used, and their
text. Pure.

The index ranks by nearness; this module estimates the likelihood of use, from a few signs of each
find with weights fitted to recorded sessions: `make bench-prefetch` refits them and reports how
well they hold on other sessions.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from enum import StrEnum
from itertools import islice

from hotset.nouns.candidate import Candidate, OfferKind, OfferSlot
from hotset.nouns.knobs import Prefetch, Prefetching
from hotset.nouns.page import Kind
from hotset.nouns.search import Entry, Filter, Hits, IndexHit, Query, Sort
from hotset.window.arguments import spoken
from hotset.window.names import names
from hotset.window.offers import is_covered

SOURCE = "code"
"""The source of these offers."""

WITHIN = 10
"""Actions after a prompt within which its offers can count as used."""

ABOVE = "[hotset prefetch: data, not a request; may be outdated]"
"""First line of each offer."""

_NOTES = (
    "system-reminder",
    "local-command-caveat",
    "local-command-stdout",
    "environment_context",
    "permissions instructions",
    "user_instructions",
    "INSTRUCTIONS",
)
# characters of a prompt; pasted plans are longer, and their beginning has the topic
_ASKED = 4000
_SEARCHED = frozenset({Sort.PAGE, Sort.CODE})
_TELLING_LINE = 8  # characters; shorter lines are everywhere
_LOOKED_UP = 5  # longest lines of a stretch, by which it is recognized
_COPIED_LINE = 24  # characters; shorter lines are written without being copied
_HOUR = 3600.0
_FILE_NAME = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,5}$")
_OWN_NUMBER = re.compile(r"^\s*(\d+)(?:→|\t|:|\|)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's text and time."""

    text: str
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class Signs:
    """Features of a find, each about between 0 and 1.

    The similarity of its meaning to the prompt's is not among them: the sign of its weight changed
    from one fit to another.
    """

    constant: float
    named: float
    """The prompt names its file, with a folder."""
    named_alone: float
    """The prompt names its file without a folder: there may be others of that name."""
    shares: float
    """Names that are in both the prompt and the find."""
    words: float
    """Its full-text score relative to the best."""
    age: float
    gathered: float
    """How many of the finds are in the same file."""


SIGNS = tuple(each.name for each in fields(Signs))


@dataclass(frozen=True, slots=True)
class PrefetchWeights:
    """Weights of the signs; the weighted sum is the log-odds that a find is used."""

    excerpt: tuple[float, ...]
    hint: tuple[float, ...]


# Fitted to all three sets of `make bench-prefetch`, which prints them.
WEIGHTS = PrefetchWeights(
    excerpt=(-1.57, 3.17, 1.20, -0.46, -0.23, 0.01, 0.29),
    hint=(-1.93, 3.99, 1.64, -0.64, 0.50, -0.28, 0.48),
)


def asked_in(text: str) -> str:
    """The user's text without what a client inserted: files named there are not part of the
    question."""
    for name in _NOTES:
        mark, end = f"<{name}>", f"</{name}>"
        kept, at = [], 0
        while (begin := text.find(mark, at)) >= 0:
            kept.append(text[at:begin])
            close = text.find(end, begin)
            at = close + len(end) if close >= 0 else len(text)
        text = "".join((*kept, text[at:]))
    return text


def queries(prompt: Prompt, knobs: Prefetch) -> tuple[Query, ...]:
    """The index queries for a prompt: one for its text, and one for each file that it names."""
    # Quotation marks would ask for a phrase word for word; a prompt quotes for other reasons.
    words = prompt.text[:_ASKED].replace('"', " ")
    filters = (
        Filter(_SEARCHED, path=f"**/{name}") for name in islice(_files(prompt.text), knobs.named)
    )
    named = (Query(words, only, knobs.found_in_named, knobs.seconds) for only in filters)
    return (Query(words, Filter(_SEARCHED), knobs.found, knobs.seconds), *named)


def weigh(prompt: Prompt, found: Sequence[Hits]) -> list[tuple[IndexHit, Signs]]:
    """Every find that could be offered, once, with its signs."""
    hits = {
        hit.entry.id: hit for hits in reversed(found) for hit in hits.hits if _is_sought(hit.entry)
    }
    best = max((hit.by_words or 0.0 for hit in hits.values()), default=0.0)
    of_file = Counter(hit.entry.path for hit in hits.values())
    prompt_names = frozenset(names(prompt.text))
    files = frozenset(_files(prompt.text))
    made = []
    for hit in hits.values():
        named_as = files.intersection(_suffixes(hit.entry.path))
        with_folder = any("/" in name for name in named_as)
        signs = Signs(
            constant=1.0,
            named=float(with_folder),
            named_alone=float(bool(named_as) and not with_folder),
            shares=math.log1p(len(prompt_names.intersection(names(hit.entry.text)))) / 3,
            words=(hit.by_words or 0.0) / best if best > 0 else 0.0,
            age=math.log1p(max(0.0, prompt.time - hit.entry.time) / _HOUR) / 6,
            gathered=math.log1p(of_file[hit.entry.path]) / 3,
        )
        made.append((hit, signs))
    return made


def likelihood(signs: Signs, weights: Sequence[float]) -> float:
    """Probability that a find is used."""
    return 1.0 / (
        1.0
        + math.exp(
            -sum(sign * weight for sign, weight in zip(astuple(signs), weights, strict=True))
        )
    )


def found_by_both(hit: IndexHit) -> bool:
    """True if full text and meaning both found it."""
    return hit.by_words is not None and hit.by_meaning is not None


def is_file(entry: Entry) -> bool:
    """True if it shows a file's content; an edit only shows a change."""
    return entry.sort is Sort.CODE or entry.kind == Kind.FILE


def is_in_window(text: str, window: Collection[str]) -> bool:
    """True if the text is in the window, recognized by its longest lines: numbering and cuts leave
    most of them."""
    return is_covered(_telling_lines(text), window)


def candidates(
    prompt: Prompt,
    found: Sequence[Hits],
    *,
    slot: OfferSlot,
    knobs: Prefetch,
    count: Callable[[bytes], int],
    weights: PrefetchWeights = WEIGHTS,
) -> list[Candidate]:
    """Candidates for a prompt: excerpts of files, then hints that name a file."""
    if knobs.mode is Prefetching.OFF or not prompt.text.strip():
        return []
    finds = [(hit, signs) for hit, signs in weigh(prompt, found) if found_by_both(hit)]
    files = [each for each in finds if is_file(each[0].entry)]

    def make(
        kind: OfferKind,
        likely: Sequence[tuple[float, Entry]],
        render: Callable[..., str],
        size: int,
    ) -> Iterator[Candidate]:
        for sure, entry in likely:
            if covers := _telling_lines(entry.text):
                text = render(entry, sure, size)
                tokens = count(text.encode("utf-8", "replace")) + 1  # the end of its last line
                yield Candidate(
                    SOURCE, kind, entry.path, slot, text, tokens, sure, ABOVE, covers, entry
                )

    offers = list[Candidate]()
    if knobs.mode is Prefetching.ON:
        likely = _likely(files, weights.excerpt, knobs.excerpt)
        offers += make(OfferKind.EXCERPT, likely, _excerpt, knobs.lines)
    likely = _likely(finds, weights.hint, knobs.hint)
    return [*offers, *make(OfferKind.HINT, likely, _hint, knobs.hint_chars)]


def _telling_lines(text: str) -> tuple[str, ...]:
    """Its longest lines, by which it is recognized."""
    lines = sorted({_bare(line) for line in text.split("\n")}, key=lambda line: (-len(line), line))
    return tuple(line for line in lines[:_LOOKED_UP] if len(line) >= _TELLING_LINE)


class Verdict(StrEnum):
    """The outcome of an offer."""

    USED = "used"
    """An action copied a line of it, or was about its file."""
    EXPANDED = "expanded"
    """The model requested the whole of it."""
    WASTED = "wasted"


@dataclass(frozen=True, slots=True)
class JudgedOffer:
    offered: Candidate
    verdict: Verdict
    saved: int = 0
    """Its tokens, if an action copied from it before any had read its file: a read would have cost
    at least these."""


def judge(
    offered: Candidate, actions: Sequence[bytes], retrieved: Collection[str] = ()
) -> JudgedOffer | None:
    """The outcome, from the arguments of later actions and the retrieved ids; None while it is too
    early."""
    entry = offered.origin
    assert isinstance(entry, Entry)
    lines = {bare for line in entry.text.split("\n") if len(bare := _bare(line)) >= _COPIED_LINE}
    for action in actions[:WITHIN]:
        text = spoken(action)
        if any(line in text for line in lines):
            return JudgedOffer(offered, Verdict.USED, offered.tokens)
        if not {name.removeprefix("./").strip("/") for name in names(text)}.isdisjoint(
            _unambiguous_names(entry.path)
        ):
            return JudgedOffer(offered, Verdict.USED)
    if entry.whole in retrieved:
        return JudgedOffer(offered, Verdict.EXPANDED)
    return JudgedOffer(offered, Verdict.WASTED) if len(actions) >= WITHIN else None


def closeness_to_prompt(hit: IndexHit, signs: Signs) -> float:
    """How well a stretch answers the prompt compared with others of its file; the signs only rank
    files."""
    return signs.words + (hit.by_meaning or 0.0)


def _likely(
    finds: Sequence[tuple[IndexHit, Signs]], weights: Sequence[float], least: float
) -> list[tuple[float, Entry]]:
    """The likeliest files first, the latest first among equals; within a file, the best stretches
    first."""
    judged = [
        (likelihood(signs, weights), closeness_to_prompt(hit, signs), hit.entry)
        for hit, signs in finds
    ]
    likely = sorted(
        (each for each in judged if each[0] >= least),
        key=lambda each: (-each[0], -each[2].time, each[2].id),
    )
    files = {
        path: place
        for place, path in enumerate(dict.fromkeys(entry.path for _, _, entry in likely))
    }
    likely.sort(key=lambda each: (files[each[2].path], -each[1]))
    return [(sure, entry) for sure, _, entry in likely]


def _excerpt(entry: Entry, confidence: float, lines: int) -> str:
    shown = entry.text.split("\n")[:lines]
    last = min(entry.lines[1], entry.lines[0] + lines - 1)
    cut = replace(entry, text="\n".join(shown), lines=(entry.lines[0], last))
    return f"[AUTO-RETRIEVED: {_place(cut)} | confidence {confidence:.2f}]\n{cut.text}"


def _hint(entry: Entry, confidence: float, chars: int) -> str:
    about = " ".join(entry.title.replace(entry.path, "").split())[:chars]
    whence = f' | retrieve_context(id="{entry.whole}")' if entry.sort is Sort.PAGE else ""
    return (
        f"[RELATED: {_place(entry)}{f' {about}' if about else ''} | confidence "
        f"{confidence:.2f}{whence}]"
    )


def _place(entry: Entry) -> str:
    path = " ".join(entry.path.split())
    if entry.sort is Sort.CODE:
        return f"{path}:{entry.lines[0]}-{entry.lines[1]}"
    own = _OWN_NUMBER.findall(entry.text)
    return (
        f"{path}{f':{own[0]}-{own[-1]}' if own else ''} in session {entry.session}, turn "
        f"{entry.turn}"
    )


def _unambiguous_names(path: str) -> frozenset[str]:
    """Names of this file that hardly any other file has."""
    return frozenset({path.strip("/"), *(name for name in _suffixes(path) if "/" in name)})


def _is_sought(entry: Entry) -> bool:
    """True if it is about one file. In cc-packmind one in three such finds was used, and one in 50
    of prompts and replies."""
    return entry.sort is Sort.CODE or (
        bool(entry.path) and entry.kind in (Kind.FILE, Kind.TOOL_CALL)
    )


def _files(text: str) -> Iterator[str]:
    """The files that a text names, each once."""
    seen = set()
    for name in names(text):
        if _FILE_NAME.search(name) and name not in seen:
            seen.add(name)
            yield name


def _suffixes(path: str) -> Iterator[str]:
    """All names of a path: `a/b.py` is also `b.py`."""
    parts = path.strip("/").split("/")
    return ("/".join(parts[at:]) for at in range(len(parts)))


def _bare(line: str) -> str:
    """The line without the number that a tool put in front."""
    return _OWN_NUMBER.sub("", line, count=1).strip()
