"""`hotset checkpoints`: where sessions stood when their prompts passed a quarter and half of the
window."""

from __future__ import annotations

import time
from dataclasses import dataclass

import click

from hotset.errors import HotsetError
from hotset.runtime.checkpoints import SessionCheckpoint, checkpoints_in
from hotset.runtime.reader import Store, find_session_id, open_or_empty
from hotset.surfaces.cli.options import (
    ProjectOptions,
    as_json,
    examples,
    limit_option,
    project_options,
)
from hotset.surfaces.cli.terminal import emit_json, plain_line, span, table


@dataclass(frozen=True, slots=True)
class ListedCheckpoint:
    """A checkpoint with its text."""

    checkpoint: SessionCheckpoint
    text: str


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
        lines = [ListedCheckpoint(each, _text(store, each)) for each in found]
    if as_json:
        emit_json(lines)
    if not lines:
        chosen.say(
            "no session has passed a quarter of its window yet; see what is kept: "
            f"{chosen.hint('sessions')}"
        )
    if as_json or not lines:
        return
    table(
        ("session", "turn", "window", "tokens", "when", "page", "wanted"),
        [
            (
                line.checkpoint.session,
                str(line.checkpoint.turn),
                f"{line.checkpoint.mark} %",
                f"{line.checkpoint.tokens:,}",
                f"{span(now - line.checkpoint.time)} ago",
                line.checkpoint.page or "",
                _wanted(line.text),
            )
            for line in lines
        ],
        right=(1, 2, 3),
    )
    page = next((line.checkpoint.page for line in lines if line.checkpoint.page), None)
    if page:
        chosen.say(f"\nRead one with: {chosen.hint(f'recall {page}')}")


def _text(store: Store, checkpoint: SessionCheckpoint) -> str:
    if checkpoint.page is None:
        return ""
    try:
        return store.content(store.page(checkpoint.page).digest).decode("utf-8", "replace")
    except HotsetError:
        return ""  # the page was lost to damage; `hotset verify` names it


def _wanted(text: str) -> str:
    """The latest prompt that it names."""
    wanted = [line for line in text.splitlines() if line.startswith("Wanted: ")]
    return plain_line(wanted[-1].removeprefix("Wanted: ")) if wanted else ""
