"""`hotset repair`: what is intact is saved into a fresh store; the damaged file is set aside, never
deleted."""

from __future__ import annotations

import sys

import click

from hotset.errors import BadInput, NotFound
from hotset.runtime.care import RepairReport, repair_store
from hotset.runtime.reader import has_store
from hotset.surfaces.cli.ending import FOUND
from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project
from hotset.surfaces.cli.terminal import count, counting, emit, emit_json, harmless, say


@click.command(epilog=examples("hotset repair", "hotset repair --yes --json"))
@of_project
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json
def repair(chosen: Chosen, yes: bool, as_json: bool) -> int | None:
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
        _tell(report)
    say(f"the file as it was: {report.damaged}", quiet=chosen.quiet)
    return None if report.whole else FOUND


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise BadInput("repair asks before it begins, and nobody is there to answer; say --yes")
    click.confirm(harmless(question), abort=True, err=True)


def _tell(report: RepairReport) -> None:
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
