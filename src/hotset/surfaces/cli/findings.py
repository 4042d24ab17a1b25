"""`hotset findings`: what costs most, and what to do about it."""

from __future__ import annotations

import time

import click

from hotset.runtime.reader import open_or_empty
from hotset.runtime.views.findings import CostFinding, read_findings
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.terminal import count, emit, emit_json, money, plain_line


@click.command(epilog=examples("hotset findings", "hotset findings --json | jq '.rows[0]'"))
@project_options
@as_json
def findings(chosen: ProjectOptions, *, as_json: bool) -> None:
    """What to do: tools that are never called, files that are read again and again, sessions
    without cache hits and more, in the latest sessions; what costs most first."""
    config = chosen.config()
    with open_or_empty(config) as store:
        found = read_findings(store, config, time.time())
    if as_json:
        emit_json(found)
        return
    for each in found.rows:
        emit(click.style(_price(each), bold=True))
        emit(f"  {plain_line(each.sentence)}")
        emit(f"  {each.action.label}:")
        for line in each.action.text.split("\n"):
            emit(f"      {plain_line(line)}")
        emit("")
    looked = f"{count(found.turns, 'turn')} of {count(found.sessions, 'session')}"
    if not found.turns:
        chosen.say(f"no session is kept yet; start one with: {chosen.hint('wrap AGENT')}")
    elif found.rows:
        chosen.say(f"found in the latest {looked}; dollars are at list prices")
    else:
        chosen.say(f"nothing to do: looked at the latest {looked}")


def _price(each: CostFinding) -> str:
    if each.dollars is None:
        return "no price"
    return f"{money(each.dollars)}, {'measured' if each.is_measured else 'estimated'}"
