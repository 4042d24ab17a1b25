"""The simulated prompt caches charge what the providers' rules say: examples worked out by hand,
then properties."""

from __future__ import annotations

import anthropic
import openai
import pytest
from hypothesis import given, settings, strategies as st

from hotset.testing import Clock, Say, ScriptedUpstream
from hotset.testing.upstream.cache import (
    LONG,
    SHORT,
    BreakpointsRefused,
    CachedBlock,
    Charge,
    MarkedPrompt,
    PlainPrompt,
    PromptCache,
    estimate_tokens,
    marked_prompt,
    minimum_prefix,
    serve_marked,
    serve_plain,
)


def block(name, tokens, ttl=None):
    return CachedBlock(name.encode().ljust(tokens * 4, b"."), ttl)


def prompt(*messages, tools=(), system=(), model="claude-sonnet-5", **fields):
    return MarkedPrompt(model, tuple(tools), tuple(system), tuple(messages), **fields)


def charges(*prompts, apart=1.0):
    """What each of these costs when they come one after the other."""
    cache, now, charged = PromptCache(), 1000.0, []
    for each in prompts:
        serve = serve_plain if isinstance(each, PlainPrompt) else serve_marked
        charge, cache = serve(cache, each, now)
        charged.append(charge)
        now += apart
    return charged


def test_four_bytes_are_a_token():
    assert [estimate_tokens(b"x" * size) for size in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_what_is_marked_is_written_once_and_then_read():
    asked = prompt(block("q", 2000, SHORT), block("tail", 100))
    assert charges(asked, asked) == [Charge(fresh=100, written=2000), Charge(fresh=100, read=2000)]


def test_without_a_mark_nothing_is_cached():
    asked = prompt(block("q", 5000))
    assert charges(asked, asked) == [Charge(fresh=5000)] * 2


def test_a_longer_conversation_reads_its_past_and_writes_its_news():
    first = prompt(block("q", 2000, SHORT))
    second = prompt(block("q", 2000), block("a", 300), block("q2", 700, SHORT))
    assert charges(first, second)[1] == Charge(read=2000, written=1000)


@pytest.mark.parametrize(
    ("model", "minimum"),
    [
        ("claude-opus-5", 512),
        ("claude-sonnet-5", 1024),
        ("claude-opus-4-7-20260401", 2048),
        ("claude-haiku-4-5", 4096),
        ("unknown", 1024),
    ],
)
def test_below_the_models_minimum_nothing_is_cached(model, minimum):
    below, enough = (
        prompt(block("q", tokens, SHORT), model=model) for tokens in (minimum - 1, minimum)
    )
    assert minimum_prefix(model) == minimum
    assert charges(below, below)[1] == Charge(fresh=minimum - 1)
    assert charges(enough, enough)[1] == Charge(read=minimum)


@pytest.mark.parametrize(("added", "hit"), [(19, True), (20, False)])
def test_a_breakpoint_looks_back_over_twenty_blocks_itself_included(added, hit):
    first = prompt(block("q", 2000, SHORT))
    news = [block(f"n{number}", 10) for number in range(added - 1)]
    second = prompt(block("q", 2000), *news, block("last", 10, SHORT))
    assert charges(first, second)[1] == (
        Charge(read=2000, written=10 * added) if hit else Charge(written=2000 + 10 * added)
    )


def test_an_entry_lives_five_minutes_after_its_last_use():
    asked = prompt(block("q", 2000, SHORT))
    assert [charge.read for charge in charges(asked, asked, asked, asked, apart=299)] == [
        0,
        2000,
        2000,
        2000,
    ]
    assert [charge.read for charge in charges(asked, asked, apart=300)] == [0, 0]


def test_an_hour_can_be_asked_for_and_is_counted_apart():
    asked = prompt(block("q", 2000, SHORT), system=[block("rules", 1500, LONG)])
    first, later = charges(asked, asked, apart=1800)
    assert first == Charge(written=3500, written_long=1500)
    assert later == Charge(read=1500, written=2000)


def test_an_hour_may_not_come_after_five_minutes():
    with pytest.raises(BreakpointsRefused, match="must not come after"):
        charges(prompt(block("q", 2000, LONG), system=[block("rules", 1500, SHORT)]))


TIERS = {"tools": [block("tools", 1100, SHORT)], "system": [block("system", 1100, SHORT)]}


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ({}, 3300),
        ({"settings": b"thinking on"}, 2200),
        ({"system": [block("another", 1100, SHORT)]}, 1100),
        ({"tools": [block("another", 1100, SHORT)]}, 0),
        ({"model": "claude-opus-5"}, 0),
    ],
)
def test_a_change_kills_what_is_built_on_it(change, read):
    before = prompt(block("q", 1100, SHORT), **TIERS)
    after = prompt(block("q", 1100, SHORT), **{**TIERS, **change})
    assert charges(before, after)[1] == Charge(read=read, written=3300 - read)


def test_a_fifth_mark_is_refused_in_the_providers_words():
    marked = [block(str(number), 10, SHORT) for number in range(5)]
    with pytest.raises(
        BreakpointsRefused,
        match=r"^A maximum of 4 blocks with cache_control may be provided\. Found 5\.$",
    ):
        charges(prompt(*marked))


def test_the_mark_itself_is_not_part_of_what_is_cached():
    def body(content, **fields):
        return {"model": "m", "messages": [{"role": "user", "content": content}], **fields}

    mark = {"cache_control": {"type": "ephemeral"}}
    plain = marked_prompt(body("hi"))
    marked = marked_prompt(body([{"type": "text", "text": "hi", **mark}]))
    automatic = marked_prompt(body("hi", **mark))
    inside = marked_prompt(
        body(
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "content": [{"type": "text", "text": "a", **mark}],
                }
            ]
        )
    )
    assert plain.messages[0].raw == marked.messages[0].raw == automatic.messages[0].raw
    assert [each.messages[0].ttl for each in (plain, marked, automatic, inside)] == [
        None,
        SHORT,
        SHORT,
        SHORT,
    ]
    assert b"cache_control" not in inside.messages[0].raw


def test_deferred_tools_do_not_enter_the_prefix_and_stand_where_they_are_referred_to():
    tools = [
        {"name": "a", "input_schema": {}},
        *({"name": name, "input_schema": {}, "defer_loading": True} for name in "bc"),
    ]
    references = [{"type": "tool_reference", "tool_name": name} for name in ("c", "gone")]
    result = {"type": "tool_result", "tool_use_id": "t", "content": references}

    def prompt(count, *blocks):
        return marked_prompt(
            {
                "model": "m",
                "messages": [{"role": "user", "content": list(blocks)}],
                "tools": tools[:count],
            }
        )

    none, one, two = (prompt(count).tools for count in (1, 2, 3))
    assert none == one[:1]
    assert one == two
    assert len(one) == 2, "the first deferred tool puts a line in front of the conversation"
    [shown] = prompt(3, result).messages
    assert b'{"name":"c","input_schema":{}' in shown.raw
    assert b'"tool_name":"gone"' in shown.raw
    assert b'"tool_name":"c"' not in shown.raw


def plain(tokens, **fields):
    return PlainPrompt(
        "gpt-5.5", b"".join(b"%03d." % (number % 1000) for number in range(tokens)), **fields
    )


def test_openai_reads_back_whole_steps_of_128_from_1024_on():
    assert charges(plain(1000), plain(1000))[1] == Charge(fresh=1000)
    assert charges(plain(1100), plain(1300))[1] == Charge(fresh=1300 - 1024, read=1024)
    assert charges(plain(1300), plain(1300))[1] == Charge(fresh=1300 - 1280, read=1280)


def test_openai_routes_by_cache_key_and_forgets_after_its_time():
    assert charges(plain(2048, route="a"), plain(2048, route="b"))[1].read == 0
    assert charges(plain(2048), plain(2048), apart=299)[1].read == 2048
    assert charges(plain(2048), plain(2048), apart=300)[1].read == 0


def test_newer_openai_models_say_and_charge_what_they_write():
    first, second = charges(plain(1300, pays_writes=True), plain(1500, pays_writes=True))
    assert first == Charge(fresh=20, written=1280)
    assert second == Charge(fresh=1500 - 1408, read=1280, written=128)


def test_the_bill_reaches_the_sdks_and_adds_up():
    clock = Clock()
    system = [{"type": "text", "text": "rules. " * 1000, "cache_control": {"type": "ephemeral"}}]
    with ScriptedUpstream(lambda _: Say("ok"), now=clock) as upstream:
        with anthropic.Anthropic(
            base_url=upstream.anthropic_url, api_key="k", max_retries=0
        ) as claude:
            asked = {
                "model": "claude-sonnet-5",
                "max_tokens": 9,
                "system": system,
                "messages": [{"role": "user", "content": "hi"}],
            }
            first, second = (claude.messages.create(**asked).usage for _ in range(2))
            clock.advance(301)
            third = claude.messages.create(**asked).usage
            with pytest.raises(anthropic.BadRequestError, match=r"Found 5\."):
                claude.messages.create(**asked | {"system": system * 5})
        assert (
            first.cache_creation_input_tokens
            == second.cache_read_input_tokens
            == third.cache_creation_input_tokens
            > 1700
        )
        assert first.cache_creation.ephemeral_5m_input_tokens == first.cache_creation_input_tokens
        assert upstream.bill.cache_read == second.cache_read_input_tokens
        assert upstream.bill.cache_write == 2 * first.cache_creation_input_tokens
        assert upstream.bill.input == 3 * first.input_tokens


def test_openais_cached_tokens_reach_the_sdk_in_both_dialects():
    long = "tell me " * 1000
    with (
        ScriptedUpstream(lambda _: Say("ok")) as upstream,
        openai.OpenAI(base_url=upstream.openai_url, api_key="k", max_retries=0) as gpt,
    ):
        chat = [
            gpt.chat.completions.create(
                model="gpt-5.6", messages=[{"role": "user", "content": long}]
            ).usage
            for _ in range(2)
        ]
        responses = [gpt.responses.create(model="gpt-5.6", input=long).usage for _ in range(2)]
    written = chat[0].prompt_tokens_details.cache_write_tokens
    assert [usage.prompt_tokens_details.cached_tokens for usage in chat] == [0, written]
    assert (
        responses[1].input_tokens_details.cached_tokens
        == responses[0].input_tokens_details.cache_write_tokens
        > 1900
    )


sizes = st.lists(st.integers(1, 900), min_size=1, max_size=12)


@settings(max_examples=60)
@given(sizes, st.integers(1, 900))
def test_appending_extends_the_hit(tokens, more):
    blocks = [block(str(place), size) for place, size in enumerate(tokens)]
    *before, last = blocks
    first = prompt(*before, CachedBlock(last.raw, SHORT))
    second = prompt(*blocks, block("more", more, SHORT))
    one, two = charges(first, second)
    assert two.read == one.written
    assert two.total == one.total + more


@settings(max_examples=60)
@given(sizes, st.data())
def test_a_changed_block_kills_everything_behind_it_and_nothing_before(tokens, data):
    blocks = [
        block(str(place), size + 1024, SHORT if place % 4 == 0 else None)
        for place, size in enumerate(tokens)
    ]
    changed = data.draw(st.integers(0, len(blocks) - 1))
    other = [
        *blocks[:changed],
        CachedBlock(b"!" + blocks[changed].raw[1:], blocks[changed].ttl),
        *blocks[changed + 1 :],
    ]
    _, charge = charges(prompt(*blocks), prompt(*other))
    last_mark_before = max((place for place in range(changed) if place % 4 == 0), default=-1)
    assert charge.read == sum(size + 1024 for size in tokens[: last_mark_before + 1])


@settings(max_examples=60)
@given(st.integers(0, 4000), st.integers(0, 4000), st.data())
def test_a_changed_byte_kills_what_is_behind_it_at_openai_too(tokens, more, data):
    before = plain(tokens + more)
    at = data.draw(st.integers(0, max(0, len(before.content) - 1)))
    after = PlainPrompt(before.model, before.content[:at] + b"!" + before.content[at + 1 :])
    _, charge = charges(before, after)
    whole_steps = at // 4 // 128 * 128
    assert charge.read == (whole_steps if whole_steps >= 1024 else 0)
