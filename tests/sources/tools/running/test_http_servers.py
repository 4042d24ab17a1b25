"""An MCP client by HTTP: servers that keep sessions or none, that answer in one piece or in events,
and that want to harm."""

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated

import pytest
import uvicorn
from mcp.server.mcpserver import MCPServer
from plain_servers import pool, remote, text
from pydantic import Field

from hotset.errors import ToolFailed
from hotset.nouns.tooling import Tooling
from hotset.sources.tools.running.mcp_client import HANDSHAKES, MODERN

RESULT = {"content": [{"type": "text", "text": "it works"}]}
TOOL = {"name": "work", "inputSchema": {"type": "object"}}


def result(id, value, **headers):
    body = json.dumps({"jsonrpc": "2.0", "id": id, "result": value}).encode()
    return 200, {"Content-Type": "application/json", **headers}, body


def error(id, code, message, status=200):
    body = json.dumps(
        {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}
    ).encode()
    return status, {"Content-Type": "application/json"}, body


def events(*messages):
    body = b"".join(
        b"event: message\ndata: " + json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n\n"
        for each in messages
    )
    return 200, {"Content-Type": "text/event-stream"}, body


def handshake(said, headers, session="s-1"):
    """What a server of the handshake era with sessions answers; None for what is left to the
    test."""
    match said.get("method"):
        case "initialize":
            value = {
                "protocolVersion": said["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "http"},
            }
            return result(said["id"], value, **{"Mcp-Session-Id": session})
        case "server/discover":
            return 400, {"Content-Type": "text/plain"}, b"Bad Request: no session"
        case method if "id" not in said or method is None:
            return 202, {}, b""
        case "tools/list":
            return result(said["id"], {"tools": [TOOL]})
    return None


@contextmanager
def serving(answer):
    """`answer(said, headers)` gives (status, headers, body); a body that is a function writes by
    itself."""
    heard = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            heard.append((said, headers))
            self._reply(*(answer(said, headers) or result(said["id"], RESULT)))

        def do_DELETE(self):
            heard.append(
                (
                    {"method": "DELETE"},
                    {name.lower(): value for name, value in self.headers.items()},
                )
            )
            self._reply(200, {}, b"")

        def _reply(self, status, headers, body):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if callable(body):
                self.send_header("Connection", "close")
                self.end_headers()
                self.close_connection = True
                body(self.wfile)
            else:
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def methods(heard):
    return [said.get("method", "answer") for said, _ in heard]


@contextmanager
def official(*, json_response):
    server = MCPServer("official", version="3")

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool()
    def fetch(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
        return f"from {region}"

    app = server.streamable_http_app(json_response=json_response)
    door = socket.socket()
    door.bind(("127.0.0.1", 0))
    door.listen()  # whoever comes before the server does waits
    running = uvicorn.Server(
        uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=running.run, args=([door],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{door.getsockname()[1]}/mcp"
    finally:
        running.should_exit = True
        thread.join()
        door.close()


@pytest.mark.parametrize("json_response", [True, False], ids=["json", "events"])
def test_a_server_of_the_official_sdk_is_understood(tmp_path, json_response):
    with official(json_response=json_response) as url, pool(tmp_path) as servers:
        listed = servers.list_tools(remote(url))
        assert (listed.protocol, listed.server) == (MODERN, "official 3")
        assert {tool.name for tool in listed.tools} == {"remote__add", "remote__fetch"}
        assert text(servers.call(remote(url), "add", {"a": 2, "b": 3})) == "5"
        assert servers.call(remote(url), "nothing", {}).failed


def test_arguments_that_a_server_wants_to_see_in_headers_are_there(tmp_path):
    with official(json_response=True) as url, pool(tmp_path) as servers:
        assert (
            text(servers.call(remote(url), "fetch", {"region": "Österreich "}))
            == "from Österreich "
        )
        assert text(servers.call(remote(url), "fetch", {"region": "eu"})) == "from eu"


def test_a_session_is_opened_kept_and_ended(tmp_path):
    with serving(handshake) as (url, heard):
        with pool(tmp_path) as servers:
            assert text(servers.call(remote(url), "work", {})) == "it works"
            assert text(servers.call(remote(url), "work", {})) == "it works"
        assert methods(heard) == [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "tools/call",
            "tools/call",
            "DELETE",
        ]
        sessions = [headers.get("mcp-session-id") for _, headers in heard]
        assert sessions == [None, None, "s-1", "s-1", "s-1", "s-1"]
        versions = [headers.get("mcp-protocol-version") for _, headers in heard]
        assert versions == [MODERN, None] + [HANDSHAKES[0]] * 4


def test_which_era_a_server_speaks_is_remembered(tmp_path):
    with serving(handshake) as (url, heard), pool(tmp_path) as servers:
        servers.list_tools(remote(url))
        servers.list_tools(remote(url))
    assert methods(heard).count("server/discover") == 1


@pytest.mark.parametrize(
    "forgets",
    [(404, {}, b""), error(None, -32000, "Bad Request: No valid session ID provided", 400)],
)
def test_a_server_that_forgot_the_session_gets_a_new_one_and_the_call_once(tmp_path, forgets):
    opened = []

    def answer(said, headers):
        if said.get("method") == "initialize":
            opened.append(said)
        if said.get("method") == "tools/call" and headers["mcp-session-id"] != f"s-{len(opened)}":
            return forgets
        return handshake(said, headers, session=f"s-{len(opened)}")

    with serving(answer) as (url, heard), pool(tmp_path) as servers:
        servers.call(remote(url), "work", {})
        opened.append("a restart")
        assert text(servers.call(remote(url), "work", {})) == "it works"
        assert methods(heard).count("tools/call") == 3


def test_a_server_that_forgets_every_session_is_given_up(tmp_path):
    def answer(said, headers):
        return (404, {}, b"") if said.get("method") == "tools/call" else handshake(said, headers)

    with serving(answer) as (url, heard), pool(tmp_path) as servers:
        with pytest.raises(ToolFailed, match="forgotten"):
            servers.call(remote(url), "work", {})
        assert methods(heard).count("tools/call") == 2


def test_an_answer_among_events_is_found_and_what_the_server_asks_meanwhile_is_answered(tmp_path):
    def answer(said, headers):
        if said.get("method") != "tools/call":
            return handshake(said, headers)
        return events(
            {"method": "notifications/progress", "params": {}},
            {"id": "theirs", "method": "roots/list"},
            {"method": "notifications/tools/list_changed"},
            {"id": said["id"] + 1000, "result": {"content": []}},
            {"id": said["id"], "result": RESULT},
        )

    with serving(answer) as (url, heard), pool(tmp_path) as servers:
        assert text(servers.call(remote(url), "work", {})) == "it works"
        (running,) = servers.running()
        assert servers.changed() == {running.source}
        (reply,) = [said for said, _ in heard if said.get("id") == "theirs"]
        assert reply["error"]["code"] == -32601


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(tmp_path, status):
    with serving(handshake) as (elsewhere, heard_elsewhere):
        with (
            serving(lambda said, headers: (status, {"Location": elsewhere}, b"")) as (url, heard),
            pool(tmp_path) as servers,
            pytest.raises(ToolFailed, match="does not follow"),
        ):
            servers.call(remote(url, headers={"Authorization": "Bearer secret"}), "work", {})
        assert heard
        assert heard_elsewhere == []


def flood(wfile):
    piece = b"data: " + b"x" * (1 << 20) + b"\n"
    try:
        while True:
            wfile.write(piece)
    except OSError:
        return


def chatter(wfile):
    piece = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n' * 10_000
    try:
        while True:
            wfile.write(piece)
    except OSError:
        return


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        ("text/event-stream", flood, "32 MiB"),
        ("application/json", flood, "32 MiB"),
        ("text/event-stream", chatter, "10000 things and no answer"),
    ],
)
def test_a_server_that_floods_is_cut_off(tmp_path, kind, body, why):
    def answer(said, headers):
        if said.get("method") != "tools/call":
            return handshake(said, headers)
        return 200, {"Content-Type": kind}, body

    with (
        serving(answer) as (url, _),
        pool(tmp_path) as servers,
        pytest.raises(ToolFailed, match=why),
    ):
        servers.call(remote(url), "work", {})


def test_a_compressed_answer_is_not_unpacked(tmp_path):
    def answer(said, headers):
        assert headers["accept-encoding"] == "identity"
        status, sent, body = handshake(said, headers) or result(said["id"], RESULT)
        return (
            status,
            sent | ({"Content-Encoding": "gzip"} if said.get("method") == "tools/call" else {}),
            body,
        )

    with (
        serving(answer) as (url, _),
        pool(tmp_path) as servers,
        pytest.raises(ToolFailed, match="compressed"),
    ):
        servers.call(remote(url), "work", {})


def test_a_server_gets_the_headers_of_its_configuration_and_none_of_the_environment(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with serving(handshake) as (url, heard), pool(tmp_path) as servers:
        servers.call(
            remote(
                url, headers={"X-Key": "own", "Accept": "text/html", "Mcp-Session-Id": "planted"}
            ),
            "work",
            {},
        )
    sent = [headers for _, headers in heard]
    assert {headers["x-key"] for headers in sent} == {"own"}
    assert {headers["accept"] for headers in sent} == {"application/json, text/event-stream"}
    allowed = {
        "host",
        "accept",
        "accept-encoding",
        "content-type",
        "content-length",
        "user-agent",
        "x-key",
    }
    assert {name for headers in sent for name in headers} <= allowed | {
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
    }


@pytest.mark.slow
def test_a_server_that_hangs_is_given_up_and_told_so(tmp_path):
    free = threading.Event()

    def answer(said, headers):
        if said.get("method") == "tools/call":
            free.wait(120)
        return handshake(said, headers)

    with serving(answer) as (url, heard), pool(tmp_path, Tooling(call_seconds=1.5)) as servers:
        with pytest.raises(ToolFailed, match=r"1\.5 s"):
            servers.call(remote(url), "work", {})
        free.set()
        servers.close()
        assert "notifications/cancelled" in methods(heard)


def test_an_answer_that_breaks_off_is_told_as_such_and_not_asked_for_again(tmp_path):
    def answer(said, headers):
        if said.get("method") != "tools/call":
            return handshake(said, headers)
        return 200, {"Content-Type": "text/event-stream"}, lambda wfile: wfile.write(b"data: {\n")

    with serving(answer) as (url, heard), pool(tmp_path) as servers:
        with pytest.raises(ToolFailed, match="check before"):
            servers.call(remote(url), "work", {})
        assert methods(heard).count("tools/call") == 1


@pytest.mark.parametrize(
    ("url", "headers", "why"),
    [
        ("ftp://example.org/mcp", {}, "http"),
        ("file:///etc/passwd", {}, "http"),
        ("http:///mcp", {}, "host"),
        ("http://[", {}, "host"),
        ("http://127.0.0.1:1/mcp", {"X": "a\r\nInjected: b"}, "headers"),
        ("http://127.0.0.1:1/mcp", {"a b": "c"}, "headers"),
        ("http://127.0.0.1:1/mcp", {}, "could not be reached"),
    ],
)
def test_what_cannot_be_asked_is_told(tmp_path, url, headers, why):
    with pool(tmp_path) as servers, pytest.raises(ToolFailed, match=why) as told:
        servers.call(remote(url, headers=headers), "work", {})
    assert "Injected" not in str(told.value)


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_wants_a_key_is_told_as_such_and_no_key_is_shown(tmp_path, status):
    with (
        serving(lambda said, headers: (status, {}, b"")) as (url, _),
        pool(tmp_path) as servers,
        pytest.raises(ToolFailed, match="a key that it knows") as told,
    ):
        servers.call(remote(url, headers={"Authorization": "Bearer not-to-be-shown"}), "work", {})
    assert "not-to-be-shown" not in str(told.value)


def test_a_key_that_a_server_throws_back_at_us_is_not_shown(tmp_path):
    key = "a-key-of-no-known-shape"
    with (
        serving(
            lambda said, headers: error(said.get("id"), -32603, f"bad key {headers['x-key']}", 500)
        ) as (url, _),
        pool(tmp_path) as servers,
        pytest.raises(ToolFailed, match="bad key") as told,
    ):
        servers.call(remote(url, headers={"X-Key": key}), "work", {})
    assert key not in str(told.value)


def test_a_status_without_an_answer_is_no_result_of_the_tool(tmp_path):
    def answer(said, headers):
        return (
            (502, {"Content-Type": "text/html"}, b"<h1>")
            if said.get("method") == "tools/call"
            else handshake(said, headers)
        )

    with (
        serving(answer) as (url, _),
        pool(tmp_path) as servers,
        pytest.raises(ToolFailed, match="status 502"),
    ):
        servers.call(remote(url), "work", {})


def test_an_error_of_the_server_is_a_failure_of_the_tool_whatever_its_status(tmp_path):
    def answer(said, headers):
        return (
            error(said["id"], -32602, "no such tool", 400)
            if said.get("method") == "tools/call"
            else handshake(said, headers)
        )

    with serving(answer) as (url, _), pool(tmp_path) as servers:
        returned = servers.call(remote(url), "work", {})
        assert (returned.failed, text(returned)) == (True, "no such tool")
