"""`hotset learn log` has every look through every door: the proxy in each dialect, an agent over
MCP, a program, and a person's searches; with what it cost, what it found and what was used."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from typing import Any

import pytest

import hotset
from hotset.nouns.deposit import Remembered
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.cli.conftest import Desk
from tests.cli.test_mcp import talk, write as write_files
from tests.proxy.shelf import Shelf
from tests.proxy.talking import Talk, code, read, retrieve
from tests.proxy.wire import DIALECTS
from tests.runtime import notes_server
from tests.sources.memory.consolidate.making import fact

FACT = "The staging database listens on port 5432."
ISSUE = "github__create_issue"
ASKED = "Which port does the staging database listen on?"


def create_issue(title: str) -> str:
    """Create an issue on GitHub."""
    return f"Issue 17 is open: {title}"


def log(desk: Desk) -> list[dict[str, Any]]:
    """Every entry, the oldest first."""
    entries = desk.run("learn", "log", "--json").json()
    assert len({each["query_id"] for each in entries}) == len(entries)
    return entries[::-1]


def found_by(desk: Desk) -> dict[str, dict[str, Any]]:
    """The latest entry of each door, every one with its strategies, latency and selection."""
    found = {each["door"]: each for each in log(desk)}
    for each in found.values():
        strategies = each["retrieval_strategies"]
        assert strategies, each
        assert all(one["latency_ms"] > 0 for one in strategies), each
        assert sum(one["results"] for one in strategies) > 0, each
        assert each["selected_memories"], each
    return found


@pytest.fixture
def told(filled: Desk) -> Desk:
    """A project with a conversation, a memory and indexed files."""
    with closing(SqliteStore.open(filled.data)) as store:
        store.keep(Remembered((fact(FACT),))).result()
    write_files(filled)
    assert filled.run("index", "--yes").code == 0
    return filled


@pytest.mark.row("M9")
@pytest.mark.rest_slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_proxy_logs_offers_and_all_that_the_model_asks_for(desk: Desk, dialect: str):
    with closing(SqliteStore.open(desk.data)) as store:
        store.keep(Remembered((fact(FACT),))).result()
    replies = [
        Say(calls=(read("a.py", "one"),)),
        Say(calls=(Call("search_history", {"query": "part_7"}),)),
        Say(calls=(retrieve(dialect, "one", lines="1-3"),)),
        Say(calls=(Call("get_turn_range", {"first": 1, "last": 1}),)),
        Say(calls=(Call("find_tools", {"query": "open an issue on github"}),)),
        Say(calls=(Call("use_tool", {"name": ISSUE, "arguments": {"title": "It"}}),)),
        Say("Port 5432."),
    ]
    with (
        ScriptedUpstream(replies, strict=True) as upstream,
        LocalProxy(
            desk.data,
            openai_url=upstream.openai_url,
            anthropic_url=upstream.anthropic_url,
            toolbox=Shelf(github=[create_issue]),
        ) as proxy,
    ):
        client = Talk(proxy.address, dialect)
        client.say(ASKED)
        client.results(code("part"))
        assert client.text == "Port 5432."
        proxy.wait_until_kept()

    asked = ("search_history", "retrieve_context", "get_turn_range", "find_tools")
    offer = next(each for each in log(desk) if each["door"] == "offer")
    assert offer["turn"] == 1
    assert any(each.startswith("sem-") for each in offer["selected_memories"])
    found = {each["door"]: each for each in log(desk) if each["door"] != "offer"}
    assert found.keys() == {*asked}
    for name, each in found.items():
        [strategy] = each["retrieval_strategies"]
        assert (strategy["type"], each["turn"]) == (name, 2)
        assert strategy["latency_ms"] > 0
        assert strategy["results"] >= len(each["selected_memories"]) > 0
    assert found["find_tools"]["used"] == [ISSUE]
    page = found["retrieve_context"]["selected_memories"][0]
    assert page in found["search_history"]["used"]


@pytest.mark.row("M9")
@pytest.mark.slow
def test_an_agent_over_mcp_is_in_the_log(told: Desk):
    folder = told.data / "tools"
    folder.mkdir(mode=0o700, exist_ok=True)
    server = {"command": sys.executable, "args": ["-I", "-S", notes_server.__file__, str(folder)]}
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"notes": server}}))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search_code", {"query": "uploader retry"}),
        ("search_history", {"query": "clock"}),
        ("retrieve_context", {"id": "toolu_1", "lines": "1-3"}),
        ("get_turn_range", {"first": 1, "last": 1}),
        ("recall_memory", {"query": ASKED}),
        ("memory_timeline", {}),
        ("find_tools", {"query": "keep a note under a title"}),
        ("use_tool", {"name": "notes__add_note", "arguments": {"title": "one", "text": "first"}}),
    ]
    _, _, answers = talk(told, calls)
    assert not any(failed for _, failed in answers), answers

    found = found_by(told)

    asked = {name for name, _ in calls} - {"recall_memory", "memory_timeline", "use_tool"}
    assert found.keys() == {*asked, "recall", "timeline"}
    assert "src/uploads.py" in " ".join(found["search_code"]["selected_memories"])
    assert {each["type"] for each in found["recall"]["retrieval_strategies"]} >= {"keyword"}
    assert found["recall"]["session"] == found["timeline"]["session"]
    assert found["find_tools"]["used"] == ["notes__add_note"]


@pytest.mark.row("M9")
@pytest.mark.slow
def test_a_program_that_asks_is_in_the_log(told: Desk, monkeypatch):
    for name in ("HOME", "HOTSET_CONFIG"):
        monkeypatch.setenv(name, told.env[name])
    with hotset.open(told.project, data=told.data) as memory:
        memory.tools.register(create_issue)
        assert memory.search("clock").found
        assert memory.retrieve("toolu_1", lines="1-3").found
        assert memory.turns(1, 1).found
        assert memory.memories.recall(ASKED).text
        assert memory.memories.timeline().text
        found = memory.tools.find("open an issue on github")
        assert memory.tools.use(found[0].tool.name, {"title": "It"}).ran
        memory.tools.for_query("open an issue on github")

    doors = found_by(told)

    assert doors.keys() == {
        *("memory.search", "retrieve_context", "get_turn_range", "recall", "timeline"),
        "tools.find",
    }
    finds = [each for each in log(told) if each["door"] == "tools.find"]
    assert [each["used"] for each in finds] == [[found[0].tool.name], []]
    assert doors["timeline"]["retrieval_strategies"][0]["type"] == "temporal"


@pytest.mark.row("M9")
def test_a_person_s_searches_are_in_the_log(told: Desk):
    assert told.run("search", "clock", "--type", "page").code == 0
    assert told.run("memory", "search", ASKED).code == 0
    assert told.run("tools", "find", "open an issue").code == 0

    found = {each["door"]: each for each in log(told)}

    assert found.keys() == {"hotset search", "hotset memory search", "hotset tools find"}
    for name in ("hotset search", "hotset memory search"):
        [strategy] = found[name]["retrieval_strategies"]
        assert (strategy["type"], strategy["results"] > 0) == (name, True)
        assert strategy["latency_ms"] > 0
        assert found[name]["selected_memories"]
    assert FACT not in json.dumps(log(told))
