"""Agents of a program: kinds side by side over one project, and windows that are handed over."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

import hotset
from hotset.errors import BadInput
from hotset.nouns.handoff import HANDOFF_DUE, STATES, EngineerState, HandoffState
from hotset.runtime.handoffs import handoffs_in
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say
from tests.handoff_story import DECOYS, FACTS, FIRST, SECOND, TOOLS, WINDOW, state_in, story
from tests.library.agents import APIS, client_of
from tests.proxy.talking import tools

DIALECTS = {"chat": "openai-chat", "responses": "openai-responses", "anthropic": "anthropic"}
MODELS = {"chat": "gpt-5.4", "responses": "gpt-5.4", "anthropic": "claude-sonnet-5"}


def create(api, client, request):
    homes = {
        "anthropic": lambda: client.messages,
        "responses": lambda: client.responses,
        "chat": lambda: client.chat.completions,
    }
    return homes[api]().create(**request)


def engineer(memory, api, **more):
    given = {"max_tokens": 2000} if api == "anthropic" else {}
    return memory.agent(
        "engineer",
        "limiter",
        model=MODELS[api],
        budget=WINDOW,
        dialect=DIALECTS[api],
        **{**given, **more},
    )


def turn(agent, api, client):
    """One turn of the model, whatever it asks of us in between."""
    while agent.observe(create(api, client, agent.request(tools=tools(DIALECTS[api], *TOOLS)))):
        pass


@pytest.mark.row("V15")
@pytest.mark.parametrize("api", APIS)
@pytest.mark.rest_slow
def test_a_program_hands_an_agent_over_five_times_and_each_knows_what_happened(
    tmp_path, upstream, memory, api
):
    steps = list(story(54))
    up = upstream([step.say for step in steps])
    opened = memory()
    agent, chain, starts = engineer(opened, api), [], []
    with client_of(api, up.url) as client:
        agent.add(FIRST)
        for step in steps:
            if step.say.calls and not step.results:
                continue  # a note, which the program does not see
            turn(agent, api, client)
            if chain and len(starts) < len(chain):
                starts.append(agent.reply.usage.prompt)
            goes_on = step.results or step.prompt
            if goes_on and agent.handoff_due:
                chain.append(agent)
                agent = agent.handoff(note="mind the gap")
            if step.results:
                agent.answer(dict(zip([c.id for c in agent.calls], step.results, strict=True)))
            elif step.prompt:
                agent.add(step.prompt)
        due = opened.events(type=HANDOFF_DUE)
        cost = opened.savings().handoffs
        opened.close()

    assert len(chain) == cost.handoffs >= 5
    assert len(due) - len(chain) in (0, 1), "the last reply may pass it again"
    assert all(0 < start <= 0.25 * WINDOW for start in starts)
    assert "mind the gap" in state_in(up.requests[-1].decoded)
    state = agent.state
    assert isinstance(state, EngineerState)
    assert (state.index, state.original_prompt, state.reason) == (len(chain), FIRST, "asked")
    shown = json.dumps(json.loads(msgspec.json.encode(state)), ensure_ascii=False)
    assert [decoy for decoy in DECOYS if decoy in shown.replace(json.dumps(FIRST)[1:-1], "")] == []
    assert sum(fact.says in state_in(up.requests[-1].decoded) for fact in FACTS) >= 11
    assert [
        m["content"]
        for m in agent.messages
        if m.get("role") == "user" and m["content"] in (FIRST, SECOND)
    ] == [FIRST, SECOND]
    with SqliteStore.open(tmp_path / "data") as store:
        kept = list(handoffs_in(store))
    assert [(each.index, each.reason) for each in kept] == [
        (n, "asked") for n in range(1, len(chain) + 1)
    ]
    assert [each.state.accomplished for each in kept if each.state][-1] == state.accomplished


def test_a_window_that_was_handed_over_refuses_further_use(upstream, memory):
    up = upstream([Say("One."), Say("Two.")])
    first = engineer(memory(), "chat")
    with pytest.raises(BadInput, match="nothing to hand over"):
        first.handoff()
    first.add("Begin.")
    with client_of("chat", up.url) as client:
        turn(first, "chat", client)
        second = first.handoff()
        for use in (
            lambda: first.add("More."),
            first.request,
            lambda: first.observe({}),
            first.handoff,
        ):
            with pytest.raises(BadInput, match="has handed over; go on with the agent that"):
                use()
        second.add("Go on.")
        turn(second, "chat", client)
    assert second.reply.text == "Two."
    assert [message["content"] for message in second.messages] == [
        "Begin.",
        "One.",
        "Go on.",
        "Two.",
    ]
    assert not second.handoff_due


@pytest.mark.row("V15")
@pytest.mark.parametrize("known", [(), TOOLS])
def test_what_a_program_notes_reaches_every_successor_from_its_first_request_on(
    upstream, memory, known
):
    up = upstream(lambda request: Say(f"Reply {request.index}."))
    opened = memory()
    agent = engineer(opened, "chat")
    listed = tools("openai-chat", *known) if known else ()

    def work(turns: int) -> list[str]:
        sent = []
        for _ in range(turns):
            agent.add("Go on.")
            while agent.observe(create("chat", client, agent.request(tools=listed))):
                pass
            sent.append(up.requests[-1].decoded.decode())
        return sent

    with client_of("chat", up.url) as client:
        work(1)
        agent = agent.handoff(note="the heron is read-only")
        early = work(3)  # nothing could leave yet
        agent = agent.handoff(note="the gannet is slow").handoff(note="mind the puffin")
        twice = work(4)
        agent = agent.handoff()
        last = work(2)
        found = opened.search("gannet slow", type="page")
    for sent, notes in ((early, 1), (twice, 3), (last, 3)):
        told = ("the heron is read-only", "the gannet is slow", "mind the puffin")[:notes]
        assert [note for note in told for body in sent if note not in body] == []
    assert [state_in(body.encode()) == "" for body in (early[-1], twice[0], last[0])] == [
        True,
        False,
        False,
    ]
    assert [each.text for each in agent.state.context_notes] == [
        "the heron is read-only",
        "the gannet is slow",
        "mind the puffin",
    ]
    for before, after in pairwise(early):
        said, then = (json.loads(body)["messages"] for body in (before, after))
        assert then[: len(said)] == said
    assert "the gannet is slow" in found.text


def test_of_too_many_notes_the_oldest_go_first_and_are_still_found(upstream, memory):
    up = upstream(lambda request: Say(f"Reply {request.index}."))
    opened = memory()
    agent = engineer(opened, "chat")
    with client_of("chat", up.url) as client:
        for number in range(26):
            agent.add("Go on.")
            turn(agent, "chat", client)
            agent = agent.handoff(note=f"note {number} of the albatross")
        found = opened.search("note 0 albatross", type="page")
    assert [each.text.split()[1] for each in agent.state.context_notes] == [
        str(number) for number in range(2, 26)
    ]
    assert "note 0 of the albatross" in found.text


def test_an_agent_that_lets_steps_leave_hands_nothing_over(memory):
    agent = memory().agent("librarian", "books", model="gpt-5.4")
    agent.add("Hello.")
    with pytest.raises(BadInput, match=r"set handoff.at = 0.75 in \[profiles.librarian\]"):
        agent.handoff()
    with pytest.raises(BadInput, match="one of these kinds: default, lean, librarian"):
        memory().agent("plumber", "pipes", model="gpt-5.4")


@pytest.mark.row("V16")
def test_kinds_work_side_by_side_and_search_each_other_s_history_but_no_other_project_s(
    tmp_path, upstream
):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    up = upstream(
        [
            Say("The heron nests in the north tower."),
            Say(
                "Let me see.",
                calls=(Call("search_history", {"query": "heron", "only": "session=all"}),),
            ),
            Say("In the north tower."),
            Say(
                "Let me see.",
                calls=(Call("search_history", {"query": "heron", "only": "session=all"}),),
            ),
            Say("I do not know."),
        ]
    )
    with (
        client_of("chat", up.url) as client,
        hotset.open(tmp_path / "a", data=tmp_path / "data-a") as one,
        hotset.open(tmp_path / "b", data=tmp_path / "data-b") as other,
    ):
        librarian = one.agent("librarian", "birds", model="gpt-5.4")
        librarian.add("Where does the heron nest?")
        turn(librarian, "chat", client)
        agents = [each.agent("engineer", "towers", model="gpt-5.4") for each in (one, other)]
        for agent in agents:
            agent.add("Which tower has a bird in it?")
            turn(agent, "chat", client)
        sessions = {session.agent for session in one._store.sessions()}
    names = [
        [tool["function"]["name"] for tool in request.json()["tools"]] for request in up.requests
    ]
    assert "handoff_note" not in names[0]
    assert all("handoff_note" in each for each in names[1:])
    assert sessions == {"librarian", "engineer"}
    assert "north tower" in str(up.requests[2].json())
    assert "north tower" not in str(up.requests[4].json())


def test_an_awaiting_agent_is_handed_over_the_same_way(upstream, tmp_path):
    up = upstream([Say("One."), Say("Two.")])

    async def work():
        async with hotset.open(tmp_path, data=tmp_path / "data") as memory:
            agent = memory.agent("tester", "limits", model="gpt-5.4", metadata={"task": "T-7"})
            agent.add("Begin.")
            async with client_of("chat", up.url, awaits=True) as client:
                create = client.chat.completions.create
                await agent.observe(await create(**await agent.request()))
                second = await agent.handoff(note="the fixture is slow")
                with pytest.raises(BadInput, match="has handed over"):
                    await agent.request()
                second.add("Go on.")
                await second.observe(await create(**await second.request()))
            return second

    second = asyncio.run(work())
    assert second.state is not None
    assert (second.state.task_id, second.state.context_notes[0].text) == (
        "T-7",
        "the fixture is slow",
    )
    assert second.reply.text == "Two."


def test_the_code_on_the_page_runs(tmp_path, monkeypatch, upstream, capsys):
    up = upstream()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOTSET_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("OPENAI_BASE_URL", up.openai_url)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    page = Path(__file__).parents[2] / "docs" / "handoff.md"
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec(compile(block, str(page), "exec"), {})
    assert "Build the rate limiter." in capsys.readouterr().out


def test_the_page_names_every_field_of_every_state():
    page = (Path(__file__).parents[2] / "docs" / "handoff.md").read_text()
    common = {field.name for field in structs.fields(HandoffState)}
    unsaid = common | {
        "session_id",
        "user_id",
        "original_prompt",
        "blockers_noted",
        "pending_noted",
    }
    for kind, state in STATES.items():
        (row,) = re.findall(rf"^\| `{kind}` \| (.*) \|$", page, re.MULTILINE)
        told = set(row.split(", "))
        fields = {field.name for field in structs.fields(state)}
        assert told <= fields
        assert fields - told - unsaid == set()
