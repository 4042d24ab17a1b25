"""`hotset team`: a project that several people or machines share, in one PostgreSQL database."""

from __future__ import annotations

import getpass
import sys
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from hotset.errors import BadInput
from hotset.surfaces.cli.exit import FOUND, OK
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.terminal import emit, emit_json, plain_line, span, table

_ROLES = ("reader", "member", "owner")


def _needs_psycopg(command: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(command)
    def checked(*given: Any, **named: Any) -> Any:
        try:
            import psycopg  # noqa: F401, PLC0415 - an extra
        except ImportError:
            raise BadInput("teams need psycopg: pip install 'hotset[teams]'") from None
        return command(*given, **named)

    return checked


@click.command(
    epilog=examples(
        "hotset team create --store postgresql://admin@db.example.com/team?sslmode=verify-full",
        "hotset team create shop --store postgresql://postgres@localhost/team --person ann",
    )
)
@click.argument("name", required=False)
@click.option(
    "--store",
    "dsn",
    required=True,
    envvar="HOTSET_STORE",
    metavar="ADDRESS",
    help="The database, as somebody who may make tables and roles in it.",
)
@click.option("--person", help="Your name in the project. [default: your login]")
@click.option("--insecure", is_flag=True, help="The way to the database is protected otherwise.")
@project_options
@_needs_psycopg
def create(
    chosen: ProjectOptions, name: str | None, *, dsn: str, person: str | None, insecure: bool
) -> None:
    """Make a project of a team, with you as its owner, and join it here.

    NAME is what the others know it by; by default where git says that it comes from. The tables are
    made where they are missing. Your own address of the database is not kept: gateways get a role
    that may do nothing but what the project's tokens allow.
    """
    from hotset.runtime import team  # noqa: PLC0415 - loads psycopg

    config = chosen.config()
    if not insecure:
        team.refuse_open_wire(dsn)
    link = team.create(
        config, dsn, name or team.propose_name(config.project), person or getpass.getuser()
    )
    emit(f"{link.project}: you are {link.person}, its owner")
    chosen.say(f"Let others in: {chosen.hint('team invite NAME')}")


@click.command(
    epilog=examples("hotset team join hotset-invitation:eyJ...", "pbpaste | hotset team join -")
)
@click.argument("invitation")
@click.option("--insecure", is_flag=True, help="The way to the database is protected otherwise.")
@project_options
@_needs_psycopg
def join(chosen: ProjectOptions, invitation: str, *, insecure: bool) -> None:
    """Join the project of an invitation with this checkout; `-` reads it from stdin.

    What was kept here so far goes to your desk in the database. It stays yours: the agents of one
    person share what they have, and nobody else sees it.
    """
    from hotset.runtime import team  # noqa: PLC0415

    text = sys.stdin.read() if invitation == "-" else invitation
    link = team.join(chosen.config(), text, is_protected=insecure)
    emit(f"{link.project}: you are {link.person}")


@click.command(epilog=examples("hotset team invite bob", "hotset team invite ci --role reader"))
@click.argument("person")
@click.option("--role", type=click.Choice(_ROLES), default="member", show_default=True)
@project_options
@_needs_psycopg
def invite(chosen: ProjectOptions, person: str, *, role: str) -> None:
    """Print an invitation for a person: a line to send them over a channel that you trust.

    It is good once, for seven days. With your own name it is for another machine of yours.
    """
    from hotset.runtime import team  # noqa: PLC0415

    emit(team.invite(team.joined(chosen.config()), person, role))
    chosen.say("They say: hotset team join INVITATION, in their checkout of the project.")


@click.command(epilog=examples("hotset team status", "hotset team status --json"))
@project_options
@as_json
@_needs_psycopg
def status(chosen: ProjectOptions, *, as_json: bool) -> int:
    """Which project this checkout is in, whether its database answers, and what still has to go
    there. Exits with 1 while something is not there."""
    from hotset.runtime import team  # noqa: PLC0415

    found = team.standing(chosen.config())
    if as_json:
        emit_json(found)
    else:
        emit(f"project   {plain_line(found.project)}, you are {plain_line(found.person)}")
        emit(f"database  {found.database}: {found.trouble or 'answers'}")
        emit(f"waiting   {found.waiting or 'nothing'}")
    return FOUND if found.trouble or found.waiting else OK


@click.command("list", epilog=examples("hotset team list", "hotset team list --json"))
@project_options
@as_json
@_needs_psycopg
def list_(chosen: ProjectOptions, *, as_json: bool) -> None:
    """Who is in the project, with which role, and how many tokens of theirs are good."""
    from hotset.runtime import team  # noqa: PLC0415

    link = team.joined(chosen.config())
    people = team.everyone(link)
    if as_json:
        emit_json(people)
        return
    now = time.time()
    table(
        ("person", "role", "wrote", "tokens", "good for"),
        [
            (
                f"{plain_line(each.name)}{' (you)' if each.name == link.person else ''}",
                each.role,
                f"{each.commits:,} times",
                str(each.tokens),
                span(each.expires.timestamp() - now) if each.expires else "",
            )
            for each in people
        ],
    )


@click.command(epilog=examples("hotset team revoke bob"))
@click.argument("person")
@project_options
@_needs_psycopg
def revoke(chosen: ProjectOptions, person: str) -> None:
    """End every token of a person, at once. What they kept stays; owners may let them in again."""
    from hotset.runtime import team  # noqa: PLC0415

    ended = team.revoke(team.joined(chosen.config()), person)
    emit(f"{ended} of {person}'s tokens ended")


@click.command(epilog=examples("hotset team rotate"))
@project_options
@_needs_psycopg
def rotate(chosen: ProjectOptions) -> None:
    """Take a new token in place of this machine's, which is good for 90 days."""
    from hotset.runtime import team  # noqa: PLC0415

    config = chosen.config()
    team.rotate(config, team.joined(config))
    emit("this machine has a new token; the old one ended")


@click.command(epilog=examples("hotset team log", "hotset team log --limit 1000 --json"))
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@project_options
@as_json
@_needs_psycopg
def log(chosen: ProjectOptions, *, limit: int, as_json: bool) -> None:
    """What was done to the project and its people, the latest first. For its owners."""
    from hotset.runtime import team  # noqa: PLC0415

    done = team.accesses(team.joined(chosen.config()), limit)
    if as_json:
        emit_json(done)
        return
    table(
        ("when", "person", "did", "about"),
        [
            (f"{each.time:%Y-%m-%d %H:%M:%S}", plain_line(each.person), each.did, each.about)
            for each in done
        ],
    )


@click.command(epilog=examples("hotset team leave"))
@project_options
@_needs_psycopg
def leave(chosen: ProjectOptions) -> None:
    """Work alone from here on. Everything that is on this machine stays, also what others of your
    machines kept; your desk in the database stays too."""
    from hotset.runtime import team  # noqa: PLC0415

    config = chosen.config()
    link = team.joined(config)
    team.leave(config)
    emit(f"{config.project} is no longer in {link.project}")
