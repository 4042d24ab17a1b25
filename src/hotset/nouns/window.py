"""What is in the window: pages, the form in which each is shown, and the plan for one request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hotset.nouns.form import Cause as Cause, Form as Form  # noqa: PLC0414 - one vocabulary
from hotset.nouns.page import Chain, Kind, Role

if TYPE_CHECKING:  # of a plan alone
    from hotset.nouns.candidate import Candidate, Choice
    from hotset.nouns.handoff import AnyState


WHOLE = -1
"""The position of a message as a whole."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A page's place: its message, and its position among the message's parts. The same in every
    session and on any machine."""

    chain: Chain
    position: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A row of the page table: the exact form in which a page is sent. The latest row of a spot
    holds."""

    spot: Spot
    form: Form
    text: bytes
    """The bytes shown in place of the page; empty if the page is shown full, or gone without a
    stub."""
    tokens: int
    """Of what is shown."""
    whole: int
    """Tokens of the page itself."""
    cause: Cause
    time: float

    @property
    def is_back(self) -> bool:
        """Its whole message had left, and is in the window again."""
        return self.spot.position == WHOLE and self.form is Form.FULL


@dataclass(frozen=True, slots=True)
class Hidden:
    """What the model saw around and in place of one message that the client saw."""

    chain: Chain
    """The client's message."""
    before: tuple[bytes, ...] = ()
    """Messages before it, raw."""
    instead: bytes = b""
    """What replaces it, raw; empty if the client's own bytes are used."""
    after: tuple[bytes, ...] = ()
    """What answers our calls beside the client's: messages behind it, or blocks that join the
    message behind it."""
    asides: int = 0
    """How many of the asides right before the client's message belong behind `before`."""

    @property
    def is_text(self) -> bool:
        """It only adds something behind the client's message: no call of our tools."""
        return not self.before and not self.instead


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request that went out with this message as its last."""

    head: Chain
    time: float
    tokens: int = 0
    """Of its prompt, as estimated."""


@dataclass(frozen=True, slots=True)
class PageTable:
    """The page table of one line of a conversation."""

    shown: Mapping[Spot, Shown] = field(default_factory=dict)
    hidden: Mapping[Chain, Hidden] = field(default_factory=dict)
    sent: SentRequest | None = None
    """The latest request on this line."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A page at its place, weighed."""

    kind: Kind
    content: bytes
    tokens: int
    tool: str = ""
    call: str = ""
    media: str = "text/plain"

    @property
    def is_result(self) -> bool:
        """A call brought it: text, or an image."""
        return bool(self.call) and self.kind.family is not Kind.TOOL_CALL


@dataclass(frozen=True, slots=True)
class Line:
    """A message at its place, weighed."""

    chain: Chain
    role: Role
    pieces: tuple[Piece, ...]
    extra: int = 0
    """Tokens of what is around the pieces, and of hidden messages that come with it."""
    aside: bool = False
    turn: int = 0
    """The number of the turn with which it came, as far as it is known."""
    time: float = 0.0
    whole: int = field(init=False, repr=False, compare=False)
    """Tokens of it if it is shown whole. Worked out once, like the next: a client resends it with
    every call."""
    results: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """Which of its pieces are results of calls."""
    ids: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Of the calls that it makes or answers."""
    answers: bool = field(init=False, repr=False, compare=False)
    """It brings results of calls."""
    speaks: bool = field(init=False, repr=False, compare=False)
    """It has content besides results of calls."""

    def __post_init__(self) -> None:
        results = tuple(position for position, piece in enumerate(self.pieces) if piece.is_result)
        object.__setattr__(self, "whole", self.extra + sum(piece.tokens for piece in self.pieces))
        object.__setattr__(self, "results", results)
        object.__setattr__(self, "ids", tuple(piece.call for piece in self.pieces if piece.call))
        object.__setattr__(
            self, "answers", self.role is Role.TOOL or (self.role is Role.USER and bool(results))
        )
        object.__setattr__(
            self,
            "speaks",
            self.role is not Role.TOOL and not all(piece.call for piece in self.pieces),
        )


@dataclass(frozen=True, slots=True)
class Stub:
    """What left the window together and is brought back by one call."""

    id: str
    kind: str
    """What it mostly holds: conversation, research, code_analysis, tool_results or
    plan_discussion."""
    spots: tuple[Spot, ...]
    turns: tuple[int, int]
    tokens: int
    time: float
    topics: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    summary: str = ""
    """One line on what was found or done there."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How one request is to be sent."""

    shown: Mapping[Spot, Shown]
    """Every page of the request that is not shown full, and every page whose form was decided
    now."""
    fresh: tuple[Shown, ...] = ()
    """The rows that are new: decided by this plan."""
    stubs: tuple[Stub, ...] = ()
    """What left the window with this plan."""
    tokens: int = 0
    """Of the prompt as planned, without the fixed part (system text and tools)."""
    whole: int = 0
    """Of the prompt if everything were sent."""
    kept: int = 0
    """Tokens at the front that are byte for byte as in the latest request of this line."""
    broke: Cause | None = None
    """Why the prefix does not extend the latest request's; None if it does."""
    handoff: AnyState | None = None
    """The state with which a successor continues from this request on; None if none begins."""
    choices: tuple[Choice, ...] = ()
    """What was decided about each candidate of the sources."""

    @property
    def taken(self) -> tuple[Candidate, ...]:
        return tuple(each.candidate for each in self.choices if each.is_taken)
