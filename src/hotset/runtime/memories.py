"""The memories of a project: made from sessions, recalled, told step by step, corrected and taken back.

One door for every surface. Everything blocks, and can be used from any thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from hotset.config import Config
from hotset.errors import BadInput, HotsetError, NotFound
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
from hotset.nouns.progress import Progress, silent
from hotset.runtime import memory_changing as changing
from hotset.runtime.memory_continuity import TOKENS, Continuity
from hotset.runtime.memory_ground import Ground
from hotset.runtime.memory_making import keep_memories
from hotset.runtime.memory_telling import SECONDS, Answer, Reminder, Telling
from hotset.runtime.memory_upkeep import Upkeep, load
from hotset.sources.memory.disclosing.telling import Told
from hotset.sources.memory.disclosing.unfolding import Room, Unfolded
from hotset.store.port import Store, Where

_LISTED = frozenset(MemoryKind) - {MemoryKind.ARRANGEMENT}
_SEEN = frozenset({Standing.ACTIVE, Standing.CANDIDATE, Standing.SUPERSEDED})
"""What a list shows unless it is asked for something else."""

_MOST_GRAPH = 500


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
        self._ground = Ground(config, store, index, clock)
        knobs = config.knobs_for("").memory
        self._telling = Telling(self._ground.folder, index, clock, knobs=knobs, logged=logged)
        self.continuity = Continuity(
            config.project, self._ground.store, self._ground.clock, self._ground.folder / "continuity.json"
        )
        self.upkeep = Upkeep(self._ground, self._telling, self.continuity)

    @property
    def enabled(self) -> bool:
        return self._ground.config.memory.enabled

    def warm(self) -> None:
        """Loads what the first prompt needs, while nobody waits; where nothing is remembered that is nothing."""
        with suppress(HotsetError):
            self.upkeep.pending.look(self._ground.open())
            if not self.is_empty:
                load()

    # What a model or a person asks

    def index(self, query: str = "", *, max_tokens: int = 100, session: str = "", how: str = "") -> Told:
        """What there is to know: topics with their sizes, those that fit the query first."""
        return self._telling.index(self._ground.open(), query, max_tokens, session, how)

    def timeline(self, query: str = "", *, topics: Sequence[str] = (), max_tokens: int = 500, session: str = "") -> Told:
        """What was done lately, what was decided, and what is open."""
        return self._telling.timeline(self._ground.open(), query, topics, max_tokens, session)

    def recall(
        self,
        query: str,
        *,
        task: str = "",
        kinds: Sequence[str] = (),
        most: int = 10,
        max_tokens: int = 2000,
        session: str = "",
        more: int = 0,
    ) -> Answer:
        """What is remembered of it, and why that: memories, and the words that were said. Raises `BadInput`.

        For whoever needs `more` (1, then 2, and so on): what the answers before did not tell, also from sessions that the
        question's own words hardly reach. Nothing is told where that was all.
        """
        if not query.strip():
            raise BadInput("what is to be recalled? Ask with a few words")
        if more < 0:
            raise BadInput("more is 0 for the first answer, and then 1, 2 and so on")
        from hotset.sources.memory.recalling.recall import Asking  # noqa: PLC0415 - numpy

        wanted = frozenset(changing.kind_named(kind) for kind in kinds)
        asking = Asking(
            query,
            self._ground.clock(),
            task=task_named(task) if task else None,
            kinds=wanted,
            talk=not wanted,
            session=SessionId(session) if session else None,
            most=most,
            deadline=SECONDS,
        )
        store = self._ground.open()
        self._ground.index_them(store)
        return self._telling.recall(store, asking, max_tokens, session, more)

    def unfold(self, query: str, *, task: str = "", room: Room | None = None, session: str = "") -> Unfolded:
        """As far as a question needs: what there is, what was done, and only then the memories themselves."""
        return self._telling.unfold(self._ground.open(), query, task_named(task) if task else None, room or Room(), session)

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
        chosen, store = self._ground.config.memory, self._ground.open()
        continuity = Told()
        if opens:
            with suppress(BadInput):  # somebody else's file: whatever is wrong with it, `hotset continuity show` says it
                continuity = self.continuity.told(min(TOKENS, max_tokens // 2))
        self._ground.index_them(store)
        room = max_tokens - continuity.tokens
        # A session that opens came to nothing yet; what a client says before its first prompt stands in many sessions alike.
        own = store.pages(Where(chain=after, limit=1)) if after and not opens else ()
        session = next((page.session for page in own), None)
        told = self._telling.remind(store, prompt, chosen, opens=opens, max_tokens=room, how=how, session=session, known=known)
        return self._telling.behind(store, continuity, told) if continuity.text else told

    @property
    def is_empty(self) -> bool:
        """Nothing is remembered."""
        return not self._telling.overview(self._ground.open()).memories

    def read(self, id: str, *, max_tokens: int = 2000, session: str = "") -> Told:
        """One memory, whole as far as it fits, with what it is linked to."""
        store = self._ground.open()
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

        store, now = self._ground.open(), self._ground.clock()
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
        kept = keep_memories(store, (made,), (), now, self._ground.near(store))
        self._ground.index_them(store)
        return store.memory(kept.absorbed.get(made.id, made.id))

    def forget(self, id: str, *, erase: bool = False, why: str = "") -> Memory | None:
        store = self._ground.store()
        if not erase:
            return changing.forget(store, id, why)
        erased, index = changing.erase(store, id), self._ground.index()
        if index is not None:
            index.purge([erased])
        self._telling.renew()
        return None

    # What people look at and correct

    def get(self, id: str) -> Memory:
        return changing.meant(self._ground.store(), id)

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
        newest = self._ground.store().newest_memories(kinds or _LISTED, standings or _SEEN, since=since, until=until)
        return islice((memory for memory in newest if not topic or topic in memory.topics), limit)

    def shown(self, id: str) -> Shown:
        store = self._ground.store()
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
        store = self._ground.store()
        if ending is not None:
            self._tell_ending(store, changing.meant(store, id), ending)
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
        return changing.confirm(self._ground.store(), id)

    def why(self, id: str) -> tuple[str, ...]:
        from hotset.runtime.memory_explaining import explained  # noqa: PLC0415 - only where somebody asks

        return explained(self.shown(id), self._ground.store())

    def graph(self, id: str = "", *, depth: int = 1) -> Graph:
        """What is linked with what: around one memory, or the links of all."""
        store = self._ground.store()
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

    # Files

    def export(self, folder: Path, form: str, progress: Progress = silent) -> int:
        """Writes every memory into a folder. Gives how many. Raises `BadInput`."""
        from hotset.sources.memory.files.exchange import FileFormat, export_memories  # noqa: PLC0415 - only where somebody asks

        return export_memories(self._ground.store(), folder, FileFormat(form), progress)

    def import_(self, folder: Path, form: str = "", *, trusted: bool = False, progress: Progress = silent) -> int:
        """Takes in what a folder says; `trusted` where a person stands for it. Gives how many are new or changed."""
        from hotset.sources.memory.files.exchange import FileFormat, import_memories  # noqa: PLC0415 - only where somebody asks

        store = self._ground.open()
        taken = import_memories(
            store, folder, FileFormat(form) if form else None, now=self._ground.clock(), vouched=trusted, progress=progress
        )
        self._ground.index_them(store)
        return taken.new + taken.changed

    def _tell_ending(self, store: Store, memory: Memory, ending: str) -> None:
        """So that it holds when the session goes on and is looked at again."""
        wanted = changing.ending_named(ending)
        if isinstance(memory.detail, Episode) and memory.source.session is not None:
            changing.tell_ending(store, memory.source.session, memory.detail.turns[1], wanted, self._ground.clock())

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


@contextmanager
def open_memories(config: Config) -> Iterator[Memories]:
    """For a person, in a process of its own that looks and goes."""
    from hotset.index import open_index  # noqa: PLC0415 - with the index
    from hotset.store.sqlite import SqliteStore  # noqa: PLC0415

    with ExitStack() as opened:
        store = opened.enter_context(SqliteStore.open_to_look(config.folder))
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


def _around(store: Store, id: MemoryId, depth: int) -> Iterator[MemoryLink]:
    seen, border = {id}, [id]
    for _ in range(depth):
        links = [link for each in border for link in store.memory_links(each)]
        yield from links
        border = list(dict.fromkeys(each for link in links for each in (link.of, link.to) if each not in seen))
        seen.update(border)
        if len(seen) > _MOST_GRAPH:
            return
