"""The recorded session is coherent, large enough to matter, small on disk, and plays in every
dialect."""

from __future__ import annotations

import json
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest

from hotset.nouns.message import DialectName
from hotset.testing import ScriptedUpstream
from hotset.testing.recording import (
    RecordedPrompt,
    RecordedReply,
    RecordedResult,
    requests,
    script,
    session,
)
from tests.testing.raw_http import PATHS, connect, read_exchange, request_bytes

every_dialect = pytest.mark.parametrize("dialect", list(DialectName))
SCHEMAS = {tool.name: tool.parameters for tool in session().tools}


def test_it_is_long_and_its_tools_say_a_lot():
    recording = session()
    assert len(recording.replies) >= 40
    assert recording.output_bytes >= 250_000
    assert 8 <= len(recording.tools) <= 12
    assert sum(isinstance(step, RecordedPrompt) for step in recording.steps) == 4


def test_it_is_small_on_disk():
    folder = Path(str(files("hotset.testing.recording")))
    assert (
        sum(
            path.stat().st_size
            for path in folder.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        )
        < 500_000
    )


def test_every_call_is_answered_before_the_model_speaks_again():
    waiting, seen = [], set()
    for step in session().steps:
        if isinstance(step, RecordedResult):
            assert (step.call, step.tool) == waiting.pop(0)
            assert step.output
        else:
            assert waiting == []
        if isinstance(step, RecordedReply):
            assert step.text or step.calls
            waiting = [(call.id, call.name) for call in step.calls]
            assert not seen & {call.id for call in step.calls}
            seen |= {call.id for call in step.calls}
    assert waiting == []


def test_every_call_fits_its_tools_schema():
    for reply in session().replies:
        for call in reply.calls:
            schema = SCHEMAS[call.name]
            assert set(schema["required"]) <= set(call.arguments) <= set(schema["properties"])


def test_every_tool_is_used():
    assert {call.name for reply in session().replies for call in reply.calls} == set(SCHEMAS)


def test_it_shows_files_of_hundreds_of_lines_and_every_kind_of_output():
    results = [step for step in session().steps if isinstance(step, RecordedResult)]
    longest = max(len(step.output.splitlines()) for step in results if step.tool == "read_file")
    assert longest > 290
    reports = [step.output for step in results if step.tool == "run_tests"]
    assert sum(" failed" in report for report in reports) == 5
    assert " 27 passed" in reports[-1]
    assert sum(len(step.output) for step in results if step.tool == "git_diff") > 20_000
    assert sum("#5 " in step.output for step in results) == 2


def test_what_the_agent_says_is_what_the_tools_showed():
    said = " ".join(reply.text for reply in session().replies)
    assert "57 of 845 deliveries" in said
    assert _output("run_command", "python -").endswith(
        "57 of 845 delivered deliveries were delivered more than once"
    )
    endpoints = json.loads(_output("http_get", "/v1/endpoints"))["data"]
    assert (len(endpoints), sum(endpoint["timeout_seconds"] >= 60 for endpoint in endpoints)) == (
        36,
        6,
    )
    assert "Six of the 36 endpoints" in said
    assert "datetime.now()" in _output("read_file", "ferrypost/backoff.py").splitlines()[39]


def _output(tool, argument):
    """What the first call of a tool with an argument that begins like this gave back."""
    calls = [call for reply in session().replies for call in reply.calls if call.name == tool]
    id = next(call.id for call in calls if next(iter(call.arguments.values())).startswith(argument))
    return next(
        step.output
        for step in session().steps
        if isinstance(step, RecordedResult) and step.call == id
    )


def _conversation(dialect, body):
    """The messages without marks that move, and what stands in front of them."""
    key = "input" if dialect is DialectName.OPENAI_RESPONSES else "messages"
    messages = json.loads(
        json.dumps(body[key]).replace(', "cache_control": {"type": "ephemeral"}', "")
    )
    return messages, {name: value for name, value in body.items() if name != key}


@every_dialect
@pytest.mark.rest_slow
def test_each_request_extends_the_one_before(dialect):
    bodies = [json.loads(body) for body in requests(session(), dialect)]
    assert len(bodies) == len(session().replies)
    for before, after in pairwise(bodies):
        (earlier, head), (later, same_head) = (
            _conversation(dialect, before),
            _conversation(dialect, after),
        )
        assert later[: len(earlier)] == earlier
        assert len(later) > len(earlier)
        assert head == same_head


def test_anthropic_requests_mark_the_system_prompt_and_the_newest_block():
    for body in map(json.loads, requests(session(), DialectName.ANTHROPIC)):
        assert json.dumps(body).count('"cache_control"') == 2
        assert "cache_control" in body["system"][-1]
        assert body["messages"][-1]["role"] == "user"
        assert "cache_control" in body["messages"][-1]["content"][-1]


@every_dialect
def test_the_scripted_provider_says_what_the_client_sends_back_next(dialect):
    bodies = list(requests(session(), dialect, stream=False))
    with ScriptedUpstream(script(session())) as upstream, connect(upstream) as client:
        for body, following in pairwise(bodies[:13]):
            client.sendall(request_bytes(PATHS[dialect], body))
            reply = json.loads(read_exchange(client).body)
            assert _said(dialect, reply) == _sent_back(
                dialect, json.loads(body), json.loads(following)
            )


def _said(dialect, reply):
    if dialect is DialectName.ANTHROPIC:
        return reply["content"]
    if dialect is DialectName.OPENAI_CHAT:
        message = reply["choices"][0]["message"]
        return {key: message[key] for key in ("role", "content", "tool_calls") if key in message}
    wanted = {
        "message": ("type", "role"),
        "function_call": ("type", "call_id", "name", "arguments"),
    }
    return [{key: item[key] for key in wanted[item["type"]]} for item in reply["output"]]


def _sent_back(dialect, body, following):
    if dialect is DialectName.ANTHROPIC:
        return following["messages"][len(body["messages"])]["content"]
    if dialect is DialectName.OPENAI_CHAT:
        return following["messages"][len(body["messages"])]
    new = [
        item
        for item in following["input"][len(body["input"]) :]
        if item["type"] != "function_call_output"
    ]
    return [{key: value for key, value in item.items() if key != "content"} for item in new]


def test_the_whole_session_is_cheap_where_the_cache_works():
    with ScriptedUpstream(script(session())) as upstream, connect(upstream) as client:
        for body in requests(session(), DialectName.ANTHROPIC):
            client.sendall(request_bytes(PATHS["anthropic"], body))
            assert read_exchange(client).status == 200
        bill = upstream.bill
    assert bill.cache_read > 0.9 * (bill.cache_read + bill.cache_write + bill.input)
    assert bill.input < 5_000
