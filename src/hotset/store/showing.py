"""The page table as a store keeps it: content by its address, and with each row which turn decided
it, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hotset.nouns.page import Chain, Digest, SessionId, digest
from hotset.nouns.turn import Turn
from hotset.nouns.window import Cause, Form, Hidden, SentRequest, Shown, Spot


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A `Shown` as a row. Its place is the spot alone: sessions that share a past share its
    forms."""

    session: SessionId
    turn: int
    """Session and turn say who decided it; nothing is found by them."""
    step: int
    """Grows with every change of the page table in a store; of two rows for one place the one with
    the higher step holds."""
    chain: Chain
    position: int
    form: Form
    text: Digest | None
    """The address of what is shown in place of the page; None where that is nothing."""
    tokens: int
    whole: int
    cause: Cause
    time: float


@dataclass(frozen=True, slots=True)
class HiddenRow:
    """A `Hidden` as a row."""

    session: SessionId
    turn: int
    step: int
    chain: Chain
    before: tuple[Digest, ...]
    instead: Digest | None
    after: tuple[Digest, ...]
    asides: int

    @property
    def content(self) -> tuple[Digest, ...]:
        return (*self.before, *((self.instead,) if self.instead else ()), *self.after)


@dataclass(frozen=True, slots=True)
class SentRow:
    """A `SentRequest` as a row."""

    session: SessionId
    turn: int
    step: int
    head: Chain
    time: float
    tokens: int


Read = Callable[[Digest], bytes]
"""The content at an address."""


def shown_row(shown: Shown, turn: Turn, step: int) -> ShownRow:
    return ShownRow(
        session=turn.session,
        turn=turn.number,
        step=step,
        chain=shown.spot.chain,
        position=shown.spot.position,
        form=shown.form,
        text=digest(shown.text) if shown.text else None,
        tokens=shown.tokens,
        whole=shown.whole,
        cause=shown.cause,
        time=shown.time,
    )


def read_shown(row: ShownRow, read: Read) -> Shown:
    text = read(row.text) if row.text is not None else b""
    return Shown(
        Spot(row.chain, row.position), row.form, text, row.tokens, row.whole, row.cause, row.time
    )


def hidden_row(hidden: Hidden, turn: Turn, step: int) -> HiddenRow:
    return HiddenRow(
        session=turn.session,
        turn=turn.number,
        step=step,
        chain=hidden.chain,
        before=tuple(map(digest, hidden.before)),
        instead=digest(hidden.instead) if hidden.instead else None,
        after=tuple(map(digest, hidden.after)),
        asides=hidden.asides,
    )


def read_hidden(row: HiddenRow, read: Read) -> Hidden:
    instead = read(row.instead) if row.instead is not None else b""
    return Hidden(
        row.chain, tuple(map(read, row.before)), instead, tuple(map(read, row.after)), row.asides
    )


def sent_row(sent: SentRequest, turn: Turn, step: int) -> SentRow:
    return SentRow(turn.session, turn.number, step, sent.head, sent.time, sent.tokens)


def read_sent(row: SentRow) -> SentRequest:
    return SentRequest(row.head, row.time, row.tokens)
