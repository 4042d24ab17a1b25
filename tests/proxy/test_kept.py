"""What passes through the proxy is found in the store."""

from __future__ import annotations

import json

import pytest

from hotset.nouns.page import Kind
from hotset.nouns.turn import Outcome
from hotset.runtime.reader import metadata_of
from hotset.testing import Call, Say
from tests.proxy.wire import DIALECTS, post, question
from tests.waiting import wait_until

LONG_RESULT = "".join(f"line {n}: some file content\n" for n in range(3000))


@pytest.mark.row("V1")
@pytest.mark.row("X2")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [False, True])
def test_every_prompt_response_tool_call_and_tool_result_is_kept(pair, dialect, stream):
    world = pair(
        [Say("Let me look.", calls=(Call("read_file", {"path": "a.py"}),)), Say("It is fine.")]
    )

    first = post(world.address, dialect, _ask(dialect, [], stream))
    post(world.address, dialect, _ask(dialect, _echo(dialect, first.body, stream), stream))

    kept = {(page.kind, content) for page, content in world.pages()}
    assert (Kind.SYSTEM, b"You are careful.") in kept
    assert (Kind.PROMPT, b"Look at a.py") in kept
    assert (Kind.RESPONSE, b"Let me look.") in kept
    assert [json.loads(content) for kind, content in kept if kind is Kind.TOOL_CALL] == [
        {"path": "a.py"}
    ]
    assert (Kind.FILE, LONG_RESULT.encode()) in kept
    assert (Kind.RESPONSE, b"It is fine.") in kept
    assert len(world.pages()) == 6, "a resent history was written again"
    assert [(turn.number, turn.branch, turn.outcome) for turn in world.turns()] == [
        (1, 0, Outcome.DONE),
        (2, 0, Outcome.DONE),
    ]


@pytest.mark.row("V1")
def test_the_kind_of_an_agent_and_free_metadata_are_kept_with_its_session_alone(pair):
    world = pair([Say("One."), Say("Two."), Say("Three.")])
    given = {"x-hotset-session": "a", "x-hotset-kind": "Inspector"}
    said = [
        given | {"x-hotset-metadata": "run=42; ticket = AB-1; nonsense"},
        given | {"x-hotset-metadata": '{"run": 43, "deep": {"x": 1}}'},
        {"x-hotset-session": "b", "x-hotset-metadata": '{"broken'},
    ]
    for number, headers in enumerate(said):
        post(world.address, "anthropic", question("anthropic", f"question {number}"), headers)

    with world.store() as store:
        kept = metadata_of(store, [session.id for session in store.sessions()])
    assert list(kept.values()) == [{"kind": "inspector", "run": "43", "ticket": "AB-1"}]
    sent = str([request.headers for request in world.upstream.requests]).lower()
    assert "metadata" not in sent
    assert "inspector" not in sent


@pytest.mark.slow
def test_a_reply_is_kept_a_moment_after_its_end(pair):
    world = pair(lambda request: Say(f"reply number {request.index}"))

    for n in range(30):
        answer = post(
            world.address, "anthropic", question("anthropic", f"question {n}", stream=n % 2 == 0)
        )
        assert answer.header("x-hotset-degraded") is None
        assert world.turns()[n].outcome is Outcome.DONE
        assert f"reply number {n}".encode() in [content for _, content in world.pages()]


@pytest.mark.row("V1")
@pytest.mark.slow
def test_what_pages_are_about_is_worked_out_while_nobody_waits(pair):
    world = pair([Say("I changed `parse_header` in src/wire/parser.py because of the ValueError.")])
    post(world.address, "anthropic", question("anthropic", "Please mend the header parser"))
    said = next(page for page, _ in world.pages() if page.kind is Kind.RESPONSE)

    with world.store() as store:
        wait_until(lambda: store.gist(said.id) is not None)
        about = store.gist(said.id)

    assert about.tokens > 5
    assert "src/wire/parser.py" in about.files
    assert "parse_header" in about.entities
    assert "header" in about.keywords or "parser" in about.keywords


def test_the_client_is_told_which_turn_it_was(pair):
    world = pair([Say("a reply that takes as long as a fast provider's", delay=0.1)])

    answer = post(world.address, "openai-chat", question("openai-chat", "hello"))

    assert answer.header("x-hotset-session") == world.sessions()[0]
    assert answer.header("x-hotset-turn") == "1"


@pytest.mark.parametrize(
    "header", ["x-claude-code-session-id", "session_id", "x-session-id", "x-hotset-session"]
)
def test_a_session_header_wins(pair, header):
    world = pair()

    for name in ("one", "two", "one"):
        post(
            world.address,
            "openai-responses",
            question("openai-responses", "the same first words"),
            {header: name},
        )

    assert [turn.number for turn in world.turns()] == [1, 2, 1]
    assert len(world.sessions()) == 2


def test_two_agents_with_equal_first_words_do_not_mix(pair):
    world = pair(lambda _request: Say("the same reply"))

    for follow_up in ([], ["the same reply", "go on"]):
        for agent in ("plan", "build"):
            post(
                world.address,
                "anthropic",
                question("anthropic", "begin", *follow_up, system=f"You {agent}."),
            )

    assert [
        len([t for t in world.turns() if t.session == session]) for session in world.sessions()
    ] == [2, 2]
    assert {turn.branch for turn in world.turns()} == {0}


def _ask(dialect: str, history: list, stream: bool) -> bytes:
    if dialect == "anthropic":
        body = {
            "messages": [{"role": "user", "content": "Look at a.py"}, *history],
            "system": "You are careful.",
            "max_tokens": 9,
        }
    elif dialect == "openai-chat":
        said = [
            {"role": "system", "content": "You are careful."},
            {"role": "user", "content": "Look at a.py"},
        ]
        body = {"messages": [*said, *history]}
    else:
        body = {
            "input": [{"role": "user", "content": "Look at a.py"}, *history],
            "instructions": "You are careful.",
        }
    return json.dumps({"model": "model-1", "stream": stream, **body}).encode()


def _echo(dialect: str, reply: bytes, stream: bool) -> list:
    """The history as a client sends it back: the assistant's message and the result of its call."""
    if dialect == "anthropic":
        call = _first(reply, stream, "content_block", lambda b: b.get("type") == "tool_use")["id"]
        said = [
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": call, "name": "read_file", "input": {"path": "a.py"}},
        ]
        result = [{"type": "tool_result", "tool_use_id": call, "content": LONG_RESULT}]
        return [{"role": "assistant", "content": said}, {"role": "user", "content": result}]
    call = _call_id(reply)
    arguments = json.dumps({"path": "a.py"})
    if dialect == "openai-chat":
        function = {
            "id": call,
            "type": "function",
            "function": {"name": "read_file", "arguments": arguments},
        }
        return [
            {"role": "assistant", "content": "Let me look.", "tool_calls": [function]},
            {"role": "tool", "tool_call_id": call, "content": LONG_RESULT},
        ]
    return [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Let me look."}],
        },
        {"type": "function_call", "call_id": call, "name": "read_file", "arguments": arguments},
        {"type": "function_call_output", "call_id": call, "output": LONG_RESULT},
    ]


def _first(reply: bytes, stream: bool, key: str, wanted) -> dict:
    if not stream:
        return next(block for block in json.loads(reply)["content"] if wanted(block))
    events = [json.loads(line[6:]) for line in reply.splitlines() if line.startswith(b"data: ")]
    return next(event[key] for event in events if key in event and wanted(event[key]))


def _call_id(reply: bytes) -> str:
    import re  # noqa: PLC0415

    found = re.search(rb"call_(?!id)[0-9A-Za-z_]+", reply)
    assert found
    return found.group().decode()
