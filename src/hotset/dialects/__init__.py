"""Bytes to nouns and back: a package for each wire format, and their registry."""

from __future__ import annotations

from hotset.dialects import anthropic, chat, responses
from hotset.dialects.port import Dialect, Dialects

__all__ = ["DEFAULT", "DIALECTS", "Dialect", "Dialects"]

DEFAULT: Dialect = chat
"""What is spoken where nothing tells which dialect it is: most servers know it."""

_EVERY: tuple[Dialect, ...] = (
    chat,
    anthropic,
    responses,
)
DIALECTS: Dialects = {each.name: each for each in _EVERY}
