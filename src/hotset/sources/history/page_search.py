"""Finds pages: by a query, with the index or by scanning the store, and by what a call names: an id
of any kind, an iteration, a tool, or a topic."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import groupby

from hotset.errors import HotsetError, NotFound, PageDamaged
from hotset.index.port import Index
from hotset.nouns.page import Digest, Gist, Kind, Page, PageId, Role
from hotset.nouns.retrieval import Lines, Place, Retrieve, Slice, Whole
from hotset.nouns.search import Entry, Filter, IndexHit, Lack, Query, Sort
from hotset.nouns.turn import Node
from hotset.sealing import seal
from hotset.sources.history.earlier import earlier_pages
from hotset.sources.history.pages import (
    current_prompt,
    follow,
    followed,
    is_resident,
    line_nodes,
    on_line,
    page_text,
    path_of,
)
from hotset.store.port import Store, Where
from hotset.text.clip import safe_line
from hotset.text.terms import Term, first_hits, hits, terms
from hotset.text.words import lower_in_place
from hotset.window.page_text import NOT_SEARCHED, is_ours

_FURTHER = 4  # times as many entries, where those found are too few pages
_MOST_LOOKED_AT = 4096
_CLOSE = (
    0.45  # cosine that counts where no telling word is shared; unrelated stretches came up to 0.42
)
_FAR = 2**62
_FOLLOWING_SHARE, _FINDING_SHARE = 0.4, 0.6  # of the time that is left then
_FINDING_SECONDS = 0.3  # at most: the index takes milliseconds
_MOST_BEHIND = (
    2000  # pages that are looked through one by one, where there was no time to index them
)
_GIST_SHARE = 0.4  # of the time, for the gists
_LOOKED_AT = 1 << 20  # characters of one page
_MOST_BYTES = 64 << 20  # of contents, however much time there is
_SATURATION, _LENGTH = 1.2, 0.5
_UNKNOWN = 0.5  # of a term's weight, for a page without a gist: behind those whose gist matches


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a search has to end. `clock` counts seconds, from any start."""

    clock: Callable[[], float]
    at: float
    patience: float = 1.0
    """Factor on the usual time."""

    @property
    def passed(self) -> bool:
        return self.clock() >= self.at

    def share(self, part: float) -> Deadline:
        """A part of the remaining time."""
        now = self.clock()
        return Deadline(self.clock, now + (self.at - now) * part, self.patience)


@dataclass(frozen=True, slots=True)
class PageHit:
    page: Page
    score: float
    lines: tuple[int, int] = (0, 0)
    """Lines of its best stretch; (0, 0) if it has none or they are unknown."""
    by_words: bool = True
    """It shares words with the query; otherwise only its meaning is close."""
    text: str = ""
    """The page's text, if the search has read it."""


@dataclass(frozen=True, slots=True)
class PageHits:
    best: Sequence[PageHit] = ()
    """The best first."""
    lacking: frozenset[str] = frozenset()
    """Signals of the index that did not answer."""
    why: Mapping[str, Lack] = field(default_factory=dict)
    """Why, where it was not for lack of time."""
    missed: int = 0
    """Number of pages for which there was no time."""


def find(
    query: Query,
    store: Store,
    index: Index,
    fits: Callable[[Page], bool] = lambda _: True,
    clock: Callable[[], float] = time.monotonic,
) -> PageHits:
    """The pages that the index finds and the store still has; `fits` is one more condition.

    An entry represents every occurrence of its content, with the latest turn and time: the index is
    asked for the latest occurrence, and the store checks whether one matches the filter's time.
    """
    until = clock() + query.deadline
    turns = query.only.turns and (query.only.turns[0], _FAR)
    only = replace(query.only, sorts=frozenset({Sort.PAGE}), turns=turns, until=None)
    pages = _Pages(store, lambda page: _is_within(query.only, page) and fits(page))
    wanted = terms(query.words)
    most = _FURTHER * query.most
    while True:
        left = max(0.0, until - clock())
        found = index.search(replace(query, only=only, most=most, deadline=left))
        best = _best(found.hits, query.most, wanted, pages)
        if (
            len(best) >= query.most
            or len(found.hits) < most
            or most >= _MOST_LOOKED_AT
            or clock() >= until
        ):
            return PageHits(best, found.lacking, found.why)
        most *= _FURTHER


def find_latest(
    query: Query,
    store: Store,
    index: Index,
    deadline: Deadline,
    fits: Callable[[Page], bool] = lambda _: True,
) -> PageHits | None:
    """The matching pages, including those kept a moment ago, with their texts, each content once;
    the best scores 1. None if the index cannot answer. The query's own deadline is not used."""
    try:
        reached, found = _follow_and_find(query, store, index, deadline, fits)
        if followed(store, index) < reached:  # the index was thrown away and made anew meanwhile
            reached, found = _follow_and_find(query, store, index, deadline, fits)
        if "words" in found.lacking:
            return None
        behind = [page for _, page in store.pages_after(reached, _MOST_BEHIND + 1)]
    except HotsetError:
        return None
    only = query.only
    new = [
        page
        for page in behind[:_MOST_BEHIND]
        if page.kind not in NOT_SEARCHED
        and (not only.sessions or page.session in only.sessions)
        and (not only.kinds or page.kind in only.kinds)
        and (not only.agents or page.agent in only.agents)
        and _is_within(only, page)
        and fits(page)
    ]
    looked = look_through(query.words, new[::-1], store, deadline)
    hits = sorted(
        (*_scale_scores(looked.best), *_read_texts(_scale_scores(found.best), store)),
        key=lambda each: -each.score,
    )
    once = list({each.page.digest: each for each in reversed(hits)}.values())[::-1]
    return PageHits(once[: query.most], missed=looked.missed + (len(behind) > _MOST_BEHIND))


def look_through(words: str, pages: Sequence[Page], store: Store, deadline: Deadline) -> PageHits:
    """The matching pages among these, newest first, without an index: BM25 over what there was time
    to read. Gists decide where to look first. Each content counts once; among equals the newest is
    first."""
    wanted = terms(words)
    read = (page for page in reversed(pages) if page.kind is not Kind.IMAGE and not is_ours(page))
    unlike = list({page.digest: page for page in read}.values())[::-1]
    looked = _look(
        _by_gist(unlike, wanted, store, deadline.share(_GIST_SHARE)), wanted, store, deadline
    )
    if not looked:
        return PageHits()
    newest = {page.id: number for number, page in enumerate(unlike)}
    scored = [
        PageHit(page, score, text=text)
        for (page, text, _), score in zip(looked, _scores(looked, wanted), strict=True)
        if score > 0
    ]
    best = sorted(scored, key=lambda each: (-round(each.score, 6), newest[each.page.id]))
    return PageHits(best, missed=len(unlike) - len(looked))


def _best(
    hits: Sequence[IndexHit], most: int, wanted: Sequence[Term], pages: _Pages
) -> list[PageHit]:
    found: dict[Digest, PageHit] = {}
    for hit in hits:
        entry = hit.entry
        # A distinctive word of the query must be in it: full text also matches an "in the".
        by_words = hit.by_words is not None and any(
            True for _ in first_hits(f"{entry.title}\n{entry.text}", wanted)
        )
        page = pages.of(entry) if by_words or (hit.by_meaning or 0.0) >= _CLOSE else None
        if page is None:
            continue
        better = found.get(page.digest)
        if better is None:
            found[page.digest] = PageHit(page, hit.score, entry.lines, by_words)
            if len(found) >= most:
                break
        elif page.time > better.page.time:  # in several sessions: take the latest
            found[page.digest] = replace(better, page=page)
    return sorted(found.values(), key=lambda each: (-round(each.score, 6), -each.page.time))


class _Pages:
    """The page that an entry represents: its latest occurrence that meets every condition."""

    def __init__(self, store: Store, fits: Callable[[Page], bool]) -> None:
        self._store = store
        self._fits = fits
        self._known: dict[str, Page | None] = {}

    def of(self, entry: Entry) -> Page | None:
        if entry.whole not in self._known:
            self._known[entry.whole] = next(filter(self._fits, self._occurrences(entry)), None)
        return self._known[entry.whole]

    def _occurrences(self, entry: Entry) -> Iterator[Page]:
        try:
            page = self._store.page(PageId(entry.whole))
            yield page
            every = list(self._store.pages(Where(session=page.session, digest=page.digest)))
        except (NotFound, PageDamaged):
            return
        for other in reversed(every):
            alike = (other.agent, other.kind, other.tool) == (page.agent, page.kind, page.tool)
            if alike and (not entry.path or seal(path_of(self._store, other)).text == entry.path):
                yield other


def _is_within(only: Filter, page: Page) -> bool:
    """The conditions that the index does not know for every occurrence."""
    return (
        (only.turns is None or only.turns[0] <= page.turn <= only.turns[1])
        and (only.since is None or only.since <= page.time)
        and (only.until is None or page.time < only.until)
    )


def _follow_and_find(
    query: Query, store: Store, index: Index, deadline: Deadline, fits: Callable[[Page], bool]
) -> tuple[int, PageHits]:
    """Update the index in a share of the time, and search it in another."""
    follow(store, index, deadline.share(_FOLLOWING_SHARE).at, deadline.clock)
    reached = followed(store, index)
    left = deadline.share(_FINDING_SHARE).at - deadline.clock()
    timed = replace(query, deadline=max(0.0, min(_FINDING_SECONDS * deadline.patience, left)))
    return reached, find(timed, store, index, fits, deadline.clock)


def _read_texts(best: Iterable[PageHit], store: Store) -> Iterator[PageHit]:
    for each in best:
        content = page_text(store, each.page)
        if content.own:
            yield replace(each, text=content.text)


def _scale_scores(found: Iterable[PageHit]) -> list[PageHit]:
    """Scores relative to the best one."""
    every = list(found)
    best = max((each.score for each in every), default=0.0) or 1.0
    return [replace(each, score=each.score / best) for each in every]


def _by_gist(
    pages: Sequence[Page], wanted: Sequence[Term], store: Store, deadline: Deadline
) -> list[Page]:
    scores: list[float] = []
    for page in pages:
        if deadline.passed:
            break
        scores.append(_gist_score(store.gist(page.id), wanted))
    scores += [_UNKNOWN] * (len(pages) - len(scores))
    return [
        pages[number] for number in sorted(range(len(pages)), key=lambda number: -scores[number])
    ]


def _gist_score(gist: Gist | None, wanted: Sequence[Term]) -> float:
    if gist is None:
        return _UNKNOWN
    low = lower_in_place(" ".join((*gist.files, *gist.entities, *gist.keywords)))
    return sum(term.weight for term in wanted if term.text in low)


_ScannedPage = tuple[Page, str, tuple[int, ...]]
"""A page, its text, and the count of each term in it."""


def _look(
    pages: Sequence[Page], wanted: Sequence[Term], store: Store, deadline: Deadline
) -> list[_ScannedPage]:
    looked: list[_ScannedPage] = []
    left = _MOST_BYTES
    for page in pages:
        left -= page.size
        if looked and (deadline.passed or left < 0):
            break
        content = page_text(store, page)
        seen = content.text[:_LOOKED_AT] if content.own else ""
        low = lower_in_place(seen)
        looked.append(
            (page, content.text, tuple(sum(1 for _ in hits(seen, low, term)) for term in wanted))
        )
    return looked


def _scores(looked: Sequence[_ScannedPage], wanted: Sequence[Term]) -> Iterator[float]:
    """BM25 scores of the pages that were read."""
    lengths = [min(len(text), _LOOKED_AT) for _, text, _ in looked]
    mean = sum(lengths) / len(looked) or 1.0
    spoken = [sum(1 for _, _, often in looked if often[number]) for number in range(len(wanted))]
    rare = [
        term.weight * math.log(1 + (len(looked) - many + 0.5) / (many + 0.5))
        for term, many in zip(wanted, spoken, strict=True)
    ]
    for size, (_, _, often) in zip(lengths, looked, strict=True):
        length = 1 - _LENGTH + _LENGTH * size / mean
        yield sum(
            weight * times * (_SATURATION + 1) / (times + _SATURATION * length)
            for weight, times in zip(rare, often, strict=True)
            if times
        )


INDEX_SHARE = 0.6
"""Share of the time for the index, if there is one; the rest is enough to scan the store."""

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
    """What was asked for does not exist; the message says what to ask instead."""


@dataclass(frozen=True, slots=True)
class PageChoice:
    """The pages that a call names."""

    pages: Sequence[Page]
    more: str = ""
    """A note on other candidates."""
    how: Slice | None = None
    """The part of it that was found, if it does not contain the requested words."""


def look_up(
    call: Retrieve, store: Store, here: Place, deadline: Deadline, index: Index | None = None
) -> PageChoice:
    """The pages that a call names. Raises `NothingFound`."""
    if call.more:
        return _by_ids((call.id, *call.more), store, here)
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
    pages = [page for page in _line_pages(store, here) if page.id not in prompt]
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


def _by_ids(ids: Sequence[str], store: Store, here: Place) -> PageChoice:
    """The pages of several ids, each page once; unknown ids are named."""
    pages: dict[PageId, Page] = {}
    unknown: list[str] = []
    for id in ids:
        try:
            pages.update((page.id, page) for page in _by_id(id, store, here).pages)
        except NothingFound:
            unknown.append(safe_line(id))
    if not pages:
        raise NothingFound(f"nothing has the ids {', '.join(unknown)}; {_IDS}.")
    missing = f"nothing has the id {', '.join(unknown)}" if unknown else ""
    return PageChoice(list(pages.values()), missing)


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
    """Results of a call, on this line before all others: some providers number their calls anew in
    each session."""
    pages = _nearest(store, here, Where(call=id))
    results = [page for page in pages if page.kind.family is not Kind.TOOL_CALL] or pages
    return [
        page
        for page in results
        if (page.session, page.chain) == (results[-1].session, results[-1].chain)
    ]


def _pages(store: Store, ids: Sequence[PageId]) -> list[Page]:
    """The pages that are still kept."""
    found: list[Page] = []
    for id in ids:
        with suppress(NotFound):
            found.append(store.page(id))
    return found


def _closest(id: str, store: Store, here: Place) -> str:
    """Similar ids."""
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
    """The model's consecutive messages, each group with the results that follow it."""
    current: list[Node] = []
    messages = (node for node in nodes if not node.aside)
    for is_reply, group in groupby(messages, lambda node: node.role is Role.ASSISTANT):
        if is_reply:
            if current:
                yield current
            current = list(group)
        elif current:
            current += group
    if current:
        yield current


def _by_tool(call: Retrieve, store: Store, here: Place, deadline: Deadline) -> PageChoice:
    pages = _line_pages(store, here)
    brought = [page for page in pages if page.tool and page.kind.family is not Kind.TOOL_CALL]
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
    earlier = _name_pages([page for page in pages if page not in last][: -_NAMED - 1 : -1])
    return PageChoice(
        last, earlier and f"latest of {len(pages)} results of this tool; earlier: {earlier}"
    )


def _by_index(
    topic: str, store: Store, here: Place, deadline: Deadline, index: Index
) -> PageChoice | None:
    """None if nothing is found or the index cannot answer."""
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


def question_pages(store: Store, here: Place) -> list[Page]:
    """The pages of this line that can answer a question: not those that the window holds in
    full."""
    pages = [
        page
        for page in _line_pages(store, here)
        if page.kind is not Kind.IMAGE and not is_ours(page)
    ]
    if not pages:
        raise NothingFound(NOT_KEPT_YET)
    return [page for page in pages if not is_resident(page, here)] or pages


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
    """The few that score at least half as much as the best, in order; the rest is named."""
    worth = [each for each in best if each.score >= best[0].score / 2][: here.knobs.topic_pages]
    pages = sorted((each.page for each in worth), key=order)
    return PageChoice(pages, _also([each for each in every if each not in worth]))


def _also(rest: Sequence[PageHit]) -> str:
    named = _name_pages([each.page for each in rest[:_NAMED]])
    return named and f"also about it: {named[:300]}"


def _name_pages(pages: Sequence[Page]) -> str:
    return ", ".join(f"{page.id} (turn {page.turn})" for page in pages)


def _line_pages(store: Store, here: Place) -> list[Page]:
    """Every page of this line, in order; first those that its client has compacted."""
    if here.session is None:
        return []
    pages = on_line(store.pages(Where(session=here.session)), frozenset(here.chains))
    every = {page.id: page for page in (*earlier_pages(store, here.chains), *pages)}
    return [page for page in every.values() if page.kind not in _SILENT]
