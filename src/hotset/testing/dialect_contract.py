"""The contract of a dialect, as a check that any adapter must pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import msgspec

from hotset.dialects.port import Dialect
from hotset.errors import Malformed
from hotset.nouns.message import Message, Request

_CUTS = 200  # of one body or reply; a short one is cut at every byte
_NOT_REQUESTS = (
    b"",
    b" ",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"{}",
    b'{"a":1,"a":2}',
    b"\xef\xbb\xbf{}",
    b'{"a":"\xff"}',
    b"[" * 5000,
)


def check_dialect(dialect: Dialect, bodies: Iterable[bytes], replies: Iterable[tuple[bytes, bool]]) -> None:
    """Raises `AssertionError` with what `dialect` breaks.

    `bodies` are requests as clients send them; `replies` are such as the provider finished, each with whether it was streamed.
    """
    requests = [_check_round_trip(dialect, body) for body in bodies]
    for request in requests:
        _check_splicing(dialect, request)
        _check_resending(dialect, request)
        _check_cut_bodies(dialect, request.raw)
    _check_refuses_what_is_no_request(dialect)
    for body, streamed in replies:
        _check_reply(dialect, body, streamed=streamed)
        for request in requests:
            _check_echo(dialect, request, dialect.read(body, streamed=streamed).messages)
    _check_refusals(dialect)


def _check_round_trip(dialect: Dialect, body: bytes) -> Request:
    request = dialect.parse(body)
    assert request.dialect == dialect.name, f"{dialect.name} parsed a request of {request.dialect}"
    assert dialect.render(request) == body, "render(parse(body)) is not body"
    for message in request.messages:
        assert message.span is not None, "a parsed message does not know where it stood"
        assert body[message.span.start : message.span.end] == message.raw, "a message's span does not hold its bytes"
    assert dialect.check(request, request) == (), f"false alarms: {dialect.check(request, request)}"
    return request


def _check_splicing(dialect: Dialect, request: Request) -> None:
    """One message at a time is exchanged, then left out: every other byte stays."""
    body = request.raw
    for index, message in enumerate(request.messages):
        assert message.span is not None
        other = b" " + message.raw
        exchanged = (*request.messages[:index], replace(message, raw=other), *request.messages[index + 1 :])
        rendered = dialect.render(replace(request, messages=exchanged))
        assert rendered == body[: message.span.start] + other + body[message.span.end :], (
            f"message {index}: others' bytes changed"
        )
        left = (*request.messages[:index], *request.messages[index + 1 :])
        rendered = dialect.render(replace(request, messages=left))
        assert rendered.startswith(body[: request.array.start]), (
            f"without message {index}: bytes in front of the messages changed"
        )
        assert rendered.endswith(body[request.array.end :]), f"without message {index}: bytes behind the messages changed"
        assert _essences(dialect.parse(rendered).messages) == _essences(left), f"without message {index}: others changed"


def _check_resending(dialect: Dialect, request: Request) -> None:
    """A client that decodes its history and encodes it again says the same."""
    spelled = tuple(replace(each, raw=_respelled(each.raw)) for each in request.messages)
    again = dialect.parse(dialect.render(replace(request, messages=spelled)))
    assert _essences(again.messages) == _essences(request.messages), "key order or spelling changed what a message says"


def _check_cut_bodies(dialect: Dialect, body: bytes) -> None:
    for cut in _cuts(body):
        with suppress(Malformed):
            dialect.parse(body[:cut])


def _check_refuses_what_is_no_request(dialect: Dialect) -> None:
    for body in _NOT_REQUESTS:
        try:
            dialect.parse(body)
        except Malformed:
            continue
        raise AssertionError(f"{body[:40]!r} was parsed as a request")


def _check_reply(dialect: Dialect, body: bytes, *, streamed: bool) -> None:
    reply = dialect.read(body, streamed=streamed)
    assert reply.complete, "a finished reply was read as incomplete"
    assert reply.messages, "a finished reply has no messages"
    if streamed:
        assert dialect.ends(body), "a finished stream carries no mark that ends it"
    for cut in _cuts(body):
        half = dialect.read(body[:cut], streamed=streamed)
        assert not half.complete or dialect.ends(body[:cut]), f"cut at {cut} of {len(body)}: half a reply was read as complete"
    dialect.read(body.replace(b"e", b"\xff"), streamed=streamed)
    dialect.read(body, streamed=not streamed)


def _check_echo(dialect: Dialect, request: Request, said: Sequence[Message]) -> None:
    """The reply's messages, sent back as they are, are recognised."""
    extended = dialect.render(replace(request, messages=(*request.messages, *said)))
    again = dialect.parse(extended).messages[len(request.messages) :]
    assert _essences(again) == _essences(said), "a reply that was sent back is not recognised"
    assert [each.role for each in again] == [each.role for each in said]


def _check_refusals(dialect: Dialect) -> None:
    for status in (400, 401, 403, 404, 413, 429, 500, 502, 503, 504, 529):
        reply = dialect.read(dialect.refuse(status, f"no: {status} \ud800"), streamed=False)
        assert reply.error, f"the refusal for {status} is not read as an error"
        assert not reply.complete
        assert not reply.messages


def _essences(messages: Sequence[Message]) -> list[tuple[str, bool]]:
    return [(each.essence, each.aside and each.role != "assistant") for each in messages]


def _respelled(raw: bytes) -> bytes:
    return msgspec.json.format(msgspec.json.encode(msgspec.json.decode(raw), order="sorted"), indent=1)


def _cuts(body: bytes) -> Iterator[int]:
    yield from range(0, len(body), max(1, len(body) // _CUTS))
    yield max(0, len(body) - 1)
