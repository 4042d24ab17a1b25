"""20,000 one-turn requests, each a session of its own: how much memory the proxy holds on the way.

    make bench-soak

Its index is open and folds beside the calls, as it does for everybody. Resident memory is read
after 100, 5,000, 10,000 and 20,000 requests, each time when everything is kept and the index has
had the time to follow.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from pathlib import Path

from bench.overhead import Line, canned_upstream, cpu, served, small
from bench.results import tell

AT = tuple(int(each) for each in os.environ.get("SOAK_AT", "100,5000,10000,20000").split(","))
QUIET_SECONDS, MOST_SECONDS = 5.0, 300.0
QUIET = 0.1  # of a core: less is what an idle proxy takes


def main() -> None:
    sets: dict[str, dict[str, float]] = {}
    with canned_upstream() as (upstream, _), served(upstream) as (address, pid):
        with Line("127.0.0.1", address["port"], f"/{address['token']}/v1/messages") as line:
            line.ask(small(0))
        sent = 0
        for at in AT:
            with Line("127.0.0.1", address["port"], f"/{address['token']}/v1/messages") as line:
                for n in range(sent, at):
                    line.ask(small(n))
            sent = at
            settle(address, pid)
            sets[f"after {at}"] = {"rss_mb": resident(pid)}
            print(f"after {at}", sets[f"after {at}"], flush=True)
    grown = {"times": sets[f"after {AT[-1]}"]["rss_mb"] / sets[f"after {AT[1]}"]["rss_mb"]}
    tell(
        "soak",
        {
            "memory": {"hotset": {name: found["rss_mb"] for name, found in sets.items()}},
            "growth": {"hotset": grown},
        },
    )


def settle(address: dict, pid: int) -> None:
    """Until everything is kept and the background has nothing more to do."""
    deadline = time.monotonic() + MOST_SECONDS
    url = f"http://127.0.0.1:{address['port']}/{address['token']}/hotset/status"
    while time.monotonic() < deadline:
        before = cpu(pid)
        time.sleep(QUIET_SECONDS)
        with urllib.request.urlopen(url) as reply:
            status = json.load(reply)
        if not status["keeping"] and cpu(pid) - before < QUIET * QUIET_SECONDS:
            return


def resident(pid: int) -> float:
    """Now, not at its highest."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
