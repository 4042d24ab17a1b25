"""A process that learns and is killed again and again; after each kill the state is the fold of
what was acknowledged.

It stays single-threaded while it forks, which pytest's own process could not promise.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from hotset.config import Config, load
from hotset.learn.events import (
    LEARN_EVENTS,
    OBSERVED,
    Change,
    GateVerdict,
    KnobsSetting,
    SessionFigures,
    TrialSetting,
    change_id,
)
from hotset.learn.state import EMPTY, LearnState, encode_state, fold
from hotset.nouns.note import Space
from hotset.runtime.learned_state import (
    keep_snapshot,
    learn_event,
    read_state,
    take_decisions,
    verify_learning,
)
from hotset.runtime.observe import observe_ended
from hotset.store.connection import Tuning
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.cli.tree import hotset
from hotset.testing.store_talk import StoreTalk

_TUNING = Tuning(ballast_bytes=0, checkpoint_pages=50)
_NOW = 1_700_000_000.0
_MOST_SESSIONS = 12  # that one process opens


def killed_learners(folder: Path, seed: int, kills: int) -> dict[str, object]:
    chance = random.Random(seed)
    folder.mkdir(mode=0o700, parents=True)
    acknowledged: list[str] = []
    wrong: list[str] = []
    for number in range(kills):
        acknowledged += _kill_one(folder, f"{seed}-{number}", chance)
        with SqliteStore.open(folder, _TUNING) as store:
            wrong += [f"kill {number}: {each}" for each in _wrong(store, acknowledged)]
    with SqliteStore.open(folder, _TUNING) as store:
        wrong += [str(each) for each in store.verify()]
        state = read_state(store)
        events = Counter(event.name for event in store.events())
        snapshots = len(store.notes(Space("learned")))
    return {
        "wrong": wrong,
        "acknowledged": len(acknowledged),
        "events": events,
        "number": state.number,
        "snapshots": snapshots,
    }


def _wrong(store: SqliteStore, acknowledged: list[str]) -> Iterator[str]:
    """What is not as it must be."""
    yield from (str(each) for each in verify_learning(store))
    if encode_state(read_state(store)) != encode_state(_folded(store)):
        yield "the state is not the fold of the events"
    kept, sessions = set[str](), Counter[str]()
    for event in store.events():
        data = str(event.detail.get("data", ""))
        kept.add(data)
        if event.name == OBSERVED:
            sessions[msgspec.json.decode(data, type=SessionFigures).session] += 1
    yield from (f"lost: {each[:80]}" for each in acknowledged if each not in kept)
    yield from (f"{each} was observed {n} times" for each, n in sessions.items() if n > 1)


def _folded(store: SqliteStore) -> LearnState:
    state = EMPTY
    for number, event in store.events_after(0, 1 << 30, LEARN_EVENTS):
        state = fold(state, number, event.name, str(event.detail["data"]), event.time)
    return state


def _kill_one(folder: Path, name: str, chance: random.Random) -> list[str]:
    """What a process acknowledged until it was killed."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(out)
        _child(lambda: _learn_for_ever(folder, name, into))
    os.close(into)
    with os.fdopen(out) as acks:
        wanted, lines = chance.choice((0, 1, 2, 5, 10, 25)), list[str]()
        while len(lines) < wanted and (line := acks.readline()):
            lines.append(line)
        time.sleep(chance.random() * 0.01)  # the moment of the kill is the point of the test
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            raise RuntimeError("the learner failed before it was killed")
        lines += acks.readlines()
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _child(work: Callable[[], None]) -> None:
    try:
        work()
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    os._exit(0)


def _learn_for_ever(folder: Path, name: str, into: int) -> None:
    chance = random.Random(name)
    config = load(data=str(folder), project=str(folder), environ={"HOME": str(folder)})
    with SqliteStore.open(folder, _TUNING) as store:
        for number in range(1 << 30):
            for data in _learn(store, config, f"{name}-{number}", chance):
                os.write(into, json.dumps(data).encode() + b"\n")


def _learn(store: SqliteStore, config: Config, name: str, chance: random.Random) -> Iterator[str]:
    """One of the things that a project does to learn; gives what was acknowledged."""
    act = chance.randrange(7)
    if act == 0:
        talk = StoreTalk(store, key=name, time=_NOW - 10_000)
        talk.turn("Please fix it.", "Done.")
        talk.turn("No, not like that.", "I see.")
    elif act == 1:
        observe_ended(store, config, _NOW, quiet=0.0, most=_MOST_SESSIONS)
    elif act == 2:
        yield from (str(each.detail["data"]) for each in take_decisions(store, _NOW))
    elif act == 3:
        keep_snapshot(store, _NOW)
    elif act == 4 and chance.random() < 0.2:
        order = ["learn", "freeze", f"keep={chance.randrange(2, 9)}", "--data", str(config.folder)]
        with suppress(SystemExit):
            hotset.main([*order, "--json"], standalone_mode=False)
    else:
        knobs = {"keep": chance.randrange(2, 99)}
        id = change_id(knobs, name)
        events = (
            learn_event("ChangeProposed", Change(id, knobs, {}, name, "9 of 9"), _NOW),
            learn_event("ChangeGated", GateVerdict(id, True, 0.1, 0.05, 0.2, 9), _NOW),
            learn_event(
                "TrialChanged", TrialSetting({"off": chance.choice((0.0, 0.1, 0.3))}), _NOW
            ),
            learn_event("KnobsThawed", KnobsSetting((f"tools.{name}",)), _NOW),
        )
        store.keep(*events).result()
        yield from (str(each.detail["data"]) for each in events)


if __name__ == "__main__":
    sys.stdout = sys.stderr
    found = killed_learners(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    os.write(1, json.dumps(found).encode())
