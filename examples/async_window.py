"""The same window with `await`, over the Responses API."""

import asyncio
import sys
from pathlib import Path

import openai

import hotset

TOOLS = [
    {
        "type": "function",
        "name": "read_file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
]


def read_file(path: str) -> str:
    return Path(path).read_text()


async def main(question: str) -> None:
    async with hotset.open() as memory, openai.AsyncOpenAI() as client:
        window = memory.window(model="gpt-5.5", dialect="openai-responses")
        window.add(question)
        while True:
            reply = await client.responses.create(**await window.request(tools=TOOLS))
            if await window.observe(reply):
                continue
            if not window.calls:
                break
            window.answer({call.id: read_file(**call.arguments) for call in window.calls})
        print(window.reply.text)


asyncio.run(main(" ".join(sys.argv[1:]) or "What does README.md say?"))
