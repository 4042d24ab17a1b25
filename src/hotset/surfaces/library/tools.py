"""The toolbox for a program: functions that become tools, tools that fit a query, and calls of any
of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from hotset.nouns.message import ToolSpec
from hotset.nouns.tool import UNLIKELY, Ghost
from hotset.runtime.wire import DIALECTS
from hotset.sources.tools import Toolbox, ToolUse
from hotset.surfaces.library.messages import dialect_named

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Library:
    """What a blocking and an awaiting toolbox share."""

    def __init__(self, toolbox: Callable[[], Toolbox]) -> None:
        self._toolbox = toolbox

    def register(self, function: _Function, *, name: str = "", description: str = "") -> _Function:
        """Makes a function with annotated parameters a tool; also as a decorator. Raises `BadInput`
        where it cannot be one."""
        self._toolbox().register(function, name=name, description=description)
        return function

    def _for_query(
        self, query: str, limit: int, dialect: str, session: str
    ) -> list[dict[str, Any]]:
        spoken = DIALECTS[dialect_named(dialect)]
        toolbox = self._toolbox()
        loaded = [Ghost(tool, 1.0, loaded=True) for tool in toolbox.loaded(session)]
        names = {ghost.tool.name for ghost in loaded}
        found = [
            ghost
            for ghost in toolbox.find(query, limit, session=session)
            if ghost.tool.name not in names and ghost.score >= UNLIKELY
        ]
        offered = [(ghost.tool, _description(ghost)) for ghost in (*loaded, *found)]
        specs = [ToolSpec(tool.name, description, tool.parameters) for tool, description in offered]
        return [msgspec.json.decode(each.raw) for each in spoken.declared(specs)]


class Tools(_Library):
    """Of an open memory."""

    def find(
        self, query: str, limit: int = 5, *, sources: Sequence[str] = (), session: str = ""
    ) -> tuple[Ghost, ...]:
        """The tools that fit best, best first, with full schemas and scores. Nothing is started for
        it."""
        return self._toolbox().find(query, limit, sources, session=session)

    def for_query(
        self, query: str, limit: int = 5, *, dialect: str = "openai-chat", session: str = ""
    ) -> list[dict[str, Any]]:
        """A tool list for a model, in the form of `dialect`: what is loaded first, then at most
        `limit` ghosts.

        It is another one for every query: with a provider that caches prompts, ask once for a
        session.
        """
        return self._for_query(query, limit, dialect, session)

    def use(
        self, name: str, arguments: Mapping[str, Any] | str, *, session: str = "", query: str = ""
    ) -> ToolUse:
        """Calls a tool, starting what it needs. Wrong arguments are answered with what is wrong:
        `Used.ran` is false then.

        Raises `NotFound`, `ToolRefused` and `ToolFailed`.
        """
        return self._toolbox().use(name, arguments, session=session, query=query)


class AsyncTools(_Library):
    """The same for a loop."""

    async def find(
        self, query: str, limit: int = 5, *, sources: Sequence[str] = (), session: str = ""
    ) -> tuple[Ghost, ...]:
        """See `Tools.find`."""
        return await asyncio.to_thread(self._toolbox().find, query, limit, sources, session=session)

    async def for_query(
        self, query: str, limit: int = 5, *, dialect: str = "openai-chat", session: str = ""
    ) -> list[dict[str, Any]]:
        """See `Tools.for_query`."""
        return await asyncio.to_thread(self._for_query, query, limit, dialect, session)

    async def use(
        self, name: str, arguments: Mapping[str, Any] | str, *, session: str = "", query: str = ""
    ) -> ToolUse:
        """See `Tools.use`."""
        return await self._toolbox().use_async(name, arguments, session=session, query=query)


def _description(ghost: Ghost) -> str:
    return (
        ghost.tool.description
        if ghost.loaded
        else f"[GHOST {ghost.score:.2f}] {ghost.tool.description}"
    )
