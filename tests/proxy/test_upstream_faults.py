"""Whatever an upstream does, the client sees just that: never a made-up success, never a second try
(catalogue D)."""

from __future__ import annotations

import hashlib
import http.client
import json

import pytest

from hotset.nouns.turn import Outcome
from hotset.testing import Say
from hotset.testing.upstream.faults import (
    CloseDelimited,
    Comments,
    Crlf,
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
    Split,
    Status,
    Twice,
    WrongLength,
    WrongOrder,
)
from tests.proxy.wire import DIALECTS, post, question


@pytest.mark.parametrize("dialect", DIALECTS)
def test_91_an_upstream_that_refuses_connections_is_a_502_in_the_clients_dialect(pair, dialect):
    world = pair()
    with world.upstream.refusing():
        answer = post(world.address, dialect, question(dialect, "hello"))

    assert answer.status == 502
    assert "could not be reached" in answer.json()["error"]["message"]
    (turn,) = world.turns()
    assert turn.outcome is Outcome.BROKEN


@pytest.mark.parametrize("host", ["http://no-such-host.invalid/v1", "https://127.0.0.1:{port}/v1"])
def test_91_a_name_that_does_not_resolve_and_a_port_without_tls_are_502s(tmp_path, host):
    from hotset.testing import ScriptedUpstream  # noqa: PLC0415
    from hotset.testing.proxy import LocalProxy  # noqa: PLC0415

    with (
        ScriptedUpstream() as upstream,
        LocalProxy(tmp_path / "data", openai_url=host.format(port=upstream.port)) as proxy,
    ):
        answer = post(proxy.address, "openai-chat", question("openai-chat", "hello"))

    assert answer.status == 502
    assert answer.json()["error"]["message"].startswith("hotset: openai at ")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("code", [400, 401, 403, 404, 408, 409, 413, 429, 500, 502, 503, 504, 529])
@pytest.mark.rest_slow
def test_92_an_error_status_reaches_the_client_as_it_is(pair, directly, dialect, code):
    script = [
        Say(fault=Status(code, "the provider's own words", retry_after=7 if code == 429 else None))
    ]
    world = pair(script)
    body = question(dialect, "hello")

    through = post(world.address, dialect, body)
    direct = directly(script, dialect, body)

    assert (through.status, through.body) == (direct.status, direct.body)
    assert through.status == code
    assert through.json()["error"]["message"] == "the provider's own words"
    assert through.header("retry-after") == direct.header("retry-after")
    assert len(world.upstream.requests) == 1, "a call that failed was sent again"
    (turn,) = world.turns()
    assert (turn.outcome, turn.status) == (Outcome.REFUSED, code)


def test_92_an_answer_that_is_no_dialect_at_all_passes(pair):
    world = pair([Say(fault=Raw())])

    answer = post(world.address, "openai-chat", question("openai-chat", "hello"))

    assert (answer.status, answer.body, answer.header("content-type")) == (
        502,
        Raw().body,
        "text/html",
    )


SAME = {
    "93-error-event": ErrorEvent(events=2),
    "96-split-at-every-byte": Split(1),
    "96-crlf": Crlf(),
    "96-comments": Comments(),
    "96-multi-line-data": MultilineData(),
    "96-huge-event": HugeEvent(3 << 20),
    "97-no-start": Missing(Edge.START),
    "97-no-end": Missing(Edge.END),
    "97-two-starts": Twice(Edge.START),
    "97-two-ends": Twice(Edge.END),
    "97-wrong-order": WrongOrder(),
    "98-gzipped": Gzipped(),
    "98-close-delimited": CloseDelimited(),
    "98-invalid-utf8": InvalidUtf8(),
    "98-invalid-utf8-split": (InvalidUtf8(), Split(1)),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", SAME)
@pytest.mark.rest_slow
def test_an_odd_stream_passes_byte_for_byte(pair, directly, dialect, name):
    script = [
        Say("some words, and then some more of them", thinking="let me see", fault=SAME[name])
    ]
    world = pair(script)
    body = question(dialect, "hello", stream=True)

    through = post(world.address, dialect, body)
    direct = directly(script, dialect, body)

    assert through.status == direct.status == 200
    assert hashlib.sha256(through.body).digest() == hashlib.sha256(direct.body).digest()
    assert through.header("content-encoding") == direct.header("content-encoding")
    assert len(world.turns()) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "fault",
    [
        Reset(events=0),
        Reset(events=1),
        Reset(events=4),
        Fin(events=1),
        Fin(events=4),
        Reset(bytes=33),
    ],
    ids=str,
)
def test_94_a_stream_that_breaks_off_breaks_off_for_the_client_too(pair, dialect, fault):
    world = pair([Say("words that will not all arrive", fault=fault)])

    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        post(world.address, dialect, question(dialect, "hello", stream=True))

    (turn,) = world.turns()
    assert turn.outcome is Outcome.BROKEN


@pytest.mark.parametrize("dialect", DIALECTS)
def test_94_a_reset_before_the_first_byte_is_an_error_and_no_second_try(pair, dialect):
    world = pair([Say("never", fault=Reset()), Say("a second try would get this")])

    answer = post(world.address, dialect, question(dialect, "hello"))

    assert answer.status == 502
    assert len(world.upstream.requests) == 1


@pytest.mark.parametrize("by", [7, -7])
def test_98_a_wrong_content_length_is_never_mended(pair, by):
    world = pair([Say("some words", fault=WrongLength(by))])

    try:
        answer = post(world.address, "openai-chat", question("openai-chat", "hello"))
    except (http.client.IncompleteRead, ConnectionError):
        assert by > 0
    else:
        if answer.status == 200:
            with pytest.raises(json.JSONDecodeError):
                answer.json()
        assert answer.status in (200, 502)
    (turn,) = world.turns()
    assert turn.outcome is Outcome.BROKEN
