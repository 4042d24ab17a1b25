"""What else was said, also in sessions that a question's own words hardly reach: for whoever asks for more.

"How many siblings do I have?" finds where a brother is named, and not "I come from a family with three sisters".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from hotset.errors import NotFound, PageDamaged
from hotset.index.port import Index
from hotset.nouns.finding import Filter, Query, Sort
from hotset.nouns.page import Kind, Page, PageId, SessionId
from hotset.sources.memory.recalling.asked_of import asks_the_model
from hotset.sources.memory.recalling.beside import as_recalled, said_near, turns_of
from hotset.sources.memory.recalling.recall import Asking, Recall, Recalled
from hotset.store.port import Store
from hotset.text.terms import terms

WHY = "said in a session that may be about it"

_NEAREST = 200  # of what people said, however far from the question: in a small store that is all of it
_AT_A_TIME = 8
"""Sessions that take turns before the next ones are looked at. On conversations among 30 others one at a time and all at once
show less of the evidence in a thousand tokens: 98.6 and 98.8 against 99.4 %."""
_PERSON, _MODEL = "user", "assistant"
_ONLY_PROMPTS = Filter(sorts=frozenset({Sort.PAGE}), kinds=frozenset({str(Kind.PROMPT)}))


def said_elsewhere(
    asking: Asking, found: Recall, index: Index | None, store: Store, *, told: frozenset[str] = frozenset()
) -> Iterator[Recalled]:
    """People's words, a few sessions at a time by turns, the likeliest first; in each first what is nearest to the question.

    What models said of it stands behind them, or before them where the question asks for that.
    `found` is what was recalled. Nothing of what was `told`, nothing twice, and nothing of the session that asks. Nothing is
    read before it is wanted.
    """
    answers = [item for item in found.items if item.speaker == _MODEL and item.id not in told]
    people = _said_by_people(asking, found, index, store, told)
    yield from chain(answers, people) if asks_the_model(asking.query) else chain(people, answers)


def _said_by_people(asking: Asking, found: Recall, index: Index | None, store: Store, told: frozenset[str]) -> Iterator[Recalled]:
    wanted, known = terms(found.words), set(told)
    nearest, turns = _nearest(asking, found, index), turns_of(found.items)
    sessions = [session for session in dict.fromkeys((*turns, *nearest)) if session != asking.session]
    said = {item.id: item for item in found.items if item.memory is None}
    for at in range(0, len(sessions), _AT_A_TIME):
        some = (_said_in(each, nearest.get(each, ()), turns.get(each, ()), store) for each in sessions[at : at + _AT_A_TIME])
        for page in chain.from_iterable(zip_longest(*some)):
            if page is None or page.id in known or page.digest in known:
                continue
            known |= {page.id, page.digest}
            item = said.get(page.id) or as_recalled(page, store, wanted, WHY)
            if item is not None:
                yield item


def _nearest(asking: Asking, found: Recall, index: Index | None) -> dict[SessionId, list[PageId]]:
    """What people said in each session, the best first: as it was recalled, and then by what an index says of it."""
    nearest: dict[SessionId, list[PageId]] = {}
    for item in found.items:
        if item.session is not None and item.page is not None and item.speaker == _PERSON:
            nearest.setdefault(item.session, []).append(item.page)
    if index is not None and found.words:
        for hit in index.search(Query(found.words, _ONLY_PROMPTS, _NEAREST, asking.deadline)).hits:
            nearest.setdefault(SessionId(hit.entry.session), []).append(PageId(hit.entry.whole))
    return nearest


def _said_in(session: SessionId, first: Sequence[PageId], turns: Sequence[int], store: Store) -> Iterator[Page]:
    """These, and then whatever else was said there."""
    near = list(turns)
    for id in dict.fromkeys(first):
        try:
            page = store.page(id)
        except (NotFound, PageDamaged):  # an index may know what its store lost
            continue
        near.append(page.turn)
        yield page
    yield from said_near(near, session, store)
