"""`hotset savings`: what was saved, in money."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from hotset.runtime.ledger import Savings, SessionAccount, empty_ledger
from hotset.runtime.ledger import savings as saved_in
from hotset.store.folder import DATABASE
from hotset.surfaces.cli import meant
from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project
from hotset.surfaces.cli.sessions import moment_meant
from hotset.surfaces.cli.terminal import count, emit, emit_json, money, plain, say, shortened, width
from hotset.window.ledger import Account

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS: tuple[tuple[str, Callable[[Account], str]], ...] = (
    ("\nturns", lambda each: f"{each.turns:,}"),
    ("measured\ntokens sent", lambda each: f"{each.measured.prompt:,}"),
    ("estimated\neverything", lambda each: f"{each.estimated.prompt:,}"),
    ("measured\ncost", lambda each: money(each.measured.dollars) + ("*" if each.unlisted else "")),
    ("estimated\neverything", lambda each: money(each.estimated.dollars) + ("*" if each.unlisted else "")),
    ("estimated\nsaved", lambda each: f"{each.saved.dollars_pct:.0f} %"),
)
_NARROWEST = 80
"""Characters that the table takes at least: figures are never cut."""


@click.command(
    epilog=examples("hotset savings", "hotset savings --since 7d", "hotset savings --session last --json | jq .total.saved")
)
@of_project
@click.option("--session", metavar="ID", help="Only this session: an id, the beginning of one, or `last`.")
@click.option("--since", metavar="WHEN", help="Only what was billed since: 24h, 7d or 2026-11-01.")
@as_json
def savings(chosen: Chosen, session: str | None, since: str | None, as_json: bool) -> None:
    """What was saved: the provider's own count beside what sending everything would have cost.

    Measured is what the provider reported, at list prices. Estimated is what was never sent: our count of it under the same
    cache rules, set right by how far our count was off for what was sent.
    """
    config = chosen.config()
    earliest = moment_meant(since, time.time()) if since else None
    if session is None and not (config.folder / DATABASE).exists():
        found = Savings(empty_ledger(config).total(), (), 0)  # looking must not make a store
    else:
        with meant.reading(config) as store:
            found = saved_in(store, config, meant.session_id(store, session), earliest)
    if as_json:
        emit_json({"since": earliest, "total": found.total, "uncounted": found.uncounted, "sessions": found.sessions})
        return
    if not found.sessions:
        when = " since then" if since else ""
        say(f"no turn was paid for{when} yet; come back after a session: {chosen.hint('wrap claude')}", quiet=chosen.quiet)
    else:
        if len(found.sessions) > 1:
            _show(found.sessions, found.total)
            emit("")
        for line in _lines(found.total):
            emit(line)
    if found.uncounted:
        say(
            f"\n{count(found.uncounted, 'turn')} more have no bill: no usage was reported, or they were not ours to plan",
            quiet=chosen.quiet,
        )
    if found.total.unlisted:
        say(f"* no list price is known for {', '.join(map(plain, found.total.unlisted))}: a guess stands in", quiet=chosen.quiet)


def _lines(total: Account) -> Iterator[str]:
    measured, estimated, saved = total.measured, total.estimated, total.saved
    hidden = f", {count(total.hidden_calls, 'call')} of them hidden from the client" if total.hidden_calls else ""
    breaks = ", ".join(f"{number} {cause}" for cause, number in total.breaks.items())
    mark = "*" if total.unlisted else ""
    rows = (
        ("turns", f"{total.turns:,}", f"{count(total.calls, 'call')} to the provider{hidden}"),
        ("sent", f"{measured.prompt:,} tokens", f"measured; {measured.cache_read_pct:.1f} % read from the provider's cache"),
        ("everything", f"{estimated.prompt:,} tokens", f"estimated; {saved.tokens_pct:.1f} % of it was not sent"),
        ("cost", f"{money(measured.dollars)}{mark}", "measured, at list prices"),
        ("everything", f"{money(estimated.dollars)}{mark}", "estimated, under the same cache rules"),
        ("saved", f"{money(saved.dollars)}{mark}", f"estimated, {saved.dollars_pct:.1f} %"),
        ("prefix", f"kept on {total.prefix_kept_pct:.1f} %", f"of turns; breaks: {breaks or 'none'}"),
        ("faults", f"{total.faults_per_100:.1f} per 100 turns", f"{total.refaults_per_100:.1f} for what we had shortened"),
        ("overhead", f"{total.overhead_ms_p50:.1f} ms", f"in the middle, {total.overhead_ms_p95:.1f} ms at the 95th percentile"),
    )
    wide = max(len(figure) for _, figure, _ in rows)
    for name, figure, what in rows:
        line = f"{name:<10}  {figure:>{wide}}  {what}"
        yield click.style(line, bold=True) if name == "saved" else line


def _show(sessions: tuple[SessionAccount, ...], total: Account) -> None:
    from rich.console import Console  # noqa: PLC0415 - JSON does without

    paper = Console(highlight=False, width=max(_NARROWEST, width()))
    with paper.capture() as printed:
        paper.print(_table(sessions, total), end="")
    for line in printed.get().rstrip("\n").split("\n"):
        emit(line.rstrip())


def _table(sessions: tuple[SessionAccount, ...], total: Account) -> Table:
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("\nsession", no_wrap=True)
    for heading, _ in _COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("\ntitle", no_wrap=True, overflow="ellipsis")
    for each in sessions:
        title = escape(shortened(plain(each.session.title or each.session.key), width()))
        table.add_row(each.session.id, *(cell(each.account) for _, cell in _COLUMNS), title)
    table.add_row("together", *(cell(total) for _, cell in _COLUMNS), "", style="bold")
    return table
