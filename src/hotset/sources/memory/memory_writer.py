"""Write memories (versions, drafts, a session's memories, edits by people; earlier versions stay),
and index them together with the pages of conversations."""

from __future__ import annotations

import re
import threading
import time
from base64 import b32encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from enum import Enum
from hashlib import blake2b
from heapq import nlargest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from hotset import tokens
from hotset.errors import BadInput, Conflict, HotsetError, NotFound, PageDamaged
from hotset.files.lru import Lru
from hotset.index.port import Index, Watermark
from hotset.nouns.deposit import PageAdded, Remembered
from hotset.nouns.memory import (
    Checkpoint,
    Ending,
    Episode,
    MemoryId,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    MemoryUse,
    Provenance,
    Relation,
    Standing,
    Trust,
)
from hotset.nouns.note import LEARNED_FROM, METADATA, Scope, Space, decode_metadata
from hotset.nouns.page import Digest, Kind, Page, PageId, SessionId, digest
from hotset.nouns.search import Entry, EntryId, Filter, Query, Sort
from hotset.nouns.turn import Session
from hotset.sealing import seal
from hotset.sources.memory.kinds import (
    KINDS,
    NAMED_KINDS,
    PERSON,
    RULES,
    is_same,
    kinds_of,
)
from hotset.store.port import Store, Where
from hotset.store.stored_value import StoredValue
from hotset.text.clip import clip_prose
from hotset.text.sentences import sentences
from hotset.text.terms import terms
from hotset.window.page_text import is_binary

if TYPE_CHECKING:
    from hotset.sources.memory.encode.encoder import WorkFinding
    from hotset.sources.memory.encode.session import Material

_T = TypeVar("_T")

SURE = 0.95
"""The most that repetition may raise confidence to; only a person can give more."""

SESSION, AGENT = "session:", "agent:"
"""Prefixes of further sessions and agents among the places of a memory with several sources."""

NOT_PUT_ASIDE = frozenset({Standing.ACTIVE, Standing.CANDIDATE})
"""Standings of memories that were not put aside."""

_RANKS = {Trust.OUTSIDE: 0, Trust.AGENT: 1, Trust.OUTCOME: 2, Trust.PERSON: 3}
_RUN_BYTES = 5

WINDOW = "window"
"""The kind of an index entry that holds a page with its neighbours."""

BESIDE = 2
"""Neighbours of a page on either side of a window."""

FINDABLE = frozenset({Standing.ACTIVE, Standing.SUPERSEDED})
"""Forgotten, merged and unconfirmed memories have no index entry."""


_OWN = 1000  # characters of the page itself, about one stretch
_AROUND = 300  # characters of each neighbour: a question, or how an answer begins
# characters of a memory, from its beginning; the embedder reads the first third
_LONGEST_ENTRY = 6000
_LONGEST_PROMPTS = 4000  # characters of prompts that an episode is indexed with
_PER_PROMPT = 400
_LONGEST_ERRORS = 1500  # characters of an episode's errors
_SPEAKERS = {Kind.PROMPT: "p", Kind.RESPONSE: "r"}
_KINDS = {letter: kind for kind, letter in _SPEAKERS.items()}


def next_version(
    latest: MemoryRecord, now: float, run: str, why: str, **changes: Any
) -> MemoryRecord:
    """The version after the latest one, with these changes."""
    return replace(latest, version=latest.version + 1, time=now, run=run, why=why, **changes)


def run_name(what: str, *work: object) -> str:
    """`consolidate-7ha2c0de`: the same name for the same work; `what` ends with a dash."""
    hashed = blake2b(repr(work).encode("utf-8", "surrogatepass"), digest_size=_RUN_BYTES).digest()
    return f"{what}{b32encode(hashed).decode().lower()}"


def rank(trust: Trust) -> int:
    """The order of trust."""
    return _RANKS[trust]


def join_memories(one: MemoryRecord, other: MemoryRecord) -> MemoryRecord:
    """`one` with the sources of both. Only another session makes it surer."""
    source = join_sources(one.source, other.source)
    is_news = other.source.session is not None and not is_from_session(
        one.source, other.source.session
    )
    surer = 1 - (1 - one.confidence) * (1 - other.confidence) if is_news else one.confidence
    trust = max(one.trust, other.trust, key=rank)
    confidence = max(
        one.confidence,
        other.confidence if rank(other.trust) > rank(one.trust) else 0.0,
        min(SURE, surer),
    )
    return replace(one, source=source, confidence=confidence, trust=trust)


def join_sources(one: Provenance, other: Provenance) -> Provenance:
    also = [f"{SESSION}{other.session}"] if other.session not in (None, one.session) else []
    also += [f"{AGENT}{other.agent}"] if other.agent not in ("", one.agent) else []
    pages = dict.fromkeys((*one.pages, *other.pages))
    places = dict.fromkeys((*one.places, *other.places, *also))
    return replace(one, pages=tuple(pages), places=tuple(places))


def is_from_session(source: Provenance, session: str | None) -> bool:
    return session is not None and (
        source.session == session or f"{SESSION}{session}" in source.places
    )


def sessions_of(source: Provenance) -> frozenset[str]:
    """All sessions a memory comes from."""
    others = frozenset(
        place.removeprefix(SESSION) for place in source.places if place.startswith(SESSION)
    )
    return others if source.session is None else others | {source.session}


def known_memory(store: Store, id: MemoryId) -> MemoryRecord | None:
    """Its latest version; None if there is none."""
    try:
        return store.memory(id)
    except NotFound:
        return None


def known_memories(store: Store, ids: Iterable[MemoryId]) -> Iterator[MemoryRecord]:
    """Those that exist, in their latest version."""
    return (memory for id in ids if (memory := known_memory(store, id)) is not None)


def known_page(store: Store, id: PageId) -> Page | None:
    """None if the store lost it: an index may know more than its store."""
    try:
        return store.page(id)
    except (NotFound, PageDamaged):
        return None


def known_content(store: Store, digest: Digest) -> bytes | None:
    """None if the store lost it."""
    try:
        return store.content(digest)
    except (NotFound, PageDamaged):
        return None


def commit(
    store: Store,
    memories: Iterable[MemoryRecord] = (),
    links: Iterable[MemoryLink] = (),
    uses: Iterable[MemoryUse] = (),
) -> None:
    """One durable commit. Raises `Conflict` if another process changed one of these."""
    store.keep(Remembered(tuple(memories), tuple(links), tuple(uses))).result(KEEP_SECONDS)


def _retry(attempt: Callable[[], _T]) -> _T:
    """Try again on a `Conflict`."""
    for _ in range(_TRIES - 1):
        with suppress(Conflict):
            return attempt()
    return attempt()


CONSOLIDATE = "consolidate-"
"""Prefix of its run names."""

REVIEW = "review-"
"""Prefix of the run names of a person's verdicts: rules leave those memories alone."""

KEEP_SECONDS = 30.0
"""How long a write may take."""

_TRIES = 3  # on conflicts
_BY_HAND = ("undo-", "restore-")  # runs after which a memory is not changed back automatically
_DRAWN = (Relation.DERIVED_FROM, Relation.RELATED_TO)


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory as it should be, and its links."""

    memory: MemoryRecord
    derived_from: tuple[MemoryId, ...] = ()
    related_to: tuple[MemoryId, ...] = ()


def is_derived(memory: MemoryRecord) -> bool:
    """True if it was derived from other memories only."""
    return memory.source.by == RULES and memory.source.session is None and not memory.source.pages


def is_by_hand(memory: MemoryRecord) -> bool:
    """True if its last change was an undo or a restore."""
    return memory.run.startswith(_BY_HAND)


def batched(items: Iterable[_T], many: int) -> Iterator[list[_T]]:
    stream = iter(items)
    while some := list(islice(stream, many)):
        yield some


class DraftWriter:
    """The writes of one run: each call of `write` and `keep` is one commit."""

    def __init__(self, store: Store, now: float, run: str) -> None:
        self._store, self._now, self._run = store, now, run
        self.links = 0
        """That were written."""

    def write(self, drafts: Sequence[Draft]) -> int:
        """Write what differs; return the number of memories that are new or changed."""

        def attempt() -> int:
            news = [news for draft in drafts if (news := self._news(draft)) is not None]
            memories = [memory for memory, _ in news if memory is not None]
            self._put(memories, [link for _, links in news for link in links])
            return len(memories)

        return _retry(attempt)

    def keep(self, memories: Sequence[MemoryRecord], links: Sequence[MemoryLink]) -> bool:
        """False if another process changed one of these. The next run looks at it again."""
        try:
            self._put(memories, links)
        except Conflict:
            return False
        return bool(memories or links)

    def retire(self, kinds: frozenset[MemoryKind], wanted: set[MemoryId], many: int) -> None:
        """Supersede derived memories that are not `wanted`: their origins no longer agree."""
        why = "what it was drawn from no longer agrees"
        stale = (
            next_version(
                each, self._now, self._run, why, standing=Standing.SUPERSEDED, valid_until=self._now
            )
            for each in self._store.memories(kinds, frozenset({Standing.ACTIVE}))
            if is_derived(each)
            and each.id not in wanted
            and not each.pinned
            and not is_by_hand(each)
        )
        for some in batched(stale, many):
            self.keep(some, ())

    def _news(self, draft: Draft) -> tuple[MemoryRecord | None, list[MemoryLink]] | None:
        """What differs from the store; None if a person or another rule decided last."""
        made = replace(
            draft.memory, time=self._now, run=self._run, why="drawn from what memories share"
        )
        latest = known_memory(self._store, made.id)
        if latest is None:
            return made, self._new_links(draft)
        retired = latest.standing is Standing.SUPERSEDED and latest.run.startswith(CONSOLIDATE)
        if not is_derived(latest) or not (latest.standing in NOT_PUT_ASIDE or retired):
            return None
        made = replace(made, version=latest.version + 1, pinned=latest.pinned, why="more is known")
        if is_same(made, latest):
            return None, self._new_links(draft)
        if is_by_hand(latest) and any(
            is_same(made, before) for before in self._store.memory_versions(made.id)
        ):
            return None
        return made, self._new_links(draft)

    def _new_links(self, draft: Draft) -> list[MemoryLink]:
        """Missing links, and an end to outdated ones."""
        id = draft.memory.id
        wanted = {(to, Relation.DERIVED_FROM) for to in draft.derived_from} | {
            (to, Relation.RELATED_TO) for to in draft.related_to
        }
        held = {
            (link.to, link.relation)
            for link in self._store.memory_links(id)
            if link.of == id and link.relation in _DRAWN
        }
        return [
            MemoryLink(id, to, relation, self._now, self._run, gone=(to, relation) in held)
            for to, relation in sorted(wanted ^ held)
        ]

    def _put(self, memories: Sequence[MemoryRecord], links: Sequence[MemoryLink]) -> None:
        if memories or links:
            commit(self._store, memories, links)
            self.links += sum(not link.gone for link in links)


_FOUND = 10
_SECONDS = 0.5
_TAIL = 200
"""Versions that are not indexed yet and are looked at."""

_COMPARED = frozenset({Standing.ACTIVE, Standing.CANDIDATE, Standing.SUPERSEDED})


def near(store: Store, index: Index | None, memory: MemoryRecord) -> Sequence[MemoryRecord]:
    """Memories of the same kind, the nearest first, without the memory itself."""
    found = (
        _by_words(store.memories(frozenset({memory.kind}), _COMPARED), memory)
        if index is None
        else [*_by_words(_tail(store, index), memory), *_find_in_index(store, index, memory)]
    )
    return list(
        {
            each.id: each for each in found if each.id != memory.id and each.standing in _COMPARED
        }.values()
    )[: 2 * _FOUND]


def _find_in_index(store: Store, index: Index, memory: MemoryRecord) -> Iterator[MemoryRecord]:
    only = Filter(sorts=frozenset({Sort.MEMORY}), kinds=frozenset({str(memory.kind)}))
    words = f"{memory.title} {memory.text}"[:1000].replace('"', " ")
    hits = index.search(Query(words, only, _FOUND, _SECONDS)).hits
    return known_memories(store, (MemoryId(hit.entry.whole) for hit in hits))


def _tail(store: Store, index: Index) -> Iterator[MemoryRecord]:
    """Memories that are not indexed yet, in their latest version; none if the index cannot tell."""
    with suppress(HotsetError, OSError):
        latest = {
            each.id: each for _, each in store.memories_after(memories_indexed(store, index), _TAIL)
        }
        return iter(latest.values())
    return iter(())


def _by_words(every: Iterable[MemoryRecord], memory: MemoryRecord) -> Sequence[MemoryRecord]:
    wanted = _words(memory)
    scored = (
        (len(wanted & _words(each)), each.id, each) for each in every if each.kind is memory.kind
    )
    return [
        each for shared, _, each in nlargest(_FOUND, scored, key=lambda found: found[:2]) if shared
    ]


def _words(memory: MemoryRecord) -> frozenset[str]:
    return frozenset(term.text for term in terms(f"{memory.title} {memory.text}"))


Similar = Callable[[MemoryRecord], Sequence[MemoryRecord]]
"""Memories on the same topic, the nearest first."""


@dataclass(frozen=True, slots=True)
class MemoryCommit:
    versions: tuple[MemoryRecord, ...] = ()
    """The versions written."""
    absorbed: Mapping[MemoryId, MemoryId] = field(default_factory=dict)
    """Memories that add nothing to an existing one, and which."""


def remember_session(
    store: Store, session: SessionId, now: float, similar: Similar
) -> MemoryCommit:
    """Store the memories of a session so far. Idempotent."""
    from hotset.sources.memory.encode.encoder import encode_session  # noqa: PLC0415 - a tenth of a second that no start pays
    from hotset.sources.memory.encode.session import read_session  # noqa: PLC0415

    material = read_session(store, session, now)
    encoded = encode_session(material)
    memories = _from_file(store, session, encoded.memories)
    made = keep_memories(store, memories, encoded.links, now, similar)
    _supersede_ledgers(store, session, memories, now)
    _count_useful(store, material, memories, now)
    _keep_findings(store, material.session, encoded.findings)
    return made


def _from_file(
    store: Store, session: SessionId, made: Sequence[MemoryRecord]
) -> Sequence[MemoryRecord]:
    """With the file that the session was learned from, for `rollback --source`; as they are if it
    went through hotset."""
    note = store.notes(METADATA, (session,)).get(session)
    file = decode_metadata(note.value).get(LEARNED_FROM) if note is not None else None
    if not file:
        return made
    return [
        replace(each, source=replace(each.source, places=(*each.source.places, file)))
        for each in made
    ]


def _keep_findings(store: Store, session: Session, findings: Sequence[WorkFinding]) -> None:
    """Store what finished work found as pages, each once."""
    wanted = Where(session=session.id, kinds=frozenset({Kind.FINDING}))
    known = {page.digest for page in store.pages(wanted)}
    for each in findings:
        content = each.text.encode("utf-8", "replace")
        if digest(content) not in known:
            store.keep(
                PageAdded(
                    session.id,
                    session.agent,
                    Kind.FINDING,
                    content,
                    each.time,
                    parent=each.after,
                    metadata={"by": RULES},
                )
            ).result(KEEP_SECONDS)


def keep_memories(
    store: Store,
    made: Sequence[MemoryRecord],
    links: Iterable[MemoryLink],
    now: float,
    similar: Similar,
) -> MemoryCommit:
    """Store what is new in these, with its consequences for older ones, in one commit."""
    from hotset.sources.memory.supersede import settle  # noqa: PLC0415 - as above

    given = tuple(links)

    def attempt() -> MemoryCommit:
        fresh = [
            version for memory in made if (version := _version(memory, store, now)) is not None
        ]
        settled = settle(fresh, store, similar, now)
        at = settled.absorbed
        moved = [
            replace(link, of=at.get(link.of, link.of), to=at.get(link.to, link.to))
            for link in given
        ]
        new_links = _new_links((*moved, *settled.links), store, now)
        if settled.memories or new_links:
            commit(store, settled.memories, new_links)
        return MemoryCommit(settled.memories, settled.absorbed)

    return _retry(attempt)


def _supersede_ledgers(
    store: Store, session: SessionId, made: Sequence[MemoryRecord], now: float
) -> None:
    """Supersede ledgers of work that this session continued or finished."""
    from hotset.sources.memory.supersede import overtaken_ledgers  # noqa: PLC0415 - as above

    versions, links = overtaken_ledgers(
        store.memories(kinds_of(Checkpoint), frozenset({Standing.ACTIVE})), session, made, now
    )
    if versions:
        with suppress(Conflict):  # another process decided about it meanwhile
            commit(store, versions, links)


def _count_useful(
    store: Store, material: Material, made: Sequence[MemoryRecord], now: float
) -> None:
    """Record which of the memories shown in the session helped or misled it."""
    from hotset.sources.memory.usefulness import judge_memories, shown_memories, verdict_deposits  # noqa: PLC0415 - as above

    session = material.session.id
    events = list(store.events(session))
    shown = [
        (memory, turn)
        for id, turn in shown_memories(events).items()
        if (memory := known_memory(store, id)) is not None
    ]
    episodes = [each for each in made if isinstance(each.detail, Episode)]
    uses, why = verdict_deposits(judge_memories(material, episodes, shown), session, events, now)
    for event in why:  # first: counting twice would be worse than not at all
        store.keep(event).result(KEEP_SECONDS)
    if uses:
        commit(store, uses=uses)


def _version(made: MemoryRecord, store: Store, now: float) -> MemoryRecord | None:
    """The version to write; None if nothing is new, or a person decided last."""
    versions = store.memory_versions(made.id)
    if not versions:
        return replace(made, version=1, time=now)
    latest = versions[-1]
    is_reworded = KINDS[made.kind].is_reworded and made.source.by == RULES
    if (
        latest.standing is Standing.FORGOTTEN
        or (latest.standing is Standing.MERGED and not is_reworded)
        or latest.source.by == PERSON
        or latest.run.startswith(REVIEW)
    ):
        return None
    if is_reworded:
        by_rules = next(
            (
                each
                for each in reversed(versions)
                if each.source.by == RULES and not each.run.startswith(CONSOLIDATE)
            ),
            None,
        )
        if by_rules is not None and is_same(_bare(by_rules), _bare(made)):
            return None
        kept = replace(made, version=latest.version, pinned=latest.pinned)
        if isinstance(made.detail, Episode) and latest.standing is not Standing.MERGED:
            kept = replace(kept, standing=latest.standing, valid_until=latest.valid_until)
        return next_version(kept, now, "", "its session went on")
    again = join_memories(latest, made)
    if latest.standing is Standing.CANDIDATE and made.standing is Standing.ACTIVE:
        again = replace(again, standing=made.standing, trust=made.trust)  # an outcome confirms it
    return None if is_same(again, latest) else next_version(again, now, "", "it came up again")


def _bare(memory: MemoryRecord) -> MemoryRecord:
    """Without what is decided elsewhere: pin, standing and validity."""
    return replace(memory, pinned=False, standing=Standing.ACTIVE, valid_until=None)


def _new_links(links: Iterable[MemoryLink], store: Store, now: float) -> tuple[MemoryLink, ...]:
    new: dict[tuple[MemoryId, MemoryId, str], MemoryLink] = {}
    held: dict[MemoryId, frozenset[tuple[MemoryId, MemoryId, str]]] = {}
    for link in links:
        if link.of not in held:
            held[link.of] = frozenset(
                (each.of, each.to, str(each.relation)) for each in store.memory_links(link.of)
            )
        named = (link.of, link.to, str(link.relation))
        if named not in held[link.of]:
            new[named] = replace(link, time=link.time or now)
    return tuple(new.values())


_LONGEST = 20_000
"""Characters of a memory. More is a document: it belongs in a file that a memory may name."""

_BEGINNING = re.compile(r"[a-z]+-[a-z0-9-]{0,80}")
_LONGEST_ID = 90
_ONE_LINE = 200
_TITLE = 90
_NAMED = 6


def find_memory(store: Store, id: str) -> MemoryRecord:
    """The memory with this id or unique prefix of it. Raises `NotFound`, and `BadInput` for an
    ambiguous prefix."""
    found: Sequence[MemoryId] = ()
    if _BEGINNING.fullmatch(id):
        if (exact := known_memory(store, MemoryId(id))) is not None:
            return exact
        found = store.memory_match(id)
    if len(found) == 1:
        return store.memory(found[0])
    if found:
        raise BadInput(f"several memories begin with {id}: {', '.join(found[:_NAMED])}; give one")
    near = get_close_matches(id, _beginning_alike(store, id), 3, 0.6)
    instead = f"did you mean {' or '.join(near)}? " if near else ""
    raise NotFound(f"no memory {id[:80]!r}; {instead}`hotset memory list` shows them")


def _beginning_alike(store: Store, id: str) -> Sequence[MemoryId]:
    """The ids that share the longest prefix with it."""
    beginnings = (id[:end] for end in range(min(len(id), _LONGEST_ID) - 1, 3, -1))
    return next(
        filter(
            None, (store.memory_match(each) for each in beginnings if _BEGINNING.fullmatch(each))
        ),
        (),
    )


def change_memory(
    store: Store, id: str, change: Callable[[MemoryRecord], MemoryRecord], why: str
) -> MemoryRecord:
    """A new version by a person; the latest one if nothing changes."""

    def attempt() -> MemoryRecord:
        latest = find_memory(store, id)
        version = change(latest)
        if is_same(latest, version):
            return latest
        version = next_version(version, time.time(), "", why)
        commit(store, (version,))
        return version

    return _retry(attempt)


def edit_memory(
    store: Store,
    id: str,
    *,
    text: str | None = None,
    title: str | None = None,
    topics: Sequence[str] | None = None,
    ending: Ending | None = None,
    confidence: float | None = None,
    pinned: bool | None = None,
) -> MemoryRecord:
    """Raises `BadInput` for invalid values, and changes nothing then."""
    if confidence is not None and not 0.0 <= confidence <= 1.0:
        raise BadInput(f"confidence is from 0 to 1, not {confidence:g}")

    def change(latest: MemoryRecord) -> MemoryRecord:
        own = text is not None or title is not None
        words = latest.text if text is None else checked_text(text)
        return replace(
            latest,
            text=words,
            title=title_for(latest, words) if title is None else one_line(title),
            tokens=latest.tokens
            if text is None
            else tokens.count(words.encode("utf-8", "replace")),
            topics=latest.topics if topics is None else tuple(one_line(topic) for topic in topics),
            ending=latest.ending if ending is None else ending,
            confidence=latest.confidence if confidence is None else confidence,
            pinned=latest.pinned if pinned is None else pinned,
            source=replace(latest.source, by=PERSON) if own else latest.source,
            trust=Trust.PERSON if own else latest.trust,
        )

    return change_memory(store, id, change, "a person corrected it")


def title_for(before: MemoryRecord, words: str) -> str:
    """Derive the title again if it was the beginning of the old text: lists must show the
    correction."""
    begins = before.title.rstrip("…").rstrip(".")
    if not before.text.startswith(begins) or words.startswith(begins):
        return before.title
    return clip_prose(next(iter(sentences(words)), words), _TITLE)


def checked_text(text: str) -> str:
    """The text to store, without secrets. Raises `BadInput` if it is empty or too long."""
    sealed = seal(text.strip()).text
    if not sealed:
        raise BadInput("nothing to remember: the text is empty")
    if len(sealed) > _LONGEST:
        raise BadInput(
            f"a memory has at most {_LONGEST:,} characters, not {len(sealed):,}; "
            "put it into a file and name that"
        )
    return sealed


def sealed_detail(value: Any) -> Any:
    """The details of a kind without secrets."""
    match value:
        case Enum():
            return value
        case str():
            return seal(value).text
        case tuple():
            return tuple(map(sealed_detail, value))
        case dict():
            return {sealed_detail(key): sealed_detail(each) for key, each in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            held = {each.name: getattr(value, each.name) for each in fields(value)}
            return replace(value, **{name: sealed_detail(each) for name, each in held.items()})
        case _:
            return value


def one_line(text: str) -> str:
    return " ".join(seal(text).text.split())[:_ONE_LINE]


_PENDING = Space("memory.pending", Scope.MACHINE, keeps=1)
"""Of this machine: it counts the pages of this store."""


_CHUNK = 1000


class _Progress(msgspec.Struct):
    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)] = 0
    """Of the last page read."""
    sessions: dict[str, float] = {}
    """Time of the last page of each waiting session."""


class PendingSessions:
    """Sessions with pages that were not made into memories yet.

    Derived from the store's pages: if the note is lost, every session waits again, and nothing is
    written twice. Processes may disagree, as repeated work changes nothing. Thread-safe.
    """

    def __init__(self, store: Callable[[], Store], old_file: Path) -> None:
        self._stored = StoredValue(_PENDING, _Progress, store, old_file=old_file)
        self._lock = threading.Lock()
        self._loaded: _Progress | None = None

    def look(self, store: Store, most: int = 1 << 62) -> bool:
        """Read new pages. False if there are more than `most`."""
        with self._lock:
            progress = self._read()
            if progress.number and not store.pages_after(
                progress.number - 1, 1
            ):  # made from another store
                progress.number = 0
            while most > 0 and (pages := store.pages_after(progress.number, min(_CHUNK, most))):
                for _, page in pages:
                    if page.kind is not Kind.FINDING:  # made from the others
                        progress.sessions[page.session] = max(
                            page.time, progress.sessions.get(page.session, 0.0)
                        )
                progress.number = pages[-1][0]
                most -= len(pages)
            return most > 0

    def ready(self, before: float) -> list[SessionId]:
        """Sessions without pages since `before`, the oldest first."""
        with self._lock:
            waiting = sorted(
                (time, id) for id, time in self._read().sessions.items() if time <= before
            )
        return [SessionId(id) for _, id in waiting]

    @property
    def many(self) -> int:
        with self._lock:
            return len(self._read().sessions)

    def done(self, session: SessionId, last_page: float) -> None:
        """The session was made into memories up to its page of that time."""
        with self._lock:
            sessions = self._read().sessions
            if sessions.get(session, 0.0) <= last_page:
                sessions.pop(session, None)

    def last_page_time(self, session: SessionId) -> float:
        with self._lock:
            return self._read().sessions.get(session, 0.0)

    def save(self, now: float) -> None:
        with self._lock:
            if self._loaded is not None:
                self._stored.write(self._loaded, now)

    def _read(self) -> _Progress:
        if self._loaded is None:
            stored = self._stored.read()
            self._loaded = _Progress(stored.number, dict(stored.sessions))
        return self._loaded


def is_found(memory: MemoryRecord) -> bool:
    return memory.standing in FINDABLE and memory.kind in NAMED_KINDS


def entry_of(memory: MemoryRecord, prompts: Sequence[str] = ()) -> Entry:
    """The index entry of a memory. `prompts`: an episode's prompts, sealed; people search by those
    words, and by those of an error."""
    errors = memory.detail.troubles if isinstance(memory.detail, Episode) else ()
    error_text = "\n".join(f"{each.kind}: {each.said}" for each in errors)[:_LONGEST_ERRORS]
    prompt_text = "\n".join(text[:_PER_PROMPT] for text in prompts)[:_LONGEST_PROMPTS]
    text = "\n".join(
        part
        for part in (
            memory.text[:_LONGEST_ENTRY],
            ", ".join(memory.topics),
            error_text,
            prompt_text,
        )
        if part
    )
    return Entry(
        id=EntryId(f"memory-{memory.id}"),
        whole=memory.id,
        sort=Sort.MEMORY,
        text=text,
        kind=memory.kind,
        title=memory.title,
        session=memory.source.session or "",
        agent=memory.source.agent,
        time=memory.created,
    )


def is_talk(page: Page) -> bool:
    """True for a prompt or a reply, not for a tool's result."""
    return page.kind in _SPEAKERS


def window_of(page: Page, text: str, before: Sequence[str], behind: Sequence[str]) -> Entry:
    """The index entry of a page with its neighbours; all texts are sealed."""
    around = [*before[-BESIDE:], *behind[:BESIDE]]
    at = len(before[-BESIDE:])
    parts = [each[:_AROUND] for each in around]
    parts.insert(at, text[:_OWN])
    return Entry(
        id=EntryId(f"window-{page.id}-{_SPEAKERS[page.kind]}"),
        whole=page.id,
        sort=Sort.MEMORY,
        text="\n".join(parts),
        kind=WINDOW,
        session=page.session,
        agent=page.agent,
        turn=page.turn,
        time=page.time,
    )


def window_speaker(entry: Entry) -> Kind:
    """The kind of the page in the middle of a window."""
    return _KINDS[entry.id[-1]]


MEMORIES = "memories-2"
TALK = "talk-1"
"""Watermarks. Change the number when entries change: everything is then indexed again."""

_MEMORIES_AT_ONCE = 256  # versions a commit
_PAGES_AT_ONCE = 64
_TAG_BITS = 16
_FAR_BACK = 64  # pages searched for earlier prompts and replies: tool results are in between
_MOST_KNOWN = 4096  # pages and texts cached while indexing
# characters of a page that are sealed for a window, which holds the first thousand
_LONGEST_PAGE = 16 * 1024
_MOST_PROMPTS = 24  # of an episode; only the first few thousand characters are indexed


_Entries = Callable[[Sequence[tuple[int, Any]]], Iterable[Entry]]
"""The entries of a batch of versions or pages."""


def follow_memories(
    store: Store, index: Index, until: float, clock: Callable[[], float] = time.monotonic
) -> int:
    """Update the index from the store, as far as time allows but at least one batch of each.

    Returns the number of versions and pages processed. Idempotent, also across processes. Raises a
    `HotsetError` if the store cannot be read or the index not be written.
    """
    line = _Line(store)
    followed: tuple[tuple[str, int, _Entries], ...] = (
        (MEMORIES, _MEMORIES_AT_ONCE, lambda batch: _memory_entries(store, index, batch)),
        (TALK, _PAGES_AT_ONCE, lambda batch: _window_entries(line, batch)),
    )
    passed = 0
    for mark, most, entries in followed:
        at = _indexed_number(store, index, mark)
        while batch := _after(store, mark, at, most):
            at = batch[-1][0]
            index.add(entries(batch), _watermark(mark, *batch[-1]))
            passed += len(batch)
            if clock() >= until:
                break
    return passed


def memories_indexed(store: Store, index: Index) -> int:
    """The number of the last indexed version."""
    return _indexed_number(store, index, MEMORIES)


def _after(store: Store, mark: str, number: int, most: int) -> Sequence[tuple[int, Any]]:
    """The next versions of memories, or pages, each with its number."""
    return (store.memories_after if mark == MEMORIES else store.pages_after)(number, most)


def _indexed_number(store: Store, index: Index, mark: str) -> int:
    """The indexed number; 0 if that item is gone: another store, or an erasure."""
    known = index.watermark(mark)
    number = known >> _TAG_BITS
    there = _after(store, mark, number - 1, 1) if number else ()
    return number if there and _watermark(mark, *there[0]).number == known else 0


def _watermark(mark: str, number: int, last: MemoryRecord | Page) -> Watermark:
    name = f"{last.id} {last.version}" if isinstance(last, MemoryRecord) else last.id
    tag = int.from_bytes(blake2b(name.encode(), digest_size=_TAG_BITS // 8).digest())
    return Watermark(mark, number << _TAG_BITS | tag)


def _memory_entries(
    store: Store, index: Index, batch: Sequence[tuple[int, MemoryRecord]]
) -> Iterator[Entry]:
    """Entries of the latest versions, so that several processes write the same. Removes what may no
    longer be found."""
    latest = known_memories(store, dict.fromkeys(memory.id for _, memory in batch))
    shown = [memory for memory in latest if is_found(memory)]
    hidden = {memory.id for _, memory in batch} - {memory.id for memory in shown}
    if hidden:
        index.remove(sorted(hidden))
    return (entry_of(memory, list(_prompts(store, memory))) for memory in shown)


def _prompts(store: Store, memory: MemoryRecord) -> Iterator[str]:
    """The prompts of an episode."""
    if not isinstance(memory.detail, Episode) or memory.source.session is None:
        return
    where = Where(
        session=memory.source.session,
        kinds=frozenset({Kind.PROMPT}),
        turns=memory.detail.turns,
        limit=_MOST_PROMPTS,
    )
    yield from filter(None, (_text(store, page) for page in store.pages(where)))


def _text(store: Store, page: Page) -> str:
    content = known_content(store, page.digest)
    return (
        ""
        if content is None or is_binary(content)
        else seal(content.decode("utf-8", "replace")[:_LONGEST_PAGE]).text
    )


def _window_entries(line: _Line, batch: Sequence[tuple[int, Page]]) -> Iterable[Entry]:
    windows: dict[EntryId, Entry] = {}
    for _, page in batch:
        line.meet(page)
        if is_talk(page):
            windows.update((window.id, window) for window in _windows(line.upto(page)))
    return windows.values()


def _windows(line: Sequence[tuple[Page, str]]) -> Iterator[Entry]:
    """Windows of the last page, and of those that now have it as a neighbour."""
    texts = [text for _, text in line]
    for at in range(max(0, len(line) - 1 - BESIDE), len(line)):
        if texts[at].strip():
            yield window_of(line[at][0], texts[at], texts[:at], texts[at + 1 :])


class _Line:
    """The prompts and replies before a page on its own branch. Pages come in order, so most are
    cached."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pages: Lru[PageId, Page] = Lru("pages to remember", count=_MOST_KNOWN)
        self._texts: Lru[PageId, str] = Lru("texts to remember", count=_MOST_KNOWN)

    def meet(self, page: Page) -> None:
        self._pages.put(page.id, page)

    def upto(self, page: Page) -> list[tuple[Page, str]]:
        """The page and as many before it as the windows that contain it need."""
        line = [(page, self._text(page))]
        at = page
        for _ in range(_FAR_BACK):
            before = self._before(at)
            if before is None or len(line) > 2 * BESIDE:
                break
            at = before
            if is_talk(at):
                line.append((at, self._text(at)))
        return line[::-1]

    def _before(self, page: Page) -> Page | None:
        parent = page.parent
        if parent is None:
            return None
        try:
            return self._pages.get_or_make(parent, lambda: self._store.page(parent))
        except (NotFound, PageDamaged):
            return None

    def _text(self, page: Page) -> str:
        return self._texts.get_or_make(page.id, lambda: _text(self._store, page))
