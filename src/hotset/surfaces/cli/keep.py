"""`hotset keep`: puts a file, or what a command printed, into the store."""

from __future__ import annotations

import getpass
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import click

from hotset.errors import BadInput
from hotset.nouns.page import Kind
from hotset.runtime.reader import open_to_look, page_to_keep
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.terminal import emit, emit_json

_SECONDS = 30.0
_MOST_BYTES = 64 << 20


@click.command(
    epilog=examples(
        "ruff check | hotset keep --session last",
        "hotset keep report.md --agent inspector --meta ticket=AB-12",
        "hotset keep paper.txt --kind paper",
    )
)
@click.argument("file", default="-")
@project_options
@click.option(
    "--kind",
    type=click.Choice(tuple(map(str, Kind))),
    default="finding",
    show_default=True,
    help="What it is.",
)
@click.option(
    "--session",
    metavar="NAME",
    default="kept",
    show_default=True,
    help="Where it belongs: a session's id or name, or `last`; a new name opens one.",
)
@click.option("--agent", help="Who found it. [default: you]")
@click.option("--parent", metavar="ID", default="", help="The page that it comes from.")
@click.option("--media", metavar="TYPE", default="text/plain", show_default=True)
@click.option("--meta", "pairs", multiple=True, metavar="NAME=VALUE", help="Free metadata.")
@as_json
def keep(
    chosen: ProjectOptions,
    file: str,
    *,
    kind: str,
    session: str,
    agent: str | None,
    parent: str,
    media: str,
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Keep a file, or stdin, as a page: it is found by searches, and comes back byte for byte.

    Prints the page's id.
    """
    if file == "-" and sys.stdin.isatty():
        raise BadInput(
            "nothing to keep; name a file, or pipe something in: make lint | hotset keep"
        )
    try:
        with nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}") from None
    if not content or len(content) > _MOST_BYTES:
        raise BadInput(f"it is {'too large' if content else 'empty'}; nothing is kept")
    metadata = dict(_split_pair(pair) for pair in pairs)
    with open_to_look(chosen.config().folder) as store:
        page = page_to_keep(
            store,
            content,
            time.time(),
            kind=kind,
            session=session,
            agent=agent or getpass.getuser(),
            parent=parent,
            media=media,
            metadata=metadata,
        )
        [id] = store.keep(page).result(_SECONDS).pages
        kept = store.page(id)
    if as_json:
        emit_json({"page": id, "session": kept.session, "turn": kept.turn, "kind": kept.kind})
    else:
        emit(id)
    chosen.say(f"kept in session {kept.session}; bring it back with: {chosen.hint(f'recall {id}')}")


def _split_pair(pair: str) -> tuple[str, str]:
    name, sign, value = pair.partition("=")
    if not sign or not name.strip():
        raise BadInput(f"--meta {pair}: use NAME=VALUE")
    return name.strip(), value.strip()
