"""Learning from one end to the other, through a real proxy: sessions in which the results of some
tools are never used, what the project makes of them, and what a later session is then sent."""

from __future__ import annotations

import json
import random
from collections import deque

import pytest
from bench.teach_made_up import TOOLS, made_up_session

from hotset.nouns.page import Role
from hotset.replay.conversation import RecordedSession
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.cli.conftest import NOW, Desk
from tests.learn.worlds import DAY
from tests.proxy.talking import Talk

SESSIONS = 18
NEEDED = "report"
LINES = (100, 150)  # of a result: more than is shown whole


class Work:
    """An agent that repeats made-up sessions; the model says what they say."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._rng = random.Random(5)
        self.now = NOW - 40 * DAY

    def through_a_proxy(self, first: int, many: int) -> list[int]:
        """Works so many sessions; returns the bytes that the provider got in each."""
        said: deque[Say] = deque()
        sizes = []
        with (
            ScriptedUpstream(
                lambda _: said.popleft(), strict=True, now=lambda: self.now
            ) as upstream,
            LocalProxy(
                self._desk.data,
                project=self._desk.project,
                anthropic_url=upstream.anthropic_url,
                clock=lambda: self.now,
            ) as proxy,
        ):
            for number in range(first, first + many):
                session = made_up_session(number, NEEDED, self._rng, lines_of=LINES, seldom=0.0)
                talk = Talk(proxy.address, "anthropic", headers={"x-hotset-session": f"w{number}"})
                self._work(session, talk, said)
                sizes.append(sum(len(each.decoded) for each in upstream.requests) - sum(sizes))
            proxy.wait_until_kept()
        return sizes

    def _work(self, session: RecordedSession, talk: Talk, said: deque[Say]) -> None:
        opening, *rest = session.messages
        for message in rest:
            if message.role is Role.ASSISTANT:
                calls = (Call(c.name, json.loads(c.arguments), f"w{c.id}") for c in message.calls)
                said.append(Say(message.text, tuple(calls)))
        talk.say(opening.text)
        for message in rest:
            if message.role is Role.TOOL:
                self.now += 20
                talk.results(message.text)
        talk.headers["x-hotset-outcome"] = "success"
        said.append(Say("You are welcome."))
        talk.say("Thanks, that works.")
        self.now += DAY


@pytest.mark.row("V12", "M11")
@pytest.mark.slow
def test_results_that_are_never_used_are_shown_shorter_to_a_share_of_new_sessions(desk):
    work = Work(desk)
    before = work.through_a_proxy(0, SESSIONS)
    assert desk.run("learn", "now", "--minutes", "60").code == 0

    row = desk.run("learn", "status", "--json").json()["changes"][0]
    shorter = {name.removeprefix("tools.") for name in row["knobs"]}
    assert (row["by"], row["stage"]) == ("limits", "trial"), row["evidence"]
    assert shorter
    assert shorter < {*TOOLS} - {NEEDED}
    assert all(name in row["why"] for name in shorter)
    assert row["measured"]["after"] < row["measured"]["before"]
    assert desk.run("learn", "trial", f"{row['id']}=90%").code == 0

    after = work.through_a_proxy(SESSIONS, 4)
    assert min(after) < 0.8 * min(before)
    why = desk.run("learn", "why", next(iter(row["knobs"])), "--json").json()
    assert [each["id"] for each in why["changes"]] == [row["id"]]
    assert desk.run("learn", "reset", row["id"]).code == 0
    again = work.through_a_proxy(SESSIONS + 4, 1)
    assert again[0] > 0.9 * min(before)
