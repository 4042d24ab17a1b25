"""Agents of a pipeline hand over: through the proxy, in three dialects, over a restart and with a
store that fails."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from hotset.nouns.handoff import AnyState, EngineerState, original_prompt
from hotset.nouns.page import Kind
from hotset.runtime.handoffs import handoff_cost, handoffs_in
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.upstream.script import Received
from tests.handoff_story import (
    DECOYS,
    FACTS,
    FIRST,
    SECOND,
    TOOLS,
    WINDOW,
    PlantedFact,
    WorkStep,
    seen_in,
    state_in,
    story,
)
from tests.proxy.conftest import stopped
from tests.proxy.talking import Talk, asked, meant, tools, unmarked
from tests.proxy.wire import DIALECTS

CHAIN = 5
PLAIN = frozenset({"turns", "references"})


@contextlib.contextmanager
def proxy_over(folder: Path, upstream: ScriptedUpstream, **settings) -> Iterator[LocalProxy]:
    with LocalProxy(
        folder,
        openai_url=upstream.openai_url,
        anthropic_url=upstream.anthropic_url,
        budget=WINDOW,
        **settings,
    ) as proxy:
        yield proxy


def begin(proxy: LocalProxy, dialect: str, agent: str = "engineer", **more: str) -> Talk:
    headers = {"x-hotset-agent": agent, "x-hotset-session": f"{agent}-1", **more}
    marks = {"cache_control": {"type": "ephemeral"}} if dialect == "anthropic" else {}
    return Talk(
        proxy.address, dialect, headers=headers, extra={"tools": tools(dialect, *TOOLS), **marks}
    )


def work(talk: Talk, steps: Iterator[WorkStep]) -> Iterator[int]:
    """Carries out the steps one after the other; yields after each reply."""
    talk.say(FIRST)
    for number, step in enumerate(steps):
        assert talk.answer is not None
        assert talk.answer.status == 200, talk.answer.body
        yield number
        if step.results:
            talk.results(*step.results)
        elif step.prompt:
            talk.say(step.prompt)


def visible() -> Iterator[WorkStep]:
    """The steps that a client sees: an agent's note is no part of its history."""
    return (step for step in story() if step.results or step.prompt or not step.say.calls)


class Player:
    """The model: it does the work, then looks for what it is told to."""

    def __init__(self) -> None:
        self._says = iter([step.say for step in story()])
        self.query = ""

    def __call__(self, request: Received) -> Say:
        if (say := next(self._says, None)) is not None:
            return say
        query, self.query = self.query, ""
        calls = (Call("search_history", {"query": query}),) if query else ()
        return Say("I look." if query else "Found.", calls=calls)


@pytest.mark.row("V15")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.rest_slow
def test_a_chain_of_five_successors_knows_what_happened_and_nothing_else(tmp_path, dialect):
    model = Player()
    with (
        ScriptedUpstream(model, now=stopped, strict=True) as upstream,
        proxy_over(tmp_path / "data", upstream) as proxy,
    ):
        talk = begin(proxy, dialect)
        for _ in work(talk, visible()):
            pass
        requests = upstream.requests
        state = state_in(requests[-1].decoded)
        missing = [fact for fact in FACTS if fact.says not in state]
        lost = [fact.says for fact in missing if not is_found(fact, talk, model, upstream)]
        proxy.wait_until_kept()

    with SqliteStore.open(tmp_path / "data") as store:
        chain = list(handoffs_in(store))
        bills = {bill.turn: bill for bill in store.bills()}
        cost = handoff_cost(store, proxy.config, list(bills.values()))
        evicted = {each.turn: each for each in store.events() if each.name == "Evicted"}
    assert len(missing) <= 3
    assert len(lost) <= 1, lost
    assert [each.index for each in chain] == [1, 2, 3, 4, 5]
    for each in chain:
        assert_true(each.state)
        assert bills[each.turn].usage.prompt <= 0.25 * WINDOW
        assert bills[each.turn].broke == evicted[each.turn].detail["cause"] == "handoff"
        assert 0 < each.state_tokens < each.rewritten < each.prompt
    assert cost.handoffs == 5
    assert cost.rewritten == sum(each.rewritten for each in chain)
    assert cost.dollars > 0
    prompts = [text.encode() for text in (FIRST, SECOND)]
    for request in requests[len(requests) // 2 :]:
        said = [
            part.content
            for message in asked(request).messages
            for part in message.parts
            if part.kind is Kind.PROMPT
        ]
        assert [text for text in said if text in prompts] == prompts
    assert_only_handoffs_break_the_prefix(requests, CHAIN)


def is_found(fact: PlantedFact, talk: Talk, model: Player, upstream: ScriptedUpstream) -> bool:
    """True if one search brings it back."""
    model.query = fact.query
    talk.say("And?")
    return fact.says in seen_in(upstream.requests[-1].decoded)


def assert_true(state: AnyState | None) -> None:
    """Every field is from somewhere, and nothing in it is a decoy."""
    assert isinstance(state, EngineerState)
    assert original_prompt(state) == FIRST
    told = msgspec.json.encode(structs.replace(state, original_prompt="", blockers_hit=())).decode()
    assert [decoy for decoy in (*DECOYS, "ghost.py") if decoy in told] == []
    for field in structs.fields(state):
        value = getattr(state, field.name)
        for each in value if isinstance(value, tuple) and field.name not in PLAIN else ():
            assert 1 <= each.turn <= state.turns[1] + 1, (field.name, each)


def assert_only_handoffs_break_the_prefix(requests: Sequence[Received], many: int) -> None:
    breaks = 0
    for before, after in pairwise([asked(request) for request in requests]):
        said, then = (
            [meant(message) for message in request.messages] for request in (before, after)
        )
        breaks += then[: len(said)] != said
        assert [unmarked(tool.raw) for tool in after.tools] == [
            unmarked(tool.raw) for tool in before.tools
        ]
    assert breaks == many
