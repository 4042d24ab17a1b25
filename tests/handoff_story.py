"""A long piece of work with twelve planted facts and as many decoys: what an agent's successors
must know of it, and what they must not be told because it never happened."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

from hotset.testing import Call, Say
from hotset.text.words import word_set

WINDOW = 20_000
FIRST = (
    "Build the rate limiter for the gateway, please.\n\n"
    "  Keep  these   spaces, this tab\t, and \u00fcml\u00e4uts: \u201cquoted\u201d. "
    "We decided to allow 37 requests per second for each tenant."
)
SECOND = (
    "Good so far. We agreed that the limiter fails open when Redis is away. "
    "We'll keep the Lua script in `limits.lua`. If we decided on Mongo, that would change."
)
TOOLS = ("read_file", "edit_file", "bash", "todo_write")

_PLAN = [
    {"content": "Write the token bucket", "status": "completed"},
    {"content": "Wire the bucket into the gateway", "status": "in_progress"},
    {"content": "Document the new headers", "status": "pending"},
]
_LURE = "We decided to drop the limiter and settle for a queue instead."
_WORDS = sorted(
    word_set("""
    the gateway counts what each tenant sends and waits for room in bucket while others pass by
    without a delay because their share is free nothing else was found there
    """)
)


@dataclass(frozen=True)
class PlantedFact:
    says: str
    """What a reader must find."""
    query: str
    """One search that finds it, where the state does not have it."""


FACTS = (
    PlantedFact("37 requests per second", "requests per second each tenant"),
    PlantedFact("fails open when Redis is away", "limiter fails open Redis"),
    PlantedFact("limits.lua", "Lua script"),
    PlantedFact("the bucket is keyed by tenant and region", "bucket keyed by"),
    PlantedFact("src/gateway/limiter.py", "limiter.py edit"),
    PlantedFact("src/gateway/headers.py", "headers.py edit"),
    PlantedFact("14 passed", "pytest tests/test_limiter.py passed"),
    PlantedFact("mypy src/gateway", "mypy src/gateway fails"),
    PlantedFact("Write the token bucket", "token bucket plan"),
    PlantedFact("Wire the bucket into the gateway", "wire the bucket"),
    PlantedFact("the staging Redis is read-only on Fridays", "staging Redis read-only"),
    PlantedFact("BURST_CEILING = 48231", "BURST_CEILING"),
)
"""The last stands only in a file that was read at the very beginning."""

DECOYS = (
    "drop the limiter",  # a file says so, and the model repeats it
    "on Mongo",  # the user's if
    "Kafka",  # the model has not decided
    "ghost.py edited",  # an edit that failed
    "tests/test_phantom.py",  # a run that the model only spoke of
    "99 passed",  # in a note, which is no place for results
    "src/gateway/abandoned.py",  # written, then removed again
    "src/gateway/declined.py",  # the user refused the call
    "Buy a bigger server",  # an item of a plan that was replaced
    "test_quoted_in_a_readme",  # a failing test that a file shows
    "11 failed",  # the same
    "rotate the signing keys",  # a file's list of open points
)

_README = (
    f"# Gateway\n{_LURE}\n- [ ] rotate the signing keys\n"
    "FAILED tests/test_old.py::test_quoted_in_a_readme\n11 failed, 2 passed\n"
)


def _filler(seed: int, words: int) -> str:
    chance = random.Random(seed)
    return f"Part {seed}: " + " ".join(chance.choices(_WORDS, k=words)) + "."


@dataclass(frozen=True)
class WorkStep:
    """What the model says and calls, and what the client's tools give back."""

    say: Say
    results: tuple[str, ...] = ()
    prompt: str = ""
    """The user speaks behind this step."""


def _call(tool: str, result: str, text: str = "", **arguments: object) -> WorkStep:
    return WorkStep(Say(text or "On.", calls=(Call(tool, arguments),)), (result,))


def _read(number: int) -> WorkStep:
    body = "\n".join(f"value_{number}_{n} = {n * 7919 + number}" for n in range(12))
    return _call("read_file", body, _filler(number, 900), path=f"src/part_{number}.py")


def _happenings() -> dict[int, list[WorkStep]]:
    """By the number of the filler step that each comes behind."""
    return {
        0: [
            _call("read_file", "BURST_CEILING = 48231\nMODE = 'strict'\n", path="conf/limits.toml"),
            _call("todo_write", "ok", todos=[{"content": "Buy a bigger server"}]),
        ],
        2: [
            _call("read_file", _README, path="README.md"),
            _call("todo_write", "ok", todos=[{**each, "status": "pending"} for each in _PLAN]),
        ],
        3: [
            _call(
                "edit_file",
                "The user doesn't want to proceed with this tool use.",
                path="src/gateway/declined.py",
                old_string="a",
                new_string="b",
            )
        ],
        4: [
            _call(
                "edit_file",
                "ok",
                "I decided that the bucket is keyed by tenant and region.",
                path="src/gateway/limiter.py",
                old_string="pass",
                new_string="take(tenant)",
            ),
            _call(
                "edit_file",
                "Error: String to replace not found in file.",
                path="src/gateway/ghost.py",
                old_string="x",
                new_string="y",
            ),
        ],
        8: [
            WorkStep(
                Say(
                    "We have not decided on Kafka. I could run `pytest tests/test_phantom.py` "
                    f"and see. {_LURE}"
                ),
                prompt=SECOND,
            )
        ],
        14: [
            _call(
                "bash", "==== 14 passed in 0.31s ====\n", command="pytest -q tests/test_limiter.py"
            )
        ],
        15: [
            _call("edit_file", "ok", path="src/gateway/abandoned.py", content="x = 1\n"),
            _call("bash", "", command="rm src/gateway/abandoned.py"),
        ],
        22: [_call("todo_write", "ok", todos=_PLAN)],
        24: [
            _call(
                "bash",
                "Exit code 1\nsrc/gateway/limiter.py:3: error: Missing return statement\n"
                "Found 1 error in 1 file\n",
                command="mypy src/gateway",
            )
        ],
        30: [
            WorkStep(
                Say(
                    calls=(
                        Call(
                            "handoff_note",
                            {
                                "context_notes": "the staging Redis is read-only on Fridays",
                                "accomplished": "99 passed",
                            },
                        ),
                    )
                )
            ),
            _call("edit_file", "ok", path="src/gateway/headers.py", old_string="1", new_string="2"),
        ],
    }


def story(fillers: int = 54) -> Iterator[WorkStep]:
    """The work in order; the last step ends it."""
    happenings = _happenings()
    for number in range(fillers):
        yield _read(number)
        yield from happenings.get(number, ())
    yield WorkStep(Say("That is all for now."))


def seen_in(body: bytes) -> str:
    """Every text of a request in one line, whatever its dialect wraps it in."""
    texts: list[str] = []
    todo: list[object] = [json.loads(body)]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            texts.append(each)
        elif isinstance(each, dict):
            todo += each.values()
        elif isinstance(each, list):
            todo += each
    return "\n".join(texts)


def state_in(body: bytes) -> str:
    """The state that a request shows; empty without one."""
    held = [text for text in _texts(body) if "[hotset: handoff " in text]
    assert len(held) <= 1, "a successor reads one state"
    return held[0].partition("[hotset: handoff ")[2] if held else ""


def _texts(body: bytes) -> list[str]:
    return [part for part in seen_in(body).split("\n[CTX-REF") if part]
