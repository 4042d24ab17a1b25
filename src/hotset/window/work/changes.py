"""Whether a later statement takes back an earlier one, by their words: it names what is given up,
or gives the same sentence another value. Pure."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from hotset.files.lru import memo
from hotset.text.stems import root
from hotset.text.stops import STATEMENT
from hotset.text.words import word_set

_WORD = re.compile(r"\d+(?:[.:]\d+)*\w*|[\w+#-]*(?:[./][\w+#-]+)+/?|[^\W\d][\w+#-]*/?")
_FILLERS = word_set("now currently anymore again already still instead longer from")
_GIVES_UP = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:instead of|rather than) (?P<gone>[^,.;]+?),? (?:(?:we|let's|please|just) )?use\b",
        r"\b(?:instead of|rather than) (?P<gone>[^,.;]+)",
        (
            r"\b(?:switch|mov|migrat|chang|renam)\w*(?P<topic>(?: [\w'-]+){0,4}?) from "
            r"(?P<gone>.+?) to\b"
        ),
        r"\brenam\w+ (?P<gone>[^,.;]+?) to\b",
        (
            r"\b(?:dropp|deprecat|retir|remov|replac)(?:ed|ing)(?: support for)? "
            r"(?P<gone>[^,;]+?)(?= (?:with|by|in favou?r)\b|[,;]|\.?\s*\Z)"
        ),
        r"\b(?:stopped using|got rid of|gave up) (?P<gone>[^,;]+?)(?=[,;]|\.?\s*\Z)",
        r"\A(?P<topic>.*?)\bno longer (?P<gone>[^,;]+)",
        r"\bprefer .+? (?:over|to) (?P<gone>[^,.;]+)",
    )
)
"""What is given up, and what else the statement is about before it says so."""
_USES = re.compile(
    r"\b(?:use|uses|(?:runs?|hosted|live|lives) on|(?:deploy|deploys|deployed) (?:to|on|with)"
    r"|(?:build|builds|built) with) (?P<used>[\w.+# -]{2,40}?)"
    r"(?= (?:for|as|in|on|with|to|and|everywhere)\b|[,.;]|\s*\Z)",
    re.IGNORECASE,
)
"""What is used for something: given up, the statement no longer holds whatever it was used for."""
_LEAST_SHARED = 0.5  # of the earlier statement's words, where the later one names what it gives up
_SHORT = 2  # words of a value
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|lives?|runs?|goes|go|moved|switched|changed|starts?|ends?|"
    r"listens?|stays?|belongs?|happens?|sits?|must|should)\b",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"\b(?:now|from now on|as of|going forward|(?:moved|switched|changed) (?:over )?to)\b",
    re.IGNORECASE,
)
_DENIES = re.compile(r"\b(?:no longer|not|never|don't|dont|without)\b", re.IGNORECASE)
_DAY = re.compile(
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekdays?|weekends?|nightly|daily|weekly|monthly"
)
_NUMBER = re.compile(r"\d+(?:[.:,]\d+)*[a-z%]{0,4}")
_FILE = re.compile(r"[\w-]+\.[a-z]\w{0,4}")
_NUMERALS = word_set("one two three four five six seven eight nine ten twelve twenty")
_OWNS = re.compile(
    r"\b(?:is (?:our|the|my)|owns|approves|leads|maintains|reviews|signs|runs|manages)\b"
)

_PAIRS = """
on/off enable/disable enabled/disabled always/never before/after up/down tabs/spaces newest/oldest latest/earliest first/last
ascending/descending asc/desc min/max minimum/maximum more/less most/least higher/lower highest/lowest left/right true/false
required/optional include/exclude allow/deny allow/forbid sync/async public/private merge/rebase lower/upper binary/decimal
light/dark long/short add/remove keep/drop accept/reject strict/lenient newer/older start/stop open/closed local/remote
"""  # noqa: E501
OPPOSITES = tuple(
    (root(first), root(second))
    for first, _, second in (each.partition("/") for each in _PAIRS.split())
)
"""Words of which only one can hold of a thing."""


def replaces(earlier: str, later: str) -> bool:
    """True if the later statement says that the earlier one no longer holds."""
    return takes_back(earlier, later) or _another_value(earlier, later)


def takes_back(earlier: str, later: str) -> bool:
    """True if the later statement says so by a word of change, such as "instead of" or "now"."""
    if _word_set(earlier).isdisjoint(_word_set(later)):
        return False
    return _gives_up(earlier, later) or _moves(earlier, later)


def may_take_back(text: str) -> bool:
    """True if the statement has a word of change: every one that takes another back has."""
    return _CHANGED.search(text) is not None or any(each.search(text) for each in _GIVES_UP)


def _gives_up(earlier: str, later: str) -> bool:
    mine, theirs = _word_set(earlier), _word_set(later)
    if not mine or _DENIES.search(earlier):
        return False
    for pattern in _GIVES_UP:
        if (found := pattern.search(later)) is None:
            continue
        gone = frozenset(_words(found["gone"]))
        before = pattern.search(earlier)
        known = frozenset(_words(before["gone"])) if before is not None else frozenset()
        if known and (known <= gone or gone <= known):
            return False  # it said so already
        topic = frozenset(_words(found.groupdict().get("topic") or ""))
        used = _USES.search(earlier)
        if used is not None and gone and gone == frozenset(_words(used["used"])):
            return True
        return (
            bool(gone) and gone | topic <= mine and len(mine & theirs) >= _LEAST_SHARED * len(mine)
        )
    return False


def _moves(earlier: str, later: str) -> bool:
    """The same thing, said with "now" or "moved to", and another value: of the same sort, or as
    short and with the same verb."""
    if _CHANGED.search(later) is None:
        return False
    (topic, verb, value), (other_topic, other_verb, other_value) = _parts(earlier), _parts(later)
    alike = _kinds(value) & _kinds(other_value) or (
        verb == other_verb and 0 < len(value) <= _SHORT and 0 < len(other_value) <= _SHORT
    )
    return bool(topic) and topic == other_topic and bool(alike) and value != other_value


def _another_value(earlier: str, later: str) -> bool:
    """The same words but for one value: a number, a day, a path, or who owns a thing."""
    one, other = _words(earlier), _words(later)
    changes = [
        (one[a:b], other[c:d])
        for tag, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
        if tag != "equal"
    ]
    if len(changes) != 1 or len(changes[0][0]) != 1 or len(changes[0][1]) != 1:
        return False
    (before,), (after,) = changes[0]
    if len(one) < 2:  # nothing but the value
        return False
    if _kind(before) and _kind(before) == _kind(after):
        return True
    if (before, after) in OPPOSITES or (after, before) in OPPOSITES:
        return True
    is_owner = one[0] == before and other[0] == after and _OWNS.search(later) is not None
    return is_owner and _names_a_person(earlier) and _names_a_person(later)


def _parts(text: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """The words before the verb, the verb, and the words behind it."""
    found = _VERB.search(text)
    if found is None:
        return (), "", ()
    verb = found[0].lower()
    return _words(text[: found.start()]), verb, _words(text[found.end() :])


def _names_a_person(text: str) -> bool:
    bare = re.sub(r"\A(?:from now on|as of \w+|now),? ", "", text, flags=re.IGNORECASE)
    return re.match(r"[A-Z][a-z]+ \w", bare) is not None


def _kinds(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(kind for word in words if (kind := _kind(word)))


def _kind(word: str) -> str:
    """Of a value; empty for any other word."""
    if _DAY.fullmatch(word) or _DAY.fullmatch(f"{word}s"):
        return "day"
    if _NUMBER.fullmatch(word) or word in _NUMERALS:
        return "number"
    return "path" if "/" in word or _FILE.fullmatch(word) else ""


@memo("telling word sets", 4096, each=2000)
def _word_set(text: str) -> frozenset[str]:
    return frozenset(_words(text))


@memo("telling words", 4096, each=2000)
def _words(text: str) -> tuple[str, ...]:
    """Telling words in order, stemmed; numbers and paths as they are."""
    found = (word.lower() for word in _WORD.findall(text))
    return tuple(
        word if "/" in word or word[0].isdigit() else root(word)
        for word in found
        if word not in STATEMENT and word not in _FILLERS
    )
