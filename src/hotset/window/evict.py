"""Which steps leave, when, and what stays of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotset.nouns.knobs import Knobs
from hotset.nouns.page import Kind
from hotset.nouns.window import WHOLE, Cause, Form, Line, Shown, Spot, Stub
from hotset.window.names import names_in
from hotset.window.policies import POLICIES, Candidate
from hotset.window.steps import Step, answers
from hotset.window.stub import entry, reference, stretch, stub_of
from hotset.window.summary import within

if TYPE_CHECKING:
    from hotset.window.plan import Moment

_SLICE = 2000
"""Tokens that a retrieval brings back."""

_ASKING = 60
"""Tokens that a model writes to ask for it."""

_CHARS_PER_TOKEN = 4
_SMALLEST_STUB = 60
"""Tokens below which a page is never exchanged for a stub."""

_SUMMARY_SHARE = 0.1
"""What summaries may take of the stretch that leaves: its log comes to a few per cent."""

_LATEST = 4
"""How many of the latest steps say what is being done now."""


@dataclass(slots=True)
class Weighed:
    """A conversation with what is shown of it."""

    lines: tuple[Line, ...]
    steps: tuple[Step, ...]
    shown: Mapping[Spot, Shown]
    sent: int
    """The index of the last line that the provider has in its cache; -1 where it has none."""

    def weight(self, line: Line) -> int:
        gone = self.shown.get(Spot(line.chain, WHOLE))
        if gone is not None:
            return gone.tokens
        total = line.extra
        for position, piece in enumerate(line.pieces):
            row = self.shown.get(Spot(line.chain, position))
            total += row.tokens if row is not None else piece.tokens
        return total

    def step_weight(self, step: Step) -> int:
        return sum(self.weight(line) for line in self.lines[step.first : step.last + 1])

    def resident(self, step: Step) -> bool:
        """Has it not left yet?"""
        if not step.sticky:
            return Spot(self.lines[step.first].chain, WHOLE) not in self.shown
        return any(True for _ in self.stubbable(step))

    def stubbable(self, step: Step) -> Iterator[tuple[Spot, Line, int]]:
        """The results of a step that could become stubs: place, line, tokens as shown."""
        for line in self.lines[step.first : step.last + 1]:
            if not answers(line):
                continue
            for position, piece in enumerate(line.pieces):
                if not piece.call or piece.kind.family is Kind.TOOL_CALL:
                    continue
                row = self.shown.get(Spot(line.chain, position))
                tokens = row.tokens if row is not None else piece.tokens
                if tokens > _SMALLEST_STUB and (row is None or row.form is not Form.STUB):
                    yield Spot(line.chain, position), line, tokens


def evict(weighed: Weighed, knobs: Knobs, moment: Moment) -> tuple[tuple[Shown, ...], tuple[Stub, ...], Cause | None]:
    """Rows and stubs for what leaves now, and why; nothing where all stays."""
    weights = [weighed.weight(line) for line in weighed.lines]
    total = moment.fixed + sum(weights)
    window = knobs.window / moment.scale
    stepped = {step: sum(weights[step.first : step.last + 1]) for step in weighed.steps}
    resident = [step for step in weighed.steps if weighed.resident(step)]
    overflow = total > knobs.high * window
    crowded = bool(knobs.most) and len(resident) > knobs.most
    if not (overflow or crowded or knobs.early) or not resident:
        return (), (), None
    leaving = _chosen(weighed, resident, stepped, total, window, knobs, moment, keep=knobs.keep)
    cause = Cause.OVERFLOW if overflow else Cause.GROWN if crowded else None
    if cause is None and leaving and _pays(weighed, leaving, weights, stepped, total, knobs, moment):
        cause = Cause.COLD if weighed.sent < 0 else Cause.PAYS
    if cause is None:
        return (), (), None
    rows, stubs = _leave(weighed, leaving, knobs, moment)
    if cause is Cause.OVERFLOW:
        rows, stubs = _squeeze(weighed, rows, stubs, window, knobs, moment)
    return tuple(rows), tuple(stubs), cause


def _chosen(
    weighed: Weighed,
    resident: Sequence[Step],
    stepped: Mapping[Step, int],
    total: int,
    window: float,
    knobs: Knobs,
    moment: Moment,
    *,
    keep: int,
) -> list[Step]:
    """The steps that leave, in the order of the conversation: the highest scores first, until the rest fits."""
    latest = weighed.steps[-1].number
    held = sum(stepped[step] for step in resident)
    goal = knobs.low * max(0.0, window - (total - held))
    free = [step for step in resident if latest - step.number >= keep and not _is_pinned(weighed, step, moment)]
    score = POLICIES[knobs.policy]
    ranked = sorted(
        free,
        key=lambda step: (_is_spared(weighed, step, knobs), -score(_candidate(weighed, step, stepped, knobs)), step.number),
    )
    leaving: list[Step] = []
    for step in ranked:
        if held <= goal:
            break
        leaving.append(step)
        held -= stepped[step]
    return sorted(leaving, key=lambda step: step.number)


def _is_pinned(weighed: Weighed, step: Step, moment: Moment) -> bool:
    return any(line.chain in moment.pinned for line in weighed.lines[step.first : step.last + 1])


def _is_spared(weighed: Weighed, step: Step, knobs: Knobs) -> bool:
    return bool(knobs.spared) and any(piece.kind in knobs.spared for piece in _pieces(weighed, step))


def _candidate(weighed: Weighed, step: Step, stepped: Mapping[Step, int], knobs: Knobs) -> Candidate:
    age = weighed.steps[-1].number - step.number
    if knobs.policy == "recency":  # the only facts that need no reading
        return Candidate(age, stepped[step], age, finished=False, strange=0.0, kinds=frozenset())
    said = _names(weighed, step)
    later = weighed.steps[weighed.steps.index(step) + 1 :]
    used = next((each for each in reversed(later) if _called(weighed, each) & said), None)
    now = frozenset().union(*(_names(weighed, each) for each in weighed.steps[-_LATEST:]))
    return Candidate(
        age=age,
        tokens=stepped[step],
        unused=weighed.steps[-1].number - used.number if used else age,
        finished=any(_is_prompt(line) for line in weighed.lines[step.last + 1 :]),
        strange=1 - len(said & now) / len(said) if said else 1.0,
        kinds=frozenset(piece.kind for piece in _pieces(weighed, step)),
    )


def _pieces(weighed: Weighed, step: Step) -> Iterator:  # type: ignore[type-arg]
    for line in weighed.lines[step.first : step.last + 1]:
        yield from line.pieces


def _names(weighed: Weighed, step: Step) -> frozenset[str]:
    return frozenset().union(*(names_in(piece.content) for piece in _pieces(weighed, step) if piece.kind is not Kind.IMAGE))


def _called(weighed: Weighed, step: Step) -> frozenset[str]:
    calls = (piece for piece in _pieces(weighed, step) if piece.kind.family is Kind.TOOL_CALL)
    return frozenset().union(*(names_in(piece.content) for piece in calls))


def _is_prompt(line: Line) -> bool:
    return any(piece.kind is Kind.PROMPT for piece in line.pieces) and not answers(line)


def _pays(
    weighed: Weighed,
    leaving: Sequence[Step],
    weights: Sequence[int],
    stepped: Mapping[Step, int],
    total: int,
    knobs: Knobs,
    moment: Moment,
) -> bool:
    """Does letting these steps leave cost less than reading them on, and is now the time?

    A batch costs the rewriting of what stands behind it, its log, and the retrievals that it will cause. Waiting makes a
    batch larger and so rarer, and costs the reading of what could have left: the cheapest size is that of an order in a
    warehouse, sqrt(2 x cost of a batch x growth per call / cost of reading).
    """
    price = moment.price
    first = leaving[0].first
    log = len(leaving) * (knobs.entry // _CHARS_PER_TOKEN)
    evicted = sum(stepped[step] for step in leaving) - log
    if evicted <= 0 or price.read <= 0:
        return False
    gone = {index for step in leaving for index in range(step.first, step.last + 1)}
    behind = sum(weights[index] for index in range(first, weighed.sent + 1) if index not in gone)
    fault = price.read * (total - evicted) + price.write * _SLICE + _output(moment) * _ASKING
    batch = (price.write - price.read) * behind + price.write * log + knobs.regret * fault
    calls = len(weighed.steps)
    growth = sum(stepped.values()) / calls
    least = math.sqrt(2 * batch * growth / price.read)
    return evicted >= least and min(calls, knobs.patience) * price.read * evicted > batch


def _output(moment: Moment) -> float:
    return moment.price.output / moment.price.input if moment.price.input else 5.0


def _leave(weighed: Weighed, leaving: Sequence[Step], knobs: Knobs, moment: Moment) -> tuple[list[Shown], list[Stub]]:
    rows: list[Shown] = []
    stubs: list[Stub] = []
    cause = Cause.PAYS
    for run in _runs(weighed, leaving):
        if run[0].sticky:
            made = _stub_pages(weighed, run[0], moment, cause)
        else:
            made = _collapse(weighed, run, knobs, moment, cause)
        rows += made[0]
        stubs += made[1]
    return rows, stubs


def _runs(weighed: Weighed, leaving: Sequence[Step]) -> Iterator[list[Step]]:
    """Steps that stand side by side leave together; one whose messages must stay is alone."""
    run: list[Step] = []
    for step in leaving:
        if run and (step.sticky or run[-1].sticky or step.first != run[-1].last + 1):
            yield run
            run = []
        run.append(step)
    if run:
        yield run


def _collapse(
    weighed: Weighed, run: Sequence[Step], knobs: Knobs, moment: Moment, cause: Cause
) -> tuple[list[Shown], list[Stub]]:
    lines = weighed.lines[run[0].first : run[-1].last + 1]
    spots = [Spot(line.chain, WHOLE) for line in lines]
    stub = stub_of(spots, lines, (run[0].number, run[-1].number), "conversation", moment.now)
    log = (entry(weighed.lines[step.first : step.last + 1], step.number, knobs.entry) for step in run)
    before = sum(weighed.weight(line) for line in lines)
    room = int(_SUMMARY_SHARE * _CHARS_PER_TOKEN * before)
    text = stretch(stub, log, within(moment.summaries, run[0].number, run[-1].number, room)).encode()
    tokens = moment.count(text) + lines[0].extra
    if tokens >= before:
        return [], []
    rows = [
        Shown(
            spot,
            Form.GONE,
            text if index == 0 else b"",
            tokens if index == 0 else 0,
            lines[index].extra + sum(piece.tokens for piece in lines[index].pieces),
            cause,
            moment.now,
        )
        for index, spot in enumerate(spots)
    ]
    return rows, [stub]


def _stub_pages(weighed: Weighed, step: Step, moment: Moment, cause: Cause) -> tuple[list[Shown], list[Stub]]:
    rows: list[Shown] = []
    stubs: list[Stub] = []
    for spot, line, tokens in weighed.stubbable(step):
        piece = line.pieces[spot.position]
        alone = Line(line.chain, line.role, (piece,))
        stub = stub_of([spot], [alone], (step.number, step.number), str(piece.kind), moment.now)
        text = reference(stub).encode()
        if (shorter := moment.count(text)) < tokens:
            rows.append(Shown(spot, Form.STUB, text, shorter, piece.tokens, cause, moment.now))
            stubs.append(stub)
    return rows, stubs


def _squeeze(
    weighed: Weighed, rows: list[Shown], stubs: list[Stub], window: float, knobs: Knobs, moment: Moment
) -> tuple[list[Shown], list[Stub]]:
    """Where the window would still overflow: older logs shrink to their reference, then the largest late results leave too."""
    limit = knobs.high * window
    shown = {**weighed.shown, **{row.spot: row for row in rows}}
    after = Weighed(weighed.lines, weighed.steps, shown, weighed.sent)
    total = moment.fixed + sum(after.weight(line) for line in weighed.lines)
    for line in weighed.lines:
        if total <= limit:
            return rows, stubs
        row = shown.get(Spot(line.chain, WHOLE))
        if row is None or b"\n" not in row.text:
            continue
        text = row.text.split(b"\n", 1)[0]
        tokens = moment.count(text) + line.extra
        rows.append(Shown(row.spot, Form.GONE, text, tokens, row.whole, Cause.OVERFLOW, moment.now))
        total -= row.tokens - tokens
    late = [found for step in weighed.steps if after.resident(step) for found in after.stubbable(step)]
    for spot, line, tokens in sorted(late, key=lambda found: -found[2]):
        if total <= limit:
            break
        piece = line.pieces[spot.position]
        number = next(step.number for step in weighed.steps if line in weighed.lines[step.first : step.last + 1])
        stub = stub_of([spot], [Line(line.chain, line.role, (piece,))], (number, number), str(piece.kind), moment.now)
        text = reference(stub).encode()
        shorter = moment.count(text)
        if shorter < tokens:
            rows.append(Shown(spot, Form.STUB, text, shorter, piece.tokens, Cause.OVERFLOW, moment.now))
            stubs.append(stub)
            total -= tokens - shorter
    return rows, stubs
