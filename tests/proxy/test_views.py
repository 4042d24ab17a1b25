"""What the proxy brings back counts as viewed: a search that is in a hurry finds it."""

from __future__ import annotations

import pytest

from hotset.nouns.search import Filter, Query, Sort
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.proxy.talking import Talk, code, read, retrieve

HURRIED = Query("f_222", Filter(frozenset({Sort.PAGE})), deadline=0.0005)
"""There is no time for anything but the hot entries."""


@pytest.mark.row("V8")
@pytest.mark.row("V10")
@pytest.mark.slow
def test_what_a_model_brings_back_is_hot(tmp_path):
    dialect = "anthropic"
    says = [
        Say("Let me look.", calls=(read("a.py", id="one"),)),
        Say("A long file."),
        Say(calls=(retrieve(dialect, "one", symbol="f_222"),)),
        Say("It adds 1758018."),
    ]
    with (
        ScriptedUpstream(says) as upstream,
        LocalProxy(tmp_path / "data", anthropic_url=upstream.anthropic_url) as proxy,
    ):
        talk = Talk(proxy.address, dialect)
        talk.say("Read it.")
        talk.results(code())
        proxy.wait_until_idle()
        index = proxy.machine.follower.index
        assert index is not None
        before = index.search(HURRIED)
        talk.say("What does f_222 do?")
        after = index.search(HURRIED)

    assert before.hits == ()
    assert after.hits
    assert after.lacking, "a search in a hurry says that it was one"
