"""Tools that are found are called by their own names, where the upstream can defer tools: no find
changes what it has cached."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from hotset.dialects import DIALECTS as DIALECT_OF
from hotset.nouns.message import DialectName
from hotset.nouns.tooling import Deferring, Tooling
from hotset.runtime.decision import difference
from hotset.runtime.rounds import MOST_USES
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.upstream.cache import marked_prompt
from hotset.testing.upstream.faults import Status
from hotset.testing.upstream.script import Received
from hotset.window.deferred_tools import ANCHOR, MOST_DEFERRED
from tests.proxy.conftest import Pair
from tests.proxy.shelf import Shelf
from tests.proxy.talking import OURS, SHORTENING, Talk, asked, code, meant, read, tools
from tests.proxy.test_toolbox import (
    HIDDEN,
    ISSUE,
    OTHER,
    PROMPT,
    ROWS,
    create_issue,
    list_rows,
    shelf,
    use,
)

ANTHROPIC, RESPONSES, CHAT = (
    DialectName.ANTHROPIC,
    DialectName.OPENAI_RESPONSES,
    DialectName.OPENAI_CHAT,
)
ON = Tooling(deferred=Deferring.ON)
MARKS = {ANTHROPIC: {"cache_control": {"type": "ephemeral"}}, RESPONSES: {}}
LATER = ANCHOR.name


@pytest.fixture(params=[ANTHROPIC, RESPONSES])
def dialect(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["document", "stream"])
def stream(request):
    return request.param


@pytest.fixture
def talk(pair, dialect, stream):
    def begin(
        *says: Say,
        script=None,
        tools: Shelf | None = None,
        tooling=ON,
        strict=True,
        **extra: object,
    ):
        world = pair(script or list(says), strict=strict, toolbox=tools or shelf(), tooling=tooling)
        return Talk(world.address, dialect, stream, MARKS[dialect] | extra), world

    return begin


def find(dialect: str, query: str, **more: Any) -> Call:
    """The model searches, in the provider's own way where it has one."""
    return Call("tool_search" if dialect == RESPONSES else "find_tools", {"query": query, **more})


def listed(request: Received) -> list[tuple[str, bool]]:
    """Every tool of a request by its name, and whether it is deferred."""
    told = [json.loads(tool.raw) for tool in asked(request).tools]
    return [(each.get("name") or each["type"], each.get("defer_loading", False)) for each in told]


def at_once(*names: str) -> list[tuple[str, bool]]:
    return [(name, False) for name in names]


def plain_list(*ghosts: str) -> list[tuple[str, bool]]:
    return at_once("read_file", *OURS, "find_tools", "use_tool", *ghosts)


def deferring_list(dialect: str, *found: str) -> list[tuple[str, bool]]:
    if dialect == RESPONSES:
        return at_once("read_file", *OURS, "tool_search", "use_tool")
    return [*plain_list(), *((name, True) for name in (LATER, *found))]


def handed_over(dialect: str, request: Received) -> list[list[str]]:
    """What each answer to a search made callable."""
    raws = [message.raw for message in asked(request).messages]
    return [list(names) for raw in raws if (names := DIALECT_OF[dialect].loaded_tools(raw))]


def cached(dialect: str, request: Received) -> list[Any]:
    """A request as the provider's cache sees it; OpenAI's client writes its own items in another
    order than they came."""
    if dialect == ANTHROPIC:
        return [block.raw for block in marked_prompt(request.json()).blocks]
    spoken = asked(request)
    return [*(tool.raw for tool in spoken.tools), "", *map(meant, spoken.messages)]


def assert_the_prefix_never_breaks(dialect: str, requests: Sequence[Received]) -> None:
    for before, after in pairwise(cached(dialect, request) for request in requests):
        assert after[: len(before)] == before


def assert_nothing_was_seen(talk: Talk, world: Pair) -> None:
    assert not any(
        ours in talk.wrote
        for ours in (*HIDDEN, LATER, "tool_search", "tool_reference", "defer_loading")
    )
    assert_the_prefix_never_breaks(talk.dialect, world.upstream.requests)


@pytest.mark.row("L3")
def test_a_tool_that_was_found_is_called_by_its_own_name_now_and_in_later_turns(talk, dialect):
    tools = shelf()
    conversation, world = talk(
        Say("I look.", calls=(find(dialect, "open an issue on github"),), thinking="Which tool?"),
        Say("I do it.", calls=(Call(ISSUE, {"title": "It broke"}),)),
        Say("Issue 17."),
        Say("Again.", calls=(Call(ISSUE, {"title": "And again"}),)),
        Say("Issue 18."),
        tools=tools,
    )

    conversation.say(OTHER)
    said = conversation.text
    conversation.say("It broke again.")

    assert said == "I look.I do it.Issue 17."
    assert conversation.text == "Again.Issue 18."
    first, *others = world.upstream.requests
    assert listed(first) == deferring_list(dialect)
    assert [listed(request) for request in others] == [deferring_list(dialect, ISSUE)] * 4
    assert [handed_over(dialect, request) for request in others] == [[[ISSUE]]] * 4
    assert [(name, query) for name, _, query in tools.used] == [
        (ISSUE, "open an issue on github"),
        (ISSUE, "It broke again."),
    ]
    assert_nothing_was_seen(conversation, world)


def test_what_is_handed_over_has_the_forms_that_the_providers_document(talk, dialect):
    conversation, world = talk(
        Say(calls=(find(dialect, "open an issue on github"),)), Say("Found.")
    )

    conversation.say(OTHER)

    body = world.upstream.requests[1].json()
    schema = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "body": {"type": "string", "default": ""}},
    }
    if dialect == ANTHROPIC:
        [result] = body["messages"][-1]["content"]
        assert result["content"] == [{"type": "tool_reference", "tool_name": ISSUE}]
        assert set(result) == {"type", "tool_use_id", "content"}
        definition = body["tools"][-1]
        assert (definition["name"], definition["description"]) == (
            ISSUE,
            "Create an issue on GitHub.",
        )
        assert definition["input_schema"]["properties"].keys() == schema["properties"].keys()
        assert set(definition) == {"name", "description", "input_schema", "defer_loading"}
    else:
        search = next(tool for tool in body["tools"] if tool["type"] == "tool_search")
        assert set(search) == {"type", "execution", "description", "parameters"}
        assert search["execution"] == "client"
        call, output = body["input"][-2:]
        assert (call["type"], call["execution"]) == ("tool_search_call", "client")
        [definition] = output.pop("tools")
        said = {
            "type": "tool_search_output",
            "execution": "client",
            "call_id": call["call_id"],
            "status": "completed",
        }
        assert output == said
        assert (definition["type"], definition["name"], definition["defer_loading"]) == (
            "function",
            ISSUE,
            True,
        )
        assert definition["parameters"]["properties"].keys() == schema["properties"].keys()


@pytest.mark.rest_slow
def test_later_finds_bring_more_and_what_was_found_before_stays_as_it_was(talk, dialect):
    tools = shelf()
    conversation, world = talk(
        Say(calls=(find(dialect, "open an issue on github"),)),
        Say("One."),
        Say(calls=(find(dialect, "list the rows of a table"),)),
        Say(
            "Two.",
            calls=(Call(ROWS, {"table": "people"}), find(dialect, "open an issue on github")),
        ),
        Say("Three."),
        tools=tools,
    )

    conversation.say(OTHER)
    conversation.say("The rows, please.")

    assert listed(world.upstream.requests[-1]) == deferring_list(dialect, ISSUE, ROWS)
    assert handed_over(dialect, world.upstream.requests[-1]) == [[ISSUE], [ROWS], [ISSUE]]
    assert_nothing_was_seen(conversation, world)


@pytest.mark.rest_slow
def test_a_ghost_that_stands_in_the_list_is_not_handed_over_again(talk, dialect):
    conversation, world = talk(
        Say(calls=(find(dialect, "create an issue or list the rows of a table"),)),
        Say(calls=(Call(ISSUE, {"title": "x"}), Call(ROWS, {"table": "people"}))),
        Say("Done."),
    )

    conversation.say(PROMPT)

    assert (ISSUE, False) in listed(world.upstream.requests[0])
    [names] = handed_over(dialect, world.upstream.requests[1])
    assert ROWS in names
    assert ISSUE not in names
    assert conversation.text == "Done."
    assert_nothing_was_seen(conversation, world)


def test_a_search_that_finds_nothing_is_answered(talk, dialect):
    conversation, world = talk(
        Say(
            calls=(find(dialect, "zzz"), Call("find_tools", {}))
            if dialect == ANTHROPIC
            else (find(dialect, "zzz"),)
        ),
        Say("Then not."),
    )

    conversation.say(OTHER)

    assert conversation.text == "Then not."
    assert handed_over(dialect, world.upstream.requests[1]) == []
    if dialect == RESPONSES:
        assert world.upstream.requests[1].json()["input"][-1]["tools"] == []
    else:
        assert b"no tool fits" in world.upstream.requests[1].body


def test_a_find_beside_a_call_of_the_clients_is_answered_when_the_client_answers_its_own(
    talk, dialect
):
    both = Say("Both.", calls=(read("a.py", id="one"), find(dialect, "open an issue on github")))
    conversation, world = talk(
        both, Say("Now.", calls=(Call(ISSUE, {"title": "x"}),)), Say("Done."), Say("Bye.")
    )

    conversation.say(OTHER)
    assert [call.tool for call in conversation.calls] == ["read_file"]
    conversation.results("a is empty")
    conversation.say("Thanks.")

    assert handed_over(dialect, world.upstream.requests[1]) == [[ISSUE]]
    assert listed(world.upstream.requests[-1]) == deferring_list(dialect, ISSUE)
    assert conversation.text == "Bye."
    assert_nothing_was_seen(conversation, world)


def _script(dialect: str) -> list[Say]:
    return [
        Say("First.", calls=(read("0.py"), find(dialect, "open an issue on github"))),
        Say("Then.", calls=(Call(ISSUE, {"title": "one"}),)),
        Say("Next.", calls=(read("1.py"),)),
        Say("Next.", calls=(read("2.py"),)),
        Say("More.", calls=(find(dialect, "list the rows of a table"),)),
        Say("Now.", calls=(Call(ROWS, {"table": "people"}), read("3.py"))),
        Say("Again.", calls=(Call(ISSUE, {"title": "two"}),)),
        Say("Next.", calls=(read("4.py"),)),
        Say("Done."),
    ]


def _session(place, dialect: str, *, stream: bool) -> None:
    talk = Talk(place(0), dialect, stream, MARKS[dialect])
    talk.say(OTHER)
    for turn in range(1, 6):
        talk.address = place(turn)
        talk.results(code(f"part{turn}", 200))
    assert talk.text == "Done."
    assert not any(ours in talk.wrote for ours in (*HIDDEN, LATER))


@contextlib.contextmanager
def _proxy(folder, upstream, toolbox, tooling=ON):
    urls = {"openai_url": upstream.openai_url, "anthropic_url": upstream.anthropic_url}
    with LocalProxy(folder, **urls, toolbox=toolbox, knobs=SHORTENING, tooling=tooling) as proxy:
        yield proxy


@pytest.mark.row("L3")
@pytest.mark.slow
def test_a_restart_with_other_servers_in_mid_session_sends_the_same_bytes(
    tmp_path, dialect, stream
):
    """And costs the same, to the token."""
    with (
        ScriptedUpstream(_script(dialect), strict=True) as whole,
        _proxy(tmp_path / "whole", whole, shelf()) as proxy,
    ):
        _session(lambda _: proxy.address, dialect, stream=stream)
    with contextlib.ExitStack() as stack:
        upstream = stack.enter_context(ScriptedUpstream(_script(dialect), strict=True))
        before, after = (stack.enter_context(contextlib.ExitStack()) for _ in range(2))
        places = [before.enter_context(_proxy(tmp_path / "data", upstream, shelf())).address]

        def place(turn: int):
            if turn == 3:
                before.close()
                others = Shelf(github=[create_issue], store=[list_rows], issues=[create_issue])
                places.append(
                    after.enter_context(_proxy(tmp_path / "data", upstream, others)).address
                )
            return places[-1]

        _session(place, dialect, stream=stream)
        requests, bill = upstream.requests, upstream.bill
    assert_the_prefix_never_breaks(dialect, requests)
    assert [request.json()["tools"] for request in requests] == [
        request.json()["tools"] for request in whole.requests
    ]
    assert bill == whole.bill
    assert bill.cache_read > 0


@pytest.mark.slow
def test_two_proxies_over_one_store_go_on_with_each_others_finds(tmp_path, dialect):
    with contextlib.ExitStack() as stack:
        upstream = stack.enter_context(ScriptedUpstream(_script(dialect), strict=True))
        proxies = [
            stack.enter_context(_proxy(tmp_path / "data", upstream, shelf())) for _ in range(2)
        ]
        _session(lambda turn: proxies[turn % 2].address, dialect, stream=True)
        assert_the_prefix_never_breaks(dialect, upstream.requests)


def test_a_tool_that_is_gone_from_the_toolbox_is_still_ours_and_its_end_is_told(talk, dialect):
    tools = shelf()
    conversation, world = talk(
        Say(calls=(find(dialect, "open an issue on github"),)),
        Say("Found."),
        Say(calls=(Call(ISSUE, {"title": "x"}),)),
        Say("I see."),
        tools=tools,
    )

    conversation.say(OTHER)
    tools.clear()
    conversation.say("Now.")

    assert conversation.text == "I see."
    assert b"no tool github__create_issue" in world.upstream.requests[-1].body
    assert_nothing_was_seen(conversation, world)


def test_a_tool_that_goes_in_the_middle_of_a_turn_is_ours_to_the_end(talk, dialect):
    tools = shelf()
    says = iter(
        [
            Say(calls=(find(dialect, "open an issue on github"),)),
            Say(calls=(Call(ISSUE, {"title": "x"}),)),
            Say("I see."),
        ]
    )

    def script(request):
        if handed_over(dialect, request):
            tools.clear()
        return next(says)

    conversation, world = talk(script=script, tools=tools)
    conversation.say(OTHER)

    assert conversation.text == "I see."
    assert b"no tool github__create_issue" in world.upstream.requests[-1].body


@pytest.mark.rest_slow
def test_a_model_that_searches_for_ever_is_told_to_go_on_and_stopped(talk, dialect):
    endless = [
        Say(f"{n}.", calls=(find(dialect, "open an issue on github"),))
        for n in range(MOST_USES + 1)
    ]
    conversation, world = talk(*endless, Say("Bye."))

    conversation.say(OTHER)
    said = conversation.text
    conversation.say("Thanks.")

    assert said == "".join(f"{n}." for n in range(MOST_USES + 1))
    assert len(world.upstream.requests) == MOST_USES + 2
    if dialect == ANTHROPIC:  # elsewhere a search is answered by tools alone
        assert b"last use of the toolbox" in world.upstream.requests[MOST_USES].body
    assert_nothing_was_seen(conversation, world)


@pytest.mark.rest_slow
def test_what_is_different_about_a_turn_names_what_was_found_by_then(talk, dialect):
    conversation, world = talk(
        Say("Hello."),
        Say(calls=(find(dialect, "open an issue on github"),)),
        Say("Found."),
        Say("Bye."),
    )

    for words in (OTHER, "Find it.", "Thanks."):
        conversation.say(words)

    with world.store() as store:
        [session] = store.sessions()
        told = [
            difference(store, turn, DIALECT_OF, inject=True).tools
            for turn in store.turns(session.id)
        ]
    listed_first = (*sorted(OURS), "find_tools", "use_tool")
    assert told == [listed_first, listed_first, (*listed_first, ISSUE)]


@pytest.mark.parametrize("off", [Deferring.OFF, Deferring.AUTO])
def test_switched_off_or_behind_another_host_everything_is_as_ever(talk, dialect, off):
    conversation, world = talk(
        Say(calls=(Call("find_tools", {"query": "open an issue on github"}),)),
        Say("Found."),
        tooling=Tooling(deferred=off),
    )

    conversation.say(OTHER)

    assert [listed(request) for request in world.upstream.requests] == [plain_list()] * 2
    assert handed_over(dialect, world.upstream.requests[1]) == []
    assert ISSUE.encode() in world.upstream.requests[1].body


@pytest.mark.parametrize("stream", [False, True])
def test_chat_completions_keep_to_words(pair, stream):
    says = [
        Say(calls=(Call("find_tools", {"query": "open an issue on github"}),)),
        Say(calls=(use(ISSUE, title="x"),)),
        Say("Done."),
    ]
    world = pair(says, strict=True, toolbox=shelf(), tooling=ON)
    talk = Talk(world.address, CHAT, stream)

    talk.say(OTHER)

    assert talk.text == "Done."
    assert not any(
        b"defer" in request.body or b"tool_search" in request.body
        for request in world.upstream.requests
    )


REFUSALS = {
    ANTHROPIC: (b'"defer_loading"', "tools.6.defer_loading: Extra inputs are not permitted"),
    RESPONSES: (
        b'"tool_search"',
        (
            "Invalid value: 'tool_search'. Supported values are: 'function', 'custom', and "
            "'web_search'."
        ),
    ),
}


def _unknowing(dialect: str, *says: Say):
    """An upstream that does not know deferred tools."""
    left = iter(says)
    field, words = REFUSALS[dialect]
    return lambda request: Say(fault=Status(400, words)) if field in request.body else next(left)


def test_an_upstream_that_knows_no_deferred_tools_is_asked_again_without_and_never_again_with(
    talk, dialect
):
    script = _unknowing(
        dialect,
        Say(calls=(Call("find_tools", {"query": "open an issue on github"}),)),
        Say(calls=(use(ISSUE, title="x"),)),
        Say("Done."),
        Say("You are welcome."),
        Say("Hello."),
    )
    conversation, world = talk(script=script, strict=False)

    conversation.say(OTHER)
    said = conversation.text
    conversation.say("Thanks.")
    Talk(world.address, dialect, conversation.stream).say("Another session.")

    assert said == "Done."
    refused, *taken = world.upstream.requests
    assert listed(refused) == deferring_list(dialect)
    assert [listed(request) for request in taken] == [plain_list()] * 5
    assert_the_prefix_never_breaks(dialect, taken[:4])
    assert not any(ours in conversation.wrote for ours in HIDDEN)
    with world.store() as store:
        [event] = [event for event in store.events() if event.name == "DeferringRefused"]
        assert sorted(bill.calls for bill in store.bills()) == [1, 1, 3]
    assert set(event.detail) == {"upstream", "model", "call"}


def test_an_upstream_that_refuses_what_was_found_gets_it_in_words(talk, dialect):
    """It takes the fields, but not what they are for: half of a turn has been said by then."""
    refused = b"tool_reference" if dialect == ANTHROPIC else b"tool_search_output"
    left = iter(
        [
            Say("I look.", calls=(find(dialect, "open an issue on github"),)),
            Say("I do it.", calls=(use(ISSUE, title="x"),)),
            Say("Done."),
            Say("You are welcome."),
        ]
    )

    def script(request):
        return (
            Say(fault=Status(400, f"Unexpected value '{refused.decode()}'"))
            if refused in request.body
            else next(left)
        )

    conversation, world = talk(script=script, strict=False)
    conversation.say(OTHER)
    said = conversation.text
    conversation.say("Thanks.")

    assert said == "I look.I do it.Done."
    _, _, *taken = world.upstream.requests
    assert [listed(request) for request in taken] == [plain_list()] * 3
    assert all(b"Create an issue on GitHub. Arguments: " in request.body for request in taken)
    assert not any(
        b"tool_search" in request.body or b"tool_reference" in request.body for request in taken
    )
    assert_the_prefix_never_breaks(dialect, taken)
    assert all(DIALECT_OF[dialect].check(asked(request)) == () for request in taken)
    assert not any(ours in conversation.wrote for ours in HIDDEN)


def test_a_refusal_that_is_the_clients_own_is_the_clients_and_changes_nothing(talk, dialect):
    words = "All tools have defer_loading set. At least one tool must be non-deferred."
    left = iter([Say(fault=Status(400, words)), Say(fault=Status(400, words)), Say("Hello.")])
    conversation, world = talk(script=lambda _: next(left), strict=False)

    conversation.say(OTHER)
    assert conversation.answer.status == 400
    assert words in conversation.answer.body.decode()
    conversation.history.clear()
    conversation.say(OTHER)

    assert conversation.text == "Hello."
    assert [listed(request) for request in world.upstream.requests] == [
        deferring_list(dialect),
        plain_list(),
        deferring_list(dialect),
    ]


@pytest.mark.parametrize("status", [400, 429, 529])
@pytest.mark.rest_slow
def test_any_other_refusal_is_told_as_it_came(talk, dialect, status):
    conversation, world = talk(Say(fault=Status(status, "max_tokens: must be greater than 0")))

    conversation.say(OTHER)

    assert conversation.answer.status == status
    assert "max_tokens: must be greater than 0" in conversation.answer.body.decode()
    assert len(world.upstream.requests) == 1


@pytest.mark.rest_slow
def test_a_session_goes_on_in_words_where_its_client_stands_in_the_way(talk, dialect):
    conversation, world = talk(
        Say(calls=(find(dialect, "open an issue on github"),)),
        Say("I do it.", calls=(Call(ISSUE, {"title": "x"}),)),
        Say("Done."),
        Say("Bye."),
        Say("Back."),
    )
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    in_the_way = {
        ANTHROPIC: {"tools": [{"name": "read_file", "input_schema": schema}, search]},
        RESPONSES: {"store": True},
    }[dialect]

    conversation.say(OTHER)
    usual, conversation.extra = conversation.extra, conversation.extra | in_the_way
    conversation.say("Thanks.")
    conversation.extra = usual
    conversation.say("And now?")

    *_, before, spelled, after = world.upstream.requests
    assert handed_over(dialect, before) == handed_over(dialect, after) == [[ISSUE]]
    assert b"Create an issue on GitHub. Arguments: " in spelled.body
    assert handed_over(dialect, spelled) == []
    assert_the_prefix_never_breaks(dialect, [before, after])


def test_beyond_the_bound_what_is_found_is_told_in_words(pair):
    """They cost nothing in the window, but are sent with every request."""

    def made(number: int):
        def tool(title: str) -> str:
            return title

        tool.__name__, tool.__doc__ = (
            f"tool{'abcdefghijklmnopqrstuvwxyz'[number % 26]}{number // 26}",
            f"Does thing{'xyzw'[number % 4]} well.",
        )
        return tool

    toolbox = Shelf(many=[made(number) for number in range(MOST_DEFERRED + 40)])
    finds = [Say(calls=(find(ANTHROPIC, f"thing{letter}", limit=20),)) for letter in "xyzw"]
    world = pair([*finds, Say("Done.")], strict=True, toolbox=toolbox, tooling=ON)
    talk = Talk(world.address, ANTHROPIC)

    talk.say(OTHER)

    assert talk.text == "Done."
    counts = [
        sum(deferred for _, deferred in listed(request)) for request in world.upstream.requests
    ]
    assert counts == [1, 21, 41, 61, 61]
    assert b"many__tool" in asked(world.upstream.requests[-1]).messages[-1].raw
    assert len(handed_over(ANTHROPIC, world.upstream.requests[-1])) == 3


def _deferring(dialect: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The tools of a client that defers some itself, and what it said and found so far."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    if dialect == ANTHROPIC:
        own = {"name": "ToolSearch", "input_schema": {"type": "object"}}
        mine = {"name": "WebFetch", "input_schema": schema, "defer_loading": True}
        used = {"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {}}
        found = {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": [{"type": "tool_reference", "tool_name": "WebFetch"}],
        }
        said = [
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [found]},
        ]
        return [own, mine], said
    if dialect == CHAT:
        return [
            {
                "type": "function",
                "function": {"name": "fetch", "parameters": schema},
                "defer_loading": True,
            }
        ], []
    own = {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}}
    call = {
        "type": "tool_search_call",
        "call_id": "call_1",
        "execution": "client",
        "status": "completed",
        "arguments": {"q": "x"},
    }
    function = {
        "type": "function",
        "name": "fetch",
        "parameters": schema,
        "strict": False,
        "defer_loading": True,
    }
    found = {
        "type": "tool_search_output",
        "call_id": "call_1",
        "execution": "client",
        "status": "completed",
        "tools": [function],
    }
    used = {
        "type": "function_call",
        "call_id": "call_2",
        "name": "fetch",
        "namespace": "fetch",
        "arguments": "{}",
    }
    result = {"type": "function_call_output", "call_id": "call_2", "output": "ok"}
    return [own, *tools(RESPONSES, "read_file")], [
        {"role": "user", "content": "Hi."},
        call,
        found,
        used,
        result,
    ]


@pytest.mark.parametrize("tooling", [ON, Tooling()], ids=["on", "off"])
@pytest.mark.parametrize("spoken", list(DialectName))
@pytest.mark.rest_slow
def test_a_client_that_defers_tools_itself_passes_unharmed_with_ours_beside(
    pair, spoken, tooling, stream
):
    theirs, history = _deferring(spoken)
    world = pair(
        [Say("Hello."), Say("Bye.")], strict=spoken is not CHAT, toolbox=shelf(), tooling=tooling
    )
    talk = Talk(world.address, spoken, stream, {"tools": theirs}, history=history)

    talk.say(PROMPT)
    talk.say("Thanks.")

    assert talk.text == "Bye."
    for request, sent in zip(world.upstream.requests, talk.sent, strict=True):
        body = request.decoded
        ours = asked(request).tools[len(theirs) :]
        assert [tool.name for tool in ours][:5] == [*OURS, "find_tools", "use_tool"]
        for tool in ours:
            body = body.replace(b"," + tool.raw, b"")
        assert body == sent


def test_a_client_that_defers_tools_itself_can_find_ours_beside(pair, stream):
    theirs, history = _deferring(ANTHROPIC)
    says = [
        Say(calls=(find(ANTHROPIC, "open an issue on github"),)),
        Say(calls=(Call(ISSUE, {"title": "x"}),)),
        Say("Done."),
        Say("Bye."),
    ]
    world = pair(says, strict=True, toolbox=shelf(), tooling=ON)
    talk = Talk(
        world.address, ANTHROPIC, stream, {"tools": theirs} | MARKS[ANTHROPIC], history=history
    )

    talk.say(OTHER)
    talk.say("Thanks.")

    assert talk.text == "Bye."
    assert handed_over(ANTHROPIC, world.upstream.requests[-1]) == [["WebFetch"], [ISSUE]]
    assert [name for name, deferred in listed(world.upstream.requests[-1]) if deferred] == [
        "WebFetch",
        LATER,
        ISSUE,
    ]
    assert_the_prefix_never_breaks(ANTHROPIC, world.upstream.requests)


def test_a_search_of_the_clients_own_is_the_clients(pair, stream):
    theirs, history = _deferring(RESPONSES)
    world = pair(
        [Say(calls=(Call("tool_search", {"q": "y"}),))], strict=True, toolbox=shelf(), tooling=ON
    )
    talk = Talk(world.address, RESPONSES, stream, {"tools": theirs}, history=history)

    talk.say(OTHER)

    assert [json.loads(message.raw)["type"] for message in talk.reply.messages] == [
        "tool_search_call"
    ]
    assert len(world.upstream.requests) == 1


def test_a_marked_last_tool_of_the_clients_stays_the_last_that_is_cached(pair, stream):
    mark = {"cache_control": {"type": "ephemeral"}}
    theirs = [*tools(ANTHROPIC, "read_file"), tools(ANTHROPIC, "write_file")[0] | mark]
    says = [
        Say(calls=(find(ANTHROPIC, "open an issue on github"),)),
        Say(calls=(Call(ISSUE, {"title": "x"}),)),
        Say("Done."),
    ]
    world = pair(says, strict=True, toolbox=shelf(), tooling=ON)
    talk = Talk(world.address, ANTHROPIC, stream, {"tools": theirs})

    talk.say(OTHER)

    assert talk.text == "Done."
    assert [listed(request)[-1] for request in world.upstream.requests] == [
        ("write_file", False)
    ] * 3
    assert_the_prefix_never_breaks(ANTHROPIC, world.upstream.requests)
