"""Which pages a model means: by an id of any kind, an iteration, a tool, or a topic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import groupby

from hotset.errors import NotFound
from hotset.index.port import Index
from hotset.nouns.finding import Filter, Query
from hotset.nouns.page import Kind, Page, PageId, Role
from hotset.nouns.retrieval import Lines, Place, Retrieve, Slice, Whole
from hotset.nouns.turn import Node
from hotset.sources.history.pages import current_prompt, line_nodes, on_line
from hotset.sources.history.search import Deadline, PageHit, find_latest, look_through
from hotset.store.port import Store, Where
from hotset.text.clip import safe_line

INDEX_SHARE = 0.6
"""Of the time, where there is an index; what it leaves is enough for a look through the store."""

NOT_KEPT_YET = "nothing stored of this conversation yet; all of it is still in it"

_CONTENT = re.compile(r"c([0-9a-f]{6,64})|([0-9a-f]{64})")
_PAGE = re.compile(r"p[0-9a-f]{3,15}")
_IDS = (
    "ids: r... (reference), c + 12 hex digits (content), p + 15 (page), "
    "sem-... or ep-... (memory), or a whole tool call id"
)
_FOUND = 20  # pages among which these are chosen; the others are named
_NAMED = 12
_SILENT = frozenset({Kind.SYSTEM, Kind.THINKING, Kind.OPAQUE})


class NothingFound(Exception):
    """What was asked for is not there; the message says what to ask instead."""


@dataclass(frozen=True, slots=True)
class PageChoice:
    """The pages that a call means."""

    pages: Sequence[Page]
    more: str = ""
    """What else there was to choose from."""
    how: Slice | None = None
    """Which part of it was found, where the words that were asked for do not stand in it."""


def look_up(
    call: Retrieve, store: Store, here: Place, deadline: Deadline, index: Index | None = None
) -> PageChoice:
    """Raises `NothingFound`."""
    if call.id:
        return _by_id(call.id, store, here)
    if call.iteration is not None:
        return _by_iteration(call.iteration, store, here)
    if call.tool:
        return _by_tool(call, store, here, deadline)
    if index is not None and (
        found := _by_index(call.topic, store, here, deadline.share(INDEX_SHARE), index)
    ):
        return found
    prompt = current_prompt(store, here)
    pages = [page for page in _said_on_line(store, here) if page.id not in prompt]
    return _by_topic(call.topic, pages, store, here, deadline)


def _by_id(id: str, store: Store, here: Place) -> PageChoice:
    ways: list[Callable[[str, Store, Place], Sequence[Page]]] = [
        _of_reference,
        _of_content,
        _of_page,
        _of_call,
    ]
    for way in ways:
        if pages := way(id, store, here):
            return PageChoice(pages)
    raise NothingFound(f"nothing has the id {safe_line(id)}; {_IDS}.{_closest(id, store, here)}")


def _of_reference(id: str, store: Store, _: Place) -> Sequence[Page]:
    try:
        return _pages(store, store.reference(id).pages)
    except NotFound:
        return ()


def _of_content(id: str, store: Store, here: Place) -> Sequence[Page]:
    shaped = _CONTENT.fullmatch(id)
    if shaped is None:
        return ()
    addresses = store.contents(shaped[1] or shaped[2])
    pages = [
        page
        for address in addresses[: here.knobs.topic_pages]
        for page in _nearest(store, here, Where(digest=address))[-1:]
    ]
    if len(addresses) > 1 and len(pages) > 1:
        several = ", ".join(f"c{address[:16]}" for address in addresses)
        raise NothingFound(f"several contents begin with {id}: {several}; give one")
    return pages


def _nearest(store: Store, here: Place, where: Where) -> list[Page]:
    """On this line; else in this session; else anywhere."""
    pages = list(store.pages(replace(where, session=here.session))) if here.session else []
    pages = pages or list(store.pages(where))
    return list(on_line(pages, frozenset(here.chains))) or pages


def _of_page(id: str, store: Store, _: Place) -> Sequence[Page]:
    if not _PAGE.fullmatch(id):
        return ()
    ids = store.match(id)
    if len(ids) > 1 and id not in ids:
        raise NothingFound(f"several pages begin with {id}: {', '.join(ids)}; give one")
    return _pages(store, [each for each in ids if len(ids) == 1 or each == id])


def _of_call(id: str, store: Store, here: Place) -> Sequence[Page]:
    """What a call brought, on this line before all others: some providers number their calls anew
    in each session."""
    pages = _nearest(store, here, Where(call=id))
    results = [page for page in pages if page.kind.family is not Kind.TOOL_CALL] or pages
    return [
        page
        for page in results
        if (page.session, page.chain) == (results[-1].session, results[-1].chain)
    ]


def _pages(store: Store, ids: Sequence[PageId]) -> list[Page]:
    """Those that are still kept."""
    found: list[Page] = []
    for id in ids:
        with suppress(NotFound):
            found.append(store.page(id))
    return found


def _closest(id: str, store: Store, here: Place) -> str:
    """Ids that may have been meant."""
    references = (
        [reference.id for reference in store.references(here.session)] if here.session else []
    )
    near: list[str] = get_close_matches(id, references, 3, 0.6)
    if id[:1] == "p" and len(id) > 4:
        near += store.match(id[:5])[:3]
    if id[:1] == "c" and re.fullmatch(r"c[0-9a-f]{4,}", id[:5]):
        near += [f"c{address[:12]}" for address in store.contents(id[1:5])[:3]]
    if near:
        return f" Closest: {', '.join(near)}."
    if references:
        return f" References here: {', '.join(references[-_NAMED:])}."
    return " Try search_history(query)."


def _by_iteration(number: int, store: Store, here: Place) -> PageChoice:
    rounds = list(_rounds(line_nodes(store, here)))
    if not rounds:
        raise NothingFound(NOT_KEPT_YET)
    place = number - 1 if number > 0 else number
    if number == 0 or not -len(rounds) <= place < len(rounds):
        raise NothingFound(f"no iteration {number}; iterations: 1-{len(rounds)}")
    kept = (
        page
        for node in rounds[place]
        for page in store.pages(Where(session=node.session, chain=node.chain))
    )
    pages = [page for page in kept if page.kind not in (Kind.PROMPT, Kind.SYSTEM)]
    if not pages:
        raise NothingFound(f"iteration {number} is empty; iterations: 1-{len(rounds)}")
    return PageChoice(pages, f"iteration {place % len(rounds) + 1} of {len(rounds)}")


def _rounds(nodes: Sequence[Node]) -> Iterator[list[Node]]:
    """What the model said in one go, with what came back before it spoke again."""
    current: list[Node] = []
    said = (node for node in nodes if not node.aside)
    for spoke, group in groupby(said, lambda node: node.role is Role.ASSISTANT):
        if spoke:
            if current:
                yield current
            current = list(group)
        elif current:
            current += group
    if current:
        yield current


def _by_tool(call: Retrieve, store: Store, here: Place, deadline: Deadline) -> PageChoice:
    said = _said_on_line(store, here)
    brought = [page for page in said if page.tool and page.kind.family is not Kind.TOOL_CALL]
    names = dict.fromkeys(page.tool for page in brought)
    wanted = call.tool.lower()
    matching = {name for name in names if name == call.tool} or {
        name
        for name in names
        if name.lower() == wanted or name.lower().rpartition("__")[2] == wanted
    }
    pages = [page for page in brought if page.tool in matching]
    if not pages:
        known = ", ".join(safe_line(name) for name in list(names)[:_NAMED])
        others = f"; tools with results: {known}" if known else ""
        raise NothingFound(f"no result of tool {safe_line(call.tool)} in this conversation{others}")
    if call.topic:
        return _by_topic(call.topic, pages, store, here, deadline)
    last = [page for page in pages if page.chain == pages[-1].chain and page.call == pages[-1].call]
    earlier = _named([page for page in pages if page not in last][: -_NAMED - 1 : -1])
    return PageChoice(
        last, earlier and f"latest of {len(pages)} results of this tool; earlier: {earlier}"
    )


def _by_index(
    topic: str, store: Store, here: Place, deadline: Deadline, index: Index
) -> PageChoice | None:
    """None where there is nothing, or where the index cannot tell."""
    if here.session is None:
        return None
    chains, prompt = frozenset(here.chains), current_prompt(store, here)
    query = Query(topic, Filter(sessions=frozenset({here.session})), _FOUND)
    found = find_latest(
        query,
        store,
        index,
        deadline,
        lambda page: page.id not in prompt and any(on_line([page], chains)),
    )
    if found is None or not found.best:
        return None
    by_words = [each for each in found.best if each.by_words]
    if not by_words:
        best = found.best[0]
        how = Lines((best.lines,)) if best.lines[0] else Whole()
        return PageChoice((best.page,), _also(found.best[1:]), how)
    return _choose(by_words, found.best, here, lambda page: (page.turn, page.time, page.position))


def _by_topic(
    topic: str, pages: Sequence[Page], store: Store, here: Place, deadline: Deadline
) -> PageChoice:
    if not pages:
        raise NothingFound(NOT_KEPT_YET)
    best = look_through(topic, pages[::-1], store, deadline).best
    if not best:
        raise NothingFound(
            "nothing earlier shares a word with the topic; try other words, or "
            'search_history(session="all")'
        )
    order = {page.id: number for number, page in enumerate(pages)}
    return _choose(best, best, here, lambda page: (order[page.id],))


def _choose(
    best: Sequence[PageHit],
    every: Sequence[PageHit],
    here: Place,
    order: Callable[[Page], tuple[float, ...]],
) -> PageChoice:
    """The few that score at least half as much as the best, in their order; the rest is named."""
    worth = [each for each in best if each.score >= best[0].score / 2][: here.knobs.topic_pages]
    pages = sorted((each.page for each in worth), key=order)
    return PageChoice(pages, _also([each for each in every if each not in worth]))


def _also(rest: Sequence[PageHit]) -> str:
    named = _named([each.page for each in rest[:_NAMED]])
    return named and f"also about it: {named[:300]}"


def _named(pages: Sequence[Page]) -> str:
    return ", ".join(f"{page.id} (turn {page.turn})" for page in pages)


def _said_on_line(store: Store, here: Place) -> list[Page]:
    """Every page of this line, in its order."""
    if here.session is None:
        return []
    pages = on_line(store.pages(Where(session=here.session)), frozenset(here.chains))
    return [page for page in pages if page.kind not in _SILENT]
