"""The next version of a memory, and sources that become one."""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b
from typing import Any, TypeVar

from hotset.nouns.memory import Memory, Provenance, Standing, Trust

_T = TypeVar("_T")

SURE = 0.95
"""What confidence may grow to by being said again; the rest is a person's to give."""

RULES = "rules"
"""`Provenance.by` of what was put together without a model."""

SESSION, AGENT = "session:", "agent:"
"""Before the name of a session or an agent among the places of a memory that several said."""

STANDS = frozenset({Standing.ACTIVE, Standing.CANDIDATE})
"""The standings of what was not put aside."""

_RANKS = {Trust.OUTSIDE: 0, Trust.AGENT: 1, Trust.OUTCOME: 2, Trust.PERSON: 3}
_RUN_BYTES = 5


def following(latest: Memory, now: float, run: str, why: str, **changes: Any) -> Memory:
    """The version after the latest one, with these changes."""
    return replace(latest, version=latest.version + 1, time=now, run=run, why=why, **changes)


def run_name(what: str, *told: object) -> str:
    """`consolidate-7ha2c0de`: the same for the same work; `what` ends with a dash."""
    hashed = blake2b(repr(told).encode("utf-8", "surrogatepass"), digest_size=_RUN_BYTES).digest()
    return f"{what}{b32encode(hashed).decode().lower()}"


def rank(trust: Trust) -> int:
    """Whose word counts more."""
    return _RANKS[trust]


def joined(one: Memory, other: Memory) -> Memory:
    """`one`, carrying the sources of both. It is surer only where another session said so, too."""
    source = joined_sources(one.source, other.source)
    is_news = other.source.session is not None and not heard_in(one.source, other.source.session)
    surer = 1 - (1 - one.confidence) * (1 - other.confidence) if is_news else one.confidence
    trust = max(one.trust, other.trust, key=rank)
    confidence = max(one.confidence, other.confidence if rank(other.trust) > rank(one.trust) else 0.0, min(SURE, surer))
    return replace(one, source=source, confidence=confidence, trust=trust)


def joined_sources(one: Provenance, other: Provenance) -> Provenance:
    also = [f"{SESSION}{other.session}"] if other.session not in (None, one.session) else []
    also += [f"{AGENT}{other.agent}"] if other.agent not in ("", one.agent) else []
    return replace(one, pages=_union(one.pages, other.pages), places=_union(one.places, other.places, also))


def heard_in(source: Provenance, session: str | None) -> bool:
    return session is not None and (source.session == session or f"{SESSION}{session}" in source.places)


def sessions_of(source: Provenance) -> frozenset[str]:
    """Every session that said it."""
    others = frozenset(place.removeprefix(SESSION) for place in source.places if place.startswith(SESSION))
    return others if source.session is None else others | {source.session}


def _union(*parts: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(each for part in parts for each in part))
