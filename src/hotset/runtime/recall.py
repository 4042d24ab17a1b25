"""Answers `retrieve_context`, `search_history` and `get_turn_range` from the sources, within their
budgets.

An answer never raises for what was asked or for what the store holds: a model that asks for the
wrong thing reads what to ask instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hotset import tokens
from hotset.dialects.parts import fitting_images
from hotset.errors import HotsetError, NotFound
from hotset.index.port import Index
from hotset.nouns.memory import MemoryId, Standing
from hotset.nouns.retrieval import Place, Range, Retrieval, Retrieve, Retrieved, Search
from hotset.nouns.turn import Event
from hotset.sources.history.answers import (
    cut_text,
    fit_answer,
    search_pages,
    show_pages,
    show_turns,
)
from hotset.sources.history.lookup import NothingFound, look_up
from hotset.sources.history.search import Deadline
from hotset.sources.memory import is_memory_id, memory_heading, memory_text
from hotset.store.port import Store
from hotset.window.slice import Count
from hotset.window.slice.fit import clipped

SECONDS = 1.0
"""How long a search may look; a model waits for it, and a person for the model."""

MemoryReader = Callable[[str, Store], tuple[str, str] | None]
"""A memory's heading and text by its id; None for any other id."""


def read_memory(id: str, store: Store) -> tuple[str, str] | None:
    """The heading and the text of a memory that is not forgotten."""
    if not is_memory_id(id):
        return None
    try:
        memory = store.memory(MemoryId(id))
    except NotFound:
        return None
    return (
        None
        if memory.standing is Standing.FORGOTTEN
        else (memory_heading(memory), memory_text(memory, store))
    )


def answer(
    call: Retrieval,
    store: Store,
    here: Place,
    *,
    index: Index | None = None,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.monotonic,
    count: Count = tokens.count,
    sees: bool = False,
    memory: MemoryReader = read_memory,
    patience: float = 1.0,
) -> Retrieved:
    """The answer for the model, of at most `call.max_tokens`. Without an index the store itself is
    looked through.

    `sees` says that images can be given along with the text, and that the model can look at them.
    """
    deadline = Deadline(clock, clock() + seconds * patience, patience)
    try:
        match call:
            case Retrieve() if (remembered := memory(call.id, store)) is not None:
                made = cut_text(*remembered, call.how, call.max_tokens, count)
            case Retrieve():
                choice = look_up(call, store, here, deadline, index)
                images = (
                    fitting_images(choice.pages, store.content, call.max_tokens, tokens.image)
                    if sees
                    else {}
                )
                made = show_pages(call, choice, store, here, count, images=images)
            case Search():
                made = search_pages(call, store, here, deadline, index, count=count)
            case Range():
                made = show_turns(call, store, here, count, sees=sees)
    except (NothingFound, HotsetError) as error:
        failed = isinstance(error, HotsetError)
        lost = (
            f"the store could not be read ({type(error).__name__}); get it again from where it came"
        )
        text = clipped(f"[hotset: {lost if failed else error}]", call.max_tokens, count)
        return Retrieved(text, count(text.encode("utf-8", "replace")), found=False, failed=failed)
    return fit_answer(made, call.max_tokens, count)


def event_of(
    tool: str,
    call: Retrieval | None,
    got: Retrieved | None,
    here: Place,
    now: float,
    *,
    refault: bool = False,
) -> Event:
    """The audit's event of a retrieval: what was asked for by name, never what it said."""
    # What a model makes up is content, so only an id that was found is named.
    named = call.id if isinstance(call, Retrieve) and got is not None and got.found else ""
    detail: dict[str, str | int | float] = {
        "tool": tool,
        "id": named[:80],
        "found": int(got is not None and got.found),
        "tokens": got.tokens if got else 0,
        "truncated": int(got is not None and got.truncated),
        "pages": len(got.pages) if got else 0,
        "refault": int(refault),
    }
    return Event("Retrieved", now, here.session, here.turn, detail)
