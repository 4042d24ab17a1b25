"""What memory costs is judged at the end of a task, at the end of a session and on the third memory
that a model reads; each limit leads to its remedy, and the next session feels it."""

from __future__ import annotations

import contextlib
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.proxy.wire import post
from tests.sources.memory.test_remembering import TOOL

from hotset.nouns.deposit import Remembered
from hotset.nouns.knobs import Remembering
from hotset.nouns.memory import Ending, Episode, MemoryKind, MemoryRecord, Provenance, Trust
from hotset.nouns.turn import Event
from hotset.runtime.reader import open_memories
from hotset.sources.memory.economics import ARRANGED, arrangement
from hotset.sources.memory.kinds import memory_id
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy

DAY = 86_400.0
QUIET = Remembering(quiet_seconds=3600.0, offer_seconds=30.0)
WHERE = "Where did we leave off?"


def episode(title: str, topics: tuple[str, ...], days_ago: float, tokens: int = 60) -> MemoryRecord:
    created = time.time() - days_ago * DAY
    return MemoryRecord(
        memory_id(MemoryKind.EPISODE, title, created),
        MemoryKind.EPISODE,
        title,
        f"{title}. It was done in an hour.",
        created,
        Provenance("rules"),
        detail=Episode(title),
        topics=topics,
        ending=Ending.SUCCESS,
        trust=Trust.OUTCOME,
        tokens=tokens,
        time=created,
    )


class Project:
    """A store, and sessions with an agent that go through a proxy."""

    def __init__(self, folder: Path, *memories: MemoryRecord) -> None:
        self.folder = folder
        with contextlib.closing(SqliteStore.open(folder)) as store:
            store.keep(Remembered(memories)).result(60)

    def session(self, name: str, *prompts: str, reads: tuple[str, ...] = ()) -> str:
        """What the first prompt was told. The model reads memories by id behind it."""
        looks = [Say("I look.", calls=(Call("retrieve_context", {"id": id}),)) for id in reads]
        replies = [*looks, *(Say(f"Done with {number}.") for number in range(len(prompts)))]
        with ScriptedUpstream(replies) as provider:
            proxy = LocalProxy(self.folder, openai_url=provider.openai_url, memory=QUIET)
            with proxy:
                talk: list[dict[str, Any]] = []
                for number, prompt in enumerate(prompts):
                    talk.append({"role": "user", "content": prompt})
                    body = {"model": "gpt-5.4", "messages": talk, "tools": [TOOL]}
                    sent = json.dumps(body).encode()
                    answer = post(proxy.address, "openai-chat", sent, {"x-session-id": name})
                    assert answer.status == 200
                    talk.append({"role": "assistant", "content": f"Done with {number}."})
            first = json.loads(provider.requests[0].body)["messages"]
        # the session has ended; a proxy in a hurry leaves that to the next process
        with open_memories(replace(proxy.config, memory=QUIET)) as memories:
            memories.encode()
        return "\n".join(str(each["content"]).replace(prompts[0], "") for each in first)

    def actions(self) -> dict[str, Event]:
        with contextlib.closing(SqliteStore.open(self.folder)) as store:
            return {str(e.detail["remedy"]): e for e in store.events() if e.name == ARRANGED}


def is_cheaper(event: Event) -> bool:
    return float(event.detail["after"]) < float(event.detail["before"])


@pytest.mark.row("M4")
@pytest.mark.slow
def test_a_session_that_looks_around_much_and_reads_little_makes_the_next_one_cheaper(
    tmp_path: Path,
):
    recent = [
        episode(f"Teach the {topic} trick number {number}", (topic,), 1 + 3 * number)
        for number in range(8)
        for topic in ("parser", "proxy", "cache")
    ]
    stale = [episode(f"Paint the attic {number}", ("attic",), 200 + number) for number in range(30)]
    twice = [
        episode(f"Change page {number}", ("checkout", "checkouts"), 2 + number)
        for number in range(4)
    ]
    project = Project(tmp_path / "data", *recent, *stale, *twice)
    before = project.session("one", WHERE, reads=(recent[0].id,))
    actions = project.actions()
    assert {"compress", "reorganise", "split"} <= actions.keys()
    for name in ("compress", "reorganise", "split"):
        assert is_cheaper(actions[name]), actions[name].detail
    assert actions["compress"].detail["metric"] == "ratio"
    assert actions["reorganise"].detail["metric"] == "discovery_tokens"
    assert actions["split"].detail["metric"] == "timeline_tokens"
    with contextlib.closing(SqliteStore.open(project.folder)) as store:
        shape = arrangement(store)
    assert shape.line_days < 30.0
    assert shape.split
    assert "attic" in shape.stale
    assert shape.aliases == {"checkouts": "checkout"}
    after = project.session("two", f"{WHERE} Please go on.")
    assert "Done lately:" in before
    assert "Done lately:" not in after
    assert re.search(r"(?m)^(?:parser|proxy|cache):$", after), "a part for each topic"
    assert "top-attic" not in after


@pytest.mark.row("M4")
@pytest.mark.slow
def test_the_third_memory_that_is_read_and_the_end_of_a_task_are_judged_before_the_session_ends(
    tmp_path: Path,
):
    topics = ("parser", "proxy", "cache", "login")
    made = [
        episode(f"Teach the {topic} trick number {number}", (topic,), 1 + 6 * number)
        for number in range(5)
        for topic in topics
    ]
    project = Project(tmp_path / "data", *made)
    reads = tuple(each.id for each in made[:4])
    project.session("one", WHERE, "What did we do in the last 3 days?", reads=reads)
    actions = project.actions()
    assert actions["compose"].detail["metric"] == "full_loads"
    assert float(actions["compose"].detail["value"]) == 4
    assert is_cheaper(actions["compose"])
    assert actions["compress"].detail["metric"] == "ratio"
    told = project.session("two", "Go on with the proxy, please.")
    assert re.search(r"(?m)^top-cache-login-parser-proxy 20: ", told), told


@pytest.mark.row("M4")
@pytest.mark.slow
def test_topics_that_are_shown_and_never_read_come_later(tmp_path: Path):
    made = [
        episode(f"Teach the {topic} trick number {number}", (topic,), 1 + number, tokens=40)
        for number in range(4)
        for topic in ("parser", "proxy")
    ]
    project = Project(tmp_path / "data", *made)
    for number in range(6):
        project.session(f"s{number}", f"{WHERE} This is day {number}.")
    rescored = project.actions()["rescore"]
    assert rescored.detail["metric"] == "savings"
    assert float(rescored.detail["value"]) < 0.5
    with contextlib.closing(SqliteStore.open(project.folder)) as store:
        scores = arrangement(store).scores
    assert all(scores[topic] < 1 for topic in ("parser", "proxy"))


@pytest.mark.row("M4")
@pytest.mark.slow
def test_a_kind_of_task_in_which_memory_does_not_pay_is_shown_none_for_a_day(tmp_path: Path):
    made = [
        episode(f"Teach the {topic} trick number {number}", (topic,), 1 + number, tokens=57)
        for number in range(9)
        for topic in ("parser", "proxy")
    ]
    project = Project(tmp_path / "data", *made)
    task = "Implement another parser trick for the proxy in tricks.py."
    first = project.session("one", task)
    bypass = project.actions()["bypass"]
    assert bypass.detail["metric"] == "tokens_saved"
    assert is_cheaper(bypass)
    assert "hotset memory" in first
    assert "hotset memory" not in project.session("two", f"{task} With tests.")
