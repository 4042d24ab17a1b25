"""The contract of a dialect, as a check that any adapter must pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import msgspec

from hotset.dialects.port import Dialect, Mark
from hotset.dialects.sse import events
from hotset.errors import Malformed
from hotset.nouns.link import link
from hotset.nouns.message import Answer, Loading, Message, Part, Request, ToolSpec
from hotset.nouns.page import ROOT, Chain, Kind, Role
from hotset.nouns.window import Hidden

_CUTS = 200  # of one body or reply; a short one is cut at every byte
_SOME_WORDS, _OTHER_WORDS = b"xSomeWordsx", b"xOtherOnesx"
_NEVER_REWORDED = (Kind.SYSTEM, Kind.PROMPT, Kind.THINKING)
_TOOLS = (
    ToolSpec(
        "hotset_first",
        "“Says” what\nit does",
        b'{"type":"object","properties":{"n":{"maximum":1E5}}}',
    ),
    ToolSpec("hotset_second", "", b'{ "type" : "object" }'),
)
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


def check_dialect(
    dialect: Dialect, bodies: Iterable[bytes], replies: Iterable[tuple[bytes, bool]]
) -> None:
    """Raises `AssertionError` with what `dialect` breaks.

    `bodies` are requests as clients send them; `replies` are complete replies of the provider, each
    with whether it was streamed.
    """
    requests = [_check_round_trip(dialect, body) for body in bodies]
    for request in requests:
        _check_splicing(dialect, request)
        _check_resending(dialect, request)
        _check_cut_bodies(dialect, request.raw)
        _check_rewording(dialect, request)
        _check_offering(dialect, request)
        _check_speaking(dialect, request)
        _check_revealing(dialect, request)
    _check_refuses_what_is_no_request(dialect)
    _check_handing_over(dialect)
    for body, streamed in replies:
        _check_reply(dialect, body, streamed=streamed)
        for request in requests:
            _check_echo(dialect, request, dialect.read(body, streamed=streamed).messages)
        _check_answering(dialect, dialect.read(body, streamed=streamed).messages)
    _check_refusals(dialect)


def _check_round_trip(dialect: Dialect, body: bytes) -> Request:
    request = dialect.parse(body)
    assert request.dialect == dialect.name, f"{dialect.name} parsed a request of {request.dialect}"
    assert dialect.render(request) == body, "render(parse(body)) is not body"
    for message in request.messages:
        assert message.span is not None, "a parsed message does not know where it stood"
        assert body[message.span.start : message.span.end] == message.raw, (
            "a message's span does not hold its bytes"
        )
    assert dialect.check(request, request) == (), f"false alarms: {dialect.check(request, request)}"
    return request


def _check_splicing(dialect: Dialect, request: Request) -> None:
    """Replace, then drop, one message at a time: every other byte stays."""
    body = request.raw
    for index, message in enumerate(request.messages):
        assert message.span is not None
        other = b" " + message.raw
        exchanged = (
            *request.messages[:index],
            replace(message, raw=other),
            *request.messages[index + 1 :],
        )
        rendered = dialect.render(replace(request, messages=exchanged))
        assert rendered == body[: message.span.start] + other + body[message.span.end :], (
            f"message {index}: others' bytes changed"
        )
        left = (*request.messages[:index], *request.messages[index + 1 :])
        rendered = dialect.render(replace(request, messages=left))
        assert rendered.startswith(body[: request.array.start]), (
            f"without message {index}: bytes in front of the messages changed"
        )
        assert rendered.endswith(body[request.array.end :]), (
            f"without message {index}: bytes behind the messages changed"
        )
        assert _essences(dialect.parse(rendered).messages) == _essences(left), (
            f"without message {index}: others changed"
        )


def _check_resending(dialect: Dialect, request: Request) -> None:
    """A history that a client decoded and encoded again has the same messages."""
    spelled = tuple(replace(each, raw=_respell(each.raw)) for each in request.messages)
    again = dialect.parse(dialect.render(replace(request, messages=spelled)))
    assert _essences(again.messages) == _essences(request.messages), (
        "key order or spelling changed what a message says"
    )


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
        marks = _marks(dialect, body)
        assert Mark.LAST in marks[-1], "a finished stream does not end with the mark that ends it"
    for cut in _cuts(body):
        half = dialect.read(body[:cut], streamed=streamed)
        has_ended = streamed and any(
            mark & (Mark.STOP | Mark.LAST) for mark in _marks(dialect, body[:cut])
        )
        assert not half.complete or has_ended, (
            f"cut at {cut} of {len(body)}: half a reply was read as complete"
        )
    dialect.read(body.replace(b"e", b"\xff"), streamed=streamed)
    dialect.read(body, streamed=not streamed)


def _marks(dialect: Dialect, body: bytes) -> list[Mark]:
    return [dialect.mark(event.name, event.data) for event in events(body)]


def _check_echo(dialect: Dialect, request: Request, messages: Sequence[Message]) -> None:
    """The reply's messages are recognised when sent back."""
    extended = dialect.render(replace(request, messages=(*request.messages, *messages)))
    again = dialect.parse(extended).messages[len(request.messages) :]
    assert _essences(again) == _essences(messages), "a reply that was sent back is not recognised"
    assert [each.role for each in again] == [each.role for each in messages]


def _check_rewording(dialect: Dialect, request: Request) -> None:
    """Tool results, the assistant's texts and calls can be reworded; prompts, thinking and system
    texts cannot."""
    for index, message in enumerate(request.messages):
        assert dialect.reword(message, {}) == message, "rewording nothing changed a message"
        for position, part in enumerate(message.parts):
            words = _words_for(part, _SOME_WORDS)
            try:
                new = dialect.reword(message, {position: words})
            except ValueError:
                assert not _must_be_reworded(part), (
                    f"message {index}, part {position}: a {part.kind} could not be reworded"
                )
                continue
            assert part.kind not in _NEVER_REWORDED, (
                f"message {index}, part {position}: a {part.kind} was reworded"
            )
            assert replace(new, raw=message.raw, parts=message.parts) == message, (
                "rewording changed whose a message is"
            )
            other = dialect.reword(message, {position: _words_for(part, _OTHER_WORDS)})
            assert new.raw.replace(_SOME_WORDS, _OTHER_WORDS) == other.raw, (
                "more than the words depends on the words"
            )
            _check_reworded(dialect, request, index, new)
            _check_nothing_is_refused(dialect, message, position)


def _check_reworded(dialect: Dialect, request: Request, index: int, new: Message) -> None:
    messages = (*request.messages[:index], new, *request.messages[index + 1 :])
    again = dialect.parse(dialect.render(replace(request, messages=messages)))
    assert list(map(_comparable_part, again.messages[index].parts)) == list(
        map(_comparable_part, new.parts)
    ), f"message {index}: what was reworded is read otherwise"
    assert [each.raw for each in again.messages] == [each.raw for each in messages]
    assert dialect.check(again, request) == (), (
        f"message {index}, reworded: {dialect.check(again, request)}"
    )


def _check_nothing_is_refused(dialect: Dialect, message: Message, position: int) -> None:
    for words in (b"", b" \n", b"\xff"):
        try:
            dialect.reword(message, {position: words})
        except ValueError:
            continue
        raise AssertionError(f"a part was reworded with {words!r}")


def _check_offering(dialect: Dialect, request: Request) -> None:
    """Our tools are added to the client's, the same bytes each time; everything else stays."""
    offered = dialect.offer(request.raw, _TOOLS)
    assert dialect.offer(request.raw, _TOOLS) == offered, (
        "a tool is offered in other bytes the second time"
    )
    assert dialect.offer(request.raw, ()) == request.raw, "offering nothing changed the body"
    names = [tool.name for tool in _TOOLS]
    if offered == request.raw:
        assert not dialect.injectable(request, names), "tools may be offered, but are not"
        return
    again = dialect.parse(offered)
    ours = [tool for tool in again.tools if tool.name in names]
    assert [tool.name for tool in ours] == names, "our tools are not there, in order"
    assert tuple(ours) == dialect.declare(_TOOLS), "our tools are not as declared"
    assert [tool for tool in again.tools if tool not in ours] == list(request.tools), (
        "the client's tools changed"
    )
    assert [each.raw for each in again.messages] == [each.raw for each in request.messages]
    assert (again.params, again.system) == (request.params, request.system)
    assert not request.previous or not dialect.injectable(request, names), (
        "the provider holds a part of this conversation"
    )
    assert not dialect.injectable(again, names), "tools of our names are there already"
    if dialect.injectable(request, names):
        assert dialect.check(again, request) == (), f"with tools: {dialect.check(again, request)}"
    try:
        dialect.offer(offered, _TOOLS)
    except ValueError:
        return
    raise AssertionError("a tool was offered twice")


def _check_speaking(dialect: Dialect, request: Request) -> None:
    """A message of ours is read as the user's, also if it is the only one."""
    message = dialect.say("“said” \\ \n\0 \ud800")
    assert (message.role, message.span, [part.kind for part in message.parts]) == (
        Role.USER,
        None,
        [Kind.PROMPT],
    )
    assert message.parts[0].content.decode() == "“said” \\ \n\0 ?"
    for messages in ((message,), (message, *request.messages), (*request.messages, message)):
        again = dialect.parse(dialect.render(replace(request, messages=messages)))
        assert _essences(again.messages) == _essences(messages), "a new message changes others"


def _check_answering(dialect: Dialect, messages: Sequence[Message]) -> None:
    """Every call in a reply can be answered, and the answers are read as its results."""
    calls = [
        part.call
        for message in messages
        for part in message.parts
        if part.kind.family is Kind.TOOL_CALL and part.call
    ]
    answers = dialect.answer(
        [Answer(call, f"to {call}", failed=bool(number)) for number, call in enumerate(calls)]
    )
    results = [part for raw in answers for part in dialect.understand(raw).parts]
    assert [(part.call, part.content.decode()) for part in results] == [
        (call, f"to {call}") for call in calls
    ]


def _check_handing_over(dialect: Dialect) -> None:
    """The tools that an answer makes callable are known by name, and can be described in words as
    well."""
    found = replace(_TOOLS[0], name="hotset_found", loading=Loading.WHEN_FOUND)
    for searched in (False, True):
        raws = dialect.answer([Answer("call", "words", tools=(found,), searched=searched)])
        names = [name for raw in raws for name in dialect.loaded_tools(raw)]
        assert names in ([], [found.name]), "an answer makes another tool callable"
        spelled = [dialect.spell_out(raw, {found.name: "what it does"}) for raw in raws]
        assert not any(map(dialect.loaded_tools, spelled)), (
            "what was spelled out still refers to a tool"
        )
        contents = [part.content for raw in spelled for part in dialect.understand(raw).parts]
        assert contents == [b"what it does" if names else b"words"], (
            "an answer in words does not say what it found"
        )
    assert {each.name for each in dialect.declare((found,))} <= {found.name}


def _check_revealing(dialect: Dialect, request: Request) -> None:
    """Hidden messages return to their place, the same bytes each time; without any, nothing
    changes."""
    links = tuple(link(ROOT, request.messages))
    assert dialect.render(dialect.reveal(request, links, {})) == request.raw, (
        "revealing nothing changed the body"
    )
    if not links:
        return
    last, before = links[-1], dialect.say("before").raw
    hidden = Hidden(last.chain, before=(before,), instead=dialect.say("instead").raw)
    revealed = dialect.reveal(request, links, {last.chain: hidden})
    assert dialect.reveal(request, links, {last.chain: hidden}) == revealed, (
        "what is revealed differs the second time"
    )
    assert dialect.reveal(request, links, {Chain("elsewhere"): hidden}) == request, (
        "another line's turns were revealed"
    )
    again = dialect.parse(dialect.render(revealed))
    raws = [each.raw for each in request.messages]
    assert [each.raw for each in again.messages][-2:] == [before, hidden.instead]
    assert [each.essence for each in again.messages[:-2]] == [
        each.essence for each in request.messages[:-1]
    ]
    assert len(again.messages) == len(raws) + 1


def _check_refusals(dialect: Dialect) -> None:
    for status in (400, 401, 403, 404, 413, 429, 500, 502, 503, 504, 529):
        reply = dialect.read(dialect.refuse(status, f"no: {status} \ud800"), streamed=False)
        assert reply.error, f"the refusal for {status} is not read as an error"
        assert not reply.complete
        assert not reply.messages


def _words_for(part: Part, words: bytes) -> bytes:
    is_json = part.kind.family is Kind.TOOL_CALL and part.media != "text/plain"
    return b'{"said":"%s"}' % words if is_json else words


def _must_be_reworded(part: Part) -> bool:
    return bool(part.content) and part.kind.family in (
        Kind.TOOL_RESULT,
        Kind.TOOL_CALL,
        Kind.RESPONSE,
    )


def _comparable_part(part: Part) -> tuple[Kind, bytes, str, str, str]:
    """A part without its special kind, which depends on the call in another message."""
    return part.kind.family, part.content, part.media, part.tool, part.call


def _essences(messages: Sequence[Message]) -> list[tuple[str, bool]]:
    return [(each.essence, each.aside and each.role != "assistant") for each in messages]


def _respell(raw: bytes) -> bytes:
    return msgspec.json.format(
        msgspec.json.encode(msgspec.json.decode(raw), order="sorted"), indent=1
    )


def _cuts(body: bytes) -> Iterator[int]:
    yield from range(0, len(body), max(1, len(body) // _CUTS))
    yield max(0, len(body) - 1)
