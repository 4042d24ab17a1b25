"""An agent with the anthropic SDK: one line gives it a memory. Everything else is as it was."""

import sys
from pathlib import Path

import anthropic

import hotset

TOOLS = [
    {
        "name": "read_file",
        "description": "The text of a file.",
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    }
]

client = hotset.wrap(anthropic.Anthropic())  # the one line
messages = [{"role": "user", "content": " ".join(sys.argv[1:]) or "What does README.md say?"}]
while True:
    with client.messages.stream(
        model="claude-sonnet-5", max_tokens=4000, messages=messages, tools=TOOLS
    ) as stream:
        for text in stream.text_stream:
            print(text, end="", flush=True)
        reply = stream.get_final_message()
    print()
    messages.append({"role": "assistant", "content": reply.content})
    calls = [block for block in reply.content if block.type == "tool_use"]
    if not calls:
        break
    results = [
        {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": Path(call.input["path"]).read_text(),
        }
        for call in calls
    ]
    messages.append({"role": "user", "content": results})
