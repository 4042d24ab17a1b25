"""A process that learns is killed at any moment: the state is the fold of its events, nothing that
was acknowledged is lost, and no session is observed twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).with_name("learning_process.py")


def _kill(folder: Path, seed: int, kills: int) -> subprocess.Popen[bytes]:
    home = {**os.environ, "HOME": str(folder), "HOTSET_CONFIG": str(folder / "none.toml")}
    return subprocess.Popen(
        [sys.executable, str(_SCRIPT), str(folder / f"data-{seed}"), str(seed), str(kills)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=home,
    )


def _report(process: subprocess.Popen[bytes]) -> dict:
    out, err = process.communicate()
    assert process.returncode == 0, err.decode()[-3000:]
    return json.loads(out)


@pytest.mark.row("V13")
def test_a_learner_that_is_killed_leaves_a_state_that_is_the_fold_of_its_events(tmp_path):
    found = _report(_kill(tmp_path, 1, 10))
    assert found["wrong"] == []
    assert found["acknowledged"] > 0


@pytest.mark.row("V13")
@pytest.mark.slow
def test_two_hundred_kills_leave_the_state_that_the_events_fold_to(tmp_path):
    with _kill(tmp_path, 2, 100) as one, _kill(tmp_path, 3, 100) as two:
        reports = [_report(one), _report(two)]
    for found in reports:
        assert found["wrong"] == []
        assert found["acknowledged"] > 300
        assert found["events"]["SessionObserved"] > 20
        assert found["events"]["KnobsFrozen"] > 0
        assert found["snapshots"] == 1
