"""`hotset learn trial`, `freeze`, `reset` and the like: what a person orders."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from hotset.config import parse_orders
from hotset.errors import BadInput
from hotset.learn.events import BY_EVOLUTION
from hotset.learn.state import ChangeRow, LearnState, freeze_of, own_and_groups, rows
from hotset.runtime.learned_state import read_state
from hotset.runtime.learning_orders import (
    allow_again,
    freeze_knobs,
    order_trial,
    reset_knobs,
    switch_learning,
    unfreeze_knobs,
)
from hotset.runtime.learning_view import (
    OrderPrice,
    learning_status,
    order_price,
)
from hotset.runtime.reader import open_existing, open_or_empty
from hotset.surfaces.cli.learn import (
    describe_exploring,
    describe_frozen,
    print_arms,
    summarise,
)
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.terminal import count, emit, emit_json, money

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_BARE_SHARE = re.compile(r"\d+(?:\.\d+)?")


@click.command(
    epilog=examples(
        "hotset learn trial off=10%",
        "hotset learn trial semantic-heavy=10% episodic-heavy=10%",
        "hotset learn trial off=0%",
        "hotset learn trial explore=20% --knob regret --knob memory.tell",
    )
)
@project_options
@click.argument("shares", nargs=-1, metavar="ARM=SHARE%...")
@click.option("--knob", "knobs", multiple=True, metavar="KNOB", help="For explore: a knob to try.")
@as_json
def trial(
    chosen: ProjectOptions, shares: tuple[str, ...], knobs: tuple[str, ...], as_json: bool
) -> None:
    """Give a share of new sessions to a profile, at random and for good; `off` lets them through
    untouched, as a control.

    Each arm gets at least 10 %, and so does the default. 0 % ends a trial; what it showed stays in
    `hotset learn compare`. `explore` is the share of the default's sessions that try other values
    of a few knobs. Without arguments: what is on trial.
    """
    config = chosen.config()
    if shares or knobs:
        given = dict(map(_share, shares))
        if len(given) < len(shares):
            raise BadInput("an arm is named twice; say each share once")
        with open_existing(config) as store:
            _, state = order_trial(store, config, given, time.time(), knobs)
    else:
        with open_or_empty(config) as store:
            state = read_state(store)
    found = learning_status(state, config, time.time())
    if as_json:
        emit_json(found.arms)
        return
    print_arms(found.arms)
    if found.explores and found.is_on:
        emit("\n" + describe_exploring(found, chosen))
    if not found.is_on:
        emit("\n" + summarise(found, chosen))
    if shares:
        chosen.say(f"\nFrom the next session on. See: {chosen.hint('learn compare')}")


def _share(typed: str) -> tuple[str, float]:
    name, equals, text = typed.partition("=")
    given = _SHARE.fullmatch(text.strip())
    if not equals or given is None:
        is_number = _BARE_SHARE.fullmatch(text.strip())
        meant = f"{name}={text.strip()}%" if is_number else "off=10%"
        raise BadInput(f"{typed!r} must look like {meant}")
    return name, float(given[1]) / 100


@click.command(
    epilog=examples(
        "hotset learn freeze keep",
        "hotset learn freeze keep=8",
        'hotset learn freeze "tools.Bash={over=9000, room=6000}"',
        "hotset learn freeze tools.Read=never",
    )
)
@project_options
@click.argument("knobs", nargs=-1, metavar="[KNOB[=VALUE]]...")
@as_json
def freeze(chosen: ProjectOptions, knobs: tuple[str, ...], as_json: bool) -> None:
    """Keep knobs as they are: nothing learned changes them. Without a name, all of them. Open
    sessions stay as they are.

    KNOB=VALUE sets a value as well. It holds at once, also in open sessions; the price is told. A
    limit may be `never`: such results are always shown whole.
    """
    config = chosen.config()
    words = _joined(knobs)
    values = parse_orders([each for each in words if "=" in each], "learn freeze")
    typed = [each.partition("=")[0].strip() for each in words]

    with open_existing(config) as store:
        before, after = freeze_knobs(store, config, typed, values, time.time())
        price = order_price(store, config, time.time()) if values else None
    done = [_frozen_sentence(name, before, after) for name in typed]
    if not typed:
        done = ["every knob was frozen already" if before.all_frozen else "every knob is frozen"]
    _confirm(chosen, after, done, as_json=as_json, price=price)


def _joined(words: Sequence[str]) -> list[str]:
    """The words, with a table that the shell took apart in one again."""
    found: list[str] = []
    for word in words:
        if found and found[-1].count("{") > found[-1].count("}"):
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found


def _frozen_sentence(name: str, before: LearnState, after: LearnState) -> str:
    held, was = after.frozen[name], before.frozen.get(name)
    if held == was:
        return f"nothing was done: {name} was frozen already"
    if held.is_order:
        return f"{name} is {_shown(held.held[name])} from now on, in every session"
    told = ", ".join(f"{each}={_shown(value)}" for each, value in sorted(held.held.items()))
    what = f"as learned so far ({told})" if told else "at what holds without learning"
    return f"{name} is frozen {what}; open sessions are not changed"


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()


@click.command(epilog=examples("hotset learn unfreeze", "hotset learn unfreeze keep"))
@project_options
@click.argument("knobs", nargs=-1, metavar="[KNOB]...")
@as_json
def unfreeze(chosen: ProjectOptions, knobs: tuple[str, ...], as_json: bool) -> None:
    """Undo `freeze`. Without a name, for all knobs."""
    config = chosen.config()

    with open_existing(config) as store:
        before, after = unfreeze_knobs(store, config, knobs, time.time())
    thawed = sorted(before.frozen.keys() - after.frozen.keys())
    done = [f"thawed: {', '.join(thawed)}"] if thawed else []
    if before.all_frozen and not after.all_frozen:
        done = ["every knob is thawed"]
    price = None
    if lifted := before.orders.keys() - after.orders.keys():
        with open_existing(config) as store:
            price = order_price(store, config, time.time())
        done.append(f"sessions get their own {', '.join(sorted(lifted))} back")
    nothing = f"nothing was done: {', '.join(knobs) or 'no knob'} is not frozen"
    _confirm(chosen, after, done or [nothing], as_json=as_json, price=price)


@click.command(
    epilog=examples(
        "hotset learn reset tools.Bash", "hotset learn reset c-1a2b3c4d", "hotset learn reset"
    )
)
@project_options
@click.argument("knobs", nargs=-1, metavar="[KNOB|CHANGE]...")
@as_json
def reset(chosen: ProjectOptions, knobs: tuple[str, ...], as_json: bool) -> None:
    """Take back what was learned about KNOB, one CHANGE by its id, or everything: new sessions get
    the defaults, and nobody explores any more.

    It is not learned again until `hotset learn unreset`. A person's trials and frozen knobs stay.
    """
    config = chosen.config()
    with open_existing(config) as store:
        before, after = reset_knobs(store, config, knobs, time.time())
    old = {row.id: row for row in rows(before)}
    gone = [row for row in rows(after) if row.stage == "reset" != old[row.id].stage]
    done = [f"took back {row.id} ({', '.join(sorted(row.knobs))})" for row in gone]
    forgotten = sorted(_explored(before) - _explored(after))
    if forgotten:
        done.append(f"forgot what exploring said of {', '.join(forgotten)}")
    if before.beliefs.share and not after.beliefs.share:
        done.append("no session explores any more")
    if gone:
        ids = " ".join(row.id for row in gone)
        done.append(f"to let it be learned again: {chosen.hint(f'learn unreset {ids}')}")
        done += _resting_on(chosen, gone, before, after)
    asked = ", ".join(knobs) or "anything"
    nothing = f"nothing was done: nothing that was learned about {asked} is in force or on trial"
    held = sorted(_frozen_values(after, knobs))
    done = done or [nothing]
    for name in held:
        thaw = chosen.hint(f"learn unfreeze {freeze_of(after, name)}")
        done.append(f"{name} is frozen all the same; to thaw: {thaw}")
    _confirm(chosen, after, done, as_json=as_json)


def _resting_on(
    chosen: ProjectOptions, gone: Sequence[ChangeRow], before: LearnState, after: LearnState
) -> Iterator[str]:
    """What is still in force and was measured on a change that is gone."""
    live = {row.id for row in rows(after) if row.undo}
    if not any(row.by == BY_EVOLUTION for row in rows(after) if row.id in live):
        return
    from hotset.replay.evolve import changes_on_top  # noqa: PLC0415 - loads the replay

    later = {each.id: each for row in gone for each in changes_on_top(row, rows(before))}
    for id, row in later.items():
        if id in live:
            undo = chosen.hint(row.undo.removeprefix("hotset "))
            yield f"{id} rests on that and is still in force; take it back with: {undo}"


def _explored(state: LearnState) -> set[str]:
    return {name for block in state.beliefs.blocks for name in block.knobs} | set(
        state.beliefs.known
    )


def _frozen_values(state: LearnState, knobs: Sequence[str]) -> set[str]:
    """Those of the knobs that a freeze holds at a value."""
    held = {name for freeze in state.frozen.values() for name in freeze.held}
    return {name for name in held if any(each in knobs for each in own_and_groups(name))}


@click.command(
    epilog=examples("hotset learn unreset tools.Bash", "hotset learn unreset c-1a2b3c4d")
)
@project_options
@click.argument("knobs", nargs=-1, metavar="[KNOB|CHANGE]...")
@as_json
def unreset(chosen: ProjectOptions, knobs: tuple[str, ...], as_json: bool) -> None:
    """Let what `reset` took back be learned again. It comes back when sessions show again that it
    pays; without a name, everything."""
    config = chosen.config()
    with open_existing(config) as store:
        before, after = allow_again(store, config, knobs, time.time())
    names = sorted(name for name, marks in before.undone.items() if after.undone.get(name) != marks)
    done = f"may be learned again: {', '.join(names)}"
    asked = f" of {', '.join(knobs)}" if knobs else ""
    nothing = f"nothing was done: nothing{asked} was taken back by a person"
    _confirm(chosen, after, [done if names else nothing], as_json=as_json)


@click.command("on", epilog=examples("hotset learn on"))
@project_options
@as_json
def on(chosen: ProjectOptions, as_json: bool) -> None:
    """New sessions get what was learned."""
    with open_existing(chosen.config()) as store:
        before, after = switch_learning(store, time.time(), is_on=True)
    done = ["nothing was done: it was not switched off by `hotset learn off`"]
    _confirm(chosen, after, done if before.is_on else [], as_json=as_json)


@click.command("off", epilog=examples("hotset learn off"))
@project_options
@as_json
def off(chosen: ProjectOptions, as_json: bool) -> None:
    """New sessions get the defaults; what was learned stays, for `hotset learn on`."""
    with open_existing(chosen.config()) as store:
        before, after = switch_learning(store, time.time(), is_on=False)
    done = ["nothing was done: it was switched off before"]
    _confirm(chosen, after, [] if before.is_on else done, as_json=as_json)


def _confirm(
    chosen: ProjectOptions,
    state: LearnState,
    done: Sequence[str],
    *,
    as_json: bool,
    price: OrderPrice | None = None,
) -> None:
    """What an order did, and what holds now."""
    found = learning_status(state, chosen.config(), time.time())
    if as_json:
        emit_json(found)
        return
    for each in done:
        emit(each)
    emit(summarise(found, chosen))
    if frozen := describe_frozen(found):
        emit(frozen)
    if price is not None:
        emit(_price_sentence(price))


def _price_sentence(price: OrderPrice) -> str:
    if not price.sessions:
        return "It holds from the next request on; no session is open."
    cost = f", about {money(price.dollars)}" if price.dollars is not None else ""
    return (
        f"It holds from the next request on, also in {count(price.sessions, 'open session')}: what "
        f"was sent stays as it is. If pages leave because of it, up to {price.tokens:,} tokens are "
        f"written again{cost}."
    )
