"""What a project has learned: read from the events of its store, given to new sessions, and added
to when sessions end.

The state is a fold over the events (`learn/state.py`); a note holds it as of one of them, so that a
start need not read them all. A session keeps the arm that it was given with its first request.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from threading import Lock
from typing import Any

import msgspec

from hotset.config import Config, parse_knobs
from hotset.errors import BadConfig, Conflict, HotsetError
from hotset.files.lru import Lru
from hotset.learn.events import LEARN_EVENTS, OBSERVED, OFF_ARM, encode_payload
from hotset.learn.state import (
    EMPTY,
    LearnState,
    assign,
    decide,
    decode_state,
    encode_state,
    fold,
)
from hotset.nouns.call import Headers, header
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.knobs import DEFAULT_PROFILE, Knobs
from hotset.nouns.note import Space
from hotset.nouns.turn import Event, Session, Turn
from hotset.runtime.observe import observe_session
from hotset.runtime.session_arm import (
    PLAIN,
    SessionArm,
    SessionKeys,
    arm_changes,
    arm_of_session,
    read_arm,
)
from hotset.store.port import Damage, Store

_log = logging.getLogger("hotset")

PROFILE_HEADER = b"x-hotset-profile"
"""Names the profile of a session, or `off`."""

KNOBS_HEADER = b"x-hotset-knobs"
"""Knobs of a session: `keep=8; memory.tell=0.7`."""

QUIET_SECONDS = 1800.0
"""Without a call for so long, a session counts as ended."""

DAY = 86_400.0
_SNAPSHOT = Space("learned", keeps=2)
"""The state as of an event, under one key."""
_KEY = "state"
_WHAT = "learned state"
_OBSERVED = Space("observed")
"""Sessions that were observed, by id: each is observed once."""
_AT_ONCE = 1000  # events of one read
_SNAPSHOT_EVERY = 64  # events of the store
_MOST_ARMS = 4096
_MOST_LOOKED_AT = 200  # of the latest sessions, beside the calls


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


def pinned_knobs(config: Config) -> frozenset[str]:
    """Knobs that a person's file or a chosen profile sets: nothing learned changes them."""
    chosen = config.knobs_for(DEFAULT_PROFILE).changed(Knobs()) if config.profile else {}
    return frozenset({*config.own_knobs, *chosen})


def profile_changes(config: Config, name: str) -> dict[str, Any]:
    """What a profile changes against the default one."""
    return config.profiles[name].changed(config.profiles[DEFAULT_PROFILE])


class Learning:
    """The arms of sessions, and the state that new ones are assigned by. Thread-safe."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._pinned = pinned_knobs(config)
        self._is_on = config.learns and config.knobs is None and not config.off
        self._arms: Lru[str, SessionArm] = Lru(count=_MOST_ARMS)
        self._kept: Lru[str, bool] = Lru(count=_MOST_ARMS)
        """Keys whose arm is in the store, or on its way there."""
        self.state = EMPTY
        self._version = -1
        self._lock = Lock()

    def refresh(self, store: Store) -> None:
        """Read what was added to the store since the last look. Blocks."""
        with self._lock:
            version = store.version()
            if version != self._version:
                self.state = read_state(store, self.state if self._version >= 0 else None)
                self._version = version

    def arm(self, keys: SessionKeys, headers: Headers, now: float) -> SessionArm | None:
        """The arm of a session that is known here, or that opens now; None if the store has to be
        asked."""
        chosen = self._chosen(headers)
        if chosen is not None:
            return chosen
        known = next(filter(None, map(self._arms.get, keys.every)), None)
        if known is None and keys.opens:
            known = self._assign(keys, now)
        if known is not None:
            self._remember(keys, known)
        return known

    def read_arm(self, keys: SessionKeys, store: Store) -> SessionArm:
        """The arm that the store has of a session. Blocks."""
        found = read_arm(store, keys)
        self._remember(keys, found or PLAIN)
        for key in keys.every if found is None else keys.every[-1:]:
            self._kept.put(key, True)
        return found or PLAIN

    def unkept(self, keys: SessionKeys) -> tuple[str, ...]:
        """The keys under which the session's arm is still to be kept; they count as kept then."""
        waiting = tuple(
            key
            for key in keys.every
            if key and not self._kept.get(key) and self._arms.get(key) is not None
        )
        for key in waiting:
            self._kept.put(key, True)
        return waiting

    def with_orders(self, arm: SessionArm) -> SessionArm:
        """The arm with what a person froze at a value: that holds at once, in every session."""
        ordered = {
            name: value
            for name, value in self.state.frozen.items()
            if value is not None and not self._is_pinned(name)
        }
        if arm.is_off or not arm.is_random or not ordered or not self._is_on:
            return arm
        return msgspec.structs.replace(arm, knobs=arm_changes({**arm.values, **ordered}))

    def _remember(self, keys: SessionKeys, arm: SessionArm) -> None:
        for key in keys.every:
            self._arms.put(key, arm)

    def _assign(self, keys: SessionKeys, now: float) -> SessionArm:
        """A new session's arm: at random, by a hash of its key."""
        if not self._is_on or not keys.first:
            return PLAIN
        given = assign(self.state, keys.first, int(now // DAY), pinned=self._pinned)
        if given.arm == OFF_ARM:
            return SessionArm(OFF_ARM)
        values = dict(given.knobs)
        if given.arm in self._config.profiles:
            own = profile_changes(self._config, given.arm)
            values |= {name: value for name, value in own.items() if not self._is_pinned(name)}
        return SessionArm(given.arm, given.changes, arm_changes(self._valid(values)))

    def _chosen(self, headers: Headers) -> SessionArm | None:
        """The arm that the client asks for, if any."""
        name = header(headers, PROFILE_HEADER).strip().lower()
        words = [each for each in header(headers, KNOBS_HEADER).split(";") if each.strip()]
        if not name and not words:
            return None
        if name == OFF_ARM:
            return SessionArm(OFF_ARM, is_random=False)
        values: dict[str, Any] = {}
        if name in self._config.profiles:
            values |= profile_changes(self._config, name)
        try:
            values |= msgspec.to_builtins(parse_knobs(words, "x-hotset-knobs"))
        except BadConfig:
            _log.warning("ignored: a header x-hotset-knobs that names no knob, or no value of it")
        return SessionArm(name or DEFAULT_PROFILE, (), arm_changes(values), is_random=False)

    def _is_pinned(self, name: str) -> bool:
        return name in self._pinned or name.partition(".")[0] in self._pinned

    def _valid(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values, or none of them if one is out of its range."""
        try:
            self._config.knobs_for("").with_changes(values)
        except (msgspec.ValidationError, KeyError, TypeError):
            _log.warning("ignored: learned knobs that are out of their range")
            return {}
        return values


def observe_ended(
    store: Store, config: Config, now: float, *, quiet: float = QUIET_SECONDS, most: int = 0
) -> int:
    """Observe every session that ended and was not observed yet, or `most` of the latest. Returns
    how many there were."""
    latest = store.recent_sessions()[: most or None]
    known = store.notes(_OBSERVED, [each.id for each in latest]) if latest else {}
    seen = 0
    for session in reversed([each for each in latest if each.id not in known]):
        turns = list(store.turns(session.id))
        if _is_over(turns, now, quiet):
            seen += _observe(store, config, session, turns, now)
    return seen


def _is_over(turns: Collection[Turn], now: float, quiet: float) -> bool:
    """True for a session that went through hotset and has been quiet for long."""
    last = max((turn.finished or turn.started for turn in turns), default=now)
    return now - last >= quiet and any(turn.usage.prompt or turn.reply for turn in turns)


def _observe(
    store: Store, config: Config, session: Session, turns: Collection[Turn], now: float
) -> bool:
    try:
        arm = arm_of_session(store, session.id)
        figures = observe_session(store, session.id, arm, config.prices, now)
        ended = max(turn.finished or turn.started for turn in turns)
        event = learn_event(OBSERVED, figures, ended)
        mark = NoteWritten(_OBSERVED, session.id, b"1", now, expects=0)
        store.keep(mark, event).result()
    except Conflict:  # another process was faster
        return False
    except HotsetError:  # a damaged page: the rest of the store goes on
        return False
    return True


def take_decisions(store: Store, now: float) -> tuple[Event, ...]:
    """Write what is to be decided by now: changes adopted or taken back, shares moved."""
    decided = decide(read_state(store), now)
    events = tuple(learn_event(name, payload, now) for name, payload in decided)
    if events:
        store.keep(*events).result()
    keep_snapshot(store, now)
    return events


def tend_learning(store: Store, config: Config, now: float) -> None:
    """Observe the sessions that ended lately, and decide. Blocks: for a thread beside the calls."""
    if observe_ended(store, config, now, most=_MOST_LOOKED_AT):
        take_decisions(store, now)


def hash_vector(words: Collection[str], size: int = 16) -> tuple[float, ...]:
    """A small vector of a prompt's words, by hashes: near ones have many words in common."""
    vector = [0.0] * size
    for word in words:
        digest = sha256(word.encode()).digest()
        vector[digest[0] % size] += 1.0 if digest[1] & 1 else -1.0
    length = sum(each * each for each in vector) ** 0.5
    return tuple(round(each / length, 4) for each in vector) if length else ()
