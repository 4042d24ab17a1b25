"""The official clients with a window: the model asks for what was shortened, and the libraries see
one plain reply."""

from __future__ import annotations

import json

import anthropic
import openai
import pytest

from hotset.runtime.rounds import sum_usages as summed
from hotset.testing import Say
from hotset.testing.upstream.faults import ErrorEvent, Status
from tests.proxy.talking import (
    OURS,
    assert_each_extends_the_one_before,
    code,
    read,
    retrieve,
    tools,
)

ASKED = {"role": "user", "content": "Read it."}
PLAN = {
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "max_tokens": 4000,
    "model": "claude-sonnet-5",
}


def _script(dialect: str) -> list[Say]:
    """Words before our call, then ours beside the client's, then words alone."""
    return [
        Say("Let me look.", calls=(read("a.py", id="one"),), thinking="A file."),
        Say(
            "I need more.",
            calls=(
                retrieve(dialect, "one", symbol="f_222"),
                retrieve(dialect, "one", symbol="f_1"),
            ),
        ),
        Say(
            calls=(read("b.py", id="two"), retrieve(dialect, "one", symbol="f_111")),
            thinking="And another.",
        ),
        Say("It adds 1758018.", thinking="Now I see it."),
        Say("You are welcome."),
    ]


@pytest.fixture
def sdk(pair):
    """A client of either library over a script, closed in the end."""
    made = []

    def make(library, script):
        world = pair(script, strict=True)
        url = (
            world.address.anthropic_base_url
            if library is anthropic.Anthropic
            else world.address.openai_base_url
        )
        made.append(library(base_url=url, api_key="sk-test", max_retries=0))
        return world, made[-1]

    yield make
    for each in made:
        each.close()


def _claude(client, messages, stream):
    asked = {**PLAN, "messages": messages, "tools": tools("anthropic", "read_file")}
    if not stream:
        return client.messages.create(**asked)
    with client.messages.stream(**asked) as events:
        assert [event.index for event in events if event.type == "content_block_start"] == list(
            range(len(events.get_final_message().content))
        )
        return events.get_final_message()


@pytest.mark.row("V6")
@pytest.mark.row("C9")
@pytest.mark.parametrize("stream", [False, True])
def test_anthropic(sdk, stream):
    world, client = sdk(anthropic.Anthropic, _script("anthropic"))
    messages = [ASKED]
    results = iter([code(), "b is empty"])

    reply = _claude(client, messages, stream)
    while reply.stop_reason == "tool_use":
        calls = [block for block in reply.content if block.type == "tool_use"]
        assert [call.name for call in calls] == ["read_file"]
        messages.append(
            {
                "role": "assistant",
                "content": [block.model_dump(exclude_none=True) for block in reply.content],
            }
        )
        given = [
            {"type": "tool_result", "tool_use_id": call.id, "content": next(results)}
            for call in calls
        ]
        messages.append({"role": "user", "content": given})
        reply = _claude(client, messages, stream)
    assert reply.content[-1].text == "It adds 1758018."
    messages.append(
        {
            "role": "assistant",
            "content": [block.model_dump(exclude_none=True) for block in reply.content],
        }
    )
    last = _claude(client, [*messages, {"role": "user", "content": "Thanks."}], stream)

    assert last.content[0].text == "You are welcome."
    signatures = {
        block["signature"]
        for message in messages[1::2]
        for block in message["content"]
        if "signature" in block
    }
    assert all(signature in world.upstream.requests[-1].body.decode() for signature in signatures)
    _assert_hidden(world, messages)


def _chat(client, messages, stream):
    asked = {"model": "gpt-5.4", "messages": messages, "tools": tools("openai-chat", "read_file")}
    if not stream:
        return client.chat.completions.create(**asked)
    with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
        for _ in events:
            pass
        return events.get_final_completion()


@pytest.mark.row("V6")
@pytest.mark.row("C9")
@pytest.mark.parametrize("stream", [False, True])
def test_openai_chat(sdk, stream):
    world, client = sdk(openai.OpenAI, _script("openai-chat"))
    messages = [ASKED]
    results = iter([code(), "b is empty"])

    reply = _chat(client, messages, stream).choices[0]
    while reply.finish_reason == "tool_calls":
        assert [call.function.name for call in reply.message.tool_calls] == ["read_file"]
        messages.append(reply.message.model_dump(exclude_none=True, exclude={"parsed"}))
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": next(results)}
            for call in reply.message.tool_calls
        ]
        reply = _chat(client, messages, stream).choices[0]
    assert reply.message.content == "It adds 1758018."
    messages.append(reply.message.model_dump(exclude_none=True, exclude={"parsed"}))
    last = _chat(client, [*messages, {"role": "user", "content": "Thanks."}], stream)

    assert last.choices[0].message.content == "You are welcome."
    _assert_hidden(world, messages)


def _respond(client, history, stream):
    asked = {
        "model": "gpt-5.4",
        "input": history,
        "tools": tools("openai-responses", "read_file"),
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    if not stream:
        return client.responses.create(**asked)
    with client.responses.stream(**asked) as events:
        numbers = [event.sequence_number for event in events]
        assert numbers == list(range(len(numbers)))
        return events.get_final_response()


@pytest.mark.row("V6")
@pytest.mark.row("C9")
@pytest.mark.parametrize("stream", [False, True])
def test_openai_responses(sdk, stream):
    world, client = sdk(openai.OpenAI, _script("openai-responses"))
    history = [ASKED]
    results = iter([code(), "b is empty"])

    reply = _respond(client, history, stream)
    while calls := [item for item in reply.output if item.type == "function_call"]:
        assert [call.name for call in calls] == ["read_file"]
        history += [_echoed(item) for item in reply.output]
        history += [
            {"type": "function_call_output", "call_id": call.call_id, "output": next(results)}
            for call in calls
        ]
        reply = _respond(client, history, stream)
    assert reply.output_text == "It adds 1758018."
    history += [_echoed(item) for item in reply.output]
    last = _respond(client, [*history, {"role": "user", "content": "Thanks."}], stream)

    assert last.output_text == "You are welcome."
    sealed = {item["encrypted_content"] for item in history if item.get("type") == "reasoning"}
    assert len(sealed) == 3
    assert all(each in world.upstream.requests[-1].body.decode() for each in sealed)
    _assert_hidden(world, history)


def _echoed(item):
    """An item as the library's own examples send it back."""
    return item.model_dump(
        exclude_none=True, exclude={"parsed_arguments": True, "content": {"__all__": {"parsed"}}}
    )


def _assert_hidden(world, messages) -> None:
    assert len(world.upstream.requests) == 5
    assert not any(ours in json.dumps(messages) for ours in OURS)
    assert "1758018" in world.upstream.requests[2].body.decode()
    assert_each_extends_the_one_before(world.upstream.requests)
    world.settle()
    assert [turn.number for turn in world.turns()] == [1, 2, 3, 4]
    with world.store() as store:
        assert summed([bill.usage for bill in store.bills()]) == world.upstream.bill


@pytest.mark.row("C9")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "openai-responses"])
@pytest.mark.rest_slow
def test_the_libraries_are_told_the_size_of_the_last_prompt_and_beside_it_what_all_rounds_were_billed(  # noqa: E501
    sdk, dialect, stream
):
    """An agent takes its usage for the size of its context: with the sum of all prompts it would
    compact much too soon."""
    paid = []
    says = iter(
        [
            Say(calls=(read("a.py", id="one"),), thinking="A file."),
            Say(
                "I need more.", calls=(retrieve(dialect, "one", symbol="f_222"),), thinking="Where?"
            ),
            Say("And more.", calls=(retrieve(dialect, "one", symbol="f_111"),), thinking="There."),
            Say("Enough."),
        ]
    )

    def script(_request):
        paid.append(world.upstream.bill)
        return next(says)

    ask = {"anthropic": _claude, "openai-chat": _chat, "openai-responses": _respond}[dialect]
    world, client = sdk(anthropic.Anthropic if dialect == "anthropic" else openai.OpenAI, script)
    first = ask(client, [ASKED], stream)
    reply = ask(client, [ASKED, *_with_result(first, code())], stream)

    total = [
        _whole(after) - _whole(before)
        for before, after in zip(paid, [*paid[1:], world.upstream.bill], strict=True)
    ]
    told = reply.usage
    if dialect == "anthropic":
        assert (
            told.input_tokens + told.cache_read_input_tokens + told.cache_creation_input_tokens
            == total[-1]
        )
    else:
        assert (told.prompt_tokens if dialect == "openai-chat" else told.input_tokens) == total[-1]
        assert told.total_tokens == total[-1] + (
            told.completion_tokens if dialect == "openai-chat" else told.output_tokens
        )
    if (
        dialect != "anthropic" or not stream
    ):  # in a stream the anthropic library carries on only what it knows itself
        counts = {
            "anthropic": ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        }
        names = counts.get(
            dialect, ("prompt_tokens",) if dialect == "openai-chat" else ("input_tokens",)
        )
        assert sum(told.hotset[name] for name in names) == sum(total[1:])
        assert told.hotset["calls"] == 3
    assert _whole(world.turns()[-1].usage) == total[-1]
    with world.store() as store:
        assert _whole([bill.usage for bill in store.bills()][-1]) == sum(total[1:])


def _whole(usage) -> int:
    return usage.input + usage.cache_read + usage.cache_write


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "library", [anthropic.Anthropic, openai.OpenAI], ids=["anthropic", "openai"]
)
def test_a_later_round_that_is_refused_raises_the_librarys_own_error(sdk, library, stream):
    name = "anthropic" if library is anthropic.Anthropic else "openai-responses"
    script = [
        Say(calls=(read("a.py", id="one"),), thinking="A file."),
        Say(calls=(retrieve(name, "one", symbol="f_222"),), thinking="More."),
        *[Say(fault=Status(429, "Slow down.", retry_after=0))] * 3,
    ]
    _, client = sdk(library, script)
    ask = _claude if name == "anthropic" else _respond
    first = ask(client, [ASKED], stream)
    # This library yields an error of a Responses stream as an event, and misses the end.
    error = (
        anthropic.APIStatusError
        if name == "anthropic"
        else RuntimeError
        if stream
        else openai.RateLimitError
    )
    told = "response.completed" if error is RuntimeError else r"Slow down\."

    with pytest.raises(error, match=told):
        ask(client, [ASKED, *_with_result(first, code())], stream)


def test_the_openai_library_is_told_why_a_response_failed(sdk):
    script = [
        Say(calls=(read("a.py", id="one"),), thinking="A file."),
        Say(calls=(retrieve("openai-responses", "one", symbol="f_222"),), thinking="More."),
        *[Say(fault=Status(429, "Slow down.", retry_after=0))] * 3,
    ]
    _, client = sdk(openai.OpenAI, script)
    first = _respond(client, [ASKED], stream=False)
    asked = {
        "model": "gpt-5.4",
        "input": [ASKED, *_with_result(first, code())],
        "tools": tools("openai-responses", "read_file"),
    }

    *_, error, failed = client.responses.create(**asked, store=False, stream=True)

    assert (error.type, error.message, error.code) == ("error", "Slow down.", "rate_limit_exceeded")
    assert (failed.type, failed.response.status, failed.response.error.message) == (
        "response.failed",
        "failed",
        "Slow down.",
    )


@pytest.mark.parametrize(
    "library", [anthropic.Anthropic, openai.OpenAI], ids=["anthropic", "openai"]
)
def test_a_later_round_that_fails_in_mid_stream_raises_the_librarys_own_error(sdk, library):
    name = "anthropic" if library is anthropic.Anthropic else "openai-responses"
    script = [
        Say(calls=(read("a.py", id="one"),), thinking="A file."),
        Say(calls=(retrieve(name, "one", symbol="f_222"),), thinking="More."),
        Say("Words that do not all come.", fault=ErrorEvent(events=4)),
    ]
    _, client = sdk(library, script)
    ask = _claude if name == "anthropic" else _respond
    first = ask(client, [ASKED], stream=True)

    with pytest.raises((anthropic.APIStatusError, openai.APIError, RuntimeError)):
        ask(client, [ASKED, *_with_result(first, code())], stream=True)


def _with_result(reply, text):
    if hasattr(reply, "choices"):
        message = reply.choices[0].message
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": text}
        return [message.model_dump(exclude_none=True, exclude={"parsed"}), result]
    if hasattr(reply, "content"):
        call = reply.content[-1]
        said = {
            "role": "assistant",
            "content": [block.model_dump(exclude_none=True) for block in reply.content],
        }
        return [
            said,
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call.id, "content": text}],
            },
        ]
    call = reply.output[-1]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": text}
    return [*(_echoed(item) for item in reply.output), output]
