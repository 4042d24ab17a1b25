"""How long a plan takes: 1,000 pages, 200,000 tokens, one new result with each call, over a real
store. `make bench-plan`."""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from bench.results import quantile, tell
from hotset import tokens
from hotset.config import load
from hotset.dialects import DIALECTS
from hotset.nouns.knobs import Knobs
from hotset.nouns.message import DialectName
from hotset.nouns.price import Price
from hotset.nouns.window import PageTable, SentRequest
from hotset.runtime.line_weigher import LineWeigher
from hotset.runtime.planner import PlannedTurn, Planner
from hotset.store.sqlite import SqliteStore
from hotset.window.plan import Moment, plan

_PAGES = 1000
_CALLS = 60
_PRICE = Price(5.0, 25.0)
_SCALES = LineWeigher()
_TOOLS = [
    {
        "name": "read_file",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
]


def main() -> None:
    tokens.warm()
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore.open(Path(folder) / "store")) as store,
    ):
        config = replace(load(project=folder, data=folder, environ={}), knobs=Knobs(early=False))
        tell("plan", {"1000pages": {"hotset": _figures(Planner(config), store)}})


def _figures(planner: Planner, store: SqliteStore) -> dict[str, float]:
    """Everything between a parsed request and the bytes that go out: weighing, planning, rendering,
    checking."""
    dialect = DIALECTS[DialectName.ANTHROPIC]
    messages = [{"role": "user", "content": "Find the fault."}]
    for n in range(_PAGES // 2):
        messages += _step(n, 14)
    seconds: list[float] = []
    busy: list[float] = []
    planning: list[float] = []
    for n in range(_CALLS + 1):
        messages += _step(_PAGES + n, 120 if n % 4 == 0 else 14)
        body = {"model": "claude-opus-5", "max_tokens": 1000, "tools": _TOOLS, "messages": messages}
        request = dialect.parse(json.dumps(body).encode())
        began, worked = time.perf_counter(), time.thread_time()
        prepared = planner.prepare(request, dialect, store, 1000.0 + n, "anthropic", off=False)
        seconds.append(time.perf_counter() - began)
        busy.append(time.thread_time() - worked)
        planning.append(_plan_alone(prepared))
        planner.went_out(prepared)
    warm = seconds[1:]
    return {
        "pages": sum(len(message.parts) for message in request.messages),
        "tokens": prepared.plan.whole,
        "p50_ms": 1000 * quantile(warm, 0.5),
        "p95_ms": 1000 * quantile(warm, 0.95),
        "max_ms": 1000 * max(warm),
        "cpu_p50_ms": 1000 * quantile(busy[1:], 0.5),
        "cpu_p95_ms": 1000 * quantile(busy[1:], 0.95),
        "first_ms": 1000 * seconds[0],
        "plan_p50_ms": 1000 * quantile(planning[1:], 0.5),
        "plan_p95_ms": 1000 * quantile(planning[1:], 0.95),
    }


def _plan_alone(prepared: PlannedTurn) -> float:
    """The same plan once more, as the next request finds it: everything but its newest result was
    planned before."""
    lines = _SCALES.lines(prepared.links, "claude-opus-5", {})
    newest = {line.chain for line in lines[-2:]}
    before = {spot: row for spot, row in prepared.plan.shown.items() if spot.chain not in newest}
    table = PageTable(before, {}, SentRequest(lines[-3].chain, prepared.sent.time))
    moment = Moment(prepared.sent.time, _PRICE, tokens.count)
    began = time.perf_counter()
    plan(lines, table, (), Knobs(early=False, window=400_000), moment)
    return time.perf_counter() - began


def _step(n: int, lines: int) -> list[dict[str, object]]:
    id = f"toolu_{n:05}"
    text = "\n".join(
        f"src/part_{n}/module_{k}.py:{k * 7}: value_{k} = compute(value_{n})" for k in range(lines)
    )
    call = {"type": "tool_use", "id": id, "name": "read_file", "input": {"path": f"src/part_{n}"}}
    return [
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]},
    ]


if __name__ == "__main__":
    main()
