"""Made-up sessions of an agent that comes back to what it opened long before."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

SUBJECTS = ("budget", "harbour", "lantern", "orchard", "granite", "violin")
STEPS = 26


def write_sessions(path: Path, many: int = 24, seed: int = 0) -> Path:
    """In hotset's normal form, one a day."""
    rows = (json.dumps(session(number, seed)) for number in range(many))
    path.write_text("\n".join(rows) + "\n")
    return path


def session(number: int, seed: int = 0) -> dict[str, Any]:
    """First six ledgers are opened, whose text has no word of what they are about; then long
    reports that speak of everything; then a line of each ledger is copied. The call that opened a
    ledger names it: only a search that heeds calls finds it."""
    rng = random.Random(f"{seed} {number}")
    subjects = rng.sample(SUBJECTS, len(SUBJECTS))
    messages: list[dict[str, Any]] = [{"r": "user", "t": "Bring the books in order, please."}]
    lines = {}
    for subject in subjects:
        lines[subject] = f"entry {rng.randrange(10**9):09d} was never balanced by {_word(rng)}"
        messages += _step("open", {"ledger": subject}, f"{_noise(rng, 6)}\n{lines[subject]}")
    for _ in range(STEPS - 2 * len(subjects)):
        report = "\n".join(f"the {rng.choice(subjects)} {_noise(rng, 1)}" for _ in range(14))
        messages += _step("report", {"month": _word(rng)}, report)
    for subject in subjects:
        said = f"Now I correct what the {subject} had wrong in it."
        messages += _step("write", {"text": lines[subject]}, "written", said)
    for at, message in enumerate(messages):
        message["ts"] = 1_790_000_000 + 86_400 * number + 20 * at
    return {"id": f"s{number}", "set": "books", "model": "claude-sonnet-4-5", "msgs": messages}


def _step(tool: str, given: dict[str, str], result: str, said: str = "") -> list[dict[str, Any]]:
    id = f"call-{random.Random(repr((given, result))).getrandbits(40):x}"
    return [
        {"r": "assistant", "t": said, "calls": [{"id": id, "n": tool, "a": json.dumps(given)}]},
        {"r": "tool", "t": result, "id": id, "n": tool},
    ]


def _noise(rng: random.Random, lines: int) -> str:
    return "\n".join(" ".join(_word(rng) for _ in range(9)) for _ in range(lines))


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(3))
