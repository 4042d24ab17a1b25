"""Asks the sources for candidates: in parallel, each until its deadline."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from hotset.files.deadline_pool import DeadlinePool
from hotset.nouns.candidate import Candidate
from hotset.sources.port import Scene, Source

_log = logging.getLogger("hotset")

_THREADS = 2
"""Per source: a search that hangs must not block the next prompt's."""


@dataclass(frozen=True, slots=True)
class AskedSource:
    """A source that was asked for candidates."""

    name: str
    results: int
    ms: float
    """How long the request waited for it; up to its deadline."""


@dataclass(frozen=True, slots=True)
class Offered:
    """What the sources had for one request."""

    candidates: tuple[Candidate, ...] = ()
    """In the order of the sources."""
    asked: tuple[AskedSource, ...] = ()
    """Those that looked for something; without those whose offers stand for good."""


class OfferRound:
    """Asks all sources for one request. Thread-safe."""

    def __init__(
        self, sources: Sequence[Source], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._sources = sources
        self._monotonic = monotonic
        self._pools = {
            each.name: DeadlinePool(_THREADS, f"hotset-{each.name}")
            for each in sources
            if not each.standing
        }
        self._failing: dict[str, str] = {}

    def ask(self, scene: Scene) -> Offered:
        """Every source's candidates. It cannot fail a call or delay it for long: a slow or broken
        source offers nothing."""
        begun = self._monotonic()
        asked = [
            (each, self._begin(each, scene, begun))
            for each in self._sources
            if (scene.prompt or scene.answered is not None)
            and not each.standing
            and each.seconds(scene) > 0
            and not each.is_quiet(opens=scene.opens)
        ]
        standing = {each.name: each.offer(scene, begun) for each in self._sources if each.standing}
        found = {each.name: self._result(each, scene, work, begun) for each, work in asked}
        every = {**standing, **{name: offers for name, (offers, _) in found.items()}}
        return Offered(
            tuple(offer for each in self._sources for offer in every.get(each.name, ())),
            tuple(AskedSource(name, len(offers), ms) for name, (offers, ms) in found.items()),
        )

    def _begin(
        self, source: Source, scene: Scene, begun: float
    ) -> Future[tuple[Sequence[Candidate], float]] | None:
        until = begun + source.seconds(scene)
        looking = partial(self._look, source, scene, until, begun)
        return self._pools[source.name].submit_if_free(looking)

    def _look(
        self, source: Source, scene: Scene, until: float, begun: float
    ) -> tuple[Sequence[Candidate], float]:
        return source.offer(scene, until), 1000 * (self._monotonic() - begun)

    def _result(
        self,
        source: Source,
        scene: Scene,
        work: Future[tuple[Sequence[Candidate], float]] | None,
        begun: float,
    ) -> tuple[Sequence[Candidate], float]:
        """The candidates, and the milliseconds they took."""
        if work is None:
            self._warn(source, "an earlier search hangs")
            return (), 0.0
        left = begun + source.seconds(scene) - self._monotonic()
        try:
            offers = work.result(max(0.0, left))
        except TimeoutError:
            return (), 1000 * (self._monotonic() - begun)
        except Exception as error:
            # fail open: the prompt goes out alone
            self._warn(source, type(error).__name__)
            return (), 1000 * (self._monotonic() - begun)
        self._failing.pop(source.name, None)
        return offers

    def _warn(self, source: Source, why: str) -> None:
        """Log the fault once, and again only if it is another one or the source worked in
        between."""
        level = logging.DEBUG if why == self._failing.get(source.name) else logging.WARNING
        _log.log(level, "nothing could be offered from %s: %s", source.name, why)
        self._failing[source.name] = why
