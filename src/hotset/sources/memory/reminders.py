"""What is remembered and fits a prompt, shown behind it without being asked for.

It is hidden behind the prompt like any other thing that the model saw and the client did not, as a
row of the page table, so that every later request says it again at the same place. Nothing here can
fail a call or hold it up for long: no memories, a slow index, a fault of ours, and the prompt goes
out alone.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from hotset.files.threads import DeadlinePool
from hotset.nouns.deposit import Deposit, Remembered
from hotset.nouns.knobs import MemoryKnobs, Remembering
from hotset.nouns.link import Link
from hotset.nouns.memory import Layer, MemoryId, MemoryRecord, MemoryUse, Pitfall, Task, Used
from hotset.nouns.page import Chain, Kind
from hotset.nouns.retrieval import Place
from hotset.nouns.turn import TurnRef
from hotset.nouns.window import Hidden
from hotset.sources.memory.kinds import ids_in
from hotset.sources.memory.render.economics import loaded_event
from hotset.sources.memory.render.layers import Load
from hotset.text.stems import stem
from hotset.text.terms import terms

if TYPE_CHECKING:
    from hotset.sources.memory.source import MemorySource


_LOOKED_AT = 500  # characters: further down a prompt quotes
_WHAT_WAS = re.compile(
    r"(?i)\b(?:where (?:were|are|did) we|left off|(?:last|previous|earlier|yesterday's) "
    r"(?:time|session|conversation)"
    r"|what (?:did|have|had) (?:we|you)|pick(?:ing)? up|carry on|(?:continue|go on) "
    r"(?:where|with (?:what|yesterday))|catch me up"
    r"|what(?:'s| is) (?:left|next|the status|open)|where does (?:it|the work|this) stand)\b"
)


def asks_what_was(prompt: str) -> bool:
    """Does it ask where the work stands? Then what was done lately answers it, whatever it was
    about."""
    return _WHAT_WAS.search(prompt[:_LOOKED_AT]) is not None


def fits(memory: MemoryRecord, prompt: str, task: Task, knobs: MemoryKnobs) -> bool:
    """Relevance filter: a search always finds something, and mostly it does not address the prompt.

    They share two telling words, and those are a fifth of what either says, by default. A pitfall
    fits those who look for a bug, and others where the prompt names what failed.
    """
    asked, said = _words(prompt), _words(f"{memory.title} {memory.text}")
    shared = len(asked & said)
    enough = shared >= knobs.shared_words and shared >= knobs.shared_share * min(
        len(asked), len(said)
    )
    if isinstance(memory.detail, Pitfall) and task is not Task.DEBUGGING:
        return enough and bool(asked & _words(memory.detail.what))
    return enough


def _words(text: str) -> frozenset[str]:
    return frozenset(stem(term.text) for term in terms(text))


_log = logging.getLogger("hotset")

OPENING = 3.0
"""Times as long may the first prompt of a session wait: it has most to gain, and its agent kept the
machine busy."""

HOW = 'retrieve_context(id="...") reads one whole'
_ENCODE_SHARE = 0.5
"""Of that time, for sessions that have just ended."""

_READY_SECONDS = 1.5
"""Extra seconds a prompt may wait while this process warms up."""

_JUST_ENDED = 2.0
"""Seconds without a call, of a session that another one looks at when it opens."""

_LATEST = 3
"""Sessions that one which opens looks at; where more have ended, the rest is left to the
background."""

_NOTHING_SECONDS = 1.0
"""For which nobody looks again where nothing was remembered: what is said now is looked at when it
has been quiet for longer."""

_ASKED = 2000  # characters of a prompt that are looked at


@dataclass(frozen=True, slots=True)
class Reminder:
    """What is shown with a prompt."""

    text: str
    tokens: int
    task: Task
    shown: Mapping[str, Layer]
    loads: tuple[Load, ...]
    available: int
    """Tokens of all that is remembered."""

    def deposits(self, turn: TurnRef, now: float) -> tuple[Deposit, ...]:
        """What is to be kept of it."""
        uses = tuple(
            MemoryUse(MemoryId(id), Used.SHOWN, now, turn.session, self.task) for id in self.shown
        )
        log = partial(
            loaded_event,
            available=self.available,
            session=turn.session,
            turn=turn.number,
            prompt=turn.number,
        )
        events = (log(load, now, task=self.task) for load in self.loads)
        return (*((Remembered(uses=uses),) if uses else ()), *events)


def read_deposits(id: MemoryId, tokens: int, here: Place, now: float) -> tuple[Deposit, ...]:
    """What is to be kept of a memory that a model read in a conversation."""
    load = Load(Layer.FULL, tokens, (), (id,))
    event = loaded_event(
        load, now, available=0, session=here.session, turn=here.turn, prompt=here.turn, asked=True
    )
    return Remembered(uses=(MemoryUse(id, Used.READ, now, here.session),)), event


@dataclass(frozen=True, slots=True)
class PlacedReminder:
    hidden: Hidden
    reminder: Reminder


class PromptScene(Protocol):
    """A request that ends with a prompt, as far as a reminder depends on it."""

    @property
    def last(self) -> Link: ...
    @property
    def hidden(self) -> Mapping[Chain, Hidden]: ...
    @property
    def free(self) -> int: ...


class Reminders:
    """Safe to use from several threads."""

    def __init__(
        self,
        memories: MemorySource,
        chosen: Remembering,
        monotonic: Callable[[], float] = time.monotonic,
        patience: float = 1.0,
    ) -> None:
        self._memories = memories
        self._chosen = chosen
        self._monotonic = monotonic
        self._ready_seconds = _READY_SECONDS * patience
        self._warming: Future[None] | None = None
        self._searches = DeadlinePool(1, "hotset-remind")
        self._nothing_until = 0.0
        self._failing = ""

    def warm(self) -> None:
        """Begins to make ready what the first prompt needs; a prompt that comes meanwhile waits for
        it."""
        self._warming = DeadlinePool(1, "hotset-warm").submit(self._memories.warm)

    @property
    def is_quick(self) -> bool:
        """Nothing is to be told with a session that opens now."""
        return self._monotonic() < self._nothing_until

    def offer(
        self, scene: PromptScene, place: Callable[[str], Hidden | None], *, opens: bool
    ) -> PlacedReminder | None:
        """What to show with a prompt; None where there is nothing, or nothing in time.

        `place` puts a text behind the prompt; None where the provider's rules do not allow it.
        """
        from hotset.window.prefetch import asked_in  # noqa: PLC0415 - the planner has loaded it

        said = (part.content for part in scene.last.message.parts if part.kind is Kind.PROMPT)
        asked = asked_in("\n".join(each.decode("utf-8", "replace") for each in said))[:_ASKED]
        if not asked.strip() or scene.free <= 0 or (opens and self.is_quick):
            return None
        if self._warming is not None:
            wait((self._warming,), self._ready_seconds)
            self._warming = None  # whatever became of it: nobody waits for it twice
        working = self._searches.submit_if_free(lambda: self._make(asked, scene, place, opens))
        if working is None:
            self._tell_failing("an earlier search hangs")
            return None
        try:
            reminder = working.result(self._chosen.offer_seconds * (OPENING if opens else 1.0))
        except TimeoutError:
            return None
        except Exception as error:  # fail open: the prompt goes out alone
            self._tell_failing(type(error).__name__)
            return None
        self._failing = ""
        return reminder

    def _tell_failing(self, why: str) -> None:
        """Once, and again only when it is another fault or when it worked meanwhile."""
        _log.log(
            logging.DEBUG if why == self._failing else logging.WARNING,
            "nothing could be recalled: %s",
            why,
        )
        self._failing = why

    def _make(
        self, asked: str, scene: PromptScene, place: Callable[[str], Hidden | None], opens: bool
    ) -> PlacedReminder | None:
        if opens:
            quiet, seconds = (
                min(_JUST_ENDED, self._chosen.quiet_seconds),
                _ENCODE_SHARE * self._chosen.offer_seconds,
            )
            self._memories.encode(quiet=quiet, seconds=seconds, latest=_LATEST)
        # The memories that were shown in this conversation: they stand there still.
        raw = (
            each
            for hidden in scene.hidden.values()
            for each in (*hidden.before, hidden.instead, *hidden.after)
        )
        known = frozenset(id for each in raw for id in ids_in(each.decode("utf-8", "replace")))
        room = min(self._chosen.offer_tokens, scene.free)
        reminder = self._memories.remind(
            asked, opens=opens, max_tokens=room, how=HOW, after=scene.last.parent, known=known
        )
        if reminder is None:
            if self._memories.is_empty:
                self._nothing_until = self._monotonic() + min(
                    _NOTHING_SECONDS, self._chosen.quiet_seconds
                )
            return None
        hidden = place(reminder.text)
        return None if hidden is None else PlacedReminder(hidden, reminder)
