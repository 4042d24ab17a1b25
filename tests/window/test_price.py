"""What a prompt costs under its provider's rules, and prices of the user's own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from hotset.config import listed_prices, load
from hotset.errors import BadConfig
from hotset.nouns.message import Usage
from hotset.window.price import (
    Price,
    Prices,
    charge,
    dollars,
    price_of,
    units,
)

LISTED = Prices(listed_prices())
ANTHROPIC = price_of("claude-sonnet-5", LISTED)
OPENAI = price_of("gpt-5", LISTED)
NO_CACHE = Price(input=1, output=2, read=1.0, write=1.0)

any_price = st.sampled_from([price for _, price in LISTED.listed])
tokens = st.integers(0, 2_000_000)


@pytest.fixture
def prices(tmp_path):
    """The prices in force with a user's file of the test's own."""

    def make(file: str) -> Prices:
        path = tmp_path / "config.toml"
        path.write_text(file)
        return load(
            project=str(tmp_path),
            environ={"HOTSET_CONFIG": str(path), "HOTSET_HOME": str(tmp_path)},
        ).prices

    return make


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("claude-opus-5", (5, 25, 0.1, 1.25, 512)),
        ("claude-opus-5-5", (4, 20, 0.05, 1.25, 512)),
        ("claude-opus-4-8", (5, 25, 0.1, 1.25, 1024)),
        ("claude-opus-4-7", (5, 25, 0.1, 1.25, 2048)),
        ("claude-opus-4-5-20251101", (5, 25, 0.1, 1.25, 4096)),
        ("claude-opus-4-1-20250805", (15, 75, 0.1, 1.25, 1024)),
        ("claude-sonnet-5", (2, 10, 0.1, 1.25, 1024)),
        ("claude-sonnet-4-20250514", (3, 15, 0.1, 1.25, 1024)),
        ("claude-haiku-4-5", (1, 5, 0.1, 1.25, 4096)),
        ("claude-fable-5", (10, 50, 0.1, 1.25, 512)),
        ("claude-mythos-5", (10, 50, 0.1, 1.25, 512)),
        ("gpt-5.6", (4, 20, 0.1, 1.25, 1024)),
        ("gpt-5.5", (5, 30, 0.1, 1.0, 1024)),
        ("gpt-5.4-mini", (0.75, 4.5, 0.1, 1.0, 1024)),
        ("gpt-5.1-codex-mini", (0.25, 2, 0.1, 1.0, 1024)),
        ("gpt-5-codex", (1.25, 10, 0.1, 1.0, 1024)),
        ("gpt-4.1", (2, 8, 0.25, 1.0, 1024)),
        ("gpt-4o-2024-08-06", (2.5, 10, 0.5, 1.0, 1024)),
        ("o3", (2, 8, 0.25, 1.0, 1024)),
        ("o4-mini", (1.1, 4.4, 0.25, 1.0, 1024)),
        ("gemini-3-pro-preview", (2, 12, 0.1, 1.0, 4096)),
        ("gemini-2.5-flash", (0.3, 2.5, 0.1, 1.0, 1024)),
        ("deepseek-v4-pro", (1.32, 3.96, 0.033, 1.0, 64)),
    ],
)
def test_a_model_has_its_list_price(model, price):
    found = price_of(model, LISTED)
    assert (found.input, found.output, found.read, found.write, found.minimum) == price
    assert found.listed


@pytest.mark.parametrize(
    "name",
    [
        "anthropic/claude-opus-4.5",
        "us.anthropic.claude-opus-4-5-20251101-v1:0",
        "claude-opus-4-5@20251101",
        "Claude-Opus-4-5",
        "openrouter/anthropic/claude-opus-4.5",
    ],
)
def test_a_model_is_known_under_the_names_that_gateways_give_it(name):
    assert price_of(name, LISTED) == price_of("claude-opus-4-5", LISTED)


@pytest.mark.parametrize("model", ["", "my-own-model", "claude-opus-9", "gpt-9", "[", "llama4:70b"])
def test_a_model_that_nobody_knows_has_a_price_that_says_so(model):
    assert not price_of(model, LISTED).listed


@given(price=any_price)
def test_every_listed_price_makes_sense(price):
    assert 0 < price.input <= price.output
    assert 0 < price.read <= 1 <= price.write
    assert (
        price.write_lasting >= price.write and price.ttl_lasting > price.ttl
    ) or price.write_lasting == price.ttl_lasting == 0
    assert 0 < price.ttl <= 86_400
    assert price.minimum % price.step == 0
    assert 0 < price.longest_reply <= price.window
    assert price.long_prompt == 0 or price.long_prompt <= price.window


@given(price=any_price, prompt=tokens, kept=tokens, cold=st.booleans())
def test_a_charge_bills_every_token_of_the_prompt_once(price, prompt, kept, cold):
    usage = charge(price, prompt, kept, cold=cold)
    assert usage.input + usage.cache_read + usage.cache_write == prompt
    assert usage.output == 0
    assert 0 <= usage.cache_read <= kept
    assert usage.cache_read == 0 or usage.cache_read >= price.minimum
    assert usage.cache_read % price.step == 0
    assert not (cold and usage.cache_read)


@given(price=any_price, prompt=tokens, kept=tokens, more=st.integers(0, 10_000))
def test_a_longer_kept_prefix_is_never_dearer(price, prompt, kept, more):
    assert (
        units(price, charge(price, prompt, kept + more))
        <= units(price, charge(price, prompt, kept)) + 1e-6
    )


def test_a_prompt_below_the_minimum_is_not_cached():
    assert charge(ANTHROPIC, 1_023, 1_000) == Usage(input=1_023)
    assert charge(ANTHROPIC, 5_000, 1_000) == Usage(cache_write=5_000)
    assert charge(ANTHROPIC, 5_000, 2_000) == Usage(cache_read=2_000, cache_write=3_000)


def test_openai_finds_prefixes_in_steps_of_128_and_before_5_6_does_not_bill_the_writing():
    assert charge(OPENAI, 5_000, 2_000) == Usage(cache_read=1_920, input=3_080)
    assert charge(price_of("gpt-5.6", LISTED), 5_000, 2_000) == Usage(
        cache_read=1_920, cache_write=3_080
    )
    assert charge(OPENAI, 5_000, 2_000, cold=True) == Usage(input=5_000)


def test_a_model_without_a_cache_is_billed_for_its_input():
    assert charge(NO_CACHE, 5_000, 5_000) == Usage(input=5_000)


def test_dollars_and_units_are_one_bill_in_two_coins():
    usage = Usage(input=100, cache_read=10_000, cache_write=1_000, output=200)
    assert units(ANTHROPIC, usage) == pytest.approx(100 + 1_000 + 1_250 + 200 * 5)
    assert dollars(ANTHROPIC, usage) == pytest.approx(units(ANTHROPIC, usage) * 2 / 1e6)


@given(
    price=any_price,
    usage=st.builds(Usage, input=tokens, cache_read=tokens, cache_write=tokens, output=tokens),
)
def test_units_are_dollars_over_the_price_of_input(price, usage):
    assert dollars(price, usage) == pytest.approx(units(price, usage) * price.input / 1e6)


def test_a_long_prompt_is_dearer_as_a_whole_but_a_turn_of_several_short_calls_is_not():
    price = price_of("gpt-5.4", LISTED)
    usage = Usage(input=300_000, output=1_000)
    assert dollars(price, usage) == pytest.approx((300_000 * 5 + 1_000 * 22.5) / 1e6)
    assert dollars(price, usage, calls=2) == pytest.approx((300_000 * 2.5 + 1_000 * 15) / 1e6)


def test_a_free_model_costs_nothing_and_still_has_units():
    free = replace(NO_CACHE, input=0.0, output=0.0)
    assert dollars(free, Usage(input=100, output=100)) == 0
    assert units(free, Usage(input=100, output=100)) == 100


def test_the_users_values_stand_over_the_listed_ones_and_leave_the_others(prices):
    mine = prices('[prices."claude-opus-*"]\ninput = 4.5\nwindow = 150_000')
    assert price_of("claude-opus-5", mine) == replace(
        price_of("claude-opus-5", LISTED), input=4.5, window=150_000
    )
    assert price_of("claude-sonnet-5", mine) == ANTHROPIC


def test_a_price_that_the_user_told_is_a_known_one(prices):
    mine = prices('[prices."my-*"]\ninput = 0\noutput = 0\n[prices."llama*"]\nwindow = 8192')
    assert price_of("my-model", mine).listed
    assert not price_of("llama4", mine).listed


def test_the_first_of_the_users_patterns_wins_and_a_pattern_may_name_an_upstream(prices):
    mine = prices(
        '[prices."groq/*"]\ninput = 1\n[prices."Llama*"]\ninput = 2\n[prices."*"]\ninput = 3'
    )
    assert [
        price_of(*asked).input
        for asked in (("llama4", mine, "groq"), ("llama4", mine), ("other", mine))
    ] == [1, 2, 3]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("prices = 3", "must be tables"),
        ("[prices]\ninput = 3", "must be tables"),
        (
            '[prices."gpt-*"]\nreads = 0.1',
            "cannot say 'reads'; it can say input, output, read, write",
        ),
        ('[prices."gpt-*"]\nlisted = true', "cannot say 'listed'"),
        (
            '[prices."gpt-*"]\ninput = "5"',
            "input of prices.'gpt-\\*' in .*config.toml must be a number from 0 up, not '5'",
        ),
        ('[prices."gpt-*"]\ninput = true', "number from 0 up"),
        ('[prices."gpt-*"]\ninput = -1', "number from 0 up"),
        ('[prices."gpt-*"]\noutput = nan', "number from 0 up"),
        ('[prices."gpt-*"]\noutput = inf', "number from 0 up"),
        ('[prices."gpt-*"]\nwindow = 1.5', "whole number"),
        ('[prices."gpt-*"]\nread = 1.5', "share of the input price"),
        ('[prices."gpt-*"]\nwrite = 0.5', "must be a number from 1 up, not 0.5"),
        ('[prices."gpt-*"]\nstep = 0', "must be a whole number from 1 up, not 0"),
    ],
)
def test_a_price_that_cannot_be_used_says_why_and_where(prices, table, says):
    with pytest.raises(BadConfig, match=says):
        prices(table)
