"""The catalogue of bad input (evidence/trust.md, A8, parts A and B): each is refused with a
sentence, or passes as it came."""

from __future__ import annotations

import functools
import gzip
import json
from contextlib import suppress
from random import Random

import msgspec
import pytest

from hotset.dialects import DIALECTS
from hotset.errors import Malformed
from hotset.nouns.message import DialectName
from tests.campaign import sample
from tests.dialects.conversations import nonsense

CHAT, RESPONSES, ANTHROPIC = (
    DIALECTS[DialectName.OPENAI_CHAT],
    DIALECTS[DialectName.OPENAI_RESPONSES],
    DIALECTS[DialectName.ANTHROPIC],
)
_ROLES = ("user", "assistant", "system", "tool", "nobody")
_INSIDE = (
    "tool_calls",
    "name",
    "id",
    "call_id",
    "output",
    "arguments",
    "summary",
    "function_call",
    "audio",
    "refusal",
)
_BESIDE = (
    "model",
    "stream",
    "tools",
    "system",
    "instructions",
    "thinking",
    "metadata",
    "thread",
    "conversation",
    "prompt_cache_key",
)
EVERY = pytest.mark.parametrize(
    "dialect", list(DIALECTS.values()), ids=lambda dialect: dialect.name
)


def _field(dialect):
    return b'"input"' if dialect is RESPONSES else b'"messages"'


def _around(content: bytes) -> bytes:
    """A body with `content` as what the user says; FIELD becomes the dialect's own name."""
    return b'{"model":"m",FIELD:[{"role":"user","content":' + content + b"}]}"


_HELLO = _around(b'"hello"')


def _item(number, body, says=""):
    return pytest.param(body, says, id=str(number))


@EVERY
@pytest.mark.parametrize(
    ("body", "says"),
    [
        _item(1, b"", "empty"),
        _item(2, b" \n\t", "empty"),
        _item(3, _HELLO[:-2], "truncated"),
        _item(4, _HELLO + b" x", "trailing"),
        _item("4 two documents", _HELLO + _HELLO, "trailing"),
        _item(5, b"\xef\xbb\xbf" + _HELLO, "byte order mark"),
        _item("6 LE", _HELLO.decode().encode("utf-16"), "UTF-16"),
        _item("6 BE", _HELLO.decode().encode("utf-16-be"), "UTF-16"),
        _item(7, _around(b'"caf\xe9"'), "UTF-8"),
        _item("7 in a field beside", b'{"x":"\xe9",FIELD:[]}', "UTF-8"),
        _item("7 in a key", b'{"\xe9":1,FIELD:[]}', "UTF-8"),
        _item(8, _around(b'"\xc0\xaf"'), "UTF-8"),
        _item(9, _around(b'"\xed\xa0\xbd\xed\xb8\x80"'), "UTF-8"),
        _item(10, _around(b'"\\ud800"'), "surrogate"),
        _item("10 beside", b'{"x":"\\ud800",FIELD:[]}', "surrogate"),
        _item(12, _around(b'"a\x00b"'), "invalid character"),
        _item(13, _around(b'"a\x01b"'), "invalid character"),
        _item("14 NaN", b'{"t":NaN,FIELD:[]}', "invalid character"),
        _item("14 Infinity", b'{"t":-Infinity,FIELD:[]}', "invalid"),
        _item(19, b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        _item(20, b'{"model":"a","model":"b",FIELD:[]}', "comes twice"),
        _item("20 messages", b'{FIELD:[],FIELD:[{"role":"user","content":"x"}]}', "comes twice"),
        _item(26, _HELLO[: len(_HELLO) // 2], "truncated"),
        _item("27, 28", gzip.compress(b"0" * 1_000_000), "compressed"),
        _item(29, b"\x28\xb5\x2f\xfd\x04\x58\x11", "compressed"),
        _item(30, json.dumps(_HELLO.decode()).encode(), "object"),
        _item("30 no object", b"[1]", "object"),
        _item(32, b'{"model":"m"}', "has no"),
        _item("32 null", b'{"model":"m",FIELD:null}', "expected an array"),
        _item("32 object", b'{"model":"m",FIELD:{}}', "expected an array, got an object"),
        _item(
            "32 no objects",
            b'{FIELD:[{"role":"user","content":"a"},7]}',
            "1: expected an object, got a number",
        ),
        _item(
            "34 no string", b'{FIELD:[{"role":5,"content":"a"}]}', "0: expected a string as role"
        ),
        _item("34 none", b'{FIELD:[{"content":"a"}]}', "0: it has no role"),
    ],
)
def test_what_is_no_request_is_refused_with_a_sentence(dialect, body, says):
    with pytest.raises(Malformed, match=says):
        dialect.parse(body.replace(b"FIELD", _field(dialect)))


@pytest.mark.row("C9")
@EVERY
@pytest.mark.parametrize(
    ("body", "says"),
    [
        _item(11, _around(b'"a\\u0000b"')),
        _item("15 beside", b'{"t":1e999,FIELD:[]}'),
        _item(16, b'{"seed":18446744073709551616,FIELD:[]}'),
        _item("16 inside", _around(b'[{"type":"odd","n":18446744073709551616}]')),
        _item("17 beside", b'{"n":' + b"7" * 5000 + b",FIELD:[]}"),
        _item("18 just not", _around(b'[{"type":"odd","x":' + b"[" * 300 + b"]" * 300 + b"}]")),
        _item("20 inside", _around(b'"a","content":"b"')),
        _item(
            23,
            (
                b'{"__proto__":{"x":1},"constructor":1,"__class__":"y",FIELD:[{"role":"user",'
                b'"content":"a","__proto__":{}}]}'
            ),
        ),
        _item("32 empty", b'{"model":"m",FIELD:[]}'),
        _item(33, b'{FIELD:[{"role":"system","content":"only this"}]}'),
        _item(34, b'{FIELD:[{"role":"narrator","content":"meanwhile"}]}'),
        _item(35, _around(b"null")),
        _item("35 missing", b'{FIELD:[{"role":"user"}]}'),
        _item(36, _around(b"[]")),
        _item(37, _around(b'""')),
        _item("37 block", _around(b'[{"type":"text","text":""}]')),
        _item(38, _around(b'" \\n "')),
        _item("38 odd content", _around(b"17")),
        _item("50 block", _around(b'[{"type":"hologram","x":1},{"type":7},{},null,"loose",3]')),
        _item(59, _around(b'"[[CTX-REF id=abc]]"')),
        _item(61, _around(b'"[[CTX-REF [[CTX-REF id=abc]] ]]"')),
        _item(
            "no model",
            (
                b'{FIELD:[{"role":"user","content":"a"}],"model":7,"stream":"yes","tools":{"a":1},'
                b'"system":5,"metadata":[]}'
            ),
        ),
    ],
)
def test_what_is_odd_but_json_passes_as_it_came(dialect, body, says):
    body = body.replace(b"FIELD", _field(dialect))
    assert dialect.render(dialect.parse(body)) == body


def _anthropic(*messages, **fields):
    return json.dumps(
        {"model": "claude-opus-4-5", "max_tokens": 9, "messages": messages, **fields}
    ).encode()


def _user(*blocks):
    return {"role": "user", "content": list(blocks)}


def _said(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def _use(id, name="f"):
    return {"type": "tool_use", "id": id, "name": name, "input": {}}


def _result(id):
    return {"type": "tool_result", "tool_use_id": id, "content": "r"}


_TEXT = {"type": "text", "text": "a"}
_THOUGHT = {"type": "thinking", "thinking": "t"}
_SERVER = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
_MARK = {"cache_control": {"type": "ephemeral"}}


def _chat(*calls, **fields):
    return json.dumps(
        {"messages": [{"role": "assistant", "content": None, "tool_calls": list(calls), **fields}]}
    ).encode()


def _call(arguments, name="f"):
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}


_200 = [f"t{number}" for number in range(200)]
_OURS = [{"type": "function", "function": {"name": "retrieve_context"}}]


@pytest.mark.row("C9")
@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        pytest.param(dialect, body, id=str(number))
        for number, dialect, body in [
            (39, ANTHROPIC, _anthropic(_user(_TEXT), _said(_use("t")), _user(_TEXT))),
            (40, ANTHROPIC, _anthropic(_user(_result("t")))),
            (
                41,
                ANTHROPIC,
                _anthropic(
                    _user(_TEXT), _said(_use("t"), _use("t")), _user(_result("t"), _result("t"))
                ),
            ),
            (
                42,
                ANTHROPIC,
                _anthropic(
                    _user(_TEXT),
                    _said(_use("t"), _use("u")),
                    _user(_result("t")),
                    _user(_result("u")),
                ),
            ),
            (43, ANTHROPIC, _anthropic(_user(_TEXT), _said(_use("t")), _user(_TEXT, _result("t")))),
            (
                44,
                ANTHROPIC,
                _anthropic(_user(_TEXT), _said(*map(_use, _200)), _user(*map(_result, _200))),
            ),
            (
                45,
                ANTHROPIC,
                _anthropic(_user(_TEXT), _said(_TEXT, {"type": "tool_use", "id": "t"})),
            ),
            (46, ANTHROPIC, _anthropic(_user(_TEXT), _said(_THOUGHT, _TEXT), _user(_TEXT))),
            (
                47,
                ANTHROPIC,
                _anthropic(
                    _user(_TEXT),
                    _said({"type": "redacted_thinking", "data": "x"}, _TEXT),
                    _user(_TEXT),
                ),
            ),
            (
                48,
                ANTHROPIC,
                _anthropic(
                    _user(_TEXT),
                    _said(_THOUGHT, _TEXT),
                    _user(_TEXT),
                    thinking={"type": "disabled"},
                ),
            ),
            (49, ANTHROPIC, _anthropic(_user(_TEXT), _said(_TEXT), _user(_TEXT), model="gemini-3")),
            (51, ANTHROPIC, _anthropic(_user(_TEXT), _said(_SERVER), _user(_TEXT))),
            (
                52,
                ANTHROPIC,
                _anthropic(_said({"type": "compaction", "content": None}), _user(_TEXT)),
            ),
            (
                53,
                ANTHROPIC,
                _anthropic(_user({"type": "tool_reference", "tool_name": "gone"}), tools=[]),
            ),
            (54, ANTHROPIC, _anthropic(_user(*([{**_TEXT, **_MARK}] * 5)))),
            (
                57,
                ANTHROPIC,
                _anthropic(
                    _user({"type": "document", "source": {"type": "file", "file_id": "gone"}})
                ),
            ),
            (58, CHAT, _chat(_call(json.dumps({"x": "y" * 5_000_000})))),
            (
                60,
                CHAT,
                (
                    b'{"messages":[{"role":"tool","tool_call_id":"x","content":"[[CTX-REF '
                    b'id=never]]"}]}'
                ),
            ),
            (63, CHAT, _chat(_call("{}", "retrieve_context"))),
            (64, CHAT, json.dumps({"messages": [], "tools": _OURS}).encode()),
            (65, CHAT, _chat(_call("{'not': json"))),
            ("65 no string", CHAT, _chat(_call({"a": 1}), None, 7, function_call={})),
        ]
    ],
)
def test_a_conversation_that_the_provider_may_refuse_is_the_providers_to_refuse(dialect, body):
    request = dialect.parse(body)
    assert dialect.render(request) is body
    assert all(message.essence for message in request.messages)


@EVERY
@pytest.mark.rest_slow
def test_item_18_nesting_near_the_limit_passes_or_is_refused_and_its_reply_is_read(dialect):
    """How deep is too deep is Python's to say: about a thousand up to 3.11, several thousand
    later."""
    refused = 0
    for depth in (*range(900, 980, 3), 1100, 50_000):
        nested = b"[" * depth + b"]" * depth
        odd, call = (
            b'{"type":"odd","x":' + nested + b"}",
            b'{"type":"tool_use","id":"t","name":"f","input":' + nested + b"}",
        )
        result = b'{"type":"tool_result","tool_use_id":"t","content":[' + odd + b"]}"
        content = b"[" + b",".join([odd, call, result]) + b"]"
        try:
            dialect.check(dialect.parse(_around(content).replace(b"FIELD", _field(dialect))))
        except Malformed as error:
            refused += "nested too deeply" in str(error)
        message = b'{"role":"assistant","type":"message","content":' + content + b"}"
        whole = (
            b'{"content":'
            + content
            + b',"choices":[{"message":'
            + message
            + b'}],"output":['
            + message
            + b"]}"
        )
        assert not dialect.read(whole, streamed=False).complete
    assert 1 <= refused <= 28


@EVERY
def test_item_21_a_string_of_ten_megabytes_passes(dialect):
    body = _around(b'"' + b"x" * 10_000_000 + b'"').replace(b"FIELD", _field(dialect))
    request = dialect.parse(body)
    assert len(request.messages[0].parts[0].content) == 10_000_000
    assert dialect.render(request) is body


@functools.cache
def _a_million_fields() -> bytes:
    return b",".join(b'"k%d":1' % index for index in range(1_000_000))


@EVERY
@pytest.mark.rest_slow
def test_item_22_a_million_fields_are_refused_and_a_million_inside_pass(dialect):
    many = _a_million_fields()
    with pytest.raises(Malformed, match="top-level fields"):
        dialect.parse(b"{" + many + b"," + _field(dialect) + b":[]}")
    body = b'{"x":{' + many + b"}," + _field(dialect) + b":[]}"
    assert dialect.render(dialect.parse(body)) is body


def test_item_31_a_body_of_33_megabytes_is_read_and_known_to_be_too_large():
    body = _around(b'"' + b"x" * 33_000_000 + b'"').replace(b"FIELD", b'"messages"')
    assert [violation.invariant for violation in ANTHROPIC.check(ANTHROPIC.parse(body))] == [15]


@pytest.mark.slow
def test_item_62_a_hundred_thousand_and_one_messages_are_read_and_known_to_be_too_many():
    body = msgspec.json.encode({"messages": [{"role": "user", "content": "a"}] * 100_001})
    assert [violation.invariant for violation in ANTHROPIC.check(ANTHROPIC.parse(body))] == [13]


def _object(rng):
    return {
        "type": rng.choice(["message", "function_call", "reasoning", "x_output"]),
        "extra": nonsense(rng, 2),
    } | {name: nonsense(rng, 3) for name in rng.sample(_INSIDE, 3)}


@EVERY
@pytest.mark.parametrize("seed", range(sample(4, 10)))
def test_known_words_in_wrong_places_pass_or_are_refused_and_never_anything_else(dialect, seed):
    rng, passed = Random(seed), 0
    for _ in range(100):
        messages = [
            {"role": rng.choice(_ROLES), **_object(rng), "content": nonsense(rng)} for _ in range(3)
        ]
        beside = {name: nonsense(rng) for name in rng.sample(_BESIDE, 3)}
        body = json.dumps({"messages": messages, "input": messages, **beside}).encode()
        with suppress(Malformed):
            request = dialect.parse(body)
            assert dialect.render(request) is body
            dialect.check(request, dialect.parse(body))
            passed += 1
    assert passed > 20


@EVERY
def test_a_responses_item_whose_type_is_no_string_is_refused(dialect):
    body = b'{"input":[{"type":7}],"messages":[]}'
    if dialect is RESPONSES:
        with pytest.raises(Malformed, match=r"input\.0: expected a string as type"):
            dialect.parse(body)
    else:
        assert dialect.render(dialect.parse(body)) is body
