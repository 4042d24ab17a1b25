"""Finds what is odd in a page: the forms that lines share, lines unlike the others, and values that
are rare or out of range in their column.

Repeated lines need to be shown once; the rare ones are the news. If everything differs from
everything else, as in most prose and programs, rarity means nothing, and nothing is called odd.
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

_FEWEST = 12  # lines or rows; with fewer, nothing is rare
_MOST_SHARE = 0.1  # if more than this is odd, it is usual
_MOST = 24  # odd ones reported
_READ = 400  # characters of a line
_WORD = re.compile(r"[A-Za-z0-9]{3,40}")
_SHORTEST_STEM = 3
_TELLING = 3  # one rare word may be a name; three, or two and a unique form, are news
_ODD = 0.72  # rarity of a line's rarest words, from 0 (in every line) to 1 (in no other)
_NUMBER = re.compile(
    r"(?P<key>[A-Za-z_.]{0,40}[=:(\[\"']{0,2})(?P<number>[-+]?[0-9]{1,40}(?:\.[0-9]{1,40})?)"
    r"(?P<unit>[A-Za-z%]{0,3}[,;)\]\"']{0,2})"
)
_COINED = re.compile(r"[\d_/\\@]|(?<=[a-z])[A-Z.]")
_PLAIN_NUMBER = re.compile(r" *[-+$€£]?[0-9][0-9,]*(?:\.[0-9]+)? *%? *")
_RUN = re.compile(r"\w+")
# times the interquartile range beyond which a value is out of range: chance does not reach that far
_FAR = 4.0
_MANY_VALUES = 0.5  # a column with more distinct values than this share of its rows names its rows
_RARER = 3.0  # a rare value is this many times rarer than the median row's value
_RARE_SHARE = 0.04  # most rows that the rare values of one column take together
_DEGREES = 5.0  # range of worth from just odd to unique
_DIGITS = 4  # of a score: machines may differ in the last ones, previews must not


_Token = tuple[str, float | None]
"""A token's part in the form of its line, and its number if it is one."""


def odd_lines(lines: Sequence[str]) -> dict[int, float]:
    """Lines with words that others do not use, or with a number out of range for their form: how
    odd, from 0 to 1."""
    filled = [index for index, line in enumerate(lines) if line.strip()]
    if len(filled) < _FEWEST:
        return {}
    read = [lines[index][:_READ] for index in filled]
    known: dict[str, _Token] = {}
    forms = [_line_form(line, known) for line in read]
    found = _few({**_out_of_range(forms), **_unusual(read, [form for form, _ in forms])}, len(read))
    return {filled[at]: oddity for at, oddity in found.items()}


def odd_rows(columns: Iterable[Sequence[str]]) -> dict[int, float]:
    """Rows with a value that is rare or out of range in its column: how odd, from 0 to 1."""
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
    """A span for each odd line; the odder, the more it is worth."""
    return [body.span(index, index + 1, worth + _DEGREES * oddity) for index, oddity in odd.items()]


def _few(found: Mapping[int, float], size: int) -> dict[int, float]:
    """The oddest; among equals, the earlier ones. None if there are too many."""
    if len(found) > _MOST_SHARE * size:
        return {}
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:_MOST])


def _unusual(lines: Sequence[str], forms: Sequence[str]) -> dict[int, float]:
    """Lines whose form and rarest words hardly any other line has. Forms are ignored if most are
    unique."""
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
    """The words in a name; none for an id, which is always new."""
    return (
        [hump.lower() for hump in humps(word) if len(hump) >= _SHORTEST_STEM]
        if word.isalpha()
        else []
    )


def _out_of_range(lines: Sequence[tuple[str, list[float]]]) -> dict[int, float]:
    """Lines with a number far from those at the same place in lines of the same form."""
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
    """The form that similar lines share, and the line's numbers."""
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
    """Indexes of values that are out of range, rare, or of a rare form: a few, or none."""
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
    """The highest count such that all values with at most that count take at most `room` rows."""
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
    """Indexes of values far outside the interquartile range."""
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
_FEWEST_NAMES = 4  # distinct words at one place of similar lines; more may be names
_NAMES = 0.3  # if this share of the lines has distinct words at one place, they are names
_OPEN = "*"
_LONGEST = 68  # characters of a form in a label
_MOST_FORMS = 4  # forms in the label of a gap
_ENOUGH = 4  # lines of one form
_LETTERS = re.compile(r"[^\W\d_]{2}")


def forms(lines: Sequence[str]) -> list[str]:
    """The form of each line: without times, numbers, ids, and the names that differ between similar
    lines."""
    found = [_mask(line) for line in lines]
    builds: dict[tuple[int, str], list[int]] = {}
    for index, words in enumerate(found):
        if words:
            builds.setdefault((len(words), words[0] if words[0].isalpha() else ""), []).append(
                index
            )
    for members in builds.values():
        for place in _name_places([found[index] for index in members]):
            for index in members:
                found[index][place] = _OPEN
    return [" ".join(words).replace(_JOINED, " ") for words in found]


def label_forms(body: Body, line_forms: Sequence[str], matters: Callable[[str], bool]) -> Label:
    """A label with the forms of lines in a gap and their counts: first those that matter, then the
    most frequent. `line_forms` has the form of each line."""

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
        chosen = [(-count, form) for quiet, count, _, form in ranked if count < -1 or not quiet]
        return [f"{count:,} x {clip(form, _LONGEST)}" for count, form in chosen[:_MOST_FORMS]]

    return label


def first_of_each(line_forms: Iterable[str]) -> int:
    """Number of lines before a form has repeated often enough to be known."""
    seen: Counter[str] = Counter()
    at = -1
    for at, form in enumerate(line_forms):
        seen[form] += bool(form)
        if seen[form] > _ENOUGH:
            return at
    return at + 1


def _name_places(build: Sequence[Sequence[str]]) -> list[int]:
    """Places at which similar lines have names; none if they differ in most places, so that only
    their length agrees."""
    most = max(_FEWEST_NAMES, _NAMES * len(build))
    places = [
        place for place, words in enumerate(zip(*build, strict=True)) if len(set(words)) > most
    ]
    return places if 2 * len(places) <= len(build[0]) else []


def _mask(line: str) -> list[str]:
    if _FRAME.match(line):
        return ["at", _OPEN]
    stamp = _STAMP.match(line)
    text = line[stamp.end() if stamp else 0 : _FORM_READ]
    text = _QUOTED.sub(lambda found: found[0].replace(" ", _JOINED), text)
    return _NUMBERS.sub("#", _VARIES.sub("#", text)).split()
