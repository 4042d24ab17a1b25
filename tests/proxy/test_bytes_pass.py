"""What a client sends is what the upstream gets, and back again, byte for byte."""

from __future__ import annotations

import gzip
import sys

import pytest

from hotset.testing import Call, Say
from tests.proxy.wire import DIALECTS, call, post, question

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ODD = (
    '{ "model" :"m\\u00e9", "unknown": {"n": 1E5, "big": 18446744073709551617}, '
    '"%s":[ {"role":"user" ,"content":"caf\\u00e9 \\ud83d\\ude00"} ]\n, "max_tokens":9 }'
)


@pytest.mark.row("C9")
@pytest.mark.row("X2")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.rest_slow
def test_a_request_reaches_the_upstream_with_every_byte_as_it_was(pair, dialect, stream):
    world = pair()
    body = (
        (ODD % ("input" if dialect == "openai-responses" else "messages"))
        .replace('"max', f'"stream":{str(stream).lower()}, "max')
        .encode()
    )

    answer = post(world.address, dialect, body)

    assert answer.status == 200
    assert world.upstream.requests[0].body == body


@pytest.mark.row("C9")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_reaches_the_client_with_every_byte_as_it_was(pair, directly, dialect, stream):
    script = [Say("some words", thinking="hm", calls=(Call("f", {"x": 1}), Call("g", {})))]
    world = pair(script)
    body = question(dialect, "hello", stream=stream)

    through = post(world.address, dialect, body)
    direct = directly(script, dialect, body)

    assert through.body == direct.body
    ours = [
        (name, value) for name, value in through.headers if not name.lower().startswith("x-hotset-")
    ]
    assert [pair for pair in ours if pair[0].lower() != "transfer-encoding"] == [
        pair
        for pair in direct.headers
        if pair[0].lower() not in ("transfer-encoding", "connection", "keep-alive")
    ]


@pytest.mark.row("C9")
def test_headers_pass_as_they_are_and_ours_stay_here(pair):
    world = pair()
    sent = {
        "anthropic-beta": "a-1,b-2",
        "anthropic-version": "2023-06-01",
        "x-api-key": "secret",
        "X-Unknown": "Kept As Is",
        "x-hotset-session": "mine",
        "connection": "keep-alive, x-hop",
        "x-hop": "gone",
    }

    post(world.address, "anthropic", question("anthropic", "hello"), sent)

    got = world.upstream.requests[0]
    assert [
        got.header(name)
        for name in ("anthropic-beta", "anthropic-version", "x-api-key", "x-unknown")
    ] == [
        "a-1,b-2",
        "2023-06-01",
        "secret",
        "Kept As Is",
    ]
    assert not [
        name
        for name, _ in got.headers
        if name.lower().startswith("x-hotset") or name.lower() == "x-hop"
    ]
    assert got.header("host") == f"127.0.0.1:{world.upstream.port}"
    assert world.address.token not in str(got.headers) + got.path


@pytest.mark.row("X2")
@pytest.mark.parametrize(
    ("method", "path", "target"),
    [
        ("GET", "/v1/models?limit=3", "/v1/models?limit=3"),
        ("POST", "/v1/embeddings", "/v1/embeddings"),
        ("DELETE", "/v1/files/file%2Dabc", "/v1/files/file%2Dabc"),
        ("PUT", "/v1/a//b/%7Ec?x=1&y=%20", "/v1/a//b/%7Ec?x=1&y=%20"),
        ("GET", "/v1/responses/resp_1", "/v1/responses/resp_1"),
    ],
)
def test_every_other_path_passes_untouched_and_unkept(pair, method, path, target):
    world = pair()
    body = b"\x00\xff any bytes at all" if method in ("POST", "PUT") else None

    answer = call(world.address, method, f"/{world.address.token}{path}", body)

    assert answer.status < 500
    got = world.upstream.requests[0]
    assert (got.method, got.path, got.body) == (method, target, body or b"")
    assert world.sessions() == []


def test_counting_tokens_passes_and_is_no_turn(pair):
    world = pair()

    answer = call(
        world.address,
        "POST",
        f"/{world.address.token}/v1/messages/count_tokens",
        question("anthropic", "count me"),
    )

    assert answer.json()["input_tokens"] > 0
    assert world.turns() == []


def test_a_path_that_only_anthropic_has_goes_to_anthropic_and_models_go_by_their_headers(tmp_path):
    from hotset.testing import ScriptedUpstream  # noqa: PLC0415
    from hotset.testing.proxy import LocalProxy  # noqa: PLC0415

    with (
        ScriptedUpstream() as openai,
        ScriptedUpstream() as anthropic,
        ScriptedUpstream() as third,
        LocalProxy(
            tmp_path / "data",
            openai_url=openai.openai_url,
            anthropic_url=anthropic.anthropic_url,
            upstreams={"third": third.openai_url},
        ) as proxy,
    ):
        base = f"/{proxy.address.token}"
        call(proxy.address, "GET", f"{base}/v1/models")
        call(proxy.address, "GET", f"{base}/v1/models", headers={"anthropic-version": "2023-06-01"})
        call(proxy.address, "GET", f"{base}/v1/messages/batches")
        call(
            proxy.address,
            "POST",
            f"{base}/to/third/v1/chat/completions",
            question("openai-chat", "hi"),
        )
        unknown = call(proxy.address, "GET", f"{base}/to/nobody/v1/models")

        assert [r.path for r in openai.requests] == ["/v1/models"]
        assert [r.path for r in anthropic.requests] == ["/v1/models", "/v1/messages/batches"]
        assert [r.path for r in third.requests] == ["/v1/chat/completions"]
        assert (unknown.status, "configured" in unknown.json()["error"]["message"]) == (404, True)


@pytest.mark.parametrize(("coding", "pack"), [("gzip", gzip.compress), ("zstd", zstd.compress)])
def test_a_compressed_request_passes_compressed_and_is_kept_readable(pair, coding, pack):
    world = pair()
    packed = pack(question("openai-responses", "packed words"))

    answer = post(world.address, "openai-responses", packed, {"content-encoding": coding})

    assert answer.status == 200
    assert world.upstream.requests[0].body == packed
    assert b"packed words" in [content for _, content in world.pages()]


@pytest.mark.slow
def test_a_body_too_large_to_read_still_passes_whole(pair):
    world = pair()
    body = question("openai-chat", "x" * (65 << 20))

    answer = post(world.address, "openai-chat", body)

    assert answer.status == 200
    assert world.upstream.requests[0].body == body
    assert answer.header("x-hotset-degraded") == "the body is larger than 64 MiB"
    assert world.sessions() == []


def test_a_websocket_is_refused_at_once_so_that_clients_use_http(pair):
    world = pair()

    answer = call(
        world.address,
        "GET",
        f"/{world.address.token}/v1/responses",
        headers={
            "connection": "upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": "x" * 24,
        },
    )

    assert answer.status == 426
    assert world.upstream.requests == ()
