"""A project's recorded sessions in order of time, and what each would have cost with other knobs.

Replays of one session with the same knobs are made once, excerpts once for all knobs, and a change
that cannot touch a session is not replayed.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from hotset.errors import HotsetError
from hotset.files.lru import memo
from hotset.learn.gate import SessionPair
from hotset.nouns.knobs import Knobs
from hotset.nouns.page import Kind, Role
from hotset.nouns.window import Cause, Form, Line, Piece
from hotset.replay.conversation import RecordedConversation, RecordedSession
from hotset.replay.measure import Figures, StudiedConversation, measure
from hotset.replay.policies import PlannedShowing, Rules
from hotset.replay.report import SHORTEST, Ruling, gather
from hotset.text.call_shape import file_ending
from hotset.window.birth import MakePreview, Result
from hotset.window.preview import preview
from hotset.window.repeats import CLOSES

_PREVIEWS = 50_000
"""Excerpts that are remembered: those of some hundred sessions with a dozen limits."""


class TeachingTimeUp(HotsetError):
    """The time for teaching is up; what was found so far holds."""


@dataclass(frozen=True, slots=True)
class TaughtResult:
    """What limits know of a tool result."""

    tool: str
    kind: Kind
    ending: str
    """Of the name of a file that was read; empty for other results."""
    size: int

    @property
    def keys(self) -> tuple[str, ...]:
        """The knobs that may hold its limit, the most special first."""
        return (
            *((f"files.{self.ending}",) if self.ending else ()),
            *((f"tools.{self.tool}",) if self.tool else ()),
            f"limits.{self.kind}",
        )


@dataclass(frozen=True, slots=True)
class TeachingSession:
    """A recorded session, ready to be replayed."""

    id: str
    time: float
    parts: tuple[StudiedConversation, ...]
    """Split at its compactions."""
    results: Mapping[tuple[str, int], TaughtResult]
    """By conversation and message."""

    @property
    def calls(self) -> int:
        return sum(len(part.calls) for part in self.parts)


def teaching_sessions(
    recorded: Iterable[RecordedSession], ruling: Ruling
) -> tuple[TeachingSession, ...]:
    """The sessions that are long enough to tell something, the oldest first."""
    found: dict[int, list[RecordedConversation]] = {}
    kept = [each for each in recorded if not each.is_subagent]
    for gathered in gather(kept, ruling, everything=True):
        for number, conversation in gathered.counted:
            found.setdefault(number, []).append(conversation)
    sessions = [
        _session(kept[number].id, parts)
        for number, parts in found.items()
        if sum(len(each.calls) for each in parts) >= SHORTEST
    ]
    return tuple(sorted(sessions, key=lambda each: (each.time, each.id)))


def split_sessions(
    sessions: Sequence[TeachingSession], share: float = 0.5
) -> tuple[tuple[TeachingSession, ...], tuple[TeachingSession, ...]]:
    """The earlier sessions, to choose from, and the later ones, for the gate."""
    at = round(len(sessions) * share)
    return tuple(sessions[:at]), tuple(sessions[at:])


def _session(id: str, parts: Sequence[RecordedConversation]) -> TeachingSession:
    times = [line.time for each in parts for line in each.lines if line.time]
    return TeachingSession(
        id,
        min(times, default=0.0),
        tuple(map(StudiedConversation.of, parts)),
        dict(found for each in parts for found in _results(each)),
    )


def _results(conversation: RecordedConversation) -> Iterator[tuple[tuple[str, int], TaughtResult]]:
    calls: dict[str, Piece] = {}
    for index, line in enumerate(conversation.lines):
        for piece in line.pieces:
            if line.role is Role.ASSISTANT and piece.call:
                calls[piece.call] = piece
            elif line.role is Role.TOOL:
                call = calls.get(piece.call)
                result = Result(piece, call.content if call else b"")
                ending = file_ending(result.arguments) if result.kind is Kind.FILE else ""
                yield (
                    (conversation.id, index),
                    TaughtResult(piece.tool, result.kind, ending, len(piece.content)),
                )


@dataclass(frozen=True, slots=True)
class FormCounts:
    """What became of the results of a tool, a kind or an ending."""

    short: int = 0
    """Shown short at first."""
    back: int = 0
    """Of these, asked for again."""
    whole: int = 0

    def __add__(self, other: FormCounts) -> FormCounts:
        return FormCounts(
            self.short + other.short, self.back + other.back, self.whole + other.whole
        )

    @property
    def rate(self) -> float:
        return self.back / self.short if self.short else 0.0


@dataclass(frozen=True, slots=True)
class SessionTrial:
    """A session with some knobs."""

    cost: float
    """Faults included, in uncached input tokens."""
    fault_cost: float
    """The part of it that faults cost."""
    faults: int
    forms: Mapping[str, FormCounts]
    """By the knobs that may hold a result's limit."""


@dataclass
class Trials:
    """Replays of sessions. Raises `TeachingTimeUp` when its time is up."""

    ruling: Ruling
    until: float = math.inf
    """By `clock`."""
    clock: Callable[[], float] = time.monotonic
    progress: Callable[[int], None] = lambda _: None
    """Called with the number of replays after each."""
    replays: int = 0
    _made: dict[tuple[str, bytes], SessionTrial] = field(default_factory=dict)
    _preview: MakePreview = field(
        default_factory=lambda: memo("excerpts of replays", _PREVIEWS)(preview)
    )

    def run(self, session: TeachingSession, knobs: Knobs) -> SessionTrial:
        key = session.id, msgspec.json.encode(_reduced(session, knobs), order="deterministic")
        if (made := self._made.get(key)) is None:
            if self.clock() >= self.until:
                raise TeachingTimeUp("the time for teaching is up")
            made = self._made[key] = self._replay(session, knobs)
            self.replays += 1
            self.progress(self.replays)
        return made

    def pairs(
        self,
        sessions: Iterable[TeachingSession],
        before: Knobs,
        after: Knobs,
        *,
        beside: float = 0.0,
    ) -> list[SessionPair]:
        """Each session with both knobs. `beside`: what a fault costs beside its tokens, as a
        multiple of these."""
        return [self._pair(each, before, after, beside) for each in sessions]

    def forms(self, sessions: Iterable[TeachingSession], knobs: Knobs) -> dict[str, FormCounts]:
        """What becomes of results, by the knobs that may hold their limits."""
        total: dict[str, FormCounts] = {}
        for session in sessions:
            for key, counts in self.run(session, knobs).forms.items():
                total[key] = total.get(key, FormCounts()) + counts
        return total

    def _pair(
        self, session: TeachingSession, before: Knobs, after: Knobs, beside: float
    ) -> SessionPair:
        old, new = self.run(session, before), self.run(session, after)
        return SessionPair(
            session.id,
            session.time,
            old.cost + beside * old.fault_cost,
            new.cost + beside * new.fault_cost,
            old.faults,
            new.faults,
            old.cost,
            new.cost,
            session.calls,
        )

    def _replay(self, session: TeachingSession, knobs: Knobs) -> SessionTrial:
        figures, forms = Figures(), dict[str, FormCounts]()
        shown: list[tuple[str, int, Form]] = []
        for part in session.parts:
            rules = self.ruling.rules(part.conversation.model)
            policy = self._policy(part.conversation, knobs, rules)
            measure(part, policy, rules, figures, time.perf_counter)
            shown += _births(part.conversation, policy)
        back = frozenset(figures.asked_back)
        for conversation, index, form in shown:
            place = conversation, index
            is_short = form is Form.EXCERPT
            counts = FormCounts(int(is_short), int(is_short and place in back), int(not is_short))
            for key in session.results[place].keys if place in session.results else ():
                forms[key] = forms.get(key, FormCounts()) + counts
        cost = figures.cost + figures.fault_cost
        return SessionTrial(cost, figures.fault_cost, figures.faults, forms)

    def _policy(
        self, conversation: RecordedConversation, knobs: Knobs, rules: Rules
    ) -> PlannedShowing:
        own = msgspec.structs.replace(knobs, window=rules.window)
        return PlannedShowing(conversation, own, rules.price, preview=self._preview)


def _births(
    conversation: RecordedConversation, policy: PlannedShowing
) -> Iterator[tuple[str, int, Form]]:
    """The form that each result had at first; a file without its line numbers is whole."""
    forms: dict[int, Form] = {}
    places = {line.chain: index for index, line in enumerate(conversation.lines)}
    for spot, row in policy.rows.items():
        if row.cause is Cause.BIRTH and spot.chain in places and CLOSES in row.text:
            forms[places[spot.chain]] = row.form
    for index, line in enumerate(conversation.lines):
        if _is_result(line):
            yield conversation.id, index, forms.get(index, Form.FULL)


def _is_result(line: Line) -> bool:
    return line.role is Role.TOOL


def _reduced(session: TeachingSession, knobs: Knobs) -> Knobs:
    """The knobs without limits that no result of the session has."""
    counts = Counter(key for result in session.results.values() for key in result.keys)
    return msgspec.structs.replace(
        knobs,
        tools={name: each for name, each in knobs.tools.items() if counts[f"tools.{name}"]},
        files={name: each for name, each in knobs.files.items() if counts[f"files.{name}"]},
    )
