"""pydantic-ai: an agent of a kind hands over by itself."""

import sys
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel

import hotset

with hotset.open() as memory:
    model = memory.wrap(OpenAIChatModel("gpt-5.5"), agent="engineer", budget=12_000)
    agent = Agent(model, system_prompt="Be brief.")

    @agent.tool_plain
    def read_file(path: str) -> str:
        """The text of a file."""
        return Path(path).read_text()

    print(agent.run_sync(" ".join(sys.argv[1:]) or "Read README.md.").output)
    print(f"{memory.savings().handoffs.handoffs} handoffs")
