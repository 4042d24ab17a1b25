"""`hotset events`: what left, what was brought back, by whom, and where."""

from __future__ import annotations

from contextlib import closing

import pytest

from hotset.nouns.turn import Event
from hotset.store.sqlite import SqliteStore
from tests.cli.conftest import NOW, Desk, fill
from tests.cli.test_mcp import talk


def _events(desk: Desk, *arguments: str):
    return desk.run("events", *arguments, "--json").json()


def _session(desk: Desk) -> str:
    return desk.run("sessions", "--json").json()[0]["session"]["id"]


def _keep(desk: Desk, *events: Event) -> None:
    with closing(SqliteStore.open(desk.data)) as store:
        store.keep(*events).result(60)


@pytest.mark.row("V6")
def test_searches_of_every_door_are_in_the_audit_with_query_ids_score_and_agent(filled: Desk):
    session = _session(filled)
    (hit,) = filled.run("search", "it was the clock", "-n", "1", "--json").json()
    talk(filled, [("search_history", {"query": "clock"}), ("retrieve_context", {"id": "toolu_1"})])

    by_cli, by_mcp, by_id = _events(filled, "--type", "retrieval")
    assert by_cli["detail"]["query"] == "it was the clock"
    assert by_cli["detail"]["ids"].split() == [hit["page"]]
    assert (by_cli["detail"]["agent"], by_mcp["detail"]["agent"]) == ("user", "mcp")
    assert by_mcp["detail"]["query"] == "clock"
    assert by_mcp["detail"]["score"].split()[0] == "1.00"
    assert (by_id["detail"]["id"], by_id["session"], by_id["turn"]) == ("toolu_1", session, 4)
    shown = filled.run("events", "last").out
    assert 'search_history "clock" by mcp' in shown
    assert session in shown


@pytest.mark.row("V6")
@pytest.mark.row("V17")
def test_a_secret_in_a_query_is_not_kept_and_a_long_query_is_clipped(filled: Desk):
    secret = "ghp_" + "x7Kq2vLm9RtW4nZc8YbF3sHd6PjG5eUaT1oQ"
    filled.run("search", f"token {secret} " + "word " * 100)

    [event] = _events(filled, "--type", "retrieval")
    assert secret not in str(event)
    assert len(event["detail"]["query"]) <= 200


@pytest.mark.row("V6")
def test_events_are_filtered_by_session_type_agent_turns_and_time(filled: Desk):
    fill(filled.data, "Another task", NOW + 9000)
    other, session = (each["session"]["id"] for each in filled.run("sessions", "--json").json())
    evicted = {"cause": "pays", "stubs": 1, "tokens": 4200, "prompt": 9000, "ids": "rc1"}
    _keep(
        filled,
        Event("Evicted", NOW, session, 2, dict(evicted)),
        Event("Bypassed", NOW + 10, other, 3, {"reason": "no room"}),
        Event("Retrieved", NOW + 20, session, 3, {"tool": "x", "found": 0, "agent": "reviewer"}),
    )

    def names(*arguments: str) -> list[str]:
        return [each["name"] for each in _events(filled, *arguments)]

    assert names() == ["Evicted", "Bypassed", "Retrieved"]
    assert names(session) == ["Evicted", "Retrieved"]
    assert names("--type", "eviction", "--type", "bypassed") == ["Evicted", "Bypassed"]
    assert names("--agent", "reviewer") == ["Retrieved"]
    assert names("--turns", "2-2") == ["Evicted"]
    assert names("--turns", "3-") == ["Bypassed", "Retrieved"]
    assert names("-n", "1") == ["Retrieved"]
    assert names("--since", "2020-01-01", "--until", "2021-01-01") == []
    assert "4,200 tokens left as rc1 (pays)" in filled.run("events", session).out


def test_a_type_that_is_none_is_an_error_that_names_the_types(filled: Desk):
    ran = filled.run("events", "--type", "evictoin")
    assert ran.code == 2
    assert "did you mean eviction?" in ran.err


@pytest.mark.row("V6")
def test_an_event_gets_the_turn_of_the_call_that_it_names_or_its_sessions_latest(filled: Desk):
    session = _session(filled)
    with closing(SqliteStore.open(filled.data)) as store:
        second = list(store.turns(store.session(session).id))[1]
        store.keep(
            Event("A", NOW, detail={"call": second.id}), Event("B", NOW, second.session)
        ).result(60)

    assert [(each["session"], each["turn"]) for each in _events(filled)] == [
        (session, 2),
        (session, 4),
    ]


def test_where_nothing_is_kept_there_are_no_events_and_none_is_made(desk: Desk):
    assert _events(desk) == []
    desk.run("search", "anything")
    assert not desk.data.exists()
