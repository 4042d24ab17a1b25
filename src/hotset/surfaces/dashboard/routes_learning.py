"""What the view of learning reads and does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, to_builtins

from hotset.config import Config, parse_orders
from hotset.errors import BadInput
from hotset.learn.gate import describe_measured
from hotset.learn.state import LearnState, Stage, rows
from hotset.runtime.learned_state import read_state, write_decisions
from hotset.runtime.learning import knobs_to_build_on, pinned_knobs
from hotset.runtime.learning_orders import (
    allow_again,
    freeze_knobs,
    order_trial,
    reset_knobs,
    switch_learning,
    unfreeze_knobs,
)
from hotset.runtime.learning_view import (
    KnobReason,
    LearningStatus,
    OrderPrice,
    ProfileView,
    knob_reason,
    learning_status,
    order_price,
    profile_views,
    resolve_knob,
)
from hotset.runtime.reader import Store
from hotset.runtime.views.learning import (
    BeliefCurves,
    CurveSpan,
    KnobCurves,
    ShareCurves,
    read_belief_curves,
    read_knob_curves,
    read_share_curves,
)
from hotset.runtime.views.project import ViewedProject
from hotset.surfaces.dashboard.api_route import (
    ApiRoute,
    Name,
    NameQuestion,
    NoQuestion,
    Number,
    OrderReply,
)

if TYPE_CHECKING:
    from hotset.replay.evolve import EvolveResult, PartResult
    from hotset.replay.evolve_orders import KnobsNow

_MOST_POINTS = 2000  # of a search, drawn
_Days = Annotated[int, Meta(ge=0, le=36_600)]


class CurvesQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    days: _Days = 90
    """How far back; 0: from the first day on."""
    knob: Name = ""
    """Only this one."""
    offset: Number = 0
    limit: Annotated[int, Meta(ge=1, le=100)] = 12


class PagedCurvesQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    days: _Days = 90
    offset: Number = 0
    limit: Annotated[int, Meta(ge=1, le=100)] = 12


class DaysQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    days: _Days = 90


class LearningAct(Struct, frozen=True, forbid_unknown_fields=True):
    """A person's order about what is learned."""

    act: Literal["freeze", "unfreeze", "reset", "unreset", "on", "off", "trial", "adopt", "revert"]
    """`unreset` lets what was reset be learned again; `adopt` and `revert` are about what a search
    found."""
    knobs: tuple[Name, ...] = ()
    """None of them, nor a change: all."""
    changes: tuple[Name, ...] = ()
    """By id, of `reset`, `unreset`, `adopt` and `revert`."""
    value: Name = ""
    """Of `freeze` with one knob: it holds from now on, also in open sessions; written as in a
    file."""
    shares: dict[str, Annotated[float, Meta(ge=0, le=1)]] = {}
    """Of a trial: the share of new sessions that each profile gets; 0 ends it."""


@dataclass(frozen=True, slots=True)
class LearningView:
    status: LearningStatus
    orders: Mapping[str, Any]
    """Values that a person gave to knobs: they hold in open sessions, too."""
    measured: Mapping[str, str]
    """What replay showed of each change, in a sentence, by the change's id."""
    profiles: tuple[ProfileView, ...]
    knobs: tuple[str, ...]
    """Every knob, by name."""


@dataclass(frozen=True, slots=True)
class TriedPoint:
    task: float
    """How well the work went, as a share of 1."""
    spent: float
    knobs: Mapping[str, Any]
    """What it changes; empty for what is in force, and for points that are not on the front."""


@dataclass(frozen=True, slots=True)
class FoundChange:
    """The best that a search found for a part."""

    id: str
    knobs: Mapping[str, Any]
    before: Mapping[str, Any]
    passed: bool
    """It held on later sessions: it can be adopted."""
    in_force: bool
    refusal: str
    """Why it cannot be adopted now, or not be taken back; empty if it can."""


@dataclass(frozen=True, slots=True)
class EvolvedPartView:
    part: str
    tried: int
    searched: int
    held_out: int
    looks: int
    """How many results were compared on these later sessions."""
    why: str
    change: FoundChange | None
    across: str
    """What the share spent is, and what lacks of the task score: the axes."""
    up: str
    front: tuple[TriedPoint, ...]
    points: tuple[TriedPoint, ...]
    """What was tried on all sessions; what is in force comes first."""


@dataclass(frozen=True, slots=True)
class EvolutionView:
    time: float
    """0 if no search is kept."""
    parts: tuple[EvolvedPartView, ...]
    earlier: tuple[EvolvedPartView, ...]
    """What passed in earlier searches, and nothing better was found since."""


def _learning(project: ViewedProject, _: NoQuestion) -> LearningView:
    state, config, now = read_state(project.store), project.config, project.clock()
    return LearningView(
        learning_status(state, config, now),
        state.orders,
        {
            row.id: describe_measured(row.measured)
            for row in rows(state)
            if row.measured is not None
        },
        tuple(profile_views(config, state, now)),
        tuple(sorted(config.knobs_for("").by_name())),
    )


def _knob(project: ViewedProject, asked: NameQuestion) -> KnobReason:
    state, config = read_state(project.store), project.config
    found = knob_reason(resolve_knob(asked.name, config, state), config, state)
    return replace(
        found,
        value=to_builtins(found.value, order="sorted"),
        default=to_builtins(found.default, order="sorted"),
    )


def _order_price(project: ViewedProject, _: NoQuestion) -> OrderPrice:
    return order_price(project.store, project.config, project.clock())


def _knob_curves(project: ViewedProject, asked: CurvesQuestion) -> KnobCurves:
    span = CurveSpan(asked.days, asked.offset, asked.limit)
    return read_knob_curves(project, span, asked.knob)


def _share_curves(project: ViewedProject, asked: DaysQuestion) -> ShareCurves:
    return read_share_curves(project, CurveSpan(asked.days))


def _belief_curves(project: ViewedProject, asked: PagedCurvesQuestion) -> BeliefCurves:
    return read_belief_curves(project, CurveSpan(asked.days, asked.offset, asked.limit))


# What a search found


def _evolution(project: ViewedProject, _: NoQuestion) -> EvolutionView:
    result = _last_result(project)
    if result is None:
        return EvolutionView(0.0, (), ())
    here = _knobs_now(project, read_state(project.store))
    parts, earlier = (
        tuple(_evolved_part(each, here) for each in some) for some in (result.parts, result.earlier)
    )
    return EvolutionView(result.time, parts, earlier)


def _last_result(project: ViewedProject) -> EvolveResult | None:
    from hotset.replay.evolve import FOLDER, read_result  # noqa: PLC0415 - loads the replay

    return read_result(Path(project.config.folder) / FOLDER)


def _knobs_now(project: ViewedProject, state: LearnState) -> KnobsNow:
    from hotset.replay.evolve_orders import KnobsNow  # noqa: PLC0415

    knobs, _ = knobs_to_build_on(project.config, state)
    return KnobsNow(state, knobs, pinned_knobs(project.config))


def _evolved_part(part: PartResult, here: KnobsNow) -> EvolvedPartView:
    from hotset.replay.evolve_front import axes_of  # noqa: PLC0415

    across, up = axes_of(part.part)
    step = max(1, -(-len(part.points) // _MOST_POINTS))
    return EvolvedPartView(
        part=part.part,
        tried=part.tried,
        searched=part.searched,
        held_out=part.held_out,
        looks=part.looks,
        why=part.why,
        change=_found_change(part, here),
        across=across,
        up=up,
        front=tuple(TriedPoint(one.task, one.spent, one.knobs) for one in part.front),
        points=tuple(TriedPoint(task, spent, {}) for task, spent in part.points[::step]),
    )


def _found_change(part: PartResult, here: KnobsNow) -> FoundChange | None:
    from hotset.replay.evolve_orders import why_not_adopted, why_not_taken_back  # noqa: PLC0415

    change = part.change
    if change is None:
        return None
    own = next((row for row in rows(here.state) if row.id == change.id), None)
    in_force = own is not None and own.stage == Stage.ADOPTED
    refusal = ""
    if in_force:
        refusal = why_not_taken_back(change.id, here.state, _typed)
    elif part.passed:
        refusal = why_not_adopted(change, part, here, _typed)
    return FoundChange(change.id, change.knobs, change.before, part.passed, in_force, refusal)


def _typed(command: str) -> str:
    return f"hotset {command}"


# Orders


def _act_on_learning(project: ViewedProject, asked: LearningAct) -> OrderReply:
    store, config, now = project.store, project.config, project.clock()
    match asked.act:
        case "adopt":
            return _adopt(project, asked.changes)
        case "revert":
            return _revert(project, asked.changes)
        case "trial":
            order_trial(store, config, asked.shares, now)
            return OrderReply("from the next session on", "To undo it, end the trial.")
        case "on" | "off" as switch:
            switch_learning(store, now, is_on=switch == "on")
            other = "off" if switch == "on" else "on"
            return OrderReply(f"learning is {switch}", f"To undo it, switch it {other}.")
        case "freeze" if asked.value:
            return _set_knob(project, asked)
        case act:
            order, says, undo = _KNOB_ORDERS[act]
            order(store, config, (*asked.knobs, *asked.changes), now)
            what = ", ".join((*asked.knobs, *asked.changes)) or "every knob"
            return OrderReply(says.format(what), undo)


def _set_knob(project: ViewedProject, asked: LearningAct) -> OrderReply:
    if len(asked.knobs) != 1:
        raise BadInput("a value is for one knob: name it")
    (name,) = asked.knobs
    values = parse_orders([f"{name}={asked.value}"], "learn freeze")
    freeze_knobs(project.store, project.config, asked.knobs, values, project.clock())
    return OrderReply(f"{name} is {asked.value} from now on, in every session", "Unfreeze it.")


def _freeze(store: Store, config: Config, names: Sequence[str], now: float) -> object:
    return freeze_knobs(store, config, names, {}, now)


_KNOB_ORDERS: Mapping[
    str, tuple[Callable[[Store, Config, Sequence[str], float], object], str, str]
] = {
    "freeze": (_freeze, "frozen: {}", "To undo it, unfreeze it."),
    "unfreeze": (unfreeze_knobs, "no longer frozen: {}", "To undo it, freeze it again."),
    "reset": (
        reset_knobs,
        "new sessions have the defaults: {}",
        "It is not learned again before you allow it.",
    ),
    "unreset": (
        allow_again,
        "may be learned again: {}",
        "To undo it, take it back when it is in force.",
    ),
}
"""Each with what it says then, and how it is undone."""


def _adopt(project: ViewedProject, ids: tuple[str, ...]) -> OrderReply:
    from hotset.replay.evolve_orders import decide_adoption  # noqa: PLC0415

    result, adopted, told = _last_result(project), list[str](), list[str]()
    for id in ids or ("",):
        state = read_state(project.store)
        adoption = decide_adoption(result, id, _knobs_now(project, state), _typed)
        write_decisions(project.store, adoption.events, project.clock())
        adopted += adoption.ids
        told += (f"not adopted: {each}" for each in adoption.reasons)
    told = [f"new sessions have {', '.join(adopted)}" if adopted else "in force already", *told]
    if not read_state(project.store).is_on:
        told.append("learning is off, so sessions do not get it before you switch it on")
    return OrderReply("; ".join(told), "To undo it, take it back.")


def _revert(project: ViewedProject, ids: tuple[str, ...]) -> OrderReply:
    from hotset.replay.evolve_orders import decide_reversal  # noqa: PLC0415

    taken: list[str] = []
    for id in ids or ("",):
        reversal = decide_reversal(id, read_state(project.store), _typed)
        write_decisions(project.store, reversal.events, project.clock())
        taken += (row.id for row in reversal.rows)
    if not taken:
        return OrderReply("nothing of a search is in force", "Nothing has to be undone.")
    return OrderReply(
        f"new sessions have the knobs from before {', '.join(taken)}", "To undo it, adopt it again."
    )


ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute("learning", "What was learned.", NoQuestion, LearningView, _learning),
    ApiRoute("learning/knob/{name}", "Why a knob has its value.", NameQuestion, KnobReason, _knob),
    ApiRoute(
        "learning/price",
        "What a value that holds at once may cost.",
        NoQuestion,
        OrderPrice,
        _order_price,
    ),
    ApiRoute(
        "learning/curves/knobs",
        "Values of knobs over time, those that changed last first.",
        CurvesQuestion,
        KnobCurves,
        _knob_curves,
    ),
    ApiRoute(
        "learning/curves/shares",
        "Which share of new sessions each arm got, over time.",
        DaysQuestion,
        ShareCurves,
        _share_curves,
    ),
    ApiRoute(
        "learning/curves/beliefs",
        "Where the best value of each explored knob probably lay, over time.",
        PagedCurvesQuestion,
        BeliefCurves,
        _belief_curves,
    ),
    ApiRoute("learning/evolution", "The last search.", NoQuestion, EvolutionView, _evolution),
    ApiRoute(
        "learning/act", "Order learning.", LearningAct, OrderReply, _act_on_learning, acts=True
    ),
)
