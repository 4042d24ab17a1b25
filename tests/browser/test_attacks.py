"""What pages of strangers try against the dashboard while it is open in the same browser: nothing
is read, and nothing is done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.browser.conftest import served
from tests.proxy.wire import call

pytestmark = [pytest.mark.slow, pytest.mark.browser]

ORDER = json.dumps({"act": "whole", "about": "stolen"})
READ = "async (url, options) => { const r = await fetch(url, options); return await r.text(); }"

FETCHES = {
    "reads with its own eyes": {},
    "reads with the cookie": {"credentials": "include"},
    "reads without asking": {"mode": "no-cors", "credentials": "include"},
}
POSTS = {
    "posts text": {"headers": {"content-type": "text/plain"}},
    "posts a form's text": {"headers": {"content-type": "application/x-www-form-urlencoded"}},
    "posts JSON": {"headers": {"content-type": "application/json"}},
    "posts without asking": {"mode": "no-cors", "headers": {"content-type": "text/plain"}},
}
TAGS = {
    "a script": "const e = document.createElement('script'); e.src = url;",
    "a picture": "const e = document.createElement('img'); e.src = url;",
    "a style": "const e = document.createElement('link'); e.rel = 'stylesheet'; e.href = url;",
}


@contextmanager
def _stranger() -> Iterator[int]:
    """The port of a page of somebody else's, on this machine too: the same site by the browser's
    rules, another origin."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>stranger</title><body></body>")

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def world(demo, visit, tmp_path):
    """A browser in which the dashboard was opened, now on a stranger's page."""
    with served(demo) as address, _stranger() as port:
        page = visit(address).page
        page.goto(f"http://127.0.0.1:{port}/")
        yield page, address, port


def _orders(address) -> list[object]:
    return call(address, "GET", f"/{address.token}/hotset/api/orders").json()


def _attempt(page, script: str, *given: object) -> str:
    """What a page could read; empty where the browser or we refused."""
    try:
        return str(page.evaluate(f"async given => ({script})(...given)", list(given)) or "")
    except Exception:
        return ""


@pytest.mark.row("V17")
@pytest.mark.row("X4")
def test_fourteen_attacks_of_a_stranger_s_page_read_and_do_nothing(world):
    page, address, port = world
    base = f"http://127.0.0.1:{address.port}"
    url = f"{base}/hotset/api/sessions/last/window"
    read: dict[str, str] = {}
    for name, options in FETCHES.items():
        read[name] = _attempt(page, READ, url, options)
    for name, options in POSTS.items():
        given = {"method": "POST", "body": ORDER, "credentials": "include", **options}
        read[name] = _attempt(page, READ, f"{base}/hotset/api/act", given)
    for name, make in TAGS.items():
        script = (
            f"url => new Promise(done => {{ {make} e.onload = () => done('loaded'); "
            "e.onerror = () => done(''); document.body.append(e); })"
        )
        read[name] = _attempt(page, script, url)
    listen = (
        "url => new Promise(done => { const s = new EventSource(url, {withCredentials: true}); "
        "s.addEventListener('changed', e => done(e.data)); s.onerror = () => done(''); })"
    )
    read["listens"] = _attempt(page, listen, f"{base}/hotset/live")
    frame = (
        "url => new Promise(done => { const e = document.createElement('iframe'); e.src = url; "
        "e.onload = () => { try { done(e.contentDocument.body.innerText) } catch { done('') } }; "
        "document.body.append(e); })"
    )
    read["frames it"] = _attempt(page, frame, f"{base}/hotset/")
    rebound = "http://evil.test:{}/hotset/api/orders"
    page.goto(f"http://evil.test:{port}/")
    read["rebinds"] = _attempt(page, READ, rebound.format(address.port), {})
    answer = page.goto(rebound.format(address.port))
    assert answer is not None
    assert answer.status == 421
    page.goto(f"http://127.0.0.1:{port}/")
    sandbox = (
        "(url, body) => new Promise(done => { const e = document.createElement('iframe'); "
        "e.sandbox = 'allow-scripts'; addEventListener('message', m => done(m.data)); "
        "e.srcdoc = `<script>fetch(${JSON.stringify(url)}, {method: 'POST', body: "
        "${JSON.stringify(body)}, credentials: 'include'}).then(r => r.text()).then("
        "t => parent.postMessage(t, '*'), () => parent.postMessage('', '*'))</scr` + `ipt>`; "
        "document.body.append(e); })"
    )
    read["from nowhere"] = _attempt(page, sandbox, f"{base}/hotset/api/act", ORDER)

    assert len(read) >= 14
    assert {name: text for name, text in read.items() if text} == {}
    assert _orders(address) == []


@pytest.mark.row("X4")
def test_a_form_that_a_stranger_sends_from_the_browser_orders_nothing(world):
    page, address, _port = world
    page.evaluate(
        """([url, body]) => {
            const form = document.createElement('form');
            form.method = 'POST'; form.enctype = 'text/plain'; form.action = url;
            const field = document.createElement('input');
            field.name = body.slice(0, -1) + ', "x": "'; field.value = '"}';
            form.append(field); document.body.append(form); form.submit();
        }""",
        [f"http://127.0.0.1:{address.port}/hotset/api/act", ORDER],
    )
    page.wait_for_url("**/hotset/api/act")
    assert _orders(address) == []
