"""What is told of memories, layer by layer, and what that cost: every loading is an event, every memory shown is a use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from hotset.errors import HotsetError, NotFound
from hotset.index.port import Index
from hotset.nouns.deposit import Deposit, Remembered
from hotset.nouns.knobs import MemoryKnobs
from hotset.nouns.memory import Arrangement, Layer, Memory, MemoryId, MemoryKind, Task, Trust, Use, Used, Uses
from hotset.nouns.page import SessionId
from hotset.nouns.remembering import Remembering
from hotset.nouns.retrieval import Place
from hotset.nouns.turn import TurnRef
from hotset.runtime.memory_adapting import recalled_event
from hotset.runtime.memory_fitting import asks_what_was, fits
from hotset.runtime.memory_masses import Masses
from hotset.sources.memory.disclosing.economics import loaded_event
from hotset.sources.memory.disclosing.overview import Overview
from hotset.sources.memory.disclosing.overview_file import OverviewFile
from hotset.sources.memory.disclosing.showing import Item, told_memories
from hotset.sources.memory.disclosing.telling import HOW, Told
from hotset.sources.memory.disclosing.timeline import told_timeline
from hotset.sources.memory.disclosing.topics_shown import fitting_topics, told_index
from hotset.sources.memory.disclosing.unfolding import Load, Room, Unfolded, is_bypassed, unfold
from hotset.sources.memory.managing.forms import layer_of
from hotset.sources.memory.naming import is_memory_id, memory_id
from hotset.sources.memory.recalling.weights import from_dict
from hotset.store.port import Store

if TYPE_CHECKING:
    from hotset.sources.memory.recalling.recall import Asking, Recall, Recalled

ARRANGEMENT = memory_id(MemoryKind.ARRANGEMENT, "arrangement")
"""The one record that says how memories are shown in this store."""

SECONDS = 3.0
"""Of a search, where a model waits for it."""

OPENING = 3.0
"""Times longer waits a prompt that opens a session: it has most to gain, and its agent has just kept the machine busy itself."""

_REMINDED_SHARE = 0.6
"""Of the time that a prompt waits, for a search."""

_REMINDED_OF = (MemoryKind.PITFALL, MemoryKind.PROCEDURE, MemoryKind.FACT, MemoryKind.LEARNING, MemoryKind.HANDOFF)
"""What a prompt is reminded of without being asked; episodes and what was said are there to be asked for."""

_FURTHER = 100
"""Of what is found, for whoever asks for more: about all that a search looks at, and lines for more than the room there is."""

_MOST_STEPS = 20
"""That somebody can ask for; each is worked out from the first."""


@dataclass(frozen=True, slots=True)
class Answer:
    """To a recall."""

    text: str
    """What a model is told."""
    tokens: int
    recall: Recall
    loads: tuple[Load, ...] = ()
    shown: Mapping[str, Layer] = field(default_factory=dict)
    """What it names by its id, and how much of each it shows."""


@dataclass(frozen=True, slots=True)
class Reminder:
    """What is told with a prompt."""

    text: str
    tokens: int
    task: Task
    shown: Mapping[str, Layer]
    loads: tuple[Load, ...]
    available: int
    """Tokens of all that is remembered."""

    def deposits(self, told: TurnRef, now: float) -> tuple[Deposit, ...]:
        """What is to be kept of it."""
        uses = tuple(Use(MemoryId(id), Used.SHOWN, now, told.session, self.task) for id in self.shown)
        events = (
            loaded_event(
                load,
                now,
                available=self.available,
                session=told.session,
                turn=told.number,
                task=self.task,
                prompt=told.number,
            )
            for load in self.loads
        )
        return (*((Remembered(uses=uses),) if uses else ()), *events)


def read_deposits(id: MemoryId, tokens: int, here: Place, now: float) -> tuple[Deposit, ...]:
    """What is to be kept of a memory that a model read in a conversation."""
    load = loaded_event(
        Load(Layer.FULL, tokens, (), (id,)), now, available=0, session=here.session, turn=here.turn, prompt=here.turn, asked=True
    )
    return Remembered(uses=(Use(id, Used.READ, now, here.session),)), load


class Telling:
    """Safe to use from several threads."""

    def __init__(
        self,
        folder: Path,
        index: Callable[[], Index | None],
        clock: Callable[[], float],
        *,
        knobs: MemoryKnobs,
        logged: bool = True,
        patience: float = 1.0,
    ) -> None:
        self._folder = folder
        self._index = index
        self._clock = clock
        self._logged = logged
        self._knobs = knobs
        self._seconds = SECONDS * patience
        self.masses = Masses(folder)
        self._file: OverviewFile | None = None

    def overview(self, store: Store) -> Overview:
        self._file = self._file or OverviewFile(self._folder)
        return self._file.latest(store)

    def renew(self) -> None:
        """Something was erased: nothing of it may stay."""
        self._file = self._file or OverviewFile(self._folder)
        self._file.drop()
        self.masses.drop()

    def index(self, store: Store, query: str, max_tokens: int, session: str, how: str) -> Told:
        told = told_index(
            self.overview(store), arrangement(store), self._clock(), query=query, max_tokens=max_tokens, how=how or HOW
        )
        self._happened(store, session, [Load(Layer.INDEX, told.tokens, told.topics)])
        return told

    def timeline(self, store: Store, query: str, topics: Sequence[str], max_tokens: int, session: str) -> Told:
        overview, shape, now = self.overview(store), arrangement(store), self._clock()
        fitting = (
            [each.topic.name for each in fitting_topics(overview, shape, now, query=query)] if query and not topics else topics
        )
        told = told_timeline(overview, shape, now, topics=fitting, max_tokens=max_tokens)
        self._happened(store, session, [Load(Layer.TIMELINE, told.tokens, told.topics)])
        return told

    def recall(self, store: Store, asking: Asking, max_tokens: int, session: str, more: int = 0) -> Answer:
        """What is remembered of it; for whoever asks for `more`, what the answer before that did not tell."""
        from hotset.sources.memory.recalling.beside import said_beside  # noqa: PLC0415 - numpy, which no start pays
        from hotset.sources.memory.recalling.recall import recall  # noqa: PLC0415

        shape, begun = arrangement(store), time.monotonic()
        found = recall(asking, self._index(), store, from_dict(shape.weights))
        took = 1000 * (time.monotonic() - begun)
        beside = said_beside(found.items, store, asking.query, but=asking.session) if asking.talk else ()
        told = self._told(store, found.items, asking.query, found.task, max_tokens=max_tokens, beside=beside)
        if more:
            found, told = self._more(store, asking, told, max_tokens, more)
        loads = (Load(Layer.FULL, told.tokens, told.topics, tuple(told.shown)),) if told.shown else ()
        memories = [item.memory.id for item in found.items if item.memory is not None and item.id in told.shown]
        self._happened(store, session, loads, shown=memories, task=found.task)
        if not more:  # what other weights would have shown first is a matter of the first answer
            with suppress(HotsetError):
                self._keep(
                    store,
                    session,
                    recalled_event(found.candidates, self._clock(), SessionId(session) if session else None, found.task, took),
                )
        return Answer(told.text, told.tokens, found, loads, told.shown)

    def _more(self, store: Store, asking: Asking, told: Told, max_tokens: int, steps: int) -> tuple[Recall, Told]:
        """Further memories, and then what was said session by session: a question's own words reach only the likeliest of it.

        Nothing is kept between the steps: each is worked out from the first answer, so that asking it again tells it again.
        """
        from hotset.sources.memory.recalling.elsewhere import said_elsewhere  # noqa: PLC0415 - as above
        from hotset.sources.memory.recalling.recall import recall  # noqa: PLC0415 - as above

        asking = replace(asking, advice=self._knobs.advice)
        found = recall(replace(asking, most=_FURTHER), self._index(), store, from_dict(arrangement(store).weights))
        known: frozenset[str] = frozenset()
        items: tuple[Recalled, ...] = ()
        for step in range(1, min(steps, _MOST_STEPS) + 1):
            known |= {id for id, layer in told.shown.items() if layer is Layer.FULL or is_memory_id(id)}
            said = list(islice(said_elsewhere(asking, found, self._index(), store, told=known), _FURTHER)) if asking.talk else []
            likely = asking.most * (step + 1) if said else _FURTHER  # what fits worse would take the room of what was said
            memories = [item for item in found.items[:likely] if item.memory is not None and item.id not in known]
            told = self._told(store, memories, asking.query, found.task, max_tokens=max_tokens, beside=said)
            items = tuple(item for item in (*memories, *said) if item.id in told.shown)
        return replace(found, items=items), told

    def read(self, store: Store, memory: Memory, max_tokens: int, session: str) -> Told:
        from hotset.runtime.memory_explaining import told_whole  # noqa: PLC0415 - only where somebody asks

        told = told_whole(memory, store, max_tokens)
        self._happened(
            store, session, [Load(Layer.FULL, told.tokens, memory.topics, (memory.id,))], shown=[memory.id], how=Used.READ
        )
        return told

    def unfold(self, store: Store, query: str, task: Task | None, room: Room, session: str) -> Unfolded:
        """As far as a question needs: the index, the timeline where that may answer it, and memories where it does not."""
        from hotset.sources.memory.recalling.beside import said_beside  # noqa: PLC0415 - as above
        from hotset.sources.memory.recalling.recall import Asking, recall  # noqa: PLC0415 - as above
        from hotset.sources.memory.recalling.tasks import detect  # noqa: PLC0415

        wanted, shape = task or detect(query).task, arrangement(store)
        found: list[Recalled] = []

        def find(words: str) -> Sequence[Recalled]:
            asking = Asking(words, self._clock(), task=wanted, deadline=self._seconds, advice=self._knobs.advice)
            found[:] = recall(asking, self._index(), store, from_dict(shape.weights)).items
            return found

        def beside(_items: Sequence[Item]) -> Iterable[Recalled]:
            return said_beside(found, store, query, but=SessionId(session) if session else None)

        def layers(items: Sequence[Item]) -> Mapping[str, Layer]:
            return self.layers(store, [item.memory for item in items if item.memory is not None])

        told = unfold(
            query, self.overview(store), shape, self._clock(), find=find, layers=layers, task=wanted, room=room, beside=beside
        )
        self._happened(
            store, session, told.loads, shown=[MemoryId(id) for id in told.memories.shown if is_memory_id(id)], task=wanted
        )
        return told

    def remind(
        self,
        store: Store,
        prompt: str,
        chosen: Remembering,
        *,
        opens: bool,
        max_tokens: int,
        how: str,
        session: SessionId | None = None,
        known: frozenset[str] = frozenset(),
    ) -> Reminder | None:
        """What is told with a prompt: at a session's start what there is to know, and whatever fits what is asked.

        Without what is `known` in the conversation already.
        """
        from hotset.sources.memory.recalling.recall import Asking, recall  # noqa: PLC0415 - as above
        from hotset.sources.memory.recalling.tasks import detect  # noqa: PLC0415

        overview = self.overview(store)
        if not overview.memories:
            return None
        shape, now, task = arrangement(store), self._clock(), detect(prompt).task
        if is_bypassed(shape, task, now):
            return None
        first = Told()
        if opens:
            first = told_index(overview, shape, now, query=prompt, max_tokens=min(chosen.index_tokens, max_tokens), how=how)
        lately = Told()
        if asks_what_was(prompt):
            fitting = [each.topic.name for each in fitting_topics(overview, shape, now, query=prompt)]
            lately = told_timeline(overview, shape, now, topics=fitting, max_tokens=max_tokens - first.tokens, how=how)
        asking = Asking(
            prompt,
            now,
            task=task,
            kinds=frozenset(_REMINDED_OF),
            talk=False,
            most=4 * self._knobs.reminders,
            advice=self._knobs.advice,
            deadline=_REMINDED_SHARE * chosen.offer_seconds * (OPENING if opens else 1.0),
        )
        items = recall(asking, self._index(), store, from_dict(shape.weights)).items
        said = {item.memory.text for item in items if item.memory is not None and item.id in known}
        new = [item for item in items if item.memory is not None and item.memory.text not in said and item.id not in known]
        helpful = (item for item in new if fits(item, prompt, task, self._knobs))
        vouched = (item for item in helpful if not _is_of(item, session) and _is_vouched(item))
        found = list(islice(vouched, self._knobs.reminders))
        room = max_tokens - first.tokens - lately.tokens
        told = self._told(store, found, prompt, task, max_tokens=room, how=how) if found else Told()
        parts = ((Layer.INDEX, first), (Layer.TIMELINE, lately), (Layer.FULL, told))
        loads = tuple(Load(layer, each.tokens, each.topics, tuple(each.shown)) for layer, each in parts if each.text)
        if not loads:
            return None
        text = "\n".join(each.text for _, each in parts if each.text)
        shown = {**lately.shown, **told.shown}
        return Reminder(text, sum(load.tokens for load in loads), task, shown, loads, overview.tokens)

    def behind(self, store: Store, first: Told, told: Reminder | None) -> Reminder:
        """Something else that a prompt is told first."""
        load = Load(Layer.TIMELINE, first.tokens)
        if told is None:
            return Reminder(first.text, first.tokens, Task.IMPLEMENTATION, {}, (load,), self.overview(store).tokens)
        return replace(told, text=f"{first.text}\n{told.text}", tokens=first.tokens + told.tokens, loads=(load, *told.loads))

    def layers(self, store: Store, memories: Sequence[Memory]) -> dict[str, Layer]:
        """How much of each is shown, by its age, its use, and what refers to it."""
        shape, now = arrangement(store), self._clock()
        uses = store.memory_uses([memory.id for memory in memories])
        return {
            memory.id: layer_of(
                memory,
                now,
                uses=uses.get(memory.id, Uses()),
                referenced=any(link.to == memory.id for link in store.memory_links(memory.id)),
                mass=self.masses.of(memory),
                arrangement=shape,
            )
            for memory in memories
        }

    def _told(
        self,
        store: Store,
        items: Sequence[Recalled],
        query: str,
        task: Task,
        *,
        max_tokens: int,
        how: str = HOW,
        beside: Iterable[Recalled] = (),
    ) -> Told:
        shape, layers = arrangement(store), self.layers(store, [item.memory for item in items if item.memory is not None])
        return told_memories(items, shape, layers, max_tokens=max_tokens, query=query, task=task, how=how, beside=beside)

    def _happened(
        self,
        store: Store,
        session: str,
        loads: Sequence[Load],
        *,
        shown: Sequence[MemoryId] = (),
        how: Used = Used.SHOWN,
        task: Task | None = None,
    ) -> None:
        """Nobody waits for it, and nobody is told where it cannot be kept."""
        now, where = self._clock(), SessionId(session) if session else None
        available = self.overview(store).tokens if loads else 0
        with suppress(HotsetError):
            for load in loads:
                self._keep(store, session, loaded_event(load, now, available=available, session=where, task=task, asked=True))
            if shown:
                self._keep(store, session, Remembered(uses=tuple(Use(id, how, now, where, task) for id in shown)))

    def _keep(self, store: Store, session: str, deposit: Deposit) -> None:
        if self._logged or session:
            store.keep(deposit)


def _is_of(item: Recalled, session: SessionId | None) -> bool:
    return session is not None and item.memory is not None and item.memory.source.session == session


def _is_vouched(item: Recalled) -> bool:
    """Words from outside are told to whoever asks, never pushed."""
    return item.memory is not None and item.memory.trust is not Trust.OUTSIDE


def arrangement(store: Store) -> Arrangement:
    try:
        detail = store.memory(ARRANGEMENT).detail
    except NotFound:
        return Arrangement()
    return detail if isinstance(detail, Arrangement) else Arrangement()
