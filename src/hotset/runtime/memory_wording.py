"""A small model puts an episode into better words. What it says must stand in the episode; the words of the rules stay."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from hotset import tokens
from hotset.errors import HotsetError, NotFound
from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import Episode, Memory, MemoryId, Standing
from hotset.nouns.message import Usage
from hotset.runtime.memory_explaining import whole
from hotset.runtime.memory_making import next_version
from hotset.sealing import seal
from hotset.sources.memory.managing.versions import RULES
from hotset.store.port import Store

Ask = Callable[[str], Awaitable[tuple[str, Usage]]]
"""Sums up a text. Raises a `HotsetError` where nothing came of it."""

_SAID = 1500  # characters of each page that the model reads
_MOST_PAGES = 12


@dataclass(frozen=True, slots=True)
class Writer:
    model: str
    ask: Ask


async def reword(id: MemoryId, store: Store, writer: Writer, now: float) -> Memory | None:
    """None where the episode has changed meanwhile, or the model had nothing to say. Nobody waits for it."""
    try:
        memory = await asyncio.to_thread(store.memory, id)
        if memory.source.by != RULES or memory.standing is not Standing.ACTIVE or not isinstance(memory.detail, Episode):
            return None
        text, _ = await writer.ask(await asyncio.to_thread(_source, memory, store))
        words = seal(text).text
        if not words.strip():
            return None
        worded = replace(
            memory,
            text=words,
            tokens=tokens.count(words),
            source=replace(memory.source, by=writer.model),
        )
        version = next_version(memory, worded, now, "a model put it into words")
        await asyncio.wrap_future(store.keep(Remembered((version,))))
    except HotsetError:
        return None  # the rules' words stand
    return version


def _source(memory: Memory, store: Store) -> str:
    """What the rules found, and what was said."""
    said = [f"What rules found:\n{whole(memory, store)}"]
    for page in memory.source.pages[:_MOST_PAGES]:
        try:
            found = store.page(page)
            text = store.content(found.digest).decode("utf-8", "replace")
        except NotFound:
            continue
        said.append(f"{found.role} said:\n{seal(text[:_SAID]).text}")
    return "\n\n".join(said)
