"""Two agents over one memory: a librarian that lets old steps leave, and an engineer that hands its
window over to a successor."""

import sys
from pathlib import Path

import openai

import hotset

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }
]


def work(agent: hotset.AgentWindow, client: openai.OpenAI) -> hotset.AgentWindow:
    """Has an agent work until it is done; gives back the one that ended the work."""
    while True:
        reply = client.chat.completions.create(**agent.request(tools=TOOLS))
        if agent.observe(reply):
            continue  # the model asked for something of its past, or left a note: call again
        if not agent.calls:
            return agent
        if agent.handoff_due:
            agent = agent.handoff(note="files are read one by one")
        agent.answer({call.id: Path(call.arguments["path"]).read_text() for call in agent.calls})


with hotset.open() as memory, openai.OpenAI() as client:
    librarian = memory.agent("librarian", "books", model="gpt-5.5")
    librarian.add("Where is the kettle described?")
    print(work(librarian, client).reply.text)

    engineer = memory.agent(
        "engineer", "kettle", model="gpt-5.5", budget=12_000, metadata={"task": "K-1"}
    )
    engineer.add(" ".join(sys.argv[1:]) or "Read README.md and describe the kettle.")
    engineer = work(engineer, client)
    print(engineer.reply.text)
    if engineer.state is not None:
        print(f"handoff {engineer.state.index} of task {engineer.state.task_id}")
    print(f"{memory.savings().handoffs.handoffs} handoffs")
