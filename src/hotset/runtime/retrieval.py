"""Answers `retrieve_context`, `search_history` and `get_turn_range` from the sources, within their
token budgets.

An answer never raises because of its arguments or of what the store holds: a model that asks for
the wrong thing reads what to ask instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from hotset import tokens
from hotset.dialects.parts import fitting_images
from hotset.errors import HotsetError
from hotset.index.port import Index
from hotset.nouns.retrieval import (
    Place,
    Question,
    Range,
    Retrieval,
    Retrieve,
    Retrieved,
    Search,
    SourceText,
    Whole,
)
from hotset.nouns.search import Filter
from hotset.sources.history.answers import (
    AnswerParts,
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

About = Callable[[str, Place, int], SourceText | None]
"""The `about` method of a source."""

SECONDS = 1.0
"""How long a search may take; a model waits for it, and a person for the model."""


def answer(
    call: Retrieval,
    store: Store,
    here: Place,
    *,
    readers: Sequence[Reader] = (),
    abouts: Sequence[About] = (),
    index: Index | None = None,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.monotonic,
    count: Count = tokens.count,
    sees: bool = False,
    patience: float = 1.0,
) -> Retrieved:
    """The answer for the model, of at most `call.max_tokens`. Without an index the store is
    scanned; `readers` read ids of the sources, `abouts` say what they know beside the pages.

    `sees` says that the model can look at images, and that they can be sent along with the text.
    """
    deadline = Deadline(clock, clock() + seconds * patience, patience)

    def search(asked: Retrieval) -> Retrieved:
        try:
            made = _made_of(
                asked, store, here, deadline, readers=readers, index=index, count=count, sees=sees
            )
        except (NothingFound, HotsetError) as error:
            failed = isinstance(error, HotsetError)
            lost = f"store not readable ({type(error).__name__}); run the original tool call again"
            words = clip_to_tokens(f"[hotset: {lost if failed else error}]", call.max_tokens, count)
            return Retrieved(words, _size(words, count), found=False, failed=failed)
        return fit_answer(made, asked.max_tokens, count)

    known = _known_beside(call, here, abouts, count)
    if known is None:
        return search(call)
    beside, answers = known
    if answers:
        return beside
    got = search(replace(call, max_tokens=call.max_tokens - beside.tokens - 1))
    if not got.found:
        return got if got.failed else beside
    text = f"{got.text}\n{beside.text}"
    size = _size(text, count)
    return replace(got, text=text, tokens=size) if size <= call.max_tokens else got


def _made_of(
    call: Retrieval,
    store: Store,
    here: Place,
    deadline: Deadline,
    *,
    readers: Sequence[Reader],
    index: Index | None,
    count: Count,
    sees: bool,
) -> AnswerParts:
    """The answer before it is cut. Raises `NothingFound`, or a `HotsetError` if the store cannot be
    read."""
    match call:
        case Retrieve() if (text := _own_text(call.id, readers, store)) is not None:
            return cut_text(text.heading, text.text, call.how, call.max_tokens, count)
        case Retrieve(id="", iteration=None, tool="") if (
            passages := answer_question(call, store, here, deadline, count=count)
        ) is not None:
            return passages
        case Retrieve():
            choice = look_up(call, store, here, deadline, index)
            images = (
                fitting_images(choice.pages, store.content, call.max_tokens, tokens.image)
                if sees
                else {}
            )
            return show_pages(call, choice, store, here, count, images=images)
        case Search():
            return search_pages(call, store, here, deadline, index, count=count)
        case Range():
            return show_turns(call, store, here, count, sees=sees)


def _known_beside(
    call: Retrieval, here: Place, abouts: Sequence[About], count: Count
) -> tuple[Retrieved, bool] | None:
    """What a source knows on a question or a topic, and whether that is the whole answer."""
    match call:
        case Retrieve(id="", iteration=None, tool="", topic=words, how=Whole() | Question()):
            pass
        case Search(query=words, only=only) if only == Filter():
            pass
        case _:
            return None
    found = (about(words, here, call.max_tokens) for about in abouts)
    known = next((each for each in found if each is not None), None)
    if known is None:
        return None
    text = f"{known.heading}\n{known.text}"
    tokens = _size(text, count)
    fits = tokens <= call.max_tokens if known.answers else 2 * tokens <= call.max_tokens
    return (Retrieved(text, tokens), known.answers) if fits else None


def _size(text: str, count: Count) -> int:
    return count(text.encode("utf-8", "replace"))


def _own_text(id: str, readers: Sequence[Reader], store: Store) -> SourceText | None:
    """The text that a source has under an id of its own."""
    texts = (read(id, store) for read in readers) if id else ()
    return next((text for text in texts if text is not None), None)
