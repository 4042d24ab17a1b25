"""`hotset memory` for whoever corrects: added, edited, confirmed, forgotten, rolled back,
consolidated, exchanged."""

from __future__ import annotations

import json
import stat
from contextlib import closing
from pathlib import Path

import pytest

from hotset.config import load
from hotset.nouns.memory import Trust
from hotset.runtime.reader import open_memories
from hotset.store.sqlite import SqliteStore
from tests.cli.conftest import Desk
from tests.cli.test_memory_command import PITFALL, TUESDAY, WEDNESDAY, add
from tests.cli.test_terminal import on_a_terminal


def shown(desk: Desk, id: str) -> dict[str, object]:
    found: dict[str, object] = desk.run("memory", "show", id, "--json").json()["memory"]
    return found


def by_an_agent(desk: Desk, text: str, kind: str, agent: str = "codex") -> str:
    """As a model asks for it."""
    config = load(project=str(desk.project), data=str(desk.data))
    with open_memories(config) as memories:
        return memories.remember(text, kind=kind, by="agent", trust=Trust.AGENT, agent=agent).id


def test_what_a_person_adds_is_theirs_and_said_twice_is_kept_once(desk: Desk):
    first = desk.run("memory", "add", TUESDAY, "--topic", "release", "--json").json()
    again = desk.run("memory", "add", TUESDAY)

    assert (first["memory"]["trust"], first["memory"]["standing"]) == ("person", "active")
    assert (first["memory"]["topics"], first["known"]) == (["release"], False)
    assert again.out.strip() == first["memory"]["id"]
    assert len(desk.run("memory", "list", "--json").json()) == 1


def test_text_comes_from_a_pipe_too_and_nothing_is_nothing(desk: Desk):
    piped = desk.run(
        "memory",
        "add",
        "--kind",
        "handoff",
        given=b"The parser is half done.\nNext: the printer.\n",
    )
    nothing = desk.run("memory", "add", given=b"  \n")

    assert shown(desk, piped.out.strip())["text"] == "The parser is half done.\nNext: the printer."
    assert nothing.code == 1


def test_parts_of_another_kind_are_refused(desk: Desk):
    assert desk.run("memory", "add", "x", "--step", "y").code == 2
    assert desk.run("memory", "add", "x", "--instead", "y", "--kind", "procedure").code == 2
    assert not (desk.data / "store.db").exists()


def test_an_edit_is_a_version_and_the_one_before_stays(desk: Desk):
    id = add(desk, TUESDAY)

    edited = desk.run(
        "memory",
        "edit",
        id,
        "--text",
        WEDNESDAY,
        "--title",
        "Releases",
        "--pin",
        "--confidence",
        "0.9",
    )
    same = desk.run("memory", "edit", id, "--text", WEDNESDAY)

    assert (edited.code, edited.out) == (0, f"{id}\n")
    assert "nothing changed" in same.err
    now = shown(desk, id)
    assert (now["text"], now["title"], now["pinned"], now["confidence"], now["version"]) == (
        WEDNESDAY,
        "Releases",
        True,
        0.9,
        2,
    )
    assert TUESDAY in desk.run("memory", "show", id, "--version", "1").out
    assert desk.run("memory", "show", id, "--version", "9").code == 1


def test_a_title_that_was_the_text_is_corrected_with_it_and_one_of_its_own_stays(desk: Desk):
    id = add(desk, TUESDAY)
    desk.run("memory", "edit", id, "--text", WEDNESDAY)
    assert desk.run("memory", "show", id, "--json").json()["memory"]["title"] == WEDNESDAY
    desk.run("memory", "edit", id, "--title", "Releases")
    desk.run("memory", "edit", id, "--text", TUESDAY)
    assert desk.run("memory", "show", id, "--json").json()["memory"]["title"] == "Releases"


def editor(desk: Desk, program: str) -> dict[str, str]:
    """An editor that is a line of shell."""
    path = desk.home / "editor"
    path.write_text(f'#!/bin/sh\n{program}\nsleep 0.01; touch -d "+5 seconds" "$1"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"EDITOR": str(path), "VISUAL": str(path)}


def test_without_a_field_a_memory_is_edited_in_the_person_s_editor(desk: Desk):
    id = add(desk, TUESDAY, "--title", "Release day")

    told = on_a_terminal(
        desk,
        "memory",
        "edit",
        id,
        *where(desk),
        env=editor(desk, 'sed -i s/Tuesdays/Thursdays/ "$1"'),
    )

    assert b"version 2" in told
    assert (shown(desk, id)["title"], shown(desk, id)["text"]) == (
        "Release day",
        TUESDAY.replace("Tuesdays", "Thursdays"),
    )


@pytest.mark.parametrize("program", ["true", ': > "$1"'])
def test_an_unchanged_or_emptied_file_changes_nothing(desk: Desk, program: str):
    id = add(desk, TUESDAY)

    told = on_a_terminal(desk, "memory", "edit", id, *where(desk), env=editor(desk, program))

    assert b"nothing changed" in told
    assert shown(desk, id)["version"] == 1


def where(desk: Desk) -> tuple[str, str]:
    return "--project", str(desk.project)


def test_an_edit_without_fields_and_without_a_person_is_refused(desk: Desk):
    ran = desk.run("memory", "edit", add(desk, TUESDAY))

    assert ran.code == 2
    assert "--text" in ran.err


def test_what_a_model_advises_waits_for_a_person_s_yes(desk: Desk):
    id = by_an_agent(desk, PITFALL, "pitfall")
    waiting = desk.run("memory", "list", "--standing", "candidate", "--json").json()

    confirmed = desk.run("memory", "confirm", id[:9])

    assert [each["id"] for each in waiting] == [id]
    assert (confirmed.code, confirmed.out) == (0, f"{id}\n")
    assert PITFALL in confirmed.err
    assert (shown(desk, id)["standing"], shown(desk, id)["trust"]) == ("active", "person")


def test_what_is_forgotten_is_found_by_nobody_and_can_be_restored(desk: Desk):
    id = add(desk, TUESDAY)

    forgot = desk.run("memory", "forget", id, "--why", "it was a joke")

    assert (forgot.code, forgot.out) == (0, f"{id}\n")
    assert f"memory restore {id}" in forgot.err
    assert desk.run("memory", "search", "releases").code == 1
    assert (
        desk.run("memory", "list").raw,
        id in desk.run("memory", "list", "--standing", "any").out,
    ) == (b"", True)
    assert id in desk.run("memory", "restore").out
    assert desk.run("memory", "restore", id).code == 0
    assert desk.run("memory", "search", "releases").code == 0
    assert desk.run("memory", "restore").raw == b""


def test_erasing_needs_a_yes_and_leaves_nothing_on_the_disk(desk: Desk):
    id = add(desk, "The cat is called Zanzibar")
    asked = desk.run("memory", "forget", id, "--erase")
    still = shown(desk, id)["standing"]

    erased = desk.run("memory", "forget", id, "--erase", "--yes")

    assert (asked.code, still) == (2, "active")
    assert "--yes" in asked.err
    assert erased.code == 0
    assert desk.run("memory", "show", id).code == 1
    assert desk.run("memory", "restore", id).code == 1
    with closing(SqliteStore.open(desk.data)):
        pass  # whatever is still in the log is in the file now
    assert [
        file for file in desk.data.rglob("*") if file.is_file() and b"Zanzibar" in file.read_bytes()
    ] == []


def test_a_rollback_shows_what_it_would_take_asks_and_can_be_restored(desk: Desk):
    mine = add(desk, TUESDAY)
    theirs = by_an_agent(desk, "The staging host is called heron", "fact", agent="codex")

    dry = desk.run("memory", "rollback", "--agent", "codex", "--dry-run", "--json").json()
    asked = desk.run("memory", "rollback", "--agent", "codex")
    taken = desk.run("memory", "rollback", "--agent", "codex", "--yes")

    assert ([each["id"] for each in dry["memories"]], dry["taken_back"]) == ([theirs], [])
    assert asked.code == 2
    assert theirs in asked.out
    assert taken.code == 0
    assert [each["id"] for each in desk.run("memory", "list", "--json").json()] == [mine]
    assert desk.run("memory", "rollback", "--agent", "codex", "--yes").code == 1
    assert desk.run("memory", "restore", theirs).code == 0
    assert len(desk.run("memory", "list", "--json").json()) == 2


def test_a_rollback_of_nothing_in_particular_is_refused(desk: Desk):
    add(desk, TUESDAY)

    assert desk.run("memory", "rollback", "--yes").code == 2
    assert desk.run("memory", "rollback", "--source", "nowhere", "--yes").code == 1


def test_consolidation_tells_what_it_did_and_can_be_undone(desk: Desk):
    same = "ploads are retried three times with a backoff of two seconds"
    for text in (f"U{same}", f"The u{same}", f"U{same}.".replace("times", "times,")):
        by_an_agent(desk, text, "learning")
    assert len(desk.run("memory", "list", "--json").json()) == 3

    done = desk.run("memory", "consolidate", "--json").json()
    merged = desk.run("memory", "list", "--standing", "merged", "--json").json()
    again = desk.run("memory", "consolidate")

    assert {"run", "clusters", "facts", "pitfalls", "merged", "links", "superseded"} <= set(done)
    assert (done["merged"], len(merged)) == (2, 2)
    assert (again.code, again.out) == (0, "nothing new\n")
    assert done["run"] in [each["run"] for each in desk.run("memory", "undo", "--json").json()]
    assert desk.run("memory", "undo", done["run"]).code == 0
    assert len(desk.run("memory", "list", "--json").json()) == 3
    assert desk.run("memory", "undo", "consolidate-never").code == 1


@pytest.mark.parametrize("form", ["markdown", "loki"])
def test_memories_go_through_files_to_another_store(desk: Desk, tmp_path: Path, form: str):
    add(desk, TUESDAY)
    add(desk, PITFALL, "--kind", "pitfall", "--instead", "use the monotonic clock")
    written = desk.run(
        "memory", "export", str(tmp_path / "files"), "--format", form, "--json"
    ).json()
    other = ("--data", str(tmp_path / "other"))

    taken = desk.run("memory", "import", str(tmp_path / "files"), "--json", *other)
    again = desk.run("memory", "import", str(tmp_path / "files"), *other)

    assert written["memories"] == 2
    assert taken.json()["memories"] == 2
    assert again.code == 1
    texts = json.dumps(desk.run("memory", "list", "--standing", "any", "--json", *other).json())
    assert TUESDAY in texts
    assert "monotonic" in texts
