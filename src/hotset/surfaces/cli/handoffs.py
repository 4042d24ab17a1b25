"""`hotset handoffs`: agents that handed their window over to a successor, and the state that each
left."""

from __future__ import annotations

import time

import click

from hotset.errors import NotFound
from hotset.runtime.handoffs import SessionHandoff, handoffs_in
from hotset.runtime.reader import find_session_id, open_or_empty
from hotset.surfaces.cli.options import (
    ProjectOptions,
    as_json,
    examples,
    limit_option,
    project_options,
)
from hotset.surfaces.cli.terminal import emit, emit_json, plain_line, span, table


@click.command(
    epilog=examples(
        "hotset handoffs",
        "hotset handoffs last",
        "hotset handoffs last 2",
        "hotset handoffs last 2 --json | jq .state",
    )
)
@project_options
@limit_option(20)
@click.argument("session", required=False)
@click.argument("number", required=False, type=click.IntRange(min=1))
@as_json
def handoffs(
    chosen: ProjectOptions, limit: int, session: str | None, number: int | None, as_json: bool
) -> None:
    """Agents that handed over: the chain, why, what left, and what the successor began with. The
    newest first.

    SESSION is an id, its beginning, or `last`; NUMBER shows one handoff of it in full.
    """
    with open_or_empty(chosen.config()) as store:
        found = list(handoffs_in(store, find_session_id(store, session)))[::-1]
    if number is not None:
        _show_one(chosen, found, number, as_json=as_json)
        return
    found = found[:limit]
    if as_json:
        emit_json(found)
    if not found:
        chosen.say(
            "no agent has handed over yet; engineer, designer, inspector, tester, orchestrator and "
            f"guide do at 75 % of their window: {chosen.hint('wrap --agent engineer claude')}"
        )
    if as_json or not found:
        return
    now = time.time()
    table(
        ("session", "handoff", "kind", "why", "turns", "on from", "left", "began with", "when"),
        [
            (
                each.session,
                str(each.index),
                plain_line(each.kind),
                plain_line(each.reason),
                plain_line(each.turns),
                str(each.turn),
                f"{each.tokens:,}",
                _began(each),
                f"{span(now - each.time)} ago",
            )
            for each in found
        ],
        right=(1, 5, 6, 7),
    )
    chosen.say(f"\nRead one with: {chosen.hint(f'handoffs {found[0].session} {found[0].index}')}")


def _show_one(
    chosen: ProjectOptions, found: list[SessionHandoff], number: int, *, as_json: bool
) -> None:
    """Prints one handoff. Raises `NotFound`."""
    one = next((each for each in found if each.index == number), None)
    if one is None:
        known = ", ".join(str(each.index) for each in reversed(found)) or "none"
        raise NotFound(f"there is no handoff {number} here; there is: {known}")
    if as_json:
        emit_json(one)
        return
    emit(
        f"{one.session}, handoff {one.index} ({plain_line(one.kind)}), {plain_line(one.reason)}: "
        f"turns {plain_line(one.turns)} were handed over, turn {one.turn} goes on"
    )
    emit(
        f"{one.tokens:,} tokens left, the successor began with {_began(one)}; "
        f"{one.rewritten:,} were sent anew, {one.state_tokens:,} of them for the state"
    )
    emit("")
    emit(one.text)
    for each in one.references:
        emit(f"bring back: {chosen.hint(f'recall {each}')}")


def _began(each: SessionHandoff) -> str:
    share = f" ({100 * each.prompt / each.window:.0f} %)" if each.window else ""
    return f"{each.prompt:,} tokens{share}"
