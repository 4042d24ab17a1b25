"""The contract of a source: hotset can use any source that passes `check_source`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence

from hotset.dialects import DIALECTS
from hotset.dialects.port import OwnCall
from hotset.nouns.candidate import Candidate, OfferSlot
from hotset.nouns.knobs import Knobs
from hotset.nouns.link import link
from hotset.nouns.message import DialectName, Reply, ToolSpec
from hotset.nouns.page import ROOT
from hotset.nouns.price import Price
from hotset.nouns.search import Query
from hotset.nouns.turn import TurnId
from hotset.nouns.window import PageTable, SentRequest
from hotset.sources.port import Scene, Source, TurnEnd
from hotset.store.port import Store
from hotset.testing.contract import checks_in, on_fresh
from hotset.testing.ram_store import RamStore

OpenSource = Callable[[], Source]
"""Opens a new source."""

_SECONDS = 10.0
"""Time for an offer: the contract is about what is offered, not about the machine's speed."""

_TOOL = {"name": "read_file", "description": "Reads a file.", "input_schema": {"type": "object"}}
_PROMPTS = (
    "Please mend the rounding in src/shop/basket.py, and create an issue about it.",
    'quotes " and {braces} and \\ and \n lines',
    "\N{GRINNING FACE} ünïcode \N{ZERO WIDTH SPACE}",
    "word " * 5000,
)


def check_source(open_source: OpenSource) -> None:
    """Raises an AssertionError with a sentence if the source breaks its contract."""
    for check in CHECKS:
        check(open_source)


def make_scene(
    store: Store, *texts: str, turn: str = "t1", now: float = 1.0, sent: float | None = None
) -> Scene:
    """A request with these messages, alternating prompt and reply; `sent` is when the previous
    request went out."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": each} for at, each in enumerate(texts)]
    body = {"model": "claude-sonnet-5", "max_tokens": 99, "tools": [_TOOL], "messages": messages}
    request = DIALECTS[DialectName.ANTHROPIC].parse(json.dumps(body).encode())
    links = tuple(link(ROOT, request.messages))
    before = links[-3].chain if len(links) > 2 else links[-1].chain
    return Scene(
        turn=TurnId(turn),
        request=request,
        links=links,
        table=PageTable(sent=SentRequest(before, sent) if sent is not None else None),
        hidden={},
        price=Price(3.0, 15.0),
        knobs=Knobs(),
        now=now,
        store=store,
        opens=len(texts) == 1,
        prompt=texts[-1],
        room=100_000,
        count=lambda text: len(text) // 4,
    )


@on_fresh
def check_it_has_a_name_and_tools_of_its_own(source: Source) -> None:
    assert source.name, "a source has no name"
    names = [spec.name for spec in source.tools]
    assert len(names) == len(set(names)), "two tools of a source have one name"


@on_fresh
def check_its_candidates_can_be_decided_about(source: Source) -> None:
    store = RamStore()
    for number, prompt in enumerate(_PROMPTS):
        for each in _offers(source, make_scene(store, prompt, turn=f"t{number}")):
            assert each.source == source.name, "a candidate is of another source"
            assert each.key, "a candidate has no key"
            assert 0.0 <= each.worth <= 1.0, "a worth is no probability"
            assert each.tokens >= 0, "a candidate takes less than nothing"
            is_tool = isinstance(each.body, ToolSpec)
            assert is_tool == (each.slot is OfferSlot.TOOL_LIST), "a body does not fit its slot"


@on_fresh
def check_an_offer_that_was_not_taken_leaves_no_trace(source: Source) -> None:
    scene = make_scene(RamStore(), _PROMPTS[0])
    assert _offers(source, scene) == _offers(source, scene), (
        "the same request is offered something else"
    )


@on_fresh
def check_offers_in_a_session_stay_unchanged(source: Source) -> None:
    if not source.standing:
        return
    store = RamStore()
    first = make_scene(store, _PROMPTS[0])
    taken = _offers(source, first)
    source.took(first, taken)
    replied = make_scene(store, _PROMPTS[0], "Done.")
    reply = Reply(replied.request.messages[1:], complete=True)
    source.heard(TurnEnd(first, taken, None, reply, replied.links[1:], heard=True))
    later = make_scene(store, _PROMPTS[0], "Done.", "Now another thing.", turn="t2", sent=1.0)
    bodies = [each.body for each in _offers(source, later)]
    assert bodies == [each.body for each in taken], "what a session had is not offered again"


@on_fresh
def check_it_hears_of_turns_for_which_it_offered_nothing(source: Source) -> None:
    scene = make_scene(RamStore(), "Hello.", turn="unknown")
    for heard in (True, False, True):
        source.took(scene, ())
        source.heard(TurnEnd(scene, (), None, Reply(), (), heard=heard))


@on_fresh
def check_what_it_does_not_know_is_not_its_own(source: Source) -> None:
    store = RamStore()
    for name in ("", "nothing__of_ours", "read_file"):
        assert not source.owns(name), "a source owns a tool that it does not have"
        assert source.read(name, store) is None, "a source reads what it does not have"
        assert not source.was_read(name, 1, make_scene(store, "Hello.")), (
            "a source keeps a read of what it does not have"
        )


@on_fresh
def check_a_search_never_fails_for_its_words(source: Source) -> None:
    for words in ("", *_PROMPTS):
        source.find(Query(words, most=3, deadline=_SECONDS))


@on_fresh
def check_a_bad_call_is_answered_in_words(source: Source) -> None:
    scene = make_scene(RamStore(), _PROMPTS[0])
    source.took(scene, _offers(source, scene))
    for spec in source.tools:
        call = OwnCall("c1", spec.name, b"[1, 2")
        answer = asyncio.run(source.answer(call, scene))
        assert answer.failed, "a call with broken arguments did not fail"
        assert answer.text.strip(), "a call with broken arguments gets no explanation"
        assert answer.call == "c1", "an answer is to another call"


def _offers(source: Source, scene: Scene) -> Sequence[Candidate]:
    return list(source.offer(scene, time.monotonic() + _SECONDS))


CHECKS = checks_in(globals())
