"""How one request is to be sent: the one function that decides.

New results get their form once and keep it. Older steps leave in batches: when the window would overflow, or when the price
model says that rewriting what stands behind them costs less than reading them on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hotset.nouns.knobs import Knobs
from hotset.nouns.page import Chain, Kind
from hotset.nouns.price import Price
from hotset.nouns.window import WHOLE, Cause, Form, Line, Piece, Plan, Shown, Spot, Stub, Table
from hotset.window.birth import Seen, born, sought_in
from hotset.window.evict import Weighed, evict
from hotset.window.steps import Step, answers, steps


@dataclass(frozen=True, slots=True)
class Moment:
    """What holds while a plan is made and is not part of the conversation."""

    now: float
    price: Price
    count: Callable[[bytes], int]
    """Tokens of a text."""
    fixed: int = 0
    """Tokens of what stands before the messages: system text and tools."""
    scale: float = 1.0
    """How many tokens the provider counts for one of ours."""
    pinned: frozenset[Chain] = frozenset()
    """Messages whose steps never leave."""
    summaries: Mapping[int, str] = field(default_factory=dict)
    """What was written about the steps up to a number, by that number."""


def plan(lines: Sequence[Line], table: Table, knobs: Knobs, moment: Moment) -> Plan:
    """Pure: the same arguments give the same plan, on any machine."""
    sent = _sent(lines, table)
    shown = {
        spot: row
        for line in lines
        for position in range(WHOLE, len(line.pieces))
        if (row := table.shown.get(spot := Spot(line.chain, position))) is not None
    }
    fresh = _births(lines, sent, shown, knobs, moment)
    shown.update((row.spot, row) for row in fresh)
    cold = table.sent is None or moment.now - table.sent.time > moment.price.ttl
    weighed = Weighed(tuple(lines), tuple(steps(lines)), shown, sent=-1 if cold else sent)
    left, stubs, cause = evict(weighed, knobs, moment)
    shown.update((row.spot, row) for row in left)
    return _told(lines, shown, (*fresh, *left), stubs, sent, cause if left else None)


def _sent(lines: Sequence[Line], table: Table) -> int:
    """The index of the last line of the latest request; -1 where there was none."""
    if table.sent is None:
        return -1
    return next((index for index in range(len(lines) - 1, -1, -1) if lines[index].chain == table.sent.head), -1)


def _births(lines: Sequence[Line], sent: int, shown: Mapping[Spot, Shown], knobs: Knobs, moment: Moment) -> tuple[Shown, ...]:
    """Rows for the results that were never shown."""
    seen = Seen()
    calls: dict[str, Piece] = {}
    fresh: list[Shown] = []
    for index, line in enumerate(lines):
        for piece in line.pieces:
            if piece.call and piece.kind.family is Kind.TOOL_CALL:
                calls[piece.call] = piece
        if not answers(line) or Spot(line.chain, WHOLE) in shown:
            continue
        for position, piece in enumerate(line.pieces):
            if not is_result(piece):
                continue
            spot = Spot(line.chain, position)
            row = shown.get(spot)
            call = calls.get(piece.call)
            arguments = call.content if call else b""
            if row is None and index > sent:
                form, text = born(piece, arguments, _sought(lines, index, knobs, piece), seen, knobs)
                row = _row(spot, piece, form, text, moment)
                fresh.append(row)
            seen.note(spot, piece, arguments, row.form if row else Form.FULL)
    return tuple(fresh)


def is_result(piece: Piece) -> bool:
    """A page that a call brought: text, or an image."""
    return bool(piece.call) and piece.kind.family is not Kind.TOOL_CALL


def _row(spot: Spot, piece: Piece, form: Form, text: str, moment: Moment) -> Shown:
    told = text.encode("utf-8", "replace")
    tokens = moment.count(told) if told else piece.tokens
    if tokens >= piece.tokens:
        form, told, tokens = Form.FULL, b"", piece.tokens
    return Shown(spot, form, told, tokens, piece.tokens, Cause.BIRTH, moment.now)


def _sought(lines: Sequence[Line], index: int, knobs: Knobs, piece: Piece) -> frozenset[str]:
    """What the latest prompt and the words before the call are about; worked out only where an excerpt may be made."""
    limit = knobs.limit_of(piece.kind, piece.tool)
    if not limit.over or len(piece.content) <= limit.over:
        return frozenset()
    asked: list[Piece] = []
    for line in reversed(lines[:index]):
        if not answers(line):
            asked += [each for each in line.pieces if each.kind in _SAYING or each.kind.family is Kind.TOOL_CALL]
        if any(each.kind is Kind.PROMPT for each in line.pieces) or len(asked) > _LOOKED_BACK:
            break
    return sought_in(asked)


_SAYING = frozenset({Kind.PROMPT, Kind.RESPONSE})
_LOOKED_BACK = 12  # pieces: the latest few calls tell what is looked for; older ones looked for something else


def _told(
    lines: Sequence[Line],
    shown: Mapping[Spot, Shown],
    fresh: tuple[Shown, ...],
    stubs: tuple[Stub, ...],
    sent: int,
    cause: Cause | None,
) -> Plan:
    changed = {row.spot.chain for row in fresh}
    tokens = whole = kept = 0
    intact = True
    broke = False
    for index, line in enumerate(lines):
        here = weight(line, shown)
        if index <= sent:
            if intact and line.chain in changed:
                intact = False
                broke = True
            if intact:
                kept += here
        tokens += here
        whole += line.extra + sum(piece.tokens for piece in line.pieces)
    return Plan(shown, fresh, stubs, tokens, whole, kept, cause if broke else None)


def weight(line: Line, shown: Mapping[Spot, Shown]) -> int:
    """Tokens of a line as it is shown."""
    gone = shown.get(Spot(line.chain, WHOLE))
    if gone is not None:
        return gone.tokens
    total = line.extra
    for position, piece in enumerate(line.pieces):
        row = shown.get(Spot(line.chain, position))
        total += row.tokens if row is not None else piece.tokens
    return total


__all__ = ["Moment", "Step", "plan", "weight"]
