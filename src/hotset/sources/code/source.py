"""Code as a source: files that a prompt is about, offered before the model has read them, and
search.

An offer that is taken is judged later by what the model did: it copied from it, opened the file, or
neither.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from hotset.errors import BadInput
from hotset.files.deadline_pool import DeadlinePool
from hotset.files.lru import CACHES, Lru
from hotset.files.root import MOST_BYTES, NotTaken, Root
from hotset.index.port import Index
from hotset.nouns.candidate import Candidate, OfferKind, OfferSlot
from hotset.nouns.deposit import Deposit
from hotset.nouns.knobs import Prefetch, Prefetching
from hotset.nouns.link import Link
from hotset.nouns.page import Chain, Kind
from hotset.nouns.search import Entry, Hits, Query, SearchHit, Sort, SourceHits
from hotset.nouns.turn import Event
from hotset.sources.code.prefetches import JUDGED, PREFETCHED
from hotset.sources.code.texts import read_text
from hotset.sources.port import Scene, Source, TurnEnd
from hotset.window.arguments import spoken
from hotset.window.prefetch import (
    JudgedOffer,
    Verdict,
    candidates,
    is_known,
    judge,
    query_for,
)

_THREADS = 2
_RACE_SECONDS = 0.2
"""Time of a search beside a client's tools: as long as the index takes for a full search."""

_WARMING_SECONDS = 1.0
"""Extra seconds a prompt may wait while the index is opened."""

_MOST_OPEN = 256
"""Offers that wait for their verdict."""


@dataclass(frozen=True, slots=True)
class _Race:
    """A search that runs while a client's tools do."""

    asked: str
    finding: Future[Hits]


class CodeSource(Source):
    """Offers excerpts of the project's files, and searches them."""

    name = "code"

    def __init__(
        self,
        index: Callable[[], Index | None],
        knobs: Prefetch,
        root: Path | None = None,
        *,
        is_indexed: Callable[[], bool] = lambda: True,
        opening: Callable[[], object] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        patience: float = 1.0,
    ) -> None:
        """`index` returns the index once it is open, and `opening` opens it; `is_indexed` says
        whether it has files of the project. What is offered is compared with the files below
        `root`, if it is given."""
        self._index = index
        self._is_off = knobs.mode is Prefetching.OFF
        self._root = root
        self._is_indexed = is_indexed
        self._opening = opening
        self._warming: Future[object] | None = None
        self._monotonic = monotonic
        self._patience = patience
        self._pool = DeadlinePool(_THREADS, "hotset-prefetch")
        self._races: Lru[Chain, _Race] = Lru("running searches", count=_MOST_OPEN, shrinks=False)
        """Keyed by the reply whose calls are running."""
        self._open: Lru[Chain, tuple[Candidate, ...]] = Lru(
            "unjudged offers", count=_MOST_OPEN, shrinks=False
        )
        """Taken offers without a verdict, keyed by the message they follow."""

    def warm(self) -> None:
        """Opens the index; a prompt that comes meanwhile waits for it a little longer."""
        if self._opening is not None and not self.is_quiet(opens=True):
            self._warming = self._pool.submit(self._opening)

    def is_quiet(self, *, opens: bool) -> bool:
        del opens
        return self._is_off or not CACHES.response.prefetches or not self._is_indexed()

    def seconds(self, scene: Scene) -> float:
        """0 if nothing would come of it: a request with results is not asked for unless a search
        for it has ended."""
        knobs = scene.knobs.prefetch
        if knobs.mode is Prefetching.OFF or not (scene.prompt or self._won_race(scene)):
            return 0.0
        warming = _WARMING_SECONDS if self._warming is not None else 0.0
        return (knobs.seconds + warming) * self._patience

    def offer(self, scene: Scene, until: float) -> Sequence[Candidate]:
        knobs = scene.knobs.prefetch
        if self._is_off or knobs.mode is Prefetching.OFF or scene.room <= 0:
            return ()
        if self._warming is not None:
            wait((self._warming,), max(0.0, until - self._monotonic()))
            self._warming = None  # done or failed, it is waited for once
        index = self._index()
        if scene.prompt:
            left = until - self._monotonic()
            if index is None or left <= 0:
                return ()
            found = index.search(query_for(scene.prompt, knobs, left))
            return self._candidates(scene.prompt, found, scene, OfferSlot.BEHIND_PROMPT)
        race = self._won_race(scene)
        if race is None or race.finding.exception() is not None:
            return ()
        return self._candidates(race.asked, race.finding.result(), scene, OfferSlot.BEHIND_RESULT)

    def took(self, scene: Scene, taken: Sequence[Candidate]) -> Sequence[Deposit]:
        if not taken:
            return ()
        self._open.put(scene.last.chain, tuple(taken))
        return [offered_event(taken, scene)]

    def heard(self, end: TurnEnd) -> Sequence[Deposit]:
        """Judge earlier offers by the calls of this reply; and search for what these calls will
        need next, while the client runs them."""
        self._race(end)
        if not len(self._open):
            return ()
        judged = self._judged([*end.scene.links, *end.reply_links])
        index = self._index()
        viewed = [_entry(each.offered).id for each in judged if each.verdict is not Verdict.WASTED]
        if index is not None and viewed and end.ref is not None:
            number, session = end.ref.number, end.ref.session
            self._pool.submit_if_free(lambda: index.touch(viewed, number, session))
        return [judged_event(each, end.scene.now) for each in judged]

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

    def _candidates(
        self, asked: str, found: Hits, scene: Scene, slot: OfferSlot
    ) -> Sequence[Candidate]:
        """The candidates of files that no action of the conversation has named, as they are now."""
        actions = _actions(scene.links)

        def current(entry: Entry) -> Entry | None:
            return None if is_known(entry.path, actions) else self._as_it_is(entry)

        knobs = scene.knobs.prefetch
        return candidates(asked, found, current, slot=slot, knobs=knobs, count=scene.count)

    def _as_it_is(self, entry: Entry) -> Entry | None:
        """The stretch where it is in its file now; None if the file does not have it any more."""
        if self._root is None:
            return entry
        try:
            with Root(self._root) as root:
                _, sealed = read_text(root, entry.path, MOST_BYTES)
        except (NotTaken, BadInput):
            return None
        at = sealed.text.find(entry.text)
        if at < 0 or not entry.text:
            return None
        first = sealed.text.count("\n", 0, at) + 1
        return replace(entry, lines=(first, first + entry.lines[1] - entry.lines[0]))

    def _race(self, end: TurnEnd) -> None:
        knobs, index = end.scene.knobs.prefetch, self._index()
        parts = [part for message in end.reply.messages for part in message.parts]
        calls = [part for part in parts if part.kind.family is Kind.TOOL_CALL]
        chains = [each.chain for each in end.reply_links if not each.message.aside]
        if self._is_off or not knobs.racing or index is None or not calls or not chains:
            return
        if not CACHES.response.prefetches:
            return
        texts = [part.content for part in parts if part.kind is Kind.RESPONSE]
        words = [
            *(each.decode("utf-8", "replace") for each in texts),
            *(spoken(call.content) for call in calls),
        ]
        asked = "\n".join(words)
        query = query_for(asked, knobs, _RACE_SECONDS * self._patience)
        racing = self._pool.submit_if_free(lambda: index.search(query))
        if racing is not None:
            self._races.put(chains[-1], _Race(asked, racing))

    def _won_race(self, scene: Scene) -> _Race | None:
        """The search that ran beside this request's tools, if it has ended."""
        race = self._races.get(scene.answered.chain) if scene.answered is not None else None
        return race if race is not None and race.finding.done() else None

    def _judged(self, links: Sequence[Link]) -> tuple[JudgedOffer, ...]:
        """The verdicts that are possible by now. Each is given once."""
        given: list[JudgedOffer] = []
        for at, each in enumerate(links):
            every = self._open.get(each.chain)
            if every is None:
                continue
            actions = _actions(links[at:])
            verdicts = [(one, judge(one, actions)) for one in every]
            given += [verdict for _, verdict in verdicts if verdict is not None]
            if rest := tuple(one for one, verdict in verdicts if verdict is None):
                self._open.put(each.chain, rest)
            else:
                self._open.pop(each.chain)
        return tuple(given)


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


def _actions(links: Sequence[Link]) -> list[bytes]:
    """The arguments of every tool call."""
    return [
        part.content
        for each in links
        for part in each.message.parts
        if part.kind.family is Kind.TOOL_CALL
    ]
