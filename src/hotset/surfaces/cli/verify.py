"""`hotset verify`: every hash worked out again."""

from __future__ import annotations

import click

from hotset.runtime.reader import open_existing
from hotset.surfaces.cli.ending import FOUND
from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project
from hotset.surfaces.cli.terminal import count, counting, emit_json, say, size, table


@click.command(epilog=examples("hotset verify", "hotset verify --json"))
@of_project
@as_json
def verify(chosen: Chosen, as_json: bool) -> int | None:
    """Check every byte that is kept. Changes nothing; exits with 1 where something is damaged."""
    with open_existing(chosen.config()) as store:
        census, missing = store.census(), store.missing()
        with counting("checking", None, quiet=chosen.quiet) as counter:
            damages = list(counter.over(store.verify()))
    if as_json:
        emit_json({"ok": not damages, "census": census, "damages": damages})
    elif damages:
        table(("what", "id", "why"), [(each.what, each.id, each.why) for each in damages])
    if missing:
        say(missing, quiet=chosen.quiet)  # the table may cut it short
    if damages:
        say(
            (
                f"{count(len(damages), 'thing')} damaged; the rest is whole. Save it with: "
                f"{chosen.hint('repair')}"
            ),
            quiet=chosen.quiet,
        )
        return FOUND
    told = (
        f"{count(census.pages, 'page')} of {count(census.sessions, 'session')}, "
        f"{size(census.content_bytes)}"
    )
    say(f"all is whole: {told}", quiet=chosen.quiet)
    return None
