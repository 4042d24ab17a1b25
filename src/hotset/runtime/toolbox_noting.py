"""What becomes of a call: the tool's record, the audit, and what makes it easier to find next time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotset.errors import StoreFailed
from hotset.nouns.tool import Tool
from hotset.nouns.turn import Event
from hotset.runtime.toolbox_sessions import Sessions
from hotset.sources.tools.graph import Graph
from hotset.sources.tools.registry import Registry

if TYPE_CHECKING:
    from hotset.sources.tools.finding import Finding


@dataclass(frozen=True, slots=True)
class Errand:
    """A call, and whom it was for."""

    tool: Tool
    session: str = ""
    query: str = ""
    """What the tool was looked for with; empty where the latest question that brought it tells."""
    begun: float = 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun


@dataclass(frozen=True, slots=True)
class Noting:
    """Use it from any thread. It may wait for the disk."""

    registry: Registry
    graph: Graph
    sessions: Sessions
    happened: Callable[[Event], None]
    clock: Callable[[], float]

    def went(self, errand: Errand, finding: Finding | None, *, failed: bool) -> float:
        """A call came to its end, well or not. The seconds that it took."""
        tool, seconds, now = errand.tool, errand.seconds, self.clock()
        self.registry.used(tool.name, tool.origin, seconds, failed=failed)
        detail: dict[str, str | int | float] = {"tool": tool.name, "source": tool.source, "seconds": round(seconds, 4)}
        self.happened(Event("ToolUsed", now, detail={**detail, "failed": int(failed)}))
        if failed:
            return seconds
        asked = errand.query or self.sessions.question(errand.session, tool.name)
        if asked and finding is not None:
            with suppress(StoreFailed):  # a use that is not remembered costs a better order, and `troubles` tells of the disk
                finding.used(asked, tool.name, now)
        # Alone, too: else what is popular would go with everything.
        self.graph.used_together(self.sessions.uses(errand.session, tool.name))
        return seconds
