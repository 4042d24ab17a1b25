"""Sessions keep their arm and extend their prefix while the project learns: over a restart, beside
a second proxy that has not learned the same, and with equal first prompts."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from hotset.learn.events import (
    Change,
    ChangeDecision,
    GateVerdict,
    KnobsSetting,
    TrialSetting,
    change_id,
)
from hotset.nouns.knobs import Knobs
from hotset.nouns.turn import Event, TurnRef
from hotset.runtime.decision import read_decision
from hotset.runtime.learned_state import learn_event, read_state
from hotset.runtime.session_arm import arm_of_session
from hotset.store.port import Store
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.upstream.script import Received
from tests.proxy.talking import Talk, assert_each_extends_the_one_before, code
from tests.proxy.wire import DIALECTS
from tests.waiting import wait_until

_REFERENCE = re.compile(rb'retrieve_context\(id=\\"([a-z0-9]+)\\"')
_SHORT = {"limits.file": {"over": 3000, "room": 2000}}
_SOONER = {"keep": 6, "regret": 1.0}
_LONGER = {"limits.file": {"over": 9000, "room": 6000}}


class Unlearned(SqliteStore):
    """The store as a process sees it that learns nothing."""

    def events_after(
        self, number: int, limit: int, names: frozenset[str] = frozenset()
    ) -> Sequence[tuple[int, Event]]:
        return () if names else super().events_after(number, limit, names)


def _reply(request: Received) -> Say:
    """The model reads files, and now and then asks for what was shortened."""
    references = _REFERENCE.findall(request.decoded)
    again = b"[hotset: retrieved" in request.decoded[-3000:]
    if references and request.index % 5 == 0 and not again and b'"search_history"' in request.body:
        return Say("More.", calls=(Call("retrieve_context", {"id": references[-1].decode()}),))
    return Say(f"Reading {request.index}.", calls=(Call("read_file", {"path": "a.py"}),))


@dataclass
class Worker:
    """One session: a client, where its turns are kept, and what the provider got for each call."""

    talk: Talk
    prompt: str
    calls: list[tuple[TurnRef, tuple[Received, ...]]] = field(default_factory=list)

    def work(self, step: int, proxy: LocalProxy, upstream: ScriptedUpstream) -> None:
        before = len(upstream.requests)
        self.talk.address = proxy.address
        if not self.talk.history:
            self.talk.say(self.prompt)
        else:
            self.talk.results(code(f"{self.prompt[:6].strip()}{step}", functions=120))
        self._called(upstream.requests[before:])

    def retry(self, proxy: LocalProxy, upstream: ScriptedUpstream) -> None:
        """Sends the opening request again, as after a lost reply."""
        before = len(upstream.requests)
        self.talk.address = proxy.address
        self.talk.history = self.talk.history[:1]
        self.calls.clear()  # what follows the lost reply is another line
        self.talk.send()
        self._called(upstream.requests[before:])

    def _called(self, requests: tuple[Received, ...]) -> None:
        answer = self.talk.answer
        assert answer is not None
        assert answer.status == 200, answer.body[:300]
        assert answer.header("x-hotset-degraded") is None, answer.header("x-hotset-degraded")
        place = TurnRef(answer.header("x-hotset-session"), int(answer.header("x-hotset-turn")))
        self.calls.append((place, requests))


@dataclass
class World:
    folder: Path
    upstream: ScriptedUpstream
    proxies: list[LocalProxy] = field(default_factory=list)

    def start(self, store: type[SqliteStore] = SqliteStore) -> LocalProxy:
        proxy = LocalProxy(
            self.folder,
            openai_url=self.upstream.openai_url,
            anthropic_url=self.upstream.anthropic_url,
            open_store=partial(store.open, self.folder),
        )
        self.proxies.append(proxy.__enter__())
        return proxy

    def restart(self, proxy: LocalProxy) -> LocalProxy:
        self.stop(proxy)
        return self.start()

    def stop(self, proxy: LocalProxy) -> None:
        self.proxies.remove(proxy)
        proxy.__exit__(None, None, None)

    def learn(self, *events: tuple[str, object]) -> None:
        """Writes events beside the running proxies; returns when those that learn have seen
        them."""
        with contextlib.closing(SqliteStore.open(self.folder)) as store:
            for name, payload in events:
                store.keep(learn_event(name, payload, 1_700_000_000.0)).result()
            number = read_state(store).number
        learning = self.proxies[0].machine.learning
        wait_until(lambda: learning.state.number >= number)

    def settle(self) -> None:
        for each in self.proxies:
            each.wait_until_kept()


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    with ScriptedUpstream(_reply, strict=True) as upstream:
        world = World(tmp_path / "data", upstream)
        try:
            yield world
        finally:
            for proxy in list(world.proxies):
                world.stop(proxy)


def _proposed(knobs: dict, by: str) -> tuple[str, tuple[tuple[str, object], ...]]:
    id = change_id(knobs, by)
    return id, (
        ("ChangeProposed", Change(id, knobs, {}, by, "14 of 31 were asked back")),
        ("ChangeGated", GateVerdict(id, True, 0.05, 0.01, 0.09, 12, why="passed")),
    )


def _happenings() -> list[tuple[tuple[str, object], ...]]:
    """What is learned and decided from one step to the next."""
    short, shortened = _proposed(_SHORT, "limits")
    sooner, left = _proposed(_SOONER, "patience")
    longer, lengthened = _proposed(_LONGER, "limits")
    return [
        (*shortened, ("ChangeAdopted", ChangeDecision(short, "it saves"))),
        (*left, ("TrialChanged", TrialSetting({"off": 0.3, "lean": 0.2, sooner: 0.2}))),
        (("ChangeRolledBack", ChangeDecision(short, "success fell")),),
        (*lengthened, ("ChangeAdopted", ChangeDecision(longer, "it saves"))),
        (("TrialChanged", TrialSetting({"off": 0.0})), ("LearningReset", KnobsSetting())),
        (("LearningSwitched", KnobsSetting(is_on=False)),),
    ]


def _workers(number: int) -> list[Worker]:
    """In every dialect; every other one without a name, of which some begin with the same words."""
    workers = []
    for n in range(number):
        is_named = n % 2 == 0
        headers = {"x-hotset-session": f"session-{n}"} if is_named else {}
        prompt = "Read it all." if n % 4 in (1, 2) else f"{n}: read part {n}."
        talk = Talk("", DIALECTS[n % 3], n % 5 == 0, headers=headers)  # type: ignore[arg-type]
        workers.append(Worker(talk, prompt))
    return workers


def _run(world: World, number: int, steps: int, seed: int = 1) -> list[Worker]:
    """Sessions begin and go on in turns, through any proxy, while the project learns."""
    chance = random.Random(seed)
    learning, other = world.start(), world.start(Unlearned)
    workers = _workers(number)
    waiting = list(workers)
    at_work: list[Worker] = []
    for step, happening in enumerate(_happenings()[:steps]):
        begin = [waiting.pop() for _ in range(-(-number // steps)) if waiting]
        at_work += begin
        chance.shuffle(at_work)
        for worker in at_work:
            world.settle()
            worker.work(step, chance.choice((learning, learning, other)), world.upstream)
            if worker in begin and chance.random() < 0.3:
                world.settle()
                worker.retry(chance.choice((learning, other)), world.upstream)
        world.settle()
        world.learn(*happening)
        if step in (1, 3):
            learning = world.restart(learning)
            world.proxies.reverse()
    world.settle()
    return workers


def _unexplained(workers: Sequence[Worker], store: Store) -> Iterator[str]:
    """Prefixes that broke, and nothing says why."""
    for worker in workers:
        for (_, before), (place, after) in zip(worker.calls, worker.calls[1:], strict=False):
            explained = any(
                bill.turn == place.number and bill.broke for bill in store.bills(place.session)
            ) or any(
                event.name == "Evicted" and event.turn == place.number
                for event in store.events(place.session)
            )
            if not explained and not _extends((before[-1], *after)):
                yield f"{place} {arm_of_session(store, place.session).name}"


def _extends(requests: Sequence[Received]) -> bool:
    try:
        assert_each_extends_the_one_before(requests)
    except AssertionError:
        return False
    return True


def _moved(workers: Sequence[Worker], store: Store) -> Iterator[str]:
    """Sessions that did not run with the knobs of their arm from beginning to end."""
    for worker in workers:
        places = [place for place, _ in worker.calls]
        arm = arm_of_session(store, places[0].session)
        by_place = {turn.ref: turn for turn in store.turns(places[0].session)}
        for place, requests in worker.calls:
            decided = read_decision(store, by_place[place])
            if arm.is_off:
                is_right = decided.knobs is None and b"retrieve_context" not in requests[0].body
            else:
                own = Knobs().with_changes(arm.values).changed(Knobs())
                is_right = decided.knobs is not None and own == {
                    name: value for name, value in decided.knobs.items() if name != "window"
                }
            if not is_right:
                yield f"{place} {arm.name} {arm.knobs}: {decided.knobs}"


def _check(world: World, number: int, steps: int) -> set[str]:
    """Returns the arms that the sessions ran in."""
    workers = _run(world, number, steps)
    with contextlib.closing(SqliteStore.open(world.folder)) as store:
        assert not list(_unexplained(workers, store))
        assert not list(_moved(workers, store))
        assert len({worker.calls[0][0].session for worker in workers}) == number
        arms = [arm_of_session(store, worker.calls[0][0].session) for worker in workers]
        return {each.name for each in arms} | {id for each in arms for id in each.changes}


@pytest.mark.row("V12", "X3")
@pytest.mark.slow
def test_fifty_sessions_keep_their_arm_and_prefix_while_the_project_learns(world):
    arms = _check(world, 50, 6)
    ids = [change_id(_SHORT, "limits"), change_id(_SOONER, "patience")]
    assert arms >= {"default", "off", "lean", *ids}


@pytest.mark.row("V12", "X3")
def test_sessions_keep_their_arm_and_prefix_while_the_project_learns(world):
    assert "default" in _check(world, 6, 3)


@pytest.mark.row("V12")
@pytest.mark.rest_slow
@pytest.mark.parametrize("name", [{}, {"x-hotset-session": "one"}], ids=["unnamed", "named"])
def test_an_opening_that_is_tried_again_elsewhere_has_the_same_arm(world, name):
    proxy, other = world.start(), world.start(Unlearned)
    world.learn(("TrialChanged", TrialSetting({"off": 0.9})))
    workers = [
        Worker(Talk("", "anthropic", headers={**name, **_numbered(name, n)}), f"Read part {n}.")
        for n in range(6)
    ]
    for worker in workers:
        worker.work(0, proxy, world.upstream)
    world.settle()
    world.learn(("TrialChanged", TrialSetting({"off": 0.0})))
    proxy = world.restart(proxy)
    for number, worker in enumerate(workers):
        was_off = b"retrieve_context" not in worker.calls[0][1][0].body
        worker.retry(proxy if number % 2 else other, world.upstream)
        assert (b"retrieve_context" not in worker.calls[0][1][0].body) is was_off
    assert b"retrieve_context" not in world.upstream.requests[0].body


def _numbered(name: dict[str, str], number: int) -> dict[str, str]:
    return {key: f"{value}-{number}" for key, value in name.items()}
