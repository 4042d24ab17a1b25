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

_AT_ONCE = 32
_REST_SECONDS = 1.0
"""Between a turn and its gists, so that a busy agent's next call comes first."""


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
        try:
            while True:
                await asyncio.sleep(_REST_SECONDS)
                store = self._keeper.store
                gists = await asyncio.to_thread(_next, store) if store is not None else ()
                if not gists:
                    return
                await self._keeper.keep(Gisted(gists))
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
