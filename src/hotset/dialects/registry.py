"""Every wire format by its name, and every provider's rules by number."""

from __future__ import annotations

from hotset.dialects import anthropic, chat, responses
from hotset.dialects.port import Dialect, Dialects, Invariant

DEFAULT: Dialect = chat
"""Used if nothing identifies the dialect: most servers know it."""

_EVERY: tuple[Dialect, ...] = (
    chat,
    anthropic,
    responses,
)
DIALECTS: Dialects = {each.name: each for each in _EVERY}

_OF_ALL = Invariant(
    25,
    "all",
    (
        "An error is identified by its code or type; its wording may change. Enforced by "
        "`explain`, not by a check of requests."
    ),
    "",
)
INVARIANTS = {
    each.number: each
    for each in sorted(
        (*(rule for dialect in _EVERY for rule in dialect.invariants), _OF_ALL),
        key=lambda rule: rule.number,
    )
}
"""Every provider's rules, by number."""
