"""`hotset team`: several people and machines in one project, over a real PostgreSQL."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from hotset.files.breaker import BREAKERS
from hotset.store.sqlite import SqliteStore
from hotset.store.team_link import TeamLink, write_team_link
from hotset.testing.store_talk import StoreTalk
from tests.cli.conftest import Desk, desk_in
from tests.waiting import wait_until


@pytest.fixture
def desks(tmp_path: Path):
    """Places of people, each made when it is first asked for."""
    made: dict[str, Desk] = {}

    def place(name: str) -> Desk:
        if name not in made:
            (tmp_path / name).mkdir()
            made[name] = desk_in(tmp_path / name)
        return made[name]

    yield place
    for desk in made.values():
        desk.clear()


@pytest.mark.row("X5")
def test_a_project_is_made_joined_by_others_and_left(desks, postgres):
    ann, laptop, bob = desks("ann"), desks("laptop"), desks("bob")
    with SqliteStore.open(ann.data) as store:
        StoreTalk(store, key="before the team").turn("what is kept already", "goes along")

    made = ann.run("team", "create", "shop", "--store", postgres.empty(), "--person", "ann")
    assert (made.code, made.out) == (0, "shop: you are ann, its owner\n"), made.err
    link = ann.data / "team.json"
    assert stat.S_IMODE(link.stat().st_mode) == 0o600
    assert "hotset_owner" not in link.read_text()
    again = ann.run("team", "create", "shop", "--store", postgres.empty())
    assert again.code == 2
    assert "hotset team leave" in again.err

    invited = ann.run("team", "invite", "bob")
    assert bob.run("team", "join", "-", given=invited.raw).out == "shop: you are bob\n"
    assert bob.run("team", "join", "-", given=invited.raw).code == 2
    for_me = ann.run("team", "invite", "ann").out
    assert laptop.run("team", "join", for_me).out == "shop: you are ann\n"
    used = desks("another").run("team", "join", for_me)
    assert used.code == 2
    assert "was used" in used.err

    people = bob.run("team", "list", "--json").json()
    assert [(each["name"], each["role"], each["tokens"]) for each in people] == [
        ("ann", "owner", 2),
        ("bob", "member", 1),
    ]
    refused = bob.run("team", "invite", "mallory")
    assert refused.code == 2
    assert "only an owner" in refused.err
    did = [each["did"] for each in ann.run("team", "log", "--json").json()]
    assert did == ["joined", "invited", "joined", "invited as member", "joined", "made the project"]

    with SqliteStore.open(laptop.data) as store:
        wait_until(lambda: any(store.sessions()))
    assert "before the team" in laptop.run("sessions", "--json").out
    with SqliteStore.open(bob.data) as store:
        StoreTalk(store, key="of bob").turn("mine", "alone")
    with SqliteStore.open(ann.data) as store:
        StoreTalk(store, key="of ann").turn("mine", "too")
        assert {each.key for each in store.sessions()} == {"before the team", "of ann"}

    assert ann.run("team", "revoke", "bob").out == "1 of bob's tokens ended\n"
    assert bob.run("team", "list").code == 2
    assert ann.run("team", "rotate").code == 0
    assert ann.run("team", "list").code == 0
    assert ann.run("team", "leave").code == 0
    assert not link.exists()
    alone = ann.run("team", "list")
    assert alone.code == 1
    assert "hotset team create" in alone.err


@pytest.mark.row("X5")
def test_a_second_project_of_a_database_leaves_the_first_as_it_was(desks, postgres):
    ann, bob, database = desks("ann"), desks("bob"), postgres.empty()
    assert ann.run("team", "create", "shop", "--store", database).code == 0
    assert bob.run("team", "create", "shop", "--store", database).code == 2
    assert bob.run("team", "create", "blog", "--store", database).code == 0
    users = {
        conninfo_to_dict(json.loads((each.data / "team.json").read_bytes())["dsn"])["user"]
        for each in (ann, bob)
    }
    assert len(users) == 2
    assert ann.run("team", "status").code == bob.run("team", "status").code == 0


def test_nobody_joins_or_leaves_while_a_proxy_is_at_work(desks, postgres):
    ann = desks("ann")
    with SqliteStore.open(ann.data):
        busy = ann.run("team", "create", "shop", "--store", postgres.empty())
        assert busy.code == 2
        assert "in use" in busy.err
    assert not (ann.data / "team.json").exists()


def test_a_database_elsewhere_has_to_be_reached_safely(desks):
    ann = desks("ann")
    for address in ("postgresql://me@db.example.com/team", "host=10.0.0.7 dbname=team"):
        open_wire = ann.run("team", "create", "shop", "--store", address)
        assert open_wire.code == 2
        assert "sslmode=verify-full" in open_wire.err
    assert not (ann.data / "team.json").exists()


@pytest.mark.parametrize(
    "text", ["", "no invitation", "hotset-invitation:e30=", "hotset-invitation:%"]
)
def test_what_is_no_invitation_is_refused(desks, text):
    refused = desks("ann").run("team", "join", text)
    assert refused.code == 2
    assert "hotset team invite" in refused.err


def test_an_address_that_is_none_is_refused(desks):
    refused = desks("ann").run("team", "create", "shop", "--store", "not an address")
    assert refused.code == 2
    assert "postgresql://" in refused.err


def test_a_database_that_is_away_is_said_and_nothing_is_joined(desks):
    ann = desks("ann")
    refused = ann.run("team", "create", "shop", "--store", "host=/nowhere dbname=team")
    assert refused.code == 2
    assert "does not answer" in refused.err
    assert not (ann.data / "team.json").exists()


@pytest.mark.row("X5")
def test_what_waits_is_told_and_goes_out_with_the_next_start(desks, postgres):
    ann = desks("ann")
    assert ann.run("team", "status").code == 1
    link = TeamLink(postgres.dsn, "shop", "ann", postgres.new_token())
    ann.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_team_link(ann.data, link)
    with SqliteStore.open(ann.data) as store:
        StoreTalk(store).turn("before", "yes")
    well = ann.run("team", "status", "--json")
    assert (well.code, well.json()["waiting"], well.json()["trouble"]) == (0, 0, "")
    with postgres.away():
        with SqliteStore.open(ann.data) as store:
            StoreTalk(store).turn("while away", "yes")
            assert "open" in [each.state for each in BREAKERS.states() if "team" in each.name]
        waits = ann.run("team", "status")
        assert waits.code == 1
        assert "does not answer" in waits.out
        assert "waiting   2" in waits.out
    with SqliteStore.open(ann.data) as store:
        wait_until(lambda: store.waiting() == 0)
    assert ann.run("team", "status").code == 0


def test_git_proposes_the_name(desks, postgres):
    ann = desks("ann")
    for folder in ("objects", "refs"):
        (ann.project / ".git" / folder).mkdir(parents=True, exist_ok=True)
    (ann.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (ann.project / ".git" / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n"
        '[remote "origin"]\n\turl = git@git.example.com:shop/web.git\n'
    )
    made = ann.run("team", "create", "--store", postgres.empty(), "--person", "ann")
    assert made.out == "git.example.com/shop/web: you are ann, its owner\n"
    assert (
        json.loads((ann.data / "team.json").read_bytes())["project"] == "git.example.com/shop/web"
    )
