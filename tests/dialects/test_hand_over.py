"""Calls of the client's tools through one of ours: the client sees calls of its own tools."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from hotset.dialects import DIALECTS
from hotset.dialects.hand_over import HandOver
from hotset.nouns.message import DialectName
from hotset.nouns.page import Kind
from hotset.sources.tools.client_tools import hand_over
from hotset.testing.upstream import Call, Say
from tests.dialects.recordings import REPLIES, recording
from tests.dialects.rounds import OURS, reply

USE = "use_tool"
THEIRS = hand_over({"Edit": b"{}"})
assert isinstance(THEIRS, HandOver)


def _seen(name, body, *, streamed, size=1 << 20):
    view = DIALECTS[name].view(OURS | {USE}, streamed=streamed, hand_over=THEIRS)
    shown = b"".join(view.take(body[at : at + size]) for at in range(0, len(body), size))
    last = view.round()
    return shown + view.close(), last


def _calls(name, client, *, streamed):
    read = DIALECTS[name].read(client, streamed=streamed)
    parts = [part for message in read.messages for part in message.parts]
    calls = [part for part in parts if part.kind.family is Kind.TOOL_CALL]
    return [(part.tool, json.loads(part.content)) for part in calls], read


@pytest.mark.parametrize(("name", "file"), REPLIES)
@pytest.mark.rest_slow
def test_a_reply_without_such_a_call_is_relayed_byte_for_byte(name, file):
    body, streamed = recording(name, file), file.endswith(".sse")
    for size in (1, 7, len(body)):
        assert _seen(name, body, streamed=streamed, size=size)[0] == body


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", DialectName)
@given(
    arguments=st.dictionaries(
        st.text(max_size=9), st.text() | st.integers() | st.none(), max_size=4
    ),
    size=st.integers(1, 400),
    beside=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_the_client_gets_its_own_tool_and_the_arguments_as_they_were_written(
    name, streamed, arguments, size, beside
):
    other = (Call("read_file", {"path": "a.py"}),) if beside else ()
    calls = (Call(USE, {"name": "Edit", "arguments": arguments}), *other)
    body = reply(name, Say("So.", calls=calls), 0, streamed=streamed)
    client, last = _seen(name, body, streamed=streamed, size=size)
    seen, read = _calls(name, client, streamed=streamed)

    assert seen == [("Edit", arguments), *(("read_file", {"path": "a.py"}) for _ in other)]
    assert read.complete
    assert read.stop == DIALECTS[name].read(body, streamed=streamed).stop
    assert last.foreign
    assert not last.calls
    assert USE.encode() not in client


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", DialectName)
def test_a_call_of_another_tool_stays_ours(name, streamed):
    calls = (Call(USE, {"name": "github__issue", "arguments": {}}),)
    body = reply(name, Say("So.", calls=calls), 0, streamed=streamed)
    client, last = _seen(name, body, streamed=streamed)

    assert [call.name for call in last.calls] == [USE]
    assert not last.foreign
    assert _calls(name, client, streamed=streamed)[0] == []


@pytest.mark.parametrize("name", DialectName)
def test_a_reply_that_breaks_off_within_such_a_call_shows_no_half_of_it(name):
    calls = (Call(USE, {"name": "Edit", "arguments": {"text": "x" * 50}}),)
    body = reply(name, Say("So.", calls=calls), 0, streamed=True)
    for cut in range(0, len(body), 5):
        client, last = _seen(name, body[:cut], streamed=True)
        assert USE.encode() not in client or not last.complete
        assert not any(tool == USE for tool, _ in _whole_calls(name, client))


def _whole_calls(name, client):
    try:
        return _calls(name, client, streamed=True)[0]
    except ValueError:  # half of the arguments: the reply broke off for the client too
        return []
