"""What is remembered and fits a prompt, shown behind it without being asked for.

It is hidden behind the prompt like any other thing that the model saw and the client did not, as a
row of the page table, so that every later request says it again at the same place. Nothing here can
fail a call or hold it up for long: no memories, a slow index, a fault of ours, and the prompt goes
out alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hotset.errors import NotFound
from hotset.files.threads import DeadlinePool
from hotset.index.port import Index
from hotset.nouns.candidate import Candidate, OfferKind, OfferSlot
from hotset.nouns.deposit import Deposit, Remembered
from hotset.nouns.finding import Query, SearchHit, Sort
from hotset.nouns.knobs import MemoryKnobs, Remembering
from hotset.nouns.memory import (
    Layer,
    MemoryId,
    MemoryKind,
    MemoryRecord,
    MemoryUse,
    Pitfall,
    Standing,
    Task,
    Used,
)
from hotset.nouns.page import SessionId
from hotset.nouns.retrieval import Place, SourceText
from hotset.nouns.turn import TurnRef
from hotset.sources.memory.kinds import ids_in, is_memory_id
from hotset.sources.memory.render.economics import loaded_event
from hotset.sources.memory.render.layers import Load
from hotset.sources.port import Scene, Source, TurnEnd
from hotset.store.port import Store
from hotset.text.clip import clip_prose
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


OPENING = 3.0
"""Times as long may the first prompt of a session wait: it has most to gain, and its agent kept the
machine busy."""

HOW = 'read one: retrieve_context(id="...")'
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

_WORTH = 0.4
"""How likely a reminder is used: of 12 that were told to new tasks, 5 fitted."""

_LONGEST_TITLE = 200


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


class MemoryOffers(Source):
    """Memory as a source: what fits a new prompt, shown without being asked for. Safe to use from
    several threads."""

    name = "memory"

    def __init__(
        self,
        memories: MemorySource,
        chosen: Remembering,
        monotonic: Callable[[], float] = time.monotonic,
        patience: float = 1.0,
        *,
        offers: bool = True,
    ) -> None:
        """`offers` says that a prompt may be told of memories that it did not ask for."""
        self._memories = memories
        self._chosen = chosen
        self._monotonic = monotonic
        self._ready_seconds = _READY_SECONDS * patience
        self._offers = offers
        self._warming: Future[None] | None = None
        self._nothing_until = 0.0
        self.prompted: Callable[[SessionId], None] = _ignore
        """Called when a session asks for something new and was told of memories."""
        self.read_in: Callable[[SessionId], None] = _ignore
        """Called when a memory was read whole in a session."""

    def warm(self) -> None:
        """Begins to make ready what the first prompt needs; a prompt that comes meanwhile waits for
        it."""
        if self._offers:
            self._warming = DeadlinePool(1, "hotset-warm").submit(self._memories.warm)

    def is_quiet(self, *, opens: bool) -> bool:
        return not self._offers or (opens and self._monotonic() < self._nothing_until)

    def seconds(self, scene: Scene) -> float:
        warming = self._ready_seconds if self._warming is not None else 0.0
        return self._chosen.offer_seconds * (OPENING if scene.opens else 1.0) + warming

    def offer(self, scene: Scene, until: float) -> Sequence[Candidate]:
        """One candidate at most: what is remembered and fits the prompt, as one text."""
        asked = scene.prompt[:_ASKED]
        if not asked.strip() or scene.room <= 0 or self.is_quiet(opens=scene.opens):
            return ()
        if self._warming is not None:
            wait((self._warming,), max(0.0, until - self._monotonic()))
            self._warming = None  # whatever became of it: nobody waits for it twice
        if scene.opens:
            quiet = min(_JUST_ENDED, self._chosen.quiet_seconds)
            seconds = _ENCODE_SHARE * self._chosen.offer_seconds
            self._memories.encode(quiet=quiet, seconds=seconds, latest=_LATEST)
        # The memories that were shown in this conversation: they stand there still.
        raw = (
            each
            for hidden in scene.hidden.values()
            for each in (*hidden.before, hidden.instead, *hidden.after)
        )
        known = frozenset(id for each in raw for id in ids_in(each.decode("utf-8", "replace")))
        reminder = self._memories.remind(
            asked,
            opens=scene.opens,
            max_tokens=min(self._chosen.offer_tokens, scene.room),
            how=HOW,
            after=scene.last.parent,
            known=known,
        )
        if reminder is not None:
            return (_candidate(reminder),)
        if self._memories.is_empty:
            rest = min(_NOTHING_SECONDS, self._chosen.quiet_seconds)
            self._nothing_until = self._monotonic() + rest
        return ()

    def heard(self, end: TurnEnd) -> Sequence[Deposit]:
        """Which memories were shown, and what that cost, under the session that saw them."""
        reminders = [each.origin for each in end.taken if isinstance(each.origin, Reminder)]
        if end.ref is None or not reminders:
            return ()
        self.prompted(end.ref.session)
        return [each for shown in reminders for each in shown.deposits(end.ref, end.scene.now)]

    def find(self, query: Query, until: float) -> Sequence[SearchHit]:
        """The memories that `hotset memory search` finds."""
        del until
        if not query.words.strip():
            return ()
        return memory_hits(self._memories, query.words, query.most, query.only.since)

    def read(self, id: str, store: Store) -> SourceText | None:
        return read_memory(id, store)

    def was_read(self, id: str, tokens: int, scene: Scene) -> Sequence[Deposit]:
        if not is_memory_id(id):
            return ()
        if scene.here.session is not None:
            self.read_in(scene.here.session)
        return read_deposits(MemoryId(id), tokens, scene.here, scene.now)

    def follow(self, store: Store, index: Index, until: float) -> int:
        from hotset.sources.memory.index import follow_memories  # noqa: PLC0415 - with the index, and not before

        return follow_memories(store, index, until)


def read_memory(id: str, store: Store) -> SourceText | None:
    """A memory that is not forgotten; None for any other id."""
    from hotset.sources.memory.render.memories import memory_heading, memory_text  # noqa: PLC0415

    if not is_memory_id(id):
        return None
    try:
        memory = store.memory(MemoryId(id))
    except NotFound:
        return None
    if memory.standing is Standing.FORGOTTEN:
        return None
    return SourceText(memory_heading(memory), memory_text(memory, store))


def memory_hits(
    memories: MemorySource, words: str, most: int, since: float | None = None
) -> list[SearchHit]:
    """What is remembered: the memories that `hotset memory search` finds, without the words that
    were said."""
    kinds = [kind for kind in MemoryKind if kind is not MemoryKind.ARRANGEMENT]  # hotset's own
    found = memories.recall(words, kinds=kinds, most=most).recall.items
    return [
        SearchHit(
            Sort.MEMORY,
            each.score,
            each.id,
            f"{each.kind}: {clip_prose(each.title or each.text, _LONGEST_TITLE)}",
            f"hotset memory show {each.id}",
            each.time,
            detail={
                "id": each.id,
                "kind": each.kind,
                "title": each.title,
                "time": each.time,
                "text": each.text,
            },
        )
        for each in found[:most]
        if since is None or each.time >= since
    ]


def _candidate(reminder: Reminder) -> Candidate:
    return Candidate(
        MemoryOffers.name,
        OfferKind.REMINDER,
        ",".join(reminder.shown) or "reminder",
        OfferSlot.BEHIND_PROMPT,
        reminder.text,
        reminder.tokens,
        _WORTH,
        origin=reminder,
    )


def _ignore(_: SessionId) -> None:
    """For a source that no upkeep listens to."""
