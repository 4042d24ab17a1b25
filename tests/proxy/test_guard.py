"""Nobody comes in without the token, from another origin or under another name."""

from __future__ import annotations

import pytest

from tests.proxy.wire import call, post, question, raw


@pytest.fixture
def world(pair):
    return pair()


@pytest.mark.row("V17")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.com"}, 421),
        ({"host": "127.0.0.1.evil.com:{port}"}, 421),
        ({"host": "localhost:{port}@evil.com"}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({"host": "127.0.0.1:1"}, 421),
        ({"host": "0.0.0.0:{port}"}, 421),
        ({"host": "127.1:{port}"}, 421),
        ({"origin": "http://evil.com"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:{port}.evil.com"}, 403),
        ({"origin": "https://127.0.0.1:{port}"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
)
@pytest.mark.rest_slow
def test_a_browser_attack_is_refused_before_anything_is_sent(world, headers, status):
    filled = {name: value.format(port=world.address.port) for name, value in headers.items()}

    answer = post(world.address, "openai-chat", question("openai-chat", "hi"), filled)

    assert answer.status == status
    assert "message" in answer.json()["error"]
    assert not [name for name, _ in answer.headers if name.lower().startswith("access-control")]
    assert world.upstream.requests == ()


@pytest.mark.row("V17")
@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/wrong-token/v1/chat/completions",
        "/",
        "/hotset/status",
        "/{token}x/v1/models",
    ],
)
def test_a_call_without_the_token_is_refused_and_told_what_to_do(world, path):
    answer = call(world.address, "POST", path.format(token=world.address.token), b"{}")

    assert answer.status == 401
    ours = "hotset open" if path.startswith("/hotset/") else "hotset status"
    assert ours in answer.json()["error"]["message"]
    assert world.upstream.requests == ()


def test_a_refusal_speaks_the_dialect_of_the_path(world):
    answer = call(world.address, "POST", "/v1/messages", b"{}")

    assert answer.json()["type"] == "error"
    assert answer.json()["error"]["type"] == "authentication_error"


def test_the_token_may_stand_in_a_header(world):
    answer = call(
        world.address,
        "POST",
        "/v1/chat/completions",
        question("openai-chat", "hi"),
        {"x-hotset-token": world.address.token},
    )

    assert answer.status == 200


def test_two_host_headers_are_refused(world):
    port = world.address.port
    got = raw(
        world.address,
        f"GET /{world.address.token}/hotset/status HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        "Host: evil.com\r\nConnection: close\r\n\r\n".encode(),
    )

    assert got.startswith((b"HTTP/1.1 421", b"HTTP/1.1 400"))


def test_a_preflight_gets_no_permission(world):
    answer = call(
        world.address,
        "OPTIONS",
        f"/{world.address.token}/v1/chat/completions",
        headers={"origin": "http://evil.com", "access-control-request-method": "POST"},
    )

    assert answer.status == 403
    assert not [name for name, _ in answer.headers if name.lower().startswith("access-control")]


def test_the_status_page_says_who_answers_and_never_what_was_said(world):
    post(
        world.address,
        "openai-chat",
        question("openai-chat", "private words"),
        {"authorization": "Bearer sk-secret"},
    )

    answer = call(world.address, "GET", f"/{world.address.token}/hotset/status")

    assert answer.json()["nonce"] == world.address.nonce
    assert answer.json()["requests"] == 1
    assert b"private words" not in answer.body
    assert b"sk-secret" not in answer.body


@pytest.mark.row("V17")
def test_the_clients_key_is_in_no_file_of_ours(world, caplog):
    for dialect in ("openai-chat", "anthropic"):
        post(
            world.address,
            dialect,
            question(dialect, "hi"),
            {"authorization": "Bearer sk-very-secret", "x-api-key": "sk-very-secret"},
        )

    files = [path for path in world.folder.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"sk-very-secret" in path.read_bytes()]
    assert "sk-very-secret" not in caplog.text
