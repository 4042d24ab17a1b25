"""What every row about a call says of it: its dialect, and the tokens that it took."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DialectName(StrEnum):
    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them."""

    input: int = 0
    """Uncached input tokens."""
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    estimated: bool = False
    """It is our own count: the provider reported none."""
    lasting: int = 0
    """The part of `cache_write` that is kept for the longer time, at the higher price."""

    @property
    def prompt(self) -> int:
        """Tokens of the prompt, cached or not."""
        return self.input + self.cache_read + self.cache_write
