"""A server that the tests start, with nothing but the standard library: `notes_server.py FOLDER`.

Every start is a line in FOLDER/starts. What it says of its tools stands in FOLDER/tools.json, where
a test can change it; it says nothing of them while there is a FOLDER/hold, and tells with the next
answer that they changed when there is a FOLDER/news. A FOLDER/broken ends it at once.
Every call of read_file, look_up or write_file is a line in FOLDER/calls.
"""

import json
import os
import sys
import time
from pathlib import Path

FOLDER = Path(sys.argv[-1])
TEXT = {"type": "string"}
TOOLS = [
    {
        "name": "add_note",
        "description": "Write a note and keep it under its title.",
        "inputSchema": {
            "type": "object",
            "properties": {"title": TEXT, "text": TEXT},
            "required": ["title", "text"],
        },
    },
    {
        "name": "read_note",
        "description": "Read a note by its title.",
        "inputSchema": {"type": "object", "properties": {"title": TEXT}, "required": ["title"]},
    },
    {
        "name": "long_list",
        "description": "Print all numbers up to a limit, one in a line.",
        "inputSchema": {
            "type": "object",
            "properties": {"limit": {"type": "integer"}},
            "required": ["limit"],
        },
    },
    {
        "name": "crash",
        "description": "End the process at once, without an answer.",
        "inputSchema": {"type": "object"},
    },
]
NOTES = {}


def main():
    with (FOLDER / "starts").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    if (FOLDER / "broken").exists():
        sys.exit("out of order")
    for line in sys.stdin:
        message = json.loads(line)
        if (FOLDER / "news").exists():
            (FOLDER / "news").unlink()
            print(
                json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
                flush=True,
            )
        if "id" in message:
            print(
                json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}), flush=True
            )


def answer(message):
    match message["method"]:
        case "initialize":
            info = {"name": "notes", "version": "1"}
            return {
                "result": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": info,
                }
            }
        case "tools/list":
            while (FOLDER / "hold").exists():
                time.sleep(0.01)
            told = FOLDER / "tools.json"
            return {"result": {"tools": json.loads(told.read_text()) if told.exists() else TOOLS}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": called(message["params"])}]}}
        case _:
            return {"error": {"code": -32601, "message": "not here"}}


def called(params):
    given = params.get("arguments", {})
    match params["name"]:
        case "add_note":
            NOTES[given["title"]] = given["text"]
            return f"kept {given['title']}"
        case "read_note" | "read_aloud":
            return NOTES.get(given["title"], "there is no such note")
        case "read_file" | "look_up" | "write_file":
            with (FOLDER / "calls").open("a") as calls:
                calls.write(f"{params['name']}\n")
            if params["name"] == "write_file":
                Path(given["path"]).write_text(given["text"])
            return Path(given["path"]).read_text() if "path" in given else f"found {given['word']}"
        case "long_list":
            return "\n".join(f"number {each}" for each in range(given["limit"]))
        case _:
            os._exit(3)


if __name__ == "__main__":
    main()
