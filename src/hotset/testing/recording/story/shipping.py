"""Third part: what is already wrong in the data, a soak test, and the release."""

from __future__ import annotations

from hotset.testing.recording.story.beat import Beat, Use, command, edit, get, read, run_tests

_SOAK = '''\
"""Twelve workers against slow endpoints, with time running 200 times as fast: nothing may arrive twice.

    python -m tests.soak [deliveries]
"""

from __future__ import annotations

import collections
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx

from ferrypost.cli import _log_to_stderr
from ferrypost.config import Settings
from ferrypost.metrics import Metrics
from ferrypost.models import Endpoint, Event
from ferrypost.sender import Sender
from ferrypost.store import Store
from ferrypost.worker import Worker

SPEED = 200.0
WORKERS = 12


def clock() -> float:
    return 1_790_000_000.0 + time.monotonic() * SPEED


def main(count: int = 230) -> int:
    settings, rng = Settings(poll_seconds=0.05), random.Random(11)
    _log_to_stderr(settings)
    seen: collections.Counter[str] = collections.Counter()

    def answer(request: httpx.Request) -> httpx.Response:
        time.sleep(rng.uniform(20, 110) / SPEED)
        seen[request.headers["ferrypost-delivery"]] += 1
        return httpx.Response(200)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "soak.db"
        store = Store(path)
        store.migrate()
        for number in range(8):
            url = f"https://slow-{number}.example/hook"
            endpoint = Endpoint(f"ep_slow_{number}", url, "whsec_soak", (f"order.{number}",), timeout_seconds=120.0)
            store.add_endpoint(endpoint, clock())
        for number in range(count):
            store.accept(Event(f"evt_{number}", f"order.{number % 8}", clock(), {"order": number}), clock())
        sender = Sender(settings, clock, httpx.MockTransport(answer))
        workers = [Worker(f"soak:{number}", Store(path), sender, settings, Metrics(), clock) for number in range(WORKERS)]
        threads = [threading.Thread(target=worker.run) for worker in workers]
        for thread in threads:
            thread.start()
        while store.depth().get("delivered", 0) < count:
            time.sleep(0.2)
        for worker in workers:
            worker.stop()
        for thread in threads:
            thread.join()
    twice = [id for id, times in seen.items() if times > 1]
    print(f"soak: {count} deliveries, {len(seen) - len(twice)} delivered once, {len(twice)} delivered twice")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
'''

_OPERATIONS_OLD = "* A worker that was killed: its deliveries are taken over after `FERRYPOST_LEASE_SECONDS` (30).\n"

_OPERATIONS_NEW = """\
* A worker that was killed: its deliveries are taken over after `FERRYPOST_LEASE_SECONDS` (30), the one it was sending after the
  endpoint's `timeout_seconds` + 15. That one may arrive twice.
* `lease lost` in the log: a delivery waited so long behind slow ones that another worker took it. Harmless; if there are many,
  lower `FERRYPOST_BATCH_SIZE`.
"""

_CHANGELOG_NEW = """\
# Changelog

## 2.3.2
- Fix: endpoints that take longer than 30 seconds to answer got deliveries twice. A worker now renews its lease before it sends.
- Fix: a `Retry-After` date was read as local time, so that retries came hours late, or at once.

## 2.3.1
"""

SHIPPING = (
    Beat(
        "I look at what the metrics say about slow attempts, and make a dry run over the staging copy for the rows that are"
        " scheduled hours late.",
        (
            get("/metrics", "metrics"),
            command("python -m scripts.requeue --late-by 3600 --dry-run --database /srv/staging/ferrypost.db", "repair"),
        ),
        prompt=(
            "Good, I follow. Two things before we ship: is there anything in the database that stays wrong after the fix? And I"
            " would like to see it survive many workers and slow endpoints, not just two workers in a unit test."
        ),
    ),
    Beat(
        "118 deliveries are scheduled about five hours late. They would come right by themselves, at their wrong time;"
        " `scripts.requeue` without `--dry-run` moves them to the time the endpoint asked for. That is a write to"
        " production, so I leave it to you. Duplicates leave nothing behind that could be repaired.\n\nNow a soak test:"
        " twelve workers, endpoints that take 20 to 110 s, time running 200 times as fast.",
        (Use("write_file", {"path": "tests/soak.py", "content": _SOAK}),),
    ),
    Beat(
        "",
        (
            command(
                "python -m tests.soak 230 2>&1 | tee soak.log | grep -v 'lease lost'; grep -c 'lease lost' soak.log", "soak", 300
            ),
        ),
    ),
    Beat(
        "230 deliveries, each delivered once. 649 times a worker found that its lease was gone and did not send: that is"
        " what used to become a duplicate. With nothing but slow endpoints most of a batch is lost to other workers, which"
        " costs a few writes and nothing else; I will put a word about `FERRYPOST_BATCH_SIZE` into the operations notes. I"
        " have not run the soak on the code before the fix; the unit tests show that it fails there. Say so if you want the"
        " numbers.",
    ),
    Beat(
        "",
        (
            edit("CHANGELOG.md", "# Changelog\n\n## 2.3.1\n", _CHANGELOG_NEW),
            edit("pyproject.toml", 'version = "2.3.1"\n', 'version = "2.3.2"\n'),
            edit("ferrypost/__init__.py", '__version__ = "2.3.1"\n', '__version__ = "2.3.2"\n'),
            edit("docs/operations.md", _OPERATIONS_OLD, _OPERATIONS_NEW),
        ),
        prompt="No need. Please do the changelog, the version and the operations notes, then build the image.",
    ),
    Beat("", (command("docker build --progress=plain -t registry.ferrypost.example/ferrypost:2.3.2 .", "build-failing", 600),)),
    Beat(
        "The build runs ruff, and I left an import behind: `datetime` itself is not used any more in"
        " `ferrypost/backoff.py`. I should have run the linter before.",
        (read("ferrypost/backoff.py"),),
    ),
    Beat(
        "",
        (
            edit("ferrypost/backoff.py", "from datetime import UTC, datetime\n", "from datetime import UTC\n"),
            command("ruff check .", "ruff-passes"),
        ),
    ),
    Beat("", (run_tests("tests-final"),)),
    Beat("", (command("docker build --progress=plain -t registry.ferrypost.example/ferrypost:2.3.2 .", "build-passing", 600),)),
    Beat(
        "The image is built: ruff is clean, 27 tests pass inside it, ferrypost 2.3.2. It is not pushed. One last look at"
        " the files that changed most, and at the whole diff.",
        (read("ferrypost/worker.py"), read("ferrypost/store.py"), Use("git_diff", {})),
    ),
    Beat(
        "Ready for review. Changed: `ferrypost/store.py`, `ferrypost/worker.py`, `ferrypost/backoff.py`,"
        " `ferrypost/sender.py`, their tests, the soak test, changelog, version, operations notes. The HTTP API is as it"
        " was. Verified: 27 tests, each new one seen failing first; the soak with twelve workers; the image build. Left to"
        " you: `scripts.requeue` on production, once 2.3.2 runs there.",
    ),
    Beat(
        "**Send each delivery once, and retry when we were asked to**\n\nTwo regressions of 2.3.0.\n\n*Duplicates.*"
        " Endpoints may take up to 120 s to answer, but a delivery was leased for 30 s, and the up to 8 deliveries of a"
        " batch shared one lease. Another worker then sent them again: 57 of 845 deliveries in three hours of the log of 10"
        " November, all to endpoints with a timeout of 60 s or more. A worker now renews the lease of a delivery right"
        " before it sends it, for the endpoint's timeout and 15 s; it skips deliveries that it has lost; and only the"
        " holder of a delivery writes its outcome. A longer lease at claiming time was tried and is not enough, because the"
        " end of a batch may be sent many timeouts after it was claimed.\n\n*Late retries.* `Retry-After` dates lost their"
        " time zone and were compared with local time. With `TZ=America/New_York` that added five hours; east of Greenwich"
        " it removed the wait altogether. Times are now compared as absolute ones, and `now` is passed in.\n\nTests: three"
        " new, a soak test (`python -m tests.soak`) with twelve workers. Not part of this: moving the 118 deliveries that"
        " are already scheduled late (`scripts.requeue --late-by 3600`, to be run once after the rollout).",
        prompt=(
            "Thanks. Write me the text of the pull request, please, in the way we do it: title, why, what, what is not part of"
            " it."
        ),
    ),
)
