"""A desk of a team's database and the stores of the machines that work at it."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from tests.waiting import wait_until

from hotset.errors import StoreFailed
from hotset.nouns.deposit import Erased, NoteWritten, PageAdded, Remembered
from hotset.nouns.note import Scope, Space
from hotset.nouns.page import Kind
from hotset.store.connection import Tuning
from hotset.store.outbox import pack_deposits, unpack_deposits
from hotset.store.postgres.connection import PostgresConnection
from hotset.store.postgres.people import People
from hotset.store.postgres.store import PostgresStore
from hotset.store.sqlite import SqliteStore
from hotset.store.team_link import TeamLink, read_team_link, write_team_link
from hotset.testing.ram_store import RamStore
from hotset.testing.store_contract import CHECKS
from hotset.testing.store_memory_contract import fact
from hotset.testing.store_talk import StoreTalk, kept, turn_of


def open_gateway(folder: Path, dsn: str, token: str) -> SqliteStore:
    folder.mkdir(exist_ok=True)
    write_team_link(folder, TeamLink(dsn, "project", "ann", token))
    return SqliteStore.open(folder, Tuning(ballast_bytes=4096))


@pytest.fixture
def gateways(postgres, tmp_path):
    """The shared desk, and a function that opens one more gateway of it."""
    token = postgres.new_token()
    shared = PostgresStore(postgres.dsn, token)
    opened = [shared]

    def gateway(name: str = "") -> SqliteStore:
        folder = tmp_path / (name or f"gateway-{len(opened)}")
        opened.append(open_gateway(folder, postgres.dsn, token))
        return opened[-1]

    yield shared, gateway
    for store in reversed(opened):
        store.close()


@pytest.mark.row("X5")
@pytest.mark.rest_slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_a_gateway_keeps_the_contract_of_a_store(check, postgres, tmp_path):
    numbers = count()
    check(lambda: open_gateway(tmp_path / f"{next(numbers)}", postgres.dsn, postgres.new_token()))


@pytest.mark.slow
@pytest.mark.row("X5")
def test_what_one_gateway_keeps_is_in_the_database_and_reaches_another(gateways):
    shared, gateway = gateways
    one, other = gateway(), gateway()
    StoreTalk(one, key="talk").turn("what is the answer?", "forty-two")
    assert list(shared.dump()) == list(one.dump())
    StoreTalk(other, key="other").turn("another", "yes")
    assert [each.key for each in other.sessions()] == ["talk", "other"]
    wait_until(lambda: len(list(one.sessions())) == 2)
    assert set(one.dump()) == set(other.dump()) == set(shared.dump())


@pytest.mark.row("X5")
def test_requests_of_one_session_at_two_gateways_make_one_line(gateways):
    shared, gateway = gateways
    talks = [StoreTalk(gateway(), key="same"), StoreTalk(gateway(), key="same")]
    history = []
    for number in range(40):
        talk = talks[number % 2]
        talk.history[:] = history
        talk.turn(f"question {number}", f"answer {number}")
        history = list(talk.history)
    [session] = shared.sessions()
    turns = list(shared.turns(session.id))
    assert [turn.number for turn in turns] == list(range(1, 41))
    assert {turn.branch for turn in turns} == {0}
    assert list(talks[1].store.dump()) == list(shared.dump())


@pytest.mark.row("X5")
def test_what_was_kept_while_the_database_was_away_arrives_in_order(gateways, postgres):
    shared, gateway = gateways
    one = gateway()
    talk = StoreTalk(one)
    talk.turn("before", "yes")
    with postgres.away():
        for number in range(30):
            talk.turn(f"while away {number}", "yes")
        assert len(list(one.turns(next(one.sessions()).id))) == 31
    wait_until(lambda: shared.census().turns == 31)
    talk.turn("after", "yes")
    wait_until(lambda: shared.census().turns == 32)
    assert list(shared.dump()) == list(one.dump())


@pytest.mark.row("X5")
def test_the_outbox_survives_a_restart(gateways, postgres):
    shared, gateway = gateways
    one = gateway("same folder")
    talk = StoreTalk(one)
    talk.turn("before", "yes")
    with postgres.away():
        talk.turn("while away", "yes")
        one.close()
    again = gateway("same folder")
    wait_until(lambda: shared.census().turns == 2)
    assert list(shared.dump()) == list(again.dump())


@pytest.mark.row("X5")
def test_a_session_that_met_two_gateways_meanwhile_becomes_a_branch(gateways, postgres):
    shared, gateway = gateways
    one, other = gateway(), gateway()
    talk = StoreTalk(one, key="same")
    first = talk.turn("before", "yes")
    with postgres.away():
        talk.turn("at one", "yes")
    elsewhere = StoreTalk(other, key="same", history=list(talk.history[:2]))
    elsewhere.turn("at the other", "yes")
    wait_until(lambda: shared.census().turns == 3)
    turns = list(shared.turns(first.session))
    assert [turn.number for turn in turns] == [1, 2, 3]
    assert sorted(turn.branch for turn in turns) == [0, 0, 1]
    [met] = shared.events(name="GatewaysMet")
    assert (met.session, met.turn, met.detail["turn_here"]) == (first.session, 3, 2)
    wait_until(lambda: len(list(one.turns(first.session))) == 3)
    assert list(one.turns(first.session)) == turns
    assert list(one.verify()) == list(shared.verify()) == []


@pytest.mark.row("X5")
def test_what_is_written_after_a_commit_of_unknown_end_is_sent_too(gateways, postgres):
    """The name of that commit is for what was in it alone."""
    shared, gateway = gateways
    one = gateway()
    talk = StoreTalk(one)
    talk.turn("before", "yes")
    mirror = one._writing().engine
    with postgres.away():
        with mirror._door:
            mirror._batch = postgres.batch_of(read_team_link(one.folder).token)
            mirror._go_alone()
        talk.turn("while away", "yes")
    wait_until(lambda: shared.census().turns == 2)


@pytest.mark.row("V17")
def test_a_note_of_the_machine_stays_on_it(gateways):
    shared, gateway = gateways
    one = gateway()
    here, everywhere = Space("here", Scope.MACHINE), Space("everywhere")
    kept(one, NoteWritten(here, "key", b"secret", 1.0))
    kept(one, NoteWritten(everywhere, "key", b"shared", 1.0))
    assert set(one.notes(here)) == {"key"}
    assert set(shared.notes(here)) == set()
    assert set(shared.notes(everywhere)) == {"key"}


def test_notes_that_change_often_stay_few_at_every_gateway(gateways):
    shared, gateway = gateways
    one, other = gateway(), gateway()
    space = Space("often", keeps=2)
    for number in range(20):
        kept(one, NoteWritten(space, "key", str(number).encode(), 1.0))
        if number % 7 == 0:
            kept(other, PageAdded(None, "agent", Kind.FINDING, str(number).encode(), 1.0, key="k"))
    kept(other, PageAdded(None, "agent", Kind.FINDING, b"last", 1.0, key="k"))
    assert other.note_versions(space, "key") == one.note_versions(space, "key")
    assert other.note_versions(space, "key") == shared.note_versions(space, "key")


@pytest.mark.rest_slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_any_deposit_can_wait_in_the_outbox(check):
    class Packing(RamStore):
        def keep(self, *deposits):
            answer = super().keep(*deposits)
            if answer.exception() is None:
                assert unpack_deposits(pack_deposits(deposits)) == deposits
            return answer

    check(Packing)


def test_a_turn_is_known_by_its_name_after_it_was_sent_again(gateways, postgres):
    shared, gateway = gateways
    one = gateway()
    talk = StoreTalk(one)
    with postgres.away():
        asked = talk.asks("while away")
    talk.hears(turn_of(asked), "after it")
    wait_until(lambda: shared.census().turns == 1)
    wait_until(
        lambda: [turn.reply is not None for turn in shared.turns(turn_of(asked).session)] == [True]
    )


@pytest.mark.row("X5")
def test_a_memory_that_is_erased_is_erased_at_every_gateway(gateways):
    shared, gateway = gateways
    one, other = gateway(), gateway()
    kept(one, Remembered((fact("a"), fact("b"))))
    kept(other, PageAdded(None, "agent", Kind.FINDING, b"1", 1.0, key="k"))
    assert len(list(other.memories())) == 2
    kept(one, Erased((fact("a").id,), 3.0))
    kept(other, PageAdded(None, "agent", Kind.FINDING, b"2", 1.0, key="k"))
    for store in (one, other, shared):
        assert [each.id for each in store.memories()] == [fact("b").id]
        assert list(store.verify()) == []


@pytest.mark.row("X5")
def test_an_import_at_one_gateway_is_there_for_all(gateways, postgres, tmp_path):
    shared, gateway = gateways
    one = gateway()
    with SqliteStore.open(tmp_path / "old") as old:
        StoreTalk(old).turn("long ago", "yes")
        rows = list(old.dump())
    assert one.load(rows) == len(rows)
    assert list(one.dump()) == list(shared.dump()) == rows
    assert one.load(rows) == 0
    with postgres.away(), pytest.raises(StoreFailed, match="does not answer"):
        one.load(rows)


@pytest.mark.row("X5")
def test_a_token_that_ended_costs_nothing_that_is_kept(gateways, postgres):
    _, gateway = gateways
    one = gateway()
    talk = StoreTalk(one)
    talk.turn("before", "yes")
    link = read_team_link(one.folder)
    newer = People(postgres.dsn, link.token).rotate()
    talk.turn("after", "yes")
    assert one.census().turns == 2
    assert one.waiting() == 2
    one.close()
    write_team_link(one.folder, replace(link, token=newer))
    with SqliteStore.open(one.folder) as again, PostgresStore(postgres.dsn, newer) as shared:
        again.refresh()
        wait_until(lambda: again.waiting() == 0)
        assert list(shared.dump()) == list(again.dump())


@pytest.mark.row("X5")
def test_what_the_database_cannot_hold_stays_here_and_stops_nothing(gateways):
    shared, gateway = gateways
    one = gateway()
    talk = StoreTalk(one)
    talk.turn("before", "yes")
    unpressed = "".join(chr(0x4E00 + each * 7919 % 20000) for each in range(4000))
    kept(one, PageAdded(None, "agent", Kind.FINDING, b"long", 1.0, key=unpressed))
    assert one.census().sessions == 2
    talk.turn("after", "yes")
    wait_until(lambda: shared.census().turns == 2)
    assert shared.census().sessions == 1
    assert len(list(shared.events(name="TeamRefused"))) == 1
    wait_until(lambda: one.waiting() == 0)


@pytest.mark.slow
@pytest.mark.row("X5")
def test_a_gateway_that_holds_the_desk_and_says_nothing_stops_nobody_for_long(gateways, postgres):
    _, gateway = gateways
    one = gateway()
    StoreTalk(one).turn("before", "yes")
    silent = PostgresConnection(postgres.dsn, read_team_link(one.folder).token)
    silent.begin_to_write()
    StoreTalk(one, key="other").turn("meanwhile", "yes")
    assert one.census().turns == 2
    silent.close()
    wait_until(lambda: one.waiting() == 0)
