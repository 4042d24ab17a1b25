"""The form of a line: what lines that say the same of other things have in common, and how often a
stretch has each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hotset.text.clip import clip

_READ = 240  # characters of a line
_STAMP = re.compile(
    r"\W{0,2}(?:\d{4}[-/]\d\d[-/]\d\d(?:[T ,]{1,2}\d\d:\d\d\S{0,40})?|\d\d:\d\d:\d\d\S{0,20}"
    r"|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d|\d{10,13}\b)[\])]?\s*"
)
_VARIES = re.compile(r"\b(?=[a-fA-F]*\d)[0-9a-fA-F]+(?:-[0-9a-fA-F]{4,12}){0,4}\b|\d+")
_NUMBERS = re.compile(r"#(?:[-.:,/]#)+")
_QUOTED = re.compile(r"\"[^\"\n]{0,120}\"|'[^'\n]{0,120}'")
_JOINED = "\N{NO-BREAK SPACE}"
_FRAME = re.compile(r"\s+at \S")
_FEWEST = 4  # words at one place of lines of one build, beyond which they may be names
_NAMES = (
    0.3  # of the lines have a word of their own where the others have theirs: it names something
)
_OPEN = "*"
_LONGEST = 68  # characters of a form that is told
_TOLD = 4  # forms of a gap
_ENOUGH = 4  # lines of one form
_WORD = re.compile(r"[^\W\d_]{2}")


def forms(lines: Sequence[str]) -> list[str]:
    """The form of each line: without the time, numbers and ids, and without the names that differ
    between lines of one build."""
    found = [_masked(line) for line in lines]
    builds: dict[tuple[int, str], list[int]] = {}
    for index, words in enumerate(found):
        if words:
            builds.setdefault((len(words), words[0] if words[0].isalpha() else ""), []).append(
                index
            )
    for members in builds.values():
        for place in _named([found[index] for index in members]):
            for index in members:
                found[index][place] = _OPEN
    return [" ".join(words).replace(_JOINED, " ") for words in found]


@dataclass(frozen=True, slots=True)
class Told:
    """Says which forms of line stand in a gap, and how often: first what matters most, then what
    there is most of."""

    offset: int
    forms: Sequence[str]
    matters: Callable[[str], bool]

    def __call__(self, first: int, end: int) -> Sequence[str]:
        counts = Counter(
            form
            for form in self.forms[first - self.offset : end - self.offset]
            if _WORD.search(form)
        )
        ranked = sorted(
            (not self.matters(form), -count, order, form)
            for order, (form, count) in enumerate(counts.items())
        )
        told = [(-count, form) for quiet, count, _, form in ranked if count < -1 or not quiet]
        return [f"{count:,} x {clip(form, _LONGEST)}" for count, form in told[:_TOLD]]


def first_of_each(of: Iterable[str]) -> int:
    """How many lines there are before one whose form came up often enough: more of it tells
    nothing."""
    seen: Counter[str] = Counter()
    at = -1
    for at, form in enumerate(of):
        seen[form] += bool(form)
        if seen[form] > _ENOUGH:
            return at
    return at + 1


def _named(build: Sequence[Sequence[str]]) -> list[int]:
    """Where lines of one build name something; nowhere, if they differ in most places: they only
    happen to be as long."""
    most = max(_FEWEST, _NAMES * len(build))
    places = [
        place for place, words in enumerate(zip(*build, strict=True)) if len(set(words)) > most
    ]
    return places if 2 * len(places) <= len(build[0]) else []


def _masked(line: str) -> list[str]:
    if _FRAME.match(line):
        return ["at", _OPEN]
    stamp = _STAMP.match(line)
    text = line[stamp.end() if stamp else 0 : _READ]
    text = _QUOTED.sub(lambda found: found[0].replace(" ", _JOINED), text)
    return _NUMBERS.sub("#", _VARIES.sub("#", text)).split()
