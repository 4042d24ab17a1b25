"""`hotset replay`: replay recorded sessions through policies, without a model or a network."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from hotset.config import load, parse_knobs
from hotset.errors import BadInput, NotFound
from hotset.files.write import write_output
from hotset.nouns.knobs import Knobs
from hotset.replay.conversation import RecordedSession
from hotset.replay.formats import read
from hotset.replay.policies import DEFAULT, FULL, KNOBS, OURS, ROSTER, USUAL, Maker, ours
from hotset.replay.report import (
    PROVIDERS,
    Report,
    Row,
    Ruling,
    describe_pauses,
    describe_row,
    gather,
    measure_all,
    report_on,
)
from hotset.surfaces.cli.options import as_json, examples
from hotset.surfaces.cli.progress import counting
from hotset.surfaces.cli.terminal import (
    count,
    emit,
    emit_json,
    plain,
    say,
    shortened,
    width,
)

if TYPE_CHECKING:
    from rich.table import Table

    from hotset.replay.estimate import Replayed

_ALL = "all"
_CHANGED = "+set"
"""Suffix of the name of our policy with the knobs of `--set`."""

_NOT_REPLAYED = ("cache", "prefetch", "toolbox", "memory", "history")
"""Groups of knobs whose effect no recorded session shows."""

_MOST_NOTES = 5
"""How many unreadable files are listed one by one."""

_COLUMNS: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("tokens\n%", lambda row: f"{row.tokens_pct:.1f}"),
    ("cost\n%", lambda row: f"{row.cost_pct:.1f}"),
    ("faults\n/100", lambda row: f"{row.faults_per_100_replies:.1f}"),
    ("faults\npaid %", lambda row: f"{row.cost_with_faults_pct:.1f}"),
    ("hit\n%", lambda row: f"{row.hit_pct:.1f}"),
    ("mean\nprompt", lambda row: _thousands(row.mean_prompt)),
    ("peak\nprompt", lambda row: _thousands(row.peak_prompt)),
    ("over\n%", lambda row: f"{row.over_window_pct:.1f}"),
    ("prefix\nbreaks", lambda row: f"{row.prefix_breaks:,}"),
    ("plan\nms", lambda row: f"{row.plan_ms_p95:.1f}"),
)
_NARROWEST = 80
"""Least width of the table in characters: figures are never cut."""

_ROOMY = 100
"""From this width on, columns are separated by two characters."""


@click.command(
    epilog=examples(
        "hotset replay ~/.claude/projects --html report.html",
        "hotset replay ~/.claude/projects --window 200000",
        "hotset replay session.jsonl --policy default --policy full --json",
        "hotset replay runs.jsonl.gz --provider openai --policy all",
        "hotset replay session.jsonl --set keep=8 --set forms.logs_share=0.3",
    )
)
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--policy",
    "policies",
    metavar="NAME",
    multiple=True,
    help=(
        f"Repeatable; `all` is all of: {', '.join(ROSTER)}; also a profile of your own, "
        f"[profiles.NAME] in TOML. Default: {DEFAULT} and what others do."
    ),
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help=(
        "Repeatable: a knob, for a second row of each policy of ours. Names and ranges: "
        "docs/knobs.md."
    ),
)
@click.option(
    "--window",
    metavar="N",
    type=click.IntRange(min=1),
    help="Tokens that a prompt may have; default: the model's.",
)
@click.option(
    "--provider",
    type=click.Choice(list(PROVIDERS)),
    help="Whose cache rules and prices; default: the model's.",
)
@click.option(
    "--ttl",
    metavar="S",
    type=click.IntRange(min=0),
    help=(
        "Caches go cold after so many seconds without a call; default: the provider's rule. 0 "
        "leaves pauses out of account."
    ),
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Count every session, also those that are short or fit the window.",
)
@click.option(
    "--by-length", is_flag=True, help="Also print the cost by the length of full history's prompt."
)
@click.option(
    "--html",
    "page",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write one page to look at and to share: numbers, nothing of what was said.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print only data and errors.")
@as_json
def replay(
    *,
    paths: tuple[Path, ...],
    policies: tuple[str, ...],
    settings: tuple[str, ...],
    window: int | None,
    provider: str | None,
    ttl: int | None,
    everything: bool,
    by_length: bool,
    page: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """What hotset, and what others do, would have cost on recorded sessions. No model is called.

    PATH is a file or a folder of sessions as agents write them: Claude Code and Codex transcripts,
    OpenAI or Anthropic messages, SWE-agent trajectories, what `hotset export` writes; gzipped or
    not. Sessions of 16 calls or more that overflow the window count; all of them, where none does.
    """
    config = load()
    ruling = Ruling(config.prices, provider or "", window or 0, ttl)
    roster = {**ROSTER, **{name: ours(knobs) for name, knobs in config.own_profiles.items()}}
    for name in policies:
        if name not in roster and name != _ALL:
            raise click.UsageError(f"--policy {name}: it must be one of {', '.join(roster)}, all")
    known = {**KNOBS, **config.own_profiles}
    changed = _changed_knobs(policies, settings, known)
    makers = _chosen_makers(policies, changed, roster)
    if page is not None and DEFAULT not in makers:
        raise click.UsageError(f"--html shows what hotset saves: add --policy {DEFAULT}")
    with counting("reading", None, quiet=quiet) as counter:
        notes: list[str] = []
        sets = gather(counter.over(sessions_in(paths, notes)), ruling, everything=everything)
    print_notes(notes, quiet=quiet)
    if not sets:
        raise NotFound("there is nothing to replay: no model replies in these sessions")
    with counting("replaying", sum(each.rounds(makers) for each in sets), quiet=quiet) as counter:
        measured = [
            measure_all(each, makers, ruling, time.perf_counter, counter.step) for each in sets
        ]
    pairs = list(zip(sets, measured, strict=True))
    differences = _knob_differences(changed, known)
    reports = [
        replace(report_on(each, makers, ruling, figures), knobs=differences)
        for each, figures in pairs
    ]
    if page is not None:
        flags = _flags_again(policies, settings, window, provider, ttl, everything=everything)
        named = " ".join(dict.fromkeys(map(_public_path, paths)))  # `~` must not be quoted
        command = f"hotset replay {named} {shlex.join([*flags, '--html', 'report.html'])}"
        _write_page(page, pairs, ruling, command, quiet=quiet)
    if as_json:
        emit_json(reports[0] if len(reports) == 1 else reports)
        return
    for report in reports:
        _show(report, quiet=quiet)
        if by_length:
            emit(_length_table(report))
            say(quiet=quiet)


def _write_page(page: Path, pairs: Replayed, ruling: Ruling, command: str, *, quiet: bool) -> None:
    from hotset.replay.estimate import estimate  # noqa: PLC0415 - only for --html
    from hotset.surfaces.cli.replay_page import render_page  # noqa: PLC0415

    write_output(page, [render_page(estimate(pairs, ruling), command).encode()])
    say(f"wrote {page}: numbers, nothing of what was said; look at it in a browser", quiet=quiet)


def _public_path(path: Path) -> str:
    """A path as a shared page may name it: where agents keep sessions, and nothing of a person."""
    here = path.expanduser().resolve()
    known = (Path(".claude/projects"), Path(".codex/sessions"))
    named = (each for each in known if here == (Path.home() / each).resolve())
    return next((f"~/{each}" for each in named), "PATH")


def _flags_again(
    policies: Sequence[str],
    settings: Sequence[str],
    window: int | None,
    provider: str | None,
    ttl: int | None,
    *,
    everything: bool,
) -> list[str]:
    """The options that change figures, as they were given."""
    given = [("--policy", each) for each in policies] + [("--set", each) for each in settings]
    single = (("--window", window), ("--provider", provider), ("--ttl", ttl))
    given += [(name, str(value)) for name, value in single if value is not None]
    return [word for pair in given for word in pair] + ["--all"] * everything


def _names(policies: Sequence[str]) -> Sequence[str]:
    return tuple(ROSTER) if _ALL in policies else policies or USUAL


def _changed_knobs(
    policies: Sequence[str], settings: Sequence[str], known: Mapping[str, Knobs]
) -> dict[str, Knobs]:
    """The knobs of each chosen policy of ours with these settings, by its name; empty without
    settings."""
    values = parse_knobs(settings, "--set")
    changed = (
        {name: known[name].turned(values) for name in _names(policies) if name in known}
        if values
        else {}
    )
    if values and not changed:
        raise click.UsageError(
            f"--set changes hotset's own policies, and none is chosen: add --policy {DEFAULT}"
        )
    return changed


def _chosen_makers(
    policies: Sequence[str], changed: Mapping[str, Knobs], roster: Mapping[str, Maker]
) -> dict[str, Maker]:
    makers: dict[str, Maker] = {}
    for name in _names(policies):
        makers[name] = roster[name]
        if name in changed:
            makers[name + _CHANGED] = ours(changed[name])
    return makers


def _knob_differences(
    changed: Mapping[str, Knobs], known: Mapping[str, Knobs]
) -> dict[str, dict[str, Any]]:
    return {name + _CHANGED: knobs.changed(known[name]) for name, knobs in changed.items()}


def sessions_in(paths: Sequence[Path], notes: list[str]) -> Iterator[RecordedSession]:
    """The recorded sessions in these paths. A named file must be readable; an unreadable one in a
    folder is noted."""
    found = False
    errors: list[BadInput] = []
    for path in paths:
        refused = errors.append if path.is_dir() else _refuse
        for session in read([path], note=notes.append, refuse=refused):
            found = True
            yield session
    if errors and not found:
        raise errors[0]
    notes += [f"passed over: {error}" for error in errors]


def _refuse(error: BadInput) -> None:
    raise error


def print_notes(notes: Sequence[str], *, quiet: bool) -> None:
    for sentence in notes[:_MOST_NOTES]:
        say(plain(sentence), quiet=quiet)
    if len(notes) > _MOST_NOTES:
        say(f"and {len(notes) - _MOST_NOTES} more like these", quiet=quiet)


def _show(report: Report, *, quiet: bool) -> None:
    from rich.console import Console  # noqa: PLC0415 - not for --json

    emit(shortened(plain(_title(report)), width()))
    paper = Console(highlight=False, width=max(_NARROWEST, width()))
    with paper.capture() as printed:
        paper.print(_table(report), end="")
    emit(printed.get().rstrip("\n"))
    for name, differing in report.knobs.items():
        before = to_builtins(KNOBS[name.removesuffix(_CHANGED)].by_name())
        values = ", ".join(
            f"{knob} {value} instead of {before[knob]}" for knob, value in differing.items()
        )
        emit(plain(f"{name}: {values or 'no value differs'}"))
    unused = sorted(
        {
            knob
            for each in report.knobs.values()
            for knob in each
            if knob.partition(".")[0] in _NOT_REPLAYED
        }
    )
    if unused:
        say(
            f"a replay plans only windows: {', '.join(unused)} had no effect",
            quiet=quiet,
        )
    for name in (DEFAULT, FULL):
        if name in report.policies and (pauses := describe_pauses(report, name)):
            emit(pauses)
    if DEFAULT in report.policies:
        say(describe_row(report, DEFAULT, FULL), quiet=quiet)
    say(quiet=quiet)


def _title(report: Report) -> str:
    windows = " to ".join(
        f"{tokens:,}" for tokens in sorted({report.windows[0], report.windows[-1]})
    )
    stretches = f" in {report.stretches:,} stretches" if report.stretches != report.sessions else ""
    counted = f"{report.sessions:,} of {count(report.sessions_read, 'session')}"
    return (
        f"{report.set}: {counted}{stretches}, {count(report.calls, 'call')}, a window of "
        f"{windows} tokens"
    )


def _table(report: Report) -> Table:
    from rich.table import Table  # noqa: PLC0415

    table = Table(
        box=None,
        padding=(0, 2 if width() >= _ROOMY else 1, 0, 0),
        pad_edge=False,
        header_style="bold",
    )
    table.add_column("\npolicy", no_wrap=True)
    for heading, _ in _COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, row in report.policies.items():
        table.add_row(name, *(cell(row) for _, cell in _COLUMNS), style=_style(name))
    return table


def _length_table(report: Report) -> str:
    """Cost with faults in percent of full history's, a column for each class of prompts."""
    lengths = sorted({length for row in report.policies.values() for length in row.by_length})
    names = max(map(len, ("prompt of", *report.policies)))
    heads = [f"{length // 1000}k+" if length else "shorter" for length in lengths]
    lines = [f"{'prompt of':<{names}}" + "".join(f"{head:>9}" for head in heads)]
    for name, row in report.policies.items():
        cells = (f"{row.by_length[length]:9.1f}" for length in lengths)
        lines.append(f"{name:<{names}}" + "".join(cells))
    return "\n".join(lines)


def _style(name: str) -> str:
    if name == DEFAULT:
        return "bold green"
    return "green" if name.removesuffix(_CHANGED) in OURS else ""


def _thousands(tokens: int) -> str:
    return f"{tokens / 1000:.1f}k" if tokens < 100_000 else f"{tokens / 1000:.0f}k"
