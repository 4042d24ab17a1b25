"""What turns cost: measured by the provider, beside an estimate of sending everything. Pure.

The estimate is our own count under the same cache rules, converted to the provider's tokens
(`Recount`) and corrected by the share of expected cache reads that happened (`reconcile`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from hotset.nouns.alert import Alert, Threshold
from hotset.nouns.bill import Bill
from hotset.nouns.page import SessionId
from hotset.nouns.price import Price
from hotset.nouns.usage import Usage
from hotset.nouns.window import Cause
from hotset.window.calibrate import Recount, split_usage
from hotset.window.price import dollars

PriceOf = Callable[[str, str], Price]
"""Returns the price of a model at an upstream."""

_MOST_TIMES = 10_000
"""Latest turns whose overhead is kept: a proxy runs for weeks."""


@dataclass(frozen=True, slots=True)
class MeasuredUsage:
    """Usage as the provider counted it, at list prices; our own count for turns without a report
    (`Account.estimated_turns`)."""

    prompt: int
    """Tokens of all prompts, hidden calls included: the sum of the next three."""
    input: int
    cache_read: int
    cache_write: int
    output: int
    dollars: float
    cache_read_pct: float
    """Percentage of the prompts' tokens."""


@dataclass(frozen=True, slots=True)
class EstimatedCost:
    """The estimate for sending everything under the same cache rules."""

    prompt: int
    dollars: float


@dataclass(frozen=True, slots=True)
class AmountSaved:
    """The estimate minus the measured cost; negative if hotset made it dearer."""

    tokens: int
    tokens_pct: float
    dollars: float
    dollars_pct: float


@dataclass(frozen=True, slots=True)
class Account:
    """Totals of some turns."""

    turns: int
    calls: int
    """Calls to the provider."""
    hidden_calls: int
    """Of these, the ones the client does not see: the model retrieved something."""
    estimated_turns: int
    """Turns without a report from the provider: `measured` holds our own count for them."""
    measured: MeasuredUsage
    estimated: EstimatedCost
    saved: AmountSaved
    breaks: Mapping[str, int]
    """Turns whose prefix did not extend the previous one, by cause."""
    prefix_kept_pct: float
    """Percentage of turns; one that hands a window over counts as kept."""
    faults: int
    refaults: int
    faults_per_100: float
    refaults_per_100: float
    retrieval_pct: float
    """Percentage of turns in which the model retrieved something."""
    overhead_ms_p50: float
    overhead_ms_p95: float
    models: tuple[str, ...]
    unlisted: tuple[str, ...]
    """Models without a list price: their dollars are a guess."""


@dataclass(slots=True)
class Counts:
    """Counts over turns that need no price."""

    turns: int = 0
    calls: int = 0
    estimated: int = 0
    """Turns without a report from the provider."""
    faults: int = 0
    refaults: int = 0
    retrieving: int = 0
    """Turns with a fault."""
    breaks: Counter[str] = field(default_factory=Counter)
    times: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_TIMES))

    def add(self, bill: Bill) -> None:
        self.turns += 1
        self.calls += bill.calls
        self.estimated += bill.usage.estimated
        self.faults += bill.faults
        self.refaults += bill.refaults
        self.retrieving += bill.faults > 0
        if bill.broke:
            self.breaks[bill.broke] += 1
        self.times.append(bill.overhead_ms)

    def include(self, other: Counts) -> None:
        self.turns += other.turns
        self.calls += other.calls
        self.estimated += other.estimated
        self.faults += other.faults
        self.refaults += other.refaults
        self.retrieving += other.retrieving
        self.breaks += other.breaks
        self.times += other.times

    @property
    def retrieval_pct(self) -> float:
        return _pct(self.retrieving, self.turns)

    @property
    def prefix_kept_pct(self) -> float:
        """A handoff is planned, and its cost stands by itself: that the cache is lost with it says
        nothing of how well it is kept."""
        lost = self.breaks.total() - self.breaks[Cause.HANDOFF]
        return _pct(self.turns - lost, self.turns) if self.turns else 100.0

    @property
    def overhead_ms_p95(self) -> float:
        return percentile(self.times, 0.95)


class Ledger:
    """Adds up bills, by session and in total."""

    def __init__(self, price_of: PriceOf, most: int = 0) -> None:
        """With `most`, only the `most` sessions billed last keep a book; of the others only the sum
        is kept."""
        self._price_of = price_of
        self._most = most
        self._books: dict[SessionId | None, _Book] = {}
        self._closed = _ClosedBooks()

    def add(self, bill: Bill) -> None:
        """Adds a bill; one without a prompt count is ignored, since it cannot be compared with an
        estimate."""
        if not bill.usage.prompt:
            return
        book = self._books.get(bill.session)
        if book is None:
            book = self._books[bill.session] = _Book(self._price_of)
        book.add(bill)
        if self._most:
            self._books[bill.session] = self._books.pop(bill.session)  # the last
            while len(self._books) > self._most:
                self._closed.take(self._books.pop(next(iter(self._books))))

    @property
    def sessions(self) -> tuple[SessionId | None, ...]:
        """In the order of their first bill; None for bills without a session."""
        return tuple(self._books)

    def of(self, session: SessionId | None) -> Account:
        return _account([self._books[session]])

    def total(self) -> Account:
        """The sum of all sessions; each is reconciled by itself."""
        return _account([self._closed, *self._books.values()])


def turn_costs(bills: Iterable[Bill], price_of: PriceOf) -> dict[int, tuple[float, float]]:
    """By turn of one session, dollars spent and dollars of sending everything: what each bill adds
    to the sums, so that they add up to the totals. `bills` are all from the first on."""
    book, found, before = _Book(price_of), dict[int, tuple[float, float]](), (0.0, 0.0)
    for bill in bills:
        if bill.usage.prompt:
            book.add(bill)
            after = book.spent(), book.everything()[1]
            found[bill.turn] = after[0] - before[0], after[1] - before[1]
            before = after
    return found


def reconcile(whole: Usage, measured: Usage, estimated: Usage) -> Usage:
    """The estimate `whole`, corrected by a comparison of `measured` and `estimated` for the same
    prompts.

    Tokens are scaled by the provider's count per token of ours, cache reads by the share of
    expected reads that happened; the rest is split into written and uncached as the provider split
    it.
    """
    counted, ours = measured.prompt, estimated.prompt
    if not counted or not ours:
        return whole
    total = whole.prompt * counted / ours
    if estimated.cache_write and not whole.cache_write and not whole.cache_read:
        # The cache marks are ours: the client sets none.
        return Usage(input=round(total), output=whole.output)
    if estimated.cache_read:
        read = min(total, whole.cache_read * measured.cache_read / estimated.cache_read)
    elif measured.cache_read:
        read = total * measured.cache_read / counted
    else:
        # No cache read was expected in what can be compared, as in a session's first turn: there is
        # nothing to correct by, so the cache rules decide.
        read = whole.cache_read * counted / ours
    # Without uncached tokens there is no split to copy.
    like = measured if measured.input or measured.cache_write else estimated
    return split_usage(like, read, total - read, whole.output)


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that this share of the values does not exceed; 0 for no values."""
    ranked = sorted(values)
    return ranked[max(0, ceil(share * len(ranked)) - 1)] if ranked else 0.0


def alerts(readings: Mapping[str, float], thresholds: Mapping[str, Threshold]) -> tuple[Alert, ...]:
    """An alert for each reading beyond its threshold."""
    return tuple(
        Alert(name, readings[name], each.limit, each.side, each.means)
        for name, each in thresholds.items()
        if name in readings and each.is_beyond(readings[name])
    )


@dataclass(slots=True)
class _Sum:
    """Usage of one model's turns with the same price."""

    usage: Usage = field(default_factory=Usage)
    calls: int = 0

    def add(self, usage: Usage, calls: int) -> None:
        self.usage = _plus(self.usage, usage)
        self.calls += calls


_Sums = dict[tuple[str, str, bool], _Sum]
"""By model, upstream, and whether the prompts are long, which cost more: a sum must not mix the
two."""


class _Book:
    """One session's turns."""

    def __init__(self, price_of: PriceOf) -> None:
        self.counts = Counts()
        self.measured: _Sums = {}
        self.whole: _Sums = {}
        self.prices: dict[tuple[str, str], Price] = {}
        self._price_of = price_of
        self._recounts: dict[tuple[str, str], Recount] = {}
        self._compared: dict[tuple[str, str], tuple[_Sum, _Sum]] = {}
        """Measured and estimated usage of the same prompts."""

    def add(self, bill: Bill) -> None:
        self.counts.add(bill)
        model = (bill.model, bill.upstream)
        price = self.prices.get(model)
        if price is None:
            price = self.prices[model] = self._price_of(*model)
            self._recounts[model] = Recount(price.step)
        recounted = self._recounts[model].add(bill)
        _add(self.measured, model, price, bill.usage, bill.calls)
        _add(self.whole, model, price, recounted.whole, 1)
        # The report of a turn with hidden calls is a sum over all of them, the estimate covers only
        # the first: they cannot be compared. Nor can our own count with itself.
        if bill.calls == 1 and not bill.usage.estimated:
            measured, estimated = self._compared.setdefault(model, (_Sum(), _Sum()))
            measured.add(bill.usage, 1)
            estimated.add(recounted.sent, 1)

    def spent(self) -> float:
        return sum(
            dollars(self.prices[key[:2]], each.usage, each.calls)
            for key, each in self.measured.items()
        )

    def everything(self) -> tuple[int, float]:
        """Tokens and dollars of sending everything."""
        tokens, cost = 0, 0.0
        for (model, upstream, _), each in self.whole.items():
            measured, estimated = self._compared.get((model, upstream), (_Sum(), _Sum()))
            usage = reconcile(each.usage, measured.usage, estimated.usage)
            tokens += usage.prompt
            cost += dollars(self.prices[model, upstream], usage, each.calls)
        return tokens, cost


class _ClosedBooks:
    """Totals of books that are no longer kept."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.measured: _Sums = {}
        self.prices: dict[tuple[str, str], Price] = {}
        self._spent = 0.0
        self._everything = (0, 0.0)

    def take(self, book: _Book) -> None:
        self.counts.include(book.counts)
        for key, each in book.measured.items():
            self.measured.setdefault(key, _Sum()).add(each.usage, each.calls)
        self.prices |= book.prices
        self._spent += book.spent()
        tokens, cost = book.everything()
        self._everything = self._everything[0] + tokens, self._everything[1] + cost

    def spent(self) -> float:
        return self._spent

    def everything(self) -> tuple[int, float]:
        return self._everything


def _add(sums: _Sums, model: tuple[str, str], price: Price, usage: Usage, calls: int) -> None:
    is_long = bool(price.long_prompt) and usage.prompt > price.long_prompt * max(1, calls)
    key = (*model, is_long)
    if key not in sums:
        sums[key] = _Sum()
    sums[key].add(usage, calls)


def _account(books: Sequence[_Book | _ClosedBooks]) -> Account:
    counts = _sum_counts([book.counts for book in books])
    usage = Usage()
    for book in books:
        for each in book.measured.values():
            usage = _plus(usage, each.usage)
    prompt, spent = usage.prompt, sum(book.spent() for book in books)
    whole = [book.everything() for book in books]
    tokens, cost = sum(each[0] for each in whole), sum(each[1] for each in whole)
    prices = {model: price for book in books for (model, _), price in book.prices.items()}
    return Account(
        turns=counts.turns,
        calls=counts.calls,
        hidden_calls=counts.calls - counts.turns,
        estimated_turns=counts.estimated,
        measured=MeasuredUsage(
            prompt,
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output,
            spent,
            _pct(usage.cache_read, prompt),
        ),
        estimated=EstimatedCost(tokens, cost),
        saved=AmountSaved(
            tokens - prompt, _pct(tokens - prompt, tokens), cost - spent, _pct(cost - spent, cost)
        ),
        breaks=dict(counts.breaks.most_common()),
        prefix_kept_pct=counts.prefix_kept_pct,
        faults=counts.faults,
        refaults=counts.refaults,
        faults_per_100=_pct(counts.faults, counts.turns),
        refaults_per_100=_pct(counts.refaults, counts.turns),
        retrieval_pct=counts.retrieval_pct,
        overhead_ms_p50=percentile(counts.times, 0.5),
        overhead_ms_p95=counts.overhead_ms_p95,
        models=tuple(sorted(prices)),
        unlisted=tuple(sorted(model for model, price in prices.items() if not price.listed)),
    )


def _sum_counts(several: Sequence[Counts]) -> Counts:
    total = Counts(times=deque())
    for each in several:
        total.include(each)
    return total


def _plus(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.input + other.input,
        one.cache_read + other.cache_read,
        one.cache_write + other.cache_write,
        one.output + other.output,
        lasting=one.lasting + other.lasting,
    )


def _pct(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0
