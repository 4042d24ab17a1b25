"""A server that the tests start: speaks MCP with nothing but the standard library, and misbehaves
on demand.

`plain_server.py FOLDER [WAY...]`: writes its pid as a line of FOLDER/starts, then does as the ways
say.
"""

import json
import os
import sys
from pathlib import Path

FOLDER, *WAYS = sys.argv[1:]
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
HEARD = []


def tool(name, **more):
    return {"name": name, "description": f"the {name}", "inputSchema": {"type": "object"}, **more}


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def main():
    with Path(FOLDER, "starts").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    if "broken" in WAYS or ("moody" in WAYS and Path(FOLDER, "mood").read_text()):
        sys.exit(
            "Traceback: this server is broken, and its key is " + os.environ.get("KEY", "none")
        )
    if "mute" in WAYS:
        sys.stdin.read()
        return
    print("[INFO] a banner, where none belongs", flush=True)
    while line := sys.stdin.readline():
        hear(json.loads(line))


def hear(message):
    HEARD.append(message.get("method", "answer"))
    if "id" in message and "method" in message:
        try:
            result = answer(message["method"], message.get("params", {}), message["id"])
        except LookupError as error:
            say(
                {
                    "id": message["id"],
                    "error": {"code": int(error.args[0]), "message": error.args[1]},
                }
            )
        else:
            if result is not None:
                say({"id": message["id"], "result": result})


def answer(method, params, id):
    if "modern" in WAYS or "both" in WAYS:
        is_modern = f"{META}protocolVersion" in params.get("_meta", {})
        if method == "server/discover" and is_modern:
            return {
                "supportedVersions": [MODERN],
                "capabilities": {"tools": {}},
                "instructions": "modern words",
                "resultType": "complete",
            }
        if is_modern:
            result = served(method, params, id)
            return {"resultType": "complete", **result} if isinstance(result, dict) else result
        if "modern" in WAYS:
            raise LookupError(-32022, "unsupported protocol version")
    if method == "initialize":
        return initialized(params)
    if HEARD[0] != "initialize":
        sys.exit("the first message has to be initialize")
    return served(method, params, id)


def initialized(params):
    version = next((way for way in WAYS if way.startswith("20")), params["protocolVersion"])
    return {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "plain", "version": "1"},
        "instructions": "old words",
    }


def served(method, params, id):
    if method == "tools/list":
        return listed(params)
    if method == "tools/call":
        return called(params, id)
    raise LookupError(-32601, f"no {method} here")


def listed(params):
    if "no-tools" in WAYS:
        raise LookupError(-32601, "Method not found")
    at, tools = int(params.get("cursor", 0)), [tool(name) for name in CALLS]
    if "endless" in WAYS:
        return {"tools": [tool(f"tool-{at}")], "nextCursor": str(at + 1)}
    if "circle" in WAYS:
        return {"tools": [tool(f"tool-{at}")], "nextCursor": str((at + 1) % 3)}
    if "paged" in WAYS:
        return {"tools": tools[at : at + 2]} | (
            {"nextCursor": str(at + 2)} if at + 2 < len(tools) else {}
        )
    if "odd" in WAYS:
        odd = {**tool("titled"), "title": "A title", "annotations": {"readOnlyHint": True}}
        bare = {"name": "bare", "inputSchema": None, "annotations": None}
        return {
            "tools": [
                odd,
                bare,
                {"name": 5},
                "nonsense",
                {},
                tool("titled", description="again"),
                tool("a b.c"),
            ]
        }
    return {"tools": tools}


def called(params, id):
    name, arguments = params["name"], params.get("arguments", {})
    if name not in CALLS:
        raise LookupError(-32602, f"no tool {name}")
    return CALLS[name](arguments, params, id)


def count(*_):
    COUNTED.append(1)
    return text(str(len(COUNTED)))


def crash(*_):
    sys.stderr.write("it hurts: " + os.environ.get("KEY", "") + "\n")
    sys.stderr.flush()
    os._exit(3)


def later(arguments, params, id):
    """Comes with the second call, which brings what the first one gave."""
    if params.get("requestState") == "half":
        return text("done")
    return {"resultType": "input_required", "requestState": "half"}


def twice(arguments, params, id):
    say({"id": 10_000, "result": text("for nobody")})
    say({"method": "notifications/progress", "params": {"progressToken": id, "progress": 1}})
    say({"method": "notifications/tools/list_changed"})
    say({"id": id, "result": text("first")})
    return text("second")


def mangled(arguments, params, id):
    result = b'{"content":[{"type":"text","text":"\\ud83d \xff","x":NaN}]}'
    sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (id, result))
    sys.stdout.flush()


COUNTED = []
CALLS = {
    "echo": lambda arguments, *_: text(arguments["text"]),
    "count": count,
    "pid": lambda *_: text(str(os.getpid())),
    "env": lambda arguments, *_: text(os.environ.get(arguments["name"], "")),
    "heard": lambda *_: text(" ".join(HEARD)),
    "ask": lambda arguments, *_: text(json.dumps(asked(arguments["method"]))),
    "crash": crash,
    "hang": lambda *_: None,
    "wait": lambda arguments, *_: text(Path(arguments["fifo"]).read_text()),
    "later": later,
    "twice": twice,
    "strange": lambda arguments, *_: arguments["result"],
    "mangled": mangled,
    "huge": lambda arguments, *_: text("x" * arguments["size"]),
}


def asked(method):
    say({"id": "from-the-server", "method": method})
    while "id" not in (reply := json.loads(sys.stdin.readline())) or "method" in reply:
        pass
    return reply


main()
