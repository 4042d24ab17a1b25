"""Writes summaries of older steps in the background: with a small model, or by rules if none is
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
from hotset.runtime.reply_bytes import decompress_reply
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
    """The model gave no summary. The text says why in a word or two, never with content."""


async def ask(
    stretch: Stretch, chosen: Summarising, wire: Wire, dialects: Dialects
) -> tuple[str, Usage]:
    """A model's summary and its usage. Raises `NotWritten`."""
    return await ask_about(await asyncio.to_thread(transcript, stretch), chosen, wire, dialects)


async def ask_about(
    source: str, chosen: Summarising, wire: Wire, dialects: Dialects
) -> tuple[str, Usage]:
    """A model's summary of a text about some work, and its usage. Statements without support in the
    text are dropped."""
    reply = await _reply(INSTRUCTION, source, chosen, wire, dialects)
    text = check_summary(own_text(reply), source)
    if not text:
        raise NotWritten("unfounded")
    return text, reply.usage


async def ask_to(
    instruction: str, source: str, chosen: Summarising, wire: Wire, dialects: Dialects
) -> tuple[str, Usage]:
    """What a model writes for a text by this instruction, unchecked, and its usage."""
    reply = await _reply(instruction, source, chosen, wire, dialects)
    return own_text(reply), reply.usage


async def _reply(
    instruction: str, source: str, chosen: Summarising, wire: Wire, dialects: Dialects
) -> Reply:
    spoken = (each for each in dialects.values() if each.provider == chosen.upstream)
    dialect = next(spoken, DEFAULT)  # every upstream but a provider's own speaks OpenAI's chat
    call = _call(instruction, source, chosen, dialect)
    try:
        async with asyncio.timeout(chosen.seconds), wire.send(call) as response:
            answer = await decompress_reply(response)
            body = await _whole(answer.chunks)
    except TimeoutError:
        raise NotWritten("timeout") from None
    except UpstreamFailed:
        raise NotWritten("unreachable") from None
    if answer.status >= 400:
        raise NotWritten(f"status {answer.status}")
    return dialect.read(body, streamed=False)


def own_text(reply: Reply) -> str:
    """The text of a whole reply. Raises `NotWritten` if there is none, or it is a refusal."""
    if not reply.complete:
        raise NotWritten("unreadable")
    if reply.stop in _REFUSALS:
        raise NotWritten("refused")
    texts = (
        part.content
        for message in reply.messages
        for part in message.parts
        if part.kind is Kind.RESPONSE
    )
    words = b"\n".join(texts).decode("utf-8", "replace").strip()
    if not words:
        raise NotWritten("empty")
    return words


def _call(instruction: str, source: str, chosen: Summarising, dialect: Dialect) -> ClientCall:
    headers: Headers = (
        (b"content-type", b"application/json"),
        (b"accept-encoding", b"identity"),
        (b"user-agent", b"hotset"),
    )
    body = {
        "model": chosen.model,
        dialect.length_field(chosen.upstream): _REPLY_TOKENS,
        **dialect.compose(instruction, [{"role": "user", "content": source}]),
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
"""The author of a summary that no model wrote."""

_MOST_WAITING = 16
_MOST_BYTES = 32 << 20
"""Limits on waiting stretches: their number, and the content they hold. One that finds no room is
due again when the next turn ends."""

_MOST_TEXTS = 4096  # some 5 MB; a session of a thousand steps has a hundred
_MOST_LOOKED_AT = 1024
_MOST_PAGES = 64
"""Pages that are read to find the sessions that share a line: forks of one conversation."""

_PLACE_SECONDS = 10.0
"""How long a stretch waits until its turn is on disk."""

Place = Callable[[float], Awaitable[TurnRef | None]]
"""Waits up to so many seconds for a turn's place in the store; None if it has none by then."""


@dataclass(frozen=True, slots=True)
class _KnownSummary:
    """A summary in memory."""

    text: str
    session: SessionId
    last: int
    """The turn that its stretch ended with."""


@dataclass(frozen=True, slots=True)
class _WaitingStretch:
    stretch: Stretch
    place: Place


class Summariser:
    """Keys each summary by the chain of the message that its stretch ends with.

    A chain identifies everything up to its message and nothing after it. So a line finds its own
    summaries in any session or branch, and none that covers later messages.
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
        self._waiting: deque[_WaitingStretch] = deque()
        """The first one is in work."""
        self._working: asyncio.Task[None] | None = None
        self._stopped = False
        self._known: Lru[Chain, _KnownSummary] = Lru("summaries", count=_MOST_TEXTS, shrinks=False)
        self._looked_at: Lru[Chain, bool] = Lru(
            "lines with summaries", count=_MOST_LOOKED_AT, shrinks=False
        )
        """Lines whose summaries were read from the store, by a message that only they and their
        forks have."""

    def turn_ended(self, links: Sequence[Link], place: Place) -> None:
        """Queue the messages since the last summary of this line, once they are long enough."""
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
        self._waiting.append(_WaitingStretch(stretch, place))
        if self._working is None or self._working.done():
            self._working = self._background.spawn(self._work(), "sum up")

    def summaries_for(self, lines: Sequence[Line], store: Store) -> Mapping[int, str]:
        """The summaries of a line, each by the number of the last step it covers. Thread-safe.

        The store is read once for a line: when it is long enough to have summaries and none is
        known.
        """
        found = summaries_by_step(lines, self._text)
        if not found and self._is_news(lines, store):
            found = summaries_by_step(lines, self._text)
        return found

    def stop(self) -> None:
        """Stop; stretches without a summary are due again after the next start."""
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
                # the keeper reports the store's troubles; the stretch is due again when the next
                # turn ends
                pass
            finally:
                if self._waiting:
                    self._waiting.popleft()

    async def _sum_up(self, stretch: Stretch, place: Place) -> None:
        """Write a summary by rules first, so that there is one at once; the model's is the next
        version."""
        store, before = self._keeper.store, self._known.get(stretch.after)
        if store is None or (before is None and stretch.after != ROOT):
            return  # the stretch before it was not kept: the next one begins there
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
        """Write a summary to disk, then to memory: every summary in a window can be found in the
        store."""
        summary = replace(summary, time=self._clock())
        await self._keeper.keep(summary)
        self._remember(
            {stretch.head: _KnownSummary(summary.text, summary.session, summary.turns[1])}
        )
        fields: dict[str, str | int | float] = {
            "by": summary.by,
            "version": summary.version,
            "first": summary.turns[0],
            "steps": stretch.steps,
        }
        await self._happened(SUMMARISED, summary, {**fields, **detail})
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
        """Read the store's summaries of a line that was not read since the start; True if there are
        any."""
        early = next(
            (lines[step.last].chain for step in steps(lines) if step.number == self._chosen.every),
            ROOT,
        )
        if early == ROOT or self._looked_at.get(early):
            return False
        self._looked_at.put(early, True)
        try:
            found = _read_summaries(store, early)
        except HotsetError:
            return False  # a stub without a summary is still a stub
        self._remember(found)
        return bool(found)

    def _remember(self, summaries: Mapping[Chain, _KnownSummary]) -> None:
        for chain, known in summaries.items():
            self._known.put(chain, known)


def _latest(store: Store, session: SessionId, turns: tuple[int, int], head: Chain) -> Summary:
    """The store's latest summary of a stretch; version 0 if it has none."""
    page = next(iter(store.pages(Where(session=session, chain=head, limit=1))), None)
    nothing = Summary(session, turns, page.branch if page else 0, 0, "", RULES, 0.0)
    same = (
        each
        for each in store.summaries(session)
        if (each.turns, each.branch) == (turns, nothing.branch)
    )
    return next(same, nothing)


def _read_summaries(store: Store, chain: Chain) -> dict[Chain, _KnownSummary]:
    """The summaries of every session that has this message, by the message that each stretch ended
    with."""
    found: dict[Chain, _KnownSummary] = {}
    for session in dict.fromkeys(
        page.session for page in islice(store.pages(Where(chain=chain)), _MOST_PAGES)
    ):
        summaries = store.summaries(session)
        heads = {turn.number: turn.head for turn in store.turns(session)} if summaries else {}
        for each in summaries:
            if (head := heads.get(each.turns[1])) is not None:
                found[head] = _KnownSummary(each.text, session, each.turns[1])
    return found
