"""Is a proxy serving, is it this version, and does anything reach it?"""

from __future__ import annotations

from collections.abc import Iterator

from hotset import __version__
from hotset.surfaces.cli.checks.finding import CheckScene, Finding, ok, warn
from hotset.surfaces.cli.terminal import count, span


def check(scene: CheckScene) -> Iterator[Finding]:
    status, address = scene.status, scene.address
    if status is None or address is None:
        says = "no proxy serves this project" + (
            f" (process {address.pid} left a note and is gone)" if address else ""
        )
        yield warn(
            "proxy", says, "start one with: hotset up   or run an agent with: hotset wrap claude"
        )
        return
    yield ok(
        "proxy",
        f"serves on port {address.port} for {span(status['uptime'])} (process {address.pid})",
    )
    if status["version"] != __version__:
        yield warn(
            "version",
            f"the proxy is {status['version']}, this is {__version__}",
            "stop the proxy and start it again",
        )
    else:
        yield ok("version", f"hotset {__version__}, proxy and command line alike")
    if status["store"] != "ok":
        yield warn(
            "keeping",
            f"the proxy keeps nothing now: {status['store']}",
            "see the findings on the store below",
        )
    yield from _upstreams(scene)
    yield _traffic(scene)


def _upstreams(scene: CheckScene) -> Iterator[Finding]:
    assert scene.status is not None
    for name, url in scene.status["upstreams"].items():
        chosen = scene.config.upstreams.get(name)
        if chosen is not None and chosen.url != url:
            yield warn(
                "upstream",
                (
                    f"the proxy sends {name} to {url}; settings here "
                    f"({scene.config.origins.get(f'{name}_url')}) say {chosen.url}"
                ),
                "stop the proxy and start it again",
            )


def _traffic(scene: CheckScene) -> Finding:
    assert scene.status is not None
    requests, kept, bypassed = (scene.status[name] for name in ("requests", "kept", "bypassed"))
    last = scene.status.get("last") or 0.0
    if not requests:
        return warn(
            "traffic",
            "no call has come yet",
            "run the agent with: hotset wrap AGENT, or set its base URL (hotset up shows it)",
        )
    told = f"{count(requests, 'call')}, {kept:,} kept" + (
        f", the last {span(scene.now - last)} ago" if last else ""
    )
    if bypassed:
        return warn(
            "traffic",
            f"{told}; {bypassed:,} went through without being kept",
            "see `bypassed` below for the reasons",
        )
    return ok("traffic", told)
