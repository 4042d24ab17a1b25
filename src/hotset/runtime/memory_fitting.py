"""Does a memory speak of what a prompt asks? A search always finds something, and mostly nobody needs it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hotset.nouns.knobs import MemoryKnobs
from hotset.nouns.memory import MemoryKind, Pitfall, Task
from hotset.text.stems import stem
from hotset.text.terms import terms

if TYPE_CHECKING:
    from hotset.sources.memory.recalling.recall import Recalled

_LOOKED_AT = 500  # characters: further down a prompt quotes
_WHAT_WAS = re.compile(
    r"(?i)\b(?:where (?:were|are|did) we|left off|(?:last|previous|earlier|yesterday's) (?:time|session|conversation)"
    r"|what (?:did|have|had) (?:we|you)|pick(?:ing)? up|carry on|(?:continue|go on) (?:where|with (?:what|yesterday))|catch me up"
    r"|what(?:'s| is) (?:left|next|the status|open)|where does (?:it|the work|this) stand)\b"
)


def asks_what_was(prompt: str) -> bool:
    """Does it ask where the work stands? Then what was done lately answers it, whatever it was about."""
    return _WHAT_WAS.search(prompt[:_LOOKED_AT]) is not None


def fits(item: Recalled, prompt: str, task: Task, knobs: MemoryKnobs) -> bool:
    """They share two telling words, and those are a fifth of what either says, by default.

    Pitfalls are told to whoever looks for a bug, and to others where the prompt names what failed.
    """
    memory = item.memory
    if memory is None:
        return False
    asked = _words(prompt)
    said = _words(f"{memory.title} {memory.text}")
    shared = asked & said
    enough = len(shared) >= knobs.shared_words and len(shared) >= knobs.shared_share * min(len(asked), len(said))
    if memory.kind is MemoryKind.PITFALL and task is not Task.DEBUGGING and isinstance(memory.detail, Pitfall):
        return enough and bool(asked & _words(memory.detail.what))
    return enough


def _words(text: str) -> frozenset[str]:
    return frozenset(stem(term.text) for term in terms(text))
