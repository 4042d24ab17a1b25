"""MCP over streamable HTTP, at the proxy's own door: the official client, and clients that are
none."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession
from mcp.client._probe import negotiate_auto
from mcp.client.streamable_http import streamable_http_client

from hotset.config import SERVERS, TOOLS
from hotset.sources.tools.found.servers import add_servers
from hotset.testing.proxy import LocalProxy

SERVER = Path(__file__).parent.parent / "runtime" / "notes_server.py"
NAMES = [
    "find_tools",
    "use_tool",
    "search_code",
    "get_file",
    "outline",
    "retrieve_context",
    "search_history",
    "get_turn_range",
    "memory_index",
    "memory_timeline",
    "recall_memory",
    "remember",
    "forget",
]


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[LocalProxy]:
    entry = {"command": sys.executable, "args": ["-I", "-S", str(SERVER), str(tmp_path)]}
    add_servers(tmp_path / "data" / TOOLS / SERVERS, {"notes": entry})
    with LocalProxy(tmp_path / "data") as running:
        yield running


def talk(
    proxy: LocalProxy, calls: list[tuple[str, dict[str, Any]]], *, modern: bool
) -> tuple[list[str], list[Any]]:
    async def spoken() -> tuple[list[str], list[Any]]:
        async with (
            streamable_http_client(f"{proxy.address.root}/mcp") as streams,
            ClientSession(*streams[:2]) as session,
        ):
            await (negotiate_auto(session) if modern else session.initialize())
            names = [tool.name for tool in (await session.list_tools()).tools]
            return names, [await session.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(spoken())


@pytest.mark.row("X2")
@pytest.mark.parametrize("modern", [True, False])
def test_the_official_client_finds_and_uses_tools_over_http(proxy: LocalProxy, modern: bool):
    names, answers = talk(
        proxy,
        [
            ("find_tools", {"query": "write something down"}),
            ("use_tool", {"name": "notes__add_note", "arguments": {"title": "a", "text": "b"}}),
            ("use_tool", {"name": "notes__read_note", "arguments": {"title": "a"}}),
            ("use_tool", {"name": "notes__long_list", "arguments": {"limit": 5000}}),
        ],
        modern=modern,
    )
    texts = [answer.content[0].text for answer in answers]

    assert names == NAMES
    assert "notes__add_note" in texts[0].splitlines()[0]
    assert texts[1:3] == ["kept a", "b"]
    assert len(texts[3]) < 20_000
    assert "retrieve_context(id=" in texts[3]


def test_a_long_result_comes_back_in_part_and_whole_by_its_id(proxy: LocalProxy):
    _, [long] = talk(
        proxy,
        [("use_tool", {"name": "notes__long_list", "arguments": {"limit": 5000}})],
        modern=False,
    )
    id = long.content[0].text.rpartition('retrieve_context(id="')[2].partition('"')[0]
    _, [part] = talk(proxy, [("retrieve_context", {"id": id, "lines": "4321"})], modern=False)

    assert "number 4320" not in long.content[0].text
    assert "number 4320" in part.content[0].text


def test_two_sessions_have_a_server_of_their_own_each(proxy: LocalProxy):
    _, _ = talk(
        proxy,
        [("use_tool", {"name": "notes__add_note", "arguments": {"title": "a", "text": "b"}})],
        modern=False,
    )
    _, [other] = talk(
        proxy,
        [("use_tool", {"name": "notes__read_note", "arguments": {"title": "a"}})],
        modern=False,
    )

    assert other.content[0].text == "there is no such note"


def test_what_one_client_remembers_another_recalls(proxy: LocalProxy):
    _, [kept] = talk(
        proxy, [("remember", {"text": "The staging host is called heron"})], modern=False
    )
    _, [recalled, index] = talk(
        proxy,
        [("recall_memory", {"query": "which host is staging"}), ("memory_index", {})],
        modern=True,
    )

    assert "kept as [sem-" in kept.content[0].text
    assert "heron" in recalled.content[0].text
    assert not index.is_error


def ask(
    proxy: LocalProxy, method: str, body: bytes = b"", **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    host, _, path = proxy.address.root.removeprefix("http://").partition("/")
    with closing(HTTPConnection(host, timeout=120)) as connection:
        connection.request(
            method, f"/{path}/mcp", body, {"content-type": "application/json", **headers}
        )
        response = connection.getresponse()
        return (
            response.status,
            response.read(),
            {name.lower(): value for name, value in response.getheaders()},
        )


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


def test_a_session_begins_with_the_handshake_and_ends_when_its_client_says_so(proxy: LocalProxy):
    status, _, headers = ask(proxy, "POST", json.dumps(INITIALIZE).encode())
    session = {"mcp-session-id": headers["mcp-session-id"]}

    assert status == 200
    assert ask(proxy, "POST", json.dumps(LIST).encode(), **session)[0] == 200
    assert ask(proxy, "DELETE", **session)[0] == 204
    assert ask(proxy, "POST", json.dumps(LIST).encode(), **session)[0] == 404
    assert ask(proxy, "DELETE", **session)[0] == 404


@pytest.mark.parametrize(
    ("method", "body", "headers", "status"),
    [
        ("GET", b"", {}, 405),
        ("PUT", b"{}", {}, 405),
        ("POST", b"{}", {"content-type": "text/plain"}, 415),
        ("POST", b"not json", {}, 200),
        ("POST", b"[]", {}, 200),
        ("POST", b"{}", {"mcp-protocol-version": "1999-01-01"}, 400),
        ("POST", b"{}", {"mcp-session-id": "made-up"}, 404),
        ("POST", b'"' + b"x" * (5 << 20) + b'"', {}, 413),
        ("POST", b'{"jsonrpc": "2.0", "method": "notifications/initialized"}', {}, 202),
        ("POST", b"{}", {"origin": "http://evil.example"}, 403),
        ("POST", b"{}", {"host": "evil.example"}, 421),
    ],
)
@pytest.mark.rest_slow
def test_what_is_no_message_is_refused_in_its_own_way(
    proxy: LocalProxy, method, body, headers, status
):
    assert ask(proxy, method, body, **headers)[0] == status
    assert ask(proxy, "POST", json.dumps(INITIALIZE).encode())[0] == 200


def test_without_the_token_nobody_comes_in(proxy: LocalProxy):
    host = proxy.address.root.removeprefix("http://").partition("/")[0]
    with closing(HTTPConnection(host, timeout=120)) as connection:
        connection.request(
            "POST", "/mcp", json.dumps(INITIALIZE).encode(), {"content-type": "application/json"}
        )
        assert connection.getresponse().status == 401
