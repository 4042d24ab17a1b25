"""kill -9 at any point: nothing is lost, nothing is there twice, and what was done is not done
again."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from code_project import GRAMMARS, RamIndex, run, write

from hotset.index.local import LocalIndex
from hotset.nouns.search import Sort
from hotset.sources.code.indexer import index_project, manifest_identity
from hotset.sources.code.manifest import Manifest
from hotset.sources.code.parsers import Parsers


def _content(at: int, version: int) -> str:
    return "".join(
        f"def f{at}_{each}_{version}():\n    return {each}\n\n" for each in range(12 + version)
    )


def _killed(root: Path, data: Path, after: float) -> None:
    command = [
        sys.executable,
        str(Path(__file__).with_name("code_killed.py")),
        str(root),
        str(data),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()  # the first batch is in
    time.sleep(after)
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.slow
def test_an_index_run_that_is_killed_again_and_again_ends_as_if_it_had_not_been(
    root, data, tmp_path, parsers
) -> None:
    chance = random.Random(5)
    write(root, {f"d{at % 9}/f{at}.py": _content(at, 0) for at in range(250)})
    _killed(root, data, 0.05)
    with Manifest(data, manifest_identity()) as manifest:
        assert manifest.totals().files > 0
    for round_ in (1, 2):
        write(root, {f"d{at % 9}/f{at}.py": _content(at, round_) for at in range(0, 250, 3)})
        _killed(root, data, chance.uniform(0, 0.15))
    scratch = RamIndex()
    run(root, scratch, tmp_path / "scratch", parsers)
    with LocalIndex(data / "index", folds=False) as index:
        with Manifest(data, manifest_identity()) as manifest, Parsers(GRAMMARS, 1) as own:
            index_project(root, index, manifest, parsers=own)
        ids = {entry.id for entries in scratch.by_whole.values() for entry in entries.values()}
        assert set(index.wholes(Sort.CODE)) == set(scratch.by_whole)
        assert len(index.entries(ids)) == len(ids)
        assert index.state().entries == len(ids)
