"""Memory pressure in a running proxy: the levels go up and down, every call is served, and the same
bytes go out."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise

import pytest

from hotset.files.scope import PROCESS
from hotset.nouns.pressure import LEVELS, MemoryReading, PressureLimits
from hotset.store.sqlite import SqliteStore
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.proxy.talking import SHORTENING, Talk, code, looking
from tests.waiting import ask, wait_until

AT_ONCE = PressureLimits(seconds=0.01, calm=0.0)
UP_AND_DOWN = (*LEVELS, *LEVELS[-2::-1])
SHARES = (0.1, 0.82, 0.92, 0.97, 0.88, 0.78, 0.1)


class Memory:
    """What the test says is used."""

    share = 0.0

    def read(self) -> MemoryReading:
        return MemoryReading(used=int(1e6 * self.share), limit=10**6, source="test")


def reads(request):
    return looking("a.py") if b"Read" in request.decoded[-200:] else Say("Done.")


def talk_through(folder, memory):
    """Six turns, each at another level where there is a reader; what the upstream got."""
    limits = {"memory_reader": memory, "pressure": AT_ONCE} if memory is not None else {}
    with (
        ScriptedUpstream(reads, now=lambda: 1e9) as upstream,
        LocalProxy(
            folder,
            anthropic_url=upstream.anthropic_url,
            knobs=SHORTENING,
            clock=lambda: 1e9,
            **limits,
        ) as proxy,
    ):
        talk = Talk(proxy.address, "anthropic")
        for number, level in enumerate(UP_AND_DOWN):
            if memory is not None:
                memory.share = SHARES[number]
                wait_until(lambda level=level: proxy.machine.pressure.level is level)
            talk.say(f"Read file {number}")
            talk.results(code(f"f{number}", 400))
            assert talk.answer is not None
            assert talk.answer.status == 200
            proxy.wait_until_kept()
        status = ask(proxy.address)
    return [request.body for request in upstream.requests], status


@pytest.mark.row("V14")
def test_every_call_is_served_at_every_level_with_the_same_bytes(tmp_path):
    with_pressure, status = talk_through(tmp_path / "short", Memory())
    without, _ = talk_through(tmp_path / "plenty", None)

    assert with_pressure == without
    assert len(without) == 14
    with closing(SqliteStore.open(tmp_path / "short")) as store:
        events = [event.detail for event in store.events() if event.name == "Pressure"]
    changes = [(each["from"], each["to"]) for each in events]
    assert changes == list(pairwise(map(str, UP_AND_DOWN)))
    assert status is not None
    assert (status["memory"]["level"], status["memory"]["tier"]) == ("normal", "full")


@pytest.mark.row("V14")
def test_the_status_names_every_cache_scope_and_breaker(tmp_path):
    memory = Memory()
    with (
        ScriptedUpstream() as upstream,
        LocalProxy(
            tmp_path,
            anthropic_url=upstream.anthropic_url,
            memory_reader=memory,
            pressure=AT_ONCE,
        ) as proxy,
    ):
        memory.share = 0.92
        wait_until(lambda: proxy.machine.pressure.level == "high")
        Talk(proxy.address, "anthropic").say("Hello")
        proxy.wait_until_kept()
        status = ask(proxy.address)
    assert status is not None
    memory_now = status["memory"]
    assert (memory_now["tier"], memory_now["prefetch"], memory_now["share"]) == ("hot", False, 0.5)
    caches = {each["name"]: each for each in status["caches"]}
    assert {"parsed messages", "page tables", "token counts", "chains"} <= caches.keys()
    assert caches["token counts"]["limit"] == 1 << 13
    scopes = {each["name"]: each for each in status["scopes"]}
    assert scopes["process/machine/background"]["tasks"] >= 1
    assert scopes["process/store"]["threads"] >= 2
    assert scopes["process/databases"]["files"] >= 3
    assert ("store", "closed") in {(each["name"], each["state"]) for each in status["breakers"]}


@pytest.mark.slow  # a thread without work ends after ten seconds
def test_a_proxy_leaves_no_thread_task_or_file_behind(tmp_path):
    def held():
        return [each for each in PROCESS.left_over() if "hotset-soon" not in each]

    before = held()
    with (
        ScriptedUpstream() as upstream,
        LocalProxy(tmp_path, anthropic_url=upstream.anthropic_url) as proxy,
    ):
        Talk(proxy.address, "anthropic").say("Hello")
        proxy.wait_until_kept()
        assert len(held()) > len(before)
    wait_until(lambda: set(held()) <= set(before))
