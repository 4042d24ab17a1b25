"""Ledgers that rules keep: one holds until its session, or a later one that goes on with the work, says how it went. Pure.

What goes on is told by the files: work that changes most of what a ledger names is the same work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hotset.nouns.memory import Episode, Memory, MemoryKind, MemoryLink, Relation, Standing
from hotset.nouns.page import SessionId
from hotset.sources.memory.encoding.encode import ledger_id
from hotset.sources.memory.managing.versions import RULES, following
from hotset.text.terms import topic_words

_SHARED = 0.5  # of a ledger's files that are changed again
_SAME_GOAL = 0.6  # of the telling words of both goals
_FEWEST_WORDS = 3


def overtaken(
    ledgers: Iterable[Memory], session: SessionId, made: Sequence[Memory], now: float, run: str = ""
) -> tuple[tuple[Memory, ...], tuple[MemoryLink, ...]]:
    """What is to be written when a session was made into memories: which ledgers it leaves behind, and by what.

    `ledgers` are those that stand. Said again, it gives nothing: what was left behind stands no more.
    """
    episodes = [each for each in made if isinstance(each.detail, Episode)]
    unfinished = any(each.id == ledger_id(session) for each in made)
    versions: list[Memory] = []
    links: list[MemoryLink] = []
    for ledger in ledgers:
        if ledger.kind is not MemoryKind.LEDGER or ledger.source.by != RULES or ledger.standing is not Standing.ACTIVE:
            continue
        own = ledger.id == ledger_id(session)
        by = next((each for each in reversed(episodes) if own or _goes_on(each, ledger)), None)
        if by is not None and not (own and unfinished):
            why = "its work came to an end" if own else f"{by.id} goes on with it"
            versions.append(following(ledger, now, run, why, standing=Standing.SUPERSEDED, valid_until=by.created))
            links.append(MemoryLink(by.id, ledger.id, Relation.SUPERSEDES, now, run))
    return tuple(versions), tuple(links)


def _goes_on(episode: Memory, ledger: Memory) -> bool:
    """Does it take up, later, what the ledger left?"""
    if episode.created < ledger.created or episode.source.session == ledger.source.session:
        return False
    assert isinstance(episode.detail, Episode)
    files = set(ledger.source.places)
    again = sum(any(_is_one(path, other) for other in episode.detail.artifacts) for path in files)
    if files and again >= _SHARED * len(files):
        return True
    one, other = set(topic_words(ledger.title.removeprefix("Unfinished: "))), set(topic_words(episode.detail.goal))
    both = len(one & other)
    return both >= _FEWEST_WORDS and both >= _SAME_GOAL * min(len(one), len(other))


def _is_one(path: str, other: str) -> bool:
    return path == other or path.endswith(f"/{other}") or other.endswith(f"/{path}")
