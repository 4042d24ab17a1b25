"""What the model saw and the client did not stands again at its place, in every later request, in
the same bytes."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from hotset.dialects import DIALECTS
from hotset.nouns.link import link
from hotset.nouns.message import Answer, DialectName, ToolSpec
from hotset.nouns.page import ROOT, Chain, Kind, Role
from hotset.nouns.window import Hidden
from tests.campaign import sample
from tests.dialects.conversations import conversation

CHAT, RESPONSES, ANTHROPIC = (
    DIALECTS[DialectName.OPENAI_CHAT],
    DIALECTS[DialectName.OPENAI_RESPONSES],
    DIALECTS[DialectName.ANTHROPIC],
)
DIALECT = pytest.mark.parametrize(
    "dialect", list(DIALECTS.values()), ids=lambda dialect: dialect.name
)
TOOLS = (ToolSpec("retrieve_context", "Brings back what left.", b'{"type":"object"}'),)
_SEEDS = st.integers(0, 2**48)


def _raw(tree):
    return json.dumps(tree).encode()


def _links(request):
    return tuple(link(ROOT, request.messages))


def _trees(request):
    return [json.loads(each.raw) for each in request.messages]


def _offered(dialect, seed):
    return dialect.parse(dialect.offer(conversation(dialect.name, Random(seed)), TOOLS))


def _our_call(dialect, id, *, thought=()):
    """A message in which the model calls a tool of ours and nothing else."""
    if dialect is ANTHROPIC:
        use = {"type": "tool_use", "id": id, "name": "retrieve_context", "input": {"id": "é"}}
        return {"role": "assistant", "content": [*thought, use]}
    if dialect is CHAT:
        function = {"name": "retrieve_context", "arguments": '{"id":"x"}'}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": id, "type": "function", "function": function}],
        }
    return {"type": "function_call", "call_id": id, "name": "retrieve_context", "arguments": "{}"}


def _thought_of(tree):
    content = tree.get("content")
    return (
        [block for block in content or [] if block["type"].endswith("thinking")]
        if isinstance(content, list)
        else []
    )


def _turn_before(dialect, link, tree, id):
    """A round of its own: our call and its answer, before what the client saw."""
    call = _our_call(
        dialect, id, thought=[block | {"signature": "other"} for block in _thought_of(tree)]
    )
    return Hidden(link.chain, before=(_raw(call), *dialect.answer([Answer(id, "slice")])), asides=1)


def _call_beside(dialect, link, tree, id):
    """Our call among the client's own."""
    answers = dialect.answer([Answer(id, "slice", failed=True)])
    ours = _our_call(dialect, id)
    if dialect is RESPONSES:
        return Hidden(link.chain, before=(_raw(ours),), after=answers, asides=1)
    field = "content" if dialect is ANTHROPIC else "tool_calls"
    return Hidden(
        link.chain, instead=_raw({**tree, field: tree[field] + ours[field]}), after=answers
    )


def _hidden(dialect, request, rng):
    found = {}
    for number, (each, tree) in enumerate(zip(_links(request), _trees(request), strict=True)):
        if (
            each.message.role is not Role.ASSISTANT
            or each.message.aside
            or each.message.parts[0].kind is Kind.OPAQUE
        ):
            continue
        calls = any(part.kind.family is Kind.TOOL_CALL for part in each.message.parts)
        ways = [None, _turn_before, *([_call_beside] if calls else [])]
        if way := rng.choice(ways):
            found[each.chain] = way(dialect, each, tree, f"ours_{number}")
    return found


def _expected(dialect, request, hidden):
    """The same by lists of decoded messages, without a thought about bytes."""
    seen, joins = [], []
    for each, tree in zip(_links(request), _trees(request), strict=True):
        told = hidden.get(each.chain, Hidden(each.chain))
        asides = []
        while told.asides > len(asides) and seen and seen[-1].get("type") == "reasoning":
            asides.insert(0, seen.pop())
        seen += [*map(json.loads, told.before), *asides]
        seen.append(json.loads(told.instead) if told.instead else tree)
        if joins:
            said = (
                tree["content"]
                if isinstance(tree["content"], list)
                else [{"type": "text", "text": tree["content"]}]
            )
            seen[-1] = {**tree, "content": [*joins, *said]}
        joins = (
            [block for raw in told.after for block in json.loads(raw)["content"]]
            if dialect is ANTHROPIC
            else []
        )
        seen += map(json.loads, told.after) if dialect is not ANTHROPIC else ()
    return seen


@pytest.mark.row("C9")
@DIALECT
@settings(max_examples=sample(60, 150), deadline=None)
@given(seed=_SEEDS)
def test_hidden_turns_stand_where_they_stood_and_break_no_rule(dialect, seed):
    request = _offered(dialect, seed)
    hidden = _hidden(dialect, request, Random(seed))
    revealed = dialect.reveal(request, _links(request), hidden)
    rendered = dialect.render(revealed)
    again = dialect.parse(rendered)
    assert _trees(again) == _expected(dialect, request, hidden)
    assert dialect.check(again, request) == ()
    assert rendered.startswith(request.raw[: request.array.start])
    assert rendered.endswith(request.raw[request.array.end :])
    if not hidden:
        assert rendered is request.raw


@pytest.mark.row("C9")
@DIALECT
@settings(max_examples=sample(40, 100), deadline=None)
@given(seed=_SEEDS)
def test_a_longer_conversation_begins_with_the_bytes_of_the_shorter_one(dialect, seed):
    request = _offered(dialect, seed)
    hidden = _hidden(dialect, request, Random(seed))
    ends = [
        index
        for index, each in enumerate(request.messages, 1)
        if each.role in (Role.USER, Role.TOOL)
    ]
    raws = [each.raw for each in dialect.reveal(request, _links(request), hidden).messages]
    for end in ends:
        shorter = replace(request, messages=request.messages[:end])
        earlier = [each.raw for each in dialect.reveal(shorter, _links(shorter), hidden).messages]
        assert earlier == raws[: len(earlier)]


@DIALECT
@settings(max_examples=sample(40, 100), deadline=None)
@given(seed=_SEEDS)
def test_a_request_that_was_reworded_and_revealed_breaks_no_rule(dialect, seed):
    request = _offered(dialect, seed)
    hidden = _hidden(dialect, request, Random(seed))
    links = _links(request)
    results = [
        {
            position: b"short"
            for position, part in enumerate(each.parts)
            if part.kind.family is Kind.TOOL_RESULT
        }
        for each in request.messages
    ]
    reworded = tuple(
        dialect.reword(each, words) for each, words in zip(request.messages, results, strict=True)
    )
    changed = dialect.reveal(replace(request, messages=reworded), links, hidden)
    again = dialect.parse(dialect.render(changed))
    assert dialect.check(again, dialect.reveal(request, links, hidden)) == ()
    said = [
        part.content
        for each in again.messages
        for part in each.parts
        if part.kind.family is Kind.TOOL_RESULT
    ]
    assert set(said) <= {b"short", b"slice"}


def test_two_rounds_that_the_client_saw_as_one_message_are_two_again():
    first, second = (
        {"type": "thinking", "thinking": each, "signature": each} for each in ("one", "two")
    )
    words = [{"type": "text", "text": each} for each in ("Let me look.", "Found it.")]
    write = {"type": "tool_use", "id": "w", "name": "Write", "input": {"text": "long " * 9}}
    result = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "w", "content": "ok"}],
    }
    seen_as_one = {"role": "assistant", "content": [first, words[0], second, words[1], write]}
    body = {"thinking": {"type": "enabled"}, "tools": [{"name": "Write"}]}
    body["messages"] = [{"role": "user", "content": "q"}, seen_as_one, result]
    request = ANTHROPIC.parse(ANTHROPIC.offer(_raw(body), TOOLS))
    links = _links(request)
    call = _our_call(ANTHROPIC, "ours", thought=[first, words[0]])
    answers = ANTHROPIC.answer([Answer("ours", "slice")])
    last = {"role": "assistant", "content": [second, words[1], write]}
    hidden = {
        links[1].chain: Hidden(links[1].chain, before=(_raw(call), *answers), instead=_raw(last))
    }
    own = ANTHROPIC.reveal(request, links, hidden)
    assert _trees(own) == [body["messages"][0], call, json.loads(answers[0]), last, result]

    short = ANTHROPIC.reword(request.messages[1], {3: b"Found.", 4: b'{"text":"short"}'})
    changed = replace(request, messages=(request.messages[0], short, request.messages[2]))
    revealed = ANTHROPIC.parse(ANTHROPIC.render(ANTHROPIC.reveal(changed, links, hidden)))
    shorter = {
        "role": "assistant",
        "content": [second, words[1] | {"text": "Found."}, write | {"input": {"text": "short"}}],
    }
    assert _trees(revealed) == [body["messages"][0], call, json.loads(answers[0]), shorter, result]
    assert ANTHROPIC.check(revealed, own) == ()


def test_a_text_answer_behind_a_call_of_ours_becomes_a_block_beside_the_result():
    body = {
        "messages": [
            {"role": "user", "content": "q"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "a", "name": "n", "input": {}}],
            },
            {"role": "system", "content": "now in plan mode"},
            {"role": "user", "content": "stop!"},
        ]
    }
    request = ANTHROPIC.parse(_raw(body))
    links = _links(request)
    (answer,) = ANTHROPIC.answer([Answer("ours", "slice")])
    block = _raw(json.loads(answer)["content"][0])
    for after in ((answer,), (block,)):
        revealed = ANTHROPIC.reveal(
            request, links, {links[1].chain: Hidden(links[1].chain, after=after)}
        )
        assert json.loads(revealed.messages[3].raw)["content"] == [
            json.loads(block),
            {"type": "text", "text": "stop!"},
        ]
        assert [each.span for each in revealed.messages] == [each.span for each in request.messages]
        assert revealed.messages[3].essence == request.messages[3].essence
        assert [part.call for part in revealed.messages[3].parts] == ["ours", ""]
        assert revealed.messages[3].parts[1:] == request.messages[3].parts


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('"content":"",', []),
        ('"content":[],', []),
        ('"content":null,', []),
        ("", []),
        ('"content":"x",', ["x"]),
    ],
)
def test_results_join_a_message_that_says_little_or_nothing(content, said):
    raw = (
        f'{{"messages":[{{"role":"assistant","content":"a"}},{{{content}"role":"user"}}]}}'.encode()
    )
    request = ANTHROPIC.parse(raw)
    links = _links(request)
    told = Hidden(links[0].chain, after=ANTHROPIC.answer([Answer("ours", "slice")]))
    (_, user) = ANTHROPIC.reveal(request, links, {told.chain: told}).messages
    blocks = json.loads(user.raw)["content"]
    assert blocks[0]["tool_use_id"] == "ours"
    assert [block["text"] for block in blocks[1:]] == said
    assert user.parts == ANTHROPIC.understand(user.raw).parts


def test_results_with_no_message_of_the_user_behind_them_come_in_one_of_their_own():
    request = ANTHROPIC.parse(
        b'{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}'
    )
    links = _links(request)
    answers = ANTHROPIC.answer([Answer("ours", "slice")])
    revealed = ANTHROPIC.reveal(
        request, links, {links[1].chain: Hidden(links[1].chain, after=answers)}
    )
    assert [each.raw for each in revealed.messages[2:]] == list(answers)
    assert revealed.messages[2].span is None


@pytest.mark.parametrize(
    ("asides", "order"), [(0, "12co.m"), (1, "1co.2m"), (2, "co.12m"), (9, "co.12m")]
)
def test_a_hidden_call_stands_behind_the_reasoning_that_led_to_it(asides, order):
    items = {
        "1": {"type": "reasoning", "id": "rs_1", "summary": []},
        "2": {"type": "reasoning", "id": "rs_2", "summary": []},
        "m": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "done"}],
        },
        "c": _our_call(RESPONSES, "ours"),
        "o": json.loads(RESPONSES.answer([Answer("ours", "slice")])[0]),
    }
    user, system = {"role": "user", "content": "q"}, {"role": "developer", "content": "s"}
    body = {"input": [user, system, items["1"], items["2"], items["m"]]}
    request = RESPONSES.parse(_raw(body))
    links = _links(request)
    told = Hidden(links[4].chain, before=(_raw(items["c"]), _raw(items["o"])), asides=asides)
    revealed = RESPONSES.reveal(request, links, {told.chain: told})
    assert _trees(revealed) == [user, system, *(items[name] for name in order.replace(".", ""))]
    assert RESPONSES.check(revealed, revealed) == ()


@DIALECT
def test_turns_of_another_line_stay_hidden(dialect):
    request = _offered(dialect, 1)
    there = link(Chain("another beginning"), request.messages)
    hidden = {each.chain: Hidden(each.chain, instead=b"{}", after=(b"{}",)) for each in there}
    assert dialect.reveal(request, _links(request), hidden) is request


@DIALECT
def test_links_of_another_request_are_refused(dialect):
    request = _offered(dialect, 1)
    links = _links(request)
    hidden = {links[0].chain: Hidden(links[0].chain, instead=request.messages[0].raw)}
    with pytest.raises(ValueError, match="zip"):
        dialect.reveal(request, links[:-1], hidden)
