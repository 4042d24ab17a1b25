"""A strict upstream refuses what the providers refuse, in their words, and nothing else."""

from __future__ import annotations

import json

import pytest

from hotset.nouns.message import DialectName
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.recording import requests, script, session
from tests.testing.raw_http import PATHS, connect, read_exchange, request_bytes

BROKEN = {
    DialectName.ANTHROPIC: {
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "grep", "input": {}}],
            },
            {"role": "user", "content": "and?"},
        ]
    },
    DialectName.OPENAI_CHAT: {
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "grep", "arguments": "{}"},
                    }
                ],
            },
            {"role": "user", "content": "and?"},
        ]
    },
    DialectName.OPENAI_RESPONSES: {
        "input": [
            {"type": "message", "role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "call_1", "name": "grep", "arguments": "{}"},
            {"type": "message", "role": "user", "content": "and?"},
        ]
    },
}
WORDS = {
    DialectName.ANTHROPIC: (
        "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1"
    ),
    DialectName.OPENAI_CHAT: "The following tool_call_ids did not have response messages: call_1",
    DialectName.OPENAI_RESPONSES: "No tool output found for function call call_1",
}


def sent(upstream, dialect, body):
    with connect(upstream) as client:
        client.sendall(request_bytes(PATHS[dialect], body))
        return read_exchange(client)


@pytest.mark.parametrize("dialect", list(DialectName))
def test_a_call_without_its_result_is_refused_in_the_providers_words(dialect):
    body = {"model": "m", "max_tokens": 9, **BROKEN[dialect]}
    with (
        ScriptedUpstream(lambda _: Say("fine"), strict=True) as strict,
        ScriptedUpstream(lambda _: Say("fine")) as lenient,
    ):
        refused = sent(strict, dialect, body)
        assert refused.status == 400
        assert WORDS[dialect] in json.loads(refused.body)["error"]["message"]
        assert sent(lenient, dialect, body).status == 200


@pytest.mark.parametrize("dialect", list(DialectName))
def test_the_recorded_session_breaks_no_rule(dialect):
    with ScriptedUpstream(script(session()), strict=True) as upstream, connect(upstream) as client:
        for body in requests(session(), dialect):
            client.sendall(request_bytes(PATHS[dialect], body))
            assert read_exchange(client).status == 200
