"""Gateways of one desk: a session moves between them, each call at any, and a database that goes
away costs nobody a call."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hotset.store.postgres.store import PostgresStore
from hotset.store.sqlite import SqliteStore
from hotset.store.team_link import TeamLink, write_team_link
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.upstream.script import Received
from tests.proxy.talking import SHORTENING, Talk, assert_each_extends_the_one_before, code
from tests.proxy.wire import DIALECTS
from tests.waiting import wait_until


def _reads(request: Received) -> Say:
    return Say(f"Reading {request.index}.", calls=(Call("read_file", {"path": "a.py"}),))


@dataclass
class Gateways:
    """Machines of one person, each with a proxy over the same desk and the same provider."""

    folder: Path
    link: TeamLink
    upstream: ScriptedUpstream
    running: dict[int, LocalProxy] = field(default_factory=dict)

    def at(self, number: int) -> LocalProxy:
        if number not in self.running:
            folder = self.folder / f"machine {number}"
            folder.mkdir(exist_ok=True)
            write_team_link(folder, self.link)
            proxy = LocalProxy(
                folder,
                openai_url=self.upstream.openai_url,
                anthropic_url=self.upstream.anthropic_url,
                knobs=SHORTENING if number % 2 else None,  # what one decided holds at the others
            )
            self.running[number] = proxy.__enter__()
        return self.running[number]

    def stop(self, number: int) -> None:
        self.running.pop(number).__exit__(None, None, None)


@pytest.fixture
def gateways(postgres, tmp_path) -> Iterator[Gateways]:
    link = TeamLink(postgres.dsn, "project", "ann", postgres.new_token())
    with ScriptedUpstream(_reads, strict=True) as upstream:
        machines = Gateways(tmp_path, link, upstream)
        try:
            yield machines
        finally:
            for number in list(machines.running):
                machines.stop(number)


def work(talk: Talk, step: int, proxy: LocalProxy) -> None:
    talk.address = proxy.address
    if talk.history:
        talk.results(code(f"part{step}", functions=60))
    else:
        talk.say("Read everything.")
    assert talk.answer is not None
    assert talk.answer.status == 200, talk.answer.body[:300]
    assert talk.answer.header("x-hotset-degraded") is None
    proxy.wait_until_kept()


@pytest.mark.row("X5")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_session_that_moves_between_machines_keeps_its_prefix(gateways, dialect):
    chance = random.Random(7)
    talk = Talk(gateways.at(0).address, dialect)
    stopped = set()
    for step in range(16):
        number = chance.randrange(3)
        if step > 6 and number in gateways.running and number not in stopped:
            gateways.stop(number)
            stopped.add(number)
        work(talk, step, gateways.at(number))
    assert_each_extends_the_one_before(gateways.upstream.requests)
    assert any(b"retrieve_context(id=" in each.decoded for each in gateways.upstream.requests)
    with PostgresStore(gateways.link.dsn, gateways.link.token) as shared:
        [session] = shared.sessions()
        assert [turn.number for turn in shared.turns(session.id)] == list(range(1, 17))
        assert {turn.branch for turn in shared.turns(session.id)} == {0}
        assert list(shared.verify()) == []


@pytest.mark.row("X5")
def test_a_database_that_is_away_costs_no_call_and_no_prefix(gateways, postgres):
    talk = Talk(gateways.at(0).address, "anthropic")
    for step in range(4):
        work(talk, step, gateways.at(0))
    with postgres.away():
        for step in range(4, 10):
            work(talk, step, gateways.at(0))
    for step in range(10, 13):
        work(talk, step, gateways.at(0))
    assert_each_extends_the_one_before(gateways.upstream.requests)
    with PostgresStore(gateways.link.dsn, gateways.link.token) as shared:
        wait_until(lambda: shared.census().turns == 13)
        [session] = shared.sessions()
        turns = list(shared.turns(session.id))
        assert [turn.number for turn in turns] == list(range(1, 14))
        wait_until(lambda: all(turn.reply for turn in shared.turns(session.id)))
    work(talk, 13, gateways.at(1))
    assert_each_extends_the_one_before(gateways.upstream.requests)


@pytest.mark.row("X5")
def test_a_machine_that_starts_while_the_database_is_away_serves(gateways, postgres):
    talk = Talk(gateways.at(0).address, "openai-chat")
    work(talk, 0, gateways.at(0))
    gateways.stop(0)
    with postgres.away():
        work(talk, 1, gateways.at(0))
    with PostgresStore(gateways.link.dsn, gateways.link.token) as shared:
        wait_until(lambda: shared.census().turns == 2)
    past = [
        {"role": "user", "content": "Where were we?"},
        {"role": "assistant", "content": "At another machine."},
    ]
    elsewhere = Talk(gateways.at(1).address, "openai-chat", history=past)
    with postgres.away():
        assert not gateways.at(1).machine.keeper.store.refresh()
        elsewhere.say("Go on.")
        assert "away" in elsewhere.answer.header("x-hotset-degraded")
    assert elsewhere.answer.status == 200
    gateways.stop(0)
    with SqliteStore.open(gateways.folder / "machine 0") as here:
        assert list(here.verify()) == []
