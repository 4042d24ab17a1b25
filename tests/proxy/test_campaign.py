"""Generated conversations under every policy: no rule is broken, no prefix without a word, and
everything comes back.

A sample runs each time; `HOTSET_CAMPAIGN=1` runs ten thousand conversations, each in every dialect
and under every policy.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest
from msgspec import structs

from hotset import tokens
from hotset.config import Config, load
from hotset.dialects import DIALECTS
from hotset.nouns.deposit import HiddenKept, PlanMade, RequestReceived
from hotset.nouns.knobs import Knobs, Limit
from hotset.nouns.link import Link, link
from hotset.nouns.message import Answer, DialectName, Message, Request
from hotset.nouns.page import Kind, Role, digest
from hotset.nouns.retrieval import Lines, Place, Retrieve
from hotset.nouns.turn import TurnId
from hotset.nouns.window import WHOLE, Form, Hidden, Spot
from hotset.runtime import retrieval
from hotset.runtime.planner import PlannedTurn, Planner
from hotset.testing import RamStore
from hotset.window.evict import POLICIES
from hotset.window.repeats import content_id
from tests.campaign import sample
from tests.dialects.conversations import conversation

_CONVERSATIONS = sample(14, 10_000)
_PORTIONS = sample(1, 20)
_LOOKED_AT_TWICE = sample(
    100, 30
)  # percent of the requests: also by a process that knows nothing but the store
_LINES = (
    "src/store/pages.py:{n}: def place_{n}(page, table): return table[page] + {m}",
    "{m} passed, {n} failed in {m}.{n}s",
    '{{"id": {n}, "name": "page {m}", "size": {m}{n}}}',
    "ERROR 2026-11-0{d} worker-{n} could not reach 10.0.{d}.{n}: timed out after {m} ms",
    "the window holds what is needed, and the store holds page {n} of {m}",
)


@dataclass(frozen=True)
class Sent:
    """What went out for one request of a conversation."""

    asked: Request
    links: tuple[Link, ...]
    prepared: PlannedTurn
    messages: tuple[Message, ...]


@pytest.mark.row("C5")
@pytest.mark.row("V4")
@pytest.mark.row("X3")
@pytest.mark.parametrize("portion", range(_PORTIONS))
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", DialectName)
@pytest.mark.rest_slow
def test_generated_conversations_break_no_rule_and_lose_no_byte(name, policy, portion):
    config = load(data="unused", project=str(Path.cwd()), environ={})
    evicted = shortened = 0
    for seed in range(portion, _CONVERSATIONS, _PORTIONS):
        store = RamStore()
        for sent in _session(
            name, Random(f"{name}/{seed}"), replace(config, knobs=_unmarked(policy)), store
        ):
            _assert_it_is_whole(sent, store)
            evicted += len(sent.prepared.plan.stubs)
            shortened += sum(row.form is Form.EXCERPT for row in sent.prepared.plan.fresh)
    assert evicted
    assert shortened


def _session(name: DialectName, chance: Random, config: Config, store: RamStore) -> Iterator[Sent]:
    """One conversation as its client sends it, request by request, to proxies that come and go."""
    dialect = DIALECTS[name]
    whole = _grown(dialect.parse(conversation(name, chance)), chance)
    config = _settings(config, chance)
    planner = Planner(config)
    before: Sent | None = None
    for number, end in enumerate(_ends(whole.messages)):
        asked = dialect.parse(dialect.render(replace(whole, messages=whole.messages[:end])))
        turn = TurnId(f"{number:016x}")
        store.keep(RequestReceived(asked, float(number), "agent", id=turn)).result()
        prepared = planner.prepare(asked, dialect, store, float(number), "openai", off=False)
        if chance.randrange(100) < _LOOKED_AT_TWICE:
            other = Planner(config).prepare(
                asked, dialect, store, float(number), "openai", off=False
            )
            assert other.body == prepared.body, "another process would have sent something else"
        sent = Sent(asked, prepared.links, prepared, dialect.parse(prepared.body).messages)
        _assert_it_goes_on(before, sent)
        yield sent
        hidden = tuple(_hidden(sent, whole.messages[end:], chance))
        planner.went_out(prepared)
        planner.remember(prepared, hidden)
        store.keep(PlanMade(turn, prepared.sent, prepared.plan.fresh, prepared.plan.stubs)).result()
        for each in hidden:
            store.keep(HiddenKept(turn, each)).result()
        planner = Planner(config) if chance.random() < 0.2 else planner
        before = sent


def _settings(config: Config, chance: Random) -> Config:
    knobs = structs.replace(
        config.knobs,
        keep=chance.randint(1, 3),
        most=chance.choice([0, 0, 2]),
        limit=chance.choice([Limit(300, 200), Limit(800, 500), Limit(3000, 2000)]),
        high=chance.choice([0.6, 0.85]),
        early=chance.random() < 0.5,
    )
    return replace(config, knobs=knobs, budget=chance.choice([900, 1500, 3000, 0]))


def _grown(request: Request, chance: Random) -> Request:
    """The conversation with results as long as tools give them, some of them twice."""
    dialect = DIALECTS[request.dialect]
    said: list[str] = []
    messages: list[Message] = []
    for message in request.messages:
        words = {}
        for position, part in enumerate(message.parts):
            if part.kind.family is Kind.TOOL_RESULT and chance.random() < 0.7:
                said.append(
                    chance.choice(said) if said and chance.random() < 0.3 else _output(chance)
                )
                words[position] = said[-1].encode()
        try:
            messages.append(dialect.reword(message, words))
        except ValueError:
            messages.append(message)
    return replace(request, messages=tuple(messages))


def _output(chance: Random) -> str:
    line = chance.choice(_LINES)
    numbers = (chance.randint(1, 9999) for _ in range(1000))
    return "\n".join(
        line.format(n=n, m=next(numbers), d=n % 9) for n in range(chance.choice([3, 15, 40, 120]))
    )


def _ends(messages: tuple[Message, ...]) -> Iterator[int]:
    """Where a client may send what it has: before each reply, and at the end."""
    for index in range(1, len(messages)):
        if (
            messages[index].role is Role.ASSISTANT
            and messages[index - 1].role is not Role.ASSISTANT
        ):
            yield index
    if messages[-1].role is not Role.ASSISTANT:
        yield len(messages)


def _hidden(sent: Sent, rest: tuple[Message, ...], chance: Random) -> Iterator[Hidden]:
    """Now and then the model asked for something before it replied, and the client did not see
    it."""
    reply = next(
        (each for each in link(sent.prepared.head, rest[:3]) if not each.message.aside), None
    )
    if (
        not sent.prepared.offered
        or reply is None
        or reply.message.role is not Role.ASSISTANT
        or chance.random() < 0.7
    ):
        return
    id = f"call_{chance.getrandbits(60):015x}"
    thinks = b'"thinking"' in sent.asked.params
    asking = _asking(sent.asked.dialect, id, thinks=thinks)
    answers = DIALECTS[sent.asked.dialect].answer(
        [Answer(id, f"[hotset: what {id} was about]\n" + _output(chance)[:400])]
    )
    yield Hidden(reply.chain, (asking, *answers))


def _asking(name: DialectName, id: str, *, thinks: bool) -> bytes:
    arguments = {"id": "c0123456789ab"}
    if name is DialectName.OPENAI_CHAT:
        called = {
            "id": id,
            "type": "function",
            "function": {"name": "retrieve_context", "arguments": json.dumps(arguments)},
        }
        return json.dumps({"role": "assistant", "content": None, "tool_calls": [called]}).encode()
    if name is DialectName.OPENAI_RESPONSES:
        item = {
            "type": "function_call",
            "call_id": id,
            "name": "retrieve_context",
            "arguments": json.dumps(arguments),
        }
        return json.dumps(item).encode()
    thought = [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}] if thinks else []
    used = {"type": "tool_use", "id": id, "name": "retrieve_context", "input": arguments}
    return json.dumps({"role": "assistant", "content": [*thought, used]}).encode()


def _assert_it_goes_on(before: Sent | None, sent: Sent) -> None:
    """Where no page left, everything that was sent is sent again, to the byte, with more behind
    it."""
    if before is None or sent.prepared.plan.broke is not None:
        return
    was = [message.raw for message in before.messages]
    assert [message.raw for message in sent.messages[: len(was)]] == was


def _assert_it_is_whole(sent: Sent, store: RamStore) -> None:
    dialect = DIALECTS[sent.asked.dialect]
    outgoing = dialect.parse(sent.prepared.body)
    theirs = Counter(each.invariant for each in dialect.check(sent.asked))
    assert Counter(each.invariant for each in dialect.check(outgoing)) - theirs == Counter()
    shown = sent.prepared.plan.shown
    said = Counter(part.content for message in outgoing.messages for part in message.parts)
    place = Place(next(iter(store.sessions())).id, 1, tuple(each.chain for each in sent.links))
    for each in sent.links:
        gone = shown.get(Spot(each.chain, WHOLE))
        assert (
            gone is None
            or each.message.role is not Role.USER
            or all(part.call for part in each.message.parts)
        )
        for position, part in enumerate(each.message.parts):
            row = gone or shown.get(Spot(each.chain, position))
            assert store.content(digest(part.content)) == part.content
            if row is None or not (row.text or row.form is Form.GONE):
                assert said[part.content], f"{part.kind} is neither shown nor accounted for"
            else:
                assert part.kind not in (Kind.PROMPT, Kind.SYSTEM)
            if (
                row is not None
                and row in sent.prepared.plan.fresh
                and row.form in (Form.EXCERPT, Form.ECHO, Form.STUB)
            ):
                _assert_it_comes_back(part.content, store, place)
    for stub in sent.prepared.plan.stubs:
        assert stub.id in sent.prepared.body.decode()


def _unmarked(policy: str) -> Knobs:
    """Without marks of ours, which would change bytes of messages: they have tests of their own."""
    return Knobs(policy=policy).turned({"cache.marks": False})


def _assert_it_comes_back(content: bytes, store: RamStore, place: Place) -> None:
    """By the id that stands in its place, in as many slices as it takes."""
    got = retrieval.answer(Retrieve(content_id(content), max_tokens=20_000), store, place)
    assert got.found
    if tokens.count(content) < 15_000:
        assert content.decode("utf-8", "replace").strip("\n") in got.text
    first = content.decode("utf-8", "replace").splitlines()[0]
    line = retrieval.answer(
        Retrieve(content_id(content), how=Lines(((1, 1),)), max_tokens=2000), store, place
    )
    assert first.strip() in line.text
