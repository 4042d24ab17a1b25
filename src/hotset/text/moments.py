"""Times as a person or a model writes them: `2d`, or a date."""

from __future__ import annotations

import re
from datetime import datetime

from hotset.errors import BadInput

_AGO = re.compile(r"(\d{1,6})([smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


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
