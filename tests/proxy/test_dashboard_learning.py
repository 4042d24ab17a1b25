"""Learning over time, and what a search found, over HTTP: curves, adopting, taking back."""

from __future__ import annotations

import json
import random

import pytest

from hotset.learn.events import (
    Change,
    ChangeDecision,
    GateVerdict,
    SessionFigures,
    TrialSetting,
    change_id,
)
from hotset.learn.trials import DAY
from hotset.nouns.knobs import Knobs
from hotset.nouns.turn import Event
from hotset.runtime.learned_state import learn_event
from tests.learn.worlds import Store as Explored
from tests.proxy.test_views_parts import Page
from tests.proxy.wire import post, question
from tests.replay.finding import keep_found

NOW = 1_700_000_000.0


@pytest.fixture
def page(pair):
    world = pair(knobs=None)
    post(world.address, "anthropic", question("anthropic", "hello"))
    world.settle()
    return Page(world)


def keep(page, *events) -> None:
    with page.world.store() as store:
        for time, name, payload in events:
            store.keep(learn_event(name, payload, time)).result()


def adopt(knobs: dict[str, object], time: float) -> list[tuple[float, str, object]]:
    id = change_id(knobs, "test")
    return [
        (time, "ChangeProposed", Change(id, knobs, {}, "test", "so")),
        (time, "ChangeGated", GateVerdict(id, True, 0.1, 0.1, 0.1, 9)),
        (time, "ChangeAdopted", ChangeDecision(id, "so")),
    ]


@pytest.mark.row("X4")
def test_the_values_of_a_knob_are_told_over_time_and_page_by_page(page):
    keep(page, *adopt({"keep": 9}, NOW), *adopt({"crowd": 30}, NOW + 60))
    page.order("learning/act", act="reset", knobs=["keep"])

    found = page.read("learning/curves/knobs?days=0")
    (one,) = page.read("learning/curves/knobs?days=0&knob=keep")["rows"]
    second = page.read("learning/curves/knobs?days=0&offset=1&limit=1")

    assert [each["knob"] for each in found["rows"]] == ["keep", "crowd"]
    assert [(each["value"], each["what"]) for each in one["steps"]] == [
        (9, "adopted"),
        (None, "reset"),
    ]
    assert one["default"] == Knobs().keep
    assert one["what"]
    assert (second["total"], [each["knob"] for each in second["rows"]]) == (2, ["crowd"])
    assert found["since"] == NOW


@pytest.mark.row("X4")
def test_a_knob_that_changes_all_the_time_is_told_by_its_latest_values(page):
    orders = []
    for number in range(130):
        orders += [
            (NOW + number, "KnobsFrozen", {"knobs": ["keep"], "values": {"keep": 3 + number}}),
            (NOW + number, "KnobsThawed", {}),
        ]
    with page.world.store() as store:
        events = [
            Event(name, time, detail={"data": json.dumps(payload)})
            for time, name, payload in orders
        ]
        store.keep(*events).result()

    (curve,) = page.read("learning/curves/knobs?days=0")["rows"]

    assert len(curve["steps"]) == 200
    assert curve["left_out"] == 60
    assert [each["value"] for each in curve["steps"][-2:]] == [132, None]


@pytest.mark.row("X4")
def test_shares_and_beliefs_are_told_over_time_as_far_back_as_asked_for(page):
    explored, chance = Explored(), random.Random(2)
    explored.explore(("regret",))
    for number in range(60):
        explored.run_session(f"s{number}", lambda _: chance.gauss(0, 0.05), number * DAY / 20)
    with page.world.store() as store:
        events = [
            Event(name, time, detail={"data": data}) for _, name, data, time in explored.events
        ]
        store.keep(*events).result()
    keep(page, (5 * DAY, "TrialChanged", TrialSetting({"off": 0.1})))

    (belief,) = page.read("learning/curves/beliefs?days=0")["rows"]
    shares = page.read("learning/curves/shares?days=0")["days"]

    assert belief["knob"] == "regret"
    assert [each["sessions"] for each in belief["points"]] == [20, 40, 60]
    assert all(each["low"] <= each["mean"] <= each["high"] for each in belief["points"])
    assert [each["day"] for each in shares] == [0.0, 5 * DAY]
    assert shares[-1]["shares"] == {"default": 0.9, "off": 0.1}
    (recent,) = page.read("learning/curves/beliefs?days=30")["rows"]
    assert [each["sessions"] for each in recent["points"]] == [60]  # what held at first
    keep(page, (6 * DAY, "TrialChanged", TrialSetting({"off": 0.2})))
    again = page.read("learning/curves/shares?days=0")["days"]
    assert again[:-1] == shares
    assert again[-1]["shares"] == {"default": 0.8, "off": 0.2}


@pytest.mark.row("X4")
@pytest.mark.row("M12")
def test_what_a_search_found_is_adopted_and_taken_back(page):
    id = keep_found(page.world.folder, {"history.passage": 120}, Knobs())
    (part,) = page.read("learning/evolution")["parts"]
    assert part["change"] == {
        "id": id,
        "knobs": {"history.passage": 120},
        "before": {"history.passage": 300},
        "passed": True,
        "in_force": False,
        "refusal": "",
    }
    assert len(part["front"]) == 2
    assert "search misses" in part["up"]

    done = page.order("learning/act", act="adopt", changes=[id])

    assert id in done["says"]
    assert page.read("learning/evolution")["parts"][0]["change"]["in_force"]
    (row,) = page.read("learning")["status"]["changes"]
    assert (row["id"], row["stage"]) == (id, "adopted")
    assert "already" in page.order("learning/act", act="adopt")["says"]
    page.order("learning/act", act="revert", changes=[id])
    assert page.read("learning/knob/history.passage")["value"] == 300
    page.order("learning/act", act="adopt", changes=[id])
    assert page.read("learning/knob/history.passage")["value"] == 120
    (curve,) = page.read("learning/curves/knobs?days=0")["rows"]
    assert [each["value"] for each in curve["steps"]] == [120, None, 120]


@pytest.mark.row("X4")
@pytest.mark.row("M12")
def test_adopting_and_taking_back_are_refused_as_the_command_refuses_them(page):
    folder = page.world.folder
    first = keep_found(folder, {"history.passage": 120}, Knobs())
    page.order("learning/act", act="freeze", knobs=["history"])
    (part,) = page.read("learning/evolution")["parts"]
    assert "learn unfreeze history" in part["change"]["refusal"]
    refused = page.send("learning/act", act="adopt", changes=[first])
    assert refused.status == 400
    assert part["change"]["refusal"] in refused.json()["error"]
    page.order("learning/act", act="unfreeze", knobs=["history"])
    page.order("learning/act", act="adopt", changes=[first])
    second = keep_found(folder, {"history.of_call": 0.9}, Knobs())
    told = page.send("learning/act", act="adopt", changes=[second]).json()["error"]
    assert "history.passage was 300, is 120" in told
    turned = Knobs().with_changes({"history.passage": 120})
    second = keep_found(folder, {"history.of_call": 0.9}, turned)
    page.order("learning/act", act="adopt", changes=[second])

    stays = page.send("learning/act", act="revert", changes=[first])

    assert stays.status == 400
    assert f"{second} was adopted later and rests on it" in stays.json()["error"]
    never = keep_found(folder, {"history.of_call": 0.1}, turned, passed=False)
    told = page.send("learning/act", act="adopt", changes=[never]).json()["error"]
    assert "not shown to be better" in told
    assert page.read("learning/knob/history.of_call")["value"] == 0.9


@pytest.mark.row("X4")
def test_a_change_is_taken_back_by_its_id_and_then_allowed_again(page):
    keep(page, *adopt({"keep": 9}, NOW), *adopt({"crowd": 30}, NOW))
    id = change_id({"keep": 9}, "test")
    page.order("learning/act", act="reset", changes=[id])
    stages = {row["id"]: row["stage"] for row in page.read("learning")["status"]["changes"]}
    assert stages == {id: "reset", change_id({"crowd": 30}, "test"): "adopted"}
    page.order("learning/act", act="unreset", changes=[id])
    with page.world.store() as store:
        assert [each.name for each in store.events()][-1] == "ResetLifted"


@pytest.mark.row("X4")
def test_exploring_is_begun_and_ended_and_a_value_is_given_and_taken_back(page):
    page.order("learning/act", act="trial", shares={"explore": 0.2})
    assert page.read("learning")["status"]["explores"] == 0.2
    page.order("learning/act", act="trial", shares={"explore": 0})
    assert page.read("learning")["status"]["explores"] == 0
    assert page.read("learning/price")["sessions"] == 1
    page.order("learning/act", act="freeze", knobs=["tools.Bash"], value="{over=9000, room=4500}")
    assert page.read("learning")["orders"] == {"tools.Bash": {"over": 9000, "room": 4500}}
    assert page.send("learning/act", act="freeze", value="9").status == 400
    assert page.send("learning/act", act="freeze", knobs=["keep"], value="many").status == 400
    page.order("learning/act", act="unfreeze", knobs=["tools.Bash"])
    assert page.read("learning")["orders"] == {}


@pytest.mark.row("X4")
def test_what_was_learned_and_ordered_is_told_in_sentences_without_json(page):
    figures = SessionFigures("s1", success=1.0, cost=40.0, whole=100.0, explored={"regret": 0.5})
    keep(page, (NOW, "SessionObserved", figures), *adopt({"keep": 9}, NOW))
    page.order("learning/act", act="freeze", knobs=["crowd"], value="30")
    page.order("learning/act", act="reset", changes=[change_id({"keep": 9}, "test")])
    said = [row["says"] for row in page.read("events?type=learning")["rows"]]
    assert said[:2] == [f"reset: {change_id({'keep': 9}, 'test')}", "frozen: crowd = 30"]
    assert said[-1] == (
        "s1 was observed: success 100%, cost 40% of full history's, explored regret"
    )
    assert not [each for each in said if "{" in each]
