"""What is remembered of a question: the words that were said and the memories made of them, in one
order, each with its reasons.

No model is called. The index is asked a few times, what it knows becomes signals, and their
weighted sum is the order. What the index does not know of a memory (what replaced it, how often it
was used) is read from the store for the few that may be shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest

from hotset.index.port import Index
from hotset.nouns.knobs import MemoryKnobs
from hotset.nouns.memory import (
    Episode,
    MemoryId,
    MemoryKind,
    MemoryRecord,
    Relation,
    Standing,
    Task,
    Uses,
)
from hotset.nouns.page import Kind, Page, PageId, SessionId
from hotset.nouns.search import Filter, Query, Sort
from hotset.sources.memory.encode.speakers import is_person
from hotset.sources.memory.kinds import ADVICE_KINDS, NAMED_KINDS, WARNING_KINDS
from hotset.sources.memory.memory_text import asks_for_a_number, asks_of_oneself, asks_the_model
from hotset.sources.memory.memory_writer import (
    FINDABLE,
    entry_of,
    known_content,
    known_memory,
    known_page,
)
from hotset.sources.memory.recall_signals import (
    DEFAULT,
    SAME_SESSION,
    IndexQuestion,
    RankSetting,
    RecallCandidate,
    Signals,
    SignalWeights,
    day,
    evidence_boosts,
    first_signals,
    gather,
    held_then,
    memory_signals,
    order,
    query_words,
    score_wordwise,
    spread,
    text_signals,
    why,
)
from hotset.sources.memory.tasks import detect_task
from hotset.sources.memory.time_parser import time_words
from hotset.store.port import Store, Where
from hotset.text.terms import Term, first_hits, terms
from hotset.window.page_text import page_stretches

SAID = "said"
"""The kind of what is no memory, but somebody's words."""

_LONGEST_QUESTION = 4000  # characters: a prompt may be a whole log
_RECORDS = 40  # memories whose records are read: those that fit best
_CLOSELY = 60  # candidates that are read word by word: 3 ms
_LOGGED = 30
_SCANNED = 2000  # versions of memories, the newest, where there is no index
_HEADING = 80  # characters
_LEAST_TERMS = (
    3  # telling words of what was found by its neighbours alone: "ok" beside an answer is none
)
_REPLACED_BY = 5  # steps from one fact to the one that holds now
_NOTHING_SERVES = frozenset({"words", "meaning"})
_FIT = frozenset({"words", "meaning", "window", "closely", "pointed", "session", "told", "number"})
"""Signals of how well something answers a question; the others tell who said it, when, and whether
it holds."""
OUTSIDE = "quoted from outside"
_PARTS = 32  # of a message, and prompts in a row


@dataclass(frozen=True, slots=True)
class RecallQuery:
    query: str
    now: float
    task: Task | None = None
    """None: told from the query."""
    kinds: frozenset[MemoryKind] = frozenset()
    """Of memories; all where none is named."""
    talk: bool = True
    """What was said is recalled, too."""
    memories: bool = True
    """Memories are recalled; otherwise they only help to find what was said."""
    session: SessionId | None = None
    """Who asks: what was said there is in its window already, and is not told again."""
    most: int = 10
    advice: int = MemoryKnobs().advice
    """Procedures, and pitfalls, at a time."""
    deadline: float = 0.2
    """Seconds. What takes longer is left out, and the answer says so."""


@dataclass(frozen=True, slots=True)
class RecalledItem:
    id: str
    kind: str
    """A memory's kind, or `said`."""
    title: str
    text: str
    """Of a long page the stretch that fits. Data: whoever wrote it may not be trusted."""
    time: float
    score: float
    """Of this question alone: good for an order, not for a threshold."""
    why: tuple[str, ...]
    signals: Mapping[str, float]
    memory: MemoryRecord | None = None
    page: PageId | None = None
    speaker: str = ""
    """`user`, `assistant` or `quoted from outside`, of what was said."""
    session: SessionId | None = None
    """Where it was said, or what it was made of."""
    turn: int = 0
    """Of what was said."""


@dataclass(frozen=True, slots=True)
class RecallResult:
    items: tuple[RecalledItem, ...] = ()
    """The best first."""
    task: Task = Task.IMPLEMENTATION
    words: str = ""
    """What was looked for."""
    since: float | None = None
    until: float | None = None
    lacking: frozenset[str] = frozenset()
    """What did not serve this time: `index`, `words`, `meaning`, `tail`, `closely`."""
    candidates: tuple[tuple[str, Mapping[str, float]], ...] = ()
    """The first few ids with their signals, shown or not: what other weights would have put in
    another order."""


def recall(
    asking: RecallQuery,
    index: Index | None,
    store: Store,
    weights: SignalWeights = DEFAULT,
    clock: Callable[[], float] = time.monotonic,
) -> RecallResult:
    """Never forgotten, merged or unconfirmed memories; of a fact that was replaced, the one that
    holds now."""
    until = clock() + asking.deadline
    query = asking.query[:_LONGEST_QUESTION]
    meant = time_words(query, asking.now)
    words = query_words(query)  # with its time: what happened in March often says so
    task = asking.task or detect_task(query).task
    nothing = RecallResult((), task, words, meant.since, meant.until)
    if asking.most <= 0 or not words:
        return nothing
    setting = RankSetting(
        now=asking.now,
        task=task,
        spoken=meant,
        of_the_model=asks_the_model(query),
        of_oneself=asks_of_oneself(query),
        for_a_number=asks_for_a_number(query),
    )
    asked = IndexQuestion(words, asking.kinds or NAMED_KINDS, asking.talk, meant.since, meant.until)
    candidates, lacking = (
        gather(asked, index, until, clock) if index is not None else ({}, _NOTHING_SERVES)
    )
    if not candidates and lacking >= _NOTHING_SERVES:
        candidates = _scanned(store, asked)
        lacking = frozenset({"index"}) if index is None else lacking | {"index"}
    ranked = _Ranked(candidates, setting, weights)
    ranked.look_into(store)
    if clock() < until:
        ranked.rerank(words)
    else:
        lacking |= {"closely"}
    ranked.put_what_holds_first()
    serving = _Serving(asking, store, ranked, terms(query))
    first = tuple(
        (key, ranked.signals[key]) for key, _ in order(ranked.signals, ranked.weights)[:_LOGGED]
    )
    return replace(nothing, items=tuple(serving.items()), lacking=lacking, candidates=first)


def best_stretch(page: Page, store: Store, wanted: Sequence[Term]) -> str:
    """Of a page that was not found by its own words: the stretch that shares most with the
    question; empty where it is lost."""
    content = known_content(store, page.digest)
    stretches = () if content is None else page_stretches(page, content)
    return max(
        (each.text for each in stretches), key=lambda text: _shared(text, wanted), default=""
    )


def speaker_of(page: Page, store: Store) -> str:
    """Who said it; a prompt that is not proven to be a person's is a quotation."""
    if page.kind is not Kind.PROMPT:
        return "assistant"
    message = list(
        store.pages(
            Where(
                session=page.session, chain=page.chain, kinds=frozenset({Kind.PROMPT}), limit=_PARTS
            )
        )
    )
    beside = [_content(each, store) for each in message if each.id != page.id]
    return (
        "user"
        if is_person(_content(page, store), beside, _reply_before(page, store), page.agent)
        else OUTSIDE
    )


def _reply_before(page: Page, store: Store) -> str:
    """What the model said right before a prompt; nothing where it had called a tool."""
    at: Page | None = page
    for _ in range(_PARTS):
        at = known_page(store, at.parent) if at is not None and at.parent is not None else None
        if at is None or at.kind is not Kind.PROMPT:
            break
    return _content(at, store) if at is not None and at.kind is Kind.RESPONSE else ""


def _content(page: Page, store: Store) -> str:
    return (known_content(store, page.digest) or b"").decode("utf-8", "replace")


def says_something(text: str) -> bool:
    return len(terms(text)) >= _LEAST_TERMS


def heading(text: str) -> str:
    return " ".join(text[: 2 * _HEADING].split())[:_HEADING]


def _shared(text: str, wanted: Sequence[Term]) -> float:
    return sum(term.weight for _, term in first_hits(text, wanted))


def _scanned(store: Store, asked: IndexQuestion) -> dict[str, RecallCandidate]:
    """The newest memories that share a telling word; for when no index serves."""
    wanted = terms(asked.words)
    newest = {
        memory.id: memory
        for _, memory in store.memories_after(max(0, _last(store) - _SCANNED), _SCANNED)
    }
    found = {}
    for memory in newest.values():
        if memory.kind not in asked.kinds or memory.standing not in FINDABLE:
            continue
        entry = entry_of(memory)
        if shared := _shared(f"{entry.title}\n{entry.text}", wanted):
            place = entry.session, entry.time, entry.turn, entry.title, entry.text
            found[entry.whole] = RecallCandidate(entry.whole, entry.kind, *place, words=shared)
    return found


def _last(store: Store) -> int:
    """The number of the last version that was kept: beyond it there is nothing."""
    beyond = 1
    while store.memories_after(beyond, 1):
        beyond *= 2
    low = beyond // 2
    while low < beyond:
        middle = (low + beyond) // 2
        low, beyond = (middle + 1, beyond) if store.memories_after(middle, 1) else (low, middle)
    return low


@dataclass(slots=True)
class _Ranked:
    """The candidates with all that speaks for them."""

    candidates: Mapping[str, RecallCandidate]
    setting: RankSetting
    weights: SignalWeights
    signals: dict[str, Signals] = field(init=False)
    memories: dict[str, MemoryRecord] = field(default_factory=dict)
    uses: Mapping[MemoryId, Uses] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    """What is to be said of a memory that stands for another one."""
    decided_anew: dict[str, str] = field(default_factory=dict)
    """The same, of a session."""
    moved: dict[str, str] = field(default_factory=dict)
    """From the session in which something was decided to the one in which that was decided anew."""

    def __post_init__(self) -> None:
        self.signals = first_signals(self.candidates, self.setting)

    def look_into(self, store: Store) -> None:
        """Reads the records of the memories that fit best, and lets them lift what they point
        to."""
        known = [
            key for key, _ in order(self.signals, self.weights) if not self.candidates[key].is_talk
        ]
        for key in known[_RECORDS:]:
            del self.signals[key]
        fitting: dict[str, MemoryRecord] = {}
        replaced: dict[str, MemoryRecord | None] = {}
        for key in known[:_RECORDS]:
            memory = known_memory(store, MemoryId(key))
            if memory is None or memory.standing not in FINDABLE:
                del self.signals[key]
                continue
            fitting[key] = memory
            if memory.standing is Standing.SUPERSEDED and not held_then(memory, self.setting):
                replaced[key] = _holding_now(store, memory)
        boosts = evidence_boosts(self.candidates, self.signals, fitting, replaced)
        for key, new in replaced.items():
            if new is not None:
                self._put_in_its_place(fitting.pop(key), new)
                fitting[new.id] = new
        self.memories = fitting
        self.uses = store.memory_uses([memory.id for memory in fitting.values()]) if fitting else {}
        for key, memory in fitting.items():
            self.signals[key] |= memory_signals(memory, self.uses.get(memory.id), self.setting)
            if isinstance(memory.detail, Episode) and memory.source.session in self.decided_anew:
                self.signals[key]["outdated"] = SAME_SESSION
                self.notes[key] = self.decided_anew[memory.source.session]
        for key, more in boosts.items():
            self.signals[key] |= more

    def rerank(self, words: str) -> None:
        """Of the first ones each word is compared with each of the question's."""
        first = [key for key, _ in order(self.signals, self.weights)[:_CLOSELY]]
        for key in first:
            if key in self.candidates:
                self.signals[key] |= text_signals(self.candidates[key], self.setting)
        texts = [self.text_of(key) for key in first]
        for key, value in zip(first, spread(score_wordwise(words, texts)), strict=True):
            self.signals[key]["closely"] = value

    def put_what_holds_first(self) -> None:
        """What was said where something was decided anew answers whatever is answered where that
        was decided before."""
        for before, now in self.moved.items():
            old, new = self._best_said(before), self._best_said(now)
            if old is None or new is None:
                continue
            for name in _FIT & self.signals[old].keys():
                self.signals[new][name] = max(
                    self.signals[old][name], self.signals[new].get(name, 0.0)
                )

    def text_of(self, key: str) -> str:
        memory = self.memories.get(key)
        if memory is not None:
            return f"{memory.title}\n{memory.text}"
        return self.candidates[key].text if key in self.candidates else ""

    def _put_in_its_place(self, old: MemoryRecord, new: MemoryRecord) -> None:
        """What holds now, with the signals of what it replaced."""
        before = self.signals.pop(old.id)
        own = self.signals.get(new.id, {})
        self.signals[new.id] = {
            name: max(before.get(name, 0.0), own.get(name, 0.0)) for name in {**before, **own}
        }
        self.notes[new.id] = f"holds since {day(new.created)} in place of {old.id}"
        if old.source.session and old.source.session != new.source.session:
            self.moved[old.source.session] = new.source.session or ""
            self.decided_anew[old.source.session] = (
                f"what was decided there was decided anew on {day(new.created)}: {new.id}"
            )

    def _best_said(self, session: str) -> str | None:
        said = {
            key: each
            for key, each in self.signals.items()
            if (found := self.candidates.get(key)) and found.is_talk and found.session == session
        }
        return next((key for key, _ in order(said, self.weights)), None)


def _holding_now(store: Store, old: MemoryRecord) -> MemoryRecord | None:
    at = old
    for _ in range(_REPLACED_BY):
        replacing = [
            link.of
            for link in store.memory_links(at.id)
            if link.relation is Relation.SUPERSEDES and link.to == at.id
        ]
        new = known_memory(store, replacing[-1]) if replacing else None
        if new is None:
            return None
        if new.standing is Standing.ACTIVE:
            return new
        at = new
    return None


@dataclass(slots=True)
class _Serving:
    """From the order to what is told: each thing once, and of advice one or two."""

    asking: RecallQuery
    store: Store
    ranked: _Ranked
    wanted: tuple[Term, ...]

    def items(self) -> list[RecalledItem]:
        items: list[RecalledItem] = []
        spare: RecalledItem | None = None
        for item in self._each():
            if len(items) < self.asking.most:
                items.append(item)
            elif item.kind in WARNING_KINDS:
                spare = item
                break
            elif not self._wants_a_pitfall(items):
                break
        if spare is not None and self._wants_a_pitfall(items):
            items[-1] = spare
        return items

    def _wants_a_pitfall(self, items: list[RecalledItem]) -> bool:
        """Whoever looks for a bug is told what to avoid, where anything is known."""
        pitfalls = not self.asking.kinds or bool(WARNING_KINDS & self.asking.kinds)
        debugging = self.ranked.setting.task is Task.DEBUGGING and self.asking.memories and pitfalls
        return debugging and all(item.kind not in WARNING_KINDS for item in items)

    def _each(self) -> Iterator[RecalledItem]:
        seen: set[str] = set()
        advice = dict.fromkeys(ADVICE_KINDS, 0)
        for key, score in order(self.ranked.signals, self.ranked.weights):
            item = (
                self._memory(key, score) if key in self.ranked.memories else self._said(key, score)
            )
            if item is None or (same := " ".join(item.text.split())) in seen:
                continue
            if (
                item.memory is not None
                and item.memory.kind in advice
                and self.asking.kinds != {item.memory.kind}
            ):
                advice[item.memory.kind] += 1
                if advice[item.memory.kind] > self.asking.advice:
                    continue
            seen.add(same)
            yield item

    def _memory(self, key: str, score: float) -> RecalledItem | None:
        memory = self.ranked.memories[key]
        if not self.asking.memories or (self.asking.kinds and memory.kind not in self.asking.kinds):
            return None
        reasons = self._why(key, f"{memory.title}\n{memory.text}", memory)
        if key in self.ranked.notes:
            reasons = (self.ranked.notes[key], *reasons)
        said = memory.title, memory.text, memory.created, round(score, 6)
        signals, session = dict(self.ranked.signals[key]), memory.source.session
        return RecalledItem(
            memory.id, memory.kind, *said, reasons, signals, memory, session=session
        )

    def _said(self, key: str, score: float) -> RecalledItem | None:
        candidate = self.ranked.candidates[key]
        if not candidate.is_talk or candidate.session == self.asking.session:
            return None
        page = known_page(self.store, PageId(key))
        if page is None:
            return None
        text = candidate.text or best_stretch(page, self.store, self.wanted)
        if not text or (not candidate.text and not says_something(text)):
            return None
        reasons = self._why(key, text, None)
        if candidate.session in self.ranked.decided_anew:
            reasons = (self.ranked.decided_anew[candidate.session], *reasons)
        return replace(
            _page_item(page, self.store, text, reasons),
            time=candidate.time,
            score=round(score, 6),
            signals=dict(self.ranked.signals[key]),
        )

    def _why(self, key: str, text: str, memory: MemoryRecord | None) -> tuple[str, ...]:
        ranked = self.ranked
        uses = ranked.uses.get(memory.id) if memory is not None else None
        return why(text, ranked.signals[key], self.wanted, ranked.setting, memory=memory, uses=uses)


def _page_item(page: Page, store: Store, text: str, reasons: tuple[str, ...]) -> RecalledItem:
    said = heading(text), text, page.time, 0.0, reasons, dict[str, float]()
    speaker = speaker_of(page, store)
    return RecalledItem(page.id, SAID, *said, None, page.id, speaker, page.session, page.turn)


NEIGHBOUR_WHY = "said where something else was found"

_SESSIONS = 8  # the first, by what was found of them
_AROUND = 40  # turns before the first and after the last that was found in a session
_PAGES = 200  # of a session that are looked at
_PROMPTS = frozenset({Kind.PROMPT})


def neighbour_pages(
    items: Sequence[RecalledItem], store: Store, query: str = "", *, but: SessionId | None = None
) -> Iterator[RecalledItem]:
    """A session after the other by turns, in each the nearest to what was found first. Nothing is
    read before it is wanted.

    Nothing of the session that asks (`but`), and nothing that is among the items.
    """
    wanted, known = terms(query), {item.id for item in items}
    told: set[str] = set()
    sessions = [(session, turns) for session, turns in turns_of(items).items() if session != but][
        :_SESSIONS
    ]
    for page in chain.from_iterable(
        zip_longest(*(said_near(turns, session, store) for session, turns in sessions))
    ):
        if page is None or page.id in known or page.digest in told:
            continue
        told.add(page.digest)
        if (item := as_recalled(page, store, wanted, NEIGHBOUR_WHY)) is not None:
            yield item


def turns_of(items: Iterable[RecalledItem]) -> dict[SessionId, list[int]]:
    """The sessions in which something was found, the best first, with the turns at which it was."""
    found: dict[SessionId, list[int]] = {}
    for item in items:
        if item.session is not None:
            detail = item.memory.detail if item.memory is not None else None
            made_of = detail.turns if isinstance(detail, Episode) else ()
            turns = (item.turn,) if item.memory is None else made_of
            found.setdefault(item.session, []).extend(turns)
    return found


def said_near(turns: Sequence[int], session: SessionId, store: Store) -> list[Page]:
    """What a person said in a session, the nearest to these turns first."""
    span = (min(turns) - _AROUND, max(turns) + _AROUND) if turns else None
    pages = store.pages(Where(session=session, kinds=_PROMPTS, turns=span, limit=_PAGES))
    return sorted(
        pages, key=lambda page: min((abs(page.turn - turn) for turn in turns), default=page.turn)
    )


def as_recalled(page: Page, store: Store, wanted: Sequence[Term], why: str) -> RecalledItem | None:
    """A person's words; None where they say nothing."""
    text = best_stretch(page, store, wanted)
    return _page_item(page, store, text, (why,)) if says_something(text) else None


ELSEWHERE_WHY = "said in a session that may be about it"

_NEAREST = (
    200  # of what people said, however far from the question: in a small store that is all of it
)
_AT_A_TIME = 8
"""Sessions that take turns before the next ones are looked at. On conversations among 30 others one
at a time and all at once show less of the evidence in a thousand tokens: 98.6 and 98.8 against 99.4
%."""
_PERSON, _MODEL = "user", "assistant"
_ONLY_PROMPTS = Filter(sorts=frozenset({Sort.PAGE}), kinds=frozenset({str(Kind.PROMPT)}))


def pages_elsewhere(
    asking: RecallQuery,
    found: RecallResult,
    index: Index | None,
    store: Store,
    *,
    told: frozenset[str] = frozenset(),
) -> Iterator[RecalledItem]:
    """People's words, a few sessions at a time by turns, the likeliest first; in each first what is
    nearest to the question.

    What models said of it stands behind them, or before them where the question asks for that.
    `found` is what was recalled. Nothing of what was `told`, nothing twice, and nothing of the
    session that asks. Nothing is read before it is wanted.
    """
    answers = [item for item in found.items if item.speaker == _MODEL and item.id not in told]
    people = _said_by_people(asking, found, index, store, told)
    yield from chain(answers, people) if asks_the_model(asking.query) else chain(people, answers)


def _said_by_people(
    asking: RecallQuery,
    found: RecallResult,
    index: Index | None,
    store: Store,
    told: frozenset[str],
) -> Iterator[RecalledItem]:
    wanted, known = terms(found.words), set(told)
    nearest, turns = _nearest(asking, found, index), turns_of(found.items)
    sessions = [
        session for session in dict.fromkeys((*turns, *nearest)) if session != asking.session
    ]
    said = {item.id: item for item in found.items if item.memory is None}
    for at in range(0, len(sessions), _AT_A_TIME):
        some = (
            _said_in(each, nearest.get(each, ()), turns.get(each, ()), store)
            for each in sessions[at : at + _AT_A_TIME]
        )
        for page in chain.from_iterable(zip_longest(*some)):
            if page is None or page.id in known or page.digest in known:
                continue
            known |= {page.id, page.digest}
            item = said.get(page.id) or as_recalled(page, store, wanted, ELSEWHERE_WHY)
            if item is not None:
                yield item


def _nearest(
    asking: RecallQuery, found: RecallResult, index: Index | None
) -> dict[SessionId, list[PageId]]:
    """What people said in each session, the best first: as it was recalled, and then by what an
    index says of it."""
    nearest: dict[SessionId, list[PageId]] = {}
    for item in found.items:
        if item.session is not None and item.page is not None and item.speaker == _PERSON:
            nearest.setdefault(item.session, []).append(item.page)
    if index is not None and found.words:
        for hit in index.search(Query(found.words, _ONLY_PROMPTS, _NEAREST, asking.deadline)).hits:
            nearest.setdefault(SessionId(hit.entry.session), []).append(PageId(hit.entry.whole))
    return nearest


def _said_in(
    session: SessionId, first: Sequence[PageId], turns: Sequence[int], store: Store
) -> Iterator[Page]:
    """These, and then whatever else was said there."""
    near = list(turns)
    for id in dict.fromkeys(first):
        if (page := known_page(store, id)) is not None:
            near.append(page.turn)
            yield page
    yield from said_near(near, session, store)
