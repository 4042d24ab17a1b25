"""Every rule of a provider that a changed request could break is found, and nothing else is called
broken."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from random import Random

import pytest

from hotset.dialects import DIALECTS, INVARIANTS
from hotset.dialects.parts import size_of
from hotset.dialects.rules import beyond
from hotset.nouns.message import DialectName
from tests.campaign import sample
from tests.dialects import recordings
from tests.dialects.conversations import conversation, image_block, png

CHAT, RESPONSES, ANTHROPIC = (
    DIALECTS[DialectName.OPENAI_CHAT],
    DIALECTS[DialectName.OPENAI_RESPONSES],
    DIALECTS[DialectName.ANTHROPIC],
)


def _use(id, name="Read"):
    return {"type": "tool_use", "id": id, "name": name, "input": {}}


def _result(id, content="r"):
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def _text(text="words"):
    return {"type": "text", "text": text}


def _thought(text="hm"):
    return {"type": "thinking", "thinking": text, "signature": "sig"}


_MARK = {"cache_control": {"type": "ephemeral"}}
_SEARCH = {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"query": "q"}}
_FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srv",
    "content": [{"type": "web_search_result", "url": "u"}],
}

_CLAUDE = {
    "model": "claude-opus-4-5",
    "max_tokens": 99,
    "thinking": {"type": "enabled", "budget_tokens": 50},
    "system": [_text() | _MARK],
    "tools": [{"name": "Read"}, {"name": "Bash"}],
    "messages": [
        {"role": "user", "content": [_text(), image_block()]},
        {"role": "assistant", "content": [_thought("first"), _SEARCH, _FOUND, _text()]},
        {"role": "user", "content": [_text()]},
        {"role": "assistant", "content": [_thought(), _text(), _use("t1"), _use("t2")]},
        {
            "role": "user",
            "content": [
                _result("t1"),
                _result("t2", [_text(), {"type": "tool_reference", "tool_name": "Bash"}]),
            ],
        },
        {"role": "assistant", "content": [_thought("again"), _use("t3", "Bash")]},
        {"role": "user", "content": [_result("t3") | _MARK, _text() | _MARK]},
    ],
}
_COMPACTED = {
    "model": "claude-opus-5",
    "thread": {"type": "continue", "previous_message_id": "msg_1"},
    "system": "s",
    "messages": [
        {
            "role": "assistant",
            "content": [
                {"type": "compaction", "content": "c", "signature": "s", "tool_changes": []},
                _text(),
            ],
        },
        {"role": "user", "content": "go on"},
    ],
}


def _call(id, name="read", **more):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}, **more}


_GPT = {
    "model": "gpt-5.2",
    "tools": [{"type": "function", "function": {"name": "read"}}],
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": None, "tool_calls": [_call("a"), _call("b")]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "more"},
    ],
}
_SIGNED = {"extra_content": {"google": {"thought_signature": "sig"}}}
_GEMINI = {
    "model": "gemini-3-pro-preview",
    "messages": [
        {"role": "user", "content": "u"},
        {"role": "assistant", "tool_calls": [_call("a", **_SIGNED), _call("b")]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
    ],
}
_ITEMS = {
    "model": "gpt-5.4",
    "tools": [{"type": "function", "name": "read", "defer_loading": True}, {"type": "tool_search"}],
    "input": [
        {"role": "user", "content": "u"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "2"},
        {"type": "reasoning", "id": "rs_2", "summary": []},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "x"}],
        },
        {"role": "user", "content": "u"},
    ],
}
_SEARCHING = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
_SEARCHED = {
    "model": "gpt-5.4",
    "tools": [{"type": "tool_search", "execution": "client", "parameters": {}}],
    "input": [
        {"role": "user", "content": "u"},
        {
            "type": "tool_search_call",
            "call_id": "a",
            "execution": "client",
            "status": "completed",
            "arguments": {},
        },
        {
            "type": "tool_search_output",
            "call_id": "a",
            "execution": "client",
            "status": "completed",
            "tools": [],
        },
    ],
}


def _set(path, value):
    def edit(body):
        *way, last = path
        for step in way:
            body = body[step]
        body[last] = value

    return edit


def _drop(*path):
    def edit(body):
        *way, last = path
        for step in way:
            body = body[step]
        del body[last]

    return edit


def _insert(path, value):
    def edit(body):
        *way, last = path
        for step in way:
            body = body[step]
        body.insert(last, value)

    return edit


def _many_images(count, side):
    return _set(("messages", 0, "content"), [_text(), *[image_block(side, side)] * count])


M = "messages"
FAULTS = [
    # (rule, where, dialect, base, the fault)
    (1, "messages.3", ANTHROPIC, _CLAUDE, _set((M, 4, "content"), [_text()])),
    (1, "messages.5", ANTHROPIC, _CLAUDE, _drop(M, 6)),
    (1, "messages.3", ANTHROPIC, _CLAUDE, _drop(M, 4, "content", 1)),
    (1, "messages.3", ANTHROPIC, _CLAUDE, _insert((M, 3, "content", 4), _use("t9"))),
    (2, "messages.5.content.0", ANTHROPIC, _CLAUDE, _drop(M, 5)),
    (2, "messages.4.content.0", ANTHROPIC, _CLAUDE, _drop(M, 3, "content", 2)),
    (
        2,
        "messages.0.content.0",
        ANTHROPIC,
        _CLAUDE,
        _set((M,), [{"role": "user", "content": [_result("t3")]}]),
    ),
    (
        3,
        "messages.3",
        ANTHROPIC,
        _CLAUDE,
        lambda body: body[M][6]["content"].insert(0, body[M][4]["content"].pop(1)),
    ),
    (3, "messages.4.content.1", ANTHROPIC, _CLAUDE, _insert((M, 4, "content", 0), _text())),
    (4, "messages.3.content.3", ANTHROPIC, _CLAUDE, _set((M, 3, "content", 3, "id"), "t1")),
    (
        4,
        "messages.5.content.1",
        ANTHROPIC,
        _CLAUDE,
        lambda body: (
            body[M][5]["content"][1].update(id="t1"),
            body[M][6]["content"][0].update(tool_use_id="t1"),
        ),
    ),
    (5, "messages.1.content.1", ANTHROPIC, _CLAUDE, _drop(M, 1, "content", 1)),
    (
        5,
        "messages.1.content",
        ANTHROPIC,
        _CLAUDE,
        lambda body: body[M][1]["content"].insert(1, body[M][1]["content"].pop(2)),
    ),
    (5, "messages.1.content.2", ANTHROPIC, _CLAUDE, _set((M, 1, "content", 2, "content"), [])),
    (5, "messages.1.content.1", ANTHROPIC, _CLAUDE, _drop(M, 1, "content", 2)),
    (6, "messages.5", ANTHROPIC, _CLAUDE, _set((M, 5, "content", 0, "thinking"), "shorter")),
    (6, "messages.5", ANTHROPIC, _CLAUDE, _drop(M, 5, "content", 0)),
    (
        7,
        "messages.5",
        ANTHROPIC,
        _CLAUDE,
        lambda body: (body[M][3]["content"].pop(0), body[M][5]["content"].pop(0)),
    ),
    (
        8,
        "messages.7",
        ANTHROPIC,
        {**_CLAUDE, "thinking": {"type": "disabled"}},
        _insert((M, 7), {"role": "assistant", "content": [_thought(), _text()]}),
    ),
    (
        9,
        "cache_control",
        ANTHROPIC,
        _CLAUDE,
        lambda body: [block.update(_MARK) for block in body[M][3]["content"][1:3]],
    ),
    (
        9,
        "cache_control",
        ANTHROPIC,
        _CLAUDE,
        lambda body: (
            body["tools"][0].update(_MARK),
            body[M][4]["content"][1]["content"][0].update(_MARK),
        ),
    ),
    (10, "tools", ANTHROPIC, _CLAUDE, _insert(("tools", 0), {"name": "Bash"})),
    (10, "messages.4.content.1", ANTHROPIC, _CLAUDE, _drop("tools", 1)),
    (
        10,
        "messages.3.content.2",
        ANTHROPIC,
        _CLAUDE,
        _set((M, 3, "content", 2, "name"), "retrieve_context"),
    ),
    (11, "messages.2", ANTHROPIC, _CLAUDE, _set((M, 2, "content"), [])),
    (11, "messages.3.content.1", ANTHROPIC, _CLAUDE, _set((M, 3, "content", 1, "text"), "")),
    (
        11,
        "messages.3.content.1.text.index",
        ANTHROPIC,
        _CLAUDE,
        _set((M, 3, "content", 1, "index"), 0),
    ),
    (12, "messages.0", ANTHROPIC, _CLAUDE, _insert((M, 0), {"role": "system", "content": "s"})),
    (
        13,
        "messages.7",
        ANTHROPIC,
        _CLAUDE,
        _insert((M, 7), {"role": "assistant", "content": "Sure:"}),
    ),
    (14, "messages.0.content.1", ANTHROPIC, _CLAUDE, _many_images(1, 8001)),
    (14, "messages.0.content.1", ANTHROPIC, _CLAUDE, _many_images(21, 2001)),
    (14, "messages", ANTHROPIC, _CLAUDE, _many_images(101, 8)),
    (
        16,
        "messages.0.content.0",
        ANTHROPIC,
        _COMPACTED,
        _set((M, 0, "content", 0, "content"), "shorter"),
    ),
    (17, "system", ANTHROPIC, _COMPACTED, _set(("system",), "other")),
    (18, "messages.2", CHAT, _GPT, _drop(M, 4)),
    (19, "messages.2", CHAT, _GPT, _drop(M, 2)),
    (20, "input.2", RESPONSES, _ITEMS, _drop("input", 3)),
    (21, "input.1", RESPONSES, _ITEMS, lambda body: body["input"].pop(1)),
    (23, "messages.5", CHAT, {**_GPT, "model": "mistral-large-latest"}, _drop(M, 6)),
    (24, "messages.1", CHAT, _GEMINI, _drop(M, 1, "tool_calls", 0, "extra_content")),
]
MORE_FAULTS = [
    (15, "body", ANTHROPIC, _CLAUDE, _set((M, 2, "content"), "x" * 32_000_001)),
    (
        16,
        "messages.0",
        ANTHROPIC,
        _COMPACTED,
        _insert((M, 0), {"role": "user", "content": "before"}),
    ),
    (13, "messages.0", ANTHROPIC, _CLAUDE, _drop(M, 0)),
    (20, "input.1", RESPONSES, _ITEMS, lambda body: (body["input"].pop(1), body["input"].pop(1))),
    (20, "input.4", RESPONSES, _ITEMS, _drop("input", 5)),
    (21, "input.6", RESPONSES, _ITEMS, _drop("input", 7)),
    (18, "messages.2", CHAT, _GPT, _insert((M, 3), {"role": "user", "content": "between"})),
    (
        19,
        "messages.5",
        CHAT,
        _GPT,
        _insert((M, 5), {"role": "tool", "tool_call_id": "z", "content": "?"}),
    ),
    (22, "tools.0.name", CHAT, _GPT, _set(("tools", 0, "function", "name"), "server.tool")),
    (22, "tools.0.name", RESPONSES, _ITEMS, _set(("tools", 0, "name"), "x" * 65)),
    (22, "tools.0.defer_loading", RESPONSES, _ITEMS, _set(("model",), "gpt-5.3")),
    (12, "messages.3", ANTHROPIC, _CLAUDE, _insert((M, 3), {"role": "system", "content": "s"})),
    (
        10,
        "tools",
        ANTHROPIC,
        _CLAUDE,
        _set(("tools",), [{"name": name, "defer_loading": True} for name in ("Read", "Bash")]),
    ),
    (
        10,
        "tools.1",
        ANTHROPIC,
        _CLAUDE,
        _set(("tools", 1), {"name": "Bash", "defer_loading": True} | _MARK),
    ),
    (
        10,
        "tools.1",
        ANTHROPIC,
        _CLAUDE,
        _insert(("tools", 1), _SEARCHING | {"defer_loading": True}),
    ),
    (22, "tools", RESPONSES, _ITEMS, _drop("tools", 1)),
    (22, "tools", RESPONSES, _ITEMS, _drop("tools", 0)),
    (20, "input.1", RESPONSES, _SEARCHED, _drop("input", 2)),
    (20, "input.1", RESPONSES, _SEARCHED, _drop("input", 1)),
]


def _request(dialect, body):
    return dialect.parse(json.dumps(body).encode())


def test_there_are_forty_seeded_faults():
    assert len(FAULTS) == 40


@pytest.mark.parametrize(
    ("rule", "where", "dialect", "base", "fault"),
    [
        pytest.param(*each, id=f"{number}-rule{each[0]}")
        for number, each in enumerate([*FAULTS, *MORE_FAULTS], 1)
    ],
)
def test_a_seeded_fault_is_found_where_it_is(rule, where, dialect, base, fault):
    spoiled = copy.deepcopy(base)
    fault(spoiled)
    original = _request(dialect, base)
    assert dialect.check(original) == ()
    found = dialect.check(_request(dialect, spoiled), original)
    assert [
        violation
        for violation in found
        if violation.invariant == rule and violation.where.startswith(where)
    ]
    assert all(
        violation.text and "{" not in violation.text.replace("{1,64}", "") for violation in found
    )


@pytest.mark.parametrize(("name", "file"), recordings.REQUESTS)
def test_a_recorded_request_breaks_no_rule(name, file):
    request = DIALECTS[name].parse(recordings.recording(name, file))
    assert DIALECTS[name].check(request) == ()
    again = DIALECTS[name].parse(bytes(bytearray(request.raw)))
    assert DIALECTS[name].check(again, request) == ()


@pytest.mark.parametrize("dialect", list(DIALECTS.values()), ids=lambda dialect: dialect.name)
def test_valid_conversations_break_no_rule(dialect):
    for seed in range(sample(200, 500)):
        body = conversation(dialect.name, Random(seed))
        request = dialect.parse(body)
        assert dialect.check(request) == (), seed
        assert dialect.check(replace(request), request) == (), seed


_PARALLEL = [
    {"role": "user", "content": "u"},
    {"role": "assistant", "content": [_use("a"), _use("b")]},
]
_LONE_THOUGHT = {"role": "assistant", "content": [_thought(), _use("a")]}
_ANSWER = {"role": "user", "content": [_result("a")]}


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        # results in messages that follow each other are one turn
        (
            ANTHROPIC,
            {
                M: [
                    *_PARALLEL,
                    {"role": "user", "content": [_result("a")]},
                    {"role": "user", "content": [_result("b")]},
                ]
            },
        ),
        # thought once, then called several times
        (
            ANTHROPIC,
            {
                "thinking": {"type": "enabled"},
                M: [
                    _PARALLEL[0],
                    _LONE_THOUGHT,
                    _ANSWER,
                    {"role": "assistant", "content": [_use("b")]},
                    {"role": "user", "content": [_result("b")]},
                ],
            },
        ),
        # adaptive thinking need not think
        (
            ANTHROPIC,
            {
                "thinking": {"type": "adaptive"},
                M: [*_PARALLEL, {"role": "user", "content": [_result("b"), _result("a")]}],
            },
        ),
        # a server tool that runs on while the client answers
        (
            ANTHROPIC,
            {
                M: [
                    _PARALLEL[0],
                    {"role": "assistant", "content": [_SEARCH, _use("a")]},
                    _ANSWER,
                    {"role": "assistant", "content": [_FOUND, _text()]},
                    _PARALLEL[0],
                ]
            },
        ),
        # a paused turn, a prefill, an empty last word
        (ANTHROPIC, {M: [_PARALLEL[0], {"role": "assistant", "content": [_SEARCH]}]}),
        (ANTHROPIC, {M: [_PARALLEL[0], {"role": "assistant", "content": ""}]}),
        # a system message amid the conversation
        (ANTHROPIC, {M: [_PARALLEL[0], {"role": "system", "content": "s"}]}),
        # a compaction block amid the conversation, as the first beta had it
        (
            ANTHROPIC,
            {
                M: [
                    _PARALLEL[0],
                    {"role": "assistant", "content": [{"type": "compaction", "content": "c"}]},
                    _PARALLEL[0],
                ]
            },
        ),
        (ANTHROPIC, {M: [{"role": "user", "content": [_text(), *[image_block(2000, 10)] * 100]}]}),
        (ANTHROPIC, {M: [{"role": "user", "content": [image_block(8000, 8000)]}]}),
        (
            RESPONSES,
            {
                "previous_response_id": "r",
                "input": [{"type": "function_call_output", "call_id": "a", "output": ""}],
            },
        ),
        (
            RESPONSES,
            {
                "conversation": "c",
                "input": [{"type": "function_call_output", "call_id": "a", "output": ""}],
            },
        ),
        (
            RESPONSES,
            {
                "input": [
                    {"type": "item_reference", "id": "fc"},
                    {"type": "function_call_output", "call_id": "a", "output": ""},
                ]
            },
        ),
        (
            RESPONSES,
            {
                "input": [
                    {"type": "reasoning", "summary": [], "encrypted_content": "e"},
                    {"role": "user", "content": "stop"},
                ]
            },
        ),
        (
            CHAT,
            {
                "model": "mistral-small",
                M: [{"role": "assistant", "content": "pre", "prefix": True}],
            },
        ),
        (
            ANTHROPIC,
            {
                **_CLAUDE,
                "tools": [
                    _SEARCHING,
                    {"name": "Bash", "defer_loading": True},
                    {"name": "Read"} | _MARK,
                ],
            },
        ),
        (
            ANTHROPIC,
            {
                **_CLAUDE,
                "tools": [{"name": "Bash", "defer_loading": False} | _MARK, {"name": "Read"}],
            },
        ),
        (
            RESPONSES,
            {
                "model": "gpt-5.4",
                "tools": [
                    {"type": "tool_search"},
                    {
                        "type": "namespace",
                        "name": "crm",
                        "tools": [{"type": "function", "name": "a", "defer_loading": True}],
                    },
                ],
                "input": [
                    {
                        "type": "tool_search_call",
                        "execution": "server",
                        "call_id": None,
                        "arguments": {"paths": ["crm"]},
                    },
                    {
                        "type": "tool_search_output",
                        "execution": "server",
                        "call_id": None,
                        "tools": [],
                    },
                    {"role": "user", "content": "u"},
                ],
            },
        ),
        (
            RESPONSES,
            {
                "model": "gpt-5.4",
                "tools": [{"type": "mcp", "defer_loading": True}, {"type": "tool_search"}],
                "input": "u",
            },
        ),
        (
            CHAT,
            {
                "model": "gemini-2.5-pro",
                M: [
                    {"role": "assistant", "tool_calls": [_call("a")]},
                    {"role": "tool", "tool_call_id": "a", "content": ""},
                ],
            },
        ),
        (
            CHAT,
            {
                "model": "gemini-3-flash",
                M: [
                    {"role": "assistant", "tool_calls": [_call("a")], "reasoning_details": [{}]},
                    {"role": "tool", "tool_call_id": "a", "content": ""},
                ],
            },
        ),
    ],
)
def test_what_providers_accept_is_no_violation(dialect, body):
    assert dialect.check(_request(dialect, body)) == ()


def test_every_rule_has_its_number_and_says_who_asks_for_it():
    assert list(INVARIANTS) == list(range(1, 26))
    assert all(
        rule.number == number and rule.rule.endswith(".") and rule.provider
        for number, rule in INVARIANTS.items()
    )
    seeded = {each[0] for each in [*FAULTS, *MORE_FAULTS]}
    assert seeded == set(range(1, 25))


def _anthropic_error(message, code=None, type="invalid_request_error"):
    return {
        "type": "error",
        "error": {"type": type, "message": message}
        | ({"details": {"error_code": code}} if code else {}),
    }


_ORPHANS = {
    "anthropic": (ANTHROPIC, 2, lambda call: {"role": "user", "content": [_result(call)]}),
    "chat": (CHAT, 19, lambda call: {"role": "tool", "tool_call_id": call, "content": "r"}),
    "responses": (
        RESPONSES,
        20,
        lambda call: {"type": "function_call_output", "call_id": call, "output": "r"},
    ),
}


@pytest.mark.parametrize(("dialect", "rule", "orphan"), _ORPHANS.values(), ids=list(_ORPHANS))
def test_a_breach_of_the_clients_does_not_hide_one_of_ours(dialect, rule, orphan):
    """As many as before, of the same rule, and yet another one: what it is about tells them
    apart."""
    said = {"role": "user", "content": "hi"}

    def checked(*ids):
        messages = [said, *(orphan(id) for id in ids)]
        return dialect.check(
            _request(dialect, {"input" if dialect is RESPONSES else "messages": messages})
        )

    theirs = checked("theirs")
    assert [(each.invariant, each.about) for each in theirs] == [(rule, ("theirs",))]
    assert beyond(checked("theirs"), theirs) is None
    assert beyond((), theirs) is None
    assert beyond(checked("ours"), theirs).about == ("ours",)
    assert beyond(checked("theirs", "ours"), theirs).about == ("ours",)
    assert beyond(checked("theirs", "theirs"), theirs).about == ("theirs",)


@pytest.mark.parametrize(
    ("dialect", "rule", "messages"),
    [
        (ANTHROPIC, 1, lambda *ids: [{"role": "assistant", "content": [_use(id) for id in ids]}]),
        (
            CHAT,
            18,
            lambda *ids: [
                {
                    "role": "assistant",
                    "tool_calls": [{"id": id, "function": {"name": "f"}} for id in ids],
                }
            ],
        ),
    ],
    ids=["anthropic", "chat"],
)
def test_of_parallel_calls_each_that_has_no_answer_counts(dialect, rule, messages):
    one, both = (
        dialect.check(_request(dialect, {"messages": messages(*ids)}))
        for ids in (("a",), ("a", "b"))
    )

    assert [(each.invariant, each.about) for each in both if each.invariant == rule] == [
        (rule, ("a", "b"))
    ]
    assert beyond(both, one) is not None
    assert beyond(one, both) is None


@pytest.mark.parametrize(
    "holding",
    [
        {"input": [{"type": "item_reference", "id": "msg_0"}]},
        {"input": [], "previous_response_id": "resp_0"},
        {"input": [], "conversation": "conv_0"},
    ],
    ids=["a reference", "a previous response", "a conversation"],
)
def test_whatever_the_provider_holds_an_output_keeps_the_call_that_its_client_sent(holding):
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "a", "output": "r"}
    held = {
        "type": "function_call_output",
        "call_id": "b",
        "output": "of a call that the provider holds",
    }
    own, ours = (
        _request(RESPONSES, {**holding, "input": [*holding["input"], *said]})
        for said in ([call, output, held], [output, held])
    )

    assert RESPONSES.check(own) == ()
    assert RESPONSES.check(ours) == ()
    assert [(each.invariant, each.about) for each in RESPONSES.check(ours, own)] == [(20, ("a",))]


_JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\0"
    + b"\0" * 9
    + b"\xff\xff\xc2\x00\x11\x08"
    + (600).to_bytes(2, "big")
    + (800).to_bytes(2, "big")
    + b"\x03" * 9
)


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (png(9000, 3), (9000, 3)),
        (b"GIF89a" + (70).to_bytes(2, "little") + (5).to_bytes(2, "little"), (70, 5)),
        (_JPEG, (800, 600)),
        (
            b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0"
            + (99).to_bytes(3, "little")
            + (49).to_bytes(3, "little"),
            (100, 50),
        ),
        (
            b"RIFF\0\0\0\0WEBPVP8L\x0a\0\0\0\x2f"
            + (299 | 199 << 14).to_bytes(4, "little")
            + b"\0" * 9,
            (300, 200),
        ),
        (
            b"RIFF\0\0\0\0WEBPVP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a"
            + (320).to_bytes(2, "little")
            + (240).to_bytes(2, "little"),
            (320, 240),
        ),
        (b"RIFF\0\0\0\0WEBPALPH" + b"\0" * 20, None),
        (b"\xff\xd8\xff\xd9", None),
        (b"\xff\xd8" + b"\0" * 20, None),
        (b"%PDF-1.4", None),
        (b"", None),
    ],
)
def test_the_size_of_an_image_is_read_from_its_head(data, size):
    assert size_of(data) == size
    for cut in range(len(data)):
        assert size_of(data[:cut]) in (size, None)
