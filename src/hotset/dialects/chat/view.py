"""What a client sees of a Chat Completions turn in which the model called tools of ours.

Several choices cannot continue as one turn. A reply with more than one is shown unchanged, and no
call in it is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hotset.dialects import json_bytes
from hotset.dialects.chat.hand_over import ChatRenamer
from hotset.dialects.chat.reply import read, refuse
from hotset.dialects.hand_over import HandOver
from hotset.dialects.port import Round, TurnView
from hotset.dialects.sse import SseFrame, event
from hotset.dialects.view import (
    Editor,
    in_one_message,
    make_round,
    merge_usage,
    replace_members,
    view_turn,
    with_sum,
)
from hotset.nouns.link import Link
from hotset.nouns.message import Reply
from hotset.nouns.window import Hidden

_FRAME = ("id", "created", "model")
"""A client groups chunks by these fields: those of the first round stay."""

_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
"""Text fields; the texts of several rounds are one text for the client."""

_BETWEEN = "\n\n"
"""Separates the texts of two rounds."""


@dataclass(slots=True)
class _Call:
    """A tool call of this round."""

    id: str
    index: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Chunk:
    frame: SseFrame
    tree: dict[str, Any]
    calls: tuple[_Call, ...] = ()
    """The calls whose deltas it carries, in order."""

    @property
    def choice(self) -> dict[str, Any]:
        return json_bytes.as_object(next(iter(json_bytes.as_list(self.tree.get("choices"))), None))

    @property
    def is_end(self) -> bool:
        is_count = not self.choice and isinstance(self.tree.get("usage"), dict)
        return self.is_done or is_count or bool(self.choice.get("finish_reason"))

    @property
    def is_done(self) -> bool:
        return self.frame.data.strip() == b"[DONE]"

    @property
    def has_more(self) -> bool:
        delta = json_bytes.as_object(self.choice.get("delta"))
        return any(delta.get(name) for name in (*_TEXTS, "tool_calls"))

    @property
    def texts(self) -> set[str]:
        """The text fields that it has text for."""
        delta = json_bytes.as_object(self.choice.get("delta"))
        return {name for name in _TEXTS if isinstance(delta.get(name), str) and delta[name]}


def view(ours: Container[str], *, streamed: bool, hand_over: HandOver | None = None) -> TurnView:
    renamer = ChatRenamer(hand_over) if hand_over is not None else None
    return view_turn(_Editor(ours), read, streamed=streamed, renamer=renamer)


@dataclass(slots=True)
class _Editor(Editor):
    """Holds back chunks, each with the data shown of it."""

    _is_opaque: bool = False
    _name: dict[str, bytes] = field(default_factory=dict)
    """Identifying fields of the first round's chunks."""
    _calls: dict[int, _Call] = field(default_factory=dict)
    """The latest call of this round under each number."""
    _hides: bool = False
    """True if this round calls tools of ours."""
    _texts: set[str] = field(default_factory=set)
    """Text fields that this round has begun."""
    _shown_texts: set[str] = field(default_factory=set)
    """Text fields that the client has received."""
    _earlier_texts: set[str] = field(default_factory=set)
    """Text fields that the client received in earlier rounds."""
    _waiting: list[_Chunk] = field(default_factory=list)
    """Chunks from the first that begins a call without naming its tool."""

    @property
    def holds(self) -> bool:
        return bool(self.held) and not self._hides

    def begin(self) -> None:
        Editor.begin(self)
        self._hides = False
        self._earlier_texts |= self._shown_texts
        for each in (self._texts, self._calls, self._waiting):
            each.clear()

    def show(self, frame: SseFrame) -> bytes:
        chunk = self._read(frame)
        self.ended = self.ended or chunk.is_done or bool(chunk.tree.get("error"))
        self._waiting.append(chunk)
        is_unnamed = any(not call.name for each in self._waiting for call in each.calls)
        return b"" if is_unnamed and not chunk.is_end else self._released()

    def end(self, last: Round) -> bytes:
        shown = self._released()
        if last.calls and not last.complete:
            # It broke off before its last event: the stop reason is unknown.
            return shown + b"".join(
                chunk.frame.with_data(data) for chunk, data in self.held if not chunk.is_end
            )
        return shown + b"".join(
            chunk.frame.with_data(self._ending(chunk, data, last)) for chunk, data in self.held
        )

    def error(self, status: int, body: bytes) -> bytes:
        tree = json_bytes.lenient_object(body)
        refusal = (
            json_bytes.encode(tree)
            if tree.get("error")
            else refuse(status, f"The upstream answered with status {status}.")
        )
        return event(refusal)

    def observe(self, reply: Reply, _body: bytes) -> Round:
        mine = self.ours if len(reply.messages) == 1 else frozenset[str]()
        return make_round(
            reply, mine, tuple(message.raw for message in reply.messages if not message.aside)
        )

    def merge(self, bodies: Sequence[bytes], last: Round) -> bytes:
        """The last document under the first one's id, with the texts of all of them and none of our
        calls."""
        choices = [
            raw
            for body in bodies
            for raw in json_bytes.elements_of(json_bytes.member_of(body, "choices"))[:1]
        ]
        choice = replace_members(
            choices[-1],
            {
                "message": _merge_messages(
                    [json_bytes.member_of(raw, "message") or b"{}" for raw in choices], self.ours
                )
            },
        )
        if (
            stop := _stop(json_bytes.lenient_object(choice).get("finish_reason"), last)
        ) is not None:
            choice = replace_members(choice, {"finish_reason": json_bytes.encode(stop)})
        values = {"choices": b"[" + choice + b"]"}
        if len(bodies) > 1:
            first = json_bytes.lenient_object(bodies[0])
            values |= {
                name: json_bytes.encode(first[name]) for name in _FRAME if name in first
            } | merge_usage(bodies)
        return replace_members(bodies[-1], values)

    def conceal(
        self, rounds: Sequence[Round], answers: Sequence[Sequence[bytes]], links: Sequence[Link]
    ) -> tuple[Hidden, ...]:
        """The client's one message represents the last round, and the earlier rounds precede it.
        Answers to our calls beside the client's are messages right after it."""
        return in_one_message(rounds, answers, links, _without_calls)

    def _read(self, frame: SseFrame) -> _Chunk:
        tree = json_bytes.lenient_object(frame.data)
        chunk = _Chunk(frame, tree)
        if isinstance(tree.get("usage"), dict):
            self.usage = tree["usage"]
        indexes = [
            json_bytes.as_count(json_bytes.as_object(choice).get("index"))
            for choice in json_bytes.as_list(tree.get("choices"))
        ]
        self._is_opaque = self._is_opaque or any(indexes) or len(indexes) > 1
        if not indexes or self._is_opaque:
            return chunk
        if self.is_first and not self._name:
            self._name = {name: json_bytes.encode(tree[name]) for name in _FRAME if name in tree}
        deltas = json_bytes.as_list(
            json_bytes.as_object(chunk.choice.get("delta")).get("tool_calls")
        )
        return _Chunk(
            frame, tree, tuple(self._meet(json_bytes.as_object(delta)) for delta in deltas)
        )

    def _meet(self, delta: dict[str, Any]) -> _Call:
        """Some providers number every call 0 and distinguish them by id; some give no number at
        all."""
        id = json_bytes.as_text(delta.get("id"))
        number = delta.get("index")
        index = number if isinstance(number, int) else max(0, len(self._calls) - 1)
        call = self._calls.get(index)
        if call is None or (id and call.id and id != call.id):
            call = self._calls[index] = _Call(id, index)
        call.id = call.id or id
        inner = delta.get("function") or delta.get("custom")
        call.name = json_bytes.as_text(json_bytes.as_object(inner).get("name")) or call.name
        return call

    def _released(self) -> bytes:
        waiting, self._waiting = self._waiting, []
        return b"".join(self._settled(chunk) for chunk in waiting)

    def _settled(self, chunk: _Chunk) -> bytes:
        data = self._edited(chunk)
        if data is None:
            return b""
        released = b""
        # Some providers mark every chunk as the last.
        if self.held and chunk.has_more and not self._hides:
            released = b"".join(self._sent(each, known) for each, known in self.held)
            self.held.clear()
        if self.held or chunk.is_end:
            self.held.append((chunk, data))
            return released
        return released + self._sent(chunk, data)

    def _sent(self, chunk: _Chunk, data: bytes) -> bytes:
        self._shown_texts |= chunk.texts
        return chunk.frame.with_data(data)

    def _edited(self, chunk: _Chunk) -> bytes | None:
        """The chunk as the client sees it; None if nothing of it is shown."""
        is_unchanged = self.is_first and not chunk.calls
        if is_unchanged or self._is_opaque or not isinstance(chunk.tree.get("choices"), list):
            return chunk.frame.data
        is_counted = isinstance(chunk.tree.get("usage"), dict)
        if not chunk.choice:
            return self._named(chunk.frame.data) if is_counted else None
        text = json_bytes.salvage(chunk.frame.data)[0]
        choice = json_bytes.elements_of(json_bytes.member_of(text, "choices"))[0]
        delta = json_bytes.member_of(choice, "delta")
        edited = self._apart(self._delta(delta, chunk.calls), chunk)
        if edited == delta:
            return self._named(chunk.frame.data)
        left = json_bytes.lenient_object(edited)
        if not any(left.values()) and not chunk.choice.get("finish_reason") and not is_counted:
            return None
        return self._named(
            replace_members(
                text, {"choices": b"[" + replace_members(choice, {"delta": edited}) + b"]"}
            )
        )

    def _delta(self, raw: bytes, calls: Sequence[_Call]) -> bytes:
        if not raw.startswith(b"{"):
            return raw
        values = {name: bytes(value) for name, value in json_bytes.members(raw, "a delta").items()}
        left = {name: value for name, value in values.items() if self.is_first or name != "role"}
        if calls:
            deltas = json_bytes.elements_of(left.pop("tool_calls"))
            shown = list(self._shown(deltas, calls))
            left |= (
                {
                    "tool_calls": values["tool_calls"]
                    if shown == deltas
                    else b"[%s]" % b",".join(shown)
                }
                if shown
                else {}
            )
        return (
            raw
            if left == values
            else json_bytes.encode({name: msgspec.Raw(value) for name, value in left.items()})
        )

    def _apart(self, delta: bytes, chunk: _Chunk) -> bytes:
        """The delta, separated from earlier rounds' text if it begins this round's."""
        new = (chunk.texts & self._earlier_texts) - self._texts
        self._texts |= chunk.texts
        mark = json_bytes.encode(_BETWEEN)[:-1]
        return (
            replace_members(
                delta,
                {
                    name: mark + json_bytes.member_of(delta, name)[1:]
                    for name in _TEXTS
                    if name in new
                },
            )
            if new
            else delta
        )

    def _shown(self, deltas: Sequence[bytes], calls: Sequence[_Call]) -> Iterator[bytes]:
        """The deltas of calls that are not ours, renumbered."""
        for raw, call in zip(deltas, calls, strict=True):
            tree = json_bytes.lenient_object(raw)
            is_own = call.name in self.ours and "custom" not in tree
            self.places.meet(call.index, hidden=is_own)
            self._hides = self._hides or is_own
            self.plain = self.plain and not is_own
            place = self.places.of(call.index)
            if place is not None:
                yield (
                    replace_members(raw, {"index": json_bytes.encode(place)})
                    if place != call.index and "index" in tree
                    else raw
                )

    def _named(self, data: bytes) -> bytes:
        if self.is_first or not self._name:
            return data
        text = json_bytes.salvage(data)[0]
        return replace_members(
            text,
            {
                name: value
                for name, value in self._name.items()
                if json_bytes.member_of(text, name) != value
            },
        )

    def _ending(self, chunk: _Chunk, data: bytes, last: Round) -> bytes:
        values: dict[str, bytes] = {}
        text = json_bytes.salvage(data)[0]
        if (
            chunk.choice
            and (stop := _stop(chunk.choice.get("finish_reason"), last)) is not None
            and not self._is_opaque
        ):
            choice = json_bytes.elements_of(json_bytes.member_of(text, "choices"))[0]
            values["choices"] = (
                b"[" + replace_members(choice, {"finish_reason": json_bytes.encode(stop)}) + b"]"
            )
        if not self.is_first and isinstance(chunk.tree.get("usage"), dict):
            values["usage"] = with_sum(
                json_bytes.member_of(text, "usage"), [*self.earlier, self.usage]
            )
        return replace_members(text, values) if values else data


def _stop(reason: Any, last: Round) -> str | None:
    """Another stop reason, if the given one is a call that the client does not see."""
    return "stop" if reason == "tool_calls" and last.calls and not last.foreign else None


def _merge_messages(messages: Sequence[bytes], ours: Container[str]) -> bytes:
    trees = [json_bytes.lenient_object(raw) for raw in messages]
    left = {
        name: bytes(value) for name, value in json_bytes.members(messages[-1], "a message").items()
    }
    for name in _TEXTS:
        texts = [tree[name] for tree in trees if tree.get(name)]
        if len(trees) > 1 and texts:
            left[name] = json_bytes.encode(_join_texts(texts))
    return _without(
        json_bytes.encode({name: msgspec.Raw(value) for name, value in left.items()}),
        lambda call: _name(call) in ours,
    )


def _join_texts(texts: Sequence[Any]) -> Any:
    """One text; a list of blocks where one of them is a list."""
    if all(isinstance(text, str) for text in texts):
        return _BETWEEN.join(texts)
    return [
        block
        for text in texts
        for block in (text if isinstance(text, list) else [{"type": "text", "text": text}])
    ]


def _name(call: dict[str, Any]) -> str:
    return json_bytes.as_text(json_bytes.as_object(call.get("function")).get("name"))


def _without_calls(round: Round) -> bytes:
    """A round's message without our calls; empty if nothing else is in it."""
    ids = {call.id for call in round.calls}
    for raw in round.raws:
        left = _without(raw, lambda call: call.get("id") in ids)
        tree = json_bytes.lenient_object(left)
        if any(
            tree.get(name)
            for name in ("content", "refusal", "tool_calls", "function_call", "audio")
        ):
            return left
    return b""


def _without(raw: bytes, is_own: Callable[[dict[str, Any]], bool]) -> bytes:
    """A message without some of its calls."""
    left = {name: bytes(value) for name, value in json_bytes.members(raw, "a message").items()}
    calls = json_bytes.elements_of(left.get("tool_calls", b""))
    shown = [call for call in calls if not is_own(json_bytes.lenient_object(call))]
    if len(shown) == len(calls):
        return raw
    left |= {"tool_calls": json_bytes.array_of(shown) if shown else b""}
    return json_bytes.encode({name: msgspec.Raw(value) for name, value in left.items() if value})
