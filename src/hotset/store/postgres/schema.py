"""The schema of a team's store."""

from __future__ import annotations

import secrets
from importlib.resources import files

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hotset.errors import BadInput, StoreFailed, StoreTooNew
from hotset.store.postgres.dialect import TABLE_NAMES

VERSION = 1
_LOCK = 0x686F7473  # of the advisory lock under which a schema is made


def address(dsn: str) -> str:
    """Where a store is, without the password."""
    parts = conninfo(dsn)
    return f"{parts.get('host', 'localhost')}/{parts.get('dbname', '')}"


def conninfo(dsn: str) -> dict[str, str]:
    """The parts of an address. Raises `BadInput` for none."""
    try:
        return {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    except psycopg.ProgrammingError as error:
        raise BadInput(
            f"not an address of PostgreSQL: {error}; one looks like postgresql://me@host/team"
        ) from None


def make_gateway(dsn: str) -> str:
    """The address for the gateways of a project: that of a new role which may do what they need,
    and nothing else."""
    name, password = f"hotset_{secrets.token_hex(6)}", secrets.token_urlsafe(24)
    with psycopg.connect(dsn) as connection:
        connection.execute(
            sql.SQL("CREATE ROLE {role} LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD {password}").format(
                role=sql.Identifier(name), password=sql.Literal(password)
            )
        )
    let_in(dsn, name)
    gateway = make_conninfo(dsn, user=name, password=password)
    psycopg.connect(gateway).close()  # the server lets it in, or a project would be made in vain
    return gateway


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
            for name in ("people.sql", "schema.sql"):
                connection.execute((files(__package__) / name).read_bytes())
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


def let_in(dsn: str, gateway: str) -> None:
    """Give a role of the database what gateways need, and nothing else."""
    role = sql.Identifier(gateway)
    with psycopg.connect(dsn) as connection:
        for statement in _GRANTS:
            connection.execute(sql.SQL(statement).format(role=role))


_GRANTS = (
    *(f"GRANT SELECT, INSERT, UPDATE ON {name} TO {{role}}" for name in TABLE_NAMES),
    *(
        f"GRANT EXECUTE ON FUNCTION {name} TO {{role}}"
        for name in (
            "hash_of",
            "own_desk",
            "count_commit",
            "invite",
            "invite_self",
            "join_project",
            "rotate_token",
            "revoke_tokens",
            "people",
            "accesses",
        )
    ),
)
