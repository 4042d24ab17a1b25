"""What one turn's plan decided, as the store has it: the form of pages, every candidate, the knobs.

A candidate that was left out cannot be recovered later, so each is kept with its plan, by numbers
and names, without its text. The knobs under which a session runs are kept with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from hotset.files.lru import Lru
from hotset.nouns.candidate import Choice, OfferKind
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.knobs import Knobs
from hotset.nouns.note import Space
from hotset.nouns.page import ROOT, Chain
from hotset.nouns.turn import Turn
from hotset.nouns.window import Shown
from hotset.runtime.difference import lineage
from hotset.store.port import Store

_CANDIDATES = Space("candidates")
"""By the name of the turn."""

_KNOBS = Space("knobs")
"""By the session's first message: what differs from the default profile."""

_MOST_KNOWN = 2048


class DecidedCandidate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A candidate and what became of it."""

    source: str
    kind: str
    key: str
    slot: str
    tokens: int
    worth: float
    verdict: str
    is_taken: bool = False
    probability: float = 1.0


@dataclass(frozen=True, slots=True)
class TurnDecision:
    """What was decided for one turn."""

    candidates: tuple[DecidedCandidate, ...]
    forms: tuple[Shown, ...]
    """Rows of the page table that were decided with it."""
    knobs: dict[str, Any] | None
    """What differed from the default profile; None where nothing is known of it."""


class SessionKnobs:
    """The knobs of the sessions under way. Safe to use from several threads."""

    def __init__(self) -> None:
        self._kept: Lru[Chain, bytes] = Lru(count=_MOST_KNOWN)

    def note(self, first: Chain, knobs: Knobs) -> NoteWritten | None:
        """To be kept with a session's plan; None where it is kept already."""
        changed = msgspec.json.encode(knobs.changed(Knobs()), order="sorted")
        if self._kept.get(first) == changed:
            return None
        self._kept.put(first, changed)
        return NoteWritten(_KNOBS, first, changed)


def candidates_note(turn: str, choices: tuple[Choice, ...]) -> NoteWritten | None:
    """Every candidate of a plan; None where there was none to decide about."""
    logged = [_logged(each) for each in choices if each.candidate.kind is not OfferKind.TOOL]
    return NoteWritten(_CANDIDATES, turn, msgspec.json.encode(logged)) if logged else None


def read_decision(store: Store, turn: Turn) -> TurnDecision:
    """What was decided for a turn that is kept."""
    line = lineage(store.nodes(turn.session), turn)
    table = store.table(line, turn.ref)
    note = store.notes(_CANDIDATES, [turn.id]).get(turn.id)
    logged = msgspec.json.decode(note.value or b"[]", type=list[DecidedCandidate]) if note else []
    first = first_chain(store, turn)
    knobs = store.notes(_KNOBS, [first], turn.ref).get(first)
    return TurnDecision(
        tuple(logged),
        tuple(row for row in table.shown.values() if row.time == turn.started),
        msgspec.json.decode(knobs.value or b"{}", type=dict[str, Any]) if knobs else None,
    )


def first_chain(store: Store, turn: Turn) -> Chain:
    """The first message of a turn's line that later ones build on."""
    asides = {node.chain for node in store.nodes(turn.session) if node.aside}
    line = lineage(store.nodes(turn.session), turn)
    return next((chain for chain in line if chain not in asides), ROOT)


def _logged(choice: Choice) -> DecidedCandidate:
    each = choice.candidate
    return DecidedCandidate(
        each.source,
        each.kind,
        each.key,
        each.slot,
        each.tokens,
        round(each.worth, 4),
        choice.verdict,
        choice.is_taken,
        choice.probability,
    )
