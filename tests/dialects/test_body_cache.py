"""A body that goes on from one that was read before is read from there on, and says what it would
say read from its start."""

from __future__ import annotations

import json
import random

import pytest

from hotset.errors import Malformed
from hotset.nouns.message import DialectName, Request
from tests.campaign import sample
from tests.dialects.conversations import conversation
from tests.dialects.fresh import FreshParser

_LONG = "word " * 2000
"""As short as a body may be to be worth remembering."""

_FIELD = {
    DialectName.ANTHROPIC: "messages",
    DialectName.OPENAI_CHAT: "messages",
    DialectName.OPENAI_RESPONSES: "input",
}


def _read(dialect: FreshParser, body: bytes) -> Request | str:
    try:
        return dialect.parse(body)
    except Malformed as error:
        return str(error)


def _laid_out(tree: dict[str, object], rng: random.Random) -> bytes:
    """The same request as some client or other writes it."""
    names = list(tree)
    if rng.random() < 0.5:
        rng.shuffle(names)
    spaces = rng.choice([(",", ":"), (", ", ": "), (" ,\n", " : ")])
    return json.dumps(
        {name: tree[name] for name in names}, separators=spaces, ensure_ascii=rng.random() < 0.5
    ).encode()


def _damaged(body: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(body))
    return rng.choice(
        [
            body[:at] + bytes([rng.randrange(256)]) + body[at + 1 :],
            body[:at],
            body + b"x",
            body[:-1] + b', "model": "again"}',
            body[:at] + b".5" + body[at:],
            body.replace(b"}", b"}.5", 1),
        ]
    )


@pytest.mark.parametrize("name", list(DialectName))
@pytest.mark.rest_slow
def test_a_conversation_that_grows_changes_and_breaks_is_read_as_by_one_who_sees_it_for_the_first_time(  # noqa: E501
    name,
):
    rng = random.Random(11)
    seasoned = FreshParser(name)
    for _ in range(sample(60, 300)):
        whole = json.loads(conversation(name, rng))
        said = whole[_FIELD[name]]
        if not isinstance(said, list):
            continue
        said.insert(0, {"role": "user", "content": _LONG})
        layout = rng.getrandbits(32)
        for many in range(1, len(said) + 1):
            told = [dict(each) for each in said[:many]]
            if rng.random() < 0.3:
                told[rng.randrange(many)]["mark"] = rng.random()
            if rng.random() < 0.2:
                whole["extra"] = rng.random()
            body = _laid_out({**whole, _FIELD[name]: told}, random.Random(layout))
            for each in (body, _damaged(body, rng), body):
                assert _read(seasoned, each) == _read(FreshParser(seasoned.name), each)


@pytest.mark.parametrize("behind", [b".5", b"5", b"e5", b'"x"', b"{}", b" x"])
def test_what_no_json_allows_behind_a_known_message_is_refused(behind):
    dialect = FreshParser(DialectName.ANTHROPIC)
    known = b'{"model": "m", "messages": [{"role": "user", "content": "%b"}' % _LONG.encode()
    dialect.parse(known + b"]}")

    with pytest.raises(Malformed):
        dialect.parse(known + behind + b"]}")


def test_a_message_that_was_read_before_is_the_same_object():
    dialect = FreshParser(DialectName.ANTHROPIC)
    known = b'{"model": "m", "messages": [{"role": "user", "content": "%b"}' % _LONG.encode()
    first = dialect.parse(known + b"]}")
    second = dialect.parse(
        known + b', {"role": "assistant", "content": "I go"}, {"role": "user", "content": "and?"}]}'
    )

    assert second.messages[0] is first.messages[0]
    assert [message.role for message in second.messages] == ["user", "assistant", "user"]


def test_two_calls_of_one_id_tell_their_results_apart():
    use = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a.py"}}
    other = {**use, "name": "Bash", "input": {"command": "pytest -q"}}
    result = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "said"}],
    }
    said = [{"role": "assistant", "content": [each]} for each in (use, other)]
    bodies = [
        json.dumps(
            {"model": "m", "messages": [{"role": "user", "content": _LONG}, *messages]}
        ).encode()
        for messages in (
            [said[0], said[1]],
            [said[0], result],
            [said[0], said[1], result],
            [said[0], result, said[1], result],
        )
    ]
    dialect = FreshParser(DialectName.ANTHROPIC)

    for body in bodies:
        assert dialect.parse(body) == FreshParser(dialect.name).parse(body)


def test_what_is_remembered_of_bodies_is_bounded():
    dialect = FreshParser(DialectName.OPENAI_CHAT)
    for n in range(40):
        dialect.parse(
            json.dumps(
                {"model": "m", "messages": [{"role": "user", "content": f"{n}" * 200_000}]}
            ).encode()
        )

    known = dialect.cache.bodies.fronts
    assert 0 < len(known) <= 8
    assert sum(len(body) for body, _ in known) <= 4 << 20
