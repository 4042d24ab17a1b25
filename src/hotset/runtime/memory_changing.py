"""What people and models do to memories: each change is a new version, and what was before stays."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from enum import Enum
from typing import cast

from hotset import tokens
from hotset.errors import BadInput, Conflict, NotFound
from hotset.nouns.deposit import Erased, Remembered
from hotset.nouns.memory import Detail, Ending, Memory, MemoryId, MemoryKind, Standing, Trust
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event
from hotset.runtime.memory_making import PERSON, next_version
from hotset.sealing import seal
from hotset.sources.memory.naming import is_same
from hotset.store.port import Store
from hotset.text.clip import clip_prose
from hotset.text.sentences import sentences

_KEEP_SECONDS = 30.0
_TRIES = 3
_LONGEST = 20_000
"""Characters of a memory. More is a document: it belongs into a file, and a memory may say which."""

_BEGINNING = re.compile(r"[a-z]+-[a-z0-9-]{0,80}")
_LONGEST_ID = 90
_ONE_LINE = 200
_TITLE = 90
_NAMED = 6


def meant(store: Store, id: str) -> Memory:
    """The memory by its id, or by a beginning of it. Raises `NotFound`, and `BadInput` where several begin so."""
    found: Sequence[MemoryId] = ()
    if _BEGINNING.fullmatch(id):
        try:
            return store.memory(MemoryId(id))
        except NotFound:
            found = store.memory_match(id)
    if len(found) == 1:
        return store.memory(found[0])
    if found:
        raise BadInput(f"several memories begin with {id}: {', '.join(found[:_NAMED])}; say more of it")
    near = get_close_matches(id, _beginning_alike(store, id), 3, 0.6)
    meant_by = f"did you mean {' or '.join(near)}? " if near else ""
    raise NotFound(f"no memory {id[:80]!r}; {meant_by}`hotset memory list` shows them")


def _beginning_alike(store: Store, id: str) -> Sequence[MemoryId]:
    """The ids of memories that begin as much like it as any do."""
    beginnings = (id[:end] for end in range(min(len(id), _LONGEST_ID) - 1, 3, -1))
    return next(filter(None, (store.memory_match(each) for each in beginnings if _BEGINNING.fullmatch(each))), ())


def tell_ending(store: Store, session: SessionId, turn: int, ending: Ending, now: float) -> None:
    """How a task came out, so that it holds when its session goes on and is looked at again."""
    from hotset.sources.memory.encoding.reading import OUTCOME  # noqa: PLC0415 - only where somebody tells

    store.keep(Event(OUTCOME, now, session, turn, {"outcome": str(ending)})).result(_KEEP_SECONDS)


def changed(store: Store, id: str, change: Callable[[Memory], Memory], why: str) -> Memory:
    """A new version, by a person; the same one where nothing changes. Tried again where somebody else changed it meanwhile."""
    for left in reversed(range(_TRIES)):
        latest = meant(store, id)
        version = change(latest)
        if is_same(latest, version):
            return latest
        version = next_version(latest, version, time.time(), why)
        try:
            store.keep(Remembered((version,))).result(_KEEP_SECONDS)
        except Conflict:
            if not left:
                raise
        else:
            return version
    raise AssertionError("unreachable")


def edit(
    store: Store,
    id: str,
    *,
    text: str | None = None,
    title: str | None = None,
    topics: Sequence[str] | None = None,
    ending: str | None = None,
    confidence: float | None = None,
    pinned: bool | None = None,
) -> Memory:
    """Raises `BadInput` for what cannot be, and changes nothing then."""
    if confidence is not None and not 0.0 <= confidence <= 1.0:
        raise BadInput(f"confidence is from 0 to 1, not {confidence:g}")
    wanted = None if ending is None else ending_named(ending)

    def change(latest: Memory) -> Memory:
        own = text is not None or title is not None
        words = latest.text if text is None else worded(text)
        return replace(
            latest,
            text=words,
            title=_titled(latest, words) if title is None else one_line(title),
            tokens=latest.tokens if text is None else tokens.count(words.encode("utf-8", "replace")),
            topics=latest.topics if topics is None else tuple(one_line(topic) for topic in topics),
            ending=latest.ending if wanted is None else wanted,
            confidence=latest.confidence if confidence is None else confidence,
            pinned=latest.pinned if pinned is None else pinned,
            source=replace(latest.source, by=PERSON) if own else latest.source,
            trust=Trust.PERSON if own else latest.trust,
        )

    return changed(store, id, change, "a person corrected it")


def _titled(before: Memory, words: str) -> str:
    """A title that was the beginning of the text goes with it: a list must not say what somebody corrected."""
    begins = before.title.rstrip("…").rstrip(".")
    if not before.text.startswith(begins) or words.startswith(begins):
        return before.title
    return clip_prose(next(iter(sentences(words)), words), _TITLE)


def confirm(store: Store, id: str) -> Memory:
    return changed(
        store,
        id,
        lambda latest: replace(
            latest,
            trust=Trust.PERSON,
            confidence=max(latest.confidence, 0.9),
            standing=Standing.ACTIVE if latest.standing is Standing.CANDIDATE else latest.standing,
        ),
        "a person confirmed it",
    )


def forget(store: Store, id: str, why: str = "") -> Memory:
    reason = one_line(why) or "somebody wanted it forgotten"
    return changed(store, id, lambda latest: replace(latest, standing=Standing.FORGOTTEN), reason)


def erase(store: Store, id: str) -> MemoryId:
    """For good, from the disk. The pages that it was made from stay in the store."""
    memory = meant(store, id)
    store.keep(Erased((memory.id,), time.time())).result(_KEEP_SECONDS)
    return memory.id


def ending_named(name: str) -> Ending:
    try:
        return Ending(name.strip().lower())
    except ValueError:
        raise BadInput(f"an outcome is {', '.join(Ending)}, not {name[:40]!r}") from None


def kind_named(name: str) -> MemoryKind:
    """What people may name: how hotset arranges memories is its own."""
    every = [kind for kind in MemoryKind if kind is not MemoryKind.ARRANGEMENT]
    found = next((kind for kind in every if kind == name.strip().lower()), None)
    if found is None:
        raise BadInput(f"a memory is one of {', '.join(every)}, not {name[:40]!r}")
    return found


def worded(text: str) -> str:
    """What may be kept of somebody's words: without secrets, and not a book."""
    sealed = seal(text.strip()).text
    if not sealed:
        raise BadInput("there is nothing to remember: the text is empty")
    if len(sealed) > _LONGEST:
        raise BadInput(
            f"a memory has at most {_LONGEST:,} characters, this has {len(sealed):,}; put it into a file and say which"
        )
    return sealed


def detailed(detail: Detail) -> Detail:
    """The same of what belongs to a kind alone: not one of its words is a secret."""
    return None if detail is None else cast("Detail", _sealed(detail))


def _sealed(value: object) -> object:
    match value:
        case Enum():
            return value
        case str():
            return seal(value).text
        case tuple():
            return tuple(map(_sealed, value))
        case dict():
            return {_sealed(key): _sealed(each) for key, each in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{each.name: _sealed(getattr(value, each.name)) for each in fields(value)})
        case _:
            return value


def one_line(text: str) -> str:
    return " ".join(seal(text).text.split())[:_ONE_LINE]
