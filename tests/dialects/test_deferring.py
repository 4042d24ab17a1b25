"""Tools that are found later, in each provider's own form: declared, handed over, and told in words
where that is not taken."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from hotset.dialects import DIALECTS
from hotset.dialects.port import OWN_SEARCH
from hotset.nouns.message import Answer, DialectName, Loading, ToolSpec
from hotset.nouns.page import Kind
from hotset.nouns.tool import FIND_TOOLS
from hotset.testing import Call, Say
from tests.dialects.rounds import OURS, reply

ANTHROPIC, RESPONSES, CHAT = (
    DialectName.ANTHROPIC,
    DialectName.OPENAI_RESPONSES,
    DialectName.OPENAI_CHAT,
)
SCHEMA = b'{"type":"object","properties":{"title":{"type":"string"}}}'
FIND = ToolSpec(FIND_TOOLS, "Finds tools.", SCHEMA, Loading.FINDS)
ISSUE, MAIL = (
    ToolSpec(name, f"Does {name}.", SCHEMA, Loading.WHEN_FOUND)
    for name in ("github__create_issue", "post__send")
)
WORDS = {ISSUE.name: "creates “issues”", MAIL.name: "sends mail"}
CLIENT_SEARCH = {"type": "tool_search", "execution": "client", "parameters": {}}

names = st.lists(st.sampled_from([ISSUE, MAIL]), unique=True, max_size=2).map(tuple)


def request(name: DialectName, tools, **more):
    said = {"input" if name is RESPONSES else "messages": [{"role": "user", "content": "u"}]}
    return DIALECTS[name].parse(json.dumps({"model": "m", "tools": tools, **said, **more}).encode())


def tool(name: DialectName):
    if name is ANTHROPIC:
        return {"name": "read", "input_schema": {}}
    return (
        {"type": "function", "name": "read"}
        if name is RESPONSES
        else {"type": "function", "function": {"name": "read"}}
    )


@pytest.mark.parametrize("name", list(DialectName))
def test_what_is_offered_is_declared_in_the_same_bytes(name):
    dialect, own = DIALECTS[name], request(name, [tool(name)])

    offered = dialect.parse(dialect.offer(own.raw, (FIND, ISSUE)))

    declared = dialect.declare((FIND, ISSUE))
    assert [each.raw for each in offered.tools[1:]] == [each.raw for each in declared]
    trees = [json.loads(each.raw) for each in declared]
    if name is ANTHROPIC:
        assert [each.get("defer_loading") for each in trees] == [None, True]
    elif name is RESPONSES:
        assert [(each["type"], each["execution"]) for each in trees] == [("tool_search", "client")]


@given(names, names, st.booleans())
@pytest.mark.parametrize("name", [ANTHROPIC, RESPONSES])
def test_what_an_answer_hands_over_is_told_in_words_elsewhere(name, first, second, failed):
    dialect = DIALECTS[name]
    searched = name is RESPONSES
    answers = [
        Answer("a", "words", tools=first, searched=searched),
        Answer("b", "oh", failed=failed, tools=second, searched=searched),
    ]
    handed = [*first, *(second if searched or not failed else ())]

    raws = dialect.answer(answers)
    spelled = [dialect.spell_out(raw, WORDS) for raw in raws]

    assert [each for raw in raws for each in dialect.loaded_tools(raw)] == [
        each.name for each in handed
    ]
    assert not any(dialect.loaded_tools(raw) for raw in spelled)
    parts = [part for raw in spelled for part in dialect.understand(raw).parts]
    assert {part.kind for part in parts} == {Kind.TOOL_RESULT}
    assert [part.call for part in parts] == ["a", "b"]
    said = "\n".join(part.content.decode() for part in parts)
    assert [name for name, words in WORDS.items() if words in said] == [
        each.name for each in (ISSUE, MAIL) if each in handed
    ]
    assert [dialect.spell_out(raw, WORDS) for raw in spelled] == spelled


def test_beside_references_stands_nothing_else():
    [raw] = DIALECTS[ANTHROPIC].answer([Answer("a", "words", tools=(ISSUE, MAIL))])

    [block] = json.loads(raw)["content"]
    assert block["content"] == [
        {"type": "tool_reference", "tool_name": each.name} for each in (ISSUE, MAIL)
    ]


def test_a_block_alone_is_spelled_out_as_it_is_in_its_message():
    """So it is held where a client answers calls of its own in the same turn."""
    dialect = DIALECTS[ANTHROPIC]
    [raw] = dialect.answer([Answer("a", "words", tools=(ISSUE,))])
    block = json.dumps(json.loads(raw)["content"][0]).encode()

    assert dialect.loaded_tools(block) == (ISSUE.name,)
    assert json.loads(dialect.spell_out(block, WORDS))["content"] == WORDS[ISSUE.name]
    assert json.loads(dialect.spell_out(block, {}))["content"] == ISSUE.name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            ANTHROPIC,
            {"role": "assistant", "content": [{"type": "text", "text": "a tool_reference"}]},
        ),
        (ANTHROPIC, {"role": "user", "content": "tool_reference"}),
        (
            ANTHROPIC,
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "tool_reference"}
                ],
            },
        ),
        (
            RESPONSES,
            {
                "type": "function_call",
                "call_id": "a",
                "name": "read",
                "arguments": "tool_search_output",
            },
        ),
        (
            RESPONSES,
            {"type": "function_call_output", "call_id": "a", "output": "tool_search_output"},
        ),
        (CHAT, {"role": "tool", "tool_call_id": "a", "content": "tool_reference"}),
        (
            RESPONSES,
            {
                "type": "tool_search_call",
                "execution": "server",
                "call_id": None,
                "arguments": {"paths": ["crm"]},
            },
        ),
        (
            RESPONSES,
            {
                "type": "tool_search_output",
                "execution": "server",
                "call_id": None,
                "tools": [{"name": "crm"}],
            },
        ),
        (
            RESPONSES,
            {
                "type": "function_call",
                "call_id": "a",
                "name": "read",
                "namespace": "crm",
                "arguments": "{}",
            },
        ),
    ],
)
def test_what_only_speaks_of_it_or_is_the_providers_own_stays_as_it_is(name, said):
    raw = json.dumps(said, indent=1).encode()

    assert DIALECTS[name].loaded_tools(raw) == ()
    assert DIALECTS[name].spell_out(raw, WORDS) == raw


def test_a_search_and_a_call_of_what_it_loaded_become_plain_calls():
    dialect = DIALECTS[RESPONSES]
    search = {
        "type": "tool_search_call",
        "id": "tsc_1",
        "call_id": "a",
        "execution": "client",
        "arguments": {"query": "x"},
    }
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "b",
        "name": ISSUE.name,
        "namespace": ISSUE.name,
        "arguments": "{}",
    }

    plain = [
        json.loads(dialect.spell_out(json.dumps(each).encode(), WORDS)) for each in (search, call)
    ]

    assert plain == [
        {"type": "function_call", "call_id": "a", "name": FIND_TOOLS, "arguments": '{"query":"x"}'},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "b",
            "name": ISSUE.name,
            "arguments": "{}",
        },
    ]


@pytest.mark.parametrize(
    ("name", "tools", "fields", "can"),
    [
        (ANTHROPIC, [tool(ANTHROPIC)], {}, True),
        (
            ANTHROPIC,
            [tool(ANTHROPIC), {"name": "ToolSearch"}, {"name": "a", "defer_loading": True}],
            {},
            True,
        ),
        (
            ANTHROPIC,
            [
                tool(ANTHROPIC),
                {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
            ],
            {},
            False,
        ),
        (
            ANTHROPIC,
            [tool(ANTHROPIC), {"type": "tool_search_tool_bm25", "name": "tool_search_tool_bm25"}],
            {},
            False,
        ),
        (RESPONSES, [tool(RESPONSES)], {"store": False}, True),
        (RESPONSES, [tool(RESPONSES)], {}, False),
        (RESPONSES, [tool(RESPONSES)], {"store": True}, False),
        (RESPONSES, [tool(RESPONSES), {"type": "tool_search"}], {"store": False}, False),
        (RESPONSES, [tool(RESPONSES), CLIENT_SEARCH], {"store": False}, False),
        (
            RESPONSES,
            [tool(RESPONSES), {"type": "function", "name": "tool_search"}],
            {"store": False},
            False,
        ),
        (CHAT, [tool(CHAT)], {}, False),
    ],
)
def test_nothing_of_the_clients_may_stand_in_the_way(name, tools, fields, can):
    assert DIALECTS[name].can_defer(request(name, tools, **fields)) is can


@pytest.mark.parametrize("streamed", [False, True])
def test_a_search_that_is_ours_is_hidden_and_one_of_the_clients_is_not(streamed):
    say = Say(
        "I look.",
        calls=(Call("tool_search", {"query": "x"}, "one"), Call("read", {})),
        thinking="Hm.",
    )
    body = reply(RESPONSES, say, 1, streamed=streamed, tools=[CLIENT_SEARCH])

    for ours, searches in ((OURS | {OWN_SEARCH}, [FIND_TOOLS]), (OURS, [])):
        view = DIALECTS[RESPONSES].view(ours, streamed=streamed)
        shown = view.take(body)
        said = view.round()
        shown += view.close()
        assert [call.name for call in said.calls] == searches
        assert [(call.id, call.arguments) for call in said.calls if call.searches] == [
            ("call_one", b'{"query":"x"}')
        ][: len(searches)]
        assert said.foreign
        assert (b"tool_search_call" in shown) is not bool(searches)
        kinds = [
            json.loads(message.raw)["type"]
            for message in DIALECTS[RESPONSES].read(shown, streamed=streamed).messages
        ]
        assert kinds == [
            "reasoning",
            "message",
            *([] if searches else ["tool_search_call"]),
            "function_call",
        ]


def test_a_search_that_the_provider_runs_is_never_ours():
    found = {
        "type": "tool_search_call",
        "execution": "server",
        "call_id": None,
        "status": "completed",
        "arguments": {},
    }
    body = json.loads(reply(RESPONSES, Say("Hello."), 1, streamed=False))
    body["output"].insert(0, found)
    view = DIALECTS[RESPONSES].view(OURS | {OWN_SEARCH}, streamed=False)

    raw = json.dumps(body).encode()
    assert view.take(raw) == b""
    assert view.round().calls == ()
    assert view.close() == raw
