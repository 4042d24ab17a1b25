"""`hotset rows`: the map of promises."""

from __future__ import annotations

import click

from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project
from hotset.surfaces.cli.promises import PROMISES, TOPICS, RowState
from hotset.surfaces.cli.terminal import emit_json, say, table


@click.command(epilog=examples("hotset rows", "hotset rows --state working", "hotset rows --json"))
@of_project
@click.option(
    "--state",
    type=click.Choice([state.value for state in RowState]),
    help="Only those in this state.",
)
@as_json
def rows(chosen: Chosen, state: str | None, as_json: bool) -> None:
    """What hotset promises, by id, and what of it works today."""
    selected = [promise for promise in PROMISES if state in (None, promise.state)]
    if as_json:
        emit_json(selected)
        return
    table(
        ("id", "state", "promise"),
        [
            (each.id, each.state, f"{each.text} ({each.yet})" if each.yet else each.text)
            for each in selected
        ],
    )
    told = ", ".join(
        f"{sum(each.state is state for each in PROMISES)} {state}" for state in RowState
    )
    say(
        f"\n{told}. {'; '.join(f'{letter}: {topic.lower()}' for letter, topic in TOPICS.items())}.",
        quiet=chosen.quiet,
    )
