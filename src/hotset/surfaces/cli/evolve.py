"""`hotset evolve`: search better knobs on recorded sessions, adopt them, and take them back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hotset.errors import Conflict, NotFound
from hotset.files.write import write_output
from hotset.learn.events import BY_PERSON, Change, ChangeDecision
from hotset.learn.state import ChangeRow, LearnState, changes_in_force, rows
from hotset.nouns.knobs import DEFAULT_PROFILE, Knobs
from hotset.runtime.learned_state import learn_event, read_state
from hotset.runtime.learning import pinned_knobs
from hotset.runtime.reader import open_existing, open_or_empty, open_to_look
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.progress import counting
from hotset.surfaces.cli.replay import print_notes, sessions_in
from hotset.surfaces.cli.terminal import (
    count,
    emit,
    emit_json,
    moment,
    plain,
    span,
    table,
)
from hotset.surfaces.cli.tree import CommandEntry, LazyGroup

if TYPE_CHECKING:
    from hotset.config import Config
    from hotset.replay.conversation import RecordedSession
    from hotset.replay.evolve import EvolveResult, PartResult
    from hotset.replay.evolve_fitness import FitnessWeights
    from hotset.runtime.reader import Store
    from hotset.sources.memory import RecallLog

_COMMANDS = {
    "run": CommandEntry("evolve:run", "Search; the default, so `run` can be left out."),
    "status": CommandEntry("evolve:status", "What the last search found, and what is in force."),
    "list": CommandEntry("evolve:list_", "The configurations that no other beats in both."),
    "adopt": CommandEntry("evolve:adopt", "Give new sessions what the last search found."),
    "revert": CommandEntry("evolve:revert", "Take back what was adopted."),
}
_ADOPTED = "adopted"
_KEEP_SECONDS = 30.0


class _EvolveGroup(LazyGroup):
    """`hotset evolve FILE` is `hotset evolve run FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_named = bool(args) and (args[0] in _COMMANDS or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if is_named else ["run", *args])


@click.group(
    cls=_EvolveGroup,
    sections={"Commands": _COMMANDS},
    epilog=examples(
        "hotset evolve                           the sessions of this project",
        "hotset evolve ~/.claude/projects/-home-me-shop --minutes 20",
        "hotset evolve longmemeval_oracle.json   a public set of questions",
        "hotset evolve status",
        "hotset evolve adopt",
        "hotset evolve revert",
    ),
)
def evolve() -> None:
    """Search better knobs on recorded sessions, by replay and without a model.

    The earlier half of the sessions is searched; what is best there is told on the later half. It
    can be adopted if it is better there, session by session, and if sessions in which something
    else is needed at random do not gain as much. New sessions get what was adopted.
    """


def _parse_weights(_: click.Context, __: click.Parameter, typed: str) -> FitnessWeights:
    """Parses `0.6,0.3,0.1`."""
    from hotset.replay.evolve_fitness import FitnessWeights  # noqa: PLC0415 - loads the replay

    try:
        task, tokens, latency = (float(each) for each in typed.split(","))
    except ValueError:
        raise click.BadParameter("three numbers are needed, as in 0.6,0.3,0.1") from None
    if not (min(task, tokens, latency) >= 0 and task + tokens > 0):
        raise click.BadParameter("none may be negative, and one of the first two must count")
    return FitnessWeights(task, tokens, latency)


@click.command(
    "run",
    epilog=examples(
        "hotset evolve",
        "hotset evolve ~/.codex/sessions --minutes 20",
        "hotset evolve --part history --budget 2000 --seed 7",
        "hotset evolve --weights 0.8,0.2,0 --json",
    ),
)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@project_options
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="How long to search; telling the best on the later sessions comes on top.",
)
@click.option(
    "--budget",
    metavar="N",
    type=click.IntRange(1),
    default=400,
    show_default=True,
    help="Configurations of each part.",
)
@click.option(
    "--seed", metavar="N", type=int, default=0, show_default=True, help="The same gives the same."
)
@click.option(
    "--weights",
    metavar="T,S,L",
    default="0.6,0.3,0.1",
    show_default=True,
    callback=_parse_weights,
    help="Of task score, tokens saved and latency.",
)
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(("memory", "history", "window")),
    help="Repeatable; default: all that the sessions can tell about.",
)
@click.option(
    "--picture",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the Pareto front is drawn, as SVG; default: in the project's data folder.",
)
@as_json
def run(
    chosen: ProjectOptions,
    files: tuple[Path, ...],
    *,
    minutes: float,
    budget: int,
    seed: int,
    weights: FitnessWeights,
    parts: tuple[str, ...],
    picture: Path | None,
    as_json: bool,
) -> None:
    """Search better knobs on recorded sessions; nothing changes before `hotset evolve adopt`.

    FILE is a file or a folder of sessions as `hotset replay` reads them, or a file of questions
    with marked evidence as LongMemEval has; without FILE, the sessions of this project. Every
    configuration that was measured is kept: a search that was interrupted goes on where it was.
    """
    from hotset.replay.evolve import (  # noqa: PLC0415 - not for --help
        FOLDER,
        LEAST_SESSIONS,
        Evolution,
        EvolveResult,
        evolved_parts,
        keep_result,
    )
    from hotset.replay.evolve_front import draw_front  # noqa: PLC0415
    from hotset.replay.report import Ruling  # noqa: PLC0415

    config = chosen.config()
    with open_or_empty(config) as store:
        knobs, held = _knobs_in_force(config, read_state(store))
        material = _files_material(files, chosen) if files else _store_material(store, chosen)
        found = evolved_parts(*material, knobs, Ruling(config.prices), held=held)
    found = [part for part in found if not parts or part.name in parts]
    if not found:
        raise NotFound(
            f"too little is recorded: {LEAST_SESSIONS} sessions of 24 calls or more tell about the "
            "window, and as many with results that are used long after about search; name more "
            "with: hotset evolve FILE"
        )
    until = time.monotonic() + 60 * minutes
    results: list[PartResult] = []
    for number, part in enumerate(found):
        title = f"{part.name}, {count(len(part.sessions), 'session')}"
        # each part gets its share of the time that is left; the quick ones leave most of it
        left = (until - time.monotonic()) / (len(found) - number)
        with counting(title, budget, quiet=chosen.quiet) as counter:
            evolution = Evolution(
                knobs, weights, seed, budget, config.folder / FOLDER, step=counter.step
            )
            results.append(evolution.run(part, time.monotonic() + left))
    result = EvolveResult(time.time(), seed, weights, tuple(results))
    keep_result(config.folder / FOLDER, result)
    drawn = picture or config.folder / FOLDER / "front.svg"
    write_output(drawn, [draw_front(result).encode()])
    if as_json:
        emit_json(result)
        return
    _print_result(result)
    chosen.say(f"the Pareto front: {drawn}")
    if any(each.passed for each in result.parts):
        chosen.say(f"give it to new sessions: {chosen.hint('evolve adopt')}")


Material = tuple[list["RecordedSession"], Sequence["RecallLog"]]
"""Recorded sessions, and recalls with what was wanted of them."""


def _store_material(store: Store, chosen: ProjectOptions) -> Material:
    from hotset.replay.evolve import MOST_SESSIONS  # noqa: PLC0415
    from hotset.replay.evolve_recall import stored_recalls  # noqa: PLC0415
    from hotset.replay.formats.export import stored_sessions  # noqa: PLC0415

    with counting("reading", None, quiet=chosen.quiet) as counter:
        sessions = list(counter.over(stored_sessions(store, MOST_SESSIONS)))
        return sessions, stored_recalls(store)


def _files_material(files: Sequence[Path], chosen: ProjectOptions) -> Material:
    from hotset.replay.evolve_recall import (  # noqa: PLC0415
        is_question_file,
        question_recalls,
    )

    questions = [file for file in files if is_question_file(file)]
    notes: list[str] = []
    with counting("reading", None, quiet=chosen.quiet) as counter:
        others = [file for file in files if file not in questions]
        sessions = list(counter.over(sessions_in(others, notes))) if others else []
        recalls = [log for file in questions for log in question_recalls(file, counter.step)]
    print_notes(notes, quiet=chosen.quiet)
    return sessions, recalls


def _knobs_in_force(config: Config, state: LearnState) -> tuple[Knobs, frozenset[str]]:
    """The knobs of a new session, and those that a person holds: set in a file, or frozen."""
    pinned = pinned_knobs(config)
    learned = changes_in_force(state, pinned=pinned)
    knobs = config.knobs_for(DEFAULT_PROFILE).with_changes(learned)
    return knobs, pinned | frozenset(state.frozen)


def _print_result(result: EvolveResult) -> None:
    for part in result.parts:
        ended = "" if part.is_complete else ", until the time was up"
        emit(
            f"{part.part}: {count(part.tried, 'configuration')} on "
            f"{count(part.searched, 'session')} in {span(part.seconds)}{ended}; "
            f"{part.held_out} held out"
        )
        if part.change is not None:
            emit(f"  {part.change.id}: {_changed_values(part.change.knobs, part.change.before)}")
            emit(f"  {part.change.why}")
        emit(f"  {part.why}")


def _changed_values(knobs: dict[str, Any], before: dict[str, Any]) -> str:
    return plain(
        ", ".join(f"{name} {before.get(name)} -> {value}" for name, value in knobs.items())
    )


@click.command(epilog=examples("hotset evolve status", "hotset evolve status --json"))
@project_options
@as_json
def status(chosen: ProjectOptions, *, as_json: bool) -> None:
    """What the last search found, and which of its findings are in force."""
    config = chosen.config()
    result = _last_result(config)
    with open_or_empty(config) as store:
        own = [row for row in rows(read_state(store)) if row.by == _by()]
    if as_json:
        emit_json({"last": result, "changes": own})
        return
    if result is not None:
        emit(f"last search: {moment(result.time)}, seed {result.seed}")
        _print_result(result)
    else:
        emit(f"no search is kept; begin with: {chosen.hint('evolve')}")
    for row in own:
        emit(f"{row.id} {row.stage} since {moment(row.since)}: {row.evidence}")


@click.command("list", epilog=examples("hotset evolve list", "hotset evolve list --json"))
@project_options
@as_json
def list_(chosen: ProjectOptions, *, as_json: bool) -> None:
    """The Pareto front of the last search: configurations that no other beats in both task score
    and tokens, on the sessions that were searched."""
    result = _last_result(chosen.config())
    if as_json:
        emit_json([{"part": each.part, "front": each.front} for each in _parts(result)])
        return
    table(
        ("part", "task %", "spent %", "knobs"),
        (
            (
                part.part,
                f"{100 * point.task:.1f}",
                f"{100 * point.spent:.1f}",
                ", ".join(f"{name}={value}" for name, value in point.knobs.items()) or "in force",
            )
            for part in _parts(result)
            for point in part.front
        ),
        right=(1, 2),
    )


@click.command(epilog=examples("hotset evolve adopt", "hotset evolve adopt c-1a2b3c4d"))
@click.argument("id", metavar="[ID]", default="")
@project_options
@as_json
def adopt(chosen: ProjectOptions, id: str, *, as_json: bool) -> None:
    """Give new sessions what the last search found: the change of this ID, or all that passed.

    Sessions that are open keep their knobs.
    """
    config = chosen.config()
    passed = _adoptable(config, chosen, id)
    with open_to_look(config.folder) as store:  # made, if all sessions came from files
        state = read_state(store)
        in_force = {row.id for row in rows(state) if row.stage == _ADOPTED}
        new = [(each.change, each) for each in passed if each.change]
        new = [(change, part) for change, part in new if change.id not in in_force]
        for change, _ in new:
            _refuse_stale(change, config, state, chosen)
        for change, part in new:
            _write_adoption(store, change, part)
    adopted = [change.id for change, _ in new]
    if as_json:
        emit_json({"adopted": adopted, "in_force": sorted({*in_force, *adopted})})
        return
    for each in adopted:
        emit(f"adopted {each}: new sessions have it; undo: {chosen.hint(f'evolve revert {each}')}")
    if not adopted:
        emit("it is in force already")
    if not state.is_on:
        chosen.say(f"learning is off, so sessions do not get it: {chosen.hint('learn on')}")


def _adoptable(config: Config, chosen: ProjectOptions, id: str) -> list[PartResult]:
    """What passed of the last search. Raises `NotFound`, or `Conflict` where nothing did."""
    result = _last_result(config)
    if result is None:
        raise NotFound(f"no search is kept; begin with: {chosen.hint('evolve')}")
    wanted = [part for part in result.parts if part.change and id in ("", part.change.id)]
    if id and not wanted:
        known = ", ".join(result.changes) or "none"
        raise NotFound(f"the last search has no change {plain(id)}; it has: {known}")
    passed = [part for part in wanted if part.passed]
    if not passed:
        reasons = "; ".join(f"{part.part}: {part.why}" for part in wanted or result.parts)
        raise Conflict(f"nothing can be adopted: {reasons}")
    return passed


def _refuse_stale(
    change: Change, config: Config, state: LearnState, chosen: ProjectOptions
) -> None:
    from hotset.replay.evolve import is_stale  # noqa: PLC0415

    knobs, held = _knobs_in_force(config, state)
    if is_stale(change, knobs) or any(name in held for name in change.knobs):
        raise Conflict(
            f"{change.id}: the knobs in force are no longer those that it was compared with; "
            f"search again: {chosen.hint('evolve')}"
        )


def _write_adoption(store: Store, change: Change, part: PartResult) -> None:
    from hotset.replay.evolve import event_verdict  # noqa: PLC0415

    now = time.time()
    store.keep(
        learn_event("ChangeProposed", change, now),
        learn_event("ChangeGated", event_verdict(part), now),
        learn_event("ChangeAdopted", ChangeDecision(change.id, change.why, by=BY_PERSON), now),
    ).result(_KEEP_SECONDS)


@click.command(epilog=examples("hotset evolve revert", "hotset evolve revert c-1a2b3c4d"))
@click.argument("id", metavar="[ID]", default="")
@project_options
@as_json
def revert(chosen: ProjectOptions, id: str, *, as_json: bool) -> None:
    """Take back the change of this ID, or everything that `evolve adopt` put in force: new sessions
    have the knobs that were in force before, to the byte."""
    config = chosen.config()
    with open_existing(config) as store:
        own = _adopted_rows(read_state(store), id)
        for row in own:
            decision = ChangeDecision(row.id, "a person took it back", row.saved, BY_PERSON)
            event = learn_event("ChangeRolledBack", decision, time.time())
            store.keep(event).result(_KEEP_SECONDS)
    if id and not own:
        raise NotFound(f"{plain(id)} is not in force by `hotset evolve`")
    if as_json:
        emit_json({"reverted": [row.id for row in own]})
        return
    for row in own:
        emit(f"reverted {row.id}: {_changed_values(row.before, row.knobs)}")
    if not own:
        emit("nothing of `hotset evolve` is in force")


def _adopted_rows(state: LearnState, id: str) -> list[ChangeRow]:
    """What evolution put in force, the latest first."""
    return [
        row
        for row in rows(state)
        if row.by == _by() and row.stage == _ADOPTED and id in ("", row.id)
    ]


def _by() -> str:
    from hotset.replay.evolve import BY  # noqa: PLC0415

    return BY


def _parts(result: EvolveResult | None) -> Sequence[PartResult]:
    return result.parts if result is not None else ()


def _last_result(config: Config) -> EvolveResult | None:
    from hotset.replay.evolve import FOLDER, read_result  # noqa: PLC0415

    return read_result(config.folder / FOLDER)
