"""What memories stand on: the store they are kept in, the index they are found by, and whether they are wanted at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from hotset.config import MEMORY, Config
from hotset.errors import BadConfig, HotsetError
from hotset.index.port import Index
from hotset.nouns.memory import Memory
from hotset.runtime.memory_near import near
from hotset.store.port import Store

INDEX_SECONDS = 0.1
"""That whoever asks waits for what was kept just now."""


class Ground:
    """Use it from any thread."""

    def __init__(
        self, config: Config, store: Callable[[], Store], index: Callable[[], Index | None], clock: Callable[[], float]
    ) -> None:
        """`store` raises a `HotsetError` while there is none; `index` gives None."""
        self.config = config
        self.folder = config.folder / MEMORY
        self.store = store
        self.index = index
        self.clock = clock

    def open(self) -> Store:
        """Raises `BadConfig` where the operator wants no memory, and a `HotsetError` while there is no store.

        What is remembered already can be looked at and taken back all the same: see `store`.
        """
        if not self.config.memory.enabled:
            origin = self.config.origins.get("memory", "")
            raise BadConfig(f"memory is switched off ({origin}): HOTSET_MEMORY=on, or enabled = true in [memory]")
        return self.store()

    def index_them(self, store: Store) -> None:
        """What was kept just now is found by whoever asks next; what takes longer is left to whoever follows the store."""
        from hotset.sources.memory.following import follow_memories  # noqa: PLC0415 - with the index, and not before

        index = self.index()
        if index is not None:
            with suppress(HotsetError, OSError):
                follow_memories(store, index, time.monotonic() + INDEX_SECONDS)

    def near(self, store: Store) -> Callable[[Memory], Sequence[Memory]]:
        """Finds the memories that may speak of the same as another."""
        return partial(near, store, self.index())
