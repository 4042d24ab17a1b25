"""Recorded sessions as an agent wrote them, as the window sees them, and what each tool call copies
from earlier messages.

`hotset.replay.formats.read` makes a `RecordedSession` out of files; nothing here knows the formats
of transcripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hotset.dialects.parts import kind_of_call, kind_of_result
from hotset.nouns.message import Usage
from hotset.nouns.page import Chain, Kind, Role
from hotset.nouns.window import Line, Piece
from hotset.tokens import count
from hotset.window.arguments import spoken
from hotset.window.calibrate import prior
from hotset.window.names import names, split_name_lists


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A tool call in an assistant's message."""

    id: str
    """Unique in its session; derived from the call's position if the record has none."""
    name: str
    arguments: str
    """As recorded: JSON for most tools, plain text for free-form ones."""


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """One message. A reply is one message: its text, thinking and calls together."""

    role: Role
    text: str
    calls: tuple[RecordedCall, ...] = ()
    call: str = ""
    """For a tool's message, the id of the call that it answers."""
    tool: str = ""
    """For a tool's message, the name of the tool."""
    thinking: str = ""
    time: float | None = None
    """Unix seconds."""
    usage: Usage | None = None
    """Tokens that the provider reported for the reply."""
    compaction: bool = False
    """True for a summary that replaces everything before it: the prompt starts over here."""
    by_client: bool = False
    """True for a user's message that the record says the client wrote by itself."""


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """One conversation, from its first message to its last."""

    id: str
    set: str
    """Name of the group in reports: from the record, else from its file or folder."""
    model: str
    messages: tuple[RecordedMessage, ...]
    fixed_tokens: int = 0
    """Tokens of system text and tool schemas that were sent but are not among the messages."""
    agent: str = ""
    """The client's name, as it calls itself on the wire; empty if the format does not tell."""
    folder: str = ""
    """The folder that it worked in, where the record names it."""
    is_subagent: bool = False
    """True if another agent, not a person, wrote its prompts."""


_AROUND = 4
"""Tokens that a message takes in addition to its text."""


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """Part of a session, from its beginning or a compaction up to the next compaction or its
    end."""

    id: str
    set: str
    model: str
    fixed: int
    """Tokens of system text and tools that the record lacks."""
    lines: tuple[Line, ...]

    @property
    def calls(self) -> tuple[int, ...]:
        """Indexes of the replies; each is one call of the model."""
        return tuple(index for index, line in enumerate(self.lines) if line.role is Role.ASSISTANT)

    @property
    def peak(self) -> int:
        """Tokens of the whole conversation."""
        return self.fixed + sum(
            line.extra + sum(piece.tokens for piece in line.pieces) for line in self.lines
        )


def split_conversations(recorded: RecordedSession) -> Iterator[RecordedConversation]:
    """Split a session at its compactions."""
    lines = _lines(recorded)
    fixed = recorded.fixed_tokens or _unrecorded_tokens(recorded, lines)
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


def _unrecorded_tokens(recorded: RecordedSession, lines: list[Line]) -> int:
    """Tokens that the provider counted for a call minus those on record: the tools, and hidden
    system text.

    The lower quartile over the calls, or the first call's if that is less: unrecorded reasoning
    adds to later calls, and unrecorded history to the first calls of a resumed session.
    """
    before = 0
    surplus: list[int] = []
    for message, line in zip(recorded.messages, lines, strict=True):
        if message.compaction:
            before = 0
        usage = message.usage
        if usage is not None and (billed := usage.input + usage.cache_read + usage.cache_write):
            surplus.append(round(billed / prior(recorded.model).ratio) - before)
        before += line.whole
    if not surplus:
        return 0
    return max(0, min(surplus[0], sorted(surplus)[len(surplus) // 4]))


def _lines(recorded: RecordedSession) -> list[Line]:
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
                arguments = call.arguments.encode("utf-8", "replace")
                inline = bool(arguments) and call.arguments in message.text
                yield Piece(
                    kind_of_call(call.name),
                    arguments,
                    0 if inline else count(arguments) + count(call.name),
                    call.name,
                    call.id,
                )
        case Role.SYSTEM:
            yield Piece(Kind.SYSTEM, text, count(text))
        case _:
            yield Piece(Kind.PROMPT, text, count(text))


_SHORTEST_LINE = 24
_NUMBERED = re.compile(r"^\s*\d+(?:→|\t|:|\||-)\s?")


@dataclass(frozen=True, slots=True)
class TextUnits:
    """The names and lines of a text: the units that actions copy."""

    names: frozenset[str]
    lines: frozenset[str]
    listed: frozenset[str] = frozenset()
    """Names that hotset lists without what was said of them."""

    @classmethod
    def of(cls, text: str) -> TextUnits:
        """Lines that a diff adds count with and without their `+`."""
        lines = frozenset(_copied_lines(text))
        return cls(
            frozenset(names(text)), lines | {line[1:].strip() for line in lines if line[0] == "+"}
        )

    @classmethod
    def of_shown(cls, text: str) -> TextUnits:
        """The same of a text that hotset wrote: what only a list of names has is kept apart."""
        shown, listed = split_name_lists(text)
        return replace(cls.of(shown), listed=frozenset(names(listed))) if listed else cls.of(shown)

    def holds(self, need: str) -> bool:
        return need in self.names or need in self.lines

    def hints(self, need: str) -> bool:
        return need in self.listed


@dataclass(frozen=True, slots=True)
class NeededAction:
    """A tool call, and where each string that it copies appeared before."""

    message: int
    """Index of the message that carries it."""
    needs: dict[str, tuple[int, ...]]
    """Maps each copied name or line to the messages that contain it, in order."""


def find_actions(lines: Sequence[Line], units: Sequence[TextUnits]) -> Iterator[NeededAction]:
    """Yield every tool call with what it copies from earlier messages."""
    where: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        for piece in line.pieces:
            if piece.kind.family is Kind.TOOL_CALL:
                words = spoken(piece.content)
                needs = {
                    need: tuple(where[need])
                    for need in sorted({*names(words), *_copied_lines(words)})
                    if need in where
                }
                yield NeededAction(index, needs)
        for need in units[index].names | units[index].lines:
            where.setdefault(need, []).append(index)


def _copied_lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        bare = _NUMBERED.sub("", line).strip()
        if len(bare) >= _SHORTEST_LINE:
            yield bare
