"""Bytes to nouns and back: one adapter for each wire format."""

from __future__ import annotations

from hotset.dialects.anthropic import Anthropic
from hotset.dialects.openai_chat import OpenAIChat
from hotset.dialects.openai_responses import OpenAIResponses
from hotset.dialects.port import Dialect, Dialects

__all__ = ["DIALECTS", "Dialect", "Dialects"]

_every: tuple[Dialect, ...] = (OpenAIChat(), OpenAIResponses(), Anthropic())
DIALECTS: Dialects = {each.name: each for each in _every}
