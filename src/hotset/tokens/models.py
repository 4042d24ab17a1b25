"""Which encoding a model counts in."""

from __future__ import annotations

import re
from enum import StrEnum


class Encoding(StrEnum):
    """A vocabulary of OpenAI's."""

    O200K = "o200k"
    CL100K = "cl100k"


_VENDOR = re.compile(
    r"^(?:.*/|ft:)+"
)  # openrouter's `openai/`, a deployment's path, a fine-tuned model's mark
_OF_OPENAI = re.compile(r"(chat)?gpt|o\d|codex|text-embedding-|computer-use")
_CL100K = re.compile(r"gpt-4(?![.o]|\d)|gpt-3\.?5|text-embedding-")


def encoding_of(model: str) -> Encoding:
    """The encoding to count in: the model's own where OpenAI published it, o200k as the measure for
    all others."""
    return Encoding.CL100K if _CL100K.match(_bare(model)) else Encoding.O200K


def exact(model: str) -> bool:
    """Whether a count in `encoding_of(model)` is the provider's own count of that text."""
    return _OF_OPENAI.match(_bare(model)) is not None


def _bare(model: str) -> str:
    return _VENDOR.sub("", model.lower())
