"""What the provider's cache serves, over thirty calls of each client: no less with us than
without."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import anthropic
import openai
import pytest

from hotset.nouns.message import Usage
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.upstream.cache import OPENAI_STEP
from hotset.testing.upstream.script import Received
from tests.proxy.talking import code, looking, tools

_CALLS = 30
SYSTEM = "You are a careful engineer. " * 60
SIZES = {"small": 12, "large": 140}
"""Functions in each file that is read: a few hundred characters, and far more than is shown."""


def _script(request: Received) -> Say:
    return looking(f"part_{request.index}.py") if request.index < _CALLS - 1 else Say("All read.")


def _file(number: int, size: str) -> str:
    return code(f"part{number}_{random.Random(number).randint(0, 9999)}", SIZES[size])


_SLIGHTLY = 0.002  # what is new weighs more in a prompt that our shorter tools make shorter


def _share(bill: Usage) -> float:
    return bill.cache_read / (bill.input + bill.cache_read + bill.cache_write)


def _price(bill: Usage) -> float:
    """By Anthropic's rules, in units of an uncached token."""
    return bill.input + 0.1 * bill.cache_read + 1.25 * bill.cache_write


def _anthropic(base_url: str, size: str) -> None:
    """With the marks that its makers recommend: the system prompt, and the latest message."""
    marked = {"cache_control": {"type": "ephemeral"}}
    messages: list = [{"role": "user", "content": "Read them."}]
    with anthropic.Anthropic(base_url=base_url, api_key="sk-test", max_retries=0) as client:
        for number in range(_CALLS):
            reply = client.messages.create(
                model="claude-sonnet-5",
                max_tokens=1000,
                system=[{"type": "text", "text": SYSTEM, **marked}],
                messages=messages,
                tools=tools("anthropic", "read_file"),
                extra_body=marked,
            )
            messages.append(
                {
                    "role": "assistant",
                    "content": [block.model_dump(exclude_none=True) for block in reply.content],
                }
            )
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": _file(number, size)}
                for block in reply.content
                if block.type == "tool_use"
            ]
            messages.append({"role": "user", "content": results})


def _openai_chat(base_url: str, size: str) -> None:
    messages: list = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "Read them."},
    ]
    with openai.OpenAI(base_url=base_url, api_key="sk-test", max_retries=0) as client:
        for number in range(_CALLS):
            made = client.chat.completions.create(
                model="gpt-5.4", messages=messages, tools=tools("openai-chat", "read_file")
            )
            said = made.choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": _file(number, size)}
                for call in said.tool_calls or ()
            ]


def _openai_responses(base_url: str, size: str) -> None:
    history: list = [{"role": "user", "content": "Read them."}]
    with openai.OpenAI(base_url=base_url, api_key="sk-test", max_retries=0) as client:
        for number in range(_CALLS):
            made = client.responses.create(
                model="gpt-5.4",
                instructions=SYSTEM,
                input=history,
                tools=tools("openai-responses", "read_file"),
                store=False,
            )
            history += [item.model_dump(exclude_none=True) for item in made.output]
            history += [
                {
                    "type": "function_call_output",
                    "call_id": item.call_id,
                    "output": _file(number, size),
                }
                for item in made.output
                if item.type == "function_call"
            ]


def _openai_agents(base_url: str, size: str) -> None:
    import agents  # noqa: PLC0415

    agents.set_tracing_disabled(disabled=True)
    read = 0

    @agents.function_tool
    def read_file(path: str) -> str:
        nonlocal read
        read += 1
        return _file(read, size)

    async def main() -> None:
        async with openai.AsyncOpenAI(
            base_url=base_url, api_key="sk-test", max_retries=0
        ) as client:
            model = agents.OpenAIResponsesModel("gpt-5.4", client)
            agent = agents.Agent("reader", instructions=SYSTEM, tools=[read_file], model=model)
            assert (
                await agents.Runner.run(agent, "Read them.", max_turns=_CALLS + 1)
            ).final_output == "All read."

    asyncio.run(main())


def _pydantic_ai(base_url: str, size: str) -> None:
    from pydantic_ai import Agent, UsageLimits  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    read = 0

    async def main() -> None:
        provider = OpenAIProvider(api_key="sk-test", base_url=base_url)
        agent = Agent(OpenAIChatModel("gpt-5.4", provider=provider), system_prompt=SYSTEM)

        @agent.tool_plain
        def read_file(path: str) -> str:
            nonlocal read
            read += 1
            return _file(read, size)

        try:
            made = await agent.run("Read them.", usage_limits=UsageLimits(request_limit=_CALLS + 1))
            assert made.output == "All read."
        finally:
            await provider.client.close()

    asyncio.run(main())


CLIENTS = {
    "anthropic": _anthropic,
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "openai-agents": _openai_agents,
    "pydantic-ai": _pydantic_ai,
}


@pytest.mark.row("X3")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.slow
def test_the_providers_cache_serves_no_less_and_the_bill_is_no_higher(pair, client, size):
    with ScriptedUpstream(_script, strict=True) as direct:
        CLIENTS[client](direct.anthropic_url if client == "anthropic" else direct.openai_url, size)
        without = direct.bill

    world = pair(_script, strict=True)
    CLIENTS[client](
        world.address.anthropic_base_url
        if client == "anthropic"
        else world.address.openai_base_url,
        size,
    )
    bill = world.upstream.bill

    assert len(world.upstream.requests) == _CALLS
    # OpenAI reads whole steps: the tokens of a last step that is not full weigh more in a prompt
    # that is shorter.
    lost = 0 if client == "anthropic" or size == "small" else _CALLS * OPENAI_STEP
    assert (
        _share(replace(bill, input=bill.input - lost, cache_read=bill.cache_read + lost))
        >= _share(without) - _SLIGHTLY
    )
    assert _price(bill) < (0.5 if size == "large" else 1.1) * _price(without)
