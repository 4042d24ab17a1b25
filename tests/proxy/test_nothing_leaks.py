"""A program may start and stop proxies all day, with calls that fail or are left in the middle."""

from __future__ import annotations

import gc
import socket
import threading
from http.client import HTTPException
from pathlib import Path

import pytest

from hotset.files.lru import CACHES
from hotset.files.scope import PROCESS
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.upstream.faults import Gate, Hold, Reset
from tests.proxy.wire import PATHS, post, question
from tests.waiting import wait_until

DIALECT = "anthropic"
STARTS = 50


def answer(request):
    text = request.decoded
    if b"left at once" in text:
        return Say("never", fault=Hold(Gate()))
    if b"left in the middle" in text:
        return Say("first words " * 60, fault=Hold(Gate(), events=9))
    if b"fails" in text:
        return Say("half of this", fault=Reset(events=3))
    return Say("Done.")


def leave(address, upstream: ScriptedUpstream, text: str, *, begun: bool) -> None:
    """A call whose client goes away, before its reply or in the middle of it."""
    sent = len(upstream.requests)
    body = question(DIALECT, text, stream=True)
    with socket.create_connection(("127.0.0.1", address.port)) as connection:
        connection.sendall(
            f"POST /{address.token}{PATHS[DIALECT]} HTTP/1.1\r\nHost: 127.0.0.1:{address.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        got = b""
        while begun and b"first" not in got:
            got += connection.recv(65536)
        upstream.wait_for_requests(sent + 1)


def one_start(folder: Path, upstream: ScriptedUpstream, number: int) -> None:
    with LocalProxy(folder, anthropic_url=upstream.anthropic_url) as proxy:
        assert post(proxy.address, DIALECT, question(DIALECT, f"hello {number}")).status == 200
        leave(proxy.address, upstream, f"left in the middle {number}", begun=True)
        leave(proxy.address, upstream, f"left at once {number}", begun=False)
        with pytest.raises((OSError, HTTPException)):
            post(proxy.address, DIALECT, question(DIALECT, f"fails {number}", stream=True))
        wait_until(lambda: proxy.machine.tally.left == 2)


def standing() -> dict[str, int]:
    """What this process has: threads, open files, tasks, and caches with entries."""
    gc.collect()
    counted = PROCESS.counts()[0]
    return {
        "threads": threading.active_count(),
        "files": len([*Path("/proc/self/fd").iterdir()]),
        "threads of scopes": counted.threads,
        "tasks of scopes": counted.tasks,
        "files of scopes": counted.files,
        "caches": len(CACHES._every()),
    }


@pytest.mark.slow
@pytest.mark.row("V14")
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts files as Linux does")
def test_fifty_starts_and_stops_with_calls_left_in_the_middle_leave_nothing(tmp_path):
    with ScriptedUpstream(answer) as upstream:
        one_start(tmp_path / "first", upstream, 0)  # what is loaded once, and stays
        wait_until(lambda: "hotset-bounded" not in [each.name for each in threading.enumerate()])
        before = standing()
        for number in range(STARTS):
            one_start(tmp_path / f"data{number % 5}", upstream, number)
        wait_until(lambda: all(standing()[name] <= count for name, count in before.items()))
