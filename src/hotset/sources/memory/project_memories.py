"""A project's memories: encode sessions, recall, disclose step by step, correct and take back.

The one interface for every surface. All methods block and are thread-safe.
"""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hotset import tokens
from hotset.config import MEMORY, Config
from hotset.errors import BadConfig, BadInput, HotsetError, NotFound, PageDamaged
from hotset.files.lru import Lru
from hotset.index.port import Index
from hotset.nouns.deposit import Deposit, Erased, Remembered
from hotset.nouns.knobs import MemoryKnobs
from hotset.nouns.memory import (
    Checkpoint,
    Detail,
    Ending,
    Episode,
    Layer,
    MemoryId,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    MemoryUse,
    Provenance,
    Standing,
    Task,
    Trust,
    Used,
    Uses,
)
from hotset.nouns.page import ROOT, Chain, SessionId
from hotset.nouns.progress import Progress, silent
from hotset.nouns.retrieval import SourceText
from hotset.nouns.turn import Event
from hotset.sources.memory import curation, memory_writer
from hotset.sources.memory.continuity import CONTINUITY_TOKENS, Continuity
from hotset.sources.memory.data_lines import HOW, RenderedText, without_head
from hotset.sources.memory.days import (
    Standup,
    TimeAnswer,
    WorkDay,
    answer_time,
    find_event,
    local_offset,
    render_days,
    standup_days,
)
from hotset.sources.memory.economics import (
    Occasion,
    SessionEconomics,
    arrangement,
    economics,
    loaded_event,
    settle_up,
)
from hotset.sources.memory.error_match import quoted_error, text_with_resolution
from hotset.sources.memory.kinds import (
    LASTING_KINDS,
    NAMED_KINDS,
    is_memory_id,
    kind_named,
)
from hotset.sources.memory.layers import (
    TOPIC_PREFIX,
    Disclosure,
    LayerRoom,
    Load,
    fitting_topics,
    is_bypassed,
    members_of,
    named_topics,
    open_lines,
    render_index,
    render_timeline,
    shown_topics,
    topics_with_id,
    unfold,
)
from hotset.sources.memory.memory_text import (
    TermRarity,
    conflict_notes,
    explain_memory,
    layer_of,
    render_memories,
    render_whole,
)
from hotset.sources.memory.overview import Overview, OverviewFile
from hotset.sources.memory.source import (
    HOW as RETRIEVE,
    Reminder,
    asks_what_was,
    read_memory,
    resumes,
    shares_most_words,
)
from hotset.sources.memory.time_parser import content_words
from hotset.store.port import Store, Where
from hotset.text.characters import squeeze

if TYPE_CHECKING:
    from hotset.sources.memory.consolidation import ConsolidationReport, RollbackPlan
    from hotset.sources.memory.recall import RecalledItem, RecallQuery, RecallResult
    from hotset.sources.memory.relevance import TellableMemories
    from hotset.sources.memory.tasks import TaskGuess

_Named = TypeVar("_Named", Task, Ending, curation.ReviewVerdict)
_log = logging.getLogger("hotset")

SECONDS = 3.0
"""Of a search that a model waits for."""

INDEX_SECONDS = 0.1
"""How long a caller waits for new memories to be indexed."""

_OVERVIEW_WORTH = 0.4
"""How likely topics or a list of earlier work are used."""

_USUAL_ROOM = 2000
"""Tokens of an answer."""

_BY_TIME = "temporal"
"""The strategy of an answer that lists a time, in the log."""

_OF_DAYS = 0.5
"""Of the room of an answer, for the days of a question of time that is also about a subject."""

_TOPIC_TOKENS = 4000
"""Of an opened topic: a model asks for a part of it, or gets as much as it has room for."""

_OF_ABOUT, _LEAST_ABOUT = 0.25, 200
"""Of the room of an answer from pages, for memories beside them; and tokens that they get at
least."""

ABOUT_SECONDS = 0.3
"""Of a search for memories beside pages."""

_ABOUT = 4
"""Memories shown beside pages."""

_MOST_SEARCHED = 5000
"""Newest memories that are looked through for a topic."""

_FURTHER = 100
"""Items of a search for more: about all that it looks at, and more lines than fit."""

_MOST_STEPS = 20
"""How often a caller can ask for more; each step is computed from the first."""

_SEEN = frozenset({Standing.ACTIVE, Standing.CANDIDATE, Standing.SUPERSEDED})
"""Standings that a list shows by default."""

_MOST_GRAPH = 500
_MOST_GIVEN_UP = 1000  # sessions
_MOST_BY_RULES = 100


@dataclass(frozen=True, slots=True)
class MemoryDetails:
    """One memory with all that is known about it."""

    memory: MemoryRecord
    versions: tuple[MemoryRecord, ...]
    links: tuple[MemoryLink, ...]
    uses: Uses
    layer: Layer


@dataclass(frozen=True, slots=True)
class MemoryGraph:
    memories: tuple[MemoryRecord, ...]
    links: tuple[MemoryLink, ...]


@dataclass(frozen=True, slots=True)
class RecallAnswer:
    """The answer to a recall."""

    text: str
    """For a model."""
    tokens: int
    recall: RecallResult
    loads: tuple[Load, ...] = ()
    shown: Mapping[str, Layer] = field(default_factory=dict)
    """The ids it names, and how much of each it shows."""
    days: tuple[WorkDay, ...] = ()
    """What lies in the range that a question of time asks for, in the order it asks for."""


@dataclass(frozen=True, slots=True)
class MemoryTopic:
    """A topic, for a person."""

    name: str
    count: int
    """Memories."""
    tokens: int
    last: float
    latest: str
    """The newest of its memories."""
    title: str
    """Of that one; empty if it is not a person's or an agent's."""


class ProjectMemories:
    def __init__(
        self,
        config: Config,
        store: Callable[[], Store],
        index: Callable[[], Index | None],
        clock: Callable[[], float] = time.time,
        *,
        follow_pages: Callable[[Store, Index, float], int] | None = None,
        logged: bool = True,
        knobs: Callable[[], MemoryKnobs] | None = None,
    ) -> None:
        """`store` raises a `HotsetError` while there is none; `index` returns None then.

        `follow_pages` indexes pages of sessions if this process has to do that itself. `logged`:
        log what models are shown, as it costs tokens and their reading shows its use. For surfaces
        of people, only requests in the name of a session are logged.
        """
        folder = config.folder / MEMORY
        self._config = config
        self._knobs_now = knobs or (lambda: config.knobs_for("").memory)
        self._seconds = SECONDS * config.patience
        self._index_seconds = INDEX_SECONDS * config.patience
        self.store = store
        self._index = index
        self._clock = clock
        self._follow_pages = follow_pages
        self.logged = logged
        self._rarity = TermRarity(folder)
        self._overviews = OverviewFile(folder)
        self.continuity = Continuity(config.project, store, clock, folder / "continuity.json")
        self.pending = memory_writer.PendingSessions(store, folder / "waiting.json")
        self.by_rules: deque[MemoryId] = deque(maxlen=_MOST_BY_RULES)
        """Episodes that were put into words by rules since the start: a model may find better
        ones."""
        self._encoding = threading.Lock()
        self._given_up: Lru[SessionId, float] = Lru(
            "sessions given up", count=_MOST_GIVEN_UP, shrinks=False
        )
        """Sessions that could not be remembered, as far as they went then."""

    @property
    def _knobs(self) -> MemoryKnobs:
        """The knobs of what is asked outside of a session."""
        return self._knobs_now()

    @property
    def is_empty(self) -> bool:
        """True if nothing is remembered."""
        return not self._overviews.latest(self._open()).memories

    def warm(self) -> None:
        """Load what the first prompt needs; nothing if nothing is remembered."""
        with suppress(HotsetError):
            self.pending.look(self._open())
            if not self.is_empty:
                _load_rooms()
                self._tellables.warm(self._open())

    # What a model or a person asks

    def index(
        self, query: str = "", *, max_tokens: int = 100, session: str = "", how: str = ""
    ) -> RenderedText:
        """The topics with their sizes, those that fit the query first."""
        store = self._open()
        text = render_index(
            self._overviews.latest(store),
            arrangement(store),
            self._clock(),
            query=query,
            max_tokens=max_tokens,
            how=how or HOW,
        )
        self._log_loads(store, session, [Load(Layer.INDEX, text.tokens, text.topics)])
        return text

    def timeline(
        self,
        query: str = "",
        *,
        topics: Sequence[str] = (),
        max_tokens: int = 500,
        session: str = "",
    ) -> RenderedText:
        """Recent actions, decisions and open work."""
        store, begun = self._open(), time.monotonic()
        text = self._render_lately(store, query, topics, max_tokens)
        took = 1000 * (time.monotonic() - begun)
        self._log_loads(store, session, [Load(Layer.TIMELINE, text.tokens, text.topics)])
        self._log_recall(
            store, session, ms=took, shown=text.shown, door="timeline", strategy=_BY_TIME
        )
        return text

    def _render_lately(
        self, store: Store, query: str, topics: Sequence[str], max_tokens: int
    ) -> RenderedText:
        overview, shape, now = self._overviews.latest(store), arrangement(store), self._clock()
        if query and not topics and (listed := self._answer_time(store, query)) is not None:
            return render_days(listed, local_offset, max_tokens=max_tokens or _USUAL_ROOM)
        if query and not topics:
            topics = [each.topic.name for each in fitting_topics(overview, shape, now, query=query)]
        return render_timeline(overview, shape, now, topics=topics, max_tokens=max_tokens)

    def recall(
        self,
        query: str,
        *,
        task: str = "",
        kinds: Sequence[str] = (),
        most: int = 10,
        max_tokens: int = _USUAL_ROOM,
        session: str = "",
        more: int = 0,
    ) -> RecallAnswer:
        """Memories and pages on a question, with reasons. Raises `BadInput`.

        Without room (`max_tokens` is 0) the items alone: no text of them for a model.
        With `more` (1, then 2, and so on): what earlier answers did not show, also from sessions
        that the question's words hardly match. The text is empty if that was all.
        """
        if not query.strip():
            raise BadInput("nothing to recall; ask with a few words")
        if more < 0:
            raise BadInput("more is 0 for the first answer, then 1, 2, ...")
        from hotset.sources.memory.recall import RecallQuery, neighbour_pages  # noqa: PLC0415

        wanted = frozenset(kind_named(kind) for kind in kinds)
        asking = RecallQuery(
            query,
            self._clock(),
            task=_parse_enum(Task, task, "a task is one of") if task else None,
            kinds=wanted,
            talk=not wanted,
            session=SessionId(session) if session else None,
            most=most,
            deadline=self._seconds,
        )
        store = self._open()
        self._index_memories(store)
        begun = time.monotonic()
        listed = self._answer_time(store, query, wanted)
        if listed is not None and not listed.question.subject:
            return self._recall_days(
                store,
                asking,
                listed,
                max_tokens=max_tokens,
                session=session,
                more=more,
                begun=begun,
            )
        found = self._find(store, asking)
        took = 1000 * (time.monotonic() - begun)
        near = neighbour_pages(found.items, store, query, but=asking.session) if asking.talk else ()
        dated = RenderedText()
        if listed is not None and not more:
            dated = render_days(
                listed, local_offset, max_tokens=int((max_tokens or _USUAL_ROOM) * _OF_DAYS)
            )
        text = RenderedText()
        if max_tokens:
            text = self._render(
                store,
                found.items,
                query,
                found.task,
                max_tokens=max_tokens - dated.tokens - bool(dated.text),
                beside=near,
            )
        if more:
            found, text = self._recall_more(store, asking, text, max_tokens, more)
        loads = (
            (Load(Layer.FULL, text.tokens, text.topics, tuple(text.shown)),) if text.shown else ()
        )
        memories = [
            item.memory.id
            for item in found.items
            if item.memory is not None and item.id in text.shown
        ]
        self._log_loads(store, session, loads, shown=memories, task=found.task)
        self._log_recall(
            store,
            session,
            candidates=() if more else found.candidates,  # weights are learned from first answers
            task=found.task,
            ms=took,
            shown=text.shown,
            strategy="more" if more else "",
        )
        if not dated.text or listed is None:
            return RecallAnswer(text.text, text.tokens, found, loads, text.shown)
        days = [_listed_item(each) for each in listed.memories]
        known = {item.id for item in days}
        items = (
            *days,
            *(each for each in found.items if each.id not in known and listed.spans(each.time)),
        )
        whole = "\n".join(filter(None, (dated.text, text.text)))
        return RecallAnswer(
            whole,
            tokens.count(whole),
            replace(found, items=items[:most]),
            (Load(Layer.TIMELINE, dated.tokens, dated.topics), *loads),
            {**dated.shown, **text.shown},
            listed.days,
        )

    def event_time(self, words: str) -> float | None:
        """When the event happened that words such as "the release" name; None if no memory mentions
        it."""
        event = find_event(words, self._open(), self._clock())
        return event.created if event is not None else None

    def standup(self, since: float, until: float | None = None) -> Standup:
        """What was done and decided since then, by day, and what is open."""
        store = self._open()
        overview, shape = self._overviews.latest(store), arrangement(store)
        last = max((line.time for line in overview.actions), default=None)
        return Standup(
            since,
            standup_days(store, since, until, local_offset),
            open_lines(overview, shape),
            last if last is not None and last < since else None,
        )

    def unfold(
        self, query: str, *, task: str = "", room: LayerRoom | None = None, session: str = ""
    ) -> Disclosure:
        """As much as a question needs: the index, the timeline if it may answer it, and memories if
        it does not."""
        from hotset.sources.memory.recall import RecallQuery, neighbour_pages  # noqa: PLC0415 - numpy
        from hotset.sources.memory.tasks import detect_task  # noqa: PLC0415

        store = self._open()
        wanted, shape = (
            _parse_enum(Task, task, "a task is one of") if task else detect_task(query).task,
            arrangement(store),
        )
        found: list[RecalledItem] = []

        def find(words: str) -> Sequence[RecalledItem]:
            asking = RecallQuery(
                words, self._clock(), task=wanted, deadline=self._seconds, advice=self._knobs.advice
            )
            found[:] = self._find(store, asking).items
            return found

        def beside(_items: Sequence[RecalledItem]) -> Iterable[RecalledItem]:
            return neighbour_pages(found, store, query, but=SessionId(session) if session else None)

        shown = unfold(
            query,
            self._overviews.latest(store),
            shape,
            self._clock(),
            find=find,
            layers=lambda items: self._layers(store, _memories(items)),
            task=wanted,
            room=room or LayerRoom(),
            beside=beside,
        )
        memories = [MemoryId(id) for id in shown.memories.shown if is_memory_id(id)]
        self._log_loads(store, session, shown.loads, shown=memories, task=wanted)
        return shown

    def remind(
        self,
        prompt: str,
        *,
        opens: bool,
        max_tokens: int,
        how: str,
        after: Chain = ROOT,
        known: frozenset[str] = frozenset(),
        knobs: MemoryKnobs | None = None,
    ) -> Reminder | None:
        """What a prompt is shown unasked: memories that change what is done next, and at the start
        of a session the topics that it is about.

        None if nothing fits. `after` is the message before it: memories of its own session are left
        out. `known` are ids that were shown already; `knobs` are the session's own.
        """
        store, continuity = self._open(), RenderedText()
        if opens:
            # a foreign file: `hotset continuity show` reports what is wrong with it
            with suppress(BadInput):
                continuity = self.continuity.render(min(CONTINUITY_TOKENS, max_tokens // 2))
        # A new session has no memories yet; a client's preamble is the same in many sessions.
        own = store.pages(Where(chain=after, limit=1)) if after and not opens else ()
        session = next((page.session for page in own), None)
        overview = self._overviews.latest(store)
        room = max_tokens - continuity.tokens
        reminder = self._reminder(
            store,
            overview,
            prompt,
            opens=opens,
            max_tokens=room,
            how=how,
            session=session,
            known=known,
            knobs=knobs or self._knobs,
        )
        if not continuity.text:
            return reminder
        load = Load(Layer.TIMELINE, continuity.tokens)
        if reminder is None:
            return Reminder(
                continuity.text,
                continuity.tokens,
                Task.IMPLEMENTATION,
                {},
                (load,),
                overview.tokens,
                _OVERVIEW_WORTH,
            )
        text, tokens = f"{continuity.text}\n{reminder.text}", continuity.tokens + reminder.tokens
        return replace(reminder, text=text, tokens=tokens, loads=(load, *reminder.loads))

    def read(self, id: str, *, max_tokens: int = 2000, session: str = "") -> RenderedText:
        """One memory with its links, or the memories of a topic, as much as fits."""
        store = self._open()
        if id.startswith(TOPIC_PREFIX):
            text = self._render_topic(store, id, max_tokens)
            if not text.text:
                raise NotFound(f"no topic {id[:80]!r}")
            load = Load(Layer.FULL, text.tokens, text.topics, tuple(text.shown))
            self._log_loads(store, session, [load], shown=_ids(text), how=Used.SHOWN)
            return text
        memory = memory_writer.find_memory(store, id)
        text = render_whole(memory, store, max_tokens)
        load = Load(Layer.FULL, text.tokens, memory.topics, (memory.id,))
        self._log_loads(store, session, [load], shown=[memory.id], how=Used.READ)
        return text

    def read_text(self, id: str, store: Store) -> SourceText | None:
        """A memory that is not forgotten, or the memories of a topic; None for any other id."""
        if not id.startswith(TOPIC_PREFIX) or not self._config.memory.enabled:
            return read_memory(id, store)
        return _source_text(self._render_topic(store, id, _TOPIC_TOKENS))

    def about(
        self,
        words: str,
        *,
        max_tokens: int,
        session: str = "",
        knobs: MemoryKnobs | None = None,
    ) -> SourceText | None:
        """What is remembered on a question or a topic that a model asks about in a conversation:
        the range of a question of time, a topic by its name, or the memories that share most of
        its words; None if there is none. `knobs` are the session's own."""
        try:
            store = self._open()
            overview, shape, now = self._overviews.latest(store), arrangement(store), self._clock()
            if not overview.memories or not words.strip():
                return None
            if (listed := self._answer_time(store, words)) is not None and listed.days:
                text = render_days(listed, local_offset, max_tokens=max_tokens, how=RETRIEVE)
                self._log_loads(store, session, [Load(Layer.TIMELINE, text.tokens, text.topics)])
                return _source_text(text, answers=not listed.question.subject)
            room = max(_LEAST_ABOUT, int(max_tokens * _OF_ABOUT))
            named = named_topics(words, overview, shape, now)
            text = self._render_topics(store, named, room) if named else RenderedText()
            if not text.text:
                text = self._recall_about(store, words, session, room, knobs or self._knobs)
            if text.text:
                load = Load(Layer.FULL, text.tokens, text.topics, tuple(text.shown))
                self._log_loads(store, session, [load], shown=_ids(text))
            return _source_text(text)
        except HotsetError:  # memory is off, or the store cannot be read: pages may answer
            return None

    # What people look at

    def unlogged(self) -> ProjectMemories:
        """The same for a person, whose looking is not counted as use."""
        other = copy.copy(self)
        other.logged = False
        return other

    def topics(self) -> tuple[Sequence[MemoryTopic], int, int]:
        """The topics, those with the most and the latest memories first; and how many memories and
        tokens there are in all."""
        store = self._open()
        known, shape = self._overviews.latest(store), arrangement(store)
        ranked = sorted(shown_topics(known, shape), key=lambda each: (-each.rank, each.name))
        topics = [
            MemoryTopic(each.name, each.count, each.tokens, each.last, each.latest, each.summary)
            for each in ranked
        ]
        return topics, known.memories, known.tokens

    def get(self, id: str) -> MemoryRecord:
        return memory_writer.find_memory(self.store(), id)

    def list(
        self,
        *,
        kinds: frozenset[MemoryKind] = frozenset(),
        standings: frozenset[Standing] = frozenset(),
        topic: str = "",
        since: float | None = None,
        until: float | None = None,
        limit: int | None = 50,
    ) -> Iterator[MemoryRecord]:
        """The newest first. Without `standings` all but forgotten and merged ones."""
        newest = self.store().newest_memories(
            kinds or NAMED_KINDS, standings or _SEEN, since=since, until=until
        )
        return islice((memory for memory in newest if not topic or topic in memory.topics), limit)

    def details(self, id: str) -> MemoryDetails:
        store = self.store()
        memory = memory_writer.find_memory(store, id)
        uses = store.memory_uses([memory.id]).get(memory.id, Uses())
        versions, links = (
            tuple(store.memory_versions(memory.id)),
            tuple(store.memory_links(memory.id)),
        )
        layer = self._layers(store, [memory])[memory.id]
        return MemoryDetails(memory, versions, links, uses, layer)

    def why(self, id: str) -> tuple[str, ...]:
        """Origin and state of a memory, in sentences for a person."""
        return explain_memory(self.details(id), self.store())

    def graph(self, id: str = "", *, depth: int = 1) -> MemoryGraph:
        """Memories and their links: around one memory, or all."""
        store = self.store()
        root = [memory_writer.find_memory(store, id).id] if id else []
        links = list(
            dict.fromkeys(_around(store, root[0], depth) if root else store.memory_links())
        )
        named = dict.fromkeys((*root, *(each for link in links for each in (link.of, link.to))))
        known = memory_writer.known_memories(store, list(named)[:_MOST_GRAPH])
        memories = {each.id: each for each in known}
        return MemoryGraph(
            tuple(memories.values()),
            tuple(link for link in links if link.of in memories and link.to in memories),
        )

    # What people and models change

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
    ) -> MemoryRecord:
        """Store a text and settle it among older memories. The same text is stored once."""
        from hotset.sources.memory.encode.encoder import worded_memory  # noqa: PLC0415 - a tenth of a second

        store, now = self._open(), self._clock()
        source = Provenance(by, SessionId(session) if session else None, agent)
        made = worded_memory(
            kind_named(kind),
            memory_writer.checked_text(text),
            title=title,
            trust=trust,
            source=source,
            created=now,
        )
        made = replace(
            made,
            topics=tuple(map(memory_writer.one_line, topics)) or made.topics,
            detail=made.detail if detail is None else memory_writer.sealed_detail(detail),
        )
        with suppress(NotFound):
            before = store.memory(made.id)
            if before.standing is Standing.FORGOTTEN and trust is not Trust.PERSON:
                raise BadInput(
                    f"this was forgotten; a person can restore it: hotset memory restore {made.id}"
                )
            if (
                before.standing in (Standing.FORGOTTEN, Standing.SUPERSEDED, Standing.MERGED)
                or trust is Trust.PERSON
            ):
                # A person repeats it: that overrides any earlier decision.
                wanted = replace(
                    before,
                    standing=made.standing,
                    trust=made.trust,
                    valid_until=None,
                    confidence=max(before.confidence, made.confidence),
                    source=replace(before.source, by=made.source.by),
                )
                return memory_writer.change_memory(
                    store, before.id, lambda _latest: wanted, "it was said again"
                )
        kept = memory_writer.keep_memories(
            store, (made,), (), now, partial(memory_writer.near, store, self._index())
        )
        self._index_memories(store)
        if made.kind is MemoryKind.HANDOFF and kept.versions:
            _keep_handoff(store, made, now)
        return store.memory(kept.absorbed.get(made.id, made.id))

    def forget(self, id: str, *, erase: bool = False, why: str = "") -> MemoryRecord | None:
        """Hide it from every search. With `erase` it is deleted from disk; its source pages
        stay."""
        store = self.store()
        if not erase:
            reason = memory_writer.one_line(why) or "somebody wanted it forgotten"
            return memory_writer.change_memory(
                store, id, lambda latest: replace(latest, standing=Standing.FORGOTTEN), reason
            )
        erased = memory_writer.find_memory(store, id).id
        store.keep(Erased((erased,), time.time())).result(memory_writer.KEEP_SECONDS)
        if (index := self._index()) is not None:
            index.purge([erased])
        self._overviews.drop()
        self._rarity.drop()
        return None

    def edit(self, id: str, *, ending: str | None = None, **changes: Any) -> MemoryRecord:
        """Correct a memory; see `edit_memory` for the fields. Raises `BadInput`."""
        store, wanted = self.store(), None
        if ending is not None:
            memory = memory_writer.find_memory(store, id)
            wanted = _parse_enum(Ending, ending, "an outcome is")
            if isinstance(memory.detail, Episode) and memory.source.session is not None:
                self._keep_ending(store, memory.source.session, memory.detail.turns[1], wanted)
        return memory_writer.edit_memory(store, id, ending=wanted, **changes)

    def confirm(self, id: str) -> MemoryRecord:
        def confirmed(latest: MemoryRecord) -> MemoryRecord:
            standing = Standing.ACTIVE if latest.standing is Standing.CANDIDATE else latest.standing
            return replace(
                latest,
                trust=Trust.PERSON,
                confidence=max(latest.confidence, 0.9),
                standing=standing,
            )

        return memory_writer.change_memory(self.store(), id, confirmed, "a person confirmed it")

    def unreviewed(self) -> Sequence[MemoryRecord]:
        """Memories that a person has not seen yet, the newest first."""
        return curation.unreviewed(self.store())

    def judge(self, id: str, verdict: str, run: str, text: str = "") -> MemoryRecord:
        """A person's verdict on a memory; kept as a label, and undone by the name of `run`. Raises
        `BadInput`."""
        wanted = _parse_enum(curation.ReviewVerdict, verdict, "a verdict is")
        judged = curation.judge_memory(self.store(), id, wanted, run, text)
        self._index_memories(self.store())
        return judged

    def labels(self) -> Mapping[MemoryId, curation.Label]:
        """What people decided about memories."""
        return curation.labels(self.store())

    def suggest(self, before: str) -> str:
        """The text with confirmed facts and checks that it does not have yet."""
        store = self.store()
        facts, checks = curation.suggest_lines(
            curation.confirmed_facts(store), curation.proven_checks(store), before
        )
        return curation.add_lines(before, facts, checks)

    def skills(self) -> Sequence[curation.SkillDraft]:
        """Procedures that proved themselves, as drafts of skills."""
        return curation.proven_procedures(self.store())

    @property
    def learn_answer(self) -> curation.LearnAnswer | None:
        """Whether a person let earlier sessions be read; None if they were not asked."""
        return curation.learn_answer(self.store())

    def answer_learning(self, *, granted: bool, done: bool = False) -> None:
        """Keeps their answer, on this machine, and whether that is done."""
        curation.keep_learn_answer(self.store(), curation.LearnAnswer(granted, done))

    def conflicts(self) -> tuple[tuple[MemoryRecord, MemoryRecord], ...]:
        """Pairs of which nothing tells which one holds, the later statement first: a person is
        asked."""
        from hotset.sources.memory.supersede import open_conflicts  # noqa: PLC0415 - only where a person asks

        return tuple(open_conflicts(self.store()))

    def settle_conflict(self, keep_id: str, drop_id: str, run: str = "") -> MemoryRecord:
        """A person decides: the first holds and replaces the second."""
        from hotset.sources.memory.supersede import settle_conflict  # noqa: PLC0415 - as above

        store = self.store()
        keep, drop = (memory_writer.find_memory(store, id).id for id in (keep_id, drop_id))
        if keep == drop:
            raise BadInput("one memory cannot replace itself; name the one to keep, then the other")
        kept = settle_conflict(store, keep, drop, self._clock(), run)
        self._index_memories(store)
        return kept

    def accept_both(self, one_id: str, other_id: str) -> None:
        """A person decides: both hold, and they are not asked again."""
        from hotset.sources.memory.supersede import accept_both  # noqa: PLC0415 - as above

        store = self.store()
        one, other = (memory_writer.find_memory(store, id).id for id in (one_id, other_id))
        accept_both(store, one, other, self._clock())

    def outcome(self, session: str, ending: str) -> None:
        """Report how the latest task of a session came out."""
        store, wanted = self.store(), _parse_enum(Ending, ending, "an outcome is")
        id = store.session(SessionId(session)).id
        self._keep_ending(
            store, id, max((turn.number for turn in store.turns(id)), default=0), wanted
        )
        self._remember_session(store, id)

    def runs(self) -> Sequence[tuple[str, int, float]]:
        return self.store().memory_runs()

    def undo(self, run: str) -> int:
        from hotset.sources.memory.consolidation import undo  # noqa: PLC0415 - only where a person asks

        return undo(self.store(), run, self._clock())

    def plan_rollback(
        self, *, place: str = "", session: str = "", agent: str = "", by: str = ""
    ) -> RollbackPlan:
        """What `rollback` would do."""
        from hotset.sources.memory.consolidation import RollbackOrigin, plan_rollback  # noqa: PLC0415 - only where a person asks

        return plan_rollback(self.store(), RollbackOrigin(place, session, agent, by), self._clock())

    def rollback(
        self, *, place: str = "", session: str = "", agent: str = "", by: str = ""
    ) -> tuple[MemoryId, ...]:
        from hotset.sources.memory.consolidation import rollback  # noqa: PLC0415 - only where a person asks

        return rollback(
            self.store(), self._clock(), place=place, session=session, agent=agent, by=by
        )

    def restore(self, ids: Sequence[str] = (), *, run: str = "") -> int:
        """Restore these memories, or all that a run put aside."""
        from hotset.sources.memory.consolidation import restore  # noqa: PLC0415 - only where a person asks

        store = self.store()
        return (
            self.undo(run)
            if run
            else restore(
                store, [memory_writer.find_memory(store, id).id for id in ids], self._clock()
            )
        )

    # Files

    def export(self, folder: Path, form: str, progress: Progress = silent) -> int:
        """Write every memory into a folder; return how many. Raises `BadInput`."""
        from hotset.sources.memory.exchange import FileFormat, export_memories  # noqa: PLC0415 - only where a person asks

        return export_memories(self.store(), folder, FileFormat(form), progress)

    def import_(
        self, folder: Path, form: str = "", *, trusted: bool = False, progress: Progress = silent
    ) -> int:
        """Import memories from a folder; `trusted` if a person vouches for them. Returns how many
        are new or changed."""
        from hotset.sources.memory.exchange import FileFormat, import_memories  # noqa: PLC0415 - only where a person asks

        store, wanted = self._open(), FileFormat(form) if form else None
        report = import_memories(
            store, folder, wanted, now=self._clock(), vouched=trusted, progress=progress
        )
        self._index_memories(store)
        return report.new + report.changed

    def write_continuity(self) -> Path:
        """Update CONTINUITY.md; a person's text in it stays. Raises `BadInput`."""
        store = self._open()
        return self.continuity.write(store, self._overviews.latest(store))

    # What keeps memories in order

    def encode(
        self,
        progress: Progress = silent,
        *,
        quiet: float = 0.0,
        seconds: float | None = None,
        latest: int | None = None,
    ) -> int:
        """Encode sessions that were quiet for `quiet` seconds; return how many.

        `latest`: only so many, those that ended last.
        """
        store = self._open()
        until = None if seconds is None else time.monotonic() + seconds
        with self._encoding:
            self.pending.look(store)
            ready = self.pending.ready(self._clock() - quiet)[
                -latest if latest is not None else None :
            ]
            done = 0
            for number, session in enumerate(ready, 1):
                done += self._try_to_remember(store, session)
                progress("remember sessions", number, len(ready))
                if until is not None and time.monotonic() > until:
                    break
            if done:
                self.pending.save(self._clock())
                # the next session is shown this one without waiting
                _load_rooms()
                self._index_memories(store)
                if self.continuity.is_on:
                    # `hotset continuity write` reports a file that cannot be written
                    with suppress(BadInput):
                        self.write_continuity()
        return done

    def follow(self, progress: Progress = silent, seconds: float = 30.0) -> None:
        """Index new memories and pages, as far as time allows."""
        store, index, until = self.store(), self._index(), time.monotonic() + seconds
        passed = 0
        while index is not None and time.monotonic() < until:
            stint = time.monotonic() + self._index_seconds
            pages = self._follow_pages(store, index, stint) if self._follow_pages is not None else 0
            if not (more := pages + memory_writer.follow_memories(store, index, stint)):
                return
            passed += more
            progress("index what was said", passed, 0)

    def consolidate(self, progress: Progress = silent) -> ConsolidationReport:
        from hotset.index.embed.embedders import embedders  # noqa: PLC0415 - numpy
        from hotset.nouns.embedding import OFF, Embedding  # noqa: PLC0415
        from hotset.sources.memory.consolidation import consolidate  # noqa: PLC0415

        store, documents = self._open(), embedders(Embedding(OFF)).documents
        report = consolidate(
            store, documents.embed, self._clock(), knobs=self._knobs, progress=progress
        )
        self._rarity.renew(store, self._clock())
        self._index_memories(store)
        return report

    @property
    def unconsolidated(self) -> float:
        """Seconds since the last consolidation by any process, or since the first memory."""
        now, store, last = self._clock(), self._open(), self._rarity.renewed
        if last is None or last > now:  # never yet, or the clock was set back
            last = next((memory.time for _, memory in store.memories_after(0, 1)), now)
        return max(0.0, now - last)

    def economics(self, session: str = "") -> Sequence[SessionEconomics]:
        """Cost and savings of memories by session, the newest first."""
        return economics(self.store(), SessionId(session) if session else None)

    def settle_up(self, session: SessionId, occasion: Occasion) -> tuple[Event, ...]:
        """Check what memories cost in a session, and act on breached limits. Returns the
        actions."""
        store = self._open()
        return settle_up(
            store, partial(self._overviews.latest, store), session, occasion, self._clock()
        )

    # Inside

    def _open(self) -> Store:
        """Raises `BadConfig` if memory is switched off, and a `HotsetError` while there is no
        store.

        Existing memories can still be viewed and taken back: see `store`.
        """
        if not self._config.memory.enabled:
            origin = self._config.origins.get("memory", "")
            raise BadConfig(
                f"memory is switched off ({origin}): HOTSET_MEMORY=on, or enabled = true in "
                f"[memory]"
            )
        return self.store()

    def _index_memories(self, store: Store) -> None:
        """Index new memories for the next search; what takes longer is left to the store's
        follower."""
        if (index := self._index()) is not None:
            with suppress(HotsetError, OSError):
                memory_writer.follow_memories(store, index, time.monotonic() + self._index_seconds)

    def _find(
        self, store: Store, asking: RecallQuery, knobs: MemoryKnobs | None = None
    ) -> RecallResult:
        from hotset.sources.memory.recall import recall  # noqa: PLC0415
        from hotset.sources.memory.recall_signals import weights_from_dict  # noqa: PLC0415 - tables of words

        signals = (knobs or self._knobs).signals
        weights = weights_from_dict({**arrangement(store).weights, **signals})
        return recall(asking, self._index(), store, weights)

    def _render_topic(self, store: Store, id: str, max_tokens: int) -> RenderedText:
        names = topics_with_id(id, self._overviews.latest(store), arrangement(store))
        return self._render_topics(store, names, max_tokens)

    def _render_topics(self, store: Store, names: Sequence[str], max_tokens: int) -> RenderedText:
        """The memories of these topics, what lasts before what was done, the newest first."""
        overview, shape = self._overviews.latest(store), arrangement(store)
        members = members_of(names, overview, shape)
        if not members:
            return RenderedText()
        newest = store.newest_memories(NAMED_KINDS, frozenset({Standing.ACTIVE}))
        fitting = (
            memory
            for memory in islice(newest, _MOST_SEARCHED)
            if not members.isdisjoint(memory.topics)
        )
        found = sorted(islice(fitting, _FURTHER), key=lambda each: each.kind not in LASTING_KINDS)
        items = [_listed_item(each) for each in found]
        task = Task.IMPLEMENTATION
        text = self._render(store, items, "", task, max_tokens=max_tokens, how=RETRIEVE)
        return replace(text, topics=tuple(names))

    def _recall_about(
        self, store: Store, words: str, session: str, max_tokens: int, knobs: MemoryKnobs
    ) -> RenderedText:
        """The memories of other sessions that share most of a question's words."""
        from hotset.sources.memory.recall import RecallQuery  # noqa: PLC0415 - numpy

        self._index_memories(store)
        own = SessionId(session) if session else None
        asking = RecallQuery(
            words,
            self._clock(),
            talk=False,
            most=2 * _ABOUT,
            advice=knobs.advice,
            deadline=ABOUT_SECONDS * self._config.patience,
        )
        found = self._find(store, asking, knobs)
        items = [
            item
            for item in found.items
            if item.memory is not None
            and (own is None or item.session != own)
            and shares_most_words(words, item.memory)
        ][:_ABOUT]
        if not items:
            return RenderedText()
        return self._render(store, items, words, found.task, max_tokens=max_tokens, how=RETRIEVE)

    def _answer_time(
        self, store: Store, query: str, kinds: frozenset[MemoryKind] = frozenset()
    ) -> TimeAnswer | None:
        now = self._clock()
        return answer_time(query, store, now, local_offset, kinds)

    def _recall_days(
        self,
        store: Store,
        asking: RecallQuery,
        listed: TimeAnswer,
        *,
        max_tokens: int,
        session: str,
        more: int,
        begun: float,
    ) -> RecallAnswer:
        """Everything of the range that the question asks for: it has no words to search for."""
        from hotset.sources.memory.recall import RecallResult  # noqa: PLC0415 - numpy

        items = tuple(_listed_item(each) for each in listed.memories)
        task = asking.task or Task.EXPLORATION
        found = RecallResult(items, task, "", listed.since, listed.until)
        if more:  # the first answer lists all days
            return RecallAnswer("", 0, replace(found, items=()))
        text = render_days(listed, local_offset, max_tokens=max_tokens)
        loads = (Load(Layer.TIMELINE, text.tokens, text.topics),) if text.shown else ()
        took = 1000 * (time.monotonic() - begun)
        self._log_loads(store, session, loads, shown=[MemoryId(id) for id in text.shown], task=task)
        self._log_recall(store, session, task=task, ms=took, shown=text.shown, strategy=_BY_TIME)
        return RecallAnswer(text.text, text.tokens, found, loads, text.shown, listed.days)

    def _recall_more(
        self, store: Store, asking: RecallQuery, text: RenderedText, max_tokens: int, steps: int
    ) -> tuple[RecallResult, RenderedText]:
        """Further memories, then pages session by session: a question's words match only the
        likeliest ones.

        Stateless: each step is computed from the first answer, so repeating it gives the same.
        """
        from hotset.sources.memory.recall import pages_elsewhere  # noqa: PLC0415 - numpy

        asking = replace(asking, advice=self._knobs.advice)
        found = self._find(store, replace(asking, most=_FURTHER))
        known: frozenset[str] = frozenset()
        items: tuple[RecalledItem, ...] = ()
        for step in range(1, min(steps, _MOST_STEPS) + 1):
            known |= {
                id for id, layer in text.shown.items() if layer is Layer.FULL or is_memory_id(id)
            }
            pages = (
                list(
                    islice(
                        pages_elsewhere(asking, found, self._index(), store, shown=known), _FURTHER
                    )
                )
                if asking.talk
                else []
            )
            # worse memories would take the room of the pages
            likely = asking.most * (step + 1) if pages else _FURTHER
            memories = [
                item
                for item in found.items[:likely]
                if item.memory is not None and item.id not in known
            ]
            text = self._render(
                store, memories, asking.query, found.task, max_tokens=max_tokens, beside=pages
            )
            items = tuple(item for item in (*memories, *pages) if item.id in text.shown)
        return replace(found, items=items), text

    def _reminder(
        self,
        store: Store,
        overview: Overview,
        prompt: str,
        *,
        opens: bool,
        max_tokens: int,
        how: str,
        session: SessionId | None,
        known: frozenset[str],
        knobs: MemoryKnobs,
    ) -> Reminder | None:
        from hotset.sources.memory.relevance import is_order  # noqa: PLC0415 - numpy
        from hotset.sources.memory.tasks import detect_task  # noqa: PLC0415

        if not overview.memories:
            return None
        chosen, shape, now = self._config.memory, arrangement(store), self._clock()
        guess = detect_task(prompt)
        task = guess.task
        if is_bypassed(shape, task, now):
            return None
        first = lately = memories = RenderedText()
        told = self._told(store, prompt, guess, known=known, session=session, knobs=knobs)
        if opens and is_order(prompt):
            first = render_index(
                overview,
                shape,
                now,
                query=prompt,
                max_tokens=min(chosen.index_tokens, max_tokens),
                how=how,
                least=chosen.index_from,
                but=frozenset(memory.id for memory, _ in told),
            )
        listed = self._answer_time(store, prompt)
        if listed is not None and listed.days:
            room = max_tokens - first.tokens
            lately = render_days(listed, local_offset, max_tokens=room, how=how, asked=False)
        elif (what_was := asks_what_was(prompt)) or resumes(prompt):
            subject = " ".join(content_words(prompt))
            fitting = [
                each.topic.name for each in fitting_topics(overview, shape, now, query=subject)
            ]
            if what_was or fitting:
                room = max_tokens - first.tokens
                lately = render_timeline(
                    overview, shape, now, topics=fitting, max_tokens=room, how=how
                )
        if told:
            room = max_tokens - first.tokens - lately.tokens
            error = quoted_error(prompt)
            found = [
                replace(_listed_item(memory), text=text_with_resolution(memory, error))
                for memory, _ in told
            ]
            memories = self._render(store, found, prompt, task, max_tokens=room, how=how)
        parts = [
            (layer, each)
            for layer, each in zip(Layer, (first, lately, memories), strict=True)
            if each.text
        ]
        loads = tuple(
            Load(layer, each.tokens, each.topics, tuple(each.shown)) for layer, each in parts
        )
        if not loads:
            return None
        texts = [each.text for _, each in parts]
        text = "\n".join([texts[0], *map(without_head, texts[1:])])
        return Reminder(
            text,
            tokens.count(text),
            task,
            {**lately.shown, **memories.shown},
            loads,
            overview.tokens,
            max((worth for _, worth in told), default=_OVERVIEW_WORTH),
        )

    def _told(
        self,
        store: Store,
        prompt: str,
        guess: TaskGuess,
        *,
        known: frozenset[str],
        session: SessionId | None,
        knobs: MemoryKnobs,
    ) -> Sequence[tuple[MemoryRecord, float]]:
        """The memories that change what is done next, each with its probability; then, for the
        first change of a session, how changes are checked here. Mostly none."""
        found = self._tellables.find(store, prompt, guess, knobs=knobs, known=known)
        told: dict[str, tuple[MemoryRecord, float]] = {}
        for each, worth in found:
            if len(told) == knobs.reminders:
                break
            with suppress(NotFound):  # erased since it was read
                latest = store.memory(each.memory.id)
                is_own = session is not None and latest.source.session == session
                if latest.version == each.memory.version and not is_own:
                    told.setdefault(latest.text, (latest, worth))
        return tuple(told.values())

    @cached_property
    def _tellables(self) -> TellableMemories:
        from hotset.sources.memory.relevance import TellableMemories  # noqa: PLC0415 - numpy

        return TellableMemories()

    def _layers(self, store: Store, memories: Sequence[MemoryRecord]) -> dict[str, Layer]:
        """The form of each memory, by age, use and references."""
        shape, now = arrangement(store), self._clock()
        uses = store.memory_uses([memory.id for memory in memories])
        return {
            memory.id: layer_of(
                memory,
                now,
                uses=uses.get(memory.id, Uses()),
                referenced=any(link.to == memory.id for link in store.memory_links(memory.id)),
                mass=self._rarity.of(memory),
                arrangement=shape,
            )
            for memory in memories
        }

    def _render(
        self,
        store: Store,
        items: Sequence[RecalledItem],
        query: str,
        task: Task,
        *,
        max_tokens: int,
        how: str = HOW,
        beside: Iterable[RecalledItem] = (),
    ) -> RenderedText:
        shape, layers = arrangement(store), self._layers(store, _memories(items))
        return render_memories(
            items,
            shape,
            layers,
            max_tokens=max_tokens,
            query=query,
            task=task,
            how=how,
            beside=beside,
            notes=conflict_notes(_memories(items), store),
        )

    def _log_loads(
        self,
        store: Store,
        session: str,
        loads: Sequence[Load],
        *,
        shown: Sequence[MemoryId] = (),
        how: Used = Used.SHOWN,
        task: Task | None = None,
    ) -> None:
        """Without waiting; what cannot be stored is dropped."""
        now, where = self._clock(), SessionId(session) if session else None
        available = self._overviews.latest(store).tokens if loads else 0
        with suppress(HotsetError):
            for load in loads:
                self._log(
                    store,
                    session,
                    loaded_event(
                        load, now, available=available, session=where, task=task, asked=True
                    ),
                )
            if shown:
                self._log(
                    store,
                    session,
                    Remembered(uses=tuple(MemoryUse(id, how, now, where, task) for id in shown)),
                )

    def _log_recall(
        self,
        store: Store,
        session: str,
        *,
        ms: float,
        shown: Iterable[str],
        candidates: Sequence[tuple[str, Mapping[str, float]]] = (),
        task: Task = Task.EXPLORATION,
        door: str = "recall",
        strategy: str = "",
    ) -> None:
        """Without waiting; what cannot be stored is dropped."""
        if not (self.logged or session):
            return
        from hotset.sources.memory.recall_signals import recalled_event  # noqa: PLC0415 - tables of words

        event = recalled_event(
            candidates,
            self._clock(),
            SessionId(session) if session else None,
            task,
            ms=ms,
            shown=shown,
            door=door,
            strategy=strategy,
        )
        with suppress(HotsetError):
            store.keep(event)

    def _log(self, store: Store, session: str, deposit: Deposit) -> None:
        if self.logged or session:
            store.keep(deposit)

    def _keep_ending(self, store: Store, session: SessionId, turn: int, ending: Ending) -> None:
        """Store how a task came out, so that it holds when its session is encoded again."""
        from hotset.sources.memory.encode.session import OUTCOME  # noqa: PLC0415 - only where somebody knows

        store.keep(Event(OUTCOME, self._clock(), session, turn, {"outcome": str(ending)})).result(
            memory_writer.KEEP_SECONDS
        )

    def _try_to_remember(self, store: Store, session: SessionId) -> bool:
        """True on success. An unexpected failure is logged once and not retried until the session
        goes on."""
        last_page = self.pending.last_page_time(session)
        if self._given_up.get(session) == last_page:
            return False
        try:
            self._remember_session(store, session)
        except Exception as error:
            # a bug of ours or a damaged page costs the memories of one session only
            if isinstance(error, HotsetError) and not isinstance(error, PageDamaged):
                raise
            self._given_up.put(session, last_page)
            detailed = _log.isEnabledFor(logging.DEBUG)
            _log.warning(
                "session %s cannot be remembered: %s",
                session,
                type(error).__name__,
                exc_info=detailed,
            )
            return False
        return True

    def _remember_session(self, store: Store, session: SessionId) -> None:
        last_page = self.pending.last_page_time(session)
        with suppress(NotFound):  # a session that an export left out
            made = memory_writer.remember_session(
                store, session, self._clock(), partial(memory_writer.near, store, self._index())
            )
            self.by_rules.extend(
                each.id for each in made.versions if isinstance(each.detail, Episode)
            )
            self.settle_up(session, "session")
        self.pending.done(session, last_page)

    def sessions_of(self, ids: Sequence[MemoryId]) -> Sequence[SessionId | None]:
        """The session that each memory was made from."""
        store = self._open()
        found = (memory_writer.known_memory(store, id) for id in ids)
        return [memory.source.session if memory is not None else None for memory in found]

    def proposal_request(self, session: SessionId) -> tuple[str, str]:
        """The instruction and the text by which a model proposes memories of a session."""
        from hotset.sources.memory.encode.proposals import (  # noqa: PLC0415 - only with a model
            INSTRUCTION,
            proposal_source,
        )
        from hotset.sources.memory.encode.session import read_session  # noqa: PLC0415

        return INSTRUCTION, proposal_source(read_session(self._open(), session, self._clock()))

    def keep_proposals(self, session: SessionId, reply: str, model: str) -> int:
        """Keep what a model proposes from a session, as far as the session proves it; the rest
        waits for a person. Returns how many were kept."""
        from hotset.sources.memory.encode.proposals import proposed_memories  # noqa: PLC0415
        from hotset.sources.memory.encode.session import read_session  # noqa: PLC0415

        store = self._open()
        material = read_session(store, session, self._clock())
        similar = partial(memory_writer.near, store, self._index())
        made = [
            each
            for each in proposed_memories(reply, material, model)
            if not any(_has_words_of(known, each) for known in similar(each))
        ]
        kept = memory_writer.keep_memories(store, made, (), self._clock(), similar)
        return len(kept.versions)


def _keep_handoff(store: Store, made: MemoryRecord, now: float) -> None:
    """Store that work was handed on, as an event of the session that did it: without its words,
    because an erased memory leaves none."""
    session = made.source.session
    turn = max((each.number for each in store.turns(session)), default=0) if session else 0
    to = made.detail.to if isinstance(made.detail, Checkpoint) else ""
    detail: dict[str, str | int | float] = {
        "memory": made.id,
        "to": to,
        "by": made.source.by,
        "agent": made.source.agent,
    }
    store.keep(Event("Handoff", now, session, turn, detail)).result(memory_writer.KEEP_SECONDS)


def _has_words_of(one: MemoryRecord, other: MemoryRecord) -> bool:
    return squeeze(one.text.rstrip(".").encode()) == squeeze(other.text.rstrip(".").encode())


def _parse_enum(among: type[_Named], name: str, what: str) -> _Named:
    """Raises `BadInput`."""
    try:
        return among(name.strip().lower())
    except ValueError:
        raise BadInput(f"{what} {', '.join(among)}, not {name[:40]!r}") from None


def _source_text(text: RenderedText, *, answers: bool = False) -> SourceText | None:
    heading, _, rest = text.text.partition("\n")
    return SourceText(heading, rest, answers) if text.text else None


def _ids(text: RenderedText) -> list[MemoryId]:
    return [MemoryId(id) for id in text.shown if is_memory_id(id)]


def _listed_item(memory: MemoryRecord) -> RecalledItem:
    """A memory of a range of time, as an item of a recall."""
    from hotset.sources.memory.recall import RecalledItem  # noqa: PLC0415 - numpy

    fields = memory.title, memory.text, memory.created, 1.0, ("it is of that time",)
    return RecalledItem(memory.id, memory.kind, *fields, {}, memory, session=memory.source.session)


def _memories(items: Sequence[RecalledItem]) -> list[MemoryRecord]:
    return [item.memory for item in items if item.memory is not None]


def _around(store: Store, id: MemoryId, depth: int) -> Iterator[MemoryLink]:
    seen, border = {id}, [id]
    for _ in range(depth):
        links = [link for each in border for link in store.memory_links(each)]
        yield from links
        border = list(
            dict.fromkeys(each for link in links for each in (link.of, link.to) if each not in seen)
        )
        seen.update(border)
        if len(seen) > _MOST_GRAPH:
            return


def _load_rooms() -> None:
    """Import numpy and word tables for encoding and recall in advance."""
    from hotset.sources.memory.tasks import detect_task  # noqa: PLC0415
    from hotset.sources.memory.time_parser import time_words  # noqa: PLC0415

    detect_task("")
    time_words("", 0.0)
