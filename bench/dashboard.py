"""How long the dashboard's readings take on a made-up store of 10,000 sessions and a session of
5,000 turns, over HTTP, as a ratio to a route that reads next to nothing.

    make bench-dashboard

All routes take turns in one loop, so that a noisy machine is equally noisy for each of them.
`cpu_ms` is what this process, proxy and client, computed for one: on a machine that others use it
says more than the clock. `idle` is what it computes while a page listens and nothing happens.
"""

from __future__ import annotations

import http.client
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from bench.results import quantile, tell
from hotset.learn.events import SessionFigures, TrialSetting
from hotset.nouns.turn import Event
from hotset.runtime.learned_state import keep_snapshot, learn_event
from hotset.store.sqlite import SqliteStore
from hotset.testing.many_sessions import LONG, many_sessions
from hotset.testing.proxy import LocalProxy

Times = dict[str, list[float]]

SESSIONS, TURNS, LONG_TURNS = 10_000, 4, 5_000
ROUNDS = 15
IDLE_SECONDS = 20.0
_BEGUN = 1_790_000_000.0
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
    "its window": f"sessions/{LONG}/window",
    "its timeline": f"sessions/{LONG}/timeline",
    "its cost": f"costs?sessions={LONG}",
    "one of its requests": f"sessions/{LONG}/turns/4900/difference",
    "events": "events",
    "findings": "findings",
    "savings of 30 days": "savings",
    "savings ever, by day": "savings?days=0",
    "what was learned": "learning",
    "knobs over time": "learning/curves/knobs?days=0",
    "beliefs over time": "learning/curves/beliefs?days=0",
}


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="hotset-dashboard-"))
    try:
        with SqliteStore.open(folder / "data") as store:
            store.load(many_sessions(SESSIONS, TURNS, LONG_TURNS))
            store.keep(*_observations()).result()
            keep_snapshot(store, _clock())
        with LocalProxy(folder / "data", clock=_clock) as proxy:
            first, times, cpu = measure(proxy.address.port, proxy.address.token)
            idle = _idle_share(proxy.address.port, proxy.address.token)
    finally:
        shutil.rmtree(folder)
    nothing = statistics.median(times[EMPTY])
    rows = {
        name: {
            "first_ms": first[path],
            "p50_ms": statistics.median(times[path]),
            "p95_ms": quantile(times[path], 0.95),
            "cpu_ms": statistics.median(cpu[path]),
            "ratio": statistics.median(times[path]) / nothing,
        }
        for name, path in ROUTES.items()
    }
    found = {f"{SESSIONS:,} sessions, one of {LONG_TURNS:,} turns": rows}
    tell("dashboard", {**found, "idle": {"one page listens": {"cpu_share": idle}}})


def _observations() -> list[Event]:
    """Every session as it is observed when it ends; one in five explored."""
    setting = TrialSetting({"off": 0.1}, explore=0.2, explorable=("regret", "patience"))
    found = [learn_event("TrialChanged", setting, _BEGUN)]
    for number in range(SESSIONS):
        explored = {"regret": 0.4, "patience": (number % 10) / 10} if number % 5 == 0 else {}
        figures = SessionFigures(
            f"s{number:011d}", explored=explored, success=1.0, reward=-0.1, cost=40.0, whole=100.0
        )
        found.append(learn_event("SessionObserved", figures, _BEGUN + number * 60.0))
    return found


def _clock() -> float:
    """A moment behind everything that the store has, as it is made up."""
    return _BEGUN + SESSIONS * 60.0 + LONG_TURNS * 10.0


def _idle_share(port: int, token: str) -> float:
    """The share of one processor that this process takes while a page listens and nothing comes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", f"/{token}/hotset/live")
    assert connection.getresponse().readline() == b"event: changed\n"
    begun, computed = time.perf_counter(), time.process_time()
    time.sleep(IDLE_SECONDS)
    share = (time.process_time() - computed) / (time.perf_counter() - begun)
    connection.close()
    return share


def measure(port: int, token: str) -> tuple[dict[str, float], Times, Times]:
    """Milliseconds of each route: of the first look, of later ones, and of computing."""
    times: Times = {path: [] for path in ROUTES.values()}
    cpu: Times = {path: [] for path in ROUTES.values()}
    first: dict[str, float] = {}
    for round in range(ROUNDS + 1):
        for path, taken in times.items():
            begun, computed = time.perf_counter(), time.process_time()
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
            connection.request("GET", f"/{token}/hotset/api/{path}")
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            answer.read()
            connection.close()
            ms = (time.perf_counter() - begun) * 1000
            first.setdefault(path, ms)
            if round:
                taken.append(ms)
                cpu[path].append((time.process_time() - computed) * 1000)
    return first, times, cpu


if __name__ == "__main__":
    main()
