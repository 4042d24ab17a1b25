"""Memory as a source: what is remembered and fits a prompt, shown behind it without being asked
for; and the upkeep in the background, by which sessions become memories while no call waits.

What is shown is hidden behind the prompt like any other thing that the model saw and the client did
not, as a row of the page table, so that every later request says it again at the same place.
Nothing here can fail a call or hold it up for long: no memories, a slow index, a fault of ours, and
the prompt goes out alone.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

from hotset import tokens
from hotset.errors import HotsetError, NotFound
from hotset.files.deadline_pool import DeadlinePool
from hotset.files.lru import Lru
from hotset.files.scope import PROCESS
from hotset.index.port import Index
from hotset.nouns.candidate import Candidate, OfferKind, OfferSlot
from hotset.nouns.deposit import Deposit, Remembered
from hotset.nouns.knobs import Remembering
from hotset.nouns.memory import (
    Episode,
    Layer,
    MemoryId,
    MemoryKind,
    MemoryRecord,
    MemoryUse,
    Standing,
    Task,
    Used,
)
from hotset.nouns.message import Usage
from hotset.nouns.page import SessionId
from hotset.nouns.retrieval import Place, SourceText
from hotset.nouns.search import Query, SearchHit, Sort, SourceHits
from hotset.nouns.turn import TurnRef
from hotset.sealing import seal
from hotset.sources.memory.economics import TRIGGER_LOADS, Occasion, loaded_event
from hotset.sources.memory.kinds import RULES, ids_in, is_memory_id
from hotset.sources.memory.layers import Load
from hotset.sources.memory.memory_text import memory_text
from hotset.sources.memory.memory_writer import follow_memories, next_version
from hotset.sources.port import Scene, Source, TurnEnd
from hotset.store.port import Store
from hotset.text.clip import clip_prose
from hotset.text.stems import stem
from hotset.text.terms import terms

_log = logging.getLogger("hotset")

if TYPE_CHECKING:
    from hotset.sources.memory.project_memories import ProjectMemories
    from hotset.sources.memory.recall import RecalledItem

_LOOKED_AT = 500  # characters: further down a prompt quotes
_WHAT_WAS = re.compile(
    r"(?i)\b(?:where (?:were|are|did) we|left off|(?:last|previous|earlier|yesterday's) "
    r"(?:time|session|conversation)"
    r"|what (?:did|have|had) (?:we|you)|pick(?:ing)? up|carry on|(?:continue|go on) "
    r"(?:where|with (?:what|yesterday))|catch me up"
    r"|what(?:'s| is) (?:left|next|the status|open)|where does (?:it|the work|this) stand)\b"
)

_RESUMES = re.compile(
    r"(?i)\A\W*(?:(?:ok(?:ay)?|please|now|let'?s|so)\W+)*(?:continue|go on|carry on|resume|proceed"
    r"|pick up|finish)\s+(?:with\s+|working on\s+|work on\s+)?(?:the|our|my|that|this)\s+\w+"
)

Ask = Callable[[str], Awaitable[tuple[str, Usage]]]
"""Sums up a text. Raises a `HotsetError` where nothing came of it."""

Propose = Callable[[str, str], Awaitable[tuple[str, Usage]]]
"""What a model writes by an instruction for a text. Raises a `HotsetError`, too."""

_PAGE_CHARACTERS = 1500  # characters of each page that the model reads
_MOST_PAGES = 12


def asks_what_was(prompt: str) -> bool:
    """True if the prompt asks for the state of the work, which any recent episode answers."""
    return _WHAT_WAS.search(prompt[:_LOOKED_AT]) is not None


def resumes(prompt: str) -> bool:
    """True if the prompt goes on with work that it names: "go on with the invoice import"."""
    return _RESUMES.match(prompt) is not None


def shares_most_words(question: str, memory: MemoryRecord) -> bool:
    """True if a memory has most telling words of a question that a model asked: half of them, and
    two if there are as many."""
    asked = _words(question)
    topics = " ".join(memory.topics)
    shared = len(asked & _words(f"{memory.title} {memory.text[:_COMPARED]} {topics}"))
    return bool(asked) and shared >= max(min(2, len(asked)), len(asked) / 2)


def _words(text: str) -> frozenset[str]:
    return frozenset(stem(term.text) for term in terms(text))


_COMPARED = 4000  # characters of a memory

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
"""Pause before the next look where nothing was remembered: a session becomes a memory only after a
longer silence."""

_ASKED = 2000  # characters of a prompt that are looked at

_KEPT_SECONDS = 0.2
"""After which what was kept of a read can be looked at: a commit takes milliseconds."""

_LONGEST_TITLE = 200

_STINT_SECONDS = 0.2
"""Of work at a time: a call that comes meanwhile shares the interpreter with it."""

_BREATH_SECONDS = 0.1
_LAST_SECONDS = 2.0
"""For the turns just before the end; the rest is remembered after the next start."""

_LEAST_EVERY = 0.05  # seconds between two upkeeps, however short a quiet session is
_HOUR = 3600.0
_MOST_SESSIONS = 1000


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
    worth: float
    """How likely the best of it is used."""

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
        events = (log(load, now, task=self.task, worth=self.worth) for load in self.loads)
        return (*((Remembered(uses=uses),) if uses else ()), *events)


def read_deposits(id: MemoryId, tokens: int, here: Place, now: float) -> tuple[Deposit, ...]:
    """What is to be kept of a memory that a model read in a conversation."""
    load = Load(Layer.FULL, tokens, (), (id,))
    event = loaded_event(
        load, now, available=0, session=here.session, turn=here.turn, prompt=here.turn, asked=True
    )
    return Remembered(uses=(MemoryUse(id, Used.READ, now, here.session),)), event


class Spawn(Protocol):
    """Starts a piece of work that is supervised and not waited for."""

    def __call__(self, work: Coroutine[Any, Any, None], name: str, /) -> asyncio.Task[None]: ...


def _spawn_task(work: Coroutine[Any, Any, None], name: str, /) -> asyncio.Task[None]:
    return PROCESS.task(work, name)


@dataclass(frozen=True, slots=True)
class EpisodeWriter:
    """Finds better words for episodes than rules do, and facts and procedures that rules miss."""

    model: str
    ask: Ask
    propose: Propose | None = None


class MemorySource(Source):
    """Memory as a source: what fits a new prompt, shown without being asked for.

    Its upkeep turns sessions into memories when they have been quiet for a while, and when
    hotset ends; it judges what memories cost and saved, and consolidates them now and then.
    """

    name = "memory"

    def __init__(
        self,
        memories: ProjectMemories,
        chosen: Remembering,
        monotonic: Callable[[], float] = time.monotonic,
        patience: float = 1.0,
        *,
        offers: bool = True,
        spawn: Spawn = _spawn_task,
        writer: EpisodeWriter | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """With `offers`, prompts are reminded of memories that they did not ask for."""
        self._memories = memories
        self._chosen = chosen
        self._monotonic = monotonic
        self._ready_seconds = _READY_SECONDS * patience
        self._offers = offers
        self._warming: Future[None] | None = None
        self._nothing_until = 0.0
        self._spawn = spawn
        self._writer = writer
        self._clock = clock
        self._closed = False
        self._encoded_version = -1
        """The store's version when the upkeep last left nothing to encode."""
        self._reads: Lru[SessionId, int] = Lru("memory reads", count=_MOST_SESSIONS, shrinks=False)
        """How many memories were read for the task at hand, by session."""
        self._has_news = False
        """A turn ended since the start."""
        self.every = max(chosen.quiet_seconds, _LEAST_EVERY) if chosen.enabled else 0.0

    def warm(self) -> None:
        """Begins to make ready what the first prompt needs; a prompt that comes meanwhile waits for
        it."""
        if self._offers:
            self._warming = DeadlinePool(1, "hotset-warm").submit(self._memories.warm)

    def is_quiet(self, *, opens: bool) -> bool:
        return not self._offers or (opens and self._monotonic() < self._nothing_until)

    def seconds(self, scene: Scene) -> float:
        if not scene.prompt:
            return 0.0
        warming = self._ready_seconds if self._warming is not None else 0.0
        return self._chosen.offer_seconds * (OPENING if scene.opens else 1.0) + warming

    def offer(self, scene: Scene, until: float) -> Sequence[Candidate]:
        """One candidate at most: what is remembered and fits the prompt, as one text."""
        asked = scene.prompt[:_ASKED]
        if not asked.strip() or scene.room <= 0 or self.is_quiet(opens=scene.opens):
            return ()
        if self._warming is not None:
            wait((self._warming,), max(0.0, until - self._monotonic()))
            self._warming = None  # done or failed, it is waited for once
        if scene.opens:
            quiet = min(_JUST_ENDED, self._chosen.quiet_seconds)
            seconds = _ENCODE_SHARE * self._chosen.offer_seconds
            self._memories.encode(quiet=quiet, seconds=seconds, latest=_LATEST)
        # Memories shown earlier in this conversation: they are still in it.
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
            knobs=scene.knobs.memory,
        )
        if reminder is not None:
            return (_candidate(reminder),)
        if self._memories.is_empty:
            rest = min(_NOTHING_SECONDS, self._chosen.quiet_seconds)
            self._nothing_until = self._monotonic() + rest
        return ()

    def heard(self, end: TurnEnd) -> Sequence[Deposit]:
        """Which memories were shown, and what that cost, under the session that saw them."""
        self._has_news = True
        reminders = [each.origin for each in end.taken if isinstance(each.origin, Reminder)]
        if end.ref is None or not reminders:
            return ()
        if self._reads.pop(end.ref.session):  # a new task: what did memories cost for the last?
            self._settle_up(end.ref.session, "task")
        return [each for shown in reminders for each in shown.deposits(end.ref, end.scene.now)]

    def find(self, query: Query) -> SourceHits:
        """The memories that `hotset memory search` finds, without the conversation's own words."""
        if not query.words.strip():
            return SourceHits()
        kinds = [kind for kind in MemoryKind if kind is not MemoryKind.ARRANGEMENT]  # our own
        room = 2000 if self._memories.logged else 0  # what is logged says what would be shown
        found = self._memories.recall(
            query.words, kinds=kinds, most=query.most, max_tokens=room
        ).recall.items
        since, until = query.only.since or -inf, query.only.until or inf
        latest = [each for each in found[: query.most] if since <= each.time < until]
        return SourceHits([_memory_hit(each) for each in latest])

    def read(self, id: str, store: Store) -> SourceText | None:
        return self._memories.read_text(id, store)

    def about(self, words: str, here: Place, max_tokens: int) -> SourceText | None:
        session = here.session or ""
        return self._memories.about(
            words, max_tokens=max_tokens, session=session, knobs=here.memory
        )

    def was_read(self, id: str, tokens: int, scene: Scene) -> Sequence[Deposit]:
        if not is_memory_id(id):
            return ()
        if scene.here.session is not None:
            # a moment later, when what is to be kept of it is on disk
            loop = asyncio.get_running_loop()
            loop.call_later(_KEPT_SECONDS, self._count_read, scene.here.session)
        return read_deposits(MemoryId(id), tokens, scene.here, scene.now)

    def follow(self, store: Store, index: Index, until: float) -> int:
        return follow_memories(store, index, until)

    async def upkeep(self) -> None:
        try:
            await self._encode()
            await self._reword()
            if await asyncio.to_thread(self._is_consolidation_due):
                await asyncio.to_thread(self._memories.consolidate)
        except HotsetError as error:
            _log.warning("sessions are not made into memories yet (%s)", type(error).__name__)

    async def close(self) -> None:
        """Encodes the last minutes, as far as that takes no longer than a moment."""
        self._closed = True
        if self.every and self._has_news:
            last = self._spawn(self._encode_last(), "remember the last minutes")
            await asyncio.wait({last}, timeout=2 * _LAST_SECONDS)

    async def _encode(self) -> None:
        version = await asyncio.to_thread(self._version)
        while version != self._encoded_version and not self._closed:
            if not await asyncio.to_thread(self._encode_some):
                if not self._memories.pending.many:
                    self._encoded_version = version
                return
            await asyncio.sleep(_BREATH_SECONDS)  # calls go first

    def _encode_some(self) -> bool:
        """True if there was anything to encode."""
        quiet = self._chosen.quiet_seconds
        return bool(self._memories.encode(quiet=quiet, seconds=_STINT_SECONDS))

    async def _encode_last(self) -> None:
        try:
            if await asyncio.to_thread(self._version) != self._encoded_version:
                await asyncio.to_thread(self._memories.encode, seconds=_LAST_SECONDS)
        except (HotsetError, RuntimeError):
            # no store, or a program that ends without closing: then after the next start
            return

    async def _reword(self) -> None:
        """A small model puts episodes into better words, where one is configured; those of the
        rules stay as a version."""
        while self._writer is not None and self._memories.by_rules and not self._closed:
            id = self._memories.by_rules.popleft()
            await reword(id, self._memories.store(), self._writer, self._clock())
            await self._propose(id)

    async def _propose(self, episode: MemoryId) -> None:
        """A small model proposes facts and procedures from the session of an episode, once for
        all of its episodes; what comes of it follows the rules of trust."""
        if self._writer is None or self._writer.propose is None:
            return
        try:
            ids = (episode, *self._memories.by_rules)
            session, *others = await asyncio.to_thread(self._memories.sessions_of, ids)
            if session is None or session in others:  # the last of its episodes asks
                return
            text = await asyncio.to_thread(self._memories.proposal_request, session)
            reply, _ = await self._writer.propose(*text)
            model = self._writer.model
            await asyncio.to_thread(self._memories.keep_proposals, session, reply, model)
        except HotsetError:
            return  # what the rules found remains

    def _is_consolidation_due(self) -> bool:
        hours = self._chosen.consolidate_hours
        return bool(hours) and self._memories.unconsolidated >= hours * _HOUR

    def _version(self) -> int:
        return self._memories.store().version()

    def _count_read(self, session: SessionId) -> None:
        """A memory was read whole. At the third it is judged what that costs."""
        times = (self._reads.get(session) or 0) + 1
        self._reads.put(session, times)
        if times == TRIGGER_LOADS:
            self._settle_up(session, "trigger")

    def _settle_up(self, session: SessionId, occasion: Occasion) -> None:
        async def settle_up() -> None:
            try:
                await asyncio.to_thread(self._memories.settle_up, session, occasion)
            except HotsetError:
                # the keeper reports the store's troubles; the session's end settles it again
                return

        if not self._closed:
            self._spawn(settle_up(), "judge what memories cost")


def read_memory(id: str, store: Store) -> SourceText | None:
    """A memory that is not forgotten; None for any other id."""
    from hotset.sources.memory.memory_text import memory_heading, memory_text  # noqa: PLC0415

    if not is_memory_id(id):
        return None
    try:
        memory = store.memory(MemoryId(id))
    except NotFound:
        return None
    if memory.standing is Standing.FORGOTTEN:
        return None
    return SourceText(memory_heading(memory), memory_text(memory, store))


def _memory_hit(item: RecalledItem) -> SearchHit:
    return SearchHit(
        Sort.MEMORY,
        item.score,
        item.id,
        f"{item.kind}: {clip_prose(item.title or item.text, _LONGEST_TITLE)}",
        f"hotset memory show {item.id}",
        item.time,
        detail={
            "id": item.id,
            "kind": item.kind,
            "title": item.title,
            "time": item.time,
            "text": item.text,
        },
    )


def _candidate(reminder: Reminder) -> Candidate:
    return Candidate(
        MemorySource.name,
        OfferKind.REMINDER,
        ",".join(reminder.shown) or "reminder",
        OfferSlot.BEHIND_PROMPT,
        reminder.text,
        reminder.tokens,
        reminder.worth,
        origin=reminder,
    )


async def reword(
    id: MemoryId, store: Store, writer: EpisodeWriter, now: float
) -> MemoryRecord | None:
    """Have a model reword an episode, in the background. None where the episode has changed
    meanwhile, or the reply is empty."""
    try:
        memory = await asyncio.to_thread(store.memory, id)
        if (
            memory.source.by != RULES
            or memory.standing is not Standing.ACTIVE
            or not isinstance(memory.detail, Episode)
        ):
            return None
        text, _ = await writer.ask(await asyncio.to_thread(_source, memory, store))
        words = seal(text).text
        if not words.strip():
            return None
        worded = replace(
            memory,
            text=words,
            tokens=tokens.count(words),
            source=replace(memory.source, by=writer.model),
        )
        version = next_version(worded, now, "", "a model put it into words")
        await asyncio.wrap_future(store.keep(Remembered((version,))))
    except HotsetError:
        return None  # the rules' words remain
    return version


def _source(memory: MemoryRecord, store: Store) -> str:
    """The text a model rewords: what the rules found, then the pages."""
    parts = [f"What rules found:\n{memory_text(memory, store)}"]
    for page in memory.source.pages[:_MOST_PAGES]:
        try:
            found = store.page(page)
            text = store.content(found.digest).decode("utf-8", "replace")
        except NotFound:
            continue
        parts.append(f"{found.role} said:\n{seal(text[:_PAGE_CHARACTERS]).text}")
    return "\n\n".join(parts)
