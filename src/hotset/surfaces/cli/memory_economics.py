"""`hotset memory economics`: what remembering costs in tokens, what it saves, and what was done
where it cost too much."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from hotset.nouns.turn import Event
from hotset.surfaces.cli.ending import OK
from hotset.surfaces.cli.memories import as_text, opened, session_named
from hotset.surfaces.cli.memory_telling import ago, wrapped
from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project
from hotset.surfaces.cli.terminal import emit, emit_json, say, table

if TYPE_CHECKING:
    from hotset.sources.memory import Breach, Economics, SessionEconomics

_LISTED = 20
_NOBODY = "(none)"
"""What was asked outside of a session, by people on the command line as a rule."""

_WORDS = {
    "ratio": "discovery for each token read",
    "savings": "savings",
    "full_loads": "memories read whole in one task",
    "discovery_tokens": "tokens of discovery",
    "timeline_tokens": "tokens of a timeline",
    "tokens_saved": "tokens saved",
}
"""What is measured, in words."""


@click.command(
    epilog=examples(
        "hotset memory economics",
        "hotset memory economics --session last",
        "hotset memory economics --json",
    )
)
@of_project
@click.option(
    "--session",
    metavar="ID",
    type=as_text,
    default="",
    help="Only this session: an id, the beginning of one, or `last`.",
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=_LISTED,
    show_default=True,
    help="At most so many sessions.",
)
@as_json
def economics(chosen: Chosen, *, session: str, limit: int, as_json: bool) -> int:
    """What remembering costs and saves in each session, newest first.

    Discovery is what an agent is told to find out what there is (index and timeline), read what it
    is told of it. Savings are against loading everything. Where a limit is crossed, memories are
    shown in another way from then on: that is told with its effect.
    """
    with opened(chosen, lists=True) as memories:
        found = memories.economics(session_named(chosen, session))[:limit]
    if as_json:
        emit_json([_document(each) for each in found])
    elif found:
        _tell(found, time.time())
    if not found:
        say(
            (
                f"no agent was told of memories yet; come back after a session: "
                f"{chosen.hint('wrap AGENT')}"
            ),
            quiet=chosen.quiet,
        )
    return OK


def _tell(found: Sequence[SessionEconomics], now: float) -> None:
    headings = ("session", "last", "discovery", "read", "ratio", "savings", "saved")
    rows = [
        (
            each.session or _NOBODY,
            ago(each.time, now),
            f"{each.whole.discovery_tokens:,}",
            f"{each.whole.read_tokens:,}",
            _share(each.whole.ratio, "{:.2f}"),
            _share(each.whole.savings, "{:.0%}"),
            f"{each.whole.saved:,}",
        )
        for each in found
    ]
    table(headings, rows, right=(2, 3, 4, 5))
    for each in found:
        for line in _remarks(each):
            emit("\n".join(wrapped(f"{each.session or _NOBODY}: {line}")))


def _remarks(each: SessionEconomics) -> Iterator[str]:
    """What crossed a limit, and what was done about it."""
    acted = {str(event.detail.get("metric")): event for event in each.actions}
    for breach in each.breaches:
        done = acted.pop(str(breach.metric), None)
        then = f"{breach.remedy} is due" if done is None else _done(done)
        yield f"{_crossed(str(breach.metric), breach.value, breach.threshold)}; {then}"
    for metric, event in acted.items():
        value, threshold = (float(event.detail.get(name, 0)) for name in ("value", "threshold"))
        yield f"{_crossed(metric, value, threshold)}; {_done(event)}"


def _crossed(metric: str, value: float, threshold: float) -> str:
    form = "{:.0%}" if metric == "savings" else "{:,.4g}"
    return f"{_WORDS.get(metric, metric)} {form.format(value)}, limit {form.format(threshold)}"


def _done(event: Event) -> str:
    detail = event.detail
    if detail.get("note"):
        return f"{detail.get('remedy')}: {detail['note']}"
    return (
        f"{detail.get('remedy')}: from {detail.get('before')} to {detail.get('after')} "
        f"{detail.get('unit')}"
    )


def _share(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _document(each: SessionEconomics) -> dict[str, Any]:
    return {
        "session": each.session,
        "time": each.time,
        **_numbers(each.whole),
        "tasks": [_numbers(task) for task in each.tasks],
        "breaches": [_breach(breach) for breach in each.breaches],
        "actions": [{"time": event.time, **event.detail} for event in each.actions],
    }


def _numbers(one: Economics) -> dict[str, Any]:
    return {
        "task": one.task,
        "discovery_tokens": one.discovery_tokens,
        "read_tokens": one.read_tokens,
        "ratio": one.ratio,
        "savings": one.savings,
        "saved": one.saved,
        "available": one.available,
        "index_loads": one.index_loads,
        "timeline_loads": one.timeline_loads,
        "full_loads": one.full_loads,
        "asked": one.asked,
    }


def _breach(breach: Breach) -> dict[str, Any]:
    return {
        "metric": breach.metric,
        "value": breach.value,
        "threshold": breach.threshold,
        "remedy": breach.remedy,
    }
