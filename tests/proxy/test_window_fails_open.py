"""Whatever goes wrong in the window, the client's own bytes go through, and it is told; a turn that
has begun goes on."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import pytest

from hotset.dialects import DIALECTS as WIRE
from hotset.errors import DiskFull, PageDamaged, StoreFailed
from hotset.nouns.knobs import Knobs
from hotset.nouns.link import link
from hotset.nouns.message import DialectName
from hotset.nouns.page import ROOT, Chain, Kind
from hotset.nouns.window import WHOLE, Cause, Form, Hidden, PageTable, Shown, Spot
from hotset.runtime.background import BoundedPool
from hotset.testing import RamStore, Say
from tests.proxy.talking import (
    OURS,
    Talk,
    asked,
    assert_each_extends_the_one_before,
    code,
    looking,
    read,
    retrieve,
    with_a_result,
)
from tests.proxy.test_fail_open import FailingStore
from tests.proxy.wire import DIALECTS
from tests.waiting import ask, wait_until


@pytest.fixture(params=DIALECTS)
def dialect(request):
    return request.param


class Tableless(RamStore):
    """A store that keeps everything and cannot say how it was shown."""

    def __init__(self, failure: BaseException) -> None:
        super().__init__()
        self._failure = failure

    def table(self, chains, as_of=None):
        raise self._failure


class Stuck(RamStore):
    """A store whose tables take for ever, until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def table(self, chains, as_of=None):
        self.free.wait()
        return super().table(chains, as_of)


class StuckFor(RamStore):
    """A store whose tables take for ever for one conversation, until it is let go."""

    def __init__(self, prompt: str) -> None:
        super().__init__()
        self.first = Talk(None, "anthropic", history=[{"role": "user", "content": prompt}])
        self.chain = next(
            link(ROOT, WIRE[DialectName.ANTHROPIC].parse(self.first.body).messages)
        ).chain
        self.free = threading.Event()

    def table(self, chains, as_of=None):
        if self.chain in chains:
            self.free.wait()
        return super().table(chains, as_of)


class Unread(RamStore):
    """A store from which nothing can be read back."""

    def __init__(self, failure: BaseException) -> None:
        super().__init__()
        self._failure = failure

    def content(self, digest):
        raise self._failure


class Torn(RamStore):
    """A store whose table says that a call has left, and that its result has not."""

    calls: frozenset[Spot] = frozenset()

    def table(self, chains, as_of=None):
        rows = {
            spot: Shown(spot, Form.GONE, b"", 0, 10, Cause.PAYS, 0.0)
            for spot in self.calls
            if spot.chain in chains
        }
        return PageTable(shown=rows)


class Mistaken(RamStore):
    """A store that remembers another call than the one which was made: no provider takes its result
    for an answer."""

    hidden: Mapping[Chain, Hidden] = {}

    def table(self, chains, as_of=None):
        return PageTable(
            hidden={chain: row for chain, row in self.hidden.items() if chain in chains}
        )


@pytest.mark.row("C9")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "failure",
    [StoreFailed("I/O error"), PageDamaged("a row"), ZeroDivisionError("a bug")],
    ids=repr,
)
@pytest.mark.rest_slow
def test_a_planner_that_fails_lets_the_clients_bytes_through(pair, dialect, stream, failure):
    store = Tableless(failure)
    world = pair([looking("a.py"), Say("Read.")], strict=True, open_store=lambda: store)
    talk = Talk(world.address, dialect, stream)

    talk.say("Read it.")
    talk.results(code())

    assert talk.text == "Read."
    assert [request.body for request in world.upstream.requests] == talk.sent
    assert (
        talk.answer.header("x-hotset-degraded")
        == f"a fault of ours in planning: {type(failure).__name__}"
    )
    world.settle()
    events = [event for event in store.events() if event.name == "Bypassed"]
    assert all(event.session and event.turn for event in events)
    assert len(events) == 2
    assert "left + right" not in str(events)


@pytest.mark.slow
def test_a_store_whose_tables_hang_holds_up_one_call_and_no_more(pair, monotonic_gap):
    store = Stuck()
    world = pair(lambda _: Say("Yes."), open_store=lambda: store, bounded=BoundedPool(5.0))
    talk = Talk(world.address, "anthropic")
    talk.say("the one that waits")

    with monotonic_gap() as gap:
        for n in range(20):
            talk.say(f"hello {n}")

    assert gap.seconds < 20 * 5, "each waited for it"
    assert talk.answer.header("x-hotset-degraded") == "planning took too long"
    assert [request.body for request in world.upstream.requests] == talk.sent
    store.free.set()
    wait_until(
        lambda: (
            talk.say("planned again?")
            and "planning" not in (talk.answer.header("x-hotset-degraded") or "")
        )
    )
    assert {*OURS} <= {tool.name for tool in asked(world.upstream.requests[-1]).tools}


@pytest.mark.row("C9")
@pytest.mark.slow
def test_a_conversation_whose_plan_hangs_passes_alone_and_every_other_one_is_planned(pair):
    store = StuckFor("the one that waits")
    world = pair(lambda _: Say("Yes."), open_store=lambda: store, bounded=BoundedPool(20.0))
    late, others = (
        Talk(world.address, "anthropic"),
        [Talk(world.address, "anthropic") for _ in range(5)],
    )
    late.say("the one that waits")

    for n, other in enumerate(others):
        other.say(f"another one, number {n}")
        late.say("and again")

    assert late.answer.header("x-hotset-degraded") == "planning took too long"
    assert [other.answer.header("x-hotset-degraded") for other in others] == [None] * 5
    planned = [
        {*OURS} <= {tool.name for tool in asked(request).tools}
        for request in world.upstream.requests
    ]
    assert planned == [False, *[True, False] * 5]
    assert ask(world.address)["planning"] == "1 earlier plans have not ended"
    store.free.set()
    wait_until(lambda: ask(world.address)["planning"] == "ok")


@pytest.mark.parametrize("named", [False, True], ids=["by its first message", "by its header"])
@pytest.mark.slow
def test_a_long_history_that_is_seen_for_the_first_time_passes_once_and_is_planned_at_the_next_call(
    pair, named
):
    """Its plan takes longer than a call waits for one; what it decided holds from the next request
    on, and is kept with it."""
    world = pair(
        lambda _: Say("Yes."),
        bounded=BoundedPool(60.0, cpu_seconds=0.15),
        knobs=Knobs(early=False),
    )
    talk = Talk(world.address, "anthropic", headers={"x-session-id": "long"} if named else {})
    for n in range(40):
        asking, called, result = with_a_result("anthropic", code(f"part{n}"))
        called["content"][0]["id"] = result["content"][0]["tool_use_id"] = f"toolu_{n}"
        talk.history += [asking, called, result]

    talk.say("What is in them?")
    passed, first = talk.answer, world.upstream.requests[-1]
    wait_until(lambda: ask(world.address)["planning"] == "ok")
    talk.say("And now?")

    assert passed.header("x-hotset-degraded") == "planning took too long"
    assert first.body == talk.sent[0]
    assert talk.answer.header("x-hotset-degraded") is None
    assert len(world.upstream.requests[-1].body) < len(talk.sent[-1]) / 5
    with world.store() as kept:
        turns = list(kept.turns(next(iter(kept.sessions())).id))
        table = kept.table(
            [
                each.chain
                for each in link(ROOT, WIRE[DialectName.ANTHROPIC].parse(talk.sent[-1]).messages)
            ]
        )
    assert len(turns) == 2
    assert [row.form for row in table.shown.values()] == [Form.EXCERPT] * 40, (
        "what the late plan decided is not kept"
    )
    talk.say("And then?")
    assert_each_extends_the_one_before(world.upstream.requests[1:])


@pytest.mark.row("C9")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.rest_slow
def test_a_plan_that_a_provider_would_refuse_is_not_sent(pair, dialect, stream):
    store = Mistaken()
    world = pair([Say("Read.")], strict=True, open_store=lambda: store)
    talk = Talk(world.address, dialect, stream, history=with_a_result(dialect, code()))
    store.hidden = {
        each.chain: Hidden(each.chain, instead=each.message.raw.replace(b"_1", b"_2"))
        for each in _calling(talk)
    }

    talk.send()

    assert talk.text == "Read."
    assert world.upstream.requests[0].body == talk.sent[0]
    assert talk.answer.header("x-hotset-degraded").startswith(
        "a plan that the provider would have refused: rule "
    )


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_left_without_its_result_is_back_with_it(pair, dialect, stream):
    store = Torn()
    world = pair([Say("Read.")], strict=True, open_store=lambda: store)
    talk = Talk(world.address, dialect, stream, history=with_a_result(dialect, code()))
    store.calls = frozenset(Spot(each.chain, WHOLE) for each in _calling(talk))

    talk.send()

    assert talk.text == "Read."
    assert talk.answer.header("x-hotset-degraded") is None
    assert len(asked(world.upstream.requests[0]).messages) == len(talk.history) - 1
    assert len(world.upstream.requests[0].body) < len(talk.sent[0])


def _calling(talk):
    """The messages in which the model calls a tool, at their places."""
    links = link(ROOT, WIRE[DialectName(talk.dialect)].parse(talk.body).messages)
    return [
        each
        for each in links
        if any(part.kind.family is Kind.TOOL_CALL for part in each.message.parts)
    ]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("failure", [PageDamaged("a blob"), ZeroDivisionError("a bug")], ids=repr)
def test_what_cannot_be_brought_back_is_said_to_the_model_and_the_turn_goes_on(
    pair, dialect, stream, failure
):
    store = Unread(failure)
    script = [
        Say("Let me look.", calls=(read("a.py", id="one"),)),
        Say("More.", calls=(retrieve(dialect, "one", symbol="f_222"),)),
        Say("Then without."),
        Say("Bye."),
    ]
    world = pair(script, strict=True, open_store=lambda: store)
    talk = Talk(world.address, dialect, stream)

    talk.say("Read it.")
    talk.results(code())
    said = talk.text
    talk.say("Thanks.")

    assert said == ("More.\n\nThen without." if dialect == "openai-chat" else "More.Then without.")
    assert "run the original tool call again" in world.upstream.requests[2].body.decode()
    assert not any(ours in talk.wrote for ours in OURS)
    assert_each_extends_the_one_before(world.upstream.requests)


@pytest.mark.row("C9")
@pytest.mark.rest_slow
def test_a_store_that_fails_in_mid_session_and_comes_back_leaves_a_valid_conversation(
    pair, dialect
):
    store = FailingStore()
    world = pair(
        [*(looking(f"{n}.py") for n in range(5)), Say("Read.")],
        strict=True,
        open_store=lambda: store,
    )
    talk = Talk(world.address, dialect, stream=True)
    talk.say("Read them.")
    for number in range(5):
        store.failure = DiskFull("no room") if number in (1, 2) else None
        talk.results(code(f"part{number}"))
        assert talk.answer.status == 200
        world.settle()

    assert talk.text == "Read."
    assert [bool(request.body in talk.sent) for request in world.upstream.requests[:2]] == [
        False,
        False,
    ]
    assert world.upstream.requests[3].body in talk.sent
    assert len(world.upstream.requests[-1].body) < len(talk.sent[-1])
