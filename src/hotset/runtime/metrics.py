"""What sessions cost and would have cost, how well the window works, and which alerts that
raises."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from hotset.config import Config
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event, Outcome, Session
from hotset.nouns.usage import Usage
from hotset.runtime.handoff_cost import HandoffCost, handoff_cost
from hotset.sources.code import Prefetches
from hotset.sources.tools import estimate_tokens, latest_tools, never_called
from hotset.store.port import Store
from hotset.window.ledger import (
    Account as Account,  # noqa: PLC0414 - for surfaces
    AmountSaved as AmountSaved,  # noqa: PLC0414 - for surfaces
    Ledger,
    PriceOf,
)
from hotset.window.price import Price, dollars, price_of

ALERT = "Alert"
"""Event name of an alert."""

SUMMARISED, SUMMARY_FAILED = "Summarised", "SummaryFailed"
"""Event names of summaries."""


@dataclass(frozen=True, slots=True)
class SessionAccount:
    session: Session
    account: Account
    uncounted: int
    """Turns that ended well but have no bill: the provider reported no usage, or they were not
    planned."""


@dataclass(frozen=True, slots=True)
class Savings:
    total: Account
    sessions: tuple[SessionAccount, ...]
    """The newest first."""
    uncounted: int
    handoffs: HandoffCost = field(default_factory=HandoffCost)
    """Of what was measured, what agents that handed over cost."""


@dataclass(frozen=True, slots=True)
class Births:
    """What became of results when they were first shown."""

    all: int = 0
    again: int = 0
    """Shown as a line that points to an earlier result, or as the change since it."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """How well the window works."""

    turns: int
    prompt_per_turn: int
    """Tokens that the provider counted, hidden calls included."""
    whole_per_turn: int
    """Estimate for sending everything."""
    mean_context: int
    """Tokens of a prompt."""
    cache_read_pct: float
    retrieval_pct: float
    """Turns in which the model retrieved something."""
    faults: int
    refaults: int
    dedup_pct: float | None
    """New results that were not shown a second time; None if unknown."""
    summaries: int
    summary_failures: int
    prefix_kept_pct: float
    overhead_ms_p95: float
    spent_dollars: float
    saved_dollars: float
    saved_pct: float
    prefetches: Prefetches = field(default_factory=Prefetches)
    dedup_hit_pct: float | None = None
    """Repeated results that became a pointer or a diff; None if there was none, or it is
    unknown."""


@dataclass(frozen=True, slots=True)
class UnusedTools:
    """Schemas of the client's own tools that the latest sessions never called."""

    sessions: int
    """The sessions that were looked at."""
    offered: int
    """Tools in the latest one's list."""
    names: tuple[str, ...]
    tokens: int
    """Of these schemas in every prompt of the latest session, by our own count."""
    prompt_pct: float
    """Their share of the prompts of all these sessions."""
    dollars: float
    """What they cost in these sessions, at list prices."""


def unused_tools(store: Store, config: Config) -> UnusedTools | None:
    """Cost of the tools that no recent session called; None before the first session with tools."""
    latest = latest_tools(store, config.knobs_for("").toolbox.unused)
    if not latest:
        return None
    unused = never_called(latest)
    sizes = [
        estimate_tokens([raw for name, raw in each.offered.items() if name in unused])
        for each in latest
    ]
    tokens, prompts, cost = 0, 0, 0.0
    for each, size in zip(latest, sizes, strict=True):
        for bill in store.bills(each.session):
            price = price_of(bill.model, config.prices, bill.upstream)
            tokens += size * bill.calls
            prompts += bill.usage.prompt
            cost += _front_dollars(price, bill.usage, size, bill.calls)
    return UnusedTools(
        sessions=len(latest),
        offered=len(latest[0].offered),
        names=tuple(name for name in latest[0].offered if name in unused),
        tokens=sizes[0],
        prompt_pct=min(100.0, 100 * tokens / prompts) if prompts else 0.0,
        dollars=cost,
    )


def _front_dollars(price: Price, usage: Usage, size: int, calls: int) -> float:
    """The cost of so many tokens at the front of each prompt: they are read from the cache if
    anything is."""
    read = min(size * calls, usage.cache_read)
    rest = usage.input + usage.cache_write
    left = min(size * calls - read, rest)
    paid = Usage(
        cache_read=read,
        cache_write=round(left * usage.cache_write / rest) if rest else 0,
        input=round(left * usage.input / rest) if rest else 0,
    )
    return dollars(price, paid, calls)


def empty_ledger(config: Config, most: int = 0) -> Ledger:
    return Ledger(known_prices(config), most)


def known_prices(config: Config) -> PriceOf:
    """The price of a model at an upstream, sought once for each."""
    return lru_cache(64)(lambda model, upstream: price_of(model, config.prices, upstream))


def savings(
    store: Store, config: Config, session: SessionId | None = None, since: float | None = None
) -> Savings:
    """All bills, of one session or all, since a moment or ever."""
    ledger, bills = empty_ledger(config), list(store.bills(session, since))
    for bill in bills:
        ledger.add(bill)
    accounts: list[SessionAccount] = []
    uncounted = 0
    for each in [store.session(session)] if session else list(store.sessions()):
        account = ledger.of(each.id) if each.id in ledger.sessions else None
        missing = _count_ended(store, each.id, since) - (account.turns if account else 0)
        uncounted += max(0, missing)
        if account is not None:
            accounts.append(SessionAccount(each, account, max(0, missing)))
    handed = handoff_cost(store, config, bills, session)
    return Savings(ledger.total(), tuple(reversed(accounts)), uncounted, handed)


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
    """How well the window worked over the whole store, and the alerts since a moment."""
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


def _count_ended(store: Store, session: SessionId, since: float | None) -> int:
    """Number of turns that ended well."""
    ends = (
        turn.finished or turn.started
        for turn in store.turns(session)
        if turn.outcome is Outcome.DONE
    )
    return sum(since is None or end >= since for end in ends)
