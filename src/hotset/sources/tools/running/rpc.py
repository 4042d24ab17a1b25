"""JSON-RPC as MCP uses it: what is asked is answered once, refused, or given up; whatever else a
server says does no harm."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import msgspec

from hotset.errors import ToolFailed
from hotset.sources.tools.running.pipes import ServerGone
from hotset.sources.tools.running.processes import ServerProcess

MODERN = "2026-07-28"
"""Since when every request carries all there is to know, and nothing is agreed upon before."""
HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
LARGEST = 32 << 20
"""Bytes of one message. A tool that has more to say says it in a file."""
METHOD_NOT_FOUND, INVALID_REQUEST, UNSUPPORTED_VERSION, HEADER_MISMATCH = (
    -32601,
    -32600,
    -32022,
    -32020,
)

_OPENING = ("initialize", "server/discover")
"""Must not be cancelled: the protocol says so."""
_PIPE = 1 << 16  # bytes that a pipe of Linux holds; macOS gives up to as many
_ANSWERS_AT_ONCE = (
    16  # answers of ours that a server may leave unread; what it asks beyond that gets none
)


class RpcRefused(ToolFailed):
    """The server answered with an error: it understood that something was asked, and says no."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class TurnedAway(RpcRefused):
    """Not the server said no, but what stands in front of it: there is a status and no answer."""


class NotDelivered(ServerGone):
    """It had ended, or had forgotten us, before it could have read this: another may be asked the
    same."""


class NoAnswer(ToolFailed):
    """The time was up. It was told that nobody waits any more; what it did until then is done."""


class NotUnderstood(ToolFailed):
    """What it said is not what the protocol lets it say here."""


class RpcConnection(Protocol):
    """A server that can be asked. Used from one event loop, by any number of tasks."""

    changed: bool
    """It said that its tools are others than they were."""

    @property
    def pid(self) -> int | None: ...
    @property
    def gone(self) -> bool:
        """Whoever asks now hears `NotDelivered`."""

    def speak(self, version: str) -> None:
        """The protocol's version from now on; empty where none is agreed upon."""

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        seconds: float,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """The result as JSON. Raises `Refused`, `NoAnswer`, `NotUnderstood`, `ServerGone` and
        `NotDelivered`.

        The headers are for those who look at a message from outside; a pipe has none.
        """

    async def tell(self, method: str) -> None: ...
    def last_words(self) -> str: ...
    async def close(self) -> None: ...


class RpcMessage(msgspec.Struct):
    """Any message of a server: its request, notification, answer or error."""

    id: int | str | None = None
    method: str = ""
    result: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")


class Rpc:
    """A `Connection` over a channel. Made inside a running event loop."""

    def __init__(self, channel: ServerProcess) -> None:
        self.changed = False
        self._channel = channel
        self._ids = itertools.count(1)
        self._waiting: dict[int | str, asyncio.Future[RpcMessage | None]] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._gone = False
        self._reading = asyncio.create_task(self._read())

    @property
    def pid(self) -> int | None:
        return self._channel.pid

    @property
    def gone(self) -> bool:
        return self._gone

    def speak(self, version: str) -> None:
        """A pipe carries no headers that could tell it."""

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        seconds: float,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        del headers
        if self._gone:
            raise NotDelivered("it has ended")
        id = next(self._ids)
        answer: asyncio.Future[RpcMessage | None] = asyncio.get_running_loop().create_future()
        self._waiting[id] = answer
        try:
            async with asyncio.timeout(seconds):
                await self._put(request(id, method, params))
                said = await answer
        except (TimeoutError, asyncio.CancelledError) as error:
            if method not in _OPENING:
                self._send(
                    notification(
                        "notifications/cancelled",
                        {"requestId": id, "reason": "nobody waits any more"},
                    )
                )
            if isinstance(error, TimeoutError):
                raise NoAnswer(f"it did not answer in {seconds:g} s") from None
            raise
        finally:
            del self._waiting[id]
        if said is None:
            raise ServerGone("it ended before it answered")
        return outcome(said)

    async def tell(self, method: str) -> None:
        await self._channel.send(notification(method))

    def last_words(self) -> str:
        return self._channel.last_words()

    async def close(self) -> None:
        await self._channel.close()
        await asyncio.gather(self._reading, *self._sending, return_exceptions=True)

    async def _put(self, message: bytes) -> None:
        """A server that waits for nothing else, and whose pipe takes the message whole, has either
        got it or never will."""
        try:
            await self._channel.send(message)
        except ServerGone as error:
            if len(message) < _PIPE and len(self._waiting) == 1:
                raise NotDelivered(str(error)) from None
            raise

    async def _read(self) -> None:
        try:
            while (message := await self._channel.receive()) is not None:
                for said in messages(message):
                    self._hear(said)
        finally:
            self._gone = True
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_result(None)

    def _hear(self, said: RpcMessage) -> None:
        if said.method:
            self.changed |= is_change(said)
            if (reply := reply_to(said)) is not None:
                self._send(reply)
            return
        answer = self._waiting.get(said.id) if said.id is not None else None
        if (
            answer is not None and not answer.done()
        ):  # otherwise it comes too late, twice, or from nowhere
            answer.set_result(said)

    def _send(self, message: bytes) -> None:
        """Beside whoever reads: a server that reads nothing while it writes must not stop us from
        reading."""
        if len(self._sending) < _ANSWERS_AT_ONCE and not self._gone:
            task = asyncio.create_task(self._sent(message))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _sent(self, message: bytes) -> None:
        try:
            await self._channel.send(message)
        except ServerGone:
            return  # then it wants no answer either


def request(id: int, method: str, params: Mapping[str, Any]) -> bytes:
    try:
        message = msgspec.json.encode(
            {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        )
    except (TypeError, ValueError, RecursionError):
        raise ToolFailed(
            "the arguments cannot be written as JSON; give it plain texts, numbers, lists and "
            "objects"
        ) from None
    if len(message) > LARGEST:
        raise ToolFailed(
            f"the arguments take more than {LARGEST >> 20} MiB; put them in a file and name that"
        )
    return message


def notification(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    return msgspec.json.encode(
        {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
    )


def messages(line: bytes) -> Iterator[RpcMessage]:
    """What a line says; nothing where it is no message: programs print to where they should only
    speak.

    Several in one array were allowed by the protocol of 2025-03-26.
    """
    line = line.strip()
    if not line.startswith((b"{", b"[")):
        return
    try:
        said = decoded(line, _LINE)
    except (ValueError, RecursionError):
        return
    yield from said if isinstance(said, list) else [said]


_LINE: msgspec.json.Decoder[RpcMessage | list[RpcMessage]] = msgspec.json.Decoder(
    RpcMessage | list[RpcMessage]
)
_ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def decoded(text: bytes, decoder: msgspec.json.Decoder[Any] = _ANYTHING) -> Any:
    """JSON as it should be and as programs write it. Raises `ValueError` and `RecursionError`.

    Half an emoji becomes `?`, NaN null, and bytes that are no UTF-8 a sign for that.
    """
    try:
        return decoder.decode(text)
    except msgspec.ValidationError:
        raise
    except ValueError:  # of msgspec, and of bytes that are no text
        return decoder.decode(_repaired(text))


def _repaired(text: bytes) -> bytes:
    value = json.loads(text.decode("utf-8", "replace"), parse_constant=lambda _: None)
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def is_change(said: RpcMessage) -> bool:
    return said.method == "notifications/tools/list_changed"


def reply_to(said: RpcMessage) -> bytes | None:
    """A server may ask for a sign of life, and for nothing else: no model, person or folder of ours
    is offered to it.

    Folders (roots) above all: servers let them replace the ones that the operator wrote into their
    arguments.
    """
    if not said.method or said.id is None:
        return None
    if said.method == "ping":
        return msgspec.json.encode({"jsonrpc": "2.0", "id": said.id, "result": {}})
    error = {"code": METHOD_NOT_FOUND, "message": f"this client has no {said.method[:80]}"}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": said.id, "error": error})


def outcome(said: RpcMessage) -> bytes:
    """The result of an answer. Raises what it says instead: `Refused`, or `NotUnderstood` for
    neither."""
    if error := bytes(said.error):
        raise _refused(error)
    if result := bytes(said.result):
        return result
    raise NotUnderstood("it answered with neither a result nor an error")


class _Error(msgspec.Struct):
    code: int = 0
    message: str = "it refused, and did not say why"
    data: Any = None


_ERROR = msgspec.json.Decoder(_Error)


def _refused(error: bytes) -> RpcRefused:
    try:
        told = decoded(error, _ERROR)
    except (ValueError, RecursionError):
        told = _Error()
    return RpcRefused(told.code, told.message, told.data)
