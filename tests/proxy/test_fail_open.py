"""Store down, store slow, disk full, our own bug: the client's bytes go through, and it is told."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from hotset.errors import BadInput, DiskFull, PageDamaged, StoreFailed
from hotset.nouns.deposit import Billed, PlanMade, ReplyReceived, RequestReceived
from hotset.nouns.turn import Event, Outcome
from hotset.testing import RamStore, Say
from tests.proxy.wire import DIALECTS, post, question
from tests.waiting import ask, wait_until


class FailingStore(RamStore):
    """A real store that fails as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: BaseException | None = None
        self.hangs = False
        self.bug_with: type | None = None
        self.pending: list[Future] = []

    def keep(self, *deposits):
        if self.bug_with is not None and any(isinstance(each, self.bug_with) for each in deposits):
            raise ZeroDivisionError("a bug")
        if self.hangs:
            self.pending.append(Future())
            return self.pending[-1]
        if self.failure is not None:
            failed: Future = Future()
            failed.set_exception(self.failure)
            return failed
        return super().keep(*deposits)


class PickyStore(RamStore):
    """A real store that refuses a group in which something of one kind stands."""

    def __init__(self, kind: type, failure: Exception) -> None:
        super().__init__()
        self.kind, self.failure = kind, failure

    def keep(self, *deposits):
        if any(isinstance(each, self.kind) for each in deposits):
            refused: Future = Future()
            refused.set_exception(self.failure)
            return refused
        return super().keep(*deposits)


@pytest.mark.parametrize(
    "failure",
    [BadInput("odd text"), PageDamaged("a row is damaged"), StoreFailed("a bug")],
    ids=repr,
)
@pytest.mark.parametrize("kind", [PlanMade, Billed])
def test_a_request_and_its_reply_are_kept_where_what_stands_beside_them_cannot_be(
    pair, kind, failure
):
    store = PickyStore(kind, failure)
    world = pair(open_store=lambda: store)

    answer = post(world.address, "anthropic", question("anthropic", "hello"))

    assert answer.status == 200
    world.settle()
    [turn] = [turn for session in store.sessions() for turn in store.turns(session.id)]
    assert turn.outcome is Outcome.DONE


@pytest.mark.row("C9")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "failure", [DiskFull("no room"), StoreFailed("I/O error"), ZeroDivisionError("a bug")], ids=repr
)
@pytest.mark.rest_slow
def test_a_store_that_fails_never_stands_in_the_way(pair, dialect, failure):
    store = FailingStore()
    world = pair(open_store=lambda: store, patience=1)
    store.failure = failure
    body = question(dialect, "hello", stream=True)

    answer = post(world.address, dialect, body)

    assert answer.status == 200
    assert world.upstream.requests[0].body == body
    assert len(world.upstream.requests) == 1
    assert answer.header("x-hotset-degraded")


@pytest.mark.row("C9")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("deposit", [RequestReceived, ReplyReceived])
def test_a_bug_of_ours_neither_stops_a_reply_nor_sends_a_request_twice(
    pair, directly, dialect, stream, deposit
):
    store = FailingStore()
    script = [Say("a reply in full"), Say("a second try would get this")]
    world = pair(script, open_store=lambda: store)
    store.bug_with = deposit
    body = question(dialect, "hello", stream=stream)

    answer = post(world.address, dialect, body)

    told = b": hotset: a fault of ours: ZeroDivisionError\n\n"
    assert answer.body.replace(told, b"") == directly(script, dialect, body).body
    assert (answer.header("x-hotset-degraded") is not None or answer.body.count(told) == 1) is True
    assert len(world.upstream.requests) == 1
    world.settle()
    assert ask(world.address)["bypassed"] >= 1


def test_the_reason_is_one_plain_line_whatever_an_error_says(pair):
    store = FailingStore()
    world = pair(open_store=lambda: store)
    store.failure = StoreFailed("caf\u00e9\r\nx-evil: 1\n" + "long " * 200)

    answer = post(world.address, "openai-chat", question("openai-chat", "hello"))

    assert answer.header("x-evil") is None
    assert answer.header("x-hotset-degraded").startswith("store: caf???x-evil: 1?long ")
    assert len(answer.header("x-hotset-degraded")) <= 300


def test_when_the_store_recovers_it_keeps_again_and_tells_what_it_missed(pair):
    store = FailingStore()
    world = pair(open_store=lambda: store)
    store.failure = DiskFull("no room")
    post(world.address, "openai-chat", question("openai-chat", "lost to the store"))
    store.failure = None

    post(world.address, "openai-chat", question("openai-chat", "kept again"))

    world.settle()
    assert len(list(store.sessions())) == 1
    assert [event.name for event in store.events()] == ["Bypassed"]
    assert all(
        isinstance(event, Event) and "lost to the store" not in str(event)
        for event in store.events()
    )


@pytest.mark.slow
def test_a_store_that_hangs_holds_up_nobody(pair, monotonic_gap):
    store = FailingStore()
    world = pair(open_store=lambda: store, patience=1)
    store.hangs = True
    post(world.address, "anthropic", question("anthropic", "the first to wait"))
    wait_until(lambda: "does not answer" in ask(world.address)["store"])

    with monotonic_gap() as gap:
        answers = [
            post(world.address, "anthropic", question("anthropic", f"hello {n}")) for n in range(20)
        ]

    assert [answer.status for answer in answers] == [200] * 20
    assert all(
        answer.header("x-hotset-degraded") == "the store does not answer" for answer in answers
    )
    assert gap.seconds < 20 * 2, "each waited for it"
    for future in list(store.pending):
        future.set_exception(StoreFailed("the test ends"))


@pytest.mark.slow
def test_what_waits_for_a_store_that_hangs_is_bounded(pair):
    store = FailingStore()
    world = pair(open_store=lambda: store, patience=1)
    store.hangs = True
    post(world.address, "anthropic", question("anthropic", "the first to wait"))
    wait_until(lambda: "does not answer" in ask(world.address)["store"])

    with ThreadPoolExecutor(16) as pool:
        calls = [
            pool.submit(post, world.address, "anthropic", question("anthropic", f"hello {n}"))
            for n in range(300)
        ]
        assert {call.result().status for call in calls} == {200}

    assert len(store.pending) <= 200
    for future in list(store.pending):
        future.set_exception(StoreFailed("the test ends"))


def test_a_store_that_cannot_be_opened_is_told_on_every_reply(pair):
    def broken():
        raise StoreFailed("the file is not a database")

    world = pair(open_store=broken)

    answers = [
        post(world.address, "openai-responses", question("openai-responses", "hello"))
        for _ in range(3)
    ]

    assert [answer.status for answer in answers] == [200] * 3
    assert all(
        answer.header("x-hotset-degraded") == "store: the file is not a database"
        for answer in answers
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_that_we_cannot_read_passes_and_leaves_no_trace(pair, dialect):
    world = pair()
    body = b'{"model": "m", "messages": [1, 2], "input": [3]}'

    answer = post(world.address, dialect, body)

    assert world.upstream.requests[0].body == body
    assert answer.header("x-hotset-degraded").startswith("unreadable request")
    assert world.sessions() == []
