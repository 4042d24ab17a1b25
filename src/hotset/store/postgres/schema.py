"""The schema of a team's store, and the desks in it."""

from __future__ import annotations

import uuid
from importlib.resources import files

import psycopg
from psycopg.conninfo import conninfo_to_dict

from hotset.errors import NotFound, StoreFailed, StoreTooNew
from hotset.store.postgres.dialect import Desk

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


def make_desk(dsn: str, project: str, person: str) -> None:
    """Make the desk of a person in a project, and the project, where they are missing."""
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "INSERT INTO project (id, name) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            [uuid.uuid4(), project],
        )
        connection.execute(
            "INSERT INTO desk (project, id, person) "
            "SELECT id, %s, %s FROM project WHERE name = %s ON CONFLICT DO NOTHING",
            [uuid.uuid4(), person, project],
        )


def find_desk(dsn: str, project: str, person: str) -> Desk:
    """The desk of a person in a project. Raises `NotFound`."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "SELECT desk.project, desk.id FROM desk JOIN project ON project.id = desk.project "
            "WHERE project.name = %s AND desk.person = %s",
            [project, person],
        ).fetchone()
    if row is None:
        raise NotFound(
            f"{person} has no desk in project {project} of {address(dsn)}; make one: "
            f"hotset team join {project}"
        )
    return Desk(*map(str, row))
