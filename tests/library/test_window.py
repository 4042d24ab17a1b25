"""A window, for programs that call the model themselves: what to send, what came back, and what the
model asked for between."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re

import pytest

import hotset
from hotset.errors import BadInput, MemoryClosed
from hotset.nouns.turn import Outcome
from hotset.nouns.window import Form
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say
from tests.library.agents import APIS, PROMPT, SCRIPT, TOOLS, asked, client_of, text_of, work
from tests.library.conftest import facts, sent

DIALECTS = {"chat": "openai-chat", "responses": "openai-responses", "anthropic": "anthropic"}
_TOKENS = re.compile(rb"[\d,]+ tokens")
WEATHER = Call("weather", {"city": "Oslo"}, id="w1")


def _create(api, client, request):
    home = (
        client.messages
        if api == "anthropic"
        else client.responses
        if api == "responses"
        else client.chat.completions
    )
    return home.create(**request)


def _window(memory, api, **more):
    plain = asked(api, [])
    kept = {name: plain[name] for name in ("model", "max_tokens", "system") if name in plain}
    cache = (
        {"cache_control": None} if api == "anthropic" else {}
    )  # the agent to compare with sets none
    return memory.window(dialect=DIALECTS[api], **kept, **cache, **more)


def _said(pairs):
    """An object without the fields that say nothing, which an agent drops and a window keeps."""
    return {name: value for name, value in pairs if value is not None}


def _run(window, api, client):
    """The loop of the documentation."""
    calls = 0
    window.add(PROMPT)
    while True:
        calls += 1
        if window.observe(_create(api, client, window.request(tools=TOOLS[api]))):
            continue
        if not window.calls:
            return calls
        window.answer({call.id: text_of(call.arguments["path"]) for call in window.calls})


@pytest.mark.row("X2")
@pytest.mark.parametrize("api", APIS)
@pytest.mark.rest_slow
def test_a_session_in_a_window_is_the_session_of_a_wrapped_client(tmp_path, upstream, memory, api):
    wrapped, windowed = upstream(SCRIPT), upstream(SCRIPT)
    with hotset.open(tmp_path, data=tmp_path / "wrapped", profile="lean") as other:
        work(api, other.wrap(client_of(api, wrapped.url), session="same", agent="tester"))
    opened = memory(profile="lean")
    with client_of(api, windowed.url) as client:
        window = _window(opened, api, session="same", agent="tester")
        assert _run(window, api, client) == len(SCRIPT)
    assert window.reply.text == "Every one of them."
    opened.close()

    # An SDK puts the fields of a reply in an order of its own when it sends it back: a token more
    # or less.
    bodies = [
        [json.loads(_TOKENS.sub(b"", body), object_pairs_hook=_said) for body in sent(each)]
        for each in (windowed, wrapped)
    ]
    assert bodies[0] == bodies[1]
    kept, wanted = facts(tmp_path / "data"), facts(tmp_path / "wrapped")
    assert (kept["events"], kept["hidden"]) == (wanted["events"], wanted["hidden"])
    assert [row[:3] for row in kept["shown"]] == [row[:3] for row in wanted["shown"]]
    assert [turn[:-1] for turn in kept["turns"]] == [turn[:-1] for turn in wanted["turns"]]
    assert {Form.EXCERPT, Form.GONE} <= {row[2] for row in kept["shown"]}


def test_the_model_gets_what_it_asks_for_and_the_program_sees_one_reply(upstream, memory):
    up = upstream(
        [
            Say("Let me see.", calls=(Call("search_history", {"query": "kettle"}),)),
            Say("It is red."),
        ]
    )
    window = memory().window(model="claude-sonnet-5")
    window.add("The kettle is red. What colour is the kettle?")
    with client_of("anthropic", up.url) as claude:
        first = claude.messages.create(**window.request(tools=TOOLS["anthropic"]))
        assert window.observe(first), "the model asked for something back"
        again = window.request()
        assert again["messages"][-1]["content"][0]["type"] == "tool_result"
        second = claude.messages.create(**again)
        assert not window.observe(second)
    prompts = [each.usage.input_tokens for each in (first, second)]
    assert window.reply.text == "Let me see.It is red."
    told, billed = window.reply.usage, window.reply.document["usage"]["hotset"]
    assert (told.input, told.output) == (prompts[-1], second.usage.output_tokens)
    assert (billed["calls"], billed["input_tokens"]) == (2, sum(prompts))
    assert [message["role"] for message in window.messages] == ["user", "assistant"]
    assert "search_history" not in json.dumps(window.messages)


def test_an_awaiting_window_is_the_same(upstream, memory):
    up = upstream(SCRIPT)

    async def main():
        async with memory() as opened, client_of("chat", up.url, awaits=True) as client:
            window = opened.window(model="gpt-5.5")
            window.add({"role": "user", "content": PROMPT})
            while True:
                reply = await client.chat.completions.create(
                    **await window.request(tools=TOOLS["chat"])
                )
                if await window.observe(reply):
                    continue
                if not window.calls:
                    found = await opened.search("kettle")
                    return window.reply.text, found, await opened.savings()
                window.answer({call.id: text_of(call.arguments["path"]) for call in window.calls})

    text, found, savings = asyncio.run(main())
    assert text == "Every one of them."
    assert found.found
    assert "kettle is red" in found.text
    assert savings.total.turns == len(SCRIPT) - 2


@pytest.mark.row("X3")
def test_after_a_restart_the_same_conversation_is_sent_with_the_same_prefix(upstream, memory):
    up = upstream(SCRIPT)
    with client_of("chat", up.url) as client:
        first = memory(profile="lean")
        window = _window(first, "chat")
        _run(window, "chat", client)
        history = window.messages
        first.close()
        window = _window(memory(profile="lean"), "chat")
        window.add(*history, "And now?")
        after = window.request(tools=TOOLS["chat"])["messages"]
    before = up.requests[-1].json()["messages"]
    assert after[: len(before)] == before
    assert any("CTX-REF" in str(message.get("content")) for message in before), (
        "pages had left by then"
    )


@pytest.mark.parametrize(
    ("message", "dialect"),
    [
        ({"role": "tool", "tool_call_id": "c1", "content": "4"}, "openai-chat"),
        ({"type": "function_call_output", "call_id": "c1", "output": "4"}, "openai-responses"),
        ({"role": "user", "content": [{"type": "input_text", "text": "hi"}]}, "openai-responses"),
        (
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "4"}],
            },
            "anthropic",
        ),
        (
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}],
            },
            "openai-chat",
        ),
        (
            {
                "role": "user",
                "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
            },
            "anthropic",
        ),
    ],
)
def test_a_message_tells_its_dialect_and_then_no_other_one_is_let_in(memory, message, dialect):
    window = memory().window(model="any-model")
    window.add("hello", message)
    assert window.dialect == dialect
    stranger = (
        {"role": "tool", "tool_call_id": "c", "content": "x"}
        if dialect != "openai-chat"
        else {"type": "reasoning"}
    )
    with pytest.raises(BadInput, match="that is a message of OpenAI's"):
        window.add(stranger)
    assert len(window.messages) == 2


@pytest.mark.parametrize(
    ("model", "dialect"), [("claude-sonnet-5", "anthropic"), ("gpt-5.5", "openai-chat")]
)
def test_where_no_message_tells_the_models_name_does(memory, model, dialect):
    window = memory().window(model=model, system="Be brief.")
    window.add("hello")
    request = window.request(temperature=0.5, timeout=3.0)
    assert window.dialect == dialect
    assert (request["model"], request["temperature"], request["timeout"]) == (model, 0.5, 3.0)
    assert request.get("system", request["messages"][0]["content"]) == "Be brief."


@pytest.mark.parametrize("api", APIS)
def test_objects_of_the_sdk_can_be_added_and_an_observed_reply_is_not_added_twice(
    upstream, memory, api
):
    up = upstream([Say("Look.", calls=(WEATHER,)), Say("Cold.")])
    window = _window(memory(), api)
    window.add("Weather?")
    with client_of(api, up.url) as client:
        reply = _create(api, client, window.request(tools=TOOLS[api]))
        window.observe(reply)
        window.add(reply)
        known = len(window.messages)
        fresh = _window(memory(), api)
        fresh.add("Weather?", reply)
        assert list(fresh.messages) == [_said(message.items()) for message in window.messages]
        window.answer({call.id: "cold" for call in window.calls})
        assert len(window.messages) == known + 1
        assert window.calls == ()
        window.observe(_create(api, client, window.request(tools=TOOLS[api])))
    assert window.reply.text == "Cold."


def test_wrong_use_is_told_in_a_sentence(upstream, memory):
    opened = memory()
    with pytest.raises(
        BadInput, match="no dialect 'klingon'; there are openai-chat, openai-responses, anthropic"
    ):
        opened.window(model="m", dialect="klingon")
    window = opened.window(model="gpt-5.5")
    with pytest.raises(BadInput, match=r"nothing to send: add\(\)"):
        window.request()
    with pytest.raises(BadInput, match=r"call request\(\) first"):
        window.observe({"choices": []})
    with pytest.raises(BadInput, match=r"no reply yet"):
        _ = window.reply
    with pytest.raises(BadInput, match="a message is a dict with a role"):
        window.add(42)
    window.add("hi")
    window.request()
    for nonsense in ("hello", b"{}", {"content": []}, 42):
        with pytest.raises(BadInput, match="no reply of OpenAI's Chat Completions"):
            window.observe(nonsense)
    with pytest.raises(BadInput, match="no call 'c9' waits"):
        window.answer({"c9": "x"})
    opened.close()
    with pytest.raises(MemoryClosed, match="the memory is closed; open it again"):
        window.request()
    with pytest.raises(MemoryClosed):
        opened.window(model="m")
    with pytest.raises(MemoryClosed):
        opened.search("x")


def test_a_request_whose_reply_never_came_can_be_tried_again_or_be_another_one(
    upstream, memory, tmp_path
):
    up = upstream([Say("Hello.")])
    opened = memory()
    window = opened.window(model="gpt-5.5", session="mine")
    window.add("hi")
    assert window.request() == window.request()
    window.add("Are you there?")
    with client_of("chat", up.url) as client:
        assert not window.observe(
            client.chat.completions.create(**window.request()).model_dump_json()
        )
    opened.close()
    with contextlib.closing(SqliteStore.open(tmp_path / "data")) as store:
        (session,) = store.sessions()
        assert [turn.outcome for turn in store.turns(session.id)] == [Outcome.LEFT, Outcome.DONE]


def test_what_is_kept_can_be_recalled_by_the_id_of_its_call(upstream, memory):
    up = upstream([Say("", calls=(Call("read_file", {"path": "a.py"}),)), Say("Read.")])
    opened = memory()
    window = _window(opened, "chat")
    with client_of("chat", up.url) as client:
        _run(window, "chat", client)
    call = window.messages[1]["tool_calls"][0]["id"]
    assert opened.recall(call) == text_of("a.py").encode()


@pytest.mark.parametrize("budget", [-5, 10, "x", True, None, 2000.5])
def test_a_budget_that_is_none_is_refused_where_it_is_given(memory, upstream, budget):
    told = "must be a number of tokens from 1000 up, or 0 for what the model's window allows"

    with memory() as opened:
        with pytest.raises(BadInput, match=rf"budget \(of memory\.window\(\)\) {told}"):
            opened.window(model="gpt-5.5", budget=budget)
        with pytest.raises(BadInput, match=rf"budget \(of wrap\(\)\) {told}"):
            opened.wrap(client_of("chat", upstream([]).url), budget=budget)
