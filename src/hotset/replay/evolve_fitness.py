"""What a configuration is worth on a recorded session: task score, tokens and latency, measured by
replay and without a model. Here the window's part; the parts of search and recall are beside."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from random import Random
from statistics import median
from typing import Any, Protocol

from msgspec import Struct, structs, to_builtins

from hotset.files.lru import memo
from hotset.nouns.knobs import Knobs
from hotset.replay.conversation import NeededAction, RecordedConversation, TextUnits
from hotset.replay.evolve_search import Gene, Point
from hotset.replay.measure import Figures, StudiedConversation, measure
from hotset.replay.policies import Baseline, PlannedShowing, Rules, text_of
from hotset.window.evict import POLICIES
from hotset.window.preview import preview

UNNOTICED = 100.0
"""Milliseconds of latency that count as none: nobody notices them beside a model's own seconds."""

_DIGITS = 6
_remembered_preview = memo("excerpts of evolution", 50_000)(preview)
"""Excerpts are the same for all knobs that give them the same room."""


class SessionScore(Struct, frozen=True, array_like=True):
    """What a configuration did on one session."""

    task: float
    """Share of what was needed that was there, or was found at once; from 0 to 1."""
    spent: float
    """What it took, as a share of what there is without hotset, or of the room."""
    ms: float = 0.0
    """Median milliseconds that a call waited for it."""
    faults: int = 0
    actions: int = 0


class FitnessWeights(Struct, frozen=True):
    task: float = 0.6
    tokens: float = 0.3
    latency: float = 0.1

    def fitness(self, score: SessionScore) -> float:
        late = max(0.0, score.ms - UNNOTICED) / 1000
        return self.task * score.task + self.tokens * (1 - score.spent) - self.latency * late


class EvolvedPart(Protocol):
    """Knobs that are searched together, and the sessions that tell what they are worth."""

    @property
    def name(self) -> str: ...

    @property
    def genes(self) -> Sequence[Gene]: ...

    @property
    def sessions(self) -> Sequence[str]:
        """Names of the sessions, in order of time; the same name means the same material."""
        ...

    def judge(self, knobs: Knobs, session: int) -> SessionScore: ...

    def shuffled(self, seed: int) -> EvolvedPart:
        """The same sessions, with something else needed at each place, chosen at random."""
        ...


def knob_changes(point: Point, knobs: Knobs) -> dict[str, Any]:
    """A point as changes of knobs by their names: both numbers of a limit are one knob."""
    changes: dict[str, Any] = {}
    for name, value in sorted(point.items()):
        knob, dot, field = name.rpartition(".")
        if dot and knob == "limit":
            before = changes.get(knob) or to_builtins(knobs.limit)
            changes[knob] = before | {field: value}
        else:
            changes[name] = value
    if "limit" in changes:
        limit = changes["limit"]
        changes["limit"] = {"over": limit["over"], "room": min(limit["room"], limit["over"])}
    return changes


def rounded(value: float) -> float:
    return round(value, _DIGITS)


@dataclass(frozen=True, slots=True)
class _WindowSession:
    """The stretches of a session between compactions, with what full history costs."""

    name: str
    stretches: tuple[tuple[StudiedConversation, Rules], ...]
    whole: float


@dataclass(frozen=True, slots=True)
class WindowPart:
    """Forms and eviction, by replay: the share of actions whose needs are in the window, and what
    the session costs of full history's price, faults included."""

    studied: Sequence[_WindowSession]
    genes: Sequence[Gene]
    name: str = "window"

    @classmethod
    def of(
        cls,
        recorded: Sequence[Sequence[RecordedConversation]],
        rules: Callable[[str], Rules],
        genes: Sequence[Gene],
    ) -> WindowPart:
        """`recorded`: each session's stretches, in order of time."""
        return cls([_study(stretches, rules) for stretches in recorded], genes)

    @property
    def sessions(self) -> Sequence[str]:
        return [each.name for each in self.studied]

    def judge(self, knobs: Knobs, session: int) -> SessionScore:
        figures = Figures()
        for studied, rules in self.studied[session].stretches:
            own = structs.replace(knobs, window=rules.window)
            policy = PlannedShowing(
                studied.conversation, own, rules.price, preview=_remembered_preview
            )
            measure(studied, policy, rules, figures, time.thread_time)
        spent = (figures.cost + figures.fault_cost) / max(1.0, self.studied[session].whole)
        return SessionScore(
            rounded(1 - figures.faults / max(1, figures.actions)),
            rounded(spent),
            round(1000 * median(figures.seconds or [0.0]), 1),
            figures.faults,
            figures.actions,
        )

    def shuffled(self, seed: int) -> WindowPart:
        return replace(self, studied=[_shuffle(each, seed) for each in self.studied])


def _study(
    stretches: Sequence[RecordedConversation], rules: Callable[[str], Rules]
) -> _WindowSession:
    studied = tuple((StudiedConversation.of(each), rules(each.model)) for each in stretches)
    figures = Figures()
    for each, rule in studied:
        measure(each, Baseline(each.conversation, rule), rule, figures, lambda: 0.0)
    name = session_name(stretches, [rule for _, rule in studied])
    return _WindowSession(name, studied, figures.cost + figures.fault_cost)


def session_name(stretches: Sequence[RecordedConversation], rules: Sequence[Rules] = ()) -> str:
    """A hash of everything that was said and called, and of the prices."""
    said = sha256(repr(rules).encode())
    for each in stretches:
        said.update(f"{each.model} {each.fixed} {len(each.lines)}".encode())
        for line in each.lines:
            for piece in line.pieces:
                said.update(f"{line.role} {piece.kind} {piece.tool} {len(piece.content)} ".encode())
                said.update(piece.content)
    return said.hexdigest()[:16]


def _shuffle(session: _WindowSession, seed: int) -> _WindowSession:
    rng = Random(f"{seed} {session.name}")  # noqa: S311 - no secret
    stretches = tuple(
        (replace(studied, actions=_shuffle_needs(studied, rng)), rules)
        for studied, rules in session.stretches
    )
    return replace(session, name=f"{session.name}-{seed}", stretches=stretches)


def _shuffle_needs(studied: StudiedConversation, rng: Random) -> dict[int, list[NeededAction]]:
    """For each need of an action a string of any message before it."""
    units = [TextUnits.of(text_of(line)) for line in studied.conversation.lines]
    strings = [sorted(each.names | each.lines) for each in units]
    places: dict[str, list[int]] = {}
    for index, each in enumerate(strings):
        for string in each:
            places.setdefault(string, []).append(index)
    shuffled: dict[int, list[NeededAction]] = {}
    for message, actions in studied.actions.items():
        filled = [index for index in range(message) if strings[index]]
        for action in actions:
            chosen = [rng.choice(strings[rng.choice(filled)]) for _ in action.needs if filled]
            needs = {
                need: tuple(at for at in places[need] if at < message)
                for need in dict.fromkeys(chosen)
            }
            shuffled.setdefault(message, []).append(NeededAction(message, needs))
    return shuffled


def _value(knobs: Knobs, name: str) -> Any:
    knob, _, field = name.partition(".")
    return getattr(knobs.limit, field) if knob == "limit" else knobs.value(name)


_SCALES = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0)
"""Of a limit in force."""


def window_genes(knobs: Knobs) -> list[Gene]:
    """Forms and eviction, from the knobs in force."""
    limits = to_builtins(knobs)["limits"]
    forms = (
        ("limit.over", 1000, 24_000, True),
        ("limit.room", 500, 12_000, True),
        ("index", 40, 800, True),
        ("said", 30, 800, True),
        ("entry", 50, 800, True),
        ("mentions", 10, 600, True),
        ("written", 500, 12_000, True),
        ("read", 30, 2000, True),
        ("forms.names_share", 0.0, 0.7, False),
        ("forms.change_share", 0.1, 0.9, False),
        ("forms.logs_share", 0.05, 0.6, False),
        ("forms.folded_share", 0.1, 0.9, False),
        ("forms.repeat", 80, 2000, True),
    )
    eviction = (
        ("keep", 2, 16, True),
        ("low", 0.0, 0.3, False),
        ("rest", 1500, 60_000, True),
        ("regret", 0.5, 60.0, True),
        ("finished", 0.01, 1.0, True),
        ("patience", 10, 300, True),
        ("squeezed", 0.3, 0.95, False),
        ("crowd", 20, 200, True),
    )
    ranges = (("forms", forms), ("eviction", eviction))
    return [
        *(
            Gene(name, _value(knobs, name), part, low, high, log)
            for part, named in ranges
            for name, low, high, log in named
        ),
        *(
            Gene(f"limits.{kind}", limit, "forms", choices=_scaled(limit))
            for kind, limit in sorted(limits.items())
        ),
        Gene("echo", knobs.echo, "forms", choices=(True, False)),
        Gene("policy", knobs.policy, "eviction", choices=tuple(sorted(POLICIES))),
        Gene("early", knobs.early, "eviction", choices=(True, False)),
    ]


def _scaled(limit: Mapping[str, int]) -> tuple[dict[str, int], ...]:
    return tuple({name: round(value * scale) for name, value in limit.items()} for scale in _SCALES)
