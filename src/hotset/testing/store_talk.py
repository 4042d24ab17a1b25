"""Conversations for tests of a store, without a dialect or a wire format."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from hotset.nouns.deposit import CommitReceipt, Deposit, ReplyReceived, RequestReceived
from hotset.nouns.link import link
from hotset.nouns.message import DialectName, Message, Part, Reply, Request, Span, Usage
from hotset.nouns.page import ROOT, Chain, Kind, Role, digest
from hotset.nouns.turn import Outcome, Turn, TurnId, TurnRef
from hotset.nouns.window import Cause, Form, Shown, Spot
from hotset.store.port import Store


def text_message(role: Role, *texts: str, aside: bool = False) -> Message:
    """A message of plain text; without a text, a message without parts."""
    kind = {
        Role.USER: Kind.PROMPT,
        Role.ASSISTANT: Kind.RESPONSE,
        Role.SYSTEM: Kind.SYSTEM,
        Role.TOOL: Kind.TOOL_RESULT,
    }[role]
    return message(role, *(Part(kind, text.encode()) for text in texts), aside=aside)


def message(role: Role, *parts: Part, aside: bool = False) -> Message:
    shown = [
        [str(part.kind), part.content.decode("latin-1"), part.tool, part.call] for part in parts
    ]
    raw = json.dumps({"role": role, "parts": shown}).encode()
    return Message(role, raw, parts, digest(raw), aside=aside)


def request(*messages: Message, **traits: Any) -> Request:
    """A request with these messages; `traits` are any other fields of `Request`."""
    raw = b"[" + b",".join(each.raw for each in messages) + b"]"
    plain = Request(
        DialectName.OPENAI_CHAT,
        raw,
        "model",
        stream=False,
        messages=messages,
        array=Span(0, len(raw)),
    )
    return replace(plain, **traits)


@dataclass(slots=True)
class StoreTalk:
    """A conversation as a client has it: the whole history is sent with every turn."""

    store: Store
    agent: str = "agent"
    key: str = ""
    client: str = "client/1"
    traits: dict[str, Any] = field(default_factory=dict)
    history: list[Message] = field(default_factory=list)
    time: float = 1000.0
    since: float = 0.0

    def asks(self, *messages: Message | str) -> CommitReceipt:
        self.history += [
            text_message(Role.USER, each) if isinstance(each, str) else each for each in messages
        ]
        self.time += 1
        asked = RequestReceived(
            request(*self.history, **self.traits),
            self.time,
            self.agent,
            self.key,
            self.client,
            self.since,
        )
        return kept(self.store, asked)

    def hears(
        self,
        turn: TurnRef | None,
        *messages: Message | str,
        outcome: Outcome = Outcome.DONE,
        id: str = "",
    ) -> CommitReceipt:
        replies = tuple(
            text_message(Role.ASSISTANT, each) if isinstance(each, str) else each
            for each in messages
        )
        assert turn is not None
        self.time += 1
        raw = b"reply:" + b"".join(each.raw for each in replies)
        reply = Reply(
            replies, Usage(10, 2, 3, 4), "stop", id, "model-1", complete=outcome is Outcome.DONE
        )
        answer = kept(self.store, ReplyReceived(turn, self.time, outcome, 200, raw, reply))
        self.history += replies
        return answer

    def turn(self, question: str, answer: str) -> TurnRef:
        asked = self.asks(question)
        self.hears(asked.turn, answer)
        assert asked.turn is not None
        return asked.turn

    @property
    def line(self) -> list[Chain]:
        """The chains of all messages so far."""
        return [each.chain for each in link(ROOT, self.history)]


def shows(
    chain: Chain, text: str = "", position: int = 0, form: Form = Form.EXCERPT, **fields: Any
) -> Shown:
    """A row of the page table; `fields` are any other fields of `Shown`."""
    row = Shown(
        Spot(chain, position),
        form,
        text.encode(),
        tokens=len(text),
        whole=1000,
        cause=Cause.BIRTH,
        time=7.0,
    )
    return replace(row, **fields)


def id_of(store: Store, turn: TurnRef) -> TurnId:
    return next(each.id for each in store.turns(turn.session) if each.number == turn.number)


def kept(store: Store, deposit: Deposit) -> CommitReceipt:
    return store.keep(deposit).result(timeout=60)


def turn_of(answer: CommitReceipt) -> TurnRef:
    assert answer.turn is not None, "a request did not become a turn"
    return answer.turn


def only_turn(store: Store, asked: CommitReceipt) -> Turn:
    turns = list(store.turns(turn_of(asked).session))
    assert len(turns) == 1, "one request is not one turn"
    return turns[0]
