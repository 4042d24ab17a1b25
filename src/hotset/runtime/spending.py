"""What was spent today and in each session, over every process of a project, and the alerts that
raises. At list prices."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Lock

from hotset.config import Config
from hotset.files.lru import Lru
from hotset.nouns.alert import Alert
from hotset.nouns.bill import Bill
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Event
from hotset.store.port import Store
from hotset.window.ledger import alerts
from hotset.window.price import dollars, price_of

PER_DAY, PER_SESSION = "dollars_per_day", "dollars_per_session"
_MOST_SESSIONS = 256
_OVERLAP_SECONDS = 60.0
"""Bills of other processes may come into the store so much later than the time they bear."""

_TurnKey = tuple[SessionId | None, int]


def day_start(now: float) -> float:
    """Midnight of that day on this machine's clock."""
    today = datetime.fromtimestamp(now, UTC).astimezone()
    return today.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def quiet_since(event: Event) -> float:
    """The moment since which such an alert is not raised again: once a day, once a session."""
    return day_start(event.time) if event.detail["name"] == PER_DAY else 0.0


class Spending:
    """Adds up bills of today, and of the sessions that are billed. Thread-safe; `add` blocks."""

    def __init__(self, config: Config) -> None:
        self._prices = config.prices
        names = (PER_DAY, PER_SESSION)
        self._thresholds = {
            name: each
            for name, each in config.thresholds.items()
            if name in names and each.limit != each.never
        }
        self._lock = Lock()
        self._day = 0.0
        self._read_until = 0.0
        self._today: dict[_TurnKey, float] = {}
        """Dollars of each turn of today."""
        self._sessions: dict[SessionId, float] = {}
        """Dollars of today, by session."""
        self._raised: Lru[object, bool] = Lru("alerts", count=_MOST_SESSIONS, shrinks=False)
        self._before: Lru[SessionId, float] = Lru("spent before today", count=_MOST_SESSIONS)

    @property
    def is_watched(self) -> bool:
        """True if a threshold is set."""
        return bool(self._thresholds)

    def add(self, bill: Bill, store: Store | None, now: float) -> tuple[Alert, ...]:
        """What the bill's day or session is beyond, with what other processes billed."""
        with self._lock:
            self._begin_day(day_start(now))
            if store is not None:
                since = max(self._day, self._read_until - _OVERLAP_SECONDS)
                for each in store.bills(since=since):
                    self._count(each)
                    self._read_until = max(self._read_until, each.time)
            if bill.turn or store is None:  # else it is not known which of the store's it is
                self._count(bill)
            return alerts(self._readings(bill.session, store), self._thresholds)

    def is_first(self, event: Event) -> bool:
        """True where this process did not raise that alert yet: today, for that session."""
        key = (
            event.detail["name"],
            self._day if event.detail["name"] == PER_DAY else event.session,
        )
        with self._lock:
            if self._raised.get(key):
                return False
            self._raised.put(key, True)
        return True

    def standing(self, now: float) -> tuple[Alert, ...]:
        """Everything beyond its threshold today, for the dearest session that is known."""
        with self._lock:
            if self._day != day_start(now):
                return ()
            sums = {each: self._sum(each, None) for each in self._sessions}
            dearest = max(sums, key=lambda each: sums[each], default=None)
            return alerts(self._readings(dearest, None), self._thresholds)

    def _begin_day(self, day: float) -> None:
        if day != self._day:
            self._day = day
            self._today.clear()
            self._sessions.clear()
            self._before.clear()

    def _count(self, bill: Bill) -> None:
        key = (bill.session, bill.turn)
        if key in self._today:
            return
        self._today[key] = cost = self._cost(bill)
        if bill.session is not None:
            self._sessions[bill.session] = self._sessions.get(bill.session, 0.0) + cost

    def _cost(self, bill: Bill) -> float:
        price = price_of(bill.model, self._prices, bill.upstream)
        return dollars(price, bill.usage, bill.calls)

    def _readings(self, session: SessionId | None, store: Store | None) -> dict[str, float]:
        found = {PER_DAY: sum(self._today.values())}
        return found if session is None else found | {PER_SESSION: self._sum(session, store)}

    def _sum(self, session: SessionId, store: Store | None) -> float:
        before = self._before.get(session)
        if before is None and store is not None and PER_SESSION in self._thresholds:
            earlier = (each for each in store.bills(session) if each.time < self._day)
            before = sum(map(self._cost, earlier))
            self._before.put(session, before)
        return self._sessions.get(session, 0.0) + (before or 0.0)
