"""A person's orders about single pages: pin, restore, evict; with the next cold cache, or at
once."""

from __future__ import annotations

import pytest

from hotset.nouns.knobs import NEVER, Knobs, Limit
from hotset.nouns.order import OrderAct, WindowOrders
from hotset.nouns.page import Role
from hotset.nouns.window import WHOLE, Cause, Form, Plan, Spot
from hotset.window.plan import plan
from tests.window.talk import PRICE, Talk, code, moment

ROOMY = Knobs(window=60_000, early=False)
TIGHT = Knobs(window=6000, low=0.5, keep=2, early=False, limit=NEVER, limits={})
WARM, COLD = 1001.0, 1001.0 + PRICE.ttl


def _planned(talk: Talk, knobs: Knobs, orders: WindowOrders, now: float = WARM) -> Plan:
    return plan(talk.lines, talk.table, (), knobs, moment(now, orders=orders))


def _sent(knobs: Knobs, steps: int = 12) -> Talk:
    """A conversation whose latest request went out, and one more step."""
    talk = Talk().user("Do it.")
    for n in range(steps):
        talk.step(f"result {n} " * 240)
    talk.sent(_planned(talk, knobs, WindowOrders(), now=1000.0))
    return talk.step("ok")


def _orders(talk: Talk, at: int, act: OrderAct, *, at_once: bool) -> tuple[Spot, WindowOrders]:
    spot = Spot(talk.lines[at].chain, 0)
    return spot, WindowOrders({spot: (act, at_once)})


def _is_gone(made: Plan, spot: Spot) -> bool:
    row = made.shown.get(Spot(spot.chain, WHOLE))
    return row is not None and row.form is Form.GONE


@pytest.mark.parametrize("at_once", [True, False])
def test_a_page_that_is_to_leave_leaves_at_once_or_with_the_next_cold_cache(at_once):
    talk = _sent(ROOMY)
    spot, orders = _orders(talk, 6, OrderAct.EVICT, at_once=at_once)

    warm = _planned(talk, ROOMY, orders)

    assert _is_gone(warm, spot) == at_once
    assert warm.broke == (Cause.PERSON if at_once else None)
    assert _is_gone(_planned(talk, ROOMY, orders, COLD), spot)


@pytest.mark.parametrize("at_once", [True, False])
def test_what_left_comes_back_whole_and_stays_while_the_rest_of_its_stretch_is_still_named(at_once):
    talk = _sent(TIGHT)
    gone = [at for at, line in enumerate(talk.lines) if Spot(line.chain, WHOLE) in talk.table.shown]
    results = [at for at in gone if talk.lines[at].role is Role.TOOL]
    assert len(results) > 3
    spot, orders = _orders(talk, results[1], OrderAct.RESTORE, at_once=at_once)
    wide = Knobs(window=60_000, early=False, limit=NEVER, limits={})

    warm = _planned(talk, wide, orders)
    assert _is_gone(warm, spot) != at_once
    back = warm if at_once else _planned(talk, wide, orders, COLD)

    assert not _is_gone(back, spot)
    assert back.broke is Cause.PERSON
    others = {Spot(talk.lines[at].chain, WHOLE) for at in gone} - {
        Spot(spot.chain, WHOLE),
        Spot(talk.lines[results[1] - 1].chain, WHOLE),  # the call of the same step
    }
    assert {each for each in others if _is_gone(back, each)} == others
    named = {each for stub in back.stubs for each in stub.spots}
    assert spot.chain not in {each.chain for each in named}
    again = talk.sent(back).step("more")
    after = _planned(again, wide, orders)
    assert after.broke is None
    assert not _is_gone(after, spot)


def test_what_was_shortened_is_shown_whole_again():
    talk = Talk().user("Do it.").step(code(400))
    short = Knobs(window=60_000, early=False, limit=Limit(1000, 500), limits={})
    talk.sent(_planned(talk, short, WindowOrders(), now=1000.0)).step("ok")
    spot, orders = _orders(talk, 2, OrderAct.RESTORE, at_once=True)
    assert talk.table.shown[spot].form is Form.EXCERPT

    made = _planned(talk, short, orders)

    assert made.shown.get(spot) is None or made.shown[spot].form is Form.FULL
    assert [(row.form, row.cause) for row in made.fresh if row.spot == spot] == [
        (Form.FULL, Cause.PERSON)
    ]
    assert made.broke is Cause.PERSON
    assert _planned(talk.sent(made).step("on"), short, orders).broke is None


def test_a_pinned_page_stays_when_the_window_overflows_and_others_leave():
    talk = _sent(Knobs(window=60_000, early=False, limit=NEVER, limits={}))
    spot, orders = _orders(talk, 2, OrderAct.PIN, at_once=False)

    assert _is_gone(_planned(talk, TIGHT, WindowOrders()), spot)
    made = _planned(talk, TIGHT, orders)

    assert made.stubs
    assert not _is_gone(made, spot)
    assert made.shown[spot].form is Form.FULL


def test_the_latest_step_never_leaves_by_order():
    talk = _sent(ROOMY)
    spot, orders = _orders(talk, len(talk.lines) - 1, OrderAct.EVICT, at_once=True)

    assert not _is_gone(_planned(talk, ROOMY, orders), spot)
