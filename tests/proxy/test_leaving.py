"""A client that leaves takes its call with it, at once."""

from __future__ import annotations

import socket

import pytest

from hotset.nouns.turn import Outcome
from hotset.store.port import Where
from hotset.testing import Say
from hotset.testing.upstream.faults import Gate, Hold
from tests.proxy.wire import DIALECTS, PATHS, post, question
from tests.waiting import wait_until

_SOON = (
    2.0  # the upstream would hold on for ever; `make bench-overhead` measures how soon it really is
)


def _send(world, dialect: str, body: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", world.address.port))
    connection.sendall(
        f"POST /{world.address.token}{PATHS[dialect]} HTTP/1.1\r\nHost: "
        f"127.0.0.1:{world.address.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    return connection


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_before_the_first_byte_cancels_the_upstream(
    pair, dialect, stream, monotonic_gap
):
    world = pair([Say("never", fault=Hold(Gate()))])
    connection = _send(world, dialect, question(dialect, "hello", stream=stream))
    world.upstream.wait_for_requests(1)

    with monotonic_gap() as gap:
        connection.close()
        world.upstream.wait_for_cancel(0)

    assert gap.seconds < _SOON


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_that_leaves_in_mid_stream_cancels_the_upstream_and_what_came_is_kept(
    pair, dialect, monotonic_gap
):
    world = pair([Say("first words " * 60 + "rest", fault=Hold(Gate(), events=9))])
    connection = _send(world, dialect, question(dialect, "hello", stream=True))
    got = b""
    while b"first" not in got:
        got += connection.recv(65536)

    with monotonic_gap() as gap:
        connection.close()
        world.upstream.wait_for_cancel(0)

    assert gap.seconds < _SOON
    wait_until(lambda: world.turns()[0].outcome is Outcome.LEFT)
    with world.store() as store:
        kept = b"".join(store.content(page.digest) for page in store.pages(Where()))
    assert b"first" in kept
    assert b"rest" not in kept


def test_a_client_that_leaves_in_the_middle_of_its_request_reaches_no_upstream(pair):
    world = pair()
    body = question("openai-chat", "hello")
    with _send(world, "openai-chat", body + b"") as whole:
        whole.recv(1)
    connection = socket.create_connection(("127.0.0.1", world.address.port))
    connection.sendall(
        f"POST /{world.address.token}/v1/chat/completions HTTP/1.1\r\nHost: "
        f"127.0.0.1:{world.address.port}\r\n"
        f"Content-Length: {len(body) + 10}\r\n\r\n".encode()
        + body
    )
    connection.close()

    assert post(world.address, "openai-chat", question("openai-chat", "the next one")).status == 200
    assert len(world.upstream.requests) == 2
    assert len(world.turns()) == 2
