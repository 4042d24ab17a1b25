"""A conversation in a bounded window, for programs that talk to the model themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from hotset.errors import BadInput
from hotset.nouns.call import ClientCall, Headers
from hotset.nouns.message import Answer, DialectName, Part, Reply, Usage
from hotset.nouns.page import Digest, Kind
from hotset.runtime.planner import Planner
from hotset.runtime.wire import DIALECTS, Dialect, is_call
from hotset.surfaces.library.engine import Engine
from hotset.surfaces.library.sdk_messages import (
    arguments,
    compose,
    dialect_for,
    dialect_of,
    messages_of,
    reply_bytes,
)
from hotset.surfaces.library.walk_driver import Broken, Head, Read, ReplyEnd, Send, Show, WalkDriver

_JSON: Headers = ((b"content-type", b"application/json"),)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of one of the program's own tools."""

    id: str
    name: str
    arguments: Any
    """As the model gave them: parsed where they are JSON, otherwise text."""


@dataclass(frozen=True, slots=True)
class WindowReply:
    """The reply of one turn, without the retrievals in between."""

    text: str
    calls: tuple[ToolCall, ...]
    stop: str
    usage: Usage
    """Of the last call; its prompt is the size of the context. After several calls
    `document["usage"]["hotset"]` has the sum that was billed."""
    document: Mapping[str, Any]
    """The reply in the provider's own format."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The arguments that a window was opened with."""

    model: str
    system: Any
    dialect: DialectName | None
    headers: Headers
    budget: int
    params: Mapping[str, Any]
    agent: str = ""
    """The kind of an agent that hands over."""


class Conversation:
    """Base of the blocking and the awaiting window. For one thread, or one task, at a time."""

    def __init__(self, engine: Engine, setting: Setting) -> None:
        self._engine = engine
        self._setting = setting
        self._dialect = setting.dialect
        self._messages: list[bytes] = []
        self._observed: tuple[Digest, ...] = ()
        """Digests of the latest reply's messages, while it is the last in the conversation."""
        self._driver: WalkDriver | None = None
        """Drives the turn under way; None without a turn, or where it goes without us."""
        self._asked = b""
        """The program's request of the turn under way."""
        self._outgoing: bytes | None = None
        """The request that `request()` gave and that has no reply yet."""
        self._asks = False
        """True if the model called our tools: the next request is fixed."""
        self._reply: WindowReply | None = None
        self._used: Usage | None = None
        """Of the latest reply that this window itself observed."""
        self._tools: Sequence[Any] = ()
        """Those of the latest request."""

    def _check_use(self) -> None:
        """Raises `BadInput` if this window may not be used any more."""

    def _continue_from(self, other: Conversation) -> None:
        """Takes over another window's conversation as it stands."""
        self._dialect = other._dialect
        self._messages = list(other._messages)
        self._observed, self._reply, self._tools = other._observed, other._reply, other._tools

    @property
    def dialect(self) -> DialectName:
        """The dialect of the messages; by the model's name where they fit several."""
        return self._dialect or dialect_for(self._setting.model)

    @property
    def messages(self) -> tuple[dict[str, Any], ...]:
        """The whole conversation as the program knows it, without calls of our tools."""
        return tuple(msgspec.json.decode(message) for message in self._messages)

    @property
    def reply(self) -> WindowReply:
        """The latest reply. Raises `BadInput` while there is none."""
        if self._reply is None:
            raise BadInput("there is no reply yet: observe() brings it")
        return self._reply

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Calls of the program's own tools in the latest reply that have no answer yet."""
        return self._reply.calls if self._reply is not None and self._observed else ()

    def add(self, *messages: Any) -> None:
        """Adds messages of any of the three dialects: dicts, objects of an SDK, or text for a
        prompt.

        A reply that was observed is there already. Raises `BadInput` for a message of another
        dialect.
        """
        for message in [each for given in messages for each in messages_of(given)]:
            dialect = dialect_of(message)
            if dialect is not None and self._dialect is not None and dialect is not self._dialect:
                titles = [DIALECTS[each].title for each in (dialect, self._dialect)]
                raise BadInput(
                    f"that is a message of {titles[0]}, and this window holds {titles[1]}"
                )
            self._dialect = self._dialect or dialect
            self._append(msgspec.json.encode(message))

    def answer(self, results: Mapping[str, str]) -> None:
        """Adds the results of the program's tools, by the ids of their calls. Raises `BadInput` for
        an unknown call."""
        known = [call.id for call in self.calls]
        for id in results:
            if id not in known:
                raise BadInput(
                    f"no call {id!r} waits for an answer; these do: {', '.join(known) or 'none'}"
                )
        for raw in self._reader.answer([Answer(id, text) for id, text in results.items()]):
            self._append(raw)

    def _append(self, raw: bytes) -> None:
        self._check_use()
        if self._asks:
            raise BadInput(
                "the model waits for what it asked for: send what request() gives and "
                "observe() the reply first"
            )
        if self._observed and self._reader.understand(raw).essence in self._observed:
            return  # the reply itself, which programs often add again
        self._messages.append(raw)
        self._observed = ()

    async def _request(self, tools: Sequence[Any], params: Mapping[str, Any]) -> dict[str, Any]:
        """The request to send now. Runs on the engine's loop, like the methods below."""
        self._check_use()
        setting = self._setting
        self._tools = tools or self._tools
        params = {**setting.params, **params}
        if self._asks and self._outgoing is not None:
            return arguments(self._outgoing, params)
        if not self._messages:
            raise BadInput("there is nothing to send: add() a message first")
        self._dialect = self.dialect
        spoken = DIALECTS[self._dialect]
        body = compose(
            spoken,
            self._messages,
            model=setting.model,
            system=setting.system,
            tools=tools,
            params=params,
        )
        if self._outgoing is not None and body == self._asked:
            return arguments(self._outgoing, params)  # the program tries again
        if self._driver is not None:
            self._driver.leave()  # its reply never came, and the program asks something else now
        call = ClientCall(
            "POST", f"/v1{spoken.path}", setting.headers, body, spoken.provider, self._dialect
        )
        driver = WalkDriver(call, self._engine, self._planner)
        first = (await driver.begin())[0]
        self._driver, self._outgoing = (
            (driver, _body(first)) if isinstance(first, Send) else (None, body)
        )
        self._asked = body
        return arguments(self._outgoing, params)

    async def _observe(self, given: Any) -> bool:
        self._check_use()
        if self._outgoing is None:
            raise BadInput("observe() takes the reply to what request() gave: call request() first")
        raw = reply_bytes(given, DIALECTS[self.dialect])
        seen = raw if self._driver is None else await self._finish_turn(self._driver, raw)
        self._asks = seen is None
        if seen is None:
            return True
        self._driver = self._outgoing = None
        reply = self._reader.read(seen, streamed=False)
        self._messages += [message.raw for message in reply.messages]
        self._observed = tuple(message.essence for message in reply.messages)
        self._reply = _to_window_reply(reply, seen)
        self._used = reply.usage
        return False

    async def _finish_turn(self, driver: WalkDriver, raw: bytes) -> bytes | None:
        """Hands a reply to the walk. Returns the turn's reply for the program; None where the turn
        goes on."""
        left: list[bytes | None] = [raw, None]
        shown = b""
        orders = await driver.resume(Head(200, _JSON))
        while True:
            for order in orders:
                match order:
                    case Show(chunk):
                        shown += chunk
                    case Send():
                        self._outgoing = _body(order)
                        return None
                    case ReplyEnd(last):
                        return shown + last
                    case Broken():
                        return raw  # a fault of ours: the reply as it came
                    case Read():
                        orders = await driver.resume(left.pop(0))
                        break
            else:
                orders = await driver.next_orders()

    @property
    def _planner(self) -> Planner:
        return self._engine.planner(self._setting.budget)

    @property
    def _reader(self) -> Dialect:
        return self._engine.machine.dialects[self.dialect]


class Window(Conversation):
    """A conversation in a bounded window.

    ```python
    window.add("Why does the build fail?")
    while True:
        reply = client.messages.create(**window.request(tools=tools))
        if window.observe(reply):
            continue  # the model asked for something that had left its window; it is answered: call
            again
        if not window.calls:
            break
        window.answer({call.id: run(call) for call in window.calls})
    print(window.reply.text)
    ```
    """

    def request(self, tools: Sequence[Any] = (), **params: Any) -> dict[str, Any]:
        """What to send now, as keyword arguments for the SDK's call. Raises `BadInput` where there
        is nothing to send."""
        return self._engine.wait(self._request(tools, params))

    def observe(self, reply: Any) -> bool:
        """Takes the model's reply. True: it called our tools, which are answered; send `request()`
        again.

        False: the turn is over. `reply` and `calls` have its result, and the reply is in the
        conversation. Raises `BadInput` for what is no reply.
        """
        return self._engine.wait(self._observe(reply))


class AsyncWindow(Conversation):
    """`Window` for an event loop: `request` and `observe` are awaited."""

    async def request(self, tools: Sequence[Any] = (), **params: Any) -> dict[str, Any]:
        """See `Window.request`."""
        return await self._engine.wait_async(self._request(tools, params))

    async def observe(self, reply: Any) -> bool:
        """See `Window.observe`."""
        return await self._engine.wait_async(self._observe(reply))


def _body(order: Send) -> bytes:
    assert isinstance(order.call.body, bytes)
    return order.call.body


def _to_window_reply(reply: Reply, document: bytes) -> WindowReply:
    parts = [part for message in reply.messages for part in message.parts]
    return WindowReply(
        text="".join(part.content.decode() for part in parts if part.kind is Kind.RESPONSE),
        calls=tuple(
            ToolCall(part.call, part.tool, _arguments(part)) for part in parts if is_call(part)
        ),
        stop=reply.stop,
        usage=reply.usage,
        document=msgspec.json.decode(document),
    )


def _arguments(part: Part) -> Any:
    try:
        return msgspec.json.decode(part.content)
    except msgspec.DecodeError:
        return part.content.decode("utf-8", "replace")
