"""`hotset` alone: where things stand, and what to do next."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import MemoryId, MemoryKind, MemoryRecord, Provenance, Standing
from hotset.store.sqlite import SqliteStore
from hotset.testing.store_talk import kept
from tests.cli.conftest import NOW, Desk, fill
from tests.cli.test_savings import SONNET, bill


def lines(desk: Desk) -> dict[str, str]:
    """What it says, by the word in front."""
    done = desk.run()
    assert done.code == 0, done.err
    told = done.out.splitlines()
    assert len(told) <= 10
    return {line[:8].strip(): line[9:] for line in told}


def test_a_new_project_is_told_to_see_it_work(desk: Desk):
    told = lines(desk)

    assert told["hotset"] == str(desk.project)
    assert (told["serving"], told["kept"]) == ("no", "nothing yet")
    assert told["next"].startswith("hotset demo ")
    assert not desk.data.exists()  # looking makes nothing


def test_who_has_recorded_sessions_is_told_to_replay_them(desk: Desk):
    recorded = desk.home / ".codex" / "sessions"
    recorded.mkdir(parents=True)
    (recorded / "one.jsonl").write_text("")

    assert lines(desk)["next"].startswith("hotset replay ~/.codex/sessions --html report.html ")


def test_a_project_with_sessions_says_what_they_saved_and_how_to_go_on(desk: Desk):
    bill(desk, "first", SONNET, replace(SONNET, broke="pays"))
    fill(desk.data, "Fix the build", NOW + 600, agent="codex_cli_rs")

    told = lines(desk)

    assert told["kept"].startswith("2 sessions, the last ")
    assert told["kept"].endswith(": Fix the build")
    assert told["saved"].startswith("$0.0318 so far, 48 % of what sending everything would have")
    assert "window" not in told  # the latest session was not billed
    assert told["next"].startswith("hotset wrap codex ")


def test_the_window_of_the_latest_session_is_told_in_a_line(desk: Desk):
    bill(desk, "first", SONNET)

    assert lines(desk)["window"] == "5 % of 200k · $0.02, saved $0.02"


def test_memories_that_wait_for_a_person_are_the_next_step(desk: Desk):
    bill(desk, "first", SONNET)
    fact = MemoryRecord(
        MemoryId("sem-7ha2c0de"),
        MemoryKind.FACT,
        "Releases",
        "Releases are cut on Tuesdays.",
        NOW,
        Provenance("rules"),
        standing=Standing.CANDIDATE,
    )
    with closing(SqliteStore.open(desk.data)) as store:
        kept(store, Remembered((fact,)))

    told = lines(desk)

    assert told["waits"] == "1 new memory for you to look at"
    assert told["next"].startswith("hotset memory review ")


def test_a_damaged_store_leads_to_the_doctor(filled: Desk):
    Path(filled.data / "store.db").write_bytes(b"no store at all" * 1000)

    told = lines(filled)

    assert told["kept"] == "cannot be read"
    assert told["next"].startswith("hotset doctor ")


def test_a_proxy_that_serves_is_told_with_its_calls(desk: Desk, to_upstream):
    with desk.serving(env=to_upstream):
        port = json.loads((desk.data / "proxy.json").read_bytes())["port"]
        told = lines(desk)

    assert told["serving"].startswith(f"on port {port} for ")
    assert told["serving"].endswith(": 0 calls, 0 kept")
    assert told["next"].startswith("hotset top ")


def test_the_whole_help_stays_at_help(desk: Desk):
    assert "Memory:" in desk.run("--help").out
    assert "hotset --help" in desk.run().err
