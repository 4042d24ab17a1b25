"""A client whose provider remembers the conversation (`previous_response_id`), when the model had
asked us for something."""

from __future__ import annotations

import json

import openai
import pytest

from hotset.nouns.note import Space
from hotset.testing import Call, Say
from tests.proxy.wire import post

TOOLS = [
    {
        "type": "function",
        "name": "weather",
        "parameters": {"type": "object", "properties": {}},
        "strict": False,
    }
]
ASKS = Call("search_history", {"query": "weather"})


@pytest.fixture
def client(pair):
    made = []

    def make(script, **settings):
        world = pair(script, **settings)
        made.append(
            openai.OpenAI(base_url=world.address.openai_base_url, api_key="sk-test", max_retries=0)
        )
        return world, made[-1]

    yield make
    for each in made:
        each.close()


def _ask(client, *, stream, **more):
    asked = {"model": "gpt-5.5", "tools": TOOLS, **more}
    if not stream:
        return client.responses.create(**asked)
    with client.responses.stream(**asked) as events:
        for _ in events:
            pass
        return events.get_final_response()


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_continues_a_reply_by_its_id_continues_the_round_that_the_provider_remembers(
    client, stream
):
    script = [Say("Let me see.", calls=(ASKS,)), Say("It rained."), Say("Gladly.")]
    world, gpt = client(script)
    first = _ask(gpt, stream=stream, input="Was there rain?")
    assert [item.type for item in first.output] == ["message", "message"]

    _ask(gpt, stream=stream, input="Go on.", previous_response_id=first.id)

    seen, told, continued = (request.json() for request in world.upstream.requests)
    assert "previous_response_id" not in seen
    assert "previous_response_id" not in told
    assert {item.get("type") for item in told["input"]} >= {"function_call", "function_call_output"}
    assert (continued["previous_response_id"] == first.id) is (not stream)
    assert [tool["name"] for tool in continued["tools"]] == ["weather"]
    assert (
        continued["input"] == "Go on."
    )  # but for the id that the provider knows, it is what the client sent


def test_a_reply_of_one_round_is_continued_with_the_bytes_that_the_client_sent(client):
    world, gpt = client([Say("It rained."), Say("Gladly.")])
    first = _ask(gpt, stream=False, input="Was there rain?")
    body = json.dumps(
        {"model": "gpt-5.5", "tools": TOOLS, "previous_response_id": first.id, "input": "Go on."},
        indent=3,
    ).encode()

    post(world.address, "openai-responses", body)

    assert world.upstream.requests[-1].body == body


@pytest.mark.parametrize("stream", [False, True])
def test_of_a_request_that_continues_hidden_rounds_only_the_id_is_another(client, stream):
    world, gpt = client([Say("Let me see.", calls=(ASKS,)), Say("It rained."), Say("Gladly.")])
    first = _ask(gpt, stream=stream, input="Was there rain?")
    body = json.dumps(
        {"model": "gpt-5.5", "tools": TOOLS, "previous_response_id": first.id, "input": "Go on."},
        indent=3,
    ).encode()

    post(world.address, "openai-responses", body)

    sent = world.upstream.requests[-1]
    assert sent.body == body.replace(
        first.id.encode(), sent.json()["previous_response_id"].encode()
    )
    assert (sent.body == body) is (not stream)


@pytest.mark.parametrize("stream", [False, True])
def test_what_we_owe_the_model_beside_the_client_is_given_when_the_client_answers(client, stream):
    script = [Say("", calls=(ASKS, Call("weather", {}, "w1"))), Say("Wet.")]
    world, gpt = client(script)
    first = _ask(gpt, stream=stream, input="Was there rain?")
    (call,) = [item for item in first.output if item.type == "function_call"]
    assert call.name == "weather"

    answer = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
    _ask(gpt, stream=stream, input=[answer], previous_response_id=first.id)

    continued = world.upstream.requests[-1].json()
    outputs = [
        item["call_id"] for item in continued["input"] if item["type"] == "function_call_output"
    ]
    assert len(outputs) == 2
    assert call.call_id in outputs


def test_what_stands_behind_an_id_is_kept_for_a_proxy_that_takes_over(client):
    world, gpt = client([Say("Let me see.", calls=(ASKS,)), Say("It rained.")])
    first = _ask(gpt, stream=True, input="Was there rain?")

    with world.store() as store:
        note = store.notes(Space("response"), [first.id])[first.id]

    last = json.loads(note.value)["last"]
    assert last.startswith("resp_")
    assert last != first.id
