"""`hotset findings`: what costs most, and what to do about it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from hotset.nouns.bill import Bill
from hotset.nouns.deposit import Billed
from hotset.nouns.message import Part, Usage
from hotset.nouns.page import Kind, Role
from hotset.nouns.turn import Event
from hotset.store.sqlite import SqliteStore
from hotset.testing.store_talk import StoreTalk, id_of, kept, message, turn_of
from tests.cli.conftest import NOW, Desk

UNCACHED = Bill("claude-sonnet-4-5", "anthropic", usage=Usage(input=20_000, output=10))


@pytest.fixture
def worked(desk: Desk) -> Desk:
    """A session that reads one file six times, from no cache, and asks one page back each time."""
    with closing(SqliteStore.open(desk.data)) as store:
        talk = StoreTalk(store, time=NOW)
        for number in range(6):
            content = f"value = {number}\n".encode() * 400
            result = Part(Kind.FILE, content, tool="Read", call=f"c{number - 1}")
            given = message(Role.USER, result) if number else "look at it"
            turn = turn_of(talk.asks(given))
            called = Part(
                Kind.TOOL_CALL, b'{"file_path": "src/a.py"}', tool="Read", call=f"c{number}"
            )
            talk.hears(turn, message(Role.ASSISTANT, called))
            broke = "cold" if number == 4 else ""
            kept(store, Billed(id_of(store, turn), replace(UNCACHED, broke=broke)))
            detail = {"tool": "retrieve_context", "id": "r1", "found": 1, "tokens": 900}
            kept(store, Event("Retrieved", NOW, turn.session, turn.number, dict(detail)))
        last = {"reason": "the plan was late"}
        kept(store, Event("Bypassed", NOW, turn.session, turn.number, dict(last)))
    return desk


def test_findings_say_what_costs_most_and_what_to_do(worked: Desk):
    found = worked.run("findings", "--json").json()

    rows = {each["kind"]: each for each in found["rows"]}
    prices = [each["dollars"] or 0.0 for each in found["rows"]]
    assert prices == sorted(prices, reverse=True)
    assert {"no_cache", "read_again", "fills", "break", "asked_back"} <= rows.keys()
    assert rows["no_cache"]["is_measured"]
    assert rows["no_cache"]["dollars"] == pytest.approx(100_000 * 3 * 0.9 / 1e6)
    assert rows["read_again"]["action"]["text"].startswith("hotset window pin p")
    assert rows["break"]["action"]["text"] == '[knobs]\ncache.fixed = "auto"'
    assert "6 times" in rows["asked_back"]["sentence"]

    ran = worked.run("findings")
    assert ran.code == 0
    assert ran.out.index("measured") < ran.out.index("src/a.py was read 5 times")
    assert "config" not in ran.err


def test_findings_of_nothing_say_how_to_begin(desk: Desk):
    ran = desk.run("findings")
    assert (ran.code, ran.out) == (0, "")
    assert "hotset wrap" in ran.err
    assert desk.run("findings", "--json").json()["rows"] == []
