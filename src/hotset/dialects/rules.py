"""Provider rules that a changed request must never break, and which rule an error reply is about.

The rules are data in each dialect's `rules.py`; they share one numbering.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any

from hotset.dialects import json_bytes
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


def explain(status: int, body: bytes, rules: Collection[Invariant]) -> int | None:
    """The rule that an error reply is about, by its code, then its type, then its text; None if it
    is about no rule."""
    if status < 400:
        return None
    by_code = {code: each.number for each in rules for code in each.codes}
    tree = json_bytes.lenient_object(body)
    error = json_bytes.as_object(tree.get("error")) or tree
    details = json_bytes.as_object(error.get("details"))
    for name in (
        details.get("error_code"),
        error.get("error_code"),
        error.get("code"),
        error.get("type"),
    ):
        if isinstance(name, str) and name in by_code:
            return by_code[name]
    if status == 413 or error.get("code") == "context_length_exceeded":
        return 15
    if status not in (400, 422):
        return None  # overload, credentials and limits are not about the body
    text = json_bytes.as_text(error.get("message"))
    return next(
        (each.number for each in rules if each.pattern and re.search(each.pattern, text)), None
    )
