"""Checkpoints: a session's prompt passed a quarter, or half, of its window for the first time."""

from __future__ import annotations

import asyncio

from hotset.nouns.turn import Event, TurnRef
from hotset.runtime.machine import Machine
from hotset.runtime.planner import PlannedTurn
from hotset.runtime.record import Record
from hotset.store.port import Store

CHECKPOINT = "Checkpoint"
MARKS = (25, 50)
"""Percent of the window: early enough to summarise pages before they have to leave."""

_PLACE_SECONDS = 10.0
"""How long a checkpoint waits until its turn is on disk."""


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
        machine.background.spawn(
            _keep(marks, now, planned.knobs.window, record, machine), "keep a checkpoint"
        )


async def _keep(
    marks: tuple[int, ...], tokens: int, window: int, record: Record, machine: Machine
) -> None:
    ref = await record.ref(_PLACE_SECONDS)
    store = machine.keeper.store
    if ref is None or store is None:
        return
    known = await asyncio.to_thread(_known_marks, store, ref)
    for mark in marks:
        if mark not in known:
            detail: dict[str, str | int | float] = {
                "mark": mark,
                "tokens": tokens,
                "window": window,
            }
            await machine.keeper.happened(
                Event(CHECKPOINT, record.sent.opened.time, ref.session, ref.number, detail)
            )


def _known_marks(store: Store, ref: TurnRef) -> frozenset[object]:
    """Marks that the session passed before: after pages left, its prompt may pass them again."""
    return frozenset(
        event.detail.get("mark") for event in store.events(ref.session) if event.name == CHECKPOINT
    )
