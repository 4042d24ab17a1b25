"""The ledger as the store has it: what sessions cost, what they would have cost, and how the window
does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hotset.config import Config
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event, Outcome, Session
from hotset.runtime.watch import ALERT
from hotset.sources.code import Prefetches
from hotset.store.port import Store
from hotset.window.ledger import Account as Account, Ledger, Saved as Saved  # noqa: PLC0414 - for surfaces
from hotset.window.price import price_of

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
