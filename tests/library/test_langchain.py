"""LangChain's chat models, and so LangGraph, are wrapped like clients. Runs where they are
installed."""

from __future__ import annotations

import asyncio

import pytest

from tests.library.forecast import kept, weather

pytest.importorskip("langgraph", reason="langgraph is not installed: make test installs it")

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

__all__ = ["kept"]


def _model(api, up):
    if api == "anthropic":
        return ChatAnthropic(
            model="claude-sonnet-5", base_url=up.anthropic_url, api_key="k", max_tokens=900
        )
    return ChatOpenAI(model="gpt-5.5", base_url=up.openai_url, api_key="k")


async def _ask(model, way, history):
    if way == "invoke":
        return model.invoke(history)
    if way == "ainvoke":
        return await model.ainvoke(history)
    chunks = (
        [chunk async for chunk in model.astream(history)]
        if way == "astream"
        else list(model.stream(history))
    )
    return sum(chunks[1:], chunks[0])


@pytest.mark.row("X2")
@pytest.mark.parametrize("api", ["chat", "anthropic"])
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_a_chat_model_runs_on_and_never_sees_our_calls(kept, api, way):
    up, memory = kept
    wrapped = memory.wrap(_model(api, up))
    model = wrapped.bind_tools([weather])

    async def main():
        history = [HumanMessage("Weather in two cities?")]
        reply = await _ask(model, way, history)
        results = [
            ToolMessage(weather(**call["args"]), tool_call_id=call["id"])
            for call in reply.tool_calls
        ]
        last = await _ask(model, way, [*history, reply, *results])
        await (wrapped._async_client if api == "anthropic" else wrapped.root_async_client).close()
        (wrapped._client if api == "anthropic" else wrapped.root_client).close()
        return [call["name"] for call in reply.tool_calls], last.text

    between = "\n\n" if api == "chat" else ""  # one text; the other dialect has a block for each
    assert asyncio.run(main()) == (["weather", "weather"], f"Which was it?{between}Cold and warm.")
