"""Models of agent frameworks are wrapped like clients: the framework's own loop runs on, and never
sees our calls."""

from __future__ import annotations

import asyncio

import openai
import pytest

from hotset.errors import BadInput
from tests.library.forecast import kept, weather

__all__ = ["kept"]


@pytest.mark.row("X2")
@pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
def test_pydantic_ai(kept, api):
    from pydantic_ai import Agent  # noqa: PLC0415
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel  # noqa: PLC0415
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    up, memory = kept

    async def main() -> str:
        if api == "anthropic":
            model = AnthropicModel(
                "claude-sonnet-5",
                provider=AnthropicProvider(api_key="k", base_url=up.anthropic_url),
            )
        else:
            kind = OpenAIChatModel if api == "chat" else OpenAIResponsesModel
            model = kind("gpt-5.5", provider=OpenAIProvider(api_key="k", base_url=up.openai_url))
        wrapped = memory.wrap(model)
        assert type(wrapped) is type(model)
        agent = Agent(wrapped, tools=[weather])
        async with agent:
            said = (await agent.run("Weather in two cities?")).output
        await wrapped.client.close()
        return said

    # What was said around a hidden call is one reply: the frameworks differ in what of it they call
    # the output.
    assert asyncio.run(main()).endswith("Cold and warm.")


@pytest.mark.row("X2")
@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_openai_agents(kept, api, stream):
    import agents  # noqa: PLC0415

    agents.set_tracing_disabled(disabled=True)
    up, memory = kept

    async def main() -> str:
        async with openai.AsyncOpenAI(base_url=up.openai_url, api_key="k") as client:
            kind = (
                agents.OpenAIChatCompletionsModel if api == "chat" else agents.OpenAIResponsesModel
            )
            model = memory.wrap(kind("gpt-5.5", client))
            agent = agents.Agent("forecaster", tools=[agents.function_tool(weather)], model=model)
            if not stream:
                return (await agents.Runner.run(agent, "Weather in two cities?")).final_output
            run = agents.Runner.run_streamed(agent, "Weather in two cities?")
            async for _ in run.stream_events():
                pass
            return run.final_output

    assert asyncio.run(main()).endswith("Cold and warm.")


def test_a_model_that_has_no_such_client_is_told_what_can_be_wrapped(memory):
    from pydantic_ai.models.test import TestModel  # noqa: PLC0415

    with pytest.raises(
        BadInput,
        match=(
            r"pydantic_ai\.TestModel cannot be wrapped; models over clients of openai or "
            r"anthropic can"
        ),
    ):
        memory().wrap(TestModel())


def test_a_wrapped_model_leaves_the_one_that_was_given_as_it_was(memory):
    import agents  # noqa: PLC0415

    client = openai.AsyncOpenAI(api_key="k")
    model = agents.OpenAIResponsesModel("gpt-5.5", client)
    assert memory().wrap(model) is not model
    assert model._client is client
