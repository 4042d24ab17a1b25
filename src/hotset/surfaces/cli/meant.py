"""From what a person typed to the store, the session or the page that was meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hotset.config import Config
from hotset.errors import NotFound
from hotset.nouns.page import Digest, Kind, Page, SessionId
from hotset.nouns.turn import Session
from hotset.store.folder import DATABASE
from hotset.store.port import Store, Where
from hotset.store.sqlite import SqliteStore

_DIGEST_LENGTH = 64
_SHOWN = 5


@contextmanager
def reading(config: Config) -> Iterator[Store]:
    """The project's store. Looking must not make one, so a project without is told, not created."""
    if not (config.folder / DATABASE).exists():
        raise NotFound(f"nothing is kept yet for {config.project} (in {config.folder}); start with: hotset up")
    store: Store = SqliteStore.open(config.folder)
    try:
        yield store
    finally:
        store.close()


def session(store: Store, typed: str) -> Session:
    """`last`, an id, the beginning of one, or the client's own name for it."""
    all_of_them = list(store.sessions())
    if not all_of_them:
        raise NotFound("no session is kept yet")
    if typed == "last":
        return all_of_them[-1]
    exact = [each for each in all_of_them if typed in (each.id, each.key, each.key.partition(":")[2])]
    found = exact or [each for each in all_of_them if each.id.startswith(typed)]
    if not found:
        raise NotFound(f"no session begins with {typed}; see: hotset sessions")
    if len(found) > 1:
        raise NotFound(f"{len(found)} sessions begin with {typed}: {_some([each.id for each in found])}; type more of it")
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
        raise NotFound(f"no page, tool call or content {typed}; see: hotset show last")
    return (results or of_call)[-1]


def looks_like_digest(typed: str) -> bool:
    return len(typed) == _DIGEST_LENGTH and all(c in "0123456789abcdef" for c in typed)


def content(store: Store, typed: str) -> tuple[Page | None, Digest]:
    """What to recall: a page and its content's address, or an address alone."""
    if looks_like_digest(typed):
        return None, Digest(typed)
    found = page(store, typed)
    return found, found.digest


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")
