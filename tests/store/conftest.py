from __future__ import annotations

import pytest
from tests.postgres_server import TeamDatabase, postgres_server


@pytest.fixture(scope="session")
def postgres():
    """A database with the tables of a team's store, for all tests of this process."""
    with postgres_server() as dsn:
        yield TeamDatabase(dsn)
