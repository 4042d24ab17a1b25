"""`hotset export` and `hotset import`: sessions as JSON lines, from one store to another."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

import click

from hotset.errors import BadInput, BadRow
from hotset.files.write import write_output
from hotset.sealing import VERSION
from hotset.store.exchange import read_lines, write_lines
from hotset.store.port import Row
from hotset.store.sealed import SealedRows
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.cli import meant
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
    with meant.reading(chosen.config()) as store:
        one = meant.session_id(store, session)
        census = store.census()
        total = None if one else census.sessions + census.turns + census.pages + census.blobs
        sealed = None if with_secrets else SealedRows(partial(store.dump, one))
        rows: Iterable[Row] = store.dump(one) if sealed is None else sealed
        with counting("exporting", total, quiet=chosen.quiet) as counter:
            lines = counter.over(write_lines(rows, sealed=VERSION if sealed is not None else 0))
            if output == "-":
                sys.stdout.buffer.writelines(lines)
                sys.stdout.buffer.flush()
            else:
                write_output(Path(output), lines)
    say(f"{count(counter.count, 'row')} written", quiet=chosen.quiet)
    if sealed is not None and sealed.secrets:
        say(
            f"{count(sealed.secrets, 'secret')} sealed; --with-secrets leaves them in",
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
    store = SqliteStore.open(chosen.config().folder)
    try:
        with _source(file) as source, counting("importing", None, quiet=chosen.quiet) as counter:
            lines = _Lines(source)
            try:
                new = store.load(counter.over(read_lines(lines)), gaps=with_gaps)
            except BadRow as error:
                raise BadInput(
                    f"line {lines.of_row(error.row)}: {error.why}; nothing was changed"
                ) from error
    finally:
        store.close()
    if as_json:
        emit_json({"rows": counter.count, "new": new})
    say(f"{count(counter.count, 'row')} read, {new:,} of them new", quiet=chosen.quiet)


class _Lines:
    """The lines of an export. Behind its header each is a row, but for empty ones."""

    def __init__(self, source: Iterable[bytes]) -> None:
        self._source = source
        self._empty: list[int] = []

    def __iter__(self) -> Iterator[bytes]:
        for number, line in enumerate(self._source, 1):
            if not line.strip():
                self._empty.append(number)
            yield line

    def of_row(self, row: int) -> int:
        line = row + 1
        for empty in self._empty:
            line += empty <= line
        return line


def _source(file: str) -> BinaryIO:
    return sys.stdin.buffer if file == "-" else Path(file).expanduser().open("rb")
