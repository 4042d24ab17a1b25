"""What cache marks and a shorter tool list save, with Anthropic's SDK.

    make bench-fixed

The provider is scripted and keeps a prompt cache by Anthropic's rules (four marks, a look-back of
20 blocks, five minutes). Cost is in uncached input tokens: a token written to the cache counts
1.25, one read from it 0.1. A call takes ten seconds.

`marks`: a program without marks, one with the mark for the whole request, and one with marks on its
system text and its latest message; with and without evictions, and crowded. `tools`: the sixth
session of a client with 40 tools of which it calls one.
"""

from __future__ import annotations

import dataclasses
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anthropic
from msgspec.structs import replace

from hotset.nouns.knobs import CacheKnobs, Knobs
from hotset.nouns.message import Usage
from hotset.nouns.tooling import ClientListing, Tooling
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.upstream.script import Received

SYSTEM = "You are a careful engineer. " * 400
MARK = {"cache_control": {"type": "ephemeral"}}
SECONDS_A_CALL = 10.0
CASES = (("short", 25, 60, 0), ("evictions", 60, 60, 20_000), ("crowded", 90, 40, 9_000))
"""Name, calls, functions in each file that is read, window."""


@dataclass
class Clock:
    now: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Session:
    """A program that reads one file after another."""

    calls: int
    functions: int
    marks: str = "none"
    tools: int = 1
    prompt: str = "Read them all, please. " * 20
    clock: Clock = field(default_factory=Clock)

    def reply(self, request: Received) -> Say:
        if request.index % self.calls == self.calls - 1:
            return Say("Done.")
        path = {"path": f"part_{request.index}.py"}
        return Say("Let me look.", calls=(Call("read_file", path),))

    def run(self, base_url: str) -> None:
        messages: list[Any] = [{"role": "user", "content": self.prompt}]
        with anthropic.Anthropic(base_url=base_url, api_key="sk-test", max_retries=0) as client:
            for number in range(self.calls):
                reply = client.messages.create(**self._request(messages))
                self.clock.now += SECONDS_A_CALL
                blocks = [block.model_dump(exclude_none=True) for block in reply.content]
                messages.append({"role": "assistant", "content": blocks})
                results = [
                    {
                        "type": "tool_result",
                        "tool_use_id": block["id"],
                        "content": _file(number, self.functions),
                    }
                    for block in blocks
                    if block["type"] == "tool_use"
                ]
                messages += [{"role": "user", "content": results}] if results else []

    def _request(self, messages: list[Any]) -> dict[str, Any]:
        names = ["read_file", *(f"tool_{number}" for number in range(1, self.tools))]
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        words = "Does one thing well, with care, and says what it did. " * 12
        fields: dict[str, Any] = {
            "model": "claude-sonnet-4-6",
            "max_tokens": 1000,
            "system": SYSTEM,
            "messages": messages,
            "tools": [
                {"name": name, "description": f"{name}: {words}", "input_schema": schema}
                for name in names
            ],
        }
        if self.marks == "whole":
            return fields | {"extra_body": MARK}
        if self.marks == "none":
            return fields
        *before, last = messages
        content = last["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        last = {**last, "content": [*blocks[:-1], {**blocks[-1], **MARK}]}
        system = [{"type": "text", "text": SYSTEM, **MARK}]
        return fields | {"system": system, "messages": [*before, last]}


def _file(number: int, functions: int) -> str:
    name = f"p{number}_{random.Random(number).randint(0, 999)}"
    return "\n".join(
        f"def {name}_{each}(left, right):\n    return left + right + {each * 7919}\n"
        for each in range(functions)
    )


def cost(bill: Usage) -> float:
    return bill.input + 0.1 * bill.cache_read + 1.25 * bill.cache_write


@contextmanager
def proxied(session: Session, **settings: Any) -> Iterator[tuple[ScriptedUpstream, str]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        ScriptedUpstream(session.reply, now=session.clock, strict=True) as upstream,
        LocalProxy(
            Path(folder) / "data",
            anthropic_url=upstream.anthropic_url,
            clock=session.clock,
            **settings,
        ) as proxy,
    ):
        yield upstream, proxy.address.anthropic_base_url


def direct(session: Session) -> float:
    with ScriptedUpstream(session.reply, now=session.clock, strict=True) as upstream:
        session.run(upstream.anthropic_url)
        return cost(upstream.bill)


def with_marks(session: Session, budget: int, *, on: bool) -> float:
    knobs = replace(Knobs(), cache=CacheKnobs(marks=on))
    with proxied(session, knobs=knobs, budget=budget) as (upstream, url):
        session.run(url)
        return cost(upstream.bill)


def with_tools(listing: ClientListing) -> tuple[float, int]:
    """The cost of the sixth session, and the tools in its list."""
    clock, before = Clock(), 0.0
    session = Session(20, 20, "blocks", tools=40, clock=clock)
    with proxied(session, tooling=Tooling(client=listing)) as (upstream, url):
        for number in range(6):
            clock.now += 3600  # the cache is cold
            before = cost(upstream.bill)
            dataclasses.replace(session, prompt=f"Read set {number}.").run(url)
        listed = upstream.requests[-1].decoded.count(b'"input_schema"')
        return cost(upstream.bill) - before, listed


def main() -> None:
    print(f"{'marks':10} {'client':8} {'direct':>10} {'off':>10} {'on':>10}")
    for name, calls, functions, budget in CASES:
        for marks in ("none", "whole", "blocks"):
            made = (Session(calls, functions, marks) for _ in range(3))
            figures = [direct(next(made))]
            figures += [with_marks(next(made), budget, on=on) for on in (False, True)]
            print(f"{name:10} {marks:8}", *(f"{figure:10,.0f}" for figure in figures), flush=True)
    print(f"\n{'tools':10} {'listed':>8} {'cost':>10}")
    for listing in ClientListing:
        found, listed = with_tools(listing)
        print(f"{listing:10} {listed:8} {found:10,.0f}", flush=True)


if __name__ == "__main__":
    main()
