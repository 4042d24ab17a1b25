"""Where one session stands, in a line: how full its window is, what it cost and saved, what left
it and was asked back."""

from __future__ import annotations

from dataclasses import dataclass

from hotset.config import Config
from hotset.nouns.bill import Bill
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Session
from hotset.runtime.metrics import savings
from hotset.store.port import Store
from hotset.window.price import price_of

EVICTED, RETRIEVED = "Evicted", "Retrieved"
"""Event names: a stretch of steps left the window; the model asked for something."""


@dataclass(frozen=True, slots=True)
class SessionGlance:
    session: SessionId
    turn: int
    model: str
    prompt: int
    """Tokens of its latest prompt, as the provider counted them."""
    window: int
    """Tokens that a prompt may have."""
    spent_dollars: float
    saved_dollars: float
    left: int
    """Times that steps left the window."""
    back: int
    """Times that the model asked for something that it had not been shown whole."""

    @property
    def filled(self) -> float:
        """The share of the window that the latest prompt takes."""
        return self.prompt / self.window if self.window else 0.0


def glance_at(store: Store, config: Config, session: SessionId) -> SessionGlance | None:
    """Where a session stands; None before its first turn is paid for."""
    bill = max(store.bills(session), key=lambda each: each.turn, default=None)
    if bill is None:
        return None
    total = savings(store, config, session).total
    names = [event.name for event in store.events(session)]
    return SessionGlance(
        session,
        bill.turn,
        bill.model,
        round(bill.usage.prompt / max(1, bill.calls)),
        window_of(config, bill),
        total.measured.dollars,
        total.saved.dollars,
        names.count(EVICTED),
        names.count(RETRIEVED),
    )


def window_of(config: Config, bill: Bill) -> int:
    """Tokens that a prompt of this turn's model may have."""
    window = price_of(bill.model, config.prices, bill.upstream).window
    return min(config.budget or window, window)


def session_known_as(store: Store, name: str) -> Session | None:
    """The session that its client calls so; the one that was used last if it is unknown. None if
    there is none."""
    every = store.recent_sessions()
    named = (each for each in every if name and name in (each.id, each.key.partition(":")[2]))
    return next(named, every[0] if every else None)


def describe_glance(glance: SessionGlance) -> str:
    """`41 % of 200k · $1.23, saved $3.10 · 2 left, 1 back`."""
    parts = [f"{100 * glance.filled:.0f} % of {thousands(glance.window)}"]
    spent = _dollars(glance.spent_dollars)
    saves = f"{glance.saved_dollars:.2f}" not in ("0.00", "-0.00")
    parts.append(f"{spent}, saved {_dollars(glance.saved_dollars)}" if saves else spent)
    moved = [
        f"{count} {word}" for count, word in ((glance.left, "left"), (glance.back, "back")) if count
    ]
    return " · ".join([*parts, *([", ".join(moved)] if moved else [])])


def thousands(tokens: int) -> str:
    """Tokens as people read them: 200k, 1M."""
    if tokens < 1000:
        return str(tokens)
    if tokens < 1_000_000:
        return f"{tokens / 1000:.0f}k"
    return f"{tokens / 1_000_000:.1f}M".replace(".0M", "M")


def _dollars(amount: float) -> str:
    return f"{'-' if amount < 0 else ''}${abs(amount):,.2f}"


def status_line(store: Store | None, config: Config, name: str = "") -> str:
    """The line of the session that its client calls so, or of the one that was used last."""
    session = session_known_as(store, name) if store is not None else None
    found = glance_at(store, config, session.id) if store is not None and session else None
    return f"hotset {describe_glance(found)}" if found is not None else "hotset · nothing kept yet"
