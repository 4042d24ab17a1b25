"""Why something was recalled, in short sentences. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from hotset.nouns.memory import Memory, MemoryKind, Standing, Uses
from hotset.sources.memory.recalling.ranking import DAY, Setting
from hotset.sources.memory.recalling.when import Spoken
from hotset.text.terms import Term, first_hits
from hotset.text.words import lowered

_WORD = re.compile(r"[\w'-]*\w")
_MOST_WORDS = 5
_NOTABLE = 0.5  # of a signal that goes from 0 to 1
_RECENT_DAYS = 7.0
_ADVICE = frozenset({MemoryKind.PROCEDURE, MemoryKind.PITFALL})


@dataclass(frozen=True, slots=True)
class Chosen:
    """Something that is told."""

    text: str
    """What of it was compared with the question."""
    signals: Mapping[str, float]
    memory: Memory | None = None
    uses: Uses | None = None


def why(chosen: Chosen, wanted: tuple[Term, ...], setting: Setting) -> tuple[str, ...]:
    """What spoke for it, the plainest first."""
    return (*_of_signals(chosen, _shared(chosen.text, wanted), setting), *_of_memory(chosen, setting))


def day(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%-d %B %Y}"


def _of_signals(chosen: Chosen, shared: list[str], setting: Setting) -> Iterator[str]:
    signals = chosen.signals
    if shared:
        yield f"words: {', '.join(shared)}"
    if signals.get("meaning", 0.0) >= _NOTABLE or (not shared and signals.get("meaning", 0.0) > 0):
        yield "close in meaning"
    if not shared and signals.get("window", 0.0) > 0:
        yield "what was said around it fits"
    if signals.get("when", 0.0) == 1.0:
        yield f"you asked about {_range(setting.spoken)}"
    if signals.get("latest", 0.0) >= _NOTABLE:
        yield "among the latest" if setting.spoken.latest else "among the first"
    if signals.get("pointed", 0.0) >= _NOTABLE:
        yield "a memory that fits stands on it"
    if signals.get("session", 0.0) >= _NOTABLE:
        yield "said in an episode that fits"


def _of_memory(chosen: Chosen, setting: Setting) -> Iterator[str]:
    memory, uses, signals = chosen.memory, chosen.uses, chosen.signals
    if memory is None:
        return
    if memory.kind in _ADVICE and signals.get("kind", 0.0) > 0:
        yield f"{memory.kind} for {_article(setting.task)} {setting.task} task"
    if signals.get("failed"):
        yield "it went wrong there"
    if uses is not None and uses.read:
        yield f"read {uses.read} time{'s' if uses.read > 1 else ''}"
    if uses is not None and uses.helped > uses.misled:
        yield "it helped before"
    if setting.now - memory.created <= _RECENT_DAYS * DAY:
        yield "of the last days"
    if memory.standing is Standing.SUPERSEDED:
        yield f"held until {day(memory.valid_until)}" if memory.valid_until is not None else "something else holds now"


def _shared(text: str, wanted: tuple[Term, ...]) -> list[str]:
    """The words of the text by which it was found, as they stand there."""
    low = lowered(text)
    words = (_WORD.match(low, at) for at, _ in first_hits(text, wanted))
    return list(dict.fromkeys(word[0] for word in words if word))[:_MOST_WORDS]


def _range(said: Spoken) -> str:
    if said.since is None:
        return f"the time before {day(said.until or 0.0)}"
    if said.until is None:
        return f"the time since {day(said.since)}"
    if said.until - said.since <= DAY:
        return day(said.since)
    return f"{day(said.since)} to {day(said.until - 1)}"


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"
