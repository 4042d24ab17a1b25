"""A memory in a line: cut from its own words, never worded anew, and the shorter the less there is of it.

A memory that is short enough to be shown whole loses nothing but its length beyond a line. Of any other one a line has at most a
tenth of the tokens, and where it is only named a twentieth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from hotset.nouns.memory import Checkpoint, Ending, Episode, Memory, MemoryKind, Pitfall, Procedure
from hotset.sources.memory.disclosing.telling import one_line
from hotset.text.stops import GLUE
from hotset.tokens import count

WHOLE = 100
"""Tokens up to which a memory is cheaper shown than announced."""

IN_A_LINE, IN_THE_INDEX = 10, 20
"""How many times shorter than its text a memory is in a line of the timeline, and where it is only named."""

LINE_TOKENS = 25
"""Of any line: a long memory's begins as a short one's does."""

_CHARS = 100  # of a line
_NAME_CHARS = 40  # of what is only named
_GAP = "…"
_FIRST_WORDS = 3  # that tell something, and are kept before all else: what was done to what
_FIRST_NAMES = 2
_FEWER = 4  # characters at a time
_A_NAME = re.compile(r"\d|\w[._/:#@-]\w|[a-z][A-Z]|^[A-Z]{2}")  # of a file, a command, an error: what no other line says


def line_of(memory: Memory) -> str:
    """What it says: an episode's goal, and what it changed; what fails and what helps instead. Without how it ended."""
    return line(_said(memory), memory.tokens or count(memory.text), more=_changed(memory), behind=ending_of(memory))


def name_of(memory: Memory) -> str:
    """A few words by which it is known again."""
    return line(memory.title or memory.text, memory.tokens or count(memory.text), IN_THE_INDEX, most=_NAME_CHARS)


def ending_of(memory: Memory) -> str:
    """What is said behind an episode's line."""
    return f": {memory.ending}" if memory.kind is MemoryKind.EPISODE and memory.ending is not Ending.UNKNOWN else ""


def line(
    words: str, tokens: int, times: int = IN_A_LINE, *, most: int = _CHARS, more: Sequence[str] = (), behind: str = ""
) -> str:
    """Words that stand for a text of so many tokens, so many times shorter than it is.

    Followed by the first of `more` that there is room for; `behind` is said after it, and its room is left.
    """
    said = one_line(words, most)
    room = min(LINE_TOKENS, tokens // times) if tokens > WHOLE else LINE_TOKENS

    def fits(told: str) -> bool:
        return count(f"{told}{behind}") <= room

    if not fits(said):
        return _cut(said, fits)
    longer = (f"{said} [{one_line(each, most)}]" for each in more if each not in said)
    return next((each for each in longer if len(each) <= most and fits(each)), said)


def _said(memory: Memory) -> str:
    title = memory.title or memory.text
    match memory.detail:
        case Pitfall(what=what, instead=instead) if what:
            return f"{what}: {instead}" if instead else what
        case Procedure(when=when, steps=steps) if steps:
            return f"{when or title}: {'; '.join(steps)}"
        case Checkpoint(doing=doing) if doing:
            return title if doing in title else f"{title}: {doing}"
        case _:
            return title


def _changed(memory: Memory) -> list[str]:
    """Names of the files that an episode changed, the most telling first.

    Long names are rarer than short ones: on recorded sessions 6.6 episodes changed the file so chosen, 8.1 the first one.
    """
    if not isinstance(memory.detail, Episode):
        return []
    names = dict.fromkeys(path.rsplit("/", 1)[-1] for path in memory.detail.artifacts)
    return sorted(names, key=lambda name: (-len(name.split(".")[0]), name))


def _cut(said: str, fits: Callable[[str], bool]) -> str:
    """As many words as there is room for, in their order: first what was done to what and the names of things, glue last.

    A sign stands where words that tell something are left out. Of a single endless word some characters.
    """
    words = said.split(" ")
    kept: frozenset[int] = frozenset()
    for at in _by_worth(words):
        if fits(_told(words, longer := kept | {at})):
            kept = longer
    if kept:
        return _told(words, kept)
    few = (f"{said[:many]}{_GAP}" for many in range(len(said) // 2, 0, -_FEWER))
    return next(filter(fits, few), _GAP)


def _by_worth(words: Sequence[str]) -> Iterator[int]:
    """Places of words, the worthiest first."""
    telling = [at for at, word in enumerate(words) if not _is_glue(word)]
    names = [at for at in telling if _A_NAME.search(words[at])]
    yield from dict.fromkeys((*telling[:_FIRST_WORDS], *names[:_FIRST_NAMES], *telling, *range(len(words))))


def _told(words: Sequence[str], kept: frozenset[int]) -> str:
    parts: list[str] = []
    gap = False
    for at, word in enumerate(words):
        if at in kept:
            parts.append(f"{_GAP} {word}" if gap else word)
            gap = False
        else:
            gap = gap or not _is_glue(word)
    return " ".join(parts) + (_GAP if gap else "")


def _is_glue(word: str) -> bool:
    return word.strip(".,;:!?()").lower() in GLUE
