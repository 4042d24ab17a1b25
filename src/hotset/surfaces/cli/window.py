"""`hotset window`: the window of a turn, and a person's orders about it."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from hotset.errors import BadInput
from hotset.nouns.order import OrderAct
from hotset.runtime.orders import (
    KeptOrder,
    PrefixPrice,
    list_orders,
    order_off,
    order_page,
    order_tool,
    read_orders,
    undo_order,
)
from hotset.runtime.reader import Store, find_page, find_session, open_existing
from hotset.runtime.views.window import WindowSegment, WindowView, read_window
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.terminal import (
    count,
    emit,
    emit_json,
    money,
    plain_line,
    shortened,
    span,
    table,
    width,
)

_MOST_SEGMENTS = 30
_ACTS = ("show", *(act.value for act in OrderAct), "undo", "orders")
_NAMES = {"full": "whole", "gone": "left", "stub": "left"}


@click.command(
    epilog=examples(
        "hotset window",
        "hotset window show last 12",
        "hotset window pin p1a1d830cf966c9a",
        "hotset window restore p1a1d830cf966c9a --now",
        "hotset window evict p1a1d830cf966c9a",
        "hotset window whole Bash",
        "hotset window off last",
        "hotset window orders",
        "hotset window undo p1a1d830cf966c9a",
    )
)
@click.argument("act", default="show", metavar="[ACT]", type=click.Choice(_ACTS))
@click.argument("about", default="last")
@click.argument("turn", default="last")
@project_options
@click.option("--now", is_flag=True, help="With the next request, whatever it costs.")
@as_json
def window(
    chosen: ProjectOptions, act: str, about: str, turn: str, *, now: bool, as_json: bool
) -> None:
    """What the model sees, piece by piece, in the order of the window; and your orders about it.

    An order is carried out when the provider's cache is lost anyway, so that it costs nothing;
    `--now` carries it out with the next request and says what that costs. Nothing that hotset
    learns changes an order; `undo` takes it back.
    """
    config = chosen.config()
    with open_existing(config) as store:
        if act == "show":
            _show(chosen, store, about, turn, as_json)
            return
        if act == "orders":
            _list(chosen, list_orders(store), as_json)
            return
        if act == OrderAct.OFF:
            about = find_session(store, about).id
        price = _carry_out(chosen, store, act, about, now)
        kept = list_orders(store)
    if as_json:
        emit_json({"orders": kept, "price": price})
        return
    chosen.say(_confirm(act, about, price, now))


def _carry_out(
    chosen: ProjectOptions, store: Store, act: str, about: str, at_once: bool
) -> PrefixPrice | None:
    config, moment = chosen.config(), time.time()
    if act == "undo":
        undo_order(store, about, moment)
        return None
    if act == OrderAct.WHOLE:
        order_tool(store, "" if about == "last" else about, moment)
        return None
    if act == OrderAct.OFF:
        found = find_session(store, about)
        return order_off(store, config, found, at_once=at_once, now=moment)
    if about == "last":
        raise BadInput(f"name a page: `hotset window {act} PAGE`; `hotset window` lists them")
    page = find_page(store, about)
    return order_page(store, config, page, OrderAct(act), at_once=at_once, now=moment)


def _confirm(act: str, about: str, price: PrefixPrice | None, at_once: bool) -> str:
    if act == "undo":
        return f"taken back: the order about {about}; it holds with the next cold cache"
    if act == OrderAct.WHOLE:
        return (
            f"new results of {about} are shown whole; take it back with: hotset window undo {about}"
        )
    assert price is not None
    cost = f"{price.tokens:,} tokens are written again, {money(price.dollars)}"
    when = (
        f"with the next request: {cost}"
        if at_once
        else f"when the provider's cache is lost anyway, at no cost; with --now: {cost}"
    )
    if act == OrderAct.PIN:
        return f"{about} stays; take it back with: hotset window undo {about}"
    return f"{act} {about}, {when}; take it back with: hotset window undo {about}"


def _list(chosen: ProjectOptions, orders: Sequence[KeptOrder], as_json: bool) -> None:
    if as_json:
        emit_json(orders)
        return
    if not orders:
        chosen.say("no orders; give one with: hotset window pin PAGE")
        return
    rows = [
        (
            each.act,
            each.about,
            "at once" if each.at_once else "when it is free",
            f"{span(time.time() - each.time)} ago",
        )
        for each in orders
    ]
    table(("order", "about", "carried out", "given"), rows)


def _show(chosen: ProjectOptions, store: Store, about: str, turn: str, as_json: bool) -> None:
    if turn != "last" and not turn.isdecimal():
        raise BadInput(f"turn {turn}: use a number, or last")
    session = find_session(store, about)
    number = 0 if turn == "last" else int(turn)
    view = read_window(store, chosen.config(), session, number, read_orders(store))
    if view is None:
        raise BadInput(f"{session.id} has no turn {turn}; see: hotset show {session.id}")
    if as_json:
        emit_json(view)
        return
    emit(click.style(f"{view.session}  turn {view.turn}  {plain_line(view.model)}", bold=True))
    emit(_headline(view))
    latest = view.segments[-_MOST_SEGMENTS:]
    if len(latest) < len(view.segments):
        emit(f"… {count(len(view.segments) - len(latest), 'piece')} before these")
    rows = [_row(each) for each in latest]
    table(("turn", "what", "form", "tokens", "of", "id"), rows, right={0, 3, 4})
    pages = [each.pages[0] for each in latest if each.pages]
    if pages:
        chosen.say(f"\nKeep one: {chosen.hint(f'window pin {pages[-1]}')}")


def _headline(view: WindowView) -> str:
    share = f"{100 * view.sent / view.window:.0f} % of {view.window:,} tokens"
    left = (
        f", full in about {count(view.turns_left, 'turn')}" if view.turns_left is not None else ""
    )
    return (
        f"{view.sent:,} tokens instead of {view.whole:,}; {share}{left}; "
        f"{money(view.spent)} so far instead of {money(view.everything)}"
    )


def _row(each: WindowSegment) -> tuple[str, ...]:
    what = each.tool or (count(len(each.pages), "page") if len(each.pages) > 1 else "")
    name = shortened(plain_line(f"{each.kind} {what}".strip()), max(20, width() - 60))
    form = f"{_NAMES.get(each.form, each.form)}{f', {each.order}' if each.order else ''}"
    id = each.reference or (each.pages[0] if each.pages else "")
    return (str(each.turn or ""), name, form, f"{each.tokens:,}", f"{each.whole:,}", id)
