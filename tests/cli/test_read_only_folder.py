"""A data folder that cannot be written: commands that read, read; the proxy passes calls through
and says so."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hotset.nouns.deposit import PageAdded, Remembered
from hotset.nouns.page import Kind
from hotset.store.sqlite import SqliteStore
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.store_memory_contract import fact
from tests.cli.conftest import LARGE, Desk, Ran, desk_in, fill, sending_to
from tests.cli.in_one_process import run_all
from tests.proxy.wire import Address, post, question
from tests.waiting import wait_until

_LATE = "said right before the crash"
_STRANGER = 12345
_RIGHTS_HOLD = (
    "import ctypes, os, sys\n"
    "for right in (1, 2, 3): "
    # to read, write and change what one may not
    "ctypes.CDLL(None).prctl(24, right, 0, 0, 0)\n"
    "os.execv(sys.argv[1], sys.argv[1:])"
)
"""Root may write everywhere; without these capabilities the modes of files hold for root as for
everybody."""


class Restricted(Desk):
    """A desk of a user for whom the modes of files hold."""

    def command(self, *arguments: str) -> list[str]:
        return self._restricted(super().command(*arguments))

    def run_all(self, *commands: tuple[str, ...]) -> list[Ran]:
        return run_all(self, commands, before=self._restricted([]))

    def _restricted(self, command: list[str]) -> list[str]:
        return [sys.executable, "-c", _RIGHTS_HOLD, *command] if os.geteuid() == 0 else command


def _restricted(self, command: list[str]) -> list[str]:
    return [sys.executable, "-c", _RIGHTS_HOLD, *command] if os.geteuid() == 0 else command


def _restricted(
    place: Path, *, crashed: bool = False, mode: int = 0o500, file_mode: int = 0o400
) -> Restricted:
    desk = desk_in(place)
    fill(desk.data)
    with closing(SqliteStore.open(desk.data)) as store:
        store.keep(Remembered((fact("1", text="The clock was wrong."),))).result(120)
    if crashed:
        live = place / "live"
        shutil.move(desk.data, live)
        with closing(SqliteStore.open(live)) as store:
            session = next(store.sessions()).id
            store.keep(PageAdded(session, "a", Kind.FINDING, _LATE.encode(), 1.0)).result(120)
            shutil.copytree(live, desk.data, ignore=shutil.ignore_patterns("*-shm"))
    for path in desk.data.iterdir():
        path.chmod(file_mode)
    desk.data.chmod(mode)
    return Restricted(desk.home, desk.project, desk.data, desk.env)


@pytest.fixture(params=["closed", "crashed"])
def locked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Restricted]:
    desk = _restricted(tmp_path, crashed=request.param == "crashed")
    yield desk
    desk.data.chmod(0o700)


_READS = (
    ("status",),
    ("sessions",),
    ("show", "last"),
    ("recall", "toolu_1"),
    ("search", "clock"),
    ("diff", "last", "2"),
    ("savings",),
    ("export",),
    ("verify",),
    ("memory", "list"),
    ("memory", "search", "clock"),
)


@pytest.mark.row("V1")
@pytest.mark.rest_slow
def test_commands_that_read_read_and_those_that_write_say_why_they_cannot(locked: Restricted):
    before = {path.name: path.read_bytes() for path in locked.data.iterdir()}

    *ran, doctor, wrote, imported = locked.run_all(
        *_READS, ("doctor",), ("memory", "add", "It is slow."), ("import", "-")
    )

    read = dict(zip(_READS, ran, strict=True))
    assert {words: each.code for words, each in read.items()} == dict.fromkeys(_READS, 0), [
        each.err for each in ran
    ]
    assert read["recall", "toolu_1"].raw == LARGE.encode()
    assert (_LATE in read["export",].out) == ("store.db-wal" in before)
    assert (doctor.code, "cannot be written" in doctor.out) == (2, True)
    assert (wrote.code, "cannot be written" in wrote.err) == (2, True)
    assert (imported.code, "cannot be written" in imported.err) == (2, True)
    assert {path.name: path.read_bytes() for path in locked.data.iterdir()} == before


@pytest.mark.row("V1")
@pytest.mark.rest_slow
def test_the_proxy_passes_calls_through_and_says_that_nothing_is_kept(locked: Restricted):
    ready = locked.home / "ready.json"
    with (
        ScriptedUpstream(lambda _: Say("an answer")) as upstream,
        (locked.home / "up.log").open("wb") as log,
    ):
        words = ("up", "--port", "0", "--no-index", "--ready-file", str(ready))
        up = locked.start(*words, env=sending_to(upstream), stdout=log, stderr=log)
        try:
            wait_until(lambda: ready.exists() or up.poll() is not None)
            assert ready.exists(), (locked.home / "up.log").read_text()
            root = json.loads(ready.read_bytes())["anthropic_base_url"]
            port, token = root.removeprefix("http://127.0.0.1:").split("/")
            address = Address(int(port), token, up.pid, "", "", 0.0)
            answer = post(address, "anthropic", question("anthropic", "hello"))
        finally:
            up.send_signal(signal.SIGTERM)
            assert up.wait(120) == 0, (locked.home / "up.log").read_text()
    assert (answer.status, b"an answer" in answer.body) == (200, True)
    assert "cannot be written" in (answer.header("x-hotset-degraded") or "")
    assert "keeps nothing" in (locked.home / "up.log").read_text()
    assert "Traceback" not in (locked.home / "up.log").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_of_another_user_is_read_where_it_may_be_and_never_written(tmp_path: Path):
    desk = _restricted(tmp_path, mode=0o755, file_mode=0o444)
    for path in (desk.data, *desk.data.iterdir()):
        os.chown(path, _STRANGER, _STRANGER)

    recalled, wrote = desk.run_all(("recall", "toolu_1"), ("memory", "add", "The mirror is slow."))

    assert recalled.raw == LARGE.encode()
    assert (wrote.code, "another user" in wrote.err) == (2, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="a disk can only be mounted by root")
def test_a_read_only_disk_is_read(tmp_path: Path):
    desk = desk_in(tmp_path)
    fill(desk.data)
    bound = subprocess.run(
        ["mount", "--bind", desk.data, desk.data], capture_output=True, check=False
    )
    if bound.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", desk.data], check=True)
        assert desk.run("recall", "toolu_1").raw == LARGE.encode()
        assert desk.run("verify").code == 0
        assert "cannot be written" in desk.run("doctor").out
    finally:
        subprocess.run(["umount", desk.data], check=True)
