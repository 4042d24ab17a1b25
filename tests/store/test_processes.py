"""Killed processes lose nothing; processes that share a folder do not disturb each other."""

import json
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from store_process import content_of

from hotset.errors import StoreFailed
from hotset.nouns.deposit import PageAdded
from hotset.nouns.page import Kind
from hotset.nouns.turn import Event
from hotset.store.connection import Tuning
from hotset.store.port import Where
from hotset.store.sqlite import SqliteStore
from hotset.testing.store_talk import StoreTalk, kept

_SCRIPT = Path(__file__).with_name("store_process.py")


def _start(*words):
    return subprocess.Popen(
        [sys.executable, _SCRIPT, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _report(process):
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err.decode()
    return json.loads(out)


@pytest.mark.row("V1")
@pytest.mark.slow
def test_nothing_acknowledged_is_lost_in_200_kills(tmp_path):
    processes = [_start("killed", tmp_path / f"store-{seed}", seed, 100) for seed in (1, 2)]
    reports = [_report(process) for process in processes]
    for report in reports:
        assert report["damage"] == []
        assert report["acknowledged"] > 300
    reopened = [wait for report in reports for wait in report["reopened_ms"]]
    assert len(reopened) == 200
    assert statistics.median(reopened) < 100


@pytest.mark.slow
def test_eight_processes_share_a_new_folder_without_a_lock_error(tmp_path):
    report = _report(_start("shared", tmp_path / "store", 8, 500))
    assert report["errors"] == []
    assert report["lost"] == []
    assert report["damage"] == []
    assert report["pages"] == 8 * 502
    assert report["p99_ms"] < 2000  # 50 ms on a machine of its own; the machines of CI are shared


def test_of_processes_that_change_one_memory_at_once_each_sees_the_others_changes(tmp_path):
    report = _report(_start("contending", tmp_path / "store", 4, 25))
    assert report["damage"] == []
    assert report["conflicts"] > 0
    assert [(version, text) for version, text, _ in report["versions"]] == [
        (n + 1, str(n)) for n in range(101)
    ]
    assert Counter(who for _, _, who in report["versions"]) == {
        "nobody": 1,
        "w0": 25,
        "w1": 25,
        "w2": 25,
        "w3": 25,
    }


def test_what_one_store_keeps_another_sees_at_once(tmp_path):
    with (
        SqliteStore.open(tmp_path / "s", Tuning(ballast_bytes=0)) as one,
        SqliteStore.open(tmp_path / "s") as two,
    ):
        talk = StoreTalk(one)
        turn = talk.turn("hello", "hi")
        talk.store = two
        assert talk.turn("more", "fine").session == turn.session
        assert [page.turn for page in one.pages(Where())] == [1, 1, 2, 2]


def test_a_reader_that_dawdles_does_not_keep_the_wal_from_shrinking(tmp_path):
    with SqliteStore.open(tmp_path / "s", Tuning(ballast_bytes=0, checkpoint_pages=20)) as store:
        session = StoreTalk(store).turn("hello", "hi").session
        for number in range(600):
            store.keep(PageAdded(session, "a", Kind.FINDING, content_of("before", number), 1.0))
        kept(store, Event("written", 1.0))
        dawdling = store.pages(Where())
        next(dawdling)
        for number in range(400):
            kept(store, PageAdded(session, "a", Kind.FINDING, content_of("wal", number), 1.0))
        assert store.health().wal_bytes < 4 * 1024 * 1024
        assert len(list(dawdling)) == 1001


def test_a_store_that_was_opened_before_a_fork_is_refused_in_the_child_and_works_in_the_parent(
    tmp_path,
):
    code = f"""
import os, sys
from pathlib import Path
from hotset.errors import StoreFailed
from hotset.nouns.turn import Event
from hotset.store.sqlite import SqliteStore
store = SqliteStore.open(Path({str(tmp_path / "s")!r}))
store.keep(Event("before", 1.0)).result()
pid = os.fork()
if pid == 0:
    said = []
    for act in (lambda: store.keep(Event("child", 1.0)), lambda: list(store.events()), lambda: store.census()):
        try:
            act()
        except StoreFailed as error:
            said.append("fork" in str(error))
    store.close()
    with SqliteStore.open(store.folder) as own:
        own.keep(Event("own", 1.0)).result()
    sys.exit(0 if said == [True, True, True] else 1)
_, status = os.waitpid(pid, 0)
store.keep(Event("after", 1.0)).result()
names = [event.name for event in store.events()]
assert not list(store.verify())
store.close()
print(status, *names)
"""  # noqa: E501
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, check=True, timeout=120
    )
    assert done.stdout.decode().split() == ["0", "before", "own", "after"]


def test_a_closed_store_says_so_and_has_written_what_waited(tmp_path):
    store = SqliteStore.open(tmp_path / "s", Tuning(ballast_bytes=0))
    waiting = [store.keep(Event(f"e{number}", 1.0)) for number in range(500)]
    store.close()
    store.close()
    assert all(future.done() for future in waiting)
    for act in (
        lambda: store.keep(Event("late", 1.0)),
        store.census,
        lambda: list(store.sessions()),
    ):
        with pytest.raises(StoreFailed, match="closed"):
            act()
    with SqliteStore.open(tmp_path / "s") as again:
        assert len(list(again.events())) == 500
    assert not (tmp_path / "s" / "store.db-wal").exists()
