"""What a client sees of an Anthropic turn in which the model called tools of ours."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from hotset.dialects import json_bytes
from hotset.dialects.anthropic.hand_over import AnthropicRenamer
from hotset.dialects.anthropic.reply import read, refuse
from hotset.dialects.hand_over import HandOver
from hotset.dialects.port import Round, TurnView
from hotset.dialects.sse import SseFrame, event
from hotset.dialects.view import (
    Editor,
    in_one_message,
    make_round,
    merge_lists,
    replace_members,
    view_turn,
    with_sum,
)
from hotset.nouns.link import Link
from hotset.nouns.message import Reply
from hotset.nouns.window import Hidden

_OF_A_BLOCK = frozenset({"content_block_start", "content_block_delta", "content_block_stop"})
_END = frozenset({"message_delta", "message_stop"})
_THINKING = frozenset({"thinking", "redacted_thinking"})
_COUNTS = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cache_creation",
    "output_tokens",
)
"""Counts to repeat at the end of a turn of several rounds: its beginning had only the first
round's."""


def view(ours: Container[str], *, streamed: bool, hand_over: HandOver | None = None) -> TurnView:
    renamer = AnthropicRenamer(hand_over) if hand_over is not None else None
    return view_turn(_Editor(ours), read, streamed=streamed, renamer=renamer)


@dataclass(slots=True)
class _Editor(Editor):
    """Holds back bytes, or frames that are still to be edited."""

    pulse: bytes = event(b'{"type": "ping"}', "ping")

    def show(self, frame: SseFrame) -> bytes:
        tree = json_bytes.lenient_object(frame.data)
        kind = json_bytes.as_text(tree.get("type")) or (frame.name if tree else "")
        self.ended = self.ended or kind in ("message_stop", "error")
        self._count(kind, tree)
        if kind == "message_delta":
            self.held.append(frame)
            return b""
        shown = self._shown(frame, kind, tree)
        if not self.held and kind not in _END:
            return shown
        self.held.append(shown)
        return b""

    def end(self, last: Round) -> bytes:
        if last.calls and not last.complete:
            # It broke off before its last event: the stop reason is unknown.
            return b"".join(each for each in self.held if isinstance(each, bytes))
        return b"".join(
            each if isinstance(each, bytes) else self._ending(each, last) for each in self.held
        )

    def error(self, status: int, body: bytes) -> bytes:
        tree = json_bytes.lenient_object(body)
        is_own = tree.get("type") == "error" and isinstance(tree.get("error"), dict)
        refusal = (
            json_bytes.encode(tree)
            if is_own
            else refuse(status, f"The upstream answered with status {status}.")
        )
        return event(refusal, "error")

    def observe(self, reply: Reply, _body: bytes) -> Round:
        raws = tuple(
            raw for message in reply.messages if (raw := _with_blocks(_sendable(message.raw)))
        )
        return make_round(reply, self.ours, raws)

    def merge(self, bodies: Sequence[bytes], last: Round) -> bytes:
        """The last document under the first one's id, with the blocks of all of them without our
        calls."""
        values = merge_lists(bodies, "content", lambda block: _is_own(block, self.ours))
        if (
            stop := _stop(json_bytes.lenient_object(bodies[-1]).get("stop_reason"), last)
        ) is not None:
            values["stop_reason"] = json_bytes.encode(stop)
        if len(bodies) > 1:
            values["id"] = json_bytes.encode(json_bytes.lenient_object(bodies[0]).get("id"))
        return replace_members(bodies[-1], values)

    def conceal(
        self, rounds: Sequence[Round], answers: Sequence[Sequence[bytes]], links: Sequence[Link]
    ) -> tuple[Hidden, ...]:
        """The client's one message represents the last round, and the earlier rounds precede it.
        Answers to our calls beside the client's are blocks: one message must answer all calls."""
        blocks = [
            [
                block
                for raw in each
                for block in json_bytes.elements_of(json_bytes.member_of(raw, "content"))
            ]
            for each in answers
        ]
        whole = [*answers[: len(rounds) - 1], *blocks[len(rounds) - 1 :]]
        return in_one_message(rounds, whole, links, _without_calls)

    def _count(self, kind: str, tree: dict[str, Any]) -> None:
        """Counts are cumulative: a later event replaces the counts it has."""
        usage = (
            tree.get("usage")
            if kind == "message_delta"
            else json_bytes.as_object(tree.get("message")).get("usage")
        )
        self.usage |= {
            name: count for name, count in json_bytes.as_object(usage).items() if count is not None
        }

    def _shown(self, frame: SseFrame, kind: str, tree: dict[str, Any]) -> bytes:
        if kind == "message_start" and not self.is_first:
            return b""
        if kind not in _OF_A_BLOCK:
            return frame.raw
        index = json_bytes.as_count(tree.get("index"))
        if kind == "content_block_start":
            is_own = _is_own(json_bytes.as_object(tree.get("content_block")), self.ours)
            self.places.meet(index, hidden=is_own)
            self.plain = self.plain and not is_own
        place = self.places.of(index)
        if place is None:
            return b""
        return frame.raw if place == index else _edit_frame(frame, index=json_bytes.encode(place))

    def _ending(self, frame: SseFrame, last: Round) -> bytes:
        tree = json_bytes.lenient_object(frame.data)
        values: dict[str, bytes] = {}
        if (
            stop := _stop(json_bytes.as_object(tree.get("delta")).get("stop_reason"), last)
        ) is not None:
            delta = json_bytes.member_of(json_bytes.salvage(frame.data)[0], "delta")
            values["delta"] = replace_members(delta, {"stop_reason": json_bytes.encode(stop)})
        if not self.is_first and any((*self.earlier, self.usage)):
            values["usage"] = with_sum(self._last_usage(frame, tree), [*self.earlier, self.usage])
        return _edit_frame(frame, **values) if values else frame.raw

    def _last_usage(self, frame: SseFrame, tree: dict[str, Any]) -> bytes:
        """The last round's usage, with the counts that only its beginning had: the client saw
        another beginning."""
        given = json_bytes.as_object(tree.get("usage"))
        known = {name: 0 for name in _COUNTS if isinstance(self.earlier[0].get(name), int)}
        known |= {name: self.usage[name] for name in _COUNTS if name in self.usage}
        missing = {
            name: json_bytes.encode(count)
            for name, count in known.items()
            if given.get(name) is None
        }
        return replace_members(
            json_bytes.member_of(json_bytes.salvage(frame.data)[0], "usage") if given else b"{}",
            missing,
        )


def _stop(reason: Any, last: Round) -> str | None:
    """Another stop reason, if the given one is a call that the client does not see."""
    return "end_turn" if reason == "tool_use" and last.calls and not last.foreign else None


def _edit_frame(frame: SseFrame, **values: bytes) -> bytes:
    return frame.with_data(replace_members(json_bytes.salvage(frame.data)[0], values))


def _is_own(block: dict[str, Any], ours: Container[str]) -> bool:
    return block.get("type") == "tool_use" and block.get("name") in ours


def _sendable(raw: bytes) -> list[tuple[bytes, dict[str, Any]]]:
    """The blocks of a message. Models write empty texts, and the provider rejects them."""
    blocks = [
        (each, json_bytes.lenient_object(each))
        for each in json_bytes.elements_of(json_bytes.member_of(raw, "content"))
    ]
    return [
        (each, tree)
        for each, tree in blocks
        if tree.get("type") != "text" or json_bytes.as_text(tree.get("text")).strip()
    ]


def _without_calls(round: Round) -> bytes:
    """A round's message without our calls and without trailing thinking: no message may end with
    it."""
    ids = {call.id for call in round.calls}
    blocks = [each for raw in round.raws for each in _sendable(raw) if each[1].get("id") not in ids]
    while blocks and blocks[-1][1].get("type") in _THINKING:
        blocks.pop()
    return _with_blocks(blocks)


def _with_blocks(blocks: Sequence[tuple[bytes, dict[str, Any]]]) -> bytes:
    return (
        b'{"role":"assistant","content":[%s]}' % b",".join(raw for raw, _ in blocks)
        if blocks
        else b""
    )
