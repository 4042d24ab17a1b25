"""A session far longer than its window: it never outgrows it, the provider never refuses it, and
what left comes back whole."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from hotset.nouns.link import link
from hotset.nouns.page import ROOT, Kind
from hotset.nouns.retrieval import Place, Range, Retrieve
from hotset.runtime import retrieval
from hotset.store.port import Where
from hotset.testing import Call, Say
from hotset.testing.upstream.script import Received
from tests.campaign import sample
from tests.proxy.conftest import Pair
from tests.proxy.talking import Talk, asked, read
from tests.proxy.wire import DIALECTS

_CALLS = sample(110, 200)
_BUDGET = 8_000
_RECENT = 4  # iterations that never leave
_WORDS = (
    "the",
    "window",
    "shows",
    "what",
    "is",
    "needed",
    "and",
    "nothing",
    "ever",
    "gets",
    "lost",
    "to",
    "anybody",
)


def _output(number: int) -> str:
    """A result of some 250 tokens, unlike any other."""
    chance = random.Random(number)
    return "\n".join(
        f"{number}.{line}: {' '.join(chance.choices(_WORDS, k=10))}" for line in range(20)
    )


def _work(world: Pair, dialect: str, *, stream: bool) -> tuple[Talk, list[int]]:
    """The session, and the tokens of each of its prompts as the provider counts them."""
    talk, prompts = Talk(world.address, dialect, stream), list[int]()
    talk.say(f"Read {_CALLS} files, one after the other.")
    for number in range(_CALLS):
        talk.results(_output(number))
        assert talk.answer.status == 200, talk.answer.body
        prompts.append(talk.reply.usage.prompt)
    return talk, prompts


def _reading(request: Received) -> Say:
    return Say(
        f"Now the next one ({request.index}).", calls=(read(f"src/part_{request.index}.py"),)
    )


@pytest.mark.row("V4", "C3", "C5")
@pytest.mark.parametrize(
    ("dialect", "stream"),
    [("anthropic", True), ("openai-chat", False), ("openai-responses", True)],
    ids=["anthropic", "chat", "responses"],
)
@pytest.mark.slow
def test_a_session_of_hundreds_of_calls_stays_in_its_window_and_everything_comes_back(
    pair, dialect, stream
):
    world = pair(_reading, strict=True, budget=_BUDGET)

    talk, prompts = _work(world, dialect, stream=stream)

    requests = world.upstream.requests
    assert len(requests) == _CALLS + 1
    assert 0 < max(prompts) <= _BUDGET
    assert len(talk.sent[-1]) > 5 * len(requests[-1].body)
    last = requests[-1].body.decode()
    assert "[CTX-REF:" in last
    stands = [f'"{number}.0: ' in last for number in range(_CALLS)]
    assert stands[-_RECENT:] == [True] * _RECENT
    assert not any(stands[: _CALLS // 2])
    with world.store() as store:
        [session] = store.sessions()
        breaks = _breaks(requests)
        evicted = [event for event in store.events() if event.name == "Evicted"]
        assert 0 < breaks <= len(evicted)
        assert all(event.session == session.id and event.turn for event in evicted)
        assert not [event for event in store.events() if event.name == "Bypassed"]
        left = {page for reference in store.references(session.id) for page in reference.pages}
        outputs = [
            page
            for page in store.pages(Where(session=session.id))
            if page.kind.family is Kind.TOOL_RESULT
        ]
        assert [store.content(page.digest).decode() for page in outputs] == [
            _output(number) for number in range(_CALLS)
        ]
        assert len(left & {page.id for page in outputs}) > _CALLS // 2
        here = Place(session.id, _CALLS + 1)
        for number, page in enumerate(outputs):
            by_call = retrieval.answer(Retrieve(page.call), store, here)
            by_turn = retrieval.answer(Range(page.turn, page.turn), store, here)
            assert _output(number) in by_call.text
            assert _output(number) in by_turn.text


@pytest.mark.row("V4")
@pytest.mark.row("V6")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.rest_slow
def test_the_line_that_stays_says_how_to_get_back_what_left(pair, dialect):
    """The model follows the reference, as it stands in its own window, and gets what it speaks
    of."""

    def script(request: Received) -> Say:
        body = request.body.decode()
        if request.index == _CALLS // 2:
            reference = body.partition("[CTX-REF:")[2].partition("]")[0]
            id = reference.partition("retrieve_context(id=")[2].strip('\\")')
            return Say(calls=(Call("retrieve_context", {"id": id, "regex": "^0\\.7:"}),))
        return _reading(request)

    world = pair(script, strict=True, budget=_BUDGET)
    talk = Talk(world.address, dialect, stream=True)
    talk.say("Read them.")
    for number in range(_CALLS // 2):
        talk.results(_output(number))

    answered = world.upstream.requests[-1].body.decode()
    wanted = _output(0).splitlines()[7]
    assert wanted not in world.upstream.requests[-2].body.decode()
    assert wanted in answered


def _breaks(requests: tuple[Received, ...]) -> int:
    """How often a request did not go on where the one before it ended, cache marks aside."""
    prompts = [[each.chain for each in link(ROOT, asked(request).messages)] for request in requests]
    return sum(after[: len(before)] != before for before, after in pairwise(prompts))
