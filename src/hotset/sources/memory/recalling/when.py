"""The times that a question speaks of ("last week", "in March", "since 2026-01-05", "the latest"), and the rest of its words.

What only looks like a time is none: "may", "the last argument", "version 2025.1", a date in the name of a file, code, quotes.
Of two readings the past one holds, since memories are asked for: "on Monday" is the last one, "in March" the latest. Weeks
begin on Monday. A date such as 03/04/2026, which people read in two ways, is left alone, and so is a time that is yet to come:
nothing was remembered then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from hotset.sources.memory.recalling.time_forms import FORMS, Clock, Days, shifted


@dataclass(frozen=True, slots=True)
class Spoken:
    since: float | None = None
    until: float | None = None
    """The moment at which it ends: the first that is not in it."""
    words: str = ""
    """The question without the words for the time."""
    latest: bool = False
    first: bool = False


def spoken(query: str, now: float, offset: float = 0.0) -> Spoken:
    """`offset`: how many seconds the speaker's clock is ahead of UTC."""
    clock = Clock(_local(now, offset))
    text = _blotted(query[:_MOST_CHARS], _CODE)
    latest, first = ([hit.span() for hit in pattern.finditer(text)] for pattern in (_LATEST, _FIRST))
    found = list(_ranges(_blotted(text, _LATEST), clock))
    ranges = [days for _, days in found]
    # The range of "in January and March" is all that lies between; one open end leaves the whole open.
    since = None if any(one[0] is None for one in ranges) else min((one[0] for one in ranges if one[0]), default=None)
    until = None if any(one[1] is None for one in ranges) else max((one[1] for one in ranges if one[1]), default=None)
    return Spoken(
        since=None if since is None else _moment(since, offset),
        until=None if until is None else _moment(until, offset),
        words=_rest(query, [*(span for span, _ in found), *latest, *first]),
        latest=bool(latest),
        first=bool(first),
    )


def fits(time: float, said: Spoken) -> float:
    """From 1, inside of the range or where there is none, down to 0, as far outside as `_MARGINS` times its own length.

    People are not exact: "last week" was nine days ago, and what happened in March is told in April.
    """
    away = 0.0
    if said.since is not None and time < said.since:
        away = said.since - time
    elif said.until is not None and time >= said.until:
        away = time - said.until
    if not away:
        return 1.0
    length = said.until - said.since if said.since is not None and said.until is not None else _OPEN
    return max(0.0, 1.0 - away / (_MARGINS * max(length, _SHORTEST)))


_MOST_CHARS = 4000  # of a question; who pastes more speaks of the time before that
_DAY = 86400.0
_MARGINS = 2.0
_OPEN = 14 * _DAY  # "since" and "before" have no length; people who use them mean a date that they know
_SHORTEST = _DAY

_Range = tuple[datetime | None, datetime | None]


def _local(now: float, offset: float) -> datetime:
    return datetime.fromtimestamp(now, UTC).replace(tzinfo=None) + timedelta(seconds=offset)


def _moment(local: datetime, offset: float) -> float:
    return local.replace(tzinfo=UTC).timestamp() - offset


def _blotted(text: str, pattern: re.Pattern[str]) -> str:
    """Everything else stays at its place."""
    return pattern.sub(lambda hit: "\0" * len(hit[0]), text)


_CODE = re.compile(
    r"""
    ```.*?(?:```|\Z) | `[^`\n]*` | "[^"\n]*" | “[^”\n]*” | (?<!\w)'[^'\n]+'(?!\w)
    | (?<!\S)\S*(?:_|://|\\|::|\w\(|[A-Za-z]/|/[A-Za-z~.])\S*             # identifiers, addresses, paths
    | (?<!\S)\S*\w\.[A-Za-z]\S* | (?<!\S)(?!\d\d?\.\d\d?\.\d{4}\b(?!\.\d))v?\d+\.\d+\S*            # names of files, versions
    | \b[a-z]+[A-Z]\w* | (?<!\S)--(?:since|until|after|before)[\s=]\S+ | (?<!\S)--?\w\S*
    """,
    re.DOTALL | re.VERBOSE,
)
"""Where nobody speaks: code, quotes, names of files, versions."""


def _ranges(text: str, clock: Clock) -> Iterator[tuple[tuple[int, int], _Range]]:
    at = 0
    while hit := _phrase().search(text, at):
        found = _pair(hit, clock)
        end = hit.end()
        if found is None:
            found, end = _single(hit, clock), hit.end("end")
        if found is None or (found[0] is not None and found[0] > clock.now):
            at = hit.start() + 1
        else:
            yield (hit.start(), end), found
            at = end


def _pair(hit: re.Match[str], clock: Clock) -> _Range | None:
    """Two times that are said as one."""
    lead, join = _lead(hit), (hit["join"] or "").strip(" ,").lower()
    one, other = _days(hit["one"], clock), _days(hit["other"], clock) if hit["other"] else None
    if one is None or other is None:
        return None
    if lead in _PLAIN and join in {"", "and", "or"}:  # "in January and March": all that lies between
        return min(one[0], other[0]), max(one[1], other[1])
    if (lead, join) == ("between", "and") or (lead == "from" and join in _TO):
        if other[1] < one[0]:  # "from November to February": the first of them is a year earlier
            one = (shifted(one[0], -12), shifted(one[1], -12))
        return (one[0], other[1]) if one[0] < other[1] else None
    return None


def _single(hit: re.Match[str], clock: Clock) -> _Range | None:
    lead = _lead(hit)
    days = _days(hit["one"], clock, alone=lead not in _PLAIN | _BOUNDS)
    if days is None or lead == "between":
        return None
    match lead:
        case "since" | "starting":
            return days[0], clock.now
        case "before" | "prior to" | "earlier than":
            return None, days[0]
        case "after" | "later than":
            return days[1], None
        case "until" | "till" | "up to" | "up until" | "by":
            return None, days[1]
    return days


def _lead(hit: re.Match[str]) -> str:
    return " ".join((hit["lead"] or "").lower().split())


def _days(text: str, clock: Clock, *, alone: bool = False) -> Days | None:
    for form in FORMS:
        if (form.is_alone or not alone) and (hit := form.match(text)):
            try:
                return form.make(hit, clock)
            except (ValueError, OverflowError):  # February 30th, the year 0
                return None
    return None


_PLAIN = frozenset({"in", "on", "during", "of", "around", "throughout"})
_BOUNDS = frozenset(
    {"since", "starting", "before", "prior to", "earlier than", "after", "later than", "until", "till", "up to", "up until", "by"}
)
_OTHERS = frozenset({"between", "from", "within", "for", "at"})
"""Behind these, only what is a time by itself is one: "from 2000", "for May"."""
_TO = frozenset({"to", "until", "till", "through", "-"})


@cache
def _phrase() -> re.Pattern[str]:
    """Compiled when the first question comes."""
    leads = "|".join(sorted(_PLAIN | _BOUNDS | _OTHERS, key=len, reverse=True)).replace(" ", r"\s+")
    time = f"(?:{'|'.join(_unnamed(form.pattern) for form in FORMS)})"
    return re.compile(
        rf"""(?<![\w./\0-])(?:(?P<lead>{leads})\s+(?:on\s+)?)?(?P<one>{time}){_END}(?P<end>)
            (?:(?P<join>,|,?\s+(?:and|or|to|until|till|through|-))\s+(?P<other>{time}){_END})?""",
        re.IGNORECASE | re.VERBOSE,
    )


def _unnamed(pattern: str) -> str:
    """Many forms in one expression: their groups would clash. A space is written out, since the whole is verbose."""
    return re.sub(r"\(\?P<\w+>", "(?:", pattern.replace("(?P=dash)", "[-/.]").replace(" ", r"\s+"))


_COUNTED = (
    "lines|files|rows|bytes|kb|mb|gb|ms|px|pixels|tokens|tests|items|requests|users|records|times|words|characters|chars|points|steps|be"
    "|mornings|afternoons|evenings|nights|have|not|also|only|well|need|contain|return|break|fail|cause|happen|help|work|want|depend"
)
"""What follows a number that is no year, a "may" that is no month, and a weekday that is every one."""
_END = rf"(?:['\u2019]s)?(?![\w/\0%-]|[.,:]\d|\.\w)(?!\s+(?:{_COUNTED})\b)"

_LATEST = re.compile(
    r"""
    \b(?:the\s+)?(?:most\s+recent(?:ly)?|latest|newest|last\s+time)\b
      (?!\s+(?:version|release|tag|stable|lts|node|python|image|packages?|dependenc\w+)\b)       # that is a version, not a time
    | \blast(?=\s+(?:talked|spoke|discussed|worked|touched|looked|visited|saw|met|did|changed|ran|used)\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_FIRST = re.compile(
    r"\b(?:the\s+)?(?:very\s+first|earliest|first\s+time)\b|(?<!\bat\s)\bfirst(?=\s*[,?]|\s+in\s+(?-i:[A-Z])|\s*$)", re.IGNORECASE
)


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
