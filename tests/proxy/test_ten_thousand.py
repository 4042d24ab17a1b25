"""Ten thousand conversations through real proxies: every byte arrives, every byte comes back, every
turn is kept."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from hotset.dialects import DIALECTS
from hotset.nouns.message import DialectName
from hotset.nouns.page import digest
from hotset.nouns.turn import Outcome, Turn
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.proxy.address import Address
from tests.campaign import sample
from tests.dialects.conversations import conversation
from tests.proxy.test_killed import serving
from tests.proxy.wire import PATHS

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_CONVERSATIONS = sample(1_200, 10_000)
_PROXIES = sample(2, 4)
_CLIENTS = 8
_SECONDS = 120.0
_MEMORY = "/dev/shm"


@dataclass(frozen=True)
class Exchange:
    """What a client sends and what a provider answers, to the byte."""

    path: str
    headers: bytes
    body: bytes
    """As it goes over the wire, perhaps compressed."""
    reply_head: bytes
    reply: tuple[bytes, ...]
    """The pieces of the reply, as they go over the wire."""
    spoken: bytes = b""
    """The body, plain."""
    told: bytes = b""
    """The reply, plain."""

    @property
    def answer(self) -> bytes:
        return b"".join(self.reply)


@dataclass
class Lean:
    """A provider that knows its lines: an exchange's reply for its body, 404 for a body that it has
    never heard of."""

    lines: dict[bytes, Exchange] = field(default_factory=dict)
    heard: Counter[bytes] = field(default_factory=Counter)
    """How often each body arrived, by its hash."""
    together: int = 0
    """So many replies are under way before the first one may end."""
    living: set[asyncio.Transport] = field(default_factory=set)
    _held: list[tuple[asyncio.Transport, bytes]] = field(default_factory=list)

    def learn(self, exchanges: Iterable[Exchange]) -> None:
        self.lines.update((hashlib.sha256(each.body).digest(), each) for each in exchanges)

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Line(self), "127.0.0.1", 0, backlog=2048)
        try:
            yield "http://{}:{}".format(*server.sockets[0].getsockname())
        finally:
            server.close()
            for transport in tuple(self.living):
                transport.abort()

    def answer(self, body: bytes, transport: asyncio.Transport) -> None:
        self.heard[body] += 1
        line = self.lines.get(body)
        if line is None:
            transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        *first, last = (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in line.reply)
        transport.write(line.reply_head)
        for piece in first:
            transport.write(piece)
        self._held.append((transport, last + b"0\r\n\r\n"))
        if len(self._held) >= self.together:
            for held, rest in self._held:
                held.write(rest)
            self._held.clear()


class _Line(asyncio.Protocol):
    """One connection to the provider, as lean as can be: a request is whole when its length says
    so."""

    _transport: asyncio.Transport

    def __init__(self, lean: Lean) -> None:
        self._lean = lean
        self._got = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._lean.living.add(transport)

    def connection_lost(self, _error: Exception | None) -> None:
        self._lean.living.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._got += data
        end = self._got.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._got[:end]).lower()
        length = int(head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
        if len(self._got) < end + 4 + length:
            return
        body = hashlib.sha256(self._got[end + 4 :]).digest()
        self._got.clear()
        self._lean.answer(body, self._transport)


@dataclass(frozen=True)
class Got:
    status: int
    headers: dict[bytes, bytes]
    body: bytes


class Caller:
    """A client's kept-alive connection, with as little in the way as can be."""

    def __init__(
        self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._address = address
        self._reader = reader
        self._writer = writer

    @classmethod
    @contextlib.asynccontextmanager
    async def connected(cls, address: Address) -> AsyncIterator[Caller]:
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
        try:
            yield cls(address, reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def call(self, exchange: Exchange) -> Got:
        await self.ask(exchange)
        status, headers = await self.head()
        return Got(status, headers, b"".join([piece async for piece in self.pieces(headers)]))

    async def ask(self, exchange: Exchange) -> None:
        self._writer.write(
            b"POST /%b%b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: %d\r\n%b\r\n%b"
            % (
                self._address.token.encode(),
                exchange.path.encode(),
                self._address.port,
                len(exchange.body),
                exchange.headers,
                exchange.body,
            )
        )
        await self._writer.drain()

    async def look(self, path: str) -> Got:
        self._writer.write(
            (
                f"GET /{self._address.token}{path} HTTP/1.1\r\nHost: "
                f"127.0.0.1:{self._address.port}\r\n\r\n"
            ).encode()
        )
        status, headers = await self.head()
        return Got(status, headers, b"".join([piece async for piece in self.pieces(headers)]))

    async def head(self) -> tuple[int, dict[bytes, bytes]]:
        lines = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        headers = (line.partition(b":") for line in lines[1:] if line)
        return int(lines[0].split()[1]), {name.lower(): value.strip() for name, _, value in headers}

    async def pieces(self, headers: dict[bytes, bytes]) -> AsyncIterator[bytes]:
        if b"content-length" in headers:
            yield await self._reader.readexactly(int(headers[b"content-length"]))
            return
        while size := int(await self._reader.readline(), 16):
            yield await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)


def exchange(dialect: DialectName, body: bytes, rng: Random) -> Exchange:
    """A generated request, as some client would send it, and a reply that is like no other's."""
    if dialect is not DialectName.ANTHROPIC and rng.random() < 0.5:
        body = body.replace(b"{", b'{"stream": true, ', 1)
    stream = bool(json.loads(body).get("stream"))
    id = hashlib.sha256(body).hexdigest()
    events = _EVENTS[dialect](id, f"an answer to {id}: “é” \\ 😀")
    pieces = (
        events
        if stream
        else [
            json.dumps(
                _DOCUMENTS[dialect](id, f"an answer to {id}"), indent=rng.choice([None, 2])
            ).encode()
        ]
    )
    kind = b"text/event-stream; charset=utf-8" if stream else b"application/json"
    coding, packed = _packed(body, rng)
    back, reply = _packed(b"".join(pieces), rng)
    return Exchange(
        path=PATHS[dialect],
        headers=(
            b"Content-Type: application/json\r\nAccept-Encoding: gzip, "
            b"zstd\r\nX-Hotset-Window: "
            b"off\r\n"
        )
        + _coded(coding),
        body=packed,
        reply_head=b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n%bTransfer-Encoding: chunked\r\n\r\n"
        % (kind, _coded(back)),
        reply=tuple(_cut(reply, rng)) if back else tuple(pieces),
        spoken=body,
        told=b"".join(pieces),
    )


def _packed(plain: bytes, rng: Random) -> tuple[bytes, bytes]:
    coding = rng.choice([b"", b"", b"", b"gzip", b"zstd"])
    return coding, {
        b"gzip": lambda: gzip.compress(plain, 1),
        b"zstd": lambda: zstd.compress(plain),
    }.get(coding, lambda: plain)()


def _coded(coding: bytes) -> bytes:
    return b"Content-Encoding: %b\r\n" % coding if coding else b""


def _cut(whole: bytes, rng: Random) -> Iterator[bytes]:
    """Into three pieces, anywhere; none is empty, for an empty chunk would be the last."""
    first, second = sorted(rng.sample(range(1, len(whole)), 2))
    yield from (whole[:first], whole[first:second], whole[second:])


def _event(name: str, **fields: object) -> bytes:
    return (
        f"event: {name}\ndata: {json.dumps({'type': name, **fields}, ensure_ascii=False)}\n\n"
    ).encode()


def _anthropic(id: str, text: str) -> dict[str, object]:
    said = [{"type": "text", "text": text}]
    usage = {"input_tokens": 7, "output_tokens": 3}
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": said,
        "stop_reason": "end_turn",
        "usage": usage,
    }


def _anthropic_events(id: str, text: str) -> list[bytes]:
    return [
        _event("message_start", message=_anthropic(id, "") | {"content": [], "stop_reason": None}),
        _event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *(
            _event("content_block_delta", index=0, delta={"type": "text_delta", "text": half})
            for half in (text[:9], text[9:])
        ),
        _event("content_block_stop", index=0),
        _event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3}),
        _event("message_stop"),
    ]


def _chat(id: str, text: str) -> dict[str, object]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return {
        "id": id,
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


def _chat_events(id: str, text: str) -> list[bytes]:
    deltas = [
        {"role": "assistant", "content": ""},
        {"content": text[:9]},
        {"content": text[9:]},
        {},
    ]
    chunks = [
        {
            "id": id,
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}],
        }
        for delta in deltas
    ]
    return [
        *(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode() for chunk in chunks),
        b"data: [DONE]\n\n",
    ]


def _responses(id: str, text: str) -> dict[str, object]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {
        "type": "message",
        "id": f"msg_{id[:8]}",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    return {
        "id": id,
        "object": "response",
        "model": "m",
        "status": "completed",
        "output": [item],
        "usage": usage,
    }


def _responses_events(id: str, text: str) -> list[bytes]:
    done = _responses(id, text)
    [item] = done["output"]  # type: ignore[misc]
    begun = {**item, "content": [], "status": "in_progress"}
    where = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    return [
        _event(
            "response.created",
            sequence_number=0,
            response={**done, "status": "in_progress", "output": []},
        ),
        _event("response.output_item.added", sequence_number=1, output_index=0, item=begun),
        _event("response.output_text.delta", sequence_number=2, delta=text, **where),
        _event("response.output_item.done", sequence_number=3, output_index=0, item=item),
        _event("response.completed", sequence_number=4, response=done),
    ]


_DOCUMENTS = {
    DialectName.ANTHROPIC: _anthropic,
    DialectName.OPENAI_CHAT: _chat,
    DialectName.OPENAI_RESPONSES: _responses,
}
_EVENTS = {
    DialectName.ANTHROPIC: _anthropic_events,
    DialectName.OPENAI_CHAT: _chat_events,
    DialectName.OPENAI_RESPONSES: _responses_events,
}


@pytest.fixture
def in_memory(tmp_path) -> Iterator[Path]:
    """A folder whose disk is never slow, where there is one: ten thousand commits are not here to
    measure a disk."""
    if not os.access(_MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="hotset-", dir=_MEMORY) as folder:
        yield Path(folder)


@pytest.mark.row("C9")
@pytest.mark.row("V1")
@pytest.mark.parametrize("seed", range(_PROXIES))
@pytest.mark.slow
def test_ten_thousand_conversations_pass_untouched_and_every_one_is_kept(in_memory, seed):
    rng, names = Random(seed), list(DialectName)
    spoken = [conversation(names[n % len(names)], rng) for n in range(_CONVERSATIONS // _PROXIES)]
    exchanges = [exchange(names[n % len(names)], body, rng) for n, body in enumerate(spoken)]

    heard, answers = asyncio.run(_all_through(in_memory / "data", exchanges))

    assert heard == Counter(hashlib.sha256(each.body).digest() for each in exchanges)
    for sent, got in zip(exchanges, answers, strict=True):
        assert got.status == 200
        assert got.body == sent.answer
        assert b"x-hotset-degraded" not in got.headers
    with SqliteStore.open(in_memory / "data") as store:
        turns = {
            turn.response_id: turn
            for session in store.sessions()
            for turn in store.turns(session.id)
        }
        assert len(turns) == len(exchanges)
        for each in exchanges:
            _is_kept(store, each, turns[hashlib.sha256(each.spoken).hexdigest()])


async def _all_through(folder: Path, exchanges: list[Exchange]) -> tuple[Counter[bytes], list[Got]]:
    lean = Lean()
    lean.learn(exchanges)
    answers: list[Got | None] = [None] * len(exchanges)
    waiting = iter(enumerate(exchanges))

    async def client(address: Address) -> None:
        async with Caller.connected(address) as caller:
            for n, each in waiting:
                answers[n] = await caller.call(each)

    async with asyncio.timeout(_SECONDS), lean.listening() as url:
        with contextlib.ExitStack() as stack:
            up = await asyncio.to_thread(stack.enter_context, serving(folder, url))
            await asyncio.gather(*(client(up.address) for _ in range(_CLIENTS)))
            await asyncio.to_thread(up.settle)
            assert await asyncio.to_thread(up.stop) == 0
    return lean.heard, answers


def _is_kept(store: SqliteStore, sent: Exchange, turn: Turn) -> None:
    """Its reply and each of its messages, to the byte: the store checks what it reads against its
    hash, we against the wire."""
    assert (turn.outcome, turn.status) == (Outcome.DONE, 200)
    assert store.content(turn.reply) == sent.told
    for message in DIALECTS[turn.dialect].parse(sent.spoken).messages:
        assert store.content(digest(message.raw)) == message.raw
        assert message.raw in sent.spoken
