"""What a client sees of a turn in which the model called tools of ours: one reply, as if it had
never called them.

Such a turn is several calls upstream, *rounds*. Events are relayed at once and unchanged, with
three exceptions: our calls are left out, indexes and event numbers continue from round to round,
and the end of each round waits until it is known whether the turn ends. This module has what the
dialects' views and replies share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hotset.dialects import json_bytes, parts
from hotset.dialects.hand_over import CallRenamer
from hotset.dialects.port import OwnCall, Round, TurnView
from hotset.dialects.sse import Frames, SseFrame
from hotset.errors import Malformed
from hotset.nouns.link import Link
from hotset.nouns.message import Part, Reply, Span
from hotset.nouns.page import Kind
from hotset.nouns.window import Hidden

COMMENT = b": keep-alive\n\n"
"""A line of a stream that every reader skips."""


@dataclass(slots=True)
class IndexMap:
    """Maps an upstream's indexes to the client's, which continue from round to round."""

    _base: int = 0
    _next: int = 0
    _hidden: set[int] = field(default_factory=set)
    _known: dict[int, int] = field(default_factory=dict)

    @property
    def hides(self) -> bool:
        return bool(self._hidden)

    def begin(self) -> None:
        self._base = self._next
        self._hidden.clear()
        self._known.clear()

    def meet(self, index: int, *, hidden: bool) -> None:
        """Register an index of this round."""
        self._hidden = self._hidden | {index} if hidden else self._hidden - {index}

    def of(self, index: int) -> int | None:
        """The client's index; None if hidden. An index once assigned stays."""
        if index in self._hidden:
            return None
        if index not in self._known:
            place = self._base + index - sum(each < index for each in self._hidden)
            self._known[index] = self._next if place in self._known.values() else place
            self._next = max(self._next, self._known[index] + 1)
        return self._known[index]


@dataclass(slots=True)
class Editor(ABC):
    """Edits one dialect's replies for the client. The bytes that `show` and `end` return are all
    that the client of a stream gets."""

    ours: Container[str]
    plain: bool = True
    """True while nothing of this turn was left out or changed."""
    ended: bool = False
    pulse: bytes = COMMENT
    is_first: bool = True
    """True in the turn's first round."""
    places: IndexMap = field(default_factory=IndexMap)
    held: list[Any] = field(default_factory=list)
    """The end of this round and what followed it."""
    earlier: list[dict[str, Any]] = field(default_factory=list)
    """Usage of each round before this one."""
    usage: dict[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """True if an end is held back and none of our tools was called in this round."""
        return bool(self.held) and not self.places.hides

    def begin(self) -> None:
        """Start another round and drop the end that was held back."""
        self.plain = self.ended = self.is_first = False
        self.earlier.append(self.usage)
        self.usage = {}
        self.places.begin()
        self.held.clear()

    @abstractmethod
    def show(self, frame: SseFrame) -> bytes:
        """The bytes that the client gets for an event now."""

    @abstractmethod
    def end(self, last: Round, /) -> bytes:
        """The events that were held back, as the end of the turn."""

    @abstractmethod
    def error(self, status: int, body: bytes) -> bytes:
        """The event that reports an upstream's refusal."""

    @abstractmethod
    def observe(self, reply: Reply, body: bytes, /) -> Round:
        """The round, from the reply that was read from its bytes."""

    @abstractmethod
    def merge(self, bodies: Sequence[bytes], last: Round, /) -> bytes:
        """One document out of those of all rounds."""

    @abstractmethod
    def conceal(
        self, rounds: Sequence[Round], answers: Sequence[Sequence[bytes]], links: Sequence[Link]
    ) -> tuple[Hidden, ...]:
        """See `TurnView.hidden`."""


class _View:
    """Base of both forms of a reply."""

    def __init__(
        self, editor: Editor, read: Callable[[bytes], Reply], renamer: CallRenamer | None = None
    ) -> None:
        self._editor = editor
        self._read = read
        self._renamer = renamer
        self._got: list[bytes] = []
        self._rounds: list[Round] = []
        self._is_over = False

    def hidden(
        self, answers: Sequence[Sequence[bytes]], links: Sequence[Link]
    ) -> tuple[Hidden, ...]:
        return self._editor.conceal(self._rounds, answers, links)

    def _observe(self) -> Round:
        self._is_over = True
        body = b"".join(self._got)
        self._rounds.append(self._editor.observe(self._read(body), body))
        return self._rounds[-1]


class StreamView(_View):
    _late = b""

    def __init__(
        self, editor: Editor, read: Callable[[bytes], Reply], renamer: CallRenamer | None = None
    ) -> None:
        super().__init__(editor, read, renamer)
        self._frames = Frames()

    @property
    def ended(self) -> bool:
        return self._editor.ended

    @property
    def stopped(self) -> bool:
        return self._editor.ended or self._editor.holds

    @property
    def pulse(self) -> bytes:
        return self._editor.pulse

    def take(self, chunk: bytes) -> bytes:
        self._go_on()
        frames = self._frames.feed(chunk)
        if self._renamer is None:
            self._got.append(chunk)
            return b"".join(map(self._editor.show, frames))
        return self._pass_on([each for one in frames for each in self._renamer.pass_on(one)])

    def _pass_on(self, frames: Iterable[SseFrame]) -> bytes:
        """Show events after calls were renamed: what was read of the reply is these."""
        self._got += [frame.raw for frame in frames]
        return b"".join(map(self._editor.show, frames))

    def round(self) -> Round:
        self._go_on()
        if self._renamer is not None:
            self._late += self._pass_on(list(self._renamer.rest()))
        rest = self._frames.rest()
        if rest is not None and self._renamer is not None:
            self._got.append(rest.raw)
        # Half an event is useless; it is relayed only if everything is.
        if rest is not None and (self._editor.plain or _is_whole(rest.data)):
            self._late += self._editor.show(rest)
        return self._observe()

    def close(self) -> bytes:
        last = self._rounds[-1] if self._is_over else self.round()
        return self._late + self._editor.end(last)

    def fail(self, status: int, body: bytes) -> bytes:
        return self._editor.error(status, body)

    def _go_on(self) -> None:
        if self._is_over:
            self._is_over = False
            self._got.clear()
            self._editor.begin()


class DocumentView(_View):
    """A document is useful only whole: the client gets everything when the turn is over."""

    ended = stopped = False
    pulse = b""

    def __init__(
        self, editor: Editor, read: Callable[[bytes], Reply], renamer: CallRenamer | None = None
    ) -> None:
        super().__init__(editor, read, renamer)
        self._bodies: list[bytes] = []

    def take(self, chunk: bytes) -> bytes:
        self._is_over = False
        self._got.append(chunk)
        return b""

    def round(self) -> Round:
        if self._renamer is not None:
            text = json_bytes.salvage(b"".join(self._got))[0]
            if (renamed := self._renamer.document(text)) != text:
                self._got = [renamed]
        self._bodies.append(b"".join(self._got))
        last = self._observe()
        self._got.clear()
        return last

    def close(self) -> bytes:
        last = self._rounds[-1] if self._is_over else self.round()
        is_plain = len(self._rounds) == 1 and not last.calls
        if is_plain or not last.complete:  # the client gets an incomplete reply unchanged
            return self._bodies[-1]
        return self._editor.merge([json_bytes.salvage(body)[0] for body in self._bodies], last)

    def fail(self, status: int, body: bytes) -> bytes:
        del status  # nothing was sent yet: the reply can still have this status
        return body


def view_turn(
    editor: Editor,
    read: Callable[..., Reply],
    *,
    streamed: bool,
    renamer: CallRenamer | None = None,
) -> TurnView:
    """The view of a turn whose upstream answers by events, or by a document."""
    return (StreamView if streamed else DocumentView)(
        editor, lambda body: read(body, streamed=streamed), renamer
    )


def make_round(reply: Reply, ours: Container[str], raws: tuple[bytes, ...]) -> Round:
    """The round of these messages; every call that is not ours is foreign."""
    every = [part for message in reply.messages for part in message.parts if is_call(part)]
    mine = [part for part in every if part.tool in ours and part.media == parts.JSON]
    calls = tuple(OwnCall(part.call, part.tool, part.content) for part in mine)
    foreign = len(mine) < len(every)
    return Round(calls, foreign, raws, reply.usage, reply.complete, reply.stop, reply.response_id)


def is_call(part: Part) -> bool:
    return part.kind.family is Kind.TOOL_CALL


def replace_members(raw: bytes, values: Mapping[str, bytes]) -> bytes:
    """A JSON object with other or additional values for some members; everything else stays."""
    try:
        known = json_bytes.fields(raw)
    except Malformed:  # a duplicate member: one of them is enough
        return json_bytes.encode(
            {
                **json_bytes.lenient_object(raw),
                **{name: msgspec.Raw(value) for name, value in values.items()},
            }
        )
    edits = [(known[name].value, value) for name, value in values.items() if name in known]
    new = b",".join(
        b'"%s":%s' % (name.encode(), value) for name, value in values.items() if name not in known
    )
    if new:
        end = raw.rindex(b"}")
        edits.append((Span(end, end), b"," + new if known else new))
    return json_bytes.splice(raw, edits)


def add_counts(before: Any, now: Any) -> Any:
    """Add the counts of two rounds; for anything else the later value wins."""
    match before, now:
        case dict(), dict():
            return {key: add_counts(before.get(key), now.get(key)) for key in {**before, **now}}
        case ((int() | float()), (int() | float())) if not isinstance(
            before, bool
        ) and not isinstance(now, bool):
            return before + now
        case _:
            return before if now is None else now


def with_sum(usage: bytes, rounds: Sequence[Any]) -> bytes:
    """The last round's usage, plus the sum over all rounds as its member `hotset`.

    A client takes its usage as the size of its context, and the last prompt already contains the
    earlier rounds.
    """
    total: Any = {}
    for each in rounds:
        total = add_counts(total, json_bytes.as_object(each))
    return replace_members(usage, {"hotset": json_bytes.encode({"calls": len(rounds), **total})})


def merge_lists(
    bodies: Sequence[bytes], name: str, is_own: Callable[[dict[str, Any]], bool]
) -> dict[str, bytes]:
    """The fields of one document out of those of all rounds: the list under `name` without our
    calls, and the usage."""
    raws = [
        raw for body in bodies for raw in json_bytes.elements_of(json_bytes.member_of(body, name))
    ]
    return {
        name: json_bytes.array_of(raw for raw in raws if not is_own(json_bytes.lenient_object(raw)))
    } | merge_usage(bodies)


def merge_usage(bodies: Sequence[bytes]) -> dict[str, bytes]:
    """The usage of several documents as a field of the last; empty if it has none, or is the only
    one."""
    usages = [json_bytes.lenient_object(body).get("usage") for body in bodies]
    if len(bodies) == 1 or not json_bytes.as_object(usages[-1]):
        return {}
    return {"usage": with_sum(json_bytes.member_of(bodies[-1], "usage"), usages)}


def one_after_another(
    rounds: Sequence[Round], answers: Sequence[Sequence[bytes]]
) -> Iterator[bytes]:
    """The model's messages and our answers, round by round."""
    for each, answered in zip(rounds, answers, strict=False):
        yield from (*each.raws, *answered)


def in_one_message(
    rounds: Sequence[Round],
    answers: Sequence[Sequence[bytes]],
    links: Sequence[Link],
    strip: Callable[[Round], bytes],
) -> tuple[Hidden, ...]:
    """The hidden messages if the client has one message for the whole turn.

    `strip` returns a round's message without our calls; empty if nothing sendable is left.
    """
    seen = next((link for link in links if not link.message.aside), None)
    if seen is None or not any(each.calls for each in rounds):
        return ()
    *earlier, last = rounds
    if last.calls and last.foreign and len(answers) == len(rounds):
        before = tuple(one_after_another(earlier, answers))
        return (Hidden(seen.chain, before, last.raws[0], tuple(answers[-1])),)
    # Trailing rounds with nothing left are dropped: a conversation cannot go on from unanswered
    # calls.
    shown = next((index for index in reversed(range(len(rounds))) if strip(rounds[index])), 0)
    if shown == 0:
        return ()  # the client has everything that the model wrote
    return (
        Hidden(seen.chain, tuple(one_after_another(rounds[:shown], answers)), strip(rounds[shown])),
    )


def _is_whole(data: bytes) -> bool:
    return data.strip() == b"[DONE]" or json_bytes.lenient(data) is not None


def read_reply(
    body: bytes, reader: Callable[[bytes], Reply], document: Callable[[bytes], Reply]
) -> Reply:
    """The reply that `reader` finds in the body. Never raises. An error answers a streaming request
    with a JSON `document`."""
    try:
        return document(body) if body.lstrip().startswith(b"{") else reader(body)
    except (RecursionError, Malformed):
        return Reply()  # nested too deeply for Python: no provider sends this


def error_of(tree: dict[str, Any]) -> str:
    """The most precise name that a provider gives to its error: a code, else a type. Empty if there
    is no error."""
    error = tree.get("error")
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        return ""
    details = json_bytes.as_object(error.get("details"))
    named = (details.get("error_code"), error.get("code"), error.get("type"), error.get("status"))
    return next((str(name) for name in named if isinstance(name, str | int) and name), "error")
