"""What a dialect remembers makes it faster and changes nothing."""

from __future__ import annotations

import json
import random

import pytest

from hotset.nouns.message import DialectName
from hotset.nouns.page import Kind
from tests.campaign import sample
from tests.dialects.conversations import conversation
from tests.dialects.fresh import FreshParser


@pytest.mark.parametrize("name", list(DialectName))
def test_a_dialect_that_has_seen_much_reads_as_one_that_has_seen_nothing(name):
    rng = random.Random(7)
    seasoned = FreshParser(name)
    for _ in range(sample(100, 300)):
        body = conversation(name, rng)
        assert seasoned.parse(body) == FreshParser(seasoned.name).parse(body)
        assert seasoned.parse(body) == FreshParser(seasoned.name).parse(body)


def _two_turns(tool: str, arguments: dict[str, str]) -> bytes:
    use = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": arguments}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "the same result"}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    return json.dumps({"model": "m", "max_tokens": 1, "messages": messages}).encode()


def test_a_result_is_read_by_the_call_it_answers_not_by_one_with_the_same_id_elsewhere():
    dialect = FreshParser(DialectName.ANTHROPIC)
    read, tested = (
        _two_turns("Read", {"file_path": "a.py"}),
        _two_turns("Bash", {"command": "pytest -q"}),
    )

    kinds = [
        (
            dialect.parse(body).messages[2].parts[0].tool,
            dialect.parse(body).messages[2].parts[0].kind,
        )
        for body in (read, tested, read)
    ]

    assert kinds == [("Read", Kind.FILE), ("Bash", Kind.TEST_RESULT), ("Read", Kind.FILE)]


def test_what_is_remembered_is_bounded():
    dialect = FreshParser(DialectName.OPENAI_CHAT)
    for n in range(60):
        body = json.dumps(
            {"model": "m", "messages": [{"role": "user", "content": f"{n}" * 300_000}]}
        ).encode()
        dialect.parse(body)

    assert dialect.cache.messages.weight <= 8 << 20
