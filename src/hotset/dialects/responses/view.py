"""What a client sees of a Responses turn in which the model called tools of ours.

Which id a client sees: a stream has it first and last, and the official library raises if the two
differ, so every event carries the first round's. What the provider stored under that id ends at our
call, so a client that continues it by `previous_response_id` means the last round's id
(`Round.id`). A document has its id once: the last round's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from hotset.dialects import json_bytes
from hotset.dialects.chat.reply import refuse
from hotset.dialects.hand_over import HandOver
from hotset.dialects.port import OWN_SEARCH, OwnCall, Round, TurnView
from hotset.dialects.responses.change import SEARCH_CALL
from hotset.dialects.responses.hand_over import ResponsesRenamer
from hotset.dialects.responses.reply import read
from hotset.dialects.sse import SseFrame, event
from hotset.dialects.view import (
    Editor,
    error_of,
    make_round,
    merge_lists,
    replace_members,
    view_turn,
    with_sum,
)
from hotset.nouns.link import Link
from hotset.nouns.message import Reply
from hotset.nouns.tool import FIND_TOOLS
from hotset.nouns.window import Hidden

_BEGIN = frozenset({"response.created", "response.queued", "response.in_progress"})
_END = frozenset({"response.completed", "response.incomplete", "response.failed"})
_RUN_BY_PROVIDER = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
    }
)


def view(ours: Container[str], *, streamed: bool, hand_over: HandOver | None = None) -> TurnView:
    renamer = ResponsesRenamer(hand_over) if hand_over is not None else None
    return view_turn(_Editor(ours), read, streamed=streamed, renamer=renamer)


@dataclass(slots=True)
class _Editor(Editor):
    """Holds back frames, each with the data shown of it."""

    _id: bytes = b""
    """The first round's id, as JSON."""
    _response: bytes = b""
    """The response in the first round's first event."""
    _number: int = -1
    """Number of the latest event that the client got, or will get if it is held."""
    _shown: int = -1
    """Number of the latest event that the client got."""
    _shift: int | None = 0
    """Difference to the upstream's event numbers; None until a round's first is known."""
    _items: dict[int, bytes] = field(default_factory=dict)
    """This round's items that the client got, whole."""
    _before: list[bytes] = field(default_factory=list)
    """Items of earlier rounds that the client got."""
    _is_stored: bool = True

    def begin(self) -> None:
        Editor.begin(self)
        self._before += [self._items[index] for index in sorted(self._items)]
        self._shift, self._number = None, self._shown
        self._items.clear()

    def show(self, frame: SseFrame) -> bytes:
        text, value = json_bytes.salvage(frame.data)
        tree = json_bytes.as_object(value)
        kind = json_bytes.as_text(tree.get("type")) or (frame.name if tree else "")
        self.ended = self.ended or kind in _END or kind == "error"
        self._listen(kind, tree, text)
        data = self._edited(kind, tree, frame.data, text)
        if data is None:
            return b""
        if self.held or kind in _END:
            self.held.append((frame, data))
            return b""
        self._shown = self._number
        return frame.with_data(data)

    def end(self, _last: Round) -> bytes:
        """An event that ends a response has no stop reason to change."""
        return b"".join(frame.with_data(self._ending(data)) for frame, data in self.held)

    def error(self, status: int, body: bytes) -> bytes:
        given = json_bytes.lenient_object(body)
        tree = (
            given
            if given.get("error")
            else json_bytes.as_object(json_bytes.lenient(refuse(status, _status_text(status))))
        )
        message = json_bytes.as_text(
            json_bytes.as_object(tree.get("error")).get("message")
        ) or _status_text(status)
        code = error_of(tree)
        failure = {
            "type": "error",
            "code": code,
            "message": message,
            "param": None,
            "sequence_number": self._shown + 1,
        }
        if not self._response:
            return event(json_bytes.encode(failure), "error")
        # Some clients know only one of the two events; the provider sends both.
        items = [*self._before, *(self._items[index] for index in sorted(self._items))]
        failed = replace_members(
            self._response,
            {
                "status": b'"failed"',
                "error": json_bytes.encode({"code": code, "message": message}),
                "output": json_bytes.array_of(items),
            },
        )
        last = {
            "type": "response.failed",
            "sequence_number": self._shown + 2,
            "response": msgspec.Raw(failed),
        }
        return event(json_bytes.encode(failure), "error") + event(
            json_bytes.encode(last), "response.failed"
        )

    def observe(self, reply: Reply, body: bytes) -> Round:
        document = json_bytes.lenient_object(body) if body.lstrip().startswith(b"{") else {}
        is_stored = document.get("store") is not False if document else self._is_stored
        items = [
            (message.raw, json_bytes.lenient_object(message.raw)) for message in reply.messages
        ]
        raws = tuple(raw for raw, item in items if is_stored or not _is_bare(item))
        foreign = any(
            not _is_own(item, self.ours) for item in _for_the_client([item for _, item in items])
        )
        searches = tuple(
            _search(item)
            for _, item in items
            if item.get("type") == SEARCH_CALL and _is_own(item, self.ours)
        )
        round = make_round(reply, self.ours, raws)
        return replace(round, calls=(*searches, *round.calls), foreign=foreign)

    def merge(self, bodies: Sequence[bytes], _last: Round) -> bytes:
        """The last document, with the items of all of them without our calls."""
        return replace_members(
            bodies[-1], merge_lists(bodies, "output", lambda item: _is_own(item, self.ours))
        )

    def conceal(
        self, rounds: Sequence[Round], answers: Sequence[Sequence[bytes]], links: Sequence[Link]
    ) -> tuple[Hidden, ...]:
        """Our calls and their answers are restored before the item that the client saw next.

        That is an item to build upon, with the reasoning that led to it after ours. If the client
        saw only reasoning between two of our rounds, it is the second one's reasoning, if that is
        unique.
        """
        often = Counter(link.chain for link in links)
        rows: list[Hidden] = []
        between: list[Hidden] = []
        """Rows of reasoning, which only hold where something to build upon follows."""
        group, asides = list[bytes](), list[Link]()
        for each in _in_order(rounds, answers, links):
            if isinstance(each, bytes):
                if group and asides and often[asides[0].chain] == 1:
                    between.append(Hidden(asides[0].chain, tuple(group)))
                    group = []
                asides = []
                group.append(each)
            elif each.message.aside:
                asides += [each] if group else []
            else:
                rows += (
                    [*between, Hidden(each.chain, tuple(group), asides=len(asides))]
                    if group
                    else []
                )
                between, group, asides = [], [], []
        return tuple(rows)

    def _listen(self, kind: str, tree: dict[str, Any], text: bytes) -> None:
        index = json_bytes.as_count(tree.get("output_index"))
        if kind == "response.output_item.added":
            is_own = _is_own(json_bytes.as_object(tree.get("item")), self.ours)
            self.places.meet(index, hidden=is_own)
            self.plain = self.plain and not is_own
        elif kind == "response.output_item.done" and self.places.of(index) is not None:
            self._items[index] = json_bytes.member_of(text, "item")
        elif kind in _BEGIN or kind in _END:
            response = json_bytes.as_object(tree.get("response"))
            self._is_stored = response.get("store") is not False
            self.usage = json_bytes.as_object(response.get("usage"))
            if self.is_first and not self._id and "id" in response:
                self._id = json_bytes.encode(response["id"])
                self._response = json_bytes.member_of(text, "response")

    def _edited(self, kind: str, tree: dict[str, Any], data: bytes, text: bytes) -> bytes | None:
        """The event as the client sees it; None if nothing of it is shown."""
        values: dict[str, bytes] = {}
        index = tree.get("output_index")
        if isinstance(index, int):
            place = self.places.of(index)
            if place is None:
                self._leave_out(tree)
                return None
            values |= {"output_index": json_bytes.encode(place)} if place != index else {}
        elif kind in _BEGIN and not self.is_first:
            self._leave_out(tree)
            return None
        number = tree.get("sequence_number")
        if isinstance(number, int):
            self._number = number + self._shifted(number)
            values |= (
                {"sequence_number": json_bytes.encode(self._number)}
                if self._number != number
                else {}
            )
        return replace_members(text, values) if values else data

    def _leave_out(self, tree: dict[str, Any]) -> None:
        number = tree.get("sequence_number")
        if isinstance(number, int):
            self._shift = self._shifted(number) - 1

    def _shifted(self, number: int) -> int:
        if self._shift is None:
            self._shift = self._number + 1 - number
        return self._shift

    def _ending(self, data: bytes) -> bytes:
        text, tree = json_bytes.salvage(data)
        if self.plain or json_bytes.as_object(tree).get("type") not in _END:
            return data
        response = json_bytes.member_of(text, "response")
        if not response.startswith(b"{"):
            return data
        values: dict[str, bytes] = {}
        listed = json_bytes.elements_of(json_bytes.member_of(response, "output"))
        if listed or not self._items:  # some providers never repeat the items
            items = [
                raw for raw in listed if not _is_own(json_bytes.lenient_object(raw), self.ours)
            ]
            values["output"] = json_bytes.array_of([*self._before, *items])
        if not self.is_first:
            values |= {"id": self._id} if self._id else {}
            if self.usage:
                values["usage"] = with_sum(
                    json_bytes.member_of(response, "usage"), [*self.earlier, self.usage]
                )
        return replace_members(text, {"response": replace_members(response, values)})


def _in_order(
    rounds: Sequence[Round], answers: Sequence[Sequence[bytes]], links: Sequence[Link]
) -> Iterator[bytes | Link]:
    """The turn as the model saw it: the client's items as links, and the hidden items as bytes."""
    unseen = list(links)
    for number, round in enumerate(rounds):
        answered = answers[number] if number < len(answers) else ()
        ids = {call.id for call in round.calls}
        trees = [json_bytes.lenient_object(raw) for raw in round.raws]
        own = (
            [raw for raw, tree in zip(round.raws, trees, strict=True) if _call_id(tree) in ids]
            if answered
            else []
        )
        first = next((tree for tree in _for_the_client(trees) if _call_id(tree) not in ids), None)
        for raw, tree in zip(round.raws, trees, strict=True):
            if tree is first:  # ours are answered by now, the client's not yet
                yield from (*own, *answered)
            if _call_id(tree) not in ids:
                yield from _up_to(raw, unseen)
            elif first is None and answered:
                yield raw
        if first is None:
            yield from answered


def _up_to(raw: bytes, unseen: list[Link]) -> Iterator[Link]:
    """The client's items up to the one with these bytes: reasoning that is not sent back lies
    between them."""
    place = next((index for index, link in enumerate(unseen) if link.message.raw == raw), -1)
    yield from unseen[: place + 1]
    del unseen[: place + 1]


def _for_the_client(items: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Items that wait for something only the client can do, and calls of ours."""
    answered = {
        _call_id(item) for item in items if json_bytes.as_text(item.get("type")).endswith("_output")
    }
    for item in items:
        kind = json_bytes.as_text(item.get("type"))
        is_run_elsewhere = (
            kind in _RUN_BY_PROVIDER
            or item.get("execution") == "server"
            or _call_id(item) in answered
        )
        if kind == "mcp_approval_request" or (kind.endswith("_call") and not is_run_elsewhere):
            yield item


def _call_id(item: dict[str, Any]) -> str:
    return json_bytes.as_text(item.get("call_id"))


def _search(item: dict[str, Any]) -> OwnCall:
    given = item.get("arguments")
    arguments = (
        json_bytes.encode_text(given) if isinstance(given, str) else json_bytes.encode(given)
    )
    return OwnCall(_call_id(item), FIND_TOOLS, arguments, searches=True)


def _is_own(item: dict[str, Any], ours: Container[str]) -> bool:
    if item.get("type") == SEARCH_CALL:  # if the client has a search, ours is a function
        return item.get("execution") == "client" and OWN_SEARCH in ours
    return item.get("type") == "function_call" and item.get("name") in ours


def _is_bare(item: dict[str, Any]) -> bool:
    """True for reasoning that is only an id the provider did not store: sent back, it would not be
    found."""
    return (
        item.get("type") == "reasoning"
        and not item.get("encrypted_content")
        and not item.get("content")
    )


def _status_text(status: int) -> str:
    return f"The upstream answered with status {status}."
