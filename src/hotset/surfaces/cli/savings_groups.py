"""`hotset savings --by`: what was saved by day, session, client or model."""

from __future__ import annotations

import time

from hotset.config import Config
from hotset.runtime.reader import open_or_empty
from hotset.runtime.views.savings import SavingsGroup, SavingsRow, read_savings
from hotset.surfaces.cli.options import ProjectOptions
from hotset.surfaces.cli.terminal import emit_json, money, plain_line, table

_MOST = 1000


def print_groups(
    chosen: ProjectOptions, config: Config, by: str, since: float | None, *, as_json: bool
) -> None:
    """Print what was saved, a row for each group."""
    with open_or_empty(config) as store:
        found = read_savings(
            store, config, SavingsGroup(by), since=since or 0.0, limit=_MOST, now=time.time()
        )
    if as_json:
        emit_json(found)
        return
    if not found.total:
        chosen.say(f"no turn was paid for yet; start a session with: {chosen.hint('wrap AGENT')}")
        return
    heads = (by, "turns", "paid", "everything", "saved", "", "cached", "began anew")
    table(heads, [_cells(each) for each in (*found.rows, found.all)], right=(1, 2, 3, 4, 5, 6, 7))
    chosen.say(
        "\npaid is what the provider measured, at list prices; everything and saved are estimated"
    )


def _cells(row: SavingsRow) -> tuple[str, ...]:
    return (
        plain_line(row.name),
        f"{row.turns:,}",
        f"{'~' if row.unmeasured else ''}{money(row.spent)}",
        money(row.everything),
        money(row.saved),
        f"{row.saved_pct:.0f} %",
        f"{row.cache_read_pct:.0f} %",
        f"{row.breaks:,}",
    )
