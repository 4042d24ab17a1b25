"""pydantic-ai: wrap the model."""

import sys
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel

import hotset

agent = Agent(hotset.wrap(OpenAIChatModel("gpt-5.5")), system_prompt="Be brief.")


@agent.tool_plain
def read_file(path: str) -> str:
    """The text of a file."""
    return Path(path).read_text()


print(agent.run_sync(" ".join(sys.argv[1:]) or "What does README.md say?").output)
