"""Agents of a pipeline hand over: through the proxy, in three dialects, over a restart and with a
store that fails."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from hotset.errors import StoreFailed
from hotset.nouns.deposit import CommitReceipt
from hotset.nouns.handoff import HANDOFF, STATES, AnyState, EngineerState, original_prompt
from hotset.nouns.knobs import HandoffKnobs, Knobs
from hotset.nouns.page import Kind
from hotset.nouns.turn import Event
from hotset.runtime.handoff_cost import handoff_cost
from hotset.runtime.handoffs import handoffs_in
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
        requests, turns = upstream.requests, len(talk.sent)
        state = state_in(requests[-1].decoded)
        missing = [fact for fact in FACTS if fact.says not in state]
        lost = [fact.says for fact in missing if not is_found(fact, talk, model, upstream)]
        proxy.wait_until_kept()

    with SqliteStore.open(tmp_path / "data") as store:
        chain = [each for each in handoffs_in(store) if each.turn <= turns]
        bills = {bill.turn: bill for bill in store.bills()}
        cost = handoff_cost(store, proxy.config, list(bills.values()))
        evicted = {each.turn: each for each in store.events() if each.name == "Evicted"}
    assert len(missing) <= 3
    assert len(lost) <= 1, lost
    assert len(chain) >= CHAIN
    assert [each.index for each in chain] == list(range(1, len(chain) + 1))
    for each in chain:
        assert_true(each.state)
        assert bills[each.turn].usage.prompt <= 0.25 * WINDOW
        assert bills[each.turn].broke == evicted[each.turn].detail["cause"] == "handoff"
        assert 0 < each.state_tokens < each.rewritten < each.prompt
    assert cost.handoffs >= len(chain)
    assert cost.rewritten >= sum(each.rewritten for each in chain)
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
    assert_only_handoffs_break_the_prefix(requests, len(chain))


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


@pytest.mark.row("V15")
def test_a_proxy_that_is_started_again_in_the_middle_sends_the_same_prefix(tmp_path):
    steps = list(visible())
    with ScriptedUpstream(Player(), now=stopped, strict=True) as upstream:
        folder = tmp_path / "data"
        with proxy_over(folder, upstream) as proxy:
            talk = begin(proxy, "anthropic")
            doing = work(talk, iter(steps))
            while not state_in(upstream.requests[-1].decoded) if upstream.requests else True:
                next(doing)
            proxy.wait_until_kept()
        before = upstream.requests[-1]
        with proxy_over(folder, upstream) as proxy:
            talk.address = proxy.address
            next(doing)
            next(doing)
        after = upstream.requests[-1]
    assert state_in(after.decoded) == state_in(before.decoded) != ""
    said, then = ([meant(m) for m in asked(each).messages] for each in (before, after))
    assert then[: len(said)] == said


class _Forgetful(SqliteStore):
    """Cannot keep anything that belongs to a handoff."""

    def keep(self, *deposits):
        if any(isinstance(each, Event) and each.name == HANDOFF for each in deposits):
            refused: Future[CommitReceipt] = Future()
            refused.set_exception(StoreFailed("no room for states"))
            return refused
        return super().keep(*deposits)


@pytest.mark.row("V15")
def test_a_store_that_cannot_keep_the_state_does_not_stop_the_handoff(tmp_path):
    folder = tmp_path / "data"
    with (
        ScriptedUpstream(Player(), now=stopped, strict=True) as upstream,
        proxy_over(
            folder, upstream, open_store=lambda: _Forgetful.open(folder, makes_folder=False)
        ) as proxy,
    ):
        talk = begin(proxy, "openai-chat")
        doing = work(talk, visible())
        while not state_in(upstream.requests[-1].decoded) if upstream.requests else True:
            next(doing)
        handed = upstream.requests[-1]
        reported = talk.answer.header("x-hotset-degraded") if talk.answer else None
        proxy.wait_until_kept()  # while a store is known to fail, calls go out unplanned
        next(doing)
        proxy.wait_until_kept()
        after = upstream.requests[-1]
    assert "no room for states" in (reported or "")
    said, then = ([meant(m) for m in asked(each).messages] for each in (handed, after))
    assert then[: len(said)] == said
    with SqliteStore.open(folder) as store:
        assert list(handoffs_in(store)) == []
        (session,) = store.sessions()
        assert len(list(store.turns(session.id))) >= 10


@pytest.mark.row("V16")
def test_a_handoff_changes_nothing_of_another_agent_s_prefix(tmp_path):
    def reply(request: Received) -> Say:
        return Say("Read on.") if b"shelf" in request.decoded else engineer(request)

    engineer = Player()
    with (
        ScriptedUpstream(reply, now=stopped, strict=True) as upstream,
        proxy_over(tmp_path / "data", upstream) as proxy,
    ):
        other = begin(proxy, "anthropic", "librarian")
        talk = begin(proxy, "anthropic")
        doing = work(talk, visible())
        handed = False
        while not handed:
            next(doing)
            handed = bool(state_in(upstream.requests[-1].decoded))
            other.say("And the next shelf?")
        other.say("And the last shelf?")
        proxy.wait_until_kept()
        theirs = [each for each in upstream.requests if b"shelf" in each.decoded]
    assert len(theirs) > 10
    assert_only_handoffs_break_the_prefix(theirs, 0)
    assert all("handoff_note" not in seen_in(each.decoded) for each in theirs)


@pytest.mark.row("V5")
def test_a_kind_of_a_person_s_own_names_its_tools_and_when_it_hands_over(tmp_path):
    knobs = Knobs(offers=("search_history",), handoff=HandoffKnobs(at=0.5, state="tester"))
    with (
        ScriptedUpstream(Player(), now=stopped, strict=True) as upstream,
        proxy_over(tmp_path / "data", upstream, knobs=knobs) as proxy,
    ):
        talk = begin(proxy, "openai-chat", "anybody")
        doing = work(talk, visible())
        while not state_in(upstream.requests[-1].decoded) if upstream.requests else True:
            next(doing)
        proxy.wait_until_kept()
        names = [tool.name for tool in asked(upstream.requests[-1]).tools]
    with SqliteStore.open(tmp_path / "data") as store:
        (only,) = handoffs_in(store)
        before = max(bill.usage.prompt for bill in store.bills() if bill.turn < only.turn)
    assert set(names) - set(TOOLS) == {"retrieve_context", "search_history", "handoff_note"}
    assert isinstance(only.state, STATES["tester"])
    assert 0.4 * WINDOW < before < 0.6 * WINDOW
