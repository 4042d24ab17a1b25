"""Work with a deadline: late work is dropped, hung work is bounded, and nothing holds up the
end."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from hotset.files.deadline_pool import DeadlinePool
from tests.waiting import wait_until


@pytest.fixture
def pool():
    made = DeadlinePool(2, "pool-under-test")
    yield made
    made.close()


@pytest.fixture
def gate():
    made = threading.Event()
    yield made
    made.set()


def threads():
    return [each for each in threading.enumerate() if each.name == "pool-under-test"]


def test_results_and_errors_come_to_the_one_who_waits(pool):
    assert pool.submit(lambda: 42).result(60) == 42
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 // 0).result(60)
    assert not pool.busy


def test_one_goes_on_without_work_that_is_late_and_its_thread_serves_again(pool, gate):
    late = pool.submit(lambda: gate.wait(60))
    with pytest.raises(TimeoutError):
        late.result(0.01)
    assert pool.busy
    gate.set()
    assert late.result(60)
    assert pool.submit_if_free(lambda: "next").result(60) == "next"


def test_work_that_hangs_takes_its_threads_and_no_more(pool, gate):
    hung = [pool.submit(lambda: gate.wait(60)) for _ in range(2)]
    assert pool.submit_if_free(lambda: "refused") is None
    waiting = [pool.submit(lambda number=number: number) for number in range(20)]
    assert waiting[0].cancel(), "what waits can be cancelled"
    assert len(threads()) == 2
    gate.set()
    assert [each.result(60) for each in waiting[1:]] == [*range(1, 20)]
    assert all(each.result(60) for each in hung)


def test_with_its_result_a_thread_is_free(pool):
    one = DeadlinePool(1, "one")
    for number in range(500):
        assert one.submit_if_free(lambda number=number: number).result(60) == number
    one.close(60)


def test_threads_without_work_end(monkeypatch):
    monkeypatch.setattr("hotset.files.deadline_pool._IDLE_SECONDS", 0.01)
    pool = DeadlinePool(2, "pool-under-test")
    for number in range(50):
        assert pool.submit(lambda number=number: number).result(60) == number
        if number % 10 == 0:
            time.sleep(0.02)
    wait_until(lambda: not threads())
    assert pool.submit(lambda: "again").result(60) == "again"


def test_closing_cancels_what_waits_and_waits_for_what_runs_no_longer_than_it_is_given(pool, gate):
    for _ in range(2):
        pool.submit(lambda: gate.wait(60))
    waiting = pool.submit(lambda: "never")
    wait_until(lambda: len(threads()) == 2)
    began = time.monotonic()
    pool.close(0.05)
    assert time.monotonic() - began < 30
    assert waiting.cancelled()
    assert pool.submit_if_free(lambda: "too late") is None
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(lambda: "too late")
    gate.set()
    pool.close(60)
    wait_until(lambda: not threads())


def test_a_process_ends_although_work_hangs():
    code = (
        "import threading; from hotset.files.deadline_pool import DeadlinePool\n"
        "pool = DeadlinePool(1, 'hung'); pool.submit(threading.Event().wait); print('bye')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert ended.stdout == "bye\n"
