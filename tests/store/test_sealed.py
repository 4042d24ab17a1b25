"""What leaves a store has no secrets, and is a store again elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest

from hotset.nouns.bill import Summary
from hotset.nouns.deposit import Gisted, HiddenKept, PlanMade, ReplyReceived
from hotset.nouns.message import Reply
from hotset.nouns.page import Gist, Role
from hotset.nouns.turn import Event, Outcome, Reference
from hotset.nouns.window import Hidden, SentRequest
from hotset.sealing import VERSION
from hotset.store.exchange import read_lines, write_lines
from hotset.store.port import Row, Store, Where
from hotset.store.sealed import SealedRows
from hotset.store.sqlite import SqliteStore
from hotset.testing import RamStore
from hotset.testing.secrets import planted
from hotset.testing.store_talk import StoreTalk, id_of, kept, shows, text_message

PASSWORD = "kT9vQ2xLm4RwZb7"
GIVEN = f"db_password = '{PASSWORD}'"


@pytest.fixture(params=["sqlite", "ram"])
def opens(request, tmp_path) -> Callable[[str], Store]:
    return lambda name: (
        SqliteStore.open(tmp_path / name) if request.param == "sqlite" else RamStore()
    )


def exported(store: Store) -> tuple[bytes, int]:
    rows = SealedRows(store.dump)
    return b"".join(write_lines(rows, sealed=VERSION)), rows.secrets


def taken_in(store: Store, lines: bytes) -> Store:
    store.load(read_lines(lines.splitlines(keepends=True)))
    return store


@pytest.mark.row("V17")
@pytest.mark.slow
def test_four_hundred_secrets_stay_behind(opens):
    secrets = planted(seed=11, n=430)
    store = opens("here")
    talk = StoreTalk(store)
    for at in range(0, len(secrets), 43):
        talk.turn(
            "\n".join(each.text for each in secrets[at : at + 20]),
            "\n".join(each.text for each in secrets[at + 20 : at + 43]),
        )

    lines, sealed = exported(store)

    assert sealed >= 2 * len(secrets)  # once in a page, once in its message
    assert [each for each in secrets if each.remains(lines.decode())] == []


def test_an_export_without_secrets_is_a_whole_store_elsewhere(opens):
    store, talk = filled(opens("here"))
    there = taken_in(opens("there"), exported(store)[0])

    assert list(there.verify()) == []
    assert there.census().turns == store.census().turns
    assert [page.id for page in there.pages(Where())] == [page.id for page in store.pages(Where())]
    for page in there.pages(Where()):
        assert len(there.content(page.digest)) == page.size
        assert PASSWORD.encode() not in there.content(page.digest)
    talk.store = there
    again = talk.asks("and then?")
    assert again.turn is not None
    assert again.turn.session == next(store.sessions()).id


def test_no_row_tells_a_part_of_a_secret(opens):
    store, _ = filled(opens("here"))

    lines = exported(store)[0].decode()

    assert PASSWORD not in lines
    assert PASSWORD[:8].lower() not in lines.lower()
    assert "[secret:password]" in lines
    assert "worked on billing" in lines


def test_a_gist_of_a_sealed_page_is_left_to_be_worked_out_anew(opens):
    store, _ = filled(opens("here"))
    page = next(iter(store.pages(Where())))

    there = taken_in(opens("there"), exported(store)[0])

    assert store.gist(page.id) is not None
    assert there.gist(page.id) is None
    assert page.id in {each.id for each in there.ungisted(100)}


def test_a_secret_that_a_stream_said_in_pieces_is_sealed_with_the_stream(opens):
    store = opens("here")
    talk = StoreTalk(store)
    asked = talk.asks("what is the token?")
    assert asked.turn is not None
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    pieces = [token[at : at + 5] for at in range(0, len(token), 5)]
    stream = b"".join(
        b"data: "
        + json.dumps({"choices": [{"index": 0, "delta": {"content": each}}]}).encode()
        + b"\n\n"
        for each in pieces
    )
    reply = Reply((text_message(Role.ASSISTANT, f"it is {token}"),), complete=True)
    kept(store, ReplyReceived(asked.turn, talk.time + 1, Outcome.DONE, 200, stream, reply))

    lines = exported(store)[0]

    assert pieces[3].encode() not in lines
    assert list(taken_in(opens("there"), lines).verify()) == []


def test_a_store_without_secrets_goes_out_as_it_is(opens):
    store = opens("here")
    talk = StoreTalk(store)
    talk.turn("how do I name a password field?", "call it password")
    talk.turn("bytes \x00 and \udcff".encode("utf-8", "surrogateescape").decode("latin-1"), "fine")

    rows: list[Row] = list(SealedRows(store.dump))

    assert rows == list(store.dump())


def test_what_goes_out_with_its_secrets_comes_back_byte_for_byte(opens):
    store, _ = filled(opens("here"))
    lines = b"".join(write_lines(store.dump()))

    assert b"".join(write_lines(taken_in(opens("there"), lines).dump())) == lines
    assert PASSWORD.encode() in lines


def test_an_export_of_one_session_is_sealed_too(opens):
    store, _ = filled(opens("here"))
    session = next(store.sessions()).id

    lines = b"".join(write_lines(SealedRows(partial(store.dump, session)), sealed=VERSION))

    assert PASSWORD.encode() not in lines
    assert list(taken_in(opens("there"), lines).verify()) == []


def filled(store: Store) -> tuple[Store, StoreTalk]:
    """A session that has a password in every place where text is kept."""
    talk = StoreTalk(store)
    turn = talk.turn(f"{GIVEN} is what I use", f"I will log in with {PASSWORD} then")
    page = next(iter(store.pages(Where())))
    clipped = f"log in with {PASSWORD[:12]}…"
    kept(
        store,
        PlanMade(
            id_of(store, turn),
            SentRequest(talk.line[-1], 1.0),
            (shows(talk.line[0], f"{GIVEN} and more " * 10),),
        ),
    )
    kept(
        store,
        HiddenKept(
            id_of(store, turn),
            Hidden(talk.line[-1], (json.dumps({"role": "user", "content": GIVEN}).encode(),)),
        ),
    )
    kept(store, Gisted((Gist(page.id, 7, (PASSWORD.lower(),), (PASSWORD,), ()),)))
    kept(store, Event("Retrieved", 3.0, turn.session, 1, {"query": PASSWORD, "hits": 2}))
    kept(
        store,
        Reference(
            "r1",
            turn.session,
            "stretch",
            (page.id,),
            (1, 1),
            5,
            3.0,
            ("billing", PASSWORD),
            (PASSWORD[:10],),
            (),
        ),
    )
    kept(store, Summary(turn.session, (1, 1), 0, 1, f"worked on billing; {clipped}", "rules", 4.0))
    return store, talk
