"""Carries out what a person ordered about single pages, as a part of the plan."""

from __future__ import annotations

from hotset.nouns.knobs import Knobs
from hotset.nouns.order import OrderAct
from hotset.nouns.window import WHOLE, Cause, Form, Spot
from hotset.window.evict import shown_anew
from hotset.window.leave import Departure, leave
from hotset.window.moment import Moment
from hotset.window.step_sizes import WeighedConversation


def restore_ordered(weighed: WeighedConversation, moment: Moment) -> WeighedConversation:
    """The conversation with the pages whole that a person wants back; the same object if there is
    none."""
    due = moment.orders.due(OrderAct.RESTORE, is_lost=weighed.lost is not None)
    short = {spot for spot in due if _is_short(weighed, spot)}
    if not short:
        return weighed
    chains = {spot.chain for spot in short}
    together = {
        line.chain
        for step in weighed.steps
        if any(line.chain in chains for line in weighed.inside(step))
        for line in weighed.inside(step)
    }
    return weighed.without_rows({*short, *(Spot(chain, WHOLE) for chain in together)})


def evict_ordered(weighed: WeighedConversation, knobs: Knobs, moment: Moment) -> Departure:
    """The departure of the steps that a person wants out of the window. The latest step stays: the
    model has not answered it yet."""
    due = moment.orders.due(OrderAct.EVICT, is_lost=weighed.lost is not None)
    chains = {spot.chain for spot in due}
    steps = [
        step
        for step in weighed.steps[:-1]
        if any(line.chain in chains for line in weighed.inside(step)) and weighed.is_resident(step)
    ]
    if not steps:
        return Departure()
    departure = leave(weighed, steps, knobs, moment, Cause.PERSON)
    departure.rows += shown_anew(departure, weighed, knobs, moment)
    return departure


def _is_short(weighed: WeighedConversation, spot: Spot) -> bool:
    own = weighed.rows.get(spot.chain, {})
    row = own.get(spot.position)
    return WHOLE in own or (row is not None and row.form is not Form.FULL)
