"""Words in quotes must occur as they are; where nothing holds them so, whoever asked gets what comes nearest, and is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hotset.index.analysis import question

_QUOTED = re.compile('"([^"]+)"')
_MOST_NAMED = 60  # characters of a phrase: quotation marks come with whole error messages, too


@dataclass(frozen=True, slots=True)
class Wording:
    words: str
    note: str = ""
    """What to say about finds that these words bring; empty where they are what was asked for."""


def wordings(query: str) -> Iterator[Wording]:
    """What to ask, one after the other, until something is found: the query, and without its quotation marks if they count."""
    yield Wording(query)
    if question(query).phrases:
        named = ", ".join(f'"{_shortened(" ".join(each.split()))}"' for each in _QUOTED.findall(query))
        yield Wording(query.replace('"', " "), f"nothing holds {named} word for word; these come nearest, by words or by meaning")


def _shortened(phrase: str) -> str:
    return phrase if len(phrase) <= _MOST_NAMED else f"{phrase[:_MOST_NAMED]}…"
