"""How one request is to be sent: the one function that decides.

New results get their form once and keep it. Older steps leave in batches: when the window would overflow, or when the price
model says that rewriting what stands behind them costs less than reading them on.
"""

from __future__ import annotations

from collections.abc import Sequence

from hotset.nouns.knobs import Knobs
from hotset.nouns.window import Cause, Line, Plan, Table
from hotset.window.birth import births
from hotset.window.evict import evict
from hotset.window.moment import Moment
from hotset.window.weighing import by_message, weigh

__all__ = ["Moment", "latest_sent", "plan"]


def plan(lines: Sequence[Line], table: Table, knobs: Knobs, moment: Moment) -> Plan:
    """Pure: the same arguments give the same plan, on any machine."""
    here = {line.chain for line in lines}
    shown = dict(table.shown)
    if not all(spot.chain in here for spot in shown):  # seldom: the line was rewound
        shown = {spot: row for spot, row in shown.items() if spot.chain in here}
    sent = latest_sent(lines, table)
    came = weigh(lines, by_message(shown.values()), sent, _lost(sent, table, moment))
    fresh = births(came, knobs, moment)
    departure = evict(came.after(fresh), knobs, moment)
    goes = came.after([*fresh, *departure.rows])
    shown.update((row.spot, row) for row in (*fresh, *departure.rows))
    changed = {row.spot.chain for row in departure.rows}
    kept = next((index for index, line in enumerate(lines[: sent + 1]) if line.chain in changed), sent + 1)
    return Plan(
        shown=shown,
        fresh=(*fresh, *departure.rows),
        stubs=tuple(departure.stubs),
        tokens=goes.total,
        whole=sum(goes.wholes),
        kept=goes.sums[kept],
        broke=departure.cause if kept <= sent else None,
    )


def latest_sent(lines: Sequence[Line], table: Table) -> int:
    """The index of the last line of the latest request; -1 where there was none."""
    if table.sent is None:
        return -1
    return next((index for index in range(len(lines) - 1, -1, -1) if lines[index].chain == table.sent.head), -1)


def _lost(sent: int, table: Table, moment: Moment) -> Cause | None:
    """Why the provider's cache is of no use; None where it is."""
    if table.sent is None or moment.now - table.sent.time > moment.price.ttl:
        return Cause.COLD
    return Cause.REWOUND if sent < 0 else None
