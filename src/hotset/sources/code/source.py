"""Code as a source: files that a model is about to need, offered before it asks, and search.

An offer that is taken is judged later by what the model did: it copied from it, asked for the whole
file, or neither.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from hashlib import blake2b

import msgspec

from hotset.files.deadline_pool import DeadlinePool
from hotset.files.lru import Lru
from hotset.index.port import Index
from hotset.nouns.candidate import Candidate, OfferKind, OfferSlot
from hotset.nouns.deposit import Deposit
from hotset.nouns.knobs import Prefetch, Prefetching
from hotset.nouns.link import Link
from hotset.nouns.page import Chain, Kind
from hotset.nouns.search import Entry, Hits, Query, SearchHit, Sort, SourceHits
from hotset.nouns.turn import Event
from hotset.nouns.window import Hidden
from hotset.sources.port import Scene, Source, TurnEnd
from hotset.window.arguments import spoken
from hotset.window.prefetch import JudgedOffer, Prompt, Verdict, candidates, judge, queries

PREFETCHED, JUDGED = "Prefetched", "PrefetchJudged"
"""Event names: an offer was made; a part of one was judged."""

_THREADS = 2
_RACE_SECONDS = 0.2
"""Time of a search beside a client's tools: as long as the index takes for a full search."""

_MOST_OPEN = 256
"""Offers that wait for their verdict."""


@dataclass(frozen=True, slots=True)
class _Race:
    """A search that runs while a client's tools do."""

    asked: Prompt
    finding: Future[list[Hits]]


class CodeSource(Source):
    """Offers excerpts of the project's files, and searches them."""

    name = "code"

    def __init__(
        self,
        index: Callable[[], Index | None],
        knobs: Prefetch,
        monotonic: Callable[[], float] = time.monotonic,
        patience: float = 1.0,
    ) -> None:
        """`index` returns the index once it is open."""
        self._index = index
        self._is_off = knobs.mode is Prefetching.OFF
        self._monotonic = monotonic
        self._patience = patience
        self._pool = DeadlinePool(_THREADS, "hotset-prefetch")
        self._races: Lru[Chain, _Race] = Lru(count=_MOST_OPEN)
        """Keyed by the reply whose calls are running."""
        self._open: Lru[Chain, tuple[Candidate, ...]] = Lru(count=_MOST_OPEN)
        """Taken offers without a verdict, keyed by the message they follow."""

    def is_quiet(self, *, opens: bool) -> bool:
        del opens
        return self._is_off

    def seconds(self, scene: Scene) -> float:
        return scene.knobs.prefetch.seconds * self._patience

    def offer(self, scene: Scene, until: float) -> Sequence[Candidate]:
        knobs, index = scene.knobs.prefetch, self._index()
        if self._is_off or knobs.mode is Prefetching.OFF or scene.room <= 0:
            return ()
        if scene.prompt:
            if index is None:
                return ()
            asked = Prompt(scene.prompt, scene.now)
            found = list(self._search(index, asked, knobs, until))
            return candidates(
                asked, found, slot=OfferSlot.BEHIND_PROMPT, knobs=knobs, count=scene.count
            )
        race = self._races.pop(scene.answered.chain) if scene.answered is not None else None
        if race is None or not race.finding.done() or race.finding.exception() is not None:
            return ()
        found = race.finding.result()
        return candidates(
            race.asked, found, slot=OfferSlot.BEHIND_RESULT, knobs=knobs, count=scene.count
        )

    def took(self, scene: Scene, taken: Sequence[Candidate]) -> Sequence[Deposit]:
        judged = self._judged(scene.links, scene.hidden) if len(self._open) else ()
        events = [judged_event(each, scene.now) for each in judged]
        if taken:
            self._open.put(scene.last.chain, tuple(taken))
            events.append(offered_event(taken, scene))
        return events

    def heard(self, end: TurnEnd) -> Sequence[Deposit]:
        """Search for what a reply's tool calls will need next, while the client runs them."""
        knobs, index = end.scene.knobs.prefetch, self._index()
        parts = [part for message in end.reply.messages for part in message.parts]
        calls = [part for part in parts if part.kind.family is Kind.TOOL_CALL]
        chains = [each.chain for each in end.reply_links if not each.message.aside]
        if self._is_off or not knobs.racing or index is None or not calls or not chains:
            return ()
        texts = [part.content for part in parts if part.kind is Kind.RESPONSE]
        words = [
            *(each.decode("utf-8", "replace") for each in texts),
            *(spoken(call.content) for call in calls),
        ]
        asked = Prompt("\n".join(words), end.scene.now)
        until = self._monotonic() + _RACE_SECONDS * self._patience
        racing = self._pool.submit_if_free(lambda: list(self._search(index, asked, knobs, until)))
        if racing is not None:
            self._races.put(chains[-1], _Race(asked, racing))
        return ()

    def find(self, query: Query) -> SourceHits:
        """Hits in the project's files."""
        from hotset.sources.code.code_search import find_code  # noqa: PLC0415 - the index's analysis

        index = self._index()
        if index is None:
            return SourceHits()
        found = find_code(index, query)
        hits = [_code_hit(hit.entry, hit.score) for hit in found.hits]
        return SourceHits(hits, found.lacking, found.why)

    @property
    def busy(self) -> bool:
        """True while a search runs."""
        return self._pool.busy

    async def close(self) -> None:
        self._pool.close()

    def _search(self, index: Index, asked: Prompt, knobs: Prefetch, until: float) -> Iterator[Hits]:
        for query in queries(asked, knobs):
            left = until - self._monotonic()
            if left <= 0:
                return
            yield index.search(replace(query, deadline=left))

    def _judged(
        self, links: Sequence[Link], hidden: Mapping[Chain, Hidden]
    ) -> tuple[JudgedOffer, ...]:
        """The verdicts that a request makes possible. Each is given once."""
        waiting = [
            (at, every)
            for at, each in enumerate(links)
            if (every := self._open.get(each.chain)) is not None
        ]
        given: list[JudgedOffer] = []
        for at, every in waiting:
            actions = [
                part.content
                for each in links[at:]
                for part in each.message.parts
                if part.kind.family is Kind.TOOL_CALL
            ]
            retrieved = _find_retrieved(
                every, [hidden[each.chain] for each in links[at:] if each.chain in hidden]
            )
            verdicts = [(each, judge(each, actions, retrieved)) for each in every]
            given += [verdict for _, verdict in verdicts if verdict is not None]
            rest = tuple(each for each, verdict in verdicts if verdict is None)
            if rest:
                self._open.put(links[at].chain, rest)
            else:
                self._open.pop(links[at].chain)
        index = self._index()
        useful = [_entry(each.offered).id for each in given if each.verdict is not Verdict.WASTED]
        if index is not None and useful:
            self._pool.submit_if_free(lambda: index.touch(useful))
        return tuple(given)


@dataclass(frozen=True, slots=True)
class Prefetches:
    """Counts of offers and their verdicts, from events."""

    offered: int = 0
    """Excerpts and hints."""
    tokens: int = 0
    used: int = 0
    expanded: int = 0
    wasted: int = 0
    saved: int = 0
    """Tokens of excerpts that an action copied from before any action had read their file."""

    def after(self, event: Event) -> Prefetches:
        detail = event.detail
        if event.name == PREFETCHED:
            many = int(detail["excerpts"]) + int(detail["hints"])
            return replace(
                self, offered=self.offered + many, tokens=self.tokens + int(detail["tokens"])
            )
        if event.name == JUDGED:
            verdict = str(Verdict(str(detail["verdict"])))
            return replace(
                self,
                saved=self.saved + int(detail["saved"]),
                **{verdict: getattr(self, verdict) + 1},
            )
        return self


def offered_event(taken: Sequence[Candidate], scene: Scene) -> Event:
    kinds = [each.kind for each in taken]
    heading = scene.count(taken[0].heading.encode())
    detail: dict[str, str | int | float] = {
        "entries": ",".join(_name(each) for each in taken),
        "confidence": ",".join(f"{each.worth:.2f}" for each in taken),
        "excerpts": kinds.count(OfferKind.EXCERPT),
        "hints": kinds.count(OfferKind.HINT),
        "tokens": heading + sum(each.tokens for each in taken),
    }
    return Event(PREFETCHED, scene.now, detail=detail)


def judged_event(judged: JudgedOffer, now: float) -> Event:
    detail: dict[str, str | int | float] = {
        "entry": _name(judged.offered),
        "verdict": str(judged.verdict),
        "confidence": round(judged.offered.worth, 2),
        "tokens": judged.offered.tokens,
        "saved": judged.saved,
    }
    return Event(JUDGED, now, detail=detail)


def _code_hit(entry: Entry, score: float) -> SearchHit:
    first, last = entry.lines
    what = entry.title.removeprefix(entry.path).strip()
    detail = {
        "path": entry.path,
        "lines": [first, last],
        "title": what,
        "language": entry.kind,
        "text": entry.text,
    }
    return SearchHit(
        Sort.CODE, score, f"{entry.path}:{first}-{last}", what, stretch=entry, detail=detail
    )


def _entry(offered: Candidate) -> Entry:
    assert isinstance(offered.origin, Entry)
    return offered.origin


def _name(offered: Candidate) -> str:
    """A hash of an entry's id: the id may contain a path, which is content."""
    id = _entry(offered).id
    return blake2b(id.encode("utf-8", "replace"), digest_size=6).hexdigest()


def _find_retrieved(every: Collection[Candidate], hidden: Collection[Hidden]) -> frozenset[str]:
    """The offered files that the model asked for: its calls of our tools are among the hidden
    messages."""
    raws = [raw for row in hidden for raw in (*row.before, row.instead)]
    wholes = {_entry(each).whole for each in every}
    return frozenset(
        whole for whole in wholes if any(msgspec.json.encode(whole)[1:-1] in raw for raw in raws)
    )
