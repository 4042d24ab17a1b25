"""Second part: failing tests, a fix that is not enough, one that is."""

from __future__ import annotations

from hotset.testing.recording.story.beat import Beat, Use, edit, read, run_tests

_AFTER_DEAD_WORKER = """\
    clock.advance(31)
    assert make_worker("w2").work_once().delivered == 1
    assert receiver.deliveries == [id]
"""

_SLOW_TEST = """

def test_a_slow_endpoint_gets_its_delivery_once(store, clock, receiver, make_worker):
    store.add_endpoint(Endpoint("ep_slow", "https://slow.example/hook", "whsec_slow", ("*",), timeout_seconds=90.0), clock())
    (id,) = store.accept(order_event(1, clock), clock())
    other = make_worker("w2")

    def answer_slowly(request):
        receiver.on_request = lambda request: None
        clock.advance(45)
        other.work_once()

    receiver.on_request = answer_slowly
    make_worker("w1").work_once()
    assert receiver.deliveries == [id]
"""

_BATCH_TEST = """

def test_deliveries_that_wait_behind_a_slow_one_are_sent_once(store, clock, receiver, make_worker):
    store.add_endpoint(Endpoint("ep_slow", "https://slow.example/hook", "whsec_slow", ("*",), timeout_seconds=90.0), clock())
    ids = [store.accept(order_event(number, clock), clock())[0] for number in range(3)]
    other = make_worker("w2")

    def answer_slowly(request):
        clock.advance(45)
        receiver.on_request = lambda request: None
        other.work_once()
        receiver.on_request = answer_slowly

    receiver.on_request = answer_slowly
    make_worker("w1").work_once()
    assert sorted(receiver.deliveries) == sorted(ids)
"""

_DATE_TEST_HEAD_OLD = """\
import random

import pytest
"""

_DATE_TEST_HEAD = """\
import random
import time
from email.utils import formatdate

import pytest
"""

_SECONDS_TEST_OLD = """\
def test_retry_after_in_seconds(value, expected):
    assert parse_retry_after(value) == expected
"""

_DATE_TEST = """\
def test_retry_after_in_seconds(value, expected):
    assert parse_retry_after(value) == expected


@pytest.fixture
def in_new_york(monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_retry_after_date_means_the_same_in_every_time_zone(in_new_york):
    in_a_minute = formatdate(time.time() + 60, usegmt=True)
    assert parse_retry_after(in_a_minute) == pytest.approx(60, abs=5)
"""

_CLAIM_OLD = """\
            rows = self._db.execute(
                \"\"\"
                SELECT id FROM deliveries
                WHERE (state IN ('pending', 'retrying') AND next_attempt_at <= :now)
                   OR (state = 'sending' AND lease_until <= :now)
                ORDER BY next_attempt_at
                LIMIT :limit
                \"\"\",
                {"now": now, "limit": limit},
            ).fetchall()
            ids = [row["id"] for row in rows]
            self._db.executemany(
                "UPDATE deliveries SET state = 'sending', worker = ?, lease_until = ? WHERE id = ?",
                [(worker, now + lease_seconds, id) for id in ids],
            )
        return [self._claimed(id) for id in ids]
"""

_CLAIM_BY_TIMEOUT = """\
            rows = self._db.execute(
                \"\"\"
                SELECT d.id, e.timeout_seconds FROM deliveries d JOIN endpoints e ON e.id = d.endpoint_id
                WHERE (d.state IN ('pending', 'retrying') AND d.next_attempt_at <= :now)
                   OR (d.state = 'sending' AND d.lease_until <= :now)
                ORDER BY d.next_attempt_at
                LIMIT :limit
                \"\"\",
                {"now": now, "limit": limit},
            ).fetchall()
            self._db.executemany(
                "UPDATE deliveries SET state = 'sending', worker = ?, lease_until = ? WHERE id = ?",
                [(worker, now + max(lease_seconds, row["timeout_seconds"] + LEASE_MARGIN), row["id"]) for row in rows],
            )
        return [self._claimed(row["id"]) for row in rows]
"""

_RELEASE_OLD = """\
    def release(self, id: str) -> None:
        \"\"\"Gives a claimed delivery back, untried.\"\"\"
        with self._transaction():
            self._db.execute(
                "UPDATE deliveries SET state = CASE attempts WHEN 0 THEN 'pending' ELSE 'retrying' END,"
                " worker = NULL, lease_until = NULL WHERE id = ?",
                (id,),
            )

    def complete(self, id: str, now: float, answer: Answer) -> None:
        self._finish(id, now, DeliveryState.DELIVERED, answer)

    def give_up(self, id: str, now: float, answer: Answer) -> None:
        self._finish(id, now, DeliveryState.FAILED, answer)

    def reschedule(self, id: str, now: float, at: float, answer: Answer) -> None:
        with self._transaction():
            self._attempt(id, now, answer)
            self._db.execute(
                "UPDATE deliveries SET state = 'retrying', attempts = attempts + 1, next_attempt_at = ?, last_error = ?,"
                " worker = NULL, lease_until = NULL WHERE id = ?",
                (at, answer.error, id),
            )

    def _finish(self, id: str, now: float, state: DeliveryState, answer: Answer) -> None:
        with self._transaction():
            self._attempt(id, now, answer)
            self._db.execute(
                "UPDATE deliveries SET state = ?, attempts = attempts + 1, last_error = ?, worker = NULL, lease_until = NULL"
                " WHERE id = ?",
                (state.value, answer.error, id),
            )
"""

_RELEASE_NEW = """\
    def renew(self, id: str, worker: str, until: float) -> bool:
        \"\"\"Extends a worker's lease. False where the delivery is no longer in its hands: it must not be sent then.\"\"\"
        with self._transaction():
            renewed = self._db.execute(
                "UPDATE deliveries SET lease_until = ? WHERE id = ? AND worker = ? AND state = 'sending'", (until, id, worker)
            )
            return renewed.rowcount == 1

    def release(self, id: str, worker: str) -> None:
        \"\"\"Gives a claimed delivery back, untried.\"\"\"
        with self._transaction():
            self._db.execute(
                "UPDATE deliveries SET state = CASE attempts WHEN 0 THEN 'pending' ELSE 'retrying' END,"
                " worker = NULL, lease_until = NULL WHERE id = ? AND worker = ?",
                (id, worker),
            )

    def complete(self, id: str, worker: str, now: float, answer: Answer) -> None:
        self._finish(id, worker, now, DeliveryState.DELIVERED, answer)

    def give_up(self, id: str, worker: str, now: float, answer: Answer) -> None:
        self._finish(id, worker, now, DeliveryState.FAILED, answer)

    def reschedule(self, id: str, worker: str, now: float, at: float, answer: Answer) -> None:
        with self._transaction():
            self._attempt(id, now, answer)
            self._db.execute(
                "UPDATE deliveries SET state = 'retrying', attempts = attempts + 1, next_attempt_at = ?, last_error = ?,"
                " worker = NULL, lease_until = NULL WHERE id = ? AND worker = ?",
                (at, answer.error, id, worker),
            )

    def _finish(self, id: str, worker: str, now: float, state: DeliveryState, answer: Answer) -> None:
        \"\"\"Only the worker that holds the delivery decides what becomes of it; the attempt is kept in any case.\"\"\"
        with self._transaction():
            self._attempt(id, now, answer)
            self._db.execute(
                "UPDATE deliveries SET state = ?, attempts = attempts + 1, last_error = ?, worker = NULL, lease_until = NULL"
                " WHERE id = ? AND worker = ?",
                (state.value, answer.error, id, worker),
            )
"""

_LOOP_OLD = """\
            if self._stop.is_set():
                self._store.release(one.delivery.id)
                continue
            total += self._deliver(one)
        return total
"""

_LOOP_NEW = """\
            if self._stop.is_set():
                self._store.release(one.delivery.id)
                continue
            if not self._store.renew(one.delivery.id, self.name, self._clock() + one.endpoint.timeout_seconds + LEASE_MARGIN):
                log.info("lease lost", extra={"worker": self.name, "delivery": one.delivery.id})
                continue
            total += self._deliver(one)
        return total
"""

_DELIVER_OLD = """\
        if answer.ok:
            self._store.complete(claimed.delivery.id, now, answer)
            return Tally(delivered=1)
        if answer.permanent or attempts >= self._settings.max_attempts:
            self._store.give_up(claimed.delivery.id, now, answer)
            return Tally(failed=1)
        at = backoff.next_attempt(self._settings, attempts, now, self._rng, answer.retry_after)
        self._store.reschedule(claimed.delivery.id, now, at, answer)
        return Tally(retried=1)
"""

_DELIVER_NEW = """\
        if answer.ok:
            self._store.complete(claimed.delivery.id, self.name, now, answer)
            return Tally(delivered=1)
        if answer.permanent or attempts >= self._settings.max_attempts:
            self._store.give_up(claimed.delivery.id, self.name, now, answer)
            return Tally(failed=1)
        at = backoff.next_attempt(self._settings, attempts, now, self._rng, answer.retry_after)
        self._store.reschedule(claimed.delivery.id, self.name, now, at, answer)
        return Tally(retried=1)
"""

_MARGIN = """\
log = logging.getLogger("ferrypost.worker")

LEASE_MARGIN = 15.0
\"\"\"Seconds a lease outlasts the endpoint's timeout: connecting, signing and a busy database take time too.\"\"\"
"""

_PARSE_OLD = """\
def parse_retry_after(value: str | None) -> float | None:
    \"\"\"Seconds to wait, from a `Retry-After` header: a number, or an HTTP date. None for what is neither.\"\"\"
"""

_PARSE_NEW = """\
def parse_retry_after(value: str | None, now: float) -> float | None:
    \"\"\"Seconds to wait, from a `Retry-After` header: a number, or an HTTP date. None for what is neither.\"\"\"
"""

_SUBTRACT_OLD = """\
    seconds = (when.replace(tzinfo=None) - datetime.now()).total_seconds()
    return max(0.0, seconds)
"""

_SUBTRACT_NEW = """\
    if when.tzinfo is None:  # "-0000": a time in UTC from a source that does not know its own zone (RFC 5322)
        when = when.replace(tzinfo=UTC)
    return max(0.0, when.timestamp() - now)
"""

_DATE_TEST_NOW_OLD = """\
def test_a_retry_after_date_means_the_same_in_every_time_zone(in_new_york):
    in_a_minute = formatdate(time.time() + 60, usegmt=True)
    assert parse_retry_after(in_a_minute) == pytest.approx(60, abs=5)
"""

_DATE_TEST_NOW = """\
def test_a_retry_after_date_means_the_same_in_every_time_zone(in_new_york):
    now = 1_790_000_000.0
    assert parse_retry_after(formatdate(now + 60, usegmt=True), now) == 60.0
    assert parse_retry_after(formatdate(now + 60), now) == 60.0
    assert parse_retry_after(formatdate(now - 60, usegmt=True), now) == 0.0
"""

FIXING = (
    Beat(
        "24 pass. A test for the slow endpoint: the second worker looks for work while the first one waits for its answer,"
        " 45 s in.",
        (edit("tests/test_worker.py", _AFTER_DEAD_WORKER, _AFTER_DEAD_WORKER + _SLOW_TEST),),
    ),
    Beat("", (run_tests("tests-slow-fails", "tests/test_worker.py"),)),
    Beat(
        "It fails as production does: the same id twice. Now the date.",
        (
            edit("tests/test_backoff.py", _DATE_TEST_HEAD_OLD, _DATE_TEST_HEAD),
            edit("tests/test_backoff.py", _SECONDS_TEST_OLD, _DATE_TEST),
        ),
    ),
    Beat("", (run_tests("tests-date-fails", "tests/test_backoff.py"),)),
    Beat(
        "Five hours too many, as on staging. Both bugs are reproduced. The lease first: the obvious change is to let it"
        " depend on the endpoint's timeout when the delivery is claimed.",
        (
            edit("ferrypost/store.py", _CLAIM_OLD, _CLAIM_BY_TIMEOUT),
            edit(
                "ferrypost/store.py",
                "SCHEMA_VERSION = 4\n",
                'SCHEMA_VERSION = 4\n\nLEASE_MARGIN = 15.0\n"""Seconds a lease outlasts the endpoint\'s timeout."""\n',
            ),
        ),
    ),
    Beat("", (run_tests("tests-claim-passes", "tests/test_worker.py"),)),
    Beat(
        "The new test passes, but I do not trust this yet: a batch has up to 8 deliveries and one moment of claiming. A"
        " test for the ones that wait behind a slow one.",
        (edit("tests/test_worker.py", _SLOW_TEST, _SLOW_TEST + _BATCH_TEST),),
    ),
    Beat("", (run_tests("tests-batch-fails", "tests/test_worker.py"),)),
    Beat(
        "As I feared: the third delivery of the batch is sent after its lease has ended, and comes twice. A lease at"
        " claiming time cannot be right for a batch, unless it is eight timeouts long, and then a dead worker's deliveries"
        " would wait for a quarter of an hour.\n\nBetter: the claim stays short, and right before it sends, the worker"
        " renews the lease of that one delivery for as long as the endpoint may take. If the lease was lost in the"
        " meantime, it does not send. And what becomes of a delivery is only written by the worker that holds it. I look at"
        " the code once more and take my first change back.",
        (read("ferrypost/store.py", offset=150, limit=85),),
    ),
    Beat(
        "",
        (
            edit("ferrypost/store.py", _CLAIM_BY_TIMEOUT, _CLAIM_OLD),
            edit(
                "ferrypost/store.py",
                'SCHEMA_VERSION = 4\n\nLEASE_MARGIN = 15.0\n"""Seconds a lease outlasts the endpoint\'s timeout."""\n',
                "SCHEMA_VERSION = 4\n",
            ),
            edit("ferrypost/store.py", _RELEASE_OLD, _RELEASE_NEW),
        ),
    ),
    Beat(
        "Now the worker.",
        (
            edit("ferrypost/worker.py", 'log = logging.getLogger("ferrypost.worker")\n', _MARGIN),
            edit("ferrypost/worker.py", _LOOP_OLD, _LOOP_NEW),
            edit("ferrypost/worker.py", _DELIVER_OLD, _DELIVER_NEW),
        ),
    ),
    Beat("", (run_tests("tests-release-fails", "tests/test_worker.py"),)),
    Beat(
        "Both new tests pass; I forgot the worker's name where a stopping worker gives its deliveries back.",
        (
            edit(
                "ferrypost/worker.py",
                "                self._store.release(one.delivery.id)\n",
                "                self._store.release(one.delivery.id, self.name)\n",
            ),
        ),
    ),
    Beat("", (run_tests("tests-lease-passes", "tests/test_worker.py"),)),
    Beat(
        "The lease is done. Now the date: compare aware times, and take `now` from the caller as the rest of the code does,"
        " which also makes the test exact.",
        (
            edit("ferrypost/backoff.py", "from datetime import datetime\n", "from datetime import UTC, datetime\n"),
            edit("ferrypost/backoff.py", _PARSE_OLD, _PARSE_NEW),
            edit("ferrypost/backoff.py", _SUBTRACT_OLD, _SUBTRACT_NEW),
            edit(
                "tests/test_backoff.py",
                "    assert parse_retry_after(value) == expected\n",
                "    assert parse_retry_after(value, 0.0) == expected\n",
            ),
            edit("tests/test_backoff.py", _DATE_TEST_NOW_OLD, _DATE_TEST_NOW),
        ),
    ),
    Beat("", (run_tests("tests-sender-fails"),)),
    Beat(
        "The sender calls it too, of course.",
        (
            edit(
                "ferrypost/sender.py",
                '            retry_after = parse_retry_after(response.headers.get("retry-after"))\n',
                '            retry_after = parse_retry_after(response.headers.get("retry-after"), self._clock())\n',
            ),
            Use("grep", {"pattern": r"parse_retry_after|\.release\(|\.complete\(|\.give_up\(|\.reschedule\("}),
        ),
    ),
    Beat("No other callers.", (run_tests("tests-all-pass"),)),
    Beat("All 27 pass. The whole change, to read it once as a reviewer would:", (Use("git_diff", {}),)),
    Beat(
        "Both causes are found and fixed; nothing is committed yet.\n\n**Duplicates.** A delivery was leased for 30 s"
        " (`FERRYPOST_LEASE_SECONDS`), but since 2.3.0 an endpoint may take up to 120 s to answer, and a batch of 8 shares"
        " one lease. When it ended, another worker sent the delivery again. In last night's log that explains every"
        " repeated delivery. Now the worker renews the lease of each delivery right before it sends it, for the endpoint's"
        " timeout plus 15 s, skips it when the lease was lost, and only the worker that holds a delivery writes its outcome"
        " (`store.renew`, `worker.work_once`).\n\n**Stuck retries.** A `Retry-After` date was stripped of its zone and"
        " compared with local time: five hours too late in New York (`backoff.parse_retry_after`). Now both sides are"
        " absolute.\n\nThree new tests, each seen failing first. What remains: a worker that is stopped hard in the middle"
        " of a slow request still leads to a second delivery after its lease, up to 135 s later. That is at-least-once, and"
        " I would not change it.",
    ),
)
