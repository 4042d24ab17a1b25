"""Our tools reach the model once, from the proxy or over MCP, and whichever came first stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from hotset.dialects import DIALECTS as ALL
from hotset.nouns.knobs import Knobs
from hotset.nouns.message import DialectName
from hotset.surfaces.mcp.mcp_tools import toolbox_tools, tools as mcp_tools
from hotset.testing import Call, Say
from hotset.testing.proxy import LocalProxy
from tests.proxy.conftest import Pair
from tests.proxy.shelf import Shelf
from tests.proxy.talking import (
    OURS,
    SHORTENING,
    Talk,
    asked,
    assert_each_extends_the_one_before,
    code,
    looking,
    retrieve,
    tools,
)
from tests.proxy.test_toolbox import create_issue
from tests.proxy.wire import DIALECTS

STYLES = ("mcp__hotset__{}", "hotset_{}", "hotset__{}", "mcp_hotset_{}", "memory-hotset-{}", "{}")
"""How Claude Code, opencode, goose, VS Code, a person with a name of their own and gemini-cli name
an MCP server's tool."""

TOOLBOX = ("find_tools", "use_tool")
NAMESPACE = "mcp__hotset"

nobody = cast("Any", None)
"""No tool is called here."""


def brought(dialect: str, style: str = STYLES[0], **more: object) -> list[dict[str, Any]]:
    """The tools of our MCP server, as a client lists them."""
    tools = (*toolbox_tools(nobody, nobody, Knobs()), *mcp_tools(nobody))
    listed = [tool.describe() for tool in tools]
    if dialect == "anthropic":
        return [
            {
                "name": style.format(each["name"]),
                "description": each["description"],
                "input_schema": each["inputSchema"],
                **more,
            }
            for each in listed
        ]
    functions = [
        {
            "name": style.format(each["name"]),
            "description": each["description"],
            "parameters": each["inputSchema"],
            **more,
        }
        for each in listed
    ]
    if dialect == "openai-chat":
        return [{"type": "function", "function": each} for each in functions]
    return [{"type": "function", "strict": False, **each} for each in functions]


def in_a_namespace() -> list[dict[str, Any]]:
    """As Codex does."""
    return [
        {
            "type": "namespace",
            "name": NAMESPACE,
            "description": "",
            "tools": brought("openai-responses", "{}"),
        }
    ]


def names(request) -> list[str]:
    listed: list[str] = []
    for tool in asked(request).tools:
        inner = json.loads(tool.raw).get("tools")
        listed += [f"{tool.name}/{each['name']}" for each in inner] if inner else [tool.name]
    return listed


def of_ours(request) -> list[str]:
    """The tools of this request by which a model brings back what left, under whatever name."""
    return [name for name in names(request) if name.endswith((*OURS, *TOOLBOX))]


@pytest.fixture(params=DIALECTS)
def dialect(request):
    return request.param


@pytest.fixture
def other_worker(tmp_path) -> Callable[[Pair], LocalProxy]:
    """Another proxy over the same store, which remembers nothing."""

    def make(world: Pair) -> LocalProxy:
        urls = {
            "openai_url": world.upstream.openai_url,
            "anthropic_url": world.upstream.anthropic_url,
        }
        return LocalProxy(tmp_path / "data", knobs=SHORTENING, **urls)

    return make


def begin(
    world: Pair, dialect: str, *, stream: bool = True, bring: list[dict[str, Any]] | None = None
) -> Talk:
    return Talk(
        world.address, dialect, stream, {"tools": [*tools(dialect, "read_file"), *(bring or [])]}
    )


def bring(talk: Talk, more: list[dict[str, Any]]) -> None:
    talk.extra["tools"] = [*tools(talk.dialect, "read_file"), *more]


def script(dialect: str) -> list[Say]:
    return [
        Say("First.", calls=(Call("read_file", {"path": "0.py"}, "one"),)),
        Say("I need more.", calls=(retrieve(dialect, "one", symbol="f_111"),)),
        looking("1.py"),
        looking("2.py"),
        Say("Done."),
        Say("Bye."),
    ]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.rest_slow
def test_ours_stay_where_the_client_s_own_arrive_after_its_first_request(pair, dialect, style):
    world = pair(script(dialect), strict=True)
    talk = begin(world, dialect)

    talk.say("Read it.")
    bring(talk, brought(dialect, style))
    talk.results(code())
    talk.results(code("g"))
    talk.results(code("h"))

    first, *later = world.upstream.requests
    assert talk.text == "Done."
    assert of_ours(first) == list(OURS)
    for request in later:
        theirs = [name for name in names(request) if name not in ("read_file", *OURS)]
        assert names(request) == ["read_file", *theirs, *OURS]
        twins = {style.format(name) for name in OURS}
        assert not twins & set(theirs), "one set"
        assert {
            style.format(name) for name in ("search_code", "get_file", "outline", *TOOLBOX)
        } == set(theirs), "what only MCP has"
    assert_each_extends_the_one_before(later)
    assert "I need more." in talk.wrote
    assert not any(name in talk.wrote for name in OURS), (
        "the client sees nothing of a round of ours"
    )


def test_a_list_that_brings_nothing_but_ours_leaves_the_prefix_as_it_was(pair, dialect):
    world = pair(script(dialect), strict=True)
    talk = begin(world, dialect)
    only = [
        each for each in brought(dialect) if (each.get("function") or each)["name"].endswith(OURS)
    ]

    talk.say("Read it.")
    bring(talk, only)
    talk.results(code())
    talk.results(code("g"))

    assert len(world.upstream.requests) == 4
    assert_each_extends_the_one_before(world.upstream.requests)


def test_the_toolbox_s_tools_are_offered_once_too(pair, dialect):
    world = pair(
        [looking("0.py"), looking("1.py"), Say("Done.")],
        strict=True,
        toolbox=Shelf(github=[create_issue]),
    )
    talk = begin(world, dialect)

    talk.say("Read it.")
    bring(talk, brought(dialect))
    talk.results("short")
    talk.results("short")

    assert [of_ours(request) for request in world.upstream.requests] == [[*OURS, *TOOLBOX]] * 3
    assert all(
        "mcp__hotset__search_code" in names(request) for request in world.upstream.requests[1:]
    )


@pytest.mark.rest_slow
def test_another_worker_leaves_out_the_same_ones(pair, dialect, other_worker):
    world = pair(script(dialect), strict=True)
    talk = begin(world, dialect)

    talk.say("Read it.")
    bring(talk, brought(dialect))
    talk.results(code())
    world.settle()
    with other_worker(world) as other:
        talk.address = other.address
        talk.results(code("g"))

    assert_each_extends_the_one_before(world.upstream.requests[1:])
    assert len(world.upstream.requests) == 4


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.rest_slow
def test_the_client_s_own_stay_where_they_came_first(pair, dialect, style, other_worker):
    world = pair(lambda request: looking(f"{len(request.json())}.py"), strict=True)
    talk = begin(world, dialect, bring=brought(dialect, style))

    talk.say("Read it.")
    talk.results(code())
    world.settle()
    with other_worker(world) as other:
        talk.address = other.address
        talk.results(code("g"))

    twins = [style.format(name) for name in (*TOOLBOX, *OURS)]
    assert [of_ours(request) for request in world.upstream.requests] == [twins] * 3
    assert_each_extends_the_one_before(world.upstream.requests)
    assert len(world.upstream.requests[-1].body) < len(talk.sent[-1]), (
        "it has the window all the same"
    )


def test_a_session_that_began_with_the_same_words_is_told_from_one_whose_client_brought_them(
    pair, dialect
):
    world = pair(lambda _: looking("0.py"), strict=True)
    theirs, ours = begin(world, dialect, bring=brought(dialect)), begin(world, dialect)

    ours.say("Read it.")
    theirs.say("Read it, too.")
    twin = begin(world, dialect, bring=brought(dialect))
    twin.say("Read it, too.")
    bring(ours, brought(dialect))
    for talk in (ours, theirs, twin):
        talk.results("short")

    assert of_ours(world.upstream.requests[3]) == [
        "mcp__hotset__find_tools",
        "mcp__hotset__use_tool",
        *OURS,
    ]
    assert all(not set(OURS) & set(names(request)) for request in world.upstream.requests[4:])


def test_a_namespace_loses_its_twins_and_nothing_else(pair):
    world = pair(script("openai-responses"), strict=True)
    talk = begin(world, "openai-responses")

    talk.say("Read it.")
    bring(talk, in_a_namespace())
    talk.results(code())
    talk.results(code("g"))

    first, *later = world.upstream.requests
    assert of_ours(first) == list(OURS)
    inner = [f"{NAMESPACE}/{name}" for name in (*TOOLBOX, "search_code", "get_file", "outline")]
    assert [names(request) for request in later] == [["read_file", *inner, *OURS]] * 3
    assert_each_extends_the_one_before(later)


def test_a_twin_that_the_conversation_has_called_stays_valid(pair, dialect):
    """A session that was begun without the proxy goes on through it, and its MCP server is late."""
    world = pair([looking("0.py"), Say("Done.")], strict=True)
    talk = begin(world, dialect)
    talk.history = earlier_call(dialect, "mcp__hotset__retrieve_context")

    talk.say("Go on.")
    bring(talk, brought(dialect))
    talk.results("short")

    assert talk.text == "Done."
    assert of_ours(world.upstream.requests[0]) == list(OURS)
    assert not {"mcp__hotset__retrieve_context"} & set(names(world.upstream.requests[1]))
    assert "mcp__hotset__retrieve_context" in world.upstream.requests[1].body.decode()


def earlier_call(dialect: str, name: str) -> list[dict[str, Any]]:
    if dialect == "anthropic":
        return [
            {"role": "user", "content": "What was it?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "toolu_1", "name": name, "input": {"id": "c1"}}
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "nothing"}
                ],
            },
            {"role": "assistant", "content": "Nothing."},
        ]
    if dialect == "openai-chat":
        called = {
            "id": "call_1",
            "type": "function",
            "function": {"name": name, "arguments": '{"id": "c1"}'},
        }
        return [
            {"role": "user", "content": "What was it?"},
            {"role": "assistant", "content": None, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": "call_1", "content": "nothing"},
            {"role": "assistant", "content": "Nothing."},
        ]
    return [
        {"role": "user", "content": "What was it?"},
        {"type": "function_call", "call_id": "call_1", "name": name, "arguments": '{"id": "c1"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "nothing"},
        {"role": "assistant", "content": "Nothing."},
    ]


def test_copies_that_the_model_would_have_to_search_for_leave_until_it_has_found_them(pair):
    """Claude Code defers the tools of MCP servers; a reference to one that is not declared is
    refused."""
    world = pair(lambda _: looking("0.py"), strict=True)
    deferred = brought("anthropic", defer_loading=True)
    talk = begin(world, "anthropic", bring=deferred)

    talk.say("Read it.")
    talk.history += earlier_call("anthropic", "ToolSearch")[1:3]
    talk.history[1:2] = []
    found = [{"type": "tool_reference", "tool_name": "mcp__hotset__retrieve_context"}]
    talk.history[-1]["content"][0]["content"] = found
    talk.say("Go on.")

    first, second = world.upstream.requests
    assert of_ours(first) == ["mcp__hotset__find_tools", "mcp__hotset__use_tool", *OURS]
    assert talk.answer is not None
    assert talk.answer.status == 200
    assert "mcp__hotset__retrieve_context" in names(second)


def test_a_cache_mark_on_the_last_tool_stays_on_the_last_one_that_is_left():
    dialect = ALL[DialectName.ANTHROPIC]
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    listed = [
        *tools("anthropic", "read_file", "write_file"),
        *brought("anthropic")[2:3],
        {**brought("anthropic")[-1], **mark},
    ]
    body = json.dumps({"model": "m", "max_tokens": 9, "tools": listed, "messages": []}).encode()

    left = json.loads(dialect.withhold(body, lambda raw: b"mcp__hotset__" in raw))

    assert left["tools"] == [listed[0], {**listed[1], **mark}]
    assert {**left, "tools": listed} == json.loads(body)
    assert dialect.withhold(body, lambda _: False) is body


def test_a_client_that_brings_nothing_else_keeps_its_own(pair, dialect):
    world = pair([looking("0.py"), Say("Done.")], strict=True)
    talk = begin(world, dialect)
    only = [
        each for each in brought(dialect) if (each.get("function") or each)["name"].endswith(OURS)
    ]

    talk.say("Read it.")
    talk.extra["tools"] = only
    talk.results("short")

    assert names(world.upstream.requests[1]) == [f"mcp__hotset__{name}" for name in OURS]
