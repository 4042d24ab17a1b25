"""A project's memories for a command: its store, its index and its memory source, opened to look
and closed again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from hotset.config import Config
from hotset.errors import HotsetError
from hotset.index.port import Index
from hotset.sources.memory import MemorySource


@contextmanager
def open_memories(config: Config) -> Iterator[MemorySource]:
    """For a person, in a process of its own that looks and goes."""
    from hotset.index import open_index  # noqa: PLC0415 - with the index
    from hotset.sources.history.entries import follow  # noqa: PLC0415
    from hotset.store.sqlite import SqliteStore  # noqa: PLC0415

    with ExitStack() as opened:
        store = opened.enter_context(SqliteStore.open_to_look(config.folder))
        found: list[Index] = []

        def index() -> Index | None:
            if not found and config.search:
                with suppress(HotsetError, OSError, ImportError):
                    made = open_index(config.folder, config.embedding, folds=False)
                    opened.callback(made.close)
                    found.append(made)
            return found[0] if found else None

        yield MemorySource(config, lambda: store, index, follow_pages=follow, logged=False)
