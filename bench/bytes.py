"""Do recorded sessions still go upstream with the same bytes? A digest of each is compared with
`bench/bytes.json`.

    make bench-bytes
    python -m bench.bytes --record    # writes the baseline anew

Reads 200 sessions of HOTSET_BENCH_DATA (default: ../shared/data), each as its client would have
sent it: every call with the whole history, in the dialect that fits the model, through the real
planner and a store on disk, in a window so small that steps leave. The clock is that of the record.
The planner is made anew now and then, so that the page table comes from disk.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.results import tell
from hotset import tokens
from hotset.config import load
from hotset.dialects import DIALECTS
from hotset.nouns.deposit import PlanMade, RequestReceived
from hotset.nouns.message import DialectName
from hotset.nouns.page import Role
from hotset.nouns.turn import TurnId
from hotset.replay.conversation import RecordedMessage, RecordedSession
from hotset.replay.formats import read
from hotset.replay.learning import as_anthropic
from hotset.runtime.planner import Planner
from hotset.runtime.renderer import Unplanned
from hotset.store.sqlite import SqliteStore

HERE = Path(__file__).parent
DATA = (
    Path(os.environ.get("HOTSET_BENCH_DATA", HERE.parent.parent / "shared" / "data"))
    / "trajectories"
)
BASELINE = HERE / "bytes.json"

SETS = {
    "codex-agentv": (20, 48_000),
    "cc-packmind": (60, 24_000),
    "cc-cipherbox": (33, 24_000),
    "pi-mono": (2, 48_000),
    "mini-gemini3-150": (45, 8_000),
    "tau-airline-gpt4o": (40, 4_000),
}
"""How many sessions of each set, the first ones, and the tokens of their window."""

_MOST_CALLS = 120
_RESTART = 25
"""Calls after which another planner takes over."""

_STEP_SECONDS = 20.0
"""From one call to the next where the record has no times."""

_SCHEMA = {"type": "object", "properties": {}}
_Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one session."""

    name: str
    digest: str
    calls: int
    bytes: int
    evictions: int

    @property
    def row(self) -> list[str | int]:
        return [self.digest, self.calls, self.bytes]


def main(arguments: Sequence[str]) -> int:
    """Gives 1 where bytes changed."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.bytes", description="compare the bytes that go upstream"
    )
    parser.add_argument("--record", action="store_true", help="write the baseline anew")
    chosen = parser.parse_args(arguments)
    missing = [str(_file(name)) for name in SETS if not _file(name).exists()]
    if missing:
        sys.exit(
            f"there is no {missing[0]}; say where the recorded sessions are: "
            f"HOTSET_BENCH_DATA=/path/to/data"
        )
    tokens.warm()
    with get_context("fork").Pool(2) as pool:
        outcomes = pool.map(
            _session, [(name, at) for name in SETS for at in range(SETS[name][0])], chunksize=1
        )
    if chosen.record:
        lines = (f"{json.dumps(each.name)}: {json.dumps(each.row)}" for each in outcomes)
        BASELINE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    changed = list(_changed(outcomes, json.loads(BASELINE.read_text())))
    tell("bytes", {name: {"hotset": _figures(name, outcomes, changed)} for name in SETS})
    for line in changed:
        print(line)
    return 1 if changed else 0


def _changed(outcomes: Sequence[Outcome], baseline: Mapping[str, list[str | int]]) -> Iterator[str]:
    for each in outcomes:
        if (before := baseline.get(each.name)) != each.row:
            yield f"{each.name}: changed; it was {before}, it is {each.row}"


def _figures(name: str, outcomes: Sequence[Outcome], changed: Sequence[str]) -> dict[str, float]:
    own = [each for each in outcomes if each.name.startswith(f"{name}/")]
    return {
        "sessions": len(own),
        "calls": sum(each.calls for each in own),
        "megabytes": sum(each.bytes for each in own) / 1e6,
        "evictions": sum(each.evictions for each in own),
        "changed": sum(line.startswith(f"{name}/") for line in changed),
    }


def _session(which: tuple[str, int]) -> Outcome:
    """All bodies of one session, one after the other, into one digest."""
    name, at = which
    recorded = next(islice(read([_file(name)]), at, None))
    dialect = DIALECTS[_dialect(recorded.model)]
    digest, seen = hashlib.sha256(), Counter[str]()
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore.open(Path(folder) / "store")) as store,
    ):
        config = replace(load(project=folder, data=folder, environ={}), budget=SETS[name][1])
        planner = Planner(config, lambda: 0.0)
        for number, (body, now) in enumerate(islice(_requests(recorded), _MOST_CALLS)):
            if number % _RESTART == _RESTART - 1:
                planner = Planner(config, lambda: 0.0)
            request, turn, sent = dialect.parse(body), TurnId(f"turn {number}"), body
            store.keep(RequestReceived(request, now, "bench", key=recorded.id, id=turn))
            try:
                prepared = planner.prepare(
                    request, dialect, store, now, _upstream(request.dialect), off=False
                )
            except Unplanned:
                pass
            else:
                sent = prepared.body
                planner.went_out(prepared)
                store.keep(
                    PlanMade(turn, prepared.sent, prepared.plan.fresh, prepared.plan.stubs)
                ).result()
                seen["evictions"] += len(prepared.plan.stubs)
            digest.update(len(sent).to_bytes(8, "big") + sent)
            seen["calls"] += 1
            seen["bytes"] += len(sent)
    return Outcome(
        f"{name}/{at:03}", digest.hexdigest()[:16], seen["calls"], seen["bytes"], seen["evictions"]
    )


# The record as its client's requests


def _dialect(model: str) -> DialectName:
    if "claude" in model:
        return DialectName.ANTHROPIC
    return DialectName.OPENAI_RESPONSES if model.startswith("gpt-5") else DialectName.OPENAI_CHAT


def _upstream(dialect: DialectName) -> str:
    return "anthropic" if dialect is DialectName.ANTHROPIC else "openai"


def _requests(recorded: RecordedSession) -> Iterator[tuple[bytes, float]]:
    """The body and the time of every call. After a compaction a client's history begins anew."""
    dialect, now = _dialect(recorded.model), 1_700_000_000.0
    write = {DialectName.ANTHROPIC: as_anthropic, DialectName.OPENAI_CHAT: _chat}.get(
        dialect, _responses
    )
    field = "input" if dialect is DialectName.OPENAI_RESPONSES else "messages"
    head = json.dumps(_head(recorded, dialect))[:-1] + f', "{field}": ['
    system: list[str] = []
    history: list[str] = []
    latest = Role.USER
    for message in recorded.messages:
        now = message.time or now + _STEP_SECONDS
        if message.compaction:
            history = list(system)
        if message.role is Role.ASSISTANT and latest is not Role.ASSISTANT and history:
            yield f"{head}{', '.join(history)}]}}".encode("utf-8", "replace"), now
        said = [json.dumps(each) for each in write(message)]
        if message.role is Role.SYSTEM and len(history) == len(system):
            system += said
        history += said
        latest = message.role


def _head(recorded: RecordedSession, dialect: DialectName) -> _Message:
    names = dict.fromkeys(call.name for message in recorded.messages for call in message.calls)
    if dialect is DialectName.ANTHROPIC:
        tools = [{"name": name, "input_schema": _SCHEMA} for name in names]
        return {"model": recorded.model, "max_tokens": 4000, "tools": tools}
    if dialect is DialectName.OPENAI_CHAT:
        functions = [
            {"type": "function", "function": {"name": name, "parameters": _SCHEMA}}
            for name in names
        ]
        return {"model": recorded.model, "tools": functions}
    tools = [
        {"type": "function", "name": name, "parameters": _SCHEMA, "strict": False} for name in names
    ]
    return {"model": recorded.model, "store": False, "tools": tools}


def _chat(message: RecordedMessage) -> Iterator[_Message]:
    if message.role is Role.TOOL:
        yield {"role": "tool", "tool_call_id": message.call, "content": message.text}
    elif message.calls:
        functions = [{"name": call.name, "arguments": call.arguments} for call in message.calls]
        calls = [
            {"id": call.id, "type": "function", "function": each}
            for call, each in zip(message.calls, functions, strict=True)
        ]
        yield {"role": "assistant", "content": message.text or None, "tool_calls": calls}
    else:
        yield {"role": message.role.value, "content": message.text}


def _responses(message: RecordedMessage) -> Iterator[_Message]:
    if message.role is Role.TOOL:
        yield {"type": "function_call_output", "call_id": message.call, "output": message.text}
        return
    if message.thinking:
        summary = [{"type": "summary_text", "text": message.thinking}]
        yield {"type": "reasoning", "summary": summary, "encrypted_content": "c2VhbGVk"}
    if message.text:
        yield {"role": message.role.value, "content": message.text}
    for call in message.calls:
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }


def _file(name: str) -> Path:
    return DATA / f"{name}.jsonl.gz"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
