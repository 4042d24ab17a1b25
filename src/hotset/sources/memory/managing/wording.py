"""What two short texts share and in what they differ: their words, numbers, names, and whether one says no."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from hotset.text.stems import root
from hotset.text.stops import STATEMENT

_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+(?:[.,]\d+)*|[^\W\d_a-zA-Z]+")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?=[^\w]|[a-zA-Z%]{1,4}\b|$)")
_NAME = re.compile(r"`[^`\n]{1,80}`|[\w./-]*(?:[a-z][A-Z]|\w[_/.]\w)[\w./-]*|(?<=[a-z,;:] )[A-Z][\w+#-]*|[A-Z]{2,}\w*")
_MOST_READ = 4000  # characters of a text; what decides whether two agree stands early

_NEGATIONS = re.compile(
    r"\b(?:not|never|no|none|neither|nor|without|cannot|avoid|stop|n't|don'?t|doesn'?t|isn'?t|won'?t|must ?n'?t)\b"
)
_NUMERALS = "zero _ two three four five six seven eight nine ten eleven twelve"  # "one" is mostly no number but a pronoun
_SPELLED = {word: str(number) for number, word in enumerate(_NUMERALS.split())}
_PAIRS = """
on/off enable/disable enabled/disabled always/never before/after up/down tabs/spaces newest/oldest latest/earliest first/last
ascending/descending asc/desc min/max minimum/maximum more/less most/least higher/lower highest/lowest left/right true/false
required/optional include/exclude allow/deny allow/forbid sync/async public/private merge/rebase lower/upper binary/decimal
light/dark add/remove keep/drop accept/reject strict/lenient newer/older start/stop open/closed local/remote
"""
_BEFORE = r"(?:the|our|my)\ (?:\w+\ )?(?:old|previous|earlier|former|original)"
_AMENDS = re.compile(
    rf"""\b(?:amend(?:s|ed|ing|ment)?|supersed(?:e|es|ed|ing)|from\ now\ on|going\ forward|revis(?:es|ed|ing|ion)
    |(?:replac|overrid)(?:es|ing|ed)\ {_BEFORE}|(?:instead\ of|rather\ than)\ {_BEFORE}|chang(?:ed|ing)\ (?:my|our)\ minds?
    |correction)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_SAYS = re.compile(
    r"""\b(?:is|are|was|were|has|have|had|needs?|takes?|runs?|uses?|lives?|stands?|lies?|listens?|costs?|starts?|ends?|goes|comes
    |belongs?|wants?|gets?|keeps?|holds?|must|should|shall|will|may|can)\b|\s[=:]\s|:\s""",
    re.VERBOSE | re.IGNORECASE,
)
_NUMBERED = re.compile(r"\w*\d[\w.]*\w|\d|\b[b-hj-z]\b|\b[a-z](?=\s*$)")  # `3`, `1.2`, `eu2`, `b`; most "a" and "I" are words
_HINTS = re.compile(
    r"""\b(?:no\ longer|not\ any\ ?more|as\ of\ now|used\ to|(?:was|were)\ wrong
    |(?:switch|mov|migrat|chang)(?:e|es|ed|ing)?\ (?:\w+\ ){0,3}?(?:from|to))\b""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Wording:
    """A text, as far as it decides whether two say the same."""

    words: frozenset[str]
    """That carry meaning, without their endings; identifiers come apart."""
    order: tuple[str, ...]
    """The same words, each once, as they follow each other."""
    numbers: frozenset[str]
    names: frozenset[str]
    """Of things: identifiers, paths, words with capitals. Another name is another thing."""
    denies: bool
    amends: bool
    """It says of itself that it changes something that held before."""
    hints: bool
    """It may change something that held before, of what it speaks about: `no longer`, `moved to`."""


@lru_cache(maxsize=4096)
def wording(text: str) -> Wording:
    read = text[:_MOST_READ]
    lower = read.lower()
    order = tuple(dict.fromkeys(root(word) for word in telling_words(read)))
    return Wording(
        words=frozenset(order),
        order=order,
        numbers=frozenset(_NUMBER.findall(read)) | {_SPELLED[word] for word in re.findall(r"[a-z]+", lower) if word in _SPELLED},
        names=frozenset(name.strip("`.,").lower() for name in _NAME.findall(read)),
        denies=_NEGATIONS.search(lower.replace("\u2019", "'")) is not None,
        amends=_AMENDS.search(read) is not None,
        hints=_HINTS.search(read) is not None,
    )


def telling_words(text: str) -> list[str]:
    """In their order and as they stand, in lower case: without those that stand in every text."""
    return [
        word for piece in _PIECE.findall(text) if (word := piece.lower()) not in STATEMENT and (len(word) > 1 or word.isdigit())
    ]


def shared(one: Wording, other: Wording) -> float:
    """How much of the shorter one's words stands in the other, from 0 to 1."""
    least = min(len(one.words), len(other.words))
    return len(one.words & other.words) / least if least else 0.0


def alike(one: Wording, other: Wording) -> float:
    """How many of all their words they share, from 0 to 1."""
    every = len(one.words | other.words)
    return len(one.words & other.words) / every if every else 0.0


def of_two_things(one: str, other: str) -> bool:
    """Do they say something else, each of another one of its sort? `Host 1 is called heron`, `Host 2 is called crane`.

    Where only what it is said of differs, that is what changed: `version 2 is current`.
    """
    (mine, said), (theirs, also_said) = _parted(one), _parted(other)
    return said != also_said and bool(mine - theirs) and bool(theirs - mine)


def _parted(text: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Which one of its sort a sentence speaks of, by numbers and letters; and the words of what it says."""
    found = _SAYS.search(text, 0, _MOST_READ)
    if found is None:
        return frozenset(), ()
    which = _NUMBERED.findall(text[: found.start()].lower())
    return frozenset(which), tuple(re.findall(r"\w+", text[found.start() : _MOST_READ].lower()))


def in_order(one: Wording, other: Wording) -> bool:
    """Do the words that both have follow each other in the same way? `A replaced B` is not `B replaced A`."""
    return [word for word in one.order if word in other.words] == [word for word in other.order if word in one.words]


def conflict(one: Wording, other: Wording) -> bool:
    """Where one of them says another number, another name, the opposite, or no."""
    mine, theirs = one.words - other.words, other.words - one.words
    return (
        one.numbers != other.numbers
        or one.denies != other.denies
        or (not one.names <= other.names and not other.names <= one.names)
        or any((first in mine and second in theirs) or (second in mine and first in theirs) for first, second in _OPPOSITES)
    )


_OPPOSITES = [tuple(root(word) for word in pair.split("/")) for pair in _PAIRS.split()]
