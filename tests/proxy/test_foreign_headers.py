"""What an upstream may say to a client and a client to an upstream: not in our name, not to web
pages, and never our token."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.proxy.conftest import Pair
from tests.proxy.wire import call, question, raw

FOREIGN = (
    ("X-Hotset-Session", "s-forged"),
    ("x-hotset-turn", "turn-forged"),
    ("x-hotset-degraded", "all is lost"),
    ("x-hotset-new", "1"),
    ("Access-Control-Allow-Origin", "*"),
    ("access-control-allow-credentials", "true"),
    ("access-control-expose-headers", "*"),
    ("x-request-id", "req-1"),
)


def through(pair: Callable[..., Pair], path: str, reply: bytes) -> bytes:
    """What a client gets when an upstream answers with these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        world = pair(upstreams={"odd": f"http://127.0.0.1:{server.getsockname()[1]}/v1"})
        body = question("anthropic", "hi")
        with socket.create_connection(("127.0.0.1", world.address.port), timeout=120) as client:
            client.sendall(
                f"POST /{world.address.token}/to/odd{path} HTTP/1.1\r\nHost: "
                f"127.0.0.1:{world.address.port}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                f"Connection: close\r\n\r\n".encode()
                + body
            )
            upstream, _ = server.accept()
            with upstream:
                upstream.recv(65536)
                upstream.sendall(reply)
                got = b""
                while chunk := client.recv(65536):
                    got += chunk
    return got


@pytest.mark.row("V17")
@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/models"]
)
def test_an_upstream_speaks_neither_in_our_name_nor_to_web_pages(
    pair: Callable[..., Pair], path: str
):
    lines = "".join(f"{name}: {value}\r\n" for name, value in FOREIGN)
    reply = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{lines}content-length: 2\r\n\r\n{{}}"
    )
    head = through(pair, path, reply.encode()).split(b"\r\n\r\n")[0].decode().lower()
    assert head.startswith("http/1.1 200")
    assert "x-request-id: req-1" in head
    assert "access-control-" not in head
    assert "x-hotset-new" not in head
    assert not [value for _, value in FOREIGN[:3] if value in head]


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/models"]
)
@pytest.mark.parametrize("status", ["600", "999", "101", "099", "1000", "-1", "0"])
@pytest.mark.rest_slow
def test_a_status_that_is_none_is_told_as_a_failure_of_the_upstream(
    pair: Callable[..., Pair], path: str, status: str
):
    got = through(pair, path, f"HTTP/1.1 {status} Odd\r\ncontent-length: 2\r\n\r\n{{}}".encode())
    assert got.startswith(b"HTTP/1.1 502")
    told = json.loads(got.split(b"\r\n\r\n", 1)[1])["error"]["message"]
    assert "odd at http://127.0.0.1" in told
    assert status not in ("600", "999", "101") or f"status {status}" in told


def forms_of(token: str) -> dict[str, str]:
    percent = "".join(f"%{ord(each):02X}" for each in token)
    return {
        "referer": f"http://127.0.0.1/{token}/hotset/",
        "Referer": f"http://127.0.0.1/{percent}/x",
        "cookie": f"a=1; hotset={token}",
        "x-forwarded-uri": f"/{token}/v1/messages",
        "authorization": f"Bearer {token}",
        "x-hotset-token": token,
    }


@pytest.mark.row("V17")
@pytest.mark.parametrize("name", forms_of("t"))
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models"])
def test_our_token_goes_to_no_upstream_whichever_header_brings_it(
    pair: Callable[..., Pair], name: str, path: str
):
    world = pair()
    token = world.address.token
    headers = {"content-type": "application/json", "x-kept": "yes", name: forms_of(token)[name]}
    call(world.address, "POST", f"/{token}{path}", question("openai-chat", "hi"), headers)
    (request,) = world.upstream.requests
    assert token not in str(request.headers)
    assert quote(token) not in str(request.headers)
    assert "%" not in str(dict(request.headers).get("referer", ""))
    assert "yes" in str(request.headers)
    world.settle()
    assert not [
        path
        for path in Path(world.folder).rglob("*")
        if _holds(path, token) and "store" in path.name
    ]


@pytest.mark.parametrize(
    "query", ["token={token}", "a=1&token={token}&b=2", "{token}", "a=1&t=%{first:02X}{rest}&b=2"]
)
def test_our_token_goes_to_no_upstream_in_a_query(pair: Callable[..., Pair], query: str):
    world = pair()
    token = world.address.token
    filled = query.format(token=token, first=ord(token[0]), rest=token[1:])
    post_to = f"/{token}/v1/chat/completions?{filled}"
    assert call(world.address, "POST", post_to, question("openai-chat", "hi")).status == 200
    (request,) = world.upstream.requests
    assert token[1:] not in request.path
    assert ("a=1&b=2" in request.path) == ("a=1" in query)


def test_a_path_with_the_token_twice_is_refused(pair: Callable[..., Pair]):
    world = pair()
    token = world.address.token
    answer = call(
        world.address,
        "POST",
        f"/{token}/{token}/v1/chat/completions",
        question("openai-chat", "hi"),
    )
    assert answer.status == 404
    assert "twice" in answer.json()["error"]["message"]
    assert world.upstream.requests == ()


@pytest.mark.parametrize("path", ["/hotset/status", "/hotset/status/"])
def test_our_own_pages_answer_without_a_redirect(pair: Callable[..., Pair], path: str):
    world = pair()
    answer = call(world.address, "GET", f"/{world.address.token}{path}")
    assert (answer.status, answer.header("location")) == (200, None)
    assert answer.json()["nonce"] == world.address.nonce
    assert call(world.address, "GET", path).status == 401


@pytest.mark.parametrize("path", ["/hotset", "/hotset/"])
def test_the_dashboard_is_never_left_at_an_address_with_the_token(
    pair: Callable[..., Pair], path: str
):
    world = pair()
    answer = call(world.address, "GET", f"/{world.address.token}{path}")
    assert answer.status == 303
    assert answer.header("location").startswith("/hotset/open/")
    assert world.address.token not in answer.header("location")
    assert call(world.address, "GET", path).status == 401


def test_a_page_that_there_is_not_leads_nowhere(pair: Callable[..., Pair]):
    world = pair()
    got = raw(
        world.address,
        f"GET /{world.address.token}/hotset/nothing.html HTTP/1.1\r\nHost: "
        f"127.0.0.1:{world.address.port}\r\n"
        "Connection: close\r\n\r\n".encode(),
    )
    assert got.startswith(b"HTTP/1.1 404")
    assert b"location" not in got.lower()


def _holds(path: Path, token: str) -> bool:
    return stat.S_ISREG(os.lstat(path).st_mode) and token.encode() in path.read_bytes()
