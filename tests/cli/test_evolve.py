"""`hotset evolve`: search, kill and resume, adopt, a new session has it, revert to the byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotset.learn.state import changes_in_force
from hotset.nouns.knobs import Knobs
from hotset.runtime.learned_state import read_state
from hotset.store.sqlite import SqliteStore
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.cli.conftest import Desk
from tests.proxy.wire import post
from tests.replay.asking import write_sessions
from tests.replay.finding import keep_found
from tests.waiting import wait_until

SEARCH = ("--part", "history", "--budget", "40", "--json")


@pytest.fixture
def books(desk: Desk) -> Path:
    return write_sessions(desk.home / "books.jsonl")


def learned(desk: Desk) -> dict[str, object]:
    with SqliteStore.open(desk.data) as store:
        return changes_in_force(read_state(store))


def knobs_of_a_new_session(desk: Desk, prompt: str) -> dict[str, object]:
    """What a session through the proxy runs with."""
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": prompt}],
    }
    with (
        ScriptedUpstream(lambda _request: Say("Done.")) as upstream,
        LocalProxy(desk.data, anthropic_url=upstream.anthropic_url, knobs=None) as proxy,
    ):
        post(proxy.address, "anthropic", json.dumps(body).encode()).json()
    planned = desk.run("plan", "last", "1", "--json")
    assert planned.code == 0, planned.err
    return planned.json()["knobs"]


def found(desk: Desk, values: dict[str, object], on: Knobs, *, passed: bool = True) -> str:
    return keep_found(desk.data, values, on, passed=passed)


def test_a_change_is_adopted_only_on_the_knobs_that_it_was_measured_with(desk):
    first = found(desk, {"history.passage": 120}, Knobs())
    assert desk.run("evolve", "adopt").code == 0
    second = found(desk, {"history.of_call": 0.9}, Knobs().with_changes({"history.passage": 120}))
    assert desk.run("evolve", "revert", first).code == 0

    refused = desk.run("evolve", "adopt", second)

    assert refused.code == 2
    assert "history.passage was 120, is 300" in refused.err
    assert learned(desk) == {}


def test_a_frozen_knob_is_not_adopted_and_the_refusal_says_how_to_unfreeze_it(desk):
    id = found(desk, {"history.passage": 120}, Knobs())
    desk.run("evolve", "adopt")
    assert desk.run("learn", "freeze", "history.passage").code == 0
    assert "learn unfreeze history.passage" in desk.run("evolve", "revert").err  # it would stay
    desk.run("learn", "unfreeze")
    assert desk.run("evolve", "revert").code == 0
    for frozen, undo in (("history", "learn unfreeze history"), ("", "learn unfreeze")):
        assert desk.run("learn", "freeze", *frozen.split()).code == 0

        refused = desk.run("evolve", "adopt", id)

        assert refused.code == 2
        assert "frozen" in refused.err
        assert undo in refused.err
        assert desk.run("learn", "unfreeze").code == 0
    assert desk.run("evolve", "adopt", id).code == 0


def test_a_change_that_a_later_one_rests_on_is_not_reverted_before_it(desk):
    before = knobs_of_a_new_session(desk, "Before.")
    first = found(desk, {"history.passage": 120}, Knobs())
    desk.run("evolve", "adopt")
    between = knobs_of_a_new_session(desk, "Between.")
    second = found(desk, {"history.passage": 450}, Knobs().with_changes({"history.passage": 120}))
    assert desk.run("evolve", "adopt").code == 0

    refused = desk.run("evolve", "revert", first)

    assert refused.code == 2
    assert f"hotset evolve revert {second}" in refused.err
    assert learned(desk) == {"history.passage": 450}
    for id, then, told in ((second, between, "450 -> 120"), (first, before, "120 -> 300")):
        assert told in desk.run("evolve", "revert", id).out
        after = knobs_of_a_new_session(desk, f"After {id}.")
        assert json.dumps(after, sort_keys=True) == json.dumps(then, sort_keys=True)


def test_learn_names_the_undo_of_an_evolved_change_and_all_the_knobs_that_a_reset_takes_back(desk):
    first = found(desk, {"history.of_page": 0.1, "history.passage": 120}, Knobs())
    desk.run("evolve", "adopt")
    turned = Knobs().with_changes({"history.of_page": 0.1, "history.passage": 120})
    second = found(desk, {"history.of_call": 0.9}, turned)
    desk.run("evolve", "adopt")

    told = desk.run("learn", "status").out
    reset = desk.run("learn", "reset", "history.passage")

    assert f"undo: hotset evolve revert {first}" in told
    assert f"took back {first} (history.of_page, history.passage)" in reset.out
    assert f"hotset evolve revert {second}" in reset.out
    assert learned(desk) == {"history.of_call": 0.9}


def test_a_search_that_finds_nothing_keeps_what_another_found(desk, books):
    id = found(desk, {"history.passage": 120}, Knobs())
    found(desk, {"history.passage": 700}, Knobs(), passed=False)
    searched = desk.run("evolve", str(books), "--part", "window", "--budget", "1", "--json").json()

    assert [part["part"] for part in searched["parts"]] == ["window"]
    assert id in desk.run("evolve", "status").out
    assert desk.run("evolve", "adopt", "--json").json()["adopted"] == [id]


def test_a_picture_that_cannot_be_written_is_told_first_or_costs_no_report(desk, books):
    nowhere = desk.home / "nowhere"
    refused = desk.run("evolve", str(books), *SEARCH, "--picture", str(nowhere / "front.svg"))

    assert refused.code == 2
    assert f"there is no folder {nowhere}" in refused.err
    assert not (desk.data / "evolve").exists()
    (desk.data / "evolve" / "front.svg").mkdir(parents=True)
    printed = desk.run("evolve", str(books), *SEARCH)
    assert printed.code == 2
    assert printed.json()["parts"]
    assert str(desk.data / "evolve" / "front.svg") in printed.err


@pytest.mark.row("M12")
def test_a_search_is_killed_and_resumed_adopted_and_taken_back_to_the_byte(desk, books):
    points = desk.data / "evolve"
    long = desk.start("evolve", str(books), "--part", "history", "--budget", "100000", "-q")
    wait_until(lambda: any(each.stat().st_size > 5000 for each in points.glob("*.jsonl")))
    long.kill()
    assert long.wait(120) < 0

    found = desk.run("evolve", str(books), *SEARCH)

    assert found.code == 0, found.err
    [part] = found.json()["parts"]
    assert part["verdict"]["passed"]
    assert part["tried"] == 40
    change = part["change"]
    assert all(Knobs().value(name) is not None for name in change["knobs"])
    assert (points / "front.svg").read_text().startswith("<svg")
    before = knobs_of_a_new_session(desk, "Before.")
    assert not any(name in before for name in change["knobs"])

    adopted = desk.run("evolve", "adopt")

    assert adopted.code == 0, adopted.err
    assert change["id"] in adopted.out
    assert learned(desk) == change["knobs"]
    assert knobs_of_a_new_session(desk, "After.") == {**before, **change["knobs"]}
    assert "already" in desk.run("evolve", "adopt", change["id"]).out

    reverted = desk.run("evolve", "revert")

    assert reverted.code == 0, reverted.err
    assert learned(desk) == {}
    after = knobs_of_a_new_session(desk, "And again.")
    assert json.dumps(after, sort_keys=True) == json.dumps(before, sort_keys=True)
    assert "rolled back" in desk.run("evolve", "status").out


def test_a_resumed_search_finds_what_an_uninterrupted_one_finds(desk, books, tmp_path):
    first = desk.run("evolve", str(books), *SEARCH).json()["parts"]
    again = desk.run("evolve", str(books), *SEARCH).json()["parts"]
    fresh = desk.run("evolve", str(books), *SEARCH, "--data", str(tmp_path / "other")).json()

    for parts in (again, fresh["parts"]):
        assert [{**each, "seconds": 0} for each in parts] == [
            {**each, "seconds": 0} for each in first
        ]


def test_the_projects_own_sessions_are_searched_where_no_file_is_named(desk, books):
    learned_from = desk.run("memory", "learn", str(books), "--any-folder")
    assert learned_from.code == 0, learned_from.err

    found = desk.run("evolve", *SEARCH)

    assert found.code == 0, found.err
    [part] = found.json()["parts"]
    assert part["searched"] == 12
    assert part["verdict"]["passed"], part["why"]


def test_what_was_not_shown_to_be_better_is_not_adopted(desk, books):
    rows = [json.loads(line) for line in books.read_text().splitlines()]
    for row in rows:  # what is copied at the end stands in no ledger
        for message in row["msgs"][: 2 * 6 + 1]:
            if message["r"] == "tool":
                message["t"] = message["t"].replace("balanced", "seen")
    for row in rows[12:]:
        row["msgs"] = row["msgs"][:1] + row["msgs"][13:27] + row["msgs"][1:13] + row["msgs"][27:]
    books.write_text("\n".join(map(json.dumps, rows)))

    found = desk.run("evolve", str(books), "--part", "window", "--budget", "6")

    assert found.code == 0, found.err
    refused = desk.run("evolve", "adopt")
    assert refused.code == 2
    assert "nothing can be adopted" in refused.err
    assert learned(desk) == {}


def test_a_project_without_sessions_is_told_what_is_missing(desk):
    found = desk.run("evolve")

    assert found.code == 1
    assert "too little is recorded" in found.err
    assert "history needs 16 sessions in which results are used long after, and there are 0" in (
        found.err
    )
    assert not (desk.data / "evolve").exists()
    assert desk.run("evolve", "list").code == 0
    assert "hotset evolve" in desk.run("evolve", "status").out
    assert desk.run("evolve", "adopt").code == 1


@pytest.mark.parametrize("typed", ["0.6", "a,b,c", "-1,1,1", "0,0,1", "nan,1,1", "1,inf,0"])
def test_weights_that_are_none_are_refused(desk, books, typed):
    assert desk.run("evolve", str(books), "--weights", typed).code == 2


@pytest.mark.parametrize("typed", ["nan", "inf", "-1", "0"])
def test_minutes_that_are_none_are_refused(desk, books, typed):
    assert desk.run("evolve", str(books), "--minutes", typed).code == 2
