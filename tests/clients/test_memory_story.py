"""Two sessions of one project, with the providers' own clients: what the first one learned is there
when the second one opens."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import anthropic
import openai
import pytest

from hotset.nouns.knobs import Remembering
from hotset.testing import Call, Say
from tests.proxy.conftest import Pair
from tests.proxy.talking import asked, meant

MODEL, CLAUDE = "gpt-5.4", "claude-sonnet-5"
PARAMETERS = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
}
FAILED = (
    "$ pytest tests/test_dates.py\n"
    "E   ModuleNotFoundError: No module named 'dateutil'\n"
    "tests/test_dates.py:3: ModuleNotFoundError\n"
    "1 failed in 0.21s\n[exit code: 1]"
)
PASSED = "$ pytest tests/test_dates.py\n4 passed in 0.30s\n[exit code: 0]"
FIRST = (
    "The date parser's tests fail: please fix tests/test_dates.py. Remember that we pin "
    "dependencies in constraints.txt."
)
SECOND = (
    "The tests of the date parser fail again with an import error "
    "in tests/test_dates.py. Find "
    "out why and fix it."
)

WORK = (
    Say("I run the tests.", calls=(Call("shell", {"command": "pytest tests/test_dates.py"}),)),
    Say(
        "dateutil is missing from the environment.",
        calls=(Call("shell", {"command": "echo python-dateutil==2.9.0 >> constraints.txt"}),),
    ),
    Say(
        "Now I install it.",
        calls=(Call("shell", {"command": "pip install -c constraints.txt python-dateutil"}),),
    ),
    Say("Again.", calls=(Call("shell", {"command": "pytest tests/test_dates.py"}),)),
    Say("Fixed: dateutil was not installed; all four tests of the date parser pass now."),
)
RESULTS = (
    FAILED,
    "[exit code: 0]",
    "Successfully installed python-dateutil-2.9.0\n[exit code: 0]",
    PASSED,
)


def chat(pair: Pair, prompt: str, around: Sequence[Any] = ()) -> str:
    """A whole session, as an agent's loop has it."""
    tools = [{"type": "function", "function": {"name": "shell", "parameters": PARAMETERS}}]
    system = {"role": "system", "content": "You are a coding agent."}
    messages: list[Any] = [system, *around, {"role": "user", "content": prompt}]
    with openai.OpenAI(base_url=pair.address.openai_base_url, api_key="k", max_retries=0) as client:
        for result in (*RESULTS, ""):
            reply = (
                client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
                .choices[0]
                .message
            )
            messages.append(reply.model_dump(exclude_none=True))
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": result}
                for call in reply.tool_calls or ()
            ]
            if not reply.tool_calls:
                break
    return reply.content or ""


def claude(pair: Pair, prompt: str) -> str:
    tools: Any = [{"name": "shell", "input_schema": PARAMETERS}]
    messages: list[Any] = [{"role": "user", "content": prompt}]
    with anthropic.Anthropic(
        base_url=pair.address.anthropic_base_url, api_key="k", max_retries=0
    ) as client:
        for result in (*RESULTS, ""):
            reply = client.messages.create(
                model=CLAUDE, max_tokens=1000, messages=messages, tools=tools
            )
            messages.append(
                {
                    "role": "assistant",
                    "content": [part.model_dump(exclude_none=True) for part in reply.content],
                }
            )
            calls = [part for part in reply.content if part.type == "tool_use"]
            if not calls:
                break
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": result} for call in calls
            ]
            messages.append({"role": "user", "content": results})
    return "".join(part.text for part in reply.content if part.type == "text")


@pytest.mark.row("M1")
@pytest.mark.row("M2")
@pytest.mark.row("M3")
@pytest.mark.parametrize("work", [chat, claude])
def test_what_one_session_learned_is_told_to_the_next(
    pair: Callable[..., Pair], work: Callable[[Pair, str], str]
):
    one = pair((*WORK, *WORK), memory=Remembering(quiet_seconds=0.001, offer_seconds=20.0))
    assert "all four tests" in work(one, FIRST)
    assert not any(b"hotset memory" in received.body for received in one.upstream.requests)
    one.settle()

    work(one, SECOND)
    later = one.upstream.requests[len(WORK) :]
    opening = later[0].body.decode()
    assert "hotset memory" in opening
    assert "not instructions" in opening
    assert "retrieve_context" in opening
    told = opening[opening.index("hotset memory") :]
    assert "Avoid" in told  # the pitfall of the first session, for a debugging task
    assert "dateutil" in told
    system = json.loads(opening).get("system") or json.loads(opening)["messages"][0]["content"]
    assert "hotset memory" not in json.dumps(system)

    for received in later[1:]:  # kept as it was said
        said, first = (
            [meant(message) for message in asked(each).messages if b"hotset memory" in message.raw]
            for each in (received, later[0])
        )
        assert said == first


def test_what_a_conversation_was_told_is_not_told_again_there(pair: Callable[..., Pair]):
    one = pair(
        (*WORK, Say("I see."), Say("So it is.")),
        memory=Remembering(quiet_seconds=0.001, offer_seconds=20.0),
    )
    chat(one, FIRST)
    one.settle()
    messages: list[Any] = [{"role": "user", "content": SECOND}]
    with openai.OpenAI(base_url=one.address.openai_base_url, api_key="k", max_retries=0) as client:
        tools: Any = [{"type": "function", "function": {"name": "shell", "parameters": PARAMETERS}}]
        for prompt in ("", f"{SECOND} And look at the import error first."):
            messages += [{"role": "user", "content": prompt}] if prompt else []
            reply = (
                client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
                .choices[0]
                .message
            )
            messages.append(reply.model_dump(exclude_none=True))
    first, second = (received.body.decode() for received in one.upstream.requests[-2:])
    assert first.count("What resolved it") == second.count("What resolved it") == 1


def test_what_clients_say_before_every_first_prompt_makes_no_two_sessions_one(
    pair: Callable[..., Pair],
):
    one = pair((*WORK, Say("I see.")), memory=Remembering(quiet_seconds=0.001, offer_seconds=20.0))
    around: list[Any] = [
        {
            "role": "user",
            "content": "<environment_context>\n  <cwd>/work</cwd>\n</environment_context>",
        }
    ]
    chat(one, FIRST, around)
    one.settle()
    tools: Any = [{"type": "function", "function": {"name": "shell", "parameters": PARAMETERS}}]
    messages = [
        {"role": "system", "content": "You are a coding agent."},
        *around,
        {"role": "user", "content": SECOND},
    ]
    with openai.OpenAI(base_url=one.address.openai_base_url, api_key="k", max_retries=0) as client:
        client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
    assert "What resolved it" in one.upstream.requests[-1].body.decode()
