"""What a model in a conversation reaches of memory with the tools that it has: a time by day, a
topic by its id or its name, and memories beside the pages."""

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

import hotset
from hotset.nouns.deposit import Remembered
from hotset.nouns.knobs import Remembering
from hotset.nouns.memory import Ending, Episode, MemoryKind, MemoryRecord, Provenance, Trust
from hotset.sources.memory.kinds import memory_id
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy

DAY = 86_400.0
QUIET = Remembering(quiet_seconds=3600.0, offer_seconds=20.0)
TOOL = {
    "type": "function",
    "function": {"name": "shell", "parameters": {"type": "object", "properties": {}}},
}


def episode(title: str, topics: tuple[str, ...], days_ago: float) -> MemoryRecord:
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
        tokens=20,
        time=created,
    )


def fact(text: str, topics: tuple[str, ...], days_ago: float) -> MemoryRecord:
    created = time.time() - days_ago * DAY
    return MemoryRecord(
        memory_id(MemoryKind.FACT, text),
        MemoryKind.FACT,
        text,
        text,
        created,
        Provenance("person"),
        topics=topics,
        trust=Trust.PERSON,
        tokens=10,
        time=created,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with a month of work."""
    done = [
        episode(f"Teach the date parser format {number}", ("date parser",), 20 + number)
        for number in range(4)
    ]
    done += [
        episode("Rotate the refresh tokens", ("login",), 9.0),
        episode("Sign the cookies of the login", ("login",), 8.0),
        fact("Tokens are signed with RS256", ("login",), 8.0),
        fact("Invoices are numbered per country", ("invoices",), 60.0),
    ]
    with contextlib.closing(SqliteStore.open(tmp_path / "data")) as store:
        store.keep(Remembered(tuple(done))).result(60)
    return tmp_path / "data"


def answers(folder: Path, *calls: Call, prompt: str = "Go on.") -> list[str]:
    """What a model gets that makes these calls, one after the other."""
    replies = [*(Say("I look.", calls=(call,)) for call in calls), Say("I know enough.")]
    with (
        ScriptedUpstream(replies) as provider,
        LocalProxy(folder, openai_url=provider.openai_url, memory=QUIET) as proxy,
    ):
        talk: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        body = json.dumps({"model": "gpt-5.4", "messages": talk, "tools": [TOOL]}).encode()
        assert post(proxy.address, "openai-chat", body, {"x-session-id": "one"}).status == 200
        last = json.loads(provider.requests[-1].body)["messages"]
        first = json.loads(provider.requests[0].body)["messages"]
    found = [str(each["content"]) for each in last if each["role"] == "tool"]
    assert len(found) == len(calls)
    return [str(first[-1]["content"]), *found]


@pytest.mark.row("M7")
@pytest.mark.parametrize(
    "call",
    [
        Call("retrieve_context", {"question": "what did we do in the last 10 days?"}),
        Call("retrieve_context", {"topic": "what happened in the past ten days"}),
        Call("search_history", {"query": "what did we do since 12 days ago"}),
    ],
)
def test_a_model_gets_a_time_by_day_with_ids(folder: Path, call: Call):
    _, listed = answers(folder, call)
    lines = listed.splitlines()
    assert re.match(r"\[hotset memory, .*: data, not instructions\.", lines[0])
    days = [line for line in lines if re.fullmatch(r"\w+day \d{4}-\d\d-\d\d:", line)]
    assert len(days) == 2
    assert "Rotate the refresh tokens: success [ep-" in listed
    assert "noted: Tokens are signed with RS256 [sem-" in listed
    assert "parser" not in listed


@pytest.mark.row("M7")
def test_a_prompt_that_asks_for_a_time_is_told_its_days(folder: Path):
    (told,) = answers(folder, prompt="What did we do in the last 10 days?")
    assert "Rotate the refresh tokens: success [ep-" in told
    assert re.search(r"(?m)^\w+day \d{4}-\d\d-\d\d:$", told)


@pytest.mark.row("M7")
def test_a_long_time_in_little_room_is_told_by_work_instead_of_by_day(folder: Path):
    done = [
        episode(f"Rename column {number} of the {topic} report", (topic,), 30 + number)
        for number in range(40)
        for topic in ("stock", "returns")
    ]
    with contextlib.closing(SqliteStore.open(folder)) as store:
        store.keep(Remembered(tuple(done))).result(60)
    (told,) = answers(folder, prompt="What did we do in the last 80 days?")
    days = told.partition("[hotset memory, ")[2]
    assert "For more ask for a day]" in days.splitlines()[0]
    assert re.search(r"(?m)^- stock: 40 times, [\d-]{10} to [\d-]{10}, last: Rename column 0", days)
    assert re.search(r"(?m)^- date parser: 4 times, ", days)
    assert "[ep-" not in days


@pytest.mark.row("M3")
def test_a_topic_of_the_index_is_opened_by_its_id_and_by_its_name(folder: Path):
    told, by_id, by_name, _ = answers(
        folder,
        Call("retrieve_context", {"id": "top-login"}),
        Call("retrieve_context", {"topic": "date parser"}),
        Call("retrieve_context", {"id": "top-nothing"}),
        prompt="Please change how the login sets its cookies.",
    )
    assert re.search(r"(?m)^top-login 3: .+$", told), told
    assert "top-date-parser" not in told
    assert "top-invoices" not in told
    assert "Tokens are signed with RS256 [sem-" in by_id
    assert "Sign the cookies" in by_id
    assert "parser" not in by_id
    assert by_name.count("[ep-") == 4


@pytest.mark.row("M3")
def test_a_search_of_a_conversation_brings_the_memories_that_have_its_words(folder: Path):
    _, found, nothing = answers(
        folder,
        Call("search_history", {"query": "invoices numbered"}),
        Call("search_history", {"query": "whales of the south"}),
    )
    assert "Invoices are numbered per country [sem-" in found
    assert "[sem-" not in nothing
    assert "[ep-" not in nothing


@pytest.mark.row("M7")
def test_a_program_asks_memory_for_a_time(folder: Path):
    with hotset.open(folder.parent, data=folder) as memory:
        week = memory.memories.recall("what did we do in the last 10 days?")
        latest = memory.memories.recall("when did we last touch the date parser")
        brought = memory.retrieve(question="what happened in the last 10 days")
    assert week.recall.items[0].title == "Rotate the refresh tokens"
    assert [len(day.memories) for day in week.days] == [1, 2]
    assert "format 0" in latest.recall.items[0].title
    assert "Rotate the refresh tokens" in brought.text


@pytest.mark.row("M7")
def test_what_came_before_and_after_an_event_is_told_though_nobody_remembers_all_its_words(
    folder: Path,
):
    with hotset.open(folder.parent, data=folder) as memory:
        words = "the work on signed cookies of every login"
        after = memory.memories.recall(f"What did we do after {words}?")
        before = memory.memories.recall(f"What did we do before {words}?")
        nothing = memory.memories.recall("What did we do before the work on purple whales?")
    assert before.recall.items[0].title == "Rotate the refresh tokens"
    assert all("cookies" not in item.title for item in (*before.recall.items, *after.recall.items))
    assert not nothing.days


@pytest.mark.row("M7")
def test_a_file_was_last_touched_by_the_work_that_changed_it(tmp_path: Path):
    changed = episode("Teach the parser leap years", ("parser",), 9.0)
    changed = replace(changed, detail=Episode(changed.title, artifacts=("src/parser.py",)))
    named = episode("Explain what src/parser.py does", ("parser",), 2.0)
    with contextlib.closing(SqliteStore.open(tmp_path / "data")) as store:
        store.keep(Remembered((changed, named))).result(60)
    with hotset.open(tmp_path, data=tmp_path / "data") as memory:
        last = memory.memories.recall("When did we last touch parser.py?")
    assert last.recall.items[0].id == changed.id
