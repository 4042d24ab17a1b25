"""Cache marks: only inserted, never too many, accepted by the rules, where the cache is read."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from hotset.dialects import DIALECTS
from hotset.nouns.message import DialectName
from hotset.nouns.price import Price
from hotset.nouns.window import Plan
from hotset.runtime.cache_marks import NO_MARKS, CacheMarks, choose_marks, lasting_pays
from hotset.runtime.renderer import draw_body
from hotset.testing.upstream.cache import PromptCache, marked_prompt, serve_marked
from tests.dialects.conversations import conversations

ANTHROPIC = DIALECTS[DialectName.ANTHROPIC]
CLAUDE = Price(3, 15, lookback=20)
MARK = {"type": "ephemeral"}


def _without_marks(tree):
    if isinstance(tree, list):
        return [_without_marks(each) for each in tree]
    if isinstance(tree, dict):
        return {name: _without_marks(tree[name]) for name in tree if name != "cache_control"}
    return tree


def _body(*messages, **fields):
    return json.dumps(
        {"model": "claude-sonnet-4-6", "max_tokens": 9, **fields} | {"messages": messages}
    )


def _prompt(text):
    return {"role": "user", "content": text}


def _step(number, results=1, *, calls=True):
    ids = [f"toolu_{number}_{each}" for each in range(results)] if calls else []
    uses = [{"type": "tool_use", "id": id, "name": "read", "input": {}} for id in ids]
    yield {"role": "assistant", "content": [{"type": "text", "text": "So."}, *uses]}
    answers = [{"type": "tool_result", "tool_use_id": id, "content": "x" * 900} for id in ids]
    yield {"role": "user", "content": answers or "And then?"}


def _conversation(*steps, **fields):
    return _body(_prompt("Do it."), *(each for step in steps for each in step), **fields)


def _marked(body, marks, specs=()):
    return draw_body(ANTHROPIC.parse(body), specs, marks, ANTHROPIC)[1]


def _is_insertion(before, after):
    rest = iter(after)
    return all(any(byte == each for each in rest) for byte in before)


@given(body=conversations(DialectName.ANTHROPIC), seed=st.integers(0, 99))
@settings(max_examples=150, deadline=None)
def test_marks_are_only_inserted_and_the_provider_accepts_them(body, seed):
    request = ANTHROPIC.parse(body)
    texts = [part.content for each in request.messages for part in each.parts]
    stubs = frozenset(Random(seed).sample(texts, min(2, len(texts))))
    own = ANTHROPIC.marking.read(request)
    marked = _marked(body, CacheMarks(everywhere=not own.count, stubs=stubs))
    after = ANTHROPIC.parse(marked)

    assert _is_insertion(body, marked)
    assert ANTHROPIC.marking.read(after).count <= max(4, own.count)
    assert marked_prompt(json.loads(marked)).blocks == tuple(
        _with_ttl_of(then, now)
        for then, now in zip(
            marked_prompt(json.loads(body)).blocks,
            marked_prompt(json.loads(marked)).blocks,
            strict=True,
        )
    )
    assert [each.essence for each in after.messages] == [each.essence for each in request.messages]
    broken = {each.invariant for each in ANTHROPIC.check(request)}
    assert {each.invariant for each in ANTHROPIC.check(after, request)} <= broken
    if not own.count:
        serve_marked(PromptCache(), marked_prompt(json.loads(marked)), 0.0)


def _with_ttl_of(block, other):
    assert block.raw == other.raw  # what the cache compares
    assert block.ttl is None or other.ttl == block.ttl
    return other


def test_a_string_is_wrapped_as_the_block_that_it_stands_for():
    body = _conversation(system="Be brief.").encode()
    marked = json.loads(_marked(body, CacheMarks(everywhere=True)))

    wrapped = [{"type": "text", "text": "Do it.", "cache_control": MARK}]
    assert marked["messages"] == [{"role": "user", "content": wrapped}]
    assert marked["system"] == [{"type": "text", "text": "Be brief.", "cache_control": MARK}]


@pytest.mark.parametrize(
    "content",
    [
        "  ",
        [],
        [{"type": "text", "text": ""}],
        [{"type": "text", "text": "x", "cache_control": None}],
        [{"type": "search_result", "source": "s"}],
        None,
    ],
)
def test_what_cannot_carry_a_mark_gets_none(content):
    body = _body(_prompt("Do it."), *_step(1), _prompt(content)).encode()
    marked = json.loads(_marked(body, CacheMarks(everywhere=True)))

    assert marked["messages"][-1]["content"] == content


def test_a_deferred_tool_and_a_tool_of_the_provider_are_not_marked():
    tools = [
        {"name": "read", "input_schema": {"type": "object"}},
        {"type": "web_search_20250305", "name": "web_search"},
        {"name": "later", "input_schema": {"type": "object"}, "defer_loading": True},
    ]
    body = _conversation(_step(1), tools=tools).encode()
    marked = json.loads(_marked(body, CacheMarks(everywhere=True)))

    assert ["cache_control" in tool for tool in marked["tools"]] == [True, False, False]


@pytest.mark.parametrize("field", ["automatic", "system", "message", "four"])
def test_a_clients_own_marks_stay_and_get_none_but_one_behind_what_has_left(field):
    system = [{"type": "text", "text": "Be brief."} for _ in range(3)]
    steps = [list(_step(number)) for number in range(3)]
    stub = [_prompt("[hotset: turns 1-9 left]")]
    fields = {}
    if field == "automatic":
        fields["cache_control"] = MARK
    if field in ("system", "four"):
        for block in system:
            block["cache_control"] = MARK
    if field in ("message", "four"):
        steps[-1][-1]["content"][-1]["cache_control"] = MARK
    body = _conversation(stub, *steps, system=system, **fields).encode()
    marks = CacheMarks(stubs=frozenset({b"[hotset: turns 1-9 left]"}))
    marked = json.loads(_marked(body, marks))

    assert _without_marks(marked["messages"][2:]) == _without_marks(
        json.loads(body)["messages"][2:]
    )
    where = marked["messages"][1]["content"]
    if field in ("automatic", "message"):
        assert where[-1]["cache_control"] == MARK
    else:  # no mark behind it, or no mark free
        assert where == "[hotset: turns 1-9 left]"


def test_a_lasting_mark_never_comes_behind_another_of_ours():
    lasting = {"type": "ephemeral", "ttl": "1h"}
    stub = _prompt("[hotset: gone]")
    body = _conversation([stub], _step(1), cache_control=lasting).encode()
    marked = _marked(body, CacheMarks(stubs=frozenset({b"[hotset: gone]"})))

    assert marked.count(b'"1h"') == 2
    serve_marked(PromptCache(), marked_prompt(json.loads(marked)), 0.0)


@pytest.mark.parametrize("results", [1, 30])
def test_every_request_reads_all_that_the_one_before_it_wrote(results):
    """Also if a step has more blocks than a mark looks back."""
    cache, steps, before = PromptCache(), [], 0
    for number in range(6):
        body = _conversation(*steps, system="Be careful. " * 500).encode()
        prompt = marked_prompt(json.loads(_marked(body, CacheMarks(everywhere=True))))
        charge, cache = serve_marked(cache, prompt, 10.0 * number)
        assert charge.read == before
        assert not charge.fresh
        before = charge.total
        steps.append(list(_step(number, results)))


def _choice(body, pause=1.0, tokens=5000, price=CLAUDE, dialect=ANTHROPIC):
    request = dialect.parse(body.encode())
    return choose_marks(request, dialect, price, Plan({}), tokens=tokens, pause=pause)


def test_marks_begin_with_the_second_request_and_where_the_price_says_that_they_pay():
    loop = _conversation(_step(1), _step(2))
    assert _choice(loop).everywhere
    assert not _choice(loop, pause=None).everywhere  # nothing was sent on this line yet
    assert not _choice(loop, tokens=800).everywhere  # too short to be cached
    assert not _choice(loop, price=Price(3, 15, read=1, write=1, lookback=20)).everywhere
    assert _choice(loop, price=Price(3, 15)) is NO_MARKS  # a provider that caches by itself
    assert not _choice(_conversation(_step(1), cache_control=MARK)).everywhere


def test_behind_a_pause_marks_pay_for_an_agent_and_not_for_a_slow_conversation():
    agent = _conversation(_step(1), _step(2))
    talk = _conversation(*(_step(each, calls=False) for each in range(4)))
    assert _choice(agent, pause=900.0).everywhere
    assert not _choice(talk, pause=900.0).everywhere
    assert _choice(talk, pause=60.0).everywhere


@pytest.mark.parametrize(
    ("pauses", "pays"),
    [
        ([], False),
        ([10.0] * 50, False),
        ([600.0], True),
        ([7200.0] * 10, False),
        ([600.0, 7200.0], False),
        ([600.0, 600.0, 7200.0], True),
    ],
)
def test_an_hour_pays_if_it_saves_more_rewrites_than_its_writes_cost(pauses, pays):
    hour = Price(3, 15, lookback=20, write_lasting=2.0, ttl_lasting=3600)
    assert lasting_pays(pauses, hour) is pays


def test_the_longer_time_is_given_to_every_mark_in_front_and_to_no_other():
    tools = [{"name": "read", "input_schema": {}, "cache_control": {"type": "ephemeral"}}]
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"ttl": "5m", "type": "x"}}]
    body = _conversation(_step(1), tools=tools, system=system, cache_control=MARK).encode()
    marked = json.loads(_marked(body, CacheMarks(lasting=True)))

    lasting = {"type": "ephemeral", "ttl": "1h"}
    assert marked["tools"][0]["cache_control"] == lasting
    assert marked["system"][0]["cache_control"] == lasting
    assert marked["cache_control"] == MARK
    assert _without_marks(marked) == _without_marks(json.loads(body))
    serve_marked(PromptCache(), marked_prompt(marked), 0.0)


def test_an_argument_that_is_called_cache_control_is_no_mark():
    use = {"type": "tool_use", "id": "t", "name": "edit", "input": {"cache_control": {"a": 1}}}
    body = _body(
        _prompt("Do it."),
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
    )
    assert _choice(body).everywhere
