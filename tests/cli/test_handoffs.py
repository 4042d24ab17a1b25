"""`hotset handoffs`, and what handoffs cost in `hotset savings`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hotset.testing import ScriptedUpstream
from tests.cli.conftest import Desk, desk_in
from tests.handoff_story import FIRST, WINDOW
from tests.proxy.conftest import stopped
from tests.proxy.test_handoff import Player, begin, proxy_over, visible, work


@pytest.fixture(scope="module")
def handed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A project in which an engineer handed over twice."""
    place: Path = tmp_path_factory.mktemp("handed")
    desk = desk_in(place)
    with (
        ScriptedUpstream(Player(), now=stopped, strict=True) as upstream,
        proxy_over(desk.data, upstream, project=desk.project) as proxy,
    ):
        talk = begin(proxy, "anthropic", **{"x-hotset-metadata": "task=T-7"})
        for number in work(talk, visible()):
            if number == 38:
                break
        proxy.wait_until_idle()
    yield desk
    desk.clear()


@pytest.mark.row("V15")
def test_the_chain_is_listed_and_one_handoff_is_shown_in_full(handed: Desk):
    latest, first = handed.run("handoffs", "--json").json()
    assert [each["index"] for each in (first, latest)] == [1, 2]
    assert first["turns"] == f"1-{first['turn'] - 1}"
    assert (latest["kind"], latest["reason"], latest["window"]) == ("engineer", "full", WINDOW)
    assert latest["prompt"] <= 0.25 * WINDOW
    assert latest["state"]["kind"] == "engineer"
    assert latest["state"]["original_prompt"] == FIRST
    assert latest["state"]["task_id"] == "T-7"
    assert handed.run("handoffs", "last", "--json").json() == [latest, first]

    listed = handed.run("handoffs")
    assert listed.code == 0
    assert len(listed.out.splitlines()) == 3
    assert f"hotset handoffs {latest['session']} 2" in listed.err
    one = handed.run("handoffs", "last", "1")
    assert one.code == 0
    assert "We decided to allow 37 requests per second" in one.out
    assert f"bring back: hotset recall {first['references'][0]}" in one.out
    assert handed.run("handoffs", "last", "1", "--json").json() == first
    assert handed.run("recall", first["references"][0]).code == 0


def test_a_handoff_that_is_not_there_is_a_sentence(handed: Desk):
    lost = handed.run("handoffs", "last", "9")
    assert lost.code == 1
    assert lost.err == "hotset: there is no handoff 9 here; there is: 1, 2\n"
    assert handed.run("handoffs", "nobody").code == 1


def test_what_a_turn_was_offered_has_the_tool_for_notes(handed: Desk):
    session = handed.run("handoffs", "--json").json()[0]["session"]
    shown = handed.run("diff", session, "5", "--json")
    assert shown.code in (0, 1), shown.err
    assert "handoff_note" in shown.json()["tools"]


def test_the_turn_that_handed_over_can_be_looked_at(handed: Desk):
    latest = handed.run("handoffs", "--json").json()[0]
    turn = latest["session"], str(latest["turn"])
    assert "because the agent handed its window over" in handed.run("diff", *turn).out
    assert "handoff.at" in handed.run("plan", *turn).out
    assert handed.run("plan", *turn, "--json").json()["forms"]


@pytest.mark.row("V15")
def test_what_handoffs_cost_is_part_of_the_savings(handed: Desk):
    cost = handed.run("savings", "--json").json()["handoffs"]
    kept = handed.run("handoffs", "--json").json()
    assert cost["handoffs"] == 2
    assert cost["rewritten"] == sum(each["rewritten"] for each in kept)
    assert cost["state_tokens"] == sum(each["state_tokens"] for each in kept)
    assert cost["dollars"] > 0
    assert f"2 handoffs sent {cost['rewritten']:,} tokens anew" in handed.run("savings").out


@pytest.mark.row("V15")
def test_searches_and_events_find_a_handoff(handed: Desk):
    found = handed.run("search", "requests per second tenant", "--kind", "handoff", "--json").json()
    assert {each["kind"] for each in found} == {"handoff"}
    assert "37 requests per second" in found[0]["text"]
    names = [each["name"] for each in handed.run("events", "--type", "handoff", "--json").json()]
    assert names == ["HandoffDue", "Handoff"] * 2
    due, made = handed.run("events", "--type", "handoff", env={"COLUMNS": "200"}).out.splitlines()[
        :2
    ]
    assert "a handoff is due, none was made yet" in due
    assert "handoff 1 of engineer (full): turns 1-" in made


def test_what_is_printed_to_type_next_names_the_same_project(handed: Desk, tmp_path: Path):
    beside = ("--data", str(handed.data), "--project", str(handed.project))
    one = handed.run("handoffs", "last", "1", *beside)
    (line,) = [each for each in one.out.splitlines() if each.startswith("bring back:")][:1]
    assert line.endswith(" ".join(beside))


@pytest.mark.row("V15")
def test_a_planned_handoff_is_listed_among_the_breaks_and_is_no_lost_cache(handed: Desk):
    total = handed.run("savings", "--json").json()["total"]
    assert (total["breaks"], total["prefix_kept_pct"]) == ({"handoff": 2}, 100.0)
