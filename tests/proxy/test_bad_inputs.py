"""Bad requests by number (catalogues A and B): each passes untouched or gets a clear error; nothing
crashes, nothing is mixed up.

What cannot be read leaves no trace in the store. What can be read but breaks a provider's rules is
kept as the turn that it was, with the provider's refusal, and changes nothing that was there
before.
"""

from __future__ import annotations

import gzip
import json
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hotset.testing import ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.campaign import sample
from tests.proxy.conftest import Pair
from tests.proxy.wire import DIALECTS, PATHS, Answer, call, post, question
from tests.waiting import ask, wait_until

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def _chat(content: str) -> bytes:
    return b'{"model":"m","messages":[{"role":"user","content":' + content.encode() + b"}]}"


UNREADABLE = {
    "01-empty": b"",
    "02-whitespace": b" \r\n\t ",
    "03-truncated": question("openai-chat", "hello")[:-3],
    "04-trailing-garbage": question("openai-chat", "hello") + b"}}",
    "05-bom": b"\xef\xbb\xbf" + question("openai-chat", "hello"),
    "06-utf-16": question("openai-chat", "hello").decode().encode("utf-16"),
    "07-invalid-utf8": _chat(
        '"\udcff"'.encode("utf-8", "surrogateescape").decode("latin-1")
    ).replace(b"\xc3\xbf", b"\xff"),
    "08-overlong-utf8": _chat('"@"').replace(b"@", b"\xc0\xaf"),
    "09-cesu-surrogates": _chat('"@"').replace(b"@", b"\xed\xa0\x81\xed\xb0\x80"),
    "10-lone-surrogate": _chat('"\\ud800"'),
    "12-raw-nul": _chat('"@"').replace(b"@", b"\x00"),
    "13-raw-control": _chat('"@"').replace(b"@", b"\x1b"),
    "14-nan": _chat('"x", "n": NaN'),
    "15-1e999": _chat('"x", "n": 1e999'),
    "17-int-5000-digits": _chat('"x", "n": ' + "9" * 5000),
    "19-nesting-100k": _chat("[" * 100_000 + "]" * 100_000),
    "20-duplicate-keys": b'{"model":"m","messages":[],"messages":[{"role":"user","content":"x"}]}',
    "32-no-messages": b'{"model":"m"}',
    "32-messages-null": b'{"model":"m","messages":null,"input":null}',
    "32-messages-a-string": b'{"model":"m","messages":"hi","input":{}}',
    "not-an-object": b"[1,2,3]",
}

READABLE = {
    "11-nul-escape": _chat('"a\\u0000b"'),
    "16-int-2-64": _chat('"x", "n": 18446744073709551616'),
    "21-10-mb-string": _chat('"' + "x" * (10 << 20) + '"'),
    "22-many-keys": _chat('"x", "n": {' + ",".join(f'"k{n}":1' for n in range(100_000)) + "}"),
    "23-proto-keys": _chat('"x", "__proto__": {"a": 1}, "__class__": 2, "constructor": 3'),
    "31-33-mb": _chat('"' + "y" * (33 << 20) + '"'),
    "33-only-system": b'{"model":"m","messages":[{"role":"system","content":"only me"}]}',
    "34-unknown-role": b'{"model":"m","messages":[{"role":"wizard","content":"hocus"}]}',
    "35-content-null": _chat("null"),
    "36-content-empty-list": _chat("[]"),
    "37-empty-text": _chat('""'),
    "38-whitespace-text": _chat('" \\n "'),
    "44-200-parallel-calls": json.dumps(
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "go"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": f"c{n}",
                            "type": "function",
                            "function": {"name": "f", "arguments": "{}"},
                        }
                        for n in range(200)
                    ],
                },
                *({"role": "tool", "tool_call_id": f"c{n}", "content": str(n)} for n in range(200)),
            ],
        }
    ).encode(),
    "58-5-mb-arguments": json.dumps(
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "go"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "c",
                            "type": "function",
                            "function": {
                                "name": "f",
                                "arguments": json.dumps({"x": "z" * (5 << 20)}),
                            },
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "c", "content": "done"},
            ],
        }
    ).encode(),
    "65-broken-arguments": json.dumps(
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "go"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "c",
                            "type": "function",
                            "function": {"name": "f", "arguments": '{"broken": '},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "c", "content": "done"},
            ],
        }
    ).encode(),
}

# bytes; to count the tokens of more takes seconds, and a busy machine may need longer than a call
# waits
LARGE = 1 << 20


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One proxy for the whole catalogue: whatever comes in, it must still serve the next one."""
    yield from _world(tmp_path_factory)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """One more, for what is kept."""
    yield from _world(tmp_path_factory)


@pytest.fixture(scope="module")
def strained(tmp_path_factory):
    """And one for what may be too large for a busy machine to plan in time: that is an event, and
    the next call may not wait."""
    yield from _world(tmp_path_factory)


def _world(tmp_path_factory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("catalogue") / "data"
    with (
        ScriptedUpstream() as upstream,
        LocalProxy(
            folder, openai_url=upstream.openai_url, anthropic_url=upstream.anthropic_url
        ) as proxy,
    ):
        yield Pair(proxy.address, upstream, folder)


def _assert_still_serves(world: Pair) -> None:
    answer = _answer(world)
    assert answer.status == 200
    assert answer.header("x-hotset-degraded") is None


def _answer(world: Pair) -> Answer:
    return post(world.address, "openai-chat", question("openai-chat", "still there?"))


@pytest.mark.row("C9")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_passes_untouched_and_leaves_no_trace(shared, dialect, name):
    body = (
        UNREADABLE[name].replace(b'"messages"', b'"input"')
        if dialect == "openai-responses"
        else UNREADABLE[name]
    )
    if dialect == "openai-responses":
        body = body.replace(b'"input":"hi"', b'"input":7')
    before = [turn.ref for turn in shared.turns()]

    answer = post(shared.address, dialect, body)

    assert shared.upstream.requests[-1].body == body
    assert 200 <= answer.status < 500
    assert answer.header("x-hotset-degraded").startswith("unreadable request: ")
    assert [turn.ref for turn in shared.turns()] == before
    with shared.store() as store:
        assert list(store.events()) == []
    _assert_still_serves(shared)


@pytest.mark.row("C9")
@pytest.mark.parametrize("name", READABLE)
@pytest.mark.rest_slow
def test_what_is_odd_but_readable_passes_and_is_kept(request, name):
    is_large = len(READABLE[name]) > LARGE
    kept = request.getfixturevalue("strained" if is_large else "kept")
    before = kept.turns()

    answer = post(kept.address, "openai-chat", READABLE[name])

    assert kept.upstream.requests[-1].body == READABLE[name]
    assert 200 <= answer.status < 500
    degraded = answer.header("x-hotset-degraded")
    assert degraded is None or (is_large and degraded == "planning took too long")
    after = kept.turns()
    assert [turn for turn in after if turn in before] == before, "an earlier turn changed"
    assert len(after) == len(before) + 1
    wait_until(lambda: degraded is None or _answer(kept).header("x-hotset-degraded") is None)
    _assert_still_serves(kept)


@pytest.mark.parametrize("depth", [900, 1100, 3000, 12_000])
def test_18_deep_nesting_passes_untouched_whether_we_can_read_it_or_not(shared, depth):
    body = _chat("[" * depth + "]" * depth)

    answer = post(shared.address, "openai-chat", body)

    assert shared.upstream.requests[-1].body == body
    assert 200 <= answer.status < 500
    _assert_still_serves(shared)


def test_24_a_wrong_content_type_passes(shared):
    body = question("anthropic", "typed as text")
    answer = post(shared.address, "anthropic", body, {"content-type": "text/plain"})
    assert (answer.status, shared.upstream.requests[-1].body) == (200, body)
    assert shared.upstream.requests[-1].header("content-type") == "text/plain"


@pytest.mark.parametrize(
    "framing",
    ["Content-Length: 500", "Transfer-Encoding: chunked"],
    ids=["25-wrong-content-length", "26-chunked-without-end"],
)
def test_a_body_that_never_ends_reaches_no_upstream_and_holds_up_nobody(shared, framing):
    seen = len(shared.upstream.requests)
    address = shared.address
    head = (
        f"POST /{address.token}{PATHS['openai-chat']} HTTP/1.1\r\nHost: "
        f"127.0.0.1:{address.port}\r\n{framing}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", shared.address.port)) as connection:
        connection.sendall(head.encode() + b"5\r\nhello\r\n")
        _assert_still_serves(shared)
    assert len(shared.upstream.requests) == seen + 1


BOMB = 300 << 20  # bytes that a body of this kind would be

# Packed when a test asks for it: a bomb takes its time to make, and each process that collects
# these tests would make its own.
PACKED: dict[str, tuple[Callable[[], bytes], str, str | None]] = {
    "27-gzip": (lambda: gzip.compress(question("openai-chat", "packed")), "gzip", None),
    "27-zstd": (lambda: zstd.compress(question("openai-chat", "packed")), "zstd", None),
    "27-br": (lambda: b"\x8b\x05\x80not really brotli\x03", "br", "not one that hotset reads"),
    "27-not-gzip": (
        lambda: question("openai-chat", "plain"),
        "gzip",
        "not what its content-encoding says",
    ),
    "28-gzip-bomb": (lambda: gzip.compress(bytes(BOMB), 1), "gzip", "more than 64 MiB"),
    "29-zstd-bomb": (lambda: zstd.compress(bytes(BOMB), 1), "zstd", "more than 64 MiB"),
    "30-double": (
        lambda: gzip.compress(gzip.compress(question("openai-chat", "packed twice"))),
        "gzip, gzip",
        None,
    ),
    "30-many-members": (
        lambda: gzip.compress(gzip.compress(b"") * 500_000),
        "gzip, gzip",
        "in more than 4,096 pieces",
    ),
    "30-many-frames": (
        lambda: zstd.compress(zstd.compress(b"") * 1_000_000),
        "zstd, zstd",
        "in more than 4,096 pieces",
    ),
    "30-many-layers": (
        lambda: gzip.compress(b"x"),
        "gzip, gzip, gzip, gzip",
        "on top of each other",
    ),
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.rest_slow
def test_a_packed_body_passes_packed_and_a_bomb_is_never_unpacked(name, tmp_path):
    pack, coding, trouble = PACKED[name]
    body = pack()
    # The scripted upstream would unpack a bomb itself, so these go to a path of it that only
    # echoes.
    with (
        ScriptedUpstream() as upstream,
        LocalProxy(tmp_path / "data", openai_url=f"{upstream.url}/echo") as proxy,
    ):
        answer = post(proxy.address, "openai-chat", body, {"content-encoding": coding})
        Pair(proxy.address, upstream, tmp_path).settle()
        status = ask(proxy.address)
        assert upstream.requests[-1].body == body
    assert answer.status == 200
    # A bomb takes longer to be found out than this upstream to answer, so the header may come too
    # early to tell of it.
    degraded = answer.header("x-hotset-degraded")
    assert degraded is None or (trouble is not None and trouble in degraded)
    assert status["bypassed"] == (0 if trouble is None else 1)


def _claude(*messages: Any, **more: Any) -> bytes:
    return json.dumps(
        {"model": "claude-sonnet-5", "max_tokens": 10, "messages": list(messages), **more}
    ).encode()


def _use(*ids: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": each, "name": "f", "input": {}} for each in ids],
    }


def _result(*ids: str) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": each, "content": "r"} for each in ids],
    }


USER = {"role": "user", "content": "begin"}
TEXT = {"type": "text", "text": "t"}

CONVERSATIONS = {
    "39-use-without-result": _claude(USER, _use("a"), {"role": "user", "content": "no result"}),
    "40-result-without-use": _claude(_result("a")),
    "41-duplicate-ids": _claude(USER, _use("a", "a"), _result("a")),
    "42-results-split": _claude(USER, _use("a", "b"), _result("a"), _result("b")),
    "43-text-before-result": _claude(
        USER, _use("a"), {"role": "user", "content": [TEXT, *_result("a")["content"]]}
    ),
    "45-half-finished": _claude(USER, {"role": "assistant", "content": "I was about to"}),
    "46-thinking-unsigned": _claude(
        USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, TEXT]}, USER
    ),
    "47-redacted": _claude(
        USER,
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}, TEXT]},
        USER,
    ),
    "50-unknown-block": _claude(
        {"role": "user", "content": [{"type": "hologram", "beam": [1, 2]}]}
    ),
    "51-server-tool": _claude(
        USER,
        {
            "role": "assistant",
            "content": [
                {
                    "type": "server_tool_use",
                    "id": "srvtoolu_1",
                    "name": "web_search",
                    "input": {"query": "q"},
                },
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                TEXT,
            ],
        },
        USER,
    ),
    "52-compaction-block": _claude(
        {"role": "assistant", "content": [{"type": "compaction", "content": "so far"}]}, USER
    ),
    "53-missing-tool-reference": _claude(
        USER,
        _use("a"),
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [{"type": "tool_reference", "tool_name": "gone"}],
                }
            ],
        },
    ),
    "54-five-cache-marks": _claude(
        {"role": "user", "content": [{**TEXT, "cache_control": {"type": "ephemeral"}}] * 5}
    ),
    "57-expired-file": _claude(
        {
            "role": "user",
            "content": [{"type": "document", "source": {"type": "file", "file_id": "gone"}}],
        }
    ),
    "59-our-own-words": _claude(
        {
            "role": "user",
            "content": '[CTX-REF:conversation | 1 turn | retrieve_context(ref_id="r1")]',
        }
    ),
    "60-foreign-reference": _claude(
        {"role": "user", "content": 'retrieve_context(ref_id="ref-of-somebody-else")'}
    ),
    "61-nested-reference": _claude({"role": "user", "content": "[CTX-REF:[CTX-REF:x]]"}),
    "63-tool-not-declared": _claude(USER, _use("a"), _result("a"), tools=[]),
    "64-tool-named-like-ours": _claude(
        USER, tools=[{"name": "retrieve_context", "input_schema": {"type": "object"}}]
    ),
}


@pytest.mark.row("C9")
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_that_breaks_a_rule_is_the_providers_to_judge(shared, name):
    before = shared.turns()

    answer = post(shared.address, "anthropic", CONVERSATIONS[name])

    assert shared.upstream.requests[-1].body == CONVERSATIONS[name]
    assert answer.header("x-hotset-degraded") is None
    assert answer.status in (200, 400)
    assert [turn for turn in shared.turns() if turn in before] == before
    _assert_still_serves(shared)


def test_48_49_thinking_and_model_may_change_in_mid_session(pair):
    world = pair()
    history = [USER]
    for model, thinking in (
        ("claude-a", None),
        ("claude-b", {"type": "enabled", "budget_tokens": 1024}),
        ("claude-b", None),
    ):
        body = {"model": model, "max_tokens": 10, "messages": history} | (
            {"thinking": thinking} if thinking else {}
        )
        reply = post(world.address, "anthropic", json.dumps(body).encode()).json()
        history = [
            *history,
            {"role": "assistant", "content": reply["content"]},
            {"role": "user", "content": "go on"},
        ]

    assert [(turn.number, turn.branch, turn.model) for turn in world.turns()] == [
        (1, 0, "claude-a"),
        (2, 0, "claude-b"),
        (3, 0, "claude-b"),
    ]


@pytest.mark.slow
def test_62_a_hundred_thousand_messages_pass(pair):
    """Here a part of them, which is kept in seconds; whoever reads them reads all of them in
    `tests/dialects`."""
    world = pair()
    body = question("openai-chat", *(f"{n}" for n in range(sample(20_001, 100_001))))

    answer = post(world.address, "openai-chat", body)

    assert world.upstream.requests[0].body == body
    assert answer.status == 200


def test_a_request_line_that_is_no_http_gets_an_error_and_harms_nobody(shared):
    with socket.create_connection(("127.0.0.1", shared.address.port)) as connection:
        connection.sendall(b"\x16\x03\x01 this is TLS, not HTTP\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    _assert_still_serves(shared)


@pytest.mark.slow
def test_a_get_on_a_conversation_path_passes(shared):
    answer = call(shared.address, "GET", f"/{shared.address.token}/v1/chat/completions")
    assert answer.status < 500
    _assert_still_serves(shared)
