"""`hotset sessions`: what was kept, by session."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

import click

from hotset.errors import BadInput
from hotset.nouns.page import SessionId
from hotset.nouns.turn import Session
from hotset.runtime.reader import Parent, Store, did_you_mean, open_or_empty, parents_in
from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project
from hotset.surfaces.cli.terminal import emit_json, moment, say, span, table

_DEEPEST = 4  # steps to the right: a table has no room for more
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One session and how far it came."""

    session: Session
    turns: int
    branches: int
    last: float
    """When its last turn began or ended."""
    model: str
    parent: SessionId | None = None
    """The session that it belongs to, as a subagent or a continuation."""
    kinship: str = ""


@click.command(
    epilog=examples(
        "hotset sessions",
        "hotset sessions --since 2d --agent claude-cli",
        "hotset sessions --limit 1 --json",
    )
)
@of_project
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="At most so many.",
)
@click.option("--since", metavar="WHEN", help="Active since: 30m, 12h, 2d, 1w or 2026-11-15.")
@click.option("--agent", help="Only this agent's.")
@as_json
def sessions(
    chosen: Chosen, limit: int, since: str | None, agent: str | None, as_json: bool
) -> None:
    """The sessions of this project, the one that was used last first; what belongs to another
    stands below it."""
    now = time.time()
    config = chosen.config()
    earliest = moment_meant(since, now) if since else None
    with open_or_empty(config) as store:
        every = store.recent_sessions()
        above = parents_in(store)
        told = (
            describe(store, each, above.get(each.id))
            for each in every
            if agent in (None, each.agent)
        )
        latest = list(
            islice((line for line in told if earliest is None or line.last >= earliest), limit)
        )
    lines = below_one_another(latest)
    if as_json:
        emit_json([line for line, _ in lines])
    if not lines:
        near = did_you_mean(agent or "", {each.agent for each in every})
        none = (
            f"no session is kept yet for {config.project}; start one with: "
            f"{chosen.hint('wrap AGENT')}"
        )
        say(
            none if not every else f"no such session; {near}see all: {chosen.hint('sessions')}",
            quiet=chosen.quiet,
        )
    if as_json or not lines:
        return
    table(
        ("session", "last", "agent", "model", "turns", "branches", "title"),
        [
            (
                f"{'  ' * (depth - 1)}└ {line.session.id}" if depth else line.session.id,
                f"{span(now - line.last)} ago",
                line.session.agent,
                line.model,
                str(line.turns),
                str(line.branches),
                line.session.title or line.session.key,
            )
            for line, depth in lines
        ],
        right=(4, 5),
    )
    say(f"\nLook at one with: {chosen.hint(f'show {latest[0].session.id}')}", quiet=chosen.quiet)


def below_one_another(latest: Sequence[SessionLine]) -> list[tuple[SessionLine, int]]:
    """Each with how deep it stands below another; a family stands where the one of it that was used
    last would."""
    listed = {line.session.id: line for line in latest}
    below: dict[SessionId | None, list[SessionLine]] = {}
    for line in latest:
        below.setdefault(line.parent if line.parent in listed else None, []).append(line)
    arranged: dict[SessionId, tuple[SessionLine, int]] = {}
    for line in latest:
        top = line
        while top.parent in listed:
            top = listed[top.parent]
        waiting = [] if top.session.id in arranged else [(top, 0)]
        while waiting:
            here, depth = waiting.pop()
            arranged[here.session.id] = here, min(depth, _DEEPEST)
            waiting += [(each, depth + 1) for each in reversed(below.get(here.session.id, []))]
    return list(arranged.values())


def describe(store: Store, session: Session, parent: Parent | None = None) -> SessionLine:
    turns = list(store.turns(session.id))
    return SessionLine(
        session=session,
        turns=len(turns),
        branches=len({turn.branch for turn in turns}),
        last=max((max(turn.started, turn.finished) for turn in turns), default=session.started),
        model=turns[-1].model if turns else "",
        parent=parent.session if parent else None,
        kinship=parent.kinship if parent else "",
    )


def moment_meant(typed: str, now: float) -> float:
    """`2d` is two days before now; a date is its first moment here."""
    if ago := re.fullmatch(r"(\d{1,6})([smhdw])", typed):
        return now - int(ago[1]) * _UNITS[ago[2]]
    try:
        return datetime.fromisoformat(typed).astimezone().timestamp()
    except ValueError:
        raise BadInput(
            f"--since {typed}: say 30m, 12h, 2d, 1w or a date like {moment(now)[:10]}"
        ) from None
