"""How one request is to be sent: the one function that decides.

New results get their form once and keep it. Older steps leave in batches: when the window would overflow, or when the price
model says that rewriting what stands behind them costs less than reading them on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hotset.nouns.knobs import Knobs
from hotset.nouns.window import WHOLE, Cause, Line, Plan, Shown, Spot, Table
from hotset.window.birth import births
from hotset.window.evict import evict
from hotset.window.moment import Moment
from hotset.window.steps import answers
from hotset.window.weighing import weigh, weight, whole

__all__ = ["Moment", "plan", "weight"]


def plan(lines: Sequence[Line], table: Table, knobs: Knobs, moment: Moment) -> Plan:
    """Pure: the same arguments give the same plan, on any machine."""
    sent = _sent(lines, table)
    shown = dict(_standing(lines, table))
    fresh = births(lines, sent, shown, knobs, moment)
    shown.update((row.spot, row) for row in fresh)
    lost = _lost(sent, table, moment)
    weighed = weigh(lines, shown, -1 if lost else sent, lost)
    departure = evict(weighed, knobs, moment)
    if departure.rows:
        shown.update((row.spot, row) for row in departure.rows)
        weighed = weigh(lines, shown, weighed.sent, lost)
    changed = {row.spot.chain for row in departure.rows}
    kept = next((index for index, line in enumerate(lines[: sent + 1]) if line.chain in changed), sent + 1)
    return Plan(
        shown=shown,
        fresh=(*fresh, *departure.rows),
        stubs=tuple(departure.stubs),
        tokens=weighed.total,
        whole=sum(map(whole, lines)),
        kept=sum(weighed.weights[:kept]),
        broke=departure.cause if kept <= sent else None,
    )


def _sent(lines: Sequence[Line], table: Table) -> int:
    """The index of the last line of the latest request; -1 where there was none."""
    if table.sent is None:
        return -1
    return next((index for index in range(len(lines) - 1, -1, -1) if lines[index].chain == table.sent.head), -1)


def _standing(lines: Sequence[Line], table: Table) -> Iterator[tuple[Spot, Shown]]:
    """The rows of this conversation. Only results have rows of their own, and only messages that left have one as a whole."""
    if not table.shown:
        return
    for line in lines:
        row = table.shown.get(spot := Spot(line.chain, WHOLE))
        if row is not None:
            yield spot, row
        if answers(line):
            for position in range(len(line.pieces)):
                row = table.shown.get(spot := Spot(line.chain, position))
                if row is not None:
                    yield spot, row


def _lost(sent: int, table: Table, moment: Moment) -> Cause | None:
    """Why the provider's cache is of no use; None where it is."""
    if table.sent is None or moment.now - table.sent.time > moment.price.ttl:
        return Cause.COLD
    return Cause.REWOUND if sent < 0 else None
