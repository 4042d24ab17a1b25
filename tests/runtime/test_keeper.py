"""The keeper: what was handed over is kept, whoever waits for it, and its troubles are told
once."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from hotset.errors import NotFound, StoreBusy
from hotset.nouns.deposit import CommitReceipt, Deposit, ReplyReceived
from hotset.nouns.message import Reply
from hotset.nouns.turn import Event, Outcome, TurnId
from hotset.runtime.keeper import Keeper
from hotset.store.sqlite import SqliteStore
from hotset.testing import RamStore


@pytest.fixture
def keeper(tmp_path) -> Iterator[Keeper]:
    made = Keeper(lambda: SqliteStore.open(tmp_path), time.monotonic)
    made.open()
    yield made
    made.close()


def test_a_deposit_stands_though_whoever_waited_for_it_has_gone(keeper):
    async def run() -> None:
        keeper.hand_over(Event("Told", 1.0)).cancel()
        await keeper.keep(Event("Behind", 2.0))

    asyncio.run(run())

    assert [event.name for event in keeper.store.events()] == ["Told", "Behind"]
    assert not keeper.busy


@pytest.mark.slow
def test_a_deposit_that_is_refused_is_told_to_whoever_waits_and_to_nobody_else(keeper):
    reply_to_nothing = ReplyReceived(TurnId("0" * 16), 1.0, Outcome.DONE, 200, b"{}", Reply())
    unheard: list[dict[str, object]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: unheard.append(told))
        with pytest.raises(NotFound):
            await keeper.keep(reply_to_nothing)
        keeper.hand_over(reply_to_nothing)
        await keeper.keep(Event("Behind", 2.0))
        gc.collect()

    asyncio.run(run())

    assert unheard == []
    assert keeper.trouble == ""


def test_a_store_that_answers_after_the_loop_has_ended_disturbs_nobody(keeper, caplog):
    async def run() -> None:
        for number in range(50):
            keeper.hand_over(Event(f"event {number}", 1.0))

    asyncio.run(run())
    keeper.close()  # writes what still waits

    assert caplog.records == []


class Hanging(RamStore):
    """A store that takes everything and keeps nothing, until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs = True
        self.waiting: list[tuple[Future[CommitReceipt], tuple[Deposit, ...]]] = []

    def keep(self, *deposits: Deposit) -> Future[CommitReceipt]:
        future: Future[CommitReceipt] = Future()
        if self.hangs:
            self.waiting.append((future, deposits))
        else:
            future.set_result(CommitReceipt())
        return future

    def go_on(self) -> None:
        self.hangs = False
        for future, _ in self.waiting:
            future.set_result(CommitReceipt())
        self.waiting.clear()


@pytest.mark.parametrize(("size", "most"), [(1 << 20, 64), (20 << 20, 3), (70 << 20, 0), (10, 127)])
def test_what_waits_for_a_store_that_is_stuck_is_bounded_by_its_bytes_too(size, most):
    """Of the first, which shows that it is stuck, nothing is known yet when it is handed over."""
    now = [0.0]
    store = Hanging()
    keeper = Keeper(lambda: store, lambda: now[0])
    keeper.open()
    large = ReplyReceived(TurnId("0" * 16), 1.0, Outcome.DONE, 200, bytes(size), Reply())

    async def run() -> None:
        waiting = [keeper.hand_over(Event("the first", 1.0))]
        now[0] = 10.0
        waiting += [keeper.hand_over(large) for _ in range(most)]
        with pytest.raises(StoreBusy, match="too much waits"):
            keeper.hand_over(large)
        store.go_on()
        await asyncio.wait(waiting)
        assert not keeper.trouble
        again = keeper.hand_over(large)
        store.go_on()
        await again
        assert not keeper.busy

    asyncio.run(run())
