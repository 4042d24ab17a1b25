"""Work that a call waits for, but not for long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from hotset.runtime.bounded import Bounded


@pytest.fixture
def bounded() -> Iterator[Bounded]:
    made = Bounded(seconds=0.2)
    yield made
    made.close()


def test_what_the_work_gives_or_raises_comes_back(bounded):
    async def run() -> None:
        assert await bounded.run(int, "7") == 7
        with pytest.raises(ValueError, match="seven"):
            await bounded.run(int, "seven")

    asyncio.run(run())


def test_work_that_hangs_is_not_waited_for_and_holds_up_nobody_behind_it_until_it_ends(bounded):
    released = threading.Event()

    async def run() -> None:
        with pytest.raises(TimeoutError):
            await bounded.run(released.wait)
        with pytest.raises(TimeoutError, match="has not ended"):
            await bounded.run(int, "7")
        released.set()
        while True:
            try:
                assert await bounded.run(int, "8") == 8
            except TimeoutError:
                await asyncio.sleep(0.01)
            else:
                return

    asyncio.run(run())


def test_a_call_that_leaves_takes_no_work_back(bounded):
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        ended.wait(5)

    async def run() -> None:
        waiting = asyncio.ensure_future(bounded.run(work))
        await asyncio.to_thread(begun.wait, 5)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await bounded.run(int, "7") == 7
        ended.set()

    asyncio.run(run())


def test_work_that_ends_after_its_loop_is_nobody_s_error(bounded):
    released = threading.Event()

    async def run() -> None:
        with pytest.raises(TimeoutError):
            await bounded.run(released.wait)

    asyncio.run(run())
    released.set()
    assert not bounded._pool.submit(int, "0").result(5)
