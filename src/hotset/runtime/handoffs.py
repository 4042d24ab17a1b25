"""Handoffs of a project: what a state needs of the store, what is kept of each, what each cost, and
how they are listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import msgspec

from hotset.dialects.port import Dialect
from hotset.errors import HotsetError, Malformed
from hotset.nouns.deposit import Deposit, NoteWritten, PageAdded
from hotset.nouns.handoff import (
    HANDOFF,
    HANDOFF_DUE,
    HANDOFFS,
    PROGRAM_NOTES,
    AgentNote,
    AgentSnapshot,
    AnyState,
    HandoffBrief,
    HandoffState,
    StateItem,
    StateSource,
)
from hotset.nouns.knobs import Knobs, StateName
from hotset.nouns.memory import MemoryKind, Standing
from hotset.nouns.note import Note
from hotset.nouns.page import Chain, Kind, SessionId
from hotset.nouns.turn import Event
from hotset.nouns.window import Hidden, Plan
from hotset.sealing import seal
from hotset.sources.port import Scene
from hotset.store.port import Store
from hotset.typed import decode
from hotset.window.handoff import HANDOFF_NOTE, decode_state, latest_index, parse_note

_KEEP_SECONDS = 5.0
"""How long a handoff waits until its note is on disk."""

_MOST_OTHERS = 12
_OTHERS_SECONDS = 86_400.0
"""An agent that was quiet for longer is no longer at work."""

_MOST_REMEMBERED, _LOOKED_AT = 8, 400  # memories of this session, among the newest
_KNOWS_OTHERS: frozenset[StateName] = frozenset({"orchestrator", "guide"})


def read_brief(
    scene: Scene,
    hidden: Mapping[Chain, Hidden],
    dialect: Dialect,
    turn_of: Callable[[Chain], int],
) -> HandoffBrief:
    """What a state needs beside the conversation: the agent's notes, its metadata, what it had
    remembered, and who else works on the project."""
    kind, store = scene.knobs.handoff.state, scene.store
    given = scene.received.metadata if scene.received is not None else {}
    session = store.origin(scene.received).session if scene.received is not None else None
    notes = [
        note
        for each in scene.links
        if each.chain in hidden
        for note in _notes_in(hidden[each.chain], dialect, kind, turn_of)
    ]
    notes += _program_notes(store, [each.chain for each in scene.links])
    notes.sort(key=lambda note: note.turn)
    return HandoffBrief(
        agent=scene.agent,
        session=session or "",
        task=given.get("task", ""),
        pipeline=given.get("pipeline", ""),
        user=given.get("user", ""),
        notes=tuple(notes),
        remembered=tuple(_remembered(store, session)) if session is not None else (),
        others=tuple(_others(store, session, scene.now)) if kind in _KNOWS_OTHERS else (),
    )


def _notes_in(
    hidden: Hidden, dialect: Dialect, kind: StateName, turn_of: Callable[[Chain], int]
) -> Iterator[AgentNote]:
    """The notes among what the client never saw of one reply."""
    for raw in (*hidden.before, hidden.instead, *hidden.after):
        if HANDOFF_NOTE.encode() not in raw:
            continue
        try:
            parts = dialect.understand(raw).parts
        except Malformed:  # blocks that join a message: answers
            continue
        for part in parts:
            if part.kind.family is Kind.TOOL_CALL and part.tool == HANDOFF_NOTE:
                try:
                    yield parse_note(part.content, kind, turn_of(hidden.chain))
                except Malformed:  # the model was told
                    continue


def _program_notes(store: Store, chains: Sequence[Chain]) -> Iterator[AgentNote]:
    """What programs said when they handed this conversation over, the oldest first."""
    kept = store.notes(PROGRAM_NOTES, chains)
    for chain in chains:
        for item in _items(kept.get(chain)):
            yield AgentNote(item.turn, {"context_notes": (item.text,)}, StateSource.PROGRAM)


def keep_program_note(item: StateItem, chain: Chain, scene: Scene) -> None:
    """Keep what a program says with a handoff: for the states that follow on this conversation, and
    as a page that searches find. A store that cannot take it costs later states the note, not the
    next one."""
    store, asked = scene.store, scene.received
    with suppress(HotsetError, TimeoutError):
        earlier = _items(store.notes(PROGRAM_NOTES, [chain]).get(chain))
        value = msgspec.json.encode([*earlier, item])
        deposits: list[Deposit] = [NoteWritten(PROGRAM_NOTES, chain, value, scene.now)]
        session = store.origin(asked).session if asked is not None else None
        if session is not None:
            text = f"context_notes: {item.text}".encode("utf-8", "replace")
            deposits.append(
                PageAdded(session, scene.agent, Kind.FINDING, text, scene.now, tool=HANDOFF_NOTE)
            )
        store.keep(*deposits).result(_KEEP_SECONDS)


def _items(note: Note | None) -> list[StateItem]:
    try:
        return decode(note.value or b"[]", list[StateItem]) if note is not None else []
    except msgspec.MsgspecError:
        return []


def _remembered(store: Store, session: SessionId) -> Iterator[str]:
    """What this session's agent or user had the memory keep."""
    kinds = frozenset({MemoryKind.FACT, MemoryKind.LEARNING})
    newest = store.newest_memories(kinds, frozenset({Standing.ACTIVE}))
    own = (
        each
        for each in islice(newest, _LOOKED_AT)
        if each.source.session == session and each.source.by != "rules"
    )
    for each in islice(own, _MOST_REMEMBERED):
        yield f"{each.text} [{each.id}]"


def _others(store: Store, session: SessionId | None, now: float) -> Iterator[AgentSnapshot]:
    """The other agents that worked on the project lately, the latest first."""
    recent = (each for each in store.recent_sessions() if each.id != session)
    for each in islice(recent, _MOST_OTHERS):
        bill = max(store.bills(each.id), key=lambda bill: bill.turn, default=None)
        if bill is not None and now - bill.time <= _OTHERS_SECONDS:
            prompt = round(bill.usage.prompt / max(1, bill.calls))
            yield AgentSnapshot(each.id, each.agent, prompt, bill.time, each.title)


def is_due(tokens: int, knobs: Knobs) -> bool:
    """True if a context of so many tokens is to be handed over."""
    return bool(knobs.handoff.at) and tokens >= knobs.handoff.at * knobs.window


def due_events(before: int, filled: int, knobs: Knobs, now: float) -> list[Event]:
    """The event that a reply brought the window to the share at which its agent hands over;
    `before` are the tokens of the prompt before it."""
    if not is_due(filled, knobs) or is_due(before, knobs):
        return []
    detail: dict[str, str | int | float] = {"tokens": filled, "window": knobs.window}
    return [Event(HANDOFF_DUE, now, None, 0, detail)]


def handoff_deposits(plan: Plan, scene: Scene, scale: float, prompt: int) -> list[Deposit]:
    """What is kept of the handoff that a request begins with: its state, and the record that
    searches find. `scale` are the provider's tokens per token of ours."""
    state = plan.handoff
    if state is None:
        return []
    row = next((each for each in plan.fresh if _holds(each.text, state)), None)
    text = row.text.decode("utf-8", "replace").partition("\n")[2] if row is not None else ""
    first, last = state.turns
    detail: dict[str, str | int | float] = {
        "index": state.index,
        "kind": _kind(state),
        "reason": state.reason,
        "agent": state.agent,
        "turns": f"{first}-{last}",
        "task": state.task_id,
        "pipeline": state.pipeline_id,
        "ids": " ".join(state.references),
        "tokens": sum(stub.tokens for stub in plan.stubs),
        "prompt": prompt,
        "window": scene.knobs.window,
        "state_tokens": round(scale * (row.tokens if row is not None else 0)),
        "rewritten": round(scale * max(0, plan.tokens - plan.kept)),
        "summary": seal(text).text,
    }
    value = seal(msgspec.json.encode(state).decode()).text.encode()
    return [
        NoteWritten(HANDOFFS, scene.turn, value),
        Event(HANDOFF, scene.now, None, 0, detail),
    ]


def _holds(text: bytes, state: HandoffState) -> bool:
    return latest_index(text) == state.index


def _kind(state: HandoffState) -> str:
    return str(state.__struct_config__.tag)


@dataclass(frozen=True, slots=True)
class SessionHandoff:
    """A handoff as it is listed."""

    session: SessionId
    turn: int
    """The successor's first turn."""
    index: int
    kind: str
    reason: str
    turns: str
    """What the predecessor did: first and last turn."""
    tokens: int
    """That left."""
    prompt: int
    """Tokens that the successor began with."""
    window: int
    rewritten: int
    """Tokens behind the part of the prompt that stayed as it was."""
    state_tokens: int
    time: float
    references: tuple[str, ...]
    text: str
    """The state as the successor read it, without secrets."""
    state: AnyState | None
    """None if it is not kept or cannot be read."""


def handoffs_in(store: Store, session: SessionId | None = None) -> Iterator[SessionHandoff]:
    """The handoffs of a session, or of all, in the order in which they came."""
    found = [each for each in store.events(session, HANDOFF) if each.session is not None]
    keys = {each.session: _turn_ids(store, each.session) for each in found if each.session}
    for event in found:
        assert event.session is not None
        yield _listed(store, event, event.session, keys[event.session].get(event.turn, ""))


def _turn_ids(store: Store, session: SessionId) -> dict[int, str]:
    return {turn.number: turn.id for turn in store.turns(session)}


def _listed(store: Store, event: Event, session: SessionId, key: str) -> SessionHandoff:
    def number(name: str) -> int:
        return int(event.detail.get(name, 0))

    def text(name: str) -> str:
        return str(event.detail.get(name, ""))

    return SessionHandoff(
        session=session,
        turn=event.turn,
        index=number("index"),
        kind=text("kind"),
        reason=text("reason"),
        turns=text("turns"),
        tokens=number("tokens"),
        prompt=number("prompt"),
        window=number("window"),
        rewritten=number("rewritten"),
        state_tokens=number("state_tokens"),
        time=event.time,
        references=tuple(text("ids").split()),
        text=text("summary"),
        state=_state(store, key),
    )


def _state(store: Store, key: str) -> AnyState | None:
    try:
        note = store.notes(HANDOFFS, [key]).get(key) if key else None
        return decode_state(note.value or b"") if note is not None else None
    except (HotsetError, msgspec.MsgspecError):
        return None
