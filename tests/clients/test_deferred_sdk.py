"""The official clients over providers that can defer tools: one is found, called by its own name,
and stays, over a restart."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import anthropic
import openai
import pytest

from hotset.nouns.message import DialectName
from hotset.nouns.tooling import Deferring, Tooling
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.proxy.shelf import Shelf
from tests.proxy.talking import read, tools
from tests.proxy.test_deferred_tools import (
    LATER,
    assert_the_prefix_never_breaks,
    deferring_list,
    find,
    handed_over,
    listed,
)
from tests.proxy.test_toolbox import HIDDEN, ISSUE, create_issue, shelf

ANTHROPIC, RESPONSES = DialectName.ANTHROPIC, DialectName.OPENAI_RESPONSES
MARK = {"cache_control": {"type": "ephemeral"}}
SYSTEM = "You help. " * 800
"""More than a provider needs to cache it."""


def script(dialect: str) -> list[Say]:
    return [
        Say("I look.", calls=(find(dialect, "open an issue on github"),), thinking="Which tool?"),
        Say(
            "I do it.",
            calls=(Call(ISSUE, {"title": "It broke"}), read("a.py")),
            thinking="That one.",
        ),
        Say("Issue 17."),
        Say(calls=(Call(ISSUE, {"title": "Again"}),), thinking="As before."),
        Say("Issue 18."),
        Say("You are welcome."),
    ]


def claude(client: anthropic.Anthropic, messages: list[Any], *, stream: bool) -> list[Any]:
    asked: dict[str, Any] = {
        "model": "claude-sonnet-5",
        "max_tokens": 4000,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "system": [{"type": "text", "text": SYSTEM, **MARK}],
        "tools": tools("anthropic", "read_file"),
        "messages": messages,
        **MARK,
    }
    if stream:
        with client.messages.stream(**asked) as events:
            reply = events.get_final_message()
    else:
        reply = client.messages.create(**asked)
    messages.append(
        {
            "role": "assistant",
            "content": [block.model_dump(exclude_none=True) for block in reply.content],
        }
    )
    return [block for block in reply.content if block.type == "tool_use"]


def gpt(client: openai.OpenAI, items: list[Any], *, stream: bool) -> list[Any]:
    asked: dict[str, Any] = {
        "model": "gpt-5.4",
        "instructions": SYSTEM,
        "tools": tools("openai-responses", "read_file"),
        "input": items,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    if stream:
        with client.responses.stream(**asked) as events:
            for _ in events:
                pass
            reply = events.get_final_response()
    else:
        reply = client.responses.create(**asked)
    items += [
        item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in reply.output
    ]
    return [item for item in reply.output if item.type == "function_call"]


def answered(dialect: str, call: Any) -> dict[str, Any]:
    if dialect == ANTHROPIC:
        return {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "a is empty"}],
        }
    return {"type": "function_call_output", "call_id": call.call_id, "output": "a is empty"}


@contextlib.contextmanager
def speaking(dialect: str, folder, upstream: ScriptedUpstream, toolbox: Shelf, *, stream: bool):
    """One proxy, and a client of the library that speaks through it."""
    urls = {"openai_url": upstream.openai_url, "anthropic_url": upstream.anthropic_url}
    with LocalProxy(
        folder, **urls, toolbox=toolbox, tooling=Tooling(deferred=Deferring.ON)
    ) as proxy:
        if dialect == ANTHROPIC:
            with anthropic.Anthropic(
                base_url=proxy.address.anthropic_base_url, api_key="sk-test", max_retries=0
            ) as client:
                yield lambda messages: claude(client, messages, stream=stream)
        else:
            with openai.OpenAI(
                base_url=proxy.address.openai_base_url, api_key="sk-test", max_retries=0
            ) as client:
                yield lambda items: gpt(client, items, stream=stream)


@pytest.mark.row("L3")
@pytest.mark.parametrize("stream", [False, True], ids=["document", "stream"])
@pytest.mark.parametrize("dialect", [ANTHROPIC, RESPONSES])
@pytest.mark.rest_slow
def test_a_tool_is_found_called_by_its_name_and_stays_over_a_restart(tmp_path, dialect, stream):
    said: list[Any] = [{"role": "user", "content": "Hello."}]
    with ScriptedUpstream(script(dialect), strict=True) as upstream:
        with speaking(dialect, tmp_path / "data", upstream, shelf(), stream=stream) as ask:
            [call] = ask(said)
            assert call.name == "read_file"
            said.append(answered(dialect, call))
            assert ask(said) == []
        with speaking(
            dialect, tmp_path / "data", upstream, Shelf(github=[create_issue]), stream=stream
        ) as ask:
            for words in ("It broke again.", "Thanks."):
                said.append({"role": "user", "content": words})
                assert ask(said) == []
        requests, bill = upstream.requests, upstream.bill

    assert len(requests) == 6
    assert listed(requests[0]) == deferring_list(dialect)
    assert all(listed(request) == deferring_list(dialect, ISSUE) for request in requests[1:])
    assert all(handed_over(dialect, request) == [[ISSUE]] for request in requests[1:])
    assert [request.json()["tools"] for request in requests[2:]] == [
        requests[1].json()["tools"]
    ] * 4
    assert_the_prefix_never_breaks(dialect, requests)
    held = json.dumps(said, default=str)
    assert not any(ours in held for ours in (*HIDDEN, LATER, "tool_search", "tool_reference"))
    assert bill.cache_read > 4 * len(SYSTEM) // 4, (
        "the system text was read from the cache with every later request"
    )
