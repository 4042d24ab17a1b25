"""A disk that is full or fails: nothing acknowledged is lost, nothing wrong is answered, and life
goes on afterwards."""

import os
import subprocess
import time
from contextlib import contextmanager

import apsw
import pytest
from store_disks import FailingDisk

from hotset.errors import DiskFull, HotsetError, StoreFailed
from hotset.nouns.deposit import PageAdded
from hotset.nouns.page import Kind
from hotset.nouns.turn import Event
from hotset.store import store_files
from hotset.store.connection import Tuning
from hotset.store.sqlite import SqliteStore
from hotset.testing.store_talk import StoreTalk, kept

_MIB = 1024 * 1024


@contextmanager
def _small_disk(folder, size):
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder],
        capture_output=True,
        check=False,
    )
    if mount.returncode:
        pytest.skip("a small disk can only be mounted by root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def _fill_up(store, session):
    """Notes until the disk is full; gives what was acknowledged."""
    acknowledged = []
    for number in range(10_000):
        content = os.urandom(50_000) + str(number).encode()
        try:
            note = kept(store, PageAdded(session, "a", Kind.FINDING, content, 1.0))
        except DiskFull:
            return acknowledged
        acknowledged.append((note.pages[0], content))
    raise AssertionError("the disk never became full")


def _all_there(store, acknowledged):
    return all(store.content(store.page(id).digest) == content for id, content in acknowledged)


@pytest.mark.row("V1")
@pytest.mark.slow
def test_a_full_disk_loses_nothing_and_service_returns_with_the_room(tmp_path):
    with _small_disk(tmp_path / "disk", 12 * _MIB) as disk:
        (disk / "others").write_bytes(bytes(5 * _MIB))
        store = SqliteStore.open(disk / "s", Tuning(ballast_bytes=2 * _MIB))
        session = StoreTalk(store).turn("hello", "hi").session
        assert not store.health().ballast_out
        acknowledged = _fill_up(store, session)
        assert len(acknowledged) > 10
        assert store.health().ballast_out
        assert store.health().full
        assert _all_there(store, acknowledged)
        assert not list(store.verify())
        with pytest.raises(DiskFull, match="make room"):
            kept(store, Event("still full", 1.0))
        (disk / "others").unlink()
        _until(lambda: _accepts(store))
        assert not store.health().ballast_out
        assert _all_there(store, acknowledged)
        store.close()
        with SqliteStore.open(disk / "s", Tuning(ballast_bytes=2 * _MIB)) as again:
            assert _all_there(again, acknowledged)
            assert not list(again.verify())


def test_a_disk_too_small_for_ballast_is_used_without_it(tmp_path):
    with _small_disk(tmp_path / "disk", 3 * _MIB) as disk:
        with SqliteStore.open(disk / "s") as store:
            session = StoreTalk(store).turn("hello", "hi").session
            assert store.health().ballast_out
            acknowledged = _fill_up(store, session)
            assert acknowledged
            assert _all_there(store, acknowledged)
        with SqliteStore.open(disk / "s") as store:
            assert _all_there(store, acknowledged)


def test_a_moment_without_room_is_bridged_by_the_ballast(tmp_path):
    disk = FailingDisk(apsw.FullError("full"))
    with SqliteStore.open(tmp_path / "s", Tuning(vfs=disk.name, ballast_bytes=_MIB)) as store:
        session = StoreTalk(store).turn("hello", "hi").session
        disk.arm(1)
        note = kept(store, PageAdded(session, "a", Kind.FINDING, b"kept all the same", 1.0))
        assert disk.failed == 1
        assert store.content(store.page(note.pages[0]).digest) == b"kept all the same"
        assert not store.health().ballast_out
        kept(store, Event("goes on", 1.0))
    disk.unregister()


def test_the_ballast_really_takes_room(tmp_path):
    with SqliteStore.open(tmp_path / "s"):
        found = (tmp_path / "s" / "ballast").stat()
        assert found.st_size == store_files.BALLAST_BYTES
        assert found.st_blocks * 512 >= store_files.BALLAST_BYTES


@pytest.mark.parametrize("for_ever", [False, True], ids=["once", "for ever"])
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("write", apsw.SQLITE_IOERR_WRITE),
        ("sync", apsw.SQLITE_IOERR_FSYNC),
        ("full", apsw.SQLITE_FULL),
    ],
)
@pytest.mark.slow
def test_whichever_write_fails_no_answer_is_wrong(tmp_path, name, error, for_ever):
    """The n-th change of the disk fails, for every n until one run meets no fault."""
    disk = FailingDisk(apsw.exception_for(error))
    for n in range(1, 200):
        folder = tmp_path / str(n)
        tuning = Tuning(vfs=disk.name, ballast_bytes=0, checkpoint_pages=8)
        store = SqliteStore.open(folder, tuning)
        session = StoreTalk(store).turn("hello", "hi").session
        acknowledged = []
        refused = 0
        disk.arm(n, for_ever=for_ever)
        for number in range(4):
            content = f"{n}:{number} ".encode() * 300
            try:
                note = store.keep(PageAdded(session, "a", Kind.FINDING, content, 1.0)).result(
                    timeout=120
                )
            except StoreFailed:
                refused += 1
            else:
                acknowledged.append((note.pages[0], content))
        assert _all_there(store, acknowledged)
        failed = disk.failed
        disk.heal()
        _until(lambda store=store: _accepts(store))
        store.close()
        with SqliteStore.open(folder, Tuning(ballast_bytes=0)) as again:
            assert _all_there(again, acknowledged)
            assert not list(again.verify())
        if not failed:
            assert n > 10
            assert refused == 0
            break
    else:
        raise AssertionError("the faults never ended")
    disk.unregister()


def _accepts(store):
    try:
        kept(store, Event("accepted", 1.0))
    except HotsetError:
        return False
    return True


def _until(condition, seconds=10):
    """The store looks at a full disk every two seconds; there is no event to wait for."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
