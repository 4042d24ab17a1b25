"""One numbering: the turns of a reference are those of `get_turn_range`, `show` and `diff`."""

from __future__ import annotations

import re

import pytest

from hotset.dialects import DIALECTS as ALL
from hotset.nouns.knobs import NEVER, Knobs
from hotset.nouns.page import Kind, Page
from hotset.nouns.retrieval import Place, Range
from hotset.nouns.turn import Reference
from hotset.runtime import retrieval
from hotset.runtime.decision import difference, lineage
from hotset.store.port import Store
from hotset.surfaces.cli.sessions import read_story
from hotset.testing import Say
from hotset.testing.upstream.faults import Status
from hotset.testing.upstream.script import Received
from tests.proxy.talking import Talk, read
from tests.proxy.wire import DIALECTS

_BUDGET = 10_000
_STEPS = 20
_PARALLEL, _RETRIED, _SIDE = 3, 4, 5
"""Each step of these numbers has several calls, is refused once, or is followed by a request of
the client's own."""

_REFERENCE = re.compile(
    r'\[CTX-REF:\w+ \| turns? (\d+)(?:-(\d+))? [^\]]*retrieve_context\(id=\\"(\w+)\\"\)\]'
)


def _output(number: int, place: int) -> str:
    return "\n".join(f"{number}.{place}.{line}: what was read there" for line in range(50))


class _Script:
    """Reads file after file; the words of a request say what it is."""

    def __init__(self) -> None:
        self.refused: set[int] = set()

    def __call__(self, request: Received) -> Say:
        body = request.body.decode()
        if "a title, please" in body:
            return Say("A title")
        number = body.count(".0.49: what was read there")
        if number % _RETRIED == 0 and number and number not in self.refused:
            self.refused.add(number)
            return Say("", fault=Status(529))
        several = 3 if number % _PARALLEL == 0 else 1
        return Say(
            f"Now the next ({request.index}).",
            calls=tuple(
                read(f"src/{request.index}_{place}.py", id=f"c{request.index}_{place}")
                for place in range(several)
            ),
        )


def _work(talk: Talk, side: Talk, first: int, last: int) -> None:
    for number in range(first, last):
        talk.results(*(_output(number, place) for place in range(len(talk.calls))))
        if talk.answer.status != 200:
            talk.send()
        assert talk.answer.status == 200
        if number % _SIDE == 0:
            side.history.clear()
            side.say(f"a title, please, {number}")


@pytest.mark.row("V4", "V6")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.rest_slow
def test_turns_of_a_reference_are_those_of_every_other_view(pair, dialect):
    """With side requests, a branch, retries and parallel calls in one session."""
    whole = Knobs(limit=NEVER, limits={}, high=0.85)
    world = pair(_Script(), budget=_BUDGET, knobs=whole)
    headers = {"x-hotset-session": "one"}
    talk = Talk(world.address, dialect, headers=headers)
    side = Talk(world.address, dialect, headers=headers)
    talk.say("Read the files.")
    _work(talk, side, 0, _STEPS)
    del talk.history[-2 * len(talk.calls) - 2 :]
    talk.say("Another way.")
    _work(talk, side, _STEPS, _STEPS + 8)

    body = world.upstream.requests[-1].decoded.decode()
    with world.store() as store:
        [session] = store.sessions()
        shown = read_story(store, session, None, None).pages
        references = _REFERENCE.findall(body)
        assert references
        *_, turn = store.turns(session.id)
        here = Place(session.id, turn.number, tuple(lineage(store.nodes(session.id), turn)))
        for first, last, id in references:
            turns = int(first), int(last or first)
            reference = store.reference(id)
            assert reference.turns == turns
            replies = _replies(store, reference)
            assert {page.turn for page in replies} <= {*range(turns[0], turns[1] + 1)}
            assert {replies[0].turn, replies[-1].turn} == {*turns}
            assert all(page in shown[page.turn] for page in replies)
            got = retrieval.answer(Range(*turns, 20_000), store, here)
            assert {*reference.pages} <= {*got.pages}
        told = {
            change.reference.id: change.reference.turns
            for change in difference(store, turn, ALL, inject=True).changes
            if change.reference
        }
    assert told == {id: (int(first), int(last or first)) for first, last, id in references}


def _replies(store: Store, reference: Reference) -> list[Page]:
    pages = [store.page(id) for id in reference.pages]
    return [page for page in pages if page.kind.family in (Kind.TOOL_CALL, Kind.RESPONSE)]
