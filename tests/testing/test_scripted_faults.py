"""Each fault does on the wire what its name says, in every dialect."""

from __future__ import annotations

import json

import anthropic
import openai
import pytest

from hotset.testing import Call, Clock, Say, ScriptedUpstream
from hotset.testing.upstream import (
    CloseDelimited,
    Comments,
    Crlf,
    Drip,
    Edge,
    ErrorEvent,
    Fin,
    Gzipped,
    HugeEvent,
    InvalidUtf8,
    Missing,
    MultilineData,
    Raw,
    Reset,
    Silence,
    Split,
    Status,
    Twice,
    WrongLength,
    WrongOrder,
)
from tests.testing.raw_http import DIALECTS, ask

TEXT = "Grüße aus der Küche: 火曜日 is fine, and so is the day after."
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


def told(fault, dialect, say=None, *, stream=True):
    say = say or Say(TEXT)
    with ScriptedUpstream(
        [Say(say.text, say.calls, chunks=say.chunks, fault=fault)], now=Clock()
    ) as upstream:
        return ask(upstream, dialect, stream=stream)


def said(dialect, say=None):
    """The same reply without any fault."""
    return told(None, dialect, say)


def test_a_status_speaks_anthropics_error_language():
    refused = told(Status(529), "anthropic")
    assert refused.status == 529
    assert json.loads(refused.body)["error"] == {
        "type": "overloaded_error",
        "message": "Overloaded",
    }


@pytest.mark.parametrize("dialect", DIALECTS[1:])
def test_a_status_speaks_openais_error_language(dialect):
    refused = told(Status(429, "Slow down.", retry_after=1.5), dialect)
    assert (refused.status, refused.header("retry-after")) == (429, "1.5")
    assert json.loads(refused.body)["error"]["code"] == "rate_limit_exceeded"


@pytest.mark.parametrize(
    "code", [400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529]
)
@pytest.mark.rest_slow
def test_the_sdks_raise_what_each_status_means(code):
    with ScriptedUpstream(lambda _: Say(fault=Status(code, "So it is."))) as upstream:
        with anthropic.Anthropic(
            base_url=upstream.anthropic_url, api_key="k", max_retries=0
        ) as claude:
            with pytest.raises(anthropic.APIStatusError, match=r"So it is\.") as raised:
                claude.messages.create(
                    model="c", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
                )
            assert raised.value.status_code == code
        with openai.OpenAI(base_url=upstream.openai_url, api_key="k", max_retries=0) as gpt:
            with pytest.raises(openai.APIStatusError, match=r"So it is\.") as raised:
                gpt.responses.create(model="g", input="hi")
            assert raised.value.status_code == code


def test_an_answer_may_be_anything_at_all():
    page = told(Raw(), "openai-chat")
    assert (page.status, page.header("content-type")) == (502, "text/html")
    assert page.body.startswith(b"<html>")


@every_dialect
def test_an_error_may_come_inside_a_stream(dialect):
    whole, broken = said(dialect), told(ErrorEvent(events=2), dialect)
    assert broken.status == 200
    assert broken.events[:2] == whole.events[:2]
    assert len(broken.events) == 3
    assert b"Overloaded" in broken.events[-1][1]
    assert broken.ending == "kept"


def test_the_sdks_raise_an_error_that_comes_inside_a_stream():
    with ScriptedUpstream(lambda _: Say(TEXT, fault=ErrorEvent())) as upstream:
        with anthropic.Anthropic(
            base_url=upstream.anthropic_url, api_key="k", max_retries=0
        ) as claude:
            stream = claude.messages.create(
                model="c", max_tokens=9, messages=[{"role": "user", "content": "hi"}], stream=True
            )
            with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
                list(stream)
        with openai.OpenAI(base_url=upstream.openai_url, api_key="k", max_retries=0) as gpt:
            stream = gpt.chat.completions.create(
                model="g", messages=[{"role": "user", "content": "hi"}], stream=True
            )
            with pytest.raises(openai.APIError, match="Overloaded"):
                list(stream)


@every_dialect
@pytest.mark.parametrize("events", [0, 1, 3])
def test_the_connection_is_reset_after_so_many_events(dialect, events):
    cut = told(Reset(events=events), dialect)
    assert cut.ending == "reset"
    assert cut.status == 200
    assert cut.events == said(dialect).events[:events]


def test_the_connection_is_reset_before_the_first_byte():
    cut = told(Reset(), "anthropic")
    assert (cut.ending, cut.head, cut.raw) == ("reset", b"", b"")


@pytest.mark.parametrize(
    ("fault", "ending"), [(Reset(bytes=100), "reset"), (Fin(bytes=100), "fin")]
)
def test_the_connection_ends_after_so_many_bytes(fault, ending):
    cut = told(fault, "openai-responses")
    assert cut.ending == ending
    assert cut.body == said("openai-responses").body[:100]


@pytest.mark.parametrize(
    ("fault", "ending"), [(Reset(events=99), "reset"), (Fin(events=99), "fin")]
)
def test_a_cut_after_the_last_event_leaves_the_stream_without_its_end(fault, ending):
    cut = told(fault, "anthropic")
    assert cut.ending == ending
    assert cut.events == said("anthropic").events
    assert not cut.raw.endswith(b"0\r\n\r\n")


@every_dialect
def test_half_a_stream_ends_politely(dialect):
    cut = told(Fin(events=2), dialect)
    assert cut.ending == "fin"
    assert cut.events == said(dialect).events[:2]


@pytest.mark.parametrize("fault", [Silence(0.02), Silence(0.02, events=2), Drip(0.001)])
def test_pauses_change_nothing_but_the_time(fault):
    assert told(fault, "anthropic").body == said("anthropic").body


@every_dialect
@pytest.mark.parametrize("size", [1, 7])
def test_a_stream_is_cut_at_every_so_many_bytes(dialect, size):
    cut = told(Split(size), dialect)
    assert cut.body == said(dialect).body
    assert max(map(len, cut.chunks)) == size
    if size == 1:
        assert len(cut.chunks) == len(cut.body)


def test_the_sdks_read_a_stream_that_is_cut_at_every_byte_inside_characters_too():
    asked = [{"role": "user", "content": "hi"}]
    with (
        ScriptedUpstream(lambda _: Say(TEXT, fault=(Split(1), Crlf(), Comments()))) as upstream,
        anthropic.Anthropic(base_url=upstream.anthropic_url, api_key="k", max_retries=0) as claude,
        openai.OpenAI(base_url=upstream.openai_url, api_key="k", max_retries=0) as gpt,
    ):
        with claude.messages.stream(model="c", max_tokens=9, messages=asked) as stream:
            assert stream.get_final_text() == TEXT
        with gpt.responses.stream(model="g", input="hi") as stream:
            assert stream.get_final_response().output_text == TEXT


@every_dialect
def test_lines_may_end_with_crlf(dialect):
    crlf = told(Crlf(), dialect)
    assert crlf.body.replace(b"\r\n", b"\n") == said(dialect).body
    assert crlf.body.count(b"\r\n") == crlf.body.count(b"\n")


@every_dialect
def test_comments_may_stand_between_events(dialect):
    commented = told(Comments("still here"), dialect)
    assert commented.body.count(b": still here\n") == len(commented.events)
    assert commented.events == said(dialect).events


@every_dialect
def test_data_may_be_spread_over_lines(dialect):
    spread, whole = told(MultilineData(), dialect), said(dialect)
    assert spread.body.count(b"\ndata: ") > 3 * whole.body.count(b"\ndata: ")
    assert [_parsed(data) for _, data in spread.events] == [
        _parsed(data) for _, data in whole.events
    ]


@every_dialect
@pytest.mark.rest_slow
def test_one_event_may_be_huge(dialect):
    huge = told(HugeEvent(3_000_000), dialect)
    assert max(len(data) for _, data in huge.events) > 3_000_000
    assert huge.ending == "kept"


@every_dialect
@pytest.mark.parametrize("edge", list(Edge))
def test_the_first_or_last_event_may_be_missing_or_come_twice(dialect, edge):
    whole = said(dialect).events
    first, last = whole[0], whole[-1]
    if edge is Edge.START:
        assert told(Missing(edge), dialect).events == whole[1:]
        assert told(Twice(edge), dialect).events == [first, *whole]
    else:
        assert told(Missing(edge), dialect).events == whole[:-1]
        assert told(Twice(edge), dialect).events == [*whole, last]


@every_dialect
def test_blocks_may_come_in_the_wrong_order(dialect):
    say = Say(calls=(Call("a", {"x": 1}), Call("b", {"y": 2})))
    whole, mixed = said(dialect, say), told(WrongOrder(), dialect, say)
    assert sorted(mixed.events) == sorted(whole.events)
    assert mixed.body.index(b'"b"') < mixed.body.index(b'"a"')


@every_dialect
@pytest.mark.parametrize("stream", [True, False])
def test_bodies_may_be_compressed_whether_asked_or_not(dialect, stream):
    packed, plain = told(Gzipped(), dialect, stream=stream), told(None, dialect, stream=stream)
    assert packed.header("content-encoding") == "gzip"
    assert packed.body == plain.body
    assert b"model" not in packed.raw


def test_the_sdks_read_a_compressed_stream():
    with (
        ScriptedUpstream(lambda _: Say(TEXT, fault=(Gzipped(), Split(5)))) as upstream,
        openai.OpenAI(base_url=upstream.openai_url, api_key="k", max_retries=0) as gpt,
    ):
        chunks = gpt.chat.completions.create(
            model="g", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == TEXT


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("by", [50, -50])
def test_the_length_may_be_wrong(stream, by):
    wrong, right = (
        told(WrongLength(by), "anthropic", stream=stream),
        told(None, "anthropic", stream=stream),
    )
    assert int(wrong.header("content-length")) == len(right.body) + by
    assert wrong.ending == "fin"
    assert wrong.raw == right.body


def test_a_body_may_end_with_its_connection():
    closed = told(CloseDelimited(), "anthropic")
    assert closed.head.startswith(b"HTTP/1.0 200")
    assert (closed.header("content-length"), closed.header("transfer-encoding"), closed.ending) == (
        "",
        "",
        "fin",
    )
    assert closed.raw == said("anthropic").body


@every_dialect
@pytest.mark.parametrize("stream", [True, False])
def test_text_may_hold_bytes_that_are_no_utf8(dialect, stream):
    broken = told(InvalidUtf8(), dialect, stream=stream).body
    assert b"\xff\xc3" in broken
    with pytest.raises(UnicodeDecodeError):
        broken.decode()


def test_a_status_may_come_late_and_in_pieces():
    refused = told((Status(503), Silence(0.01), Fin(bytes=20)), "anthropic")
    assert (refused.status, len(refused.raw), refused.ending) == (503, 20, "fin")


def _parsed(data):
    return data if data == b"[DONE]" else json.loads(data)
