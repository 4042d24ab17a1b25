"""What new sessions get of what a project learned. A session keeps the arm that it was given with
its first request."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock
from typing import Any

import msgspec

from hotset.config import Config, parse_knobs
from hotset.errors import BadConfig
from hotset.files.lru import Lru
from hotset.learn.contexts import prompt_vector
from hotset.learn.events import OFF_ARM
from hotset.learn.state import (
    EMPTY,
    LearnState,
    assign,
    changes_in_force,
    context_of,
    own_and_groups,
)
from hotset.nouns.call import Headers, header
from hotset.nouns.knobs import DEFAULT_PROFILE, Knobs
from hotset.runtime.learned_state import read_state
from hotset.runtime.session_arm import PLAIN, SessionArm, SessionKeys, arm_changes, read_arm
from hotset.store.port import Store

_log = logging.getLogger("hotset")

PROFILE_HEADER = b"x-hotset-profile"
"""Names the profile of a session, or `off`."""

KNOBS_HEADER = b"x-hotset-knobs"
"""Knobs of a session: `keep=8; memory.tell=0.7`."""

DAY = 86_400.0
_MOST_ARMS = 4096
_SAME_OPENING_SECONDS = 21_600.0
"""For so long, what begins with the same message is taken for the same session, until its first
reply is known. Later no provider's cache has the opening any more."""


def pinned_knobs(config: Config) -> frozenset[str]:
    """Knobs that a person's file or a chosen profile sets: nothing learned changes them."""
    chosen = config.knobs_for(DEFAULT_PROFILE).changed(Knobs()) if config.profile else {}
    return frozenset({*config.own_knobs, *chosen})


def profile_changes(config: Config, name: str) -> dict[str, Any]:
    """What a profile changes against the default one."""
    return config.trial_profiles[name].changed(config.trial_profiles[DEFAULT_PROFILE])


def learned_knobs(config: Config, state: LearnState) -> Knobs:
    """The knobs of what is asked outside of a session: as a new session of the default arm."""
    knobs = config.knobs_for("")
    if not config.learns or config.knobs is not None:
        return knobs
    values = changes_in_force(state, pinned=pinned_knobs(config))
    with suppress(msgspec.ValidationError, KeyError, TypeError):
        return knobs.with_changes(values) if values else knobs
    return knobs


def knobs_to_build_on(config: Config, state: LearnState) -> tuple[Knobs, frozenset[str]]:
    """The knobs of a new session where learning is on, and those that a person holds: set in a
    file, or frozen."""
    pinned = pinned_knobs(config)
    learned = changes_in_force(msgspec.structs.replace(state, is_on=True), pinned=pinned)
    knobs = config.knobs_for(DEFAULT_PROFILE).with_changes(learned)
    return knobs, pinned | frozenset(state.frozen)


def _is_another(keys: SessionKeys, known: SessionArm, now: float) -> bool:
    """True if a session that opens only began with the same words as one long ago."""
    return keys.opens and not keys.is_named and now - known.since >= _SAME_OPENING_SECONDS


class Learning:
    """The arms of sessions, and the state that new ones are assigned by. Thread-safe."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._pinned = pinned_knobs(config)
        self._is_on = config.learns and config.knobs is None and not config.off
        self._arms: Lru[str, SessionArm] = Lru("arms of sessions", count=_MOST_ARMS)
        self._kept: Lru[str, SessionArm] = Lru("kept arms", count=_MOST_ARMS)
        """The arms that are in the store, or on their way there."""
        self.state = EMPTY
        self._version = -1
        self._lock = Lock()

    @property
    def knobs(self) -> Knobs:
        """The knobs of what is asked outside of a session."""
        return learned_knobs(self._config, self.state)

    def refresh(self, store: Store) -> None:
        """Read what was added to the store since the last look. Blocks."""
        with self._lock:
            version = store.version()
            if version != self._version:
                self.state = read_state(store, self.state if self._version >= 0 else None)
                self._version = version

    def arm(self, keys: SessionKeys, headers: Headers, now: float) -> SessionArm | None:
        """The arm of a session that is known here; None if the store has to be asked."""
        chosen = self._chosen(headers)
        if chosen is not None:
            return chosen
        if not keys.first or (keys.opens and not self._is_on):
            self._arms.put(keys.latest, PLAIN)
            return PLAIN
        known = self._arms.get(keys.latest)
        return known if known is not None and not _is_another(keys, known, now) else None

    def read_arm(self, keys: SessionKeys, store: Store, now: float) -> SessionArm:
        """The arm that the store has of a session, else a new one if it opens now. Blocks."""
        found = self._find(keys, store)
        if keys.opens and (found is None or _is_another(keys, found, now)):
            found = self._assign(keys, now)
        elif found is None:
            found = PLAIN
            self._kept.put(keys.latest, found)
        self._arms.put(keys.latest, found)
        return found

    def unkept(self, keys: SessionKeys, arm: SessionArm) -> tuple[str, ...]:
        """The key under which the session's arm is still to be kept, if any; it counts as kept
        then."""
        key = keys.latest
        if not key or self._arms.get(key) != arm or self._kept.get(key) == arm:
            return ()
        self._kept.put(key, arm)
        return (key,)

    def with_orders(self, arm: SessionArm) -> SessionArm:
        """The arm with the values that a person gave: they hold at once, in every session."""
        ordered = {
            name: value for name, value in self.state.orders.items() if not self._is_pinned(name)
        }
        if arm.is_off or not arm.is_random or not ordered or not self._is_on:
            return arm
        return msgspec.structs.replace(arm, knobs=arm_changes({**arm.values, **ordered}))

    def _find(self, keys: SessionKeys, store: Store) -> SessionArm | None:
        """What is kept under a session's first reply, else what is known here or kept under its
        first message: other sessions may have begun with that, too."""
        for key in keys.every:
            found = self._arms.get(key)
            if found is None or keys.opens:  # another process may have opened it
                found = read_arm(store, key) or found
            if found is not None:
                self._kept.put(key, found)
                return found
        return None

    def _assign(self, keys: SessionKeys, now: float) -> SessionArm:
        """A new session's arm: at random, by a hash of its key."""
        context = context_of(self.state, prompt_vector(keys.prompt))
        day = int(now // DAY)
        given = assign(self.state, keys.first, day, context=context, pinned=self._pinned)
        if given.arm == OFF_ARM:
            return SessionArm(OFF_ARM, since=now)
        values = dict(given.knobs)
        if given.arm in self._config.trial_profiles:
            own = profile_changes(self._config, given.arm)
            values |= {name: value for name, value in own.items() if not self._is_pinned(name)}
        changes = arm_changes(self._valid(values))
        explored = tuple(sorted(given.explored.items()))
        return SessionArm(given.arm, given.changes, changes, explored, since=now)

    def _chosen(self, headers: Headers) -> SessionArm | None:
        """The arm that the client asks for, if any."""
        name = header(headers, PROFILE_HEADER).strip().lower()
        words = [each for each in header(headers, KNOBS_HEADER).split(";") if each.strip()]
        if not name and not words:
            return None
        if name == OFF_ARM:
            return SessionArm(OFF_ARM, is_random=False)
        values: dict[str, Any] = {}
        if name in self._config.trial_profiles:
            values |= profile_changes(self._config, name)
        try:
            values |= msgspec.to_builtins(parse_knobs(words, "x-hotset-knobs"))
        except BadConfig:
            _log.warning("ignored: a header x-hotset-knobs that names no knob, or no value of it")
        return SessionArm(name or DEFAULT_PROFILE, (), arm_changes(values), is_random=False)

    def _is_pinned(self, name: str) -> bool:
        return any(each in self._pinned for each in own_and_groups(name))

    def _valid(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values, or none of them if one is out of its range."""
        try:
            self._config.knobs_for("").with_changes(values)
        except (msgspec.ValidationError, KeyError, TypeError):
            _log.warning("ignored: learned knobs that are out of their range")
            return {}
        return values
