"""Summaries of older steps, written in the background: by a small model, or extracted where none is
configured."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import msgspec

from hotset.config import Summarising
from hotset.dialects import DEFAULT, Dialect
from hotset.dialects.port import Dialects
from hotset.errors import HotsetError, UpstreamFailed
from hotset.files.lru import Lru
from hotset.nouns.bill import Summary
from hotset.nouns.call import ClientCall, Headers
from hotset.nouns.link import Link
from hotset.nouns.message import Reply, Usage
from hotset.nouns.page import ROOT, Chain, Kind, SessionId
from hotset.nouns.turn import Event, TurnRef
from hotset.nouns.window import Line
from hotset.runtime.background import Background
from hotset.runtime.keeper import Keeper
from hotset.runtime.metrics import SUMMARISED, SUMMARY_FAILED
from hotset.runtime.reply_bytes import plain
from hotset.store.port import Store, Where
from hotset.upstream.port import Wire
from hotset.window.step_sizes import steps
from hotset.window.summary import (
    INSTRUCTION,
    Stretch,
    check_summary,
    make_notes,
    next_stretch,
    summaries_by_step,
    transcript,
)

_REPLY_TOKENS = 4096  # a bound, not a wish: models that think count their thoughts too
_MOST_REPLY = 1 << 20  # bytes; a summary has two thousand
_REFUSALS = frozenset({"refusal", "content_filter"})


class NotWritten(HotsetError):
    """The model gave no summary. Says why in a word or two, never with content."""


async def ask(
    stretch: Stretch, chosen: Summarising, wire: Wire, dialects: Dialects
) -> tuple[str, Usage]:
    """What the model wrote, and what it counted. Raises `NotWritten`."""
    return await ask_about(await asyncio.to_thread(transcript, stretch), chosen, wire, dialects)


async def ask_about(
    source: str, chosen: Summarising, wire: Wire, dialects: Dialects
) -> tuple[str, Usage]:
    """The same, of a text that tells of some work. Nothing is believed that does not stand in
    it."""
    spoken = (each for each in dialects.values() if each.provider == chosen.upstream)
    dialect = next(spoken, DEFAULT)  # every upstream but a provider's own speaks OpenAI's chat
    call = _call(source, chosen, dialect)
    try:
        async with asyncio.timeout(chosen.seconds), wire.send(call) as response:
            answer = await plain(response)
            body = await _whole(answer.chunks)
    except TimeoutError:
        raise NotWritten("timeout") from None
    except UpstreamFailed:
        raise NotWritten("unreachable") from None
    if answer.status >= 400:
        raise NotWritten(f"status {answer.status}")
    reply = dialect.read(body, streamed=False)
    return checked_words(reply, source), reply.usage


def checked_words(reply: Reply, source: str) -> str:
    """The words of a reply as far as they can be trusted. Raises `NotWritten` where nothing is left
    of them."""
    if not reply.complete:
        raise NotWritten("unreadable")
    if reply.stop in _REFUSALS:
        raise NotWritten("refused")
    said = (
        part.content
        for message in reply.messages
        for part in message.parts
        if part.kind is Kind.RESPONSE
    )
    words = b"\n".join(said).decode("utf-8", "replace").strip()
    if not words:
        raise NotWritten("empty")
    text = check_summary(words, source)
    if not text:
        raise NotWritten("unfounded")
    return text


def _call(source: str, chosen: Summarising, dialect: Dialect) -> ClientCall:
    headers: Headers = (
        (b"content-type", b"application/json"),
        (b"accept-encoding", b"identity"),
        (b"user-agent", b"hotset"),
    )
    body = {
        "model": chosen.model,
        dialect.length_field(chosen.upstream): _REPLY_TOKENS,
        **dialect.compose(INSTRUCTION, [{"role": "user", "content": source}]),
    }
    headers += dialect.headers(chosen.key)
    return ClientCall(
        "POST", dialect.endpoint, headers, msgspec.json.encode(body), chosen.upstream, dialect.name
    )


async def _whole(chunks: AsyncIterator[bytes]) -> bytes:
    got = bytearray()
    async for chunk in chunks:
        got += chunk
        if len(got) > _MOST_REPLY:
            raise NotWritten("too long")
    return bytes(got)


RULES = "rules"
"""Who wrote a summary that no model wrote."""

_MOST_WAITING = 16
_MOST_BYTES = 32 << 20
"""How many stretches wait, and how much content they hold on to. One that finds no room is due
again when the next turn ends."""

_MOST_TEXTS = 4096  # some 5 MB; a session of a thousand steps has a hundred
_MOST_LOOKED_AT = 1024
_MOST_PAGES = 64
"""How many pages are looked at for the sessions that share a line: forks of one conversation."""

_PLACE_SECONDS = 10.0
"""How long a stretch waits for its turn to be on disk."""

Place = Callable[[float], Awaitable[TurnRef | None]]
"""Waits for a turn to have its place in the store, for so many seconds; None where it has none by
then."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A summary in memory."""

    text: str
    session: SessionId
    last: int
    """The turn with which its stretch ended."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    stretch: Stretch
    place: Place


class Summariser:
    """Knows each summary by the chain of the message that its stretch ends with.

    A chain stands for everything up to its message and for nothing behind it. So a line finds its
    own summaries, whichever session or branch it belongs to, and none that speaks of what came
    later.
    """

    def __init__(
        self,
        chosen: Summarising,
        wire: Wire,
        keeper: Keeper,
        background: Background,
        dialects: Dialects,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._chosen = chosen
        self._wire = wire
        self._keeper = keeper
        self._background = background
        self._dialects = dialects
        self._clock = clock
        self._waiting: deque[_Waiting] = deque()
        """The first one is being worked on."""
        self._working: asyncio.Task[None] | None = None
        self._stopped = False
        self._known: Lru[Chain, _Known] = Lru(count=_MOST_TEXTS)
        self._looked_at: Lru[Chain, bool] = Lru(count=_MOST_LOOKED_AT)
        """Lines whose summaries were read from the store, by a message that only they and their
        forks have."""

    def turn_ended(self, links: Sequence[Link], place: Place) -> None:
        """Takes a snapshot of what came since the last one on this line, once that is long
        enough."""
        if self._stopped or not self._chosen.every or len(self._waiting) >= _MOST_WAITING:
            return
        heads = {each.stretch.head for each in self._waiting}
        stretch = next_stretch(
            links, lambda chain: chain in self._known or chain in heads, self._chosen.every
        )
        if (
            stretch is None
            or sum(each.stretch.size for each in self._waiting) + stretch.size > _MOST_BYTES
        ):
            return
        self._waiting.append(_Waiting(stretch, place))
        if self._working is None or self._working.done():
            self._working = self._background.spawn(self._work(), "sum up")

    def told(self, lines: Sequence[Line], store: Store) -> Mapping[int, str]:
        """The summaries on a line, each by the number of the last step that it speaks of. Safe to
        use from threads.

        The store is asked once about a line: when it is long enough to have summaries and none is
        known.
        """
        found = summaries_by_step(lines, self._text)
        if not found and self._is_news(lines, store):
            found = summaries_by_step(lines, self._text)
        return found

    def stop(self) -> None:
        """What is not written yet is due again after the next start."""
        self._stopped = True
        self._waiting.clear()
        if self._working is not None:
            self._working.cancel()

    async def _work(self) -> None:
        while self._waiting:
            first = self._waiting[0]
            try:
                await self._sum_up(first.stretch, first.place)
            except HotsetError:
                # the keeper tells of the store's troubles; the stretch is due again when the next
                # turn ends
                pass
            finally:
                if self._waiting:
                    self._waiting.popleft()

    async def _sum_up(self, stretch: Stretch, place: Place) -> None:
        """By rules first, so that something stands there at once; a model's words are the version
        after that."""
        store, before = self._keeper.store, self._known.get(stretch.after)
        if store is None or (before is None and stretch.after != ROOT):
            return  # the stretch before it was not kept: what is due next begins there
        ref = await place(_PLACE_SECONDS)
        if ref is None:
            return
        first = before.last + 1 if before is not None and before.session == ref.session else 1
        turns = (min(first, ref.number), ref.number)
        latest = await asyncio.to_thread(_latest, store, ref.session, turns, stretch.head)
        text = await asyncio.to_thread(make_notes, stretch)
        latest = await self._keep(
            stretch, replace(latest, version=latest.version + 1, text=text, by=RULES), {}
        )
        if not self._chosen.model:
            return
        began = time.monotonic()
        try:
            text, usage = await ask(stretch, self._chosen, self._wire, self._dialects)
        except NotWritten as why:
            await self._happened(
                SUMMARY_FAILED, latest, {"model": self._chosen.model, "why": str(why)}
            )
            return
        spent = {
            "input": usage.input + usage.cache_read + usage.cache_write,
            "output": usage.output,
        }
        took = {"ms": round(1000 * (time.monotonic() - began))}
        await self._keep(
            stretch,
            replace(latest, version=latest.version + 1, text=text, by=self._chosen.model),
            spent | took,
        )

    async def _keep(self, stretch: Stretch, summary: Summary, detail: Mapping[str, int]) -> Summary:
        """On disk first: what stands in a window can be found in the store."""
        summary = replace(summary, time=self._clock())
        await self._keeper.keep(summary)
        self._remember({stretch.head: _Known(summary.text, summary.session, summary.turns[1])})
        told: dict[str, str | int | float] = {
            "by": summary.by,
            "version": summary.version,
            "first": summary.turns[0],
            "steps": stretch.steps,
        }
        await self._happened(SUMMARISED, summary, {**told, **detail})
        return summary

    async def _happened(
        self, name: str, summary: Summary, detail: Mapping[str, str | int | float]
    ) -> None:
        await self._keeper.happened(
            Event(name, self._clock(), summary.session, summary.turns[1], dict(detail))
        )

    def _text(self, chain: Chain) -> str:
        known = self._known.get(chain)
        return known.text if known is not None else ""

    def _is_news(self, lines: Sequence[Line], store: Store) -> bool:
        """Reads what the store knows of a line that was not looked at since the start."""
        early = next(
            (lines[step.last].chain for step in steps(lines) if step.number == self._chosen.every),
            ROOT,
        )
        if early == ROOT or self._looked_at.get(early):
            return False
        self._looked_at.put(early, True)
        try:
            found = _found(store, early)
        except HotsetError:
            return False  # a stub without a summary is still a stub
        self._remember(found)
        return bool(found)

    def _remember(self, summaries: Mapping[Chain, _Known]) -> None:
        for chain, known in summaries.items():
            self._known.put(chain, known)


def _latest(store: Store, session: SessionId, turns: tuple[int, int], head: Chain) -> Summary:
    """What the store has on a stretch; version 0 where it has nothing."""
    page = next(iter(store.pages(Where(session=session, chain=head, limit=1))), None)
    nothing = Summary(session, turns, page.branch if page else 0, 0, "", RULES, 0.0)
    same = (
        each
        for each in store.summaries(session)
        if (each.turns, each.branch) == (turns, nothing.branch)
    )
    return next(same, nothing)


def _found(store: Store, chain: Chain) -> dict[Chain, _Known]:
    """The summaries of every session that has this message, by the message that each one's stretch
    ended with."""
    found: dict[Chain, _Known] = {}
    for session in dict.fromkeys(
        page.session for page in islice(store.pages(Where(chain=chain)), _MOST_PAGES)
    ):
        summaries = store.summaries(session)
        heads = {turn.number: turn.head for turn in store.turns(session)} if summaries else {}
        for each in summaries:
            if (head := heads.get(each.turns[1])) is not None:
                found[head] = _Known(each.text, session, each.turns[1])
    return found
