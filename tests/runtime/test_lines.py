"""Messages at their places: what was linked before is not linked again, and stands where it
stood."""

from __future__ import annotations

import json
import random

import pytest

from hotset.dialects import DIALECTS
from hotset.nouns.link import link
from hotset.nouns.message import DialectName, Request
from hotset.nouns.page import ROOT
from hotset.runtime.line_weigher import LineageLinker, LineWeigher
from tests.campaign import sample
from tests.dialects.conversations import conversation
from tests.dialects.fresh import FreshParser

FIELD = {
    DialectName.ANTHROPIC: "messages",
    DialectName.OPENAI_CHAT: "messages",
    DialectName.OPENAI_RESPONSES: "input",
}
LONG = "word " * 2000
LARGE = "word " * 200_000


@pytest.mark.parametrize("name", list(DialectName))
@pytest.mark.rest_slow
def test_a_conversation_that_grows_forks_and_is_edited_is_linked_as_one_that_is_seen_for_the_first_time(  # noqa: E501
    name,
):
    rng = random.Random(5)
    dialect, linked = FreshParser(name), LineageLinker()
    for _ in range(sample(40, 200)):
        whole = json.loads(conversation(name, rng))
        if not isinstance(whole[FIELD[name]], list):
            continue
        said = [{"role": "user", "content": LONG}, *whole[FIELD[name]]]
        for many in range(1, len(said) + 1):
            told = said[:many]
            if rng.random() < 0.3:
                told[rng.randrange(many)] = {
                    "role": "user",
                    "content": f"said otherwise {rng.random()}",
                }
            request = dialect.parse(json.dumps({**whole, FIELD[name]: told}).encode())

            assert linked.of(request) == tuple(link(ROOT, request.messages))


def test_what_was_linked_before_is_the_same_object():
    dialect, linked = FreshParser(DialectName.ANTHROPIC), LineageLinker()
    said = [{"role": ("user", "assistant")[n % 2], "content": f"{n} {LONG}"} for n in range(5)]
    first, second = (
        linked.of(dialect.parse(json.dumps({"model": "m", "messages": said[:many]}).encode()))
        for many in (3, 5)
    )

    assert all(before is after for before, after in zip(first, second, strict=False))
    assert len(second) == 5


@pytest.mark.slow
def test_what_is_held_of_links_is_bounded():
    dialect, linked = FreshParser(DialectName.ANTHROPIC), LineageLinker()
    for n in range(60):
        linked.of(
            dialect.parse(
                json.dumps(
                    {"model": "m", "messages": [{"role": "user", "content": f"{n}" * 300_000}]}
                ).encode()
            )
        )

    assert linked._known.weight <= 8 << 20
    assert len(linked._known)


def _short(number: int) -> Request:
    body = {
        "model": "gpt-5.4",
        "messages": [{"role": "user", "content": f"a short question, number {number}"}],
    }
    return DIALECTS[DialectName.ANTHROPIC].parse(json.dumps(body).encode())


def test_short_conversations_are_bounded_by_their_number_not_only_by_their_bytes():
    """20,000 of one message each grew the proxy by 14 MB for each thousand."""
    linked, scales = LineageLinker(), LineWeigher()
    for number in range(1000):
        request = _short(number)
        scales.lines(linked.of(request), request.model, {})

    assert linked._known.weight > 1000 * len(linked._known), (
        "the objects around a short message are not counted"
    )
    assert len(scales._held) == 256
    assert scales._held.weight < 1 << 20
    held = len(scales._held)
    scales.lines(linked.of(_short(0)), "gpt-5.4", {})
    assert len(scales._held) == held


def test_a_message_that_was_weighed_is_not_weighed_again_while_its_conversation_is_held():
    request, linked, scales = _short(1), LineageLinker(), LineWeigher()
    first = scales.lines(linked.of(request), request.model, {})
    for number in range(2, 100):
        scales.lines(linked.of(_short(number)), request.model, {})
    assert scales.lines(linked.of(request), request.model, {})[0] is first[0]


@pytest.mark.slow
def test_one_conversation_that_was_rewound_often_holds_no_more_than_it_says_and_is_weighed_as_before():  # noqa: E501
    dialect, linked, scales = DIALECTS[DialectName.ANTHROPIC], LineageLinker(), LineWeigher()
    for number in range(80):
        texts = [{"type": "text", "text": text} for text in (f"{number}", LARGE)]
        said = [{"role": "user", "content": "begin"}, {"role": "assistant", "content": texts}]
        request = dialect.parse(json.dumps({"model": "gpt-5.4", "messages": said}).encode())
        links = linked.of(request)
        lines = scales.lines(links, request.model, {})
    assert scales._held.weight <= 64 << 20
    held = [
        line
        for by_chain in scales._held.get(links[0].chain).lines.values()
        for line in by_chain.values()
    ]
    assert scales._held.weight == sum(
        1000 + sum(len(piece.content) for piece in line.pieces) for line in held
    )
    assert lines == LineWeigher().lines(links, request.model, {})
