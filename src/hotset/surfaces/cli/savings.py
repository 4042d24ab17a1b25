"""`hotset savings`: what was saved, in money."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import click

from hotset.runtime.ledger import (
    Account,
    Saved,
    Savings,
    SessionAccount,
    empty_ledger,
    savings as saved_in,
)
from hotset.runtime.reader import find_session_id, has_store, open_existing
from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project
from hotset.surfaces.cli.sessions import moment_meant
from hotset.surfaces.cli.terminal import count, emit, emit_json, field, money, say, shortened, width

_HEADINGS = (
    ("", "session"),
    ("", "turns"),
    ("tokens", "measured"),
    ("everything", "estimated"),
    ("cost", "measured"),
    ("everything", "estimated"),
    ("", "saved"),
)
_GAP = "  "
_SHORTEST_TITLE = 24


@click.command(
    epilog=examples(
        "hotset savings",
        "hotset savings --since 7d",
        "hotset savings --session last --json | jq .total.saved",
    )
)
@of_project
@click.option(
    "--session", metavar="ID", help="Only this session: an id, the beginning of one, or `last`."
)
@click.option("--since", metavar="WHEN", help="Only what was billed since: 24h, 7d or 2026-11-01.")
@as_json
def savings(chosen: Chosen, session: str | None, since: str | None, as_json: bool) -> None:
    """What was saved: the provider's own count beside what sending everything would have cost.

    Measured is what the provider reported, at list prices; our own count, marked ~, where it
    reported nothing. Estimated is what was never sent: our count of it under the same cache rules,
    set right by how far our count was off for what was sent.
    """
    config = chosen.config()
    earliest = moment_meant(since, time.time()) if since else None
    if session is None and not has_store(config.folder):
        found = Savings(empty_ledger(config).total(), (), 0)  # looking must not make a store
    else:
        with open_existing(config) as store:
            found = saved_in(store, config, find_session_id(store, session), earliest)
    if as_json:
        emit_json(
            {
                "since": earliest,
                "total": found.total,
                "uncounted": found.uncounted,
                "sessions": found.sessions,
            }
        )
    if not found.sessions:
        when = " since then" if since else ""
        say(
            (
                f"no turn was paid for{when} yet; come back after a session: "
                f"{chosen.hint('wrap claude')}"
            ),
            quiet=chosen.quiet,
        )
    if as_json:
        return
    for line in _told(found):
        emit(line)
    if found.uncounted:
        say(
            f"\n{_without_bill(found.uncounted)}",
            quiet=chosen.quiet,
        )
    if found.total.estimated_turns and found.sessions:
        say(f"\n{_estimated(found.total)}", quiet=chosen.quiet)
    if found.total.unlisted:
        say(
            (
                f"* no list price is known for {', '.join(map(field, found.total.unlisted))}: a "
                f"guess stands in"
            ),
            quiet=chosen.quiet,
        )


def _told(found: Savings) -> Iterator[str]:
    if len(found.sessions) > 1:
        yield from _table(found.sessions, found.total, width())
        yield ""
    if found.sessions:
        yield from _lines(found.total)


def _without_bill(turns: int) -> str:
    if turns == 1:
        return "1 more turn has no bill: no usage was reported, or it was not ours to plan"
    return (
        f"{turns:,} more turns have no bill: no usage was reported, or they were not ours to plan"
    )


def _estimated(total: Account) -> str:
    where = (
        ""
        if total.estimated_turns == total.turns
        else f" for {total.estimated_turns:,} of {total.turns:,} turns"
    )
    return f"no usage was reported{where}: our own count stands in, estimated (~)"


def _not_sent(saved: Saved) -> str:
    if saved.tokens >= 0:
        return f"{saved.tokens_pct:.1f} % of it was not sent"
    return (
        f"{-saved.tokens:,} more were sent: our tools, and calls in "
        f"which the model got something "
        f"back"
    )


def _lines(total: Account) -> Iterator[str]:
    measured, estimated, saved = total.measured, total.estimated, total.saved
    hidden = f", {total.hidden_calls:,} of them hidden" if total.hidden_calls else ""
    breaks = ", ".join(f"{number} {cause}" for cause, number in total.breaks.items())
    mark = "*" if total.unlisted else ""
    how = (
        "measured"
        if not total.estimated_turns
        else "estimated"
        if total.estimated_turns == total.turns
        else "partly estimated"
    )
    rows = (
        ("turns", f"{total.turns:,}", f"{count(total.calls, 'call')} to the provider{hidden}"),
        (
            "sent",
            f"{measured.prompt:,} tokens",
            f"{how}; {measured.cache_read_pct:.1f} % read from the provider's cache",
        ),
        ("everything", f"{estimated.prompt:,} tokens", f"estimated; {_not_sent(saved)}"),
        ("cost", f"{money(measured.dollars)}{mark}", f"{how}, at list prices"),
        (
            "everything",
            f"{money(estimated.dollars)}{mark}",
            "estimated, under the same cache rules",
        ),
        ("saved", f"{money(saved.dollars)}{mark}", f"estimated, {saved.dollars_pct:.1f} %"),
        (
            "prefix",
            f"kept on {total.prefix_kept_pct:.1f} %",
            f"of turns; breaks: {breaks or 'none'}",
        ),
        (
            "faults",
            f"{total.faults_per_100:.1f} per 100 turns",
            f"{total.refaults_per_100:.1f} for what we had shortened",
        ),
        (
            "overhead",
            f"{total.overhead_ms_p50:.1f} ms",
            f"in the middle, {total.overhead_ms_p95:.1f} ms at the 95th percentile",
        ),
    )
    wide = max(len(figure) for _, figure, _ in rows)
    for name, figure, what in rows:
        line = f"{name:<10}  {figure:>{wide}}  {what}"
        yield click.style(line, bold=True) if name == "saved" else line


def _table(sessions: Sequence[SessionAccount], total: Account, wide: int) -> Iterator[str]:
    """A row a session. Figures are always whole; a title that has no room beside them stands
    below."""
    rows = [(each.session.id, *_cells(each.account)) for each in sessions]
    heads = tuple(zip(*_HEADINGS, strict=True))
    cells = (*heads, *rows, ("together", *_cells(total)))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        _GAP.join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(each) for cell, each in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in cells
    ]
    beside = wide - len(lines[0]) - len(_GAP)
    for line in lines[: len(heads)]:
        yield click.style(line.rstrip(), bold=True)
    for line, each in zip(lines[len(heads) :], sessions, strict=False):
        title = field(each.session.title or each.session.key)
        if beside >= _SHORTEST_TITLE:
            yield f"{line}{_GAP}{shortened(title, beside)}"
        else:
            yield line
            yield f"{_GAP}{shortened(title, max(_SHORTEST_TITLE, wide - len(_GAP)))}"
    yield click.style(lines[-1], bold=True)


def _cells(account: Account) -> tuple[str, ...]:
    mark = "*" if account.unlisted else ""
    about = "~" if account.estimated_turns else ""
    return (
        f"{account.turns:,}",
        f"{about}{account.measured.prompt:,}",
        f"{account.estimated.prompt:,}",
        f"{about}{money(account.measured.dollars)}{mark}",
        f"{money(account.estimated.dollars)}{mark}",
        f"{account.saved.dollars_pct:.0f} %",
    )
