"""The rows of a made-up store with many sessions, for tests and benches of what lists them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from hotset.nouns.bill import Bill
from hotset.nouns.link import derive
from hotset.nouns.message import DialectName, Usage
from hotset.nouns.page import ROOT, Chain, Digest, Gist, Kind, Page, PageId, Role, SessionId, digest
from hotset.nouns.turn import Event, Node, Outcome, Session, Turn, TurnId
from hotset.store.kinship import Kinship, Parent
from hotset.store.port import Blob, Row

LONG = SessionId("slong0000000")
"""The session with most turns; it was used last."""

_AGENTS = ("claude-cli", "codex", "opencode")
_MODELS = ("claude-sonnet-4-5", "gpt-5", "claude-haiku-4-5")
_START, _GAP = 1_790_000_000.0, 60.0
_FAMILY = 20  # one session in so many has a subagent
_KEYS = json.dumps({"max_tokens": 1000}).encode()
_FIRST, _GROWTH, _WINDOW = 8_000, 900, 60_000


def many_sessions(sessions: int, turns: int, long_turns: int) -> Iterator[Row]:
    """So many sessions of so many turns, each twentieth a subagent of the one before it, then
    `LONG`, which reads the same ten files again and again."""
    yield Blob(digest(_KEYS), _KEYS)
    for number in range(sessions):
        id = SessionId(f"s{number:011d}")
        start = _START + number * _GAP
        yield from _session(id, number, turns, start)
        if number % _FAMILY == 1:
            above = Parent(SessionId(f"s{number - 1:011d}"), Kinship.SUBAGENT, "call")
            yield above.event(id, 1, start)
    if long_turns:
        yield from _session(LONG, sessions, long_turns, _START + sessions * _GAP)


def _session(id: SessionId, number: int, turns: int, start: float) -> Iterator[Row]:
    agent, model = _AGENTS[number % 3], _MODELS[number % 3]
    dialect = DialectName.OPENAI_RESPONSES if agent == "codex" else DialectName.ANTHROPIC
    yield Session(id, "", agent, dialect, start, f"task {number}: tidy module {number % 97}")
    head = ROOT
    for turn in range(1, turns + 1):
        now = start + turn * 10.0
        path = f"src/module_{turn % 10}.py"
        came = _prompt(number) if turn == 1 else _result(path, turn, f"c{number}-{turn - 1}")
        called = json.dumps({"file_path": path}).encode()
        said = (came, (Kind.TOOL_CALL, called, "Read", f"c{number}-{turn}"))
        chains: list[Chain] = []
        for role, (kind, content, tool, call) in zip(
            (Role.USER, Role.ASSISTANT), said, strict=True
        ):
            raw = digest(content)
            yield Blob(raw, content)
            essence = Digest(digest(f"{id} {turn} {role}".encode()))
            chain = derive(head, essence, aside=False)
            yield Node(id, chain, head, role, turn, 0, raw, essence, aside=False, time=now)
            page = PageId(f"p{digest(f'{id}{chain}'.encode())[:15]}")
            yield Page(
                *(page, id, agent, turn, 0, kind, role, None, raw, len(content)),
                *("text/plain", now, chain, 0, tool, call),
            )
            yield Gist(page, max(1, len(content) // 4), (), (), (path,) if tool else ())
            chains.append(chain)
            head = chain
        yield Turn(
            *(TurnId(f"t{id}-{turn}"), id, turn, agent, 0, dialect, model, False, now, "...."),
            *(chains[0], chains[1], None, None, digest(_KEYS), Outcome.DONE, now + 3.0, 200),
            usage=_usage(turn),
        )
        yield replace(_bill(model, turn), session=id, turn=turn, time=now + 3.0)
        if turn % 50 == 0:
            detail: dict[str, str | int | float] = {
                "stubs": 1,
                "tokens": 9_000,
                "ids": "r00000000000",
                "cause": "pays",
            }
            yield Event("Evicted", now, id, turn, detail)


def _prompt(number: int) -> tuple[Kind, bytes, str, str]:
    return Kind.PROMPT, f"please do task {number}".encode(), "", ""


def _result(path: str, turn: int, call: str) -> tuple[Kind, bytes, str, str]:
    lines = "\n".join(f"{path}:{line} value = {line * 7}" for line in range(60))
    return Kind.FILE, f"{lines}\n# state {turn // 100}".encode(), "Read", call


def _usage(turn: int) -> Usage:
    prompt = _prompt_tokens(turn)
    return Usage(input=40, cache_read=prompt - _GROWTH - 40, cache_write=_GROWTH, output=150)


def _prompt_tokens(turn: int) -> int:
    return _FIRST + turn * _GROWTH % _WINDOW


def _bill(model: str, turn: int) -> Bill:
    used = _usage(turn)
    whole = Usage(cache_read=_FIRST + min(turn, 1_000) * _GROWTH, cache_write=_GROWTH, output=150)
    broke = "pays" if turn % 50 == 0 else ""
    return Bill(model, "", sent=used, whole=whole, usage=used, broke=broke, overhead_ms=3.0)
