"""Renames calls in Chat Completions replies; see `dialects.hand_over`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hotset.dialects import json_bytes
from hotset.dialects.hand_over import HandOver, edited, with_members
from hotset.dialects.sse import SseFrame
from hotset.dialects.view import replace_members

_Call = dict[str, Any]


class ChatRenamer:
    def __init__(self, hand_over: HandOver) -> None:
        self._hand_over = hand_over
        self._held: list[SseFrame] = []
        """From the first event of a call that may be renamed on: calls are a reply's last part."""

    def pass_on(self, frame: SseFrame) -> Iterable[SseFrame]:
        choice = _choice(frame)
        named = (_function(call).get("name") for call in _calls(choice.get("delta")))
        if not self._held and self._hand_over.tool not in named:
            return (frame,)
        self._held.append(frame)
        is_end = bool(choice.get("finish_reason")) or frame.data.strip() == b"[DONE]"
        return self._settle() if is_end else ()

    def rest(self) -> Iterable[SseFrame]:
        held, self._held = self._held, []
        return held

    def document(self, body: bytes) -> bytes:
        choices = json_bytes.elements_of(json_bytes.member_of(body, "choices"))
        if len(choices) != 1:  # no call in several choices is ours
            return body
        message = json_bytes.member_of(choices[0], "message")
        calls = json_bytes.elements_of(json_bytes.member_of(message, "tool_calls"))
        renamed = [self._rename(raw) for raw in calls]
        if renamed == calls:
            return body
        message = replace_members(message, {"tool_calls": json_bytes.array_of(renamed)})
        choice = replace_members(choices[0], {"message": message})
        return replace_members(body, {"choices": json_bytes.array_of([choice])})

    def _rename(self, raw: bytes) -> bytes:
        call = json_bytes.lenient_object(raw)
        found = self._resolve(_function(call))
        return raw if found is None else with_members(raw, {"function": found})

    def _resolve(self, function: dict[str, Any]) -> dict[str, Any] | None:
        if function.get("name") != self._hand_over.tool:
            return None
        arguments = json_bytes.encode_text(json_bytes.as_text(function.get("arguments")))
        found = self._hand_over.resolve(arguments)
        return None if found is None else {"name": found[0], "arguments": found[1].decode()}

    def _settle(self) -> list[SseFrame]:
        held, self._held = self._held, []
        whole: dict[int, _Call] = {}
        for call in (each for frame in held for each in _calls(_choice(frame).get("delta"))):
            known = whole.setdefault(_index(call), {"function": {"arguments": ""}})
            if call.get("id") and known.get("id") not in (None, call["id"]):
                return held  # several calls under one number: they are told apart elsewhere
            function = {**known["function"], **_function(call)}
            text = json_bytes.as_text(_function(call).get("arguments"))
            function["arguments"] = known["function"]["arguments"] + text
            whole[_index(call)] = {**known, **call, "function": function}
        renamed = {
            index: {**call, "function": found}
            for index, call in whole.items()
            if (found := self._resolve(call["function"])) is not None
        }
        return [self._edit(frame, renamed) for frame in held] if renamed else held

    def _edit(self, frame: SseFrame, renamed: dict[int, _Call]) -> SseFrame:
        """The event with a renamed call whole where it began, and without its later pieces."""
        choice = _choice(frame)
        calls = list(_calls(choice.get("delta")))
        if not any(_index(call) in renamed for call in calls):
            return frame
        kept = [
            renamed.get(_index(call), call)
            for call in calls
            if _index(call) not in renamed or _function(call).get("name")
        ]
        delta = {**choice["delta"], "tool_calls": kept}
        if not kept:
            del delta["tool_calls"]
        changed = json_bytes.encode([{**choice, "delta": delta}])
        return edited(
            frame, replace_members(json_bytes.salvage(frame.data)[0], {"choices": changed})
        )


def _choice(frame: SseFrame) -> dict[str, Any]:
    choices = json_bytes.as_list(json_bytes.lenient_object(frame.data).get("choices"))
    return json_bytes.as_object(choices[0]) if len(choices) == 1 else {}


def _calls(delta: Any) -> Iterator[_Call]:
    yield from map(
        json_bytes.as_object, json_bytes.as_list(json_bytes.as_object(delta).get("tool_calls"))
    )


def _index(call: _Call) -> int:
    return json_bytes.as_count(call.get("index"))


def _function(call: _Call) -> dict[str, Any]:
    return json_bytes.as_object(call.get("function"))
