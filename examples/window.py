"""An agent that holds its own window: the program sends, hotset says what."""

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

with hotset.open() as memory, openai.OpenAI() as client:
    window = memory.window(model="gpt-5.5", agent="engineer", budget=100_000, system="Be brief.")
    window.add(" ".join(sys.argv[1:]) or "What does README.md say?")
    while True:
        reply = client.chat.completions.create(**window.request(tools=TOOLS))
        if window.observe(reply):
            # the model asked for something that had left its window; it is answered: call again
            continue
        if not window.calls:
            break
        window.answer({call.id: Path(call.arguments["path"]).read_text() for call in window.calls})
    print(window.reply.text)
    saved = memory.savings().total
    print(f"{saved.turns} turns, {saved.measured.prompt:,} tokens sent")
