"""Work that a call waits for, but not for long: each session for its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from hotset.runtime.background import BoundedPool, Late, OutOfTime, TooManyThreads, check
from tests.waiting import wait_until

LONG = 60.0  # seconds that nothing here takes, however busy the machine is


@pytest.fixture
def bounded() -> Iterator[BoundedPool]:
    """Callers wait for little CPU time, and by the clock for as long as a busy machine needs."""
    made = BoundedPool(LONG, cpu_seconds=0.05)
    yield made
    made.close()


@pytest.fixture
def released() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def burn(cpu_seconds: float) -> str:
    """Computes, as a plan does: with a check in its loop."""
    until = time.thread_time() + cpu_seconds
    while time.thread_time() < until:
        check()
    return "computed"


def hang(released: threading.Event) -> bool:
    """Computes for longer than a call waits, then waits for something itself."""
    burn(0.06)
    check()
    return released.wait(LONG)


def test_what_the_work_gives_or_raises_comes_back(bounded):
    async def run() -> None:
        assert await bounded.of("a").run(int, "7") == 7
        with pytest.raises(ValueError, match="seven"):
            await bounded.of("a").run(int, "seven")

    asyncio.run(run())


def test_work_that_hangs_lets_its_own_session_pass_and_no_other(bounded, released):
    async def run() -> None:
        with pytest.raises(Late):
            await bounded.of("slow").run(hang, released)
        begun = time.monotonic()
        for n in range(100):
            with pytest.raises(TimeoutError, match="has not ended"):
                await bounded.of("slow").run(int, "7")
            assert await bounded.of(f"other {n}").run(int, "7") == 7
        assert time.monotonic() - begun < LONG, "they waited"

    asyncio.run(run())


def test_a_call_waits_so_long_by_the_clock_for_work_that_computes_nothing(released):
    async def run() -> None:
        pool = BoundedPool(0.2)
        with pytest.raises(TimeoutError):
            await pool.of("slow").run(released.wait)
        pool.close()

    asyncio.run(run())


def test_a_session_is_served_again_once_its_work_has_ended(bounded, released):
    async def run() -> None:
        with pytest.raises(Late) as late:
            await bounded.of("slow").run(hang, released)
        released.set()
        assert late.value.work.result(LONG)
        while True:
            try:
                assert await bounded.of("slow").run(int, "8") == 8
            except TimeoutError:
                await asyncio.sleep(0.01)
            else:
                return

    asyncio.run(run())


@pytest.mark.slow
def test_threads_that_hang_are_replaced_until_there_are_too_many(bounded, released):
    async def run() -> None:
        for n in range(20):
            assert await bounded.of("quick").run(int, "7") == 7
            with pytest.raises(Late):
                await bounded.of(f"slow {n}").run(hang, released)
        assert bounded.hung == 20
        with pytest.raises(TooManyThreads, match="20 earlier ones"):
            await bounded.of("quick").run(int, "7")

    asyncio.run(run())


def test_work_of_one_session_is_done_one_after_the_other_and_that_of_others_beside_it(released):
    async def run() -> None:
        pool = BoundedPool(LONG)
        first = asyncio.ensure_future(pool.of("a").run(released.wait))
        second = asyncio.ensure_future(pool.of("a").run(int, "2"))
        assert await pool.of("b").run(int, "1") == 1
        await asyncio.sleep(0)
        assert not second.done()
        released.set()
        assert await second == 2
        assert await first
        pool.close()

    asyncio.run(run())


@pytest.mark.slow
def test_a_call_waits_for_so_much_of_its_own_threads_cpu_and_not_for_what_others_use(released):
    async def run() -> None:
        pool = BoundedPool(LONG, cpu_seconds=0.2)
        idle = asyncio.ensure_future(pool.of("idle").run(released.wait))
        with pytest.raises(Late) as late:
            await pool.of("long").run(burn, 1.0)
        with pytest.raises(TimeoutError, match="has not ended"):
            await pool.of("long").run(int, "7")
        assert late.value.work.result(LONG) == "computed", "it goes on without its call"
        released.set()
        assert await idle
        pool.close()

    asyncio.run(run())


@pytest.mark.slow
def test_work_that_never_ends_is_ended_by_its_own_checks_and_its_session_rests():
    async def run() -> None:
        pool = BoundedPool(LONG, cpu_seconds=0.05, most_cpu_seconds=0.2)
        with pytest.raises(Late) as late:
            await pool.of("endless").run(burn, LONG)
        assert isinstance(late.value.work.exception(LONG), OutOfTime)
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await pool.of("endless").run(int, "7")
        assert await pool.of("other").run(int, "7") == 7
        pool.close()

    asyncio.run(run())


def test_a_call_that_leaves_takes_no_work_back():
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        ended.wait(LONG)

    async def run() -> None:
        pool = BoundedPool(LONG)
        waiting = asyncio.ensure_future(pool.of("a").run(work))
        await asyncio.to_thread(begun.wait, LONG)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await pool.of("b").run(int, "7") == 7
        ended.set()
        assert await pool.of("a").run(int, "7") == 7
        pool.close()

    asyncio.run(run())


def test_what_a_call_that_left_was_waiting_for_is_not_begun(released):
    done: list[str] = []

    async def run() -> None:
        pool = BoundedPool(LONG)
        first = asyncio.ensure_future(pool.of("a").run(released.wait))
        second = asyncio.ensure_future(pool.of("a").run(done.append, "second"))
        await asyncio.sleep(0)
        second.cancel()
        released.set()
        assert await first
        assert await pool.of("a").run(int, "7") == 7
        pool.close()

    asyncio.run(run())
    assert not done


def test_work_that_ends_after_its_loop_is_nobody_s_error(bounded, released):
    ended = threading.Event()

    async def run() -> None:
        with pytest.raises(TimeoutError):
            await bounded.of("a").run(lambda: hang(released) and ended.set())

    asyncio.run(run())
    released.set()
    assert ended.wait(LONG)


def test_closing_ends_what_checks_and_leaves_no_idle_thread():
    async def run() -> None:
        pool = BoundedPool(LONG, cpu_seconds=0.01)
        assert await pool.of("a").run(int, "7") == 7
        with pytest.raises(Late) as late:
            await pool.of("b").run(burn, LONG)
        pool.close()
        assert isinstance(late.value.work.exception(LONG), OutOfTime)

    before = threading.active_count()
    asyncio.run(run())
    wait_until(lambda: threading.active_count() <= before)
