"""How long the dashboard's readings take on a made-up store of 10,000 sessions and a session of
5,000 turns, over HTTP, as a ratio to a route that reads next to nothing.

    make bench-dashboard

All routes take turns in one loop, so that a noisy machine is equally noisy for each of them.
"""

from __future__ import annotations

import http.client
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from bench.results import quantile, tell
from hotset.store.sqlite import SqliteStore
from hotset.testing.many_sessions import LONG, many_sessions
from hotset.testing.proxy import LocalProxy

SESSIONS, TURNS, LONG_TURNS = 10_000, 4, 5_000
ROUNDS = 15
EMPTY = "orders"
ROUTES = {
    "nothing": EMPTY,
    "sessions, the first page": "sessions",
    "sessions, the 200th page": "sessions?offset=6000",
    "sessions, found by words": "sessions?words=task+99",
    "their costs": f"costs?sessions={','.join(f's{number:011d}' for number in range(30))}",
    "a session": f"sessions/{LONG}",
    "its turns, the first page": f"sessions/{LONG}/history",
    "its turns, the 90th page": f"sessions/{LONG}/history?offset=4500",
    "its cost": f"costs?sessions={LONG}",
    "one of its requests": f"sessions/{LONG}/turns/4900/difference",
    "findings": "findings",
    "savings of 30 days": "savings",
    "savings ever, by day": "savings?days=0",
}


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="hotset-dashboard-"))
    try:
        with SqliteStore.open(folder / "data") as store:
            store.load(many_sessions(SESSIONS, TURNS, LONG_TURNS))
        with LocalProxy(folder / "data", clock=_clock) as proxy:
            times = measure(proxy.address.port, proxy.address.token)
    finally:
        shutil.rmtree(folder)
    nothing = statistics.median(times[EMPTY])
    rows = {
        name: {
            "p50_ms": statistics.median(times[path]),
            "p95_ms": quantile(times[path], 0.95),
            "ratio": statistics.median(times[path]) / nothing,
        }
        for name, path in ROUTES.items()
    }
    tell("dashboard", {f"{SESSIONS:,} sessions, one of {LONG_TURNS:,} turns": rows})


def _clock() -> float:
    """A moment behind everything that the store has, as it is made up."""
    return 1_790_000_000.0 + SESSIONS * 60.0 + LONG_TURNS * 10.0


def measure(port: int, token: str) -> dict[str, list[float]]:
    """Milliseconds of each route."""
    times: dict[str, list[float]] = {path: [] for path in ROUTES.values()}
    for round in range(ROUNDS + 1):
        for path, taken in times.items():
            begun = time.perf_counter()
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
            connection.request("GET", f"/{token}/hotset/api/{path}")
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            answer.read()
            connection.close()
            if round:  # the first look warms up
                taken.append((time.perf_counter() - begun) * 1000)
    return times


if __name__ == "__main__":
    main()
