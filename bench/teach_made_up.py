"""Made-up sessions and logs in which something is known to be set wrongly."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping

from hotset.nouns.deposit import Deposit
from hotset.nouns.memory import Layer, MemoryKind, Used
from hotset.nouns.page import Role, SessionId
from hotset.nouns.turn import Event
from hotset.replay.conversation import RecordedCall, RecordedMessage, RecordedSession
from hotset.sources.memory.economics import loaded_event
from hotset.sources.memory.layers import Load
from hotset.sources.memory.usefulness import HEEDED

TOOLS = ("lookup", "report", "scan", "query", "trace")
_CALLS = 24
_DAY = 86_400.0
_BEGIN = 1_760_000_000.0
_NEEDED = 0.6  # of the planted tool's results: a later call copies a line of it
_SELDOM = 0.05  # the same, of other tools'
_MISLED = 0.15
TOLD = (MemoryKind.FACT, MemoryKind.PROCEDURE, MemoryKind.PITFALL)


def made_up_session(
    number: int,
    needed: str,
    rng: random.Random,
    *,
    lines_of: tuple[int, int] = (30, 75),
    seldom: float = _SELDOM,
) -> RecordedSession:
    """A session that copies lines from the results of the tool `needed`, and `seldom` from those of
    others. A result has so many lines at least, and fewer than so many."""
    now = _BEGIN + _DAY * number
    messages = [RecordedMessage(Role.USER, f"Settle the open points of part {number}.", time=now)]
    wanted = ""
    for call in range(_CALLS):
        now += 20.0
        tool = rng.choice(TOOLS)
        given = json.dumps({"topic": wanted or f"point {rng.randrange(10**6)}"})
        id = f"{number}-{call}"
        lines = [_line(rng) for _ in range(rng.randrange(*lines_of))]
        messages += [
            RecordedMessage(Role.ASSISTANT, "Next.", (RecordedCall(id, tool, given),), time=now),
            RecordedMessage(Role.TOOL, "\n".join(lines), call=id, tool=tool, time=now + 5.0),
        ]
        likely = _NEEDED if tool == needed else seldom
        wanted = rng.choice(lines) if rng.random() < likely else ""
    messages.append(RecordedMessage(Role.ASSISTANT, "Done.", time=now + 30.0))
    return RecordedSession(
        f"made-up-{number}", "made-up", "claude-sonnet-4", tuple(messages), fixed_tokens=6000
    )


def _line(rng: random.Random) -> str:
    words = (f"{rng.choice('abcdefghkmnprstw')}{rng.randrange(10**5)}" for _ in range(4))
    return f"item_{rng.randrange(10**6)} is {' '.join(words)}"


def made_up_tellings(
    number: int, wrong: MemoryKind | None, ids: Mapping[MemoryKind, str], rng: random.Random
) -> Iterator[Deposit]:
    """What a session's log says of the memories that it was told unasked: half of them help, those
    of the kind `wrong` mislead or are not used."""
    session, now = SessionId(f"told-{number}"), _BEGIN + _DAY * number
    for kind in TOLD:
        if rng.random() < 0.2:
            continue
        load = Load(Layer.FULL, 80, (), (ids[kind],))
        worth = rng.uniform(0.5, 0.95)
        yield loaded_event(load, now, available=500, session=session, turn=1, worth=worth)
        how = None
        if kind is not wrong:
            how = Used.HELPED if rng.random() < 0.5 else None
        elif rng.random() < _MISLED:
            how = Used.MISLED
        if how is not None:
            detail: dict[str, str | int | float] = {"memory": ids[kind], "how": str(how)}
            yield Event(HEEDED, now + 60, session, 1, detail)
