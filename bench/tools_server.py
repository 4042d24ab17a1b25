"""A stdio server for `bench/tools.py`: its tools stand in FOLDER/tools.json, and each start is a
line in FOLDER/starts."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    folder = Path(sys.argv[-1])
    with (folder / "starts").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    tools = json.loads((folder / "tools.json").read_text())
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            print(
                json.dumps(
                    {"jsonrpc": "2.0", "id": message["id"], **_answer(message["method"], tools)}
                ),
                flush=True,
            )


def _answer(method: str, tools: list[Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "bench", "version": "1"}
            return {
                "result": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": info,
                }
            }
        case "tools/list":
            return {
                "result": {
                    "tools": tools,
                    "resultType": "complete",
                    "ttlMs": 0,
                    "cacheScope": "private",
                }
            }
        case "tools/call":
            return {
                "result": {"content": [{"type": "text", "text": "done"}], "resultType": "complete"}
            }
        case "ping":
            return {"result": {}}
        case _:
            return {"error": {"code": -32601, "message": "not here"}}


if __name__ == "__main__":
    main()
