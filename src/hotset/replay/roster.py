"""Every policy by the name under which it is asked for: ours, and what others do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from hotset.nouns.knobs import PROFILES, Knobs
from hotset.replay.baselines import ClearToolUses, Compact, Evict, Mask, Truncate
from hotset.replay.conversation import RecordedConversation
from hotset.replay.measure import Rules
from hotset.replay.showing import Everything, PlannedShowing, Policy
from hotset.window.evict import POLICIES

DEFAULT, LEAN, FULL = "default", "lean", "full"

Maker = Callable[[RecordedConversation, Rules], Policy]
"""Sets a policy to one conversation."""

_LAST, _MOST = 5, 15  # moving the window with every call would break the prefix with every call


def ours(knobs: Knobs) -> Maker:
    """Our own planning with these knobs, for the window that the rules say."""

    def make(conversation: RecordedConversation, rules: Rules) -> Policy:
        return PlannedShowing(conversation, replace(knobs, window=rules.window), rules.price)

    return make


def full(conversation: RecordedConversation, rules: Rules) -> Policy:
    del rules
    return Everything(conversation)


KNOBS: Mapping[str, Knobs] = {
    DEFAULT: Knobs(),
    **{name: Knobs(policy=name) for name in POLICIES},
    "iterations": Knobs(keep=_LAST, most=_MOST),
    LEAN: PROFILES[LEAN],
}
"""What hotset does by itself, and what it can be told to do."""

OURS: Mapping[str, Maker] = {name: ours(knobs) for name, knobs in KNOBS.items()}

BASELINES: Mapping[str, Maker] = {
    FULL: full,
    "truncate": Truncate,
    "mask": Mask,
    "clear_tool_uses": ClearToolUses,
    "compact": Compact,
    "evict25": Evict,
}

ROSTER: Mapping[str, Maker] = {**OURS, **BASELINES}
USUAL = (DEFAULT, *BASELINES)
"""What is compared where nobody says otherwise."""
