"""Alerts: thresholds by name, and a value that is beyond its threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf


class Side(StrEnum):
    """On which side of its threshold a value gives cause for an alert."""

    ABOVE = "above"
    BELOW = "below"


@dataclass(frozen=True, slots=True)
class Threshold:
    limit: float
    side: Side
    means: str
    """What a value beyond the threshold means for the window."""

    @property
    def never(self) -> float:
        """The limit that no value is beyond."""
        return inf if self.side is Side.ABOVE else -inf

    def is_beyond(self, value: float) -> bool:
        return value > self.limit if self.side is Side.ABOVE else value < self.limit


@dataclass(frozen=True, slots=True)
class Alert:
    name: str
    value: float
    threshold: float
    side: Side
    means: str


NO_LIMIT = inf

THRESHOLDS: Mapping[str, Threshold] = {
    # A retrieval is a call more. Below one call in 10 that is lost in what is saved; above, too
    # much is left out.
    "retrieval_pct": Threshold(
        10.0, Side.ABOVE, "the model asks for what was left out in too many calls"
    ),
    # In percent of those that were due. Each failure leaves a stretch with notes by rules alone,
    # and they tend to have one cause: a model that cannot be reached.
    "summary_failures": Threshold(1.0, Side.ABOVE, "summaries could not be written"),
    # 138,000 tokens in 16 calls is what the sessions had without a window of ours; half of that,
    # and a reserve. A client with a large system prompt needs more: set what is usual there.
    "prompt_in_16_turns": Threshold(
        80_000.0, Side.ABOVE, "16 turns of a session take more tokens than they are meant to"
    ),
    # A broken prefix is written again at full price. Batches that pay for themselves come less
    # often than once in 50 turns.
    "prefix_kept_pct": Threshold(98.0, Side.BELOW, "the provider's cache is lost too often"),
    # A model's first token takes hundreds, so ten are not noticeable.
    "overhead_ms_p95": Threshold(10.0, Side.ABOVE, "planning holds requests up"),
    # What a turn may take depends on the work and the budget: the user sets a bound.
    "prompt_per_turn": Threshold(
        NO_LIMIT, Side.ABOVE, "turns take more tokens than they are meant to"
    ),
    # Pages leave at 95 % of the window at the latest. Where prompts stay near it there is little
    # left that could leave.
    "window_pct": Threshold(90.0, Side.ABOVE, "prompts fill the window"),
    # What is repeated word for word is pointed to, unless what it repeats has left or was
    # shortened: then that was too soon.
    "dedup_hit_pct": Threshold(
        50.0, Side.BELOW, "what results repeat had left the window, or was shortened, too often"
    ),
    # What is too much only the user knows.
    "dollars_per_day": Threshold(
        NO_LIMIT, Side.ABOVE, "today's calls cost more than you meant to spend in a day"
    ),
    "dollars_per_session": Threshold(
        NO_LIMIT, Side.ABOVE, "a session costs more than you meant to spend on one"
    ),
}
