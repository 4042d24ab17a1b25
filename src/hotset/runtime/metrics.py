"""What sessions cost and would have cost, how the window does, and when that gives cause for an
alert."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hotset.config import Config
from hotset.nouns.alert import Alert, Threshold
from hotset.nouns.bill import Bill
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event, Outcome, Session
from hotset.sources.code import Prefetches
from hotset.store.port import Store
from hotset.window.birth import NO_REPEATS, Repeats
from hotset.window.ledger import (
    Account as Account,  # noqa: PLC0414 - for surfaces
    AmountSaved as AmountSaved,  # noqa: PLC0414 - for surfaces
    Counts,
    Ledger,
    alerts,
)
from hotset.window.price import price_of

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


SUMMARISED, SUMMARY_FAILED = "Summarised", "SummaryFailed"
"""Events that tell how a summary went."""


@dataclass(frozen=True, slots=True)
class SessionAccount:
    session: Session
    account: Account
    uncounted: int
    """Turns that ended well and have no bill: the provider reported no usage, or they went through
    without a plan."""


@dataclass(frozen=True, slots=True)
class Savings:
    total: Account
    sessions: tuple[SessionAccount, ...]
    """The newest first."""
    uncounted: int


@dataclass(frozen=True, slots=True)
class Births:
    """What became of results when they were first shown."""

    all: int = 0
    again: int = 0
    """Shown as a line that points to what stands already, or as what changed since."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """How the window does."""

    turns: int
    prompt_per_turn: int
    """Tokens that the provider counted, hidden calls included."""
    whole_per_turn: int
    """Estimated, of sending everything."""
    mean_context: int
    """Tokens of a prompt."""
    cache_read_pct: float
    retrieval_pct: float
    """Turns in which the model asked for something back."""
    faults: int
    refaults: int
    dedup_pct: float | None
    """New results that were not shown a second time; None where that is not known."""
    summaries: int
    summary_failures: int
    prefix_kept_pct: float
    overhead_ms_p95: float
    spent_dollars: float
    saved_dollars: float
    saved_pct: float
    prefetches: Prefetches = field(default_factory=Prefetches)
    dedup_hit_pct: float | None = None
    """Repeated results that became a pointer to what they repeat, or what changed; None where there
    was none, or nobody knows."""


def empty_ledger(config: Config, most: int = 0) -> Ledger:
    return Ledger(lambda model, upstream: price_of(model, config.prices, upstream), most)


def savings(
    store: Store, config: Config, session: SessionId | None = None, since: float | None = None
) -> Savings:
    """Everything that was billed, of one session or all, since a moment or ever."""
    ledger = empty_ledger(config)
    for bill in store.bills(session, since):
        ledger.add(bill)
    told: list[SessionAccount] = []
    uncounted = 0
    for each in [store.session(session)] if session else list(store.sessions()):
        account = ledger.of(each.id) if each.id in ledger.sessions else None
        missing = _ended(store, each.id, since) - (account.turns if account else 0)
        uncounted += max(0, missing)
        if account is not None:
            told.append(SessionAccount(each, account, max(0, missing)))
    return Savings(ledger.total(), tuple(reversed(told)), uncounted)


def metrics(
    account: Account, births: Births | None, summaries: int, summary_failures: int
) -> Metrics:
    turns = max(1, account.turns)
    return Metrics(
        turns=account.turns,
        prompt_per_turn=round(account.measured.prompt / turns),
        whole_per_turn=round(account.estimated.prompt / turns),
        mean_context=round(account.measured.prompt / max(1, account.calls)),
        cache_read_pct=account.measured.cache_read_pct,
        retrieval_pct=account.retrieval_pct,
        faults=account.faults,
        refaults=account.refaults,
        dedup_pct=100 * births.again / births.all if births and births.all else None,
        summaries=summaries,
        summary_failures=summary_failures,
        prefix_kept_pct=account.prefix_kept_pct,
        overhead_ms_p95=account.overhead_ms_p95,
        spent_dollars=account.measured.dollars,
        saved_dollars=account.saved.dollars,
        saved_pct=account.saved.dollars_pct,
    )


def over_store(store: Store, config: Config, since: float) -> tuple[Metrics, tuple[Event, ...]]:
    """How the window did for all that is kept, and the alerts since a moment."""
    ledger = empty_ledger(config)
    for bill in store.bills():
        ledger.add(bill)
    written = failed = 0
    prefetches = Prefetches()
    raised: list[Event] = []
    for event in store.events():
        prefetches = prefetches.after(event)
        written += event.name == SUMMARISED
        failed += event.name == SUMMARY_FAILED
        if event.name == ALERT and event.time >= since:
            raised.append(event)
    return replace(metrics(ledger.total(), None, written, failed), prefetches=prefetches), tuple(
        raised
    )


def _ended(store: Store, session: SessionId, since: float | None) -> int:
    """How many turns came to a good end."""
    ends = (
        turn.finished or turn.started
        for turn in store.turns(session)
        if turn.outcome is Outcome.DONE
    )
    return sum(since is None or end >= since for end in ends)
