"""Background work on kept pages: `Follower` brings them into the index, `Gister` makes their
gists."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence

from hotset.errors import HotsetError
from hotset.files.breaker import Breaker
from hotset.index.port import Index
from hotset.nouns.deposit import Gisted
from hotset.runtime.background import Background
from hotset.runtime.keeper import Keeper
from hotset.sources.history.pages import next_gists
from hotset.sources.port import Source
from hotset.store.port import Store

_log = logging.getLogger("hotset")

_REST_SECONDS = 1.0
"""Pause between a turn and the indexing of its pages, so that a busy agent's next call comes
first."""

_STINT_SECONDS = 0.1
"""Length of one piece of work: a call that comes meanwhile shares the interpreter with it."""

_BREATH_SECONDS = 0.05
"""Pause between two pieces of work."""

_MOST_GIVEN_WAY = 5
"""Times in a row that it lets calls go first: with many agents there is always one."""

_LONGEST_REST_SECONDS = 60.0
"""Longest pause after troubles, each of which doubles the pause."""

_GISTS_AT_ONCE = 8
_GIST_BREATH_SECONDS = 0.02
"""Between one handful of gists and the next."""

_TROUBLES = (HotsetError, OSError, ImportError)
"""Errors while an index is opened or followed; it is tried again."""


class Follower:
    """Indexes new content: one task at a time, however many turns ask for it."""

    def __init__(
        self, open_index: Callable[[], Index] | None, keeper: Keeper, background: Background
    ) -> None:
        """There is no index if `open_index` is None."""
        self._open = open_index
        self._keeper = keeper
        self._background = background
        self._index: Index | None = None
        self._followed: Store | None = None
        self._lock = threading.Lock()
        self._breaker = Breaker("index", after=1, rest=_REST_SECONDS, longest=_LONGEST_REST_SECONDS)
        self._stopped = False
        self._working: asyncio.Task[None] | None = None
        self.sources: Sequence[Source] = ()
        """The sources whose new content is indexed."""
        self.trouble = ""
        """Why there is no index at the moment; empty while all is well or none was needed yet."""

    @property
    def index(self) -> Index | None:
        """The index, once it is open."""
        return self._index

    def opened(self) -> Index | None:
        """The index, opened now if necessary, which takes a quarter of a second. None if there is
        none."""
        with self._lock:
            if self._index is None and self._open is not None and not self._stopped:
                try:
                    self._index = self._open()
                except _TROUBLES as error:
                    self._set_trouble(type(error).__name__)
            return self._index

    @property
    def troubles(self) -> Sequence[str]:
        """What is wrong with the index, as far as this process knows."""
        index = self._index
        return [self.trouble] if self.trouble else [] if index is None else index.troubles()

    def nudge(self) -> None:
        """Start indexing, because something was kept."""
        if (
            self._open is not None
            and not self._stopped
            and (self._working is None or self._working.done())
        ):
            self._working = self._background.spawn(self._work(), "follow the store")

    async def close(self) -> None:
        """Stop; the rest is indexed after the next start."""
        self._stopped = True
        if self._working is not None:
            self._working.cancel()
        try:
            await asyncio.to_thread(self._leave)
        except RuntimeError:  # a program that ends without closing starts no threads any more
            self._leave()

    async def _work(self) -> None:
        pause, troubles, gave_way = _REST_SECONDS, 0, 0
        while not self._stopped:
            await asyncio.sleep(pause)
            if self._keeper.busy and gave_way < _MOST_GIVEN_WAY:
                pause, gave_way = _REST_SECONDS, gave_way + 1
                continue
            gave_way = 0
            store = self._keeper.store
            passed = await asyncio.to_thread(self._stint, store) if store is not None else 0
            if self.trouble:
                troubles += 1
                pause = min(_REST_SECONDS * 2**troubles, _LONGEST_REST_SECONDS)
            elif not passed:
                return
            else:
                troubles, pause = 0, _BREATH_SECONDS

    def _stint(self, store: Store) -> int:
        """Do one piece of work; returns the number of pages passed: 0 if there are no more, or on
        trouble."""
        with self._lock:
            if self._stopped or self._open is None:
                return 0
            if self._followed not in (None, store):
                # the store was reopened: its folder may be another one, and so the index
                self._drop()
            self._followed = store
            try:
                self._index = self._index or self._open()
                until = time.monotonic() + _STINT_SECONDS
                passed = sum(each.follow(store, self._index, until) for each in self.sources)
            except _TROUBLES as error:
                self._set_trouble(type(error).__name__)
                self._drop()
                return 0
            self._set_trouble("")
            return passed

    def _leave(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            index.close()

    def _set_trouble(self, trouble: str) -> None:
        if trouble and not self.trouble:
            _log.warning(
                "the index cannot be kept up to date (%s); searches look through the store instead",
                trouble,
            )
        self.trouble = trouble
        if trouble:
            self._breaker.failed(trouble)
        else:
            self._breaker.succeeded()


class Gister:
    """Makes gists: one task at a time, however many turns ask for it."""

    def __init__(self, keeper: Keeper, background: Background) -> None:
        self._keeper = keeper
        self._background = background
        self._working: asyncio.Task[None] | None = None

    def nudge(self) -> None:
        if self._working is None or self._working.done():
            self._working = self._background.spawn(self._work(), "work out gists")

    def stop(self) -> None:
        """Stop; the rest is done after the next start."""
        if self._working is not None:
            self._working.cancel()

    async def _work(self) -> None:
        pause = _REST_SECONDS
        try:
            while True:
                await asyncio.sleep(pause)
                if self._keeper.busy:
                    pause = _REST_SECONDS
                    continue
                store = self._keeper.store
                gists = (
                    await asyncio.to_thread(next_gists, store, _GISTS_AT_ONCE)
                    if store is not None
                    else ()
                )
                if not gists:
                    return
                await self._keeper.keep(Gisted(gists))
                pause = _GIST_BREATH_SECONDS
        except HotsetError:
            return  # the keeper reports the store's troubles; the next turn asks again
