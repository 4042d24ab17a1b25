"""Tools that only read, called twice through `hotset mcp`: the server counts what reaches it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession
from mcp.client._probe import negotiate_auto
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.cli.conftest import Desk
from tests.waiting import lives, wait_until

SERVER = Path(__file__).parent.parent / "runtime" / "notes_server.py"
ON = "[tools]\nanswer_from_store = true\nanswer_seconds = 600\n"
MARK = "[hotset: same call as"
TEXT = {"type": "string"}
HINTS = {"readOnlyHint": True, "idempotentHint": True}
Use = Callable[..., Awaitable[str]]


def tool(name: str, annotations: dict[str, bool], *parameters: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict.fromkeys(parameters, TEXT)}
    return {
        "name": name,
        "description": f"{name}, as it says.",
        "inputSchema": schema,
        "annotations": annotations,
    }


TOOLS = [
    tool("read_file", HINTS, "path"),
    tool("look_up", HINTS, "word"),
    tool("write_file", {}, "path", "text"),
]


def with_files(desk: Desk, act: Callable[[Use], Awaitable[None]]) -> list[str]:
    """What reached the server while an agent acted."""
    (desk.home / "tools.json").write_text(json.dumps(TOOLS))
    desk.run("tools", "add", "files", "--", sys.executable, "-I", "-S", str(SERVER), str(desk.home))

    async def spoken() -> None:
        command, *arguments = desk.command("mcp")
        server = StdioServerParameters(
            command=command, args=arguments, cwd=desk.project, env=desk.environ()
        )
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await negotiate_auto(session)

            async def use(name: str, **arguments: Any) -> str:
                given = {"name": f"files__{name}", "arguments": arguments}
                answer = await session.call_tool("use_tool", given)
                return "\n".join(block.text for block in answer.content)  # type: ignore[union-attr]

            await act(use)

    asyncio.run(spoken())
    return (desk.home / "calls").read_text().split()


@pytest.mark.row("C2")
def test_a_file_that_is_unchanged_is_read_once_and_again_when_it_changed_or_on_demand(desk: Desk):
    (desk.home / "config.toml").write_text(ON)
    file = desk.project / "a.txt"
    file.write_text("one")

    async def act(use: Use) -> None:
        assert await use("read_file", path="a.txt") == "one"
        again = await use("read_file", path="a.txt")
        assert again.startswith(MARK)
        assert again.endswith("unchanged; not run again. Repeat it to run it]\none")
        assert await use("read_file", path="a.txt") == "one"  # it insists
        file.write_text("two")
        assert await use("read_file", path="a.txt") == "two"
        assert (await use("read_file", path="a.txt")).startswith(MARK)

    assert with_files(desk, act) == ["read_file"] * 3
    used = desk.run("events", "--type", "tool", "--json").json()
    assert [each["detail"].get("stored", 0) for each in used] == [0, 1, 0, 0, 1]


@pytest.mark.row("C2")
def test_a_write_and_a_new_process_of_the_server_outdate_what_it_answered(desk: Desk):
    (desk.home / "config.toml").write_text(ON)

    async def act(use: Use) -> None:
        assert await use("look_up", word="x") == "found x"
        assert (await use("look_up", word="x")).startswith(MARK)
        await use("write_file", path="b.txt", text="two")
        assert await use("look_up", word="x") == "found x"
        assert (await use("look_up", word="x")).startswith(MARK)
        await use("look_up", word="y")
        pid = int((desk.home / "starts").read_text().split()[-1])
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not lives(pid))
        assert MARK not in await use("look_up", word="x")

    assert with_files(desk, act) == ["look_up", "write_file", *["look_up"] * 3]


@pytest.mark.row("C2")
def test_every_call_is_run_unless_a_person_switched_it_on(desk: Desk):
    async def act(use: Use) -> None:
        for _ in range(3):
            assert await use("look_up", word="x") == "found x"

    assert with_files(desk, act) == ["look_up"] * 3
