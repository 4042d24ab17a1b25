"""What a person is told of: figures beyond their thresholds, as a real proxy sees them over real
turns."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hotset.config import load
from hotset.nouns.knobs import Knobs
from hotset.nouns.turn import Event
from hotset.runtime.metrics import over_store
from hotset.store.sqlite import SqliteStore
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.upstream.script import Received
from tests.proxy.talking import SHORTENING, Talk, code, looking
from tests.waiting import ask

WORDS = "some words that are said, and said once more, and then again. " * 200
ENOUGH = 50
"""Turns from which on shares are judged."""

READS = 21
"""Results of which all but the first repeat it: enough to judge by."""

Play = Callable[[LocalProxy], None]


def says(request: Received) -> Say:
    """Reads the same file many times, once it is asked to."""
    said = json.loads(request.decoded)["messages"]
    return looking(*["a.py"] * READS) if said[-1]["content"] == "read" else Say("Done.")


def told(
    folder: Path, play: Play, alerts: str = "", **chosen: Any
) -> tuple[dict[str, Any], dict[str, Any], list[Event]]:
    """The figures that the proxy tells, the alerts that stand, and those that were kept."""
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "config.toml").write_text(f"[alerts]\n{alerts}\n")
    with (
        ScriptedUpstream(says) as upstream,
        LocalProxy(folder, anthropic_url=upstream.anthropic_url, **chosen) as proxy,
    ):
        play(proxy)
        deadline = time.monotonic() + 120
        while (status := ask(proxy.address)) is None or status["keeping"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    with closing(SqliteStore.open(folder)) as store:
        raised = [event for event in store.events() if event.name == "Alert"]
    return status["metrics"], {alert["name"]: alert for alert in status["alerts"]}, raised


def asks(text: str, times: int = ENOUGH) -> Play:
    def play(proxy: LocalProxy) -> None:
        for number in range(times):
            Talk(proxy.address, "anthropic").say(f"{number} {text}")

    return play


def reads(text: str) -> Play:
    def play(proxy: LocalProxy) -> None:
        talk = Talk(proxy.address, "anthropic")
        talk.say("read")
        talk.results(*[text] * READS)
        asks("what now?", 8)(proxy)

    return play


@pytest.mark.row("C8")
def test_turns_that_take_more_tokens_than_they_are_meant_to_are_told_where_a_bound_is_set(tmp_path):
    figures, standing, raised = told(tmp_path, asks(WORDS), "prompt_per_turn = 1000")

    alert = standing["prompt_per_turn"]
    assert (alert["threshold"], alert["side"]) == (1000, "above")
    assert alert["value"] == pytest.approx(figures["prompt_per_turn"], abs=1)
    assert alert["value"] > 2000
    (event,) = [event for event in raised if event.detail["name"] == "prompt_per_turn"]
    assert event.detail["threshold"] == 1000


@pytest.mark.slow
def test_without_a_bound_no_number_of_tokens_is_too_many(tmp_path):
    assert "prompt_per_turn" not in told(tmp_path, asks(WORDS))[1]


@pytest.mark.row("C8")
@pytest.mark.parametrize(("alerts", "is_told"), [("", True), ("window_pct = 100", False)])
@pytest.mark.rest_slow
def test_prompts_that_fill_the_window_are_told(tmp_path, alerts, is_told):
    figures, standing, raised = told(tmp_path, asks(WORDS), alerts, budget=3550)

    assert 0.9 * 3550 < figures["mean_context"] < 3550
    assert ("window_pct" in standing) is is_told
    assert ("window_pct" in {event.detail["name"] for event in raised}) is is_told


@pytest.mark.row("C8")
def test_results_that_are_sent_again_are_told(tmp_path):
    never = structs.replace(SHORTENING.forms, repeat=10_000_000)
    knobs = structs.replace(SHORTENING, forms=never)
    figures, standing, raised = told(tmp_path, reads(code()), knobs=knobs)

    assert figures["dedup_hit_pct"] == 0.0
    assert (standing["dedup_hit_pct"]["value"], standing["dedup_hit_pct"]["side"]) == (0.0, "below")
    assert "dedup_hit_pct" in {event.detail["name"] for event in raised}


@pytest.mark.row("C8")
@pytest.mark.parametrize(
    ("knobs", "hits"), [(None, 100.0), (SHORTENING, 100.0), (Knobs(echo=False), None)]
)
def test_results_that_are_pointed_to_are_no_cause_for_an_alert_nor_are_they_where_nothing_is_pointed_to(  # noqa: E501
    tmp_path, knobs, hits
):
    figures, standing, _ = told(tmp_path, reads(WORDS[:2000]), knobs=knobs)

    assert figures["dedup_hit_pct"] == hits
    assert "dedup_hit_pct" not in standing


@pytest.mark.row("C8")
def test_what_is_told_since_the_start_is_what_is_told_of_the_same_turns_later(tmp_path):
    """Each session is set right by its own provider's reports, while it runs and afterwards."""

    def play(proxy: LocalProxy) -> None:
        for number in range(3):
            talk = Talk(proxy.address, "anthropic")
            talk.say(f"read, {number} " + WORDS * number)
            for _ in range(number * 3):
                talk.say("go on")
        reads(code())(proxy)

    figures, _, _ = told(tmp_path, play, knobs=SHORTENING)
    with closing(SqliteStore.open(tmp_path)) as store:
        later, _ = over_store(
            store, load(data=str(tmp_path), project=str(tmp_path), environ={}), 0.0
        )

    same = (
        "turns",
        "prompt_per_turn",
        "whole_per_turn",
        "spent_dollars",
        "saved_dollars",
        "saved_pct",
    )
    assert {name: figures[name] for name in same} == {
        name: pytest.approx(asdict(later)[name]) for name in same
    }
