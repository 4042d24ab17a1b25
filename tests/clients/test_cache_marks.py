"""A program that never heard of cache marks, with Anthropic's SDK: its cache works all the same."""

from __future__ import annotations

import anthropic
import pytest
from msgspec.structs import replace

from hotset.nouns.knobs import CacheKnobs
from hotset.nouns.message import Usage
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.upstream.script import Received
from tests.proxy.talking import (
    SHORTENING,
    asked,
    assert_each_extends_the_one_before,
    code,
    looking,
    retrieve,
    tools,
)

_CALLS = 8
SYSTEM = "You are a careful engineer. " * 200


def _script(request: Received) -> Say:
    return looking(f"part_{request.index}.py") if request.index < _CALLS - 1 else Say("All read.")


def _price(bill: Usage) -> float:
    """By Anthropic's rules, in units of an uncached token."""
    return bill.input + 0.1 * bill.cache_read + 1.25 * bill.cache_write


def _work(base_url: str) -> str:
    messages: list = [{"role": "user", "content": "Read them."}]
    with anthropic.Anthropic(base_url=base_url, api_key="sk-test", max_retries=0) as client:
        for number in range(_CALLS):
            reply = client.messages.create(
                model="claude-sonnet-4-6",
                max_tokens=1000,
                system=SYSTEM,
                messages=messages,
                tools=tools("anthropic", "read_file"),
            )
            blocks = [block.model_dump(exclude_none=True) for block in reply.content]
            messages.append({"role": "assistant", "content": blocks})
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": block.id,
                    "content": code(f"f{number}", 12),
                }
                for block in reply.content
                if block.type == "tool_use"
            ]
            if not results:
                break
            messages.append({"role": "user", "content": results})
    return "".join(block.text for block in reply.content if block.type == "text")


def _marks(request: Received) -> int:
    return request.body.count(b'"cache_control"')


@pytest.mark.row("X3")
def test_from_the_second_request_on_the_cache_is_marked_and_the_bill_falls(pair):
    with ScriptedUpstream(_script, strict=True) as direct:
        _work(direct.anthropic_url)
        without = direct.bill
    world = pair(_script, strict=True)

    assert _work(world.address.anthropic_base_url) == "All read."

    sent = world.upstream.requests
    assert _marks(sent[0]) == 0
    assert all(2 <= _marks(each) <= 4 for each in sent[1:])
    assert_each_extends_the_one_before(sent)
    assert _price(world.upstream.bill) < 0.5 * _price(without)


def test_a_hidden_round_is_marked_like_the_others(pair):
    asking = Say("What was that?", calls=(retrieve("anthropic", "a1"),))
    world = pair([looking("a.py"), looking("b.py"), asking, Say("All read.")], strict=True)

    assert _work(world.address.anthropic_base_url).endswith("All read.")

    third, hidden = world.upstream.requests[2:]
    assert len(asked(hidden).messages) == len(asked(third).messages) + 2
    assert 2 <= _marks(hidden) <= 4
    assert b'"cache_control"' in asked(hidden).messages[-1].raw
    assert_each_extends_the_one_before(world.upstream.requests)


def test_one_switch_leaves_the_requests_unmarked(pair):
    world = pair(_script, strict=True, knobs=replace(SHORTENING, cache=CacheKnobs(marks=False)))

    _work(world.address.anthropic_base_url)

    assert [_marks(each) for each in world.upstream.requests] == [0] * _CALLS


def test_savings_count_what_the_marks_saved(pair):
    world = pair(_script, strict=True)
    _work(world.address.anthropic_base_url)

    with world.store() as store:
        bills = list(store.bills())
    assert all(bill.whole.cache_read == bill.whole.cache_write == 0 for bill in bills)
    assert bills[0].sent.cache_write == 0
    assert bills[1].sent.cache_write > 0
    assert all(bill.sent.cache_read > 0 for bill in bills[2:])
