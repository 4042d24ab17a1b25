"""Locks between real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from hotset.errors import StoreBusy
from hotset.files.lock import FileLock, hold_lock, hold_to_change, lock_file
from hotset.files.open import open_private

HOLD = """
import sys
from pathlib import Path
from hotset.files.lock import FileLock, lock_file
from hotset.files.open import open_private

path, how = Path(sys.argv[1]), sys.argv[2]
if how == "named":
    lock = FileLock(path)
    taken = lock.take()
else:
    taken = lock_file(open_private(path), shared=how == "shared")
print("taken" if taken else "busy", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_process(path, how):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            process.said = process.stdout.readline().strip()
            yield process
        finally:
            process.kill()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lock"


def test_one_process_at_a_time_holds_a_lock_and_others_are_told_which(path):
    lock = FileLock(path)
    assert lock.holder() is None
    with another_process(path, "named") as other:
        assert other.said == "taken"
        assert not lock.take()
        assert lock.holder() == other.pid
        other.kill()
        other.wait()
        assert lock.holder() is None, "a lock ends with its process"
        assert lock.take()
    assert lock.take(), "what is held can be taken again"
    assert lock.holder() == os.getpid()
    with another_process(path, "named") as other:
        assert other.said == "busy"
    lock.release()
    lock.release()
    assert lock.holder() is None


def test_a_lock_whose_holder_could_not_write_its_number_is_held_all_the_same(path):
    with another_process(path, "exclusive") as other:
        assert other.said == "taken"
        assert FileLock(path).holder() == 0


def test_a_lock_is_waited_for_as_long_as_one_has_patience(path):
    lock = FileLock(path)
    with another_process(path, "named") as other:
        later = threading.Timer(0.2, other.kill)
        later.start()
        assert lock.take(patience=60)
        later.join()


def test_readers_share_a_lock_that_keeps_a_writer_out(path):
    file = open_private(path)
    with another_process(path, "shared") as one, another_process(path, "shared") as two:
        assert one.said == two.said == "taken"
        assert lock_file(file, shared=True)
        assert not lock_file(file)
    os.close(file)
    with another_process(path, "exclusive") as alone:
        assert alone.said == "taken"


def test_work_under_a_lock_is_refused_with_a_sentence_while_another_process_is_at_it(path):
    with (
        another_process(path, "exclusive"),
        pytest.raises(StoreBusy, match="somebody counts"),
        hold_lock(path, "somebody counts"),
    ):
        pass
    with hold_lock(path, "somebody counts"), another_process(path, "exclusive") as other:
        assert other.said == "busy"
    with another_process(path, "exclusive") as other:
        assert other.said == "taken"


def test_a_folder_can_be_locked_itself(tmp_path):
    one, two = (os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY) for _ in range(2))
    assert lock_file(one)
    assert not lock_file(two)
    os.close(one)
    assert lock_file(two)
    os.close(two)


def test_threads_change_one_after_the_other(tmp_path):
    counted = tmp_path / "count"
    counted.write_text("0")

    def count():
        for _ in range(50):
            with hold_to_change(counted, tmp_path / "lock"):
                counted.write_text(str(int(counted.read_text()) + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted.read_text() == "200"
