"""A toolbox of Python functions, found by the words that they share with a question."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from hotset.errors import NotFound, ToolFailed
from hotset.nouns.tool import Ghost, OriginKind, ToolOrigin
from hotset.sources.tools.approval import KnownTool
from hotset.sources.tools.callables import BoundFunction, bind_function, returned, text_of
from hotset.sources.tools.toolbox import ToolMatches, ToolUse


class Shelf:
    ready = True

    def __init__(self, **servers: Sequence[Callable[..., Any]]) -> None:
        self.bound: dict[str, BoundFunction] = {}
        self.used: list[tuple[str, str, str]] = []
        """Name, session and query of every call."""
        for name, functions in servers.items():
            self.add(name, *functions)

    def add(self, server: str, *functions: Callable[..., Any]) -> None:
        for function in functions:
            made = bind_function(function, ToolOrigin(server, OriginKind.SERVER))
            self.bound[made.tool.name] = made

    def clear(self) -> None:
        self.bound.clear()

    @property
    def empty(self) -> bool:
        return not self.bound

    def knows(self, name: str) -> bool:
        return name in self.bound

    def find(
        self, query: str, limit: int = 5, only: Sequence[str] = (), *, session: str = ""
    ) -> tuple[Ghost, ...]:
        del session
        asked = _words(query)
        tools = [each.tool for each in self.bound.values() if not only or each.tool.source in only]
        scored = [
            (len(asked & _words(f"{tool.name} {tool.description}")) / max(1, len(asked)), tool)
            for tool in tools
        ]
        best = sorted(
            ((score, tool) for score, tool in scored if score),
            key=lambda each: (-each[0], each[1].name),
        )
        return tuple(Ghost(tool, score / best[0][0]) for score, tool in best[:limit])

    def look_for(
        self, query: str, limit: int = 5, only: Sequence[str] = (), *, session: str = ""
    ) -> ToolMatches:
        return ToolMatches(self.find(query, limit, only, session=session))

    def render_found(
        self,
        ghosts: Sequence[Ghost],
        max_tokens: int,
        waiting: Sequence[KnownTool] = (),
        faults: Sequence[str] = (),
    ) -> str:
        del max_tokens, waiting, faults
        lines = [
            f"{ghost.tool.name} [{ghost.score:.2f}] {ghost.tool.parameters.decode()}"
            for ghost in ghosts
        ]
        return "\n".join(lines) or "[hotset: no tool fits; ask in other words]"

    async def use_async(
        self, name: str, arguments: object, *, session: str = "", query: str = "", turn: int = 0
    ) -> ToolUse:
        del turn
        self.used.append((name, session, query))
        made = self.bound.get(name)
        if made is None:
            raise NotFound(f"no tool {name}; find_tools tells which there are")
        needed = msgspec.json.decode(made.tool.parameters)["required"]
        if not isinstance(arguments, Mapping) or any(each not in arguments for each in needed):
            wrong = returned(
                f"{name} needs {', '.join(needed)}: {made.tool.parameters.decode()}", failed=True
            )
            return ToolUse(made.tool, wrong, ran=False)
        came = await made.call_async(arguments)
        if "ServerGone" in text_of(came):
            raise ToolFailed(f"the server of {name} ended; try again, or go on without it")
        return ToolUse(made.tool, came, 0.01)


def _words(text: str) -> set[str]:
    return {word for word in re.split(r"[^a-z]+", text.lower()) if len(word) > 2}
