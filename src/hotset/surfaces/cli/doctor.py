"""`hotset doctor`: why is nothing kept? Each finding is one line with what to do."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

import click

from hotset.config import Config
from hotset.surfaces.cli.checks import folder, proxy, routing, store
from hotset.surfaces.cli.checks.finding import CheckScene, Finding, Level
from hotset.surfaces.cli.ending import FAILED, FOUND, OK
from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project
from hotset.surfaces.cli.terminal import emit, emit_json, plain
from hotset.surfaces.proxy.address import ask, read_note

_CHECKS = (
    proxy.check,
    folder.check,
    store.check,
    routing.check,
)  # the folder's modes before opening the store mends them
_COLOURS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}
_EXITS = {Level.OK: OK, Level.WARN: FOUND, Level.FAIL: FAILED}


@click.command(epilog=examples("hotset doctor", "hotset doctor --quiet", "hotset doctor --json"))
@of_project
@as_json
def doctor(chosen: Chosen, as_json: bool) -> int:
    """Find out why nothing is kept, and what to do.

    Trouble here is silent: the agent works, only nothing is kept. Exits with 0 where all is well, 1
    for a warning, 2 for a failure. With --quiet only troubles are shown.
    """
    findings = examine(chosen.config(), os.environ)
    worst = max((finding.level for finding in findings), key=list(Level).index, default=Level.OK)
    if as_json:
        emit_json({"level": worst, "findings": findings})
    else:
        for finding in findings:
            if not (chosen.quiet and finding.level is Level.OK):
                _tell(finding)
    return _EXITS[worst]


def examine(config: Config, env: Mapping[str, str]) -> list[Finding]:
    """What every check finds, for an agent with this environment."""
    address = read_note(config.folder)
    scene = CheckScene(
        config,
        env,
        time.time(),
        address,
        ask(address, patience=config.patience) if address else None,
    )
    return [finding for check in _CHECKS for finding in check(scene)]


def _tell(finding: Finding) -> None:
    mark = click.style(f"{finding.level:<4}", fg=_COLOURS[finding.level])
    emit(f"{mark}  {finding.about:<11}  {plain(finding.says)}")
    if finding.todo:
        emit(f"{'':<19}→ {plain(finding.todo)}")
