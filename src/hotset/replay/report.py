"""What a replay found, in figures that people compare: one row a policy, in percent of sending
everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from hotset.replay.measure import Figures

_DIGITS = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One policy on one set. Shares are in percent; `docs/replay.md` says how each figure comes
    about."""

    tokens_pct: float
    """Tokens of all prompts, of those of full history."""
    cost_pct: float
    """Cost under the provider's cache rules, of that of full history."""
    faults_per_100: float
    """Actions that copy something which is no longer shown."""
    cost_with_faults_pct: float
    """The same cost, with a retrieval paid for each fault."""
    miss_pct: float
    """Of the strings and lines that actions copy, those that are no longer shown."""
    hit_pct: float
    """Of the tokens of all prompts, those that the provider had cached."""
    mean_prompt: int
    peak_prompt: int
    over_window_pct: float
    """Calls whose prompt the model could not have taken."""
    prefix_breaks: int
    """Calls whose prompt does not extend the one before."""
    plan_ms_p95: float
    """Milliseconds to decide what is shown at a call."""
    prefix_kept_pct: float
    """Calls whose prompt extends the one before."""
    evictions: int
    """How many times something left the window."""
    dearest_session_p95: float
    """Cost with faults of one session in twenty is above this, in percent of the same session's
    full history."""
    miss_distance_p50: int
    """How many calls before a fault the text that it wanted was last said."""
    miss_distance_p90: int
    tools_pct: float
    """What the tools by which a model asks for more add to the cost, in percent of full history's;
    in none of the costs above."""


@dataclass(frozen=True, slots=True)
class Report:
    """Every policy on one set."""

    set: str
    sessions: int
    """Those that count."""
    calls: int
    policies: Mapping[str, Row]
    sessions_read: int
    """Those that count and those that do not."""
    stretches: int
    """A session that its client had compacted is as many as it was cut into."""
    windows: tuple[int, ...]
    """Tokens that a prompt may have: one for all, or the different ones of the recorded models."""
    knobs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of each policy that was changed for this run, the knobs that differ."""


def row(figures: Figures, full: Figures) -> Row:
    """`full` holds the figures of full history on the same conversations."""
    ratios = [cost / full.each[id] for id, cost in figures.each.items() if full.each.get(id)]
    return Row(
        tokens_pct=_percent(figures.prompt, full.prompt),
        cost_pct=_percent(figures.cost, full.cost),
        faults_per_100=_percent(figures.faults, figures.actions),
        cost_with_faults_pct=_percent(figures.cost + figures.fault_cost, full.cost),
        miss_pct=_percent(figures.misses, figures.needs),
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
    )


def meaning(report: Report, name: str, full: str) -> str:
    """What one policy's row says to the person whose sessions these are."""
    ours, everything = report.policies[name], report.policies.get(full)
    these = "this session" if report.sessions == 1 else f"these {report.sessions:,} sessions"
    cost = _beside(ours.cost_with_faults_pct + ours.tools_pct)
    sentence = (
        f"On {these} hotset would have cost {cost} sending "
        f"everything, its own tools included; "
        f"{_faults(ours)}."
    )
    if everything is None or not everything.over_window_pct:
        return sentence
    over = max(1, round(everything.over_window_pct))
    return f"{sentence} Of 100 whole prompts {over} would not have fitted the window."


def _beside(percent: float) -> str:
    if (less := round(100 - percent)) == 0:
        return "as much as"
    return f"{abs(less)} % {'less' if less > 0 else 'more'} than"


def _faults(row: Row) -> str:
    if not row.faults_per_100:
        return "no action would have had to fetch anything back"
    often = "fewer than 1" if row.faults_per_100 < 1 else f"{row.faults_per_100:.0f}"
    return f"{often} of 100 actions would have had to fetch something back, which is in that price"


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, _DIGITS) if whole else 0.0


def _quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them does not exceed; 0 where there are
    none."""
    ranked = sorted(values)
    return ranked[ceil(share * len(ranked)) - 1] if ranked else 0.0
