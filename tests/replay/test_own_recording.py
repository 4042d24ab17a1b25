"""What the default policy makes of the session that ships with hotset."""

from __future__ import annotations

import pytest

from hotset.nouns.knobs import Knobs
from hotset.nouns.message import DialectName
from hotset.nouns.price import Price
from hotset.replay.conversation import split_conversations
from hotset.replay.formats import read
from hotset.replay.measure import Figures, StudiedConversation, measure
from hotset.replay.policies import Baseline, PlannedShowing, Rules
from hotset.testing.recording import requests, session


@pytest.mark.row("C7")
@pytest.mark.parametrize("iterations", [16, 40])
@pytest.mark.rest_slow
def test_half_the_tokens_are_enough_and_what_later_calls_copy_is_there(tmp_path, iterations):
    last = list(requests(session(), DialectName.ANTHROPIC))[iterations]
    (tmp_path / "session.json").write_bytes(last)
    ((conversation,),) = [
        list(split_conversations(recorded)) for recorded in read([tmp_path / "session.json"])
    ]
    price = Price(3.0, 15.0)
    studied, rules = StudiedConversation.of(conversation), Rules(price, 200_000)

    def figures(policy) -> Figures:
        made = Figures()
        measure(studied, policy, rules, made, lambda: 0.0)
        return made

    whole = figures(Baseline(conversation, rules))
    ours = figures(PlannedShowing(conversation, Knobs(), price))

    assert ours.calls == whole.calls >= iterations
    assert ours.prompt <= whole.prompt / 2
    assert ours.cost + ours.fault_cost < whole.cost
    assert ours.over == 0
    assert ours.faults <= 0.1 * ours.actions
