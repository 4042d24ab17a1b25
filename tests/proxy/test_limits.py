"""What one client may take of the proxy: header bytes, time, connections, memory. Every limit
through a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from hotset.nouns.deposit import CommitReceipt, Deposit, RequestReceived
from hotset.nouns.turn import Outcome
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.proxy.address import Address, read_note
from hotset.surfaces.proxy.limits import LONGEST_URL, MOST_HEADER_BYTES, MOST_HEADERS, Limits
from hotset.testing import RamStore, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.upstream.faults import Gate, Hold
from tests.proxy.test_killed import Up, serving
from tests.proxy.wire import PATHS, Answer, post, question
from tests.waiting import ask, wait_until

_UNREAD = 60
_STREAM_BYTES = 20 << 20
_MOST_GROWTH_MB = 150.0
_MOST_CPU_SECONDS = 1.0
_SECONDS = 120.0
_NO_INDEX = {"HOTSET_SEARCH": "off"}


async def _endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A provider whose streams have 20 MB, and whose documents one word."""
    text = "all that can be said about it " * 500
    delta = {
        "id": "chatcmpl-1",
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}],
    }
    event = f"data: {json.dumps(delta)}\n\n".encode()
    said = {
        "id": "chatcmpl-2",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Yes."},
                "finish_reason": "stop",
            }
        ],
    }
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            body = await reader.readexactly(
                int(head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
            )
            if json.loads(body).get("stream"):
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                    b"Transfer-Encoding: chunked\r\n\r\n"
                )
                for _ in range(_STREAM_BYTES // len(event)):
                    writer.write(b"%x\r\n%b\r\n" % (len(event), event))
                    await writer.drain()
                writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
            else:
                whole = json.dumps(said).encode()
                writer.write(
                    (
                        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                        b"%d\r\n\r\n%b"
                    )
                    % (len(whole), whole)
                )
            await writer.drain()
    writer.transport.abort()


@contextlib.asynccontextmanager
async def _provider() -> AsyncIterator[str]:
    living: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        living.add(asyncio.current_task())
        await _endless(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield "http://{}:{}".format(*server.sockets[0].getsockname())
    finally:
        server.close()
        await asyncio.wait(living)  # the proxy has ended by then


def _request(address: Address, body: bytes, path: str = PATHS["openai-chat"]) -> bytes:
    return (
        f"POST /{address.token}{path} HTTP/1.1\r\nHost: 127.0.0.1:{address.port}\r\n"
        f"Connection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def _small_call(address: Address, words: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
    writer.write(_request(address, question("openai-chat", words)))
    got = await reader.read()
    writer.close()
    return got


def _worked(up: Up) -> float:
    """Seconds of CPU time that it has had so far."""
    user, system = (
        Path(f"/proc/{up.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    )
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _megabytes(up: Up) -> float:
    return (
        int(Path(f"/proc/{up.process.pid}/status").read_text().partition("VmRSS:")[2].split()[0])
        / 1024
    )


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the size of a process is read from /proc"
)
@pytest.mark.slow
def test_a_small_call_beside_60_unread_streams_of_20_mb_waits_for_little_and_the_proxy_stays_small(
    tmp_path,
):
    async def run() -> tuple[list[float], float]:
        async with asyncio.timeout(_SECONDS), _provider() as url:
            with contextlib.ExitStack() as stack:
                up = await asyncio.to_thread(
                    stack.enter_context, serving(tmp_path / "data", url, **_NO_INDEX)
                )
                await _small_call(up.address, "the first one")  # what is loaded for it stays
                at_rest = _megabytes(up)
                unread = [
                    stack.enter_context(socket.create_connection(("127.0.0.1", up.address.port)))
                    for _ in range(_UNREAD)
                ]
                for n, connection in enumerate(unread):
                    connection.sendall(
                        _request(up.address, question("openai-chat", f"number {n}", stream=True))
                    )
                for connection in unread:  # each has begun, and nothing of it is read
                    assert (
                        await asyncio.to_thread(connection.recv, 12, socket.MSG_PEEK)
                        == b"HTTP/1.1 200"
                    )
                took: list[float] = []
                for n in range(10):
                    before = _worked(up)
                    assert b"Yes." in await _small_call(up.address, f"a small one, {n}")
                    took.append(_worked(up) - before)
                growth = _megabytes(up) - at_rest
                for connection in unread:
                    connection.close()
                return took, growth

    took, growth = asyncio.run(run())

    assert max(took) < _MOST_CPU_SECONDS
    assert growth < _MOST_GROWTH_MB


def _got(connection: socket.socket) -> bytes:
    """Everything until the connection closes."""
    connection.settimeout(_SECONDS)
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            got += piece
    return got


@contextlib.contextmanager
def _connected(address: Address) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", address.port)) as connection:
        yield connection


def _head(address: Address, path: str = "/none", headers: str = "", token: str = "wrong") -> bytes:
    return (
        f"GET /{token}{path} HTTP/1.1\r\nHost: 127.0.0.1:{address.port}\r\n{headers}\r\n".encode()
    )


TOO_MUCH = {
    "a URL that is too long": (414, lambda at: _head(at, "/" + "u" * LONGEST_URL)),
    "a URL without an end": (414, lambda at: _head(at, "/" + "u" * (300 << 10))[: 290 << 10]),
    "a header that is too large": (
        431,
        lambda at: _head(at, headers=f"x: {'v' * MOST_HEADER_BYTES}\r\n"),
    ),
    "a header without an end": (
        431,
        lambda at: _head(at, headers=f"x: {'v' * (300 << 10)}")[: 290 << 10],
    ),
    "a name of a header without an end": (
        431,
        lambda at: _head(at, headers="n" * (300 << 10))[: 290 << 10],
    ),
    "headers that are too large together": (
        431,
        lambda at: _head(at, headers="".join(f"x{n}: {'v' * 999}\r\n" for n in range(70))),
    ),
    "too many headers": (
        431,
        lambda at: _head(at, headers="".join(f"x{n}: 1\r\n" for n in range(MOST_HEADERS))),
    ),
}


@pytest.mark.row("C9")
@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_is_too_large_is_refused_before_the_token_is_looked_at(pair, name):
    status, attack = TOO_MUCH[name]
    world = pair(lambda _: Say("Yes."))
    with _connected(world.address) as connection:
        connection.sendall(attack(world.address))
        head, _, body = _got(connection).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"connection: close" in head
    assert json.loads(body)["error"]["message"].startswith("hotset: ")
    assert world.upstream.requests == ()
    assert post(world.address, "openai-chat", question("openai-chat", "still there?")).status == 200


def test_as_much_as_is_allowed_passes(pair):
    world = pair(lambda _: Say("Yes."))
    headers = {"content-type": "application/json", "x-one": "v" * (60 << 10)}
    assert (
        post(
            world.address, "openai-chat", question("openai-chat", "with a long header"), headers
        ).status
        == 200
    )
    assert world.upstream.requests[0].header("x-one") == headers["x-one"]
    many = {f"x{n}": "1" for n in range(MOST_HEADERS - 20)}
    assert (
        post(world.address, "openai-chat", question("openai-chat", "with many"), many).status == 200
    )


def test_a_second_request_of_a_connection_is_bounded_as_the_first(pair):
    world = pair(lambda _: Say("Yes."))
    with _connected(world.address) as connection:
        connection.sendall(_head(world.address))
        while b"lacks" not in connection.recv(1 << 16):
            pass
        connection.sendall(_head(world.address, headers=f"x: {'v' * (300 << 10)}")[: 290 << 10])
        assert _got(connection).startswith(b"HTTP/1.1 431 ")


HALF = {
    "nothing": lambda _: b"",
    "half a request line": lambda _: b"POST /v1/chat",
    "half the headers": lambda at: _head(at)[:-2],
    "half the headers of a second request": lambda at: _head(at) + _head(at)[:-2],
    "half a body": lambda at: _request(at, question("openai-chat", "half"))[:-3],
    "half a body of a call that passes unread": lambda at: _request(at, b"half", "/v1/files")[:-1],
    "no second request": _head,
    "half a body behind a refusal": lambda at: _request(replace(at, token="wrong"), bytes(1000))[
        :-1
    ],
}


@pytest.mark.row("C9")
@pytest.mark.parametrize("name", HALF)
@pytest.mark.rest_slow
def test_a_connection_that_is_idle_or_stays_half_sent_is_closed(pair, name):
    world = pair(lambda _: Say("Yes."), limits=Limits(header_seconds=0.5, stall_seconds=0.5))
    with _connected(world.address) as connection:
        connection.sendall(HALF[name](world.address))
        _got(connection)  # returns when it is closed
    assert post(world.address, "openai-chat", question("openai-chat", "still there?")).status == 200


@pytest.mark.slow
def test_headers_that_come_byte_by_byte_get_no_more_time(pair):
    world = pair(lambda _: Say("Yes."), limits=Limits(header_seconds=0.5))
    with _connected(world.address) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nx: ")
        connection.settimeout(0.01)
        got = b""
        for _ in range(10_000):
            with contextlib.suppress(TimeoutError):
                got = connection.recv(1 << 16)
                break
            connection.sendall(b"v")
    assert got.startswith(b"HTTP/1.1 408 ")


@pytest.mark.slow
def test_a_call_whose_provider_thinks_and_a_body_that_comes_slowly_but_steadily_are_let_be(pair):
    gate = Gate()
    world = pair(
        [Say("Thought.", fault=Hold(gate)), Say("Heard.")],
        limits=Limits(header_seconds=5.0, stall_seconds=8.0),
    )
    with _connected(world.address) as thinks, _connected(world.address) as slow:
        thinks.sendall(_request(world.address, question("openai-chat", "think")))
        world.upstream.wait_for_requests(1)
        whole = _request(world.address, question("openai-chat", "slowly"))
        for byte in (whole[:-8], *(whole[at : at + 1] for at in range(len(whole) - 8, len(whole)))):
            slow.sendall(byte)
            slow.settimeout(1.25)
            with contextlib.suppress(TimeoutError):
                assert slow.recv(1, socket.MSG_PEEK)
        gate.open()
        assert b"Thought." in _got(thinks)
        assert b"Heard." in _got(slow)


@pytest.mark.slow
def test_a_client_that_reads_nothing_for_too_long_is_left_and_so_is_its_provider(pair):
    world = pair(lambda _: Say("word " * 1_000_000), limits=Limits(unread_seconds=0.5))
    with _connected(world.address) as connection:
        connection.sendall(
            _request(world.address, question("openai-chat", "tell me all", stream=True))
        )
        world.upstream.wait_for_cancel(0, 60)
        got = _got(connection)
    assert b"[DONE]" not in got
    wait_until(lambda: ask(world.address)["left"] == 1)


def test_more_connections_than_are_allowed_are_refused_and_there_is_room_again_when_one_closes(
    pair,
):
    world = pair(lambda _: Say("Yes."), limits=Limits(connections=8))
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(_connected(world.address)) for _ in range(8)]
        for connection in held:
            connection.sendall(_head(world.address)[:-2])
        with _connected(world.address) as more:
            assert _got(more).startswith(b"HTTP/1.1 503 ")
        held.pop().close()
        wait_until(
            lambda: (
                post(world.address, "openai-chat", question("openai-chat", "room?")).status == 200
            )
        )


@pytest.mark.row("C9")
@pytest.mark.parametrize("where", ["nowhere", "pool", "thread", "task"])
@pytest.mark.slow
def test_a_proxy_that_is_told_to_stop_ends_whatever_a_thread_does_and_its_store_is_closed(
    tmp_path, where
):
    folder, ready = tmp_path / "data", tmp_path / "ready"
    folder.mkdir(mode=0o700)
    gate = Gate()
    with ScriptedUpstream([Say("Kept."), Say("never", fault=Hold(gate))]) as upstream:
        command = [
            sys.executable,
            "-m",
            "tests.proxy.stopping_with_a_hung_thread",
            str(folder),
            upstream.url,
            str(ready),
            where,
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            try:
                wait_until(lambda: ready.exists() and read_note(folder) is not None)
                address = read_note(folder)
                assert (
                    post(address, "openai-chat", question("openai-chat", "keep this")).status == 200
                )
                with _connected(address) as connection:
                    if where == "pool":  # a call is under way, and never ends
                        connection.sendall(_request(address, question("openai-chat", "think")))
                        upstream.wait_for_requests(2, 30)
                    process.send_signal(signal.SIGTERM)
                    assert process.wait(_SECONDS) == (where == "task")
                said = process.stdout.read().splitlines()
                assert b"stopped" in said or where == "task"
            finally:
                if process.poll() is None:
                    process.kill()
    assert not (folder / "store.db-wal").exists() or not (folder / "store.db-wal").stat().st_size, (
        "the store was not closed"
    )
    with SqliteStore.open(folder) as store:
        assert list(store.verify()) == []
        assert (
            next(turn.outcome for session in store.sessions() for turn in store.turns(session.id))
            is Outcome.DONE
        )


@pytest.mark.parametrize("tools", [False, True], ids=["relayed", "looked into"])
def test_a_packed_reply_that_is_made_to_take_long_holds_up_nobody(tmp_path, tools):
    """With tools of ours it must be unpacked before the client sees it; without them only to be
    kept."""
    nested = gzip.compress(gzip.compress(b"") * 500_000)
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip, gzip\r\n"
        b"Content-Length: %d\r\n\r\n"
    )

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while said := (await reader.readuntil(b"\r\n\r\n")).lower():
                await reader.readexactly(
                    int(said.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
                )
                writer.write(head % len(nested) + nested)
        writer.close()

    async def run() -> tuple[Answer, float]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        proxy = LocalProxy(tmp_path / "data", openai_url=f"http://127.0.0.1:{port}/v1")
        await asyncio.to_thread(proxy.__enter__)
        before = time.process_time()
        more = (
            {
                "tools": [
                    {
                        "type": "function",
                        "function": {"name": "f", "parameters": {"type": "object"}},
                    }
                ]
            }
            if tools
            else {}
        )
        body = question("openai-chat", "packed?", **more)
        got = await asyncio.to_thread(post, proxy.address, "openai-chat", body)
        await asyncio.to_thread(proxy.__exit__, None, None, None)
        server.close()
        return got, time.process_time() - before

    got, took = asyncio.run(run())

    assert (got.status, got.body) == (200, nested) if not tools else got.status == 502
    assert took < 20.0, "of CPU time: it takes one, and took minutes"


class Hangs(RamStore):
    """A store that keeps nothing any more, and says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.held = 0

    def keep(self, *deposits: Deposit) -> Future[CommitReceipt]:
        self.held += sum(
            len(each.request.raw) for each in deposits if isinstance(each, RequestReceived)
        )
        return Future()


@pytest.mark.slow
def test_requests_that_wait_for_a_store_that_is_stuck_are_bounded_by_their_bytes(pair):
    store = Hangs()
    world = pair(lambda _: Say("Yes."), open_store=lambda: store, patience=1)
    post(world.address, "openai-chat", question("openai-chat", "the first"))
    wait_until(lambda: ask(world.address)["store"] != "ok")

    for n in range(9):
        got = post(world.address, "openai-chat", question("openai-chat", f"{n}" + "x" * (8 << 20)))
        assert got.status == 200
        assert got.header("x-hotset-degraded")

    assert store.held < 65 << 20
