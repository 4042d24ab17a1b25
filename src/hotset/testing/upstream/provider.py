"""What the scripted provider answers to a request, without a socket: routes, replies, memory,
bill."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from hotset.nouns.message import DialectName, Usage
from hotset.testing.upstream import anthropic, chat, responses
from hotset.testing.upstream.cache import (
    BreakpointsRefused,
    Charge,
    PromptCache,
    serve_marked,
    serve_plain,
)
from hotset.testing.upstream.faults import Raw, Status
from hotset.testing.upstream.http import Arrival
from hotset.testing.upstream.prompt import chat_prompt, marked_prompt, responses_prompt
from hotset.testing.upstream.received import Received
from hotset.testing.upstream.script import Say, Script, player
from hotset.testing.upstream.shape import Act, ScriptedAnswer, acts, stream, swollen
from hotset.testing.upstream.wire import DialectWire, Wires, WireTurn, status_text, to_json

WIRES: Wires = {
    DialectName.ANTHROPIC: anthropic.WIRE,
    DialectName.OPENAI_CHAT: chat.WIRE,
    DialectName.OPENAI_RESPONSES: responses.WIRE,
}

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


class Refused(Exception):
    """The request is answered with an error status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Provider:
    """Answers one request after the other; remembers what a provider remembers."""

    def __init__(
        self, script: Script | None, *, seed: int, strict: bool, now: Callable[[], float]
    ) -> None:
        self._play = player(script)
        self._seed = seed
        self._strict = strict
        self._now = now
        self._bill = Usage()
        self._cache = PromptCache()
        self._replies = 0
        self._remembered: dict[str, list[Any]] = {}
        """The items of every response that a client may continue, by its id."""

    @property
    def bill(self) -> Usage:
        return self._bill

    def receive(self, arrival: Arrival, now: float) -> Received:
        dialect = _ROUTES.get(_route(arrival.path)) if arrival.method == "POST" else None
        return Received(
            0, arrival.method, arrival.path, arrival.headers, arrival.body, now, dialect
        )

    def acts(self, request: Received) -> Iterator[Act]:
        if request.dialect is not None:
            return self._spoken(request, WIRES[request.dialect])
        if request.method == "GET" and _route(request.path) == "/v1/models":
            return _plain(_models(anthropic_style=bool(request.header("anthropic-version"))))
        return _plain(_echo(request))

    def _spoken(self, request: Received, wire: DialectWire) -> Iterator[Act]:
        try:
            body = self._checked(request)
            items = self._continued(body) if request.dialect is DialectName.OPENAI_RESPONSES else []
            charge, cache = self._charged(request.dialect, body, items)
            if _route(request.path).endswith("/count_tokens"):
                return _plain({"input_tokens": charge.total})
            say = self._play(request)
        except Refused as refused:
            return _refused(Say(fault=Status(refused.status, refused.message)), wire)
        if any(isinstance(fault, Status | Raw) for fault in say.faults):
            return _refused(say, wire)
        self._cache = cache
        turn = self._turn(swollen(say), body, charge)
        self._remember(request.dialect, turn, items)
        return _told(turn, wire)

    def _checked(self, request: Received) -> dict[str, Any]:
        try:
            body = request.json()
        except ValueError as error:
            raise Refused(
                400, f"We could not parse the JSON body of your request. ({error})"
            ) from error
        _shaped(request.dialect, body)
        if (
            self._strict
            and request.dialect is not None
            and not _route(request.path).endswith("/count_tokens")
        ):
            _enforce(request.dialect, request.decoded)
        return body

    def _continued(self, body: Mapping[str, Any]) -> list[Any]:
        """The whole input of a Responses request: what the provider remembers of the conversation,
        and what is new."""
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
            raise Refused(400, f"Previous response with id '{previous}' not found.")
        return [*self._remembered[previous], *new]

    def _charged(
        self, dialect: DialectName | None, body: Mapping[str, Any], items: list[Any]
    ) -> tuple[Charge, PromptCache]:
        """What the input costs, and the cache as it is once the request was served."""
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
            raise Refused(400, str(refused)) from refused

    def _turn(self, say: Say, body: Mapping[str, Any], charge: Charge) -> WireTurn:
        self._replies += 1
        turn = WireTurn(say, body, charge, f"{self._seed}/{self._replies}", int(self._now()))
        self._bill = Usage(
            self._bill.input + charge.fresh,
            self._bill.cache_read + charge.read,
            self._bill.cache_write + charge.written,
            self._bill.output + turn.output_tokens,
        )
        return turn

    def _remember(self, dialect: DialectName | None, turn: WireTurn, items: list[Any]) -> None:
        if dialect is DialectName.OPENAI_RESPONSES and turn.body.get("store", True):
            self._remembered[turn.id("resp_")] = [*items, *responses.output(turn)]


def _route(path: str) -> str:
    return path.partition("?")[0]


def _shaped(dialect: DialectName | None, body: Mapping[str, Any]) -> None:
    """The least that any provider asks of a body: that it holds a conversation."""
    name = "input" if dialect is DialectName.OPENAI_RESPONSES else "messages"
    said = body.get(name)
    if isinstance(said, str) and name == "input":
        return
    if not isinstance(said, list) or not all(isinstance(each, dict) for each in said):
        raise Refused(400, f"Invalid type for '{name}': expected an array of objects.")


def _enforce(dialect: DialectName, body: bytes) -> None:
    """Refuses what the provider itself would refuse, in its words."""
    from hotset.dialects import DIALECTS  # noqa: PLC0415 - only a strict upstream needs them
    from hotset.errors import Malformed  # noqa: PLC0415

    reader = DIALECTS[dialect]
    try:
        broken = reader.check(reader.parse(body))
    except Malformed as error:
        raise Refused(400, str(error)) from error
    if broken:
        raise Refused(400, broken[0].text)


def _told(turn: WireTurn, wire: DialectWire) -> Iterator[Act]:
    say = turn.say
    request_id = (wire.request_id_header, turn.id("req_"))
    if turn.body.get("stream"):
        frames = stream(wire.events(turn), say.faults, wire)
        headers = (
            ("content-type", "text/event-stream; charset=utf-8"),
            ("cache-control", "no-cache"),
            request_id,
        )
        return acts(ScriptedAnswer(200, headers, frames, streamed=True), say.faults, say.delay)
    return acts(
        ScriptedAnswer(
            200, (("content-type", "application/json"), request_id), (to_json(wire.document(turn)),)
        ),
        say.faults,
        say.delay,
    )


def _refused(say: Say, wire: DialectWire) -> Iterator[Act]:
    fault = next(fault for fault in say.faults if isinstance(fault, Status | Raw))
    if isinstance(fault, Raw):
        return acts(
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
    return acts(ScriptedAnswer(fault.code, headers, (to_json(body),)), say.faults, say.delay)


def _plain(value: Any) -> Iterator[Act]:
    return acts(
        ScriptedAnswer(200, (("content-type", "application/json"),), (to_json(value),)), (), 0.0
    )


def _models(*, anthropic_style: bool) -> dict[str, Any]:
    """The two providers list models at the same path; Anthropic's clients give themselves away by
    their version header."""
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
