"""The official Anthropic client works through the proxy as it does without."""

from __future__ import annotations

import anthropic
import pytest

from hotset.nouns.page import Kind
from hotset.nouns.turn import Outcome
from hotset.testing import Call, Say
from hotset.testing.upstream.faults import ErrorEvent, Status

TOOLS = [
    {
        "name": "weather",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
]
TWO_CALLS = Say(
    "Looking.",
    calls=(Call("weather", {"city": "Oslo"}), Call("weather", {"city": "Rome"})),
    thinking="Two cities.",
)


@pytest.fixture
def client(pair):
    made = []

    def make(script):
        world = pair(script)
        made.append(
            anthropic.Anthropic(
                base_url=world.address.anthropic_base_url, api_key="sk-test", max_retries=0
            )
        )
        return world, made[-1]

    yield make
    for each in made:
        each.close()


def _ask(client, messages, stream, **more):
    asked = {
        "model": "claude-sonnet-5",
        "max_tokens": 1000,
        "messages": messages,
        "tools": TOOLS,
        **more,
    }
    if not stream:
        return client.messages.create(**asked)
    with client.messages.stream(**asked) as events:
        for _ in events:
            pass
        return events.get_final_message()


@pytest.mark.row("X2")
@pytest.mark.row("C9")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("echo_thinking", [True, False])
def test_parallel_tool_calls_with_thinking_go_round_and_are_kept_once(
    client, stream, echo_thinking
):
    world, claude = client([TWO_CALLS, Say("Cold and warm.")])
    messages = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Weather?", "cache_control": {"type": "ephemeral"}}
            ],
        }
    ]

    reply = _ask(
        claude,
        messages,
        stream,
        system="Be brief.",
        thinking={"type": "enabled", "budget_tokens": 1024},
    )
    calls = [block for block in reply.content if block.type == "tool_use"]
    assert [call.input["city"] for call in calls] == ["Oslo", "Rome"]
    said = [
        block.model_dump(exclude_none=True)
        for block in reply.content
        if echo_thinking or block.type != "thinking"
    ]
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": f"{n} degrees"}
        for n, call in enumerate(calls)
    ]
    moved = [
        {"role": "user", "content": "Weather?"}
    ]  # the cache mark moves on, as Claude Code's does
    results[-1]["cache_control"] = {"type": "ephemeral"}
    final = _ask(
        claude,
        [*moved, {"role": "assistant", "content": said}, {"role": "user", "content": results}],
        stream,
        system="Be brief.",
    )

    assert final.content[0].text == "Cold and warm."
    assert [(turn.number, turn.branch, turn.outcome) for turn in world.turns()] == [
        (1, 0, Outcome.DONE),
        (2, 0, Outcome.DONE),
    ]
    kinds = [page.kind.family for page, _ in world.pages()]
    assert {
        kind: kinds.count(kind)
        for kind in (Kind.PROMPT, Kind.TOOL_CALL, Kind.TOOL_RESULT, Kind.RESPONSE, Kind.SYSTEM)
    } == {
        Kind.PROMPT: 1,
        Kind.TOOL_CALL: 2,
        Kind.TOOL_RESULT: 2,
        Kind.RESPONSE: 2,
        Kind.SYSTEM: 1,
    }
    assert (Kind.THINKING, b"Two cities.") in [
        (page.kind, content) for page, content in world.pages()
    ]


def test_usage_and_the_providers_cache_counts_are_kept_with_the_turn(client):
    world, claude = client([Say("One."), Say("Two.")])
    system = [
        {
            "type": "text",
            "text": "A long system prompt. " * 600,
            "cache_control": {"type": "ephemeral"},
        }
    ]

    for n in range(2):
        reply = _ask(
            claude, [{"role": "user", "content": f"question {n}"}], stream=False, system=system
        )

    turn = world.turns()[1]
    assert turn.usage.cache_read == reply.usage.cache_read_input_tokens > 1000
    assert (turn.usage.input, turn.usage.output) == (
        reply.usage.input_tokens,
        reply.usage.output_tokens,
    )
    assert world.turns()[0].usage.cache_write > 1000


def test_errors_are_the_sdks_own_errors(client):
    world, claude = client(
        [Say(fault=Status(429, retry_after=2)), Say(fault=Status(529)), Say(fault=Status(400))]
    )

    for error in (
        anthropic.RateLimitError,
        anthropic.InternalServerError,
        anthropic.BadRequestError,
    ):
        with pytest.raises(error):
            _ask(claude, [{"role": "user", "content": "hi"}], stream=False)

    assert [turn.status for turn in world.turns()] == [429, 529, 400]


def test_an_overload_in_mid_stream_raises_in_the_sdk(client):
    world, claude = client([Say("words that do not all come", fault=ErrorEvent(events=4))])

    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        _ask(claude, [{"role": "user", "content": "hi"}], stream=True)

    assert (world.turns()[0].outcome, world.turns()[0].error) == (
        Outcome.BROKEN,
        "overloaded_error",
    )


def test_counting_tokens_works(client):
    _world, claude = client([])
    counted = claude.messages.count_tokens(
        model="claude-sonnet-5", messages=[{"role": "user", "content": "count these words"}]
    )
    assert counted.input_tokens > 0
