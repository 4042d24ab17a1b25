"""How tools live, as a person and an agent meet it: scores that fall with time, a registry that a
person edits, a capacity, deletion and restoring, and errors that an agent can mend."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Desk
from tests.clients.test_toolbox_clients import Ask, agent
from tests.waiting import wait_until

SERVER = Path(__file__).parent.parent / "runtime" / "notes_server.py"
BASE_LIFE = 9400.0
HOUR, DAY = 3600.0, 86_400.0
CODE = 'def {name}(text: str) -> str:\n    """Tidy a text up."""\n    return text + "{name}"\n'
SKILL = "---\nname: word-tools\ndescription: Counts words in a text.\n---\nUse count_words.\n"
SCRIPT = (
    'def count_words(text: str) -> int:\n    """Count words."""\n    return len(text.split())\n'
)


def edit_registry(desk: Desk, name: str, **fields: Any) -> None:
    """As a person does with an editor."""
    path = desk.data / "tools" / "registry.json"
    known = json.loads(path.read_bytes()) if path.exists() else {"format": 1, "tools": {}}
    known["tools"][name] = {**known["tools"].get(name, {}), **fields}
    # before the first sweep nothing is known of how long a tool has been inactive
    known.setdefault("swept", datetime.now(UTC).isoformat())
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(json.dumps(known))


def lives(desk: Desk) -> dict[str, Any]:
    status: dict[str, Any] = desk.run("tools", "status", "--json").json()["lives"]
    return status


def listed(desk: Desk) -> dict[str, Any]:
    return {each["name"]: each for each in desk.run("tools", "list", "--json").json()}


def registry(desk: Desk) -> dict[str, Any]:
    tools: dict[str, Any] = json.loads((desk.data / "tools/registry.json").read_bytes())["tools"]
    return tools


def events(desk: Desk, name: str) -> list[dict[str, Any]]:
    found = desk.run("events", "--type", "tool", "--json", "--limit", "1000").json()
    return [each["detail"] for each in found if each["name"] == name]


def may_create(desk: Desk, more: str = "") -> None:
    (desk.home / "config.toml").write_text(f"[tools]\ncreate = true\n{more}")


def with_agent(desk: Desk, act: Callable[[Ask], Awaitable[None]]) -> None:
    """An agent that starts `hotset mcp`, acts and ends."""

    async def spoken() -> None:
        async with agent(desk) as ask:
            await act(ask)

    asyncio.run(spoken())


async def create(ask: Ask, name: str) -> tuple[str, bool]:
    given = {"name": name, "code": CODE.format(name=name)}
    return await ask("use_tool", name="hotset__create_tool", arguments=given)


async def tidy(ask: Ask, name: str) -> tuple[str, bool]:
    return await ask("use_tool", name=f"created__{name}", arguments={"text": "a "})


@pytest.mark.row("D2", "D5")
def test_a_score_decays_with_the_time_that_the_registry_tells(desk: Desk):
    desk.run("tools", "add", "notes", "--", sys.executable, "-I", "-S", str(SERVER), str(desk.home))
    desk.run("tools", "use", "notes__add_note", "title=a", "text=b")
    assert listed(desk)["notes__add_note"]["score"] == pytest.approx(1.0, abs=0.02)
    (written,) = json.loads((desk.data / "tools" / "registry.json").read_bytes())["tools"].values()
    assert (written["status"], written["calls"]) == ("active", 1)

    used_at = time.time() - BASE_LIFE
    edit_registry(desk, "notes__add_note", born=used_at, last_used=used_at, calls=100)

    assert listed(desk)["notes__add_note"]["score"] == pytest.approx(math.exp(-1 / 2), abs=0.02)
    edit_registry(desk, "notes__add_note", pinned=True)
    assert lives(desk)["pinned"] == 1


@pytest.mark.row("D4", "D7")
@pytest.mark.slow
def test_of_sixty_tools_that_an_agent_creates_fifty_stay_and_a_restored_one_evicts_another(
    desk: Desk,
):
    may_create(desk)
    names = [f"tidy_{number:02}" for number in range(60)]

    async def act(ask: Ask) -> None:
        for name in names[:5]:
            assert "call it" in (await create(ask, name))[0]
            assert (await tidy(ask, name)) == (f"a {name}", False)
        assert (await create(ask, names[5]))[1] is False
        desk.run("tools", "pin", "created__tidy_05")
        made = [await create(ask, name) for name in names[6:]]
        assert "created__tidy_06 made room for it" in made[-10][0]
        assert "hotset__restore_tool" in made[-10][0]

        evicted, failed = await tidy(ask, "tidy_07")
        assert failed
        assert "hotset tools restore created__tidy_07" in evicted
        restored = {"name": "created__tidy_07"}
        await ask("use_tool", name="hotset__restore_tool", arguments=restored)
        assert (await tidy(ask, "tidy_07")) == ("a tidy_07", False)

    with_agent(desk, act)

    left = {name for name in listed(desk) if name.startswith("created__")}
    ready = {name for name in left if listed(desk)[name]["state"] == "ready"}
    gone = {f"created__tidy_{number:02}" for number in (6, *range(8, 17))}
    assert ready == {f"created__{name}" for name in names} - gone
    assert {path.stem for path in (desk.data / "tools/created").glob("*.py")} == {
        name.removeprefix("created__") for name in ready
    }
    deleted = events(desk, "ToolDeleted")
    assert {each["why"] for each in deleted} == {"capacity"}
    assert len(deleted) == 11
    assert [each["tool"] for each in events(desk, "ToolRestored")] == ["created__tidy_07"]
    status = desk.run("tools", "status")
    assert "50 of 50 that agents may create" in status.out
    assert "next to leave: created__tidy_17, score 1.00 (probation), when agents" in status.out
    assert "pinned: created__tidy_05" in status.out


@pytest.mark.row("D4")
def test_a_new_tool_evicts_the_inactive_one_with_the_least_time_left_and_never_a_pinned_one(
    desk: Desk,
):
    may_create(desk, "capacity = 3\nttl_seconds = 7200\n")
    now = time.time()

    async def fill(ask: Ask) -> None:
        for name in ("tidy_a", "tidy_b", "tidy_c"):
            await create(ask, name)

    async def one_more(ask: Ask) -> None:
        assert "created__tidy_c made room" in (await create(ask, "tidy_d"))[0]
        assert "created__tidy_b made room" in (await create(ask, "tidy_e"))[0]
        desk.run("tools", "pin", "created__tidy_d")
        desk.run("tools", "pin", "created__tidy_e")
        refused, failed = await create(ask, "tidy_f")
        assert failed
        assert "raise `capacity`" in refused

    with_agent(desk, fill)
    asleep = {"status": "inactive", "born": now - DAY}
    edit_registry(desk, "created__tidy_b", **asleep, inactive_since=now - 600)
    edit_registry(desk, "created__tidy_c", **asleep, inactive_since=now - HOUR)
    edit_registry(desk, "created__tidy_a", pinned=True)
    (first, *_) = lives(desk)["candidates"]
    assert (first["name"], first["ttl_left"]) == ("created__tidy_c", pytest.approx(HOUR, abs=100))
    text = desk.run("tools", "status").out
    assert "next to leave: created__tidy_c, inactive; in 60 min, or for the next tool" in text
    assert "  inactive: created__tidy_b, 2 h left" in text

    with_agent(desk, one_more)


@pytest.mark.row("D3", "D6")
@pytest.mark.slow
def test_an_unused_tool_falls_inactive_is_rescued_by_a_use_deleted_after_its_time_and_restored(
    desk: Desk,
):
    may_create(desk)
    name = "created__tidy"
    file = desk.data / "tools/created/tidy.py"

    async def made(ask: Ask) -> None:
        await create(ask, "tidy")
        await create(ask, "other")

    async def fell_asleep(_: Ask) -> None:
        wait_until(lambda: registry(desk)[name]["status"] == "inactive")

    async def rescued(ask: Ask) -> None:
        assert (await tidy(ask, "tidy")) == ("a tidy", False)
        wait_until(lambda: registry(desk)[name]["status"] == "active")

    async def expired(ask: Ask) -> None:
        wait_until(lambda: name not in registry(desk))
        answer, failed = await tidy(ask, "tidy")
        assert failed
        assert f"`hotset tools restore {name}`" in answer

    with_agent(desk, made)
    unused = {"born": time.time() - 7 * HOUR, "calls": 0}
    edit_registry(desk, name, **unused)
    with_agent(desk, fell_asleep)
    assert "inactive_since" in registry(desk)[name]
    assert [each["tool"] for each in events(desk, "ToolInactivated")] == [name]
    with_agent(desk, rescued)
    assert "inactive_since" not in registry(desk)[name]

    code = file.read_bytes()
    long_ago = {"status": "inactive", "inactive_since": time.time() - 25 * HOUR}
    edit_registry(desk, name, **long_ago, **unused, last_used=None)
    with_agent(desk, expired)
    assert not file.exists()
    assert {"tool": name, "why": "expired"} in events(desk, "ToolDeleted")
    assert name not in desk.run("tools", "graph").out

    desk.run("tools", "restore", name)
    assert file.read_bytes() == code
    assert "tidy" in desk.run("tools", "use", name, "text=a ").out


@pytest.mark.row("D3")
@pytest.mark.parametrize("days", [-3, 3], ids=["forward", "back"])
@pytest.mark.rest_slow
def test_a_clock_that_jumped_deletes_nothing_and_every_tool_has_its_time_again(
    desk: Desk, days: int
):
    may_create(desk)
    name = "created__tidy"
    now = time.time()

    async def made(ask: Ask) -> None:
        await create(ask, "tidy")

    async def swept(_: Ask) -> None:
        wait_until(lambda: abs(lives(desk)["inactive_tools"][0]["ttl_left"] - DAY) < HOUR)

    with_agent(desk, made)
    edit_registry(desk, name, status="inactive", born=now - 4 * DAY, inactive_since=now - 2 * DAY)
    path = desk.data / "tools/registry.json"
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps({**document, "swept": now + days * DAY}))
    with_agent(desk, swept)

    assert (desk.data / "tools/created/tidy.py").exists()


@pytest.mark.row("D1")
def test_the_list_has_calls_time_failures_last_use_and_state_of_each_tool(desk: Desk):
    desk.run("tools", "add", "notes", "--", sys.executable, "-I", "-S", str(SERVER), str(desk.home))
    desk.run("tools", "use", "notes__add_note", "title=a", "text=b")
    desk.run("tools", "use", "notes__crash")
    tools = listed(desk)

    used, crashed, unused = (tools[f"notes__{each}"] for each in ("add_note", "crash", "long_list"))
    assert (used["calls"], used["failures"], crashed["failures"]) == (1, 0, 1)
    assert used["seconds"] > 0
    assert used["last_used"] == pytest.approx(time.time(), abs=600)
    assert (used["tier"], used["status"], used["inactive_since"]) == ("hot", "active", None)
    assert (unused["calls"], unused["last_used"], unused["tier"]) == (0, None, "probation")
    assert lives(desk)["next_to_evict"] is None
    assert "next to leave" not in desk.run("tools", "status").out


@pytest.mark.row("D4")
def test_tools_of_sources_with_a_well_known_name_are_pinned_until_a_person_unpins_them(desk: Desk):
    desk.run("tools", "add", "git", "--", sys.executable, "-I", "-S", str(SERVER), str(desk.home))
    assert listed(desk)["git__add_note"]["tier"] == "protected"
    desk.run("tools", "use", "git__add_note", "title=a", "text=b")

    status = desk.run("tools", "status")
    assert "git__add_note" in status.out
    assert "by name: filesystem, terminal, writer, git, note_taker" in status.out
    assert events(desk, "ToolPinned") == [{"tool": "git__add_note", "why": "its name"}]
    assert registry(desk)["git__add_note"]["pinned"] is True

    desk.run("tools", "unpin", "git__add_note")
    desk.run("tools", "unpin", "git__read_note")
    desk.run("tools", "use", "git__add_note", "title=a", "text=b")
    tiers = {name: each["tier"] for name, each in listed(desk).items()}
    assert (tiers["git__add_note"], tiers["git__read_note"]) == ("hot", "probation")
    assert tiers["git__crash"] == "protected"


@pytest.mark.row("L6")
def test_an_error_in_a_skill_reaches_the_agent_with_file_and_line_and_a_mended_one_works_at_once(
    desk: Desk,
):
    folder = desk.home / ".agents/skills/word-tools"
    script = folder / "scripts/words.py"
    script.parent.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    script.write_text(SCRIPT)
    count = {"name": "word-tools__count_words", "arguments": {"text": "one two"}}

    async def act(ask: Ask) -> None:
        assert await ask("use_tool", **count) == ("2", False)

        script.write_text(SCRIPT.replace("split())", "split()"))
        answer, failed = await ask("use_tool", **count)
        assert failed
        assert f"{script}, line 3: '(' was never closed. Mend the file" in answer
        for query in ("count words in a text", "the word tools skill"):
            found, _ = await ask("find_tools", query=query)
            assert f"broken, mend the file: {script}, line 3" in found

        script.write_text(SCRIPT)
        (folder / "SKILL.md").write_text("---\nname: word-tools\ndescription: [x\n---\n")
        answer, failed = await ask("use_tool", **count)
        assert failed
        assert f"{folder / 'SKILL.md'}: line " in answer

        (folder / "SKILL.md").write_text(SKILL)
        script.write_text(SCRIPT.replace("len(", "10 * len("))
        assert await ask("use_tool", **count) == ("20", False)

    with_agent(desk, act)
