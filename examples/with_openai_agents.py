"""openai-agents: wrap the client, for every agent of the program. A single model can be wrapped
too."""

import sys
from pathlib import Path

import agents
import openai

import hotset

agents.set_tracing_disabled(disabled=True)
agents.set_default_openai_client(hotset.wrap(openai.AsyncOpenAI()))


@agents.function_tool
def read_file(path: str) -> str:
    """The text of a file."""
    return Path(path).read_text()


agent = agents.Agent("reader", instructions="Be brief.", model="gpt-5.5", tools=[read_file])
print(
    agents.Runner.run_sync(agent, " ".join(sys.argv[1:]) or "What does README.md say?").final_output
)
