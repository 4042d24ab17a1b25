"""What was learned in earlier sessions, for a program: asked step by step, added to, and taken
back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hotset.nouns.memory import Detail, MemoryRecord, Trust

if TYPE_CHECKING:
    from hotset.sources.memory import MemorySource, RecallAnswer, RenderedText

PROGRAM = "program"
"""Who put a memory into words, where the program does not say."""


class Memories:
    """Of an open memory. Every text that is meant for a model says that it is data; none belongs
    into a system prompt."""

    def __init__(self, remembered: Callable[[], MemorySource]) -> None:
        self._remembered = remembered

    def index(self, query: str = "", *, max_tokens: int = 100, session: str = "") -> RenderedText:
        """What there is to know, in about a hundred tokens: topics with their sizes, those that fit
        the query first."""
        return self._remembered().index(query, max_tokens=max_tokens, session=session)

    def timeline(
        self,
        query: str = "",
        *,
        topics: Sequence[str] = (),
        max_tokens: int = 500,
        session: str = "",
    ) -> RenderedText:
        """What was done lately, what was decided and what is open, in lines with ids."""
        return self._remembered().timeline(
            query, topics=topics, max_tokens=max_tokens, session=session
        )

    def recall(
        self,
        query: str,
        *,
        task: str = "",
        kinds: Sequence[str] = (),
        limit: int = 10,
        max_tokens: int = 2000,
        session: str = "",
        more: int = 0,
    ) -> RecallAnswer:
        """The memories that fit, best first: `text` for a model, `recall.items` with score and why.

        `task` is exploration, implementation, debugging, review or refactoring; it is told from the
        words where it is not said. `more` (1, then 2, and so on) tells what the answers before did
        not, also from sessions that the question's words hardly reach; `text` is empty where that
        was all.
        """
        ask = self._remembered().recall
        return ask(
            query,
            task=task,
            kinds=kinds,
            most=limit,
            max_tokens=max_tokens,
            session=session,
            more=more,
        )

    def read(self, id: str, *, max_tokens: int = 2000, session: str = "") -> RenderedText:
        """One memory, whole as far as it fits, by its id or a unique beginning of it. Raises
        `NotFound`."""
        return self._remembered().read(id, max_tokens=max_tokens, session=session)

    def get(self, id: str) -> MemoryRecord:
        """The memory itself. Raises `NotFound`."""
        return self._remembered().get(id)

    def all(
        self, *, kinds: Sequence[str] = (), topic: str = "", limit: int | None = 50
    ) -> tuple[MemoryRecord, ...]:
        """The newest first, but for what was forgotten or merged. Raises `BadInput` for a kind that
        there is not."""
        from hotset.sources.memory import kind_named  # noqa: PLC0415 - with the memories, and not before

        return tuple(
            self._remembered().list(
                kinds=frozenset(map(kind_named, kinds)), topic=topic, limit=limit
            )
        )

    def remember(
        self,
        text: str,
        *,
        kind: str = "fact",
        title: str = "",
        topics: Sequence[str] = (),
        by: str = PROGRAM,
        trust: Trust = Trust.AGENT,
        session: str = "",
        agent: str = "",
        detail: Detail = None,
    ) -> MemoryRecord:
        """Keeps what somebody put into words. The same words are kept once; what they replace
        stays, and says so.

        A procedure or a pitfall that no person stands for (`Trust.PERSON`) waits until one confirms
        it: `standing` says so.
        """
        return self._remembered().remember(
            text,
            kind=kind,
            title=title,
            topics=topics,
            by=by,
            trust=trust,
            session=session,
            agent=agent,
            detail=detail,
        )

    def forget(self, id: str, *, erase: bool = False, why: str = "") -> None:
        """Nobody finds it any more; `hotset memory restore` brings it back. Erased, it leaves the
        disk for good."""
        self._remembered().forget(id, erase=erase, why=why)

    def outcome(self, session: str, ending: str) -> None:
        """How the latest task of a session came out: success, partial, failure or unknown."""
        self._remembered().outcome(session, ending)


class AsyncMemories:
    """The same for a loop."""

    def __init__(self, remembered: Callable[[], MemorySource]) -> None:
        self._blocking = Memories(remembered)

    async def index(
        self, query: str = "", *, max_tokens: int = 100, session: str = ""
    ) -> RenderedText:
        """See `Memories.index`."""
        return await asyncio.to_thread(
            self._blocking.index, query, max_tokens=max_tokens, session=session
        )

    async def timeline(
        self,
        query: str = "",
        *,
        topics: Sequence[str] = (),
        max_tokens: int = 500,
        session: str = "",
    ) -> RenderedText:
        """See `Memories.timeline`."""
        return await asyncio.to_thread(
            self._blocking.timeline, query, topics=topics, max_tokens=max_tokens, session=session
        )

    async def recall(
        self,
        query: str,
        *,
        task: str = "",
        kinds: Sequence[str] = (),
        limit: int = 10,
        max_tokens: int = 2000,
        session: str = "",
        more: int = 0,
    ) -> RecallAnswer:
        """See `Memories.recall`."""
        return await asyncio.to_thread(
            self._blocking.recall,
            query,
            task=task,
            kinds=kinds,
            limit=limit,
            max_tokens=max_tokens,
            session=session,
            more=more,
        )

    async def read(self, id: str, *, max_tokens: int = 2000, session: str = "") -> RenderedText:
        """See `Memories.read`."""
        return await asyncio.to_thread(
            self._blocking.read, id, max_tokens=max_tokens, session=session
        )

    async def get(self, id: str) -> MemoryRecord:
        """See `Memories.get`."""
        return await asyncio.to_thread(self._blocking.get, id)

    async def all(
        self, *, kinds: Sequence[str] = (), topic: str = "", limit: int | None = 50
    ) -> tuple[MemoryRecord, ...]:
        """See `Memories.all`."""
        return await asyncio.to_thread(self._blocking.all, kinds=kinds, topic=topic, limit=limit)

    async def remember(
        self,
        text: str,
        *,
        kind: str = "fact",
        title: str = "",
        topics: Sequence[str] = (),
        by: str = PROGRAM,
        trust: Trust = Trust.AGENT,
        session: str = "",
        agent: str = "",
        detail: Detail = None,
    ) -> MemoryRecord:
        """See `Memories.remember`."""
        return await asyncio.to_thread(
            self._blocking.remember,
            text,
            kind=kind,
            title=title,
            topics=topics,
            by=by,
            trust=trust,
            session=session,
            agent=agent,
            detail=detail,
        )

    async def forget(self, id: str, *, erase: bool = False, why: str = "") -> None:
        """See `Memories.forget`."""
        await asyncio.to_thread(self._blocking.forget, id, erase=erase, why=why)

    async def outcome(self, session: str, ending: str) -> None:
        """See `Memories.outcome`."""
        await asyncio.to_thread(self._blocking.outcome, session, ending)
