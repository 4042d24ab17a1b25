"""`hotset plan`: every candidate of a turn with its worth, its price and the reason, from a real
proxy."""

from __future__ import annotations

import json

import pytest

from hotset.nouns.deposit import Remembered
from hotset.nouns.knobs import Knobs, Limit
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.cli.conftest import Desk
from tests.proxy.wire import post
from tests.sources.memory.consolidate.making import fact

PROMPT = "Which port does the staging database listen on?"
FACT = "The staging database listens on port 5432."
LONG = "\n".join(f"{number:04d} the needle is not in this line" for number in range(400))
TOOLS = [{"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}}]


@pytest.fixture
def kept(desk: Desk) -> Desk:
    """A session of two turns: its prompt is told of a memory, its result is shortened."""
    with SqliteStore.open(desk.data) as store:
        store.keep(Remembered((fact(FACT),))).result()
    replies = iter((Say("Reading.", (Call("Read", {"path": "all.txt"}),)), Say("Port 5432.")))
    with (
        ScriptedUpstream(lambda _request: next(replies)) as upstream,
        LocalProxy(
            desk.data,
            anthropic_url=upstream.anthropic_url,
            knobs=Knobs(limit=Limit(1000, 400), limits={}),
        ) as proxy,
    ):
        messages: list[dict[str, object]] = [{"role": "user", "content": PROMPT}]
        for _ in range(2):
            body = {
                "model": "claude-sonnet-4-5",
                "max_tokens": 99,
                "tools": TOOLS,
                "messages": messages,
            }
            reply = post(proxy.address, "anthropic", json.dumps(body).encode()).json()
            result = {"type": "tool_result", "tool_use_id": "", "content": LONG}
            calls = [each for each in reply["content"] if each["type"] == "tool_use"]
            messages += [
                {"role": "assistant", "content": reply["content"]},
                {
                    "role": "user",
                    "content": [{**result, "tool_use_id": each["id"]} for each in calls],
                },
            ]
        assert FACT.encode() in upstream.requests[0].body
    return desk


@pytest.mark.row("X1")
def test_a_turn_is_explained_with_every_offer_its_worth_and_its_price(kept: Desk):
    first = kept.run("plan", "last", "1", "--json").json()

    [offer] = first["candidates"]
    assert (offer["source"], offer["kind"], offer["is_taken"]) == ("memory", "reminder", True)
    assert 0 < offer["worth"] <= 1
    assert offer["tokens"] > 0
    assert FACT not in json.dumps(first)  # by names and numbers, without the text
    shown = kept.run("plan", "last", "1").out
    assert "memory" in shown
    assert "taken" in shown


def test_the_form_of_a_page_and_the_knobs_of_its_session_are_told(kept: Desk):
    second = kept.run("plan", "--json").json()

    [form] = second["forms"]
    assert (form["form"], form["cause"]) == ("excerpt", "birth")
    assert form["tokens"] < form["whole"]
    assert second["candidates"] == []
    assert second["knobs"]["limit"]["over"] == 1000
    assert "an excerpt" in kept.run("plan").out


def test_an_unknown_turn_is_refused_with_what_there_is(kept: Desk):
    refused = kept.run("plan", "last", "9")
    assert refused.code == 1
    assert "it has 2 turns" in refused.err
