"""What stands in place of steps that leave: one stub for each stretch of them, or one for each page
where messages must stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from hotset.nouns.knobs import Knobs
from hotset.nouns.window import WHOLE, Cause, Form, Line, Shown, Spot, Stub
from hotset.window.moment import Moment
from hotset.window.steps import Step
from hotset.window.stub import bare, entries, folded, reference, stretch, stub_of, tells_of
from hotset.window.summary import within
from hotset.window.weighing import Weighed

_CHARS_PER_TOKEN = 4


@dataclass(slots=True)
class Departure:
    """What leaves with one plan."""

    cause: Cause | None = None
    rows: list[Shown] = field(default_factory=list)
    stubs: list[Stub] = field(default_factory=list)


def leave(
    weighed: Weighed, leaving: Sequence[Step], knobs: Knobs, moment: Moment, cause: Cause
) -> Departure:
    """Steps, in the order of the conversation, leave."""
    departure = Departure(cause)
    for run in _runs(leaving):
        if run[0].sticky:
            for spot, tokens in weighed.stubbable(run[0]):
                _stub_page(departure, _Page.of(weighed, run[0], spot, tokens), knobs, moment)
        else:
            _collapse(departure, weighed, run, knobs, moment)
    return departure


def mend(weighed: Weighed, knobs: Knobs, moment: Moment) -> tuple[Weighed, Departure]:
    """The conversation after its client changed what had left, and the stubs that are made anew for
    that.

    A step of which a part has left comes back whole: its call and its result are sent together or
    not at all. A stub tells of the steps that stand behind it: where some of them are no more, it
    is made anew from the others.
    """
    runs, partly = _left(weighed)
    cut = [run for run in runs if not _is_intact(weighed, run)]
    if not cut and not partly:
        return weighed, Departure()
    departure = Departure(Cause.REWOUND)
    back = {
        line.chain
        for step in (*partly, *(step for run in cut for step in run))
        for line in weighed.inside(step)
    }
    whole = weighed.with_back(back)
    for run in cut:
        for some in _runs(run):
            if not some[0].sticky:
                _collapse(departure, whole, some, knobs, moment)
    return whole.after(departure.rows), departure


def _left(weighed: Weighed) -> tuple[list[list[Step]], list[Step]]:
    """The runs of steps that left, each up to the stub of the next; and the steps of which only a
    part did."""
    runs: list[list[Step]] = []
    partly: list[Step] = []
    for step in weighed.steps:
        gone = [row for line in weighed.inside(step) if (row := weighed.gone(line)) is not None]
        if not gone:
            continue
        if len(gone) <= step.last - step.first:
            partly.append(step)
        elif runs and step.first == runs[-1][-1].last + 1 and not gone[0].text:
            runs[-1].append(step)
        else:
            runs.append([step])
    return runs, partly


def _is_intact(weighed: Weighed, run: Sequence[Step]) -> bool:
    """Does one stub stand in front, and does it tell of these steps and no others?"""
    lines = weighed.lines[run[0].first : run[-1].last + 1]
    rows = {row.spot: row.text for line in lines if (row := weighed.gone(line)) is not None}
    first, *others = rows.values()
    return not any(others) and tells_of(first.decode("utf-8", "replace"), tuple(rows))


def fold(departure: Departure, weighed: Weighed, knobs: Knobs, moment: Moment) -> None:
    """Where logs have come to fill the window, the older ones are folded: enough of them for a long
    time."""
    after = weighed.after(departure.rows)
    logs = [
        (line, row) for line in weighed.lines if (row := after.gone(line)) is not None and row.text
    ]
    most = knobs.forms.logs_share * moment.room(knobs)
    over = sum(row.tokens for _, row in logs) - most
    if over > 0:
        new = {stub.spots[0] for stub in departure.stubs}
        old = [log for log in logs if log[1].spot not in new]
        _shrink(
            departure,
            old,
            over + most / 2,
            moment,
            lambda told: folded(told, knobs.forms.folded_share),
        )


def squeeze(departure: Departure, weighed: Weighed, knobs: Knobs, moment: Moment) -> None:
    """Where the window would still overflow: all logs shrink to their reference, then the largest
    late results leave too."""
    after, room = weighed.after(departure.rows), moment.room(knobs)
    if after.total <= room:
        return
    logs = [(line, row) for line in weighed.lines if (row := after.gone(line)) is not None]
    over = after.total - room - _shrink(departure, logs, after.total - room, moment, bare)
    late = [
        _Page.of(weighed, step, spot, tokens)
        for step in weighed.steps
        if after.is_resident(step)
        for spot, tokens in after.stubbable(step)
    ]
    for page in sorted(late, key=lambda page: -page.tokens):
        if over <= 0:
            return
        over -= _stub_page(departure, page, knobs, moment)


def _shrink(
    departure: Departure,
    logs: Sequence[tuple[Line, Shown]],
    much: float,
    moment: Moment,
    shorter: Callable[[str], str],
) -> float:
    """The oldest logs become shorter, until that has saved so much; tells how many tokens it did
    save."""
    saved = 0
    for line, row in logs:
        if saved >= much:
            break
        text = shorter(row.text.decode("utf-8", "replace")).encode("utf-8", "replace")
        tokens = moment.count(text) + line.extra
        if tokens < row.tokens:
            departure.rows.append(
                Shown(
                    row.spot,
                    Form.GONE,
                    text,
                    tokens,
                    row.whole,
                    departure.cause or row.cause,
                    moment.now,
                )
            )
            saved += row.tokens - tokens
    return saved


@dataclass(frozen=True, slots=True)
class _Page:
    """A result at its place, as it is shown."""

    step: int
    spot: Spot
    line: Line
    tokens: int

    @classmethod
    def of(cls, weighed: Weighed, step: Step, spot: Spot, tokens: int) -> _Page:
        return cls(
            step.number,
            spot,
            next(line for line in weighed.inside(step) if line.chain == spot.chain),
            tokens,
        )


def _runs(leaving: Sequence[Step]) -> Iterator[list[Step]]:
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
    departure: Departure, weighed: Weighed, run: Sequence[Step], knobs: Knobs, moment: Moment
) -> None:
    assert departure.cause is not None
    first, last = run[0], run[-1]
    lines = weighed.lines[first.first : last.last + 1]
    spots = list(
        dict.fromkeys(Spot(line.chain, WHOLE) for line in lines)
    )  # reasoning items that say the same have one chain
    stub = stub_of(
        spots, lines, (first.number, last.number), "conversation", forms=knobs.forms, moment=moment
    )
    before = sum(map(weighed.of, run))
    summary = within(
        moment.summaries,
        first.number,
        last.number,
        int(knobs.forms.summary_share * _CHARS_PER_TOKEN * before),
    )
    log = entries(((step.number, weighed.inside(step)) for step in run), knobs, moment.check)
    for told in (stretch(stub, log, summary), reference(stub)):
        text = told.encode("utf-8", "replace")
        tokens = moment.count(text) + lines[0].extra
        if tokens < before:
            break
    else:  # so little that even its reference would be longer
        return
    wholes = {Spot(line.chain, WHOLE): line.whole for line in lines}
    forms = [(text, tokens), *((b"", 0) for _ in spots[1:])]
    departure.stubs.append(stub)
    departure.rows += [
        Shown(spot, Form.GONE, said, weight, wholes[spot], departure.cause, moment.now)
        for spot, (said, weight) in zip(spots, forms, strict=True)
    ]


def _stub_page(departure: Departure, page: _Page, knobs: Knobs, moment: Moment) -> int:
    """A result becomes its reference; tells how many tokens that saves."""
    assert departure.cause is not None
    piece = page.line.pieces[page.spot.position]
    alone = Line(page.line.chain, page.line.role, (piece,))
    stub = stub_of(
        [page.spot],
        [alone],
        (page.step, page.step),
        str(piece.kind),
        forms=knobs.forms,
        moment=moment,
    )
    text = reference(stub).encode()
    tokens = moment.count(text)
    if tokens >= page.tokens:
        return 0
    departure.stubs.append(stub)
    departure.rows.append(
        Shown(page.spot, Form.STUB, text, tokens, piece.tokens, departure.cause, moment.now)
    )
    return page.tokens - tokens
