"""FastMCP's side of `bench/tools.py`: runs in an environment of its own, takes one JSON object,
answers with one line of JSON.

{"do": "rank"}      what its BM25 index finds
{"do": "latency"}   its search transform over tools of its own process, by an in-memory client:
seconds a search and a call {"do": "starts"}    two searches, a call by `call_tool` and one by the
tool's own name, over a proxy for stdio servers
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.server import create_proxy
from fastmcp.server.transforms.search.base import _extract_searchable_text
from fastmcp.server.transforms.search.bm25 import BM25SearchTransform, _BM25Index
from fastmcp.tools.base import Tool, ToolResult


def main() -> None:
    asked = json.loads(sys.stdin.read())
    told = {"rank": rank, "latency": latency, "starts": starts}[asked["do"]](asked)
    print(json.dumps(told))


class Given(Tool):
    """A tool that says that it was called."""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult(content=f"called with {len(arguments)} arguments")


def rank(asked: Mapping[str, Any]) -> list[list[int]]:
    """Numbers of tools, best first."""
    index = _BM25Index()
    index.build([_extract_searchable_text(tool) for tool in _tools(asked["tools"])])
    return [index.query(question, asked["most"]) for question in asked["questions"]]


def latency(asked: Mapping[str, Any]) -> dict[str, list[float]]:
    return asyncio.run(_latency(asked))


async def _latency(asked: Mapping[str, Any]) -> dict[str, list[float]]:
    server = FastMCP("many")
    for tool in _tools(asked["tools"]):
        server.add_tool(tool)
    server.add_transform(BM25SearchTransform())
    searches, calls = [], []
    async with Client(server) as client:
        for name, question in zip(asked["names"], asked["questions"], strict=True):
            began = time.perf_counter()
            await client.call_tool("search_tools", {"query": question})
            searches.append(time.perf_counter() - began)
            began = time.perf_counter()
            await client.call_tool("call_tool", {"name": name, "arguments": {}})
            calls.append(time.perf_counter() - began)
    return {"search": searches, "call": calls}


def starts(asked: Mapping[str, Any]) -> list[str]:
    return asyncio.run(_starts(asked))


async def _starts(asked: Mapping[str, Any]) -> list[str]:
    gateway = FastMCP("gateway")
    gateway.mount(create_proxy({"mcpServers": asked["servers"]}))
    gateway.add_transform(BM25SearchTransform())
    async with Client(gateway) as client:
        for question in asked["questions"]:
            await client.call_tool("search_tools", {"query": question})
        first, second = asked["names"]
        told = [
            await client.call_tool("call_tool", {"name": first, "arguments": asked["arguments"]})
        ]
        told.append(await client.call_tool(second, asked["arguments"]))
    return [each.content[0].text for each in told]


def _tools(rows: Sequence[Sequence[str]]) -> list[Tool]:
    """As `bench/tools.py` writes them: name, description, schema."""
    return [
        Given(name=name, description=told, parameters=json.loads(schema))
        for name, told, schema in rows
    ]


if __name__ == "__main__":
    main()
