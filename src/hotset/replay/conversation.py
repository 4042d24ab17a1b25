"""A recorded session as the window sees it: lines with weights, cut where its client had compacted
it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hotset.dialects.parts import kind_of_call, kind_of_result
from hotset.nouns.page import Chain, Kind, Role
from hotset.nouns.window import Line, Piece
from hotset.replay.recorded import Recorded, RecordedMessage
from hotset.tokens import count
from hotset.window.calibrate import prior

_AROUND = 4
"""Tokens that a message takes beside its text."""


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """One stretch of a session, from its beginning or a compaction to its end or the next one."""

    id: str
    set: str
    model: str
    fixed: int
    """Tokens of system text and tools that the record lacks."""
    lines: tuple[Line, ...]

    @property
    def calls(self) -> tuple[int, ...]:
        """The indexes of the replies: each is one call of the model."""
        return tuple(index for index, line in enumerate(self.lines) if line.role is Role.ASSISTANT)

    @property
    def peak(self) -> int:
        """Tokens of everything."""
        return self.fixed + sum(
            line.extra + sum(piece.tokens for piece in line.pieces) for line in self.lines
        )


def conversations(recorded: Recorded) -> Iterator[RecordedConversation]:
    lines = _lines(recorded)
    fixed = recorded.fixed_tokens or _unrecorded(recorded, lines)
    system = [line for line in lines[:1] if line.role is Role.SYSTEM]
    number, here = 0, []  # type: tuple[int, list[Line]]
    for message, line in zip(recorded.messages, lines, strict=True):
        if message.compaction and here:
            yield RecordedConversation(
                f"{recorded.id}#{number}", recorded.set, recorded.model, fixed, tuple(here)
            )
            number, here = number + 1, list(system)
        here.append(line)
    yield RecordedConversation(
        f"{recorded.id}#{number}", recorded.set, recorded.model, fixed, tuple(here)
    )


def _unrecorded(recorded: Recorded, lines: list[Line]) -> int:
    """What the provider counted for the first call, less what the record has of it: the tools, and
    hidden system text."""
    before = 0
    for message, line in zip(recorded.messages, lines, strict=True):
        usage = message.usage
        if usage is not None and (told := usage.input + usage.cache_read + usage.cache_write):
            return max(0, round(told / prior(recorded.model).ratio) - before)
        before += line.extra + sum(piece.tokens for piece in line.pieces)
    return 0


def _lines(recorded: Recorded) -> list[Line]:
    arguments: dict[str, tuple[str, bytes]] = {}
    lines: list[Line] = []
    for index, message in enumerate(recorded.messages):
        for call in message.calls:
            arguments[call.id] = (call.name, call.arguments.encode("utf-8", "replace"))
        tool, given = arguments.get(message.call, (message.tool, b""))
        pieces = tuple(_pieces(message, tool, given))
        lines.append(
            Line(
                Chain(f"{recorded.id}:{index}"),
                message.role,
                pieces,
                _AROUND,
                time=message.time or 0.0,
                turn=index,
            ),
        )
    return lines


def _pieces(message: RecordedMessage, tool: str, given: bytes) -> Iterator[Piece]:
    text = message.text.encode("utf-8", "replace")
    match message.role:
        case Role.TOOL:
            yield Piece(kind_of_result(tool, given), text, count(text), tool, message.call or "?")
        case Role.ASSISTANT:
            if text:
                yield Piece(Kind.RESPONSE, text, count(text))
            for call in message.calls:
                said = call.arguments.encode("utf-8", "replace")
                inline = bool(said) and call.arguments in message.text
                yield Piece(
                    kind_of_call(call.name),
                    said,
                    0 if inline else count(said) + count(call.name),
                    call.name,
                    call.id,
                )
        case Role.SYSTEM:
            yield Piece(Kind.SYSTEM, text, count(text))
        case _:
            yield Piece(Kind.PROMPT, text, count(text))
