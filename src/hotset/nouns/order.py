"""What a person ordered about the window: pages that stay, come back or leave, tools that are never
shortened, sessions that go out unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hotset.nouns.page import Chain
from hotset.nouns.window import Spot


class OrderAct(StrEnum):
    PIN = "pin"
    """The page stays in the window, in the form that it has."""
    RESTORE = "restore"
    """The page is shown whole, and stays."""
    EVICT = "evict"
    """The page leaves, with the step that it is a part of."""
    WHOLE = "whole"
    """New results of a tool are never shortened."""
    OFF = "off"
    """The session's requests go out unchanged."""


@dataclass(frozen=True, slots=True)
class WindowOrders:
    """The orders that hold in a project. The value says whether an order is carried out with the
    next request; otherwise it waits until the provider's cache is lost anyway."""

    pages: Mapping[Spot, tuple[OrderAct, bool]] = field(default_factory=dict)
    tools: frozenset[str] = frozenset()
    """Tools whose results are never shortened."""
    sessions: Mapping[str, bool] = field(default_factory=dict)
    """Sessions that go out unchanged, by the key under which their arm is kept."""
    pinned: frozenset[Chain] = field(init=False)
    """Messages whose steps never leave by themselves."""

    def __post_init__(self) -> None:
        stay = (OrderAct.PIN, OrderAct.RESTORE)
        pinned = frozenset(spot.chain for spot, (act, _) in self.pages.items() if act in stay)
        object.__setattr__(self, "pinned", pinned)

    def due(self, wanted: OrderAct, *, is_lost: bool) -> frozenset[Spot]:
        """The pages with this order that is to be carried out now; `is_lost` says whether the
        provider's cache is of no use anyway."""
        return frozenset(
            spot
            for spot, (act, at_once) in self.pages.items()
            if act is wanted and (at_once or is_lost)
        )


NO_ORDERS = WindowOrders()
