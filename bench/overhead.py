"""What the proxy adds: the same requests to the same upstream, directly and through `hotset up`,
interleaved in one run.

    make bench-overhead

The upstream answers with a canned reply, documents at once and streams after 50 ms, so every
microsecond that we add shows. Small bodies are new sessions; large ones are a conversation of 300
KB that is resent with one more message each time, as agents do, of words alone and of calls with
their results. The first look at each is told by itself. Then streams, one after the other and 200
at once, and how soon the upstream is rid of a call whose client has left.

`cpu_ms` is what the proxy's process computed for a call, background work included: on a machine
that others use it says more than the clock. A reply that came before it was on disk within 2 s (a
slow disk) is counted as `late`.

Time to the first byte and time to the last are told apart: a reply begins when its request is on
disk, which had the time that the provider took, and ends when it is on disk itself, so its end
costs a commit. A document waits for that as a whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

from bench.results import quantile, tell

SMALL, LARGE, STREAMS, ONE_BY_ONE, LEAVING = 2000, 300, 200, 60, 60
SESSION = 25  # calls of a long conversation
ROUNDS = 3  # of streams at once; the figures are those of the middle one
RESTS = 5.0  # seconds before memory is measured
EVENTS, EVERY = 40, 0.01
THINKS = 0.05  # seconds before a stream begins: every provider takes longer than a commit
WARM_UP = 50


def main() -> None:
    with canned_upstream() as (upstream, gone), served(upstream) as (address, pid):
        direct = ("127.0.0.1", upstream, "/v1/messages")
        through = ("127.0.0.1", address["port"], f"/{address['token']}/v1/messages")
        sets = {
            "1 KB bodies": compare(direct, through, pid, [small(n) for n in range(SMALL)]),
            "300 KB bodies": compare(direct, through, pid, list(conversation(LARGE)), SESSION),
            "300 KB with tools": compare(direct, through, pid, list(working(LARGE)), SESSION),
        }
        sets |= asyncio.run(streams(direct, through, pid))
        sets["a client leaves"] = {
            "direct": leaving(direct, gone),
            "hotset": leaving(through, gone),
        }
        time.sleep(RESTS)
        sets["memory"] = {"hotset": {"rss_mb": resident(pid), "peak_mb": resident(pid, "VmHWM")}}
    tell("overhead", sets)


def compare(direct: tuple, through: tuple, pid: int, bodies: list[bytes], session: int = 0) -> dict:
    """Each body goes both ways, in turns; the connections stay open. `session` is how many bodies
    are of one conversation."""
    times: dict[str, list[float]] = {"direct": [], "hotset": []}
    begun: dict[str, list[float]] = {"direct": [], "hotset": []}
    first: dict[str, list[float]] = {"direct": [], "hotset": []}
    with Line(*direct) as one, Line(*through) as other:
        for n, body in enumerate(bodies):
            if n == WARM_UP:
                spent = cpu(pid)
            pairs = [("direct", one), ("hotset", other)]
            for name, line in pairs if n % 2 else reversed(pairs):
                began, took = line.ask(body)
                if n >= WARM_UP:
                    begun[name].append(began * 1e3)
                    times[name].append(took * 1e3)
                    if session and n % session == 0:
                        first[name].append(took * 1e3)
    figures = {
        name: {
            "first_byte_p50_ms": quantile(begun[name], 0.5),
            "p50_ms": quantile(taken, 0.5),
            "p99_ms": quantile(taken, 0.99),
        }
        for name, taken in times.items()
    }
    for name, taken in first.items():
        if taken:
            figures[name]["first_look_p50_ms"] = quantile(taken, 0.5)
    for share in figures["direct"]:
        figures["hotset"][f"added_{share}"] = figures["hotset"][share] - figures["direct"][share]
    figures["hotset"]["late"] = other.late
    figures["hotset"]["cpu_ms"] = (cpu(pid) - spent) * 1e3 / (len(bodies) - WARM_UP)
    return figures


def cpu(pid: int) -> float:
    """Seconds that a process has computed, all its threads and what they do in the background
    together."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Line:
    """One kept-alive connection, with as little client in the way as can be."""

    def __init__(self, host: str, port: int, path: str) -> None:
        self.late = 0
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = (
            f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\n"
            f"Content-Type: application/json\r\n"
            f"Content-Length: "
        ).encode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, body: bytes) -> tuple[float, float]:
        """Seconds to the first byte of the reply, and to the last."""
        begun = time.perf_counter()
        self._socket.sendall(self._head + str(len(body)).encode() + b"\r\n\r\n" + body)
        got = self._socket.recv(65536)
        began = time.perf_counter() - begun
        while not got.endswith(REPLY):
            got += self._socket.recv(65536)
        took = time.perf_counter() - begun
        assert got.startswith(b"HTTP/1.1 200")
        if b"x-hotset-degraded" in got:
            assert LATE in got, got[:500]
            self.late += 1
        return began, took


def small(n: int) -> bytes:
    text = f"question {n} " + "with some words to fill a kilobyte " * 24
    return json.dumps(
        {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    ).encode()


def conversation(count: int) -> Iterator[bytes]:
    """Sessions of 25 calls: a hundred messages of 3 KB, then one more question and answer with
    every call."""
    words = [hashlib.sha256(str(n).encode()).hexdigest() for n in range(2000)]
    messages: list[dict[str, str]] = []
    for n in range(count):
        if n % SESSION == 0:
            texts = (
                " ".join(words[(n + m * 31 + k) % 2000] for k in range(46)) for m in range(101)
            )
            messages = [
                {"role": ("user", "assistant")[m % 2], "content": text}
                for m, text in enumerate(texts)
            ]
        yield json.dumps({"model": "m", "max_tokens": 9, "messages": messages}).encode()
        messages = [
            *messages,
            {"role": "assistant", "content": TEXT},
            {"role": "user", "content": f"and then, number {n}?"},
        ]


def working(count: int) -> Iterator[bytes]:
    """The same with tools: a hundred calls with results of 3 KB, then one more with every call."""
    words = [hashlib.sha256(str(n).encode()).hexdigest() for n in range(2000)]
    messages: list[dict] = []
    for n in range(count):
        if n % SESSION == 0:
            messages = [{"role": "user", "content": f"the task of call {n}"}]
            messages += [
                message
                for step in range(100)
                for message in _step(words, f"{n}_{step}", n * 7 + step * 31)
            ]
        yield json.dumps(
            {"model": "m", "max_tokens": 9, "tools": TOOLS, "messages": messages}
        ).encode()
        messages = [*messages, *_step(words, f"{n}_more", n * 7)]


def _step(words: list[str], name: str, at: int) -> list[dict]:
    lines = (" ".join(words[(at + line + word) % 2000] for word in range(2)) for line in range(23))
    used = {
        "type": "tool_use",
        "id": f"toolu_{name}",
        "name": "read_file",
        "input": {"path": f"src/{name}.py"},
    }
    result = {"type": "tool_result", "tool_use_id": f"toolu_{name}", "content": "\n".join(lines)}
    return [{"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}]


TOOLS = [
    {
        "name": name,
        "description": f"To {name}.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    for name in ("read_file", "write_file", "run")
]


async def streams(direct: tuple, through: tuple, pid: int) -> dict:
    """One after the other, and many at once: bytes must be identical, the first ones soon."""
    return {**await one_by_one(direct, through), **await at_once(direct, through, pid)}


async def one_by_one(direct: tuple, through: tuple) -> dict:
    """What a stream pays at its beginning, and what at its end."""
    taken: dict[str, list[tuple[float, float]]] = {"direct": [], "hotset": []}
    for n in range(ONE_BY_ONE):
        for name, where in (("direct", direct), ("hotset", through)):
            first, last, body = await stream(*where, n + STREAMS)
            assert plain(body) == SSE, "bytes differ"
            taken[name].append((first * 1e3, last * 1e3))
    figures = {
        name: {
            f"{which}_byte_{label}_ms": quantile([each[at] for each in times], share)
            for at, which in enumerate(("first", "last"))
            for label, share in (("p50", 0.5), ("p99", 0.99))
        }
        for name, times in taken.items()
    }
    for metric, value in figures["direct"].items():
        figures["hotset"][f"added_{metric}"] = figures["hotset"][metric] - value
    return {"streams, one by one": figures}


async def at_once(direct: tuple, through: tuple, pid: int) -> dict:
    figures = {}
    for name, where in (("direct", direct), ("hotset", through)):
        rounds = [await _round(where, pid, number * STREAMS) for number in range(ROUNDS)]
        figures[name] = sorted(rounds, key=lambda each: each["first_p50_ms"])[ROUNDS // 2]
    del figures["direct"]["cpu_ms"]
    return {f"{STREAMS} streams at once": figures}


async def _round(where: tuple, pid: int, first: int) -> dict[str, float]:
    begun, spent = time.perf_counter(), cpu(pid)
    got = await asyncio.gather(*(stream(*where, first + n) for n in range(STREAMS)))
    assert {plain(body) for _, _, body in got} == {SSE}, "bytes differ"
    firsts = [first for first, _, _ in got]
    return {
        "first_p50_ms": quantile(firsts, 0.5) * 1e3,
        "first_p99_ms": quantile(firsts, 0.99) * 1e3,
        "all_s": time.perf_counter() - begun,
        "identical": len(got),
        "late": sum(body != SSE for _, _, body in got),
        "cpu_ms": (cpu(pid) - spent) * 1e3 / STREAMS,
    }


def plain(body: bytes) -> bytes:
    """A stream without the comment that says it was not on disk in time."""
    return re.sub(rb": hotset: [^\n]*\n\n", b"", body)


async def stream(host: str, port: int, path: str, n: int) -> tuple[float, float, bytes]:
    """Seconds to the first event, and to the last byte."""
    body = json.dumps(
        {"model": "m", "stream": True, "messages": [{"role": "user", "content": f"stream {n}"}]}
    ).encode()
    reader, writer = await asyncio.open_connection(host, port)
    begun = time.perf_counter()
    writer.write(
        (
            f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        + body
    )
    assert b"200" in await reader.readline()
    while (await reader.readline()) != b"\r\n":
        pass
    got, first = b"", 0.0
    while size := int(await reader.readline(), 16):
        got += await reader.readexactly(size)
        await reader.readexactly(2)
        first = first or time.perf_counter() - begun
    last = time.perf_counter() - begun
    writer.close()
    return first, last, got


def leaving(where: tuple, gone: Connection) -> dict:
    """From the moment a client closes its connection to the moment the upstream sees its own close,
    before the first byte."""
    host, port, path = where
    body = (
        b'{"model": "m", "messages": [{"role": "user", "content": "never answered"}], "hold": true}'
    )
    taken = []
    for _ in range(LEAVING):
        with socket.create_connection((host, port)) as line:
            line.sendall(
                (
                    f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: "
                    f"{len(body)}\r\n\r\n"
                ).encode()
                + body
            )
            assert gone.recv() == "held"
            begun = time.monotonic()
        taken.append((gone.recv() - begun) * 1e3)
    return {"p50_ms": quantile(taken, 0.5), "p99_ms": quantile(taken, 0.99)}


LATE = b"not on disk within"
TEXT = "a canned reply"
REPLY = json.dumps(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": TEXT}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
).encode()


def _event(name: str, **fields: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()


PIECES = [
    _event(
        "message_start", message={"id": "msg_1", "role": "assistant", "content": [], "usage": {}}
    ),
    _event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    *(
        _event("content_block_delta", index=0, delta={"type": "text_delta", "text": f"word {n} "})
        for n in range(EVENTS)
    ),
    _event("content_block_stop", index=0),
    _event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 9}),
    _event("message_stop"),
]
SSE = b"".join(PIECES)


class Canned(asyncio.Protocol):
    """An upstream that answers at once; asked to hold on, it never does, and tells when its client
    is gone."""

    def __init__(self, gone: Connection) -> None:
        self._gone = gone
        self._held = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._got = b""

    def connection_lost(self, _error: Exception | None) -> None:
        if self._held:
            self._gone.send(time.monotonic())

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, end, rest = self._got.partition(b"\r\n\r\n")
        if not end:
            return
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        if len(rest) < length:
            return
        self._got = b""
        if b'"hold": true' in rest:
            self._held = True
            self._gone.send("held")
        elif b'"stream": true' in rest:
            self._task = asyncio.ensure_future(self._stream())
        else:
            self._transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                % (len(REPLY), REPLY)
            )

    async def _stream(self) -> None:
        await asyncio.sleep(THINKS)
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
            b"chunked\r\n\r\n"
        )
        for piece in PIECES:
            self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await asyncio.sleep(EVERY)
        self._transport.write(b"0\r\n\r\n")


def _upstream(listener: socket.socket, gone: Connection) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(lambda: Canned(gone), sock=listener)
        await server.serve_forever()

    asyncio.run(run())


@contextlib.contextmanager
def canned_upstream() -> Iterator[tuple[int, Connection]]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=_upstream, args=(listener, there), daemon=True
    )
    process.start()
    try:
        yield listener.getsockname()[1], here
    finally:
        process.terminate()
        process.join()
        listener.close()


@contextlib.contextmanager
def served(upstream: int) -> Iterator[tuple[dict, int]]:
    """`hotset up` as a user starts it."""
    folder = Path(tempfile.mkdtemp(prefix="hotset-bench-"))
    ready = folder / "ready.json"
    command = [
        sys.executable,
        "-m",
        "hotset",
        "up",
        "--quiet",
        "--port",
        "0",
        "--data",
        str(folder / "data"),
    ]
    command += ["--anthropic-url", f"http://127.0.0.1:{upstream}", "--ready-file", str(ready)]
    process = subprocess.Popen(command)
    try:
        while not ready.exists():
            assert process.poll() is None, "hotset up ended"
            time.sleep(0.02)
        root = json.loads(ready.read_text())["anthropic_base_url"]
        port, token = root.split(":")[2].split("/")
        yield {"port": int(port), "token": token}, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        shutil.rmtree(folder)


def resident(pid: int, which: str = "VmRSS") -> float:
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return float(subprocess.check_output(["ps", "-o", "rss=", "-p", str(pid)])) / 1024
    return (
        next(
            int(line.split()[1])
            for line in status.read_text().splitlines()
            if line.startswith(which)
        )
        / 1024
    )


if __name__ == "__main__":
    main()
