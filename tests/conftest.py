"""What holds for every test, wherever it stands."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter

import pytest
from hypothesis import settings

from hotset import tokens
from hotset.testing.proxy import PATIENCE
from tests.campaign import CAMPAIGN, sample

_MEMORY = "/dev/shm"
_ROOM = (
    2 << 30
)  # bytes; a run needs some hundred MB, for the folder of a test that passed is removed at once

# Before anything asks for a name: a machine whose name server is silent waits ten seconds or more
# for each.
os.environ.setdefault("RES_OPTIONS", "timeout:1 attempts:1")

os.environ["HOTSET_PATIENCE"] = str(PATIENCE)  # of programs that tests start with this environment

# For properties that do not say how many examples they need. The same ones in each run, but for the
# campaign: what fails there by chance becomes a test of its own, and nobody's change is refused for
# it.
settings.register_profile(
    "hotset", max_examples=sample(50, 100), derandomize=not CAMPAIGN, deadline=None
)
settings.load_profile("hotset")


def pytest_configure(config: pytest.Config) -> None:
    """Ctrl-C works. The folders of tests lie in memory, where there is room: much of their time is
    that of a disk which syncs."""
    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # as a shell leaves it to what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    kept = config.getini("tmp_path_retention_policy") == "all"  # they would pile up there
    if not kept and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as slow, of a test that is marked `rest_slow`, every case but the first one or the
    first few."""
    cases: Counter[str] = Counter()
    for item in items:
        if (mark := item.get_closest_marker("rest_slow")) is not None:
            name = item.nodeid.partition("[")[0]
            cases[name] += 1
            if cases[name] > (mark.args[0] if mark.args else 1):
                item.add_marker("slow")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: with as many, these did nothing for a quarter of the time."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session", autouse=True)
def _tokenizer() -> None:
    """Is loaded: on a busy machine the first plan of a process would wait for it longer than a call
    waits for its plan."""
    tokens.warm()


@pytest.fixture(scope="session")
def postgres():
    """A real PostgreSQL with the tables of a team's store, for all tests of this process."""
    from tests.postgres_server import TeamDatabase, postgres_server  # noqa: PLC0415 - few need it

    with postgres_server() as dsn:
        yield TeamDatabase(dsn)
