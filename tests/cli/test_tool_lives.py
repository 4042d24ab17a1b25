"""How tools live, as a person meets it: scores that fall with time, and a registry that they
edit."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Desk

SERVER = Path(__file__).parent.parent / "runtime" / "notes_server.py"
BASE_LIFE = 9400.0


def edit_registry(desk: Desk, name: str, **fields: Any) -> None:
    """As a person does with an editor."""
    path = desk.data / "tools" / "registry.json"
    known = json.loads(path.read_bytes()) if path.exists() else {"format": 1, "tools": {}}
    known["tools"][name] = {**known["tools"].get(name, {}), **fields}
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(json.dumps(known))


def lives(desk: Desk) -> dict[str, Any]:
    status: dict[str, Any] = desk.run("tools", "status", "--json").json()["lives"]
    return status


@pytest.mark.row("D2", "D5")
def test_a_score_decays_with_the_time_that_the_registry_tells(desk: Desk):
    desk.run("tools", "add", "notes", "--", sys.executable, "-I", "-S", str(SERVER), str(desk.home))
    desk.run("tools", "use", "notes__add_note", "title=a", "text=b")
    (used,) = lives(desk)["candidates"]
    assert used["score"] == pytest.approx(1.0, abs=0.02)
    (written,) = json.loads((desk.data / "tools" / "registry.json").read_bytes())["tools"].values()
    assert (written["status"], written["calls"]) == ("active", 1)

    used_at = time.time() - BASE_LIFE
    edit_registry(desk, "notes__add_note", born=used_at, last_used=used_at, calls=100)

    (used,) = lives(desk)["candidates"]
    assert used["score"] == pytest.approx(math.exp(-1 / 2), abs=0.02)
    edit_registry(desk, "notes__add_note", pinned=True)
    assert lives(desk)["pinned"] == 1
