"""Provider rules that a changed request must never break.

The rules are data in each dialect's `rules.py`; they share one numbering.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from hotset.dialects.port import Invariant, Violation


def broken_rule(rules: Iterable[Invariant]) -> Callable[..., Violation]:
    """A function that makes a `Violation` of one of these rules: `broken(number, where, *about,
    **gaps)`. `about` names the calls or tools that it is about."""
    texts = {each.number: each.text for each in rules}

    def broken(number: int, where: str, *about: str, **gaps: Any) -> Violation:
        return Violation(number, where, texts[number].format(where=where, **gaps), about)

    return broken


def beyond(found: Iterable[Violation], theirs: Iterable[Violation]) -> Violation | None:
    """The first violation that is not the client's own. The same rule, for the same call or tool,
    counts once for each."""
    allowed = Counter(key for each in theirs for key in _keys(each))
    for each in found:
        keys = Counter(_keys(each))
        if keys - allowed:
            return each
        allowed -= keys
    return None


def _keys(violation: Violation) -> list[tuple[int, str]]:
    return [(violation.invariant, name) for name in violation.about or ("",)]
