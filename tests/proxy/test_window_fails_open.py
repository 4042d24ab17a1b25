"""Whatever goes wrong in the window, the client's own bytes go through, and it is told; a turn that has begun goes on."""

from __future__ import annotations

import threading

import pytest

from hotset.dialects import DIALECTS as WIRE
from hotset.errors import DiskFull, PageDamaged, StoreFailed
from hotset.nouns.link import link
from hotset.nouns.message import DialectName
from hotset.nouns.page import ROOT, Kind
from hotset.nouns.window import WHOLE, Cause, Form, Shown, Spot, Table
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
from tests.waiting import wait_until


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


class Unread(RamStore):
    """A store from which nothing can be read back."""

    def __init__(self, failure: BaseException) -> None:
        super().__init__()
        self._failure = failure

    def content(self, digest):
        raise self._failure


class Torn(RamStore):
    """A store whose table says that a call has left, and that its result has not: no provider takes that."""

    calls: frozenset[Spot] = frozenset()

    def table(self, chains, as_of=None):
        rows = {spot: Shown(spot, Form.GONE, b"", 0, 10, Cause.PAYS, 0.0) for spot in self.calls if spot.chain in chains}
        return Table(shown=rows)


@pytest.mark.row("C9")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("failure", [StoreFailed("I/O error"), PageDamaged("a row"), ZeroDivisionError("a bug")], ids=repr)
def test_a_planner_that_fails_lets_the_clients_bytes_through(pair, dialect, stream, failure):
    store = Tableless(failure)
    world = pair([looking("a.py"), Say("Read.")], strict=True, open_store=lambda: store)
    talk = Talk(world.address, dialect, stream)

    talk.say("Read it.")
    talk.results(code())

    assert talk.text == "Read."
    assert [request.body for request in world.upstream.requests] == talk.sent
    assert talk.answer.header("x-hotset-degraded") == f"a fault of ours in planning: {type(failure).__name__}"
    world.settle()
    events = [event for event in store.events() if event.name == "Bypassed"]
    assert len(events) == 2
    assert "left + right" not in str(events)


def test_a_store_whose_tables_hang_holds_up_one_call_and_no_more(pair, monotonic_gap):
    store = Stuck()
    world = pair(lambda _: Say("Yes."), open_store=lambda: store)
    talk = Talk(world.address, "anthropic")
    talk.say("the one that waits")

    with monotonic_gap() as gap:
        for n in range(20):
            talk.say(f"hello {n}")

    assert gap.seconds < 4
    assert talk.answer.header("x-hotset-degraded") == "planning took too long"
    assert [request.body for request in world.upstream.requests] == talk.sent
    store.free.set()
    wait_until(lambda: talk.say("planned again?") and "planning" not in (talk.answer.header("x-hotset-degraded") or ""))
    assert {*OURS} <= {tool.name for tool in asked(world.upstream.requests[-1]).tools}


@pytest.mark.row("C9")
@pytest.mark.parametrize("stream", [False, True])
def test_a_plan_that_a_provider_would_refuse_is_not_sent(pair, dialect, stream):
    store = Torn()
    world = pair([Say("Read.")], strict=True, open_store=lambda: store)
    talk = Talk(world.address, dialect, stream, history=with_a_result(dialect, code()))
    links = link(ROOT, WIRE[DialectName(dialect)].parse(talk.body).messages)
    store.calls = frozenset(
        Spot(each.chain, WHOLE) for each in links if any(part.kind.family is Kind.TOOL_CALL for part in each.message.parts)
    )

    talk.send()

    assert talk.text == "Read."
    assert world.upstream.requests[0].body == talk.sent[0]
    assert talk.answer.header("x-hotset-degraded").startswith("a plan that the provider would have refused: rule ")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("failure", [PageDamaged("a blob"), ZeroDivisionError("a bug")], ids=repr)
def test_what_cannot_be_brought_back_is_said_to_the_model_and_the_turn_goes_on(pair, dialect, stream, failure):
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

    assert said == "More.Then without."
    assert "get it again from where it came" in world.upstream.requests[2].body.decode()
    assert not any(ours in talk.wrote for ours in OURS)
    assert_each_extends_the_one_before(world.upstream.requests)


@pytest.mark.row("C9")
def test_a_store_that_fails_in_mid_session_and_comes_back_leaves_a_valid_conversation(pair, dialect):
    store = FailingStore()
    world = pair([*(looking(f"{n}.py") for n in range(5)), Say("Read.")], strict=True, open_store=lambda: store)
    talk = Talk(world.address, dialect, stream=True)
    talk.say("Read them.")
    for number in range(5):
        store.failure = DiskFull("no room") if number in (1, 2) else None
        talk.results(code(f"part{number}"))
        assert talk.answer.status == 200
        world.settle()

    assert talk.text == "Read."
    assert [bool(request.body in talk.sent) for request in world.upstream.requests[:2]] == [False, False]
    assert world.upstream.requests[3].body in talk.sent
    assert len(world.upstream.requests[-1].body) < len(talk.sent[-1])
