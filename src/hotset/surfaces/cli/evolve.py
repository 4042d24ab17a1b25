"""`hotset evolve`: search better knobs on recorded sessions, adopt them, and take them back."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hotset.errors import Conflict, NotFound
from hotset.files.write import write_error, write_output
from hotset.learn.events import BY_EVOLUTION
from hotset.learn.state import rows
from hotset.runtime.learned_state import read_state, write_decisions
from hotset.runtime.learning import knobs_to_build_on, pinned_knobs
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
    from hotset.replay.evolve_fitness import EvolvedPart, FitnessWeights
    from hotset.runtime.reader import Store
    from hotset.sources.memory import RecallLog

_COMMANDS = {
    "run": CommandEntry("evolve:run", "Search; the default, so `run` can be left out."),
    "status": CommandEntry("evolve:status", "What the last search found, and what is in force."),
    "list": CommandEntry("evolve:list_", "The configurations that no other beats in both."),
    "adopt": CommandEntry("evolve:adopt", "Give new sessions what the last search found."),
    "revert": CommandEntry("evolve:revert", "Take back what was adopted."),
}
_TOLD_BY = {
    "memory": (5, "recalls that were used"),
    "history": (1, "sessions in which results are used long after"),
    "window": (1, "sessions of 24 calls or more"),
}
"""What each part is told by, and how many of it count as one."""


class _EvolveGroup(LazyGroup):
    """`hotset evolve FILE` is `hotset evolve run FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_named = bool(args) and (
            args[0] in (*_COMMANDS, *ctx.help_option_names) or self._is_mistyped(ctx, args[0])
        )
        return super().parse_args(ctx, args if is_named else ["run", *args])

    def _is_mistyped(self, ctx: click.Context, typed: str) -> bool:
        """True for a word that is like a command and no file."""
        is_word = typed.isalpha() and not Path(typed).exists()
        return is_word and bool(self.similar_commands(ctx, typed))


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
    every = (task, tokens, latency)
    if not (all(map(math.isfinite, every)) and min(every) >= 0 and task + tokens > 0):
        raise click.BadParameter(
            "none may be negative or endless, and one of the first two must count"
        )
    return FitnessWeights(task, tokens, latency)


def _parse_minutes(_: click.Context, __: click.Parameter, typed: float) -> float:
    if not (math.isfinite(typed) and typed > 0):
        raise click.BadParameter("a number above 0 is needed, as in 10")
    return typed


def _parse_picture(_: click.Context, __: click.Parameter, typed: Path | None) -> Path | None:
    """Refuses what could not be written to after the search."""
    if typed is not None and not typed.exists():
        folder = typed.absolute().parent
        if not folder.is_dir():
            raise click.BadParameter(f"there is no folder {folder}; make it first")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise click.BadParameter(f"no file can be made in {folder}; name another folder")
    return typed


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
    type=float,
    default=10.0,
    show_default=True,
    callback=_parse_minutes,
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
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    callback=_parse_picture,
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
        Evolution,
        EvolveResult,
        every_part,
        is_told,
        keep_result,
    )
    from hotset.replay.evolve_front import draw_front  # noqa: PLC0415
    from hotset.replay.report import Ruling  # noqa: PLC0415

    config = chosen.config()
    with open_or_empty(config) as store:
        state = read_state(store)
        if state.all_frozen:
            raise Conflict(
                "every knob is frozen, so nothing that is found could be adopted; unfreeze them "
                f"with: {chosen.hint('learn unfreeze')}"
            )
        knobs, held = knobs_to_build_on(config, state)
        material = _files_material(files, chosen) if files else _store_material(store, chosen)
        wanted = every_part(*material, knobs, Ruling(config.prices), held)
    wanted = [part for part in wanted if not parts or part.name in parts]
    found = [part for part in wanted if is_told(part)]
    if not found:
        raise NotFound(_what_is_missing(wanted, chosen))
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
    result = keep_result(config.folder / FOLDER, result)
    if as_json:
        emit_json(result)
    else:
        _print_result(result)
        if any(each.passed for each in result.parts):
            chosen.say(f"give it to new sessions: {chosen.hint('evolve adopt')}")
    drawn = picture or config.folder / FOLDER / "front.svg"
    try:
        write_output(drawn, [draw_front(result).encode()])
    except OSError as error:
        raise write_error(drawn, error, "what was found is kept all the same") from error
    if not as_json:
        chosen.say(f"the Pareto front: {drawn}")


def _what_is_missing(parts: Sequence[EvolvedPart], chosen: ProjectOptions) -> str:
    from hotset.replay.evolve import LEAST_SESSIONS  # noqa: PLC0415

    found = []
    for part in parts:
        of_one, noun = _TOLD_BY[part.name]
        there, needed = of_one * len(part.sessions), of_one * LEAST_SESSIONS
        found.append(f"{part.name} needs {needed} {noun}, and there are {there}")
        if not part.genes:
            found[-1] = f"{part.name} has no knob that is neither frozen nor set by a person"
    return (
        f"too little is recorded: {'; '.join(found)}. Name more with: {chosen.hint('evolve FILE')}"
    )


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
    for part in result.earlier:
        if part.change is not None:
            values = _changed_values(part.change.knobs, part.change.before)
            emit(f"{part.part}, by an earlier search: {part.change.id}: {values}")
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
        own = [row for row in rows(read_state(store)) if row.by == BY_EVOLUTION]
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
    if result is None:
        chosen.say(f"no search is kept; begin with: {chosen.hint('evolve')}")
    if as_json:
        emit_json([{"part": each.part, "front": each.front} for each in _parts(result)])
        return
    if result is None:
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
    """Give new sessions what was found: the change of this ID, or all that passed, by the last
    search or by an earlier one that later ones found nothing better than.

    Sessions that are open keep their knobs.
    """
    from hotset.replay.evolve_orders import KnobsNow, decide_adoption  # noqa: PLC0415

    config = chosen.config()
    result = _last_result(config)
    with open_to_look(config.folder) as store:  # made, if all sessions came from files
        state = read_state(store)
        knobs, _ = knobs_to_build_on(config, state)
        here = KnobsNow(state, knobs, pinned_knobs(config))
        adoption = decide_adoption(result, id, here, chosen.hint)
        write_decisions(store, adoption.events, time.time())
    for reason in adoption.reasons:
        chosen.say(f"not adopted: {reason}")
    if as_json:
        in_force = sorted({*adoption.in_force, *adoption.ids})
        emit_json({"adopted": list(adoption.ids), "in_force": in_force})
        return
    for each in adoption.ids:
        emit(f"adopted {each}: new sessions have it; undo: {chosen.hint(f'evolve revert {each}')}")
    if not adoption.ids:
        emit("it is in force already")
    if not state.is_on:
        chosen.say(f"learning is off, so sessions do not get it: {chosen.hint('learn on')}")


@click.command(epilog=examples("hotset evolve revert", "hotset evolve revert c-1a2b3c4d"))
@click.argument("id", metavar="[ID]", default="")
@project_options
@as_json
def revert(chosen: ProjectOptions, id: str, *, as_json: bool) -> None:
    """Take back the change of this ID, or everything that `evolve adopt` put in force: new sessions
    have the knobs that were in force before, to the byte.

    A change that a later one in force rests on stays until that one is taken back.
    """
    from hotset.replay.evolve_orders import decide_reversal  # noqa: PLC0415

    config = chosen.config()
    with open_existing(config) as store:
        state = read_state(store)
        reversal = decide_reversal(id, state, chosen.hint)
        write_decisions(store, reversal.events, time.time())
        knobs, after = (knobs_to_build_on(config, each)[0] for each in (state, read_state(store)))
    own = reversal.rows
    if as_json:
        emit_json({"reverted": [row.id for row in own]})
        return
    if not own:
        emit("nothing of `hotset evolve` is in force")
        return
    names = sorted({name for row in own for name in row.knobs})
    then, now_in_force = ({name: each.value(name) for name in names} for each in (knobs, after))
    emit(f"reverted {', '.join(row.id for row in own)}: {_changed_values(now_in_force, then)}")


def _parts(result: EvolveResult | None) -> Sequence[PartResult]:
    return result.parts if result is not None else ()


def _last_result(config: Config) -> EvolveResult | None:
    from hotset.replay.evolve import FOLDER, read_result  # noqa: PLC0415

    return read_result(config.folder / FOLDER)
