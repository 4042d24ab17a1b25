"""Whether the store of a folder is kept like a desk of a team's database, and which one."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hotset.errors import NotFound, StoreFailed
from hotset.files.open import read_regular
from hotset.files.write import write_atomically
from hotset.typed import decode

if TYPE_CHECKING:
    from hotset.store.postgres.connection import PostgresConnection

_NAME = "team.json"
_MOST_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class TeamLink:
    """A desk of a team's database, and the token that opens it."""

    dsn: str = field(repr=False)
    project: str
    person: str
    token: str = field(repr=False)

    def connect(self) -> PostgresConnection:
        """Raises `StoreFailed` where the token is not good any more, and psycopg's own errors."""
        from hotset.store.postgres.connection import PostgresConnection  # noqa: PLC0415 - an extra

        return PostgresConnection(self.dsn, self.token)


def read_team_link(folder: Path) -> TeamLink | None:
    """The link of a data folder, if it has one. Raises `StoreFailed` for one that cannot be
    read."""
    path = folder / _NAME
    if not os.path.lexists(path):
        return None
    try:
        return decode(read_regular(path, _MOST_BYTES), TeamLink)
    except (NotFound, msgspec.DecodeError) as error:
        raise StoreFailed(
            f"{path} cannot be read ({error}); join the project again: hotset team join"
        ) from error


def write_team_link(folder: Path, link: TeamLink) -> None:
    write_atomically(folder / _NAME, msgspec.json.encode(link))


def remove_team_link(folder: Path) -> None:
    (folder / _NAME).unlink(missing_ok=True)
