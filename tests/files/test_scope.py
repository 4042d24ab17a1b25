"""Scopes: what runs or is open belongs to one; budgets block and never fail; nothing leaks."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import threading
from pathlib import Path

import pytest

from hotset.files.deadline_pool import DeadlinePool
from hotset.files.scope import PROCESS, Budget
from tests.waiting import wait_until


@pytest.fixture
def scope():
    made = PROCESS.child("under test", Budget(threads=4, tasks=4, files=4))
    yield made
    assert made.close() == []


def count_of(scope):
    return scope.counts()[0]


def test_a_thread_counts_from_its_start_to_its_end(scope):
    gate = threading.Event()
    thread = scope.thread(gate.wait, "waits", 60)
    assert count_of(scope).threads == 1
    assert PROCESS.counts()[0].threads >= 1, "the root counts all that is below it"
    assert scope.left_over() == ["process/under test: thread waits"]
    gate.set()
    thread.join()
    assert (count_of(scope).threads, scope.left_over()) == (0, [])


@pytest.mark.row("V14")
def test_a_budget_of_threads_blocks_and_does_not_fail(scope):
    gate, started = threading.Event(), []
    for number in range(4):
        scope.thread(gate.wait, f"waits {number}", 60)
    late = threading.Thread(target=lambda: started.append(scope.thread(int, "late")))
    late.start()
    wait_until(lambda: count_of(scope).waiting == 1)
    assert started == []
    gate.set()
    late.join()
    assert len(started) == 1


@pytest.mark.row("V14")
def test_a_budget_of_a_parent_holds_for_all_below_it(scope):
    gate = threading.Event()
    for name in ("one", "two"):
        child = scope.child(name)
        for _ in range(2):
            child.thread(gate.wait, name, 60)
    late = threading.Thread(target=lambda: scope.child("three").thread(int, "late"))
    late.start()
    wait_until(lambda: any(each.waiting for each in scope.counts()))
    gate.set()
    late.join()
    assert scope.close() == []


async def _tasks_in_turn(scope):
    at_once, most, done = 0, 0, []

    async def work(number):
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        for _ in range(3):
            await asyncio.sleep(0)
        at_once -= 1
        done.append(number)

    await asyncio.gather(*(scope.task(work(number)) for number in range(50)))
    return most, done


@pytest.mark.row("V14")
def test_tasks_beyond_the_budget_wait_for_their_turn(scope):
    most, done = asyncio.run(_tasks_in_turn(scope))
    assert most <= 4
    assert done == sorted(done)
    assert len(done) == 50


def test_a_task_that_is_cancelled_while_it_waits_for_its_turn_never_begins(scope):
    async def run():
        began = []

        async def work():
            began.append(1)

        holding = [scope.task(asyncio.sleep(60)) for _ in range(4)]
        waiting = scope.task(work())
        await asyncio.sleep(0)
        waiting.cancel()
        for each in holding:
            each.cancel()
        await asyncio.gather(waiting, *holding, return_exceptions=True)
        return began

    assert asyncio.run(run()) == []
    assert count_of(scope).tasks == 0


def test_a_budget_of_files_blocks_until_one_is_released(scope):
    held = [scope.file(f"file {number}", int) for number in range(4)]
    got = []
    late = threading.Thread(target=lambda: got.append(scope.file("late", int)))
    late.start()
    wait_until(lambda: count_of(scope).waiting == 1)
    held[0].release()
    held[0].release()  # a second time counts for nothing
    late.join()
    assert count_of(scope).files == 4
    for each in (*held[1:], *got):
        each.release()
    assert count_of(scope).files == 0


def test_a_queue_blocks_when_it_is_full_and_its_items_are_counted(scope):
    queue = scope.queue(2)
    queue.put(1)
    queue.put(2)
    late = threading.Thread(target=queue.put, args=(3,))
    late.start()
    assert count_of(scope).queued == 2
    assert [queue.get(), queue.get(), queue.get()] == [1, 2, 3]
    late.join()


@pytest.mark.row("V14")
def test_closing_ends_all_that_is_in_it_and_names_what_is_left_over():
    async def run():
        scope, gate, closed = PROCESS.child("closing"), threading.Event(), []
        inner = scope.child("inner")
        task = inner.task(asyncio.sleep(60), "sleeps")
        scope.thread(gate.wait, "hangs", 60)
        inner.executor(2, "pool").submit(int)
        scope.timer(60, closed.append)
        scope.file("held", lambda: closed.append("held"))
        left = await scope.aclose(0.05)
        assert task.cancelled()
        assert closed == ["held"]
        assert left == ["process/closing: thread hangs"]
        late = scope.task(asyncio.sleep(60))
        await asyncio.wait({late})
        assert late.cancelled(), "nothing begins in a closed scope"
        with pytest.raises(RuntimeError):
            scope.thread(int, "late")
        gate.set()
        return await scope.aclose(60)

    assert asyncio.run(run()) == []


def test_a_pool_counts_in_its_scope_until_its_threads_have_ended(scope):
    pool = DeadlinePool(2, "pool", scope)
    assert pool.submit(lambda: 42).result(60) == 42
    assert count_of(scope).threads == 1
    pool.close(60)
    wait_until(lambda: count_of(scope).threads == 0)


def standing():
    """Threads, and open files, of this process."""
    gc.collect()
    return threading.active_count(), len([*Path("/proc/self/fd").iterdir()])


async def fail():
    await asyncio.sleep(0)
    raise ZeroDivisionError


async def one_round(number, chance):
    """Starts some of each kind, lets them run, cancels some, and closes. What was left over."""
    scope = PROCESS.child(f"round {number}", Budget(threads=8, tasks=3, files=6))
    inner, gate = scope.child("inner"), threading.Event()
    for file in os.pipe():
        scope.file("pipe", lambda file=file: os.close(file))
    queue = inner.queue(8)
    for item in range(chance.randrange(8)):
        queue.put(item)
    tasks = [inner.task(fail() if chance.random() < 0.3 else asyncio.sleep(60)) for _ in range(5)]
    for _ in range(chance.randrange(3)):
        inner.thread(gate.wait, "waits", 60)
    if chance.random() < 0.3:
        scope.timer(60, gate.set)
    if chance.random() < 0.3:
        inner.executor(1, "pool").submit(int)
    for _ in range(chance.randrange(4)):
        await asyncio.sleep(0)
    if chance.random() < 0.5:
        chance.choice(tasks).cancel()
    gate.set()
    left = await scope.aclose(60)
    await asyncio.gather(*tasks, return_exceptions=True)
    return left


@pytest.mark.row("V14")
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts files as Linux does")
def test_a_thousand_starts_stops_cancels_and_failures_leave_nothing():
    chance = random.Random(14)
    before, counted = standing(), count_of(PROCESS)

    async def every_round():
        left = [await one_round(number, chance) for number in range(1000)]
        return left, asyncio.all_tasks() - {asyncio.current_task()}

    left, tasks = asyncio.run(every_round())
    assert [each for each in left if each] == []
    assert tasks == set()
    # What other tests of this process left may end meanwhile.
    wait_until(lambda: all(now <= then for now, then in zip(standing(), before, strict=True)))
    now = count_of(PROCESS)
    assert (now.threads <= counted.threads, now.files <= counted.files) == (True, True)
    assert now.tasks <= counted.tasks
