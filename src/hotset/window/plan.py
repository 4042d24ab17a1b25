"""Decides how one request is sent.

New results get their form once and keep it. Older steps leave in batches: when the window would
overflow, or when the price model says that rewriting what follows them costs less than continuing
to read them. Agents that hand over let all of them leave at once, and their successor begins with
the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hotset.nouns.candidate import Candidate
from hotset.nouns.knobs import Knobs
from hotset.nouns.window import Cause, Form, Line, PageTable, Plan, Shown
from hotset.window.birth import births, rebirths
from hotset.window.evict import evict
from hotset.window.handoff import hand_off, offer_notes
from hotset.window.leave import Departure, mend
from hotset.window.moment import Moment
from hotset.window.offers import choose_texts, choose_tools, visible_texts
from hotset.window.orders import evict_ordered, restore_ordered
from hotset.window.step_sizes import WeighedConversation, by_message, weigh

__all__ = ["Moment", "latest_sent", "plan"]


def plan(
    lines: Sequence[Line],
    table: PageTable,
    offers: Sequence[Candidate],
    knobs: Knobs,
    moment: Moment,
) -> Plan:
    """The form of every page, and the offers that are taken.

    Pure: the same arguments give the same plan on any machine. An offer never makes a page leave:
    it gets the tokens that are free after the pages have their forms.
    """
    tools = choose_tools(offers, knobs, moment.most_ghosts)
    listed = sum(each.candidate.tokens for each in tools if each.is_taken)
    moment = replace(moment, fixed=moment.fixed + listed)
    here = {line.chain for line in lines}
    shown = dict(table.shown)
    # Rarely true: the conversation was rewound.
    if not all(spot.chain in here and not row.is_back for spot, row in shown.items()):
        shown = {spot: row for spot, row in shown.items() if spot.chain in here and not row.is_back}
    sent = latest_sent(lines, table)
    came = weigh(lines, by_message(shown.values()), sent, _cache_loss(sent, table, moment))
    ordered = restore_ordered(came, moment)
    is_restored, came = ordered is not came, ordered
    came, mended = _bring_all_back(came) if moment.messages_stay else mend(came, knobs, moment)
    if is_restored:
        mended.cause = Cause.PERSON
        mended.rows = [replace(row, cause=Cause.PERSON) for row in mended.rows]
    back: list[Shown] = []
    if mended.cause:
        mended.rows += [replace(row, cause=mended.cause) for row in rebirths(came, knobs, moment)]
        left = [row for spot, row in shown.items() if spot.position not in came.rows[spot.chain]]
        back = [
            replace(
                row, form=Form.FULL, text=b"", tokens=row.whole, cause=mended.cause, time=moment.now
            )
            for row in left
        ]
        for row in left:
            del shown[row.spot]
    stays = came.total - sum(map(came.of, came.steps))
    crowded = knobs.in_room(moment.room(knobs) - stays)
    fresh = [*mended.rows, *births(came.after(mended.rows), crowded, moment)]
    now = came.after(fresh)
    by_order = Departure() if moment.messages_stay else evict_ordered(now, knobs, moment)
    now = now.after(by_order.rows)
    departure = hand_off(now, knobs, moment) or evict(now, knobs, moment)
    fresh += by_order.rows
    goes = came.after([*fresh, *departure.rows])
    shown.update((row.spot, row) for row in (*fresh, *departure.rows))
    changed = {row.spot.chain for row in (*back, *mended.rows, *by_order.rows, *departure.rows)}
    kept = next(
        (index for index, line in enumerate(lines[: sent + 1]) if line.chain in changed), sent + 1
    )
    free = round(knobs.window / moment.scale) - moment.fixed - goes.total
    untold = () if departure.handoff else offer_notes(moment.asked, moment)
    texts = choose_texts(
        [*offers, *untold],
        free,
        knobs,
        moment.count,
        lambda: list(visible_texts(lines, shown, moment.hidden_texts())),
        most_ghosts=moment.most_ghosts,
    )
    return Plan(
        shown=shown,
        fresh=(*back, *fresh, *departure.rows),
        stubs=(*mended.stubs, *by_order.stubs, *departure.stubs),
        tokens=goes.total,
        whole=sum(goes.wholes),
        kept=goes.sums[kept],
        broke=mended.cause or ((by_order.cause or departure.cause) if kept <= sent else None),
        handoff=departure.handoff,
        choices=(*tools, *texts),
    )


def _bring_all_back(came: WeighedConversation) -> tuple[WeighedConversation, Departure]:
    """The conversation with every message back in it, and none allowed to leave."""
    gone = {line.chain for line in came.lines if came.gone(line) is not None}
    steps = tuple(step._replace(sticky=True) for step in came.steps)
    return replace(came.with_back(gone), steps=steps), Departure(Cause.REWOUND if gone else None)


def latest_sent(lines: Sequence[Line], table: PageTable) -> int:
    """Index of the last line of the latest request; -1 if there was none."""
    if table.sent is None:
        return -1
    return next(
        (index for index in range(len(lines) - 1, -1, -1) if lines[index].chain == table.sent.head),
        -1,
    )


def _cache_loss(sent: int, table: PageTable, moment: Moment) -> Cause | None:
    """Why the provider's cache is of no use; None if it is usable."""
    if table.sent is None or moment.now - table.sent.time > moment.price.ttl:
        return Cause.COLD
    return Cause.REWOUND if sent < 0 else None
