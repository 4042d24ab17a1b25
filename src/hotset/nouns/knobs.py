"""What can be turned: how much is shown, how much stays, when pages leave. One frozen set holds for a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hotset.nouns.page import Kind


@dataclass(frozen=True, slots=True)
class Limit:
    """When a result is shortened at birth, and to what. In characters."""

    over: int
    """Longer results are shortened; 0 never shortens."""
    room: int
    """What the excerpt may take."""


NEVER = Limit(0, 0)


@dataclass(frozen=True, slots=True)
class Knobs:
    window: int = 200_000
    """Tokens that a prompt may have: the model's window, or less."""
    high: float = 0.85
    """The share of the window at which pages have to leave."""
    low: float = 0.25
    """The share of the window that the kept steps may take after pages left."""
    keep: int = 6
    """The latest steps, which never leave. A step is one reply of the model with the results of its calls."""
    most: int = 0
    """How many steps may stand in the window before all but `keep` leave; 0 sets no such bound."""
    limit: Limit = Limit(3000, 2000)
    limits: Mapping[Kind, Limit] = field(default_factory=dict)
    """Other limits for some kinds of results."""
    tools: Mapping[str, Limit] = field(default_factory=dict)
    """Other limits for some tools, by name; they win over `limits`."""
    echo: bool = True
    """Results that stand already become a line that says where; changed ones show what changed."""
    policy: str = "recency"
    """Which steps leave first; see `window.policies`."""
    spared: frozenset[Kind] = frozenset()
    """Kinds of pages whose steps leave last."""
    early: bool = True
    """Pages may leave before the window is full, where the price model says that it pays."""
    regret: float = 4.0
    """How many retrievals a batch of departures is expected to cause: what it must save at least, beside its own price."""
    patience: int = 60
    """The most calls that a session is expected to go on for."""
    entry: int = 160
    """Characters of the log that stays of each step that left."""

    def limit_of(self, kind: Kind, tool: str) -> Limit:
        return self.tools.get(tool) or self.limits.get(kind) or self.limit
