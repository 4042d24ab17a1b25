"""Agent frameworks run their own loops with a window, unchanged: what the model asks us for never
reaches them."""

from __future__ import annotations

import asyncio

import pytest

from hotset.nouns.message import DialectName
from hotset.testing import Say
from tests.proxy.talking import OURS, assert_each_extends_the_one_before, code, read, retrieve

FILES = {"a.py": code(), "b.py": code("g"), "c.py": "nothing"}
DIALECT = {"chat": "openai-chat", "responses": "openai-responses", "anthropic": "anthropic"}


def _script(api: str) -> list[Say]:
    dialect = DIALECT[api]
    return [
        Say("I will look.", calls=(read("a.py", id="one"), read("b.py", id="two"))),
        Say(
            "I need more.",
            calls=(
                retrieve(dialect, "one", symbol="f_222"),
                retrieve(dialect, "two", symbol="g_111"),
            ),
        ),
        Say("And once more.", calls=(read("c.py"), retrieve(dialect, "one", symbol="f_111"))),
        Say("It adds 1758018."),
    ]


def _assert_it_was_hidden(world) -> None:
    requests = world.upstream.requests
    assert len(requests) == 4
    assert "1758018" in requests[2].body.decode()
    assert str(7919 * 111) in requests[3].body.decode()
    assert_each_extends_the_one_before(requests)
    replies = [content for page, content in world.pages() if page.tool in OURS]
    assert replies == []
    assert [turn.number for turn in world.turns()] == [1, 2, 3]


@pytest.mark.row("V6")
@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.rest_slow
def test_openai_agents(pair, api, stream):
    import agents  # noqa: PLC0415
    import openai  # noqa: PLC0415

    agents.set_tracing_disabled(disabled=True)
    world = pair(_script(api), strict=True)

    @agents.function_tool
    def read_file(path: str) -> str:
        return FILES[path]

    async def main() -> agents.RunResultBase:
        async with openai.AsyncOpenAI(
            base_url=world.address.openai_base_url, api_key="sk-test", max_retries=0
        ) as client:
            kind = (
                agents.OpenAIChatCompletionsModel if api == "chat" else agents.OpenAIResponsesModel
            )
            agent = agents.Agent(
                "reader", instructions="Be brief.", tools=[read_file], model=kind("gpt-5.4", client)
            )
            if not stream:
                return await agents.Runner.run(agent, "Read them.")
            run = agents.Runner.run_streamed(agent, "Read them.")
            async for _ in run.stream_events():
                pass
            return run

    run = asyncio.run(main())
    assert run.final_output == "It adds 1758018."
    assert not any(ours in str(run.to_input_list()) for ours in OURS)
    _assert_it_was_hidden(world)


async def _listen(_context, events) -> None:
    """With this, the framework asks for streams."""
    async for _ in events:
        pass


@pytest.mark.row("V6")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
@pytest.mark.rest_slow
def test_pydantic_ai(pair, api, stream):
    from pydantic_ai import Agent  # noqa: PLC0415
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel  # noqa: PLC0415
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    world = pair(_script(api), strict=True)

    async def main() -> tuple[str, bytes]:
        if api == "anthropic":
            provider = AnthropicProvider(
                api_key="sk-test", base_url=world.address.anthropic_base_url
            )
            model = AnthropicModel("claude-sonnet-5", provider=provider)
        else:
            provider = OpenAIProvider(api_key="sk-test", base_url=world.address.openai_base_url)
            model = (OpenAIChatModel if api == "chat" else OpenAIResponsesModel)(
                "gpt-5.4", provider=provider
            )
        agent = Agent(model, system_prompt="Be brief.")

        @agent.tool_plain
        def read_file(path: str) -> str:
            return FILES[path]

        try:
            run = await agent.run("Read them.", event_stream_handler=_listen if stream else None)
            return run.output, run.all_messages_json()
        finally:
            await provider.client.close()

    output, messages = asyncio.run(main())
    assert output == "It adds 1758018."
    assert not any(ours.encode() in messages for ours in OURS)
    assert {request.dialect for request in world.upstream.requests} == {DialectName(DIALECT[api])}
    _assert_it_was_hidden(world)
