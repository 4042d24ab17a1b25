"""What others do, as they do it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from hotset.nouns.page import Role
from hotset.nouns.price import Price
from hotset.replay.conversation import RecordedConversation
from hotset.replay.policies import (
    BASELINES,
    NOTHING,
    ROSTER,
    SUMMARY,
    USUAL,
    ClearToolUses,
    Compact,
    Evict,
    Mask,
    Policy,
    Rules,
    Truncate,
    whole_block,
)
from tests.replay.talk import long_result, only, talk

_PRICE = Price(3.0, 15.0)
_LONG = only(talk([long_result(number) for number in range(40)]))
_ROOMY, _TIGHT = 1_000_000, 8_000


def _results(conversation: RecordedConversation, upto: int) -> list[int]:
    return [index for index, line in enumerate(conversation.lines[:upto]) if line.role is Role.TOOL]


def _shown(policy: Policy, conversation: RecordedConversation) -> list[list[str]]:
    """The texts of every prompt, call by call."""
    return [
        [block.text for block in policy.show(call, 0.0, 0)[:call]] for call in conversation.calls
    ]


def _prompts(policy: Policy, conversation: RecordedConversation) -> list[int]:
    return [
        conversation.fixed + sum(block.tokens for block in policy.show(call, 0.0, 0)[:call])
        for call in conversation.calls
    ]


def test_truncation_cuts_results_from_the_first_time_that_they_are_shown():
    first = _shown(Truncate(_LONG, Rules(_PRICE, _ROOMY)), _LONG)[1]

    assert first[-1].endswith("[truncated]")
    assert len(first[-1]) < 520


def test_truncation_shows_the_last_five_iterations_and_a_summary_of_the_rest():
    policy = Truncate(_LONG, Rules(_PRICE, _ROOMY))
    last = _shown(policy, _LONG)[-1]

    assert [index for index in _results(_LONG, _LONG.calls[-1]) if last[index]] == _results(
        _LONG, _LONG.calls[-1]
    )[-5:]
    (summary,) = (block for block in policy.blocks if block.covers_others)
    assert summary.tokens == SUMMARY
    assert "src/file_3.py" in summary.text
    assert policy.extra > 3 * SUMMARY * _PRICE.output / _PRICE.input


def test_a_short_session_is_never_summarised_by_truncation():
    short = only(talk([long_result(number) for number in range(6)]))
    policy = Truncate(short, Rules(_PRICE, _ROOMY))
    _shown(policy, short)

    assert policy.extra == 0.0


def test_masking_keeps_the_last_ten_results_whole_and_a_line_for_each_older_one():
    last = _shown(Mask(_LONG, Rules(_PRICE, _ROOMY)), _LONG)[-1]
    results = [last[index] for index in _results(_LONG, _LONG.calls[-1])]

    assert [len(text) > 1000 for text in results] == [False] * 30 + [True] * 10
    assert all(results)


def test_clearing_leaves_everything_alone_below_half_of_the_window():
    assert _shown(ClearToolUses(_LONG, Rules(_PRICE, _ROOMY)), _LONG) == _shown(
        BASELINES["full"](_LONG, Rules(_PRICE, 1)), _LONG
    )


def test_clearing_keeps_three_results_at_every_call_once_half_of_the_window_is_passed():
    prompts = _shown(ClearToolUses(_LONG, Rules(_PRICE, _TIGHT)), _LONG)

    kept = [
        sum(len(texts[index]) > 1000 for index in _results(_LONG, len(texts))) for texts in prompts
    ]
    assert max(kept[:8]) > 3
    assert set(kept[-25:]) == {3}


def test_compaction_puts_a_paid_summary_in_the_place_of_what_came_before():
    policy = Compact(_LONG, Rules(_PRICE, _TIGHT))
    prompts = _prompts(policy, _LONG)

    assert max(prompts) <= _TIGHT
    assert policy.departures >= 2
    assert policy.extra > policy.departures * SUMMARY * _PRICE.output / _PRICE.input
    (summary,) = (block for block in policy.blocks if block.covers_others)
    assert policy.blocks.index(summary) == 2
    assert policy.blocks[3] is NOTHING
    assert "src/file_0.py" in summary.text


def test_eviction_takes_the_oldest_quarter_each_time_that_three_quarters_are_passed():
    policy = Evict(_LONG, Rules(_PRICE, _TIGHT))
    prompts = _prompts(policy, _LONG)

    drops = [(before, after) for before, after in pairwise(prompts) if after < before]
    assert len(drops) == policy.departures >= 3
    assert max(prompts) <= 0.75 * _TIGHT
    assert all(before - after > 0.15 * before for before, after in drops)
    last = [block.text for block in policy.blocks]
    kept = [len(last[index]) > 1000 for index in _results(_LONG, len(last))]
    assert kept == sorted(kept)
    assert sum(kept) >= 5


def test_only_what_overflows_or_moves_breaks_the_prefix():
    small = only(talk([f"short {number}" for number in range(8)]))
    for name in set(BASELINES) - {"truncate"}:
        policy = BASELINES[name](small, Rules(_PRICE, _ROOMY))
        assert _shown(policy, small) == _shown(BASELINES["full"](small, Rules(_PRICE, 1)), small), (
            name
        )


def test_the_usual_comparison_is_ours_and_every_baseline():
    assert USUAL == ("default", "full", "truncate", "mask", "clear_tool_uses", "compact", "evict25")
    orders = {"recency", "use", "size", "topic", "task", "iterations"}
    profiles = {"lean", "librarian", "archivalist", "academic", "architect"}
    hand_over = {"engineer", "designer", "inspector", "tester", "orchestrator", "guide"}
    assert set(ROSTER) == {*USUAL, *orders, *profiles, *hand_over}


@pytest.mark.parametrize("name", ROSTER)
@settings(max_examples=15, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 6000), min_size=1, max_size=25), window=st.integers(500, 20_000)
)
@pytest.mark.rest_slow
def test_every_policy_shows_what_the_user_said_and_never_more_than_everything(
    name: str, sizes: list[int], window: int
):
    conversation = only(talk([long_result(number, size) for number, size in enumerate(sizes)]))
    policy = ROSTER[name](conversation, Rules(_PRICE, window))

    for call in conversation.calls:
        blocks = list(policy.show(call, 0.0, 0))[:call]
        assert len(blocks) == call
        assert [block.text for block in blocks[:2]] == [
            "You mend tests.",
            "Mend tests/test_clock_9.py",
        ]
        most = sum(whole_block(line).tokens for line in conversation.lines[:call])
        assert sum(block.tokens for block in blocks) <= most + SUMMARY
