"""A program that never heard of cache marks, with Anthropic's SDK: its cache works all the same."""

from __future__ import annotations

import anthropic
import pytest
from msgspec.structs import replace

from hotset.nouns.knobs import CacheKnobs
from hotset.nouns.message import Usage
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
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


class _Clock:
    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def _spaced(
    folder, fixed: str, pause: float, *, marked: bool = False
) -> tuple[list[Received], Usage]:
    """Six sessions of three calls, with a pause after each call; and what the provider got."""
    clock, marks = _Clock(), {"cache_control": {"type": "ephemeral"}}
    text = 2 * SYSTEM
    system = [{"type": "text", "text": text, **marks}] if marked else text
    knobs = replace(SHORTENING, cache=CacheKnobs(fixed=fixed))
    with (
        ScriptedUpstream(lambda _: Say("Well."), now=clock, strict=True) as upstream,
        LocalProxy(folder, anthropic_url=upstream.anthropic_url, knobs=knobs, clock=clock) as proxy,
        anthropic.Anthropic(
            base_url=proxy.address.anthropic_base_url, api_key="sk-test", max_retries=0
        ) as client,
    ):
        for session in range(6):
            messages: list = []
            for number in range(3):
                messages.append({"role": "user", "content": f"Question {session}.{number}"})
                reply = client.messages.create(
                    model="claude-sonnet-4-6",
                    max_tokens=1000,
                    system=system,
                    messages=messages,
                    tools=tools("anthropic", "read_file"),
                    extra_body=marks if marked else {},
                )
                messages.append({"role": "assistant", "content": reply.content[0].text})
                clock.now += pause
        return upstream.requests, upstream.bill


def _full_price(bill: Usage) -> float:
    return _price(bill) + 0.75 * bill.lasting


@pytest.mark.slow
def test_an_hour_pays_where_the_pauses_say_so_and_auto_knows(tmp_path):
    """Twenty minutes: longer than the short time, shorter than the long one."""
    bills = {
        fixed: _full_price(_spaced(tmp_path / fixed, fixed, 1200.0, marked=True)[1])
        for fixed in ("5m", "1h", "auto")
    }

    assert bills["1h"] < 0.5 * bills["5m"]
    assert bills["1h"] < bills["auto"] < 0.8 * bills["5m"]


@pytest.mark.slow
@pytest.mark.parametrize("pause", [10.0, 7200.0])
def test_auto_stays_with_the_short_time_where_no_pause_is_saved(tmp_path, pause):
    requests, bill = _spaced(tmp_path, "auto", pause, marked=True)

    assert bill.lasting == 0
    assert not any(b'"1h"' in each.body for each in requests)


@pytest.mark.slow
def test_a_sessions_fixed_part_keeps_its_time_and_a_client_without_marks_gets_it_too(tmp_path):
    requests, bill = _spaced(tmp_path, "1h", 10.0)

    assert bill.lasting > 0
    marked = [each.body.count(b'"1h"') for each in requests]
    assert marked == [0, 1, 1] * 6  # none before a conversation's second request
