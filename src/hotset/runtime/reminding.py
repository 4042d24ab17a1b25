"""What is remembered and fits a prompt, told behind it: what there is to know at a session's start, and what helps at any prompt.

It is hidden behind the prompt like any other thing that the model saw and the client did not, as a row of the page table, so that
every later request says it again at the same place. Nothing here can fail a call or hold it up for long: no memories, a slow
index, a fault of ours, and the prompt goes out alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotset.files.deadline import DeadlinePool
from hotset.nouns.page import Kind
from hotset.nouns.remembering import Remembering
from hotset.nouns.window import Hidden
from hotset.runtime.memory_telling import OPENING, Reminder
from hotset.runtime.prefetching import Scene, behind, is_allowed
from hotset.sources.memory.naming import ids_in
from hotset.window.prefetch import asked_in

if TYPE_CHECKING:
    from hotset.runtime.memories import Memories

_log = logging.getLogger("hotset")

HOW = 'retrieve_context(id="...") reads one whole'
_ENCODE_SHARE = 0.5
"""Of that time, for sessions that have just ended."""

_READY_SECONDS = 1.5
"""That a prompt waits besides while this process still makes itself ready: that of an agent which was started with it."""

_JUST_ENDED = 2.0
"""Seconds without a call, of a session that another one looks at when it opens."""

_LATEST = 3
"""Sessions that one which opens looks at; where more have ended, the rest is left to the background."""

_NOTHING_SECONDS = 1.0
"""For which nobody looks again where nothing was remembered: what is said now is looked at when it has been quiet for longer."""

_ASKED = 2000  # characters of a prompt that are looked at


@dataclass(frozen=True, slots=True)
class Reminded:
    hidden: Hidden
    told: Reminder


class Reminding:
    """Safe to use from several threads."""

    def __init__(
        self,
        memories: Memories,
        chosen: Remembering,
        monotonic: Callable[[], float] = time.monotonic,
        patience: float = 1.0,
    ) -> None:
        self._memories = memories
        self._chosen = chosen
        self._monotonic = monotonic
        self._ready_seconds = _READY_SECONDS * patience
        self._warming: Future[None] | None = None
        self._searches = DeadlinePool(1, "hotset-remind")
        self._nothing_until = 0.0
        self._failing = ""

    def warm(self) -> None:
        """Begins to make ready what the first prompt needs; a prompt that comes meanwhile waits for it."""
        self._warming = DeadlinePool(1, "hotset-warm").submit(self._memories.warm)

    @property
    def is_quick(self) -> bool:
        """Nothing is to be told with a session that opens now."""
        return self._monotonic() < self._nothing_until

    def ahead(self, scene: Scene, *, opens: bool) -> Reminded | None:
        """What to tell with a prompt; None where there is nothing, or nothing in time."""
        said = (part.content for part in scene.last.message.parts if part.kind is Kind.PROMPT)
        asked = asked_in("\n".join(each.decode("utf-8", "replace") for each in said))[:_ASKED]
        if not asked.strip() or scene.free <= 0 or (opens and self.is_quick):
            return None
        if self._warming is not None:
            wait((self._warming,), self._ready_seconds)
            self._warming = None  # whatever became of it: nobody waits for it twice
        working = self._searches.submit_if_free(lambda: self._made(asked, scene, opens))
        if working is None:
            self._tell_failing("an earlier search hangs")
            return None
        try:
            reminded = working.result(self._chosen.offer_seconds * (OPENING if opens else 1.0))
        except TimeoutError:
            return None
        except Exception as error:  # fail open: the prompt goes out alone
            self._tell_failing(type(error).__name__)
            return None
        self._failing = ""
        return reminded

    def _tell_failing(self, why: str) -> None:
        """Once, and again only when it is another fault or when it worked meanwhile."""
        _log.log(logging.DEBUG if why == self._failing else logging.WARNING, "nothing could be recalled: %s", why)
        self._failing = why

    def _made(self, asked: str, scene: Scene, opens: bool) -> Reminded | None:
        if opens:
            quiet, seconds = min(_JUST_ENDED, self._chosen.quiet_seconds), _ENCODE_SHARE * self._chosen.offer_seconds
            self._memories.upkeep.encode(quiet=quiet, seconds=seconds, latest=_LATEST)
        room = min(self._chosen.offer_tokens, scene.free)
        told = self._memories.remind(asked, opens=opens, max_tokens=room, how=HOW, after=scene.last.parent, known=_told_in(scene))
        if told is None:
            if self._memories.is_empty:
                self._nothing_until = self._monotonic() + min(_NOTHING_SECONDS, self._chosen.quiet_seconds)
            return None
        hidden = behind(scene, told.text)
        return Reminded(hidden, told) if is_allowed(hidden, scene) else None


def _told_in(scene: Scene) -> frozenset[str]:
    """The memories that were told in this conversation: they stand there still."""
    raw = (each for hidden in scene.hidden.values() for each in (*hidden.before, hidden.instead, *hidden.after))
    return frozenset(id for each in raw for id in ids_in(each.decode("utf-8", "replace")))
