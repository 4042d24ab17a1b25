"""The official OpenAI client, Chat Completions and Responses, works through the proxy as it does
without."""

from __future__ import annotations

import asyncio
import json

import openai
import pytest

from hotset.nouns.page import Kind
from hotset.nouns.turn import Outcome
from hotset.testing import Call, Say
from hotset.testing.upstream.faults import ErrorEvent, Fin, Status

TOOL = {"type": "object", "properties": {"city": {"type": "string"}}}
CHAT_TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": TOOL}}]
RESPONSES_TOOLS = [{"type": "function", "name": "weather", "parameters": TOOL}]
TWO_CALLS = Say(
    "Looking.", calls=(Call("weather", {"city": "Oslo"}), Call("weather", {"city": "Rome"}))
)


@pytest.fixture
def client(pair):
    made = []

    def make(script):
        world = pair(script)
        made.append(
            openai.OpenAI(base_url=world.address.openai_base_url, api_key="sk-test", max_retries=0)
        )
        return world, made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.row("X2")
@pytest.mark.row("C9")
@pytest.mark.parametrize("stream", [False, True])
def test_chat_parallel_tool_calls_go_round_and_are_kept_once(client, stream):
    world, openai_client = client([TWO_CALLS, Say("Oslo is cold, Rome is warm.")])
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather in Oslo and Rome?"},
    ]

    message = _chat(openai_client, messages, stream)
    assert [json.loads(call.function.arguments)["city"] for call in message.tool_calls] == [
        "Oslo",
        "Rome",
    ]
    messages.append(message.model_dump(exclude_none=True))
    messages += [
        {"role": "tool", "tool_call_id": call.id, "content": f"{n} degrees"}
        for n, call in enumerate(message.tool_calls)
    ]
    final = _chat(openai_client, messages, stream)

    assert final.content == "Oslo is cold, Rome is warm."
    _assert_one_line(world, turns=2, calls=2, results=[b"0 degrees", b"1 degrees"])


def _chat(client, messages, stream):
    asked = {"model": "gpt-5", "messages": messages, "tools": CHAT_TOOLS}
    if not stream:
        return client.chat.completions.create(**asked).choices[0].message
    with client.chat.completions.stream(**asked) as events:
        for _ in events:
            pass
        return events.get_final_completion().choices[0].message


@pytest.mark.row("X2")
@pytest.mark.parametrize("stream", [False, True])
def test_responses_tool_calls_go_round_with_the_whole_history(client, stream):
    world, openai_client = client(
        [Say(TWO_CALLS.text, TWO_CALLS.calls, thinking="Two cities."), Say("Cold and warm.")]
    )
    history = [{"role": "user", "content": "Weather in Oslo and Rome?"}]

    reply = _respond(openai_client, stream, input=history, tools=RESPONSES_TOOLS)
    history += [item.model_dump(exclude_none=True) for item in reply.output]
    calls = [item for item in reply.output if item.type == "function_call"]
    history += [
        {"type": "function_call_output", "call_id": call.call_id, "output": f"{n} degrees"}
        for n, call in enumerate(calls)
    ]
    final = _respond(openai_client, stream, input=history, tools=RESPONSES_TOOLS)

    assert final.output_text == "Cold and warm."
    _assert_one_line(world, turns=2, calls=2, results=[b"0 degrees", b"1 degrees"])


@pytest.mark.row("V1")
@pytest.mark.parametrize("stream", [False, True])
def test_responses_that_continue_on_the_providers_side_stay_one_session(client, stream):
    world, openai_client = client([TWO_CALLS, Say("Cold and warm.")])

    first = _respond(
        openai_client, stream, input="Weather in Oslo and Rome?", tools=RESPONSES_TOOLS
    )
    outputs = [
        {"type": "function_call_output", "call_id": item.call_id, "output": f"{n} degrees"}
        for n, item in enumerate(item for item in first.output if item.type == "function_call")
    ]
    final = _respond(
        openai_client, stream, input=outputs, previous_response_id=first.id, tools=RESPONSES_TOOLS
    )

    assert final.output_text == "Cold and warm."
    _assert_one_line(world, turns=2, calls=2, results=[b"0 degrees", b"1 degrees"])


def _respond(client, stream, **asked):
    if not stream:
        return client.responses.create(model="gpt-5", **asked)
    with client.responses.stream(model="gpt-5", **asked) as events:
        for _ in events:
            pass
        return events.get_final_response()


def test_errors_are_the_sdks_own_errors(client):
    world, openai_client = client(
        [
            Say(fault=Status(429, retry_after=3)),
            Say(fault=Status(401)),
            Say(fault=Status(400)),
            Say(fault=Status(500)),
        ]
    )
    for error in (
        openai.RateLimitError,
        openai.AuthenticationError,
        openai.BadRequestError,
        openai.InternalServerError,
    ):
        with pytest.raises(error):
            openai_client.chat.completions.create(
                model="gpt-5", messages=[{"role": "user", "content": "hi"}]
            )

    assert [turn.status for turn in world.turns()] == [429, 401, 400, 500]


def test_a_dead_upstream_is_an_error_that_names_it(client):
    world, openai_client = client([])
    with (
        world.upstream.refusing(),
        pytest.raises(openai.InternalServerError, match=r"openai at http://127\.0\.0\.1"),
    ):
        openai_client.responses.create(model="gpt-5", input="hi")


@pytest.mark.parametrize(
    ("fault", "error"),
    [(Fin(events=3), openai.APIConnectionError), (ErrorEvent(events=2), openai.APIError)],
    ids=["broke-off", "error-event"],
)
def test_a_stream_that_fails_raises_in_the_sdk(client, fault, error):
    world, openai_client = client([Say("words that do not all come", fault=fault)])

    with (
        pytest.raises(error),
        openai_client.chat.completions.create(
            model="gpt-5", messages=[{"role": "user", "content": "hi"}], stream=True
        ) as chunks,
    ):
        list(chunks)

    assert world.turns()[0].outcome is Outcome.BROKEN


@pytest.mark.slow
def test_many_async_streams_at_once_each_get_their_own_words(pair):
    world = pair(lambda request: Say(f"echo {request.json()['messages'][0]['content']}"))

    async def ask(client: openai.AsyncOpenAI, n: int) -> str:
        stream = await client.chat.completions.create(
            model="gpt-5", messages=[{"role": "user", "content": f"number {n}"}], stream=True
        )
        return "".join(
            [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
        )

    async def main() -> list[str]:
        async with openai.AsyncOpenAI(
            base_url=world.address.openai_base_url, api_key="sk-test", max_retries=0
        ) as client:
            return await asyncio.gather(*(ask(client, n) for n in range(40)))

    assert asyncio.run(main()) == [f"echo number {n}" for n in range(40)]
    assert len(world.sessions()) == 40
    assert {turn.outcome for turn in world.turns()} == {Outcome.DONE}


def test_other_endpoints_work_too(client):
    _world, openai_client = client([])
    assert list(openai_client.models.list())


def _assert_one_line(world, *, turns: int, calls: int, results: list[bytes]) -> None:
    """One session, one branch, each thing once."""
    assert [(turn.number, turn.branch, turn.outcome) for turn in world.turns()] == [
        (n + 1, 0, Outcome.DONE) for n in range(turns)
    ]
    kinds = [page.kind.family for page, _ in world.pages()]
    assert kinds.count(Kind.TOOL_CALL) == calls
    assert [
        content for page, content in world.pages() if page.kind.family is Kind.TOOL_RESULT
    ] == results
    assert kinds.count(Kind.PROMPT) == 1
    assert kinds.count(Kind.RESPONSE) == 2
