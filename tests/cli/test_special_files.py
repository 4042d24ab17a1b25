"""A pipe, a socket or a folder where the store should be: refused at once with a sentence, whatever
is asked."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from hotset.testing import ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.cli.conftest import Desk, in_a_process
from tests.proxy.wire import post, question
from tests.waiting import ask


def _bound(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's name may have 107 characters
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


SPECIAL: dict[str, Callable[[Path], None]] = {
    "a pipe": lambda path: os.mkfifo(path, 0o600),
    "a socket": _bound,
    "a folder": lambda path: path.mkdir(),
}
COMMANDS = (
    ("verify",),
    ("repair", "--yes"),
    ("sessions",),
    ("show", "last"),
    ("diff", "last", "last"),
    ("savings",),
    ("search", "x"),
    ("recall", "p1"),
    ("memory", "list"),
    ("export", "-o", "out.jsonl"),
)


@pytest.mark.parametrize("what", SPECIAL)
@pytest.mark.parametrize("beside", ["", "-wal"])
@pytest.mark.rest_slow
def test_what_is_no_file_is_never_waited_for(desk: Desk, what: str, beside: str):
    desk.data.mkdir(mode=0o700)
    if beside:
        desk.run("memory", "add", "We use pnpm.")
        (desk.data / f"store.db{beside}").unlink(missing_ok=True)
    SPECIAL[what](desk.data / f"store.db{beside}")
    ran = in_a_process(
        desk, ("doctor", "--json"), desk.environ(), b""
    )  # ends after 60 s where it waits
    assert "not a regular file" in ran.out
    assert "is not a regular file; move it away" in desk.run("status").out
    for command in COMMANDS if not beside else COMMANDS[:1]:
        ran = desk.run(*command)
        assert ran.code == 2, (command, ran)
        assert "is not a regular file; move it away" in ran.err, (command, ran)


@pytest.mark.parametrize("what", SPECIAL)
def test_the_proxy_serves_beside_it_and_says_why_it_keeps_nothing(tmp_path: Path, what: str):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    SPECIAL[what](data / "store.db")
    with ScriptedUpstream() as upstream, LocalProxy(data, openai_url=upstream.openai_url) as proxy:
        answer = post(proxy.address, "openai-chat", question("openai-chat", "hi"))
        assert answer.status == 200
        assert "not a regular file" in (answer.header("x-hotset-degraded") or "")
        assert "not a regular file" in str(ask(proxy.address))
