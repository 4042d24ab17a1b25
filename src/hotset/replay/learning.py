"""A recorded session as the turns of a live one, and which of them a store does not have yet.

The store keeps them as if they had gone through the proxy, so that memories are made by the same
rules and point to pages that can be read. A session is known again by its id and its first message:
learned twice it changes nothing, and a session that has grown adds its tail.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from hotset.dialects import anthropic
from hotset.errors import StoreFailed
from hotset.nouns.deposit import ReplyReceived, RequestReceived
from hotset.nouns.link import Link, link
from hotset.nouns.message import Message, Reply, Request
from hotset.nouns.note import LEARNED_FROM
from hotset.nouns.page import ROOT, Chain, Role, SessionId
from hotset.nouns.turn import Outcome, TurnId
from hotset.replay.conversation import RecordedMessage, RecordedSession
from hotset.store.port import Store

_KEY = "learned:"
_STEP_SECONDS = 1.0  # between two messages of a record without times
_OK = 200
_KEEP_SECONDS = 120.0


class RecordState(StrEnum):
    NEW = "new"
    GROWN = "grown"
    KNOWN = "known"
    """Learned before, and nothing was added since."""
    LIVE = "live"
    """It went through hotset."""
    ELSEWHERE = "elsewhere"
    """It is about another folder."""
    SUBAGENT = "subagent"
    """An agent wrote its prompts; the session that it worked for says what came of it."""
    UNANSWERED = "unanswered"
    """No prompt in it got a reply."""


LEARNABLE = frozenset({RecordState.NEW, RecordState.GROWN})


@dataclass(frozen=True, slots=True)
class LearnableSession:
    """A recorded session, and what a store lacks of it."""

    recorded: RecordedSession
    file: Path
    state: RecordState
    turns: tuple[tuple[RequestReceived, ReplyReceived], ...] = ()
    """Each is one commit, in this order."""


class KnownSessions:
    """The sessions of a store, as far as a record can be compared with them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @cached_property
    def by_key(self) -> Mapping[str, SessionId]:
        return {session.key: session.id for session in self._store.sessions() if session.key}

    @cached_property
    def live(self) -> frozenset[str]:
        """Names of sessions that went through hotset: those from their client, and our own."""
        named = (
            (session.id, session.key.partition(":")[2])
            for session in self._store.sessions()
            if not session.key.startswith(_KEY)
        )
        return frozenset(name for pair in named for name in pair if name)

    def chains(self, key: str) -> frozenset[Chain]:
        """The messages that a learned session has already."""
        id = self.by_key.get(key)
        return frozenset(node.chain for node in self._store.nodes(id)) if id else frozenset()


def plan_learning(
    recorded: RecordedSession, file: Path, known: KnownSessions, project: Path | None
) -> LearnableSession:
    """What of a recorded session is to be kept; `project`: only if it is about that folder."""
    if recorded.is_subagent:
        return LearnableSession(recorded, file, RecordState.SUBAGENT)
    if project is not None and not _is_about(recorded.folder, project):
        return LearnableSession(recorded, file, RecordState.ELSEWHERE)
    if recorded.id in known.live:
        return LearnableSession(recorded, file, RecordState.LIVE)
    talk = [
        replace(each, thinking="")
        for each in recorded.messages
        if not each.compaction and each.role is not Role.SYSTEM
    ]
    whole = _parse(recorded, talk)
    links = list(link(ROOT, whole.messages))
    if not any(each.message.role is Role.ASSISTANT for each in links):
        return LearnableSession(recorded, file, RecordState.UNANSWERED)
    key = f"{_KEY}{recorded.id}:{links[0].chain[:12]}"
    chains = known.chains(key)
    turns = tuple(_turns(_Record(recorded, file, key, whole), links, talk, chains))
    state = RecordState.KNOWN if not turns else RecordState.GROWN if chains else RecordState.NEW
    return LearnableSession(recorded, file, state, turns)


def keep_learned(store: Store, session: LearnableSession) -> None:
    """Writes what is new of a session; durable when it returns. A turn that another process wrote
    meanwhile is left to it. Raises a `HotsetError`."""
    for (asked, _), future in [(turn, store.keep(*turn)) for turn in session.turns]:
        try:
            future.result(_KEEP_SECONDS)
        except StoreFailed:
            if not _has_turn(store, asked):
                raise


def _has_turn(store: Store, asked: RequestReceived) -> bool:
    session = KnownSessions(store).by_key.get(asked.key)
    return session is not None and any(turn.id == asked.id for turn in store.turns(session))


def as_anthropic(message: RecordedMessage) -> Iterator[dict[str, Any]]:
    """A message as Anthropic's API takes it; none if it says nothing."""
    if message.role is Role.TOOL:
        result = {"type": "tool_result", "tool_use_id": message.call, "content": message.text}
        yield {"role": "user", "content": [result]}
        return
    blocks: list[dict[str, Any]] = []
    if message.thinking:
        blocks.append({"type": "thinking", "thinking": message.thinking, "signature": "c2lnbmVk"})
    if message.text.strip():
        blocks.append({"type": "text", "text": message.text})
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)}
        for call in message.calls
    ]
    if blocks:
        yield {"role": "assistant" if message.role is Role.ASSISTANT else "user", "content": blocks}


def _input(arguments: str) -> dict[str, Any]:
    try:
        given = json.loads(arguments)
    except ValueError:
        given = None
    return given if isinstance(given, dict) else {"input": arguments}


def _is_about(folder: str, project: Path) -> bool:
    """True if a session's folder is the project's or within it, or the record does not tell."""
    return not folder or Path(folder) == project or project in Path(folder).parents


@dataclass(frozen=True, slots=True)
class _Record:
    session: RecordedSession
    file: Path
    key: str
    whole: Request


def _parse(recorded: RecordedSession, talk: Sequence[RecordedMessage]) -> Request:
    """All messages in one request; a message that says nothing has its place all the same."""
    messages = [
        next(as_anthropic(_marked(each)), {"role": _role(each), "content": "-"}) for each in talk
    ]
    whole = {"model": recorded.model, "max_tokens": 1, "messages": messages}
    body = json.dumps(whole, ensure_ascii=False).encode("utf-8", "replace")
    return anthropic.parse(body)


def _role(message: RecordedMessage) -> str:
    return "assistant" if message.role is Role.ASSISTANT else "user"


def _marked(message: RecordedMessage) -> RecordedMessage:
    """What the client wrote by itself, in the marks by which it is known as such on the wire."""
    if not message.by_client:
        return message
    return replace(message, text=f"<system-reminder>\n{message.text}\n</system-reminder>")


def _turns(
    record: _Record,
    links: Sequence[Link],
    talk: Sequence[RecordedMessage],
    known: frozenset[Chain],
) -> Iterator[tuple[RequestReceived, ReplyReceived]]:
    """The turns from the first reply on that is not known; what follows the last reply has none
    yet."""
    now, previous = _begin(record, talk), ""
    asked: list[Message] = []
    asked_at = now
    for each, message in zip(links, talk, strict=True):
        now = max(now, message.time) if message.time is not None else now + _STEP_SECONDS
        if message.role is not Role.ASSISTANT:
            asked.append(each.message)
            asked_at = now
            continue
        reply = _name(record.key, each.chain)
        if each.chain not in known:
            request = replace(
                record.whole, raw=b"", messages=tuple(asked), previous=previous, params=b"{}"
            )
            yield (
                RequestReceived(
                    request,
                    asked_at,
                    record.session.agent or "unknown",
                    record.key,
                    id=TurnId(reply),
                    metadata={LEARNED_FROM: str(record.file)},
                ),
                ReplyReceived(
                    TurnId(reply),
                    now,
                    Outcome.DONE,
                    _OK,
                    b"",
                    Reply((each.message,), response_id=reply, complete=True),
                ),
            )
        previous, asked = reply, []


def _begin(record: _Record, talk: Sequence[RecordedMessage]) -> float:
    """When a record without times began: so that it ended when its file was last written."""
    if any(each.time is not None for each in talk):
        return 0.0
    return record.file.stat().st_mtime - _STEP_SECONDS * len(talk)


def _name(key: str, chain: Chain) -> str:
    return f"learned-{sha256(f'{key}:{chain}'.encode()).hexdigest()[:24]}"
