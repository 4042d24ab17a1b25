"""Messages at their places: what was linked before is not linked again, and stands where it stood."""

from __future__ import annotations

import json
import random

import pytest

from hotset.dialects import DIALECTS
from hotset.nouns.link import link
from hotset.nouns.message import DialectName
from hotset.nouns.page import ROOT
from hotset.runtime.lines import Linked
from tests.campaign import sample
from tests.dialects.conversations import conversation

FIELD = {DialectName.ANTHROPIC: "messages", DialectName.OPENAI_CHAT: "messages", DialectName.OPENAI_RESPONSES: "input"}
LONG = "word " * 2000


@pytest.mark.parametrize("name", list(DialectName))
def test_a_conversation_that_grows_forks_and_is_edited_is_linked_as_one_that_is_seen_for_the_first_time(name):
    rng = random.Random(5)
    dialect, linked = type(DIALECTS[name])(), Linked()
    for _ in range(sample(40, 200)):
        whole = json.loads(conversation(name, rng))
        if not isinstance(whole[FIELD[name]], list):
            continue
        said = [{"role": "user", "content": LONG}, *whole[FIELD[name]]]
        for many in range(1, len(said) + 1):
            told = said[:many]
            if rng.random() < 0.3:
                told[rng.randrange(many)] = {"role": "user", "content": f"said otherwise {rng.random()}"}
            request = dialect.parse(json.dumps({**whole, FIELD[name]: told}).encode())

            assert linked.of(request) == tuple(link(ROOT, request.messages))


def test_what_was_linked_before_is_the_same_object():
    dialect, linked = type(DIALECTS[DialectName.ANTHROPIC])(), Linked()
    said = [{"role": ("user", "assistant")[n % 2], "content": f"{n} {LONG}"} for n in range(5)]
    first, second = (linked.of(dialect.parse(json.dumps({"model": "m", "messages": said[:many]}).encode())) for many in (3, 5))

    assert all(before is after for before, after in zip(first, second, strict=False))
    assert len(second) == 5


def test_what_is_held_of_links_is_bounded():
    dialect, linked = type(DIALECTS[DialectName.ANTHROPIC])(), Linked()
    for n in range(60):
        linked.of(dialect.parse(json.dumps({"model": "m", "messages": [{"role": "user", "content": f"{n}" * 300_000}]}).encode()))

    sizes = [size for size, _ in linked._known.values()]
    assert sum(sizes) == linked._size <= 8 << 20
    assert sizes
