"""What a client saw end is on disk: the event that tells how a reply ended waits for its commit,
and for nothing else."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

import pytest

from hotset.dialects import DIALECTS as EVERY
from hotset.dialects.port import Mark
from hotset.dialects.sse import events
from hotset.nouns.deposit import CommitReceipt, Deposit, ReplyReceived, RequestReceived
from hotset.nouns.message import DialectName
from hotset.nouns.turn import Outcome
from hotset.surfaces.proxy.address import Address
from hotset.testing import RamStore, Say, ScriptedUpstream
from hotset.testing.upstream.faults import Comments, Crlf, Gate, Gzipped, Hold, MultilineData, Split
from tests.proxy.conftest import stopped
from tests.proxy.talking import tools
from tests.proxy.wire import DIALECTS, PATHS, call, post, question
from tests.waiting import ask, wait_until

_COMMENT = re.compile(rb": hotset: [ -~]+\n\n")


class HeldStore(RamStore):
    """A real store whose commits of one kind are answered only when they may be."""

    def __init__(self, kind: type) -> None:
        super().__init__()
        self.kind = kind
        self.held: list[tuple[Future[CommitReceipt], Future[CommitReceipt]]] = []
        self._free = threading.Event()

    def keep(self, *deposits: Deposit) -> Future[CommitReceipt]:
        kept = super().keep(*deposits)
        if not any(isinstance(each, self.kind) for each in deposits) or self._free.is_set():
            return kept
        later: Future[CommitReceipt] = Future()
        self.held.append((later, kept))
        return later

    def free(self) -> None:
        self._free.set()
        for later, kept in self.held:
            later.set_result(kept.result())


@dataclass
class Line:
    """One call over a socket, read as far as it came."""

    wire: socket.socket
    got: bytearray = field(default_factory=bytearray)

    def read_for(self, seconds: float) -> None:
        """Whatever comes until nothing came for so long, or the connection is closed."""
        self.wire.settimeout(seconds)
        with contextlib.suppress(TimeoutError):
            while piece := self.wire.recv(65536):
                self.got += piece

    @property
    def head(self) -> bytes:
        return bytes(self.got).partition(b"\r\n\r\n")[0].lower()

    @property
    def body(self) -> bytes:
        """Without its framing and its compression, as far as it came."""
        _, _, rest = bytes(self.got).partition(b"\r\n\r\n")
        body = b""
        while b"transfer-encoding: chunked" in self.head and b"\r\n" in rest:
            size, _, rest = rest.partition(b"\r\n")
            body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
        if b"transfer-encoding: chunked" not in self.head:
            body = rest
        return (
            zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(body)
            if b"content-encoding: gzip" in self.head
            else body
        )


@contextlib.contextmanager
def _calling(address: Address, dialect: str, body: bytes) -> Iterator[Line]:
    head = (
        f"POST /{address.token}{PATHS[dialect]} HTTP/1.1\r\nHost: 127.0.0.1:{address.port}\r\n"
        f"Connection: close\r\n"
    )
    with socket.create_connection(("127.0.0.1", address.port), timeout=120) as wire:
        wire.sendall(
            f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        yield Line(wire)


def _tells_its_end(dialect: str, body: bytes) -> bool:
    mark = EVERY[DialectName(dialect)].mark
    return any(mark(event.name, event.data) & (Mark.STOP | Mark.LAST) for event in events(body))


_FORMS = {
    "plain": (),
    "one byte at a time": (Split(1),),
    "seven bytes, CR LF": (Split(7), Crlf()),
    "several data lines": (MultilineData(), Split(50)),
    "gzip": (Gzipped(),),
    "comments": (Comments(),),
}


@pytest.mark.row("V1")
@pytest.mark.parametrize("ours", [False, True], ids=["relayed", "with our tools"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.rest_slow
def test_a_stream_shows_everything_but_its_end_until_it_is_on_disk(
    pair, directly, dialect, form, ours
):
    store = HeldStore(ReplyReceived)
    script = [Say("all of these words come as soon as they are said", fault=_FORMS[form])]
    world = pair(script, open_store=lambda: store)
    body = question(
        dialect, "hello", stream=True, **({"tools": tools(dialect, "read_file")} if ours else {})
    )

    with _calling(world.address, dialect, body) as line:
        wait_until(lambda: store.held)
        assert (
            ask(world.address)["late"] == 0
        )  # also a round through the proxy: what it sent before is here
        line.read_for(0.2)
        assert b"x-hotset-session: " in line.head
        assert (
            b"are said" in line.body or form == "gzip"
        )  # whose pieces may have come as one, with the end in it
        assert not _tells_its_end(dialect, line.body)
        store.free()
        line.read_for(30)

    assert _tells_its_end(dialect, line.body)
    assert b": hotset:" not in line.body
    if form != "gzip" and not ours:
        assert line.body == directly(script, dialect, body).body


@pytest.mark.row("V1")
@pytest.mark.parametrize("ours", [False, True], ids=["relayed", "with our tools"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.rest_slow
def test_a_document_and_a_refusal_come_when_they_are_on_disk(pair, dialect, ours):
    store = HeldStore(ReplyReceived)
    world = pair([Say("a reply")], open_store=lambda: store)
    body = question(dialect, "hello", **({"tools": tools(dialect, "read_file")} if ours else {}))

    with _calling(world.address, dialect, body) as line:
        wait_until(lambda: store.held)
        assert ask(world.address)["late"] == 0
        line.read_for(0.2)
        assert line.got == b""
        store.free()
        line.read_for(30)

    assert b"a reply" in line.body
    assert b"x-hotset-degraded" not in line.head
    assert post(world.address, dialect, body).status == 500  # the script has no more
    assert [turn.outcome for session in store.sessions() for turn in store.turns(session.id)] == [
        Outcome.DONE,
        Outcome.REFUSED,
    ]


@pytest.mark.row("V1")
@pytest.mark.parametrize("ours", [False, True], ids=["relayed", "with our tools"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.rest_slow
def test_a_reply_that_is_not_on_disk_in_two_seconds_comes_all_the_same_and_says_so(
    pair, directly, dialect, stream, ours
):
    store = HeldStore(ReplyReceived)
    script = [Say("a reply in full")]
    world = pair(script, open_store=lambda: store, patience=1)
    body = question(
        dialect, "hello", stream=stream, **({"tools": tools(dialect, "read_file")} if ours else {})
    )

    answer = post(world.address, dialect, body)

    told = answer.header("x-hotset-degraded") or ""
    comments = _COMMENT.findall(answer.body)
    assert (bool(comments), bool(told)) == (stream, not stream)
    assert re.search("not on disk within 2 s|does not answer", told + b"".join(comments).decode())
    assert ours or _COMMENT.sub(b"", answer.body) == directly(script, dialect, body).body
    if stream:
        before, after = answer.body.split(comments[0])
        assert before.endswith(b"\n\n")
        assert not _tells_its_end(dialect, before)
        assert _tells_its_end(dialect, after)
    assert ask(world.address)["late"] == 1
    store.free()
    world.settle()
    assert re.search(
        "not on disk|does not answer",
        str([event.detail for event in store.events() if event.name == "Bypassed"]),
    )
    assert [turn.outcome for session in store.sessions() for turn in store.turns(session.id)] == [
        Outcome.DONE
    ]


@pytest.mark.row("V1")
@pytest.mark.slow
def test_a_reply_to_a_request_that_is_not_on_disk_waits_for_it_and_then_says_so(pair):
    store = HeldStore(RequestReceived)
    world = pair([Say("a reply"), Say("another")], open_store=lambda: store, patience=1)
    body = question("anthropic", "hello", stream=True)

    answer = post(world.address, "anthropic", body)

    assert re.search("not on disk|does not answer", answer.header("x-hotset-degraded"))
    assert b": hotset:" not in answer.body  # it has been told
    store.free()
    world.settle()
    assert post(world.address, "anthropic", body).header("x-hotset-session")


@pytest.mark.row("V1")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_reply_of_a_kept_call_names_its_session(pair, dialect):
    """The upstream answers at once: sooner than a disk."""
    world = pair(lambda _: Say("a reply"))
    for number in range(12):
        answer = post(
            world.address, dialect, question(dialect, f"question {number}", stream=number % 2 == 0)
        )
        assert answer.header("x-hotset-session"), number


@pytest.mark.parametrize("ours", [False, True], ids=["relayed", "with our tools"])
@pytest.mark.rest_slow
def test_an_upstream_that_hangs_behind_its_last_words_does_not_keep_the_client_from_them(
    pair, ours
):
    """Between the chunk with the reason to stop and the end mark."""
    gate = Gate()
    body = question(
        "openai-chat",
        "hello",
        stream=True,
        **({"tools": tools("openai-chat", "read_file")} if ours else {}),
    )
    with ScriptedUpstream([Say("a reply")], now=stopped) as twin:
        whole = call(
            twin, "POST", PATHS["openai-chat"], body, {"content-type": "application/json"}
        ).body
    marks = [EVERY[DialectName.OPENAI_CHAT].mark(event.name, event.data) for event in events(whole)]
    stop = next(number for number, mark in enumerate(marks) if Mark.STOP in mark)
    world = pair([Say("a reply", fault=Hold(gate, events=stop + 1))])

    with _calling(world.address, "openai-chat", body) as line:
        wait_until(lambda: line.read_for(0.05) or _tells_its_end("openai-chat", line.body))
        assert b": hotset:" not in line.body
        assert ask(world.address)["late"] == 0
        gate.open()
        line.read_for(30)

    assert (line.body == whole) is not ours
    [turn] = world.turns()
    assert turn.outcome is (Outcome.BROKEN if ours else Outcome.DONE)
    with world.store() as store:
        assert store.content(turn.reply) == line.body
