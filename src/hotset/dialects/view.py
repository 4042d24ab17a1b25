"""What a client sees of a turn in which the model called tools of ours: one reply, as if it had never called them.

Such a turn is several calls upstream, *rounds*. Events are relayed at once and as they came, but for three things: what belongs
to a call of ours is left out, what counts blocks or events is counted on, and the end of each round waits until it is known
whether it is the end of the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from hotset.dialects import parts, wire
from hotset.dialects.frames import Frame, Frames
from hotset.dialects.splice import fields, splice
from hotset.errors import Malformed
from hotset.nouns.link import Link
from hotset.nouns.message import Part, Reply, Span, Usage
from hotset.nouns.page import Kind
from hotset.nouns.window import Hidden

COMMENT = b": keep-alive\n\n"
"""A line of a stream that every reader skips."""

OWN_SEARCH = ":tool_search"
"""Stands among the names of our tools where the provider's own search for tools is ours to answer. No tool is called so."""


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call of one of our tools."""

    id: str
    name: str
    arguments: bytes
    """As the model wrote them: not necessarily JSON."""
    searches: bool = False
    """It is a call of the provider's own search for tools, which is answered by tools and not by words."""


@dataclass(frozen=True, slots=True)
class Round:
    """One upstream reply of a turn, as the model said it."""

    calls: tuple[OwnCall, ...] = ()
    foreign: bool = False
    """It also calls tools that only the client can run: the turn is the client's."""
    raws: tuple[bytes, ...] = ()
    """The model's messages, whole, in the form in which they are sent back upstream."""
    usage: Usage = field(default_factory=Usage)
    complete: bool = False
    stop: str = ""
    id: str = ""
    """The provider's own name for it. Of the last round it names what the provider remembers of the whole turn."""

    @property
    def asks(self) -> bool:
        """The model waits for our answers, and for nothing else: the turn can go on."""
        return self.complete and bool(self.calls) and not self.foreign and self.stop not in _CUT_SHORT


_CUT_SHORT = frozenset(
    {
        "max_tokens",
        "model_context_window_exceeded",
        "pause_turn",
        "refusal",
        "length",
        "content_filter",
        "max_output_tokens",
    }
)
"""The reply ended before the model was done: its last call may be half a call, and to go on is the client's decision."""


class View(Protocol):
    """What a client sees of one turn.

    - A turn without a call of ours is relayed byte for byte, each event as soon as it is whole; its end waits for `close`.
    - Nothing is shown of our calls, nor that there was more than one round.
    - What breaks off breaks off for the client too: an end that did not come is never made up.
    """

    @property
    def ended(self) -> bool:
        """The mark that ends this round's stream has come; what may come behind it says nothing more."""
        ...

    @property
    def stopped(self) -> bool:
        """How this round ended has come, and nobody waits for an answer of ours to it; only counts and an end mark may follow."""
        ...

    def take(self, chunk: bytes) -> bytes:
        """Bytes of the upstream's reply as they come, to bytes for the client now. After `round`: of the next round."""
        ...

    def round(self) -> Round:
        """The upstream's reply has ended, or broke off. Called once for each."""
        ...

    def close(self) -> bytes:
        """The turn is over with the latest round: the rest of what the client gets of it."""
        ...

    def fail(self, status: int, body: bytes) -> bytes:
        """The upstream refused a later round, or broke off in it: what the client gets instead of the rest."""
        ...

    @property
    def pulse(self) -> bytes:
        """What shows a waiting client that the turn goes on and says nothing; empty where the form has no such thing."""
        ...

    def hidden(self, answers: Sequence[Sequence[bytes]], links: Sequence[Link]) -> tuple[Hidden, ...]:
        """What later requests must be given back, for each message that the client will send again.

        `answers` are the raw messages that answered each round, as far as rounds were answered; `links` the messages that
        `dialect.read` finds in what the client saw, each at its place. Nothing where the client saw nothing of the turn.
        """
        ...


class Editor(Protocol):
    """How one dialect's events are shown. The bytes that `show` and `end` give are all that the client gets."""

    plain: bool
    """Nothing of this turn was left out or changed so far."""
    ended: bool
    pulse: bytes

    @property
    def holds(self) -> bool:
        """An end is held back, and none of our tools was called in this round."""
        ...

    def begin(self) -> None:
        """Another round begins; the end that was held back is no end."""
        ...

    def show(self, frame: Frame) -> bytes: ...

    def end(self, last: Round) -> bytes:
        """What was held back, as the end of the turn."""
        ...

    def error(self, status: int, body: bytes) -> bytes: ...

    def observe(self, reply: Reply) -> Round: ...


Conceal = Callable[[Sequence[Round], Sequence[Sequence[bytes]], Sequence[Link]], tuple[Hidden, ...]]
Read = Callable[[bytes], Reply]
Refuse = Callable[[int, str], bytes]
"""An error body in the dialect's own form, from a status and what is to be said."""
Observe = Callable[[Reply, bytes], Round]
Merge = Callable[[Sequence[bytes], Round], bytes]
"""One document out of those of all rounds."""


class StreamView:
    def __init__(self, editor: Editor, read: Read, conceal: Conceal) -> None:
        self._editor = editor
        self._read = read
        self._conceal = conceal
        self._frames = Frames()
        self._got: list[bytes] = []
        self._late = b""
        self._rounds: list[Round] = []
        self._is_over = False

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
        self._got.append(chunk)
        return b"".join(map(self._editor.show, self._frames.feed(chunk)))

    def round(self) -> Round:
        self._go_on()
        self._is_over = True
        rest = self._frames.rest()
        # Half an event is of no use to anybody; it is only relayed where everything is.
        if rest is not None and (self._editor.plain or _is_whole(rest.data)):
            self._late += self._editor.show(rest)
        self._rounds.append(self._editor.observe(self._read(b"".join(self._got))))
        return self._rounds[-1]

    def close(self) -> bytes:
        last = self._rounds[-1] if self._is_over else self.round()
        return self._late + self._editor.end(last)

    def fail(self, status: int, body: bytes) -> bytes:
        return self._editor.error(status, body)

    def hidden(self, answers: Sequence[Sequence[bytes]], links: Sequence[Link]) -> tuple[Hidden, ...]:
        return self._conceal(self._rounds, answers, links)

    def _go_on(self) -> None:
        if self._is_over:
            self._is_over = False
            self._got.clear()
            self._editor.begin()


class DocumentView:
    """A document is of use only whole: the client gets everything when the turn is over."""

    ended = stopped = False
    pulse = b""

    def __init__(self, read: Read, observe: Observe, merge: Merge, conceal: Conceal) -> None:
        self._read = read
        self._observe = observe
        self._merge = merge
        self._conceal = conceal
        self._got: list[bytes] = []
        self._bodies: list[bytes] = []
        self._rounds: list[Round] = []
        self._is_over = False

    def take(self, chunk: bytes) -> bytes:
        self._is_over = False
        self._got.append(chunk)
        return b""

    def round(self) -> Round:
        self._is_over = True
        body = b"".join(self._got)
        self._got.clear()
        self._bodies.append(body)
        self._rounds.append(self._observe(self._read(body), body))
        return self._rounds[-1]

    def close(self) -> bytes:
        last = self._rounds[-1] if self._is_over else self.round()
        is_plain = len(self._rounds) == 1 and not last.calls
        if is_plain or not last.complete:  # what is no whole reply is for the client to judge, as it came
            return self._bodies[-1]
        return self._merge([wire.salvaged(body)[0] for body in self._bodies], last)

    def fail(self, status: int, body: bytes) -> bytes:
        del status  # nothing was sent yet: it can still be the reply's own
        return body

    def hidden(self, answers: Sequence[Sequence[bytes]], links: Sequence[Link]) -> tuple[Hidden, ...]:
        return self._conceal(self._rounds, answers, links)


@dataclass(slots=True)
class Places:
    """Where the things that an upstream numbers stand for the client, whose numbers go on from round to round."""

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
        """Something new has this number in this round."""
        if hidden:
            self._hidden.add(index)
        else:
            self._hidden.discard(index)

    def of(self, index: int) -> int | None:
        """None for what is hidden. What once has a place keeps it."""
        if index in self._hidden:
            return None
        if index not in self._known:
            place = self._base + index - sum(each < index for each in self._hidden)
            self._known[index] = self._next if place in self._known.values() else place
            self._next = max(self._next, self._known[index] + 1)
        return self._known[index]


def observed(reply: Reply, ours: Container[str], raws: tuple[bytes, ...], *, foreign: bool) -> Round:
    calls = tuple(
        OwnCall(part.call, part.tool, part.content) for message in reply.messages for part in message.parts if is_ours(part, ours)
    )
    return Round(calls, foreign, raws, reply.usage, reply.complete, reply.stop, reply.response_id)


def is_ours(part: Part, ours: Container[str]) -> bool:
    return is_call(part) and part.tool in ours and part.media == parts.JSON


def is_call(part: Part) -> bool:
    return part.kind.family is Kind.TOOL_CALL


def exchanged(raw: bytes, values: Mapping[str, bytes]) -> bytes:
    """A JSON object with other values for some of its members, or with these members as well; everything else as it is."""
    try:
        known = fields(raw)
    except Malformed:  # a member that comes twice: one of them is enough
        return wire.encode({**wire.as_object(wire.lenient(raw)), **{name: msgspec.Raw(value) for name, value in values.items()}})
    edits = [(known[name].value, value) for name, value in values.items() if name in known]
    new = b",".join(b'"%s":%s' % (name.encode(), value) for name, value in values.items() if name not in known)
    if new:
        end = raw.rindex(b"}")
        edits.append((Span(end, end), b"," + new if known else new))
    return splice(raw, edits)


def summed(before: Any, now: Any) -> Any:
    """Counts of two rounds together; what is no count is the later one's."""
    match before, now:
        case dict(), dict():
            return {key: summed(before.get(key), now.get(key)) for key in {**before, **now}}
        case ((int() | float()), (int() | float())) if not isinstance(before, bool) and not isinstance(now, bool):
            return before + now
        case _:
            return before if now is None else now


def with_sum(usage: bytes, rounds: Sequence[Any]) -> bytes:
    """The last round's usage as it is, with what all rounds were billed for together as its member `hotset`.

    A client takes its usage for the size of its context, and the last prompt holds the earlier rounds already.
    """
    total: Any = {}
    for each in rounds:
        total = summed(total, wire.as_object(each))
    return exchanged(usage, {"hotset": wire.encode({"calls": len(rounds), **total})})


def one_after_another(rounds: Sequence[Round], answers: Sequence[Sequence[bytes]]) -> Iterator[bytes]:
    """What the model said and was answered, round by round."""
    for said, answered in zip(rounds, answers, strict=False):
        yield from (*said.raws, *answered)


def in_one_message(
    rounds: Sequence[Round], answers: Sequence[Sequence[bytes]], links: Sequence[Link], strip: Callable[[Round], bytes]
) -> tuple[Hidden, ...]:
    """What is hidden where the client holds one message for the whole turn.

    `strip` gives what a round said beside our calls; empty where that is nothing which can be sent.
    """
    seen = next((link for link in links if not link.message.aside), None)
    if seen is None or not any(each.calls for each in rounds):
        return ()
    *earlier, last = rounds
    if last.calls and last.foreign and len(answers) == len(rounds):
        before = tuple(one_after_another(earlier, answers))
        return (Hidden(seen.chain, before, last.raws[0], tuple(answers[-1])),)
    # Rounds at the end of which nothing is left leave no trace: a conversation cannot go on from calls without answers.
    said = next((index for index in reversed(range(len(rounds))) if strip(rounds[index])), 0)
    if said == 0:
        return ()  # what the client holds is all that the model said
    return (Hidden(seen.chain, tuple(one_after_another(rounds[:said], answers)), strip(rounds[said])),)


def _is_whole(data: bytes) -> bool:
    return data.strip() == b"[DONE]" or wire.lenient(data) is not None
