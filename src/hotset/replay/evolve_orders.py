"""What a person orders about what evolution found: the events that adopt it or take it back, or why
that is refused. Pure: the command line and the dashboard write what is decided here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from hotset.errors import Conflict, NotFound
from hotset.learn.events import BY_EVOLUTION, BY_PERSON, Change, ChangeDecision
from hotset.learn.state import ChangeRow, LearnState, Stage, frozen_names, rows
from hotset.nouns.knobs import Knobs
from hotset.replay.evolve import (
    EvolveResult,
    PartResult,
    changes_on_top,
    event_verdict,
    moved_knobs,
)

_MOST_NAMED = 3

Hint = Callable[[str], str]
"""A command of hotset as a person types it for this project."""


@dataclass(frozen=True, slots=True)
class KnobsNow:
    """What holds in a project now."""

    state: LearnState
    knobs: Knobs
    """In force."""
    pinned: Collection[str]
    """Those that a person set in a file."""


@dataclass(frozen=True, slots=True)
class Adoption:
    """What adopting does."""

    ids: tuple[str, ...]
    """Changes that new sessions get; those that have been in force before are left out."""
    reasons: tuple[str, ...]
    """Why others do not."""
    events: tuple[tuple[str, Struct], ...]
    in_force: frozenset[str]
    """Changes that were in force before, whoever proposed them."""


def decide_adoption(result: EvolveResult | None, id: str, here: KnobsNow, hint: Hint) -> Adoption:
    """Adopt the change of this id, or all that passed. Raises `NotFound`, or `Conflict` where
    nothing can be adopted."""
    in_force = frozenset(row.id for row in rows(here.state) if row.stage == Stage.ADOPTED)
    ids: list[str] = []
    reasons: list[str] = []
    events: list[tuple[str, Struct]] = []
    for part in _adoptable(result, id, hint):
        if part.change is None or part.change.id in in_force:
            continue
        if why := why_not_adopted(part.change, part, here, hint):
            reasons.append(f"{part.change.id}: {why}")
        else:
            decision = ChangeDecision(part.change.id, part.change.why, by=BY_PERSON)
            ids.append(part.change.id)
            events += [
                ("ChangeProposed", part.change),
                ("ChangeGated", event_verdict(part)),
                ("ChangeAdopted", decision),
            ]
    if reasons and not ids:
        raise Conflict("; ".join(reasons))
    return Adoption(tuple(ids), tuple(reasons), tuple(events), in_force)


def _adoptable(result: EvolveResult | None, id: str, hint: Hint) -> list[PartResult]:
    """What passed and is kept. Raises `NotFound`, or `Conflict` where nothing did."""
    if result is None:
        raise NotFound(f"no search is kept; begin with: {hint('evolve')}")
    wanted = [part for known, part in result.changes.items() if id in ("", known)]
    if id and not wanted:
        known = ", ".join(result.changes) or "none"
        raise NotFound(f"no change {id} is kept of a search; there are: {known}")
    passed = [part for part in wanted if part.passed]
    if not passed:
        reasons = "; ".join(f"{part.part}: {part.why}" for part in wanted or result.parts)
        raise Conflict(f"nothing can be adopted: {reasons}")
    return passed


def why_not_adopted(change: Change, part: PartResult, here: KnobsNow, hint: Hint) -> str:
    """Why a change that passed cannot be adopted now; empty if it can."""
    if why := _why_frozen(change.knobs, here.state, hint):
        return why
    for name in change.knobs:
        if any(name == each or name.startswith(f"{each}.") for each in here.pinned):
            return f"{name} is set by a person, in a file or by the chosen profile; remove it there"
    moved = moved_knobs(part, here.knobs)
    if moved:
        told = [f"{name} was {then}, is {now}" for name, (then, now) in moved.items()]
        more = f" and {len(told) - _MOST_NAMED} more" if len(told) > _MOST_NAMED else ""
        return (
            "it was measured with other knobs than those in force now: "
            f"{', '.join(told[:_MOST_NAMED])}{more}; search again: {hint('evolve')}"
        )
    return ""


def _why_frozen(knobs: Collection[str], state: LearnState, hint: Hint) -> str:
    """That one of these is frozen, and the command that ends it; empty if none is."""
    if state.all_frozen:
        return f"every knob is frozen; unfreeze them with: {hint('learn unfreeze')}"
    for name in knobs:
        if frozen := frozen_names(state, name):
            undo = hint(f"learn unfreeze {' '.join(frozen)}")
            return f"{name} is frozen, so nothing learned changes it; unfreeze it with: {undo}"
    return ""


@dataclass(frozen=True, slots=True)
class Reversal:
    """What taking back does."""

    rows: tuple[ChangeRow, ...]
    """The changes that are taken back, the latest first."""
    events: tuple[tuple[str, Struct], ...]


def decide_reversal(id: str, state: LearnState, hint: Hint) -> Reversal:
    """Take back the change of this id, or all that evolution put in force. Raises `NotFound`, or
    `Conflict` where what was in force before would not be in force again."""
    own = [
        row
        for row in rows(state)
        if row.by == BY_EVOLUTION and row.stage == Stage.ADOPTED and id in ("", row.id)
    ]
    if id and not own:
        raise NotFound(f"{id} is not in force by `hotset evolve`")
    _check_reversal(own, state, hint)
    decisions = [ChangeDecision(row.id, "a person took it back", by=BY_PERSON) for row in own]
    return Reversal(tuple(own), tuple(("ChangeRolledBack", each) for each in decisions))


def why_not_taken_back(id: str, state: LearnState, hint: Hint) -> str:
    """Why a change in force cannot be taken back now; empty if it can."""
    try:
        decide_reversal(id, state, hint)
    except (Conflict, NotFound) as refused:
        return str(refused)
    return ""


def _check_reversal(own: Sequence[ChangeRow], state: LearnState, hint: Hint) -> None:
    every, ids = rows(state), {row.id for row in own}
    for row in own:
        for later in changes_on_top(row, every):
            if later.id not in ids:
                undo = hint(later.undo.removeprefix("hotset "))
                raise Conflict(
                    f"{row.id} stays: {later.id} was adopted later and rests on it; take that back "
                    f"first: {undo}"
                )
        held = [name for name in row.knobs if frozen_names(state, name)]
        if why := _why_frozen(held, replace(state, frozen_at=0), hint):
            raise Conflict(f"{row.id} stays: {why}")
