"""Somebody sees a session for the first time: watches it, goes back, reads what left, and keeps a
page."""

from __future__ import annotations

import re

import pytest

from hotset.nouns.knobs import Knobs, Limit
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.proxy.talking import Talk, code

pytestmark = [pytest.mark.slow, pytest.mark.browser]

_TIGHT = Knobs(limit=Limit(0, 0), limits={}, most=6, keep=2)
"""Old steps leave soon, and nothing is shortened."""


@pytest.mark.row("X4")
def test_a_page_that_left_is_read_brought_back_and_sent_with_the_next_request(tmp_path, visit):
    reply = Say("Reading on.", calls=(Call("read_file", {"path": "a.py"}),))
    with (
        ScriptedUpstream(lambda _: reply) as upstream,
        LocalProxy(
            tmp_path / "data",
            openai_url=f"{upstream.url}/v1",
            anthropic_url=upstream.url,
            knobs=_TIGHT,
        ) as proxy,
    ):
        talk = Talk(proxy.address, "anthropic")
        talk.say("Read the files.")
        visited = visit(proxy.address)
        visited.open("now")
        page = visited.page
        for number in range(10):
            talk.results(code(f"mark{number}_", functions=30))
        proxy.wait_until_kept()
        latest = len(proxy.machine.keeper.store.recent_sessions())
        assert latest == 1
        page.wait_for_function("() => document.querySelector('main').innerText.includes('11')")
        assert b"mark0__29" not in upstream.requests[-1].decoded

        session = proxy.machine.keeper.store.recent_sessions()[0].id
        first = next(
            each.id
            for each in proxy.machine.keeper.store.pages(_results(session))
            if b"mark0__29" in proxy.machine.keeper.store.content(each.digest)
        )
        visited.open(f"now?session={session}&piece={first}")
        page.wait_for_function("() => document.body.innerText.includes('mark0__29')")
        steering = page.get_by_label("what you can change")
        steering.get_by_role("radio", name=re.compile("^now")).check()
        steering.get_by_role("button", name="Bring it back whole now").click()
        page.wait_for_function(
            "async id => (await (await fetch('/hotset/api/orders')).json())"
            ".some(each => each.about === id)",
            arg=first,
        )
        talk.results("more")
        assert b"mark0__29" in upstream.requests[-1].decoded
        assert visited.troubles == []


def _results(session):
    from hotset.nouns.page import Kind  # noqa: PLC0415
    from hotset.store.port import Where  # noqa: PLC0415

    return Where(session=session, kinds=frozenset({Kind.TOOL_RESULT}))
