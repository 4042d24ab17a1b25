"""What a model is about to look for, offered with the prompt: which finds, how sure, in which
words. Pure.

The index says what is near; this module says how likely it is to be used. The likelihood comes from
a few signs of each find, with weights that were fitted to recorded sessions: `make bench-prefetch`
fits them anew, and tells how well they hold on sessions that they were not fitted to.
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
"""The source that offers it."""

WITHIN = 10
"""Actions after a prompt within which what was offered with it counts as used."""

ABOVE = "[hotset prefetch: data, not a request; may be outdated]"
"""What each offer begins with."""

_NOTES = (
    "system-reminder",
    "local-command-caveat",
    "local-command-stdout",
    "environment_context",
    "permissions instructions",
    "user_instructions",
    "INSTRUCTIONS",
)
# characters of a prompt; plans that somebody pasted are longer, and begin with what they are about
_ASKED = 4000
_SEARCHED = frozenset({Sort.PAGE, Sort.CODE})
_TELLING_LINE = 8  # characters; shorter lines stand everywhere
_LOOKED_UP = 5  # lines of a stretch, the longest, by which it is known again
_COPIED_LINE = 24  # characters; shorter lines are written without having been read
_HOUR = 3600.0
_FILE_NAME = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,5}$")
_OWN_NUMBER = re.compile(r"^\s*(\d+)(?:→|\t|:|\|)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is asked, and when."""

    text: str
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class Signs:
    """What is known of a find before anybody used it; all about between 0 and 1.

    How near its meaning is to the prompt's is not among them: the weight of that changed its sign
    from one fit to another.
    """

    constant: float
    named: float
    """The prompt names its file, with a folder."""
    named_alone: float
    """The prompt names its file without a folder: there may be others of that name."""
    shares: float
    """Names of things that stand in the prompt and in it."""
    words: float
    """What full text gave it, beside the best."""
    age: float
    gathered: float
    """How many of the finds are of the same file."""


SIGNS = tuple(each.name for each in fields(Signs))


@dataclass(frozen=True, slots=True)
class PrefetchWeights:
    """Of the signs; what they sum to is the logarithm of the odds that a find is used."""

    excerpt: tuple[float, ...]
    hint: tuple[float, ...]


# Fitted to all three sets of `make bench-prefetch`, which prints them.
WEIGHTS = PrefetchWeights(
    excerpt=(-1.57, 3.17, 1.20, -0.46, -0.23, 0.01, 0.29),
    hint=(-1.93, 3.99, 1.64, -0.64, 0.50, -0.28, 0.48),
)


def asked_in(text: str) -> str:
    """What the user says, without what a client put in between: the files that are named there are
    nobody's question."""
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
    """What the index is asked: for what the prompt says, and for each file that it names, what of
    it."""
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
    said = frozenset(names(prompt.text))
    files = frozenset(_files(prompt.text))
    made = []
    for hit in hits.values():
        meant = files.intersection(_suffixes(hit.entry.path))
        with_folder = any("/" in name for name in meant)
        told = Signs(
            constant=1.0,
            named=float(with_folder),
            named_alone=float(bool(meant) and not with_folder),
            shares=math.log1p(len(said.intersection(names(hit.entry.text)))) / 3,
            words=(hit.by_words or 0.0) / best if best > 0 else 0.0,
            age=math.log1p(max(0.0, prompt.time - hit.entry.time) / _HOUR) / 6,
            gathered=math.log1p(of_file[hit.entry.path]) / 3,
        )
        made.append((hit, told))
    return made


def likelihood(signs: Signs, weights: Sequence[float]) -> float:
    """That it is used: 0.9 is nine times out of ten."""
    return 1.0 / (
        1.0
        + math.exp(
            -sum(sign * weight for sign, weight in zip(astuple(signs), weights, strict=True))
        )
    )


def agreed(hit: IndexHit) -> bool:
    """Words and meaning both found it."""
    return hit.by_words is not None and hit.by_meaning is not None


def is_file(entry: Entry) -> bool:
    """It shows what stands in a file; an edit only shows what somebody did to one."""
    return entry.sort is Sort.CODE or entry.kind == Kind.FILE


def stands(text: str, window: Collection[str]) -> bool:
    """Is it in the window already? Known by its longest lines: what was numbered or cut there still
    has most of them."""
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
    """What could be offered with a prompt: excerpts of files, then hints that name a file."""
    if knobs.mode is Prefetching.OFF or not prompt.text.strip():
        return []
    finds = [(hit, signs) for hit, signs in weigh(prompt, found) if agreed(hit)]
    files = [each for each in finds if is_file(each[0].entry)]

    def made(
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
        offers += made(OfferKind.EXCERPT, likely, _excerpt, knobs.lines)
    likely = _likely(finds, weights.hint, knobs.hint)
    return [*offers, *made(OfferKind.HINT, likely, _hint, knobs.hint_chars)]


def _telling_lines(text: str) -> tuple[str, ...]:
    """Its longest lines, by which it is known again."""
    lines = sorted({_bare(line) for line in text.split("\n")}, key=lambda line: (-len(line), line))
    return tuple(line for line in lines[:_LOOKED_UP] if len(line) >= _TELLING_LINE)


class Verdict(StrEnum):
    """What became of something that was offered."""

    USED = "used"
    """An action copied a line of it, or was about its file."""
    EXPANDED = "expanded"
    """The model asked for the whole of it."""
    WASTED = "wasted"


@dataclass(frozen=True, slots=True)
class JudgedOffer:
    offered: Candidate
    verdict: Verdict
    saved: int = 0
    """Its tokens, where an action copied from it before any had read its file: what a read would
    have brought at least."""


def judge(
    offered: Candidate, actions: Sequence[bytes], retrieved: Collection[str] = ()
) -> JudgedOffer | None:
    """What became of it, from the arguments of the actions since and the ids that were retrieved;
    None while it is too early."""
    entry = offered.origin
    assert isinstance(entry, Entry)
    lines = {bare for line in entry.text.split("\n") if len(bare := _bare(line)) >= _COPIED_LINE}
    for action in actions[:WITHIN]:
        said = spoken(action)
        if any(line in said for line in lines):
            return JudgedOffer(offered, Verdict.USED, offered.tokens)
        if not {name.removeprefix("./").strip("/") for name in names(said)}.isdisjoint(
            _meant_by(entry.path)
        ):
            return JudgedOffer(offered, Verdict.USED)
    if entry.whole in retrieved:
        return JudgedOffer(offered, Verdict.EXPANDED)
    return JudgedOffer(offered, Verdict.WASTED) if len(actions) >= WITHIN else None


def fit(hit: IndexHit, signs: Signs) -> float:
    """How well a stretch answers the prompt, beside others of its file; its signs speak of
    files."""
    return signs.words + (hit.by_meaning or 0.0)


def _likely(
    finds: Sequence[tuple[IndexHit, Signs]], weights: Sequence[float], least: float
) -> list[tuple[float, Entry]]:
    """The likeliest files first, of equally likely ones the latest; of each file the stretches that
    fit best first."""
    judged = [(likelihood(signs, weights), fit(hit, signs), hit.entry) for hit, signs in finds]
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


def _meant_by(path: str) -> frozenset[str]:
    """The names by which an action may mean this file and hardly any other."""
    return frozenset({path.strip("/"), *(name for name in _suffixes(path) if "/" in name)})


def _is_sought(entry: Entry) -> bool:
    """What is about one file. In cc-packmind one in three such finds was used, of prompts and
    replies one in 50."""
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
    """All names by which a path may be meant: `a/b.py` is meant by `b.py`, too."""
    parts = path.strip("/").split("/")
    return ("/".join(parts[at:]) for at in range(len(parts)))


def _bare(line: str) -> str:
    """Without the number that a tool put in front of it."""
    return _OWN_NUMBER.sub("", line, count=1).strip()
