"""How many tokens a provider counts for one of ours is learned, and known again after a restart."""

from __future__ import annotations

from dataclasses import replace

from hotset.dialects import DIALECTS
from hotset.nouns.deposit import RequestReceived
from hotset.nouns.message import DialectName, Usage
from hotset.nouns.turn import TurnId
from hotset.runtime.session_notes import Calibrations
from hotset.testing import RamStore
from hotset.window.calibrate import prior

MODEL = "claude-sonnet-5"


def test_what_was_learned_from_reports_is_known_again_after_a_restart():
    store, learning = RamStore(), Calibrations()
    request = DIALECTS[DialectName.ANTHROPIC].parse(
        b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
    )
    store.keep(RequestReceived(request, 1.0, "agent", id=TurnId("t1"))).result()
    assert learning.ratio(MODEL, store) == prior(MODEL).ratio

    for _ in range(20):
        note = learning.observed(MODEL, 40_000, Usage(input=30_000, cache_read=30_000))
        if note is not None:
            store.keep(replace(note, turn=TurnId("t1"))).result()

    learned = learning.ratio(MODEL, store)
    assert prior(MODEL).ratio < learned <= 1.5
    assert abs(Calibrations().ratio(MODEL, store) - learned) < 0.002
    assert Calibrations().ratio("another", store) == prior("another").ratio
