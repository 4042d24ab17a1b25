"""Servers of tools, loaded and unloaded 2,000 times: what is left of them, and what a warm call
costs.

    make bench-soak_tools

Forty sources, of which five may run: every call loads one and unloads another, and one call in ten
ends its server in the middle. The memory, files, threads and processes of hotset are counted when
everything has been used for a while, and at the end. A warm call is compared with the same question
to the same server by a bare pipe, in turns.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from bench.results import quantile, tell
from hotset.errors import ToolFailed
from hotset.nouns.tool import OriginKind, Stdio, ToolOrigin
from hotset.nouns.tooling import Tooling
from hotset.sources.tools.running.server_pool import ServerPoolThread
from hotset.sources.tools.running.server_supervisor import descendants

LOADS, WARM_UP, SOURCES, LIMIT = 2000, 200, 40, 5
CALLS, CALLS_WARM_UP = 2000, 100

SERVER = """
import json, os, sys
for line in sys.stdin:
    said = json.loads(line)
    if said.get("method") == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "soak", "version": "1"}}
    elif said.get("method") == "tools/call":
        if said["params"]["name"] == "crash":
            os._exit(1)
        result = {"content": [{"type": "text", "text": "x"}]}
    else:
        continue
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": result}) + "\\n")
    sys.stdout.flush()
"""  # noqa: E501
COMMAND = (sys.executable, "-I", "-S", "-c", SERVER)


def main() -> None:
    tell("soak_tools", {"a warm call": warm_calls(), f"{LOADS} loads and unloads": soak()})


def warm_calls() -> dict[str, dict[str, float]]:
    pool = ServerPoolThread(Tooling(), project=Path.cwd())
    pipe = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    question = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "say", "arguments": {"text": "x"}},
    }
    ways = {
        "pipe": lambda: by_pipe(pipe, question),
        "hotset": lambda: pool.call(source(0), "say", {"text": "x"}),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for n in range(CALLS):
        for name, ask in ways.items() if n % 2 else reversed(ways.items()):
            start = time.perf_counter()
            ask()
            if n >= CALLS_WARM_UP:
                times[name].append((time.perf_counter() - start) * 1e3)
    pool.close()
    pipe.communicate()
    figures = {
        name: {"p50_ms": quantile(taken, 0.5), "p95_ms": quantile(taken, 0.95)}
        for name, taken in times.items()
    }
    figures["added"] = {
        name: figures["hotset"][name] - figures["pipe"][name] for name in figures["pipe"]
    }
    return figures


def by_pipe(pipe: subprocess.Popen[bytes], question: dict) -> dict:
    pipe.stdin.write(json.dumps(question).encode() + b"\n")
    pipe.stdin.flush()
    return json.loads(pipe.stdout.readline())


def soak() -> dict[str, dict[str, float]]:
    pool = ServerPoolThread(Tooling(limit=LIMIT), project=Path.cwd())
    sources = [source(number) for number in range(SOURCES)]
    starts: list[float] = []
    for n in range(LOADS):
        if n == WARM_UP:
            before = counted(pool)
        start = time.perf_counter()
        try:
            pool.call(sources[n % SOURCES], "crash" if n % 10 == 9 else "say", {})
        except ToolFailed:
            assert n % 10 == 9
        else:
            starts.append((time.perf_counter() - start) * 1e3)
    after = counted(pool)
    pool.close()
    return {
        "start and call": {"p50_ms": quantile(starts, 0.5), "p95_ms": quantile(starts, 0.95)},
        f"after {WARM_UP}": before,
        f"after {LOADS}": after,
        "closed": counted(pool),
    }


def counted(pool: ServerPoolThread) -> dict[str, float]:
    """When what was let go has gone."""
    gc.collect()
    deadline = time.monotonic() + 10
    while (
        len(descendants(os.getpid())) > 2 * len(pool.running()) + 1 and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    return {
        "servers": len(pool.running()),
        "processes": len(descendants(os.getpid())),
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "threads": threading.active_count(),
        "rss_mb": int(Path("/proc/self/statm").read_text().split()[1])
        * os.sysconf("SC_PAGE_SIZE")
        / 1e6,
    }


def source(number: int) -> ToolOrigin:
    return ToolOrigin(f"soak-{number}", OriginKind.SERVER, Stdio(COMMAND), stamp="1")


if __name__ == "__main__":
    main()
