"""The strings that actions copy: paths, identifiers, ids, numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from hotset.files.lru import Lru

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{3,}[A-Za-z0-9_]")
_TELLING = re.compile(r"[0-9_/.]|(?<=.)[A-Z]")
_LONGEST = 120
_LINE_READ = 400

_RUN = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{40,}")
_TURN = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[0-9]|(?<=[0-9])[A-Za-z]")
# share of a run's characters that switch character class: 0.42 in base64, below 0.2 in CamelCase
_TURNS = 0.28
_MEASURE = re.compile(
    r"\d+(?:\.\d+)?(?:[nu\u00b5m]?s|sec|min|m|h|d|Z|[kKMGT]i?[bB]?|[bB]|px|r?em|x|e-\d+)|"
    r"\d{4}-\d\d-\d\dT\d\d"
)
_SECONDS = re.compile(r"\d\d\.\d+")
_PASSED = re.compile(
    (
        r"^(?:[ \t]*(?:PASS|ok|--- PASS:|=== RUN|[✓✔])[ \t]|[^\n]{0,400}(?: PASSED| \.\.\. "
        r"ok)\b)[^\n]*$"
    ),
    re.MULTILINE,
)
_PASSES = ("PASS", "... ok", "\nok", "✓", "✔")
# Before small letters it may be the name of a Windows folder.
_ESCAPE = re.compile(r"\\[nrt](?=[A-Z0-9_])")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
TERMINAL_CODE = re.compile(
    r"(?:\x1b|\\u001[bB]|\\x1[bB]|\\033|\\e)\[[0-9;?]{0,20}[A-Za-z]|\[\d{1,3}(?:;\d{1,3}){0,8}m"
)
"""Colours and movements of a terminal, also where a tool printed the escape or lost it."""
_CLOSING = ("}", ")", "]")
_VARIES = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:0x)?[0-9a-f]*\d[0-9a-f]*|[0-9A-F]*\d[0-9A-F]*)(?![A-Za-z0-9])|"
    r"\d[0-9a-f]{5,}(?![A-Za-z0-9])|\d+"
)
_MANY = 8  # names that differ only by a number: one represents them all
_OFTEN = 4  # times the median count of the names that are alike
_PATH_SIGNS = frozenset("/.~@$%+([)]")
_DIGIT = re.compile(r"\d")
_SHORT = 400  # characters: counting the names of so few takes no longer than a look-up
_counted: Lru[tuple[int, int], Mapping[str, int]] = Lru("counted names", weight=6_000_000)
"""The names of texts, without the texts: an eviction counts those of each page for its topics and
for its log."""
_NAME_BYTES = 150  # of a name with its count


def names(text: str) -> Iterator[str]:
    """Every name in text order, with repetitions."""
    return (match[0] for match in _matches(text))


def line_names(line: str) -> frozenset[str]:
    """The names at the beginning of a line, up to some hundred characters."""
    return frozenset(match[0] for match in _matches(line[:_LINE_READ]))


def names_of(content: bytes) -> frozenset[str]:
    """The names of a page."""
    return frozenset(names(content.decode("utf-8", "replace")))


_NAME_LIST = re.compile(
    r"^(?:\[hotset: left-out names: .*\]|Names [^\n]*there: [^\n]*|\[CTX-REF:.*\]|"
    r"… (?!\$|line \d+ \([\d,]+ characters\): ).*|"  # not a value of JSON, not the ends of a line
    r"-> [A-Za-z0-9_][^\s,;:()]*(?: [A-Za-z0-9_][^\s,;:()]*)*)$",
    re.MULTILINE,
)


def split_name_lists(text: str) -> tuple[str, str]:
    """A text that stands for another, without its lists of names; and these lists."""
    return _NAME_LIST.sub("", text), "\n".join(match[0] for match in _NAME_LIST.finditer(text))


def coined_names(text: str) -> Iterator[str]:
    """Names given by people: no fragments of encoded bytes, parts of times, amounts with units, or
    passing tests."""
    read = _RUN.sub(_blank_encoded, text)
    if "[" in read:
        read = TERMINAL_CODE.sub(" ", read)
    if "\\" in read:
        read = _ESCAPE.sub(" ", read)
    if any(sign in read for sign in _PASSES):
        read = _PASSED.sub(" ", read)
    for match in _matches(read):
        name = _whole_name(match)
        if name and (not name[0].isdigit() or not _is_amount(match)):
            yield name


def count_names(text: str) -> Mapping[str, int]:
    """The coined names of a text with their counts, in text order."""
    if len(text) <= _SHORT:
        return Counter(coined_names(text))
    key = hash(text), len(text)  # 64 bits, seeded for each process
    found = _counted.get(key)
    if found is None:
        found = Counter(coined_names(text))
        _counted.put(key, found, _NAME_BYTES * (1 + len(found)))
    return found


def distinct_names(counts: Mapping[str, int], shown: str) -> dict[str, int]:
    """Names that are not shown, with their counts.

    Of many that differ only by a number, one represents all, with their number; none if the reader
    already sees one of them. A name far more frequent than the others is listed by itself.
    """
    kinds: dict[str, list[str]] = {}
    for name in counts:
        varies = name[0] != "#" and _DIGIT.search(name) is not None
        kinds.setdefault(_VARIES.sub("#", name) if varies else name, []).append(name)
    seen = {"#", "#.#", *(_VARIES.sub("#", name) for name in names(shown))}
    listed: dict[str, int] = {}
    for kind, alike in kinds.items():
        usual = (
            _OFTEN * sorted(counts[name] for name in alike)[len(alike) // 2]
            if len(alike) >= _MANY
            else 0
        )
        listed.update(
            (name, counts[name]) for name in alike if counts[name] > usual and name not in shown
        )
        if usual and kind not in seen:
            listed[f"{alike[0]} ({len(alike):,} alike)"] = counts[alike[0]]
    return listed


def words_within(words: Iterable[str], room: int) -> list[str]:
    """The first words that fit into `room` characters, with a space each."""
    kept: list[str] = []
    for word in words:
        room -= len(word) + 1
        if room < 0:
            break
        kept.append(word)
    return kept


def joined_within(words: Iterable[str], room: int) -> str:
    """The first words, comma-separated, that fit into `room` characters."""
    joined = ""
    for word in words:
        longer = f"{joined}, {word}" if joined else word
        if len(longer) > room:
            break
        joined = longer
    return joined


def _matches(text: str) -> Iterator[re.Match[str]]:
    for match in _NAME.finditer(text):
        name = match[0]
        if len(name) <= _LONGEST and _TELLING.search(name):
            yield match


def _whole_name(match: re.Match[str]) -> str:
    """The name as it is written: a colour with its `#`, a path from its first character to its
    last; empty if it is a part of a path whose beginning cannot be told."""
    text, (start, end) = match.string, match.span()
    before, after = text[start - 1 : start], text[end : end + 1]
    if before == "#":
        found = _COLOUR.match(text, start - 1)
        return found[0] if found and found.end() == end else match[0]
    if not (before and _is_path_sign(before)) and not (after and _is_path_sign(after)):
        return match[0]
    low, high = max(0, start - _LONGEST), min(len(text), end + _LONGEST)
    while start > low and _continues(text, start - 1):
        start -= 1
    while end < high and _continues(text, end):
        end += 1
    path = text[start:end].rstrip("/.+-@~$%")
    if "/" not in path or path.startswith("//"):  # no path, or an address without its scheme
        return match[0]
    cut = text[start - 1 : start] in _CLOSING and path[0] == "/"
    return "" if cut or len(path) > _LONGEST else path


def _is_path_sign(char: str) -> bool:
    """True for characters that paths have and names do not."""
    return char in _PATH_SIGNS or (not char.isascii() and char.isalnum())


def _continues(text: str, at: int) -> bool:
    """True if the path goes on with this character; brackets belong to it if they are a folder's
    or a file's own: `[id]/page.tsx`, `(shop)/layout.tsx`."""
    char = text[at]
    if char in "([":
        return text[at - 1 : at] == "/"
    if char in ")]":
        return text[at + 1 : at + 2] in ("/", ".")
    return char in "/.~@$%+-_" or char.isalnum()


def _is_amount(match: re.Match[str]) -> bool:
    """True for a number with its unit, and for the seconds of a time."""
    before = match.string[max(0, match.start() - 2) : match.start()]
    return bool(
        _MEASURE.fullmatch(match[0])
        or (_SECONDS.fullmatch(match[0]) and before[:1].isdigit() and before[1:] == ":")
    )


def _blank_encoded(run: re.Match[str]) -> str:
    """A long run of letters unchanged, or a space if it is encoded bytes. A lower-case run no
    longer than a name may be an id."""
    may_be_id = len(run[0]) <= _LONGEST and run[0].islower()
    return run[0] if may_be_id or len(_TURN.findall(run[0])) <= _TURNS * len(run[0]) else " "
