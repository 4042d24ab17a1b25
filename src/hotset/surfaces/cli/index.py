"""`hotset index`: index the project's files once, watch them, or follow them in a child process."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from hotset.config import Config
from hotset.files.root import Why
from hotset.files.scope import PROCESS
from hotset.runtime.views.code import IndexStatus, read_index_status
from hotset.sources import code
from hotset.sources.code import read_consent, who_indexes
from hotset.surfaces.cli.child import ChildFollower, follow_stdin, while_stdin
from hotset.surfaces.cli.consent import require_consent
from hotset.surfaces.cli.exit import FOUND, INTERRUPTED, OK, signals_to
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.progress import counting
from hotset.surfaces.cli.terminal import (
    count,
    emit,
    emit_json,
    moment,
    size,
    span,
)

if TYPE_CHECKING:
    from hotset.runtime.reader import IndexState
    from hotset.sources.code import IndexProgress, IndexReport, Totals

_LOOK_SECONDS = 0.5  # between two checks of the consent
_OTHERS_SECONDS = 5.0  # for another process that watches to index the latest changes
_MOST_NAMED = 5
_NOUNS: Mapping[str, tuple[str, str]] = {
    Why.SECRET: ("file of secrets", "files of secrets"),
    Why.LINK: ("symbolic link", "symbolic links"),
    Why.SPECIAL: ("that is no regular file", "that are no regular files"),
    Why.HARD_LINK: ("with other names (hard link)", "with other names (hard links)"),
    Why.STRANGE_NAME: ("with a name that cannot be shown", "with names that cannot be shown"),
}
"""Reasons that need another wording behind a number."""

_CONSENT_SECONDS = (
    1.0  # between two reads of the consent: it may be given, or revoked, in another terminal
)
_REST_SECONDS = 30.0  # after one that ended: the cause may be gone


@click.command(
    epilog=examples(
        "hotset index",
        "hotset index . --yes",
        "hotset index --watch",
        "hotset index --status --json",
        "hotset index --revoke",
    )
)
@click.argument("path", required=False, type=click.Path(exists=True, file_okay=False))
@project_options
@click.option("--yes", is_flag=True, help="Allow it without a question; for scripts.")
@click.option("--watch", is_flag=True, help="Keep the index up to date until Ctrl-C.")
@click.option(
    "--status",
    is_flag=True,
    help="Show what is indexed and whether it is up to date; read no files.",
)
@click.option(
    "--revoke",
    is_flag=True,
    help="Take the permission back and delete everything made from the files.",
)
@while_stdin
@as_json
def index(
    chosen: ProjectOptions,
    path: str | None,
    *,
    yes: bool,
    watch: bool,
    status: bool,
    revoke: bool,
    while_stdin: bool,
    as_json: bool,
) -> int:
    """Index the project's files, so that you and your agents can search them; only what changed is
    read again.

    PATH is the project, or a folder in it. You are asked once for each project before anything is
    read. Files that .gitignore or .hotsetignore exclude, binary, generated and very large ones are
    left out, and so are secrets.
    """
    if sum((watch, status, revoke)) > 1:
        raise click.UsageError("--watch, --status and --revoke do not go together")
    chosen = replace(chosen, project=path or chosen.project)
    config = chosen.config()
    if status:
        return _print_status(chosen, config, as_json=as_json)
    if revoke:
        return _revoke(chosen, config, as_json=as_json)
    if not require_consent(chosen, config, yes=yes):
        return FOUND
    with _stop_event(config, while_stdin=while_stdin) as stop:
        return _index_or_watch(chosen, config, stop, watch=watch, as_json=as_json)


def _index_or_watch(
    chosen: ProjectOptions, config: Config, stop: threading.Event, *, watch: bool, as_json: bool
) -> int:
    if not watch and (report := _await_other_indexer(config, stop)) is not None:
        _print_report(chosen, config, report, as_json=as_json)
        chosen.say("another hotset keeps it up to date")
        return _status(report)
    with code.indexing_lock(config.folder):
        report = code.unchanged(config.project, config.folder, config.embedding, stop.is_set)
        if report is not None:
            _print_report(chosen, config, report, as_json=as_json)
            if not watch:
                return _status(report)
        return _bring_up_to_date(
            chosen, config, stop, watch=watch, as_json=as_json, reported=report is not None
        )


def _await_other_indexer(config: Config, stop: threading.Event) -> IndexReport | None:
    """The report of another process that indexes, once it is up to date.

    None if no process does, or if it takes longer than we wait.
    """
    began = time.monotonic()
    while code.who_indexes(config.folder) is not None and not stop.is_set():
        if (known := code.is_up_to_date(config.project, config.folder)) is not None:
            return code.IndexReport.of(known, seconds=time.monotonic() - began)
        if time.monotonic() - began > _OTHERS_SECONDS:
            return None
        stop.wait(_LOOK_SECONDS)
    return None


def _bring_up_to_date(
    chosen: ProjectOptions,
    config: Config,
    stop: threading.Event,
    *,
    watch: bool,
    as_json: bool,
    reported: bool,
) -> int:
    """Brings the index up to date, unless that was `reported` already, then watches where
    asked."""
    from hotset.runtime.reader import open_index  # noqa: PLC0415 - where there is work

    status = OK
    with (
        closing(open_index(config.folder, config.embedding.of_documents)) as opened,
        code.Manifest(config.folder, code.manifest_identity()) as manifest,
        code.Parsers(config.folder / code.GRAMMARS) as parsers,
    ):
        if not reported:
            with _progress(chosen) as moved:
                report = code.index_project(
                    config.project,
                    opened,
                    manifest,
                    parsers=parsers,
                    progress=moved,
                    stop=stop.is_set,
                )
                if not report.stopped and opened.fold():
                    code.settle(config.folder, manifest, config.embedding)
            _print_report(chosen, config, report, as_json=as_json)
            if report.stopped:
                chosen.say(
                    "hotset: stopped; what is indexed stays, and the next run goes on from here"
                )
                return INTERRUPTED
            status = _status(report)
        if watch:
            chosen.say(f"watching {config.project}; stop with Ctrl-C")
            heard = partial(_print_update, chosen)
            code.watch_project(
                config.project, opened, manifest, stop=stop, parsers=parsers, updated=heard
            )
            chosen.say("stopped")
    return status


def _status(report: IndexReport) -> int:
    return FOUND if report.refused.get(Why.UNREADABLE) else OK


@contextmanager
def _stop_event(config: Config, *, while_stdin: bool) -> Iterator[threading.Event]:
    """An event that is set by Ctrl-C, when consent is withdrawn, and with `while_stdin` at the end
    of stdin.

    A second Ctrl-C raises; the next run goes on from there as well.
    """
    stop = threading.Event()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def look() -> None:
        # A store that is busy for a moment revokes nothing.
        granted = code.Consent(
            code.ConsentAnswer.GRANTED, root=str(config.project.expanduser().resolve())
        )
        while not stop.wait(_LOOK_SECONDS):
            if not code.read_consent(config.folder, unreadable=granted).allows(config.project):
                stop.set()

    with signals_to(interrupt, signal.SIGINT, signal.SIGTERM):
        PROCESS.thread(look, "hotset-consent")
        if while_stdin:
            follow_stdin(stop.set)
        try:
            yield stop
        finally:
            stop.set()


@contextmanager
def _progress(chosen: ProjectOptions) -> Iterator[Callable[[IndexProgress], None]]:
    """A line on stderr; nothing without a terminal."""
    with counting("looking for changes", quiet=chosen.quiet) as line:

        def moved(to: IndexProgress) -> None:
            title = "making it fast to search" if to.done >= to.total else "indexing files"
            line.move(to.done, to.total, title)

        yield moved


def _print_report(
    chosen: ProjectOptions, config: Config, report: IndexReport, *, as_json: bool
) -> None:
    if as_json:
        emit_json(_document(config, report))
        return
    emit(f"{config.project}: {_describe_totals(report)}, {size(report.bytes)}")
    what = (
        f"{count(report.changed, 'file')} read, {report.removed:,} gone"
        if report.changed or report.removed
        else "nothing changed"
    )
    emit(f"  this run  {what}; {span(report.seconds)}")
    if report.sealed:
        emit(
            f"  sealed    {count(report.sealed, 'secret')}: recognised by form, and replaced "
            f"before anything was indexed"
        )
    _print_missing("  left out  ", _skipped_lines(report.refused, report.examples))
    _print_missing("  in part   ", _partial_lines(report.in_part, report.in_part_files))
    for named in report.examples.get(Why.UNREADABLE, ()):
        emit(f"  failed    {named}: {Why.UNREADABLE}")
    if not report.stopped:
        chosen.say(f'\nSearch with: {chosen.hint("search")} "what you are looking for"')


def _describe_totals(known: IndexReport | Totals) -> str:
    return ", ".join(
        (count(known.files, "file"), count(known.symbols, "symbol"), count(known.chunks, "chunk"))
    )


def _print_missing(head: str, lines: Sequence[str]) -> None:
    for number, line in enumerate(lines):
        emit((head if not number else " " * len(head)) + line)


def _skipped_lines(skipped: Mapping[str, int], examples: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each reason, with a few of the files left out for it."""
    by_times = sorted(skipped.items(), key=lambda each: (-each[1], each[0]))
    return [
        f"{_reason(why, times)}: {_some(examples.get(why, ()), times)}" for why, times in by_times
    ]


def _partial_lines(reasons: Mapping[str, int], examples: Sequence[str]) -> list[str]:
    return [f"{times:,} {why}: {_some(examples, times)}" for why, times in reasons.items()]


def _reason(why: str, times: int) -> str:
    one, several = _NOUNS.get(why, (why, why))
    return f"{times:,} {one if times == 1 else several}"


def _some(names: Sequence[str], of: int) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (" ..." if of > _MOST_NAMED else "")


def _print_update(chosen: ProjectOptions, report: IndexReport) -> None:
    gone = f", {report.removed:,} gone" if report.removed else ""
    chosen.say(
        f"{time.strftime('%H:%M:%S')} {count(report.changed, 'file')} changed{gone}; "
        f"{span(report.seconds)}"
    )


def _document(config: Config, report: IndexReport) -> dict[str, Any]:
    return {
        "project": str(config.project),
        "files": report.files,
        "symbols": report.symbols,
        "chunks": report.chunks,
        "bytes": report.bytes,
        "changed": report.changed,
        "removed": report.removed,
        "sealed": report.sealed,
        "skipped": dict(report.refused),
        "examples": {why: list(some) for why, some in report.examples.items()},
        "in_part": dict(report.in_part),
        "in_part_files": list(report.in_part_files),
        "seconds": round(report.seconds, 3),
        "stopped": report.stopped,
    }


def _read_status(config: Config) -> IndexStatus:
    from hotset.runtime.reader import open_index  # noqa: PLC0415

    state = None
    if code.index_folder(config.folder).exists():
        with closing(
            open_index(config.folder, config.embedding.of_documents, folds=False)
        ) as opened:
            state = opened.state()
    return read_index_status(config, state)


def _print_status(chosen: ProjectOptions, config: Config, *, as_json: bool) -> int:
    standing = _read_status(config)
    if as_json:
        emit_json(standing)
        return OK if standing.code is not None else FOUND
    emit(f"project  {standing.project}")
    if standing.answer is code.ConsentAnswer.UNANSWERED:
        emit(f"files    not indexed; to index them: {chosen.hint('index')}")
    elif standing.answer is code.ConsentAnswer.DENIED:
        emit(
            f"files    not indexed; that was refused on {moment(standing.since)}. To change "
            f"that: {chosen.hint('index')}"
        )
    else:
        _print_code(chosen, standing)
    if standing.index is not None:
        _print_index(standing.index)
        emit(f"kept in  {standing.folder}")
    return OK if standing.code is not None else FOUND


def _print_code(chosen: ProjectOptions, standing: IndexStatus) -> None:
    emit(
        f"allowed  since {moment(standing.since)}; to take it back: {chosen.hint('index --revoke')}"
    )
    if standing.code is None:
        emit(f"files    not indexed yet: {chosen.hint('index')}")
        return
    emit(f"files    {_describe_totals(standing.code)}, {size(standing.code.bytes)}")
    _print_missing("left out ", _skipped_lines(standing.code.refused, standing.code.examples))
    _print_missing("in part  ", _partial_lines(standing.code.in_part, standing.code.in_part_files))
    if standing.indexer:
        emit(f"fresh    process {standing.indexer} watches them, or reads them just now")
    elif standing.unfinished:
        emit(
            "fresh    no, the last run was interrupted: what it had read is found, the rest "
            "is not yet"
        )
        emit(f"         to go on from there: {chosen.hint('index')}")
    elif standing.fresh:
        emit("fresh    yes")
    else:
        emit(
            f"fresh    no, something changed since; to bring it up to date: {chosen.hint('index')}"
        )


def _print_index(state: IndexState) -> None:
    emit(f"index    {state.entries:,} stretches of text, {size(state.bytes)}")
    if state.lag:
        emit(f"lag      {state.lag:,} of these are found by their words alone so far")
    emit(f"meaning  by {state.embedder or 'nothing yet: found by words alone'}")
    if state.building is not None:
        emit(f"building a new one: {state.building:.0%}")
    for trouble in state.troubles:
        emit(click.style(f"trouble  {trouble}", fg="yellow"))


def _revoke(chosen: ProjectOptions, config: Config, *, as_json: bool) -> int:

    known = (
        code.read_consent(config.folder).answer is not code.ConsentAnswer.UNANSWERED
        or code.index_folder(config.folder).exists()
    )
    holder = code.take_out(config.folder, config.embedding.of_documents)
    if as_json:
        emit_json({"project": str(config.project), "revoked": known, "held_by": holder})
        return OK
    if not known:
        chosen.say("nothing of this project is indexed; there is nothing to revoke")
        return OK
    chosen.say(
        f"removed: nothing made from the files of {config.project} is left on disk, and none of "
        f"them is read"
    )
    if holder:
        chosen.say(
            f"process {holder} had the index open: its copy in memory goes when it next uses "
            f"the index, or ends"
        )
    chosen.say(
        "conversations are kept as before; you will be asked again before anything is indexed"
    )
    return OK


def index_follower(config: Config) -> ChildFollower:
    """Keeps the project's files indexed in a child process while the block runs and consent is
    given."""

    def is_due() -> bool:
        allowed = read_consent(config.folder).allows(config.project)
        return allowed and who_indexes(config.folder) is None

    watching = ("index", "--watch")
    return ChildFollower(config, watching, is_due, rest=_REST_SECONDS, every=_CONSENT_SECONDS)
