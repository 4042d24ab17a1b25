"""The schema of a team's store, and the projects in it."""

from __future__ import annotations

import uuid
from importlib.resources import files

import psycopg
from psycopg.conninfo import conninfo_to_dict

from hotset.errors import NotFound, StoreFailed, StoreTooNew

VERSION = 1
_LOCK = 0x686F7473  # of the advisory lock under which a schema is made


def address(dsn: str) -> str:
    """Where a store is, without the password."""
    parts = conninfo_to_dict(dsn)
    return f"{parts.get('host', 'localhost')}/{parts.get('dbname', '')}"


def make_schema(dsn: str) -> None:
    """Make the tables where they are missing. Raises `StoreTooNew`."""
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        version = _version(connection)
        if version > VERSION:
            raise StoreTooNew(
                f"{address(dsn)} was written by a newer hotset (format {version}, this one knows "
                f"up to {VERSION}): update hotset; nothing was changed"
            )
        if version == 0:
            connection.execute((files(__package__) / "schema.sql").read_bytes())
            connection.execute("CREATE TABLE hotset_schema (version bigint NOT NULL)")
            connection.execute("INSERT INTO hotset_schema VALUES (%s)", [VERSION])


def _version(connection: psycopg.Connection) -> int:
    found = connection.execute("SELECT to_regclass('hotset_schema')").fetchone()
    if found is None or found[0] is None:
        return 0
    row = connection.execute("SELECT version FROM hotset_schema").fetchone()
    if row is None:
        raise StoreFailed("the store's schema names no version; bring back a backup")
    return int(row[0])


def make_project(dsn: str, name: str) -> str:
    """The id of the project of this name, which is made if nobody has."""
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "INSERT INTO project (id, name) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            [uuid.uuid4(), name],
        )
    return find_project(dsn, name)


def find_project(dsn: str, name: str) -> str:
    """The id of the project of this name. Raises `NotFound`."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT id FROM project WHERE name = %s", [name]).fetchone()
    if row is None:
        raise NotFound(f"no project {name} in {address(dsn)}; make it: hotset team create {name}")
    return str(row[0])
