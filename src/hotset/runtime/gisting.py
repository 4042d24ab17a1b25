"""Works out what pages are about, while nobody waits: derived from what is kept, a few pages at a time."""

from __future__ import annotations

import asyncio

from hotset.errors import HotsetError, PageDamaged
from hotset.nouns.deposit import Gisted
from hotset.nouns.page import Gist, Page
from hotset.runtime.background import Background
from hotset.runtime.keeper import Keeper
from hotset.store.port import Store
from hotset.window.gist import gist

_AT_ONCE = 8
_REST_SECONDS = 1.0
"""Between a turn and its gists, so that a busy agent's next call comes first."""

_BREATH_SECONDS = 0.02
"""Between one handful of pages and the next."""


class Gister:
    """One piece of work at a time, however many turns ask for it."""

    def __init__(self, keeper: Keeper, background: Background) -> None:
        self._keeper = keeper
        self._background = background
        self._working: asyncio.Task[None] | None = None

    def nudge(self) -> None:
        if self._working is None or self._working.done():
            self._working = self._background.spawn(self._work(), "work out gists")

    def stop(self) -> None:
        """What is not worked out yet is worked out after the next start."""
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
                gists = await asyncio.to_thread(_next, store) if store is not None else ()
                if not gists:
                    return
                await self._keeper.keep(Gisted(gists))
                pause = _BREATH_SECONDS
        except HotsetError:
            return  # the keeper tells of the store's troubles; the next turn asks again


def _next(store: Store) -> tuple[Gist, ...]:
    return tuple(_of(page, store) for page in store.ungisted(_AT_ONCE))


def _of(page: Page, store: Store) -> Gist:
    """A page whose content is damaged gets an empty gist: `verify` is the one to tell, and the others must not wait behind it."""
    try:
        return gist(page, store.content(page.digest))
    except PageDamaged:
        return Gist(page.id, 0, (), (), ())
