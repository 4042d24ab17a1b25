"""Watches the latest turns of a serving process and raises alerts."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hotset.nouns.alert import Alert, Threshold
from hotset.nouns.bill import Bill
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event
from hotset.runtime.metrics import ALERT
from hotset.runtime.spending import PER_DAY, PER_SESSION, quiet_since
from hotset.store.port import Store
from hotset.window.ledger import (
    Account as Account,  # noqa: PLC0414 - for surfaces
    AmountSaved as AmountSaved,  # noqa: PLC0414 - for surfaces
    Counts,
    alerts,
)
from hotset.window.repeats import NO_REPEATS, Repeats

QUIET_SECONDS = 3600.0
"""An alert of the same name is not raised again for so long."""

_RECENT = 200
"""Turns that are evaluated: enough for one in 50 to show, few enough to forget what was
repaired."""

_FEWEST = 50
"""With fewer turns, shares mean nothing: a single broken prefix among fewer would be more than 2
%."""

_FEWEST_REPEATS = 20
"""With fewer repeated results, their share means nothing: a single one among fewer would be more
than 5 %."""

_ITERATIONS = 16
"""Turns of a session whose prompts are added up for an alert."""

_LOOKS_EVERY = 10
"""Turns between two evaluations: each one counts all turns, and shares of 200 move slowly."""


@dataclass(frozen=True, slots=True)
class _Turn:
    bill: Bill
    failures: int
    """Summaries that had failed before it."""
    summaries: int
    """Summaries that had been due before it."""
    window: int
    repeats: Repeats


class Watch:
    """Watches the latest turns and raises alerts."""

    def __init__(self, thresholds: Mapping[str, Threshold]) -> None:
        self._thresholds = thresholds
        self._recent: deque[_Turn] = deque(maxlen=_RECENT)
        self._failures = 0
        self._summaries = 0
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
        summaries: int = 0,
    ) -> tuple[Alert, ...]:
        """The alerts to be raised now; `failures` counts the summaries that failed since the start,
        `summaries` those that a model was asked for.

        `window` is how many tokens the turn's prompt could have had; 0 if unknown.
        """
        self._recent.append(_Turn(bill, self._failures, self._summaries, window, repeats))
        self._added += 1
        failed = failures != self._failures
        self._failures, self._summaries = failures, max(failures, summaries)
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
        """Everything beyond its threshold over the latest turns, raised already or not."""
        return alerts(self._readings(), self._thresholds)

    def _readings(self) -> dict[str, float]:
        turns = self._recent
        if not turns:
            return {}
        failed, due = self._failures - turns[0].failures, self._summaries - turns[0].summaries
        readings: dict[str, float] = {"summary_failures": 100 * failed / due if due else 0.0}
        readings |= _session_sizes([turn.bill for turn in turns])
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
        "retrieval_pct": 100 * counts.faults / max(1, counts.calls),
        "prefix_kept_pct": counts.prefix_kept_pct,
        "overhead_ms_p95": counts.overhead_ms_p95,
    }


def _sizes(turns: Collection[_Turn]) -> dict[str, float]:
    """Sizes of the prompts by the provider's count: tokens a turn, and share of the window a
    call."""
    found = {"prompt_per_turn": _mean([turn.bill.usage.prompt for turn in turns])}
    filled = [
        100 * turn.bill.usage.prompt / turn.bill.calls / turn.window
        for turn in turns
        if turn.window
    ]
    return found | ({"window_pct": _mean(filled)} if len(filled) >= _FEWEST else {})


def _session_sizes(bills: Sequence[Bill]) -> dict[str, float]:
    """Tokens of the prompts of a session's latest 16 turns, for the session with most."""
    prompts: dict[SessionId, list[int]] = {}
    for bill in bills:
        if bill.session is not None:
            prompts.setdefault(bill.session, []).append(bill.usage.prompt)
    sums = [sum(each[-_ITERATIONS:]) for each in prompts.values() if len(each) >= _ITERATIONS]
    return {"prompt_in_16_turns": max(sums)} if sums else {}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def event_of(alert: Alert, now: float) -> Event:
    return Event(
        ALERT,
        now,
        detail={"name": alert.name, "value": round(alert.value, 3), "threshold": alert.threshold},
    )


def raised_lately(store: Store, event: Event) -> bool:
    """True if another run or process raised the same alert within the hour; what is spent is told
    once a day or once a session. Reads every event: not for the event loop."""
    name = event.detail["name"]
    spent = name in (PER_DAY, PER_SESSION)
    since = quiet_since(event) if spent else event.time - QUIET_SECONDS
    return any(
        each.name == ALERT
        and each.detail.get("name") == name
        and (each.time >= since if spent else each.time > since)
        and (name != PER_SESSION or each.session == event.session)
        for each in store.events()
    )
