"""Renames calls in Anthropic's replies; see `dialects.hand_over`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hotset.dialects import json_bytes
from hotset.dialects.hand_over import HandOver, edited
from hotset.dialects.sse import SseFrame, event, frame_of
from hotset.dialects.view import replace_members


class AnthropicRenamer:
    def __init__(self, hand_over: HandOver) -> None:
        self._hand_over = hand_over
        self._held: dict[int, list[tuple[SseFrame, dict[str, Any]]]] = {}
        """The events of blocks that may be renamed, by index."""

    def pass_on(self, frame: SseFrame) -> Iterable[SseFrame]:
        tree = json_bytes.lenient_object(frame.data)
        kind, index = tree.get("type"), json_bytes.as_count(tree.get("index"))
        block = json_bytes.as_object(tree.get("content_block"))
        if kind == "content_block_start" and self._may_be(block):
            self._held[index] = [(frame, tree)]
            return ()
        if index not in self._held or kind not in ("content_block_delta", "content_block_stop"):
            return (frame,)
        self._held[index].append((frame, tree))
        return self._settle(self._held.pop(index)) if kind == "content_block_stop" else ()

    def rest(self) -> Iterable[SseFrame]:
        held = [frame for each in self._held.values() for frame, _ in each]
        self._held.clear()
        return held

    def document(self, body: bytes) -> bytes:
        blocks = json_bytes.elements_of(json_bytes.member_of(body, "content"))
        renamed = [self._rename(raw) for raw in blocks]
        if renamed == blocks:
            return body
        return replace_members(body, {"content": json_bytes.array_of(renamed)})

    def _may_be(self, block: dict[str, Any]) -> bool:
        return block.get("type") == "tool_use" and block.get("name") == self._hand_over.tool

    def _rename(self, raw: bytes) -> bytes:
        block = json_bytes.lenient_object(raw)
        found = (
            self._hand_over.resolve(json_bytes.member_of(raw, "input"))
            if self._may_be(block)
            else None
        )
        if found is None:
            return raw
        return replace_members(raw, {"name": json_bytes.encode(found[0]), "input": found[1]})

    def _settle(self, held: list[tuple[SseFrame, dict[str, Any]]]) -> list[SseFrame]:
        (start, first), *middle, (stop, _) = held
        deltas = (json_bytes.as_object(tree.get("delta")) for _, tree in middle)
        given = "".join(json_bytes.as_text(each.get("partial_json")) for each in deltas)
        block = json_bytes.as_object(first.get("content_block"))
        arguments = (
            json_bytes.encode_text(given) if given else json_bytes.encode(block.get("input"))
        )
        found = self._hand_over.resolve(arguments)
        if found is None:
            return [frame for frame, _ in held]
        name, wanted = found
        renamed = json_bytes.encode({**block, "name": name, "input": {}})
        delta = {
            "type": "content_block_delta",
            "index": first.get("index"),
            "delta": {"type": "input_json_delta", "partial_json": wanted.decode()},
        }
        text = json_bytes.salvage(start.data)[0]
        opened = edited(start, replace_members(text, {"content_block": renamed}))
        return [opened, frame_of(event(json_bytes.encode(delta), "content_block_delta")), stop]
