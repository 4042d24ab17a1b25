"""What the handoffs of a project cost, from the events and the bills of their turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotset.config import Config
from hotset.nouns.bill import Bill
from hotset.nouns.handoff import HANDOFF
from hotset.nouns.page import SessionId
from hotset.nouns.usage import Usage
from hotset.store.port import Store
from hotset.window.price import dollars, price_of


@dataclass(frozen=True, slots=True)
class HandoffCost:
    """What handoffs cost; it is part of what was measured."""

    handoffs: int = 0
    rewritten: int = 0
    """Tokens that were sent anew instead of being read from the provider's cache."""
    state_tokens: int = 0
    """Of these, for the states."""
    dollars: float = 0.0
    """What rewriting cost more than reading on, at list prices."""


def handoff_cost(
    store: Store, config: Config, bills: Sequence[Bill], session: SessionId | None = None
) -> HandoffCost:
    """The cost of the handoffs whose turns have a bill among these."""
    billed = {(bill.session, bill.turn): bill for bill in bills}
    many = rewritten = states = 0
    cost = 0.0
    for event in store.events(session):
        bill = billed.get((event.session, event.turn)) if event.name == HANDOFF else None
        if bill is None:
            continue
        price = price_of(bill.model, config.prices, bill.upstream)
        tokens = int(event.detail.get("rewritten", 0))
        many += 1
        rewritten += tokens
        states += int(event.detail.get("state_tokens", 0))
        written = Usage(input=tokens) if price.write == 1 else Usage(cache_write=tokens)
        cost += dollars(price, written) - dollars(price, Usage(cache_read=tokens))
    return HandoffCost(many, rewritten, states, cost)
