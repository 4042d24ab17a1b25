"""Knobs by name: what suits a kind of agent. A profile that was set holds for every agent; else
each gets its own kind's."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from hotset.nouns.knobs import Knobs, Limit, PolicyName
from hotset.nouns.page import Kind

DEFAULT = "default"

_PLAIN = Knobs()
_AS_DEFAULT = ("engineer", "designer", "inspector", "tester", "orchestrator", "guide")


def _evicting(share: float, *, at: float, policy: PolicyName, keep: int, spared: Kind) -> Knobs:
    """At the share `at` of the window, so much of what stands there leaves.

    `Knobs.low` is what the kept steps may take of the window afterwards. They took nearly all of
    `at` before, because what never leaves (system text, tools, the user's own words) is small
    beside them: at x (1 - share) stays.
    """
    return replace(
        _PLAIN, high=at, low=at * (1 - share), policy=policy, keep=keep, spared=frozenset({spared})
    )


_LEAN = replace(
    _PLAIN,
    limit=Limit(500, 500),
    limits={},
    keep=3,
    most=6,
    low=0.0,
    said=80,
    entry=100,
    mentions=250,
    written=1000,
    read=1000,
)
_LIBRARIAN = _evicting(0.25, at=0.75, policy="recency", keep=5, spared=Kind.PROMPT)

PROFILES: Mapping[str, Knobs] = {
    DEFAULT: _PLAIN,
    # The fewest tokens, for models that have no cache or little room: every result cut at 500
    # characters, the last 3 to 6 steps whole, a short log of the others. They leave in batches,
    # because a window that moves with every call would break the prefix with every call; with `low`
    # at 0 all of the older ones leave, however much room there is.
    "lean": _LEAN,
    "librarian": _LIBRARIAN,
    "archivalist": _LIBRARIAN,
    "academic": _evicting(0.30, at=0.80, policy="topic", keep=3, spared=Kind.PAPER),
    "architect": _evicting(0.25, at=0.85, policy="task", keep=5, spared=Kind.PLAN),
    **dict.fromkeys(_AS_DEFAULT, _PLAIN),
}
