"""Keeps an eye on the latest turns: which figures are beyond their thresholds, and when that is worth telling again."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from hotset.nouns.alert import Alert, Threshold
from hotset.nouns.bill import Bill
from hotset.nouns.turn import Event
from hotset.store.port import Store
from hotset.window.ledger import Counts, alerts

ALERT = "Alert"
"""The name of the event that an alert becomes."""

QUIET_SECONDS = 3600.0
"""An alert of the same name is not raised again for so long."""

_RECENT = 200
"""Turns that are looked at: long enough for one in 50 to show, short enough to forget what was mended."""

_FEWEST = 50
"""Turns below which shares say nothing: a single broken prefix among fewer would be more than 2 %."""

_LOOKS_EVERY = 10
"""Turns from one look to the next: a look counts all of them, and shares of 200 move slowly."""


class Watch:
    def __init__(self, thresholds: Mapping[str, Threshold]) -> None:
        self._thresholds = thresholds
        self._recent: deque[tuple[Bill, int]] = deque(maxlen=_RECENT)
        """Each bill, and how many summaries had failed before it."""
        self._failures = 0
        self._added = 0
        self._raised: dict[str, float] = {}

    def add(self, bill: Bill, failures: int, now: float) -> tuple[Alert, ...]:
        """The alerts that are to be raised now; `failures` are the summaries that failed since the start."""
        self._recent.append((bill, self._failures))
        self._added += 1
        failed = failures != self._failures
        self._failures = failures
        if not failed and self._added % _LOOKS_EVERY:
            return ()
        fresh = tuple(each for each in self.standing() if now - self._raised.get(each.name, -QUIET_SECONDS) >= QUIET_SECONDS)
        self._raised.update((each.name, now) for each in fresh)
        return fresh

    def standing(self) -> tuple[Alert, ...]:
        """Everything that is beyond its threshold over the latest turns, told already or not."""
        return alerts(self._readings(), self._thresholds)

    def _readings(self) -> dict[str, float]:
        if not self._recent:
            return {}
        readings: dict[str, float] = {"summary_failures": self._failures - self._recent[0][1]}
        if len(self._recent) >= _FEWEST:
            counts = Counts()
            for bill, _ in self._recent:
                counts.add(bill)
            readings |= {
                "retrieval_pct": counts.retrieval_pct,
                "prefix_kept_pct": counts.prefix_kept_pct,
                "overhead_ms_p95": counts.overhead_ms_p95,
            }
        return readings


def event_of(alert: Alert, now: float) -> Event:
    return Event(ALERT, now, detail={"name": alert.name, "value": round(alert.value, 3), "threshold": alert.threshold})


def raised_lately(store: Store, event: Event) -> bool:
    """Has another run, or another process, told of the same within the hour? Reads every event: not for the event loop."""
    return any(
        each.name == ALERT and each.detail.get("name") == event.detail["name"] and event.time - each.time < QUIET_SECONDS
        for each in store.events()
    )
