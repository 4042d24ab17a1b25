"""How many tokens a provider counts for one of ours, learned from its reports and kept, so that a
restart counts alike."""

from __future__ import annotations

from threading import Lock

import msgspec

from hotset.nouns.deposit import NoteWritten
from hotset.nouns.message import Usage
from hotset.nouns.note import Space
from hotset.nouns.turn import TurnRef
from hotset.store.port import Store
from hotset.window.calibrate import Calibration, from_numbers, prior

_CALIBRATION = Space("calibration")
"""By model."""

_WORTH_KEEPING = 0.002
"""A change of the ratio that would move the edge of a window of 128,000 tokens by 250: less makes
no other plan."""

_MOST_MODELS = 256


def ratio_at(model: str, store: Store, as_of: TurnRef) -> float:
    """What our count was multiplied by when this turn was planned."""
    return _kept(model, store, as_of).ratio


class Calibrations:
    """The ratio of each model, learned and kept. Safe to use from several threads."""

    def __init__(self) -> None:
        self._known: dict[str, Calibration] = {}
        self._kept: dict[str, float] = {}
        """For each model, the ratio that is in the store."""
        self._lock = Lock()

    def knows(self, model: str) -> bool:
        """Was this model asked for before? Then its ratio is at hand, without a look into the
        store."""
        with self._lock:
            return model in self._known

    def ratio(self, model: str, store: Store) -> float:
        with self._lock:
            known = self._known.get(model)
        if known is None:
            known = self._read(model, store)
        return known.ratio

    def observed(self, model: str, estimated: int, reported: Usage) -> NoteWritten | None:
        """Learns from what a provider counted for a prompt; gives the note to be kept where that
        made a difference."""
        told = reported.input + reported.cache_read + reported.cache_write
        with self._lock:
            now = self._known.get(model, prior(model)).observed(estimated, told)
            self._know(model, now)
            if abs(now.ratio - self._kept.get(model, prior(model).ratio)) < _WORTH_KEEPING:
                return None
            self._kept[model] = now.ratio
        return NoteWritten(_CALIBRATION, model, msgspec.json.encode(now.as_numbers()))

    def _read(self, model: str, store: Store) -> Calibration:
        found = _kept(model, store)
        with self._lock:
            self._know(model, found)
            self._kept[model] = found.ratio
        return found

    def _know(self, model: str, calibration: Calibration) -> None:
        if len(self._known) >= _MOST_MODELS and model not in self._known:
            self._known.clear()
            self._kept.clear()
        self._known[model] = calibration


def _kept(model: str, store: Store, as_of: TurnRef | None = None) -> Calibration:
    note = store.notes(_CALIBRATION, [model], as_of).get(model)
    return from_numbers(
        msgspec.json.decode(note.value or b"{}", type=dict[str, float]) if note is not None else {},
        model,
    )
