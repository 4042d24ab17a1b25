"""`hotset learn ...`: what was learned, why a knob has its value, trials, and a person's orders."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import click
import msgspec

from hotset.config import parse_knobs
from hotset.errors import BadInput
from hotset.learn.events import BY_EVOLUTION, DEFAULT_ARM
from hotset.learn.state import ChangeRow, LearnState, rows
from hotset.runtime.learned_state import read_state
from hotset.runtime.learning_orders import (
    freeze_knobs,
    order_trial,
    reset_knobs,
    switch_learning,
    unfreeze_knobs,
)
from hotset.runtime.learning_view import (
    ArmView,
    KnobReason,
    LearningStatus,
    OrderPrice,
    arm_views,
    knob_reason,
    learning_status,
    order_price,
    profile_views,
    resolve_knob,
)
from hotset.runtime.reader import find_session_id, open_existing, open_or_empty
from hotset.runtime.strategy_log import strategy_log
from hotset.surfaces.cli.child import follow_stdin, while_stdin
from hotset.surfaces.cli.options import (
    ProjectOptions,
    as_json,
    examples,
    limit_option,
    project_options,
)
from hotset.surfaces.cli.terminal import count, emit, emit_json, money, plain_line, span, table

_LIVE = ("adopted", "trial")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_CERTAIN = 5  # comparisons below which an interval says nothing


@click.command(epilog=examples("hotset learn status", "hotset learn status --json"))
@project_options
@as_json
def status(chosen: ProjectOptions, as_json: bool) -> None:
    """What was learned in this project, since when, from which evidence, and how to undo it."""
    config, now = chosen.config(), time.time()
    with open_or_empty(config) as store:
        found = learning_status(read_state(store), config, now)
    if as_json:
        emit_json(found)
        return
    emit(_summary(found, chosen))
    for row in found.changes:
        if row.stage in _LIVE:
            emit("")
            _print_change(row, now)
    if found.frozen or found.all_frozen:
        names = "every knob" if found.all_frozen else ", ".join(sorted(found.frozen))
        emit(f"\nFrozen: {names}")
    tried = [arm for arm in found.arms if arm.name != DEFAULT_ARM]
    if tried:
        shares = ", ".join(f"{arm.name} {arm.share:.0%}" for arm in tried)
        emit(f"\nOn trial: {shares} of new sessions; compare with: {chosen.hint('learn compare')}")


def _summary(found: LearningStatus, chosen: ProjectOptions) -> str:
    adopted = sum(row.stage == "adopted" for row in found.changes)
    trials = sum(row.stage == "trial" for row in found.changes)
    seen = (
        f"{count(found.observed, 'session')} observed, {count(adopted, 'change')} in force, "
        f"{trials} on trial"
    )
    if not found.is_on:
        again = chosen.hint("learn on")
        return f"Learning is off ({found.why_off}). {seen}. Switch it on with: {again}"
    later = (
        "" if found.changes else f". Sessions teach when they end; now: {chosen.hint('learn now')}"
    )
    return f"Learning is on: {seen}{later}"


def _print_change(row: ChangeRow, now: float) -> None:
    emit(f"{row.id}  {row.stage} {span(max(0.0, now - row.since))} ago, by {row.by}")
    for name, value in row.knobs.items():
        emit(f"  {name}: {_shown(row.before.get(name))} -> {_shown(value)}")
    emit(f"  why: {row.why}")
    if row.evidence and row.evidence != row.why:
        emit(f"  evidence: {row.evidence}")
    if row.sessions:
        emit(
            f"  so far: {count(row.sessions, 'session')}, "
            f"{row.saved:,.0f} input tokens' worth saved, by the gate's gain"
        )
    if row.undo:
        emit(f"  undo: {row.undo}")


def _shown(value: Any) -> str:
    return "default" if value is None else msgspec.json.encode(value).decode()


@click.command(epilog=examples("hotset learn why keep", "hotset learn why tools.Bash --json"))
@project_options
@click.argument("knob")
@as_json
def why(chosen: ProjectOptions, knob: str, as_json: bool) -> None:
    """Why KNOB has its value: who decides about it, since when, and what was tried.

    The order: a client's header, a person's file or command, frozen, learned, default.
    """
    config, now = chosen.config(), time.time()
    with open_or_empty(config) as store:
        state = read_state(store)
    found = knob_reason(resolve_knob(knob, config, state), config, state)
    if as_json:
        emit_json(_reason_document(found))
        return
    emit(f"{found.name} is {_shown_native(found.value)} ({found.source}): {found.why}")
    if found.value != found.default:
        emit(f"  default: {_shown_native(found.default)}")
    if found.undo:
        emit(f"  undo: {found.undo}")
    for row in found.changes:
        emit("")
        _print_change(row, now)


def _shown_native(value: Any) -> str:
    return _shown(msgspec.to_builtins(value, order="sorted")) if value is not None else "not set"


def _reason_document(found: KnobReason) -> dict[str, Any]:
    return {
        "name": found.name,
        "value": msgspec.to_builtins(found.value),
        "default": msgspec.to_builtins(found.default),
        "source": found.source,
        "why": found.why,
        "changes": found.changes,
        "undo": found.undo,
    }


@click.command(
    epilog=examples(
        "hotset learn log", "hotset learn log last --json", "hotset learn log --json > log.json"
    )
)
@project_options
@limit_option(20)
@click.argument("session", required=False)
@as_json
def log(chosen: ProjectOptions, limit: int, session: str | None, as_json: bool) -> None:
    """Every offer, recall, search and retrieval: strategies with results and latency, what was
    selected and used, and how the task came out. The newest first.

    SESSION is an id, its beginning, or `last`.
    """
    with open_or_empty(chosen.config()) as store:
        every = list(strategy_log(store, find_session_id(store, session)))
    found = sorted(every, key=lambda each: each.timestamp, reverse=True)[: limit or None]
    if as_json:
        emit_json([msgspec.to_builtins(each) for each in found])
        return
    if not found:
        chosen.say("nothing was looked for yet; see what is kept: " + chosen.hint("sessions"))
        return
    table(
        ("when", "session", "turn", "door", "strategies", "selected", "used", "outcome"),
        [
            (
                each.timestamp,
                each.session or "",
                str(each.turn or ""),
                each.door,
                ", ".join(
                    f"{one.type} {one.results} in {one.latency_ms:.0f} ms"
                    for one in each.retrieval_strategies
                ),
                plain_line(" ".join(each.selected_memories)),
                str(len(each.used)),
                each.outcome,
            )
            for each in found
        ],
        right=(2, 6),
    )


@click.command(epilog=examples("hotset learn profiles", "hotset learn profiles --json"))
@project_options
@as_json
def profiles(chosen: ProjectOptions, as_json: bool) -> None:
    """The named sets of knobs that sessions can be tried with; your own are [profiles.NAME] in
    config.toml."""
    config = chosen.config()
    with open_or_empty(config) as store:
        found = profile_views(config, read_state(store), time.time())
    if as_json:
        emit_json(found)
        return
    table(
        ("profile", "from", "share", "what it changes"),
        [
            (each.name, each.by, f"{each.share:.0%}", _changed(each.name, each.changes))
            for each in found
        ],
        right=(2,),
    )


def _changed(name: str, changes: Any) -> str:
    if name == "off":
        return "requests go out as they come"
    return plain_line(", ".join(f"{knob}={_shown(value)}" for knob, value in changes.items()))


@click.command(epilog=examples("hotset learn compare", "hotset learn compare --json"))
@project_options
@as_json
def compare(chosen: ProjectOptions, as_json: bool) -> None:
    """The arms of a trial side by side: success, cost, turns, corrections and re-reads.

    Intervals hold at any time, however often you look. Cost is a share of what full history would
    have cost.
    """
    config, now = chosen.config(), time.time()
    with open_or_empty(config) as store:
        found = arm_views(read_state(store), now)
    if as_json:
        emit_json(found)
        return
    _print_arms(found)
    for arm in found[1:]:
        emit("")
        emit("\n".join(_sentences(arm)))
    if len(found) == 1:
        chosen.say(
            "\nNothing is on trial. A control on your own work: "
            + chosen.hint("learn trial off=10%")
        )


def _print_arms(found: Sequence[ArmView]) -> None:
    table(
        ("arm", "share", "sessions", "success", "cost", "turns", "corrections", "re-reads", "ms"),
        [
            (
                arm.name,
                f"{arm.share:.0%}",
                str(arm.sessions),
                "-" if arm.success is None else f"{arm.success:.0%}",
                "-" if arm.cost is None else f"{arm.cost:.0%}",
                f"{arm.turns:.1f}",
                f"{arm.corrections:.2f}",
                f"{arm.rereads:.2f}",
                f"{arm.latency_ms:.0f}",
            )
            for arm in found
        ],
        right=tuple(range(1, 9)),
    )


def _sentences(arm: ArmView) -> Iterator[str]:
    """What the sessions of an arm show against those of the default."""
    if not arm.differences:
        yield f"{arm.name}: no session of it has ended yet"
    for each in arm.differences:
        interval = f"{each.mean:+.1%} [{each.low:+.1%}, {each.high:+.1%}]"
        unit = "points of success" if each.figure == "success" else each.figure
        verdict = "shown" if each.low > 0 or each.high < 0 else "not shown to differ"
        if each.pairs < _CERTAIN:
            verdict = "too few sessions to tell"
        yield f"{arm.name} against default: {interval} {unit}; {verdict} ({each.pairs} pairs)"


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

    Each arm gets at least 10 %, and so does the default. 0 % ends a trial. `explore` is the share
    of sessions that try other values of a few knobs. Without arguments: what is on trial.
    """
    config = chosen.config()
    if shares:
        given = dict(map(_share, shares))
        with open_existing(config) as store:
            state = order_trial(store, config, given, time.time(), knobs)
    else:
        with open_or_empty(config) as store:
            state = read_state(store)
    found = arm_views(state, time.time())
    if as_json:
        emit_json(found)
        return
    _print_arms(found)
    if shares:
        chosen.say(f"\nFrom the next session on. See: {chosen.hint('learn compare')}")


def _share(typed: str) -> tuple[str, float]:
    name, equals, text = typed.partition("=")
    given = _SHARE.fullmatch(text.strip())
    if not equals or given is None:
        raise BadInput(f"{typed!r} must look like off=10%")
    return name, float(given[1]) / 100


@click.command(
    epilog=examples("hotset learn freeze", "hotset learn freeze keep", "hotset learn freeze keep=8")
)
@project_options
@click.argument("knobs", nargs=-1, metavar="[KNOB[=VALUE]]...")
@as_json
def freeze(chosen: ProjectOptions, knobs: tuple[str, ...], as_json: bool) -> None:
    """Keep knobs as they are: nothing learned changes them. Without a name, all of them.

    KNOB=VALUE sets a value as well. It holds at once, also in open sessions; the price is told.
    """
    config = chosen.config()
    values = parse_knobs([each for each in knobs if "=" in each], "learn freeze")
    names, now = [each.partition("=")[0] for each in knobs], time.time()
    with open_existing(config) as store:
        state = freeze_knobs(store, config, names, msgspec.to_builtins(values), now)
        price = order_price(store, config, now) if values else None
    _confirm(chosen, state, as_json, price)


@click.command(epilog=examples("hotset learn unfreeze", "hotset learn unfreeze keep"))
@project_options
@click.argument("knobs", nargs=-1, metavar="[KNOB]...")
@as_json
def unfreeze(chosen: ProjectOptions, knobs: tuple[str, ...], as_json: bool) -> None:
    """Undo `freeze`. Without a name, for all knobs."""
    config = chosen.config()
    with open_existing(config) as store:
        state = unfreeze_knobs(store, config, knobs, time.time())
    _confirm(chosen, state, as_json)


@click.command(epilog=examples("hotset learn reset tools.Bash", "hotset learn reset"))
@project_options
@click.argument("knobs", nargs=-1, metavar="[KNOB]...")
@as_json
def reset(chosen: ProjectOptions, knobs: tuple[str, ...], as_json: bool) -> None:
    """Take back what was learned about KNOB, or everything: new sessions get the defaults.

    A change that turned several knobs is taken back with all of them.
    """
    config = chosen.config()
    with open_existing(config) as store:
        before = [row for row in rows(read_state(store)) if row.undo]
        state = reset_knobs(store, config, knobs, time.time())
    _say_taken_back(chosen, before, {row.id for row in rows(state) if row.undo})
    _confirm(chosen, state, as_json)


def _say_taken_back(
    chosen: ProjectOptions, before: Sequence[ChangeRow], live: Collection[str]
) -> None:
    """The changes that are gone with all their knobs, and those in force that rest on them."""
    gone = [row for row in before if row.id not in live]
    for row in gone:
        chosen.say(f"taken back: {row.id}, with all its knobs: {', '.join(sorted(row.knobs))}")
    if not any(row.by == BY_EVOLUTION for row in before if row.id in live):
        return
    from hotset.replay.evolve import changes_on_top  # noqa: PLC0415 - loads the replay

    later = {each.id: each for row in gone for each in changes_on_top(row, before)}
    for id, row in later.items():
        if id in live:
            undo = chosen.hint(row.undo.removeprefix("hotset "))
            chosen.say(f"{id} rests on that and is still in force; take it back with: {undo}")


@click.command("on", epilog=examples("hotset learn on"))
@project_options
@as_json
def on(chosen: ProjectOptions, as_json: bool) -> None:
    """New sessions get what was learned."""
    _confirm(chosen, _switch(chosen, is_on=True), as_json)


@click.command("off", epilog=examples("hotset learn off"))
@project_options
@as_json
def off(chosen: ProjectOptions, as_json: bool) -> None:
    """New sessions get the defaults; what was learned stays, for `hotset learn on`."""
    _confirm(chosen, _switch(chosen, is_on=False), as_json)


def _switch(chosen: ProjectOptions, *, is_on: bool) -> LearnState:
    with open_existing(chosen.config()) as store:
        return switch_learning(store, time.time(), is_on=is_on)


def _confirm(
    chosen: ProjectOptions, state: LearnState, as_json: bool, price: OrderPrice | None = None
) -> None:
    found = learning_status(state, chosen.config(), time.time())
    if as_json:
        emit_json(found)
        return
    emit(_summary(found, chosen))
    if found.frozen or found.all_frozen:
        names = "every knob" if found.all_frozen else ", ".join(sorted(found.frozen))
        emit(f"Frozen: {names}")
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


@click.command("now", epilog=examples("hotset learn now", "hotset learn now --minutes 5"))
@project_options
@click.option(
    "--minutes", type=click.FloatRange(min=0.01), default=10.0, show_default=True, help="At most."
)
@click.option("--all", "everything", is_flag=True, help="Sessions that ended just now, too.")
@while_stdin
@as_json
def learn_now(
    chosen: ProjectOptions, minutes: float, *, everything: bool, while_stdin: bool, as_json: bool
) -> None:
    """Learn from the sessions that ended: propose changes, replay them on later sessions, decide.

    The proxy does this by itself while nobody works.
    """
    from hotset.surfaces.cli.teach import learn_from_sessions  # noqa: PLC0415 - with replay, a second

    config, stop = chosen.config(), threading.Event()
    if while_stdin:
        follow_stdin(stop.set)
    with open_existing(config) as store:
        seen, lessons = learn_from_sessions(
            store,
            config,
            60 * minutes,
            everything=everything,
            quiet=chosen.quiet,
            stopped=stop.is_set,
        )
        found = learning_status(read_state(store), config, time.time())
    if as_json:
        emit_json(found)
        return
    for lesson in lessons:
        emit(lesson.sentence)
    chosen.say(f"{count(seen, 'session')} observed, {count(len(lessons), 'change')} proposed")
    emit(_summary(found, chosen))
