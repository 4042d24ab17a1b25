"""`hotset tools` as a person uses it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Desk
from tests.runtime.notes_server import TOOLS

SERVER = Path(__file__).parent.parent / "runtime" / "notes_server.py"


@pytest.fixture
def notes(desk: Desk) -> Desk:
    """A desk with one server."""
    added = desk.run(
        "tools", "add", "notes", "--", sys.executable, "-I", "-S", str(SERVER), str(desk.home)
    )
    assert added.code == 0, added.err
    assert "4 tools can be found now" in added.err
    return desk


@pytest.mark.row("L2")
def test_a_server_is_added_its_tools_are_listed_found_and_used(notes: Desk):
    listed = notes.run("tools", "list", "--json").json()
    found = notes.run("tools", "find", "write", "something", "down", "--json").json()
    used = notes.run("tools", "use", "notes__add_note", "title=a", "text=some words")

    assert [(tool["name"], tool["state"], tool["tier"]) for tool in listed][:2] == [
        ("notes__add_note", "ready", "probation"),
        ("notes__read_note", "ready", "probation"),
    ]
    assert found[0]["name"] == "notes__add_note"
    assert found[0]["parameters"]["required"] == ["title", "text"]
    assert (used.code, used.out) == (0, "kept a\n")
    assert "notes__add_note" in notes.run("tools", "find", "write something down").out
    assert notes.run("tools", "list", "--json").json()[0]["calls"] == 1


def test_a_name_of_a_tool_or_a_source_that_was_mistyped_is_guessed(notes: Desk):
    for command in ("use", "pin", "approve"):
        ran = notes.run("tools", command, "notes__read_nte")
        assert (ran.code, ran.raw) == (1, b"")
        assert "did you mean notes__read_note" in ran.err
    listed = notes.run("tools", "list", "--source", "ntes", "--json")
    assert (listed.code, listed.json()) == (0, [])
    assert "did you mean notes?" in listed.err


def test_arguments_may_be_json_and_wrong_ones_are_answered_with_what_is_right(notes: Desk):
    assert (
        notes.run("tools", "use", "notes__read_note", '{"title": "a"}').out
        == "there is no such note\n"
    )
    wrong = notes.run("tools", "use", "notes__read_note", "titel=a")
    assert wrong.code == 1
    assert "title" in wrong.out
    assert notes.run("tools", "use", "notes__read_note", "title").code == 2
    assert notes.run("tools", "use", "notes__no_such").code == 1


def test_status_tells_what_there_is_and_that_nothing_runs(notes: Desk):
    notes.run("tools", "use", "notes__read_note", "title=a")
    told = notes.run("tools", "status")
    as_json = notes.run("tools", "status", "--json").json()

    assert told.out.startswith("4 tools of 1 source: 4 ready\nnothing runs\n")
    assert (as_json["tools"], as_json["running"], as_json["waiting"]) == (4, [], [])
    assert as_json["lives"]["active"] == 1


def test_what_changed_waits_for_approval_and_is_shown_as_a_difference(notes: Desk):
    notes.run("tools", "use", "notes__read_note", "title=a")
    other = [
        {**tool, "description": tool["description"].replace("note", "secret")} for tool in TOOLS
    ]
    (notes.home / "tools.json").write_text(json.dumps(other))

    refused = notes.run("tools", "use", "notes__read_note", "title=a")
    waiting = notes.run("tools", "status", "--json").json()["waiting"]
    approved = notes.run("tools", "approve", "notes__read_note", "--yes")

    assert refused.code == 1
    assert "approve" in refused.err
    assert "notes__read_note" in [each["name"] for each in waiting]
    assert "-  Read a note by its title." in approved.out
    assert approved.code == 0
    assert notes.run("tools", "use", "notes__read_note", "title=a").code == 0
    assert notes.run("tools", "approve", "notes__read_note", "--yes").code == 1


def test_approval_needs_a_person_or_a_flag(notes: Desk):
    (notes.home / "tools.json").write_text(
        json.dumps([{**tool, "description": "Another."} for tool in TOOLS])
    )
    notes.run("tools", "use", "notes__read_note", "title=a")
    asked = notes.run("tools", "approve", "notes__read_note")

    assert asked.code == 2
    assert "--yes" in asked.err


def test_tools_are_denied_allowed_pinned_and_unpinned(notes: Desk):
    assert notes.run("tools", "deny", "notes__add_note").code == 0
    assert notes.run("tools", "use", "notes__add_note", "title=a", "text=b").code == 1
    assert notes.run("tools", "allow", "notes__add_note").code == 0
    assert notes.run("tools", "use", "notes__add_note", "title=a", "text=b").code == 0
    assert notes.run("tools", "pin", "add_note").code == 0
    assert notes.run("tools", "list", "--json").json()[0]["tier"] == "protected"
    assert notes.run("tools", "unpin", "notes__add_note").code == 0
    assert notes.run("tools", "unpin", "notes__long_list").code == 1


def test_servers_of_other_programs_are_imported_and_removed(desk: Desk):
    entry = {"command": sys.executable, "args": ["-I", "-S", str(SERVER), str(desk.home)]}
    (desk.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"notes": entry}}))

    assert desk.run("tools", "import").code == 2  # there is no terminal to ask in
    imported = desk.run("tools", "import", "--yes")
    again = desk.run("tools", "import", "--yes")

    assert (imported.code, imported.out) == (0, "notes\n")
    assert "stays as it is" in again.err
    assert (
        desk.data / "tools" / "servers.json"
    ).exists()  # a project's servers are for the project
    assert desk.run("tools", "find", "read a note").code == 0
    assert desk.run("tools", "remove", "notes").code == 0
    assert desk.run("tools", "remove", "notes").code == 1
    assert (desk.run("tools", "list").raw, desk.run("tools", "list", "--json").json()) == (b"", [])


@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.row("D8")
def test_the_graph_is_dot_or_json_on_stdout_or_in_a_file(notes: Desk, form: tuple[str, ...]):
    printed = notes.run("tools", "graph", *form)
    assert printed.code == 0
    assert (
        printed.json().keys() == {"tools", "edges"}
        if form
        else printed.out.startswith("digraph tools {")
    )
    into = notes.run("tools", "graph", *form, "-o", str(notes.home / "graph"))
    assert into.code == 0
    assert (notes.home / "graph").read_text().strip() == printed.out.strip()


def test_nothing_is_known_on_a_fresh_machine_and_that_is_said(desk: Desk):
    for command in (("list",), ("find", "anything")):
        told = desk.run("tools", *command)
        assert told.code == 0
        assert "hotset tools import" in told.err
    assert not desk.data.exists()
    assert desk.run("tools", "restore", "created__nothing").code == 1


def test_where_nothing_fits_that_is_said_and_the_nearest_is_marked(notes: Desk):
    told = notes.run("tools", "find", "resize these photographs")
    as_json = notes.run("tools", "find", "resize these photographs", "--json").json()

    assert "nothing fits well" in told.err
    assert "tools list" in told.err
    assert all(each["unlikely"] for each in as_json)
    assert not notes.run("tools", "find", "read a note", "--json").json()[0]["unlikely"]


def test_a_skill_of_the_project_is_found_by_its_description_with_what_it_needs(desk: Desk):
    folder = desk.project / ".agents" / "skills" / "invoices"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: invoices\ndescription: Writes an invoice for a customer.\n---\nThe secret "
        "recipe.\n"
    )
    told = desk.run("tools", "find", "write an invoice")
    (as_json,) = desk.run("tools", "find", "write an invoice", "--json").json()

    assert "Writes an invoice for a customer." in told.out
    assert "hotset tools approve invoices" in told.err
    assert as_json["needs"] == "hotset tools approve invoices"
    assert "recipe" not in told.out + told.err
    assert desk.run("tools", "use", "invoices").code == 1
    assert desk.run("tools", "approve", "invoices", "--yes").code == 0
    assert "recipe" in desk.run("tools", "use", "invoices").out


def test_a_server_that_never_answers_holds_up_no_call_of_another(notes: Desk):
    mute = {
        "command": sys.executable,
        "args": ["-I", "-S", "-c", f"open({str(notes.home / 'asked')!r}, 'w'); input(); input()"],
    }
    servers = next(path for path in notes.home.rglob("servers.json"))
    servers.write_text(
        json.dumps({"mcpServers": {**json.loads(servers.read_text())["mcpServers"], "mute": mute}})
    )

    assert notes.run("tools", "use", "notes__add_note", "title=a", "text=b").out == "kept a\n"
    assert notes.run("tools", "pin", "add_note").code == 0
    assert notes.run("tools", "unpin", "add_note").code == 0
    assert not (notes.home / "asked").exists()


def test_a_skill_of_the_project_waits_as_one_and_is_shown_before_it_is_approved(desk: Desk):
    folder = desk.project / ".agents" / "skills" / "word-tools"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: word-tools\ndescription: Words of a text.\n---\nCount before you cut.\n"
    )
    (folder / "scripts" / "words.py").write_text(
        "def count(text: str) -> int:\n    return len(text.split())\n\n\ndef cut(text: str) "
        "-> str:\n    return text[:9]\n"
    )
    told = desk.run("tools", "status")
    refused = desk.run("tools", "use", "word-tools__count", "text=a b")
    approved = desk.run("tools", "approve", "word-tools", "--yes")

    assert told.err.count("waits for you") == 1
    assert "hotset tools approve word-tools\n" in told.err
    assert refused.code == 1
    for shown in (
        "Count before you cut.",
        "scripts/words.py",
        "word-tools__count(text: string)",
        "word-tools__cut",
    ):
        assert shown in approved.out
    assert desk.run("tools", "use", "word-tools__count", "text=a b").out == "2\n"


@pytest.mark.parametrize(
    "program", ["no-such-server", "./no-such-server", "/nowhere/server", "notes.txt"]
)
def test_a_program_that_does_not_exist_is_not_added(desk: Desk, program: str):
    (desk.project / "notes.txt").write_text("no program")

    ran = desk.run("tools", "add", "files", "--", program, "--port", "1")

    assert ran.code == 2
    assert f"there is no program {program!r}" in ran.err
    assert desk.run("tools", "list", "--json").json() == []
    assert not list(desk.home.rglob("servers.json")) + list(desk.data.rglob("servers.json"))
