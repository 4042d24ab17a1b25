"""Recall: the pages and memories that answer a question, ranked together, each with its reasons.

No model is called. A few index queries become signals, whose weighted sum is the order. What the
index does not hold of a memory (what replaced it, how often it was used) is read from the store for
the few that may be shown.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, zip_longest

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
from hotset.sources.memory.days import local_offset
from hotset.sources.memory.encode.speakers import is_person
from hotset.sources.memory.error_match import quoted_error, text_with_resolution
from hotset.sources.memory.kinds import ADVICE_KINDS, NAMED_KINDS, WARNING_KINDS
from hotset.sources.memory.memory_text import asks_for_a_number, asks_how, asks_the_model
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
    WordRow,
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
    text_likeness,
    text_signals,
    wanted_kind,
    why,
    without_wish,
    word_rows,
)
from hotset.sources.memory.tasks import detect_task
from hotset.sources.memory.time_parser import time_words
from hotset.store.port import Store, Where
from hotset.text.terms import Term, first_hits, terms
from hotset.window.page_text import page_stretches

TALK = "said"
"""The kind of an item that is no memory, but a page of the conversation."""

_LONGEST_QUESTION = 4000  # characters: a prompt may be a whole log
_RECORDS = 60  # memories whose records are read: the best by the index
_CLOSELY = 60  # candidates that are reranked word by word: 3 ms
_LOGGED = 30
_SCANNED = 2000  # newest versions of memories, if there is no index
_HEADING = 80  # characters
_LEAST_TERMS = 3  # telling words of a page beside others: "ok" is not enough
_LEAST_OWN = 2  # telling words of a page that only the turns around it found
_REPLACED_BY = 5  # steps from a replaced fact to the one that holds now
_MOST_ERRORS = 2  # memories that met the error that a question quotes, in front of all others
_FITS, _FITS_ANY_TASK = 0.6, 0.8
"""Share of a question's telling words that advice has to fit it; more if the task does not want its
kind."""
_FEWEST_TERMS = 2  # of a title
_SHORT_QUESTION = 600  # characters
_AN_HOUR = 3600.0
_LATER_FIRST = 5  # of the first; with more of them, recall@5 fell
_LATER_LIKE, _LATER_SCORE = 0.5, 0.4
"""Cosine of two texts, and how much lower the later one may score to come first. On questions whose
answer changed, the one that holds came first in 46 % without and in 67 % with this, for a point of
NDCG@10 on all questions."""
_CHANGED_SCORE = 1.0
_CHANGED = re.compile(
    r"\b(?:no longer|anymore|any more|instead of|from now on|as of (?:now|today)|used to|replaced"
    r"|(?:switched|moved|changed) (?:to|from)|correction|amend(?:ed|ment))\b",
    re.IGNORECASE,
)
_NOTHING_SERVES = frozenset({"words", "meaning"})
_FIT = frozenset(
    {"words", "meaning", "window", "around", "closely", "pointed", "session", "told", "number"}
)
"""Signals of how well an item answers a question; the others are about speaker, time and
validity."""
OUTSIDE = "quoted from outside"
_PARTS = 32  # parts of a message, and prompts in a row


@dataclass(frozen=True, slots=True)
class RecallQuery:
    query: str
    now: float
    task: Task | None = None
    """None: detected from the query."""
    kinds: frozenset[MemoryKind] = frozenset()
    """Kinds of memories to recall; all if empty."""
    talk: bool = True
    """Recall pages of conversations, too."""
    memories: bool = True
    """Recall memories; otherwise they only help to find pages."""
    session: SessionId | None = None
    """The session that asks. Its own pages are in its window already and are not recalled."""
    most: int = 10
    advice: int = MemoryKnobs().advice
    """At most so many procedures, and so many pitfalls."""
    deadline: float = 0.2
    """Seconds. What takes longer is left out and named in `lacking`."""


@dataclass(frozen=True, slots=True)
class RecalledItem:
    id: str
    kind: str
    """A memory's kind, or `said`."""
    title: str
    text: str
    """Of a long page the stretch that fits. Data: its author may not be trusted."""
    time: float
    score: float
    """Comparable within one question only: good for an order, not for a threshold."""
    why: tuple[str, ...]
    signals: Mapping[str, float]
    memory: MemoryRecord | None = None
    page: PageId | None = None
    speaker: str = ""
    """Of a page: `user`, `assistant` or `quoted from outside`."""
    session: SessionId | None = None
    """The session of the page, or the one the memory was made from."""
    turn: int = 0
    """Of a page."""


@dataclass(frozen=True, slots=True)
class RecallResult:
    items: tuple[RecalledItem, ...] = ()
    """The best first."""
    task: Task = Task.IMPLEMENTATION
    words: str = ""
    """The words that were searched for."""
    since: float | None = None
    until: float | None = None
    lacking: frozenset[str] = frozenset()
    """Search stages that did not run: `index`, `words`, `meaning`, `tail`, `closely`."""
    candidates: tuple[tuple[str, Mapping[str, float]], ...] = ()
    """The first few ids with their signals, shown or not, for comparing other weights."""


def recall(
    asking: RecallQuery,
    index: Index | None,
    store: Store,
    weights: SignalWeights = DEFAULT,
    clock: Callable[[], float] = time.monotonic,
) -> RecallResult:
    """Rank memories and pages for a question. Forgotten, merged and unconfirmed memories are left
    out; a replaced fact yields the one that holds now."""
    until = clock() + asking.deadline
    query = asking.query[:_LONGEST_QUESTION]
    time_range = time_words(query, asking.now, local_offset)
    of_the_model = asks_the_model(query)
    words = query_words(query)  # with its time words: a text about March often names it
    if not of_the_model:
        words = without_wish(words)
    task = asking.task or detect_task(query).task
    error = quoted_error(query) if asking.memories else ""
    empty = RecallResult((), task, words, time_range.since, time_range.until)
    if asking.most <= 0 or not words:
        return empty
    setting = RankSetting(
        now=asking.now,
        task=task,
        spoken=time_range,
        of_the_model=of_the_model,
        for_a_number=asks_for_a_number(query),
        error=error,
    )
    question = IndexQuestion(
        words, asking.kinds or NAMED_KINDS, asking.talk, time_range.since, time_range.until, error
    )
    candidates, lacking = (
        gather(question, index, until, clock) if index is not None else ({}, _NOTHING_SERVES)
    )
    if not candidates and lacking >= _NOTHING_SERVES:
        candidates = _scan_newest(store, question)
        lacking = frozenset({"index"}) if index is None else lacking | {"index"}
    ranked = _Ranking(candidates, setting, weights)
    ranked.read_records(store)
    if clock() < until:
        ranked.rerank(words, word_rows(query), store)
    else:
        lacking |= {"closely"}
    ranked.transfer_fit()
    selector = _ItemSelector(asking, store, ranked, terms(query))
    first = tuple(
        (key, ranked.signals[key]) for key, _ in order(ranked.signals, ranked.weights)[:_LOGGED]
    )
    return replace(empty, items=tuple(selector.items()), lacking=lacking, candidates=first)


def best_stretch(page: Page, store: Store, wanted: Sequence[Term]) -> str:
    """The stretch of a page that shares most with the question; empty if the content is lost."""
    content = known_content(store, page.digest)
    stretches = () if content is None else page_stretches(page, content)
    return max(
        (each.text for each in stretches), key=lambda text: _shared_weight(text, wanted), default=""
    )


def speaker_of(page: Page, store: Store) -> str:
    """The speaker of a page; a prompt not proven to be a person's is a quotation."""
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
    """The model's reply right before a prompt; empty if it called a tool."""
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


def _shared_weight(text: str, wanted: Sequence[Term]) -> float:
    return sum(term.weight for _, term in first_hits(text, wanted))


def _share(text: str, wanted: Sequence[Term]) -> float:
    """The share of these terms, by weight, that the text has."""
    return _shared_weight(text, wanted) / sum(term.weight for term in wanted) if wanted else 0.0


def _scan_newest(store: Store, question: IndexQuestion) -> dict[str, RecallCandidate]:
    """The newest memories that share a telling word with the question, for when no index serves."""
    wanted = terms(question.words)
    newest = {
        memory.id: memory
        for _, memory in store.memories_after(max(0, _last_version(store) - _SCANNED), _SCANNED)
    }
    found = {}
    for memory in newest.values():
        if memory.kind not in question.kinds or memory.standing not in FINDABLE:
            continue
        entry = entry_of(memory)
        if shared := _shared_weight(f"{entry.title}\n{entry.text}", wanted):
            place = entry.session, entry.time, entry.turn, entry.title, entry.text
            found[entry.whole] = RecallCandidate(entry.whole, entry.kind, *place, words=shared)
    return found


def _last_version(store: Store) -> int:
    """The number of the last stored version of any memory."""
    beyond = 1
    while store.memories_after(beyond, 1):
        beyond *= 2
    low = beyond // 2
    while low < beyond:
        middle = (low + beyond) // 2
        low, beyond = (middle + 1, beyond) if store.memories_after(middle, 1) else (low, middle)
    return low


@dataclass(slots=True)
class _Ranking:
    """The candidates with their signals."""

    candidates: Mapping[str, RecallCandidate]
    setting: RankSetting
    weights: SignalWeights
    signals: dict[str, Signals] = field(init=False)
    memories: dict[str, MemoryRecord] = field(default_factory=dict)
    pages: dict[str, Page] = field(default_factory=dict)
    """The pages that were read."""
    texts: dict[str, str] = field(default_factory=dict)
    """The best stretches of pages that only the turns around them found."""
    uses: Mapping[MemoryId, Uses] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    """The reason to show for a memory that replaces another one."""
    decided_anew: dict[str, str] = field(default_factory=dict)
    """The same, by session."""
    moved: dict[str, str] = field(default_factory=dict)
    """From the session of a decision to the session that decided it anew."""
    successors: list[tuple[frozenset[str], tuple[str, ...]]] = field(default_factory=list)
    """What said something that was replaced, and what says the new: the memory and its pages."""

    def __post_init__(self) -> None:
        self.signals = first_signals(self.candidates, self.setting)

    def read_records(self, store: Store) -> None:
        """Read the records of the best memories and boost the pages they point to."""
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
                replaced[key] = _current_version(store, memory)
        boosts = evidence_boosts(self.candidates, self.signals, fitting, replaced)
        for key, new in replaced.items():
            if new is not None:
                self._replace_superseded(fitting.pop(key), new)
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

    def rerank(self, words: str, rows: frozenset[WordRow], store: Store) -> None:
        """Read the best candidates and score them word by word against the question."""
        first = [key for key, _ in order(self.signals, self.weights)[:_CLOSELY]]
        wanted = terms(words)
        for key in first:
            if key in self.candidates and self.candidates[key].is_talk:
                page = known_page(store, PageId(key))
                if page is not None:
                    text = self._read_page(page, wanted, store)
                    more = text_signals(text, page, words, rows, self.setting)
                    self.signals[key] |= more
        texts = [self.text_of(key) for key in first]
        for key, value in zip(first, spread(score_wordwise(words, texts)), strict=True):
            self.signals[key]["closely"] = value

    def _read_page(self, page: Page, wanted: Sequence[Term], store: Store) -> str:
        """The page's best stretch."""
        self.pages[page.id] = page
        text = self.candidates[page.id].text
        if not text:  # only the turns around it were found
            text = self.texts[page.id] = best_stretch(page, store, wanted)
        return text

    def transfer_fit(self) -> None:
        """Give the page that decided something anew the fit of the page that decided it before."""
        for before, now in self.moved.items():
            old, new = self._best_page(before), self._best_page(now)
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
        return self.texts.get(key) or (self.candidates[key].text if key in self.candidates else "")

    def _replace_superseded(self, old: MemoryRecord, new: MemoryRecord) -> None:
        """Replace a superseded memory by the one that holds now, which inherits its signals."""
        before = self.signals.pop(old.id)
        own = self.signals.get(new.id, {})
        self.signals[new.id] = {
            name: max(before.get(name, 0.0), own.get(name, 0.0)) for name in {**before, **own}
        }
        self.successors.append(
            (frozenset({old.id, *old.source.pages}), (new.id, *new.source.pages))
        )
        self.notes[new.id] = f"holds since {day(new.created)} in place of {old.id}"
        if old.source.session and old.source.session != new.source.session:
            self.moved[old.source.session] = new.source.session or ""
            self.decided_anew[old.source.session] = (
                f"what was decided there was decided anew on {day(new.created)}: {new.id}"
            )

    def _best_page(self, session: str) -> str | None:
        pages = {
            key: each
            for key, each in self.signals.items()
            if (candidate := self.candidates.get(key))
            and candidate.is_talk
            and candidate.session == session
        }
        return next((key for key, _ in order(pages, self.weights)), None)


def _current_version(store: Store, old: MemoryRecord) -> MemoryRecord | None:
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
class _ItemSelector:
    """From the ranking to the items shown: no duplicates, and only a few pieces of advice."""

    asking: RecallQuery
    store: Store
    ranked: _Ranking
    wanted: tuple[Term, ...]

    def items(self) -> list[RecalledItem]:
        ranked = self._order()
        items = list(islice(self._candidates(ranked), self.asking.most))
        if len(items) == self.asking.most and self._wants_a_pitfall(items):
            memories = self.ranked.memories
            pitfalls = [
                pair
                for pair in ranked
                if pair[0] in memories and memories[pair[0]].kind in WARNING_KINDS
            ]
            items[-1] = next(self._candidates(pitfalls), items[-1])
        return items

    def _wants_a_pitfall(self, items: list[RecalledItem]) -> bool:
        """True if the task is debugging and no pitfall is among the items."""
        pitfalls = not self.asking.kinds or bool(WARNING_KINDS & self.asking.kinds)
        debugging = self.ranked.setting.task is Task.DEBUGGING and self.asking.memories and pitfalls
        return debugging and all(item.kind not in WARNING_KINDS for item in items)

    def _candidates(self, ranked: list[tuple[str, float]]) -> Iterator[RecalledItem]:
        seen: set[str] = set()
        advice = dict.fromkeys(ADVICE_KINDS, 0)
        for key, score in ranked:
            item = (
                self._memory(key, score) if key in self.ranked.memories else self._page(key, score)
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

    def _order(self) -> list[tuple[str, float]]:
        """By score; memories of the quoted error and advice that fits have places of their own in
        front, behind the best item unless they are what is asked for."""
        ranked = self._later_first(order(self.ranked.signals, self.ranked.weights))
        if not self.asking.memories:
            return self._current_first(ranked)
        by_match = [
            (-match, at)
            for at, (key, _) in enumerate(ranked)
            if (match := self.ranked.signals[key].get("error", 0.0))
        ]
        errors = [ranked[at] for _, at in sorted(by_match)[:_MOST_ERRORS]]
        fitting = self._fitting_advice(ranked)
        placed = dict.fromkeys((*errors, *fitting))
        others = [pair for pair in ranked if pair not in placed]
        first = 0 if errors or asks_how(self.asking.query) else 1
        return self._current_first([*others[:first], *placed, *others[first:]])

    def _current_first(self, ranked: list[tuple[str, float]]) -> list[tuple[str, float]]:
        """What holds now in front of what it replaced."""
        for old, new in self.ranked.successors:
            place = {key: at for at, (key, _) in enumerate(ranked)}
            shown = [key for key in new if key in place and self._is_shown(key)]
            before = min((place[key] for key in old if key in place), default=len(ranked))
            if shown and (at := min(place[key] for key in shown)) > before:
                ranked.insert(before, ranked.pop(at))
        return ranked

    def _is_shown(self, key: str) -> bool:
        """True if the question wants such items."""
        memory = self.ranked.memories.get(key)
        if memory is None:
            return self.ranked.candidates[key].session != self.asking.session
        return self.asking.memories and (not self.asking.kinds or memory.kind in self.asking.kinds)

    def _fitting_advice(self, ranked: list[tuple[str, float]]) -> list[tuple[str, float]]:
        """A few of each kind; of those that have as many of the question's words the surest
        first."""
        found: list[tuple[float, float, int]] = []
        for at, (key, _) in enumerate(ranked):
            memory = self.ranked.memories.get(key)
            if memory is not None and memory.kind in ADVICE_KINDS and self._fits(memory):
                share = _share(f"{memory.title}\n{memory.text}", self.wanted)
                found.append((-round(share, 1), -memory.confidence, at))
        fitting = []
        many = dict.fromkeys(ADVICE_KINDS, 0)
        for *_, at in sorted(found):
            kind = self.ranked.memories[ranked[at][0]].kind
            many[kind] += 1
            if many[kind] <= self.asking.advice:
                fitting.append(ranked[at])
        return fitting

    def _later_first(self, ranked: list[tuple[str, float]]) -> list[tuple[str, float]]:
        """Of the first few, the later of two that say nearly the same in different sessions comes
        first: it may be a correction."""
        spoken = self.ranked.setting.spoken
        if spoken.first or spoken.until is not None:
            return ranked
        first, rest = ranked[:_LATER_FIRST], ranked[_LATER_FIRST:]
        alike = text_likeness([self.ranked.text_of(key) for key, _ in first])
        at = list(range(len(first)))
        for place in range(1, len(first)):
            later = at[place]
            before = [
                other
                for other in range(place)
                if alike[at[other]][later] >= _LATER_LIKE
                and first[later][1] >= first[at[other]][1] - self._lead(first[later][0])
                and self._is_later(first[later][0], first[at[other]][0])
            ]
            if before:
                at.insert(before[0], at.pop(place))
        return [*(first[each] for each in at), *rest]

    def _lead(self, key: str) -> float:
        """How much lower a later text may score: more if it says that something changed."""
        return _CHANGED_SCORE if _CHANGED.search(self.ranked.text_of(key)) else _LATER_SCORE

    def _is_later(self, one: str, other: str) -> bool:
        """True if it is of another session, and more than an hour later."""
        (session, time), (before, earlier) = self._origin(one), self._origin(other)
        return session != before and time > earlier + _AN_HOUR

    def _origin(self, key: str) -> tuple[str, float]:
        memory = self.ranked.memories.get(key)
        if memory is not None:
            return memory.source.session or "", memory.created
        return self.ranked.candidates[key].session, self.ranked.candidates[key].time

    def _fits(self, advice: MemoryRecord) -> bool:
        """True if it has most telling words of the question, or its title is in a short one."""
        setting, query = self.ranked.setting, self.asking.query
        is_wanted = wanted_kind(advice.kind, setting.task) > 0 or (
            advice.kind not in WARNING_KINDS and asks_how(query)
        )
        text = f"{advice.title}\n{advice.text}"
        if _share(text, self.wanted) >= (_FITS if is_wanted else _FITS_ANY_TASK):
            return True
        title = terms(advice.title)
        is_short = is_wanted and len(query) <= _SHORT_QUESTION and len(title) >= _FEWEST_TERMS
        return is_short and _share(query, title) >= _FITS_ANY_TASK

    def _memory(self, key: str, score: float) -> RecalledItem | None:
        memory = self.ranked.memories[key]
        if not self.asking.memories or (self.asking.kinds and memory.kind not in self.asking.kinds):
            return None
        reasons = self._why(key, f"{memory.title}\n{memory.text}", memory)
        if key in self.ranked.notes:
            reasons = (self.ranked.notes[key], *reasons)
        text = text_with_resolution(memory, self.ranked.setting.error)
        fields = memory.title, text, memory.created, round(score, 6)
        signals, session = dict(self.ranked.signals[key]), memory.source.session
        return RecalledItem(
            memory.id, memory.kind, *fields, reasons, signals, memory, session=session
        )

    def _page(self, key: str, score: float) -> RecalledItem | None:
        candidate = self.ranked.candidates[key]
        if not candidate.is_talk or candidate.session == self.asking.session:
            return None
        page = self.ranked.pages.get(key) or known_page(self.store, PageId(key))
        if page is None:
            return None
        text = self.ranked.text_of(key) or best_stretch(page, self.store, self.wanted)
        if not text or not (candidate.text or len(terms(text)) >= _LEAST_OWN):
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
    fields = heading(text), text, page.time, 0.0, reasons, dict[str, float]()
    speaker = speaker_of(page, store)
    return RecalledItem(page.id, TALK, *fields, None, page.id, speaker, page.session, page.turn)


NEIGHBOUR_WHY = "said where something else was found"

_SESSIONS = 8  # the best ones
_AROUND = 40  # turns before the first and after the last hit in a session
_PAGES = 200  # looked at in one session
_PROMPTS = frozenset({Kind.PROMPT})


def neighbour_pages(
    items: Sequence[RecalledItem], store: Store, query: str = "", *, but: SessionId | None = None
) -> Iterator[RecalledItem]:
    """Prompts near the items' turns, one session after the other, lazily; in each the nearest
    first.

    Excludes the items themselves and the asking session (`but`).
    """
    wanted, known = terms(query), {item.id for item in items}
    seen: set[str] = set()
    sessions = [(session, turns) for session, turns in turns_of(items).items() if session != but][
        :_SESSIONS
    ]
    for page in chain.from_iterable(
        zip_longest(*(prompts_near(turns, session, store) for session, turns in sessions))
    ):
        if page is None or page.id in known or page.digest in seen:
            continue
        seen.add(page.digest)
        if (item := as_recalled(page, store, wanted, NEIGHBOUR_WHY)) is not None:
            yield item


def turns_of(items: Iterable[RecalledItem]) -> dict[SessionId, list[int]]:
    """The sessions of the items, best first, with the turns of the items."""
    found: dict[SessionId, list[int]] = {}
    for item in items:
        if item.session is not None:
            detail = item.memory.detail if item.memory is not None else None
            made_of = detail.turns if isinstance(detail, Episode) else ()
            turns = (item.turn,) if item.memory is None else made_of
            found.setdefault(item.session, []).extend(turns)
    return found


def prompts_near(turns: Sequence[int], session: SessionId, store: Store) -> list[Page]:
    """The prompts of a session, the nearest to these turns first."""
    span = (min(turns) - _AROUND, max(turns) + _AROUND) if turns else None
    pages = store.pages(Where(session=session, kinds=_PROMPTS, turns=span, limit=_PAGES))
    return sorted(
        pages, key=lambda page: min((abs(page.turn - turn) for turn in turns), default=page.turn)
    )


def as_recalled(page: Page, store: Store, wanted: Sequence[Term], why: str) -> RecalledItem | None:
    """A page as an item; None if it has too few telling words."""
    text = best_stretch(page, store, wanted)
    return _page_item(page, store, text, (why,)) if says_something(text) else None


ELSEWHERE_WHY = "said in a session that may be about it"

_NEAREST = 200  # prompts searched for: in a small store that is all of them
_AT_A_TIME = 8
"""Sessions that take turns before the next ones. On conversations among 30 others one at a time and
all at once show less of the evidence in a thousand tokens: 98.6 and 98.8 against 99.4 %."""
_PERSON, _MODEL = "user", "assistant"
_ONLY_PROMPTS = Filter(sorts=frozenset({Sort.PAGE}), kinds=frozenset({str(Kind.PROMPT)}))


def pages_elsewhere(
    asking: RecallQuery,
    found: RecallResult,
    index: Index | None,
    store: Store,
    *,
    shown: frozenset[str] = frozenset(),
) -> Iterator[RecalledItem]:
    """Prompts of likely sessions, a few sessions at a time by turns; in each the nearest to the
    question first.

    Replies follow, or precede if the question asks for them. Lazy; excludes what was `shown`,
    duplicates and the asking session.
    """
    answers = [item for item in found.items if item.speaker == _MODEL and item.id not in shown]
    people = _prompts_elsewhere(asking, found, index, store, shown)
    yield from chain(answers, people) if asks_the_model(asking.query) else chain(people, answers)


def _prompts_elsewhere(
    asking: RecallQuery,
    found: RecallResult,
    index: Index | None,
    store: Store,
    shown: frozenset[str],
) -> Iterator[RecalledItem]:
    wanted, known = terms(found.words), set(shown)
    nearest, turns = _nearest(asking, found, index), turns_of(found.items)
    sessions = [
        session for session in dict.fromkeys((*turns, *nearest)) if session != asking.session
    ]
    pages = {item.id: item for item in found.items if item.memory is None}
    for at in range(0, len(sessions), _AT_A_TIME):
        some = (
            _prompts_of(each, nearest.get(each, ()), turns.get(each, ()), store)
            for each in sessions[at : at + _AT_A_TIME]
        )
        for page in chain.from_iterable(zip_longest(*some)):
            if page is None or page.id in known or page.digest in known:
                continue
            known |= {page.id, page.digest}
            item = pages.get(page.id) or as_recalled(page, store, wanted, ELSEWHERE_WHY)
            if item is not None:
                yield item


def _nearest(
    asking: RecallQuery, found: RecallResult, index: Index | None
) -> dict[SessionId, list[PageId]]:
    """The prompts of each session, best first: those recalled, then those the index finds."""
    nearest: dict[SessionId, list[PageId]] = {}
    for item in found.items:
        if item.session is not None and item.page is not None and item.speaker == _PERSON:
            nearest.setdefault(item.session, []).append(item.page)
    if index is not None and found.words:
        for hit in index.search(Query(found.words, _ONLY_PROMPTS, _NEAREST, asking.deadline)).hits:
            nearest.setdefault(SessionId(hit.entry.session), []).append(PageId(hit.entry.whole))
    return nearest


def _prompts_of(
    session: SessionId, first: Sequence[PageId], turns: Sequence[int], store: Store
) -> Iterator[Page]:
    """These prompts, then the others of the session."""
    near = list(turns)
    for id in dict.fromkeys(first):
        if (page := known_page(store, id)) is not None:
            near.append(page.turn)
            yield page
    yield from prompts_near(near, session, store)
