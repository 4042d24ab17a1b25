"""Processes that share an index: everybody adds, one folds, and a kill at any moment loses
nothing."""

import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from index_process import EMBEDDER, entry

from hotset.index.database import Generations, folder_of
from hotset.index.full_text import WordIndex
from hotset.index.local import LocalIndex
from hotset.nouns.search import Query

_SCRIPT = Path(__file__).with_name("index_process.py")


def _start(*words):
    return subprocess.Popen(
        [sys.executable, _SCRIPT, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.fixture
def folding(tmp_path):
    """Starts processes that fold; ends those that still live."""
    started = []

    def start():
        process = _start("folds", tmp_path / "index")
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _found(index, new):
    hits = index.search(Query(new.text.split()[-1], deadline=30.0)).hits
    return bool(hits) and hits[0].entry == new


@pytest.mark.slow
def test_everybody_finds_at_once_what_anybody_added(tmp_path):
    folder = tmp_path / "index"
    with LocalIndex(folder, EMBEDDER, folds=False) as index:
        processes = [_start("adds", folder, writer, 40) for writer in "abc"]
        for process in processes:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err.decode()
            assert json.loads(out)["missed"] == []
        every = [entry(writer, number) for writer in "abc" for number in range(40)]
        assert all(_found(index, new) for new in every)
        assert index.fold()
        assert all(_found(index, new) for new in every)
        assert index.state().lag == 0


@pytest.mark.slow
def test_a_kill_in_the_middle_of_a_fold_loses_nothing_and_doubles_nothing(tmp_path, folding):
    rng = random.Random(7)
    with LocalIndex(tmp_path / "index", EMBEDDER, folds=False) as index:
        added = []
        for kill in range(4):
            process = folding()
            assert process.stdout.readline() == b"holds\n"
            for number in range(40):
                new = entry(f"k{kill}", number)
                index.add([new])
                added.append(new)
            time.sleep(rng.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert all(_found(index, new) for new in rng.sample(added, 20))
        assert index.fold()
        assert index.state().lag == 0
        assert all(_found(index, new) for new in added)
        [generation] = Generations(index._rows).every()
        words = WordIndex(folder_of(index.folder, generation) / "words")
        assert (generation.rows, words.documents) == (len(added), len(added))


def test_the_next_process_takes_the_role_of_one_that_was_killed(tmp_path, folding):
    with LocalIndex(tmp_path / "index", EMBEDDER, folds=False) as index:
        first = folding()
        assert first.stdout.readline() == b"holds\n"
        assert index.state().writer == first.pid
        assert not index.fold()
        second = folding()
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert second.stdout.readline() == b"holds\n"
        assert index.state().writer == second.pid
        second.send_signal(signal.SIGKILL)
        second.wait()
        assert index.fold()
        assert index.state().writer == os.getpid()


@pytest.mark.row("V17")
def test_nobody_else_can_look_into_an_index(tmp_path):
    with LocalIndex(tmp_path / "index", EMBEDDER, folds=False) as index:
        index.add([entry("a", 1)])
        index.fold()
        assert stat.S_IMODE(index.folder.stat().st_mode) == 0o700
        every = list(index.folder.rglob("*"))
        assert {stat.S_IMODE(path.stat().st_mode) for path in every if path.is_file()} == {0o600}
        assert {stat.S_IMODE(path.stat().st_mode) for path in every if path.is_dir()} == {0o700}
