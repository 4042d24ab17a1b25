"""The memories of a project: made from sessions, recalled, told step by step, corrected and taken back.

One door for every surface. Everything blocks, and can be used from any thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING

from hotset.config import MEMORY, Config
from hotset.errors import BadConfig, BadInput, HotsetError, NotFound, PageDamaged
from hotset.index.port import Index
from hotset.nouns.memory import (
    Detail,
    Episode,
    Layer,
    Memory,
    MemoryId,
    MemoryKind,
    MemoryLink,
    Provenance,
    Standing,
    Task,
    Trust,
    Uses,
)
from hotset.nouns.page import ROOT, Chain, SessionId
from hotset.nouns.turn import Event
from hotset.runtime import memory_changing as changing
from hotset.runtime.memory_continuity import TOKENS, Continuity
from hotset.runtime.memory_economics import SessionEconomics, economics, rearrange, settle_up
from hotset.runtime.memory_making import keep_memories, remember_session
from hotset.runtime.memory_near import near
from hotset.runtime.memory_telling import Answer, Reminder, Telling, arrangement
from hotset.sources.memory.disclosing.economics import Occasion
from hotset.sources.memory.disclosing.telling import Told
from hotset.sources.memory.disclosing.unfolding import Room, Unfolded
from hotset.sources.memory.recalling.weights import DEFAULT
from hotset.sources.memory.waiting import Waiting
from hotset.store.port import Store, Where

if TYPE_CHECKING:
    from hotset.sources.memory.managing.consolidating import Consolidated
    from hotset.sources.memory.managing.rollback import TakenBack
    from hotset.sources.memory.recalling.adapting import Adapted

_log = logging.getLogger("hotset")

Progress = Callable[[str, int, int], None]
"""What is done, how much of it, and of how much."""

_KEEP_SECONDS = 30.0
_LISTED = frozenset(MemoryKind) - {MemoryKind.ARRANGEMENT}
_SEEN = frozenset({Standing.ACTIVE, Standing.CANDIDATE, Standing.SUPERSEDED})
"""What a list shows unless it is asked for something else."""

_INDEX_SECONDS = 0.1
_MOST_GRAPH = 500
_MOST_BY_RULES = 100


def silent(_what: str, _done: int, _of: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Shown:
    """One memory with all that is known about it."""

    memory: Memory
    versions: tuple[Memory, ...]
    links: tuple[MemoryLink, ...]
    uses: Uses
    layer: Layer


@dataclass(frozen=True, slots=True)
class Graph:
    memories: tuple[Memory, ...]
    links: tuple[MemoryLink, ...]


class Memories:
    def __init__(
        self,
        config: Config,
        store: Callable[[], Store],
        index: Callable[[], Index | None],
        clock: Callable[[], float] = time.time,
        *,
        logged: bool = True,
    ) -> None:
        """`store` raises a `HotsetError` while there is none; `index` gives None.

        What models are told is `logged`: it costs tokens, and what they read of it says what was of use. Where people look, only
        what is asked in the name of a session is.
        """
        self._config = config
        self._store = store
        self._index = index
        self._clock = clock
        self._folder = config.folder / MEMORY
        self.waiting = Waiting(self._folder)
        self._telling = Telling(self._folder, index, clock, logged=logged)
        self._continuity = Continuity(config.project, self._folder)
        self._encoding = threading.Lock()
        self._given_up: dict[SessionId, float] = {}
        """Sessions that could not be remembered, as far as they went then."""
        self.by_rules: deque[MemoryId] = deque(maxlen=_MOST_BY_RULES)
        """Episodes that were put into words by rules since the start: a model may find better ones."""

    @property
    def enabled(self) -> bool:
        return self._config.memory.enabled

    def warm(self) -> None:
        """Loads what the first prompt needs, while nobody waits; where nothing is remembered that is nothing."""
        with suppress(HotsetError):
            self.waiting.look(self._open())
            if not self.is_empty:
                self._load()

    def _load(self) -> None:
        import hotset.sources.memory.encoding.encode  # noqa: PLC0415 - whoever opens a session remembers those before it
        import hotset.sources.memory.managing.superseding  # noqa: PLC0415
        import hotset.sources.memory.recalling.recall  # noqa: F401, PLC0415 - numpy, which no start waits for
        from hotset.sources.memory.recalling.tasks import detect  # noqa: PLC0415
        from hotset.sources.memory.recalling.when import spoken  # noqa: PLC0415

        detect("")
        spoken("", self._clock())

    # What a model or a person asks

    def index(self, query: str = "", *, max_tokens: int = 100, session: str = "", how: str = "") -> Told:
        """What there is to know: topics with their sizes, those that fit the query first."""
        return self._telling.index(self._open(), query, max_tokens, session, how)

    def timeline(self, query: str = "", *, topics: Sequence[str] = (), max_tokens: int = 500, session: str = "") -> Told:
        """What was done lately, what was decided, and what is open."""
        return self._telling.timeline(self._open(), query, topics, max_tokens, session)

    def recall(
        self,
        query: str,
        *,
        task: str = "",
        kinds: Sequence[str] = (),
        most: int = 10,
        max_tokens: int = 2000,
        session: str = "",
    ) -> Answer:
        """What is remembered of it, and why that: memories, and the words that were said. Raises `BadInput`."""
        if not query.strip():
            raise BadInput("what is to be recalled? Ask with a few words")
        from hotset.sources.memory.recalling.recall import Asking  # noqa: PLC0415 - numpy

        wanted = frozenset(changing.kind_named(kind) for kind in kinds)
        asking = Asking(
            query,
            self._clock(),
            task=task_named(task) if task else None,
            kinds=wanted,
            talk=not wanted,
            session=SessionId(session) if session else None,
            most=most,
        )
        store = self._open()
        self._index_them(store)
        return self._telling.recall(store, asking, max_tokens, session)

    def unfold(self, query: str, *, task: str = "", room: Room | None = None, session: str = "") -> Unfolded:
        """As far as a question needs: what there is, what was done, and only then the memories themselves."""
        return self._telling.unfold(self._open(), query, task_named(task) if task else None, room or Room(), session)

    def remind(
        self,
        prompt: str,
        *,
        opens: bool,
        max_tokens: int,
        how: str,
        after: Chain = ROOT,
        known: frozenset[str] = frozenset(),
    ) -> Reminder | None:
        """What a prompt is told without having asked; None where nothing fits.

        `after` is the message before it: what its own session came to so far it knows. `known` are the ids of what it was told.
        """
        chosen, store = self._config.memory, self._open()
        continuity = Told()
        if opens:
            with suppress(BadInput):  # somebody else's file: whatever is wrong with it, `hotset continuity show` says it
                continuity = self._continuity.told(min(TOKENS, max_tokens // 2))
        self._index_them(store)
        room = max_tokens - continuity.tokens
        # A session that opens came to nothing yet; what a client says before its first prompt stands in many sessions alike.
        own = store.pages(Where(chain=after, limit=1)) if after and not opens else ()
        session = next((page.session for page in own), None)
        told = self._telling.remind(store, prompt, chosen, opens=opens, max_tokens=room, how=how, session=session, known=known)
        return self._telling.behind(store, continuity, told) if continuity.text else told

    @property
    def is_empty(self) -> bool:
        """Nothing is remembered."""
        return not self._telling.overview(self._open()).memories

    def read(self, id: str, *, max_tokens: int = 2000, session: str = "") -> Told:
        """One memory, whole as far as it fits, with what it is linked to."""
        store = self._open()
        return self._telling.read(store, changing.meant(store, id), max_tokens, session)

    def remember(
        self,
        text: str,
        *,
        kind: str = "fact",
        title: str = "",
        topics: Sequence[str] = (),
        by: str,
        trust: Trust,
        session: str = "",
        agent: str = "",
        detail: Detail = None,
    ) -> Memory:
        """Keeps what somebody put into words, and settles what it means for older memories. The same words are kept once."""
        from hotset.sources.memory.encoding.remembering import remembered  # noqa: PLC0415 - a tenth of a second

        store, now = self._open(), self._clock()
        source = Provenance(by, SessionId(session) if session else None, agent)
        words = changing.worded(text)
        made = remembered(changing.kind_named(kind), words, title=title, trust=trust, source=source, created=now)
        made = replace(
            made,
            topics=tuple(map(changing.one_line, topics)) or made.topics,
            detail=made.detail if detail is None else changing.detailed(detail),
        )
        with suppress(NotFound):
            before = store.memory(made.id)
            if before.standing is Standing.FORGOTTEN and trust is not Trust.PERSON:
                raise BadInput(f"somebody wanted this forgotten; a person can bring it back: hotset memory restore {made.id}")
            if before.standing in (Standing.FORGOTTEN, Standing.SUPERSEDED, Standing.MERGED) or trust is Trust.PERSON:
                return self._said_again(store, before, made)
        kept = keep_memories(store, (made,), (), now, self._near(store))
        self._index_them(store)
        return store.memory(kept.absorbed.get(made.id, made.id))

    def forget(self, id: str, *, erase: bool = False, why: str = "") -> Memory | None:
        store = self._store()
        if not erase:
            return changing.forget(store, id, why)
        erased, index = changing.erase(store, id), self._index()
        if index is not None:
            index.purge([erased])
        self._telling.renew()
        return None

    # What people look at and correct

    def get(self, id: str) -> Memory:
        return changing.meant(self._store(), id)

    def list(
        self,
        *,
        kinds: frozenset[MemoryKind] = frozenset(),
        standings: frozenset[Standing] = frozenset(),
        topic: str = "",
        since: float | None = None,
        until: float | None = None,
        limit: int | None = 50,
    ) -> Iterator[Memory]:
        """The newest first. Without standings everything but what was forgotten or merged."""
        every = (
            memory
            for memory in self._store().memories(kinds or _LISTED, standings or _SEEN)
            if (not topic or topic in memory.topics)
            and (since is None or memory.created >= since)
            and (until is None or memory.created < until)
        )
        if limit is None:
            return iter(sorted(every, key=_newest, reverse=True))
        return iter(nlargest(limit, every, key=_newest))

    def shown(self, id: str) -> Shown:
        store = self._store()
        memory = changing.meant(store, id)
        links = tuple(store.memory_links(memory.id))
        uses = store.memory_uses([memory.id]).get(memory.id, Uses())
        layer = self._telling.layers(store, [memory])[memory.id]
        return Shown(memory, tuple(store.memory_versions(memory.id)), links, uses, layer)

    def edit(
        self,
        id: str,
        *,
        text: str | None = None,
        title: str | None = None,
        topics: Sequence[str] | None = None,
        ending: str | None = None,
        confidence: float | None = None,
        pinned: bool | None = None,
    ) -> Memory:
        store = self._store()
        if ending is not None:
            self._tell_ending(store, changing.meant(store, id), str(changing.ending_named(ending)))
        return changing.edit(
            store,
            id,
            text=text,
            title=title,
            topics=topics,
            ending=ending,
            confidence=confidence,
            pinned=pinned,
        )

    def confirm(self, id: str) -> Memory:
        return changing.confirm(self._store(), id)

    def outcome(self, session: str, ending: str) -> None:
        """How the latest task of a session came out, told by whoever knows."""
        from hotset.sources.memory.encoding.reading import OUTCOME  # noqa: PLC0415 - only where somebody tells

        store, wanted = self._store(), changing.ending_named(ending)
        last = max((turn.number for turn in store.turns(store.session(SessionId(session)).id)), default=0)
        told = Event(OUTCOME, self._clock(), SessionId(session), last, {"outcome": str(wanted)})
        store.keep(told).result(_KEEP_SECONDS)
        self._remember(store, SessionId(session))

    def why(self, id: str) -> tuple[str, ...]:
        from hotset.runtime.memory_explaining import explained  # noqa: PLC0415 - only where somebody asks

        return explained(self.shown(id), self._store())

    def graph(self, id: str = "", *, depth: int = 1) -> Graph:
        """What is linked with what: around one memory, or the links of all."""
        store = self._store()
        links = list(dict.fromkeys(_around(store, changing.meant(store, id).id, depth) if id else store.memory_links()))
        named = dict.fromkeys(each for link in links for each in (link.of, link.to))
        if id:
            named = {changing.meant(store, id).id: None, **named}
        memories = []
        for each in list(named)[:_MOST_GRAPH]:
            with suppress(NotFound):
                memories.append(store.memory(each))
        there = {memory.id for memory in memories}
        return Graph(tuple(memories), tuple(link for link in links if link.of in there and link.to in there))

    # What keeps them in order

    def encode(
        self, progress: Progress | None = None, *, quiet: float = 0.0, seconds: float | None = None, latest: int | None = None
    ) -> int:
        """Sessions that went on since become memories; those in which nothing was said for so long. Gives how many did.

        `latest` leaves all but so many for later: those that ended last.
        """
        store = self._open()
        until = None if seconds is None else time.monotonic() + seconds
        with self._encoding:
            self.waiting.look(store)
            ready = self.waiting.ready(self._clock() - quiet)[-latest if latest is not None else None :]
            done = 0
            for number, session in enumerate(ready, 1):
                done += self._try_to_remember(store, session)
                (progress or silent)("remember sessions", number, len(ready))
                if until is not None and time.monotonic() > until:
                    break
            if done:
                self.waiting.save()
                self._load()  # whoever opens the next session is told of this one, and does not wait for it
                self._index_them(store)
                self._keep_continuity()
        return done

    def consolidate(self, progress: Progress | None = None) -> Consolidated:
        from hotset.index.embed.choosing import embedders  # noqa: PLC0415 - numpy
        from hotset.nouns.embedding import OFF, Embedding  # noqa: PLC0415
        from hotset.sources.memory.managing.consolidating import consolidate  # noqa: PLC0415

        store, documents = self._open(), embedders(Embedding(OFF)).documents
        self.adapt()
        done = consolidate(store, documents.embed, self._clock(), progress=progress or silent)
        self._telling.masses.renew(store)
        self._index_them(store)
        return done

    def adapt(self) -> Adapted:
        """Learns the weights of this store's recalls from what was read of them; kept only where that is beyond doubt."""
        from hotset.runtime.memory_adapting import adapted  # noqa: PLC0415 - numpy

        store = self._open()
        learned, shape = adapted(store.events()), arrangement(store)
        weights = dict(learned.weights) if dict(learned.weights) != DEFAULT.as_dict() else {}
        if weights != shape.weights:
            rearrange(store, replace(shape, weights=weights), self._clock(), learned.why)
        return learned

    def runs(self) -> Sequence[tuple[str, int, float]]:
        return self._store().memory_runs()

    def undo(self, run: str) -> int:
        from hotset.sources.memory.managing.undoing import undo  # noqa: PLC0415 - only where somebody asks

        return undo(self._store(), run, self._clock())

    def economics(self, session: str = "") -> Sequence[SessionEconomics]:
        """What memories cost and saved, session by session, the newest first."""
        return economics(self._store(), SessionId(session) if session else None)

    def settle_up(self, session: SessionId, occasion: Occasion) -> tuple[Event, ...]:
        """Looks at what memories cost in a session, and acts where they cost too much. Gives what was done."""
        return settle_up(self._open(), self._telling, session, occasion, self._clock())

    def would_take_back(self, *, place: str = "", session: str = "", agent: str = "", by: str = "") -> TakenBack:
        """What `rollback` would do."""
        from hotset.sources.memory.managing.rollback import Origin, take_back  # noqa: PLC0415 - only where somebody asks

        return take_back(self._store(), Origin(place, session, agent, by), self._clock())

    def follow(self, progress: Progress | None = None, seconds: float = 30.0) -> None:
        """Brings the index up to what is remembered and was said, as far as there is time."""
        from hotset.sources.history.following import follow  # noqa: PLC0415 - with the index, and not before
        from hotset.sources.memory.following import follow_memories  # noqa: PLC0415

        store, index, until = self._store(), self._index(), time.monotonic() + seconds
        if index is None:
            return
        passed = 0
        while time.monotonic() < until:
            stint = time.monotonic() + _INDEX_SECONDS
            if not (more := follow(store, index, stint) + follow_memories(store, index, stint)):
                return
            passed += more
            (progress or silent)("index what was said", passed, 0)

    def rollback(self, *, place: str = "", session: str = "", agent: str = "", by: str = "") -> tuple[MemoryId, ...]:
        from hotset.sources.memory.managing.rollback import rollback  # noqa: PLC0415 - only where somebody asks

        if not (place or session or agent or by):
            raise BadInput("say what to take back: a place, a session, an agent, or who put it into words")
        return rollback(self._store(), self._clock(), place=place, session=session, agent=agent, by=by)

    def restore(self, ids: Sequence[str] = (), *, run: str = "") -> int:
        from hotset.sources.memory.managing.undoing import restore  # noqa: PLC0415 - only where somebody asks

        store = self._store()
        if run:
            return self.undo(run)
        return restore(store, [changing.meant(store, id).id for id in ids], self._clock())

    # Files

    def export(self, folder: Path, form: str, progress: Progress | None = None) -> int:
        """Writes every memory into a folder. Gives how many. Raises `BadInput`."""
        from hotset.sources.memory.files.exchanging import Form, export_memories  # noqa: PLC0415 - only where somebody asks

        return export_memories(self._store(), folder, Form(form), progress or silent).memories

    def import_(self, folder: Path, form: str = "", *, trusted: bool = False, progress: Progress | None = None) -> int:
        """Takes in what a folder says; `trusted` where a person stands for it. Gives how many are new or changed."""
        from hotset.sources.memory.files.exchanging import Form, import_memories  # noqa: PLC0415 - only where somebody asks

        store = self._open()
        taken = import_memories(
            store, folder, Form(form) if form else None, now=self._clock(), vouched=trusted, progress=progress or silent
        )
        self._index_them(store)
        return taken.new + taken.changed

    # CONTINUITY.md

    @property
    def is_continuity_on(self) -> bool:
        return self._continuity.is_on

    def continuity_on(self) -> None:
        self._continuity.switch(on=True)

    def continuity_off(self) -> None:
        self._continuity.switch(on=False)

    def accept_continuity(self) -> bool:
        """A person stands for what the file says now: it is told as theirs. False where there is none."""
        return self._continuity.accept()

    def continuity(self) -> str | None:
        """What the file says; None where there is none. Raises `BadInput` where it cannot be read."""
        return self._continuity.text()

    def write_continuity(self) -> Path:
        """Brings the file up to date; what people wrote in it stays. Raises `BadInput`."""
        store = self._open()
        return self._continuity.write(store, self._telling.overview(store))

    def _try_to_remember(self, store: Store, session: SessionId) -> bool:
        """Was it remembered? What fails by itself is told once and left alone until it goes on: the others do not wait for it."""
        said = self.waiting.last_said(session)
        if self._given_up.get(session) == said:
            return False
        try:
            self._remember(store, session)
        except Exception as error:  # a bug of ours, or a page that is damaged, costs the memories of one session
            if isinstance(error, HotsetError) and not isinstance(error, PageDamaged):
                raise
            self._given_up[session] = said
            told = _log.isEnabledFor(logging.DEBUG)
            _log.warning("session %s cannot be remembered: %s", session, type(error).__name__, exc_info=told)
            return False
        return True

    def _remember(self, store: Store, session: SessionId) -> None:
        said = self.waiting.last_said(session)
        with suppress(NotFound):  # a session that an export left out
            made = remember_session(store, session, self._clock(), self._near(store))
            self.by_rules.extend(each.id for each in made.versions if each.kind is MemoryKind.EPISODE)
            self.settle_up(session, "session")
        self.waiting.done(session, said)

    def _index_them(self, store: Store) -> None:
        """What was kept just now is found by whoever asks next; what takes longer is left to whoever follows the store."""
        from hotset.sources.memory.following import follow_memories  # noqa: PLC0415 - with the index, and not before

        index = self._index()
        if index is not None:
            with suppress(HotsetError, OSError):
                follow_memories(store, index, time.monotonic() + _INDEX_SECONDS)

    def _tell_ending(self, store: Store, memory: Memory, ending: str) -> None:
        """So that it holds when the session goes on and is looked at again."""
        from hotset.sources.memory.encoding.reading import OUTCOME  # noqa: PLC0415 - only where somebody tells

        if isinstance(memory.detail, Episode) and memory.source.session is not None:
            told = Event(OUTCOME, self._clock(), memory.source.session, memory.detail.turns[1], {"outcome": ending})
            store.keep(told).result(_KEEP_SECONDS)

    def _keep_continuity(self) -> None:
        if self._continuity.is_on:
            with suppress(BadInput):  # a file that cannot be written is a matter for `hotset continuity write`
                self.write_continuity()

    def _said_again(self, store: Store, before: Memory, made: Memory) -> Memory:
        """A person says it: that is the last word, whatever became of it before."""
        wanted = replace(
            before,
            standing=made.standing,
            trust=made.trust,
            valid_until=None,
            confidence=max(before.confidence, made.confidence),
            source=replace(before.source, by=made.source.by),
        )
        return changing.changed(store, before.id, lambda _latest: wanted, "it was said again")

    def _near(self, store: Store) -> Callable[[Memory], Sequence[Memory]]:
        return partial(near, store, self._index())

    def _open(self) -> Store:
        """Raises `BadConfig` where the operator wants no memory, and a `HotsetError` while there is no store.

        What is remembered already can be looked at and taken back all the same: see `_store`.
        """
        if not self._config.memory.enabled:
            origin = self._config.origins.get("memory", "")
            raise BadConfig(f"memory is switched off ({origin}): HOTSET_MEMORY=on, or enabled = true in [memory]")
        return self._store()


@contextmanager
def open_memories(config: Config) -> Iterator[Memories]:
    """For a person, in a process of its own that looks and goes."""
    from hotset.runtime.following import open_index  # noqa: PLC0415 - with the index
    from hotset.store.sqlite import SqliteStore  # noqa: PLC0415

    with ExitStack() as opened:
        store = opened.enter_context(SqliteStore.open(config.folder))
        found: list[Index] = []

        def index() -> Index | None:
            if not found and config.search:
                with suppress(HotsetError, OSError, ImportError):
                    made = open_index(config.folder, config.embedding, folds=False)
                    opened.callback(made.close)
                    found.append(made)
            return found[0] if found else None

        yield Memories(config, lambda: store, index, logged=False)


def task_named(name: str) -> Task:
    try:
        return Task(name.strip().lower())
    except ValueError:
        raise BadInput(f"a task is one of {', '.join(Task)}, not {name[:40]!r}") from None


def _newest(memory: Memory) -> tuple[float, str]:
    return memory.created, memory.id


def _around(store: Store, id: MemoryId, depth: int) -> Iterator[MemoryLink]:
    seen, border = {id}, [id]
    for _ in range(depth):
        links = [link for each in border for link in store.memory_links(each)]
        yield from links
        border = list(dict.fromkeys(each for link in links for each in (link.of, link.to) if each not in seen))
        seen.update(border)
        if len(seen) > _MOST_GRAPH:
            return
