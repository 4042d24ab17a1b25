"""From what a person typed to the store, the session or the page that was meant."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory

from hotset.config import Config
from hotset.errors import NotFound
from hotset.nouns.page import Digest, Kind, Page, SessionId
from hotset.nouns.turn import Session
from hotset.store.folder import has_store
from hotset.store.port import Store, Where
from hotset.store.sqlite import SqliteStore

_DIGEST_LENGTH = 64
_SHOWN = 5
_NEAR = 0.6  # of 1, at which two names are equal: one letter wrong in three is still near
_NEAREST = 3
_SHORTEST_BEGINNING = 4


@contextmanager
def reading(config: Config) -> Iterator[SqliteStore]:
    """The project's store. Looking must not make one, so a project without is told, not created."""
    if not has_store(config.folder):
        raise NotFound(
            f"nothing is kept yet for {config.project} (in {config.folder}); start with: hotset up"
        )
    with _opened(config) as store:
        yield store


@contextmanager
def empty_where_missing(config: Config, *, is_there: bool) -> Iterator[Config]:
    """The settings for a command that looks at whatever there is: where nothing is kept yet, of an
    empty folder that is gone afterwards, so that lists are empty as they are with a store that
    holds nothing.
    """
    if is_there:
        yield config
        return
    with TemporaryDirectory(prefix="hotset-") as empty:
        yield replace(config, folder=Path(empty))


@contextmanager
def listing(config: Config) -> Iterator[SqliteStore]:
    """The project's store, for a list: where there is none, an empty one that is gone
    afterwards."""
    with (
        empty_where_missing(config, is_there=has_store(config.folder)) as there,
        _opened(there) as store,
    ):
        yield store


def session(store: Store, typed: str) -> Session:
    """`last` (the one that was used last), an id, the beginning of one, or the client's own name
    for it."""
    all_of_them = store.recent_sessions()
    if not all_of_them:
        raise NotFound("no session is kept yet; start one with: hotset wrap AGENT")
    if typed == "last":
        return all_of_them[0]
    exact = [
        each for each in all_of_them if typed in (each.id, each.key, each.key.partition(":")[2])
    ]
    found = exact or [each for each in all_of_them if each.id.startswith(typed)]
    if not found:
        names = [
            name for each in all_of_them for name in (each.id, each.key.partition(":")[2]) if name
        ]
        raise NotFound(
            f"no session begins with {typed}; {did_you_mean(typed, ('last', *names))}see: "
            f"hotset sessions"
        )
    if len(found) > 1:
        raise NotFound(
            f"{len(found)} sessions begin with {typed}: {_some([each.id for each in found])}; "
            f"type more of it"
        )
    return found[0]


def session_id(store: Store, typed: str | None) -> SessionId | None:
    return None if typed is None else session(store, typed).id


def page(store: Store, typed: str) -> Page:
    """A page id, the beginning of one, or a tool call's id (then its latest result)."""
    ids = store.match(typed)
    if len(ids) == 1:
        return store.page(ids[0])
    if typed in ids:
        return next(store.page(id) for id in ids if id == typed)
    if len(ids) > 1:
        raise NotFound(f"several pages begin with {typed}: {_some(ids)}; type more of it")
    of_call = list(store.pages(Where(call=typed)))
    results = [each for each in of_call if each.kind.family is Kind.TOOL_RESULT]
    if not of_call:
        near = did_you_mean(typed, beginning_alike(typed, store.match))
        raise NotFound(f"no page, tool call or content {typed}; {near}see: hotset show last")
    return (results or of_call)[-1]


def looks_like_digest(typed: str) -> bool:
    return len(typed) == _DIGEST_LENGTH and all(c in "0123456789abcdef" for c in typed)


def content(store: Store, typed: str) -> tuple[Page | None, Digest]:
    """What to recall: a page and its content's address, or an address alone."""
    if looks_like_digest(typed):
        return None, Digest(typed)
    found = page(store, typed)
    return found, found.digest


def did_you_mean(typed: str, names: Collection[str]) -> str:
    """The names nearest to what was typed, as the middle of a sentence; empty where none is
    near."""
    near = get_close_matches(typed, names, _NEAREST, _NEAR)
    return f"did you mean {' or '.join(near)}? " if near else ""


def beginning_alike(typed: str, match: Callable[[str], Sequence[str]]) -> Sequence[str]:
    """What begins as much like it as anything does."""
    beginnings = (typed[:end] for end in range(len(typed) - 1, _SHORTEST_BEGINNING - 1, -1))
    return next(filter(None, map(match, beginnings)), ())


@contextmanager
def _opened(config: Config) -> Iterator[SqliteStore]:
    store = SqliteStore.open_to_look(config.folder)
    try:
        yield store
    finally:
        store.close()


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")
