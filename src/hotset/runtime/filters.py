"""Filters of a search as a person, a program or a model writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from hotset.errors import BadInput
from hotset.nouns.page import Kind, including
from hotset.nouns.search import Sort
from hotset.text.languages import LANGUAGES

RECORDS = ("reference", "checkpoint", "handoff")
"""Kinds of records."""

_SPAN = re.compile(r"\s*(\d{1,9})?\s*(-)?\s*(\d{1,9})?\s*")
_FAR = 1 << 31
_AGO = re.compile(r"(\d{1,6})([smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def parse_kinds(names: Iterable[str]) -> tuple[frozenset[str], frozenset[Sort]]:
    """Kinds of pages with their special cases, and languages; and the types that have them: every
    type if none is named. Raises `BadInput`."""
    kinds: set[str] = set()
    sorts: set[Sort] = set()
    for typed in names:
        name = typed.lower().replace("-", "_")
        if name in set(Kind):
            kinds |= {str(each) for each in including(Kind(name))}
            sorts.add(Sort.PAGE)
        elif name in RECORDS:
            kinds.add(name)
            sorts.add(Sort.RECORD)
        elif name in LANGUAGES:
            kinds.add(name)
            sorts.add(Sort.CODE)
        else:
            raise BadInput(
                f"{typed[:40]}: pages are {', '.join(Kind)}; records are {', '.join(RECORDS)}; "
                f"languages are {', '.join(LANGUAGES)}"
            )
    return frozenset(kinds), frozenset(sorts or Sort)


def parse_turns(typed: str) -> tuple[int, int]:
    """`12`, `12-20`, `12-` or `-20`: first and last turn. Raises `BadInput`."""
    found = _SPAN.fullmatch(typed)
    if found is None or not (found[1] or found[3]):
        raise BadInput(f"{typed[:40]}: use 12, 12-20, 12- or -20")
    first = int(found[1] or 1)
    last = int(found[3]) if found[3] else first if not found[2] else _FAR
    if last < first:
        raise BadInput(f"{typed[:40]}: the first comes after the last")
    return first, last


def parse_moment(typed: str, now: float) -> float:
    """A time: `2d` is two days before now; a date is its first moment in local time. Raises
    `BadInput`."""
    if ago := _AGO.fullmatch(typed):
        return now - int(ago[1]) * _UNITS[ago[2]]
    try:
        return datetime.fromisoformat(typed).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        today = datetime.fromtimestamp(now).astimezone().date().isoformat()
        raise BadInput(f"{typed[:40]}: use 30m, 12h, 2d, 1w or a date like {today}") from None
