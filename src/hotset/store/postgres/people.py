"""The projects in a team's store and the people in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

import psycopg
from psycopg import errors

from hotset.errors import BadInput
from hotset.store.postgres.schema import address

_DAYS = 90  # that a token is good


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody in a project."""

    name: str
    role: str
    commits: int
    """How often they wrote."""
    tokens: int
    """That are good."""
    expires: datetime | None
    """The last of them."""


@dataclass(frozen=True, slots=True)
class Access:
    """What somebody did to a project or its people."""

    time: datetime
    person: str
    did: str
    about: str


def make_project(dsn: str, name: str, owner: str) -> str:
    """A new project; returns an invitation for its first owner. Raises `BadInput` if there is one
    of this name."""
    with psycopg.connect(dsn) as connection:
        try:
            [invitation] = connection.execute(
                "SELECT make_project(%s, %s)", [name, owner]
            ).fetchone() or ("",)
        except errors.UniqueViolation:
            raise BadInput(
                f"there is a project {name} in {address(dsn)}; choose another name"
            ) from None
    return str(invitation)


class People:
    """What a person asks of the project to which their token belongs."""

    def __init__(self, dsn: str, token: str) -> None:
        self._dsn, self._token = dsn, token

    def invite(self, person: str, role: str) -> str:
        """An invitation, which is good once."""
        return str(self._ask("SELECT invite(%s, %s)", person, role)[0][0])

    def invite_self(self) -> str:
        """An invitation for another machine of one's own."""
        return str(self._ask("SELECT invite_self()")[0][0])

    def rotate(self, days: int = _DAYS) -> str:
        """A new token; the old one ends."""
        return str(self._ask("SELECT rotate_token(%s)", days)[0][0])

    def revoke(self, person: str) -> int:
        """How many tokens of a person ended."""
        return int(self._ask("SELECT revoke_tokens(%s)", person)[0][0])

    def everyone(self) -> Sequence[Person]:
        return [Person(*row) for row in self._ask("SELECT * FROM people()")]

    def accesses(self, most: int = 100) -> Sequence[Access]:
        """What was done in the project, the latest first; for its owners."""
        return [Access(*row) for row in self._ask("SELECT * FROM accesses(%s)", most)]

    def _ask(self, statement: LiteralString, *given: Any) -> Sequence[Any]:
        with psycopg.connect(self._dsn) as connection:
            connection.execute("SELECT set_config('hotset.token', %s, true)", [self._token])
            if connection.execute("SELECT FROM own_desk()").fetchone() is None:
                raise BadInput(
                    "your token for the team's store is not good any more; ask an owner of the "
                    "project for another invitation"
                )
            try:
                return connection.execute(statement, given).fetchall()
            except errors.InsufficientPrivilege as error:
                raise BadInput(str(error.diag.message_primary)) from None


def join_project(dsn: str, invitation: str, days: int = _DAYS) -> str:
    """The token of a gateway for an invitation. Raises `BadInput` if it is not good any more."""
    with psycopg.connect(dsn) as connection:
        [token] = connection.execute(
            "SELECT join_project(%s, %s)", [invitation, days]
        ).fetchone() or (None,)
    if token is None:
        raise BadInput(
            "this invitation was used, has expired or was revoked; ask an owner for another"
        )
    return str(token)
