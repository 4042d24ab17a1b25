"""`hotset evolve`: search better knobs on recorded sessions, adopt them, and take them back."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from hotset.errors import Conflict, NotFound
from hotset.files.write import write_error, write_output
from hotset.learn.events import BY_EVOLUTION, BY_PERSON, Change, ChangeDecision
from hotset.learn.state import ChangeRow, LearnState, changes_in_force, frozen_names, rows
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

_MOST_NAMED = 3
_ADOPTED = "adopted"
_KEEP_SECONDS = 30.0


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
        knobs, held = _knobs_in_force(config, state)
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


def _knobs_in_force(config: Config, state: LearnState) -> tuple[Knobs, frozenset[str]]:
    """The knobs of a new session where learning is on, and those that a person holds: set in a
    file, or frozen."""
    pinned = pinned_knobs(config)
    learned = changes_in_force(replace(state, is_on=True), pinned=pinned)
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
    config = chosen.config()
    passed = _adoptable(config, chosen, id)
    adopted: list[str] = []
    reasons: list[str] = []
    with open_to_look(config.folder) as store:  # made, if all sessions came from files
        state = read_state(store)
        in_force = {row.id for row in rows(state) if row.stage == _ADOPTED}
        for part in passed:
            if part.change is None or part.change.id in in_force:
                continue
            if why := _why_not(part.change, part, config, state, chosen):
                reasons.append(f"{part.change.id}: {why}")
            else:
                _write_adoption(store, part.change, part)
                adopted.append(part.change.id)
    if reasons and not adopted:
        raise Conflict("; ".join(reasons))
    for reason in reasons:
        chosen.say(f"not adopted: {reason}")
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
    """What passed and is kept. Raises `NotFound`, or `Conflict` where nothing did."""
    result = _last_result(config)
    if result is None:
        raise NotFound(f"no search is kept; begin with: {chosen.hint('evolve')}")
    wanted = [part for known, part in result.changes.items() if id in ("", known)]
    if id and not wanted:
        known = ", ".join(result.changes) or "none"
        raise NotFound(f"no change {plain(id)} is kept of a search; there are: {known}")
    passed = [part for part in wanted if part.passed]
    if not passed:
        reasons = "; ".join(f"{part.part}: {part.why}" for part in wanted or result.parts)
        raise Conflict(f"nothing can be adopted: {reasons}")
    return passed


def _why_not(
    change: Change, part: PartResult, config: Config, state: LearnState, chosen: ProjectOptions
) -> str:
    """Why a change that passed cannot be adopted now; empty if it can."""
    from hotset.replay.evolve import moved_knobs  # noqa: PLC0415

    knobs, _ = _knobs_in_force(config, state)
    if why := _why_frozen(change.knobs, state, chosen):
        return why
    pinned = pinned_knobs(config)
    for name in change.knobs:
        if any(name == each or name.startswith(f"{each}.") for each in pinned):
            return f"{name} is set by a person, in a file or by the chosen profile; remove it there"
    moved = moved_knobs(part, knobs)
    if moved:
        told = [f"{name} was {then}, is {now}" for name, (then, now) in moved.items()]
        more = f" and {len(told) - _MOST_NAMED} more" if len(told) > _MOST_NAMED else ""
        return (
            "it was measured with other knobs than those in force now: "
            f"{plain(', '.join(told[:_MOST_NAMED]))}{more}; search again: {chosen.hint('evolve')}"
        )
    return ""


def _why_frozen(knobs: Collection[str], state: LearnState, chosen: ProjectOptions) -> str:
    """That one of these is frozen, and the command that ends it; empty if none is."""
    if state.all_frozen:
        return f"every knob is frozen; unfreeze them with: {chosen.hint('learn unfreeze')}"
    for name in knobs:
        if frozen := frozen_names(state, name):
            undo = chosen.hint(f"learn unfreeze {' '.join(frozen)}")
            return f"{name} is frozen, so nothing learned changes it; unfreeze it with: {undo}"
    return ""


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
    have the knobs that were in force before, to the byte.

    A change that a later one in force rests on stays until that one is taken back.
    """
    config = chosen.config()
    with open_existing(config) as store:
        state = read_state(store)
        own = _adopted_rows(state, id)
        if id and not own:
            raise NotFound(f"{plain(id)} is not in force by `hotset evolve`")
        _refuse_revert(own, state, chosen)
        _write_reverts(store, own)
        knobs, after = (_knobs_in_force(config, each)[0] for each in (state, read_state(store)))
    if as_json:
        emit_json({"reverted": [row.id for row in own]})
        return
    if not own:
        emit("nothing of `hotset evolve` is in force")
        return
    names = sorted({name for row in own for name in row.knobs})
    then, now_in_force = ({name: each.value(name) for name in names} for each in (knobs, after))
    emit(f"reverted {', '.join(row.id for row in own)}: {_changed_values(now_in_force, then)}")


def _write_reverts(store: Store, own: Sequence[ChangeRow]) -> None:
    decisions = [ChangeDecision(row.id, "a person took it back", by=BY_PERSON) for row in own]
    now = time.time()
    events = [learn_event("ChangeRolledBack", decision, now) for decision in decisions]
    if events:
        store.keep(*events).result(_KEEP_SECONDS)


def _refuse_revert(own: Sequence[ChangeRow], state: LearnState, chosen: ProjectOptions) -> None:
    """Raises `Conflict` where what was in force before would not be in force again."""
    from hotset.replay.evolve import changes_on_top  # noqa: PLC0415

    every, ids = rows(state), {row.id for row in own}
    for row in own:
        for later in changes_on_top(row, every):
            if later.id not in ids:
                undo = chosen.hint(later.undo.removeprefix("hotset "))
                raise Conflict(
                    f"{row.id} stays: {later.id} was adopted later and rests on it; take that back "
                    f"first: {undo}"
                )
        held = [name for name in row.knobs if frozen_names(state, name)]
        if why := _why_frozen(held, replace(state, frozen_at=0), chosen):
            raise Conflict(f"{row.id} stays: {why}")


def _adopted_rows(state: LearnState, id: str) -> list[ChangeRow]:
    """What evolution put in force, the latest first."""
    return [
        row
        for row in rows(state)
        if row.by == BY_EVOLUTION and row.stage == _ADOPTED and id in ("", row.id)
    ]


def _parts(result: EvolveResult | None) -> Sequence[PartResult]:
    return result.parts if result is not None else ()


def _last_result(config: Config) -> EvolveResult | None:
    from hotset.replay.evolve import FOLDER, read_result  # noqa: PLC0415

    return read_result(config.folder / FOLDER)
