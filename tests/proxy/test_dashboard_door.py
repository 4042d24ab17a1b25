"""The dashboard's door: a link that works once, a cookie, the API, and what is refused."""

from __future__ import annotations

import http.client
import json

import pytest

from hotset.surfaces.dashboard.routes import API_ROUTES
from hotset.testing import ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.proxy.wire import Answer, call, post, question

JSON = {"content-type": "application/json"}
ORDERS = {
    "act": {"act": "whole", "about": "Bash"},
    "tools/act": {"act": "deny", "name": "Bash"},
    "memory/act": {"act": "forget", "id": "nope"},
    "code/act": {"act": "allow"},
    "learning/act": {"act": "freeze"},
}
"""An order for every route that takes one."""


@pytest.fixture
def world(pair):
    world = pair()
    post(world.address, "anthropic", question("anthropic", "hello"))
    world.settle()
    return world


def _link(world) -> str:
    made = call(world.address, "POST", f"/{world.address.token}/hotset/open", b"")
    return made.json()["path"]


def _cookie(world) -> str:
    opened = call(world.address, "GET", _link(world), b"")
    assert opened.status == 303
    cookie = opened.header("set-cookie")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    return cookie.partition(";")[0]


def _get(world, path: str, **headers: str) -> Answer:
    return call(world.address, "GET", path, b"", {"cookie": _cookie(world), **headers})


@pytest.mark.row("X4")
def test_a_link_opens_the_dashboard_once(world):
    link = _link(world)
    assert call(world.address, "GET", link, b"").status == 303
    again = call(world.address, "GET", link, b"")
    assert again.status == 403
    assert "hotset open" in again.json()["error"]
    assert call(world.address, "GET", "/hotset/open/made-up", b"").status == 403


@pytest.mark.row("X4")
def test_the_page_comes_with_a_cookie_and_nothing_of_it_from_elsewhere(world):
    moved = _get(world, "/hotset/now?session=last").header("location")
    assert moved.startswith("/hotset/~")
    assert moved.endswith("/now?session=last")
    page = _get(world, moved)
    assert page.status == 200
    assert moved.removesuffix("now?session=last").encode() + b"app.js" in page.body
    assert b"<script" in page.body
    policy = page.header("content-security-policy")
    assert policy.startswith("default-src 'self'")
    assert "unsafe" not in policy
    assert _get(world, "/hotset/vendor/preact-htm.js").status == 200
    token = f"/{world.address.token}/hotset/"
    assert "/hotset/open/" in call(world.address, "GET", token, b"").header("location")


@pytest.mark.row("V17")
@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/hotset/", {}, 401),
        ("/hotset/api/orders", {}, 401),
        ("/hotset/live", {}, 401),
        ("/hotset/vendor/preact-htm.js", {}, 401),
        ("/hotset/api/orders", {"cookie": "hotset_{port}=guess"}, 401),
        ("/hotset/api/orders", {"cookie": "{name}=guess"}, 401),
        ("/hotset/~{mark}/api/orders", {}, 401),
        ("/hotset/~0123456789ab/api/orders", {"cookie": "{cookie}"}, 401),
        ("/hotset/~/api/orders", {"cookie": "{cookie}"}, 401),
        ("/v1/models", {"cookie": "{cookie}"}, 401),
        ("/mcp", {"cookie": "{cookie}"}, 401),
        ("/hotset/api/orders", {"cookie": "{cookie}", "origin": "http://evil.com"}, 403),
        ("/hotset/api/orders", {"cookie": "{cookie}", "origin": "null"}, 403),
        ("/hotset/api/orders", {"cookie": "{cookie}", "sec-fetch-site": "cross-site"}, 403),
        ("/hotset/api/orders", {"cookie": "{cookie}", "host": "evil.com"}, 421),
        ("/hotset/../token.js", {"cookie": "{cookie}"}, 404),
        ("/hotset/vendor/../../door.py", {"cookie": "{cookie}"}, 404),
    ],
)
def test_a_stranger_s_page_reads_nothing(world, path, headers, status):
    cookie = _cookie(world)
    name = cookie.partition("=")[0]
    known = {"port": world.address.port, "cookie": cookie, "name": name, "mark": name[-12:]}
    given = {name: value.format(**known) for name, value in headers.items()}
    assert call(world.address, "GET", path.format(**known), b"", given).status == status


READS = [each.path for each in API_ROUTES if not each.acts]
ACTS = [each.path for each in API_ROUTES if each.acts]


@pytest.mark.row("V17")
@pytest.mark.parametrize("path", READS)
def test_no_reading_answers_a_stranger(world, path):
    url = f"/hotset/api/{path.replace('{', '').replace('}', '')}"
    cookie = _cookie(world)
    for headers, status in (
        ({}, 401),
        ({"cookie": cookie, "origin": "http://evil.com"}, 403),
        ({"cookie": cookie, "sec-fetch-site": "cross-site"}, 403),
        ({"cookie": cookie, "host": "evil.com"}, 421),
    ):
        assert call(world.address, "GET", url, b"", headers).status == status


@pytest.mark.row("X4")
def test_a_page_that_was_not_opened_by_a_link_says_how_to_open_it(world):
    assert b"hotset open" in call(world.address, "GET", "/hotset/now", b"").body


@pytest.mark.row("V17")
@pytest.mark.parametrize("path", ACTS)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        (JSON, 403),  # no origin beside the cookie
        ({**JSON, "origin": "http://evil.com"}, 403),
        ({**JSON, "origin": "http://127.0.0.1:{port}", "sec-fetch-site": "same-site"}, 403),
    ],
)
def test_a_stranger_s_page_orders_nothing(world, path, headers, status):
    given = {name: value.format(port=world.address.port) for name, value in headers.items()}
    cookie = {"cookie": _cookie(world)}
    body = json.dumps(ORDERS[path]).encode()
    before = _kept(world)
    refused = call(world.address, "POST", f"/hotset/api/{path}", body, cookie | given)
    assert refused.status == status
    read = call(world.address, "GET", f"/hotset/api/{path}", b"", cookie)
    assert read.status == 405
    assert _kept(world) == before


def _kept(world) -> tuple[object, ...]:
    """What orders would change."""
    with world.store() as store:
        told = [event.name for event in store.events()]
    return (
        told,
        _get(world, "/hotset/api/orders").json(),
        _get(world, "/hotset/api/code").json()["answer"],
    )


@pytest.mark.row("X4")
def test_the_api_reads_the_window_and_takes_orders(world):
    view = _get(world, "/hotset/api/sessions/last/window").json()
    assert view["turn"] == view["turns"] == 1
    page = next(each for each in view["segments"] if each["kind"] == "prompt")["pages"][0]
    assert "hello" in _get(world, f"/hotset/api/pages/{page}").json()["text"]
    assert len(_get(world, "/hotset/api/sessions/last/turns").json()) == 1

    order = {**JSON, "cookie": _cookie(world), "origin": f"http://127.0.0.1:{world.address.port}"}
    body = json.dumps({"act": "pin", "about": page}).encode()
    done = call(world.address, "POST", "/hotset/api/act", body, order)
    assert [each["act"] for each in done.json()["orders"]] == ["pin"]
    undo = call(world.address, "POST", "/hotset/api/act", b'{"about": "%s"}' % page.encode(), order)
    assert undo.json()["orders"] == []


@pytest.mark.row("X4")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("sessions/nope/window", 404),
        ("sessions/last/window?turn=99", 404),
        ("sessions/last/window?turn=x", 400),
        ("sessions/last/window?colour=red", 400),
        ("sessions/last/turns?limit=100000", 400),
        ("pages/nope", 404),
        ("nothing", 404),
    ],
)
def test_a_question_that_cannot_be_answered_gets_a_sentence(world, path, status):
    answer = _get(world, f"/hotset/api/{path}")
    assert answer.status == status
    assert answer.json()["error"]


@pytest.mark.row("X4")
def test_a_page_that_listens_is_told_of_changes_and_does_not_hold_up_the_end_of_the_proxy(tmp_path):
    with ScriptedUpstream() as upstream, LocalProxy(tmp_path, anthropic_url=upstream.url) as proxy:
        connection = http.client.HTTPConnection("127.0.0.1", proxy.address.port, timeout=120)
        connection.request("GET", f"/{proxy.address.token}/hotset/live")
        events = connection.getresponse()
        assert events.readline() == b"event: changed\n"
    rest = events.read()  # raises where the reply breaks off
    connection.close()
    assert rest.startswith(b"data: ")
