"""Memory pressure as a person sees it: a real proxy with a limit that it cannot keep."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Desk
from tests.cli.test_serving import ASK, python
from tests.waiting import wait_until


@pytest.mark.row("V14")
@pytest.mark.slow
def test_a_proxy_that_is_short_of_memory_says_so_and_serves(desk: Desk, to_upstream):
    (desk.home / "config.toml").write_text("[pressure]\nlimit_mb = 1\nseconds = 0.05\n")

    def memory():
        return desk.run("status", "--json", env=to_upstream).json()["proxy"]["memory"]

    with desk.serving(env=to_upstream):
        wait_until(lambda: memory()["level"] == "critical")
        asked = desk.run("wrap", *python(ASK), env=to_upstream)
        status = desk.run("status", "--json", env=to_upstream).json()
        shown = desk.run("status", env=to_upstream).out
        doctor = desk.run("doctor", "--json", env=to_upstream)
        events = desk.run("events", "--type", "Pressure", env=to_upstream).out

    assert asked.raw == b"200\n"
    proxy = status["proxy"]
    assert (proxy["kept"], proxy["bypassed"]) == (1, 0)
    assert proxy["memory"]["source"] == "own limit"
    assert proxy["memory"]["used"] > proxy["memory"]["limit"] == 1 << 20
    assert {"name", "entries", "bytes", "limit", "unit", "shrinks"} <= proxy["caches"][0].keys()
    assert any(each["name"] == "process" and each["threads"] for each in proxy["scopes"])
    assert all(each["state"] == "closed" for each in proxy["breakers"])
    assert "memory   critical: " in shown
    assert "prefetch is off" in shown
    found = [each for each in doctor.json()["findings"] if each["about"] == "memory"]
    assert [each["level"] for each in found] == ["warn"]
    assert "memory pressure normal -> elevated" in events
    assert "memory pressure high -> critical" in events
    assert all(line.rstrip().endswith(" MB used of 1 MB") for line in events.splitlines())


def test_thresholds_that_fall_are_refused(desk: Desk):
    (desk.home / "config.toml").write_text("[pressure]\nelevated = 0.9\nhigh = 0.5\n")
    ran = desk.run("status")
    assert ran.code != 0
    assert "[pressure]" in ran.err
