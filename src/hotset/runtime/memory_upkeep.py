"""What keeps memories in order: sessions become memories, memories become patterns, and what went wrong is taken back.

Everything blocks, and can be used from any thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hotset.errors import BadInput, HotsetError, NotFound, PageDamaged
from hotset.nouns.memory import MemoryId, MemoryKind
from hotset.nouns.page import SessionId
from hotset.nouns.progress import Progress, silent
from hotset.nouns.turn import Event
from hotset.runtime import memory_changing as changing
from hotset.runtime.memory_continuity import Continuity
from hotset.runtime.memory_economics import SessionEconomics, economics, rearrange, settle_up
from hotset.runtime.memory_ground import INDEX_SECONDS, Ground
from hotset.runtime.memory_making import remember_session
from hotset.runtime.memory_telling import Telling, arrangement
from hotset.sources.memory.disclosing.economics import Occasion
from hotset.sources.memory.pending import PendingSessions
from hotset.sources.memory.recalling.weights import DEFAULT
from hotset.store.port import Store

if TYPE_CHECKING:
    from hotset.sources.memory.managing.consolidating import Consolidated
    from hotset.sources.memory.managing.rollback import TakenBack
    from hotset.sources.memory.recalling.adapting import Adapted

_log = logging.getLogger("hotset")

_MOST_BY_RULES = 100


class Upkeep:
    def __init__(self, ground: Ground, telling: Telling, continuity: Continuity) -> None:
        self._ground = ground
        self._telling = telling
        self._continuity = continuity
        self.pending = PendingSessions(ground.store, ground.folder / "waiting.json")
        self.by_rules: deque[MemoryId] = deque(maxlen=_MOST_BY_RULES)
        """Episodes that were put into words by rules since the start: a model may find better ones."""
        self._encoding = threading.Lock()
        self._given_up: dict[SessionId, float] = {}
        """Sessions that could not be remembered, as far as they went then."""

    # From sessions

    def encode(
        self, progress: Progress = silent, *, quiet: float = 0.0, seconds: float | None = None, latest: int | None = None
    ) -> int:
        """Sessions that went on since become memories; those in which nothing was said for so long. Gives how many did.

        `latest` leaves all but so many for later: those that ended last.
        """
        store = self._ground.open()
        until = None if seconds is None else time.monotonic() + seconds
        with self._encoding:
            self.pending.look(store)
            ready = self.pending.ready(self._ground.clock() - quiet)[-latest if latest is not None else None :]
            done = 0
            for number, session in enumerate(ready, 1):
                done += self._try_to_remember(store, session)
                progress("remember sessions", number, len(ready))
                if until is not None and time.monotonic() > until:
                    break
            if done:
                self.pending.save(self._ground.clock())
                load()  # whoever opens the next session is told of this one, and does not wait for it
                self._ground.index_them(store)
                if self._continuity.is_on:
                    with suppress(BadInput):  # a file that cannot be written is a matter for `hotset continuity write`
                        self.write_continuity()
        return done

    def outcome(self, session: str, ending: str) -> None:
        """How the latest task of a session came out, told by whoever knows."""
        store, wanted = self._ground.store(), changing.ending_named(ending)
        id = store.session(SessionId(session)).id
        last = max((turn.number for turn in store.turns(id)), default=0)
        changing.tell_ending(store, id, last, wanted, self._ground.clock())
        self._remember(store, id)

    def write_continuity(self) -> Path:
        """Brings CONTINUITY.md up to date; what people wrote in it stays. Raises `BadInput`."""
        store = self._ground.open()
        return self._continuity.write(store, self._telling.overview(store))

    def follow(self, progress: Progress = silent, seconds: float = 30.0) -> None:
        """Brings the index up to what is remembered and was said, as far as there is time."""
        from hotset.sources.history.entries import follow  # noqa: PLC0415 - with the index, and not before
        from hotset.sources.memory.following import follow_memories  # noqa: PLC0415

        store, index, until = self._ground.store(), self._ground.index(), time.monotonic() + seconds
        if index is None:
            return
        passed = 0
        while time.monotonic() < until:
            stint = time.monotonic() + INDEX_SECONDS
            if not (more := follow(store, index, stint) + follow_memories(store, index, stint)):
                return
            passed += more
            progress("index what was said", passed, 0)

    # From memories

    def consolidate(self, progress: Progress = silent) -> Consolidated:
        from hotset.index.embed.choosing import embedders  # noqa: PLC0415 - numpy
        from hotset.nouns.embedding import OFF, Embedding  # noqa: PLC0415
        from hotset.sources.memory.managing.consolidating import consolidate  # noqa: PLC0415

        store, documents = self._ground.open(), embedders(Embedding(OFF)).documents
        self.adapt()
        knobs = self._ground.config.knobs_for("").memory
        done = consolidate(store, documents.embed, self._ground.clock(), knobs=knobs, progress=progress)
        self._telling.masses.renew(store, self._ground.clock())
        self._ground.index_them(store)
        return done

    @property
    def unconsolidated(self) -> float:
        """For how many seconds memories have been waiting for that, whichever process did it last."""
        now, store = self._ground.clock(), self._ground.open()
        last = self._telling.masses.renewed
        if last is None or last > now:  # never yet, or a clock that was put back
            last = next((memory.time for _, memory in store.memories_after(0, 1)), now)
        return max(0.0, now - last)

    def adapt(self) -> Adapted:
        """Learns the weights of this store's recalls from what was read of them; kept only where that is beyond doubt."""
        from hotset.runtime.memory_adapting import adapted  # noqa: PLC0415 - numpy

        store = self._ground.open()
        learned, shape = adapted(store.events()), arrangement(store)
        weights = dict(learned.weights) if dict(learned.weights) != DEFAULT.as_dict() else {}
        if weights != shape.weights:
            rearrange(store, replace(shape, weights=weights), self._ground.clock(), learned.why)
        return learned

    def economics(self, session: str = "") -> Sequence[SessionEconomics]:
        """What memories cost and saved, session by session, the newest first."""
        return economics(self._ground.store(), SessionId(session) if session else None)

    def settle_up(self, session: SessionId, occasion: Occasion) -> tuple[Event, ...]:
        """Looks at what memories cost in a session, and acts where they cost too much. Gives what was done."""
        return settle_up(self._ground.open(), self._telling, session, occasion, self._ground.clock())

    # Taken back

    def runs(self) -> Sequence[tuple[str, int, float]]:
        return self._ground.store().memory_runs()

    def undo(self, run: str) -> int:
        from hotset.sources.memory.managing.undoing import undo  # noqa: PLC0415 - only where somebody asks

        return undo(self._ground.store(), run, self._ground.clock())

    def would_take_back(self, *, place: str = "", session: str = "", agent: str = "", by: str = "") -> TakenBack:
        """What `rollback` would do."""
        from hotset.sources.memory.managing.rollback import Origin, take_back  # noqa: PLC0415 - only where somebody asks

        return take_back(self._ground.store(), Origin(place, session, agent, by), self._ground.clock())

    def rollback(self, *, place: str = "", session: str = "", agent: str = "", by: str = "") -> tuple[MemoryId, ...]:
        from hotset.sources.memory.managing.rollback import rollback  # noqa: PLC0415 - only where somebody asks

        if not (place or session or agent or by):
            raise BadInput("say what to take back: a place, a session, an agent, or who put it into words")
        return rollback(self._ground.store(), self._ground.clock(), place=place, session=session, agent=agent, by=by)

    def restore(self, ids: Sequence[str] = (), *, run: str = "") -> int:
        from hotset.sources.memory.managing.undoing import restore  # noqa: PLC0415 - only where somebody asks

        store = self._ground.store()
        if run:
            return self.undo(run)
        return restore(store, [changing.meant(store, id).id for id in ids], self._ground.clock())

    def _try_to_remember(self, store: Store, session: SessionId) -> bool:
        """Was it remembered? What fails by itself is told once and left alone until it goes on: the others do not wait for it."""
        said = self.pending.last_said(session)
        if self._given_up.get(session) == said:
            return False
        try:
            self._remember(store, session)
        except Exception as error:  # a bug of ours, or a page that is damaged, costs the memories of one session
            if isinstance(error, HotsetError) and not isinstance(error, PageDamaged):
                raise
            self._given_up[session] = said
            told = _log.isEnabledFor(logging.DEBUG)
            _log.warning("session %s cannot be remembered: %s", session, type(error).__name__, exc_info=told)
            return False
        return True

    def _remember(self, store: Store, session: SessionId) -> None:
        said = self.pending.last_said(session)
        with suppress(NotFound):  # a session that an export left out
            made = remember_session(store, session, self._ground.clock(), self._ground.near(store))
            self.by_rules.extend(each.id for each in made.versions if each.kind is MemoryKind.EPISODE)
            self.settle_up(session, "session")
        self.pending.done(session, said)


def load() -> None:
    """What remembering and recalling need, while nobody waits: numpy, and tables of words."""
    import hotset.sources.memory.encoding.encode  # noqa: PLC0415 - whoever opens a session remembers those before it
    import hotset.sources.memory.managing.superseding  # noqa: PLC0415
    import hotset.sources.memory.recalling.recall  # noqa: F401, PLC0415
    from hotset.sources.memory.recalling.tasks import detect  # noqa: PLC0415
    from hotset.sources.memory.recalling.when import spoken  # noqa: PLC0415

    detect("")
    spoken("", 0.0)
