"""Parse times in a question ("yesterday", "last week", "since March 15th"): their range, and the
question without them.

All times are the speaker's local time, without a zone; an `Offset` leads to it and back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache, partial
from typing import Literal

from hotset.text.stops import CHAT, QUESTION
from hotset.text.words import word_set

Days = tuple[datetime, datetime]
"""From a moment to the first one after the range."""

Offset = Callable[[float], float]
"""Seconds by which the speaker's clock is ahead of UTC at a moment: not the same in summer."""


def utc(_moment: float) -> float:
    return 0.0


Make = Callable[[re.Match[str], datetime], Days]


@dataclass(frozen=True, slots=True)
class TimeForm:
    pattern: str
    """A space matches any whitespace; case does not matter."""
    make: Make
    """Raises ValueError if there is no such day."""
    is_alone: bool
    """It is a time anywhere; others only behind a word such as `in` or `since`."""

    def match(self, text: str) -> re.Match[str] | None:
        return re.fullmatch(self.pattern.replace(" ", r"\s+"), text, re.IGNORECASE)


FORMS: list[TimeForm] = []
"""The first match wins."""


_UNIT = r"(?:minute|hour|day|week|weekend|month|quarter|year)"
_NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "couple": 2,
    "three": 3,
    "few": 3,
    "four": 4,
    "five": 5,
    "several": 5,
}
_NUMBERS |= {"six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}
_COUNT = rf"(?:\d{{1,3}}|(?:a )?couple(?: of)?|(?:a )?few|{'|'.join(_NUMBERS)})"
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_SHORT = r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?"
_MONTH = rf"(?:{'|'.join(_MONTHS)}|(?-i:{_SHORT}))"
_CLEAR_MONTH = (
    rf"(?:"
    rf"{'|'.join(name for name in _MONTHS if name not in {'march', 'may'})}|(?-i:March|May|"
    rf"{_SHORT}))"
)
"""Without "may" and "march", unless capitalized."""
_WEEKDAY = rf"(?:{'|'.join(_WEEKDAYS)})"
_YEAR = r"(?:19[7-9]\d|20\d\d)"
_ORDINAL = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_DAYS = rf"(?:the )?(?P<day>{_ORDINAL})(?:(?:-|\u2013| to | and )(?P<last>{_ORDINAL}))?"
_PART_OF_DAY = r"(?:morning|afternoon|evening|night)"
_PART = r"(?:early|mid|late|(?:the )?(?:start|beginning|end|middle) of(?: the)?)"


def _form(pattern: str, *, alone: bool = True) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        FORMS.append(TimeForm(pattern, make, alone))
        return make

    return add


# --------------------------------------------------------------------------------------------------
# days by name


@_form(r"last night")
def _last_night(_hit: re.Match[str], now: datetime) -> Days:
    midnight = _midnight(now.date())
    return midnight - timedelta(hours=6), midnight + timedelta(hours=6)


_BY_NAME = {
    (
        r"(?:earlier )?today|this (?:morning|afternoon|evening)|just now|(?:a "
        r")?(?:moment|second|little while) ago"
    ): 0,
    rf"yesterday(?: {_PART_OF_DAY})?": -1,
    r"(?:the )?day before yesterday": -2,
    r"tomorrow": 1,
}
_LATELY = {r"(?:the )?other day": 10, r"recently|lately|these days": 30}


def _day_from_today(days: int, _hit: re.Match[str], now: datetime) -> Days:
    return _from(now.date() + timedelta(days), 1)


def _last_days(days: int, _hit: re.Match[str], now: datetime) -> Days:
    return now - timedelta(days), now


FORMS += [
    TimeForm(name, partial(_day_from_today, days), is_alone=True) for name, days in _BY_NAME.items()
]
FORMS += [
    TimeForm(name, partial(_last_days, days), is_alone=True) for name, days in _LATELY.items()
]


@_form(r"(?P<hour>\d\d?)(?::(?P<minute>[0-5]\d))?\s?(?P<half>am|pm)", alone=False)
@_form(r"(?P<hour>\d\d?):(?P<minute>[0-5]\d)(?P<half>)", alone=False)
def _hour(hit: re.Match[str], now: datetime) -> Days:
    """A moment of today, or of yesterday if it has not come yet."""
    hour = int(hit["hour"])
    if hit["half"]:
        hour = hour % 12 + 12 * (hit["half"].lower() == "pm")
    then = now.replace(hour=hour, minute=int(hit["minute"] or 0), second=0, microsecond=0)
    then -= timedelta(then > now)
    return then, then


@_form(rf"(?P<which>)(?P<day>{_WEEKDAY})", alone=False)
@_form(rf"(?P<which>)(?P<day>{_WEEKDAY}) {_PART_OF_DAY}")
@_form(
    rf"(?P<which>last|this past|past|previous|this|next) (?P<day>{_WEEKDAY})(?: {_PART_OF_DAY})?"
)
def _weekday(hit: re.Match[str], now: datetime) -> Days:
    day = _WEEKDAYS.index(hit["day"].lower())
    monday = now.date() - timedelta(now.date().weekday())
    match hit["which"].lower():
        case "this":
            return _from(monday + timedelta(day), 1)
        case "next":
            return _from(now.date() + timedelta((day - now.date().weekday() - 1) % 7 + 1), 1)
    return _from(now.date() - timedelta((now.date().weekday() - day - 1) % 7 + 1), 1)


# ------------------------------------------------------------------------------------------------
# weeks, months, years


@_form(
    rf"(?:the )?(?P<which>first|second|third|fourth|last) week (?:of|in) "
    rf"(?P<month>{_MONTH})(?:,? (?P<year>{_YEAR}))?"
)
def _week_of_month(hit: re.Match[str], now: datetime) -> Days:
    month = _month(hit["month"])
    year = int(hit["year"]) if hit["year"] else now.year - (month > now.month)
    start = _midnight(date(year, month, 1))
    if hit["which"].lower() == "last":
        end = shift_months(start, 1)
        return end - timedelta(7), end
    week = ("first", "second", "third", "fourth").index(hit["which"].lower())
    return start + timedelta(7 * week), start + timedelta(7 * week + 7)


@_form(
    r"(?P<count>)(?:over )?(?:the (?:last|past)|past) (?P<unit>hour|day|week|month|quarter|year)"
)
@_form(rf"(?:over )?(?:the )?(?:last|past|previous) (?P<count>{_COUNT}) (?P<unit>{_UNIT})s?")
def _rolling(hit: re.Match[str], now: datetime) -> Days:
    return _back(now, hit["unit"].lower(), _number(hit["count"] or "one")), now


@_form(r"(?P<which>the) weekend", alone=False)
@_form(r"(?P<which>(?:this|the) past|(?:the )?(?:this|last|previous|next|past)|over the) weekend")
def _weekend(hit: re.Match[str], now: datetime) -> Days:
    saturday = now.date() - timedelta(now.date().weekday()) + timedelta(5)
    which = hit["which"].lower()
    if which == "this":
        return _from(saturday, 2)
    if which.endswith("next"):
        return _from(saturday + timedelta(7 if now.date() >= saturday else 0), 2)
    return _from(saturday - timedelta(7), 2)


@_form(
    r"(?P<part>(?:the )?(?:start|beginning|end|middle) of) (?P<which>the) "
    r"(?P<unit>week|month|quarter|year)"
)
@_form(
    rf"(?P<part>earlier|later|{_PART}) (?P<which>this|last|previous|next|current) "
    rf"(?P<unit>week|month|quarter|year)"
)
@_form(
    r"(?P<part>)(?:the )?(?P<which>this|last|previous|next|current) "
    r"(?P<unit>week|month|quarter|year)"
)
def _calendar(hit: re.Match[str], now: datetime) -> Days:
    step, part = (
        {"last": -1, "previous": -1, "next": 1}.get(hit["which"].lower(), 0),
        hit["part"].lower(),
    )
    days = _unit(now.date(), hit["unit"].lower(), step)
    if part == "earlier":
        return days[0], max(now, days[0])
    if part == "later":
        return max(now, days[0]), days[1]
    return _part(days, part)


@_form(rf"(?P<count>{_COUNT}) (?P<unit>{_UNIT})s? (?:ago|back)")
def _ago(hit: re.Match[str], now: datetime) -> Days:
    unit, count = hit["unit"].lower(), _number(hit["count"])
    then = _back(now, unit, count)
    if unit in {"minute", "hour"}:
        slack = timedelta(**{f"{unit}s": max(1, count // 4)})
        return then - slack, then + slack
    # "Three weeks ago" means a week, not a day; a few are two to five.
    slack_days = {"day": 0, "week": 3, "weekend": 3, "month": 15, "quarter": 45, "year": 183}[unit]
    if (
        "couple" in hit["count"].lower()
        or "few" in hit["count"].lower()
        or "several" in hit["count"].lower()
    ):
        slack_days = max(1, (now - then).days // 2)
    return _from(then.date() - timedelta(slack_days), 2 * slack_days + 1)


# --------------------------------------------------------------------------------------------------
# dates


@_form(rf"(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>{_YEAR})")
@_form(
    rf"(?P<year>{_YEAR})(?P<dash>[-/.])(?P<month>\d\d?)(?P=dash)(?P<day>\d\d?)(?:[T "
    rf"]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?"
)
def _iso_day(hit: re.Match[str], _now: datetime) -> Days:
    return _from(date(int(hit["year"]), int(hit["month"]), int(hit["day"])), 1)


@_form(rf"(?P<one>\d\d?)/(?P<other>\d\d?)/(?P<year>{_YEAR})")
def _slashed_day(hit: re.Match[str], _now: datetime) -> Days:
    one, other = int(hit["one"]), int(hit["other"])
    if one <= 12 and other <= 12 and one != other:
        raise ValueError  # day or month first: ambiguous
    month, day = (one, other) if one <= 12 else (other, one)
    return _from(date(int(hit["year"]), month, day), 1)


@_form(rf"(?P<year>{_YEAR})-W(?P<week>\d\d)")
def _iso_week(hit: re.Match[str], _now: datetime) -> Days:
    return _from(date.fromisocalendar(int(hit["year"]), int(hit["week"]), 1), 7)


@_form(rf"(?:{_WEEKDAY},? )?{_DAYS} (?:of )?(?P<month>{_MONTH})(?:,? (?P<year>{_YEAR}))?")
@_form(rf"(?:{_WEEKDAY},? )?(?P<month>{_CLEAR_MONTH}) {_DAYS}(?:,? (?P<year>{_YEAR}))?")
def _day_of_month(hit: re.Match[str], now: datetime) -> Days:
    month, day = _month(hit["month"]), _ordinal(hit["day"])
    last = _ordinal(hit["last"]) if hit["last"] else day
    year = int(hit["year"]) if hit["year"] else now.date().year
    if not hit["year"] and (month, day) > (now.date().month, now.date().day):
        year -= 1
    return _from(
        date(year, month, day), (date(year, month, last) - date(year, month, day)).days + 1
    )


@_form(rf"(?P<part>)(?P<which>)(?:the month of )?(?P<month>{_MONTH})(?P<year>)", alone=False)
@_form(rf"(?P<part>)(?P<which>)(?P<month>{_MONTH}),? (?:of )?(?P<year>{_YEAR})")
@_form(rf"(?P<part>)(?P<which>last|this|next) (?P<month>{_CLEAR_MONTH})(?P<year>)")
@_form(rf"(?P<part>{_PART})[ -](?P<which>)(?P<month>{_MONTH})(?:,? (?P<year>{_YEAR}))?")
def _whole_month(hit: re.Match[str], now: datetime) -> Days:
    month, which = _month(hit["month"]), hit["which"].lower()
    year = int(hit["year"]) if hit["year"] else now.date().year
    if not hit["year"] and which != "this":
        if which == "next":
            year += month <= now.date().month
        else:  # "last March" in March is that of a year ago
            year -= month > now.date().month or (which == "last" and month == now.date().month)
    start = _midnight(date(year, month, 1))
    return _part((start, shift_months(start, 1)), hit["part"].lower())


@_form(rf"(?P<year>{_YEAR})-(?P<month>0[1-9]|1[0-2])", alone=False)
def _iso_month(hit: re.Match[str], _now: datetime) -> Days:
    start = _midnight(date(int(hit["year"]), int(hit["month"]), 1))
    return start, shift_months(start, 1)


@_form(r"(?P<number>Q[1-4])(?P<year>)", alone=False)
@_form(rf"(?P<number>Q[1-4]),? (?:of )?(?P<year>{_YEAR})")
@_form(rf"(?:the )?(?P<number>first|second|third|fourth) quarter of (?P<year>{_YEAR})")
def _quarter(hit: re.Match[str], now: datetime) -> Days:
    number = {"1": 1, "2": 2, "3": 3, "4": 4, "first": 1, "second": 2, "third": 3, "fourth": 4}[
        hit["number"].lower().removeprefix("q")
    ]
    year = int(hit["year"]) if hit["year"] else now.date().year
    if not hit["year"] and 3 * number - 2 > now.date().month:
        year -= 1
    start = _midnight(date(year, 3 * number - 2, 1))
    return start, shift_months(start, 3)


@_form(rf"(?P<part>)(?:the year )?(?P<year>{_YEAR})", alone=False)
@_form(rf"(?P<part>{_PART})[ -](?:the year )?(?P<year>{_YEAR})")
def _year(hit: re.Match[str], _now: datetime) -> Days:
    start = _midnight(date(int(hit["year"]), 1, 1))
    return _part((start, shift_months(start, 12)), hit["part"].lower())


# --------------------------------------------------------------------------------------------------
# arithmetics


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001 - the speaker's own time, as everywhere in here


def _from(day: date, days: int) -> Days:
    return _midnight(day), _midnight(day + timedelta(days))


def shift_months(then: datetime, months: int) -> datetime:
    year, month = divmod(then.year * 12 + then.month - 1 + months, 12)
    for day in range(then.day, 0, -1):
        try:
            return then.replace(year=year, month=month + 1, day=day)
        except ValueError:  # the 31st of a shorter month
            if day <= 28:
                raise
    raise AssertionError


def _back(now: datetime, unit: str, count: int) -> datetime:
    match unit:
        case "minute" | "hour" | "day" | "week":
            return now - timedelta(**{f"{unit}s": count})
        case "weekend":
            return now - timedelta(weeks=count)
    return shift_months(now, -count * {"month": 1, "quarter": 3, "year": 12}[unit])


def _unit(today: date, unit: str, step: int) -> Days:
    if unit == "week":
        return _from(today - timedelta(today.weekday()) + timedelta(7 * step), 7)
    if unit == "month":
        start = _midnight(today.replace(day=1))
        return shift_months(start, step), shift_months(start, step + 1)
    if unit == "quarter":
        start = _midnight(date(today.year, (today.month - 1) // 3 * 3 + 1, 1))
        return shift_months(start, 3 * step), shift_months(start, 3 * step + 3)
    start = _midnight(date(today.year, 1, 1))
    return shift_months(start, 12 * step), shift_months(start, 12 * step + 12)


def _part(days: Days, part: str) -> Days:
    """A third of it: "early March" is not exact."""
    third = (days[1] - days[0]) / 3
    match part.removeprefix("the ").removesuffix(" the").removesuffix(" of"):
        case "early" | "start" | "beginning":
            return days[0], days[0] + third
        case "mid" | "middle":
            return days[0] + third, days[1] - third
        case "late" | "end":
            return days[1] - third, days[1]
    return days


def _number(text: str) -> int:
    word = re.sub(r"^a (?=couple|few)| of$", "", " ".join(text.lower().split()))
    return int(word) if word.isdigit() else _NUMBERS[word]


def _ordinal(text: str) -> int:
    return int(re.sub(r"\D", "", text))


def _month(text: str) -> int:
    return next(
        number
        for number, name in enumerate(_MONTHS, 1)
        if name.startswith(text.lower().rstrip(".")[:3])
    )


@dataclass(frozen=True, slots=True)
class TimeWords:
    since: float | None = None
    until: float | None = None
    """The first moment after the range."""
    words: str = ""
    """The question without the time words."""
    latest: bool = False
    first: bool = False


def time_words(query: str, now: float, offset: Offset = utc) -> TimeWords:
    """The range of time that a text names, and the text without it."""
    here = _local(now, offset)
    text = _blank_out(query[:_MOST_CHARS], _CODE)
    latest, first = (
        [_word_span(hit) for hit in pattern.finditer(text)] for pattern in (_LATEST, _FIRST)
    )
    found = list(_ranges(_blank_out(text, _LATEST), here))
    ranges = [days for _, days in found]
    # "In January and March" covers all between; one open end leaves the whole open.
    since = (
        None
        if any(one[0] is None for one in ranges)
        else min((one[0] for one in ranges if one[0]), default=None)
    )
    until = (
        None
        if any(one[1] is None for one in ranges)
        else max((one[1] for one in ranges if one[1]), default=None)
    )
    return TimeWords(
        since=None if since is None else _moment(since, offset),
        until=None if until is None else _moment(until, offset),
        words=_rest(query, [*(span for span, _ in found), *latest, *first]),
        latest=bool(latest),
        first=bool(first),
    )


def fits(time: float, times: TimeWords) -> float:
    """From 1 inside the range or without one, down to 0 at `_MARGINS` times its length outside.

    People are not exact: "last week" was nine days ago, and events of March are mentioned in April.
    """
    away = 0.0
    if times.since is not None and time < times.since:
        away = times.since - time
    elif times.until is not None and time >= times.until:
        away = time - times.until
    if not away:
        return 1.0
    length = (
        times.until - times.since if times.since is not None and times.until is not None else _OPEN
    )
    return max(0.0, 1.0 - away / (_MARGINS * max(length, _SHORTEST)))


_MOST_CHARS = 4000  # of a question; the time is named before any longer paste
_DAY = 86400.0
_MARGINS = 2.0
_OPEN = 14 * _DAY  # "since" and "before" have no length; people use them with a date they know
_SHORTEST = _DAY

_Range = tuple[datetime | None, datetime | None]


def _local(now: float, offset: Offset) -> datetime:
    return datetime.fromtimestamp(now, UTC).replace(tzinfo=None) + timedelta(seconds=offset(now))


def _moment(local: datetime, offset: Offset) -> float:
    wall = local.replace(tzinfo=UTC).timestamp()
    return wall - offset(wall - offset(wall))


def _blank_out(text: str, pattern: re.Pattern[str]) -> str:
    """Blank out the pattern; everything else keeps its place."""
    return pattern.sub(lambda hit: "\0" * len(hit[0]), text)


_CODE = re.compile(
    r"""
    ```.*?(?:```|\Z) | `[^`\n]*` | "[^"\n]*" | “[^”\n]*” | (?<!\w)'[^'\n]+'(?!\w)
    | (?<!\S)\S*(?:_|://|\\|::|\w\(|[A-Za-z]/|/[A-Za-z~.])\S*             # identifiers, addresses, paths
    | (?<!\S)\S*\w\.[A-Za-z]\S* | (?<!\S)(?!\d\d?\.\d\d?\.\d{4}\b(?!\.\d))v?\d+\.\d+\S*            # names of files, versions
    | \b[a-z]+[A-Z]\w* | (?<!\S)--(?:since|until|after|before)[\s=]\S+ | (?<!\S)--?\w\S*
    """,  # noqa: E501
    re.DOTALL | re.VERBOSE,
)
"""Not prose: code, quotes, file names, versions."""


def _ranges(text: str, now: datetime) -> Iterator[tuple[tuple[int, int], _Range]]:
    at = 0
    while hit := _phrase().search(text, at):
        found = _pair(hit, now)
        end = hit.end()
        if found is None:
            found, end = _single(hit, now), hit.end("end")
        if found is None or (found[0] is not None and found[0] > now):
            at = hit.start() + 1
        else:
            yield (hit.start(), end), found
            at = end


def _pair(hit: re.Match[str], now: datetime) -> _Range | None:
    """A range given by two times."""
    lead, join = _lead(hit), (hit["join"] or "").strip(" ,").lower()
    one, other = _days(hit["one"], now), _days(hit["other"], now) if hit["other"] else None
    if one is None or other is None:
        return None
    # "in January and March": all between
    if lead in _PLAIN and join in {"", "and", "or"}:
        return min(one[0], other[0]), max(one[1], other[1])
    if (lead, join) == ("between", "and") or (lead == "from" and join in _TO):
        if other[1] < one[0]:
            week = timedelta(7)
            if one[0] - other[1] >= week:  # "from November to February": the first a year earlier
                one = (shift_months(one[0], -12), shift_months(one[1], -12))
            elif other[0] + week <= now:  # "from Monday to Wednesday", on a Wednesday
                other = (other[0] + week, other[1] + week)
            else:
                one = (one[0] - week, one[1] - week)
        return (one[0], other[1]) if one[0] < other[1] else None
    return None


def _single(hit: re.Match[str], now: datetime) -> _Range | None:
    lead = _lead(hit)
    days = _days(hit["one"], now, alone=lead not in _PLAIN | _BOUNDS)
    if days is None or lead == "between":
        return None
    match lead:
        case "since" | "starting":
            return days[0], now
        case "before" | "prior to" | "earlier than":
            return None, days[0]
        case "after" | "later than":
            return days[1], None
        case "until" | "till" | "up to" | "up until" | "by":
            return None, days[1]
    return days


def _lead(hit: re.Match[str]) -> str:
    return " ".join((hit["lead"] or "").lower().split())


def _days(text: str, now: datetime, *, alone: bool = False) -> Days | None:
    for form in FORMS:
        if (form.is_alone or not alone) and (hit := form.match(text)):
            try:
                return form.make(hit, now)
            except (ValueError, OverflowError):  # February 30th, the year 0
                return None
    return None


_PLAIN = frozenset({"in", "on", "during", "of", "around", "throughout"})
_BOUNDS = frozenset(
    {
        "since",
        "starting",
        "before",
        "prior to",
        "earlier than",
        "after",
        "later than",
        "until",
        "till",
        "up to",
        "up until",
        "by",
    }
)
_OTHERS = frozenset({"between", "from", "within", "for", "at"})
"""Behind these, only an unambiguous time counts: not "from 2000", "for May"."""
_TO = frozenset({"to", "until", "till", "through", "-"})


@cache
def _phrase() -> re.Pattern[str]:
    """Compiled on first use."""
    leads = "|".join(sorted(_PLAIN | _BOUNDS | _OTHERS, key=len, reverse=True)).replace(" ", r"\s+")
    time = f"(?:{'|'.join(_without_group_names(form.pattern) for form in FORMS)})"
    return re.compile(
        rf"""(?<![\w./\0-])(?:(?P<lead>{leads})\s+(?:on\s+)?)?(?P<one>{time}){_END}(?P<end>)
            (?:(?P<join>,|,?\s+(?:and|or|to|until|till|through|-))\s+(?P<other>{time}){_END})?""",
        re.IGNORECASE | re.VERBOSE,
    )


def _without_group_names(pattern: str) -> str:
    """Without group names, which would clash in one expression, and with spaces written out for
    verbose mode."""
    return re.sub(r"\(\?P<\w+>", "(?:", pattern.replace("(?P=dash)", "[-/.]").replace(" ", r"\s+"))


_COUNTED = (
    "lines|files|rows|bytes|kb|mb|gb|ms|px|pixels|tokens|tests|items|requests|users|records|"
    "times|words|characters|chars|points|steps|be"
    "|mornings|afternoons|evenings|nights|have|not|also|only|well|need|contain|return|break|"
    "fail|cause|happen|help|work|want|depend"
)
"""Words that follow a number that is no year, a "may" that is no month, or a weekday that means all
of them."""
_END = rf"(?:['\u2019]s)?(?![\w/\0%-]|[.,:]\d|\.\w)(?!\s+(?:{_COUNTED})\b)"

_WHO = r"(?:we|i|you|they|he|she|it|any(?:one|body)|some(?:one|body)|(?:the|our|my)\s+\w+)"
_PAST = (
    r"(?:\w{2,}ed|ran|met|saw|seen|spoke|spoken|did|done|built|sent|made|broke|broken|wrote|"
    r"written|went|took|taken)"
)
_NOUN = r"(?:things?|tasks?|sessions?|conversations?|decisions?|changes?)"

_LATEST = re.compile(
    rf"""
    \b(?:the\s+)?(?:most\s+recent(?:ly)?|latest|newest|last\s+time)\b
      (?!\s+(?:version|release|tag|stable|lts|node|python|image|packages?|dependenc\w+)\b)       # that is a version, not a time
    | \b(?:the\s+)?last(?=\s+{_NOUN}\b) | \blast(?=\s+{_PAST}\b)
    | \blast(?=\s*[?!.]?\s*\Z)
    | \b(?:did|have|had|has)\s+{_WHO}\s+(?P<word>last)\b(?!\s+(?:{_UNIT}|{_WEEKDAY}|{_MONTH}|night)\b)
    """,  # noqa: E501
    re.IGNORECASE | re.VERBOSE,
)
_FIRST = re.compile(
    rf"""
    \b(?:the\s+)?(?:very\s+first|earliest|first\s+time)\b
    | (?<!\bat\s)\bfirst(?=\s*[,?]|\s+in\s+(?-i:[A-Z])|\s*$)
    | \b(?:the\s+)?first(?=\s+{_NOUN}\b) | \b(?:did|have|had|has)\s+{_WHO}\s+(?P<word>first)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def _word_span(hit: re.Match[str]) -> tuple[int, int]:
    return hit.span("word") if hit["word"] else hit.span()


Only = Literal["", "decisions", "failures"]
"""What a question about a time asks for; everything if empty."""


@dataclass(frozen=True, slots=True)
class TimeQuestion:
    """A question that is answered by what lies in a range of time."""

    times: TimeWords
    subject: str = ""
    """What it must be about; anything if empty."""
    bound: str = ""
    """`since`, `after`, `before` or `until`, if an event bounds the range."""
    event: str = ""
    """The words of that event: "the release"."""
    only: Only = ""

    @property
    def is_newest_first(self) -> bool:
        """Ordered from the bound on; otherwise as it happened."""
        return self.times.latest or (
            not self.times.first and (self.bound or self._open_bound) in {"before", "until"}
        )

    @property
    def _open_bound(self) -> str:
        is_open = self.times.since is None and self.times.until is not None
        return "before" if is_open else ""


def time_question(query: str, now: float, offset: Offset = utc) -> TimeQuestion | None:
    """The range that a question asks to list ("what did we do last week", "when did we last touch
    the parser", "what changed since the release"); None if its words are to be searched for."""
    if len(query) > _LONGEST_QUESTION or _CODE_BLOCK in query:
        return None
    times = time_words(query, now, offset)
    rest, bound, event, is_named = times.words, "", "", True
    if times.since is None and times.until is None and (hit := _EVENT.search(rest)):
        bound, event = _BOUND_OF[hit["bound"].lower().split()[-1]], hit["event"].strip()
        rest = f"{rest[: hit.start()]} {rest[hit.end() :]}"
        is_named = _NAMED_EVENT.match(event) is not None
    words = [word for word in map(_bare_word, rest.split()) if word]
    left = content_words(rest)
    has_range = times.since is not None or times.until is not None or bool(event)
    asks = _ASKS.match(rest.strip()) is not None and any(word in _ACTIVITY for word in words)
    if not has_range and left and _ASKS_WHEN.match(rest.strip()):
        asks, times = True, replace(times, latest=not times.first)
    is_ordered = words and (times.latest or times.first)
    if not (has_range or is_ordered) or not _AHEAD.isdisjoint(words):
        return None
    if (left or not is_named) and not asks:
        return None
    only: Only = ""
    if not _FAILURES.isdisjoint(words):
        only = "failures"
    elif not _DECISIONS.isdisjoint(words):
        only = "decisions"
    return TimeQuestion(times, " ".join(left), bound, event, only)


def content_words(text: str) -> list[str]:
    """The words of a question of time that name something."""
    return [word for word in map(_bare_word, text.split()) if word and word not in _FILLERS]


_LONGEST_QUESTION = 300  # characters: a longer one is a task, not a question
_CODE_BLOCK = "```"
_EVENT = re.compile(
    r"\b(?P<bound>ever\s+since|since|after|before|until|prior\s+to)\s+"
    r"(?P<event>\w[^?!,;]*)",
    re.IGNORECASE,
)
_NAMED_EVENT = re.compile(r"(?:the|our|my|that|this|we|i|they|you|v?\d)\b", re.IGNORECASE)
"""An event that is meant as one even where nothing is asked: "since the release"."""
_ASKS_WHEN = re.compile(r"when\s+(?:(?:did|have|had)\s+(?:we|i|you)|was|were)\b", re.IGNORECASE)
_BOUND_OF = {
    "since": "since",
    "after": "after",
    "before": "before",
    "until": "until",
    "to": "before",
}
_ASKS = re.compile(
    r"(?:(?:please|can you|could you|and|so|hey|ok(?:ay)?)[\s,]+)*"
    r"(?:what|which|when|list|show|summari[sz]e|recap|tell|give|did|have|has|anything|how much)\b",
    re.IGNORECASE,
)
_AHEAD = word_set("should shall will must need plan planned tomorrow next")
_DECISIONS = word_set("decide decided decides decision decisions agree agreed choose chose chosen")
_FAILURES = word_set("""
    break breaks broke broken fail failed fails failing failure failures wrong error errors crash
    crashed
""")
_ACTIVITY = (
    _DECISIONS
    | _FAILURES
    | word_set("""
    do done doing happen happened happening happens work worked working works touch touched
    touching change changed changes changing accomplish accomplished achieve achieved complete
    completed finish finished progress activity task tasks session sessions thing things stuff
    learn learned learnt discuss discussed talk talked made make built build ship shipped went on
    edit edited modify modified look looked open opened visit visited review reviewed use used
""")
)
"""What a question about work says of any work."""
_FILLERS = (
    _ACTIVITY
    | CHAT
    | QUESTION
    | word_set("""
    been being between carry continue leave left off pick stand stands commit commits during
    else ever everything exactly anything something episode episodes far file files first go
    goes going got gotten get history last latest list log memories memory most much new news ok
    okay on our ours out overview past please project recap recent recently remember remind
    report since standup status still summarise summarize summary team together today update
    updates up us way went yet you'd we've i've what's whats catch time times day days week
    month session brief briefly short shortly right just immediately
""")
)


def _bare_word(word: str) -> str:
    bare = word.strip(".,;:?!\"'()[]").lower().replace("\u2019", "'")
    return bare.removesuffix("'s").removesuffix("n't")


def _rest(query: str, spans: list[tuple[int, int]]) -> str:
    if not spans:
        return query.strip()
    kept, at = [], 0
    for start, end in sorted(spans):
        kept.append(query[at:start])
        at = max(at, end)
    kept.append(query[at:])
    text = " ".join("".join(kept).split())
    return re.sub(r"\s+(?=[,.;:?!])|^[\s,;:]+|(?<=[,;:])\s*(?=[,;:?!.])", "", text).strip()
