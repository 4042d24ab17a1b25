"""`hotset memory` for whoever looks: what is remembered, found, told and drawn."""

from __future__ import annotations

import json
import time
from contextlib import closing

import pytest

from hotset.config import load
from hotset.runtime.reader import open_memories
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.cli.tree import MEMORY, memory
from tests.cli.conftest import Desk, Ran, desk_in, fill
from tests.cli.test_bad_questions import EMPTY, LONG, SQL, STRANGE, is_answered
from tests.cli.test_terminal import on_a_terminal

COMMANDS = {name: entry for part in MEMORY.values() for name, entry in part.items()}
TUESDAY = "Releases of the shop are cut on Tuesdays"
WEDNESDAY = "Releases of the shop are cut on Wednesdays"
PITFALL = "The upload test is flaky when the clock jumps"


def add(desk: Desk, *arguments: str) -> str:
    """The id of what is remembered."""
    ran = desk.run("memory", "add", *arguments)
    assert ran.code == 0, ran.err
    return ran.out.strip()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk at which a session was kept and three things were added. No test changes it."""
    desk = desk_in(tmp_path_factory.mktemp("shop"))
    fill(desk.data, "Fix the failing upload test", time.time() - 3 * 86400)
    add(desk, TUESDAY, "--topic", "release")
    add(
        desk,
        PITFALL,
        "--kind",
        "pitfall",
        "--why",
        "it compares wall clocks",
        "--instead",
        "use the monotonic clock",
    )
    add(
        desk,
        "Cut a release",
        "--kind",
        "procedure",
        "--step",
        "make check",
        "--step",
        "make tag",
        "--topic",
        "release",
    )
    assert desk.run("memory", "list").code == 0
    return desk


def test_a_session_becomes_an_episode_when_somebody_looks(filled: Desk):
    before = filled.run("memory", "list", "--no-encode")
    after = filled.run("memory", "list", "--kind", "episode", "--json")

    assert (before.code, before.raw) == (0, b"")
    assert after.code == 0
    assert "Fix the failing test" in after.json()[-1]["text"]
    assert after.json()[-1]["source"]["by"] == "rules"
    assert filled.run("memory", "list", "--no-encode").code == 0


def test_a_list_is_newest_first_and_narrowed_by_kind_topic_time_and_number(shop: Desk):
    every = shop.run("memory", "list", "--json").json()

    assert [each["created"] for each in every] == sorted(
        (each["created"] for each in every), reverse=True
    )
    assert {each["kind"] for each in every} >= {"episode", "fact", "pitfall", "procedure"}
    assert kinds(shop.run("memory", "list", "--kind", "pitfall", "--json")) == {"pitfall"}
    assert kinds(shop.run("memory", "list", "--topic", "release", "--json")) == {
        "fact",
        "procedure",
    }
    assert len(shop.run("memory", "list", "--limit", "1", "--json").json()) == 1
    assert "episode" not in kinds(shop.run("memory", "list", "--since", "1d", "--json"))
    assert "episode" not in kinds(shop.run("memory", "list", "--since", "today", "--json"))
    assert kinds(shop.run("memory", "list", "--until", "2 days ago", "--json")) == {"episode"}
    assert "and more" in shop.run("memory", "list", "--limit", "1").err


@pytest.mark.row("M6")
def test_a_memory_of_two_years_ago_is_found_and_shown_whole(desk: Desk):
    fill(desk.data, "Fix the failing upload test", time.time() - 700 * 86400)
    fill(desk.data, "Draw the new logo", time.time() - 86400)

    (found,) = desk.run(
        "memory", "search", "failing upload test", "--kind", "episode", "-n", "1", "--json"
    ).json()
    shown = desk.run("memory", "show", found["id"], "--json").json()["memory"]

    assert shown["created"] < time.time() - 600 * 86400
    assert "Fix the failing upload test" in shown["text"]


def kinds(ran: Ran) -> set[str]:
    return {each["kind"] for each in ran.json()}


def test_a_time_that_nobody_understands_is_told_how_to_be_said(shop: Desk):
    ran = shop.run("memory", "list", "--since", "when the cows come home")

    assert ran.code == 2
    assert '"last week"' in ran.err


@pytest.mark.parametrize(
    "command",
    [("list",), ("search", "release"), ("timeline",), ("graph",), ("economics",), ("undo",)],
)
def test_what_is_told_fits_a_narrow_screen(shop: Desk, command: tuple[str, ...]):
    ran = shop.run("memory", *command, env={"COLUMNS": "80"})

    assert [
        line for line in ran.out.splitlines() if len(line) > 80 and command != ("timeline",)
    ] == []


def test_one_memory_is_shown_by_the_beginning_of_its_id(shop: Desk):
    (pitfall,) = shop.run("memory", "list", "--kind", "pitfall", "--json").json()

    told = shop.run("memory", "show", pitfall["id"][:8])
    as_json = shop.run("memory", "show", pitfall["id"], "--json").json()

    assert told.code == 0
    assert pitfall["id"] in told.out
    assert "use the monotonic clock" in told.out
    assert "by person" in told.out
    assert set(as_json) == {"memory", "versions", "links", "uses", "layer"}
    assert as_json["memory"]["detail"]["instead"] == "use the monotonic clock"
    assert as_json["memory"]["standing"] == "active"


def test_an_id_that_is_none_or_means_several_is_told(desk: Desk):
    ids = [add(desk, TUESDAY), add(desk, "The staging host is called heron")]
    unknown, several = desk.run("memory", "show", "sem-nothing"), desk.run("memory", "show", "sem-")

    assert unknown.code == 1
    assert "sem-nothing" in unknown.err
    assert several.code == 2
    assert all(id in several.err for id in ids)


def test_a_search_says_why_each_memory_was_chosen(shop: Desk):
    told = shop.run("memory", "search", "when", "are", "releases", "cut")
    found = shop.run("memory", "search", "when are releases cut", "--json").json()

    assert told.code == 0
    assert TUESDAY in told.out
    assert "because " in told.out
    assert TUESDAY in [each["text"] for each in found]
    assert all(each["why"] and each["score"] > 0 for each in found)
    assert set(found[0]) == {
        "id", "kind", "title", "text", "time", "score", "why", "signals", "standing", "page", "speaker",  # noqa: E501
    }  # fmt: skip


def test_a_search_is_narrowed_by_kind_and_number_and_may_find_nothing(shop: Desk):
    assert kinds(shop.run("memory", "search", "release", "--kind", "procedure", "--json")) == {
        "procedure"
    }
    assert len(shop.run("memory", "search", "release", "-n", "1", "--json").json()) == 1
    nothing = shop.run("memory", "search", "zebra", "crossings", "--kind", "handoff")
    assert (nothing.code, nothing.raw) == (1, b"")
    assert "memory list" in nothing.err


def test_a_timeline_is_what_an_agent_is_told(shop: Desk):
    told, as_json = shop.run("memory", "timeline"), shop.run("memory", "timeline", "--json").json()

    assert told.code == 0
    assert "upload test" in told.out
    assert "not instructions" in told.out
    assert as_json["tokens"] <= 500
    assert as_json["text"].strip() == told.out.strip()


@pytest.mark.row("M4")
def test_economics_tell_what_each_session_cost_and_saved(shop: Desk):
    name = "the first"  # no beginning of a session's own id
    config = load(project=str(shop.project), data=str(shop.data))
    with open_memories(config) as memories:
        memories.index(session=name)
        memories.timeline(session=name)
        memories.recall("when are releases cut", session=name)
    found = shop.run("memory", "economics", "--session", name, "--json").json()
    told = shop.run("memory", "economics", "--session", name).out

    (one,) = found
    assert (one["session"], one["index_loads"], one["timeline_loads"], one["full_loads"]) == (
        name,
        1,
        1,
        1,
    )
    assert one["ratio"] == one["discovery_tokens"] / one["read_tokens"]
    assert one["saved"] == one["available"] - one["discovery_tokens"] - one["read_tokens"]
    assert [each["metric"] for each in one["breaches"]][:1] == ["ratio"]
    assert name in told
    assert f"Index and timeline took {one['ratio']:.0%} of what memories took" in told
    assert "saved" in told.splitlines()[0] or "more than that were spent" in told.splitlines()[0]
    assert name in shop.run("memory", "economics").out
    assert shop.run("memory", "export", str(shop.home / "files"), "--format", "loki").code == 0
    written = json.loads((shop.home / "files" / "token_economics.json").read_text())
    assert (written["session_id"], written["ratio"]) == (name, one["ratio"])
    assert written["metrics"]["read_tokens"] == one["read_tokens"]


def test_why_tells_where_a_memory_comes_from(shop: Desk):
    (episode,) = shop.run("memory", "list", "--kind", "episode", "--limit", "1", "--json").json()

    told, as_json = (
        shop.run("memory", "why", episode["id"]),
        shop.run("memory", "why", episode["id"], "--json").json(),
    )

    assert told.code == 0
    assert told.out.count("\n- ") >= 1
    assert episode["source"]["session"] in " ".join(as_json["why"])


def test_looking_at_a_project_of_which_nothing_is_kept_makes_no_store(desk: Desk):
    for command in (
        ("show", "sem-1"),
        ("why", "sem-1"),
        ("graph", "sem-1"),
        ("undo", "a-run"),
        ("restore", "sem-1"),
    ):
        ran = desk.run("memory", *command)
        assert ran.code == 1
        assert "nothing is remembered yet" in ran.err
    assert not (desk.data / "store.db").exists()


def test_what_an_agent_read_cannot_steer_the_terminal(desk: Desk):
    id = add(desk, "red \x1b[31mletters\x07 and more")

    for command in (("list",), ("show", id), ("search", "letters"), ("why", id), ("timeline",)):
        assert b"\x1b" not in desk.run("memory", *command).raw
        assert b"\x07" not in desk.run("memory", *command).raw


@pytest.mark.slow
def test_a_terminal_gets_colour_and_with_quiet_no_bar(filled: Desk):
    where = ("--project", str(filled.project))

    assert b"\x1b[1m" in on_a_terminal(filled, "memory", "list", *where)
    assert b"remember sessions" not in on_a_terminal(filled, "memory", "list", "--quiet", *where)


def test_memory_that_is_switched_off_says_how_to_switch_it_on(shop: Desk):
    off = {"HOTSET_MEMORY": "0"}
    for command in (("search", "releases"), ("add", "Something new."), ("timeline",)):
        ran = shop.run("memory", *command, env=off)
        assert ran.code == 2
        assert "HOTSET_MEMORY" in ran.err
    assert (
        shop.run("memory", "list", "--no-encode", env=off).code == 0
    )  # what is there can be looked at and taken back


@pytest.mark.slow
def test_every_question_is_answered_however_it_was_meant(desk: Desk):
    id = add(desk, TUESDAY)
    asked = [
        command
        for each in (SQL[0], EMPTY[1], STRANGE[0], STRANGE[3], LONG[0])
        for command in (
            ("search", "--", each),
            ("timeline", "--", each),
            ("show", "--", each),
            ("graph", "--", each),
            ("forget", "--", each),
            ("list", f"--topic={each}", f"--since={each}"),
            ("economics", f"--session={each}"),
            ("rollback", f"--source={each}", "--yes"),
            ("add", "--kind", "learning", "--", each),
        )
    ]

    assert [command[:3] for command in asked if not is_answered(desk.run("memory", *command))] == []
    assert desk.run("memory", "show", id).code == 0
    assert desk.run("verify").code == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_examples_and_a_short_line(name: str):
    command = memory.get_command(None, name)  # type: ignore[arg-type]

    assert command is not None
    assert command.epilog is not None
    assert f"hotset memory {name}" in command.epilog
    assert len(COMMANDS[name].short) <= 60


def test_every_session_is_looked_at_once(filled: Desk):
    filled.run("memory", "list")
    with closing(SqliteStore.open(filled.data)) as store:
        before = len(store.memories_after(0, 1000))
    filled.run("memory", "list")
    with closing(SqliteStore.open(filled.data)) as store:
        assert len(store.memories_after(0, 1000)) == before > 0
