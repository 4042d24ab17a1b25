"""Which pages a model means: by an id of any kind, an iteration, a tool, or a topic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import groupby

from hotset.errors import NotFound
from hotset.index.port import Index
from hotset.nouns.finding import Filter, Query
from hotset.nouns.page import ROOT, Chain, Digest, Kind, Page, PageId, Role
from hotset.nouns.retrieval import Lines, Place, Retrieve, Slice, Whole
from hotset.nouns.turn import Node
from hotset.runtime.retrieval_ranking import Deadline, Spoken, ranked_pages
from hotset.store.port import Store, Where
from hotset.text.clip import plain

_CONTENT = re.compile(r"c([0-9a-f]{6,64})|([0-9a-f]{64})")
_PAGE = re.compile(r"p[0-9a-f]{3,15}")
_IDS = (
    "ids are r... (a reference), c... with 12 hex digits (content), p... with 15 (a page), a memory's (sem-..., ep-...), "
    "or a tool call's id, copied whole"
)
_FOUND = 20  # pages among which these are chosen; the others are named
_INDEX_SHARE = 0.6  # of the time, where there is an index; what it leaves is enough for a look through the store
_NAMED = 12
_SILENT = frozenset({Kind.SYSTEM, Kind.THINKING, Kind.OPAQUE})
_HERE_ONLY = "nothing is kept of this conversation yet; what was said in it stands in it"


@dataclass(frozen=True, slots=True)
class Found:
    pages: tuple[Page, ...]
    more: str = ""
    """What else there was to choose from."""
    how: Slice | None = None
    """Which part of it was found, where the words that were asked for do not stand in it."""


class Missing(Exception):
    """What was asked for is not there; says what to ask instead."""


def find(call: Retrieve, store: Store, here: Place, deadline: Deadline, index: Index | None = None) -> Found:
    """Raises `Missing`."""
    if call.id:
        return _by_id(call.id, store, here)
    if call.iteration is not None:
        return _by_iteration(call.iteration, store, here)
    if call.tool:
        return _by_tool(call, store, here, deadline)
    found = _by_index(call.topic, store, here, deadline.share(_INDEX_SHARE), index) if index is not None else None
    if found:
        return found
    here_now = standing(store, here)
    pages = [page for page in _spoken(store, here) if page.id not in here_now]
    return _by_topic(call.topic, pages, store, here, deadline)


def line(store: Store, here: Place) -> list[Node]:
    """The messages of the line on which the question is asked, in their order."""
    if here.session is None:
        return []
    nodes = {node.chain: node for node in store.nodes(here.session)}
    if here.chains:
        return [nodes[chain] for chain in here.chains if chain in nodes]
    last = next((node for node in reversed(nodes.values()) if not node.aside), None)
    backwards: dict[Chain, Node] = {}
    while last is not None and last.chain not in backwards:
        backwards[last.chain] = last
        last = nodes.get(last.parent)
    return [*backwards.values()][::-1]


def on_line(pages: Iterable[Page], chains: frozenset[Chain]) -> Iterator[Page]:
    """Those that the model could have seen: a rewound past is not its past. What stands in no message is its session's."""
    return (page for page in pages if not chains or page.chain in chains or page.chain == ROOT)


def standing(store: Store, here: Place) -> frozenset[PageId]:
    """The latest prompt of the line on which the question is asked: it stands in the window, and is no find."""
    if here.session is None or not here.turn:
        return frozenset()
    said = store.pages(Where(session=here.session, kinds=frozenset({Kind.PROMPT})))
    prompts = [page for page in on_line(said, frozenset(here.chains)) if page.turn <= here.turn]
    return frozenset(page.id for page in prompts if page.chain == prompts[-1].chain)


def _by_id(id: str, store: Store, here: Place) -> Found:
    ways: list[Callable[[str, Store, Place], Sequence[Page]]] = [_of_reference, _of_content, _of_page, _of_call]
    for way in ways:
        if pages := way(id, store, here):
            return Found(tuple(pages))
    raise Missing(f"nothing here has the id {plain(id)}; {_IDS}.{_closest(id, store, here)}")


def _of_reference(id: str, store: Store, _: Place) -> Sequence[Page]:
    try:
        reference = store.reference(id)
    except NotFound:
        return ()
    return [page for each in reference.pages for page in _page(store, each)]


def _of_content(id: str, store: Store, here: Place) -> Sequence[Page]:
    shaped = _CONTENT.fullmatch(id)
    if shaped is None:
        return ()
    addresses = store.contents(shaped[1] or shaped[2])
    occurrences = [page for address in addresses[: here.knobs.topic_pages] for page in _latest(store, address, here)]
    if len(addresses) > 1 and len(occurrences) > 1:
        raise Missing(f"several contents begin with {id}: {', '.join(f'c{address[:16]}' for address in addresses)}; say which")
    return occurrences


def _latest(store: Store, address: Digest, here: Place) -> Sequence[Page]:
    """Content's latest occurrence on this line; else in this session; else anywhere."""
    pages = list(store.pages(Where(digest=address, session=here.session))) if here.session else []
    pages = pages or list(store.pages(Where(digest=address)))
    return (list(on_line(pages, frozenset(here.chains))) or pages)[-1:]


def _of_page(id: str, store: Store, _: Place) -> Sequence[Page]:
    if not _PAGE.fullmatch(id):
        return ()
    ids = store.match(id)
    if len(ids) > 1 and id not in ids:
        raise Missing(f"several pages begin with {id}: {', '.join(ids)}; say which")
    return [page for each in ids if len(ids) == 1 or each == id for page in _page(store, each)]


def _of_call(id: str, store: Store, here: Place) -> Sequence[Page]:
    """What a call brought, on this line before all others: some providers number their calls anew in each session."""
    pages = list(store.pages(Where(call=id, session=here.session))) if here.session else []
    pages = pages or list(store.pages(Where(call=id)))
    pages = list(on_line(pages, frozenset(here.chains))) or pages
    results = [page for page in pages if page.kind.family is not Kind.TOOL_CALL] or pages
    return [page for page in results if (page.session, page.chain) == (results[-1].session, results[-1].chain)]


def _page(store: Store, id: PageId) -> Sequence[Page]:
    try:
        return [store.page(id)]
    except NotFound:
        return []


def _closest(id: str, store: Store, here: Place) -> str:
    """Ids that may have been meant."""
    references = [reference.id for reference in store.references(here.session)] if here.session else []
    near: list[str] = get_close_matches(id, references, 3, 0.6)
    if id[:1] == "p" and len(id) > 4:
        near += store.match(id[:5])[:3]
    if id[:1] == "c" and re.fullmatch(r"c[0-9a-f]{4,}", id[:5]):
        near += [f"c{address[:12]}" for address in store.contents(id[1:5])[:3]]
    if near:
        return f" Closest: {', '.join(near)}."
    return (
        f" References of this conversation: {', '.join(references[-_NAMED:])}."
        if references
        else " search_history finds it by words."
    )


def _by_iteration(number: int, store: Store, here: Place) -> Found:
    rounds = list(_rounds(line(store, here)))
    if not rounds:
        raise Missing(_HERE_ONLY)
    place = number - 1 if number > 0 else number
    if number == 0 or not -len(rounds) <= place < len(rounds):
        raise Missing(f"no iteration {number}; this conversation has iterations 1-{len(rounds)}")
    pages = [page for node in rounds[place] for page in _of_node(store, node) if page.kind not in (Kind.PROMPT, Kind.SYSTEM)]
    if not pages:
        raise Missing(f"iteration {number} has no content; iterations here are 1-{len(rounds)}")
    return Found(tuple(pages), f"iteration {place % len(rounds) + 1} of {len(rounds)}")


def _rounds(nodes: Sequence[Node]) -> Iterator[list[Node]]:
    """What the model said in one go, with what came back before it spoke again."""
    current: list[Node] = []
    for spoke, group in groupby((node for node in nodes if not node.aside), lambda node: node.role is Role.ASSISTANT):
        if spoke:
            if current:
                yield current
            current = list(group)
        elif current:
            current += group
    if current:
        yield current


def _of_node(store: Store, node: Node) -> Iterator[Page]:
    return store.pages(Where(session=node.session, chain=node.chain))


def _by_tool(call: Retrieve, store: Store, here: Place, deadline: Deadline) -> Found:
    brought = [page for page in _spoken(store, here) if page.tool and page.kind.family is not Kind.TOOL_CALL]
    names = dict.fromkeys(page.tool for page in brought)
    wanted = call.tool.lower()
    matching = {name for name in names if name == call.tool} or {
        name for name in names if name.lower() == wanted or name.lower().rpartition("__")[2] == wanted
    }
    pages = [page for page in brought if page.tool in matching]
    if not pages:
        known = ", ".join(plain(name) for name in list(names)[:_NAMED])
        raise Missing(
            f"no result of a tool {plain(call.tool)} in this conversation" + (f"; tools with results: {known}" if known else "")
        )
    if call.topic:
        return _by_topic(call.topic, pages, store, here, deadline)
    last = [page for page in pages if page.chain == pages[-1].chain and page.call == pages[-1].call]
    others = [page for page in pages if page not in last]
    told = ", ".join(f"{page.id} (turn {page.turn})" for page in others[: -_NAMED - 1 : -1])
    return Found(tuple(last), f"the latest of {len(pages)} results of this tool; earlier: {told}" if others else "")


def _by_index(topic: str, store: Store, here: Place, deadline: Deadline, index: Index) -> Found | None:
    """None where there is nothing, or where the index cannot tell."""
    from hotset.runtime.retrieval_indexed import indexed_pages  # noqa: PLC0415 - where there is an index, and not before

    if here.session is None:
        return None
    chains, here_now = frozenset(here.chains), standing(store, here)
    query = Query(topic, Filter(sessions=frozenset({here.session})), _FOUND)
    found = indexed_pages(query, store, index, deadline, lambda page: page.id not in here_now and any(on_line([page], chains)))
    if found is None or not found.best:
        return None
    said = [each for each in found.best if each.by_words]
    if not said:
        best = found.best[0]
        return Found((best.page,), _others(found.best[1:]), Lines((best.lines,)) if best.lines[0] else Whole())
    worth = [each for each in said if each.score >= said[0].score / 2][: here.knobs.topic_pages]
    rest = [each for each in found.best if each not in worth]
    in_order = sorted(worth, key=lambda each: (each.page.turn, each.page.time, each.page.position))
    return Found(tuple(each.page for each in in_order), _others(rest))


def _others(rest: Sequence[Spoken]) -> str:
    told = ", ".join(f"{each.page.id} (turn {each.page.turn})" for each in rest[:_NAMED])
    return f"also about it: {told[:300]}" if told else ""


def _by_topic(topic: str, pages: Sequence[Page], store: Store, here: Place, deadline: Deadline) -> Found:
    if not pages:
        raise Missing(_HERE_ONLY)
    best = ranked_pages(topic, list(reversed(pages)), store, deadline).best
    if not best:
        raise Missing("nothing earlier here shares a word with the topic; try other words, or search_history with session all")
    worth = [page for score, page, _ in best if score >= best[0][0] / 2][: here.knobs.topic_pages]
    others = ", ".join(f"{page.id} (turn {page.turn})" for _, page, _ in best if page not in worth[:_NAMED])
    order = {page.id: number for number, page in enumerate(pages)}
    return Found(tuple(sorted(worth, key=lambda page: order[page.id])), f"also about it: {others[:300]}" if others else "")


def _spoken(store: Store, here: Place) -> list[Page]:
    """Everything that was said on this line, in its order."""
    if here.session is None:
        return []
    chains = frozenset(here.chains)
    return [page for page in on_line(store.pages(Where(session=here.session)), chains) if page.kind not in _SILENT]
