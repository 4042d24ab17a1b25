"""How long a plan takes, in milliseconds of computing: conversations of 1,000 and 5,000 messages
with one new result in each call, over a real store, and the first sight of 300 KB.

    make bench-plan
"""

from __future__ import annotations

import gc
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
from hotset.surfaces.proxy.collector import IdleCollector
from hotset.window.plan import Moment, plan

_SIZES = {1000: 14, 5000: 6}  # messages, and the lines of each result: 200,000 and 440,000 tokens
_CALLS = 60
_SIGHTS = 15
_SIGHT_BYTES = 300_000
_PRICE = Price(5.0, 25.0)
_SCALES = LineWeigher()
_TOOLS = [
    {
        "name": "read_file",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
]
_DIALECT = DIALECTS[DialectName.ANTHROPIC]


def main() -> None:
    tokens.warm()
    IdleCollector().settle()  # as `hotset up` does
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore.open(Path(folder) / "store")) as store,
    ):
        config = replace(load(project=folder, data=folder, environ={}), knobs=Knobs(early=False))
        sets = {
            f"{count:,} messages": {"hotset": _figures(Planner(config), store, count, lines)}
            for count, lines in _SIZES.items()
        }
        sets["first sight of 300 KB"] = {"hotset": _first_sights(Planner(config), store)}
    tell("plan", sets)


def _figures(planner: Planner, store: SqliteStore, count: int, lines: int) -> dict[str, float]:
    """Everything between a parsed request and the bytes that go out: weighing, planning, rendering,
    checking."""
    messages = [{"role": "user", "content": "Find the fault."}]
    for n in range(count // 2):
        messages += _step(n, lines)
    seconds: list[float] = []
    busy: list[float] = []
    planning: list[float] = []
    for n in range(_CALLS + 1):
        messages += _step(count + n, 120 if n % 4 == 0 else 14)
        request = _DIALECT.parse(_body(messages))
        began, worked = time.perf_counter(), time.thread_time()
        prepared = planner.prepare(request, _DIALECT, store, 1000.0 + n, "anthropic", off=False)
        seconds.append(1000 * (time.perf_counter() - began))
        busy.append(1000 * (time.thread_time() - worked))
        planning.append(1000 * _plan_alone(prepared))
        planner.went_out(prepared)
    gc.collect()
    cpu, wall = busy[1:], seconds[1:]
    return {
        "tokens": prepared.plan.whole,
        "cpu_p50_ms": quantile(cpu, 0.5),
        "cpu_p95_ms": quantile(cpu, 0.95),
        "cpu_p99_ms": quantile(cpu, 0.99),
        "p50_ms": quantile(wall, 0.5),
        "p95_ms": quantile(wall, 0.95),
        "first_cpu_ms": busy[0],
        "plan_p50_ms": quantile(planning[1:], 0.5),
        "plan_p95_ms": quantile(planning[1:], 0.95),
    }


def _first_sights(planner: Planner, store: SqliteStore) -> dict[str, float]:
    """Parsing and planning a conversation of which nothing is known yet."""
    parsing: list[float] = []
    planning: list[float] = []
    for n in range(_SIGHTS):
        messages = [{"role": "user", "content": f"Find fault {n}."}]
        body = _body(messages)
        while len(body) < _SIGHT_BYTES:
            for _ in range(20):
                messages += _step(1_000_000 * (n + 1) + len(messages), 40)
            body = _body(messages)
        began = time.thread_time()
        request = _DIALECT.parse(body)
        parsed = time.thread_time()
        planner.prepare(request, _DIALECT, store, 1000.0 + n, "anthropic", off=False)
        parsing.append(1000 * (parsed - began))
        planning.append(1000 * (time.thread_time() - parsed))
    both = [parse + rest for parse, rest in zip(parsing, planning, strict=True)]
    return {
        "bytes": len(body),
        "parse_cpu_p50_ms": quantile(parsing, 0.5),
        "plan_cpu_p50_ms": quantile(planning, 0.5),
        "cpu_p50_ms": quantile(both, 0.5),
        "cpu_p95_ms": quantile(both, 0.95),
    }


def _body(messages: list[dict[str, object]]) -> bytes:
    body = {"model": "claude-opus-5", "max_tokens": 1000, "tools": _TOOLS, "messages": messages}
    return json.dumps(body).encode()


def _plan_alone(prepared: PlannedTurn) -> float:
    """The same plan once more, as the next request finds it: everything but its newest result was
    planned before."""
    lines = _SCALES.lines(prepared.links, "claude-opus-5", {})
    newest = {line.chain for line in lines[-2:]}
    before = {spot: row for spot, row in prepared.plan.shown.items() if spot.chain not in newest}
    table = PageTable(before, {}, SentRequest(lines[-3].chain, prepared.sent.time))
    moment = Moment(prepared.sent.time, _PRICE, tokens.count)
    began = time.thread_time()
    plan(lines, table, (), Knobs(early=False, window=600_000), moment)
    return time.thread_time() - began


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
