"""`hotset verify`, `hotset repair`, `hotset export` and `hotset import`: check every hash, rebuild
a damaged store, and move sessions between stores as JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import click

from hotset.errors import BadInput, NotFound
from hotset.files.write import write_output
from hotset.runtime.learned_state import verify_learning
from hotset.runtime.maintenance import Export, RepairReport, import_lines, repair_store
from hotset.runtime.reader import find_session_id, has_store, open_existing
from hotset.surfaces.cli.exit import FOUND
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.progress import ProgressLine, counting
from hotset.surfaces.cli.terminal import (
    count,
    emit,
    emit_json,
    safe_text,
    size,
    table,
)


@click.command(epilog=examples("hotset verify", "hotset verify --json"))
@project_options
@as_json
def verify(chosen: ProjectOptions, as_json: bool) -> int | None:
    """Check every byte that is kept. Changes nothing; exits with 1 where something is damaged."""
    with open_existing(chosen.config()) as store:
        census, missing = store.census(), store.missing()
        with counting("checking", quiet=chosen.quiet) as line:
            damages = list(chain(store.verify(line.move), verify_learning(store)))
    if as_json:
        emit_json({"ok": not damages, "census": census, "damages": damages})
    elif damages:
        table(("what", "id", "why"), [(each.what, each.id, each.why) for each in damages])
    if missing:
        chosen.say(missing)  # the table may cut it short
    if damages:
        chosen.say(
            f"{count(len(damages), 'thing')} damaged; the rest is whole. Save it with: "
            f"{chosen.hint('repair')}"
        )
        return FOUND
    counts = (
        f"{count(census.pages, 'page')} of {count(census.sessions, 'session')}, "
        f"{size(census.content_bytes)}"
    )
    chosen.say(f"all is whole: {counts}")
    return None


@click.command(epilog=examples("hotset repair", "hotset repair --yes --json"))
@project_options
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json
def repair(chosen: ProjectOptions, yes: bool, as_json: bool) -> int | None:
    """Save what is intact of a damaged store into a fresh one.

    The damaged file stays beside it. Stop the proxy first. Exits with 1 where something could not
    be saved.
    """
    config = chosen.config()
    if not has_store(config.folder):
        raise NotFound(
            f"nothing is kept yet for {config.project} (in {config.folder}); there is nothing "
            f"to repair"
        )
    if not yes:
        _ask(
            f"Make the store in {config.folder} anew from what is intact of it? The damaged "
            f"file is kept."
        )
    with counting("repairing", None, quiet=chosen.quiet):
        report = repair_store(config.folder)
    if as_json:
        emit_json({"whole": report.whole, **_document(report)})
    else:
        _print_report(report)
    chosen.say(f"the file as it was: {report.damaged}")
    return None if report.whole else FOUND


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise BadInput(
            "repair asks before it begins, and there is no terminal to ask in; use --yes"
        )
    click.confirm(safe_text(question), abort=True, err=True)


def _print_report(report: RepairReport) -> None:
    for name, saved in report.saved.items():
        lost = report.lost.get(name, 0)
        emit(f"{name:<12} {saved:>8,} saved" + (f"   {lost:,} lost" if lost else ""))
    if report.rederived:
        emit(f"{report.rederived:,} of these were made again from the raw bytes of their messages")
    if report.missing:
        emit(
            f"{count(len(report.missing), 'content')} that something still points to could "
            f"not be found"
        )


def _document(report: RepairReport) -> dict[str, object]:
    return {
        "saved": report.saved,
        "lost": report.lost,
        "rederived": report.rederived,
        "missing": report.missing,
        "damaged": str(report.damaged),
    }


@click.command(
    epilog=examples(
        "hotset export --session last > session.jsonl",
        "hotset export --with-secrets -o backup.jsonl",
    )
)
@project_options
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
def export(chosen: ProjectOptions, session: str | None, output: str, *, with_secrets: bool) -> None:
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
    chosen.say(f"{count(counter.count, 'row')} written")
    if exported.secrets:
        chosen.say(f"{count(exported.secrets, 'secret')} sealed; --with-secrets leaves them in")


@click.command(
    "import", epilog=examples("hotset import all.jsonl", "cat session.jsonl | hotset import -")
)
@click.argument("file", metavar="F")
@project_options
@click.option(
    "--with-gaps",
    is_flag=True,
    help="Also where messages follow others that were lost: the store was repaired.",
)
@as_json
def import_(chosen: ProjectOptions, file: str, *, with_gaps: bool, as_json: bool) -> None:
    """Take in what `hotset export` wrote; what is there already stays.

    Nothing is changed where the file is cut off or wrong. An import that is broken off can be run
    again: it adds the rest.
    """
    folder = chosen.config().folder
    rows = ProgressLine("rows")
    with (
        _source(file) as source,
        counting("importing", _size_of(file), quiet=chosen.quiet, written=size) as line,
    ):
        new = import_lines(folder, _lines(source, line), rows.over, gaps=with_gaps)
    if as_json:
        emit_json({"rows": rows.count, "new": new})
    chosen.say(f"{count(rows.count, 'row')} read, {new:,} of them new")


def _size_of(file: str) -> int | None:
    """Bytes of a file; None for a pipe."""
    path = Path(file).expanduser()
    return path.stat().st_size if file != "-" and path.is_file() else None


def _lines(source: BinaryIO, line: ProgressLine) -> Iterator[bytes]:
    for each in source:
        yield each
        line.step(len(each))


def _source(file: str) -> BinaryIO:
    return sys.stdin.buffer if file == "-" else Path(file).expanduser().open("rb")
