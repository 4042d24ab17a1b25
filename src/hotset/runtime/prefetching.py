"""Looks for what a model is about to need, before it sees a new prompt; and tells later what became
of it.

An offer is hidden behind the prompt like any other thing that the model saw and the client did not:
as a row of the page table, so that every later request says it again at the same place. Nothing
here can fail a call or hold it up for long: no index, a slow one, a broken one, and the prompt goes
out alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from hashlib import blake2b

import msgspec

from hotset.dialects.port import Dialect
from hotset.dialects.rules import beyond
from hotset.files.lru import Lru
from hotset.files.threads import DeadlinePool
from hotset.index.port import Index
from hotset.nouns.finding import Hits
from hotset.nouns.knobs import Prefetch, Prefetching
from hotset.nouns.link import Link
from hotset.nouns.message import Request
from hotset.nouns.page import Chain, Kind, Role
from hotset.nouns.turn import Event
from hotset.nouns.window import WHOLE, Hidden, PageTable, Shown, Spot
from hotset.window.prefetch import (
    Judged,
    Offer,
    Offered,
    Prompt,
    Verdict,
    asked_in,
    judge,
    offer,
    queries,
)

PREFETCHED, JUDGED = "Prefetched", "PrefetchJudged"
"""Events: what was offered, and what became of each part of it."""

_THREADS = 2
_RACE_SECONDS = 0.2
"""Of a search beside a client's tools: as long as the index takes for all that it can do."""

_MOST_OPEN = 256
"""Offers that wait for their verdict."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A request as it would go out without an offer."""

    last: Link
    """The message behind which an offer would stand."""
    dialect: Dialect
    request: Request
    links: Sequence[Link]
    shown: Mapping[Spot, Shown]
    hidden: Mapping[Chain, Hidden]
    free: int
    """Tokens by which it may grow."""
    count: Callable[[bytes], int]
    now: float


@dataclass(frozen=True, slots=True)
class Prefetched:
    hidden: Hidden
    offer: Offer


def is_new_prompt(last: Link, table: PageTable) -> bool:
    """A request ends with a prompt, and none before it on its line did."""
    asks = last.message.role is Role.USER and any(
        part.kind is Kind.PROMPT for part in last.message.parts
    )
    answers = any(part.kind.family is Kind.TOOL_RESULT for part in last.message.parts)
    return asks and not answers and (table.sent is None or table.sent.head != last.chain)


def reply_answered(links: Sequence[Link]) -> Link | None:
    """The reply whose calls a request answers with its last messages."""
    said = [each for each in links if not each.message.aside]
    brings = bool(said) and any(
        part.kind.family is Kind.TOOL_RESULT for part in said[-1].message.parts
    )
    return (
        next((each for each in reversed(said) if each.message.role is Role.ASSISTANT), None)
        if brings
        else None
    )


@dataclass(frozen=True, slots=True)
class _Race:
    """A search that runs while a client's tools do."""

    asked: Prompt
    finding: Future[list[Hits]]


class Prefetcher:
    """Safe to use from several threads."""

    def __init__(
        self,
        index: Callable[[], Index | None],
        monotonic: Callable[[], float] = time.monotonic,
        patience: float = 1.0,
    ) -> None:
        """`index` gives it once it is open."""
        self._patience = patience
        self._index = index
        self._monotonic = monotonic
        self._pool = DeadlinePool(_THREADS, "hotset-prefetch")
        self._races: Lru[Chain, _Race] = Lru(count=_MOST_OPEN)
        """By the reply whose calls are being run."""
        self._open: Lru[Chain, tuple[Offered, ...]] = Lru(count=_MOST_OPEN)

    def ahead(self, scene: Scene, knobs: Prefetch) -> Prefetched | None:
        """What to offer with a prompt; None where there is nothing, or nothing in time."""
        asked = Prompt(_text(scene.last), scene.now)
        index = self._index()
        if (
            knobs.mode is Prefetching.OFF
            or index is None
            or scene.free <= 0
            or not asked.text.strip()
        ):
            return None
        patient = msgspec.structs.replace(knobs, seconds=knobs.seconds * self._patience)
        working = self._pool.submit_if_free(
            lambda: _made(asked, list(self._found(index, asked, patient)), scene, knobs)
        )
        return self._result(working, patient.seconds)

    def race(self, reply: Chain, said: str, now: float, knobs: Prefetch) -> None:
        """A reply with calls has left: what they will want next is looked for while they run.
        Nobody waits for it."""
        index = self._index()
        if knobs.mode is Prefetching.OFF or not knobs.racing or index is None:
            return
        asked = Prompt(said, now)
        racing = msgspec.structs.replace(knobs, seconds=_RACE_SECONDS * self._patience)
        finding = self._pool.submit_if_free(lambda: list(self._found(index, asked, racing)))
        if finding is None:
            return
        self._races.put(reply, _Race(asked, finding))

    def raced(self, reply: Chain, scene: Scene, knobs: Prefetch) -> Prefetched | None:
        """What to offer with the results of a reply's calls; None where the search lost its
        race."""
        race = self._races.pop(reply)
        if (
            race is None
            or not race.finding.done()
            or race.finding.exception() is not None
            or scene.free <= 0
        ):
            return None
        found = race.finding.result()
        working = self._pool.submit_if_free(lambda: _made(race.asked, found, scene, knobs))
        return self._result(working, knobs.seconds * self._patience)

    def judged(self, links: Sequence[Link], hidden: Mapping[Chain, Hidden]) -> tuple[Judged, ...]:
        """The verdicts that a request makes possible. Each is told once."""
        waiting = [
            (at, every)
            for at, each in enumerate(links)
            if (every := self._open.get(each.chain)) is not None
        ]
        told: list[Judged] = []
        for at, every in waiting:
            actions = [
                part.content
                for each in links[at:]
                for part in each.message.parts
                if part.kind.family is Kind.TOOL_CALL
            ]
            retrieved = _retrieved(
                every, [hidden[each.chain] for each in links[at:] if each.chain in hidden]
            )
            verdicts = [(each, judge(each, actions, retrieved)) for each in every]
            told += [verdict for _, verdict in verdicts if verdict is not None]
            self._leave_open(
                links[at].chain, tuple(each for each, verdict in verdicts if verdict is None)
            )
        index, useful = (
            self._index(),
            [each.offered.entry.id for each in told if each.verdict is not Verdict.WASTED],
        )
        if index is not None and useful:
            self._pool.submit_if_free(lambda: index.touch(useful))
        return tuple(told)

    @property
    def busy(self) -> bool:
        """Something is being looked for."""
        return self._pool.busy

    def close(self) -> None:
        self._pool.close()

    def _result(
        self, working: Future[Prefetched | None] | None, seconds: float
    ) -> Prefetched | None:
        try:
            if working is None or working.exception(seconds) is not None:
                return None
        except TimeoutError:
            return None
        found = working.result()
        if found is not None:
            self._await_verdict(found)
        return found

    def _found(self, index: Index, asked: Prompt, knobs: Prefetch) -> Iterator[Hits]:
        until = self._monotonic() + knobs.seconds
        for query in queries(asked, knobs):
            left = until - self._monotonic()
            if left <= 0:
                return
            yield index.search(replace(query, deadline=left))

    def _await_verdict(self, found: Prefetched) -> None:
        self._open.put(found.hidden.chain, (*found.offer.excerpts, *found.offer.hints))

    def _leave_open(self, chain: Chain, rest: tuple[Offered, ...]) -> None:
        if rest:
            self._open.put(chain, rest)
        else:
            self._open.pop(chain)


@dataclass(frozen=True, slots=True)
class Prefetches:
    """Counts of what was offered and what became of it, from events."""

    offered: int = 0
    """Excerpts and hints."""
    tokens: int = 0
    used: int = 0
    expanded: int = 0
    wasted: int = 0
    saved: int = 0
    """Tokens of excerpts from which an action copied before any had read their file."""

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


def offered_event(found: Prefetched, now: float) -> Event:
    every = (*found.offer.excerpts, *found.offer.hints)
    detail: dict[str, str | int | float] = {
        "entries": ",".join(_name(each) for each in every),
        "confidence": ",".join(f"{each.confidence:.2f}" for each in every),
        "excerpts": len(found.offer.excerpts),
        "hints": len(found.offer.hints),
        "tokens": found.offer.tokens,
    }
    return Event(PREFETCHED, now, detail=detail)


def judged_event(judged: Judged, now: float) -> Event:
    detail: dict[str, str | int | float] = {
        "entry": _name(judged.offered),
        "verdict": str(judged.verdict),
        "confidence": round(judged.offered.confidence, 2),
        "tokens": judged.offered.tokens,
        "saved": judged.saved,
    }
    return Event(JUDGED, now, detail=detail)


def _made(asked: Prompt, found: Sequence[Hits], scene: Scene, knobs: Prefetch) -> Prefetched | None:
    made = offer(
        asked, found, window=list(_window(scene)), free=scene.free, knobs=knobs, count=scene.count
    )
    if not made:
        return None
    hidden = behind(scene, made.text)
    return Prefetched(hidden, made) if is_allowed(hidden, scene) else None


def _name(offered: Offered) -> str:
    """An entry's id may have a path in it, which is content."""
    return blake2b(offered.entry.id.encode("utf-8", "replace"), digest_size=6).hexdigest()


def _text(prompt: Link) -> str:
    said = (part.content for part in prompt.message.parts if part.kind is Kind.PROMPT)
    return asked_in("\n".join(each.decode("utf-8", "replace") for each in said))


def _window(scene: Scene) -> Iterator[str]:
    """What the model sees, text by text."""
    for each in scene.links:
        gone = scene.shown.get(Spot(each.chain, WHOLE))
        if gone is not None:
            yield _decoded(gone.text)
            continue
        for position, part in enumerate(each.message.parts):
            row = scene.shown.get(Spot(each.chain, position))
            yield _decoded(row.text if row is not None and row.text else part.content)
            if part.kind.family is Kind.TOOL_CALL:  # in JSON, lines of text are no lines
                yield _decoded(part.content.replace(b"\\n", b"\n").replace(b'\\"', b'"'))
    for told in scene.hidden.values():
        for raw in (*told.before, *told.after):
            yield from (_decoded(part.content) for part in scene.dialect.understand(raw).parts)


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def behind(scene: Scene, text: str) -> Hidden:
    """The text behind the prompt, and behind what stands there already."""
    there = scene.hidden.get(scene.last.chain)
    return Hidden(
        scene.last.chain,
        after=(*(there.after if there is not None else ()), scene.dialect.say(text).raw),
    )


def is_allowed(hidden: Hidden, scene: Scene) -> bool:
    """Would the provider take it? What it has against the client's own request does not count."""
    dialect, links = scene.dialect, scene.links
    alone = dialect.reveal(scene.request, links, scene.hidden) if scene.hidden else scene.request
    both = dialect.reveal(scene.request, links, {**scene.hidden, hidden.chain: hidden})
    return beyond(dialect.check(both), dialect.check(alone)) is None


def place_behind(scene: Scene, text: str) -> Hidden | None:
    """The text behind the prompt; None where the provider would not take it."""
    hidden = behind(scene, text)
    return hidden if is_allowed(hidden, scene) else None


def _retrieved(every: Collection[Offered], hidden: Collection[Hidden]) -> frozenset[str]:
    """Which of these the model asked for: its calls of our tools stand among what is hidden."""
    raws = [raw for told in hidden for raw in (*told.before, told.instead)]
    wholes = {each.entry.whole for each in every}
    return frozenset(
        whole for whole in wholes if any(msgspec.json.encode(whole)[1:-1] in raw for raw in raws)
    )
