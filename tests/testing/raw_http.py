"""A client that looks at bytes: what came, in which pieces, and how the connection ended."""

from __future__ import annotations

import json
import re
import socket
import zlib
from dataclasses import dataclass

PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}
DIALECTS = tuple(PATHS)


@dataclass(frozen=True)
class Exchange:
    head: bytes
    raw: bytes
    """Everything after the head, with its framing."""
    ending: str
    """`kept`: complete, and the connection still stands; `fin`; `reset`."""

    @property
    def status(self):
        return int(self.head.split(b" ")[1])

    def header(self, name):
        found = re.search(rb"(?im)^" + name.encode() + rb": *(.*?)\r?$", self.head)
        return found[1].decode() if found else ""

    @property
    def chunks(self):
        """The chunks of a chunked body, as far as they came."""
        rest, chunks = self.raw, []
        while b"\r\n" in rest:
            size, _, rest = rest.partition(b"\r\n")
            if int(size, 16) == 0:
                break
            chunks.append(rest[: int(size, 16)])
            rest = rest[int(size, 16) + 2 :]
        return chunks

    @property
    def body(self):
        body = b"".join(self.chunks) if self.header("transfer-encoding") == "chunked" else self.raw
        return (
            zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(body)
            if self.header("content-encoding") == "gzip"
            else body
        )

    @property
    def events(self):
        """(name, data) of every whole event."""
        found = []
        for block in re.split(rb"\r?\n\r?\n", self.body)[:-1]:
            lines = re.split(rb"\r?\n", block)
            name = b"".join(line[7:] for line in lines if line.startswith(b"event: ")).decode()
            found.append(
                (name, b"\n".join(line[6:] for line in lines if line.startswith(b"data: ")))
            )
        return found


def request_bytes(path, body, headers=()):
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        "host: test",
        "content-type: application/json",
        f"content-length: {len(payload)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + payload


def prompt(dialect, *, stream=True, **fields):
    said = [{"role": "user", "content": "hello"}]
    words = {"input": said} if dialect == "openai-responses" else {"messages": said}
    return {"model": "test-model", "stream": stream, **words, **fields}


def connect(upstream):
    return socket.create_connection(("127.0.0.1", upstream.port), timeout=120)


def ask(upstream, dialect="anthropic", *, stream=True, **fields):
    with connect(upstream) as client:
        client.sendall(request_bytes(PATHS[dialect], prompt(dialect, stream=stream, **fields)))
        return read_exchange(client)


def read_exchange(client):
    came, ending = bytearray(), "kept"
    while not _complete(came):
        try:
            piece = client.recv(1 << 18)
        except ConnectionResetError:
            ending = "reset"
            break
        if not piece:
            ending = "fin"
            break
        came += piece
    head, _, raw = bytes(came).partition(b"\r\n\r\n")
    return Exchange(head, raw, ending)


def _complete(came):
    start = came.find(b"\r\n\r\n") + 4
    if start < 4:
        return False
    head = bytes(came[:start])
    if b"transfer-encoding: chunked" in head:
        return came.endswith(b"\r\n0\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    return bool(length) and len(came) - start == int(length[1])
