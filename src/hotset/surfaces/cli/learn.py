"""`hotset learn ...`: what was learned, why a knob has its value, and how trials go."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from hotset.learn.events import DEFAULT_ARM
from hotset.learn.gate import describe_measured
from hotset.learn.state import ChangeRow
from hotset.runtime.learned_state import read_state
from hotset.runtime.learning_view import (
    EXPLORE_ARM,
    ArmView,
    KnobReason,
    LearningStatus,
    arm_views,
    ended_views,
    knob_reason,
    learning_status,
    profile_views,
    resolve_knob,
)
from hotset.runtime.reader import find_session_id, open_existing, open_or_empty
from hotset.runtime.strategy_log import strategy_log
from hotset.surfaces.cli.child import follow_stdin, while_stdin
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.terminal import count, emit, emit_json, money, plain_line, span, table

_LIVE = ("adopted", "trial")
_CERTAIN = 5  # comparisons below which an interval says nothing
_SHOWN = 20  # entries of the log on a terminal
_FIGURES = {"success": "points of success", "rereads": "re-reads"}
"""Figures by the names that people read."""


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
    emit(summarise(found, chosen))
    for row in found.changes:
        if row.stage in _LIVE:
            emit("")
            _print_change(row, now, chosen)
    if frozen := describe_frozen(found):
        emit(f"\n{frozen}")
    if found.explores and found.is_on:
        emit("\n" + describe_exploring(found, chosen))
    if tried := _on_trial(found):
        shares = ", ".join(f"{arm.name} {arm.share:.0%}" for arm in tried)
        emit(f"\nOn trial: {shares} of new sessions; compare with: {chosen.hint('learn compare')}")


def summarise(found: LearningStatus, chosen: ProjectOptions) -> str:
    adopted = sum(row.stage == "adopted" for row in found.changes)
    seen = (
        f"{count(found.observed, 'session')} observed, {count(adopted, 'change')} in force, "
        f"{len(_on_trial(found))} on trial"
    )
    if found.why_off == "hotset learn off":
        return f"Learning is off. {seen}. Switch it on with: {chosen.hint('learn on')}"
    if not found.is_on:
        return (
            f"Learning is off by {found.why_off}: new sessions get the defaults, and no trial, "
            f"until that says otherwise. {seen}."
        )
    later = (
        "" if found.changes else f". Sessions teach when they end; now: {chosen.hint('learn now')}"
    )
    return f"Learning is on: {seen}{later}"


def _on_trial(found: LearningStatus) -> list[ArmView]:
    others = (arm for arm in found.arms if arm.name not in (DEFAULT_ARM, EXPLORE_ARM))
    return [arm for arm in others if arm.share]


def describe_frozen(found: LearningStatus) -> str:
    """What is frozen, with its values; empty if nothing is."""
    if found.all_frozen:
        return "Frozen: every knob"
    told = [
        name if value is None else f"{name}={_shown(value)}"
        for name, value in sorted(found.frozen.items())
    ]
    return f"Frozen: {', '.join(told)}" if told else ""


def describe_exploring(found: LearningStatus, chosen: ProjectOptions) -> str:
    return (
        f"Exploring: {found.explores:.0%} of the default's sessions try other values of "
        f"{', '.join(found.explorable)}; end it with: {chosen.hint('learn trial explore=0%')}"
    )


def _print_change(row: ChangeRow, now: float, chosen: ProjectOptions) -> None:
    emit(f"{row.id}  {row.stage} {span(max(0.0, now - row.since))} ago, by {row.by}")
    for name, value in row.knobs.items():
        emit(f"  {name}: {_shown(row.before.get(name))} -> {_shown(value)}")
    emit(f"  why: {row.why}")
    if row.evidence and row.evidence != row.why:
        emit(f"  evidence: {row.evidence}")
    if row.measured is not None:
        emit(f"  in replay: {describe_measured(row.measured)}")
    if row.sessions:
        emit(f"  so far: {_so_far(row)}")
    if row.undo:
        emit(f"  undo: {chosen.hint(row.undo.removeprefix('hotset '))}")


def _so_far(row: ChangeRow) -> str:
    """What was seen of the sessions with a change, beside those before it."""

    def share(now: float | None, before: float | None, what: str) -> str:
        earlier = f" ({before:.0%} before)" if before is not None else ""
        return f"{what.format(f'{now:.0%}')}{earlier}" if now is not None else ""

    told = (
        count(row.sessions, "session"),
        share(row.success, row.success_before, "success {}"),
        share(row.cost, row.cost_before, "cost {} of full history's"),
    )
    return ", ".join(filter(None, told))


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
    if found.what:
        emit(f"  what it is: {found.what}")
    if found.value != found.default:
        emit(f"  default: {_shown_native(found.default)}")
    if found.undo:
        is_command = found.undo.startswith("hotset ")
        undo = chosen.hint(found.undo.removeprefix("hotset ")) if is_command else found.undo
        emit(f"  undo: {undo}")
    for row in found.changes:
        emit("")
        _print_change(row, now, chosen)


def _shown_native(value: Any) -> str:
    return _shown(msgspec.to_builtins(value, order="sorted")) if value is not None else "not set"


def _reason_document(found: KnobReason) -> dict[str, Any]:
    return {
        "name": found.name,
        "what": found.what,
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
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(0),
    help=f"At most so many; 0: all. [default: {_SHOWN}, with --json all]",
)
@click.argument("session", required=False)
@as_json
def log(chosen: ProjectOptions, limit: int | None, session: str | None, as_json: bool) -> None:
    """Every offer, recall, search and retrieval: strategies with results and latency, what was
    selected and used, and how the task came out. The newest first.

    SESSION is an id, its beginning, or `last`.
    """
    with open_or_empty(chosen.config()) as store:
        every = list(strategy_log(store, find_session_id(store, session)))
    most = limit if limit is not None else 0 if as_json else _SHOWN
    found = sorted(every, key=lambda each: each.timestamp)[::-1][: most or None]
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
    if len(found) < len(every):
        chosen.say(f"\n{len(found)} of {len(every)}; all: {chosen.hint('learn log -n 0')}")


@click.command(epilog=examples("hotset learn profiles", "hotset learn profiles --all --json"))
@project_options
@click.option("--all", "everything", is_flag=True, help="Those for kinds of agents, too.")
@as_json
def profiles(chosen: ProjectOptions, *, everything: bool, as_json: bool) -> None:
    """The named sets of knobs that sessions can be tried with; your own are [profiles.NAME] in
    config.toml."""
    config = chosen.config()
    with open_or_empty(config) as store:
        found = profile_views(config, read_state(store), time.time(), everything=everything)
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
    have cost; $ is what a session cost. Trials that ended stay in the list.
    """
    config, now = chosen.config(), time.time()
    with open_or_empty(config) as store:
        state = read_state(store)
        found = arm_views(state, config, now)
        ended = ended_views(state)
    if as_json:
        emit_json([*found, *ended])
        return
    print_arms([*found, *ended])
    for arm in [*found, *ended]:
        if arm.name not in (DEFAULT_ARM, EXPLORE_ARM):
            emit("")
            emit("\n".join(_sentences(arm)))
    if len(found) == 1:
        chosen.say(
            "\nNothing is on trial. A control on your own work: "
            + chosen.hint("learn trial off=10%")
        )


def print_arms(found: Sequence[ArmView]) -> None:
    """A table of arms."""
    headings = ("arm", "share", "sessions", "success", "cost", "$", "turns", "corrections")
    table(
        (*headings, "re-reads", "ms"),
        [
            (
                f"{arm.name} (ended)" if arm.until else arm.name,
                f"{arm.share:.0%}",
                str(arm.sessions),
                "-" if arm.success is None else f"{arm.success:.0%}",
                "-" if arm.cost is None else f"{arm.cost:.0%}",
                "-" if arm.dollars is None else money(arm.dollars),
                f"{arm.turns:.1f}",
                f"{arm.corrections:.2f}",
                f"{arm.rereads:.2f}",
                f"{arm.latency_ms:.0f}",
            )
            for arm in found
        ],
        right=tuple(range(1, 10)),
    )


def _sentences(arm: ArmView) -> Iterator[str]:
    """What the sessions of an arm show against those of the default."""
    name = f"{arm.name} (ended)" if arm.until else arm.name
    if not arm.differences:
        nothing = "both have" if arm.sessions else "it has"
        yield f"{name}: no comparison until {nothing} sessions that ended"
    for each in arm.differences:
        what = _FIGURES.get(each.figure, each.figure)
        if each.pairs < _CERTAIN:
            yield f"{name} against default: {what}: too few sessions to tell ({each.pairs} pairs)"
            continue
        interval = f"{each.mean:+.1%} [{each.low:+.1%}, {each.high:+.1%}]"
        verdict = "shown" if each.low > 0 or each.high < 0 else "not shown to differ"
        yield f"{name} against default: {interval} {what}; {verdict} ({each.pairs} pairs)"


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
    emit(summarise(found, chosen))
