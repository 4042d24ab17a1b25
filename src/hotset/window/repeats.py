"""Results that repeat what the conversation had before, and how many of them could be pointed to.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hotset.nouns.link import Link
from hotset.nouns.page import Kind
from hotset.nouns.window import Cause, Form, Shown, Spot
from hotset.window.birth import LEAST

_POINTED = (Form.ECHO, Form.CHANGE)


@dataclass(frozen=True, slots=True)
class Repeats:
    """Of results that were shown for the first time."""

    all: int = 0
    """What the conversation had before, word for word or in an older version that still stood."""
    pointed: int = 0
    """Of these, the ones that became a line which points there, or what changed since."""


NO_REPEATS = Repeats()


def repeats(links: Sequence[Link], fresh: Iterable[Shown]) -> Repeats:
    """What a plan made of the results that are new with it."""
    born = {row.spot: row.form for row in fresh if row.cause is Cause.BIRTH}
    if not born:
        return NO_REPEATS
    pointed = sum(form in _POINTED for form in born.values())
    again = 0
    had: set[bytes] = set()
    for link in links:
        for position, part in enumerate(link.message.parts):
            if not part.call or part.kind.family is Kind.TOOL_CALL or len(part.content) <= LEAST:
                continue
            form = born.get(Spot(link.chain, position))
            again += form is not None and form not in _POINTED and part.content in had
            had.add(part.content)
    return Repeats(pointed + again, pointed)
