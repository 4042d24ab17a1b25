"""What an operator can choose about memories."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from hotset.nouns.knobs import Seconds, Tokens


class Remembering(Struct, frozen=True):
    enabled: bool = True
    """Sessions become memories, and can be recalled."""
    offer: bool = True
    """What is remembered is told to an agent with its prompts, a few hundred tokens at most;
    otherwise it has to ask."""
    index_tokens: Tokens = 100
    """Of what a session is told at its start: what there is to know."""
    offer_tokens: Tokens = 400
    """Of all that a prompt may bring along, the start's included."""
    offer_seconds: Seconds = 0.3
    """How long a prompt waits for it: memories are found in some 20 ms; to look at a session that
    has just ended takes longer."""
    quiet_seconds: Seconds = 120.0
    """Without a call: then a session is looked at. One that opens looks at those before it at
    once."""
    consolidate_hours: Annotated[float, Meta(ge=0, le=1_000_000, extra={"unit": "hours"})] = 24.0
    """From one consolidation in the background to the next; 0 leaves it to `hotset memory
    consolidate`."""
