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
from hotset.surfaces.library.walk_driver import Broken, Errand, Head, Read, ReplyEnd, Send, Show

_JSON: Headers = ((b"content-type", b"application/json"),)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of one of the program's own tools."""

    id: str
    name: str
    arguments: Any
    """As the model gave them: parsed where they are JSON, otherwise text."""


@dataclass(frozen=True, slots=True)
class Said:
    """A reply as the program is to see it: one, however often the model asked for something back on
    the way."""

    text: str
    calls: tuple[ToolCall, ...]
    stop: str
    usage: Usage
    """The last call's, whose prompt is the size of the context. After several calls
    `document["usage"]["hotset"]` has the sum that was billed."""
    document: Mapping[str, Any]
    """The reply in the provider's own form."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a window was opened with."""

    model: str
    system: Any
    dialect: DialectName | None
    headers: Headers
    budget: int
    params: Mapping[str, Any]


class Conversation:
    """What a blocking and an awaiting window share. For one thread, or one task, at a time."""

    def __init__(self, engine: Engine, setting: Setting) -> None:
        self._engine = engine
        self._setting = setting
        self._dialect = setting.dialect
        self._messages: list[bytes] = []
        self._observed: tuple[Digest, ...] = ()
        """What the latest reply said, while nothing stands behind it."""
        self._errand: Errand | None = None
        """The turn under way; None where there is none, or where it goes without us."""
        self._asked = b""
        """The request of the turn under way, as the program made it."""
        self._outgoing: bytes | None = None
        """What was given out to be sent and is not answered yet."""
        self._asks = False
        """The model asked for something back: what is to be sent next is settled."""
        self._reply: Said | None = None

    @property
    def dialect(self) -> DialectName:
        """As the messages tell; as the model's name does where they could be of several."""
        return self._dialect or dialect_for(self._setting.model)

    @property
    def messages(self) -> tuple[dict[str, Any], ...]:
        """The conversation as the program knows it: whole, and without what the model asked for on
        the way."""
        return tuple(msgspec.json.decode(message) for message in self._messages)

    @property
    def reply(self) -> Said:
        """The latest reply. Raises `BadInput` while there is none."""
        if self._reply is None:
            raise BadInput("there is no reply yet: observe() brings it")
        return self._reply

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The program's own tools that the latest reply calls and that have not been answered."""
        return self._reply.calls if self._reply is not None and self._observed else ()

    def add(self, *messages: Any) -> None:
        """Adds messages of any of the three dialects: dicts, objects of an SDK, or text for a
        prompt.

        A reply that was observed is there already. Raises `BadInput` for a message of another
        dialect.
        """
        for message in [each for given in messages for each in messages_of(given)]:
            told = dialect_of(message)
            if told is not None and self._dialect is not None and told is not self._dialect:
                titles = [DIALECTS[each].title for each in (told, self._dialect)]
                raise BadInput(
                    f"that is a message of {titles[0]}, and this window holds {titles[1]}"
                )
            self._dialect = self._dialect or told
            self._append(msgspec.json.encode(message))

    def answer(self, results: Mapping[str, str]) -> None:
        """Adds what the program's tools said, by the ids of their calls. Raises `BadInput` for a
        call that there is not."""
        known = [call.id for call in self.calls]
        for id in results:
            if id not in known:
                raise BadInput(
                    f"no call {id!r} waits for an answer; these do: {', '.join(known) or 'none'}"
                )
        for raw in self._reader.answer([Answer(id, text) for id, text in results.items()]):
            self._append(raw)

    def _append(self, raw: bytes) -> None:
        if self._asks:
            raise BadInput(
                "the model waits for what it asked for: send what request() gives and "
                "observe() the reply first"
            )
        if self._observed and self._reader.understand(raw).essence in self._observed:
            return  # the reply itself, which programs are used to adding
        self._messages.append(raw)
        self._observed = ()

    async def _request(self, tools: Sequence[Any], params: Mapping[str, Any]) -> dict[str, Any]:
        """On the engine's loop, like everything that follows."""
        setting = self._setting
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
        if self._errand is not None:
            self._errand.leave()  # its reply never came, and now something else is asked
        call = ClientCall(
            "POST", f"/v1{spoken.path}", setting.headers, body, spoken.provider, self._dialect
        )
        errand = Errand(call, self._engine, self._engine.planner(setting.budget))
        first = (await errand.begin())[0]
        self._errand, self._outgoing = (
            (errand, _body(first)) if isinstance(first, Send) else (None, body)
        )
        self._asked = body
        return arguments(self._outgoing, params)

    async def _observe(self, given: Any) -> bool:
        if self._outgoing is None:
            raise BadInput("observe() takes the reply to what request() gave: call request() first")
        raw = reply_bytes(given, DIALECTS[self.dialect])
        seen = raw if self._errand is None else await self._walked(self._errand, raw)
        self._asks = seen is None
        if seen is None:
            return True
        self._errand = self._outgoing = None
        reply = self._reader.read(seen, streamed=False)
        self._messages += [message.raw for message in reply.messages]
        self._observed = tuple(message.essence for message in reply.messages)
        self._reply = _said(reply, seen)
        return False

    async def _walked(self, errand: Errand, raw: bytes) -> bytes | None:
        """Hands a reply to the walk. What the program is to see of the turn; None where the turn
        goes on."""
        left: list[bytes | None] = [raw, None]
        shown = b""
        orders = await errand.tell(Head(200, _JSON))
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
                        orders = await errand.tell(left.pop(0))
                        break
            else:
                orders = await errand.more()

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
        """Takes the model's reply. True: it asked for something back, which is answered; send
        `request()` again.

        False: the turn is over. `reply` and `calls` say what came of it, and the reply stands in
        the conversation. Raises `BadInput` for what is no reply.
        """
        return self._engine.wait(self._observe(reply))


class AsyncWindow(Conversation):
    """The same for a loop: `request` and `observe` are awaited."""

    async def request(self, tools: Sequence[Any] = (), **params: Any) -> dict[str, Any]:
        """See `Window.request`."""
        return await self._engine.done(self._request(tools, params))

    async def observe(self, reply: Any) -> bool:
        """See `Window.observe`."""
        return await self._engine.done(self._observe(reply))


def _body(order: Send) -> bytes:
    assert isinstance(order.call.body, bytes)
    return order.call.body


def _said(reply: Reply, document: bytes) -> Said:
    parts = [part for message in reply.messages for part in message.parts]
    return Said(
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
