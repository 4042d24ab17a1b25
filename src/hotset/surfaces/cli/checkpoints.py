"""`hotset checkpoints`: where sessions stood when their prompts passed a quarter and half of the
window."""

from __future__ import annotations

import time

import click

from hotset.runtime.checkpoints import checkpoints_in
from hotset.runtime.reader import find_session_id, open_or_empty
from hotset.surfaces.cli.options import (
    ProjectOptions,
    as_json,
    examples,
    limit_option,
    project_options,
)
from hotset.surfaces.cli.terminal import emit_json, plain_line, span, table


@click.command(
    epilog=examples(
        "hotset checkpoints",
        "hotset checkpoints last",
        "hotset checkpoints --limit 1 --json",
    )
)
@project_options
@limit_option(20)
@click.argument("session", required=False)
@as_json
def checkpoints(chosen: ProjectOptions, limit: int, session: str | None, as_json: bool) -> None:
    """Where sessions stood when their prompts passed a quarter and half of the window: what was
    wanted, changed, run, decided and open. The newest first.

    SESSION is an id, its beginning, or `last`.
    """
    now = time.time()
    config = chosen.config()
    with open_or_empty(config) as store:
        found = list(checkpoints_in(store, find_session_id(store, session)))[::-1][:limit]
    if as_json:
        emit_json(found)
    if not found:
        chosen.say(
            "no session has passed a quarter of its window yet; see what is kept: "
            f"{chosen.hint('sessions')}"
        )
    if as_json or not found:
        return
    table(
        ("session", "turn", "window", "tokens", "when", "wanted"),
        [
            (
                each.session,
                str(each.turn),
                f"{each.mark} %",
                f"{each.tokens:,}",
                f"{span(now - each.time)} ago",
                _wanted(each.text),
            )
            for each in found
        ],
        right=(1, 2, 3),
    )
    chosen.say(
        f"\nGo back to one with: {chosen.hint(f'show {found[0].session} --turns {found[0].turn}')}"
    )


def _wanted(text: str) -> str:
    """The latest prompt that it names."""
    wanted = [line for line in text.splitlines() if line.startswith("Wanted: ")]
    return plain_line(wanted[-1].removeprefix("Wanted: ")) if wanted else ""
