"""Caring for what is kept: verify, export, import, repair."""

from __future__ import annotations

import os
import threading

import apsw
import pytest

from hotset.nouns.bill import Bill, Summary
from hotset.nouns.deposit import Billed, HiddenKept, PlanMade
from hotset.nouns.page import Chain
from hotset.nouns.window import Hidden, SentRequest
from hotset.store.sqlite import SqliteStore
from hotset.store.store_files import DATABASE
from hotset.testing.store_talk import kept, shows
from tests.cli.conftest import LARGE, Desk, fill


def damage(desk: Desk) -> None:
    """Changes a byte of content on disk, behind the store's back."""
    connection = apsw.Connection(str(desk.data / DATABASE))
    connection.execute(
        "UPDATE blob SET body = zeroblob(length(body)) WHERE size = ?", (len(LARGE),)
    )
    connection.close()


def decide(desk: Desk) -> list[Chain]:
    """Gives the latest turn's messages a form, hides a part of it and bills it; gives the
    messages."""
    with SqliteStore.open(desk.data) as store:
        session = next(store.sessions()).id
        turn = list(store.turns(session))[-1]
        line = [node.chain for node in store.nodes(session)]
        kept(
            store,
            PlanMade(
                turn.id,
                SentRequest(line[-1], 1.0),
                tuple(shows(chain, f"form of {chain} " * 40) for chain in line),
            ),
        )
        kept(store, HiddenKept(turn.id, Hidden(line[-1], (b'{"hidden":1}',))))
        kept(store, Billed(turn.id, Bill("model", "upstream")))
        kept(store, Summary(session, (1, 2), 0, 1, "so far", "rules", 1.0))
    return line


def test_a_store_that_is_whole_is_said_to_be(filled: Desk):
    ran = filled.run("verify")

    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("all is whole: 10 pages of 1 session")
    assert filled.run("verify", "--json").json()["ok"] is True


def test_damage_is_a_finding_with_what_to_do(filled: Desk):
    damage(filled)

    ran = filled.run("verify")
    told = filled.run("verify", "--json")

    assert ran.code == told.code == 1
    assert "hotset repair" in ran.err
    assert [each["what"] for each in told.json()["damages"]] == ["content"]
    recalled = filled.run("recall", "toolu_1")
    assert (recalled.code, recalled.raw) == (2, b"")


def test_repair_saves_the_rest_and_makes_again_what_can_be_made_again(filled: Desk):
    damage(filled)

    ran = filled.run("repair", "--yes", "--json")

    report = ran.json()
    assert (report["rederived"], report["missing"]) == (
        1,
        [],
    )  # a content was lost, and read again from its message
    assert (ran.code, report["whole"]) == (0, True)
    assert filled.run("verify").code == 0
    assert filled.run("recall", "toolu_1").raw == LARGE.encode()
    assert report["damaged"] in ran.err


def test_a_damaged_form_is_told_and_a_repair_lets_it_go(filled: Desk):
    line = decide(filled)
    connection = apsw.Connection(str(filled.data / DATABASE))
    connection.execute("UPDATE shown SET whole = whole + 1 WHERE seq = 1")
    connection.close()

    told = filled.run("verify", "--json")
    ran = filled.run("repair", "--yes", "--json")

    assert (told.code, [each["what"] for each in told.json()["damages"]]) == (1, ["shown"])
    assert "shown as it was before, or full" in told.json()["damages"][0]["why"]
    assert (ran.code, ran.json()["lost"]["shown"], ran.json()["saved"]["shown"]) == (
        1,
        1,
        len(line) - 1,
    )
    assert filled.run("verify").code == 0
    with SqliteStore.open(filled.data) as store:
        assert {spot.chain for spot in store.table(line).shown} == set(line[1:])


def test_repair_asks_before_it_begins(filled: Desk):
    ran = filled.run("repair")

    assert (ran.code, ran.raw) == (2, b"")
    assert "--yes" in ran.err


@pytest.mark.slow
def test_repair_waits_until_nobody_works_with_the_store(filled: Desk, to_upstream):
    with filled.serving(env=to_upstream):
        ran = filled.run("repair", "--yes")

    assert ran.code == 2
    assert "in use" in ran.err


def test_what_is_exported_can_be_imported_elsewhere(filled: Desk, tmp_path):
    file, other = tmp_path / "all.jsonl", str(tmp_path / "other")

    assert filled.run("export", "-o", str(file)).code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    first = filled.run("import", str(file), "--data", other, "--json").json()
    second = filled.run("import", str(file), "--data", other, "--json").json()

    assert first["new"] == first["rows"] == second["rows"]
    assert second["new"] == 0
    assert (
        filled.run("show", "last", "--json", "--data", other).json()
        == filled.run("show", "last", "--json").json()
    )
    assert filled.run("recall", "toolu_1", "--data", other).raw == LARGE.encode()


@pytest.mark.parametrize("which", [(), ("--session", "last")])
def test_no_secret_leaves_unless_it_is_asked_for(desk: Desk, tmp_path, which):
    password = "kT9vQ2xLm4RwZb7"
    fill(desk.data, f"Log in with password = '{password}' and fix the test")

    sealed = desk.run("export", *which)
    plain = desk.run("export", "--with-secrets", *which)

    assert password not in sealed.out
    assert "password = '[secret:password]' and fix the test" in sealed.out
    assert "2 secrets sealed; --with-secrets leaves them in" in sealed.err
    assert password in plain.out
    assert "sealed" not in plain.err
    assert desk.run("import", "-", "--data", str(tmp_path / "other"), given=sealed.raw).code == 0
    assert desk.run("verify", "--data", str(tmp_path / "other")).code == 0
    assert password not in desk.run("show", "last", "--full", "--data", str(tmp_path / "other")).out


def test_a_backup_with_its_secrets_is_the_same_store(filled: Desk, tmp_path):
    lines = filled.run("export", "--with-secrets").raw

    assert filled.run("import", "-", "--data", str(tmp_path / "other"), given=lines).code == 0
    assert filled.run("export", "--with-secrets", "--data", str(tmp_path / "other")).raw == lines


@pytest.mark.parametrize("which", [(), ("--session", "last")])
def test_forms_hidden_turns_bills_and_summaries_go_along(filled: Desk, tmp_path, which):
    line = decide(filled)
    lines = filled.run("export", *which).raw

    assert filled.run("import", "-", "--data", str(tmp_path / "other"), given=lines).code == 0

    with SqliteStore.open(filled.data) as here, SqliteStore.open(tmp_path / "other") as there:
        session = next(here.sessions()).id
        assert len(there.table(line).shown) == len(line)
        assert there.table(line) == here.table(line)
        assert list(there.bills()) == list(here.bills())
        assert there.summaries(session) == here.summaries(session)


def test_one_session_goes_through_a_pipe(filled: Desk, tmp_path):
    lines = filled.run("export", "--session", "last").raw

    ran = filled.run("import", "-", "--data", str(tmp_path / "other"), given=lines)

    assert ran.code == 0
    assert "rows read" in ran.err


def test_a_file_that_is_no_export_changes_nothing(filled: Desk, tmp_path):
    ran = filled.run("import", "-", "--data", str(tmp_path / "other"), given=b"not json\n")

    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert filled.run("sessions", "--data", str(tmp_path / "other"), "--json").json() == []


def test_an_export_into_a_pipe_or_device_writes_to_it_and_does_not_replace_it(
    filled: Desk, tmp_path
):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()

    assert filled.run("export", "-o", str(pipe)).code == 0

    reader.join(120)
    assert got == [filled.run("export").raw]
    assert pipe.is_fifo()


def test_an_export_that_cannot_be_written_leaves_nothing_behind(filled: Desk, tmp_path):
    ran = filled.run("export", "-o", str(tmp_path / "no" / "such" / "folder.jsonl"))

    assert ran.code == 2
    assert ran.err.startswith("hotset: No such file or directory")


def test_a_file_that_is_not_there_is_told_in_a_sentence(desk: Desk):
    ran = desk.run("import", "missing.jsonl")

    assert (ran.code, ran.err) == (2, "hotset: No such file or directory: missing.jsonl\n")


@pytest.mark.parametrize("command", ["verify", "repair", "export"])
def test_caring_for_nothing_is_a_finding(desk: Desk, command: str):
    ran = desk.run(command, *(["--yes"] if command == "repair" else []))

    assert ran.code == 1
    assert "nothing is kept yet" in ran.err
