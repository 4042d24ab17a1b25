"""Answers `retrieve_context`, `search_history` and `get_turn_range` from the sources, within their
token budgets.

An answer never raises because of its arguments or of what the store holds: a model that asks for
the wrong thing reads what to ask instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from hotset import tokens
from hotset.dialects.parts import fitting_images
from hotset.errors import HotsetError
from hotset.index.port import Index
from hotset.nouns.retrieval import (
    Place,
    Range,
    Retrieval,
    Retrieve,
    Retrieved,
    Search,
    SourceText,
)
from hotset.sources.history.answers import (
    answer_question,
    cut_text,
    fit_answer,
    search_pages,
    show_pages,
    show_turns,
)
from hotset.sources.history.page_search import Deadline, NothingFound, look_up
from hotset.store.port import Store
from hotset.window.slice import Count
from hotset.window.slice.fit import clip_to_tokens

Reader = Callable[[str, Store], SourceText | None]
"""The `read` method of a source."""

SECONDS = 1.0
"""How long a search may take; a model waits for it, and a person for the model."""


def answer(
    call: Retrieval,
    store: Store,
    here: Place,
    *,
    readers: Sequence[Reader] = (),
    index: Index | None = None,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.monotonic,
    count: Count = tokens.count,
    sees: bool = False,
    patience: float = 1.0,
) -> Retrieved:
    """The answer for the model, of at most `call.max_tokens`. Without an index the store is
    scanned; `readers` read ids of the sources.

    `sees` says that the model can look at images, and that they can be sent along with the text.
    """
    deadline = Deadline(clock, clock() + seconds * patience, patience)
    try:
        match call:
            case Retrieve() if (text := _own_text(call.id, readers, store)) is not None:
                made = cut_text(text.heading, text.text, call.how, call.max_tokens, count)
            case Retrieve(id="", iteration=None, tool="") if (
                passages := answer_question(call, store, here, deadline, count=count)
            ) is not None:
                made = passages
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
        lost = f"store not readable ({type(error).__name__}); run the original tool call again"
        words = clip_to_tokens(f"[hotset: {lost if failed else error}]", call.max_tokens, count)
        size = count(words.encode("utf-8", "replace"))
        return Retrieved(words, size, found=False, failed=failed)
    return fit_answer(made, call.max_tokens, count)


def _own_text(id: str, readers: Sequence[Reader], store: Store) -> SourceText | None:
    """The text that a source has under an id of its own."""
    texts = (read(id, store) for read in readers) if id else ()
    return next((text for text in texts if text is not None), None)
