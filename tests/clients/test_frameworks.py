"""Agent frameworks run their own loops through the proxy, unchanged."""

from __future__ import annotations

import asyncio

import pytest

from hotset.nouns.page import Kind
from hotset.nouns.turn import Outcome
from hotset.testing import Call, Say

SCRIPT = (
    Say(
        "I will look.", calls=(Call("weather", {"city": "Oslo"}), Call("weather", {"city": "Rome"}))
    ),
    Say("And once more.", calls=(Call("weather", {"city": "Lima"}),)),
    Say("Cold, warm and mild."),
)
WEATHER = {"Oslo": "cold", "Rome": "warm", "Lima": "mild"}


def _assert_kept(world) -> None:
    assert [(turn.number, turn.branch, turn.outcome) for turn in world.turns()] == [
        (n, 0, Outcome.DONE) for n in (1, 2, 3)
    ]
    pages = world.pages()
    assert sorted(content for page, content in pages if page.kind.family is Kind.TOOL_RESULT) == [
        b"cold",
        b"mild",
        b"warm",
    ]
    assert [page.kind.family for page, _ in pages].count(Kind.TOOL_CALL) == 3
    assert b"Cold, warm and mild." in [content for _, content in pages]


@pytest.mark.row("X2")
@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_openai_agents(pair, api, stream):
    import agents  # noqa: PLC0415
    import openai  # noqa: PLC0415

    agents.set_tracing_disabled(disabled=True)
    world = pair(SCRIPT)

    @agents.function_tool
    def weather(city: str) -> str:
        return WEATHER[city]

    async def main() -> str:
        async with openai.AsyncOpenAI(
            base_url=world.address.openai_base_url, api_key="sk-test", max_retries=0
        ) as client:
            kind = (
                agents.OpenAIChatCompletionsModel if api == "chat" else agents.OpenAIResponsesModel
            )
            agent = agents.Agent(
                "forecaster", instructions="Be brief.", tools=[weather], model=kind("gpt-5", client)
            )
            if not stream:
                return (await agents.Runner.run(agent, "Weather in three cities?")).final_output
            run = agents.Runner.run_streamed(agent, "Weather in three cities?")
            async for _ in run.stream_events():
                pass
            return run.final_output

    assert asyncio.run(main()) == "Cold, warm and mild."
    _assert_kept(world)


@pytest.mark.row("X2")
@pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
def test_pydantic_ai(pair, api):
    from pydantic_ai import Agent  # noqa: PLC0415
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel  # noqa: PLC0415
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    world = pair(SCRIPT)

    async def main() -> str:
        if api == "anthropic":
            provider = AnthropicProvider(
                api_key="sk-test", base_url=world.address.anthropic_base_url
            )
            model = AnthropicModel("claude-sonnet-5", provider=provider)
        else:
            provider = OpenAIProvider(api_key="sk-test", base_url=world.address.openai_base_url)
            model = (OpenAIChatModel if api == "chat" else OpenAIResponsesModel)(
                "gpt-5", provider=provider
            )
        agent = Agent(model, system_prompt="Be brief.")

        @agent.tool_plain
        def weather(city: str) -> str:
            return WEATHER[city]

        try:
            return (await agent.run("Weather in three cities?")).output
        finally:
            await provider.client.close()

    assert asyncio.run(main()) == "Cold, warm and mild."
    _assert_kept(world)
