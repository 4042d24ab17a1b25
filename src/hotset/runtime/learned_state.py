"""The state of learning in a store: a fold over its events, and a note that holds it as of one of
them, so that a start need not read them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from hotset.learn.events import LEARN_EVENTS, encode_payload
from hotset.learn.state import EMPTY, LearnState, decide, decode_state, encode_state, fold
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.note import Scope, Space
from hotset.nouns.turn import Event
from hotset.store.port import Damage, Store

_SNAPSHOT = Space("learned", keeps=2)
"""The state as of an event, under one key. Its number is that of the rules by which events are
folded: with other rules every event is folded again."""
_KEY = "state-2"
_WHAT = "learned state"
_TAUGHT = Space("taught", Scope.MACHINE, keeps=1)
"""How many sessions had been observed when teachers last looked at them."""
_TAUGHT_KEY = "sessions"
_FEWEST = 12  # sessions from which something can be learned
_MORE = 5  # sessions since the last look
_KEEP_SECONDS = 30.0
_IDLE_SECONDS = 120.0  # without a call
_AT_ONCE = 1000  # events of one read
_SNAPSHOT_EVERY = 64  # events of the store


def read_state(store: Store, before: LearnState | None = None) -> LearnState:
    """The state as of the last event: from `before` on, else from the snapshot."""
    return _fold_events(store, before or _read_snapshot(store))


def keep_snapshot(store: Store, now: float) -> None:
    """Write the state down, if enough events came since that was done."""
    kept = _read_snapshot(store)
    state = _fold_events(store, kept)
    if state.number - kept.number >= _SNAPSHOT_EVERY:
        store.keep(NoteWritten(_SNAPSHOT, _KEY, encode_state(state), now)).result()


def verify_learning(store: Store) -> Iterator[Damage]:
    """The snapshot, if the fold over the events up to it gives another state; and the events of
    learning that say nothing that can be read."""
    kept = _snapshot_bytes(store)
    snapshot = _read_snapshot(store)
    if kept is not None and snapshot == EMPTY:
        yield Damage(_WHAT, _KEY, "its snapshot cannot be read; the events are the truth")
    elif kept is not None and encode_state(_fold_events(store, EMPTY, snapshot.number)) != kept:
        why = f"the fold over the events up to number {snapshot.number} gives another state"
        yield Damage(_WHAT, _KEY, why)
    for number, name in _fold_events(store, EMPTY).skipped.items():
        yield Damage("event", f"{name} {number}", "its numbers cannot be read; it was left out")


def _fold_events(store: Store, state: LearnState, last: int | None = None) -> LearnState:
    """The state with the events behind it, up to the one of number `last`."""
    number = state.number
    while some := store.events_after(number, _AT_ONCE, LEARN_EVENTS):
        for number, event in some:
            if last is not None and number > last:
                return state
            state = fold(state, number, event.name, str(event.detail.get("data", "")), event.time)
    return state


def states_over_time(
    store: Store, state: LearnState = EMPTY, names: frozenset[str] = LEARN_EVENTS
) -> Iterator[tuple[float, LearnState]]:
    """The state after each event of these names behind `state`, with the time of the event."""
    while some := store.events_after(state.number, _AT_ONCE, names):
        for number, event in some:
            state = fold(state, number, event.name, str(event.detail.get("data", "")), event.time)
            yield event.time, state


def _snapshot_bytes(store: Store) -> bytes | None:
    note = store.notes(_SNAPSHOT, [_KEY]).get(_KEY)
    return note.value if note is not None else None


def _read_snapshot(store: Store) -> LearnState:
    with suppress(msgspec.MsgspecError, UnicodeError):
        return decode_state(_snapshot_bytes(store) or b"")
    return EMPTY


def learn_event(name: str, payload: msgspec.Struct, now: float) -> Event:
    """An event of learning."""
    return Event(name, now, detail={"data": encode_payload(payload)})


def write_decisions(
    store: Store, decided: Iterable[tuple[str, msgspec.Struct]], now: float
) -> None:
    """Keep what was decided, in this order, and wait until it is on disk."""
    events = [learn_event(name, payload, now) for name, payload in decided]
    if events:
        store.keep(*events).result(_KEEP_SECONDS)


def take_decisions(store: Store, now: float) -> tuple[Event, ...]:
    """Write what is to be decided by now: changes adopted or taken back, shares moved."""
    decided = decide(read_state(store), now)
    events = tuple(learn_event(name, payload, now) for name, payload in decided)
    if events:
        store.keep(*events).result()
    keep_snapshot(store, now)
    return events


def is_teaching_due(store: Store, now: float) -> bool:
    """True if enough sessions were observed since teachers last looked at them, and nobody works
    now."""
    state = read_state(store)
    seen, note = state.observed, store.notes(_TAUGHT, [_TAUGHT_KEY]).get(_TAUGHT_KEY)
    before = int(note.value or b"0") if note is not None else 0
    if not state.is_on or seen < _FEWEST or seen - before < _MORE:
        return False
    latest = next(iter(store.recent_sessions()), None)
    turns = list(store.turns(latest.id)) if latest is not None else []
    return not turns or now - (turns[-1].finished or turns[-1].started) > _IDLE_SECONDS


def note_teaching(store: Store, now: float) -> None:
    """Note that teachers looked at every session that was observed so far."""
    seen = str(read_state(store).observed).encode()
    store.keep(NoteWritten(_TAUGHT, _TAUGHT_KEY, seen, now)).result()
