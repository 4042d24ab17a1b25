"""Of whom a question asks: of the one who asks it, or of what the model said; and whether it wants a number. Pure."""

from __future__ import annotations

import re

_TO_THE_MODEL = re.compile(
    r"\b(?:you|your|we)\b.{0,60}\b(?:recommend|suggest|told|talk|said|mention|discuss|provid|gave|list|explain|wr[io]te|shar"
    r"|answer|propos|advi[sc]e)|\b(?:our|that|the|a) (?:previous|last|earlier|recent) (?:chat|conversation|discussion|session)\b"
    r"|\bremind me\b",
    re.IGNORECASE | re.DOTALL,
)
_OF_ONESELF = re.compile(r"\b(?:I|my|me|mine|we|our)\b")
_FOR_A_NUMBER = re.compile(
    r"\bhow (?:many|much|long|often|old|far)\b|\bwhen (?:did|was|is|were)\b|\bwhat (?:time|date|year|day)\b", re.IGNORECASE
)


def asks_the_model(query: str) -> bool:
    """Is it about what the model said, rather than what the person did?"""
    return _TO_THE_MODEL.search(query) is not None


def asks_of_oneself(query: str) -> bool:
    return _OF_ONESELF.search(query) is not None


def asks_for_a_number(query: str) -> bool:
    return _FOR_A_NUMBER.search(query) is not None
