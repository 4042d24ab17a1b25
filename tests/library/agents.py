"""An agent that reads files, written once: over three APIs, streamed or not, with clients that
block and clients that await."""

from __future__ import annotations

import asyncio
import json
from functools import partial

import anthropic
import openai

from hotset.testing import Call, Say

APIS = ("chat", "responses", "anthropic")

_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = {
    "chat": [{"type": "function", "function": {"name": "read_file", "parameters": _SCHEMA}}],
    "responses": [{"type": "function", "name": "read_file", "parameters": _SCHEMA}],
    "anthropic": [{"name": "read_file", "input_schema": _SCHEMA}],
}
PROMPT = "Which file speaks of the kettle?"


def text_of(path: str) -> str:
    """A file too long to be shown whole, unlike every other."""
    return "\n".join(
        f"{path} line {n}: {'the kettle is red' if n == 77 else f'value {n * len(path)} of {path}'}"
        for n in range(300)
    )


def _read(n: int) -> Call:
    return Call("read_file", {"path": f"src/part_{n}.py"})


SCRIPT = (
    Say("I will look.", calls=(_read(1),)),
    Say("And on.", calls=(_read(2), _read(3))),
    Say("What was that?", calls=(Call("search_history", {"query": "kettle"}),)),
    Say(
        "A line of it.", calls=(Call("retrieve_context", {"tool": "read_file", "lines": "70-80"}),)
    ),
    Say("More.", calls=(_read(4),)),
    Say("Both at once.", calls=(Call("get_turn_range", {"first": 1, "last": 1}), _read(5))),
    *(Say(f"On to {n}.", calls=(_read(n),)) for n in range(6, 14)),
    Say("Every one of them."),
)
"""In some replies the model also calls tools of ours, alone and beside the agent's own."""


def client_of(api, url, *, awaits=False, **more):
    """The official client, for a server at this URL."""
    module, kind = (anthropic, "Anthropic") if api == "anthropic" else (openai, "OpenAI")
    base = url if api == "anthropic" else f"{url}/v1"
    return getattr(module, f"Async{kind}" if awaits else kind)(
        base_url=base, api_key="sk-test", max_retries=0, **more
    )


def work(api, client, *, stream=False, awaits=False):
    """Has the agent do its work, and closes its client; the last reply's text."""
    if awaits:
        return asyncio.run(_awaiting(api, client, stream))
    agent = _agent(api)
    asked = next(agent)
    with client:
        while True:
            with _stream_of(api, client)(**asked) if stream else _Nothing() as events:
                if stream:
                    for _ in events:
                        pass
                    reply = getattr(events, _FINAL[api])()
                else:
                    reply = _create_of(api, client)(**asked)
            try:
                asked = agent.send(reply)
            except StopIteration as end:
                return end.value


async def _awaiting(api, client, stream):
    agent = _agent(api)
    asked = next(agent)
    async with client:
        while True:
            if stream:
                async with _stream_of(api, client)(**asked) as events:
                    async for _ in events:
                        pass
                    reply = await getattr(events, _FINAL[api])()
            else:
                reply = await _create_of(api, client)(**asked)
            try:
                asked = agent.send(reply)
            except StopIteration as end:
                return end.value


_FINAL = {
    "chat": "get_final_completion",
    "responses": "get_final_response",
    "anthropic": "get_final_message",
}


class _Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def _agent(api):
    """Yields what to ask, is sent the reply."""
    history = [{"role": "user", "content": PROMPT}]
    while True:
        reply = yield asked(api, history)
        text, calls = heard(api, reply, history)
        if not calls:
            return text
        answer(api, history, calls)


def asked(api, history):
    if api == "anthropic":
        return {
            "model": "claude-sonnet-5",
            "max_tokens": 500,
            "messages": history,
            "tools": TOOLS[api],
            "system": "Be brief.",
        }
    return {
        "model": "gpt-5.5",
        "input" if api == "responses" else "messages": history,
        "tools": TOOLS[api],
    }


def heard(api, reply, history):
    """Adds the reply to the history; its text and its calls, as (id, arguments)."""
    if api == "anthropic":
        history.append(
            {
                "role": "assistant",
                "content": [block.model_dump(exclude_none=True) for block in reply.content],
            }
        )
        calls = [(block.id, block.input) for block in reply.content if block.type == "tool_use"]
        return "".join(block.text for block in reply.content if block.type == "text"), calls
    if api == "responses":
        history += [item.model_dump(exclude_none=True) for item in reply.output]
        return reply.output_text, [
            (i.call_id, json.loads(i.arguments)) for i in reply.output if i.type == "function_call"
        ]
    message = reply.choices[0].message
    history.append(message.model_dump(exclude_none=True))
    return message.content, [
        (call.id, json.loads(call.function.arguments)) for call in message.tool_calls or ()
    ]


def answer(api, history, calls):
    results = [(id, text_of(arguments["path"])) for id, arguments in calls]
    if api == "anthropic":
        history.append(
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": id, "content": text}
                    for id, text in results
                ],
            }
        )
    elif api == "responses":
        history += [
            {"type": "function_call_output", "call_id": id, "output": text} for id, text in results
        ]
    else:
        history += [{"role": "tool", "tool_call_id": id, "content": text} for id, text in results]


def _create_of(api, client):
    return _home(api, client).create


def _stream_of(api, client):
    usage = {"stream_options": {"include_usage": True}} if api == "chat" else {}
    return partial(_home(api, client).stream, **usage)


def _home(api, client):
    if api == "anthropic":
        return client.messages
    return client.responses if api == "responses" else client.chat.completions
