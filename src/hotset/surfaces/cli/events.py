"""`hotset events`: what left the window, what was brought back, and what went wrong."""

from __future__ import annotations

import time

import click

from hotset.errors import BadInput
from hotset.runtime.audit import TYPES, EventFilter, find_events, sentence, type_of
from hotset.runtime.filters import parse_turns
from hotset.runtime.reader import did_you_mean, find_session_id, open_or_empty
from hotset.surfaces.cli.options import (
    ProjectOptions,
    as_json,
    examples,
    limit_option,
    parse_moment,
    parse_option,
    project_options,
)
from hotset.surfaces.cli.terminal import emit, emit_json, moment, plain_line, shortened, width

_TYPE_WIDTH, _PLACE_WIDTH = 11, 19
_COLOURS = {"eviction": "yellow", "retrieval": "green", "bypass": "red", "alert": "red"}


@click.command(
    epilog=examples(
        "hotset events last",
        "hotset events --type retrieval --since 2d",
        "hotset events s1f0 --type eviction --type bypass --json",
    )
)
@click.argument("session", required=False)
@project_options
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    help=f"Only these, may be given several times: {', '.join(TYPES)}, or an event's name.",
)
@click.option("--agent", "agents", multiple=True, help="Only what this agent asked for.")
@click.option("--turns", metavar="A-B", help="Only these turns: 12, 12-20, 12-.")
@click.option("--since", metavar="WHEN", help="Only newer: 30m, 12h, 2d, 1w or 2026-11-15.")
@click.option("--until", metavar="WHEN", help="Only older, in the same form.")
@limit_option(50, help="The latest so many.")
@as_json
def events(
    chosen: ProjectOptions,
    session: str | None,
    *,
    types: tuple[str, ...],
    agents: tuple[str, ...],
    turns: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """What happened, oldest first: evictions, compactions by the client, retrievals with their
    query, bypasses, alerts, checkpoints, handoffs and more.

    SESSION is an id, the beginning of one, or `last`; default: every session.
    """
    now = time.time()
    with open_or_empty(chosen.config()) as store:
        known = {*TYPES, *(event.name.lower() for event in store.events())}
        for typed in types:
            if typed.lower() not in known:
                near = did_you_mean(typed, known)
                raise BadInput(f"--type {typed}: {near}types are {', '.join(TYPES)}")
        only = EventFilter(
            session=find_session_id(store, session),
            types=frozenset(map(str.lower, types)),
            agents=frozenset(agents),
            turns=parse_option("--turns", parse_turns, turns) if turns else None,
            since=parse_moment(since, now) if since else None,
            until=parse_moment(until, now, "--until") if until else None,
        )
        found = find_events(store, only, limit)
    if as_json:
        emit_json(
            [
                {
                    "type": type_of(event),
                    "name": event.name,
                    "time": event.time,
                    "session": event.session,
                    "turn": event.turn,
                    "detail": event.detail,
                }
                for event in found
            ]
        )
        return
    for event in found:
        place = f"{event.session} turn {event.turn}" if event.session else "-"
        head = f"{moment(event.time)}  {place:<{_PLACE_WIDTH}}  "
        type = type_of(event)
        room = max(20, width() - len(head) - _TYPE_WIDTH - 2)
        emit(
            head
            + click.style(f"{type:<{_TYPE_WIDTH}}", fg=_COLOURS.get(type))
            + f"  {shortened(plain_line(sentence(event)), room)}"
        )
    if not found:
        narrowed = any((session, types, agents, turns, since, until))
        chosen.say(
            "no such event; ask for fewer things at once"
            if narrowed
            else f"nothing has happened yet; see what is kept: {chosen.hint('sessions')}"
        )
