"""What a client sent leaves as it came, byte for byte, wherever hotset changed nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from hotset.dialects import DIALECTS
from hotset.errors import Malformed
from hotset.nouns.message import DialectName, Span
from hotset.testing.dialect_contract import check_dialect
from tests.campaign import sample
from tests.dialects import recordings
from tests.dialects.conversations import conversation, conversations

DIALECT = pytest.mark.parametrize(
    "dialect", list(DIALECTS.values()), ids=lambda dialect: dialect.name
)
RECORDED = pytest.mark.parametrize(("name", "file"), recordings.REQUESTS)


@pytest.mark.row("C9")
@RECORDED
def test_a_recorded_request_that_nothing_changes_is_the_very_same_bytes(name, file):
    body = recordings.recording(name, file)
    assert DIALECTS[name].render(DIALECTS[name].parse(body)) is body


@pytest.mark.row("C9")
@DIALECT
def test_hundreds_of_generated_conversations_leave_as_they_came(dialect):
    for seed in range(sample(200, 500)):
        body = conversation(dialect.name, Random(seed))
        request = dialect.parse(body)
        assert dialect.render(request) == body
        assert all(body[each.span.start : each.span.end] == each.raw for each in request.messages)


@DIALECT
@settings(max_examples=sample(40, 100), deadline=None)
@given(data=st.data())
def test_messages_that_were_replaced_leave_every_other_byte_alone(dialect, data):
    body = data.draw(conversations(dialect.name))
    request = dialect.parse(body)
    chosen = data.draw(st.sets(st.integers(0, len(request.messages) - 1)))
    new = [
        replace(each, raw=b'{"new":1}') if index in chosen else each
        for index, each in enumerate(request.messages)
    ]
    pieces, here = [], 0
    for each in new:
        pieces += [body[here : each.span.start], each.raw]
        here = each.span.end
    assert dialect.render(replace(request, messages=tuple(new))) == b"".join([*pieces, body[here:]])


@DIALECT
@settings(max_examples=sample(40, 100), deadline=None)
@given(data=st.data())
def test_where_messages_come_or_go_only_the_array_is_written_anew(dialect, data):
    body = data.draw(conversations(dialect.name))
    request = dialect.parse(body)
    kept = data.draw(st.lists(st.sampled_from(request.messages), max_size=6))
    kept.append(replace(request.messages[0], span=None))
    rendered = dialect.render(replace(request, messages=tuple(kept)))
    assert rendered.startswith(body[: request.array.start])
    assert rendered.endswith(body[request.array.end :])
    again = dialect.parse(rendered)
    assert [each.essence for each in again.messages] == [each.essence for each in kept]


def test_messages_in_another_order_are_rendered_in_that_order():
    dialect = DIALECTS[DialectName.OPENAI_CHAT]
    request = dialect.parse(
        b'{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}'
    )
    rendered = dialect.render(replace(request, messages=request.messages[::-1]))
    assert rendered == b'{"messages":[{"role":"user","content":"b"},{"role":"user","content":"a"}]}'


def test_an_empty_array_stays_as_it_was_spelled():
    dialect = DIALECTS[DialectName.OPENAI_CHAT]
    body = b'{"messages": [ \n ]}'
    request = dialect.parse(body)
    assert dialect.render(request) is body
    assert dialect.render(replace(request, messages=())) is body


def test_removing_every_message_leaves_an_empty_array():
    dialect = DIALECTS[DialectName.OPENAI_CHAT]
    request = dialect.parse(b'{"messages": [ {"role":"user","content":"a"} ], "model":"m"}')
    assert dialect.render(replace(request, messages=())) == b'{"messages": [], "model":"m"}'


def test_a_string_input_becomes_an_item_when_another_is_added():
    dialect = DIALECTS[DialectName.OPENAI_RESPONSES]
    request = dialect.parse(b'{"input": "h\\u00e9", "model":"m"}')
    added = dialect.parse(b'{"input":[{"role":"user","content":"b"}]}').messages
    rendered = dialect.render(replace(request, messages=(*request.messages, *added)))
    assert rendered == (
        b'{"input": [{"role":"user","content":"h\\u00e9"},{"role":"user","content":"b"}], '
        b'"model":"m"}'
    )
    assert [each.essence for each in dialect.parse(rendered).messages] == [
        request.messages[0].essence,
        added[0].essence,
    ]


@pytest.mark.parametrize(
    "body", [b'{"prompt":{"id":"p"}}', b' { "previous_response_id" : "r" , "model":"m"}']
)
def test_a_request_without_input_gets_one_when_a_message_is_added(body):
    dialect = DIALECTS[DialectName.OPENAI_RESPONSES]
    request = dialect.parse(body)
    assert dialect.render(request) is body
    added = dialect.parse(b'{"input":[{"role":"user","content":"b"}]}').messages
    rendered = dialect.render(replace(request, messages=added))
    assert json.loads(rendered) == {**json.loads(body), "input": [{"role": "user", "content": "b"}]}


@pytest.mark.row("C9")
@DIALECT
def test_fields_that_nobody_knows_are_kept_among_the_parameters(dialect):
    for body in recordings.requests(dialect.name):
        request = dialect.parse(body)
        whole, params = json.loads(body), json.loads(request.params)
        left_out = {"messages", "input", "system", "instructions", "tools", "functions"}
        assert params == {key: value for key, value in whole.items() if key not in left_out}


@DIALECT
@pytest.mark.rest_slow
def test_the_dialect_keeps_the_contract_that_is_shipped(dialect):
    generated = [conversation(dialect.name, Random(seed)) for seed in range(20)]
    check_dialect(
        dialect, [*recordings.requests(dialect.name), *generated], recordings.replies(dialect.name)
    )


class _Wrapped:
    """A dialect with one thing wrong."""

    def __init__(self, dialect, **wrong):
        self._dialect = dialect
        self._wrong = wrong

    def __getattr__(self, name):
        return self._wrong.get(name) or getattr(self._dialect, name)


def _reserialises(dialect):
    return _Wrapped(
        dialect, render=lambda request: json.dumps(json.loads(dialect.render(request))).encode()
    )


def _swallows_errors(dialect):
    def parse(body):
        try:
            return dialect.parse(body)
        except Malformed:
            return dialect.parse(b'{"messages":[],"input":[]}')

    return _Wrapped(dialect, parse=parse)


def _says_everything_is_whole(dialect):
    return _Wrapped(
        dialect,
        read=lambda body, streamed: replace(dialect.read(body, streamed=streamed), complete=True),
    )


def _raises_on_half_a_reply(dialect):
    def read(body, *, streamed):
        reply = dialect.read(body, streamed=streamed)
        if not reply.complete:
            raise ValueError(body)
        return reply

    return _Wrapped(dialect, read=read)


def _hears_the_bytes(dialect):
    def parse(body):
        request = dialect.parse(body)
        return replace(
            request,
            messages=tuple(replace(each, essence=str(hash(each.raw))) for each in request.messages),
        )

    return _Wrapped(dialect, parse=parse)


def _misplaces(dialect):
    def parse(body):
        request = dialect.parse(body)
        moved = tuple(
            replace(each, span=Span(each.span.start, each.span.end + 1))
            for each in request.messages
        )
        return replace(request, messages=moved)

    return _Wrapped(dialect, parse=parse, render=lambda request: request.raw)


@DIALECT
@pytest.mark.parametrize(
    "spoil",
    [
        _reserialises,
        _swallows_errors,
        _says_everything_is_whole,
        _raises_on_half_a_reply,
        _hears_the_bytes,
        _misplaces,
    ],
)
def test_the_contract_finds_a_dialect_that_breaks_it(dialect, spoil):
    with pytest.raises((AssertionError, ValueError)):
        check_dialect(
            spoil(dialect), recordings.requests(dialect.name), recordings.replies(dialect.name)
        )
