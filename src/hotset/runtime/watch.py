"""Keeps an eye on the latest turns: which figures are beyond their thresholds, and when that is
worth telling again."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hotset.nouns.alert import Alert, Threshold
from hotset.nouns.bill import Bill
from hotset.nouns.turn import Event
from hotset.store.port import Store
from hotset.window.birth import NO_REPEATS, Repeats
from hotset.window.ledger import Counts, alerts

ALERT = "Alert"
"""The name of the event that an alert becomes."""

QUIET_SECONDS = 3600.0
"""An alert of the same name is not raised again for so long."""

_RECENT = 200
"""Turns that are looked at: long enough for one in 50 to show, short enough to forget what was
mended."""

_FEWEST = 50
"""Turns below which shares say nothing: a single broken prefix among fewer would be more than 2
%."""

_FEWEST_REPEATS = 20
"""Repeated results below which their share says nothing: a single one among fewer would be more
than 5 %."""

_LOOKS_EVERY = 10
"""Turns from one look to the next: a look counts all of them, and shares of 200 move slowly."""


@dataclass(frozen=True, slots=True)
class _Turn:
    bill: Bill
    failures: int
    """Summaries that had failed before it."""
    window: int
    repeats: Repeats


class Watch:
    def __init__(self, thresholds: Mapping[str, Threshold]) -> None:
        self._thresholds = thresholds
        self._recent: deque[_Turn] = deque(maxlen=_RECENT)
        self._failures = 0
        self._added = 0
        self._raised: dict[str, float] = {}

    def add(
        self,
        bill: Bill,
        failures: int,
        now: float,
        *,
        window: int = 0,
        repeats: Repeats = NO_REPEATS,
    ) -> tuple[Alert, ...]:
        """The alerts that are to be raised now; `failures` are the summaries that failed since the
        start.

        `window` is how many tokens the turn's prompt might have had; 0 where that is not known.
        """
        self._recent.append(_Turn(bill, self._failures, window, repeats))
        self._added += 1
        failed = failures != self._failures
        self._failures = failures
        if not failed and self._added % _LOOKS_EVERY:
            return ()
        fresh = tuple(
            each
            for each in self.standing()
            if now - self._raised.get(each.name, -QUIET_SECONDS) >= QUIET_SECONDS
        )
        self._raised.update((each.name, now) for each in fresh)
        return fresh

    def standing(self) -> tuple[Alert, ...]:
        """Everything that is beyond its threshold over the latest turns, told already or not."""
        return alerts(self._readings(), self._thresholds)

    def _readings(self) -> dict[str, float]:
        turns = self._recent
        if not turns:
            return {}
        readings: dict[str, float] = {"summary_failures": self._failures - turns[0].failures}
        repeated = sum(turn.repeats.all for turn in turns)
        if repeated >= _FEWEST_REPEATS:
            readings["dedup_hit_pct"] = 100 * sum(turn.repeats.pointed for turn in turns) / repeated
        if len(turns) >= _FEWEST:
            readings |= _shares([turn.bill for turn in turns]) | _sizes(turns)
        return readings


def _shares(bills: Sequence[Bill]) -> dict[str, float]:
    counts = Counts()
    for bill in bills:
        counts.add(bill)
    return {
        "retrieval_pct": counts.retrieval_pct,
        "prefix_kept_pct": counts.prefix_kept_pct,
        "overhead_ms_p95": counts.overhead_ms_p95,
    }


def _sizes(turns: Collection[_Turn]) -> dict[str, float]:
    """Of the prompts, as the provider counted them: what a turn took, and how much of the window
    each call did."""
    found = {"prompt_per_turn": _mean([turn.bill.usage.prompt for turn in turns])}
    filled = [
        100 * turn.bill.usage.prompt / turn.bill.calls / turn.window
        for turn in turns
        if turn.window
    ]
    return found | ({"window_pct": _mean(filled)} if len(filled) >= _FEWEST else {})


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def event_of(alert: Alert, now: float) -> Event:
    return Event(
        ALERT,
        now,
        detail={"name": alert.name, "value": round(alert.value, 3), "threshold": alert.threshold},
    )


def raised_lately(store: Store, event: Event) -> bool:
    """Has another run, or another process, told of the same within the hour? Reads every event: not
    for the event loop."""
    return any(
        each.name == ALERT
        and each.detail.get("name") == event.detail["name"]
        and event.time - each.time < QUIET_SECONDS
        for each in store.events()
    )
