"""A scripted provider over real HTTP, in all three dialects."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Self

from hotset.nouns.message import DialectName, Usage
from hotset.testing.upstream.cache import (
    BreakpointsRefused,
    Charge,
    PromptCache,
    chat_prompt,
    marked_prompt,
    responses_prompt,
    serve_marked,
    serve_plain,
)
from hotset.testing.upstream.faults import Raw, Status
from hotset.testing.upstream.http_connection import (
    Act,
    AnswerOutcome,
    ScriptedAnswer,
    ScriptedConnection,
    event_frames,
    put_faults_into_text,
    socket_acts,
)
from hotset.testing.upstream.script import Log, Received, Say, Script, player
from hotset.testing.upstream.wires import (
    WIRES,
    DialectWire,
    WireTurn,
    responses_output,
    status_text,
    to_json,
)

_HOST = "127.0.0.1"
_PATIENCE = 120.0  # seconds until a test's wait fails


class ScriptedUpstream:
    """The fake provider: `with ScriptedUpstream([Say("hello")]) as upstream: ...`, or `async with`.

    It runs in a thread and an event loop of its own, so the code under test may block or not.
    Without a script it echoes.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        port: int = 0,
        seed: int = 0,
        strict: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._provider = Provider(script, seed=seed, strict=strict, now=now)
        self._log = Log()
        self._now = now
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="scripted-upstream", daemon=True
        )
        self._living: set[ScriptedConnection] = set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self._port}"

    @property
    def openai_url(self) -> str:
        """The `base_url` for an OpenAI client."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The `base_url` for an Anthropic client."""
        return self.url

    @property
    def requests(self) -> tuple[Received, ...]:
        """Every request so far, in its current state; read it again to see updates."""
        return self._log.requests

    @property
    def bill(self) -> Usage:
        """The total tokens of all replies so far, including broken ones, which providers charge for
        too."""
        return self._provider.bill

    def wait_for_requests(self, count: int, timeout: float = _PATIENCE) -> tuple[Received, ...]:
        """Blocks until so many requests have arrived whole. From async code: `await
        asyncio.to_thread(...)`."""
        self._log.wait(f"{count} requests", timeout, lambda seen: len(seen) >= count)
        return self.requests

    def wait_for_end(self, index: int, timeout: float = _PATIENCE) -> Received:
        """Blocks until the request's reply has ended, one way or the other."""
        self._log.wait(
            f"the end of request {index}",
            timeout,
            lambda seen: (
                len(seen) > index and (seen[index].ended or seen[index].cancelled_after is not None)
            ),
        )
        return self.requests[index]

    def wait_for_cancel(self, index: int = 0, timeout: float = _PATIENCE) -> Received:
        """Blocks until the client has left before the end of that request's reply."""
        self._log.wait(
            f"request {index} to be cancelled",
            timeout,
            lambda seen: len(seen) > index and seen[index].cancelled_after is not None,
        )
        return self.requests[index]

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Connections are refused, open ones are dropped; afterwards it listens on the same port
        again."""
        self._run(self._unlisten())
        try:
            yield
        finally:
            self._run(self._listen())

    def start(self) -> Self:
        self._thread.start()
        try:
            self._run(self._listen())
        except OSError:  # the port is taken
            self.stop()
            raise
        return self

    def stop(self) -> None:
        self._run(self._unlisten())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)

    def _run(self, coroutine: object) -> None:
        assert asyncio.iscoroutine(coroutine)
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_PATIENCE)

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: ScriptedConnection(self._answer, self._living), _HOST, self._port
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def _unlisten(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in tuple(self._living):
            await connection.close()

    async def _answer(
        self, request: Received
    ) -> tuple[Iterable[Act], Callable[[AnswerOutcome], None]]:
        dialect = _ROUTES.get(_route(request.path)) if request.method == "POST" else None
        received = self._log.add(replace(request, arrived=self._now(), dialect=dialect))
        return self._provider.acts(received), lambda performed: self._log.end(
            received.index, cancelled_after=performed.cancelled_after
        )


def free_port() -> int:
    """A free loopback port: connections to it are refused."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


MODELS = (
    "claude-opus-5",
    "claude-sonnet-5",
    "claude-haiku-4-5",
    "gpt-5.6",
    "gpt-5.5",
    "gpt-5.4-mini",
)

_ROUTES = {
    "/v1/chat/completions": DialectName.OPENAI_CHAT,
    "/v1/responses": DialectName.OPENAI_RESPONSES,
    "/v1/messages": DialectName.ANTHROPIC,
    "/v1/messages/count_tokens": DialectName.ANTHROPIC,
}


class RequestRefused(Exception):
    """The request is answered with an error status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Provider:
    """Answers one request after the other and stores what a provider stores."""

    def __init__(
        self, script: Script | None, *, seed: int, strict: bool, now: Callable[[], float]
    ) -> None:
        self._play = player(script)
        self._seed = seed
        self._strict = strict
        self._now = now
        self.bill = Usage()
        """The tokens of all replies so far, added up."""
        self._cache = PromptCache()
        self._replies = 0
        self._remembered: dict[str, list[Any]] = {}
        """The items of every response that a client may continue, by its id."""

    def acts(self, request: Received) -> Iterator[Act]:
        if request.dialect is not None:
            return self._spoken(request, WIRES[request.dialect])
        if request.method == "GET" and _route(request.path) == "/v1/models":
            return _json_acts(_models(anthropic_style=bool(request.header("anthropic-version"))))
        return _json_acts(_echo(request))

    def _spoken(self, request: Received, wire: DialectWire) -> Iterator[Act]:
        try:
            body = self._checked(request)
            items = self._continued(body) if request.dialect is DialectName.OPENAI_RESPONSES else []
            charge, cache = self._charged(request.dialect, body, items)
            if _route(request.path).endswith("/count_tokens"):
                return _json_acts({"input_tokens": charge.total})
            say = self._play(request)
        except RequestRefused as refused:
            return _refusal_acts(Say(fault=Status(refused.status, refused.message)), wire)
        if any(isinstance(fault, Status | Raw) for fault in say.faults):
            return _refusal_acts(say, wire)
        self._cache = cache
        turn = self._turn(put_faults_into_text(say), body, charge)
        self._remember(request.dialect, turn, items)
        return _reply_acts(turn, wire)

    def _checked(self, request: Received) -> dict[str, Any]:
        try:
            body = request.json()
        except ValueError as error:
            raise RequestRefused(
                400, f"We could not parse the JSON body of your request. ({error})"
            ) from error
        _check_shape(request.dialect, body)
        if (
            self._strict
            and request.dialect is not None
            and not _route(request.path).endswith("/count_tokens")
        ):
            _check_rules(request.dialect, request.decoded)
        return body

    def _continued(self, body: Mapping[str, Any]) -> list[Any]:
        """The whole input of a Responses request: what the provider stored of the conversation, and
        what is new."""
        given = body.get("input", [])
        new = (
            [{"type": "message", "role": "user", "content": given}]
            if isinstance(given, str)
            else list(given)
        )
        previous = body.get("previous_response_id")
        if not previous:
            return new
        if previous not in self._remembered:
            raise RequestRefused(400, f"Previous response with id '{previous}' not found.")
        return [*self._remembered[previous], *new]

    def _charged(
        self, dialect: DialectName | None, body: Mapping[str, Any], items: list[Any]
    ) -> tuple[Charge, PromptCache]:
        """The cost of the input, and the cache after the request."""
        now = self._now()
        try:
            if dialect is DialectName.ANTHROPIC:
                return serve_marked(self._cache, marked_prompt(body), now)
            plain = (
                chat_prompt(body)
                if dialect is DialectName.OPENAI_CHAT
                else responses_prompt(body, items)
            )
            return serve_plain(self._cache, plain, now)
        except BreakpointsRefused as refused:
            raise RequestRefused(400, str(refused)) from refused

    def _turn(self, say: Say, body: Mapping[str, Any], charge: Charge) -> WireTurn:
        self._replies += 1
        turn = WireTurn(say, body, charge, f"{self._seed}/{self._replies}", int(self._now()))
        self.bill = Usage(
            self.bill.input + charge.fresh,
            self.bill.cache_read + charge.read,
            self.bill.cache_write + charge.written,
            self.bill.output + turn.output_tokens,
            lasting=self.bill.lasting + charge.written_long,
        )
        return turn

    def _remember(self, dialect: DialectName | None, turn: WireTurn, items: list[Any]) -> None:
        if dialect is DialectName.OPENAI_RESPONSES and turn.body.get("store", True):
            self._remembered[turn.id("resp_")] = [*items, *responses_output(turn)]


def _route(path: str) -> str:
    return path.partition("?")[0]


def _check_shape(dialect: DialectName | None, body: Mapping[str, Any]) -> None:
    """The minimum that any provider requires of a body: a conversation."""
    name = "input" if dialect is DialectName.OPENAI_RESPONSES else "messages"
    messages = body.get(name)
    if isinstance(messages, str) and name == "input":
        return
    if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
        raise RequestRefused(400, f"Invalid type for '{name}': expected an array of objects.")


def _check_rules(dialect: DialectName, body: bytes) -> None:
    """Refuse what the provider would refuse, with its error text."""
    from hotset.dialects import DIALECTS  # noqa: PLC0415 - only a strict upstream needs them
    from hotset.errors import Malformed  # noqa: PLC0415

    reader = DIALECTS[dialect]
    try:
        broken = reader.check(reader.parse(body))
    except Malformed as error:
        raise RequestRefused(400, str(error)) from error
    if broken:
        raise RequestRefused(400, broken[0].text)


def _reply_acts(turn: WireTurn, wire: DialectWire) -> Iterator[Act]:
    say = turn.say
    request_id = (wire.request_id_header, turn.id("req_"))
    if turn.body.get("stream"):
        frames = event_frames(wire.events(turn), say.faults, wire)
        headers = (
            ("content-type", "text/event-stream; charset=utf-8"),
            ("cache-control", "no-cache"),
            request_id,
        )
        return socket_acts(
            ScriptedAnswer(200, headers, frames, streamed=True), say.faults, say.delay
        )
    return socket_acts(
        ScriptedAnswer(
            200, (("content-type", "application/json"), request_id), (to_json(wire.document(turn)),)
        ),
        say.faults,
        say.delay,
    )


def _refusal_acts(say: Say, wire: DialectWire) -> Iterator[Act]:
    fault = next(fault for fault in say.faults if isinstance(fault, Status | Raw))
    if isinstance(fault, Raw):
        return socket_acts(
            ScriptedAnswer(fault.status, fault.headers, (fault.body,)), say.faults, say.delay
        )
    body = wire.refusal(fault.code, fault.message or status_text(fault.code))
    waiting = (("retry-after", f"{fault.retry_after:g}"),) if fault.retry_after is not None else ()
    headers = (
        ("content-type", "application/json"),
        (wire.request_id_header, "req_refused"),
        *waiting,
        *fault.headers,
    )
    return socket_acts(ScriptedAnswer(fault.code, headers, (to_json(body),)), say.faults, say.delay)


def _json_acts(value: Any) -> Iterator[Act]:
    return socket_acts(
        ScriptedAnswer(200, (("content-type", "application/json"),), (to_json(value),)), (), 0.0
    )


def _models(*, anthropic_style: bool) -> dict[str, Any]:
    """The two providers list models at the same path; Anthropic's clients are recognised by their
    version header."""
    since = datetime(2026, 1, 1, tzinfo=UTC)
    if anthropic_style:
        listed = [
            {
                "type": "model",
                "id": id,
                "display_name": id,
                "created_at": since.isoformat(),
                "lifecycle": "active",
            }
            for id in MODELS
            if id.startswith("claude")
        ]
        return {
            "data": listed,
            "has_more": False,
            "first_id": listed[0]["id"],
            "last_id": listed[-1]["id"],
        }
    created = int(since.timestamp())
    return {
        "object": "list",
        "data": [
            {"id": id, "object": "model", "created": created, "owned_by": "scripted"}
            for id in MODELS
        ],
    }


def _echo(request: Received) -> dict[str, Any]:
    return {
        "method": request.method,
        "path": request.path,
        "headers": [list(pair) for pair in request.headers],
        "body": request.body.decode("utf-8", "backslashreplace"),
    }
