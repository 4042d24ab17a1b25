"""`hotset export` and `hotset import`: sessions as JSON lines, from one store to another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

import click

from hotset.errors import BadInput
from hotset.files.write import write_output
from hotset.runtime.care import Export, import_lines
from hotset.runtime.reader import find_session_id, open_existing
from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project
from hotset.surfaces.cli.terminal import count, counting, emit_json, say


@click.command(
    epilog=examples(
        "hotset export --session last > session.jsonl",
        "hotset export --with-secrets -o backup.jsonl",
    )
)
@of_project
@click.option(
    "--session", metavar="S", help="Only this session: an id, the beginning of one, or `last`."
)
@click.option(
    "-o", "--output", metavar="F", default="-", help="The file to write; default: stdout."
)
@click.option(
    "--with-secrets",
    is_flag=True,
    help="Keep passwords, keys and tokens as they are: a backup, byte for byte.",
)
def export(chosen: Chosen, session: str | None, output: str, *, with_secrets: bool) -> None:
    """Write everything that is kept, or one session, as JSON lines. `hotset import` takes it in
    again.

    Each password, key or token that is recognised is replaced by its kind, as in
    `[secret:aws-key]`, unless --with-secrets is given.
    """
    if output == "-" and sys.stdout.isatty():
        raise BadInput("export writes data, not something to read: give a file with -o, or a pipe")
    with open_existing(chosen.config()) as store:
        one = find_session_id(store, session)
        census = store.census()
        total = None if one else census.sessions + census.turns + census.pages + census.blobs
        exported = Export(store, one, with_secrets=with_secrets)
        with counting("exporting", total, quiet=chosen.quiet) as counter:
            lines = counter.over(exported)
            if output == "-":
                sys.stdout.buffer.writelines(lines)
                sys.stdout.buffer.flush()
            else:
                write_output(Path(output), lines)
    say(f"{count(counter.count, 'row')} written", quiet=chosen.quiet)
    if exported.secrets:
        say(
            f"{count(exported.secrets, 'secret')} sealed; --with-secrets leaves them in",
            quiet=chosen.quiet,
        )


@click.command(
    "import", epilog=examples("hotset import all.jsonl", "cat session.jsonl | hotset import -")
)
@click.argument("file", metavar="F")
@of_project
@click.option(
    "--with-gaps",
    is_flag=True,
    help="Also where messages follow others that were lost: the store was repaired.",
)
@as_json
def import_(chosen: Chosen, file: str, *, with_gaps: bool, as_json: bool) -> None:
    """Take in what `hotset export` wrote; what is there already stays.

    Nothing is changed where the file is cut off or wrong. An import that is broken off can be run
    again: it adds the rest.
    """
    folder = chosen.config().folder
    with _source(file) as source, counting("importing", None, quiet=chosen.quiet) as counter:
        new = import_lines(folder, source, counter.over, gaps=with_gaps)
    if as_json:
        emit_json({"rows": counter.count, "new": new})
    say(f"{count(counter.count, 'row')} read, {new:,} of them new", quiet=chosen.quiet)


def _source(file: str) -> BinaryIO:
    return sys.stdin.buffer if file == "-" else Path(file).expanduser().open("rb")
