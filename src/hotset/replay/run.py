"""Recorded sessions through policies: which of them count, under which rules, and what came of
it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from hotset.nouns.price import Price, Prices
from hotset.replay.conversation import RecordedConversation, conversations
from hotset.replay.measure import Figures, Rules, Studied, measure
from hotset.replay.recorded import Recorded
from hotset.replay.report import Report, row
from hotset.replay.roster import FULL, Maker, full
from hotset.window.price import price_of

SHORTEST = 16
"""Calls below which a session says nothing about windows."""

PROVIDERS: Mapping[str, str] = {
    "anthropic": "claude-sonnet-4",
    "openai": "gpt-5",
    "gemini": "gemini-2.5-flash",
    "deepseek": "deepseek-chat",
    "mistral": "mistral-large",
    "qwen": "qwen-plus",
}
"""Each provider's cache rules stand with a model of its in the list of prices that has no rules of
its own."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """Which rules hold for a recorded model."""

    prices: Prices
    provider: str = ""
    """One of `PROVIDERS`, whose rules hold for every model; empty for the recorded model's own."""
    window: int = 0
    """Tokens that a prompt may have; 0 for the recorded model's own window."""
    ttl: int | None = None
    """Seconds after which a cache is cold; None for the price's own, 0 leaves recorded pauses out
    of account."""

    def rules(self, model: str) -> Rules:
        own = price_of(model, self.prices)
        price: Price = price_of(PROVIDERS[self.provider], self.prices) if self.provider else own
        window = self.window or own.window
        if self.ttl == 0:
            return Rules(price, window)
        price = price if self.ttl is None else replace(price, ttl=self.ttl)
        return Rules(price, window, price.ttl)


@dataclass(slots=True)
class Gathered:
    """The sessions of one set."""

    set: str
    sessions: int = 0
    """All that were read."""
    counted: list[tuple[int, RecordedConversation]] = field(default_factory=list)
    """What is replayed, each with the number of its session."""

    def rounds(self, makers: Mapping[str, Maker]) -> int:
        """How many conversations are gone through to replay it with these policies."""
        return len(self.counted) * len(_with_full(makers))


def gather(
    recorded: Iterable[Recorded], ruling: Ruling, *, everything: bool = False
) -> list[Gathered]:
    """The sessions by set. Those count that are long and would overflow their window; all, where a
    set has none of these.

    A session that is not going to count is forgotten as soon as that is known: a folder of
    transcripts can be large.
    """
    sets: dict[str, Gathered] = {}
    rest: dict[str, list[tuple[int, RecordedConversation]]] = {}
    for number, session in enumerate(recorded):
        gathered = sets.setdefault(session.set, Gathered(session.set))
        gathered.sessions += 1
        short = rest.setdefault(session.set, [])
        for stretch in conversations(session):
            # Sessions of different files may have the same name; what is told of each is told by
            # its name.
            entry = (number, replace(stretch, id=f"{number}:{stretch.id}"))
            if not any(stretch.calls):
                continue
            if everything or _counts(stretch, ruling):
                gathered.counted.append(entry)
                short.clear()
            elif not gathered.counted:
                short.append(entry)
    for name, gathered in sets.items():
        gathered.counted = gathered.counted or rest[name]
    return [gathered for gathered in sets.values() if gathered.counted]


def replay(
    gathered: Gathered,
    makers: Mapping[str, Maker],
    ruling: Ruling,
    clock: Callable[[], float],
    step: Callable[[], None] = lambda: None,
) -> Report:
    """Every one of these policies on everything that counts. `step` is called after each of
    `gathered.rounds(makers)` rounds."""
    figures = {name: Figures() for name in _with_full(makers)}
    for _, conversation in gathered.counted:
        rules = ruling.rules(conversation.model)
        studied = Studied.of(conversation)
        for name, make in _with_full(makers).items():
            measure(studied, make(conversation, rules), rules, figures[name], clock)
            step()
    return Report(
        set=gathered.set,
        sessions=len({number for number, _ in gathered.counted}),
        calls=figures[FULL].calls,
        policies={name: row(figures[name], figures[FULL]) for name in makers},
        sessions_read=gathered.sessions,
        stretches=len(gathered.counted),
        windows=tuple(
            sorted(
                {ruling.rules(conversation.model).window for _, conversation in gathered.counted}
            )
        ),
    )


def _counts(stretch: RecordedConversation, ruling: Ruling) -> bool:
    return len(stretch.calls) >= SHORTEST and stretch.peak > ruling.rules(stretch.model).window


def _with_full(makers: Mapping[str, Maker]) -> Mapping[str, Maker]:
    """Full history is the yardstick, asked for or not."""
    return {FULL: full, **makers}
