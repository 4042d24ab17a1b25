"""What a plan needs before a request can go out, and what it does not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hotset.config import load
from hotset.dialects import DIALECTS
from hotset.errors import StoreFailed
from hotset.nouns.message import DialectName
from hotset.runtime.planner import Planner
from hotset.testing import RamStore

DIALECT = DIALECTS[DialectName.ANTHROPIC]
TOOLS = [{"name": "read_file", "input_schema": {"type": "object"}}]
USE = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}}],
}
RESULT = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a file"}],
}


class Unreadable(RamStore):
    def table(self, chains, as_of=None):
        raise StoreFailed("no look into it")


@pytest.fixture
def planner(tmp_path):
    return Planner(load(project=str(tmp_path), data=str(tmp_path), environ={}))


def request(*messages, model="claude-sonnet-5", **fields):
    said = [
        {"role": "user", "content": each} if isinstance(each, str) else each for each in messages
    ]
    return DIALECT.parse(
        json.dumps(
            {"model": model, "max_tokens": 999, "tools": TOOLS, "messages": said, **fields}
        ).encode()
    )


def prepare(planner, asked, store, now=1.0):
    return planner.prepare(asked, DIALECT, store, now, "anthropic", off=False)


def test_an_opening_is_planned_without_a_look_into_the_store(planner):
    prepare(planner, request("one"), RamStore())

    opening = request("another", system="Be brief.")
    assert planner.is_quick(opening)
    prepared = prepare(planner, opening, Unreadable())

    other = prepare(Planner(planner._config), opening, RamStore())
    assert prepared.offered
    assert prepared.body == other.body
    assert replace(prepared.bill, overhead_ms=0.0) == replace(other.bill, overhead_ms=0.0)


@pytest.mark.parametrize(
    "asked",
    [
        request("of a model that was never counted for", model="claude-opus-5"),
        request("a question", {"role": "assistant", "content": "its answer"}, "the next"),
        request("a question", USE, RESULT),
        request("a result whose call is missing", RESULT),
        request("a long one " * 2000),
    ],
    ids=["another model", "a reply", "a result", "a result alone", "long"],
)
def test_what_may_have_a_past_or_takes_long_is_not_planned_at_once(planner, asked):
    prepare(planner, request("one"), RamStore())
    assert not planner.is_quick(asked)


def test_an_opening_that_is_sent_again_is_known_from_memory(planner):
    opening = request("one", "and one more")
    planner.went_out(prepare(planner, opening, RamStore()))

    again = prepare(planner, opening, Unreadable(), now=2.0)

    assert again.facts.table.sent is not None
    assert again.facts.table.sent.head == again.links[-1].chain
