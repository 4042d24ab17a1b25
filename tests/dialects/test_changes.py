"""Words changed inside a message, tools offered, messages of ours: what is ours changes, and not a
byte beside it."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from hotset.dialects import DIALECTS
from hotset.errors import Malformed
from hotset.nouns.message import Answer, DialectName, ToolSpec
from hotset.nouns.page import Kind, Role
from hotset.testing.dialect_contract import check_dialect
from tests.campaign import sample
from tests.dialects import recordings
from tests.dialects.conversations import conversation, conversations, image_block, nonsense

CHAT, RESPONSES, ANTHROPIC = (
    DIALECTS[DialectName.OPENAI_CHAT],
    DIALECTS[DialectName.OPENAI_RESPONSES],
    DIALECTS[DialectName.ANTHROPIC],
)
DIALECT = pytest.mark.parametrize(
    "dialect", list(DIALECTS.values()), ids=lambda dialect: dialect.name
)
TOOLS = (
    ToolSpec(
        "retrieve_context",
        "Brings back what left.",
        b'{"type":"object","properties":{"id":{"type":"string"}}}',
    ),
    ToolSpec("search_history", "Finds.", b'{ "type":"object" }'),
)
NAMES = [tool.name for tool in TOOLS]

_characters = st.characters(exclude_categories=("Cs",))
_words = st.text(_characters, min_size=1, max_size=60).filter(str.strip)
_arguments = st.dictionaries(
    st.text(_characters, max_size=6),
    st.text(_characters, max_size=20) | st.integers() | st.none(),
    max_size=3,
)
_REWORDED = (Kind.RESPONSE, Kind.TOOL_RESULT, Kind.TOOL_CALL, Kind.IMAGE, Kind.OPAQUE)


def _message(dialect, tree):
    raw = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
    field = b"input" if dialect is RESPONSES else b"messages"
    return dialect.parse(b'{"%s":[%s]}' % (field, raw)).messages[0]


def _told(part):
    return part.kind.family, part.content, part.media, part.tool, part.call


def _in_result(message, part):
    return (
        bool(part.call)
        and part.kind.family is not Kind.TOOL_CALL
        and message.role in (Role.USER, Role.TOOL)
    )


def _can_change(message, part):
    if part.kind in (Kind.IMAGE, Kind.OPAQUE):
        return _in_result(message, part)
    return part.kind.family in _REWORDED


def _new_words(data, part):
    is_json = part.kind.family is Kind.TOOL_CALL and part.media != "text/plain"
    return (
        json.dumps(data.draw(_arguments), ensure_ascii=False).encode()
        if is_json
        else data.draw(_words).encode()
    )


@pytest.mark.row("C9")
@DIALECT
@settings(max_examples=sample(60, 150), deadline=None)
@given(data=st.data())
@pytest.mark.rest_slow
def test_any_parts_said_otherwise_are_read_as_they_were_said_and_break_no_rule(dialect, data):
    request = dialect.parse(data.draw(conversations(dialect.name)))
    new = []
    for message in request.messages:
        open_to_change = [
            position for position, part in enumerate(message.parts) if _can_change(message, part)
        ]
        chosen = data.draw(st.sets(st.sampled_from(open_to_change))) if open_to_change else ()
        words = {position: _new_words(data, message.parts[position]) for position in sorted(chosen)}
        new.append(dialect.reword(message, words))
        assert replace(new[-1], raw=message.raw, parts=message.parts) == message
        assert [part.content for part in new[-1].parts] == [
            words.get(position, part.content) for position, part in enumerate(message.parts)
        ]
    changed = replace(request, messages=tuple(new))
    again = dialect.parse(dialect.render(changed))
    assert [list(map(_told, each.parts)) for each in again.messages] == [
        list(map(_told, each.parts)) for each in new
    ]
    assert dialect.check(again, request) == dialect.check(request, request) == ()


@DIALECT
@settings(max_examples=sample(40, 100), deadline=None)
@given(data=st.data())
def test_what_a_person_said_and_what_a_model_thought_is_never_said_otherwise(dialect, data):
    request = dialect.parse(data.draw(conversations(dialect.name)))
    for message in request.messages:
        for position, part in enumerate(message.parts):
            if not _can_change(message, part):
                with pytest.raises(ValueError, match="cannot be reworded"):
                    dialect.reword(message, {position: b"other"})


@DIALECT
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_saying_the_old_words_again_says_the_same(dialect, data):
    request = dialect.parse(data.draw(conversations(dialect.name)))
    for message in request.messages:
        same = {
            position: part.content
            for position, part in enumerate(message.parts)
            if part.content.strip() and part.kind.family in (Kind.RESPONSE, Kind.TOOL_RESULT)
        }
        again = dialect.reword(dialect.reword(message, dict.fromkeys(same, b"for a while")), same)
        assert again.parts == message.parts
        assert json.loads(again.raw) == json.loads(message.raw)


@DIALECT
@settings(max_examples=sample(80, 200), deadline=None)
@given(seed=st.integers(0, 2**48))
@pytest.mark.rest_slow
def test_a_message_with_nonsense_inside_is_reworded_rightly_or_not_at_all(dialect, seed):
    rng = Random(seed)
    for message in dialect.parse(conversation(dialect.name, rng)).messages:
        tree = json.loads(message.raw)
        holder, step = rng.choice(list(_places(tree))) if isinstance(tree, dict) else ({}, "")
        holder[step] = nonsense(rng, 3)
        try:
            odd = _message(dialect, tree)
        except Malformed:
            continue
        for position in range(len(odd.parts)):
            try:
                new = dialect.reword(odd, {position: b'{"said":"otherwise"}'})
            except ValueError:
                continue
            assert list(map(_told, _message(dialect, new.raw).parts)) == list(map(_told, new.parts))


def _places(tree):
    """Every place in a tree at which something else could stand."""
    for step, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield tree, step
        if isinstance(value, dict | list):
            yield from _places(value)


def test_only_the_string_of_a_tool_result_changes():
    raw = (
        b'{ "role":"user",\n "content" :[ {"cache_control": '
        b'{"type":"ephemeral"},"type":"tool_result","content":"l\\u00f6ng",'
        b'"is_error":true , "tool_use_id":"t1","x":1E5}, {"type":"text","text":"and?"} ] }'
    )
    message = ANTHROPIC.parse(b'{"messages":[%s]}' % raw).messages[0]
    new = ANTHROPIC.reword(message, {0: 'shört "\n'.encode()})
    assert new.raw == raw.replace(b'"l\\u00f6ng"', '"shört \\"\\n"'.encode())


def test_each_text_in_a_list_of_results_changes_by_itself():
    texts = [
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two", "cache_control": {"type": "ephemeral"}},
    ]
    tree = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t", "content": texts}],
    }
    new = ANTHROPIC.reword(_message(ANTHROPIC, tree), {1: b"2"})
    texts[1]["text"] = "2"
    assert json.loads(new.raw) == tree


_MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
_PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
_SCREEN = {"type": "input_image", "image_url": "https://example.org/a.png"}


@pytest.mark.parametrize(
    ("dialect", "tree", "place", "becomes"),
    [
        (
            ANTHROPIC,
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": [image_block() | _MARK]}
                ],
            },
            ("content", 0, "content", 0),
            {"type": "text", "text": "a picture"} | _MARK,
        ),
        (
            ANTHROPIC,
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "document"}]}
                ],
            },
            ("content", 0, "content", 0),
            {"type": "text", "text": "a picture"},
        ),
        (
            CHAT,
            {
                "role": "tool",
                "tool_call_id": "t",
                "content": [_PICTURE, {"type": "text", "text": "x"}],
            },
            ("content", 0),
            {"type": "text", "text": "a picture"},
        ),
        (
            CHAT,
            {"role": "tool", "tool_call_id": "t", "content": {"odd": 1}},
            ("content",),
            "a picture",
        ),
        (
            RESPONSES,
            {
                "type": "function_call_output",
                "call_id": "t",
                "output": [_SCREEN | {"prompt_cache_breakpoint": {"mode": "auto"}}],
            },
            ("output", 0),
            {
                "type": "input_text",
                "text": "a picture",
                "prompt_cache_breakpoint": {"mode": "auto"},
            },
        ),
        (
            RESPONSES,
            {"type": "custom_tool_call_output", "call_id": "t", "output": {"odd": 1}},
            ("output",),
            "a picture",
        ),
    ],
)
def test_a_picture_or_an_unknown_block_in_a_result_becomes_a_text_in_its_place(
    dialect, tree, place, becomes
):
    message = _message(dialect, tree)
    new = dialect.reword(message, {0: b"a picture"})
    *way, last = place
    holder = tree
    for step in way:
        holder = holder[step]
    holder[last] = becomes
    assert json.loads(new.raw) == tree
    assert (new.parts[0].kind.family, new.parts[0].media, new.parts[0].call) == (
        Kind.TOOL_RESULT,
        "text/plain",
        "t",
    )
    assert list(map(_told, _message(dialect, new.raw).parts)) == list(map(_told, new.parts))


@pytest.mark.parametrize(
    ("dialect", "tree"),
    [
        (ANTHROPIC, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}),
        (
            ANTHROPIC,
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": []}],
            },
        ),
        (CHAT, {"role": "tool", "tool_call_id": "t", "name": "look"}),
        (CHAT, {"role": "tool", "tool_call_id": "t", "content": None}),
        (CHAT, {"role": "tool", "tool_call_id": "t", "name": "look", "content": [_PICTURE]}),
        (RESPONSES, {"type": "function_call_output", "call_id": "t", "output": []}),
        (RESPONSES, {"type": "function_call_output", "call_id": "t"}),
        (RESPONSES, {"type": "local_shell_call_output", "id": "t", "output": "long"}),
    ],
)
def test_a_result_in_any_shape_can_be_put_into_words(dialect, tree):
    new = dialect.reword(_message(dialect, tree), {0: b"words"})
    assert [part.content for part in new.parts] == [b"words"]
    assert _message(dialect, new.raw).parts == new.parts


@pytest.mark.parametrize(
    ("dialect", "tree", "new"),
    [
        (
            ANTHROPIC,
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "content": [{"type": "tool_reference"}],
                    }
                ],
            },
            b"x",
        ),
        (
            ANTHROPIC,
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}],
            },
            b"[1]",
        ),
        (
            ANTHROPIC,
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}],
            },
            b'{"a":',
        ),
        (
            CHAT,
            {"role": "assistant", "tool_calls": [{"function": {"name": "n", "arguments": "{}"}}]},
            b"free text",
        ),
        (CHAT, {"role": "assistant", "audio": {"id": "a"}}, b"x"),
        (CHAT, {"role": "assistant", "content": [_PICTURE]}, b"x"),
        (CHAT, {"role": "assistant", "content": "said"}, b" \t"),
        (CHAT, {"role": "assistant", "content": "said"}, b"\xff"),
        (
            RESPONSES,
            {
                "type": "computer_call_output",
                "call_id": "t",
                "output": {"type": "computer_screenshot"},
            },
            b"x",
        ),
        (
            RESPONSES,
            {"type": "shell_call_output", "call_id": "t", "output": [{"stdout": "x"}]},
            b"x",
        ),
        (RESPONSES, {"type": "tool_search_output", "call_id": "t", "tools": []}, b"x"),
        (
            RESPONSES,
            {"type": "function_call", "call_id": "t", "name": "n", "arguments": "{}"},
            b"{",
        ),
        (RESPONSES, {"type": "item_reference", "id": "i"}, b"x"),
    ],
)
def test_what_the_provider_would_refuse_is_refused_here(dialect, tree, new):
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own sentence
        dialect.reword(_message(dialect, tree), {0: new})


def test_positions_that_are_not_there_are_refused():
    message = _message(CHAT, {"role": "assistant", "content": "said"})
    for position in (-1, 1):
        with pytest.raises(ValueError, match="cannot be reworded"):
            CHAT.reword(message, {position: b"x", 0: b"y"})


def test_a_message_that_says_a_field_twice_is_left_alone():
    message = CHAT.parse(
        b'{"messages":[{"role":"assistant","content":"a","content":"b"}]}'
    ).messages[0]
    with pytest.raises(ValueError, match="comes twice"):
        CHAT.reword(message, {0: b"x"})


@pytest.mark.parametrize(
    ("dialect", "tree", "words", "place"),
    [
        (
            ANTHROPIC,
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "t", "name": "Write", "input": {"text": "long"}}
                ],
            },
            b'{"text":"short"}',
            lambda tree: tree["content"][0]["input"],
        ),
        (
            CHAT,
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "hm",
                "tool_calls": [
                    {"id": "t", "function": {"name": "Write", "arguments": '{"text":"long"}'}}
                ],
            },
            b'{"text":"short"}',
            lambda tree: json.loads(tree["tool_calls"][0]["function"]["arguments"]),
        ),
        (
            CHAT,
            {
                "role": "assistant",
                "reasoning": "",
                "function_call": {"name": "Write", "arguments": '{"text":"long"}'},
            },
            b'{"text":"short"}',
            lambda tree: json.loads(tree["function_call"]["arguments"]),
        ),
        (
            RESPONSES,
            {
                "type": "function_call",
                "call_id": "t",
                "name": "Write",
                "arguments": '{"text":"long"}',
            },
            b'{"text":"short"}',
            lambda tree: json.loads(tree["arguments"]),
        ),
        (
            RESPONSES,
            {"type": "apply_patch_call", "call_id": "t", "operation": {"text": "long"}},
            b'{"text":"short"}',
            lambda tree: tree["operation"],
        ),
        (
            RESPONSES,
            {"type": "custom_tool_call", "call_id": "t", "name": "patch", "input": "*** long"},
            b"*** {short",
            lambda tree: tree["input"],
        ),
        (
            CHAT,
            {
                "role": "assistant",
                "tool_calls": [{"id": "t", "custom": {"name": "patch", "input": "*** long"}}],
            },
            b"*** {short",
            lambda tree: tree["tool_calls"][0]["custom"]["input"],
        ),
    ],
)
def test_a_call_is_made_with_other_arguments(dialect, tree, words, place):
    message = _message(dialect, tree)
    position = len(message.parts) - 1
    new = dialect.reword(message, {position: b" " + words if words.startswith(b"{") else words})
    expected = json.loads(words) if words.startswith(b"{") else words.decode()
    assert place(json.loads(new.raw)) == expected
    assert new.parts[position] == replace(message.parts[position], content=words)
    assert _message(dialect, new.raw).parts == new.parts


@pytest.mark.parametrize(
    ("dialect", "tree"),
    [
        (
            ANTHROPIC,
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": "{}"}],
            },
        ),
        (CHAT, {"role": "tool", "tool_call_id": "t", "content": "{}"}),
        (RESPONSES, {"type": "function_call_output", "call_id": "t", "output": "{}"}),
    ],
)
def test_rewording_takes_no_longer_than_reading(dialect, tree):
    long = json.dumps(tree).replace("{}", 'line "of" code é\\n' * 6000).replace('"of"', "'of'")
    message = _message(dialect, json.loads(long))
    assert len(message.raw) > 100_000
    best = min(_seconds(lambda: dialect.reword(message, {0: b"short"})) for _ in range(20))
    # A guard against a walk over Python objects, which takes twenty times as long; measured: 0.2 to
    # 0.7 ms.
    assert best < 0.005


def _seconds(act):
    """Of this thread's own work: the machine may be busy."""
    start = time.thread_time()
    act()
    return time.thread_time() - start


def test_a_body_with_thousands_of_blocks_is_reworded_in_linear_time():
    def seconds(count):
        blocks = [
            {"type": "tool_result", "tool_use_id": f"t{i}", "content": "x" * 50}
            for i in range(count)
        ]
        message = _message(ANTHROPIC, {"role": "user", "content": blocks})
        return min(
            _seconds(lambda: ANTHROPIC.reword(message, dict.fromkeys(range(count), b"y")))
            for _ in range(3)
        )

    assert seconds(4000) < 20 * seconds(500)


@pytest.mark.row("C9")
@DIALECT
@settings(max_examples=sample(40, 100), deadline=None)
@given(data=st.data())
def test_our_tools_stand_beside_the_clients_and_nothing_else_changes(dialect, data):
    body = data.draw(conversations(dialect.name))
    request = dialect.parse(body)
    offered = dialect.offer(body, TOOLS)
    again = dialect.parse(offered)
    if request.tools or dialect.injectable(request, NAMES):
        assert dialect.check(again, request) == ()
    assert dialect.injectable(request, NAMES) or not request.tools
    assert [tool.name for tool in again.tools] == [*(tool.name for tool in request.tools), *NAMES]
    same = next(
        index for index, (old, new) in enumerate(zip(body, offered, strict=False)) if old != new
    )
    assert offered[same + len(offered) - len(body) :] == body[same:]


@pytest.mark.parametrize(
    ("dialect", "tools", "ours"),
    [
        (
            ANTHROPIC,
            b'[ {"name":"a"} ]',
            b'{"name":"search_history","description":"Finds.","input_schema":{ "type":"object" }}',
        ),
        (
            CHAT,
            b'[ {"type":"function","function":{"name":"a"}} ]',
            (
                b'{"type":"function","function":{"name":"search_history","description":"Finds.",'
                b'"parameters":{ "type":"object" }}}'
            ),
        ),
        (
            RESPONSES,
            b'[ {"type":"web_search"} ]',
            (
                b'{"type":"function","name":"search_history","description":"Finds.",'
                b'"parameters":{ "type":"object" },"strict":false}'
            ),
        ),
    ],
)
def test_a_tool_is_offered_in_the_dialects_own_form(dialect, tools, ours):
    body = b'{"tools":%s , "messages":[],"input":[]}'
    assert dialect.offer(body % tools, TOOLS[1:]) == body % (tools[:-2] + b"," + ours + b" ]")


def test_a_mark_on_the_clients_last_tool_stays_the_end_of_the_tools():
    body = (
        b'{"messages":[],"tools":[{"name":"a"}, '
        b'{"name":"b","cache_control":{"type":"ephemeral"}} '
        b"]}"
    )
    offered = ANTHROPIC.offer(body, TOOLS)
    assert [tool["name"] for tool in json.loads(offered)["tools"]] == ["a", *NAMES, "b"]
    earlier = (
        b'{"messages":[],"tools":[{"name":"a","cache_control":{"type":"ephemeral"}},{"name":"b"}]}'
    )
    assert [tool["name"] for tool in json.loads(ANTHROPIC.offer(earlier, TOOLS))["tools"]] == [
        "a",
        "b",
        *NAMES,
    ]


@DIALECT
@pytest.mark.parametrize(
    "tools", [b'"tools":[],', b'"tools":null,', b"", b'"functions":[{"name":"f"}],']
)
def test_one_prompt_without_tools_gets_none_and_a_conversation_may(dialect, tools):
    said = b'[{"role":"user","content":"a"}%s]'
    reply = b',{"role":"assistant","content":"b"},{"role":"user","content":"c"}'
    alone, talk = (
        dialect.parse(b'{%s"messages":%s,"input":%s}' % (tools, said % more, said % more))
        for more in (b"", reply)
    )
    assert not dialect.injectable(alone, NAMES)
    has_functions = b"functions" in tools
    assert dialect.injectable(talk, NAMES) is not has_functions
    if not has_functions:
        assert [tool.name for tool in dialect.parse(dialect.offer(talk.raw, TOOLS)).tools] == NAMES


@pytest.mark.parametrize(
    ("dialect", "taken"),
    [
        (ANTHROPIC, {"name": "search_history"}),
        (CHAT, {"type": "function", "function": {"name": "search_history"}}),
        (CHAT, {"type": "custom", "custom": {"name": "search_history"}}),
        (RESPONSES, {"type": "function", "name": "search_history"}),
    ],
)
def test_a_name_that_the_client_uses_is_never_offered(dialect, taken):
    body = json.dumps({"tools": [taken], "messages": [], "input": []}).encode()
    assert not dialect.injectable(dialect.parse(body), NAMES)
    assert dialect.injectable(dialect.parse(body), NAMES[:1])
    with pytest.raises(ValueError, match="twice: search_history"):
        dialect.offer(body, TOOLS)
    with pytest.raises(ValueError, match="twice: retrieve_context"):
        dialect.offer(body, TOOLS[:1] * 2)


_TOOL = {
    ANTHROPIC.name: {"name": "a"},
    CHAT.name: {"type": "function", "function": {"name": "a"}},
    RESPONSES.name: {"type": "function", "name": "a"},
}


@pytest.mark.parametrize(
    ("dialect", "fields", "may"),
    [
        (ANTHROPIC, {}, True),
        (ANTHROPIC, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, True),
        (ANTHROPIC, {"tool_choice": {"type": "any"}}, True),
        (ANTHROPIC, {"tool_choice": {"type": "none"}}, False),
        (ANTHROPIC, {"tool_choice": {"type": "tool", "name": "a"}}, False),
        (ANTHROPIC, {"output_format": {"type": "json_schema", "schema": {}}}, False),
        (ANTHROPIC, {"output_config": {"format": {"type": "json_schema"}}}, False),
        (ANTHROPIC, {"output_config": {"effort": "low"}}, True),
        (ANTHROPIC, {"max_tokens": 1}, False),
        (ANTHROPIC, {"max_tokens": 17}, True),
        (ANTHROPIC, {"thread": {"type": "new"}}, False),
        (CHAT, {}, True),
        (CHAT, {"tool_choice": "required"}, True),
        (CHAT, {"tool_choice": "none"}, False),
        (CHAT, {"tool_choice": {"type": "function", "function": {"name": "a"}}}, False),
        (CHAT, {"tool_choice": {"type": "allowed_tools"}}, False),
        (CHAT, {"response_format": {"type": "json_schema"}}, False),
        (CHAT, {"response_format": {"type": "json_object"}}, False),
        (CHAT, {"response_format": {"type": "text"}, "n": 1}, True),
        (CHAT, {"n": 2}, False),
        (CHAT, {"max_completion_tokens": 16}, False),
        (CHAT, {"max_tokens": 5}, False),
        (RESPONSES, {}, True),
        (
            RESPONSES,
            {"tool_choice": "auto", "text": {"format": {"type": "text"}, "verbosity": "low"}},
            True,
        ),
        (RESPONSES, {"tool_choice": "none"}, False),
        (RESPONSES, {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}}, False),
        (RESPONSES, {"text": {"format": {"type": "json_schema"}}}, False),
        (RESPONSES, {"previous_response_id": "r"}, False),
        (RESPONSES, {"conversation": {"id": "c"}}, False),
        (RESPONSES, {"background": True}, False),
        (RESPONSES, {"background": False, "max_output_tokens": None}, True),
        (RESPONSES, {"max_output_tokens": 16}, False),
    ],
)
def test_tools_are_offered_only_where_the_model_is_free_to_call_them(dialect, fields, may):
    body = {"tools": [_TOOL[dialect.name]], "messages": [], "input": [], **fields}
    assert dialect.injectable(dialect.parse(json.dumps(body).encode()), NAMES) is may


@pytest.mark.parametrize(("dialect", "may"), [(CHAT, False), (RESPONSES, False), (ANTHROPIC, True)])
def test_more_tools_than_the_provider_takes_are_not_offered(dialect, may):
    def tool(number):
        return json.loads(json.dumps(_TOOL[dialect.name]).replace('"a"', f'"a{number}"'))

    body = {"tools": [tool(number) for number in range(127)], "messages": [], "input": []}
    assert dialect.injectable(dialect.parse(json.dumps(body).encode()), NAMES) is may
    assert dialect.injectable(dialect.parse(json.dumps(body).encode()), NAMES[:1])


def test_answers_have_the_form_that_each_provider_wants():
    answers = [Answer("t1", "“found”"), Answer("t2", "lost", failed=True)]
    assert ANTHROPIC.answer(answers) == (
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"“found”"},'
        '{"type":"tool_result","tool_use_id":"t2","content":"lost","is_error":true}]}'.encode(),
    )
    assert CHAT.answer(answers) == (
        '{"role":"tool","tool_call_id":"t1","content":"“found”"}'.encode(),
        b'{"role":"tool","tool_call_id":"t2","content":"lost"}',
    )
    assert RESPONSES.answer(answers) == (
        '{"type":"function_call_output","call_id":"t1","output":"“found”"}'.encode(),
        b'{"type":"function_call_output","call_id":"t2","output":"lost"}',
    )
    assert ANTHROPIC.answer(()) == CHAT.answer(()) == RESPONSES.answer(()) == ()


@DIALECT
def test_nothing_cannot_be_said(dialect):
    with pytest.raises(ValueError, match="says nothing"):
        dialect.say(" \n")


@pytest.mark.row("C9")
@DIALECT
@settings(max_examples=sample(60, 150), deadline=None)
@given(data=st.data())
def test_a_stretch_that_left_is_replaced_by_a_line_and_breaks_no_rule(dialect, data):
    body = data.draw(conversations(dialect.name))
    request = dialect.parse(body)
    cuts = [
        index
        for index, message in enumerate(request.messages)
        if [part.kind for part in message.parts][:1] == [Kind.PROMPT]
    ]
    latest = max(
        (index for index, message in enumerate(request.messages) if message.role is Role.ASSISTANT),
        default=0,
    )
    first = data.draw(st.sampled_from(cuts))
    last = data.draw(st.sampled_from([cut for cut in cuts if first <= cut < latest] or [first]))
    stub = dialect.say("Turns 1 to 4 left; retrieve_context(ref=“r1”) brings them back.")
    messages = (*request.messages[:first], stub, *request.messages[last:])
    rendered = dialect.render(replace(request, messages=messages))
    again = dialect.parse(rendered)
    assert [each.essence for each in again.messages] == [each.essence for each in messages]
    assert [each.raw for each in again.messages[:first]] == [
        each.raw for each in request.messages[:first]
    ]
    assert rendered.startswith(body[: request.array.start])
    assert rendered.endswith(body[request.array.end :])
    assert dialect.check(again, request) == ()


class _Wrapped:
    """A dialect with one thing wrong."""

    def __init__(self, dialect, **wrong):
        self._dialect = dialect
        self._wrong = wrong

    def __getattr__(self, name):
        return self._wrong.get(name) or getattr(self._dialect, name)


def _rewrites_the_whole_message(dialect):
    def reword(message, words):
        new = dialect.reword(message, words)
        return replace(
            new,
            raw=json.dumps(
                json.loads(new.raw), sort_keys=True, indent=len(words.get(0, b""))
            ).encode(),
        )

    return _Wrapped(dialect, reword=reword)


def _says_it_without_writing_it(dialect):
    return _Wrapped(
        dialect,
        reword=lambda message, words: replace(dialect.reword(message, words), raw=message.raw),
    )


def _rewords_prompts(dialect):
    def reword(message, words):
        if (
            [part.kind for part in message.parts] == [Kind.PROMPT]
            and words
            and all(map(bytes.strip, words.values()))
        ):
            return replace(
                dialect.say(words[0].decode("utf-8", "strict")),
                essence=message.essence,
                span=message.span,
            )
        return dialect.reword(message, words)

    return _Wrapped(dialect, reword=reword)


def _offers_twice(dialect):
    def offer(body, tools):
        try:
            return dialect.offer(body, tools)
        except ValueError:
            return body

    return _Wrapped(dialect, offer=offer)


def _offers_nothing(dialect):
    return _Wrapped(dialect, offer=lambda body, tools: body)


def _speaks_for_the_assistant(dialect):
    return _Wrapped(dialect, say=lambda text: replace(dialect.say(text), role=Role.ASSISTANT))


def _hides_for_ever(dialect):
    return _Wrapped(dialect, reveal=lambda request, links, hidden: request)


@DIALECT
@pytest.mark.parametrize(
    "spoil",
    [
        _rewrites_the_whole_message,
        _says_it_without_writing_it,
        _rewords_prompts,
        _offers_twice,
        _offers_nothing,
        _speaks_for_the_assistant,
        _hides_for_ever,
    ],
)
def test_the_contract_finds_a_dialect_that_changes_what_it_must_not(dialect, spoil):
    generated = [conversation(dialect.name, Random(seed)) for seed in range(4)]
    bodies = [*recordings.requests(dialect.name), *generated]
    with pytest.raises(AssertionError):
        check_dialect(spoil(dialect), bodies, recordings.replies(dialect.name)[:1])
