"""The client sees one reply, as if the model had never called a tool of ours; the model sees its
own turn again later."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from hotset.dialects import DIALECTS, sse
from hotset.nouns.link import link
from hotset.nouns.message import Answer, DialectName
from hotset.nouns.page import ROOT, Kind
from hotset.testing.upstream import Call, Comments, Crlf, MultilineData, Say, WrongOrder
from tests.campaign import sample
from tests.dialects.conversations import nonsense
from tests.dialects.recordings import WIRE, recording
from tests.dialects.rounds import OURS, endless, flat, reply, said, told, turns

EVERY = list(DialectName)
CHAT, RESPONSES, ANTHROPIC = (
    DialectName.OPENAI_CHAT,
    DialectName.OPENAI_RESPONSES,
    DialectName.ANTHROPIC,
)
REPLIES = [
    (DialectName(path.parent.name), path.name)
    for path in sorted(WIRE.glob("*/*.*"))
    if ".request." not in path.name
]
BOTH_WAYS = pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
ALL = pytest.mark.parametrize("name", EVERY)

LOOK = Say(
    text="Let me look.", thinking="Where was it?", calls=(Call("retrieve_context", {"id": "p1"}),)
)
FOUND = Say(text="Found it.", thinking="There.")
RUN = Call("Bash", {"command": "ls"})


def _bodies(name, says, *, streamed, **more):
    """Each round thinks something else: equal reasoning cannot be told apart."""
    thought = [
        replace(say, thinking=say.thinking and f"{say.thinking} {number}")
        for number, say in enumerate(says)
    ]
    return [
        reply(name, say, number, streamed=streamed, **more) for number, say in enumerate(thought)
    ]


def _parts(name, client, *, streamed):
    return flat(
        name,
        [
            part
            for message in DIALECTS[name].read(client, streamed=streamed).messages
            for part in message.parts
        ],
    )


def _cuts(body):
    """Where a reply is cut: around everything that ends a line, and at some of the other places."""
    step = sample(5, 1)
    return [
        at
        for at in range(len(body))
        if at % step == 0 or set(body[max(at - 2, 0) : at + 2]) & set(b"\r\n")
    ]


# Nothing of ours in it: not a byte changes.


@pytest.mark.parametrize(("name", "file"), REPLIES)
@pytest.mark.rest_slow
def test_a_reply_without_a_call_of_ours_is_relayed_byte_for_byte_however_it_is_cut(name, file):
    body, streamed = recording(name, file), file.endswith(".sse")
    for size in (1, 7, len(body)):
        assert told(name, [body], streamed=streamed, size=size).client == body
    for cut in _cuts(body):
        view = DIALECTS[name].view(OURS, streamed=streamed)
        assert view.take(body[:cut]) + view.take(body[cut:]) + view.close() == body


@pytest.mark.parametrize(("name", "file"), REPLIES)
def test_a_reply_that_breaks_off_anywhere_is_relayed_as_far_as_it_came(name, file):
    body, streamed = recording(name, file), file.endswith(".sse")
    for cut in range(0, len(body), 3):
        assert told(name, [body[:cut]], streamed=streamed).client == body[:cut]


@pytest.mark.parametrize(
    ("name", "file"), [each for each in REPLIES if each[1].endswith(".reply.sse")]
)
def test_every_event_but_the_end_is_relayed_as_soon_as_it_is_whole(name, file):
    body = recording(name, file)
    view, out, came = DIALECTS[name].view(OURS, streamed=True), b"", 0
    blank = b"\r\n\r\n" if b"\r\n" in body else b"\n\n"
    for event in body.split(blank)[:-1]:
        out += view.take(event + blank)
        came += len(event + blank)
        is_end = any(
            mark in event for mark in (b"message_delta", b'finish_reason":"', b"response.completed")
        )
        if is_end:
            break
        assert len(out) == came
    assert is_end


@ALL
@pytest.mark.parametrize(
    "fault",
    [Crlf(), Comments(), MultilineData(), WrongOrder()],
    ids=lambda fault: type(fault).__name__,
)
def test_odd_streams_without_a_call_of_ours_stay_as_they_are(name, fault):
    say = Say(text="a longer text, in pieces", thinking="hm", calls=(RUN, RUN))
    body = reply(name, say, 0, streamed=True, faults=(fault,))
    assert told(name, [body], streamed=True, size=5).client == body


# One reply out of several.


@ALL
@BOTH_WAYS
@settings(deadline=None)
@given(says=turns())
@pytest.mark.rest_slow
def test_the_client_sees_everything_that_was_said_but_our_calls(name, streamed, says):
    bodies = _bodies(name, says, streamed=streamed)
    turn = told(name, bodies, streamed=streamed)
    replies = [DIALECTS[name].read(body, streamed=streamed) for body in bodies]
    seen = DIALECTS[name].read(turn.client, streamed=streamed)
    assert _parts(name, turn.client, streamed=streamed) == said(name, bodies, streamed=streamed)
    assert (seen.complete, seen.error, seen.stop) == (True, "", replies[-1].stop)
    assert seen.usage == replies[-1].usage
    assert not any(our.encode() in turn.client for our in OURS)


@ALL
@settings(deadline=None)
@given(
    says=turns(),
    size=st.integers(1, 40),
    fault=st.sampled_from([(), (Crlf(),), (Comments(),), (MultilineData(),)]),
)
@pytest.mark.rest_slow
def test_what_the_client_sees_does_not_depend_on_how_the_streams_were_cut(name, says, size, fault):
    bodies = _bodies(name, says, streamed=True, faults=fault)
    cut = told(name, bodies, streamed=True, size=size)
    assert list(sse.events(cut.client)) == list(
        sse.events(told(name, bodies, streamed=True).client)
    )
    assert _parts(name, cut.client, streamed=True) == said(name, bodies, streamed=True)


@ALL
@settings(deadline=None)
@given(says=turns())
def test_what_is_counted_in_a_stream_is_counted_on_without_a_gap(name, says):
    client = told(name, _bodies(name, says, streamed=True), streamed=True).client
    events = [json.loads(event.data) for event in sse.events(client) if event.data != b"[DONE]"]
    if name is ANTHROPIC:
        assert [event["type"] for event in events].count("message_start") == 1
        started = [event["index"] for event in events if event["type"] == "content_block_start"]
        assert started == list(range(len(started)))
    elif name is RESPONSES:
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        added = [
            event["output_index"]
            for event in events
            if event["type"] == "response.output_item.added"
        ]
        assert added == list(range(len(added)))
        assert len(events[-1]["response"]["output"]) == len(added)
        assert {event["response"]["id"] for event in events if "response" in event} == {
            events[0]["response"]["id"]
        }
    else:
        assert len({(event["id"], event["created"], event["model"]) for event in events}) == 1
        deltas = [choice["delta"] for event in events for choice in event["choices"]]
        assert ["role" in delta for delta in deltas].count(True) == 1
        indexes = [
            call["index"]
            for delta in deltas
            for call in delta.get("tool_calls", ())
            if "id" in call
        ]
        assert indexes == list(range(len(indexes)))


@ALL
@BOTH_WAYS
@settings(deadline=None)
@given(says=turns())
def test_each_round_tells_which_tools_of_ours_it_calls_and_whether_the_turn_goes_on(
    name, streamed, says
):
    turn = told(name, _bodies(name, says, streamed=streamed), streamed=streamed)
    for say, each in zip(says, turn.rounds, strict=True):
        own = [call for call in say.calls if call.name in OURS]
        assert [call.name for call in each.calls] == [call.name for call in own]
        assert all(
            json.loads(call.arguments) == made.arguments
            for call, made in zip(each.calls, own, strict=True)
        )
        assert each.foreign == (len(own) < len(say.calls))
        assert each.asks == (bool(own) and not each.foreign)
        assert each.complete


@ALL
@BOTH_WAYS
def test_a_turn_that_may_not_go_on_ends_with_what_was_said(name, streamed):
    bodies = _bodies(name, [LOOK, LOOK], streamed=streamed)
    turn = told(name, bodies, streamed=streamed)
    seen = DIALECTS[name].read(turn.client, streamed=streamed)
    assert seen.stop == {ANTHROPIC: "end_turn", CHAT: "stop", RESPONSES: "completed"}[name]
    assert _parts(name, turn.client, streamed=streamed) == said(name, bodies, streamed=streamed)


@ALL
@BOTH_WAYS
def test_half_a_call_of_ours_is_not_answered_and_the_client_learns_that_the_limit_was_reached(
    name, streamed
):
    cut = replace(LOOK, calls=(Call("retrieve_context", '{"id": "p'),), truncated=True)
    turn = told(name, _bodies(name, [cut], streamed=streamed), streamed=streamed)
    assert turn.rounds[0].calls
    assert not turn.rounds[0].asks
    seen = DIALECTS[name].read(turn.client, streamed=streamed)
    assert (
        seen.stop == {ANTHROPIC: "max_tokens", CHAT: "length", RESPONSES: "max_output_tokens"}[name]
    )
    assert Kind.TOOL_CALL not in [part.kind for message in seen.messages for part in message.parts]


@ALL
@settings(deadline=None)
@given(says=turns())
def test_blocks_that_come_in_the_wrong_order_keep_their_own_deltas(name, says):
    bodies = _bodies(name, says, streamed=True, faults=(WrongOrder(),))
    assert _parts(name, told(name, bodies, streamed=True).client, streamed=True) == said(
        name, bodies, streamed=True
    )


# What breaks off breaks off for the client.


@ALL
@settings(deadline=None)
@given(says=turns(), share=st.floats(0, 1, exclude_max=True))
@pytest.mark.rest_slow
def test_a_later_round_that_breaks_off_has_no_end_and_shows_nothing_of_ours(name, says, share):
    *whole, last = _bodies(name, [LOOK, *says], streamed=True)
    cut = last[: int(len(last) * share)]
    turn = told(name, [*whole, cut], streamed=True)
    is_whole = DIALECTS[name].read(cut, streamed=True).complete
    assert turn.rounds[-1].complete == is_whole
    seen = DIALECTS[name].read(turn.client, streamed=True)
    assert seen.complete == is_whole
    assert not any(part.tool in OURS for message in seen.messages for part in message.parts)


@ALL
def test_half_an_event_is_not_relayed_where_something_was_hidden(name):
    first, second = _bodies(name, [LOOK, LOOK], streamed=True)
    turn = told(name, [first, second[: second.index(b"retrieve_context") + 4]], streamed=True)
    assert turn.client.endswith(b"\n\n")
    assert b"retr" not in turn.client


@pytest.mark.parametrize(
    ("name", "mark"), [(ANTHROPIC, b"event: message_stop"), (CHAT, b"data: [DONE]")]
)
def test_a_round_that_called_us_and_broke_off_before_its_last_event_gives_no_reason_to_stop(
    name, mark
):
    body = reply(name, LOOK, 0, streamed=True)
    turn = told(name, [body[: body.index(mark)]], streamed=True)
    assert turn.rounds[0].stop
    assert not turn.rounds[0].asks
    assert DIALECTS[name].read(turn.client, streamed=True).stop == ""


@ALL
@pytest.mark.parametrize("status", [400, 429, 529])
@pytest.mark.parametrize("is_json", [True, False])
def test_a_refusal_after_the_reply_has_begun_becomes_an_error_event(name, status, is_json):
    dialect = DIALECTS[name]
    view = dialect.view(OURS, streamed=True)
    out = view.take(reply(name, LOOK, 0, streamed=True))
    assert view.round().asks
    body = dialect.refuse(status, "no more") if is_json else b"<html>Bad Gateway</html>"
    seen = dialect.read(out + view.fail(status, body), streamed=True)
    assert not seen.complete
    assert seen.error == dialect.read(dialect.refuse(status, ""), streamed=False).error
    assert dialect.view(OURS, streamed=False).fail(status, body) == body


@ALL
def test_the_end_of_a_round_is_told_by_its_last_event(name):
    body = reply(name, LOOK, 0, streamed=True)
    view = DIALECTS[name].view(OURS, streamed=True)
    ended = []
    for at in range(len(body)):
        view.take(body[at : at + 1])
        ended.append(view.ended)
    assert ended == [False] * (len(body) - 1) + [True]
    view.round()
    view.take(reply(name, FOUND, 1, streamed=True)[:40])
    assert not view.ended


@ALL
@pytest.mark.parametrize("seed", range(10))
def test_no_reply_of_known_words_in_wrong_places_is_an_error(name, seed):
    rng = Random(seed)
    ours = frozenset({"x", "text", "tool", "user"})
    for _ in range(40):
        events = [json.dumps(nonsense(rng)).encode() for _ in range(6)]
        stream, document = (
            DIALECTS[name].view(ours, streamed=True),
            DIALECTS[name].view(ours, streamed=False),
        )
        for event in events:
            stream.take(b"data: %s\n\n" % event)
            document.take(event)
            if rng.random() < 0.3:
                stream.round()
                document.round()
        links = list(link(ROOT, DIALECTS[name].read(stream.close(), streamed=True).messages))
        document.close()
        stream.hidden([], links)
        document.hidden([], links)


# Later requests: the model sees its own turn.


@ALL
@BOTH_WAYS
@settings(deadline=None)
@given(says=turns())
@pytest.mark.rest_slow
def test_later_requests_show_the_model_its_own_turn(name, streamed, says):
    turn = told(name, _bodies(name, says, streamed=streamed), streamed=streamed)
    revealed = _revealed(name, turn, streamed=streamed)
    assert DIALECTS[name].check(revealed) == ()
    assert sorted(_own_calls(revealed)) == sorted(
        call.id for each in turn.rounds for call in each.calls
    )
    model_saw = _model_saw(turn)
    if not turn.answers or len(turn.answers) < len(turn.rounds):
        assert [message.raw for message in revealed.messages[1 : 1 + len(model_saw)]] == model_saw


@ALL
@BOTH_WAYS
@settings(deadline=None)
@given(says=endless())
def test_a_turn_that_was_not_let_go_on_can_be_gone_on_from(name, streamed, says):
    turn = told(name, _bodies(name, says, streamed=streamed), streamed=streamed)
    if not any(say.text for say in says):
        assert _hidden(name, turn, streamed=streamed) == ()
        return
    revealed = _revealed(name, turn, streamed=streamed)
    last = max(number for number, say in enumerate(says) if say.text)
    if name is not RESPONSES or not any(
        say.thinking for say in says[last + 1 :]
    ):  # reasoning stays with the client, who saw it
        assert DIALECTS[name].check(revealed) == ()
    assert set(_own_calls(revealed)) <= {
        call.id for each in turn.rounds[:-1] for call in each.calls
    }


@ALL
@BOTH_WAYS
def test_a_reply_without_a_call_of_ours_hides_nothing(name, streamed):
    turn = told(
        name, _bodies(name, [replace(FOUND, calls=(RUN,))], streamed=streamed), streamed=streamed
    )
    assert _hidden(name, turn, streamed=streamed) == ()


def _links(name, turn, *, streamed):
    seen = DIALECTS[name].read(turn.client, streamed=streamed).messages
    return list(link(ROOT, [DIALECTS[name].say("go"), *seen]))[1:]


def _hidden(name, turn, *, streamed):
    return turn.view.hidden(turn.answers, _links(name, turn, streamed=streamed))


def _revealed(name, turn, *, streamed):
    """The client's next request, as the model gets it: the client's own calls are answered, then
    the user speaks."""
    dialect = DIALECTS[name]
    seen = dialect.read(turn.client, streamed=streamed).messages
    calls = [
        part.call
        for message in seen
        for part in message.parts
        if part.kind.family is Kind.TOOL_CALL
    ]
    results = dialect.answer([Answer(call, "ran") for call in calls])
    raws = [
        dialect.say("go").raw,
        *(message.raw for message in seen),
        *results,
        dialect.say("and then?").raw,
    ]
    field = "input" if name is RESPONSES else "messages"
    request = dialect.parse(b'{"model":"m","%s":[%s]}' % (field.encode(), b",".join(raws)))
    hidden = {row.chain: row for row in _hidden(name, turn, streamed=streamed)}
    return dialect.parse(
        dialect.render(dialect.reveal(request, list(link(ROOT, request.messages)), hidden))
    )


def _model_saw(turn):
    answers = [*turn.answers, *[()] * len(turn.rounds)]
    return [
        raw
        for each, answer in zip(turn.rounds, answers, strict=False)
        for raw in (*each.raws, *answer)
    ]


def _own_calls(request):
    called = [
        part
        for message in request.messages
        for part in message.parts
        if part.kind is Kind.TOOL_CALL
    ]
    return [part.call for part in called if part.tool in OURS]
