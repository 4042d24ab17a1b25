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
from hotset.runtime.handoffs import handoffs_in
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {
    "with_langgraph.py": "langgraph",
    "with_pydantic_ai.py": "pydantic_ai",
    "with_openai_agents.py": "agents",
    "handoff_with_pydantic_ai.py": "pydantic_ai",
}
SCRIPT = (
    Say("I will read it.", calls=(Call("read_file", {"path": "README.md"}),)),
    Say("Where was that?", calls=(Call("search_history", {"query": "kettle"}),)),
    Say("The kettle is red."),
)


HANDOFFS = sorted(EXAMPLES.glob("handoff*.py"))
OTHERS = sorted({*EXAMPLES.glob("*.py")} - {*HANDOFFS})


@pytest.mark.row("X2")
@pytest.mark.parametrize("example", OTHERS, ids=lambda path: path.name)
@pytest.mark.rest_slow
def test_an_example_runs_and_its_session_is_kept(tmp_path, upstream, example):
    up = upstream(SCRIPT)
    told = run_example(example, tmp_path, up)
    assert "The kettle is red." in told
    assert "search_history" not in told
    assert len(up.requests) == 3
    assert "search_history" in str(up.requests[0].json()["tools"])
    with SqliteStore.open(tmp_path / "data") as store:
        (session,) = store.sessions()
        assert [(turn.number, turn.outcome) for turn in store.turns(session.id)] == [
            (1, Outcome.DONE),
            (2, Outcome.DONE),
        ]
        assert [bill.faults for bill in store.bills()] == [0, 1]


@pytest.mark.row("V15", "V16")
@pytest.mark.parametrize("example", HANDOFFS, ids=lambda path: path.name)
@pytest.mark.rest_slow
def test_an_example_of_agents_hands_over(tmp_path, upstream, example):
    reading = [
        Say(f"Part {n}. " * 400, calls=(Call("read_file", {"path": "README.md"}),))
        for n in range(16)
    ]
    first = [Say("In README.md.")] if example.name == "handoff.py" else []
    up = upstream([*first, *reading, Say("The kettle is red.")])
    told = run_example(example, tmp_path, up)
    assert "The kettle is red." in told
    with SqliteStore.open(tmp_path / "data") as store:
        handed = list(handoffs_in(store))
        agents = {session.agent for session in store.sessions()}
    assert [each.index for each in handed] == list(range(1, len(handed) + 1))
    assert len(handed) >= 2
    assert f"{len(handed)} handoffs" in told
    assert "[hotset: handoff 2" in up.requests[-1].decoded.decode()
    if example.name == "handoff.py":
        assert agents == {"librarian", "engineer"}
        assert f"handoff {len(handed)} of task K-1" in told


def run_example(example, tmp_path, up) -> str:
    """What it prints."""
    if (needed := NEEDS.get(example.name)) and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
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
    return told.stdout
