"""What counts as missed, what a miss costs, and what a client's cache marks find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from hotset.nouns.message import Usage
from hotset.nouns.page import Role
from hotset.nouns.price import Price
from hotset.replay.conversation import (
    RecordedCall,
    RecordedConversation,
    RecordedMessage,
    RecordedSession,
    split_conversations,
)
from hotset.replay.measure import Figures, MarkedCache, StudiedConversation, measure
from hotset.replay.policies import NOTHING, Rules, ShownBlock, whole_block
from tests.replay.talk import only, talk

_PRICE = Price(3.0, 15.0)
_RULES = Rules(_PRICE, 100_000)

Change = Callable[[list[ShownBlock], int], None]
"""Changes the blocks of a prompt with so many messages."""


@dataclass(slots=True)
class Shows:
    """A policy that shows all but what a test takes away."""

    conversation: RecordedConversation
    change: Change
    extra: float = 0.0
    tools: int = 0
    held: list[int] = field(default_factory=list)
    _blocks: list[ShownBlock] = field(default_factory=list)

    def show(self, upto: int, now: float, held: int) -> Sequence[ShownBlock]:
        del now
        self.held.append(held)
        for line in self.conversation.lines[len(self._blocks) : upto]:
            self._blocks.append(whole_block(line))
        self.change(self._blocks, upto)
        return self._blocks


def _session(*arguments: str) -> RecordedConversation:
    """Two files are read, then a call for each of the arguments."""
    opening = talk(["alpha_name = compute_alpha(1)", "beta_name = compute_beta(2)"]).messages[:-1]
    calls = [
        message
        for number, argument in enumerate(arguments)
        for message in (
            RecordedMessage(
                Role.ASSISTANT, "Now.", (RecordedCall(f"e{number}", "Edit", argument),)
            ),
            RecordedMessage(Role.TOOL, "done", call=f"e{number}", tool="Edit"),
        )
    ]
    return only(RecordedSession("one", "tests", "claude-sonnet-4", (*opening, *calls)))


def _measured(conversation: RecordedConversation, change: Change) -> tuple[Figures, Shows]:
    figures, policy = Figures(), Shows(conversation, change)
    measure(StudiedConversation.of(conversation), policy, _RULES, figures, lambda: 0.0)
    return figures, policy


def _nothing_changes(blocks: list[ShownBlock], upto: int) -> None:
    del blocks, upto


def _results_as(text: str, *, ours: bool = True) -> Change:
    """Both results are this text instead, once both were read."""
    short = ShownBlock(text, 5, is_ours=ours)

    def change(blocks: list[ShownBlock], upto: int) -> None:
        if upto >= 6:
            blocks[3] = blocks[5] = short

    return change


def test_what_is_shown_is_not_missed():
    figures, _ = _measured(_session("alpha_name beta_name"), _nothing_changes)

    assert (figures.needs, figures.misses, figures.faults, figures.fault_cost) == (2, 0, 0, 0.0)


@pytest.mark.parametrize(
    "listed",
    [
        "[hotset: left-out names: alpha_name beta_name]",
        "… alpha_name beta_name",
        "-> alpha_name beta_name",
        "Names there: alpha_name beta_name",
        '[CTX-REF:file | turn 1 | Topics: alpha_name, beta_name | retrieve_context(id="r1")]',
    ],
)
def test_a_name_that_only_a_list_of_names_has_is_missed_and_counted_apart(listed: str):
    figures, _ = _measured(_session("alpha_name beta_name"), _results_as(f"import os\n{listed}"))

    assert (figures.misses, figures.hinted, figures.faults) == (2, 2, 1)


def test_a_name_in_a_line_that_is_shown_is_not_missed():
    shown = "-> Error: alpha_name is not beta_name"

    assert _measured(_session("alpha_name beta_name"), _results_as(shown))[0].misses == 0


def test_what_others_summarise_by_names_counts_as_shown():
    change = _results_as("… alpha_name beta_name", ours=False)

    assert _measured(_session("alpha_name beta_name"), change)[0].misses == 0


def test_every_message_that_had_something_missed_is_paid_for_in_one_more_call():
    change = _results_as("gone")
    one, _ = _measured(_session("alpha_name"), change)
    two, _ = _measured(_session("alpha_name beta_name"), change)

    slice_ = _PRICE.write * only(talk(["beta_name = compute_beta(2)"])).lines[3].whole
    asking = 60 * _PRICE.output / _PRICE.input
    assert (one.faults, two.faults) == (1, 1)
    assert two.fault_cost - one.fault_cost == pytest.approx(slice_ + asking, rel=0.2)


def test_faults_are_counted_by_action_and_by_reply():
    conversation = _session("alpha_name", "beta_name", "nothing new")
    figures, _ = _measured(conversation, _results_as("gone"))

    assert (figures.actions, figures.replies) == (5, 5)
    assert (figures.faults, figures.faulted) == (2, 2)


def test_what_came_back_stays_and_fills_the_window_until_its_step_leaves():
    def change(blocks: list[ShownBlock], upto: int) -> None:
        _results_as("gone")(blocks, upto)
        if upto >= 12:
            blocks[6] = blocks[8] = blocks[10] = NOTHING

    conversation = _session("alpha_name", "alpha_name", "alpha_name", "alpha_name")
    figures, policy = _measured(conversation, change)

    assert figures.faults == 2  # the first, and the one after its step left
    assert [held > 0 for held in policy.held] == [False, False, False, True, True, True]


def _blocks(*tokens: int) -> list[ShownBlock]:
    return [ShownBlock(str(each), each) for each in tokens]


def test_marks_find_a_prefix_only_where_an_earlier_call_had_one():
    cache = MarkedCache(_PRICE, 300)
    first = _blocks(*[1000] * 30)
    cache.cost(5000, first, [], 0.0)
    longer = cache.cost(5000, [*first, *_blocks(1000)], [], 10.0)
    changed = [*first[:4], *_blocks(10), *first[5:]]
    broken = cache.cost(5000, changed, [], 20.0)

    assert longer == pytest.approx(_PRICE.read * 35_000 + _PRICE.write * 1000)
    # an ideal prefix would have read 9,000; only the fixed part was marked there
    assert broken == pytest.approx(_PRICE.read * 5000 + _PRICE.write * 29_010)


def test_marks_look_back_twenty_blocks_and_forget_after_a_pause():
    cache = MarkedCache(_PRICE, 300)
    first = _blocks(*[1000] * 30)
    cache.cost(5000, first, [], 0.0)
    cold = cache.cost(5000, first, [], 1000.0)
    near = cache.cost(5000, [*first[:-1], *_blocks(10, 10)], [], 1010.0)

    assert cold == pytest.approx(_PRICE.write * 35_000)
    assert near == pytest.approx(_PRICE.read * 5000 + _PRICE.write * 29_020)


def test_the_fixed_part_is_not_taken_from_the_first_usage_of_a_resumed_session():
    messages = [RecordedMessage(Role.USER, "Go on.")]
    for billed in (90_000, 90_100, 20_000, 20_100, 20_200, 20_300, 20_400):
        messages += [
            RecordedMessage(Role.ASSISTANT, "Yes.", usage=Usage(input=billed)),
            RecordedMessage(Role.USER, "More."),
        ]
    session = RecordedSession("one", "tests", "claude-sonnet-4", tuple(messages))
    (conversation,) = split_conversations(session)

    assert conversation.fixed < 21_000
