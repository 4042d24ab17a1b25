"""A window that system text, tools and the user's words nearly fill."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotset.nouns.knobs import Knobs
from hotset.nouns.page import Role
from hotset.nouns.price import Price
from hotset.replay.conversation import RecordedConversation, RecordedMessage
from hotset.replay.measure import Figures, StudiedConversation, measure
from hotset.replay.policies import Rules, ours
from tests.replay.talk import only, talk

_WINDOW = 64_000
_CALLS = 80


def _crowded() -> RecordedConversation:
    """Nine tenths of the window never leave; results of 200 to 12,000 characters come in."""
    sizes = (3, 12, 50, 180)
    results = [
        "\n".join(
            f"src/part_{call}_{line}.py:{line}: total_{line} = add(total_{call}, {line})"
            for line in range(sizes[call % len(sizes)])
        )
        for call in range(_CALLS)
    ]
    session = talk(results)
    prompt = RecordedMessage(Role.USER, "Mend the totals. " + "All of them, please. " * 4000)
    conversation = only(replace(session, messages=(prompt, *session.messages[2:])))
    user = conversation.lines[0].whole
    return replace(conversation, fixed=round(0.9 * _WINDOW) - user)


def _figures(knobs: Knobs) -> Figures:
    conversation, figures = _crowded(), Figures()
    rules = Rules(Price(3.0, 15.0), _WINDOW)
    policy = ours(knobs)(conversation, rules)
    measure(StudiedConversation.of(conversation), policy, rules, figures, lambda: 0.0)
    return figures


@pytest.mark.row("C2")
def test_the_prefix_seldom_breaks_where_there_is_hardly_any_room():
    figures = _figures(Knobs())
    before = _figures(replace_knobs(crowd=1, squeezed=1.0))

    assert figures.over == 0
    assert figures.breaks <= _CALLS / 10
    assert before.breaks > 3 * figures.breaks  # without room for the next calls, nearly each


def replace_knobs(**changes: float) -> Knobs:
    return Knobs().turned(changes)
