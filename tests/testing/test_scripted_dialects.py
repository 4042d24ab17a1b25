"""The official SDKs read the scripted provider as they read the real ones."""

from __future__ import annotations

import asyncio
import json

import anthropic
import openai
import pytest

from hotset.testing import Call, Say, ScriptedUpstream

CALLS = (
    Call("read_file", {"path": "src/a.py"}),
    Call("grep", {"pattern": "retry", "flags": ["-n", "-i"]}),
)
FULL = Say(
    text="I look at both files, then I decide.", thinking="Two reads are cheap.", calls=CALLS
)
ASKED = [{"role": "user", "content": "Please look."}]
ARGUMENTS = [{"path": "src/a.py"}, {"pattern": "retry", "flags": ["-n", "-i"]}]


@pytest.fixture
def upstream():
    with ScriptedUpstream(lambda _: FULL) as running:
        yield running


@pytest.fixture
def claude(upstream):
    with anthropic.Anthropic(base_url=upstream.anthropic_url, api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture
def gpt(upstream):
    with openai.OpenAI(base_url=upstream.openai_url, api_key="k", max_retries=0) as client:
        yield client


def check_message(message):
    thinking, text, *uses = message.content
    assert (thinking.type, thinking.thinking) == ("thinking", FULL.thinking)
    assert thinking.signature
    assert text.text == FULL.text
    assert [(use.name, use.input) for use in uses] == list(
        zip(["read_file", "grep"], ARGUMENTS, strict=True)
    )
    assert all(use.id.startswith("toolu_") for use in uses)
    assert message.stop_reason == "tool_use"
    assert message.usage.input_tokens > 0
    assert message.usage.output_tokens > 10


def check_completion(completion):
    (choice,) = completion.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == FULL.text
    assert choice.message.model_extra["reasoning_content"] == FULL.thinking
    assert [json.loads(call.function.arguments) for call in choice.message.tool_calls] == ARGUMENTS
    assert [call.function.name for call in choice.message.tool_calls] == ["read_file", "grep"]
    assert (
        completion.usage.total_tokens
        == completion.usage.prompt_tokens + completion.usage.completion_tokens
    )
    assert completion.usage.completion_tokens_details.reasoning_tokens > 0


def check_response(response):
    reasoning, message, *calls = response.output
    assert response.status == "completed"
    assert reasoning.summary[0].text == FULL.thinking
    assert message.content[0].text == response.output_text == FULL.text
    assert [json.loads(call.arguments) for call in calls] == ARGUMENTS
    assert response.usage.output_tokens_details.reasoning_tokens > 0
    assert response.usage.input_tokens > 0


def test_the_anthropic_client_reads_thinking_text_and_parallel_calls(claude):
    check_message(claude.messages.create(model="claude-sonnet-5", max_tokens=99, messages=ASKED))


def test_the_anthropic_client_reads_the_same_from_a_stream(claude):
    with claude.messages.stream(model="claude-sonnet-5", max_tokens=99, messages=ASKED) as stream:
        kinds = [event.type for event in stream]
        check_message(stream.get_final_message())
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert kinds.count("content_block_stop") == 4
    assert "signature" in kinds


def test_the_chat_client_reads_text_and_parallel_calls(gpt):
    check_completion(gpt.chat.completions.create(model="gpt-5.5", messages=ASKED))


def test_the_chat_client_reads_the_same_from_a_stream(gpt):
    counted = {"include_usage": True}
    with gpt.chat.completions.stream(
        model="gpt-5.5", messages=ASKED, stream_options=counted
    ) as stream:
        check_completion(stream.get_final_completion())


def test_chat_chunks_carry_usage_only_where_it_was_asked_for(gpt):
    plain = list(gpt.chat.completions.create(model="gpt-5.5", messages=ASKED, stream=True))
    counted = list(
        gpt.chat.completions.create(
            model="gpt-5.5", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
    )
    assert all(chunk.usage is None for chunk in plain)
    assert [chunk.usage is None for chunk in counted] == [True] * (len(counted) - 1) + [False]
    assert counted[-1].choices == []
    assert plain[0].choices[0].delta.role == "assistant"


def test_the_responses_client_reads_reasoning_text_and_parallel_calls(gpt):
    check_response(gpt.responses.create(model="gpt-5.5", input=ASKED))


def test_the_responses_client_reads_the_same_from_a_stream(gpt):
    with gpt.responses.stream(model="gpt-5.5", input=ASKED) as stream:
        events = list(stream)
        check_response(stream.get_final_response())
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [events[0].type, events[1].type, events[-1].type] == [
        "response.created",
        "response.in_progress",
        "response.completed",
    ]


def test_async_clients_read_all_three_dialects_streamed_and_not():
    async def talk():
        async with ScriptedUpstream(lambda _: FULL) as upstream:
            await claude_talks(upstream)
            await gpt_talks(upstream)

    async def claude_talks(upstream):
        async with anthropic.AsyncAnthropic(
            base_url=upstream.anthropic_url, api_key="k", max_retries=0
        ) as claude:
            check_message(
                await claude.messages.create(model="claude-sonnet-5", max_tokens=99, messages=ASKED)
            )
            async with claude.messages.stream(
                model="claude-sonnet-5", max_tokens=99, messages=ASKED
            ) as stream:
                check_message(await stream.get_final_message())

    async def gpt_talks(upstream):
        async with openai.AsyncOpenAI(
            base_url=upstream.openai_url, api_key="k", max_retries=0
        ) as gpt:
            check_completion(await gpt.chat.completions.create(model="gpt-5.5", messages=ASKED))
            options = {"include_usage": True}
            async with gpt.chat.completions.stream(
                model="gpt-5.5", messages=ASKED, stream_options=options
            ) as stream:
                check_completion(await stream.get_final_completion())
            check_response(await gpt.responses.create(model="gpt-5.5", input=ASKED))
            async with gpt.responses.stream(model="gpt-5.5", input=ASKED) as stream:
                check_response(await stream.get_final_response())

    asyncio.run(talk())


def test_a_plain_text_reply_ends_the_turn_in_every_dialect():
    with ScriptedUpstream([Say("Done.")] * 3) as upstream:
        with anthropic.Anthropic(
            base_url=upstream.anthropic_url, api_key="k", max_retries=0
        ) as claude:
            said = claude.messages.create(model="claude-sonnet-5", max_tokens=9, messages=ASKED)
            assert (said.content[0].text, said.stop_reason) == ("Done.", "end_turn")
        with openai.OpenAI(base_url=upstream.openai_url, api_key="k", max_retries=0) as gpt:
            completion = gpt.chat.completions.create(model="gpt-5.5", messages=ASKED)
            assert (completion.choices[0].message.content, completion.choices[0].finish_reason) == (
                "Done.",
                "stop",
            )
            assert gpt.responses.create(model="gpt-5.5", input="hi").output_text == "Done."


def test_a_truncated_reply_says_so_in_every_dialect():
    with ScriptedUpstream(lambda _: Say("Half a", truncated=True)) as upstream:
        with anthropic.Anthropic(
            base_url=upstream.anthropic_url, api_key="k", max_retries=0
        ) as claude:
            assert (
                claude.messages.create(model="c", max_tokens=9, messages=ASKED).stop_reason
                == "max_tokens"
            )
        with openai.OpenAI(base_url=upstream.openai_url, api_key="k", max_retries=0) as gpt:
            assert (
                gpt.chat.completions.create(model="gpt-5.5", messages=ASKED)
                .choices[0]
                .finish_reason
                == "length"
            )
            *_, last = gpt.responses.create(model="gpt-5.5", input="hi", stream=True)
            assert last.type == "response.incomplete"
            assert last.response.incomplete_details.reason == "max_output_tokens"


def test_ids_depend_on_the_seed_and_the_order_alone():
    def ids(seed):
        with ScriptedUpstream(lambda _: FULL, seed=seed) as upstream:
            with anthropic.Anthropic(
                base_url=upstream.anthropic_url, api_key="k", max_retries=0
            ) as claude:
                replies = [
                    claude.messages.create(model="c", max_tokens=9, messages=ASKED)
                    for _ in range(2)
                ]
            return [
                id
                for reply in replies
                for id in (reply.id, *(block.id for block in reply.content[2:]))
            ]

    assert ids(1) == ids(1)
    assert len(set(ids(1) + ids(2))) == 12


def test_a_response_can_be_continued_by_its_id_and_costs_what_is_remembered(gpt):
    first = gpt.responses.create(model="gpt-5.5", input="A" * 4000)
    second = gpt.responses.create(model="gpt-5.5", input="And?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    assert second.usage.input_tokens > first.usage.input_tokens
    with pytest.raises(
        openai.BadRequestError, match="Previous response with id 'resp_x' not found"
    ):
        gpt.responses.create(model="gpt-5.5", input="And?", previous_response_id="resp_x")


def test_a_response_that_was_not_to_be_stored_is_not_remembered(gpt):
    first = gpt.responses.create(model="gpt-5.5", input="hi", store=False)
    with pytest.raises(openai.BadRequestError):
        gpt.responses.create(model="gpt-5.5", input="And?", previous_response_id=first.id)


def test_both_clients_can_list_models(claude, gpt):
    assert "claude-sonnet-5" in [model.id for model in claude.models.list()]
    assert "gpt-5.6" in [model.id for model in gpt.models.list()]


def test_count_tokens_counts_what_the_request_would_cost_and_uses_up_no_reply():
    with (
        ScriptedUpstream([Say("one")]) as upstream,
        anthropic.Anthropic(base_url=upstream.anthropic_url, api_key="k", max_retries=0) as claude,
    ):
        counted = claude.messages.count_tokens(model="c", messages=ASKED)
        said = claude.messages.create(model="c", max_tokens=9, messages=ASKED)
        assert counted.input_tokens == said.usage.input_tokens > 0
        assert upstream.bill.input == said.usage.input_tokens


def test_without_a_script_it_says_back_what_it_was_told_last():
    with (
        ScriptedUpstream() as upstream,
        openai.OpenAI(base_url=upstream.openai_url, api_key="k", max_retries=0) as gpt,
    ):
        completion = gpt.chat.completions.create(
            model="gpt-5.5", messages=[*ASKED, {"role": "user", "content": "Or not."}]
        )
        assert completion.choices[0].message.content == "Message 2 said: Or not."
        assert gpt.responses.create(model="gpt-5.5", input="Well?").output_text == "You said: Well?"


def test_arguments_given_as_text_are_said_as_they_are():
    with (
        ScriptedUpstream([Say(calls=(Call("grep", '{"pattern": "a'),))]) as upstream,
        openai.OpenAI(base_url=upstream.openai_url, api_key="k", max_retries=0) as gpt,
    ):
        completion = gpt.chat.completions.create(model="gpt-5.5", messages=ASKED)
        assert completion.choices[0].message.tool_calls[0].function.arguments == '{"pattern": "a'


@pytest.mark.parametrize("streamed", [False, True])
def test_a_search_that_its_client_runs_is_said_as_one_and_what_it_loaded_is_called_by_its_namespace(
    streamed,
):
    schema = {"type": "object", "properties": {}}
    search = {
        "type": "tool_search",
        "execution": "client",
        "description": "Finds.",
        "parameters": schema,
    }
    loaded = {
        "type": "function",
        "name": "crm",
        "parameters": schema,
        "strict": False,
        "defer_loading": True,
    }
    script = [
        Say(calls=(Call("tool_search", {"goal": "x"}, "one"),)),
        Say(calls=(Call("crm", {}, "two"),)),
    ]

    with (
        ScriptedUpstream(script, strict=True) as upstream,
        openai.OpenAI(base_url=upstream.openai_url, api_key="k", max_retries=0) as client,
    ):

        def ask(items):
            asked = {"model": "gpt-5.4", "input": items, "tools": [search]}
            if not streamed:
                return client.responses.create(**asked).output
            with client.responses.stream(**asked) as events:
                for _ in events:
                    pass
                return events.get_final_response().output

        [called] = ask(ASKED)
        assert (called.type, called.execution, called.call_id) == (
            "tool_search_call",
            "client",
            "call_one",
        )
        assert called.arguments == {"goal": "x"}
        found = {
            "type": "tool_search_output",
            "execution": "client",
            "call_id": called.call_id,
            "tools": [loaded],
        }
        [used] = ask([*ASKED, called.model_dump(exclude_none=True), found])
        assert (used.type, used.name, used.namespace) == ("function_call", "crm", "crm")
