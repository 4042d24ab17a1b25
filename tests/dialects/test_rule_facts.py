"""What is remembered of messages changes no verdict."""

import copy
import json
import threading
from random import Random

import pytest

from hotset.dialects import DIALECTS, anthropic, chat, envelope, responses
from hotset.dialects.envelope import FactCache
from hotset.errors import Malformed
from hotset.nouns.message import DialectName, Message
from hotset.nouns.page import Digest, Role
from tests.campaign import sample
from tests.dialects.conversations import conversation
from tests.dialects.test_invariants import FAULTS, MORE_FAULTS

CHECKS = {
    DialectName.ANTHROPIC: (anthropic.rules.check, lambda: FactCache(anthropic.rules._facts)),
    DialectName.OPENAI_CHAT: (chat.rules.check, lambda: FactCache(chat.rules._facts)),
    DialectName.OPENAI_RESPONSES: (
        responses.rules.check,
        lambda: FactCache(responses.rules._facts),
    ),
}


def _message(raw):
    return Message(Role.USER, raw, (), Digest(""))


def _spoiled(body, rng):
    """The body with some of its values dropped, said twice, moved or exchanged for others from
    elsewhere in it."""
    body = copy.deepcopy(body)
    for _ in range(rng.randint(0, 3)):
        places = list(_places(body.get("messages", body.get("input"))))
        if not places:
            break
        (holder, key), (other, name) = rng.choice(places), rng.choice(places)
        match rng.randrange(5):
            case 0:
                del holder[key]
            case 1:
                holder[key] = copy.deepcopy(other[name])
            case 2 if isinstance(holder, list):
                holder.insert(rng.randint(0, len(holder)), copy.deepcopy(holder[key]))
            case 3 if isinstance(holder, list):
                holder.insert(rng.randint(0, len(holder) - 1), holder.pop(key))
            case _:
                holder[key] = rng.choice(
                    [
                        "",
                        " ",
                        "user",
                        "assistant",
                        "system",
                        "tool_use",
                        "tool_result",
                        "image",
                        [],
                        {},
                        1,
                    ]
                )
    return body


def _places(tree):
    """Every value in a tree, as what holds it and its key there."""
    for key, value in (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    ):
        yield tree, key
        yield from _places(value)


def _parsed(dialect, body):
    try:
        return dialect.parse(json.dumps(body).encode())
    except Malformed:  # what cannot be parsed is never checked
        return None


@pytest.mark.parametrize("name", list(CHECKS))
@pytest.mark.rest_slow
def test_a_request_whose_history_was_checked_before_gets_the_verdict_of_one_that_was_not(name):
    check, fresh = CHECKS[name]
    dialect, warm = DIALECTS[name], fresh()
    found = 0
    for seed in range(sample(120, 300)):
        rng = Random(seed)
        body = json.loads(conversation(name, rng))
        original = _parsed(dialect, body)
        for _ in range(3):
            request = _parsed(dialect, _spoiled(body, rng))
            if request is not None:
                verdict = check(request, original, warm)
                assert verdict == check(request, original, fresh()), seed
                assert check(request, None, warm) == check(request, None, fresh()), seed
                found += bool(verdict)
    assert found > sample(40, 100)


@pytest.mark.parametrize("fault", [*FAULTS, *MORE_FAULTS], ids=lambda fault: f"rule{fault[0]}")
def test_a_seeded_fault_is_found_in_a_conversation_that_was_fine_before(fault):
    rule, where, dialect, base, spoil = fault
    check, fresh = CHECKS[dialect.name]
    warm = fresh()
    original = _parsed(dialect, base)
    assert check(original, None, warm) == ()
    spoiled = copy.deepcopy(base)
    spoil(spoiled)
    found = check(_parsed(dialect, spoiled), original, warm)
    assert [each for each in found if each.invariant == rule and each.where.startswith(where)]
    assert check(original, None, warm) == ()


def test_a_message_is_looked_into_once():
    looked = []
    recall = FactCache(lambda raw: looked.append(raw) or len(raw))
    first, second = _message(b"aa"), _message(b"bbb")
    assert recall.of([first]) == [2]
    assert recall.of([first, second]) == [2, 3]
    assert recall.of([_message(bytes(bytearray(b"aa"))), second, first]) == [2, 3, 2]
    assert looked == [b"aa", b"bbb"]


def test_the_longest_unused_is_forgotten_first_and_what_is_huge_is_not_remembered():
    looked = []
    recall = FactCache(lambda raw: looked.append(raw[:1]) or len(raw))
    size = envelope.LARGEST_MESSAGE
    letters = [bytes([each]) for each in range(envelope.MOST_MESSAGE_BYTES // size)]
    recall.of([_message(each * size) for each in letters])
    recall.of([_message(letters[0] * size)])
    recall.of([_message(b"new" * (size // 3))])
    looked.clear()
    recall.of([_message(letters[0] * size), _message(letters[1] * size)])
    assert looked == [letters[1]]
    huge = _message(b"h" * (size + 1))
    assert recall.of([huge]) == recall.of([huge]) == [size + 1]
    assert looked == [letters[1], b"h", b"h"]


def test_threads_may_share_what_is_remembered():
    recall = FactCache(len)
    messages = [_message(bytes([n % 251]) * (n + 1)) for n in range(500)]
    got = []

    def work():
        got.extend(recall.of(messages) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert got == [list(range(1, 501))] * 80
