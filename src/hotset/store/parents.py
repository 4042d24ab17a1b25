"""Which session another belongs to: its agent started this one as a subagent, or this one goes on
where it was cut short.

A link is an event of the child's, written with its first turn: it survives as the session does, and
is exported with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

import msgspec

from hotset.dialects.parts import kind_of_result
from hotset.errors import PageDamaged
from hotset.nouns.deposit import RequestReceived
from hotset.nouns.message import Message
from hotset.nouns.page import Kind, Page, Role, SessionId, digest
from hotset.nouns.turn import Event, Turn
from hotset.store.lineage import fingerprint
from hotset.store.port import Lookup, Store
from hotset.store.titles import first_prompt

LINKED = "SessionLinked"
"""The event's name."""

_SHORTEST_TASK = 8  # characters of a prompt that equals what a tool for subagents was told
_SHORTEST_QUOTE = 40  # of one that holds, or stands in, what any tool was told
_SHORTEST_REPLY = 80  # of a model's reply in the past that a client rewrote
_SHORTEST_SUMMARY = 120
_SHORTEST_LINE = 20  # of a summary that was quoted in part
_LONGEST = 1 << 18  # bytes of a call or a reply that is compared
_MOST_TEXTS = 4
_MOST_STEPS = 32  # messages of one reply
_DEEPEST = 256  # sessions above one another; a store that was tampered with may hold a circle
_NAMES_A_SESSION = re.compile(r"session(?:_id)?[\"_:= -]{1,5}[0-9a-f]{8}", re.IGNORECASE)


class Kinship(StrEnum):
    SUBAGENT = "subagent"
    """Its agent was started by one of the parent's."""
    CONTINUATION = "continuation"
    """It goes on with what the parent's client summed up or cut."""


@dataclass(frozen=True, slots=True)
class Parent:
    session: SessionId
    kinship: Kinship
    told_by: str
    """What told it: `header`, `call`, `reply`, `summary` or `metadata`."""

    def event(self, child: SessionId, turn: int, time: float) -> Event:
        return Event(
            LINKED,
            time,
            child,
            turn,
            {"parent": self.session, "kinship": self.kinship, "told_by": self.told_by},
        )


def find_parent(asked: RequestReceived, look: Lookup) -> Parent | None:
    """The parent of a session that begins with this request; None where nothing says that it has
    one.

    A header says it. Else it is a session of the same client: one that waits for a call which was
    told this prompt, one whose model said what stands in this past, one whose reply this begins
    with, or one with the same session in its metadata.
    """
    try:
        return _by_header(asked, look) or next(
            filter(None, (way(asked, look) for way in _WAYS)), None
        )
    except PageDamaged:
        return None  # of somebody else's session: it must not keep this one from being kept


def parents_in(store: Store) -> Mapping[SessionId, Parent]:
    """The same of a whole store. A damaged event costs the links behind it, not the list that wants
    to tell them."""
    events: list[Event] = []
    with suppress(PageDamaged):
        for event in store.events(name=LINKED):
            events.append(event)  # noqa: PERF402 - what came before the damage counts
    return parents(events)


def parents(events: Iterable[Event]) -> Mapping[SessionId, Parent]:
    """By child. The first link of a session holds; one that would close a circle is left out."""
    found: dict[SessionId, Parent] = {}
    for event in events:
        child, parent = event.session, event.detail.get("parent")
        if event.name != LINKED or child is None or child in found or not isinstance(parent, str):
            continue
        if child not in islice(_upwards(SessionId(parent), found), _DEEPEST):
            kinship = event.detail.get("kinship")
            found[child] = Parent(
                SessionId(parent),
                Kinship(kinship) if kinship in set(Kinship) else Kinship.CONTINUATION,
                str(event.detail.get("told_by", "")),
            )
    return found


def _upwards(session: SessionId, found: Mapping[SessionId, Parent]) -> Iterator[SessionId]:
    yield session
    while (above := found.get(session)) is not None:
        session = above.session
        yield session


def _by_header(asked: RequestReceived, look: Lookup) -> Parent | None:
    named = next(filter(None, map(look.session_by_key, asked.parents)), None)
    return (
        Parent(named.id, Kinship.SUBAGENT, "header")
        if named is not None and named.key != asked.key
        else None
    )


def _by_call(asked: RequestReceived, look: Lookup) -> Parent | None:
    """A call that still waits was told these words, or these words hold what it was told."""
    spoken = first_prompt(asked.request.messages)
    words = _flat(spoken.words)
    if len(words) < _SHORTEST_TASK:
        return None
    whole = _flat(
        "\n".join(_texts(asked.request.messages[spoken.index : spoken.index + 1], Kind.PROMPT))
    )
    for page in look.waiting_calls():
        if page.size > _LONGEST:
            continue
        starts_agents = kind_of_result(page.tool, b"") is Kind.AGENT_MESSAGE
        fits = any(
            (starts_agents and told == words) or _quotes(whole, told) or _quotes(told, words)
            for told in map(_flat, _strings(_parsed(look.content(page.digest))))
        )
        if fits and _is_same_client(asked, page, look):
            return Parent(page.session, Kinship.SUBAGENT, "call")
    return None


def _by_reply(asked: RequestReceived, look: Lookup) -> Parent | None:
    """The request holds what a model said in that session, behind another past."""
    messages = asked.request.messages
    behind = [
        each for each in messages[first_prompt(messages).index :] if each.role is Role.ASSISTANT
    ]
    said = (
        part.content
        for each in reversed(behind)
        for part in each.parts
        if part.kind is Kind.RESPONSE
    )
    for content in islice((each for each in said if len(each) >= _SHORTEST_REPLY), _MOST_TEXTS):
        for page in look.pages_with(digest(content)):
            if (
                page.kind is Kind.RESPONSE
                and _is_same_client(asked, page, look)
                and _was_said_by_a_model(page, look)
            ):
                return Parent(page.session, Kinship.CONTINUATION, "reply")
    return None


def _by_summary(asked: RequestReceived, look: Lookup) -> Parent | None:
    """The request begins with what that session's latest reply said, most of it if not all."""
    text = "\n".join(islice(_texts(asked.request.messages, Kind.PROMPT), _MOST_TEXTS))
    if not _SHORTEST_SUMMARY <= len(text) <= _LONGEST:
        return None
    whole, lines = _flat(text), _lines(text)
    equal = (
        page for each in _contents(asked.request.messages) for page in look.pages_with(digest(each))
    )
    said_so = {page.session for page in equal if page.kind is Kind.PROMPT}
    for page in look.latest_replies(_SHORTEST_SUMMARY):
        if (
            page.size > _LONGEST or page.session in said_so
        ):  # it was asked the same, and the model repeated it
            continue
        said = (look.content(page.digest) or b"").decode("utf-8", "replace")
        theirs = _lines(said)
        shared = sum(map(len, lines & theirs))
        is_most = shared >= _SHORTEST_SUMMARY and 2 * shared >= min(
            sum(map(len, lines)), sum(map(len, theirs))
        )
        if (is_most or _flat(said) in whole) and _is_same_client(asked, page, look):
            return Parent(page.session, Kinship.CONTINUATION, "summary")
    return None


def _by_metadata(asked: RequestReceived, look: Lookup) -> Parent | None:
    if not any(map(_NAMES_A_SESSION.search, asked.request.hints)):
        return None
    first = look.first_with_hint(fingerprint(asked).partition(".")[0])
    return Parent(first, Kinship.CONTINUATION, "metadata") if first is not None else None


_WAYS = (_by_call, _by_reply, _by_summary, _by_metadata)


def _is_same_client(asked: RequestReceived, page: Page, look: Lookup) -> bool:
    turn = look.turn(page.session, page.turn)
    if turn is None:
        return False
    (_, client, agent, *_), (_, its_client, its_agent, *_) = (
        each.split(".") for each in (fingerprint(asked), turn.fingerprint)
    )
    return client == its_client if client or its_client else agent == its_agent


def _was_said_by_a_model(page: Page, look: Lookup) -> bool:
    """It stands in the reply of its turn, not in what the client sent then."""
    turn = look.turn(page.session, page.turn)
    return turn is not None and page.chain in islice(_reply(turn, look), _MOST_STEPS)


def _reply(turn: Turn, look: Lookup) -> Iterator[str]:
    chain = turn.tail
    while chain != turn.head and (node := look.node(turn.session, chain)) is not None:
        yield chain
        chain = node.parent


def _quotes(whole: str, quoted: str) -> bool:
    return len(quoted) >= _SHORTEST_QUOTE and quoted in whole


def _texts(messages: Sequence[Message], kind: Kind) -> Iterator[str]:
    for message in messages:
        yield from (
            part.content[:_LONGEST].decode("utf-8", "replace")
            for part in message.parts
            if part.kind is kind
        )


def _contents(messages: Sequence[Message]) -> Iterator[bytes]:
    prompts = (
        part.content for message in messages for part in message.parts if part.kind is Kind.PROMPT
    )
    return islice((each for each in prompts if len(each) >= _SHORTEST_SUMMARY), _MOST_TEXTS)


def _lines(text: str) -> set[str]:
    return {line for each in text.splitlines() if len(line := each.strip()) >= _SHORTEST_LINE}


def _flat(text: str) -> str:
    return " ".join(text.split())


def _parsed(arguments: bytes | None) -> Any:
    try:
        return msgspec.json.decode(arguments or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _strings(tree: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif depth < _MOST_TEXTS and isinstance(tree, dict | list):
        for each in tree.values() if isinstance(tree, dict) else tree:
            yield from _strings(each, depth + 1)
