"""What else a person said where something was found: a question's own words do not reach all that answers it.

"How many instruments do I own?" finds where the guitar was bought, and not the sentence two turns on that tells of a piano.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest

from hotset.nouns.memory import Episode
from hotset.nouns.page import Kind, Page, SessionId
from hotset.sources.memory.recalling.recall import SAID, Recalled, best_stretch, heading, says_something, speaker_of
from hotset.store.port import Store, Where
from hotset.text.terms import Term, terms

WHY = "said where something else was found"

_SESSIONS = 8  # the first, by what was found of them
_AROUND = 40  # turns before the first and after the last that was found in a session
_PAGES = 200  # of a session that are looked at
_PROMPTS = frozenset({Kind.PROMPT})


def said_beside(items: Sequence[Recalled], store: Store, query: str = "", *, but: SessionId | None = None) -> Iterator[Recalled]:
    """A session after the other by turns, in each the nearest to what was found first. Nothing is read before it is wanted.

    Nothing of the session that asks (`but`), and nothing that is among the items.
    """
    wanted, known = terms(query), {item.id for item in items}
    told: set[str] = set()
    sessions = [(session, turns) for session, turns in turns_of(items).items() if session != but][:_SESSIONS]
    for page in chain.from_iterable(zip_longest(*(said_near(turns, session, store) for session, turns in sessions))):
        if page is None or page.id in known or page.digest in told:
            continue
        told.add(page.digest)
        if (item := as_recalled(page, store, wanted, WHY)) is not None:
            yield item


def turns_of(items: Iterable[Recalled]) -> dict[SessionId, list[int]]:
    """The sessions in which something was found, the best first, with the turns at which it was."""
    found: dict[SessionId, list[int]] = {}
    for item in items:
        if item.session is not None:
            found.setdefault(item.session, []).extend(_turns(item))
    return found


def said_near(turns: Sequence[int], session: SessionId, store: Store) -> list[Page]:
    """What a person said in a session, the nearest to these turns first."""
    span = (min(turns) - _AROUND, max(turns) + _AROUND) if turns else None
    pages = store.pages(Where(session=session, kinds=_PROMPTS, turns=span, limit=_PAGES))
    return sorted(pages, key=lambda page: min((abs(page.turn - turn) for turn in turns), default=page.turn))


def as_recalled(page: Page, store: Store, wanted: Sequence[Term], why: str) -> Recalled | None:
    """A person's words; None where they say nothing."""
    text = best_stretch(page, store, wanted)
    if not says_something(text):
        return None
    return Recalled(
        page.id,
        SAID,
        heading(text),
        text,
        page.time,
        0.0,
        (why,),
        {},
        None,
        page.id,
        speaker_of(page, store),
        page.session,
        page.turn,
    )


def _turns(item: Recalled) -> tuple[int, ...]:
    if item.memory is None:
        return (item.turn,)
    return item.memory.detail.turns if isinstance(item.memory.detail, Episode) else ()
