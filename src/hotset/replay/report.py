"""Replays recorded sessions through policies and reports one row per policy, in percent of sending
everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from hotset.nouns.price import Price, Prices
from hotset.replay.conversation import RecordedConversation, RecordedSession, split_conversations
from hotset.replay.measure import Figures, StudiedConversation, measure
from hotset.replay.policies import FULL, Baseline, Maker, Rules
from hotset.window.price import price_of

_DIGITS = 2
_MOST_FIXED = 2.0  # times the median of a set, of a fixed part that is worked out from usage


@dataclass(frozen=True, slots=True)
class Row:
    """One policy on one set. Shares are in percent; `docs/replay.md` explains each figure."""

    tokens_pct: float
    """Tokens of all prompts, in percent of full history's."""
    cost_pct: float
    """Cost under the provider's cache rules, in percent of full history's."""
    faults_per_100: float
    """Actions that copy something that is no longer shown, in 100 actions."""
    faults_per_100_replies: float
    """Replies with such an action, in 100 replies that act."""
    cost_with_faults_pct: float
    """The same cost, with a retrieval paid for each fault."""
    cost_marked_pct: float
    """The same with faults, by a client's own cache marks and the provider's look-back."""
    miss_pct: float
    """Share of the strings and lines that actions copy that are no longer shown."""
    hinted_pct: float
    """Share of those that only a list of left-out names has; part of `miss_pct`."""
    hit_pct: float
    """Share of the tokens of all prompts that the provider had cached."""
    mean_prompt: int
    peak_prompt: int
    over_window_pct: float
    """Calls whose prompt would not have fitted the window."""
    prefix_breaks: int
    """Calls whose prompt does not extend the one before."""
    plan_ms_p95: float
    """Milliseconds to plan a call."""
    prefix_kept_pct: float
    """Calls whose prompt extends the one before."""
    evictions: int
    """How many times something left the window."""
    dearest_session_p95: float
    """95th percentile over sessions of the cost with faults, in percent of the same session's full
    history."""
    miss_distance_p50: int
    """How many calls before a fault the missing text last appeared."""
    miss_distance_p90: int
    tools_pct: float
    """Cost of the tools by which a model asks for more, in percent of full history's; part of the
    costs above."""
    pauses_pct: float
    """Cost of what caches lost in pauses, in percent of full history's; part of the costs above."""
    warming_saves_pct: float
    """What calls that keep the cache warm through pauses would have saved, their own cost taken
    off, in percent of full history's cost; negative where they cost more."""
    by_length: Mapping[int, float]
    """Cost with faults in percent of full history's, by the tokens of full history's prompt from
    which a class of prompts begins."""


@dataclass(frozen=True, slots=True)
class Report:
    """Every policy on one set."""

    set: str
    sessions: int
    """Sessions that count."""
    calls: int
    policies: Mapping[str, Row]
    sessions_read: int
    """All sessions, counted or not."""
    stretches: int
    """Replayed parts: a session that its client compacted has several."""
    windows: tuple[int, ...]
    """Tokens that a prompt may have: one size for all, or those of the recorded models."""
    knobs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For each policy that was changed for this run, the knobs that differ."""


def row(figures: Figures, full: Figures) -> Row:
    """`full` holds the figures of full history on the same conversations."""
    ratios = [cost / full.each[id] for id, cost in figures.each.items() if full.each.get(id)]
    return Row(
        tokens_pct=_percent(figures.prompt, full.prompt),
        cost_pct=_percent(figures.cost, full.cost),
        faults_per_100=_percent(figures.faults, figures.actions),
        faults_per_100_replies=_percent(figures.faulted, figures.replies),
        cost_with_faults_pct=_percent(figures.cost + figures.fault_cost, full.cost),
        cost_marked_pct=_percent(figures.marked_cost, full.marked_cost),
        miss_pct=_percent(figures.misses, figures.needs),
        hinted_pct=_percent(figures.hinted, figures.needs),
        hit_pct=_percent(figures.read, figures.prompt),
        mean_prompt=round(figures.prompt / max(1, figures.calls)),
        peak_prompt=figures.peak,
        over_window_pct=_percent(figures.over, figures.calls),
        prefix_breaks=figures.breaks,
        plan_ms_p95=round(1000 * _quantile(figures.seconds, 0.95), _DIGITS),
        prefix_kept_pct=_percent(figures.calls - figures.breaks, figures.calls),
        evictions=figures.departures,
        dearest_session_p95=round(100 * _quantile(ratios, 0.95), _DIGITS),
        miss_distance_p50=round(_quantile(figures.distances, 0.5)),
        miss_distance_p90=round(_quantile(figures.distances, 0.9)),
        tools_pct=_percent(figures.tools_cost, full.cost),
        pauses_pct=_percent(figures.pause_cost, full.cost),
        warming_saves_pct=_percent(figures.warmed, full.cost),
        by_length={
            length: _percent(figures.by_length.get(length, 0.0), cost)
            for length, cost in sorted(full.by_length.items())
        },
    )


def describe_row(report: Report, name: str, full: str) -> str:
    """One policy's row in a sentence, for the person whose sessions these are."""
    ours, everything = report.policies[name], report.policies.get(full)
    these = "this session" if report.sessions == 1 else f"these {report.sessions:,} sessions"
    cost = _compare_cost(ours.cost_with_faults_pct)
    sentence = (
        f"On {these} hotset would have cost {cost} sending "
        f"everything, its own tools included; "
        f"{_describe_faults(ours)}."
    )
    if everything is None or not everything.over_window_pct:
        return sentence
    over = max(1, round(everything.over_window_pct))
    return f"{sentence} Of 100 whole prompts {over} would not have fitted the window."


def describe_pauses(report: Report, name: str) -> str:
    """What cold caches cost under a policy, and what keeping them warm would have saved; empty
    where no pause was longer than a cache lives."""
    row = report.policies[name]
    if not row.pauses_pct:
        return ""
    saved = row.warming_saves_pct
    return (
        f"{name}: caches that went cold in pauses are {row.pauses_pct:.1f} of "
        f"{row.cost_pct:.1f} %; calls to keep them warm would have "
        f"{'saved' if saved >= 0 else 'cost'} {abs(saved):.1f}"
    )


def _compare_cost(percent: float) -> str:
    if (less := round(100 - percent)) == 0:
        return "as much as"
    return f"{abs(less)} % {'less' if less > 0 else 'more'} than"


def _describe_faults(row: Row) -> str:
    if not row.faults_per_100:
        return "no action would have had to fetch anything back"
    often = "fewer than 1" if row.faults_per_100 < 1 else f"{row.faults_per_100:.0f}"
    return f"{often} of 100 actions would have had to fetch something back, which is in that price"


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, _DIGITS) if whole else 0.0


def _quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed; 0 without
    values."""
    ranked = sorted(values)
    return ranked[ceil(share * len(ranked)) - 1] if ranked else 0.0


SHORTEST = 16
"""Sessions with fewer calls tell nothing about windows."""

PROVIDERS: Mapping[str, str] = {
    "anthropic": "claude-sonnet-4",
    "openai": "gpt-5",
    "gemini": "gemini-2.5-flash",
    "deepseek": "deepseek-chat",
    "mistral": "mistral-large",
    "qwen": "qwen-plus",
}
"""For each provider, a model in the price list that has the provider's cache rules unchanged."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """The rules for each recorded model."""

    prices: Prices
    provider: str = ""
    """One of `PROVIDERS`, whose rules apply to every model; empty for the recorded model's own."""
    window: int = 0
    """Tokens that a prompt may have; 0 for the recorded model's own window."""
    ttl: int | None = None
    """Seconds after which a cache is cold; None for the price's own, 0 to ignore recorded
    pauses."""

    def rules(self, model: str) -> Rules:
        own = price_of(model, self.prices)
        price: Price = price_of(PROVIDERS[self.provider], self.prices) if self.provider else own
        window = self.window or own.window
        if self.ttl == 0:
            return Rules(price, window)
        price = price if self.ttl is None else replace(price, ttl=self.ttl)
        return Rules(price, window, price.ttl)


@dataclass(slots=True)
class SessionSet:
    """The sessions of one set."""

    set: str
    sessions: int = 0
    """All sessions read."""
    counted: list[tuple[int, RecordedConversation]] = field(default_factory=list)
    """Conversations to replay, each with the number of its session."""

    def rounds(self, makers: Mapping[str, Maker]) -> int:
        """Number of replays for these policies."""
        return len(self.counted) * len(_with_full(makers))


def gather(
    recorded: Iterable[RecordedSession], ruling: Ruling, *, everything: bool = False
) -> list[SessionSet]:
    """Group the sessions by set. Sessions count if they are long and overflow their window; all
    count if a set has none of these.

    A session that does not count is dropped as soon as that is known: a folder of transcripts can
    be large.
    """
    sets: dict[str, SessionSet] = {}
    rest: dict[str, list[tuple[int, RecordedConversation]]] = {}
    for number, session in enumerate(recorded):
        gathered = sets.setdefault(session.set, SessionSet(session.set))
        gathered.sessions += 1
        short = rest.setdefault(session.set, [])
        for stretch in split_conversations(session):
            # Sessions of different files may have the same id, and figures are kept by id.
            entry = (number, replace(stretch, id=f"{number}:{stretch.id}"))
            if not any(stretch.calls):
                continue
            if everything or _is_counted(stretch, ruling):
                gathered.counted.append(entry)
                short.clear()
            elif not gathered.counted:
                short.append(entry)
    for name, gathered in sets.items():
        counted = _with_usual_fixed_part(gathered.counted)
        gathered.counted = [
            entry for entry in counted if everything or _is_counted(entry[1], ruling)
        ] or [*counted, *rest[name]]
    return [gathered for gathered in sets.values() if gathered.counted]


def _with_usual_fixed_part(
    entries: Sequence[tuple[int, RecordedConversation]],
) -> list[tuple[int, RecordedConversation]]:
    """No conversation has a much larger fixed part than its set: a resumed session seems to, for
    want of a record of what was said before."""
    most = _MOST_FIXED * _quantile([each.fixed for _, each in entries], 0.5)
    return [(number, replace(each, fixed=round(min(each.fixed, most)))) for number, each in entries]


def replay(
    gathered: SessionSet,
    makers: Mapping[str, Maker],
    ruling: Ruling,
    clock: Callable[[], float],
    step: Callable[[], None] = lambda: None,
) -> Report:
    """Replay everything that counts with every policy. `step` is called after each of
    `gathered.rounds(makers)` replays."""
    return report_on(gathered, makers, ruling, measure_all(gathered, makers, ruling, clock, step))


def measure_all(
    gathered: SessionSet,
    makers: Mapping[str, Maker],
    ruling: Ruling,
    clock: Callable[[], float],
    step: Callable[[], None] = lambda: None,
) -> Mapping[str, Figures]:
    """The figures of each policy, and of full history."""
    figures = {name: Figures() for name in _with_full(makers)}
    for _, conversation in gathered.counted:
        rules = ruling.rules(conversation.model)
        studied = StudiedConversation.of(conversation)
        for name, make in _with_full(makers).items():
            measure(studied, make(conversation, rules), rules, figures[name], clock)
            step()
    return figures


def report_on(
    gathered: SessionSet,
    makers: Mapping[str, Maker],
    ruling: Ruling,
    figures: Mapping[str, Figures],
) -> Report:
    """The rows of a set, from the figures of its policies."""
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


def _is_counted(stretch: RecordedConversation, ruling: Ruling) -> bool:
    return len(stretch.calls) >= SHORTEST and stretch.peak > ruling.rules(stretch.model).window


def _with_full(makers: Mapping[str, Maker]) -> Mapping[str, Maker]:
    """The policies plus full history, which is the yardstick."""
    return {FULL: Baseline, **makers}
