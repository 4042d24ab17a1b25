"""`hotset sessions`: what was kept, by session."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

import click

from hotset.errors import BadInput
from hotset.nouns.turn import Session
from hotset.store.port import Store
from hotset.surfaces.cli.meant import reading
from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project
from hotset.surfaces.cli.terminal import emit_json, moment, say, span, table

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


@dataclass(frozen=True, slots=True)
class Line:
    """One session and how far it came."""

    session: Session
    turns: int
    branches: int
    last: float
    """When its last turn began or ended."""
    model: str


@click.command(
    epilog=examples("hotset sessions", "hotset sessions --since 2d --agent claude-cli", "hotset sessions --limit 1 --json")
)
@of_project
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many.")
@click.option("--since", metavar="WHEN", help="Active since: 30m, 12h, 2d, 1w or 2026-11-15.")
@click.option("--agent", help="Only this agent's.")
@as_json
def sessions(chosen: Chosen, limit: int, since: str | None, agent: str | None, as_json: bool) -> None:
    """The sessions of this project, newest first."""
    now = time.time()
    earliest = moment_meant(since, now) if since else None
    with reading(chosen.config()) as store:
        newest_first = reversed([each for each in store.sessions() if agent in (None, each.agent)])
        told = (describe(store, each) for each in newest_first)
        lines = list(islice((line for line in told if earliest is None or line.last >= earliest), limit))
    if as_json:
        emit_json(lines)
        return
    if not lines:
        say("no such session; see: hotset sessions", quiet=chosen.quiet)
        return
    table(
        ("session", "last", "agent", "model", "turns", "branches", "title"),
        [
            (
                line.session.id,
                f"{span(now - line.last)} ago",
                line.session.agent,
                line.model,
                str(line.turns),
                str(line.branches),
                line.session.title or line.session.key,
            )
            for line in lines
        ],
        right=(4, 5),
    )
    say(f"\nLook at one with: {chosen.hint(f'show {lines[0].session.id}')}", quiet=chosen.quiet)


def describe(store: Store, session: Session) -> Line:
    turns = list(store.turns(session.id))
    return Line(
        session=session,
        turns=len(turns),
        branches=len({turn.branch for turn in turns}),
        last=max((max(turn.started, turn.finished) for turn in turns), default=session.started),
        model=turns[-1].model if turns else "",
    )


def moment_meant(typed: str, now: float) -> float:
    """`2d` is two days before now; a date is its first moment here."""
    if ago := re.fullmatch(r"(\d{1,6})([smhdw])", typed):
        return now - int(ago[1]) * _UNITS[ago[2]]
    try:
        return datetime.fromisoformat(typed).astimezone().timestamp()
    except ValueError:
        raise BadInput(f"--since {typed}: say 30m, 12h, 2d, 1w or a date like {moment(now)[:10]}") from None
