"""What stands out of a page: the form that lines have in common, lines unlike the others, and
values that are rare or out of range where they stand.

What is alike needs to be shown once; what is rare within a page is what the page has to say. Where
everything is unlike everything else, as in most prose and programs, rarity tells nothing, and
nothing is called odd.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from math import log

from hotset.text.clip import clip
from hotset.text.words import humps
from hotset.window.preview.content import Body
from hotset.window.preview.excerpt import Label, LineSpan, Worth

_FEWEST = 12  # lines or rows, below which nothing is rare
_MOST_SHARE = 0.1  # where more than this is odd, it is the usual
_MOST = 24  # odd ones that are told
_READ = 400  # characters of a line
_WORD = re.compile(r"[A-Za-z0-9]{3,40}")
_SHORTEST_STEM = 3
_TELLING = 3  # one rare word may be a name; three, or two and a form of its own, are news
_ODD = 0.72  # how rare the rarest words of a line are, from 0 (in every line) to 1 (in no other)
_NUMBER = re.compile(
    r"(?P<key>[A-Za-z_.]{0,40}[=:(\[\"']{0,2})(?P<number>[-+]?[0-9]{1,40}(?:\.[0-9]{1,40})?)"
    r"(?P<unit>[A-Za-z%]{0,3}[,;)\]\"']{0,2})"
)
_COINED = re.compile(r"[\d_/\\@]|(?<=[a-z])[A-Z.]")
_PLAIN_NUMBER = re.compile(r" *[-+$€£]?[0-9][0-9,]*(?:\.[0-9]+)? *%? *")
_RUN = re.compile(r"\w+")
# times the middle half of the values, beyond which a value is out of range: chance does not reach
# that far
_FAR = 4.0
_MANY_VALUES = 0.5  # a column with more distinct values than this share of its rows names its rows
_RARER = 3.0  # times as rare as the value of the row in the middle, a value is rare
_RARE_SHARE = 0.04  # of the rows, that rare values of one column take together at most
_DEGREES = 5.0  # of worth, between what is just odd and what nothing else is like
_DIGITS = 4  # of a score: machines may disagree about the last ones, previews must not


_Token = tuple[str, float | None]
"""What stands for a token in the form of its line, and its number, where it is one."""


def odd_lines(lines: Sequence[str]) -> dict[int, float]:
    """Lines in words that others do not use, or with a number out of the range of others of their
    form: how odd, from 0 to 1."""
    filled = [index for index, line in enumerate(lines) if line.strip()]
    if len(filled) < _FEWEST:
        return {}
    read = [lines[index][:_READ] for index in filled]
    known: dict[str, _Token] = {}
    forms = [_line_form(line, known) for line in read]
    found = _few({**_out_of_range(forms), **_unusual(read, [form for form, _ in forms])}, len(read))
    return {filled[at]: oddity for at, oddity in found.items()}


def odd_rows(columns: Iterable[Sequence[str]]) -> dict[int, float]:
    """Rows with a value that is rare in its column or out of its range: how odd, from 0 to 1."""
    found: Counter[int] = Counter()
    size = 0
    for column in columns:
        size = len(column)
        if size >= _FEWEST:
            found.update(_odd_values(column))
    most = max(found.values(), default=1)
    return _few(
        {row: round(0.5 + 0.5 * count / most, _DIGITS) for row, count in found.items()}, size
    )


def odd_spans(body: Body, odd: Mapping[int, float], worth: float = Worth.ODD) -> list[LineSpan]:
    """Each odd line by itself; of two, the odder one first."""
    return [body.span(index, index + 1, worth + _DEGREES * oddity) for index, oddity in odd.items()]


def _few(found: Mapping[int, float], size: int) -> dict[int, float]:
    """The oddest; of several that are equally odd, the earlier ones."""
    if len(found) > _MOST_SHARE * size:
        return {}
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:_MOST])


def _unusual(lines: Sequence[str], forms: Sequence[str]) -> dict[int, float]:
    """Lines whose form and rarest words hardly any other line has. Where most forms are there once,
    they tell nothing."""
    words = [_WORD.findall(line) for line in lines]
    stems = {word: _stems(word) for word in set(chain.from_iterable(words))}
    traits = [{stem for word in own for stem in stems[word]} for own in words]
    if len(set(forms)) <= _MANY_VALUES * len(forms):
        for own, form in zip(traits, forms, strict=True):
            own.add(form)
    counts = Counter(chain.from_iterable(traits))
    scale = log(len(lines))
    rarity = {trait: 1 - log(count) / scale for trait, count in counts.items()}
    found = {}
    for index, own in enumerate(traits):
        rarest = sorted([rarity[trait] for trait in own], reverse=True)[:_TELLING]
        score = sum(rarest) / max(_TELLING - 1, len(rarest))
        if score >= _ODD:
            found[index] = round(score, _DIGITS)
    return found


def _stems(word: str) -> list[str]:
    """The words that a name is made of; none of an id, which is always new."""
    return (
        [hump.lower() for hump in humps(word) if len(hump) >= _SHORTEST_STEM]
        if word.isalpha()
        else []
    )


def _out_of_range(lines: Sequence[tuple[str, list[float]]]) -> dict[int, float]:
    """Lines with a number far from those at the same place of lines of the same form."""
    forms: dict[str, list[tuple[int, list[float]]]] = {}
    for index, (form, numbers) in enumerate(lines):
        if numbers:
            forms.setdefault(form, []).append((index, numbers))
    found: dict[int, float] = {}
    for members in forms.values():
        if len(members) < _FEWEST:
            continue
        for column in zip(*(numbers for _, numbers in members), strict=True):
            found.update((members[at][0], _ODD) for at in _far(column))
    return found


def _line_form(line: str, known: dict[str, _Token]) -> tuple[str, list[float]]:
    """What lines that say the same of other things have in common, and the numbers in between."""
    tokens = [known.get(token) or _token(token, known) for token in line.split()]
    return " ".join([form for form, _ in tokens]), [
        number for _, number in tokens if number is not None
    ]


def _token(token: str, known: dict[str, _Token]) -> _Token:
    found = _NUMBER.fullmatch(token)
    if found:
        made: _Token = f"{found['key']}#{found['unit']}", float(found["number"])
    else:
        made = "@" if _COINED.search(token) else token, None
    known[token] = made
    return made


def _odd_values(column: Sequence[str]) -> list[int]:
    """The places of values that are out of range, rare, or of a rare form: few of a column, or
    none."""
    numbers = [_value(cell) for cell in column]
    strange = [index for index, number in enumerate(numbers) if number is None]
    if len(strange) <= _MOST_SHARE * len(column):
        return [*strange, *_far(numbers)]
    kinds = (
        column
        if len(set(column)) <= _MANY_VALUES * len(column)
        else [_RUN.sub("w", value[:_READ]) for value in column]
    )
    counts = Counter(kinds)
    usual = sorted(counts[kind] for kind in kinds)[len(kinds) // 2]
    most = min(usual / _RARER, _highest(counts, _RARE_SHARE * len(column)))
    return [index for index, kind in enumerate(kinds) if counts[kind] <= most]


def _highest(counts: Mapping[str, int], room: float) -> int:
    """How often a value may come up for all that come up no more often to be so many together."""
    together = Counter(counts.values())
    highest = 0
    for count in sorted(together):
        room -= count * together[count]
        if room < 0:
            break
        highest = count
    return highest


def _value(cell: str) -> float | None:
    return (
        float(cell.strip(" $€£%").replace(",", "")) if _PLAIN_NUMBER.fullmatch(cell[:40]) else None
    )


def _far(values: Sequence[float | None]) -> list[int]:
    """The places of values far outside of where the middle half of them lies."""
    known = sorted(value for value in values if value is not None)
    low, high = known[len(known) // 4], known[len(known) * 3 // 4]
    reach = _FAR * (high - low)
    far = [
        index
        for index, value in enumerate(values)
        if value is not None and not low - reach <= value <= high + reach
    ]
    return far if len(far) <= _MOST_SHARE / 2 * len(values) else []


_FORM_READ = 240  # characters of a line
_STAMP = re.compile(
    r"\W{0,2}(?:\d{4}[-/]\d\d[-/]\d\d(?:[T ,]{1,2}\d\d:\d\d\S{0,40})?|\d\d:\d\d:\d\d\S{0,20}"
    r"|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d|\d{10,13}\b)[\])]?\s*"
)
_VARIES = re.compile(r"\b(?=[a-fA-F]*\d)[0-9a-fA-F]+(?:-[0-9a-fA-F]{4,12}){0,4}\b|\d+")
_NUMBERS = re.compile(r"#(?:[-.:,/]#)+")
_QUOTED = re.compile(r"\"[^\"\n]{0,120}\"|'[^'\n]{0,120}'")
_JOINED = "\N{NO-BREAK SPACE}"
_FRAME = re.compile(r"\s+at \S")
_FEWEST_NAMES = 4  # words at one place of lines of one build, beyond which they may be names
_NAMES = (
    0.3  # of the lines have a word of their own where the others have theirs: it names something
)
_OPEN = "*"
_LONGEST = 68  # characters of a form that is told
_TOLD = 4  # forms of a gap
_ENOUGH = 4  # lines of one form
_LETTERS = re.compile(r"[^\W\d_]{2}")


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


def label_forms(body: Body, line_forms: Sequence[str], matters: Callable[[str], bool]) -> Label:
    """Which forms of line stand in a gap, and how often: first what matters most, then what there
    is most of. `line_forms`: the form of each line."""

    def label(first: int, end: int) -> Sequence[str]:
        counts = Counter(
            form
            for form in line_forms[first - body.first : end - body.first]
            if _LETTERS.search(form)
        )
        ranked = sorted(
            (not matters(form), -count, order, form)
            for order, (form, count) in enumerate(counts.items())
        )
        told = [(-count, form) for quiet, count, _, form in ranked if count < -1 or not quiet]
        return [f"{count:,} x {clip(form, _LONGEST)}" for count, form in told[:_TOLD]]

    return label


def first_of_each(line_forms: Iterable[str]) -> int:
    """How many lines there are before one whose form came up often enough: more of it tells
    nothing."""
    seen: Counter[str] = Counter()
    at = -1
    for at, form in enumerate(line_forms):
        seen[form] += bool(form)
        if seen[form] > _ENOUGH:
            return at
    return at + 1


def _named(build: Sequence[Sequence[str]]) -> list[int]:
    """Where lines of one build name something; nowhere, if they differ in most places: they only
    happen to be as long."""
    most = max(_FEWEST_NAMES, _NAMES * len(build))
    places = [
        place for place, words in enumerate(zip(*build, strict=True)) if len(set(words)) > most
    ]
    return places if 2 * len(places) <= len(build[0]) else []


def _masked(line: str) -> list[str]:
    if _FRAME.match(line):
        return ["at", _OPEN]
    stamp = _STAMP.match(line)
    text = line[stamp.end() if stamp else 0 : _FORM_READ]
    text = _QUOTED.sub(lambda found: found[0].replace(" ", _JOINED), text)
    return _NUMBERS.sub("#", _VARIES.sub("#", text)).split()
