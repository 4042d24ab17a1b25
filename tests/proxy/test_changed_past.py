"""A client that changes its past after pages of it left: it clears old results, edits a message,
rewinds and goes on otherwise.

Whatever it does, the provider gets a valid body within the budget, and the stubs tell of the line
that is sent.
"""

from __future__ import annotations

import contextlib
import copy
import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotset.nouns.knobs import NEVER, Knobs
from hotset.nouns.message import DialectName
from hotset.nouns.window import Cause
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.proxy.address import Address
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.upstream.cache import (
    PromptCache,
    chat_prompt,
    marked_prompt,
    responses_prompt,
    serve_marked,
    serve_plain,
)
from hotset.testing.upstream.script import Received
from tests.campaign import sample
from tests.proxy.conftest import Pair
from tests.proxy.talking import Talk, asked, assert_each_extends_the_one_before, read
from tests.proxy.wire import DIALECTS

_BUDGET = 14_000
_STEPS = 26
_HIGH = 0.85
"""The share of the budget at which pages leave: our count of what the scripted provider counts is
off by up to a tenth."""

_WHOLE = Knobs(limit=NEVER, limits={}, high=_HIGH)
"""Results are shown whole until their steps leave."""

_CLEARED = "[Old tool result content cleared]"
_REFERENCE = {"type": "item_reference", "id": "msg_0earlier"}
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
_REFERENCE_ID = re.compile(r'\[CTX-REF:[^\]]*retrieve_context\(id=\\"(\w+)\\"\)\]')
_STUB = re.compile(r"\[CTX-REF:\w+ \| turns? (\d+)(?:-(\d+))? ")

CASES = [
    *((dialect, "") for dialect in DIALECTS),
    ("openai-responses", "one"),
    ("openai-responses", "all"),
]
"""Each dialect; Responses also with an item that the provider holds, and with all that the model
said held there."""


_HELD: dict[str, str] = {}
"""The calls of which providers hold the content, by the id of their item."""


class _Referring(Talk):
    """A client that sends what the model said by its id alone, as the AI SDK does where replies are
    stored."""

    @property
    def body(self) -> bytes:
        _HELD.update(
            (each["id"], each["call_id"])
            for each in self.history
            if each.get("type") == "function_call"
        )
        said = [
            {"type": "item_reference", "id": each["id"]} if _is_models(each) else each
            for each in self.history
        ]
        return json.dumps({**json.loads(super().body), "store": True, "input": said}).encode()


def _talk(address: Address, dialect: str, reference: str) -> Talk:
    talk = _Referring(address, dialect) if reference == "all" else Talk(address, dialect)
    if reference == "one":
        talk.history.append(_REFERENCE)
    return talk


def _output(number: int, mark: str = "") -> str:
    """A result of some 800 tokens, unlike any other."""
    chance = random.Random(f"{number}{mark}")
    return "\n".join(
        f"{number}{mark}.{line}: {' '.join(chance.choices(_WORDS, k=10))}" for line in range(60)
    )


def _reading(request: Received) -> Say:
    return Say(
        f"Now the next one ({request.index}).", calls=(read(f"src/part_{request.index}.py"),)
    )


def _begun(world: Pair, dialect: str, reference: str = "", steps: int = _STEPS) -> Talk:
    """A conversation from which pages have left."""
    talk = _talk(world.address, dialect, reference)
    talk.say("Read the files, one after the other.")
    for number in range(steps):
        talk.results(_output(number))
    assert _STUB.search(_body(world))
    return talk


def _goes_on(talk: Talk, mark: str, turns: int = 4) -> None:
    for number in range(turns):
        talk.results(*(_output(number, f"{mark}{at}") for at in range(len(talk.calls))))
        _assert_fine(talk)


def _assert_fine(talk: Talk) -> None:
    assert talk.answer is not None
    assert talk.answer.status == 200, talk.answer.body


def _tokens(request: Received) -> int:
    """Of its prompt, as the provider counts them."""
    body = request.json()
    if request.dialect is DialectName.ANTHROPIC:
        return serve_marked(PromptCache(), marked_prompt(body), 0.0)[0].total
    plain = (
        chat_prompt(body)
        if request.dialect is DialectName.OPENAI_CHAT
        else responses_prompt(body, body["input"])
    )
    return serve_plain(PromptCache(), plain, 0.0)[0].total


def _assert_nothing_passed(world: Pair) -> None:
    with world.store() as store:
        assert [event.detail for event in store.events() if event.name == "Bypassed"] == []
    for request in world.upstream.requests:
        assert _unpaired(request) == set()
        assert _tokens(request) <= _BUDGET


def _body(world: Pair, at: int = -1) -> str:
    return world.upstream.requests[at].decoded.decode()


def _outputs(talk: Talk) -> list[dict[str, Any]]:
    """The results in a client's history, each where its content can be changed."""
    if talk.dialect == "anthropic":
        blocks = [
            block
            for each in talk.history
            if isinstance(each.get("content"), list)
            for block in each["content"]
        ]
        return [block for block in blocks if block.get("type") == "tool_result"]
    if talk.dialect == "openai-chat":
        return [each for each in talk.history if each.get("role") == "tool"]
    return [each for each in talk.history if each.get("type") == "function_call_output"]


def _clear(talk: Talk, at: int, text: str = _CLEARED) -> None:
    _outputs(talk)[at]["output" if talk.dialect == "openai-responses" else "content"] = text


def _unpaired(request: Received) -> set[str]:
    """Calls without their result, and results without their call, as the providers' documentation
    tells it."""
    body = request.json()
    if "input" in body:
        calls = [
            each.get("call_id") or _HELD.get(each.get("id"))
            for each in body["input"]
            if each.get("type") in _CALLING
        ]
        calls = [call for call in calls if call]
        outputs = [
            each["call_id"] for each in body["input"] if each.get("type") == "function_call_output"
        ]
        return set(calls) ^ set(outputs)
    found: set[str] = set()
    waiting: set[str] = set()
    for each in body["messages"]:
        answered = set(_answered(each))
        if not answered and each["role"] == "system":
            continue
        found |= answered - waiting
        waiting -= answered
        if each["role"] != "tool":
            found |= waiting
            waiting = set(_called(each))
    return found | waiting


_CALLING = ("function_call", "item_reference")


def _told(body: str) -> list[int]:
    """The numbers of the steps that stubs tell of."""
    return [
        number
        for first, last in _STUB.findall(body)
        for number in range(int(first), int(last or first) + 1)
    ]


def _rewind(talk: Talk, steps: int) -> None:
    """To the end of so many steps."""
    ends = [at for at in range(1, len(talk.history)) if _may_end(talk.history, at)]
    del talk.history[ends[steps] :]


def _called(message: dict[str, Any]) -> Iterator[str]:
    if message["role"] == "assistant":
        yield from (call["id"] for call in message.get("tool_calls") or ())
        yield from (block["id"] for block in _blocks(message) if block["type"] == "tool_use")


def _answered(message: dict[str, Any]) -> Iterator[str]:
    if message["role"] == "tool":
        yield message["tool_call_id"]
    elif message["role"] == "user":
        yield from (
            block["tool_use_id"] for block in _blocks(message) if block["type"] == "tool_result"
        )


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else []


@pytest.mark.parametrize(("dialect", "reference"), CASES)
@pytest.mark.rest_slow
def test_a_client_that_clears_old_results_inside_what_left_is_planned_anew(
    pair, dialect, reference
):
    world = pair(_reading, strict=True, budget=_BUDGET, knobs=_WHOLE)
    talk = _begun(world, dialect, reference)

    _clear(talk, 5)
    _goes_on(talk, "a")

    _assert_nothing_passed(world)
    assert len(_body(world)) < len(talk.sent[-1]) / 2


@pytest.mark.parametrize(("dialect", "reference"), CASES)
@pytest.mark.parametrize("restart", [False, True], ids=["going on", "after a restart"])
@pytest.mark.rest_slow
def test_a_stub_that_an_edit_cuts_tells_of_the_steps_that_still_stand(
    tmp_path, dialect, reference, restart
):
    """A dozen steps and more had left behind stubs; the client rewinds to the tenth and goes on
    otherwise."""
    with ScriptedUpstream(_reading, strict=True) as upstream:
        urls = {"openai_url": upstream.openai_url, "anthropic_url": upstream.anthropic_url}
        with LocalProxy(tmp_path, **urls, budget=_BUDGET, knobs=_WHOLE) as proxy:
            world = Pair(proxy.address, upstream, tmp_path)
            talk = _begun(world, dialect, reference)
            assert max(_told(_body(world))) > 12
            _rewind(talk, 10)
            talk.say("Another way.")
            _assert_all_is_accounted_for(talk, upstream.requests[-1], tmp_path)
            assert max(_told(_body(world))) <= 10
            if not restart:
                _goes_on(talk, "b")
                _assert_nothing_passed(world)
        if restart:
            with LocalProxy(tmp_path, **urls, budget=_BUDGET, knobs=_WHOLE) as proxy:
                world, talk.address = Pair(proxy.address, upstream, tmp_path), proxy.address
                _goes_on(talk, "b")
                _assert_nothing_passed(world)
        _assert_all_is_accounted_for(talk, upstream.requests[-1], tmp_path)
        assert_each_extends_the_one_before(upstream.requests[-5:])


@pytest.mark.parametrize(("dialect", "reference"), CASES)
@pytest.mark.rest_slow
def test_what_stands_before_the_change_is_sent_as_it_was_and_an_event_tells_of_the_rest(
    pair, dialect, reference
):
    world = pair(_reading, strict=True, budget=_BUDGET, knobs=_WHOLE)
    talk = _begun(world, dialect, reference)
    before = asked(world.upstream.requests[-1]).messages

    _clear(talk, -2, "Edited.")  # behind everything that left
    _goes_on(talk, "c", turns=1)

    after = asked(world.upstream.requests[-1]).messages
    same = next(
        at
        for at, (one, other) in enumerate(zip(before, after, strict=False))
        if one.raw != other.raw
    )
    assert b"Edited." in after[same].raw
    with world.store() as store:
        assert not [event for event in store.events() if event.detail.get("cause") == Cause.REWOUND]

    _clear(talk, 3, "Edited as well.")  # inside it
    _goes_on(talk, "d", turns=1)

    with world.store() as store:
        [_] = [event for event in store.events() if event.detail.get("cause") == Cause.REWOUND]
    later = asked(world.upstream.requests[-1]).messages
    assert later[0].raw == before[0].raw
    _assert_nothing_passed(world)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.rest_slow
def test_two_lines_of_one_conversation_do_not_take_each_others_stubs(tmp_path, dialect):
    """Each goes on in its own turn, and nothing is held in memory in between."""
    with ScriptedUpstream(_reading, strict=True) as upstream:
        urls = {"openai_url": upstream.openai_url, "anthropic_url": upstream.anthropic_url}
        talks: list[Talk] = []
        for turn in range(6):
            with LocalProxy(tmp_path, **urls, budget=_BUDGET, knobs=_WHOLE) as proxy:
                world = Pair(proxy.address, upstream, tmp_path)
                if not talks:
                    talks = [_begun(world, dialect)]
                    talks.append(copy.deepcopy(talks[0]))
                    _clear(talks[1], 5)
                talk = talks[turn % 2]
                talk.address = proxy.address
                talk.results(*(_output(turn, f"e{at}") for at in range(len(talk.calls))))
                _assert_fine(talk)
                _assert_all_is_accounted_for(talk, upstream.requests[-1], tmp_path)
                if turn == 5:
                    _assert_nothing_passed(world)


def test_a_client_that_thought_only_at_the_beginning_of_its_turn_keeps_its_budget(pair):
    """Its last calls need that thought: so no message of the turn leaves, and what the results said
    does."""
    world = pair(
        lambda request: replace(
            _reading(request), thinking="" if _ends_with_results(request.json()) else "Let me see."
        ),
        strict=True,
        budget=_BUDGET,
        knobs=_WHOLE,
    )
    talk = Talk(
        world.address, "anthropic", extra={"thinking": {"type": "enabled", "budget_tokens": 1024}}
    )
    talk.say("Read the files, one after the other.")
    for number in range(_STEPS):
        talk.results(_output(number))
        _assert_fine(talk)

    _assert_nothing_passed(world)
    assert "[CTX-REF:" in _body(world)


def test_a_request_that_continues_a_reply_by_its_id_is_never_planned(pair):
    """However much it brings, and whatever left before: the provider holds the conversation."""
    world = pair(_reading, strict=True, budget=_BUDGET, knobs=Knobs())
    talk = _begun(world, "openai-responses")
    talk.extra = {"previous_response_id": talk.reply.response_id, "store": True}
    call, said = talk.calls[0].call, talk.history[:-2]
    talk.history = [
        {"type": "function_call_output", "call_id": call, "output": _output(0, "f") * 40},
        _REFERENCE,
    ]

    talk.send()

    assert world.upstream.requests[-1].body == talk.sent[-1]
    talk.extra, talk.history = {"conversation": "conv_1"}, said
    talk.send()
    assert world.upstream.requests[-1].body == talk.sent[-1]


class _Life:
    """A conversation in which anything may happen to the past, over a proxy that may be started
    again."""

    def __init__(self, folder: Path, dialect: str, seed: str, reference: str) -> None:
        self.chance = random.Random(seed)
        self.folder, self.dialect = folder, dialect
        self.thinks = self.chance.random() < 0.5
        self.always = dialect != "anthropic" or self.chance.random() < 0.7
        """It thinks before each call, not only at the beginning of a turn."""
        self.knobs = self.chance.choice(
            [_WHOLE, Knobs(high=_HIGH), Knobs(high=_HIGH, keep=2), Knobs(high=_HIGH, early=False)]
        )
        self.left: list[list[Any]] = []
        """Histories of lines that the client left."""
        self.number = 0
        self.changes = 0
        """How often the past became another one."""
        self.stack = contextlib.ExitStack()
        self.upstream = self.stack.enter_context(ScriptedUpstream(self._reply, strict=True))
        self.proxy = self._started()
        self.talk = _talk(self.proxy.address, dialect, reference)
        if self.thinks and dialect == "anthropic":
            must = {"type": "enabled", "budget_tokens": 1024}
            self.talk.extra["thinking"] = self.chance.choice([must, {"type": "adaptive"}])

    def _started(self) -> LocalProxy:
        urls = {
            "openai_url": self.upstream.openai_url,
            "anthropic_url": self.upstream.anthropic_url,
        }
        return LocalProxy(self.folder, **urls, budget=_BUDGET, knobs=self.knobs).__enter__()

    def close(self) -> None:
        self.proxy.__exit__(None, None, None)
        self.stack.close()

    def live(self, turns: int) -> None:
        self.talk.say("Read the files, one after the other.")
        self._check()
        self._work(self.chance.randint(12, 24))
        for _ in range(turns):
            self.chance.choice(
                [
                    self._clear,
                    self._clear,
                    self._edit,
                    self._edit,
                    self._fork,
                    self._fork,
                    self._back,
                    self._restart,
                    self._forget,
                ]
            )()
            self.changes += 1
            self._work(self.chance.randint(1, 5))

    def _reply(self, request: Received) -> Say:
        body, chance = request.decoded.decode(), self.chance
        opens = not _ends_with_results(request.json())
        thought = f"Thought {request.index}." if self.thinks and (self.always or opens) else ""
        calls = [
            read(f"src/part_{request.index}_{at}.py")
            for at in range(chance.choice([1, 1, 1, 2, 3]))
        ]
        stubs = re.findall(r'retrieve_context\(id=\\"(r[0-9a-f]+)', body)
        if stubs and chance.random() < 0.15:
            asked = Call("retrieve_context", {"id": chance.choice(stubs), "max_tokens": 300})
            calls = [asked] if chance.random() < 0.5 else [*calls, asked]
        elif chance.random() < 0.1:
            return Say(f"Done with {request.index}.", thinking=thought)
        return Say(f"Now the next one ({request.index}).", tuple(calls), thought)

    def _work(self, turns: int) -> None:
        for _ in range(turns):
            self.number += 1
            if self.talk.calls:
                self.talk.results(
                    *(_output(self.number, f"x{at}") for at in range(len(self.talk.calls)))
                )
            else:
                self.talk.say(f"And now number {self.number}.")
            self._check()

    def _check(self) -> None:
        _assert_fine(self.talk)
        request = self.upstream.requests[-1]
        assert _unpaired(request) == set()
        assert _tokens(request) <= _BUDGET
        _assert_all_is_accounted_for(self.talk, request, self.folder)

    def _clear(self) -> None:
        """As agents do to make room: some old results, or all but the latest."""
        many = len(_outputs(self.talk))
        last = self.chance.randrange(many) if many else 0
        for at in range(last):
            if self.chance.random() < 0.5:
                _clear(self.talk, at)

    def _edit(self) -> None:
        """A message says something else."""
        many = len(_outputs(self.talk))
        texts = [
            each
            for each in self.talk.history
            if each.get("role") in ("user", "assistant") and _text_of(each)
        ]
        if many and self.chance.random() < 0.6:
            _clear(self.talk, self.chance.randrange(many), _output(self.number, "edited"))
        elif texts:
            _say_otherwise(self.chance.choice(texts), f"Edited {self.number}.")

    def _fork(self) -> None:
        """Back to before one of the model's replies, and on with another word."""
        ends = [at for at in range(1, len(self.talk.history)) if _may_end(self.talk.history, at)]
        if ends:
            self.left.append(copy.deepcopy(self.talk.history))
            del self.talk.history[self.chance.choice(ends) :]
            self.talk.say(f"Another way, {self.number}.")
            self._check()

    def _back(self) -> None:
        """To a line that was left."""
        if self.left:
            other = self.left.pop(self.chance.randrange(len(self.left)))
            self.left.append(copy.deepcopy(self.talk.history))
            end = max(at for at in range(1, len(other) + 1) if _may_end(other, at))
            self.talk.history[:] = other[:end]
            self.talk.say(f"On with this one, {self.number}.")
            self._check()

    def _restart(self) -> None:
        self.proxy.__exit__(None, None, None)
        self.proxy = self._started()
        self.talk.address = self.proxy.address

    def _forget(self) -> None:
        """What the model thought before the latest prompt is dropped, as many clients do."""
        if self.talk.extra.get("thinking", {}).get("type") == "enabled":
            return  # back before that prompt, the thoughts would be required
        history = self.talk.history
        prompts = [
            at for at, each in enumerate(history) if each.get("role") == "user" and _text_of(each)
        ]
        before = history[: prompts[-1]]
        for each in before:
            if isinstance(each.get("content"), list):
                each["content"] = [
                    block for block in each["content"] if block.get("type") != "thinking"
                ]
            each.pop("reasoning_content", None)
        history[: prompts[-1]] = [each for each in before if each.get("type") != "reasoning"]


def _ends_with_results(body: dict[str, Any]) -> bool:
    last = (body.get("input") or body.get("messages"))[-1]
    return last.get("type") == "function_call_output" or bool(set(_answered({"role": "", **last})))


def _may_end(history: list[Any], at: int) -> bool:
    """Does a reply of the model's begin there? Then everything before it is whole."""
    return _is_models(
        history[at] if at < len(history) else {"role": "assistant"}
    ) and not _is_models(history[at - 1])


def _is_models(message: dict[str, Any]) -> bool:
    if message.get("type") == "item_reference":
        return False
    return message.get("role") == "assistant" or message.get("type") in (
        "reasoning",
        "function_call",
    )


def _text_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(
        block.get("text", "")
        for block in content or ()
        if block.get("type") in ("text", "output_text")
    )


def _say_otherwise(message: dict[str, Any], text: str) -> None:
    if isinstance(message["content"], str):
        message["content"] = text
    for block in _blocks(message):
        if "text" in block:
            block["text"] = text


def _assert_all_is_accounted_for(talk: Talk, request: Received, folder: Path) -> None:
    """Each call that the client sent is sent on, or a reference holds it; never both, and no
    reference holds anything else. A reference to one result alone stands beside its call."""
    body = request.decoded.decode()
    with contextlib.closing(SqliteStore.open(folder)) as store:
        left = [
            {store.page(page).call for page in store.reference(id).pages} - {""}
            for id in _REFERENCE_ID.findall(body)
        ]
    told = {call for calls in left for call in calls}
    assert len(told) == sum(map(len, left))
    calls = set().union(*_steps(talk))
    shown = {call for call in calls if f'"{call}"' in body or _item(call) in body}
    alone = {call for calls in left if len(calls) == 1 for call in calls}
    assert calls - told <= shown
    assert shown & told <= alone
    assert told <= calls


def _item(call: str) -> str:
    """The id of an item whose call the provider holds, as it stands in a request."""
    return next((f'"{item}"' for item, held in _HELD.items() if held == call), f'"{call}"')


def _steps(talk: Talk) -> list[set[str]]:
    """The calls in each stretch of the model's own messages, of those that were sent."""
    steps: list[set[str]] = []
    spoke = False
    for each in json.loads(talk.sent[-1])[
        "input" if talk.dialect == "openai-responses" else "messages"
    ]:
        speaks = _is_models(each) or each.get("type") == "item_reference"
        if speaks and not spoke:
            steps.append(set())
        spoke = speaks
        if speaks:
            steps[-1].update(_called({"role": "", **each}))
            if each.get("type") in _CALLING:
                call = each.get("call_id") or _HELD.get(each["id"])
                steps[-1].update([call] if call else [])
    return steps


@pytest.mark.parametrize(("dialect", "reference"), CASES)
@pytest.mark.parametrize("seed", range(sample(2, 60)))
@pytest.mark.slow
def test_whatever_a_client_does_to_its_past_its_requests_stay_valid_and_in_their_window(
    tmp_path, dialect, reference, seed
):
    life = _Life(tmp_path, dialect, f"{dialect}{reference}{seed}", reference)
    with contextlib.closing(life):
        life.live(turns=sample(5, 14))
    with contextlib.closing(SqliteStore.open(tmp_path)) as store:
        events = list(store.events())
    assert [event.detail for event in events if event.name == "Bypassed"] == []
    assert (
        sum(
            event.detail.get("cause") == Cause.REWOUND
            for event in events
            if event.name == "Evicted"
        )
        <= life.changes
    )
