"""`hotset continuity`: off until somebody asks, and a person's words are never overwritten."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Desk
from tests.cli.test_memory_command import TUESDAY, add


def test_nothing_is_written_into_a_project_before_somebody_asks(filled: Desk):
    filled.run("memory", "list")
    shown = filled.run("continuity", "show")

    assert shown.code == 0
    assert "continuity on" in shown.err
    assert not (filled.project / "CONTINUITY.md").exists()


@pytest.mark.row("M8")
def test_switched_on_it_is_written_shown_and_what_a_person_wrote_stays(desk: Desk):
    add(desk, TUESDAY)
    on = desk.run("continuity", "on")
    path = desk.project / "CONTINUITY.md"

    assert (on.code, on.out) == (0, f"{path}\n")
    assert "continuity off" in on.err
    path.write_text(path.read_text() + "\n## Mine\n\nAsk Ada before the release.\n")
    assert desk.run("continuity", "write").code == 0
    assert "Ask Ada before the release." in path.read_text()
    assert "Ask Ada before the release." in desk.run("continuity", "show").out
    assert desk.run("continuity", "show", "--json").json()["on"] is True


def test_switched_off_the_file_stays(desk: Desk):
    add(desk, TUESDAY)
    desk.run("continuity", "on")
    off, again = desk.run("continuity", "off"), desk.run("continuity", "off")

    assert (off.code, again.code) == (0, 0)
    assert "off already" in again.err
    assert (desk.project / "CONTINUITY.md").exists()
    assert desk.run("continuity", "show", "--json").json()["on"] is False


def test_memories_that_it_refers_to_and_that_no_longer_hold_are_told(desk: Desk):
    id = add(desk, TUESDAY)
    desk.run("continuity", "on")
    path = desk.project / "CONTINUITY.md"
    path.write_text(f"{path.read_text()}\nSee [{id}] and [sem-001].\n")
    desk.run("memory", "forget", id)

    told, as_json = desk.run("continuity", "show"), desk.run("continuity", "show", "--json").json()

    assert f"[{id}] is forgotten" in told.err
    assert "[sem-001] is not there" in told.err
    assert {each["id"]: each["standing"] for each in as_json["memories"]} == {
        id: "forgotten",
        "sem-001": None,
    }
