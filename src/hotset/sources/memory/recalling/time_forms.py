"""What a single time looks like ("yesterday", "last week", "March 15th"), and which days it is.

All of it is the speaker's own time, without a zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

Days = tuple[datetime, datetime]
"""From a moment to the first that is not in it."""


@dataclass(frozen=True, slots=True)
class Clock:
    now: datetime

    @property
    def today(self) -> date:
        return self.now.date()


Make = Callable[[re.Match[str], Clock], Days]


@dataclass(frozen=True, slots=True)
class Form:
    pattern: str
    """A space stands for any; case does not matter."""
    make: Make
    """Raises ValueError where there is no such day."""
    is_alone: bool
    """It is a time wherever it stands; others only behind a word such as `in` or `since`."""

    def match(self, text: str) -> re.Match[str] | None:
        return re.fullmatch(self.pattern.replace(" ", r"\s+"), text, re.IGNORECASE)


FORMS: list[Form] = []
"""The first that fits holds."""


_UNIT = r"(?:minute|hour|day|week|weekend|month|quarter|year)"
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "couple": 2, "three": 3, "few": 3, "four": 4, "five": 5, "several": 5}
_NUMBERS |= {"six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}
_COUNT = rf"(?:\d{{1,3}}|(?:a )?couple(?: of)?|(?:a )?few|{'|'.join(_NUMBERS)})"
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_SHORT = r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?"
_MONTH = rf"(?:{'|'.join(_MONTHS)}|(?-i:{_SHORT}))"
_CLEAR_MONTH = rf"(?:{'|'.join(name for name in _MONTHS if name not in {'march', 'may'})}|(?-i:March|May|{_SHORT}))"
"""Without "may" and "march", unless they are written as the months are."""
_WEEKDAY = rf"(?:{'|'.join(_WEEKDAYS)})"
_YEAR = r"(?:19[7-9]\d|20\d\d)"
_ORDINAL = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_DAYS = rf"(?:the )?(?P<day>{_ORDINAL})(?:(?:-|\u2013| to | and )(?P<last>{_ORDINAL}))?"
_PART_OF_DAY = r"(?:morning|afternoon|evening|night)"
_PART = r"(?:early|mid|late|(?:the )?(?:start|beginning|end|middle) of(?: the)?)"


def _form(pattern: str, *, alone: bool = True) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        FORMS.append(Form(pattern, make, alone))
        return make

    return add


# ------------------------------------------------------------------------------------------------------- days by name


@_form(r"(?:earlier )?today|this (?:morning|afternoon|evening)|just now|(?:a )?(?:moment|second|little while) ago")
def _today(_hit: re.Match[str], clock: Clock) -> Days:
    return _from(clock.today, 1)


@_form(rf"yesterday(?: {_PART_OF_DAY})?")
def _yesterday(_hit: re.Match[str], clock: Clock) -> Days:
    return _from(clock.today - timedelta(1), 1)


@_form(r"last night")
def _last_night(_hit: re.Match[str], clock: Clock) -> Days:
    midnight = _midnight(clock.today)
    return midnight - timedelta(hours=6), midnight + timedelta(hours=6)


@_form(r"(?:the )?day before yesterday")
def _before_yesterday(_hit: re.Match[str], clock: Clock) -> Days:
    return _from(clock.today - timedelta(2), 1)


@_form(r"tomorrow")
def _tomorrow(_hit: re.Match[str], clock: Clock) -> Days:
    return _from(clock.today + timedelta(1), 1)


@_form(r"(?:the )?other day")
def _other_day(_hit: re.Match[str], clock: Clock) -> Days:
    return _past(clock, days=10)


@_form(r"recently|lately|these days")
def _recently(_hit: re.Match[str], clock: Clock) -> Days:
    return _past(clock, days=30)


@_form(rf"(?P<which>)(?P<day>{_WEEKDAY})", alone=False)
@_form(rf"(?P<which>)(?P<day>{_WEEKDAY}) {_PART_OF_DAY}")
@_form(rf"(?P<which>last|this past|past|previous|this|next) (?P<day>{_WEEKDAY})(?: {_PART_OF_DAY})?")
def _weekday(hit: re.Match[str], clock: Clock) -> Days:
    day = _WEEKDAYS.index(hit["day"].lower())
    monday = clock.today - timedelta(clock.today.weekday())
    match hit["which"].lower():
        case "this":
            return _from(monday + timedelta(day), 1)
        case "next":
            return _from(clock.today + timedelta((day - clock.today.weekday() - 1) % 7 + 1), 1)
    return _from(clock.today - timedelta((clock.today.weekday() - day - 1) % 7 + 1), 1)


# ------------------------------------------------------------------------------------------------ weeks, months, years


@_form(r"(?P<count>)(?:over )?(?:the (?:last|past)|past) (?P<unit>day|week|month|quarter|year)")
@_form(rf"(?:over )?(?:the )?(?:last|past|previous) (?P<count>{_COUNT}) (?P<unit>{_UNIT})s?")
def _rolling(hit: re.Match[str], clock: Clock) -> Days:
    return _back(clock.now, hit["unit"].lower(), _number(hit["count"] or "one")), clock.now


@_form(r"(?P<which>the) weekend", alone=False)
@_form(r"(?P<which>(?:this|the) past|(?:the )?(?:this|last|previous|next|past)|over the) weekend")
def _weekend(hit: re.Match[str], clock: Clock) -> Days:
    saturday = clock.today - timedelta(clock.today.weekday()) + timedelta(5)
    which = hit["which"].lower()
    if which == "this":
        return _from(saturday, 2)
    if which.endswith("next"):
        return _from(saturday + timedelta(7 if clock.today >= saturday else 0), 2)
    return _from(saturday - timedelta(7), 2)


@_form(r"(?P<part>(?:the )?(?:start|beginning|end|middle) of) (?P<which>the) (?P<unit>week|month|quarter|year)")
@_form(rf"(?P<part>earlier|later|{_PART}) (?P<which>this|last|previous|next|current) (?P<unit>week|month|quarter|year)")
@_form(r"(?P<part>)(?:the )?(?P<which>this|last|previous|next|current) (?P<unit>week|month|quarter|year)")
def _calendar(hit: re.Match[str], clock: Clock) -> Days:
    step, part = {"last": -1, "previous": -1, "next": 1}.get(hit["which"].lower(), 0), hit["part"].lower()
    days = _unit(clock.today, hit["unit"].lower(), step)
    if part == "earlier":
        return days[0], max(clock.now, days[0])
    if part == "later":
        return max(clock.now, days[0]), days[1]
    return _part(days, part)


@_form(rf"(?P<count>{_COUNT}) (?P<unit>{_UNIT})s? (?:ago|back)")
def _ago(hit: re.Match[str], clock: Clock) -> Days:
    unit, count = hit["unit"].lower(), _number(hit["count"])
    then = _back(clock.now, unit, count)
    if unit in {"minute", "hour"}:
        slack = timedelta(**{f"{unit}s": max(1, count // 4)})
        return then - slack, then + slack
    # Whoever counts in weeks means a week, not a day; a few are two to five.
    slack_days = {"day": 0, "week": 3, "weekend": 3, "month": 15, "quarter": 45, "year": 183}[unit]
    if "couple" in hit["count"].lower() or "few" in hit["count"].lower() or "several" in hit["count"].lower():
        slack_days = max(1, (clock.now - then).days // 2)
    return _from(then.date() - timedelta(slack_days), 2 * slack_days + 1)


# ---------------------------------------------------------------------------------------------------------------- dates


@_form(rf"(?P<year>{_YEAR})(?P<dash>[-/.])(?P<month>\d\d?)(?P=dash)(?P<day>\d\d?)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?")
def _iso_day(hit: re.Match[str], _clock: Clock) -> Days:
    return _from(date(int(hit["year"]), int(hit["month"]), int(hit["day"])), 1)


@_form(rf"(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>{_YEAR})")
def _dotted_day(hit: re.Match[str], _clock: Clock) -> Days:
    return _from(date(int(hit["year"]), int(hit["month"]), int(hit["day"])), 1)


@_form(rf"(?P<one>\d\d?)/(?P<other>\d\d?)/(?P<year>{_YEAR})")
def _slashed_day(hit: re.Match[str], _clock: Clock) -> Days:
    one, other = int(hit["one"]), int(hit["other"])
    if one <= 12 and other <= 12 and one != other:
        raise ValueError  # the day or the month first: nobody can tell
    month, day = (one, other) if one <= 12 else (other, one)
    return _from(date(int(hit["year"]), month, day), 1)


@_form(rf"(?P<year>{_YEAR})-W(?P<week>\d\d)")
def _iso_week(hit: re.Match[str], _clock: Clock) -> Days:
    return _from(date.fromisocalendar(int(hit["year"]), int(hit["week"]), 1), 7)


@_form(rf"(?:{_WEEKDAY},? )?{_DAYS} (?:of )?(?P<month>{_MONTH})(?:,? (?P<year>{_YEAR}))?")
@_form(rf"(?:{_WEEKDAY},? )?(?P<month>{_CLEAR_MONTH}) {_DAYS}(?:,? (?P<year>{_YEAR}))?")
def _day_of_month(hit: re.Match[str], clock: Clock) -> Days:
    month, day = _month(hit["month"]), _ordinal(hit["day"])
    last = _ordinal(hit["last"]) if hit["last"] else day
    year = int(hit["year"]) if hit["year"] else clock.today.year
    if not hit["year"] and (month, day) > (clock.today.month, clock.today.day):
        year -= 1
    return _from(date(year, month, day), (date(year, month, last) - date(year, month, day)).days + 1)


@_form(rf"(?P<part>)(?P<which>)(?:the month of )?(?P<month>{_MONTH})(?P<year>)", alone=False)
@_form(rf"(?P<part>)(?P<which>)(?P<month>{_MONTH}),? (?:of )?(?P<year>{_YEAR})")
@_form(rf"(?P<part>)(?P<which>last|this|next) (?P<month>{_CLEAR_MONTH})(?P<year>)")
@_form(rf"(?P<part>{_PART})[ -](?P<which>)(?P<month>{_MONTH})(?:,? (?P<year>{_YEAR}))?")
def _whole_month(hit: re.Match[str], clock: Clock) -> Days:
    month, which = _month(hit["month"]), hit["which"].lower()
    year = int(hit["year"]) if hit["year"] else clock.today.year
    if not hit["year"] and which != "this":
        if which == "next":
            year += month <= clock.today.month
        else:  # "last March" in March is the one of a year ago
            year -= month > clock.today.month or (which == "last" and month == clock.today.month)
    start = _midnight(date(year, month, 1))
    return _part((start, shifted(start, 1)), hit["part"].lower())


@_form(rf"(?P<year>{_YEAR})-(?P<month>0[1-9]|1[0-2])", alone=False)
def _iso_month(hit: re.Match[str], _clock: Clock) -> Days:
    start = _midnight(date(int(hit["year"]), int(hit["month"]), 1))
    return start, shifted(start, 1)


@_form(r"(?P<number>Q[1-4])(?P<year>)", alone=False)
@_form(rf"(?P<number>Q[1-4]),? (?:of )?(?P<year>{_YEAR})")
@_form(rf"(?:the )?(?P<number>first|second|third|fourth) quarter of (?P<year>{_YEAR})")
def _quarter(hit: re.Match[str], clock: Clock) -> Days:
    number = {"1": 1, "2": 2, "3": 3, "4": 4, "first": 1, "second": 2, "third": 3, "fourth": 4}[
        hit["number"].lower().removeprefix("q")
    ]
    year = int(hit["year"]) if hit["year"] else clock.today.year
    if not hit["year"] and 3 * number - 2 > clock.today.month:
        year -= 1
    start = _midnight(date(year, 3 * number - 2, 1))
    return start, shifted(start, 3)


@_form(rf"(?P<part>)(?:the year )?(?P<year>{_YEAR})", alone=False)
@_form(rf"(?P<part>{_PART})[ -](?:the year )?(?P<year>{_YEAR})")
def _year(hit: re.Match[str], _clock: Clock) -> Days:
    start = _midnight(date(int(hit["year"]), 1, 1))
    return _part((start, shifted(start, 12)), hit["part"].lower())


# --------------------------------------------------------------------------------------------------------- arithmetics


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001 - the speaker's own time, as everywhere in here


def _from(day: date, days: int) -> Days:
    return _midnight(day), _midnight(day + timedelta(days))


def _past(clock: Clock, days: int) -> Days:
    return clock.now - timedelta(days), clock.now


def shifted(then: datetime, months: int) -> datetime:
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
    return shifted(now, -count * {"month": 1, "quarter": 3, "year": 12}[unit])


def _unit(today: date, unit: str, step: int) -> Days:
    if unit == "week":
        return _from(today - timedelta(today.weekday()) + timedelta(7 * step), 7)
    if unit == "month":
        start = _midnight(today.replace(day=1))
        return shifted(start, step), shifted(start, step + 1)
    if unit == "quarter":
        start = _midnight(date(today.year, (today.month - 1) // 3 * 3 + 1, 1))
        return shifted(start, 3 * step), shifted(start, 3 * step + 3)
    start = _midnight(date(today.year, 1, 1))
    return shifted(start, 12 * step), shifted(start, 12 * step + 12)


def _part(days: Days, part: str) -> Days:
    """A third of it: people who say "early March" do not count the days."""
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
    return next(number for number, name in enumerate(_MONTHS, 1) if name.startswith(text.lower().rstrip(".")[:3]))
