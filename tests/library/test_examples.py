"""Every example runs, as a program of its own, against a provider that keeps its rules; the model
asks for something back."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotset.nouns.turn import Outcome
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {
    "with_langgraph.py": "langgraph",
    "with_pydantic_ai.py": "pydantic_ai",
    "with_openai_agents.py": "agents",
}
SCRIPT = (
    Say("I will read it.", calls=(Call("read_file", {"path": "README.md"}),)),
    Say("Where was that?", calls=(Call("search_history", {"query": "kettle"}),)),
    Say("The kettle is red."),
)


@pytest.mark.row("X2")
@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
@pytest.mark.rest_slow
def test_an_example_runs_and_its_session_is_kept(tmp_path, upstream, example):
    if (needed := NEEDS.get(example.name)) and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    up = upstream(SCRIPT)
    (tmp_path / "README.md").write_text("All about the kettle, which is red.\n")
    environment = {
        **os.environ,
        "HOTSET_DATA": str(tmp_path / "data"),
        "OPENAI_BASE_URL": up.openai_url,
        "ANTHROPIC_BASE_URL": up.anthropic_url,
        "OPENAI_API_KEY": "sk-test",
        "ANTHROPIC_API_KEY": "sk-test",
    }
    command = [sys.executable, str(example), "What colour?"]
    told = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert "The kettle is red." in told.stdout
    assert "search_history" not in told.stdout
    assert len(up.requests) == 3
    assert "search_history" in str(up.requests[0].json()["tools"])
    with SqliteStore.open(tmp_path / "data") as store:
        (session,) = store.sessions()
        assert [(turn.number, turn.outcome) for turn in store.turns(session.id)] == [
            (1, Outcome.DONE),
            (2, Outcome.DONE),
        ]
        assert [bill.faults for bill in store.bills()] == [0, 1]
