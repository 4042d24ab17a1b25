"""What the model asks for again, through the real proxy: only new lines are sent, and the others
are named by the turn that shows them."""

from __future__ import annotations

import json
import re

import pytest

from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.proxy.talking import Talk, assert_each_extends_the_one_before, code, looking
from tests.proxy.wire import DIALECTS

_LINES = code("f", 60).split("\n")


@pytest.fixture(params=DIALECTS)
def dialect(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["document", "stream"])
def stream(request):
    return request.param


def _part(first: int, last: int) -> str:
    """Lines of the file with their numbers, from 1, as a client prints them."""
    return "\n".join(
        f"{number:6}→{line}" for number, line in enumerate(_LINES[first - 1 : last], first)
    )


@pytest.mark.row("C2")
def test_of_overlapping_ranges_only_the_new_lines_are_sent(pair, dialect, stream):
    world = pair([looking("a.py"), looking("a.py"), looking("a.py"), Say("Seen.")], strict=True)
    talk = Talk(world.address, dialect, stream)

    talk.say("Look.")
    talk.results(_part(1, 90))
    talk.results(_part(61, 150))
    talk.results(_part(70, 140))

    sent = world.upstream.requests[-1].body.decode()
    assert [sent.count(f"def f_{n}(") for n in (0, 19, 25, 35, 49)] == [1, 1, 1, 1, 1]
    assert _says(sent, r"… lines 61-90: as in turn 1, from ")
    assert _says(sent, r"… lines 70-90: as in turn 1, from .*… lines 91-140: as in turn 2, from ")
    assert_each_extends_the_one_before(world.upstream.requests)


@pytest.mark.row("C2")
def test_what_an_excerpt_left_out_is_sent_when_it_is_asked_for_again(pair, dialect, stream):
    text = "\n".join(["$ cat a.py", *code("f", 130).split("\n")])
    world = pair([Say("", calls=(_run(n),)) for n in "abc"] + [Say("Seen.")], strict=True)
    talk = Talk(world.address, dialect, stream)

    talk.say("Look.")
    for _ in range(3):
        talk.results(text)

    first, again, third = (request.body.decode() for request in world.upstream.requests[1:])
    named = [f"return left + right + {n * 7919}\\n" for n in range(10, 120)]
    assert 0 < sum(name in first for name in named) < len(named)
    assert all(again.count(name) >= 1 for name in named)
    assert sum(again.count(name) for name in named) <= 1.2 * len(named)
    assert len(third) - len(again) < 0.2 * (len(again) - len(first))
    assert_each_extends_the_one_before(world.upstream.requests)


@pytest.mark.row("C2")
@pytest.mark.rest_slow
def test_a_restart_between_two_ranges_points_to_the_same_turn(tmp_path, dialect):
    script = [looking("a.py"), looking("a.py"), looking("a.py"), Say("Seen.")]
    with ScriptedUpstream(script, strict=True) as upstream:
        urls = {"openai_url": upstream.openai_url, "anthropic_url": upstream.anthropic_url}
        with LocalProxy(tmp_path / "data", **urls) as proxy:
            talk = Talk(proxy.address, dialect)
            talk.say("Look.")
            talk.results(_part(1, 90))
            talk.results(_part(61, 150))
        with LocalProxy(tmp_path / "data", **urls) as proxy:
            talk.address = proxy.address
            talk.results(_part(70, 140))

        sent = upstream.requests[-1].body.decode()
        assert _says(sent, r"… lines 70-90: as in turn 1, .*… lines 91-140: as in turn 2, ")
        assert_each_extends_the_one_before(upstream.requests)


def _run(name: str) -> Call:
    return looking(f"{name}.log").calls[0]


def _says(body: str, pattern: str) -> bool:
    return re.search(pattern, json.dumps(json.loads(body), ensure_ascii=False)) is not None
