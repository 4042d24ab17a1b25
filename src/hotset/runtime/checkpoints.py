"""Checkpoints: a session's prompt passed a quarter, or half, of its window for the first time. Each
keeps what is needed to go back to it, as a record that searches find."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from hotset.nouns.link import Link
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event, TurnRef
from hotset.runtime.machine import Machine
from hotset.runtime.planner import PlannedTurn
from hotset.runtime.record import Record
from hotset.sealing import seal
from hotset.store.port import Store
from hotset.text.clip import clip_prose
from hotset.window.summary import line_of
from hotset.window.work.worklog import read_work, work_lines

CHECKPOINT = "Checkpoint"
MARKS = (25, 50)
"""Percent of the window: early enough to summarise pages before they have to leave."""

_PLACE_SECONDS = 10.0
"""How long a checkpoint waits until its turn is on disk."""

_WANTED_ROOM, _WANTED = 300, 3  # characters of a prompt, and the latest of them


@dataclass(frozen=True, slots=True)
class SessionCheckpoint:
    """A checkpoint as it is listed."""

    session: SessionId
    turn: int
    mark: int
    """Percent of the window that the prompt had passed."""
    tokens: int
    window: int
    time: float
    text: str
    """What was wanted, done and open then; empty in older stores."""


def passed_marks(before: int, now: int, window: int) -> tuple[int, ...]:
    """The marks between the tokens of one prompt and the next."""
    return tuple(mark for mark in MARKS if 100 * before < mark * window <= 100 * now)


def note_checkpoints(planned: PlannedTurn, record: Record, machine: Machine) -> None:
    """Write the marks that this prompt passed to the store, in the background."""
    now = planned.bill.sent.prompt
    scale = now / planned.estimated if planned.estimated else 1.0
    before = round(planned.facts.table.sent.tokens * scale) if planned.facts.table.sent else 0
    marks = passed_marks(before, now, planned.knobs.window)
    if marks:
        machine.background.spawn(_keep(marks, now, planned, record, machine), "keep a checkpoint")


def checkpoints_in(store: Store, session: SessionId | None = None) -> Iterator[SessionCheckpoint]:
    """The checkpoints of a session, or of all, in the order in which they came."""
    for event in store.events(session):
        if event.name == CHECKPOINT and event.session is not None:
            mark, tokens, window = (
                int(event.detail.get(name, 0)) for name in ("mark", "tokens", "window")
            )
            text = str(event.detail.get("summary", ""))
            yield SessionCheckpoint(
                event.session,
                event.turn,
                mark,
                tokens,
                window,
                event.time,
                text,
            )


def checkpoint_text(links: tuple[Link, ...], mark: int, ref: TurnRef) -> str:
    """What was wanted, done and open when a prompt passed a mark, and how to go back there."""
    work = read_work([line_of(link) for link in links])
    wanted = (clip_prose(text, _WANTED_ROOM) for text in work.wanted[-_WANTED:])
    return "\n".join(
        (
            f"Checkpoint of session {ref.session} at turn {ref.number}: {mark} % of the window",
            *(f"Wanted: {text}" for text in wanted),
            *work_lines(work),
            f"Go back: hotset show {ref.session}, or get_turn_range(1, {ref.number})",
        )
    )


async def _keep(
    marks: tuple[int, ...], tokens: int, planned: PlannedTurn, record: Record, machine: Machine
) -> None:
    ref = await record.ref(_PLACE_SECONDS)
    store = machine.keeper.store
    if ref is None or store is None:
        return
    known = await asyncio.to_thread(_known_marks, store, ref)
    opened = record.sent.opened
    for mark in marks:
        if mark in known:
            continue
        text = await asyncio.to_thread(checkpoint_text, tuple(planned.links), mark, ref)
        detail: dict[str, str | int | float] = {
            "mark": mark,
            "tokens": tokens,
            "window": planned.knobs.window,
            "summary": seal(text).text,
        }
        await machine.keeper.happened(
            Event(CHECKPOINT, opened.time, ref.session, ref.number, detail)
        )


def _known_marks(store: Store, ref: TurnRef) -> frozenset[int]:
    """Marks that the session passed before: after pages left, its prompt may pass them again."""
    return frozenset(each.mark for each in checkpoints_in(store, ref.session))
