"""A project with weeks of sessions, as its user meets it: what is learned from them, and what the
command line, a client of the proxy, MCP and a program are told of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import openai
import pytest

import hotset
from hotset.testing import Call, Say, ScriptedUpstream
from tests.cli.conftest import Desk, desk_in, sending_to
from tests.cli.recordings import ClaudeCode
from tests.cli.test_memory_tools import asked

SHELL = {
    "type": "function",
    "function": {"name": "shell", "parameters": {"type": "object", "properties": {}}},
}
RECORDED = Path("/home/me/shop")
"""The project on the machine where the sessions were held."""
MISSING = "Error: Cannot find module 'sharp' of the image pipeline"


def noon(days_ago: int) -> float:
    """Of a day of this machine."""
    now = datetime.now().astimezone().replace(hour=12, minute=0, second=0, microsecond=0)
    return (now - timedelta(days=days_ago)).timestamp()


def repair(desk: Desk, number: int, goal: str, file: str, days_ago: int) -> None:
    told = ClaudeCode(f"feed{number:04}-aaaa", RECORDED, noon(days_ago))
    told.asks(goal).says("I look.").edits(file)
    told.runs("make check", "ok\n12 passed").says("Done, everything passes.")
    told.asks("Perfect, thanks!").says("Welcome.").write(desk.home)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    desk = desk_in(tmp_path_factory.mktemp("story"))
    for number, days_ago in enumerate((24, 17, 10, 3)):
        repair(desk, number, f"Publish release 2.{number} of the shop", "CHANGELOG.md", days_ago)
    for number, days_ago in enumerate((22, 15, 8, 1)):
        goal = f"Teach the date parser format {'abcd'[number]}"
        repair(desk, 10 + number, goal, "shop/dates.py", days_ago)
    told = ClaudeCode("feed9999-aaaa", RECORDED, noon(12))
    told.asks("Build the gallery of the shop").says("I build it.")
    told.runs("npm run gallery", f"{MISSING}\nExit code 1")
    told.runs("npm rebuild sharp", "rebuilt sharp")
    told.runs("npm run gallery", "built in 2 s").says("It builds now.")
    told.asks("Great, that works. Thanks!").says("Welcome.").write(desk.home)
    folder = told.write(desk.home).parent
    ran = desk.run("memory", "learn", str(folder), "--any-folder")
    assert "9 sessions learned" in ran.out, ran.err
    yield desk
    desk.clear()


def conversation(desk: Desk, prompt: str, *calls: Call) -> list[str]:
    """What a client's model reads: its prompt as it was sent, and what its calls were answered."""
    replies = [*(Say("I look.", calls=(call,)) for call in calls), Say("I know enough.")]
    with ScriptedUpstream(replies) as upstream, desk.serving(env=sending_to(upstream)) as ready:
        client = openai.OpenAI(base_url=ready["openai_base_url"], api_key="none", max_retries=0)
        client.chat.completions.create(
            model="gpt-5.4",
            messages=[{"role": "user", "content": prompt}],
            tools=[SHELL],  # type: ignore[list-item]
        )
        first, last = (json.loads(upstream.requests[at].body)["messages"] for at in (0, -1))
    return [str(first[-1]["content"]), *(str(m["content"]) for m in last if m["role"] == "tool")]


@pytest.mark.row("M7")
@pytest.mark.row("M3")
@pytest.mark.slow
def test_a_time_and_a_topic_are_told_to_a_client_over_mcp_and_to_a_program_alike(shop: Desk):
    told, since, touched, topic = conversation(
        shop,
        "What did we do in the last 9 days?",
        Call("retrieve_context", {"question": "what did we do since release 2.2?"}),
        Call("search_history", {"query": "when did we last touch the date parser?"}),
        Call("retrieve_context", {"topic": "release"}),
    )
    for text in (told, since):
        assert "Publish release 2.3 of the shop" in text
        assert "Teach the date parser format d" in text
        assert "gallery" not in text.partition("[hotset memory, ")[2]
    assert "(Publish release 2.2 of the shop [ep-" in since
    assert "release 2.2" not in told.partition("[hotset memory, ")[2]
    dates = re.findall(r"(?m)^\w+day (\d{4}-\d\d-\d\d):$", touched)
    assert dates == sorted(dates, reverse=True)
    assert dates[0] == f"{datetime.fromtimestamp(noon(1)).astimezone():%Y-%m-%d}"
    assert re.search(r"Publish release .* of the shop", topic)

    question = "what did we do in the last 9 days?"
    ((over_mcp, failed),) = asked(shop, [("recall_memory", {"query": question})])
    assert not failed
    assert "Teach the date parser format d: success [ep-" in over_mcp
    with hotset.open(data=shop.data, project=shop.project) as memory:
        answer = memory.memories.recall(question)
    assert [day.day.isoformat() for day in answer.days] == sorted(
        f"{datetime.fromtimestamp(noon(ago)).astimezone():%Y-%m-%d}" for ago in (1, 3, 8)
    )


@pytest.mark.row("M2")
@pytest.mark.slow
def test_a_client_that_meets_an_error_again_is_told_what_resolved_it(shop: Desk):
    (told,) = conversation(shop, f"The gallery does not build: {MISSING}. Please fix it.")
    assert "npm rebuild sharp" in told
    assert re.search(r"\[pit-[a-z0-9]+\]", told)
    (other,) = conversation(shop, "Write a poem about autumn leaves.")
    assert "npm rebuild sharp" not in other


@pytest.mark.row("M5")
def test_what_sessions_share_is_named_in_their_words_linked_to_them_and_found_once(shop: Desk):
    facts = shop.run("memory", "list", "--kind", "fact", "--json").json()
    (pattern,) = [each for each in facts if each["title"] == "Publish release \u2026 of the shop"]
    assert "(4 sessions)" in pattern["text"]
    assert "CHANGELOG.md" in pattern["text"]
    links = shop.run("memory", "graph", "--json").json()["links"]
    sources = [each["to"] for each in links if each["of"] == pattern["id"]]
    assert len([id for id in sources if id.startswith("ep-")]) == 4
    before = shop.run("memory", "list", "-n", "500", "--standing", "any", "--json").json()
    for _ in range(2):
        assert shop.run("memory", "consolidate").out.strip() == "nothing new"
    assert shop.run("memory", "list", "-n", "500", "--standing", "any", "--json").json() == before
