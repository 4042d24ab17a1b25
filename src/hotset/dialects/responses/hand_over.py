"""Renames calls in Responses replies; see `dialects.hand_over`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hotset.dialects import json_bytes
from hotset.dialects.hand_over import HandOver, edited
from hotset.dialects.sse import SseFrame
from hotset.dialects.view import replace_members

_ADDED, _DONE = "response.output_item.added", "response.output_item.done"
_PIECE, _WHOLE = "response.function_call_arguments.delta", "response.function_call_arguments.done"


class ResponsesRenamer:
    def __init__(self, hand_over: HandOver) -> None:
        self._hand_over = hand_over
        self._held: dict[int, list[tuple[SseFrame, dict[str, Any]]]] = {}
        """The events of items that may be renamed, by their place in the output."""

    def pass_on(self, frame: SseFrame) -> Iterable[SseFrame]:
        tree = json_bytes.lenient_object(frame.data)
        kind, index = tree.get("type"), tree.get("output_index")
        if kind == _ADDED and self._may_be(json_bytes.as_object(tree.get("item"))):
            self._held[json_bytes.as_count(index)] = []
        if isinstance(index, int) and index in self._held:
            self._held[index].append((frame, tree))
            return self._settle(self._held.pop(index)) if kind == _DONE else ()
        return (self._ending(frame) if "response" in tree else frame,)

    def rest(self) -> Iterable[SseFrame]:
        held = [frame for each in self._held.values() for frame, _ in each]
        self._held.clear()
        return held

    def document(self, body: bytes) -> bytes:
        items = json_bytes.elements_of(json_bytes.member_of(body, "output"))
        renamed = [self._rename(raw) for raw in items]
        if renamed == items:
            return body
        return replace_members(body, {"output": json_bytes.array_of(renamed)})

    def _may_be(self, item: dict[str, Any]) -> bool:
        return item.get("type") == "function_call" and item.get("name") == self._hand_over.tool

    def _rename(self, raw: bytes) -> bytes:
        found = self._found(json_bytes.lenient_object(raw))
        return raw if found is None else _renamed(raw, *found)

    def _found(self, item: dict[str, Any]) -> tuple[str, bytes] | None:
        if not self._may_be(item):
            return None
        return self._hand_over.resolve(
            json_bytes.encode_text(json_bytes.as_text(item.get("arguments")))
        )

    def _ending(self, frame: SseFrame) -> SseFrame:
        """The last event repeats all items."""
        text = json_bytes.salvage(frame.data)[0]
        response = json_bytes.member_of(text, "response")
        renamed = self.document(response)
        if renamed == response:
            return frame
        return edited(frame, replace_members(text, {"response": renamed}))

    def _settle(self, held: list[tuple[SseFrame, dict[str, Any]]]) -> list[SseFrame]:
        found = self._found(json_bytes.as_object(held[-1][1].get("item")))
        return [frame for frame, _ in held] if found is None else list(_events(held, *found))


def _events(
    held: list[tuple[SseFrame, dict[str, Any]]], name: str, arguments: bytes
) -> Iterator[SseFrame]:
    """The events of the renamed call. None is dropped: they are numbered."""
    given = arguments
    for frame, tree in held:
        text = json_bytes.salvage(frame.data)[0]
        match tree.get("type"):
            case "response.output_item.added" | "response.output_item.done" as kind:
                whole = arguments if kind == _DONE else b""
                item = _renamed(json_bytes.member_of(text, "item"), name, whole)
                yield edited(frame, replace_members(text, {"item": item}))
            case "response.function_call_arguments.delta":
                yield edited(frame, replace_members(text, {"delta": _quoted(given)}))
                given = b""
            case "response.function_call_arguments.done":
                values = {"arguments": _quoted(arguments)}
                values |= {"name": json_bytes.encode(name)} if "name" in tree else {}
                yield edited(frame, replace_members(text, values))
            case _:
                yield frame


def _renamed(item: bytes, name: str, arguments: bytes) -> bytes:
    return replace_members(item, {"name": json_bytes.encode(name), "arguments": _quoted(arguments)})


def _quoted(arguments: bytes) -> bytes:
    return json_bytes.encode(arguments.decode())
