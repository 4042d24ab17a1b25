"""A program keeps, brings back, pages and lists events, as a model can."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import hotset
from hotset.errors import BadInput, Malformed, NotFound
from tests.cli.conftest import NOW, Desk, desk_in, fill


@pytest.fixture
def shop(tmp_path) -> Desk:
    desk = desk_in(tmp_path)
    fill(desk.data)
    return desk


def opened(desk: Desk) -> hotset.Memory:
    return hotset.open(desk.project, data=desk.data)


@pytest.mark.row("V1")
def test_what_a_program_keeps_comes_back_byte_for_byte_and_is_found(shop: Desk):
    with opened(shop) as memory:
        id = memory.keep(
            "The upload fails because the token has expired.",
            agent="inspector",
            session="review",
            metadata={"ticket": "AB-12"},
        )
        raw = memory.keep(b"\x00\xff", kind="file", session="review", parent=id)
        assert memory.recall(raw) == b"\x00\xff"
        assert "expired" in memory.retrieve(id).text
        found = memory.search("why does the upload fail", kind="finding", agent="inspector")
        assert id in found.pages
        assert id not in memory.search("upload", agent="somebody else").pages
    page = shop.run("recall", id, "--json").json()
    assert page["page"]["kind"] == "finding"
    assert page["metadata"] == {"ticket": "AB-12"}


@pytest.mark.row("V1")
def test_a_page_without_a_known_kind_or_parent_is_refused(shop: Desk):
    with opened(shop) as memory:
        with pytest.raises(BadInput, match="no kind"):
            memory.keep("x", kind="nonsense")
        with pytest.raises(NotFound):
            memory.keep("x", parent="p000000000000000")


@pytest.mark.row("V6")
def test_a_program_pages_turns_and_brings_slices_back(shop: Desk):
    with opened(shop) as memory:
        turns = memory.turns(1, 2)
        assert "Fix the failing test" in turns.text
        part = memory.retrieve("toolu_1", lines="1500-1501")
        assert "01499 a line" in part.text
        assert "01600 a line" not in part.text
        with pytest.raises(Malformed):
            memory.retrieve()
        with pytest.raises(NotFound):
            memory.turns(1, 2, session="nobody")


@pytest.mark.row("V6")
@pytest.mark.row("V2")
def test_a_program_narrows_its_search_and_lists_what_was_asked(shop: Desk):
    fill(shop.data, "Fix the marmalade clock", NOW + 86_400, agent="codex")
    day = datetime.fromtimestamp(NOW, UTC) + timedelta(hours=12)
    with opened(shop) as memory:
        both = memory.search("marmalade clock", type="page", kind=["prompt", "response"])
        assert "marmalade" in both.text
        assert "marmalade" not in memory.search("clock", until=day, type="page").text
        assert "marmalade" in memory.search("clock", since=day, type="page").text
        assert "marmalade" not in memory.search("clock", turns="2-4", type="page").text
        with pytest.raises(BadInput):
            memory.search("clock", kind="python", agent="codex")
        memory.retrieve("toolu_1")
        events = memory.events(type="retrieval")
    assert [event.detail["tool"] for event in events] == ["memory.search"] * 4 + [
        "retrieve_context"
    ]
    assert events[0].detail["query"] == "marmalade clock"
    assert events[0].detail["ids"]


def test_the_same_can_be_awaited(shop: Desk):
    async def talk() -> tuple[str, int]:
        async with opened(shop) as memory:
            id = await memory.keep("a finding about bears")
            found = await memory.retrieve(id)
            await memory.turns(1, 1, session="last")
            return found.text, len(await memory.events(limit=5))

    text, many = asyncio.run(talk())
    assert "bears" in text
    assert many == 2
