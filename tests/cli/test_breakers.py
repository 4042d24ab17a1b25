"""Backends that fail again and again rest, the others serve, and `hotset status` names them."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession
from mcp.client._probe import negotiate_auto
from mcp.client.streamable_http import streamable_http_client

from hotset.testing import HashingEmbedder
from tests.cli.conftest import Desk
from tests.embedders import endpoint
from tests.waiting import wait_until

SERVER = Path(__file__).parent.parent / "runtime" / "notes_server.py"
SIZE = 256
FILES = {
    "heron.md": "a heron by the lake",
    "clock.md": "the clock on the tower strikes twelve times at noon",
    "lake.md": "the lake is deep and cold today",
}


def ask(ready: dict[str, Any], tool: str, *given: dict[str, Any]) -> list[str]:
    """What calls of a tool are answered over MCP, at a running proxy."""
    root = ready["openai_base_url"].removesuffix("/v1")

    async def spoken() -> list[str]:
        async with (
            streamable_http_client(f"{root}/mcp") as streams,
            ClientSession(*streams[:2]) as session,
        ):
            await negotiate_auto(session)
            answers = [await session.call_tool(tool, each) for each in given]
            return [answer.content[0].text for answer in answers]  # type: ignore[union-attr]

    return asyncio.run(spoken())


@pytest.fixture
def switch(desk: Desk) -> Iterator[dict[str, bool]]:
    """Whether the endpoint of the embedder works, for a project that was indexed while it did."""
    embedder, works = HashingEmbedder(SIZE), {"works": True}

    def answer(_: str, texts: list[str]) -> tuple[int, object]:
        rows = embedder.embed(texts).tolist()
        data = [{"index": at, "embedding": row} for at, row in enumerate(rows)]
        return (200, data) if works["works"] else (500, {})

    for name, text in FILES.items():
        (desk.project / name).write_text(text)
    with endpoint(answer) as (url, _):
        (desk.home / "config.toml").write_text(
            f"""[search]
embedding_url = "{url}"
embedding_model = "m"
embedding_size = {SIZE}
"""
        )
        assert desk.run("index", "--yes").code == 0
        yield works


@pytest.mark.row("V11")
@pytest.mark.slow
def test_an_embedder_that_fails_rests_while_words_find_and_serves_again_when_it_works(
    desk: Desk, switch: dict[str, bool]
):
    def troubles() -> str:
        return desk.run("status").out

    def search(*queries: str) -> list[str]:
        return ask(ready, "search_code", *({"query": query} for query in queries))

    with desk.serving() as ready:
        wait_until(lambda: "heron.md" in search("a heron by the lake")[0])
        switch["works"] = False
        found = search(*(f"heron by the lake {number}" for number in range(5)))
        assert all("heron.md" in each for each in found)
        assert "the index: meaning is left out for now: it failed again and again" in troubles()

        switch["works"] = True
        numbers = iter(range(100, 1_000_000))
        wait_until(lambda: search(f"heron {next(numbers)}") and "left out" not in troubles())


@pytest.mark.row("V11")
@pytest.mark.slow
def test_what_meaning_finds_alone_must_be_closer_than_what_both_find(
    desk: Desk, switch: dict[str, bool]
):
    def found(query: str) -> list[str]:
        hits = desk.run("search", query, "--type", "code", "--json").json()
        return [each["path"] for each in hits]

    faint, close = "the lake was frozen over all winter long", FILES["lake.md"]
    assert "lake.md" in found(faint)
    for folder in (desk.data / "index").rglob("words"):
        shutil.rmtree(folder)

    assert found(faint) == []
    assert found(close) == ["lake.md"]


@pytest.mark.row("V11")
@pytest.mark.slow
def test_a_server_that_does_not_start_rests_the_others_serve_and_the_status_names_it(desk: Desk):
    for name in ("flaky", "sound"):
        (desk.home / name).mkdir()
        command = (sys.executable, "-I", "-S", str(SERVER), str(desk.home / name))
        desk.run("tools", "add", name, "--", *command)
    (desk.home / "flaky" / "broken").touch()
    note = {"title": "a", "text": "b"}

    with desk.serving() as ready:
        call = {"name": "flaky__add_note", "arguments": note}
        failed = ask(ready, "use_tool", *[call] * 4)
        assert "failed to start several times" in failed[-1]
        assert ask(ready, "use_tool", {**call, "name": "sound__add_note"}) == ["kept a"]
        status = desk.run("status")
        assert "the tools of flaky rest after several failures" in status.out
        assert list(desk.run("status", "--json").json()["proxy"]["resting"]) == ["flaky"]
