"""What was saved, by day, session, client, model or project; why prefixes broke and what that cost;
the control share; and what a window of a million tokens would have cost. Surfaces read it from
here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hotset.config import Config
from hotset.learn.events import DEFAULT_ARM, OFF_ARM
from hotset.nouns.bill import Bill
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Session
from hotset.runtime.learned_state import read_state
from hotset.runtime.learning_view import arm_views
from hotset.runtime.metrics import Account, empty_ledger, known_prices
from hotset.runtime.views.words import break_words
from hotset.store.port import Store
from hotset.window.ledger import PriceOf
from hotset.window.price import dollars

DAY = 86_400.0
_BIG_WINDOW = 1_000_000


class SavingsGroup(StrEnum):
    DAY = "day"
    SESSION = "session"
    CLIENT = "client"
    MODEL = "model"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class SavingsRow:
    """Turns that belong together, with what they cost and would have cost."""

    name: str
    """A day, a session's id, a client, a model or a project."""
    title: str
    turns: int
    unmeasured: int
    """Of these, turns without a report of the provider: their part is our own count."""
    spent: float
    """Dollars, measured, at list prices."""
    everything: float
    """Dollars of sending everything, estimated."""
    saved: float
    saved_pct: float
    prompt: int
    """Tokens of prompts, measured."""
    whole: int
    """Tokens of sending everything, estimated."""
    cache_read_pct: float
    """Tokens of prompts that the provider read from its cache, measured."""
    breaks: int
    """Turns whose prompt did not extend the one before."""


@dataclass(frozen=True, slots=True)
class PrefixBreak:
    """Turns whose prompt did not extend the one before, for one reason."""

    cause: str
    words: str
    turns: int
    tokens: int
    """That were sent anew, though the provider had them; measured where it reports usage."""
    dollars: float
    """What that cost more than reading them from the cache; estimated."""


@dataclass(frozen=True, slots=True)
class ControlShare:
    """Sessions that went out unchanged on purpose, beside the others: what is measured, not
    estimated."""

    sessions: int
    """With hotset."""
    controls: int
    """Without."""
    cost: float | None
    """Of sessions with hotset, as a share of what full history would have cost."""
    control_cost: float | None
    saved_pct: float | None
    """By which a session with hotset is cheaper than one without, per cent."""
    low_pct: float | None
    high_pct: float | None
    """The interval that holds at any time."""


@dataclass(frozen=True, slots=True)
class BigWindow:
    """What sending everything in a window of a million tokens would have cost, estimated."""

    tokens: int
    """Of that window."""
    dollars: float
    spent: float
    """What was paid instead, measured."""
    over: int
    """Turns whose full history would not have fitted even there."""
    too_long: int
    """Turns whose full history would not have fitted into the model's own window."""


@dataclass(frozen=True, slots=True)
class SavingsView:
    """What was saved since a moment."""

    by: str
    since: float
    """0: ever."""
    all: SavingsRow
    rows: tuple[SavingsRow, ...]
    """A page of the groups: the latest day first, otherwise those that cost most."""
    total: int
    """Groups."""
    days: tuple[SavingsRow, ...]
    """The oldest first."""
    breaks: tuple[PrefixBreak, ...]
    """Those that cost most first."""
    control: ControlShare | None
    """None if no session ever went out unchanged for comparison."""
    big_window: BigWindow
    unlisted: tuple[str, ...]
    """Models without a list price: their dollars are a guess."""


@dataclass(slots=True)
class _Sum:
    turns: int = 0
    unmeasured: int = 0
    spent: float = 0.0
    everything: float = 0.0
    prompt: int = 0
    whole: float = 0.0
    read: int = 0
    breaks: int = 0

    def row(self, name: str, title: str = "") -> SavingsRow:
        saved = self.everything - self.spent
        return SavingsRow(
            name=name,
            title=title,
            turns=self.turns,
            unmeasured=self.unmeasured,
            spent=self.spent,
            everything=self.everything,
            saved=saved,
            saved_pct=100 * saved / self.everything if self.everything else 0.0,
            prompt=self.prompt,
            whole=round(self.whole),
            cache_read_pct=100 * self.read / self.prompt if self.prompt else 0.0,
            breaks=self.breaks,
        )


@dataclass(slots=True)
class _Shares:
    """The factors that turn a bill's own estimate into its part of its session's: sums over any
    groups then come to the total of `hotset savings`."""

    tokens: float = 0.0
    dollars: float = 0.0


@dataclass(slots=True)
class _Broken:
    turns: int = 0
    tokens: int = 0
    dollars: float = 0.0


@dataclass(slots=True)
class _Tally:
    """Everything that is added up in one pass over the bills."""

    price_of: PriceOf
    shares: Mapping[SessionId | None, _Shares]
    all: _Sum = field(default_factory=_Sum)
    groups: dict[str, _Sum] = field(default_factory=dict)
    days: dict[str, _Sum] = field(default_factory=dict)
    broken: dict[str, _Broken] = field(default_factory=dict)
    before: dict[SessionId | None, int] = field(default_factory=dict)
    big: float = 0.0
    over: int = 0
    too_long: int = 0

    def add(self, bill: Bill, group: str, day: str) -> None:
        price = self.price_of(bill.model, bill.upstream)
        share = self.shares[bill.session]
        whole = bill.whole.prompt * share.tokens
        spent = dollars(price, bill.usage, bill.calls)
        everything = dollars(price, bill.whole) * share.dollars
        for each in (self.all, _of(self.groups, group), _of(self.days, day)):
            each.turns += 1
            each.unmeasured += bill.usage.estimated
            each.spent += spent
            each.everything += everything
            each.prompt += bill.usage.prompt
            each.whole += whole
            each.read += bill.usage.cache_read
            each.breaks += bool(bill.broke)
        self.big += everything * min(1.0, _BIG_WINDOW / whole) if whole else 0.0
        self.over += whole > _BIG_WINDOW
        self.too_long += whole > price.window
        prompt = bill.usage.prompt // max(1, bill.calls)
        if bill.broke:
            had = min(prompt, self.before.get(bill.session, 0))
            again = max(0, had - bill.usage.cache_read // max(1, bill.calls))
            broken = self.broken.setdefault(bill.broke, _Broken())
            broken.turns += 1
            broken.tokens += again
            broken.dollars += again * price.input * (price.write - price.read) / 1e6
        self.before[bill.session] = prompt


def read_savings(
    store: Store,
    config: Config,
    by: SavingsGroup = SavingsGroup.DAY,
    *,
    since: float = 0.0,
    offset: int = 0,
    limit: int = 50,
    now: float,
) -> SavingsView:
    """What was saved since a moment. Reads the bills since then."""
    bills = [each for each in store.bills(since=since or None) if each.usage.prompt]
    prices = known_prices(config)
    accounts = _accounts(bills, config)
    tally = _Tally(prices, _shares(bills, prices, accounts))
    sessions = _sessions(store, by)
    group_of = _grouping(by, config, sessions)
    for bill in bills:
        tally.add(bill, group_of(bill), _day(bill.time))
    ranked = sorted(tally.groups, reverse=True)
    if by is not SavingsGroup.DAY:
        ranked.sort(key=lambda name: -tally.groups[name].spent)
    titles = {id: each.title for id, each in sessions.items()} if by is SavingsGroup.SESSION else {}
    unlisted = {name for each in accounts.values() for name in each.unlisted}
    return SavingsView(
        by=by,
        since=since,
        all=tally.all.row("all"),
        rows=tuple(
            tally.groups[name].row(name, titles.get(name, ""))
            for name in ranked[offset : offset + limit]
        ),
        total=len(ranked),
        days=tuple(tally.days[name].row(name) for name in sorted(tally.days)),
        breaks=_prefix_breaks(tally.broken),
        control=_control(store, config, now),
        big_window=BigWindow(_BIG_WINDOW, tally.big, tally.all.spent, tally.over, tally.too_long),
        unlisted=tuple(sorted(unlisted)),
    )


def _prefix_breaks(broken: Mapping[str, _Broken]) -> tuple[PrefixBreak, ...]:
    rows = (
        PrefixBreak(cause, break_words(cause), each.turns, each.tokens, each.dollars)
        for cause, each in broken.items()
    )
    return tuple(sorted(rows, key=lambda each: -each.dollars))


def _of(sums: dict[str, _Sum], name: str) -> _Sum:
    return sums.setdefault(name, _Sum())


def _accounts(bills: Iterable[Bill], config: Config) -> dict[SessionId | None, Account]:
    ledger = empty_ledger(config)
    for bill in bills:
        ledger.add(bill)
    return {id: ledger.of(id) for id in ledger.sessions}


def _shares(
    bills: Iterable[Bill], price_of: PriceOf, accounts: Mapping[SessionId | None, Account]
) -> dict[SessionId | None, _Shares]:
    found: dict[SessionId | None, _Shares] = {}
    for bill in bills:
        price = price_of(bill.model, bill.upstream)
        own = found.setdefault(bill.session, _Shares())
        own.tokens += bill.whole.prompt
        own.dollars += dollars(price, bill.whole)
    return {
        id: _Shares(
            accounts[id].estimated.prompt / own.tokens if own.tokens else 1.0,
            accounts[id].estimated.dollars / own.dollars if own.dollars else 1.0,
        )
        for id, own in found.items()
    }


def _sessions(store: Store, by: SavingsGroup) -> Mapping[str, Session]:
    if by not in (SavingsGroup.SESSION, SavingsGroup.CLIENT):
        return {}
    return {each.id: each for each in store.sessions()}


def _grouping(
    by: SavingsGroup, config: Config, sessions: Mapping[str, Session]
) -> Callable[[Bill], str]:
    agents = {id: each.agent for id, each in sessions.items()}
    match by:
        case SavingsGroup.DAY:
            return lambda bill: _day(bill.time)
        case SavingsGroup.SESSION:
            return lambda bill: bill.session or ""
        case SavingsGroup.CLIENT:
            return lambda bill: agents.get(bill.session or "", "")
        case SavingsGroup.MODEL:
            return lambda bill: bill.model
        case SavingsGroup.PROJECT:
            return lambda _: str(config.project)


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(moment))


def _control(store: Store, config: Config, now: float) -> ControlShare | None:
    arms = {each.name: each for each in arm_views(read_state(store), config, now)}
    off, default = arms.get(OFF_ARM), arms[DEFAULT_ARM]
    if off is None or not off.sessions:
        return None
    cost = next((each for each in off.differences if each.figure == "cost"), None)
    return ControlShare(
        sessions=default.sessions,
        controls=off.sessions,
        cost=default.cost,
        control_cost=off.cost,
        saved_pct=_cheaper(cost.mean) if cost else None,
        low_pct=_cheaper(cost.low) if cost else None,
        high_pct=_cheaper(cost.high) if cost else None,
    )


def _cheaper(dearer: float) -> float:
    """Per cent by which the default is cheaper than an arm that is dearer by this share of it."""
    return 100 * dearer / (1 + dearer) if dearer > -1 else -100.0
