"""Which session a request belongs to, told from its own past.

A client resends its whole history with every call. Each message's chain is the hash of what it says
and of the chain before it, so a known past is found by looking up one hash, and only the new tail
has to be written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from hotset.nouns.deposit import RequestReceived
from hotset.nouns.link import Link, link
from hotset.nouns.message import Request
from hotset.nouns.page import ROOT, Chain, Role, SessionId
from hotset.nouns.turn import Outcome, Session
from hotset.store.port import Lookup
from hotset.store.titles import first_prompt


@dataclass(frozen=True, slots=True)
class RecognisedSession:
    """The session a request belongs to (None: a new one) and the lineage of its messages there."""

    session: Session | None
    base: Chain
    links: tuple[Link, ...]

    @property
    def head(self) -> Chain:
        return next(
            (link.chain for link in reversed(self.links) if not link.message.aside), self.base
        )


def recognise_session(asked: RequestReceived, look: Lookup) -> RecognisedSession:
    """A header's key wins; then the reply that the request says it continues; then the longest past
    that is known."""
    request = asked.request
    if request.previous and (earlier := look.turn_by_response(request.previous)):
        session = look.session(earlier.session)
        if session is not None and asked.key in ("", session.key):
            return RecognisedSession(
                session, earlier.tail, tuple(link(earlier.tail, request.messages))
            )
    links = tuple(link(ROOT, request.messages))
    if asked.key:
        return RecognisedSession(look.session_by_key(asked.key), ROOT, links)
    return RecognisedSession(_by_past(asked, links, look), ROOT, links)


def _by_past(asked: RequestReceived, links: Sequence[Link], look: Lookup) -> Session | None:
    """The last reply that is known tells most: what a client says itself, two clients may say
    alike."""
    spoken = first_prompt(
        asked.request.messages
    ).index  # what an assistant says before is the client's own, and the same each time
    said_before = {each.chain for each in links[:spoken] if each.message.role is Role.ASSISTANT}
    built_upon = [each for each in links if not each.message.aside]
    print_here = fingerprint(asked)
    since: list[Chain] = []
    for each in reversed(built_upon):
        if each.message.role is Role.ASSISTANT and each.chain not in said_before:
            chosen = _nearest(look.sessions_with(each.chain), since, print_here, look)
            if chosen is not None:
                return look.session(chosen)
        since.append(each.chain)
    if not since or any(
        each.message.role is Role.ASSISTANT and each.chain not in said_before for each in built_upon
    ):
        return None
    repeated = _unanswered(asked, since[0], look)
    return look.session(repeated) if repeated is not None else None


def _nearest(
    candidates: Sequence[SessionId], since: Sequence[Chain], print_here: str, look: Lookup
) -> SessionId | None:
    """The candidate whose client resembles this one most; among equals the one that holds more of
    it, then the most recent."""
    best: tuple[int, int, SessionId] | None = None
    for id in candidates:
        last = look.last_turn(id)
        likeness = _likeness(print_here, last.fingerprint) if last is not None else 0
        if likeness is None:
            continue
        held = (
            sum(look.node(id, chain) is not None for chain in since) if len(candidates) > 1 else 0
        )
        if best is None or (likeness, held) >= best[:2]:
            best = (likeness, held, id)
    return best[2] if best is not None else None


def _unanswered(asked: RequestReceived, head: Chain, look: Lookup) -> SessionId | None:
    """A first message that was said before begins a new session, unless it repeats a call that got
    no reply."""
    print_here = fingerprint(asked)
    for id in reversed(look.sessions_with(head)):
        turn = look.turn_at(id, head)
        if turn is None or turn.fingerprint != print_here:
            continue
        abandoned = turn.outcome is Outcome.OPEN and turn.started < asked.since
        if abandoned or turn.outcome not in (Outcome.OPEN, Outcome.DONE):
            return id
    return None


def fingerprint(asked: RequestReceived) -> str:
    """What tells one client from another, trait by trait, each as a short hash; empty where there
    is nothing to tell."""
    request = asked.request
    return ".".join(
        _short(trait)
        for trait in (
            "\n".join(request.hints),
            asked.client,
            asked.agent,
            request.model,
            _system(request),
            "\n".join(tool.name for tool in request.tools),
        )
    )


def _system(request: Request) -> str:
    outside = [hashlib.sha256(part.content).hexdigest() for part in request.system]
    inside = [message.essence for message in request.messages if message.role is Role.SYSTEM]
    return "\n".join([*outside, *inside])


def _likeness(one: str, other: str) -> int | None:
    """Traits that agree minus traits that differ; None where both carry a session hint and the
    hints differ."""
    pairs = list(zip(one.split("."), other.split("."), strict=True))
    hint, other_hint = pairs[0]
    if hint and other_hint and hint != other_hint:
        return None
    return sum(1 if a == b else -1 for a, b in pairs if a or b)


def _short(trait: str) -> str:
    return hashlib.sha256(trait.encode()).hexdigest()[:12] if trait else ""
