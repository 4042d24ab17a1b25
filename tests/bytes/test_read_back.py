"""The store alone says what every turn sent: its knobs, offers, forms, uses and faults are those
that the provider got and the model made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from hotset.config import Config
from hotset.dialects import DIALECTS
from hotset.learn.events import Change, ChangeDecision, GateVerdict, TrialSetting, change_id
from hotset.nouns.candidate import OfferSlot
from hotset.nouns.knobs import NEVER, Knobs
from hotset.nouns.link import link
from hotset.nouns.message import Request
from hotset.nouns.page import ROOT
from hotset.nouns.turn import Turn
from hotset.nouns.window import WHOLE, Form, PageTable
from hotset.runtime.decision import Difference, TurnDecision, difference, read_decision
from hotset.runtime.learned_state import learn_event
from hotset.runtime.renderer import Renderer
from hotset.runtime.session_arm import SessionArm, arm_of_session
from hotset.store.port import Store
from hotset.store.sqlite import SqliteStore
from hotset.window.deferred_tools import ANCHOR
from hotset.window.price import price_of
from hotset.window.retrieval_tools import OUR_TOOLS
from tests.bytes.sessions import SESSIONS
from tests.bytes.stage import Stage, StagedCall

_LEARNED = {"limits.file": {"over": 3000, "room": 2000}, "keep": 6}
_REPLY_ROOM = 8192  # tokens, where a client names none
_BLIND = {"limit": NEVER, "limits": {}, "tools": {}, "echo": False, "early": False, "most": 0}
"""The knobs of a request whose model cannot ask for anything back."""

_TWENTY = (
    ("births-anthropic", "default"),
    ("births-chat-stream", "learned"),
    ("births-responses-stream", "off"),
    ("repeats-anthropic-stream", "default"),
    ("repeats-chat", "off"),
    ("pressure-anthropic-stream", "learned"),
    ("pressure-chat", "default"),
    ("pressure-responses-stream", "lean"),
    ("recalls-anthropic-stream", "default"),
    ("recalls-chat-stream", "default"),
    ("recalls-responses", "default"),
    ("forks-anthropic", "learned"),
    ("restarts-anthropic-stream", "default"),
    ("toolbox-chat-stream", "default"),
    ("deferred-anthropic-stream", "default"),
    ("deferred-responses", "default"),
    ("servers-responses-stream", "default"),
    ("memories-chat", "lean"),
    ("memories-anthropic-stream", "learned"),
    ("switches-chat", "default"),
)
"""Sessions, each with the arm that it runs in."""


@pytest.mark.row("M9")
@pytest.mark.parametrize(("name", "arm"), [_TWENTY[4], _TWENTY[12], _TWENTY[13]])
def test_the_store_says_of_every_turn_what_the_provider_got(name, arm, tmp_path):
    _check(name, arm, tmp_path)


@pytest.mark.row("M9")
@pytest.mark.slow
@pytest.mark.parametrize(("name", "arm"), _TWENTY)
def test_the_store_says_it_of_twenty_sessions(name, arm, tmp_path):
    _check(name, arm, tmp_path)


def _check(name: str, arm: str, folder) -> None:
    with Stage(folder) as stage:
        _learn(stage, arm)
        SESSIONS[name](stage)
        stage.proxy.wait_until_kept()
        with closing(SqliteStore.open(stage.folder)) as store:
            found = [each for call in stage.calls for each in _differences(call, arm, store)]
            kept = sum(len(list(store.turns(each.id))) for each in store.sessions())
            arms = {arm_of_session(store, each.id).name for each in store.sessions()}
    assert not found, "\n".join(found[:12])
    assert kept == len(stage.calls) > 0
    assert arm in arms or arm == "learned"


def _learn(stage: Stage, arm: str) -> None:
    """Makes the sessions of a stage run in an arm."""
    id = change_id(_LEARNED, "limits")
    events = {
        "learned": (
            ("ChangeProposed", Change(id, _LEARNED, {}, "limits", "14 of 31 were asked back")),
            ("ChangeGated", GateVerdict(id, True, 0.05, 0.01, 0.09, 12, why="passed")),
            ("ChangeAdopted", ChangeDecision(id, "it saves 5 %")),
        ),
        "default": (),
    }.get(arm, (("TrialChanged", TrialSetting({arm: 0.9})),))
    with closing(SqliteStore.open(stage.folder)) as store:
        for name, payload in events:
            store.keep(learn_event(name, payload, stage.clock())).result()


def _differences(call: StagedCall, arm: str, store: Store) -> Iterator[str]:
    """Every difference between what the store says of a turn and what the provider saw of it."""
    assert call.place is not None
    turn = next(each for each in store.turns(call.place.session) if each.ref == call.place)
    sent = difference(store, turn, DIALECTS, inject=call.config.inject)
    decided = read_decision(store, turn)
    own = DIALECTS[turn.dialect].parse(call.body)
    links = tuple(link(ROOT, own.messages))
    table = store.table([each.chain for each in links], turn.ref)
    checks: tuple[Callable[[], tuple[Any, Any]], ...] = (
        lambda: (_messages(_as_sent(own, table, turn)), _messages(call.requests[0].decoded)),
        lambda: (sorted(sent.tools), _our_tools(call, turn)),
        lambda: (sent.bill.calls if sent.bill else 0, len(call.requests)),
        lambda: (decided.knobs, _knobs(call, decided.arm, turn, sent) if sent.planned else None),
        lambda: ([each.tool for each in decided.asked_back], _asked_back(call, sent)),
        lambda: (_faults(sent), _counted(decided)),
        lambda: ([each for each in decided.used if "-" not in each], _used(call, sent)),
        lambda: (_missing_forms(decided, table, call), []),
        lambda: (_wrong_offers(decided, table, turn, sent), []),
        # calls of ours beside the client's follow; the next request has them
        lambda: (_hidden_rounds(store, turn)[: len(_rounds(call))], _rounds(call)),
        lambda: (decided.arm.is_off, arm == "off" and call.requests[0].body == call.body),
        lambda: (decided.arm.values, _changes(call, decided.arm, arm)),
    )
    for number, check in enumerate(checks):
        stored, seen = check()
        if stored != seen:
            yield f"{turn.ref} check {number}: {str(stored)[:600]} != {str(seen)[:600]}"


def _as_sent(own: Request, table: PageTable, turn: Turn) -> bytes:
    """The client's request in the forms that the store has for it."""
    dialect, links = DIALECTS[turn.dialect], tuple(link(ROOT, own.messages))
    return dialect.render(Renderer().as_planned(own, links, table.shown, table.hidden, dialect))


def _messages(body: bytes) -> Any:
    fields = json.loads(body)
    return _unmarked(fields.get("messages", fields.get("input")))


def _unmarked(value: Any) -> Any:
    """Without marks for the provider's cache, which are no part of what the model reads."""
    if isinstance(value, list):
        return [_unmarked(each) for each in value]
    if not isinstance(value, dict):
        return value
    bare = {key: _unmarked(each) for key, each in value.items() if key != "cache_control"}
    if "role" in bare and isinstance(bare.get("content"), str):
        bare["content"] = [{"type": "text", "text": bare["content"]}]
    return bare


def _our_tools(call: StagedCall, turn: Turn) -> list[str]:
    """The tools that the model can call beside the client's: those in the list, and those that
    the conversation loads."""
    dialect = DIALECTS[turn.dialect]
    asked = dialect.parse(call.requests[0].decoded)
    loaded = (name for message in asked.messages for name in dialect.loaded_tools(message.raw))
    listed = ("find_tools" if tool.name == "tool_search" else tool.name for tool in asked.tools)
    theirs = {tool.name for tool in dialect.parse(call.body).tools}
    return sorted({*listed, *loaded} - theirs - {ANCHOR.name})


def _changes(call: StagedCall, given: SessionArm, arm: str) -> dict[str, Any]:
    """What the session's arm should change."""
    assert given.name in ("default", arm)
    profiles = call.config.profiles
    if not given.is_random or given.is_off:  # a client's past that nobody saw begin, or the control
        return {}
    if given.name != "default":
        return profiles[given.name].changed(profiles["default"])
    return _LEARNED if arm == "learned" else {}


def _knobs(call: StagedCall, arm: SessionArm, turn: Turn, sent: Difference) -> dict[str, Any]:
    """The knobs that a call should have run with, from its settings."""
    config: Config = call.config
    assert sent.bill is not None
    price = price_of(turn.model, config.prices, sent.bill.upstream)
    wanted = json.loads(call.body).get("max_tokens", _REPLY_ROOM)
    room = price.window - min(wanted, price.longest_reply)
    knobs = config.knobs_for(turn.agent).with_changes(arm.values)
    knobs = knobs.turned({"window": min(config.budget or room, room)})
    asked = DIALECTS[turn.dialect].parse(call.requests[0].decoded)
    is_askable = any(tool.name.endswith("retrieve_context") for tool in asked.tools)
    return (knobs if is_askable else knobs.turned(_BLIND)).changed(Knobs())


def _asked_back(call: StagedCall, sent: Difference) -> list[str]:
    ours = (each.name for said in call.said for each in said.calls if each.name in OUR_TOOLS)
    return list(ours) if sent.planned and sent.tools else []


def _faults(sent: Difference) -> tuple[int, int]:
    return (sent.bill.faults, sent.bill.refaults) if sent.bill else (0, 0)


def _counted(decided: TurnDecision) -> tuple[int, int]:
    return len(decided.asked_back), sum(each.is_refault for each in decided.asked_back)


def _used(call: StagedCall, sent: Difference) -> list[str]:
    """The tools of the toolbox that the model called; one that does not exist has no name."""
    calls = (each for said in call.said for each in said.calls)
    names = [
        each.arguments["name"] if each.name == "use_tool" else each.name
        for each in calls
        if each.name == "use_tool" or "__" in each.name
    ]
    return ["" if name.startswith("moon") else name for name in names] if sent.tools else []


def _missing_forms(decided: TurnDecision, table: PageTable, call: StagedCall) -> list[str]:
    """Forms that this turn decided, of which the provider's request has no word."""
    said = set(_texts(json.loads(call.requests[0].decoded)))
    left = {spot.chain for spot, row in table.shown.items() if row.form is Form.GONE}
    left |= {spot.chain for spot in table.shown if spot.position == WHOLE}
    return [
        f"{each.row.form} of {each.page.id if each.page else each.row.spot}"
        for each in decided.forms
        if each.row.text
        and (each.row.spot.position == WHOLE or each.row.spot.chain not in left)
        and not any(each.row.text.decode() in text for text in said)
    ]


def _wrong_offers(
    decided: TurnDecision, table: PageTable, turn: Turn, sent: Difference
) -> list[str]:
    """Offers that are not behind the prompt, or in the list, though they were taken; or are though
    they were not."""
    hidden = table.hidden.get(turn.head)
    told = b" ".join(hidden.after if hidden is not None else ()).decode()
    return [
        f"{each.key} {each.verdict}"
        for each in decided.candidates
        for key in each.key.split(",")
        if each.is_taken != (key in (sent.tools if each.slot == OfferSlot.TOOL_LIST else told))
    ]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _hidden_rounds(store: Store, turn: Turn) -> list[Any]:
    """The rounds of a turn that its client did not see, from the store."""
    line = [node.chain for node in store.nodes(turn.session) if node.turn == turn.number]
    rows = store.table(line).hidden
    raws = [raw for chain in line if chain in rows for raw in rows[chain].before]
    return [_unmarked(json.loads(raw)) for raw in raws]


def _rounds(call: StagedCall) -> list[Any]:
    """What was added to the request in the rounds of its turn, without what the client saw."""
    first, last = (_messages(call.requests[at].decoded) for at in (0, -1))
    assert last[: len(first)] == first
    return [each for each in last[len(first) :] if each.get("type") not in ("message", "reasoning")]


def test_a_form_that_is_not_in_the_request_is_a_difference(tmp_path):
    """The check itself can fail."""
    with Stage(tmp_path) as stage:
        SESSIONS["repeats-chat"](stage)
        stage.proxy.wait_until_kept()
        with closing(SqliteStore.open(stage.folder)) as store:
            call = next(
                each
                for each in stage.calls
                if any(
                    form.row.form is not Form.FULL
                    for form in read_decision(store, _turn(store, each)).forms
                )
            )
            other = stage.calls[0]
            assert call.place is not None
            wrong = StagedCall(
                call.talk, call.body, call.config, other.requests, call.said, call.place, {}
            )
            assert list(_differences(call, "default", store)) == []
            assert len(list(_differences(wrong, "default", store))) >= 2


def _turn(store: Store, call: StagedCall) -> Turn:
    assert call.place is not None
    return next(each for each in store.turns(call.place.session) if each.ref == call.place)
