"""A project of a team: made, joined and left, and who is in it."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hotset.config import Config
from hotset.errors import BadInput, HotsetError, NotFound
from hotset.files.private_folder import private_folder
from hotset.store.postgres.connection import translate_errors
from hotset.store.postgres.people import (
    Access as Access,  # noqa: PLC0414 - surfaces read it from here
    People,
    Person as Person,  # noqa: PLC0414
    join_project,
    make_project,
)
from hotset.store.postgres.schema import address, conninfo, make_gateway, make_schema
from hotset.store.postgres.store import PostgresStore
from hotset.store.sqlite import SqliteStore
from hotset.store.store_files import exclusive_use
from hotset.store.team_link import TeamLink, read_team_link, remove_team_link, write_team_link
from hotset.typed import decode

_PREFIX = "hotset-invitation:"
_GIT_SECONDS = 5.0
_REMOTE = re.compile(
    r"(?:\w+://)?(?:[^@/]+@)?(?P<host>[^:/]+)(?::\d+)?[:/](?P<path>.+?)(?:\.git)?/?$"
)


@dataclass(frozen=True, slots=True)
class _Invitation:
    dsn: str
    project: str
    person: str
    secret: str


def propose_name(folder: Path) -> str:
    """A name for a project: where git says that it comes from, or the folder's name."""
    try:
        told = subprocess.run(
            ["git", "-C", str(folder), "remote", "get-url", "origin"],
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        told = ""
    found = _REMOTE.match(told)
    return f"{found['host']}/{found['path']}" if found else folder.name


def refuse_open_wire(dsn: str) -> None:
    """Raises `BadInput` for a database on another machine that is not reached by a verified
    connection."""
    parts = conninfo(dsn)
    host = parts.get("host", "")
    if parts.get("sslmode") != "verify-full" and not _is_here(host):
        raise BadInput(
            f"prompts would go to {host} unprotected; add sslmode=verify-full to the address, or "
            "say --insecure if the way there is protected otherwise"
        )


def _is_here(host: str) -> bool:
    if not host or host.startswith("/") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def create(config: Config, dsn: str, name: str, person: str) -> TeamLink:
    """Make a project in a team's database, and join it here. `dsn` is of somebody who may make
    tables and roles there; what stays on this machine is the gateways' own."""
    _refuse_joined(config)
    with translate_errors(address(dsn)):
        make_schema(dsn)
        gateway = make_gateway(dsn)
        secret = make_project(dsn, name, person)
    return _join(config, _Invitation(gateway, name, person, secret))


def join(config: Config, text: str, *, is_protected: bool = False) -> TeamLink:
    """Join the project of an invitation. What this checkout has kept so far goes to your desk."""
    invitation = _read(text)
    if not is_protected:
        refuse_open_wire(invitation.dsn)
    _refuse_joined(config)
    return _join(config, invitation)


def _join(config: Config, invitation: _Invitation) -> TeamLink:
    with translate_errors(address(invitation.dsn)):
        token = join_project(invitation.dsn, invitation.secret)
    link = TeamLink(invitation.dsn, invitation.project, invitation.person, token)
    with SqliteStore.open(config.folder) as here, PostgresStore(link.dsn, token) as there:
        there.load(here.dump())
    write_team_link(config.folder, link)
    return link


def _refuse_joined(config: Config) -> None:
    """Also while a proxy is at work: what it keeps meanwhile would not go along."""
    if (link := read_team_link(config.folder)) is not None:
        raise BadInput(
            f"{config.project} is in {link.project} already; leave it first: hotset team leave"
        )
    with exclusive_use(private_folder(config.folder)):
        pass


def _read(text: str) -> _Invitation:
    try:
        packed = base64.urlsafe_b64decode(text.strip().removeprefix(_PREFIX))
        return decode(packed, _Invitation)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise BadInput(
            "this is no invitation; an owner of the project makes one: hotset team invite NAME"
        ) from None


def joined(config: Config) -> TeamLink:
    """Raises `NotFound` where the project is not a team's."""
    link = read_team_link(config.folder)
    if link is None:
        raise NotFound(
            f"{config.project} is no project of a team; make one: hotset team create, or join one: "
            "hotset team join INVITATION"
        )
    return link


@dataclass(frozen=True, slots=True)
class TeamStanding:
    """How a checkout stands to its team's database."""

    project: str
    person: str
    database: str
    waiting: int
    """Groups of deposits that still have to go there."""
    trouble: str
    """Why the database cannot be used now; empty if it can."""


def standing(config: Config) -> TeamStanding:
    link = joined(config)
    with SqliteStore.open_to_look(config.folder) as store:
        waiting = store.waiting()
    trouble = ""
    try:
        with translate_errors(address(link.dsn)):
            link.connect().close()
    except HotsetError as error:
        trouble = str(error)
    return TeamStanding(link.project, link.person, address(link.dsn), waiting, trouble)


def invite(link: TeamLink, person: str, role: str) -> str:
    """An invitation as a line of text; for yourself, one for another machine."""
    with translate_errors(address(link.dsn)):
        people = People(link.dsn, link.token)
        secret = people.invite_self() if person == link.person else people.invite(person, role)
    packed = msgspec.json.encode(_Invitation(link.dsn, link.project, person, secret))
    return _PREFIX + base64.urlsafe_b64encode(packed).decode()


def everyone(link: TeamLink) -> Sequence[Person]:
    with translate_errors(address(link.dsn)):
        return People(link.dsn, link.token).everyone()


def accesses(link: TeamLink, most: int) -> Sequence[Access]:
    with translate_errors(address(link.dsn)):
        return People(link.dsn, link.token).accesses(most)


def revoke(link: TeamLink, person: str) -> int:
    """How many tokens of a person ended."""
    with translate_errors(address(link.dsn)):
        return People(link.dsn, link.token).revoke(person)


def rotate(config: Config, link: TeamLink) -> None:
    """Take a new token in place of this machine's."""
    with translate_errors(address(link.dsn)):
        token = People(link.dsn, link.token).rotate()
    write_team_link(config.folder, TeamLink(link.dsn, link.project, link.person, token))


def leave(config: Config) -> None:
    """Work alone from here on; everything that is here stays. Raises `StoreBusy` while a proxy is
    at work."""
    with exclusive_use(config.folder):
        pass
    remove_team_link(config.folder)
