"""How long requests waited for us, as `status` says it, and when Python collects garbage."""

from __future__ import annotations

import json

from click.testing import CliRunner

from hotset.runtime.waits import Waits
from hotset.surfaces.cli.tree import hotset
from hotset.surfaces.proxy.collector import IdleCollector
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.proxy.talking import Talk


def test_status_says_how_long_requests_waited_before_they_went_on(tmp_path):
    with (
        ScriptedUpstream(lambda _: Say("Done.")) as upstream,
        LocalProxy(tmp_path / "data", anthropic_url=upstream.anthropic_url) as proxy,
    ):
        talk = Talk(proxy.address, "anthropic")
        for n in range(3):
            talk.say(f"number {n}")
        options = ["status", "--data", str(tmp_path / "data"), "--project", str(tmp_path / "data")]
        told = CliRunner().invoke(hotset, [*options, "--json"]).stdout
        words = CliRunner().invoke(hotset, options).stdout
    wait = json.loads(told)["proxy"]["wait"]
    assert wait["requests"] == 3
    assert 0 < wait["p50_ms"] <= wait["p99_ms"] <= wait["longest_ms"]
    assert 0 < wait["cpu_p50_ms"] <= wait["cpu_p99_ms"] <= wait["cpu_longest_ms"]
    assert f"{wait['longest_ms']:.1f} at the longest" in words


def test_the_longest_wait_stays_when_the_latest_thousand_have_passed_it():
    waits = Waits()
    waits.add(2.0, 1.0)
    for _ in range(1000):
        waits.add(0.002, 0.001)
    told = waits.figures()
    assert (told.requests, told.p99_ms, told.longest_ms) == (1001, 2.0, 2000.0)
    assert (told.cpu_p99_ms, told.cpu_longest_ms) == (1.0, 1000.0)


def test_garbage_is_collected_once_after_requests_and_only_while_none_comes():
    collector = IdleCollector()
    assert not collector.tick(latest=1000.0, now=1001.0)
    assert collector.tick(latest=1000.0, now=1010.0)
    assert not collector.tick(latest=1000.0, now=2000.0)  # nothing came since
    assert not collector.tick(latest=2000.0, now=2001.0)
    assert collector.tick(latest=2000.0, now=2010.0)
